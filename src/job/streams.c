/* SPDX-License-Identifier: Apache-2.0 */
/* The standard streams of a job. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "job/streams.h"

#define TURN_BYTES 262144 /* at most so many bytes are read from one stream before the next one is served */

static int open_outputs(struct cordon_streams *streams)
{
	for (int i = 0; i < 2; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		streams->out[i].fd = ends[0];
		streams->inner[1 + i] = ends[1];
	}
	return 0;
}

static int open_pipes(struct cordon_streams *streams)
{
	int in[2];

	if (pipe2(in, O_CLOEXEC) < 0)
		return -errno;
	streams->inner[0] = in[0];
	streams->in_fd = in[1];
	return open_outputs(streams);
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

/* Makes a descriptor of ours wait for nothing. */
static int unblock(int fd)
{
	return fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int cordon_streams_open(struct cordon_streams *streams, enum cordon_streams_kind kind,
			const struct cordon_streams_reader *reader, struct cordon_error *err)
{
	int r;

	*streams = (struct cordon_streams)CORDON_STREAMS_NONE;
	streams->terminal = kind == CORDON_STREAMS_TERMINAL;
	streams->input = (struct cordon_buf)CORDON_BUF(CORDON_INPUT_MAX);
	streams->recent = (struct cordon_buf)CORDON_BUF(CORDON_RECENT_MAX);
	streams->reader = *reader;
	r = kind == CORDON_STREAMS_TERMINAL ? open_terminal(streams)
	    : kind == CORDON_STREAMS_PIPES  ? open_pipes(streams)
					    : open_outputs(streams);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(streams->out); i++)
		r = unblock(streams->out[i].fd);
	if (r == 0)
		r = unblock(streams->in_fd);
	return r < 0 ? cordon_fail_errno(err, r, "cannot make the program's streams") : 0;
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
	for (int fd = 0; fd < 3; fd++) {
		int inner = streams->inner[streams->terminal ? 0 : fd];

		if (inner >= 0 && dup2(inner, fd) < 0)
			return cordon_fail_errno(err, -errno, "cannot set up the program's streams");
	}
	return 0;
}

void cordon_streams_leave_standard(struct cordon_streams *streams)
{
	int null;

	close_inner(streams);
	if (streams->terminal)
		return;
	/* Otherwise our copies would keep the pipes open after the program has ended. */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	if (null > 2)
		close(null);
}

/* Returns how many bytes at the end are the beginning of an incomplete character, which has at most three. */
static size_t incomplete_bytes(const char *bytes, size_t n)
{
	for (size_t i = 1; i <= 3 && i <= n; i++) {
		unsigned char c = (unsigned char)bytes[n - i];

		if ((c & 0xc0) == 0x80)
			continue;
		return (c >= 0xf0 ? 4U : c >= 0xe0 ? 3U : c >= 0xc0 ? 2U : 1U) > i ? i : 0;
	}
	return 0;
}

static void pass_on(struct cordon_streams *streams, const struct cordon_stream *stream, const char *bytes, size_t n)
{
	if (n)
		streams->reader.output(streams->reader.data, stream == &streams->out[0] ? STDOUT_FILENO : STDERR_FILENO,
				       bytes, n);
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
	CORDON_UNCLEARED char chunk[CORDON_STREAMS_PIECE_MAX];
	size_t have = stream->n_rest;
	ssize_t n = read(stream->fd, chunk + have, sizeof(chunk) - have);

	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	memcpy(chunk, stream->rest, have);
	stream->n_rest = 0;
	if (n <= 0) {
		/* The end of the stream; reading from a terminal whose other end is closed gives EIO. */
		pass_on(streams, stream, chunk, have);
		cordon_closep(&stream->fd);
		return false;
	}
	if (streams->terminal) {
		add_recent(&streams->recent, chunk + have, (size_t)n);
		streams->reader.screen(streams->reader.data, chunk + have, (size_t)n);
	}
	have += (size_t)n;
	stream->n_rest = incomplete_bytes(chunk, have);
	memcpy(stream->rest, chunk + have - stream->n_rest, stream->n_rest);
	pass_on(streams, stream, chunk, have - stream->n_rest);
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
			/* The program closed its input: drop what it has not read. */
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

/* A reader that is full makes the program wait, and never us. */
static bool may_read(const struct cordon_streams *streams, const struct cordon_stream *stream)
{
	return stream->fd >= 0 && !streams->reader.full(streams->reader.data);
}

void cordon_streams_fds(const struct cordon_streams *streams, struct pollfd *ret_fds)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(streams->out); i++) {
		const struct cordon_stream *stream = &streams->out[i];

		ret_fds[i] = (struct pollfd){ .fd = may_read(streams, stream) ? stream->fd : -1, .events = POLLIN };
	}
	ret_fds[2] = (struct pollfd){ .fd = streams->input.len ? streams->in_fd : -1, .events = POLLOUT };
}

void cordon_streams_serve(struct cordon_streams *streams, const struct pollfd *fds)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(streams->out); i++) {
		struct cordon_stream *stream = &streams->out[i];

		for (size_t n = 0; fds[i].revents && n < TURN_BYTES && may_read(streams, stream);
		     n += CORDON_STREAMS_PIECE_MAX)
			if (!read_stream(streams, stream))
				break;
	}
	write_input(streams);
}

void cordon_streams_drain(struct cordon_streams *streams)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(streams->out); i++) {
		struct cordon_stream *stream = &streams->out[i];

		while (stream->fd >= 0 && read_stream(streams, stream))
			;
		pass_on(streams, stream, stream->rest, stream->n_rest);
		stream->n_rest = 0;
	}
}
