/* SPDX-License-Identifier: Apache-2.0 */
/* Starts processes that outlive their caller. */
#include "base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/io.h"

/* In the new process. Tells the caller its number as soon as no signal to the caller's group or terminal reaches it. */
static void leave_caller(const struct cordon_detach *how, int tell_fd)
{
	int null = open("/dev/null", O_RDWR);
	pid_t own = getpid();
	sigset_t none;

	if (null < 0 || setsid() < 0 || cordon_write_all(tell_fd, &own, sizeof(own)) < 0)
		_exit(1);
	for (int number = 1; number < NSIG; number++)
		(void)signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(how->error_fd > 0 ? how->error_fd : null, STDERR_FILENO) < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		_exit(1);
	cordon_close_except(how->kept, how->n_kept);
	if (!how->keep_cwd && chdir("/") < 0)
		_exit(1);
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
