/* SPDX-License-Identifier: Apache-2.0 */
/* Starts cordon-job: a process that outlives the one that starts it. */
#include <fcntl.h>
#include <sys/socket.h>

#include "base/child.h"
#include "base/program.h"
#include "job/internal.h"

#define PROGRAM "cordon-job"

/* This runs between fork and exec, so it makes async-signal-safe calls only. */
_Noreturn static void exec_session(const char *program, char **argv, const int fds[static CORDON_SESSION_FD__MAX])
{
	int high[CORDON_SESSION_FD__MAX];

	/* Copy the descriptors to high numbers first, so that dup2() below does not overwrite one that is still
	 * needed. */
	for (int fd = CORDON_SESSION_FD_ALIVE; fd < CORDON_SESSION_FD__MAX; fd++)
		high[fd] = fcntl(fds[fd], F_DUPFD, 16);
	for (int fd = CORDON_SESSION_FD_ALIVE; fd < CORDON_SESSION_FD__MAX; fd++)
		dup2(high[fd], fd);
	close_range(CORDON_SESSION_FD__MAX, ~0U, 0);
	execve(program, argv, environ);
	_exit(127);
}

int cordon_session_spawn(const char *id, int alive_fd, int lock_fd, int *ret_fd, struct cordon_error *err)
{
	char program[CORDON_PATH_MAX], name[] = PROGRAM, session[CORDON_ID_SIZE];
	char *argv[] = { name, session, NULL };
	autofd int ours = -1;
	autofd int theirs = -1;
	int pair[2] = { -1, -1 }, fds[CORDON_SESSION_FD__MAX] = { -1, -1, -1 };
	pid_t pid;
	int r = cordon_program_find(PROGRAM, program, err);

	if (r < 0) {
		cordon_error_hint(err, "install it; sessions can't run without it");
		return r;
	}
	r = cordon_copy(session, sizeof(session), id, strlen(id));
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		r = -errno;
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot start " PROGRAM);
	ours = pair[0];
	theirs = pair[1];
	fds[CORDON_SESSION_FD_ALIVE] = alive_fd;
	fds[CORDON_SESSION_FD_START] = theirs;
	fds[CORDON_SESSION_FD_LOCK] = lock_fd;
	pid = cordon_child_detach(&(struct cordon_detach){ .kept = fds, .n_kept = CORDON_ARRAY_SIZE(fds) });
	if (pid == 0)
		exec_session(program, argv, fds);
	if (pid < 0)
		return cordon_fail_errno(err, (int)pid, "cannot start " PROGRAM);
	*ret_fd = cordon_steal_fd(&ours);
	return 0;
}
