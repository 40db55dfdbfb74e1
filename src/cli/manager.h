/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folder workspaces on the command line: the WORKSPACE_ variables, the folder list, and the log lines of the workspace
 * manager, whose wording scripts rely on.
 */
#ifndef CORDON_CLI_MANAGER_H
#define CORDON_CLI_MANAGER_H

#include "cli/cli.h"
#include "policy/folders.h"
#include "recipe/recipe.h"

/* Reads the variables; an empty one counts as unset. Returns an error of kind usage for a value that is not known. */
int cordon_manager_env(struct cordon_recipe_variables *ret_env, struct cordon_error *err);

/* What 'validate' and the other commands for folder workspaces work on. */
struct cordon_manager {
	const struct cordon_cli *cli;
	struct cordon_root root;
	cordon_mode mode;
	bool disabled;		       /* then there are no folders: the repository is the scope */
	const char *text;	       /* the list as given, to be parsed again */
	char *preset;		       /* the list of --preset, or NULL */
	struct cordon_folders folders; /* its entries */
	char *list;		       /* the entries joined by commas, for messages */
};

/* `folders` is the operand or NULL; then the folders are those of --preset or of the variable. Prints every error and returns an exit code, or 0. */
int cordon_manager_open(const struct cordon_cli *cli, const struct cordon_recipe *recipe, const char *folders,
			struct cordon_manager *ret_manager);
void cordon_manager_done(struct cordon_manager *manager);

/* Prints "Initialized workspace manager" and the lines that follow it. */
void cordon_manager_announce(const struct cordon_manager *manager);
/* Reports every folder that is missing or outside. Returns how many there are. */
size_t cordon_manager_check_folders(const struct cordon_cli *cli, const struct cordon_root *root,
				    const struct cordon_folders *folders);
/* Reports a bad folder: the message alone after [WORKSPACE], or an error object with --json. */
void cordon_manager_report_folder(const struct cordon_cli *cli, const struct cordon_error *err);
/* Reports an access as WARNING or BLOCKED. `file` is absolute; `resolved` is where it leads, or NULL. */
void cordon_manager_report_access(const struct cordon_cli *cli, cordon_mode mode, const char *file, cordon_op op,
				  const char *folders, const char *resolved);
/* Reports that the checks are disabled and the repository is the scope. */
void cordon_manager_report_disabled(const struct cordon_cli *cli, const char *root);

/* Infers the fileScope patterns of the folders, or of the repository when the checks are disabled. A folder need not
 * exist. Flags and errors are those of config/prd.h. */
int cordon_manager_infer(const struct cordon_manager *manager, unsigned int flags, json_t **ret_patterns,
			 struct cordon_error *err);

/* Finds the place of a folder inside the repository: as written when that is a plain relative path (it may then lead
 * elsewhere or not exist), else where it leads. Fails when that is outside the repository. */
int cordon_manager_place(const struct cordon_root *root, const char *folder, char ret_place[static CORDON_PATH_MAX],
			 struct cordon_error *err);

#endif
