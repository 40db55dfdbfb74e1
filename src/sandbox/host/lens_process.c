/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor starts and ends cordon-lens. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/exit.h"
#include "base/io.h"
#include "base/path.h"
#include "base/program.h"
#include "policy/handover.h"
#include "sandbox/host/lens_process.h"

#define READY_MS 10000
#define END_MS 5000
#define FIRST_FD 100 /* the lens's descriptors begin here, above 0, 1 and 2 */

static int find_lens(char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	int r = cordon_program_find("cordon-lens", ret_path, err);

	if (r < 0)
		cordon_error_hint(err, "install it, or name folders and single files instead of patterns");
	return r;
}

/* The descriptors that cordon-lens gets over the exec, one for each of its options. */
struct lens_fds {
	int root, policy, fuse, status, refusals, shown;
	int meter; /* or -1 */
};

_Noreturn static void become_lens(const char *path, const struct lens_fds *fds, pid_t parent)
{
	const int numbers[] = { fds->root,     fds->policy, fds->fuse,	fds->status,
				fds->refusals, fds->shown,  fds->meter, (int)parent };
	char texts[8][16], name[] = "cordon-lens";
	char options[8][16] = { "--root-fd",	 "--policy-fd", "--fuse-fd",  "--status-fd",
				"--refusals-fd", "--shown-fd",	"--meter-fd", "--parent" };
	char *argv[18] = { name }, *env[] = { NULL };
	size_t n = 1;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < 8; i++) {
		int value = numbers[i];

		if (value < 0)
			continue;
		if (i < 7)
			value = fcntl(numbers[i], F_DUPFD, FIRST_FD);
		if (value < 0)
			_exit(CORDON_EXIT_REFUSED);
		snprintf(texts[i], sizeof(texts[i]), "%d", value);
		argv[n++] = options[i];
		argv[n++] = texts[i];
	}
	execve(path, argv, env);
	_exit(CORDON_EXIT_REFUSED);
}

/* Writes the paths outside the root that the run sees at the same place as the host: links may lead there. */
static int write_shown(const struct cordon_plan *plan, int fd)
{
	int r = fd < 0 ? -errno : 0;

	for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];
		bool same = step->kind == CORDON_STEP_FILE ||
			    (step->kind == CORDON_STEP_BIND && cordon_streq(step->path, step->source));

		if (same && !cordon_path_within(step->path, plan->root) && !cordon_path_within(plan->root, step->path))
			r = cordon_write_all(fd, step->path, strlen(step->path) + 1);
	}
	return r == 0 && lseek(fd, 0, SEEK_SET) < 0 ? -errno : r;
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

int cordon_lens_start(const struct cordon_policy *policy, const struct cordon_plan *plan, int root_fd, int fuse_fd,
		      int meter_fd, struct cordon_lens_process *ret_process, struct cordon_error *err)
{
	autofd int fuse = fuse_fd;
	autofd int policy_fd = memfd_create("cordon-policy", MFD_CLOEXEC);
	autofd int shown_fd = memfd_create("cordon-shown", MFD_CLOEXEC);
	autofd int status_read = -1, status_write = -1, refusals = -1, refusals_inner = -1;
	struct cordon_lens_process process = CORDON_LENS_PROCESS_NONE;
	char path[CORDON_PATH_MAX];
	pid_t parent = getpid();
	int pair[2], r = find_lens(path, err);

	if (r < 0)
		return r;
	if (policy_fd < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return cordon_fail_errno(err, -errno, "cannot start cordon-lens");
	status_read = pair[0];
	status_write = pair[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return cordon_fail_errno(err, -errno, "cannot start cordon-lens");
	refusals = pair[0];
	refusals_inner = pair[1];
	r = cordon_handover_write(policy, !policy->no_editor_temps, policy_fd, err);
	if (r < 0)
		return r;
	if (lseek(policy_fd, 0, SEEK_SET) < 0)
		return cordon_fail_errno(err, -errno, "cannot start cordon-lens");
	r = write_shown(plan, shown_fd);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot start cordon-lens");
	process.pid = fork();
	if (process.pid < 0)
		return cordon_fail_errno(err, -errno, "cannot start cordon-lens");
	if (process.pid == 0) {
		const struct lens_fds fds = { root_fd, policy_fd, fuse, status_write, refusals_inner, shown_fd, meter_fd };

		become_lens(path, &fds, parent);
	}
	cordon_closep(&status_write);
	process.pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	r = wait_ready(status_read, err);
	if (r < 0) {
		cordon_lens_stop(&process);
		return r;
	}
	process.refusals_fd = cordon_steal_fd(&refusals);
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
	while (wait4(process->pid, NULL, 0, &process->usage) < 0 && errno == EINTR)
		;
	cordon_closep(&process->pidfd);
	process->pid = -1;
}
