/* SPDX-License-Identifier: Apache-2.0 */
/* The parent of the agent's process in the lower tier: starts it, waits for it, and ends the processes that it
 * leaves. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/exit.h"
#include "sandbox/inside/inside.h"

/* Reads the children of one process from /proc. */
static size_t children_of(pid_t pid, pid_t *ret, size_t max)
{
	char path[64], digits[CORDON_DIGITS_SIZE], text[4096];
	const char *number = cordon_digits((uint64_t)pid, digits);
	size_t n = 0;
	ssize_t len;
	int fd;

	cordon_concat(path, sizeof(path), "/proc/", number, "/task/", number, "/children", (char *)NULL);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	for (ssize_t i = 0; i < len && n < max;) {
		pid_t value = 0;

		for (; i < len && text[i] >= '0' && text[i] <= '9'; i++)
			value = value * 10 + (text[i] - '0');
		if (value > 0)
			ret[n++] = value;
		i++;
	}
	return n;
}

static void signal_tree(pid_t pid, int signal, unsigned int depth)
{
	pid_t children[512];
	size_t n = depth > 64 ? 0 : children_of(pid, children, CORDON_ARRAY_SIZE(children));

	for (size_t i = 0; i < n; i++) {
		/* Stop parents first, so that they make no more children. */
		if (signal == SIGKILL)
			kill(children[i], SIGSTOP);
		signal_tree(children[i], signal, depth + 1);
		kill(children[i], signal);
	}
}

void cordon_lower_tier_kill_all(int signal)
{
	pid_t child;

	for (int round = 0; round < 1000 && children_of(getpid(), &child, 1); round++) {
		signal_tree(getpid(), signal, 0);
		if (signal != SIGKILL)
			return;
		/* Orphans become our children, because we are the subreaper. */
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		usleep(1000);
	}
}

_Noreturn void cordon_lower_tier_build(struct cordon_inside *in)
{
	struct cordon_notice notice;
	int status, fd;
	pid_t agent;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		cordon_inside_fail(in, -errno, "set", "the death signal");
	if (cordon_notice_receive(in->ctl, &notice, &fd) != 1 || notice.kind != CORDON_NOTICE_GO)
		_exit(CORDON_EXIT_REFUSED);
	in->umask = umask(0);
	umask(in->umask);
	memset(in->terminal, 0, sizeof(in->terminal));
	agent = fork();
	if (agent < 0)
		cordon_inside_fail(in, -errno, "fork", "the agent's process");
	if (agent == 0)
		cordon_agent(in);
	close(in->exec_fd);
	for (;;) {
		fd_set set;
		struct timeval tick = { .tv_usec = 20000 };

		/* We use no signal descriptor here: we look for both, notices and ended processes, 50 times a
		 * second. */
		FD_ZERO(&set);
		FD_SET(in->ctl, &set);
		if (select(in->ctl + 1, &set, NULL, NULL, &tick) > 0) {
			if (cordon_notice_receive(in->ctl, &notice, &fd) != 1)
				break;
			if (notice.kind == CORDON_NOTICE_TERMINATE)
				cordon_lower_tier_kill_all(SIGTERM);
		}
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
			if (pid != agent)
				continue;
			cordon_lower_tier_kill_all(SIGKILL);
			notice = (struct cordon_notice){ .kind = CORDON_NOTICE_EXITED, .code = status };
			getrusage(RUSAGE_CHILDREN, &notice.usage);
			cordon_notice_send(in->ctl, &notice, -1);
			_exit(0);
		}
	}
	cordon_lower_tier_kill_all(SIGKILL);
	_exit(CORDON_EXIT_REFUSED);
}
