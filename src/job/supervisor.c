/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisors of sessions and of jobs of a crew have in common: the run, the program's streams and the log. */
#include "job/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "run/event_text.h"
#include "run/result.h"
#include "sandbox/plan/plan.h"
#include "view/show.h"

#define TURN_BYTES 262144 /* at most so many bytes are read from one stream before the next one is served */

/* ---- the log ---- */

void cordon_supervisor_log(struct cordon_supervisor *supervisor, const char *type, const char *role, const char *text,
			   size_t n)
{
	struct cordon_job_log *log = &supervisor->log;

	if (log->fd < 0 && !supervisor->log_failed && cordon_job_log_open(supervisor->dir_fd, log, NULL) < 0)
		supervisor->log_failed = true;
	if (log->fd >= 0 && cordon_job_log_add(log, type, role, text, n) < 0)
		supervisor->log_failed = true;
}

void cordon_supervisor_note(struct cordon_supervisor *supervisor, const char *type, const char *fmt, ...)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	va_list args;

	va_start(args, fmt);
	if (cordon_buf_addv(&text, fmt, args) == 0)
		cordon_supervisor_log(supervisor, type, NULL, text.data, text.len);
	va_end(args);
}

static void note_git_line(void *data, const char *line)
{
	cordon_supervisor_note(data, "notice", "git: %s", line);
}

json_t *cordon_supervisor_note_git(struct cordon_supervisor *supervisor, const struct cordon_result *result)
{
	json_t *git = result->git ? json_loads(result->git, 0, NULL) : NULL;

	cordon_git_lines(git, note_git_line, supervisor);
	return git;
}

void cordon_supervisor_note_end(struct cordon_supervisor *supervisor, const struct cordon_result *result)
{
	const char *state = cordon_state_name(result->state);

	if (result->error.code)
		cordon_supervisor_note(supervisor, "ended", "%s: %s", state, result->error.message);
	else if (result->signal)
		cordon_supervisor_note(supervisor, "ended", "%s: signal %d", state, result->signal);
	else
		cordon_supervisor_note(supervisor, "ended", "%s: exit code %d", state, result->exit_code);
}

/* ---- the program's streams ---- */

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

int cordon_supervisor_open(struct cordon_supervisor *supervisor, enum cordon_streams_kind kind, struct cordon_error *err)
{
	struct cordon_streams *streams = &supervisor->streams;
	int r;

	*streams = (struct cordon_streams)CORDON_STREAMS_NONE;
	streams->terminal = kind == CORDON_STREAMS_TERMINAL;
	streams->input = (struct cordon_buf)CORDON_BUF(CORDON_INPUT_MAX);
	streams->recent = (struct cordon_buf)CORDON_BUF(CORDON_RECENT_MAX);
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

void cordon_supervisor_done(struct cordon_supervisor *supervisor)
{
	struct cordon_streams *streams = &supervisor->streams;

	close_inner(streams);
	cordon_closep(&streams->out[0].fd);
	cordon_closep(&streams->out[1].fd);
	cordon_closep(&streams->in_fd);
	cordon_buf_done(&streams->input);
	cordon_buf_done(&streams->recent);
	cordon_job_log_done(&supervisor->log);
}

static int make_standard(const struct cordon_streams *streams, struct cordon_error *err)
{
	for (int fd = 0; fd < 3; fd++) {
		int inner = streams->inner[streams->terminal ? 0 : fd];

		if (inner >= 0 && dup2(inner, fd) < 0)
			return cordon_fail_errno(err, -errno, "cannot set up the program's streams");
	}
	return 0;
}

static void leave_standard(struct cordon_streams *streams)
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

static void pass_on(struct cordon_supervisor *supervisor, const struct cordon_stream *stream, const char *bytes,
		    size_t n)
{
	bool error = stream == &supervisor->streams.out[1];

	if (!n)
		return;
	cordon_supervisor_log(supervisor, error ? "stderr" : "stdout", error ? NULL : supervisor->role, bytes, n);
	if (supervisor->calls->output)
		supervisor->calls->output(supervisor->data, error ? STDERR_FILENO : STDOUT_FILENO, bytes, n);
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
static bool read_stream(struct cordon_supervisor *supervisor, struct cordon_stream *stream)
{
	struct cordon_streams *streams = &supervisor->streams;
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
		pass_on(supervisor, stream, chunk, have);
		cordon_closep(&stream->fd);
		return false;
	}
	if (streams->terminal) {
		add_recent(&streams->recent, chunk + have, (size_t)n);
		if (supervisor->calls->screen)
			supervisor->calls->screen(supervisor->data, chunk + have, (size_t)n);
	}
	have += (size_t)n;
	stream->n_rest = incomplete_bytes(chunk, have);
	memcpy(stream->rest, chunk + have - stream->n_rest, stream->n_rest);
	pass_on(supervisor, stream, chunk, have - stream->n_rest);
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

/* Who reads too slowly makes the program wait, and never us. */
static bool may_read(const struct cordon_supervisor *supervisor, const struct cordon_stream *stream)
{
	return stream->fd >= 0 && !(supervisor->calls->full && supervisor->calls->full(supervisor->data));
}

/* Reads what is left after the program has ended. */
static void drain(struct cordon_supervisor *supervisor)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(supervisor->streams.out); i++) {
		struct cordon_stream *stream = &supervisor->streams.out[i];

		while (stream->fd >= 0 && read_stream(supervisor, stream))
			;
		pass_on(supervisor, stream, stream->rest, stream->n_rest);
		stream->n_rest = 0;
	}
}

/* ---- the run ---- */

static int on_planned(void *data, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct cordon_supervisor *supervisor = data;
	int r = make_standard(&supervisor->streams, err);

	return r == 0 && supervisor->calls->planned ? supervisor->calls->planned(supervisor->data, plan, err) : r;
}

static void on_launched(void *data, struct cordon_child *child)
{
	struct cordon_supervisor *supervisor = data;

	supervisor->child = child;
	leave_standard(&supervisor->streams);
	if (supervisor->calls->launched)
		supervisor->calls->launched(supervisor->data);
}

static void on_event(void *data, const struct cordon_event *event)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	struct cordon_supervisor *supervisor = data;
	const char *kind = cordon_event_text(event, &text);

	if (kind)
		cordon_supervisor_log(supervisor, kind, NULL, text.data, text.len);
	if (supervisor->calls->event)
		supervisor->calls->event(supervisor->data, event);
}

enum { FD_OUT, FD_IN = FD_OUT + 2, FD_CALLER };

static size_t on_fds(void *data, struct pollfd *ret_fds)
{
	struct cordon_supervisor *supervisor = data;
	const struct cordon_streams *streams = &supervisor->streams;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(streams->out); i++) {
		const struct cordon_stream *stream = &streams->out[i];

		ret_fds[FD_OUT + i] = (struct pollfd){ .fd = may_read(supervisor, stream) ? stream->fd : -1,
						       .events = POLLIN };
	}
	ret_fds[FD_IN] = (struct pollfd){ .fd = streams->input.len ? streams->in_fd : -1, .events = POLLOUT };
	return FD_CALLER + supervisor->calls->fds(supervisor->data, ret_fds + FD_CALLER);
}

static bool on_serve(void *data, const struct pollfd *fds, size_t n)
{
	struct cordon_supervisor *supervisor = data;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(supervisor->streams.out); i++) {
		struct cordon_stream *stream = &supervisor->streams.out[i];
		size_t bytes = fds[FD_OUT + i].revents ? 0 : TURN_BYTES;

		for (; bytes < TURN_BYTES && may_read(supervisor, stream); bytes += CORDON_STREAMS_PIECE_MAX)
			if (!read_stream(supervisor, stream))
				break;
	}
	write_input(&supervisor->streams);
	return supervisor->calls->serve(supervisor->data, fds + FD_CALLER, n - FD_CALLER);
}

int cordon_supervisor_run(struct cordon_supervisor *supervisor, const struct cordon_home *home,
			  const struct cordon_run_spec *spec, const struct cordon_view_work *work,
			  struct cordon_result *ret_result, struct cordon_error *err)
{
	const struct cordon_observer observer = { .data = supervisor,
						  .planned = on_planned,
						  .launched = on_launched,
						  .event = on_event,
						  .fds = on_fds,
						  .serve = on_serve };
	int r = cordon_view_run(home, spec, work, &observer, ret_result, err);

	supervisor->child = NULL;
	leave_standard(&supervisor->streams);
	drain(supervisor);
	return r;
}
