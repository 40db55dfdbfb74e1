/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the default protection that comes from git's metadata; internal to protect_defaults.c. */
#ifndef CORDON_SANDBOX_PROTECT_GIT_H
#define CORDON_SANDBOX_PROTECT_GIT_H

#include "sandbox/protect_defaults.h"

/* A list in the making, and what may still be spent on it. */
struct cordon_protect_collector {
	const struct cordon_root *root;
	struct cordon_protect_list list;
	size_t cap;
	size_t modules_left; /* entries below .git/modules */
	size_t worktrees_left;
	size_t includes_left; /* files that configuration files include */
	size_t bytes_left;    /* of all that is read */
};

enum cordon_protect_type { CORDON_PROTECT_MISSING, CORDON_PROTECT_FILE, CORDON_PROTECT_DIR, CORDON_PROTECT_OTHER };

/* Adds dir + "/" + name, once. 0, -ENOMEM, -ENAMETOOLONG, or -E2BIG when the list is full. */
int cordon_protect_collect(struct cordon_protect_collector *c, const char *dir, const char *name);
bool cordon_protect_collected(const struct cordon_protect_collector *c, const char *path);
void cordon_protect_truncate(struct cordon_protect_collector *c, size_t n);

/* What a path is, no component of which may be a link: OTHER for a link, a FIFO and the like. */
enum cordon_protect_type cordon_protect_type_of(const struct cordon_protect_collector *c, const char *path);

/* 0, -ENOMEM, or -E2BIG when a bound is passed. */
int cordon_protect_git(struct cordon_protect_collector *c);

#endif
