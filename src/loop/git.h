/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of stories as commits. A commit is made when a result is accepted, on top of the one before it, as an object
 * that no ref names yet; when the result is in the host's tree, the branch moves to it, if it is still where it was.
 *
 * With `branchName` of the PRD the checkout stays as it is, and so the results are not in the host's tree: a view of ours,
 * the base, holds the difference between the checkout's commit and the branch, and every other view lies on top of it.
 *
 * INVARIANT: no hook, filter or configuration of the repository is used (view/git_internal.h).
 */
#ifndef CORDON_LOOP_GIT_H
#define CORDON_LOOP_GIT_H

#include "loop/layers.h"
#include "view/git_internal.h"
#include "view/view.h"

#define CORDON_LOOP_GIT_ID CORDON_GIT_ID_SIZE

struct cordon_loop;
struct cordon_loop_call;

struct cordon_loop_git {
	bool active;	   /* results become commits */
	bool checked_out;  /* the branch is that of HEAD: tree and index advance with it */
	bool index_behind; /* entries of the index have no times of their files yet */
	struct cordon_git_repo repo;
	char shim[CORDON_PATH_MAX];
	int dir_fd;
	char branch[512];	       /* "refs/heads/..." */
	char head[CORDON_LOOP_GIT_ID]; /* the commit of HEAD; "" when there is none yet */
	char host[CORDON_LOOP_GIT_ID]; /* the commit of the branch on the host */
	char tip[CORDON_LOOP_GIT_ID];  /* with everything that was accepted */
	char base[CORDON_ID_SIZE];     /* the view with what the branch has and the checkout has not; or "" */
};

/* clang-format off */
#define CORDON_LOOP_GIT_NONE { .repo = CORDON_GIT_REPO_NONE, .dir_fd = -1 }
/* clang-format on */

int cordon_loop_git_open(struct cordon_loop *loop, struct cordon_error *err);
void cordon_loop_git_close(struct cordon_loop_git *git);
/* Gives the agent of a call the repository; the call's view is made. */
int cordon_loop_git_begin(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err);
/* Makes the commits of a result that is to be accepted. `ret_commit` is "" when there is nothing to commit. *ret_why is
 * allocated when what the agent committed is refused. */
int cordon_loop_git_commit(struct cordon_loop *loop, struct cordon_loop_call *call,
			   char ret_commit[static CORDON_LOOP_GIT_ID], char **ret_why, struct cordon_error *err);
/* Results went back: what was accepted ends with the stack. */
void cordon_loop_git_rewind(struct cordon_loop *loop);
/* Moves the branch to what was accepted last, and brings the index along. May be called again. */
int cordon_loop_git_land(struct cordon_loop *loop, struct cordon_error *err);
/* When the loop ends: the index gets the times of the files. */
int cordon_loop_git_end(struct cordon_loop_git *git, struct cordon_error *err);

/* git_base.c: makes the view of the base. */
int cordon_loop_git_base(struct cordon_loop *loop, struct cordon_error *err);

#endif
