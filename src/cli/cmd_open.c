/* SPDX-License-Identifier: Apache-2.0 */
/* cordon open: asks the server of this home for a link to its page, and starts the server if none runs. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/home.h"
#include "base/io.h"
#include "base/path.h"
#include "base/program.h"
#include "base/time.h"
#include "cli/commands.h"

#define PROGRAM "cordon-serve"
#define CONTROL "control"
#define START_MS 10000
#define WAIT_MS 20
#define ANSWER_MAX 8192

enum { OPT_NO_BROWSER = 1, OPT_FRONT, OPT_STOP };

static const struct cordon_option options[] = {
	{ "no-browser", 0, CORDON_ARG_NONE, NULL, "only print the link", OPT_NO_BROWSER },
	{ "front", 0, CORDON_ARG_TEXT, "HOST[:PORT]",
	  "a link to the front with TLS that has this name (see 'cordon serve --allow-host')", OPT_FRONT },
	{ "stop", 0, CORDON_ARG_NONE, NULL, "end the server instead; sessions, agents and workflows go on", OPT_STOP },
	{ 0 },
};

struct args {
	const char *front;
	bool no_browser, stop;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (key == OPT_NO_BROWSER)
		args->no_browser = true;
	else if (key == OPT_STOP)
		args->stop = true;
	else if (!*arg ||
		 strspn(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]") != strlen(arg))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s is no name of a host", arg);
	else
		args->front = arg;
	return 0;
}

/* By descriptor, because the path of a home may be longer than that of a socket. */
static int connect_to(int dir)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = START_MS / 1000 };
	char path[CORDON_FD_PATH_SIZE];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CONTROL, cordon_fd_path(dir, path));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

/* The server outlives this command: it gets a session of its own, and its words go to state/serve/log. */
static int start(int dir, struct cordon_error *err)
{
	char program[CORDON_PATH_MAX], name[] = PROGRAM, page[] = "page=1";
	char *argv[] = { name, page, NULL };
	autofd int log = openat(dir, "log", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = log < 0 ? cordon_fail_errno(err, -errno, "state/serve/log") : cordon_program_find(PROGRAM, program, err);
	pid_t pid;

	if (r < 0)
		return r;
	pid = cordon_child_detach(&(struct cordon_detach){ .error_fd = log });
	if (pid == 0) {
		execv(program, argv);
		_exit(127);
	}
	return pid < 0 ? cordon_fail_errno(err, (int)pid, "cannot start " PROGRAM) : 0;
}

/* Connects to the server that runs, or to one that is started now. */
static int reach(int dir, int *ret_fd, struct cordon_error *err)
{
	int64_t until = cordon_time_monotonic() + START_MS;
	int fd = connect_to(dir), r;

	if (fd < 0) {
		r = start(dir, err);
		if (r < 0)
			return r;
	}
	while (fd < 0 && cordon_time_monotonic() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = WAIT_MS * 1000000L }, NULL);
		fd = connect_to(dir);
	}
	if (fd < 0) {
		cordon_fail_errno(err, fd, "the server does not answer");
		cordon_error_hint(err, "see state/serve/log below the home of cordon, or run 'cordon serve'");
		return fd;
	}
	*ret_fd = fd;
	return 0;
}

/* Gets the body of the answer: a link, and maybe a line that a person should know; or why there is none. */
static int ask(int fd, const char *front, struct cordon_buf *ret_link, struct cordon_buf *ret_note,
	       struct cordon_error *err)
{
	autobuf struct cordon_buf request = CORDON_BUF(ANSWER_MAX);
	autobuf struct cordon_buf answer = CORDON_BUF(ANSWER_MAX);
	const char *body;
	int r = cordon_buf_addf(&request, "POST /open%s%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
				front ? "?front=" : "", front ? front : "");

	if (r == 0)
		r = cordon_write_all(fd, request.data, request.len);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot ask the server");
	r = cordon_read_fd(fd, "the answer of the server", &answer, err);
	if (r < 0)
		return r;
	body = answer.data ? strstr(answer.data, "\r\n\r\n") : NULL;
	if (!body)
		return cordon_fail(err, -EPROTO, CORDON_KIND_INTERNAL, "the server gave no link");
	body += 4;
	if (strncmp(answer.data, "HTTP/1.1 200", 12) != 0)
		return cordon_fail(err, -EPERM, CORDON_KIND_CONFLICT, "the server gave no link: %.*s",
				   (int)strcspn(body, "\r\n"), body);
	r = cordon_buf_add(ret_link, body, strcspn(body, "\n"));
	body += strcspn(body, "\n");
	return r == 0 && *body ? cordon_buf_add(ret_note, body + 1, strcspn(body + 1, "\n")) : r;
}

/* Ends the server that answers at the control socket, if there is one, and waits for its end. */
static int stop(int dir, struct cordon_error *err)
{
	autofd int fd = connect_to(dir);
	struct ucred peer;
	socklen_t size = sizeof(peer);
	char byte;

	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || kill(peer.pid, SIGTERM) < 0)
		return cordon_fail_errno(err, -errno, "cannot end the server");
	return read(fd, &byte, 1) == 0 || errno == ECONNRESET
		       ? 0
		       : cordon_fail_errno(err, -errno, "the server has not ended");
}

/* A browser on this machine, if there is a screen. Its words are of no interest, and nobody waits for it. */
static void browse(const char *link)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	if ((!x || !*x) && (!wayland || !*wayland))
		return;
	if (cordon_child_detach(&(struct cordon_detach){ .keep_cwd = true }) == 0) {
		execlp("xdg-open", "xdg-open", link, (char *)NULL);
		_exit(127);
	}
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	autobuf struct cordon_buf link = CORDON_BUF(ANSWER_MAX);
	autobuf struct cordon_buf note = CORDON_BUF(ANSWER_MAX);
	struct cordon_error err = { 0 };
	struct args args = { 0 };
	autofd int dir = -1;
	autofd int fd = -1;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r > 0)
		return CORDON_EXIT_OK;
	if (r == 0 && first < argc)
		return cordon_cli_usage(cli, "no argument is expected, not %s", argv[first]);
	if (r == 0)
		r = cordon_home_open(&home, &err);
	if (r == 0)
		r = cordon_home_subdir(&home, "serve", &dir, &err);
	if (r == 0 && args.stop)
		r = stop(dir, &err);
	else if (r == 0 && (r = reach(dir, &fd, &err)) == 0)
		r = ask(fd, args.front, &link, &note, &err);
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (args.stop)
		return CORDON_EXIT_OK;
	if (cli->json)
		cordon_cli_print_json(cli, json_pack("{s:s}", "url", link.data));
	else
		printf("%s\n", link.data);
	fflush(stdout);
	if (note.len)
		fprintf(stderr, "cordon: note: %s\n", note.data);
	if (!args.no_browser && !args.front)
		browse(link.data);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_open = {
	.name = "open",
	.operands = "",
	.summary = "open the page that shows what runs, what waits and what was refused",
	.details = "Prints a link to the page of this user's server, and opens it in a browser if there is a screen. The link works once,\n"
		   "within a minute; the login lasts twelve hours. A server is started if none runs.\n"
		   "The page has an address of this machine alone.\n",
	.options = options,
	.run = run,
};
