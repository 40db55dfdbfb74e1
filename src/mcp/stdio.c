/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stdio transport: one JSON object per line each way, and nothing else on the output. The client can't block the
 * server: output is buffered, and while the client does not read it, the server reads no more input.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "base/buf.h"
#include "base/time.h"
#include "mcp/mcp.h"

#define OUT_MAX ((size_t)256 << 20) /* answers that the client has not read */
#define OUT_FULL ((size_t)8 << 20)  /* above this the server reads no more input */
#define FLUSH_MS 2000		    /* how long the server waits for the last answers to be read */

struct stdio {
	struct cordon_mcp *mcp;
	struct cordon_mcp_channel channel;
	int in, out, signals;
	struct cordon_buf line; /* the part of the present line that has arrived */
	bool skipping;		/* the present line is too long and is discarded */
	struct cordon_buf waiting;
	size_t sent;  /* bytes of `waiting` that are written */
	bool ended;   /* the input has ended */
	bool stopped; /* a signal arrived: end at once */
	int failed;   /* -errno of a write, or -ENOMEM */
};

/* Writes as much as the pipe takes now. */
static void flush(struct stdio *io)
{
	while (io->failed == 0 && io->sent < io->waiting.len) {
		ssize_t n = write(io->out, io->waiting.data + io->sent, io->waiting.len - io->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			io->failed = -errno;
		else
			io->sent += (size_t)n;
	}
	cordon_buf_reset(&io->waiting);
	io->sent = 0;
}

static void send_line(struct cordon_mcp_channel *channel, const json_t *message)
{
	struct stdio *io = channel->data;
	autofree char *text = json_dumps(message, JSON_COMPACT);

	if (io->failed)
		return;
	if (!text || cordon_buf_adds(&io->waiting, text) < 0 || cordon_buf_addc(&io->waiting, '\n') < 0) {
		io->failed = -ENOMEM;
		return;
	}
	if (io->waiting.len - io->sent < OUT_FULL)
		flush(io);
}

static void take_line(struct stdio *io)
{
	size_t n = io->line.len;

	if (io->skipping)
		cordon_mcp_too_long(io->mcp, &io->channel);
	if (n && io->line.data[n - 1] == '\r')
		n--;
	if (n && !io->skipping)
		cordon_mcp_message(io->mcp, &io->channel, io->line.data, n);
	io->skipping = false;
	cordon_buf_reset(&io->line);
}

static void take(struct stdio *io, const char *bytes, size_t n)
{
	while (n) {
		const char *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;

		if (!io->skipping && cordon_buf_add(&io->line, bytes, part) < 0) {
			io->skipping = true;
			cordon_buf_done(&io->line);
		}
		if (end)
			take_line(io);
		bytes += part + (end != NULL);
		n -= part + (end != NULL);
	}
}

static void read_input(struct stdio *io)
{
	char chunk[65536];
	ssize_t n = read(io->in, chunk, sizeof(chunk));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		take(io, chunk, (size_t)n);
		return;
	}
	/* The last line needs no newline. */
	if (io->line.len || io->skipping)
		take_line(io);
	io->ended = true;
}

static void loop(struct stdio *io)
{
	enum { IN, OUT, WORK, SIGNALS };
	struct signalfd_siginfo signal;

	while (!io->stopped && io->failed == 0 && (!io->ended || cordon_mcp_must_answer(io->mcp))) {
		struct pollfd fds[] = {
			[IN] = { .fd = !io->ended && io->waiting.len - io->sent < OUT_FULL ? io->in : -1,
				 .events = POLLIN },
			[OUT] = { .fd = io->sent < io->waiting.len ? io->out : -1, .events = POLLOUT },
			[WORK] = { .fd = cordon_mcp_fd(io->mcp), .events = POLLIN },
			[SIGNALS] = { .fd = io->signals, .events = POLLIN },
		};

		if (poll(fds, CORDON_ARRAY_SIZE(fds), cordon_mcp_timeout(io->mcp)) < 0 && errno != EINTR) {
			io->failed = -errno;
			return;
		}
		/* Read the signal, or it would end the process when it is unblocked. */
		if (fds[SIGNALS].revents && read(io->signals, &signal, sizeof(signal)) > 0)
			io->stopped = true;
		cordon_mcp_work(io->mcp);
		if (fds[OUT].revents)
			flush(io);
		if (fds[IN].revents)
			read_input(io);
	}
}

/* Waits a bounded time until the client has read the last answers. */
static void finish(struct stdio *io)
{
	int64_t until = cordon_time_monotonic() + FLUSH_MS;

	cordon_mcp_close_channel(io->mcp, &io->channel, false);
	flush(io);
	while (io->failed == 0 && io->sent < io->waiting.len) {
		int64_t left = until - cordon_time_monotonic();
		struct pollfd fd = { .fd = io->out, .events = POLLOUT };

		if (left <= 0 || poll(&fd, 1, (int)left) == 0)
			return;
		flush(io);
	}
}

static int set_nonblocking(int fd, int *ret_before)
{
	*ret_before = fcntl(fd, F_GETFL);
	return *ret_before < 0 || fcntl(fd, F_SETFL, *ret_before | O_NONBLOCK) < 0 ? -errno : 0;
}

int cordon_mcp_stdio(struct cordon_mcp *mcp, int in_fd, int out_fd, struct cordon_error *err)
{
	struct stdio io = {
		.mcp = mcp,
		.channel = { .send = send_line },
		.in = in_fd,
		.out = out_fd,
		.line = CORDON_BUF(CORDON_MCP_MESSAGE_MAX),
		.waiting = CORDON_BUF(OUT_MAX),
	};
	sigset_t signals, before;
	int flags;
	int r = set_nonblocking(out_fd, &flags);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot use the standard output");
	io.channel.data = &io;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &before);
	io.signals = signalfd(-1, &signals, SFD_CLOEXEC);
	if (io.signals < 0) {
		r = cordon_fail_errno(err, -errno, "signalfd");
	} else {
		loop(&io);
		finish(&io);
		/* A client that has gone is no failure. */
		if (io.failed < 0 && io.failed != -EPIPE)
			r = cordon_fail_errno(err, io.failed, "the standard streams");
	}
	cordon_closep(&io.signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	/* The open file description may be shared with the process that started us. */
	fcntl(out_fd, F_SETFL, flags);
	cordon_buf_done(&io.line);
	cordon_buf_done(&io.waiting);
	return r;
}
