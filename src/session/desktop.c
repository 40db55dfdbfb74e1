/* SPDX-License-Identifier: Apache-2.0 */
/* Notices on the desktop, by notify-send. Nobody waits for it. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/path.h"
#include "session/session.h"

#define PROGRAM "notify-send"

/* Finds the program in the absolute directories of PATH. */
static bool find_program(char ret_path[static CORDON_PATH_MAX])
{
	const char *path = getenv("PATH");

	for (; path && *path; path += strcspn(path, ":"), path += *path == ':') {
		char dir[CORDON_PATH_MAX];

		if (*path == '/' && cordon_copy(dir, sizeof(dir), path, strcspn(path, ":")) == 0 &&
		    cordon_path_join(dir, PROGRAM, ret_path, CORDON_PATH_MAX) == 0 && access(ret_path, X_OK) == 0)
			return true;
	}
	return false;
}

bool cordon_desktop_exists(void)
{
	const char *address = getenv("DBUS_SESSION_BUS_ADDRESS"), *runtime = getenv("XDG_RUNTIME_DIR");
	char path[CORDON_PATH_MAX];

	if (address && *address)
		return true;
	return runtime && *runtime == '/' && cordon_path_join(runtime, "bus", path, sizeof(path)) == 0 &&
	       access(path, F_OK) == 0;
}

/* Runs between fork and exec, so it makes async-signal-safe calls only. */
_Noreturn static void exec_notice(const char *program, char *const argv[])
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	/* The second fork detaches the process: we are not its parent and need not wait for it. */
	if (null < 0 || setsid() < 0 || fork() != 0)
		_exit(0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close_range(3, ~0U, 0);
	if (chdir("/") == 0)
		execve(program, argv, environ);
	_exit(127);
}

void cordon_desktop_notice(const char *text)
{
	char program[CORDON_PATH_MAX], name[] = PROGRAM, end[] = "--", summary[] = "cordon: a person is asked";
	autofree char *body = strdup(text);
	char *const argv[] = { name, end, summary, body, NULL };
	pid_t pid;

	if (!body || !find_program(program))
		return;
	pid = fork();
	if (pid == 0)
		exec_notice(program, argv);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
