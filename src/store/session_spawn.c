/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a supervisor: a process of its own that outlives whoever asked for the session. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/time.h"
#include "store/session_internal.h"

/* The program that has the hidden command: ourselves, or `cordon` beside us when we are another of its executables. */
static int find_program(char ret_path[static CORDON_PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", ret_path, CORDON_PATH_MAX - 1);
	const char *base;

	if (n < 0)
		return -errno;
	ret_path[n] = '\0';
	base = cordon_path_base(ret_path);
	if (strncmp(base, "cordon-", 7) == 0)
		ret_path[base - ret_path + 6] = '\0';
	return 0;
}

/* Between fork and exec: only what is safe there. */
_Noreturn static void become_supervisor(const char *program, char **argv, int alive_fd, int ready_fd)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	/* A second fork: the supervisor belongs to nobody who might wait for it. */
	if (setsid() < 0 || fork() != 0)
		_exit(0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* High first, so that none of the numbers that are wanted is in use. */
	alive_fd = fcntl(alive_fd, F_DUPFD, 16);
	ready_fd = fcntl(ready_fd, F_DUPFD, 16);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	dup2(alive_fd, CORDON_SUPERVISOR_ALIVE);
	dup2(ready_fd, CORDON_SUPERVISOR_READY);
	close_range(CORDON_SUPERVISOR_READY + 1, ~0U, 0);
	if (chdir("/") == 0)
		execve(program, argv, environ);
	_exit(127);
}

/* What the supervisor says about the start, one line: an index when the program runs, else the error. The end of the pipe is
 * not waited for: PID 1 of the sandbox has a copy. */
static int read_ready(int fd, int64_t *ret_index, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	int64_t until = cordon_time_monotonic() + CORDON_START_TIMEOUT_MS;
	json_auto_t *answer = NULL;

	for (;;) {
		int64_t left = until - cordon_time_monotonic();
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		char chunk[4096];
		ssize_t n;

		if (left <= 0 || poll(&wait, 1, (int)left) == 0)
			return cordon_fail(err, -ETIMEDOUT, CORDON_KIND_LIMIT, "the session did not start in time");
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (cordon_buf_add(&text, chunk, (size_t)n) < 0 || chunk[n - 1] == '\n')
			break;
	}
	answer = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
	if (!answer)
		return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL,
				   "the session's supervisor ended before the session began");
	if (!json_object_get(answer, "kind")) {
		*ret_index = json_integer_value(json_object_get(answer, "last_event_index"));
		return 0;
	}
	cordon_fail(err, -ECANCELED, cordon_kind_parse(cordon_record_text(answer, "kind")), "%s",
		    cordon_record_text(answer, "message"));
	if (*cordon_record_text(answer, "hint"))
		cordon_error_hint(err, "%s", cordon_record_text(answer, "hint"));
	return -ECANCELED;
}

int cordon_session_spawn(const char *id, int alive_fd, int64_t *ret_index, struct cordon_error *err)
{
	char program[CORDON_PATH_MAX], name[] = "cordon", first[] = "session", second[] = "supervise",
				       session[CORDON_ID_SIZE];
	char *argv[] = { name, first, second, session, NULL };
	autofd int ready = -1;
	int pair[2] = { -1, -1 };
	pid_t pid;
	int r = find_program(program);

	if (r == 0)
		r = cordon_copy(session, sizeof(session), id, strlen(id));
	if (r == 0 && pipe2(pair, O_CLOEXEC) < 0)
		r = -errno;
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot start a supervisor");
	ready = pair[0];
	pid = fork();
	if (pid == 0)
		become_supervisor(program, argv, alive_fd, pair[1]);
	close(pair[1]);
	if (pid < 0)
		return cordon_fail_errno(err, -errno, "cannot start a supervisor");
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return read_ready(ready, ret_index, err);
}
