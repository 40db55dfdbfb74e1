/* SPDX-License-Identifier: Apache-2.0 */
/* Folder workspaces on the command line (seed 003): the WORKSPACE_ variables, the folder list, and the log lines in
 * the seed's words. */
#ifndef CORDON_CLI_MANAGER_H
#define CORDON_CLI_MANAGER_H

#include "cli/cli.h"
#include "cli/scope.h"
#include "policy/folders.h"

/* What the variables say; an empty one counts as unset. */
struct cordon_manager_env {
	const char *folders; /* WORKSPACE_FOLDERS, or NULL */
	const char *root;    /* WORKSPACE_REPO_ROOT, or NULL */
	bool has_mode;
	cordon_mode mode; /* WORKSPACE_MODE */
	bool disabled;	  /* WORKSPACE_ENABLED is false, 0, no or off */
};

/* A value that is none of the known ones is an error of kind usage. */
int cordon_manager_env(struct cordon_manager_env *ret_env, struct cordon_error *err);

/* What `validate` and its siblings work on. */
struct cordon_manager {
	const struct cordon_cli *cli;
	struct cordon_root root;
	cordon_mode mode;
	bool disabled;		       /* then there are no folders: the repository is the scope */
	const char *text;	       /* the list as given, for whoever parses it again */
	struct cordon_folders folders; /* its entries */
	char *list;		       /* the entries joined by commas, for messages */
};

/* `folders` is the operand or NULL. Prints what is wrong and returns an exit code, or 0. */
int cordon_manager_open(const struct cordon_cli *cli, const struct cordon_scope *scope, const char *folders,
			struct cordon_manager *ret_manager);
void cordon_manager_done(struct cordon_manager *manager);

/* "Initialized workspace manager" and its lines. */
void cordon_manager_announce(const struct cordon_manager *manager);
/* Reports every folder that is missing or outside. Returns how many there are. */
size_t cordon_manager_check_folders(const struct cordon_cli *cli, const struct cordon_root *root,
				    const struct cordon_folders *folders);
/* A bad folder: the message alone behind [WORKSPACE], or an error object with --json. */
void cordon_manager_complain(const struct cordon_cli *cli, const struct cordon_error *err);
/* The WARNING or BLOCKED block. `file` is absolute; `resolved` is where it leads, or NULL. */
void cordon_manager_violation(const struct cordon_cli *cli, cordon_mode mode, const char *file, cordon_op op,
			      const char *folders, const char *resolved);
/* Says that the repository is the scope. */
void cordon_manager_say_disabled(const struct cordon_cli *cli, const struct cordon_root *root);

/* The fileScope patterns of the folders, of the repository when disabled. A folder need not exist; flags and errors as
 * in config/prd.h. */
int cordon_manager_infer(const struct cordon_manager *manager, unsigned int flags, json_t **ret_patterns,
			 struct cordon_error *err);

/* The place of a folder inside the repository: as written when that is a plain relative path (it may then lead
 * elsewhere or not exist), else where it leads; an error in the seed's words when that is outside. */
int cordon_manager_place(const struct cordon_root *root, const char *folder, char ret_place[static CORDON_PATH_MAX],
			 struct cordon_error *err);

const char *cordon_mode_name(cordon_mode mode);
const char *cordon_op_name(cordon_op op);

#endif
