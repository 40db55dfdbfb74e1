/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the exit status from how a program or a run ended. */
#include <sys/wait.h>

#include "base/exit.h"

int cordon_exit_of_ending(const struct cordon_ending *ending)
{
	if (ending->refused)
		return CORDON_EXIT_REFUSED;
	if (ending->timed_out)
		return CORDON_EXIT_TIMEOUT;
	if (ending->failed_on_violation)
		return CORDON_EXIT_VIOLATION;
	if (ending->signal)
		return CORDON_EXIT_SIGNAL + ending->signal;
	return ending->exit_code >= 0 ? ending->exit_code : CORDON_EXIT_NO;
}

struct cordon_ending cordon_ending_of_wait(int status)
{
	return (struct cordon_ending){
		.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	};
}

int cordon_exit_of_exec(int code)
{
	return code == -ENOENT ? CORDON_EXIT_NOT_FOUND : CORDON_EXIT_NOT_EXECUTABLE;
}

int cordon_exit_of_error(const struct cordon_error *err, int otherwise)
{
	if (err->kind == CORDON_KIND_USAGE)
		return CORDON_EXIT_USAGE;
	if (err->code != -ENOEXEC)
		return otherwise;
	return cordon_exit_of_exec(err->kind == CORDON_KIND_NOT_FOUND ? -ENOENT : err->code);
}

int cordon_fail_exec(struct cordon_error *err, int code, const char *program)
{
	bool missing = code == -ENOENT;

	return cordon_fail(err, -ENOEXEC, missing ? CORDON_KIND_NOT_FOUND : CORDON_KIND_IO, "cannot run %s: %s",
			   program, missing ? "no such program in the sandbox" : strerror(-code));
}
