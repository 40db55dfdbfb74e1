/* SPDX-License-Identifier: Apache-2.0 */
/* The state between judging what a run committed (take.c) and taking it over (finish.c). */
#ifndef CORDON_GIT_TAKING_H
#define CORDON_GIT_TAKING_H

#include "git/internal.h"

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
	bool head_there;		      /* the host's HEAD is the run's */
	bool host_went_on;		      /* the host's HEAD is not the one at the start */
	bool has_pack;
	struct cordon_git_stash stashes[CORDON_GIT_STASHES_MAX]; /* oldest first */
	size_t n_stashes;
	bool interrupted; /* an earlier taking over of this run was killed, or failed when refs had moved */
	char tree_old[CORDON_GIT_ID_SIZE], tree_new[CORDON_GIT_ID_SIZE]; /* of HEAD, or empty trees */
	/* Input of update-index: entries of the host's that give way, with their values in the old HEAD; and entries that differ
	 * from the new one. */
	struct cordon_buf unstaged, staged;
};

/* ---- take.c ---- */

/* Whether two files have the same bytes, or neither is there. */
bool cordon_git_same_file(int a_dir, const char *a_name, int b_dir, const char *b_name);

/* Notes why nothing can be taken over. */
int cordon_git_refuse(struct cordon_git_take *take, struct cordon_error *err, const char *fmt, ...) CORDON_PRINTF(3, 4);

/* ---- judge.c ---- */

/* Judges what the run staged, and decides which entries the index gets. What the host had staged is not judged, and stays
 * where the run may not change it. */
int cordon_git_judge_staged(const struct cordon_policy *policy, struct cordon_git_taking *t,
			    struct cordon_git_take *take, struct cordon_error *err);

/* ---- finish.c: git's own locks of index and HEAD ---- */

/* What a process that was killed has left: removes its locks. *ret_interrupted says whether there was one, and *ret_ended
 * whether it had come to its end. */
void cordon_git_locks_recover(const struct cordon_git_taking *t, bool *ret_interrupted, bool *ret_ended);
bool cordon_git_was_taken(const struct cordon_git_taking *t);
/* Whether a killed process has left something to be ended. */
bool cordon_git_locks_left(const struct cordon_git_taking *t);

/* ---- scratch.c ---- */

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
