/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of cordon-lens. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/path.h"
#include "policy/handover.h"
#include "sandbox/lens_process.h"

#define READY_MS 10000
#define END_MS 5000
#define FIRST_FD 100 /* descriptors of the lens, out of the way of 0, 1 and 2 */

static int find_lens(char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	ssize_t n = readlink("/proc/self/exe", ret, CORDON_PATH_MAX - 1);
	char *slash;

	if (n > 0) {
		ret[n] = '\0';
		slash = strrchr(ret, '/');
		if (slash && (size_t)(slash - ret) + sizeof("/cordon-lens") <= CORDON_PATH_MAX) {
			memcpy(slash, "/cordon-lens", sizeof("/cordon-lens"));
			if (access(ret, X_OK) == 0)
				return 0;
		}
	}
	if (cordon_copy(ret, CORDON_PATH_MAX, CORDON_LIBEXEC "/cordon-lens",
			sizeof(CORDON_LIBEXEC "/cordon-lens") - 1) == 0 &&
	    access(ret, X_OK) == 0)
		return 0;
	cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "cordon-lens is neither beside cordon nor in %s",
		    CORDON_LIBEXEC);
	cordon_error_hint(err, "install it, or name folders and single files instead of patterns");
	return -ENOENT;
}

/* Descriptors that survive the exec, as the lens wants to hear of them. */
struct handed {
	int root, policy, fuse, status;
};

_Noreturn static void become_lens(const char *path, const struct handed *handed, pid_t parent)
{
	const int numbers[] = { handed->root, handed->policy, handed->fuse, handed->status, (int)parent };
	char texts[5][16], name[] = "cordon-lens",
			   options[5][12] = { "--root-fd", "--policy-fd", "--fuse-fd", "--status-fd", "--parent" };
	char *argv[12] = { name }, *env[] = { NULL };
	sigset_t none;
	int high[4];

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < 5; i++) {
		int value = numbers[i];

		if (i < 4)
			value = high[i] = fcntl(numbers[i], F_DUPFD, FIRST_FD);
		if (value < 0)
			_exit(125);
		snprintf(texts[i], sizeof(texts[i]), "%d", value);
		argv[1 + 2 * i] = options[i];
		argv[2 + 2 * i] = texts[i];
	}
	execve(path, argv, env);
	_exit(125);
}

static int wait_ready(int status_fd, struct cordon_error *err)
{
	struct pollfd ready = { .fd = status_fd, .events = POLLIN };
	char line[512];
	ssize_t n = poll(&ready, 1, READY_MS) > 0 ? read(status_fd, line, sizeof(line) - 1) : -1;

	if (n >= 5 && memcmp(line, "ready", 5) == 0)
		return 0;
	if (n <= 0)
		return cordon_fail(err, -EIO, CORDON_KIND_IO, "cordon-lens did not start");
	line[strcspn(line, "\n") < (size_t)n ? strcspn(line, "\n") : (size_t)n] = '\0';
	return cordon_fail(err, -EIO, CORDON_KIND_IO, "cordon-lens: %s", line);
}

int cordon_lens_start(const struct cordon_policy *policy, int fuse_fd, struct cordon_lens_process *ret_process,
		      struct cordon_error *err)
{
	autofd int fuse = fuse_fd;
	autofd int policy_fd = memfd_create("cordon-policy", MFD_CLOEXEC);
	autofd int status_read = -1, status_write = -1;
	struct cordon_lens_process process = CORDON_LENS_PROCESS_NONE;
	char path[CORDON_PATH_MAX];
	pid_t parent = getpid();
	int pipe_fds[2], r = find_lens(path, err);

	if (r < 0)
		return r;
	if (policy_fd < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
		return cordon_fail_errno(err, -errno, "cannot start cordon-lens");
	status_read = pipe_fds[0];
	status_write = pipe_fds[1];
	r = cordon_handover_write(policy, !policy->no_editor_temps, policy_fd, err);
	if (r < 0)
		return r;
	if (lseek(policy_fd, 0, SEEK_SET) < 0)
		return cordon_fail_errno(err, -errno, "cannot start cordon-lens");
	process.pid = fork();
	if (process.pid < 0)
		return cordon_fail_errno(err, -errno, "cannot start cordon-lens");
	if (process.pid == 0) {
		const struct handed handed = { policy->root.fd, policy_fd, fuse, status_write };

		become_lens(path, &handed, parent);
	}
	cordon_closep(&status_write);
	process.pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	r = wait_ready(status_read, err);
	if (r < 0) {
		cordon_lens_stop(&process);
		return r;
	}
	*ret_process = process;
	return 0;
}

void cordon_lens_stop(struct cordon_lens_process *process)
{
	struct pollfd ended = { .fd = process->pidfd, .events = POLLIN };

	if (process->pid <= 0)
		return;
	kill(process->pid, SIGTERM);
	if (process->pidfd < 0 || poll(&ended, 1, END_MS) <= 0)
		kill(process->pid, SIGKILL);
	while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
		;
	cordon_closep(&process->pidfd);
	process->pid = -1;
}
