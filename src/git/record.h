/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of runs with `--git commit` that are no views: state/git/<id> has the policy of the run and its git
 * directory (git.h). A record goes when its commits were taken over, or when there are none; else it stays, so that
 * nothing is lost, until somebody takes them over or removes it.
 */
#ifndef CORDON_GIT_RECORD_H
#define CORDON_GIT_RECORD_H

#include "base/home.h"
#include "git/git.h"

struct cordon_git_record {
	char id[CORDON_UUID_SIZE];
	char path[CORDON_PATH_MAX]; /* absolute */
	int dir_fd;		    /* has a lock while the run goes on, and while somebody works on the record */
};

/* clang-format off */
#define CORDON_GIT_RECORD_NONE { .dir_fd = -1 }
/* clang-format on */

/* Makes a record for a run with this policy, which must not have been given to cordon_git_begin() yet. */
int cordon_git_record_make(const struct cordon_home *home, const struct cordon_policy *policy,
			   struct cordon_git_record *ret_record, struct cordon_error *err);
/* Opens the record with this id, with an id that begins so, or ("latest") the newest; of the root at `root`, or with NULL
 * of any. kind conflict when its run has not ended. */
int cordon_git_record_open(const struct cordon_home *home, const char *text, const char *root,
			   struct cordon_git_record *ret_record, struct cordon_error *err);
/* The policy of its run, for the root as it is now. */
int cordon_git_record_policy(const struct cordon_git_record *record, struct cordon_policy **ret_policy,
			     struct cordon_error *err);
void cordon_git_record_close(struct cordon_git_record *record);
/* Removes and closes it. */
int cordon_git_record_remove(const struct cordon_home *home, struct cordon_git_record *record, struct cordon_error *err);
/* Removes what killed runs left: records that are half made, and those of runs that committed nothing. Commits that wait for
 * a decision stay, and so do records of live runs. */
int cordon_git_record_gc(const struct cordon_home *home, size_t *ret_removed, struct cordon_error *err);
/*
 * Takes over what the run of a record committed, and writes to the audit log what became of it. The record is closed; it is
 * removed when nothing is left to be decided. *ret_take is what was found, also when taking it over failed, or NULL.
 */
int cordon_git_record_take(const struct cordon_home *home, struct cordon_git_record *record,
			   struct cordon_git_take **ret_take, struct cordon_error *err);
/* Calls fn for each record with its id and root, oldest first. */
int cordon_git_record_each(const struct cordon_home *home, int (*fn)(void *data, const char *id, const char *root),
			   void *data, struct cordon_error *err);

#endif
