/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files of the writable part of the root changed since a moment, by their times; for the summary after a run.
 * What the host itself changed meanwhile can't be told apart. A file that is gone leaves no trace but the time of its
 * folder: where that is new and nothing in it is, something was removed, or came and went. The walk follows no link and
 * is bounded in entries and time; it says when it stopped.
 */
#ifndef CORDON_SANDBOX_CHANGES_H
#define CORDON_SANDBOX_CHANGES_H

#include <time.h>

#include "policy/policy.h"

#define CORDON_CHANGES_ENTRIES_MAX 200000
#define CORDON_CHANGES_MS_MAX 1000
#define CORDON_CHANGES_SHOWN_MAX 10

struct cordon_change {
	char *path;	 /* relative to the root */
	const char *who; /* who would execute it */
	bool created;
};

struct cordon_changes {
	size_t created, modified;				 /* files and links; git's own data is not counted */
	struct cordon_change executes[CORDON_CHANGES_SHOWN_MAX]; /* git's own included */
	size_t n_executes;					 /* all of them; the first are above */
	char *removed_from[CORDON_CHANGES_SHOWN_MAX];		 /* folders, relative to the root; "" is the root */
	size_t n_removed_from;					 /* all of them; the first are above */
	char *unread;	 /* the first folder that changed and can't be read, or NULL */
	size_t n_unread; /* all of them */
	size_t looked;
	bool stopped;
};

/* `since` is of CLOCK_REALTIME_COARSE, the clock of file times, taken before the run. */
int cordon_changes_find(const struct cordon_policy *policy, const struct timespec *since, struct cordon_changes *ret,
			struct cordon_error *err);
void cordon_changes_done(struct cordon_changes *changes);

#endif
