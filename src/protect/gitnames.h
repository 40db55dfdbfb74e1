/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the root that git's configuration names; internal to protect/git.c. */
#ifndef CORDON_PROTECT_GITNAMES_H
#define CORDON_PROTECT_GITNAMES_H

#include "protect/collect.h"

/* One git directory while its configuration is read. */
struct cordon_git_dir {
	struct cordon_protect_collector *c;
	const char *dir;      /* relative to the root; "" for a bare repository, and for one outside of the root */
	const char *worktree; /* where relative paths start, relative to the root or absolute; NULL when unknown */
	bool is_module;	      /* below .git/modules, where core.worktree names the directory of its files */
};

/* Each returns 0, -ENOMEM, -ENAMETOOLONG, or -E2BIG when there is more than a bound allows. A file that is missing, or
 * is no regular file, names nothing. */

/* A file of the root. */
int cordon_gitnames_config(const struct cordon_git_dir *git, const char *path);
/* A file of the git directory c->outer, by its path in it. */
int cordon_gitnames_outer(const struct cordon_git_dir *git, const char *path);
/* The configuration of the user ($HOME, $XDG_CONFIG_HOME, $GIT_CONFIG_GLOBAL) and of the system, as git would read it in
 * this repository. A file of it that lies in the root is protected itself. */
int cordon_gitnames_user(const struct cordon_git_dir *git);

#endif
