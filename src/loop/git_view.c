/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repository that the agent of a call gets. Its view may lie on top of results that are in no commit of the host yet. Then
 * HEAD is a commit that has them, made in the agent's own git directory: `git status` shows what the agent itself did, and
 * `git stash` or `git reset --hard` take nothing else back.
 */
#include "base/path.h"
#include "loop/git.h"
#include "loop/internal.h"

/* Runs git in the agent's directory, which is ours until the agent is started. */
static int run(const struct cordon_loop *loop, const struct cordon_git_call *own, const char *const *argv,
	       struct cordon_error *err)
{
	struct cordon_git_call call = *own;

	call.argv = argv;
	return cordon_loop_git_call(loop, &call, NULL, err);
}

/* Makes the commit of all that lies below the view; "" when git sees nothing there. */
static int make_commit(struct cordon_loop *loop, const struct cordon_git_call *own, char ret[static CORDON_LOOP_GIT_ID],
		       struct cordon_error *err)
{
	char ids[CORDON_LOOP_STACK_MAX + 1][CORDON_LOOP_GIT_ID] = { 0 };
	int r = cordon_loop_git_tip(&loop->git, ret, err);

	if (r == 0)
		r = cordon_loop_git_import(loop, ret, own, ids, err);
	for (size_t i = 0; r == 0 && i < loop->n_stack; i++)
		if (*ids[i])
			memcpy(ret, ids[i], sizeof(ids[i]));
	return r;
}

/* The branch of the results, or no branch where results are not committed, is at the commit; and so is the index. */
static int check_out(const struct cordon_loop *loop, const struct cordon_git_call *own, const char *commit,
		     struct cordon_error *err)
{
	const char *const onto[] = { "symbolic-ref", "HEAD", loop->git.branch, NULL };
	const char *const move[] = { "update-ref", "HEAD", commit, NULL };
	const char *const detach[] = { "update-ref", "--no-deref", "HEAD", commit, NULL };
	const char *const index[] = { "read-tree", "--reset", commit, NULL };
	int r = loop->git.active ? run(loop, own, onto, err) : 0;

	if (r == 0)
		r = run(loop, own, loop->git.active ? move : detach, err);
	return r < 0 ? r : run(loop, own, index, err);
}

int cordon_loop_git_begin(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX], objects[CORDON_PATH_MAX];
	struct cordon_git_call own = { .git_dir = dir, .objects = objects };
	struct cordon_git_begin ask = { .mode = loop->options.git,
					.record = call->view.dir_fd >= 0 ? call->view.path : NULL,
					.view = call->view.dir_fd >= 0,
					.at = loop->options.spec.at };
	char commit[CORDON_LOOP_GIT_ID] = "";
	int r = ask.mode == CORDON_GIT_DEFAULT ? 0 : cordon_git_begin(call->policy, &ask, err);

	if (r < 0 || ask.mode != CORDON_GIT_COMMIT || !ask.view || !call->n_layers)
		return r;
	if (cordon_git_before(call->view.path, loop->git.repo.own, dir) < 0 ||
	    cordon_git_before(call->view.path, "objects", objects) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", call->view.path);
	r = make_commit(loop, &own, commit, err);
	return r < 0 || !*commit ? r : check_out(loop, &own, commit, err);
}
