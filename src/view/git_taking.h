/* SPDX-License-Identifier: Apache-2.0 */
/* The state between judging what a run committed (git_take.c) and taking it over (git_finish.c). */
#ifndef CORDON_VIEW_GIT_TAKING_H
#define CORDON_VIEW_GIT_TAKING_H

#include "view/git_internal.h"

#define CORDON_GIT_STASHES_MAX 64
#define CORDON_GIT_SCRATCH "q" /* in git-take: the root of the sandbox */
#define CORDON_GIT_SHIM "shim" /* in git-take */

struct cordon_git_stash {
	char id[CORDON_GIT_ID_SIZE];
	char *message;
};

struct cordon_git_taking {
	struct cordon_git_repo repo;
	char record[CORDON_PATH_MAX], take[CORDON_PATH_MAX], scratch[CORDON_PATH_MAX], shim[CORDON_PATH_MAX];
	char own[CORDON_PATH_MAX]; /* as the repository's, at the start */
	int record_fd, start_fd, take_fd, scratch_fd;
	int index_fd;	    /* the directory with the index at the start */
	int git_fd, own_fd; /* the run's git directory, and its part of it for this worktree. INVARIANT: hostile */
	struct cordon_git_refs start, run, host; /* refs at the start, of the run, and of the host now */
	struct cordon_buf head_start, head_run;
	char head_id[CORDON_GIT_ID_SIZE];     /* the commit that HEAD will have; "" when there is none */
	char head_old_id[CORDON_GIT_ID_SIZE]; /* that it had at the start */
	bool index_differs;		      /* the run's index has other bytes than the one at the start */
	bool host_went_on;		      /* the host's HEAD is not the one at the start */
	bool has_pack;
	struct cordon_git_stash stashes[CORDON_GIT_STASHES_MAX]; /* oldest first */
	size_t n_stashes;
	struct cordon_buf staged; /* input of update-index: what differs from HEAD and is allowed */
};

/* ---- git_compare.c ---- */

/* Notes why nothing can be taken over. */
int cordon_git_refuse(struct cordon_git_take *take, struct cordon_error *err, const char *fmt, ...) CORDON_PRINTF(3, 4);
/* Fills the refs of the take, HEAD and the new entries of the stash, and refuses what the host has changed meanwhile. */
int cordon_git_compare_refs(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err);
int cordon_git_compare_head(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err);
int cordon_git_find_stashes(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err);

/* ---- git_scratch.c ---- */

/* Fills the scratch directory with what git needs to know. */
int cordon_git_scratch_make(struct cordon_git_taking *t, const struct cordon_git_take *take, struct cordon_error *err);
/* Has git check the new objects there, and compare the new commits. What git does not accept is refused. */
int cordon_git_scratch_check(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err);
/* Reads a file that git made there. */
int cordon_git_scratch_read(const struct cordon_git_taking *t, const char *name, size_t max, struct cordon_buf *ret,
			    struct cordon_error *err);

/* Whether two ids are equal, or both missing. */
static inline bool cordon_git_same(const char *a, const char *b)
{
	return a && b ? cordon_streq(a, b) : !a && !b;
}

#endif
