/* SPDX-License-Identifier: Apache-2.0 */
/* A loop for the owner of a crew that has none of its own. */
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "crew/internal.h"

static void on_signals(struct cordon_crew *crew, int fd, int *first)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (*first)
			cordon_crew_kill(crew, CORDON_CREW_ALL);
		else
			cordon_crew_cancel(crew, CORDON_CREW_ALL);
		if (!*first)
			*first = (int)info.ssi_signo;
	}
}

int cordon_crew_wait(struct cordon_crew *crew, int *ret_signal, struct cordon_error *err)
{
	sigset_t caught, before;
	autofd int fd = -1;
	int first = 0, r = 0;

	sigemptyset(&caught);
	sigaddset(&caught, SIGINT);
	sigaddset(&caught, SIGTERM);
	sigaddset(&caught, SIGHUP);
	sigprocmask(SIG_BLOCK, &caught, &before);
	fd = signalfd(-1, &caught, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		r = cordon_fail_errno(err, -errno, "signalfd");
	while (r == 0 && cordon_crew_busy(crew)) {
		struct pollfd fds[] = { { .fd = cordon_crew_fd(crew), .events = POLLIN },
					{ .fd = fd, .events = POLLIN } };

		if (poll(fds, CORDON_ARRAY_SIZE(fds), cordon_crew_ticks(crew) ? CORDON_CREW_TICK_MS : -1) < 0 &&
		    errno != EINTR)
			r = cordon_fail_errno(err, -errno, "poll");
		on_signals(crew, fd, &first);
		cordon_crew_serve(crew);
		cordon_crew_tick(crew);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (r == 0 && ret_signal)
		*ret_signal = first;
	return r;
}
