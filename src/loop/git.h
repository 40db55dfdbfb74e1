/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of stories as commits, one for each story. The commits are made when results land, as objects that no ref names;
 * when the results are in the host's tree, the branch moves to the last of them, if it is still where it was.
 *
 * With `branchName` of the PRD the checkout stays as it is, and so the results are not in the host's tree: a view of ours,
 * the base, holds the difference between the checkout's commit and the branch, and every other view lies on top of it.
 *
 * INVARIANT: no hook, filter or configuration of the repository is used (git/repo.h).
 */
#ifndef CORDON_LOOP_GIT_H
#define CORDON_LOOP_GIT_H

#include "git/repo.h"
#include "loop/layers.h"
#include "view/view.h"

#define CORDON_LOOP_GIT_ID CORDON_GIT_ID_SIZE
#define CORDON_LOOP_NO_ID "0000000000000000000000000000000000000000"

struct cordon_loop;
struct cordon_loop_call;

struct cordon_loop_git {
	bool active;	  /* results become commits */
	bool checked_out; /* the branch is that of HEAD: tree and index advance with it */
	struct cordon_git_repo repo;
	bool sha256;			  /* the names of its objects */
	struct cordon_git_process reader; /* asked for objects, once it was needed */
	int running_fd;			  /* locked by us and by each git that we started */
	char shim[CORDON_PATH_MAX];
	char branch[512];		 /* "refs/heads/..." */
	char head[CORDON_LOOP_GIT_ID];	 /* the commit of HEAD at the start; "" when there is none yet */
	char parent[CORDON_LOOP_GIT_ID]; /* of the first commit that is landing; "" for none */
	bool has_parent;
	char base[CORDON_ID_SIZE]; /* the view with what the branch has and the checkout has not; or "" */
	char author[512];	   /* "NAME <ADDRESS>" */
};

/* clang-format off */
#define CORDON_LOOP_GIT_NONE { .repo = CORDON_GIT_REPO_NONE, .reader = { .fd = -1 }, .running_fd = -1 }
/* clang-format on */

int cordon_loop_git_open(struct cordon_loop *loop, struct cordon_error *err);
void cordon_loop_git_close(struct cordon_loop_git *git);
/* git_view.c: gives the agent of a call the repository; the call's view is made. */
int cordon_loop_git_begin(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err);
/* Makes the commits of everything on the stack, while its files are still in their layers. */
int cordon_loop_git_commit(struct cordon_loop *loop, struct cordon_error *err);
/* Moves the branch to the last commit, and brings the index along. May be called again. */
int cordon_loop_git_land(struct cordon_loop *loop, struct cordon_error *err);

/* Runs git with the refs of the repository. */
int cordon_loop_git_run(const struct cordon_loop *loop, const char *const *argv, const struct cordon_buf *input,
			const char *index, struct cordon_buf *ret_output, struct cordon_error *err);

/* The same for a call that says more; the repository and the bounds are filled in. */
int cordon_loop_git_call(const struct cordon_loop *loop, struct cordon_git_call *call, struct cordon_buf *ret_output,
			 struct cordon_error *err);

/* The commit on which new ones lie; "" for none. */
int cordon_loop_git_tip(const struct cordon_loop_git *git, char ret[static CORDON_LOOP_GIT_ID],
			struct cordon_error *err);

/* git_import.c: makes a commit of each result on the stack, on top of `parent` ("" for none), as objects that no ref names.
 * `objects` is another directory for them, or NULL: that of the repository. ret_ids[i] is "" for a result in which git
 * sees no change. */
int cordon_loop_git_import(struct cordon_loop *loop, const char *parent, const char *objects,
			   char (*ret_ids)[CORDON_LOOP_GIT_ID], struct cordon_error *err);

/* git_base.c: makes the view of the base. */
int cordon_loop_git_base(struct cordon_loop *loop, const char *from, const char *to, struct cordon_error *err);

#endif
