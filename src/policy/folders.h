/* SPDX-License-Identifier: Apache-2.0 */
/* Folder lists ("lib, src") of a workspace, their validation, and the repository root that they are relative to. */
#ifndef CORDON_POLICY_FOLDERS_H
#define CORDON_POLICY_FOLDERS_H

#include "base/buf.h"
#include "base/resolve.h"

#define CORDON_FOLDERS_MAX 256

/* A folder list after splitting. `items` are as written, without the blanks around them and with `\,` as a comma. */
struct cordon_folders {
	char **items;
	size_t n;
};

/* -EINVAL with kind `usage` for an empty list, an empty entry, or more than CORDON_FOLDERS_MAX. */
int cordon_folders_parse(const char *list, struct cordon_folders *ret_folders, struct cordon_error *err);
void cordon_folders_done(struct cordon_folders *folders);
/* Adds a folder to the text of a list, with commas in its name escaped. */
int cordon_folders_add(struct cordon_buf *list, const char *folder);

/* Resolves one folder against the root. It must exist, be a directory and lie inside. The error has kind not_found
 * ("Workspace folder does not exist: F") or policy_denied ("Workspace folder is outside repository: F"). */
int cordon_folder_resolve(const struct cordon_root *root, const char *folder, char ret_path[static CORDON_PATH_MAX],
			  struct cordon_error *err);

/*
 * Finds the git top level above `start` (a directory) without running git, else returns `start` itself. It ignores
 * core.worktree, follows no gitfile that could widen the root, and never waits on a FIFO: the first ancestor that
 * has a `.git` directory, or a regular `.git` file of the form "gitdir: ...", is the top level. It ignores a `.git`
 * that another user put into a shared directory.
 */
int cordon_repo_root(const char *start, struct cordon_root *ret_root, struct cordon_error *err);

#endif
