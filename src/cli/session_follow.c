/* SPDX-License-Identifier: Apache-2.0 */
/* A session as a person follows it. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/session_follow.h"
#include "store/session_control.h"

#define LOOK_MS 500    /* how often to look when nothing is announced */
#define LEAVE_KEY 0x1d /* Ctrl-] */
#define STOP_GRACE_MS 5000

/* Raw for programs; on a terminal everything that could steer it is shown instead of sent. */
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

void cordon_cli_print_event(const json_t *event, bool all)
{
	const char *type = json_string_value(json_object_get(event, "type"));
	const json_t *text = json_object_get(event, "text");

	if (!type || !text)
		return;
	if (cordon_streq(type, "stdout"))
		print_text(stdout, json_string_value(text), json_string_length(text));
	else
		fflush(stdout); /* what came first is shown first, wherever both lead */
	if (cordon_streq(type, "stderr"))
		print_text(stderr, json_string_value(text), json_string_length(text));
	else if (all && !cordon_streq(type, "stdout")) {
		fprintf(stderr, "[%s] ", type);
		print_text(stderr, json_string_value(text), json_string_length(text));
		fputc('\n', stderr);
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
			cordon_cli_print_event(event, false);
		since = json_integer_value(json_object_get(event, "index"));
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

/* A descriptor that is readable when the session's directory changes; -1 where that can't be had. */
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
		      bool ours, json_t **ret_session, struct cordon_error *err)
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
		if (!cordon_streq(json_string_value(json_object_get(output, "status")), "active"))
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

/* Shows what came; false at the end of the session, or when what comes makes no sense. */
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

/* Passes on what is typed; false when it was the key to leave. */
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

int cordon_cli_session_exit(const json_t *session)
{
	const char *state = json_string_value(json_object_get(session, "state"));
	const json_t *code = json_object_get(session, "exit_code");
	const json_t *signal = json_object_get(session, "signal");

	if (state && (cordon_streq(state, "refused") || cordon_streq(state, "lost")))
		return CORDON_EXIT_REFUSED;
	if (state && cordon_streq(state, "timeout"))
		return CORDON_EXIT_TIMEOUT;
	if (json_is_integer(signal))
		return CORDON_EXIT_SIGNAL + (int)json_integer_value(signal);
	return json_is_integer(code) ? (int)json_integer_value(code) : CORDON_EXIT_NO;
}
