/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a further command in a session, and copies between its streams and ours. */
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "base/io.h"
#include "cli/session_exec.h"
#include "cli/session_follow.h"

struct relay {
	struct cordon_session_exec exec;
	bool ours; /* there may be more on our standard input */
	size_t start, end;
	char waiting[65536];
};

static void copy_input(struct relay *relay)
{
	ssize_t n;

	if (relay->start == relay->end) {
		n = read(STDIN_FILENO, relay->waiting, sizeof(relay->waiting));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return;
		relay->start = 0;
		relay->end = n > 0 ? (size_t)n : 0;
		relay->ours = n > 0;
	}
	n = relay->end ? write(relay->exec.input, relay->waiting + relay->start, relay->end - relay->start) : 0;
	if (n > 0)
		relay->start += (size_t)n;
	/* Our input has ended, or the command reads no more. */
	if (!relay->ours || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		cordon_closep(&relay->exec.input);
		relay->ours = false;
	}
}

/* Copies output of the command to ours. Returns false when there is nothing more now. */
static bool copy_output(struct relay *relay, int which)
{
	char chunk[65536];
	ssize_t n = read(relay->exec.output[which], chunk, sizeof(chunk));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (n <= 0 || cordon_write_all(which == 0 ? STDOUT_FILENO : STDERR_FILENO, chunk, (size_t)n) < 0) {
		cordon_closep(&relay->exec.output[which]);
		return false;
	}
	return true;
}

/* Copies the streams until the session answers. Returns 0 then, or the number of a signal that came first. */
static int relay_streams(struct relay *relay, int signals)
{
	for (;;) {
		bool full = relay->start < relay->end;
		struct pollfd fds[] = {
			{ .fd = relay->exec.control, .events = POLLIN },
			{ .fd = signals, .events = POLLIN },
			{ .fd = relay->exec.output[0], .events = POLLIN },
			{ .fd = relay->exec.output[1], .events = POLLIN },
			{ .fd = full	      ? relay->exec.input
				: relay->ours ? STDIN_FILENO
					      : -1,
			  .events = full ? POLLOUT : POLLIN },
		};
		struct signalfd_siginfo info;

		if (poll(fds, CORDON_ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return SIGHUP;
		if (fds[1].revents && read(signals, &info, sizeof(info)) > 0 && info.ssi_signo != SIGWINCH)
			return (int)info.ssi_signo;
		for (int i = 0; i < 2; i++)
			if (fds[2 + i].revents)
				copy_output(relay, i);
		if (fds[4].revents)
			copy_input(relay);
		if (!fds[0].revents)
			continue;
		/* What the command wrote before its end is in the pipes by now. */
		for (int i = 0; i < 2; i++)
			while (relay->exec.output[i] >= 0 && copy_output(relay, i))
				;
		return 0;
	}
}

int cordon_cli_session_exec(const struct cordon_store *store, const char *id, json_t *command, json_t **ret_answer,
			    int *ret_signal, struct cordon_error *err)
{
	struct relay relay = { .exec = CORDON_SESSION_EXEC_NONE, .ours = true };
	autofd int signals = cordon_cli_open_signals();
	int r = cordon_session_exec_begin(store, id, command, &relay.exec, err);

	if (r < 0)
		return r;
	signal(SIGPIPE, SIG_IGN);
	*ret_signal = relay_streams(&relay, signals);
	r = *ret_signal ? 1 : cordon_session_exec_answer(&relay.exec, ret_answer, err);
	cordon_session_exec_done(&relay.exec);
	return r;
}
