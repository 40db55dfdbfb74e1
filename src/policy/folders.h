/* SPDX-License-Identifier: Apache-2.0 */
/* Folder lists ("lib, src"), the repository root they are relative to, and their validation (seed 003). */
#ifndef CORDON_POLICY_FOLDERS_H
#define CORDON_POLICY_FOLDERS_H

#include "base/resolve.h"

#define CORDON_FOLDERS_MAX 256

/* A split list. `items` are as written with blanks dropped and `\,` undone. */
struct cordon_folders {
	char **items;
	size_t n;
};

/* -EINVAL with kind `usage` for an empty list, an empty entry, or more than CORDON_FOLDERS_MAX. */
int cordon_folders_parse(const char *list, struct cordon_folders *ret_folders, struct cordon_error *err);
void cordon_folders_done(struct cordon_folders *folders);

/* Resolves one folder against the root: must exist, be a directory and lie inside. kind not_found ("Workspace
 * folder does not exist: F") or policy_denied ("Workspace folder is outside repository: F"). */
int cordon_folder_resolve(const struct cordon_root *root, const char *folder, char ret_path[static CORDON_PATH_MAX],
			  struct cordon_error *err);

/*
 * The git top level above `start` (a directory), found without running git, else `start` itself. Believes no
 * core.worktree, follows no gitfile to widen the root, never waits on a FIFO: the first ancestor that has a `.git`
 * directory, or a regular `.git` file of the form "gitdir: ...", is the top level. A `.git` that another user put into
 * a shared directory is passed by.
 */
int cordon_repo_root(const char *start, struct cordon_root *ret_root, struct cordon_error *err);

#endif
