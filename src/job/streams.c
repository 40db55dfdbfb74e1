/* SPDX-License-Identifier: Apache-2.0 */
/* The standard streams of a detached session. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/text.h"
#include "job/streams.h"

#define TURN_BYTES 262144 /* at most so many bytes are read from one stream before the next one is served */

static int open_pipes(struct cordon_streams *streams)
{
	int in[2], out[2], err[2];

	if (pipe2(in, O_CLOEXEC) < 0)
		return -errno;
	streams->inner[0] = in[0];
	streams->in_fd = in[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	streams->out[0].fd = out[0];
	streams->inner[1] = out[1];
	if (pipe2(err, O_CLOEXEC) < 0)
		return -errno;
	streams->out[1].fd = err[0];
	streams->inner[2] = err[1];
	return 0;
}

static int open_terminal(struct cordon_streams *streams)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int unlock = 0;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0)
		return -errno;
	streams->out[0].fd = master;
	streams->in_fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
	if (streams->in_fd < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
		return -errno;
	streams->inner[0] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return streams->inner[0] < 0 ? -errno : 0;
}

int cordon_streams_open(struct cordon_streams *streams, bool terminal, struct cordon_error *err)
{
	int r;

	*streams = (struct cordon_streams){
		.out = { { .fd = -1, .type = "stdout" }, { .fd = -1, .type = "stderr" } },
		.in_fd = -1,
		.inner = { -1, -1, -1 },
		.terminal = terminal,
		.input = CORDON_BUF(CORDON_INPUT_MAX),
		.recent = CORDON_BUF(CORDON_RECENT_MAX),
		.log = streams->log,
		.control = streams->control,
	};
	r = terminal ? open_terminal(streams) : open_pipes(streams);
	for (size_t i = 0; r == 0 && i < 2; i++)
		if (streams->out[i].fd >= 0 && fcntl(streams->out[i].fd, F_SETFL, O_NONBLOCK) < 0)
			r = -errno;
	if (r == 0 && fcntl(streams->in_fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot make the session's streams") : 0;
}

static void close_inner(struct cordon_streams *streams)
{
	for (int i = 0; i < 3; i++)
		cordon_closep(&streams->inner[i]);
}

void cordon_streams_done(struct cordon_streams *streams)
{
	close_inner(streams);
	cordon_closep(&streams->out[0].fd);
	cordon_closep(&streams->out[1].fd);
	cordon_closep(&streams->in_fd);
	cordon_buf_done(&streams->input);
	cordon_buf_done(&streams->recent);
}

int cordon_streams_make_standard(const struct cordon_streams *streams, struct cordon_error *err)
{
	for (int fd = 0; fd < 3; fd++)
		if (dup2(streams->inner[streams->terminal ? 0 : fd], fd) < 0)
			return cordon_fail_errno(err, -errno, "cannot set up the session's streams");
	return 0;
}

void cordon_streams_leave_standard(struct cordon_streams *streams)
{
	int null;

	close_inner(streams);
	if (streams->terminal)
		return;
	/* Otherwise our copies would keep the pipes open after the agent has ended. */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

/* Logs whole characters only. The bytes of a character that is not complete yet stay in stream->rest. */
static void log_output(struct cordon_streams *streams, struct cordon_stream *stream, char *bytes, size_t n)
{
	size_t whole = n, back = 0;

	/* An incomplete character begins at most three bytes before the end. */
	for (size_t i = 1; i <= 3 && i <= n; i++) {
		unsigned char c = (unsigned char)bytes[n - i];

		if ((c & 0xc0) == 0x80)
			continue;
		back = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		if (back > i)
			whole = n - i;
		break;
	}
	stream->n_rest = n - whole;
	memcpy(stream->rest, bytes + whole, stream->n_rest);
	if (whole)
		cordon_session_log_add(streams->log, stream->type,
				       streams->terminal || stream == &streams->out[0] ? "assistant" : NULL, bytes,
				       whole);
}

/* Adds to the recent output of the terminal. When the buffer is full, drops its older half. */
static void add_recent(struct cordon_buf *recent, const char *bytes, size_t n)
{
	if (recent->len + n > recent->max) {
		size_t kept = recent->len < recent->max / 2 ? recent->len : recent->max / 2;

		memmove(recent->data, recent->data + recent->len - kept, kept);
		recent->len = kept;
	}
	cordon_buf_add(recent, bytes, n);
}

/* Returns false when there is nothing more to read now. */
static bool read_stream(struct cordon_streams *streams, struct cordon_stream *stream)
{
	char chunk[32768];
	size_t have = stream->n_rest;
	ssize_t n;

	memcpy(chunk, stream->rest, have);
	n = read(stream->fd, chunk + have, sizeof(chunk) - have);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		/* The end of the stream; reading from a terminal whose other end is closed gives EIO. */
		if (have)
			cordon_session_log_add(streams->log, stream->type, NULL, chunk, have);
		stream->n_rest = 0;
		cordon_closep(&stream->fd);
		return false;
	}
	if (streams->terminal) {
		add_recent(&streams->recent, chunk + have, (size_t)n);
		cordon_control_send_output(streams->control, chunk + have, (size_t)n);
	}
	log_output(streams, stream, chunk, have + (size_t)n);
	return true;
}

static void write_input(struct cordon_streams *streams)
{
	while (streams->in_fd >= 0 && streams->input.len) {
		ssize_t n = write(streams->in_fd, streams->input.data, streams->input.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			/* The agent closed its input: drop what it has not read. */
			cordon_closep(&streams->in_fd);
			cordon_buf_done(&streams->input);
			return;
		}
		memmove(streams->input.data, streams->input.data + n, streams->input.len - (size_t)n);
		streams->input.len -= (size_t)n;
	}
	if (streams->end_input && !streams->terminal)
		cordon_closep(&streams->in_fd);
}

int cordon_streams_send(struct cordon_streams *streams, const char *text, size_t n, bool end_input)
{
	int r = 0;

	if (streams->in_fd < 0 || streams->end_input)
		return -EPIPE;
	if (n > streams->input.max - streams->input.len - 2)
		return -E2BIG;
	if (n)
		r = cordon_buf_add(&streams->input, text, n);
	if (r == 0 && end_input && streams->terminal)
		r = cordon_buf_addc(&streams->input, 4); /* Ctrl-D: the end of input on a terminal */
	streams->end_input = end_input;
	write_input(streams);
	return r;
}

void cordon_streams_resize(const struct cordon_streams *streams, unsigned short columns, unsigned short rows)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };

	if (!streams->terminal || streams->out[0].fd < 0 || ioctl(streams->out[0].fd, TIOCSWINSZ, &size) < 0)
		return;
	/* We have no controlling terminal, so the kernel does not send us the signal that the run's loop waits for. */
	kill(getpid(), SIGWINCH);
}

size_t cordon_streams_fds(const struct cordon_streams *streams, struct pollfd *ret_fds)
{
	size_t n = 0;

	for (size_t i = 0; i < 2; i++)
		if (streams->out[i].fd >= 0)
			ret_fds[n++] = (struct pollfd){ .fd = streams->out[i].fd, .events = POLLIN };
	if (streams->in_fd >= 0 && streams->input.len)
		ret_fds[n++] = (struct pollfd){ .fd = streams->in_fd, .events = POLLOUT };
	return n;
}

void cordon_streams_serve(struct cordon_streams *streams)
{
	for (size_t i = 0; i < 2; i++)
		for (size_t turn = 0; turn < TURN_BYTES / 32768 && streams->out[i].fd >= 0; turn++)
			if (!read_stream(streams, &streams->out[i]))
				break;
	write_input(streams);
}

void cordon_streams_drain(struct cordon_streams *streams)
{
	for (size_t i = 0; i < 2; i++)
		while (streams->out[i].fd >= 0 && read_stream(streams, &streams->out[i]))
			;
}
