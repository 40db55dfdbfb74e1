/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files the host would execute later if nobody looks at them, for the last lines of `cordon run --summary`.
 * This is more than what is protected by default (protect/defaults.h): the agent may change the project's own build
 * files, but a user who runs them should know that it did. docs/run-summary.md has the table, and a test compares
 * the two.
 */
#ifndef CORDON_PROTECT_EXECUTES_H
#define CORDON_PROTECT_EXECUTES_H

#include <sys/types.h>

#include "base/util.h"

/* Returns who would execute the regular file or link at a path relative to the root, or NULL. Files with an execute
 * bit count. */
const char *cordon_executes(const char *path, mode_t mode);

#endif
