/* SPDX-License-Identifier: Apache-2.0 */
/* Long text on a terminal goes through the user's pager. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/changes_view.h"

/* Starts the pager with the reading end of a pipe as its input. Returns the writing end, or -1. */
static int start(pid_t *ret_pid)
{
	const char *pager = getenv("PAGER");
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, NULL, NULL };
	autofree char *command = strdup(pager && *pager ? pager : "less");
	posix_spawn_file_actions_t actions;
	int ends[2], r;

	if (!command || cordon_streq(command, "cat") || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	argv[2] = command;
	/* Without a choice of the user: end at once if all fits the screen, show colours, keep the screen. */
	setenv("LESS", "FRX", 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
	fflush(stdout);
	r = posix_spawn(ret_pid, "/bin/sh", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[0]);
	if (r != 0) {
		close(ends[1]);
		return -1;
	}
	/* A person who leaves the pager early has seen enough. */
	signal(SIGPIPE, SIG_IGN);
	return ends[1];
}

void cordon_pager_open(const struct cordon_cli *cli, bool wanted, struct cordon_pager *ret_pager)
{
	struct cordon_pager pager = { .fd = STDOUT_FILENO };

	(void)cli;
	pager.terminal = isatty(STDOUT_FILENO);
	pager.colour = cordon_cli_colour(STDOUT_FILENO);
	if (wanted && pager.terminal) {
		int fd = start(&pager.pid);

		if (fd >= 0)
			pager.fd = fd;
		else
			pager.pid = 0;
	}
	fflush(stdout);
	*ret_pager = pager;
}

void cordon_pager_write(struct cordon_pager *pager, const char *bytes, size_t n)
{
	int r = pager->failed || n == 0 ? 0 : cordon_write_all(pager->fd, bytes, n);

	if (r < 0)
		pager->failed = r;
}

int cordon_pager_close(const struct cordon_cli *cli, struct cordon_pager *pager)
{
	struct cordon_error err = { 0 };

	if (pager->pid) {
		close(pager->fd);
		while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
			;
		return CORDON_EXIT_OK;
	}
	if (!pager->failed || pager->failed == -EPIPE)
		return CORDON_EXIT_OK;
	cordon_fail_errno(&err, pager->failed, "cannot write the changes");
	return cordon_cli_fail(cli, &err);
}
