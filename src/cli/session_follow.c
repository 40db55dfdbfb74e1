/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a session for a person: its output, its terminal, and its end. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/session_follow.h"
#include "job/control.h"

#define LOOK_MS 500    /* how often to look when inotify reports nothing */
#define LEAVE_KEY 0x1d /* Ctrl-] */
#define STOP_GRACE_MS 5000

/* Prints raw bytes for programs. On a terminal it shows control characters instead of sending them. */
static void print_text(FILE *stream, const char *text, size_t n)
{
	autobuf struct cordon_buf safe = CORDON_BUF(SIZE_MAX / 2);

	if (!isatty(fileno(stream))) {
		fwrite(text, 1, n, stream);
		return;
	}
	if (cordon_text_escape_lines(&safe, text, n) < 0)
		return;
	fwrite(safe.data ? safe.data : "", 1, safe.len, stream);
}

/* Prints the agent's output, each stream to the same stream of ours. */
static void print_event(const json_t *event)
{
	const char *type = cordon_json_string(event, "type");
	const json_t *text = json_object_get(event, "text");

	if (!type || !text)
		return;
	if (cordon_streq(type, "stdout"))
		print_text(stdout, json_string_value(text), json_string_length(text));
	else
		fflush(stdout); /* keeps the order where both streams lead to the same place */
	if (cordon_streq(type, "stderr"))
		print_text(stderr, json_string_value(text), json_string_length(text));
}

static bool streams_are_one_file(void)
{
	struct stat out, err;

	return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
	       out.st_ino == err.st_ino && out.st_rdev == err.st_rdev;
}

/* Appends to the last line that was printed, or begins a line. `line` keeps that last line only. */
static void print_marked(FILE *stream, struct cordon_buf *line, const char *mark, const json_t *text, bool whole)
{
	size_t before = line->len;
	char *last;

	if (whole && before)
		cordon_buf_addc(line, '\n');
	if (cordon_text_mark_lines(line, mark, json_string_value(text), json_string_length(text)) < 0)
		return;
	if (whole)
		cordon_buf_addc(line, '\n');
	if (line->len == before)
		return;
	fwrite(line->data + before, 1, line->len - before, stream);
	fflush(stream);
	last = memrchr(line->data, '\n', line->len);
	before = last ? (size_t)(last + 1 - line->data) : 0;
	memmove(line->data, line->data + before, line->len - before);
	line->len -= before;
	line->data[line->len] = '\0';
}

void cordon_cli_print_output(const json_t *output)
{
	autobuf struct cordon_buf line = CORDON_BUF(SIZE_MAX / 2); /* the line on stderr that has not ended yet */
	bool mixed = streams_are_one_file();
	size_t i;
	json_t *event;

	json_array_foreach(json_object_get(output, "events"), i, event) {
		const char *type = cordon_json_string(event, "type");
		const json_t *text = json_object_get(event, "text");
		char mark[64];

		if (!type || !text)
			continue;
		if (!mixed && cordon_streq(type, "stdout")) {
			print_text(stdout, json_string_value(text), json_string_length(text));
			continue;
		}
		fflush(stdout);
		if (cordon_streq(type, "stdout") || cordon_streq(type, "stderr")) {
			print_marked(cordon_streq(type, "stdout") ? stdout : stderr, &line, CORDON_AGENT_MARK, text,
				     false);
			continue;
		}
		snprintf(mark, sizeof(mark), "[%s] ", type);
		print_marked(stderr, &line, mark, text, true);
	}
}

static int64_t print_new(const struct cordon_cli *cli, const json_t *output, bool json, int64_t since)
{
	size_t i;
	json_t *event;

	json_array_foreach(json_object_get(output, "events"), i, event) {
		if (json)
			cordon_cli_print_json(cli, json_incref(event));
		else
			print_event(event);
		since = cordon_json_integer(event, "index");
	}
	fflush(stdout);
	return since;
}

static void fill_signals(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGHUP);
	sigaddset(ret_set, SIGWINCH);
}

void cordon_cli_hold_signals(void)
{
	sigset_t set;

	fill_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int cordon_cli_open_signals(void)
{
	sigset_t set;

	cordon_cli_hold_signals();
	fill_signals(&set);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Opens a descriptor that is readable when the session's directory changes. Returns -1 where inotify is not
 * available. */
static int open_watch(const struct cordon_store *store, const char *id)
{
	autofd int dir = -1;
	char path[64];
	int fd;

	if (cordon_session_open(store, id, &dir, NULL) < 0)
		return -1;
	fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (fd >= 0)
		inotify_add_watch(fd, path, IN_MODIFY | IN_MOVED_TO | IN_CREATE);
	return fd;
}

static void empty(int fd)
{
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
}

int cordon_cli_follow(const struct cordon_cli *cli, const struct cordon_store *store, const char *id, int64_t since,
		      bool ours, struct cordon_session_record *ret_session, struct cordon_error *err)
{
	autofd int signals = cordon_cli_open_signals();
	autofd int watch = open_watch(store, id);
	struct signalfd_siginfo info;

	for (;;) {
		struct pollfd fds[] = { { .fd = watch, .events = POLLIN }, { .fd = signals, .events = POLLIN } };
		json_auto_t *output = NULL;
		int r = cordon_session_output(store, id, since, 0, &output, err);

		if (r < 0)
			return r;
		since = print_new(cli, output, cli->json && !ours, since);
		if (!cordon_json_is(output, "status", "active"))
			return cordon_session_get(store, id, ret_session, err);
		poll(fds, 2, LOOK_MS);
		if (fds[0].revents)
			empty(watch);
		if (!fds[1].revents || read(signals, &info, sizeof(info)) <= 0 || info.ssi_signo == SIGWINCH)
			continue;
		if (!ours)
			return cordon_session_get(store, id, ret_session, err);
		cordon_session_stop(store, id, STOP_GRACE_MS, NULL);
	}
}

/* ---- the terminal ---- */

static void send_size(int fd)
{
	struct winsize size;
	char text[32];

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
		cordon_frame_send(fd, 'w', text,
				  (size_t)snprintf(text, sizeof(text), "%u %u", size.ws_col, size.ws_row));
}

/* Shows what arrived. Returns false at the end of the session, or when a message can't be understood. */
static bool show_frames(int fd, struct cordon_buf *in)
{
	char chunk[CORDON_FRAME_MAX], type;
	const char *bytes;
	size_t len;
	ssize_t n = read(fd, chunk, sizeof(chunk));
	int r;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0 || cordon_buf_add(in, chunk, (size_t)n) < 0)
		return false;
	while ((r = cordon_frame_next(in, &type, &bytes, &len)) > 0) {
		if (type == 'd')
			cordon_write_all(STDOUT_FILENO, bytes, len);
		cordon_frame_drop(in, len);
	}
	return r == 0;
}

/* Sends what the user typed. Returns false after the key that leaves the session. */
static bool pass_keys(int fd)
{
	char keys[4096];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));
	const char *leave = n > 0 ? memchr(keys, LEAVE_KEY, (size_t)n) : NULL;

	if (n <= 0)
		return n < 0 && errno == EINTR;
	cordon_frame_send(fd, 'd', keys, leave ? (size_t)(leave - keys) : (size_t)n);
	return !leave;
}

static int relay(int fd, int signals)
{
	autobuf struct cordon_buf in = CORDON_BUF(4 * (size_t)CORDON_FRAME_MAX);
	struct signalfd_siginfo info;

	send_size(fd);
	for (;;) {
		struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
					{ .fd = STDIN_FILENO, .events = POLLIN },
					{ .fd = signals, .events = POLLIN } };

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[2].revents && read(signals, &info, sizeof(info)) > 0) {
			if (info.ssi_signo != SIGWINCH)
				return 1;
			send_size(fd);
		}
		if (fds[0].revents && !show_frames(fd, &in))
			return 0;
		if (fds[1].revents && !pass_keys(fd))
			return 1;
	}
}

int cordon_cli_attach(const struct cordon_store *store, const char *id, struct cordon_error *err)
{
	autofd int signals = -1;
	autofd int dir = -1;
	autofd int fd = -1;
	struct termios saved, raw;
	bool terminal = tcgetattr(STDIN_FILENO, &saved) == 0;
	int r = cordon_session_open(store, id, &dir, err);

	if (r == 0)
		r = cordon_control_connect(dir, &fd, err);
	if (r == 0)
		r = cordon_control_ask(fd, json_pack("{s:s}", "op", "attach"), NULL, err);
	if (r < 0)
		return r;
	signals = cordon_cli_open_signals();
	if (terminal) {
		raw = saved;
		cfmakeraw(&raw);
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	r = relay(fd, signals);
	if (terminal)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
	return r < 0 ? cordon_fail_errno(err, r, "the terminal") : r;
}

int cordon_cli_session_exit(const struct cordon_session_record *session)
{
	struct cordon_ending ending = {
		.refused = session->state == CORDON_SESSION_REFUSED || session->state == CORDON_SESSION_LOST,
		.timed_out = session->state == CORDON_SESSION_RUN_TIMEOUT,
		.failed_on_violation = session->failed_on_violation,
		.signal = session->ended && session->signal > 0 ? (int)session->signal : 0,
		.exit_code = session->ended ? (int)session->exit_code : -1,
	};

	return cordon_exit_of_ending(&ending);
}
