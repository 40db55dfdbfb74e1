/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit statuses of cordon, which are part of its interface, and the only place that computes them. The status of
 * the program passes through; every other number is one of these. Nothing here allocates or waits.
 */
#ifndef CORDON_BASE_EXIT_H
#define CORDON_BASE_EXIT_H

#include "base/error.h"

enum {
	CORDON_EXIT_OK = 0,
	CORDON_EXIT_NO = 1, /* the answer is no; for commands that start no agent also: refused or failed */
	CORDON_EXIT_USAGE = 2,
	/* The agent's own status is 0, but something was refused or warned of, and the caller wants that to count as a
	 * failure. */
	CORDON_EXIT_VIOLATION = 3,
	CORDON_EXIT_TIMEOUT = 124,
	CORDON_EXIT_REFUSED = 125, /* refused or failed before the agent started */
	CORDON_EXIT_NOT_EXECUTABLE = 126,
	CORDON_EXIT_NOT_FOUND = 127,
	CORDON_EXIT_SIGNAL = 128, /* plus the number of the signal */
};

/* How a program ended, or why that is not known. If several fields are set, the first one decides. */
struct cordon_ending {
	bool refused; /* it never ran, or its end is unknown */
	bool timed_out;
	bool failed_on_violation;
	int signal;    /* the signal that ended it or the run, or 0 */
	int exit_code; /* its own exit code, or -1 */
};

/* Takes the signal or the exit code from a status of waitpid(). */
struct cordon_ending cordon_ending_of_wait(int status);

int cordon_exit_of_ending(const struct cordon_ending *ending);
/* The status for a program that could not be executed: `code` is the error of execve(), -ENOENT when there is no
 * such program. */
int cordon_exit_of_exec(int code);
/* 2 for wrong usage, 126 or 127 for an error of cordon_fail_exec(), else `otherwise`. */
int cordon_exit_of_error(const struct cordon_error *err, int otherwise);

/* Fills `err` for a program that could not be executed, and returns -ENOEXEC, which no other error uses as its code.
 * `code` is as above. */
int cordon_fail_exec(struct cordon_error *err, int code, const char *program);

#endif
