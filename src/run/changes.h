/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the files in the writable part of the root that changed during a run, by their times; for the summary after a
 * run. It can't distinguish what the run changed from what the host changed meanwhile. A removed file changes only the
 * time of its folder: when that is new and nothing in the folder is new, something was removed, or was made and removed
 * again. The walk follows no link, is bounded in entries and time, and says when it stopped early.
 */
#ifndef CORDON_RUN_CHANGES_H
#define CORDON_RUN_CHANGES_H

#include <time.h>

#include "policy/policy.h"

#define CORDON_CHANGES_ENTRIES_MAX 200000
#define CORDON_CHANGES_MS_MAX 1000
#define CORDON_CHANGES_SHOWN_MAX 10

struct cordon_change {
	char *path;	 /* relative to the root */
	const char *who; /* the program that would execute it */
	bool created;
};

struct cordon_changes {
	size_t created, modified;				 /* files and links, without those in .git */
	struct cordon_change executes[CORDON_CHANGES_SHOWN_MAX]; /* what the host would execute, also in .git */
	size_t n_executes;					 /* the number of all; the first are above */
	char *removed_from[CORDON_CHANGES_SHOWN_MAX];		 /* folders, relative to the root; "" is the root */
	size_t n_removed_from;					 /* the number of all; the first are above */
	char *unread;	 /* the first folder that changed and can't be read, or NULL */
	size_t n_unread; /* the number of all */
	size_t looked;	 /* how many entries the walk has seen */
	bool stopped;	 /* the walk stopped before its end */
};

/* Who wants every file and link that changed, without those in .git. */
struct cordon_changes_listener {
	void *data;
	int (*file)(void *data, const char *path, bool created); /* a negative errno ends the walk */
};

/* `since` is the time before the run, by CLOCK_REALTIME_COARSE, which is the clock of file times. `listener` may be NULL. */
int cordon_changes_find(const struct cordon_policy *policy, const struct timespec *since,
			const struct cordon_changes_listener *listener, struct cordon_changes *ret,
			struct cordon_error *err);
void cordon_changes_done(struct cordon_changes *changes);

#endif
