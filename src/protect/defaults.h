/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is protected without being asked for: files in the tree that the host executes later because a git command, an
 * editor, an agent or a shell prompt obeys them. docs/protected-by-default.md is the same list for people, and a test
 * compares the two.
 *
 * Git's part comes from git's own metadata, with bounds, never by walking the tree: the repository's config and hooks,
 * what the config includes or names (core.hooksPath, filters, ...) inside the root, and the same for its submodules
 * and linked worktrees. Everything read is hostile: regular files only, bounded, no link followed out of the root,
 * no waiting.
 *
 * A root without .git gets none of git's part: `git init` inside is work, and what it makes is for the report at the
 * end. A `.git` that is a link is protected as a whole. Where a bound is passed, the list gets stricter (`.git/modules`
 * as a whole) and `collapsed` says so, or, where that can't be, it is an error of kind limit.
 */
#ifndef CORDON_SANDBOX_PROTECT_DEFAULTS_H
#define CORDON_SANDBOX_PROTECT_DEFAULTS_H

#include "base/error.h"
#include "base/resolve.h"
#include "policy/policy.h"

#define CORDON_PROTECT_DEFAULTS_MAX 768
#define CORDON_PROTECT_MODULES_MAX 256	       /* directories looked at below .git/modules; the same for worktrees */
#define CORDON_PROTECT_DEPTH_MAX 8	       /* levels below .git/modules */
#define CORDON_PROTECT_INCLUDES_MAX 32	       /* configuration files read for one root */
#define CORDON_PROTECT_CONFIG_MAX (256 * 1024) /* bytes of one configuration file */

struct cordon_protect_list {
	char **paths; /* clean, relative to the root, no duplicates; existing or not; of any type */
	size_t n;
	bool collapsed;
};

/* When a row of the built-in table counts. */
enum cordon_protect_when {
	CORDON_PROTECT_ALWAYS,
	/* Only where the directory it lies in is there: a missing path is guarded from its first missing component on, and
	 * nobody is to be kept from making `.config`. */
	CORDON_PROTECT_IN_PARENT,
	/* The same two, only when the root is the user's home directory ($HOME). */
	CORDON_PROTECT_HOME,
	CORDON_PROTECT_HOME_IN_PARENT,
};

/* One row, also for the documentation. */
struct cordon_protect_row {
	const char *path;
	const char *who; /* who executes it, and when */
	enum cordon_protect_when when;
};

int cordon_protect_defaults(const struct cordon_root *root, struct cordon_protect_list *ret_list,
			    struct cordon_error *err);
/* Adds the list to a policy, marked as default. */
int cordon_protect_defaults_add(struct cordon_policy *policy, struct cordon_error *err);
void cordon_protect_list_done(struct cordon_protect_list *list);

const struct cordon_protect_row *cordon_protect_rows(size_t *ret_n);

#endif
