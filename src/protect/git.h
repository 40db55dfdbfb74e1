/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the default protection that comes from git's metadata; internal to protect/defaults.c. */
#ifndef CORDON_PROTECT_GIT_H
#define CORDON_PROTECT_GIT_H

#include "base/names.h"
#include "protect/defaults.h"

/* A list that is being made, and how much may still be read for it. */
struct cordon_protect_collector {
	const struct cordon_root *root;
	struct cordon_names *names; /* knows what is missing in the root; or NULL */
	struct cordon_protect_list list;
	size_t cap;
	size_t modules_left; /* entries below .git/modules */
	size_t worktrees_left;
	size_t includes_left;		 /* files that configuration files include */
	size_t bytes_left;		 /* bytes that may still be read */
	const char *own;		 /* the worktree of the run, in its common git directory; or NULL */
	const struct cordon_root *outer; /* the git directory outside of the root whose configuration is read; or NULL */
};

enum cordon_protect_type { CORDON_PROTECT_MISSING, CORDON_PROTECT_FILE, CORDON_PROTECT_DIR, CORDON_PROTECT_OTHER };

/* Adds dir + "/" + name, once. 0, -ENOMEM, -ENAMETOOLONG, or -E2BIG when the list is full. */
int cordon_protect_collect(struct cordon_protect_collector *c, const char *dir, const char *name);
bool cordon_protect_collected(const struct cordon_protect_collector *c, const char *path);
void cordon_protect_truncate(struct cordon_protect_collector *c, size_t n);

/* The type of a path whose components must not be links: CORDON_PROTECT_OTHER for a link, a FIFO and so on. */
enum cordon_protect_type cordon_protect_type_of(const struct cordon_protect_collector *c, const char *path);

/* Returns 0, -ENOMEM, or -E2BIG when there is more than a bound allows. */
int cordon_protect_git(struct cordon_protect_collector *c);
/* The same for a root that is a git directory itself and comes along with one of its worktrees. */
int cordon_protect_git_root(struct cordon_protect_collector *c);

#endif
