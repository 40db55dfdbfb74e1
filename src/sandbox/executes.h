/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host would execute later if nobody looks: the question behind the last lines of `cordon run --summary`.
 * Wider than what is protected by default (protect_defaults.h), because the project's own build files are the agent's
 * to change; whoever runs them should know that it did. docs/run-summary.md has the table, and a test compares the two.
 */
#ifndef CORDON_SANDBOX_EXECUTES_H
#define CORDON_SANDBOX_EXECUTES_H

#include <sys/types.h>

#include "base/util.h"

struct cordon_execute_row {
	const char *pattern; /* with a slash: of the last components of a path, else of its name; fnmatch(3) */
	const char *who;
};

const struct cordon_execute_row *cordon_execute_rows(size_t *ret_n);

/* Who would execute the regular file or link at a path relative to the root, or NULL. Files with an execute bit count.
 */
const char *cordon_executes(const char *path, mode_t mode);

#endif
