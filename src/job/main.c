/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cordon-job ID: keeps one session, from its start to its end. The process that starts the session executes it
 * (spawn.c); people do not. It has no terminal and prints nothing.
 */
#include <fcntl.h>
#include <stdio.h>

#include "job/process.h"

int main(int argc, char **argv)
{
	/* No program that this process executes may inherit them. */
	for (int fd = CORDON_SESSION_FD_ALIVE; fd < CORDON_SESSION_FD__MAX; fd++) {
		if (argc != 2 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
			fputs("cordon-job is started by 'cordon session start' and by 'cordon mcp'\n", stderr);
			return 2;
		}
	}
	return cordon_session_process(argv[1]) < 0 ? 1 : 0;
}
