/* SPDX-License-Identifier: Apache-2.0 */
/* Makes child processes, and processes that outlive their caller. */
#include "base/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"

static int set_streams(const int *streams)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++)
		if (dup2(streams[fd] < 0 ? null : streams[fd], fd) < 0)
			return -errno;
	if (null > 2)
		close(null);
	return 0;
}

static void set_bounds(const struct cordon_fork *how)
{
	if (how->seconds)
		alarm(how->seconds);
#ifndef __SANITIZE_ADDRESS__ /* it reserves more memory than there is */
	if (how->memory_bytes)
		setrlimit(RLIMIT_DATA, &(struct rlimit){ how->memory_bytes, how->memory_bytes });
#endif
	if (how->file_bytes) {
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){ how->file_bytes, how->file_bytes });
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	}
}

/* In the new process. */
static void become(const struct cordon_fork *how, pid_t parent)
{
	sigset_t none;

	if (how->own_session && setsid() < 0)
		_exit(CORDON_CHILD_UNMADE);
	/* The parent may have ended before the call. */
	if (how->death_signal && (prctl(PR_SET_PDEATHSIG, how->death_signal) < 0 || getppid() != parent))
		_exit(CORDON_CHILD_UNMADE);
	for (int number = 1; how->plain_signals && number < NSIG; number++)
		(void)signal(number, SIG_DFL);
	if (how->streams && set_streams(how->streams) < 0)
		_exit(CORDON_CHILD_UNMADE);
	if (how->kept)
		cordon_close_except(how->kept, how->n_kept);
	set_bounds(how);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, how->blocked ? how->blocked : &none, NULL);
}

pid_t cordon_child_fork(const struct cordon_fork *how)
{
	pid_t pid, parent = getpid();
	sigset_t all, before;
	int code;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	code = errno;
	if (pid == 0) {
		become(how, parent);
		return 0;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid < 0 ? -code : pid;
}

/* In the new process. Tells the caller its number when no signal to the caller's group or terminal reaches it any
 * more. */
static void leave_caller(const struct cordon_detach *how, int tell_fd)
{
	static const int nothing;
	const int streams[] = { -1, -1, how->error_fd > 0 ? how->error_fd : -1 };
	pid_t own = getpid();

	if (setsid() < 0 || cordon_write_all(tell_fd, &own, sizeof(own)) < 0)
		_exit(CORDON_CHILD_UNMADE);
	become(&(struct cordon_fork){ .streams = streams,
				      .kept = how->kept ? how->kept : &nothing,
				      .n_kept = how->n_kept,
				      .plain_signals = true },
	       0);
	if (!how->keep_cwd && chdir("/") < 0)
		_exit(CORDON_CHILD_UNMADE);
}

pid_t cordon_child_detach(const struct cordon_detach *how)
{
	pid_t between, child = -1;
	int ends[2], r;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	between = fork();
	if (between == 0) {
		/* A second fork, so that nobody has to wait for the process. */
		child = fork();
		if (child != 0)
			_exit(child < 0);
		leave_caller(how, ends[1]);
		return 0;
	}
	r = between < 0 ? -errno : 0;
	close(ends[1]);
	while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR)
		;
	do
		n = read(ends[0], &child, sizeof(child));
	while (n < 0 && errno == EINTR);
	if (r == 0 && n != (ssize_t)sizeof(child))
		r = -EAGAIN;
	close(ends[0]);
	return r < 0 ? r : child;
}

int cordon_child_await(pid_t pid, uint64_t timeout_ms, int *ret_status)
{
	autofd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd wait = { .fd = pidfd, .events = POLLIN };
	int r = pidfd < 0 ? -errno : 0;

	while (r == 0) {
		int n = poll(&wait, 1, (int)timeout_ms);

		if (n > 0)
			break;
		if (n == 0)
			r = -ETIME;
		else if (errno != EINTR)
			r = -errno;
	}
	if (r < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return r;
}
