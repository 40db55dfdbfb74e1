/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nested and bare repositories that are there before the run: whoever commits in one, or pushes to it, runs its hooks.
 * They are held like the root's own.
 *
 * They are looked for in the uppermost directories, breadth first and in the order of their names, with bounds that do
 * not depend on the tree. Repositories further down are not held; submodules and linked worktrees are found by git's
 * metadata wherever they lie (protect/git.c), and repositories that a run makes or changes are reported at its end
 * (protect/repositories.h).
 */
#ifndef CORDON_PROTECT_NESTED_H
#define CORDON_PROTECT_NESTED_H

#include "protect/collect.h"

#define CORDON_NESTED_DEPTH_MAX 3   /* levels below the root */
#define CORDON_NESTED_LISTED_MAX 8  /* directories below the root whose names are read */
#define CORDON_NESTED_NAMES_MAX 128 /* names read in one of them */
#define CORDON_NESTED_LOOKS_MAX 128 /* directories in which a repository is looked for */

/* Returns 0, -ENOMEM, or -E2BIG when there is more than a bound allows. */
int cordon_protect_nested(struct cordon_protect_collector *c);

#endif
