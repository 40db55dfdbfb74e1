/* SPDX-License-Identifier: Apache-2.0 */
/* cordon open: asks the server of this home for a link to its page, and starts the server if none runs. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

enum { OPT_NO_BROWSER = 1 };

static const struct cordon_option options[] = {
	{ "no-browser", 0, CORDON_ARG_NONE, NULL, "only print the link", OPT_NO_BROWSER },
	{ 0 },
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)key, (void)arg, (void)err;
	*(bool *)data = true;
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
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (setsid() < 0 || fork() != 0)
			_exit(0);
		dup2(null, 0);
		dup2(null, 1);
		dup2(log, 2);
		close_range(3, ~0U, 0);
		if (chdir("/") == 0)
			execv(program, argv);
		_exit(127);
	}
	if (pid < 0)
		return cordon_fail_errno(err, -errno, "cannot start " PROGRAM);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
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

/* The answer of a server that we started ourselves: a status, and the link as the body. */
static int ask(int fd, struct cordon_buf *ret_link, struct cordon_error *err)
{
	static const char request[] =
		"POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	autobuf struct cordon_buf answer = CORDON_BUF(ANSWER_MAX);
	const char *body;
	int r = cordon_write_all(fd, request, sizeof(request) - 1);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot ask the server");
	r = cordon_read_fd(fd, "the answer of the server", &answer, err);
	if (r < 0)
		return r;
	body = answer.data ? strstr(answer.data, "\r\n\r\n") : NULL;
	if (!body || strncmp(answer.data, "HTTP/1.1 200", 12) != 0 || strncmp(body + 4, "http://", 7) != 0)
		return cordon_fail(err, -EPROTO, CORDON_KIND_INTERNAL, "the server gave no link");
	body += 4;
	return cordon_buf_add(ret_link, body, strcspn(body, "\r\n"));
}

/* A browser on this machine, if there is a screen. Its words are of no interest, and nobody waits for it. */
static void browse(const char *link)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
	pid_t pid;

	if ((!x || !*x) && (!wayland || !*wayland))
		return;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (setsid() < 0 || fork() != 0)
			_exit(0);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		execlp("xdg-open", "xdg-open", link, (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	autobuf struct cordon_buf link = CORDON_BUF(ANSWER_MAX);
	struct cordon_error err = { 0 };
	bool no_browser = false;
	autofd int dir = -1;
	autofd int fd = -1;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &no_browser, &first, &err);

	if (r > 0)
		return CORDON_EXIT_OK;
	if (r == 0 && first < argc)
		return cordon_cli_usage(cli, "no argument is expected, not %s", argv[first]);
	if (r == 0)
		r = cordon_home_open(&home, &err);
	if (r == 0)
		r = cordon_home_subdir(&home, "serve", &dir, &err);
	if (r == 0)
		r = reach(dir, &fd, &err);
	if (r == 0)
		r = ask(fd, &link, &err);
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		cordon_cli_print_json(cli, json_pack("{s:s}", "url", link.data));
	else
		printf("%s\n", link.data);
	fflush(stdout);
	if (!no_browser)
		browse(link.data);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_open = {
	.name = "open",
	.operands = "",
	.summary = "open the page that shows what runs, what waits and what was refused",
	.details = "Prints a link to the page of this user's server, and opens it in a browser if there is a screen. The link works once,\n"
		   "within a minute; the login lasts twelve hours. A server is started if none runs, on a port of this machine alone.\n",
	.options = options,
	.run = run,
};
