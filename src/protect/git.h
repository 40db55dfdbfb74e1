/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the default protection that comes from git's metadata; internal to protect/defaults.c and nested.c. */
#ifndef CORDON_PROTECT_GIT_H
#define CORDON_PROTECT_GIT_H

#include "protect/collect.h"

/* Each returns 0, -ENOMEM, or -E2BIG when there is more than a bound allows. */

/* The repository of the root, those above it, and what the user's configuration names in the root. */
int cordon_protect_git(struct cordon_protect_collector *c);
/* The same for a root that is a git directory itself and comes along with one of its worktrees. */
int cordon_protect_git_root(struct cordon_protect_collector *c);
/* The repository at `dir`: a worktree with a `.git` of any type, or a bare one. */
int cordon_protect_repository(struct cordon_protect_collector *c, const char *dir, bool bare);
/* The worktree of a submodule, which may be missing or empty. */
int cordon_protect_submodule(struct cordon_protect_collector *c, const char *worktree);
/* Whether a directory of the root has the parts of a git directory, or the configuration of one. */
bool cordon_protect_is_git_dir(struct cordon_protect_collector *c, const char *dir);

#endif
