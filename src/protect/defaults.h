/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is protected by default: files in the tree that the host executes later because a git command, an editor, an
 * agent or a shell prompt obeys them. docs/protected-by-default.md is the same list for people, and a test compares
 * the two.
 *
 * Git's part comes from git's own metadata, with bounds, and never from a walk of the tree: the repository's config
 * and hooks, what the config, the user's own and the system's include or name (core.hooksPath, filters, ...) inside
 * the root, and the same for its submodules and linked worktrees, for repositories around the root, and for nested ones
 * in its uppermost directories (protect/nested.h). Everything that is read may be hostile: only regular files are read, with bounds;
 * no link is followed out of the root, and nothing waits.
 *
 * A root without .git gets of git's part only what the user's configuration names: `git init` inside is normal work,
 * and the report at the end lists what it makes. A `.git` that is a link is protected as a whole. When there is more than a bound allows, the list
 * becomes stricter (`.git/modules` or `.git/worktrees` as a whole) and `collapsed` is set; where that is not
 * possible, it is an error of kind limit.
 */
#ifndef CORDON_PROTECT_DEFAULTS_H
#define CORDON_PROTECT_DEFAULTS_H

#include "base/error.h"
#include "base/resolve.h"
#include "policy/policy.h"

#define CORDON_PROTECT_DEFAULTS_MAX 1024
/* Directories read below .git/modules; also the most worktrees protected one by one. */
#define CORDON_PROTECT_MODULES_MAX 256
#define CORDON_PROTECT_WORKTREES_MAX 8192      /* worktrees read */
#define CORDON_PROTECT_ROOT_ENTRIES_MAX 262144 /* names read in the root and in .config to find files by a pattern */
#define CORDON_PROTECT_DEPTH_MAX 8	       /* levels below .git/modules */
#define CORDON_PROTECT_NESTED_MAX 32	       /* nested repositories that are held part by part */
#define CORDON_PROTECT_INCLUDES_MAX 32	       /* configuration files read for one root */
#define CORDON_PROTECT_CONFIG_MAX (256 * 1024) /* bytes of one configuration file */

struct cordon_protect_list {
	char **paths; /* clean, relative to the root, no duplicates; existing or not; of any type */
	size_t n;
	bool collapsed;
};

/* When a row of the built-in table applies. */
enum cordon_protect_when {
	CORDON_PROTECT_ALWAYS,
	/* Only if its parent directory exists: nobody else makes that directory, and a tool that does fills it. */
	CORDON_PROTECT_IN_PARENT,
	CORDON_PROTECT_HOME, /* only when the root is the user's home directory ($HOME) */
};

/* One row of the table; the documentation has the same rows. */
struct cordon_protect_row {
	const char *path;
	const char *who;    /* who executes it, and when */
	const char *source; /* the public documentation that says so */
	enum cordon_protect_when when;
};

int cordon_protect_defaults(const struct cordon_root *root, struct cordon_protect_list *ret_list,
			    struct cordon_error *err);
/* The same, with a list of the names in the root (or NULL), which saves system calls for missing paths. */
int cordon_protect_defaults_among(const struct cordon_root *root, struct cordon_names *names,
				  struct cordon_protect_list *ret_list, struct cordon_error *err);
/* The part of the list that comes from git's metadata, for a git directory that comes along with the worktree `own` of
 * it (worktrees/ID; "" for a submodule, whose git directory is its own). */
int cordon_protect_git_dir(const struct cordon_root *root, const char *own, struct cordon_protect_list *ret_list,
			   struct cordon_error *err);
void cordon_protect_list_done(struct cordon_protect_list *list);

const struct cordon_protect_row *cordon_protect_rows(size_t *ret_n);

#endif
