/* SPDX-License-Identifier: Apache-2.0 */
/* Results of stories as commits. */
#include "loop/git.h"
#include "loop/internal.h"

int cordon_loop_git_open(struct cordon_loop *loop, struct cordon_error *err)
{
	(void)err;
	if (loop->options.git == CORDON_GIT_DEFAULT || loop->options.git == CORDON_GIT_COMMIT)
		loop->options.git = CORDON_GIT_READ;
	return 0;
}

void cordon_loop_git_close(struct cordon_loop_git *git)
{
	cordon_git_repo_done(&git->repo);
	cordon_closep(&git->dir_fd);
}

int cordon_loop_git_begin(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	return cordon_git_begin(call->policy, loop->options.git, false, call->view.dir_fd >= 0 ? call->view.path : NULL,
				loop->options.spec.at, err);
}

int cordon_loop_git_commit(struct cordon_loop *loop, struct cordon_loop_call *call,
			   char ret_commit[static CORDON_LOOP_GIT_ID], char **ret_why, struct cordon_error *err)
{
	(void)loop, (void)call, (void)ret_why, (void)err;
	ret_commit[0] = '\0';
	return 0;
}

void cordon_loop_git_rewind(struct cordon_loop *loop)
{
	(void)loop;
}

int cordon_loop_git_land(struct cordon_loop *loop, struct cordon_error *err)
{
	(void)loop, (void)err;
	return 0;
}

int cordon_loop_git_end(struct cordon_loop_git *git, struct cordon_error *err)
{
	(void)git, (void)err;
	return 0;
}
