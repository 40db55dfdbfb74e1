/* SPDX-License-Identifier: Apache-2.0 */
/* For other processes: begins a further command in a session. Its streams are pipes, because a file of the caller would
 * lead out of the sandbox. */
#include <fcntl.h>

#include "job/control.h"
#include "job/session.h"

static int make_pipes(struct cordon_session_exec *exec, int ret_inner[static CORDON_CONTROL_FDS])
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	ret_inner[0] = pair[0];
	exec->input = pair[1];
	for (int i = 0; i < 2; i++) {
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		exec->output[i] = pair[0];
		ret_inner[1 + i] = pair[1];
	}
	if (fcntl(exec->input, F_SETFL, O_NONBLOCK) < 0 || fcntl(exec->output[0], F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(exec->output[1], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int cordon_session_exec_begin(const struct cordon_store *store, const char *id, json_t *command,
			      struct cordon_session_exec *ret_exec, struct cordon_error *err)
{
	struct cordon_session_exec exec = CORDON_SESSION_EXEC_NONE;
	int inner[CORDON_CONTROL_FDS] = { -1, -1, -1 };
	autofd int dir = -1;
	int r = cordon_session_open(store, id, &dir, err);

	if (r == 0)
		r = cordon_control_connect(dir, &exec.control, err);
	if (r == 0 && (r = make_pipes(&exec, inner)) < 0)
		cordon_fail_errno(err, r, "cannot make a pipe");
	if (r == 0)
		r = cordon_control_ask_with(exec.control, json_pack("{s:s, s:O}", "op", "exec", "command", command),
					    inner, err);
	for (int i = 0; i < CORDON_CONTROL_FDS; i++)
		cordon_closep(&inner[i]);
	if (r < 0)
		cordon_session_exec_done(&exec);
	else
		*ret_exec = exec;
	return r;
}

int cordon_session_exec_answer(const struct cordon_session_exec *exec, json_t **ret_answer, struct cordon_error *err)
{
	return cordon_control_answer(exec->control, ret_answer, err);
}

void cordon_session_exec_done(struct cordon_session_exec *exec)
{
	cordon_closep(&exec->control);
	cordon_closep(&exec->input);
	cordon_closep(&exec->output[0]);
	cordon_closep(&exec->output[1]);
}
