/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a run on the command line: options by the table of config/recipe_table.h, for every command that
 * starts a run or answers questions about one.
 *
 *     static const struct cordon_option options[] = { CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_RUN), { 0 } };
 *
 *     static int set(void *data, int key, const char *arg, struct cordon_error *err)
 *     {
 *             if (cordon_recipe_owns(key))
 *                     return cordon_cli_set(&args->recipe, key, arg, err);
 *             ...
 *
 *     r = cordon_cli_compile(cli, &args.recipe, CORDON_RECIPE_STARTS);      prints every error there is
 *     if (r)
 *             return r;
 */
#ifndef CORDON_CLI_RECIPE_OPTIONS_H
#define CORDON_CLI_RECIPE_OPTIONS_H

#include "cli/cli.h"
#include "recipe/recipe.h"

/* Stands for the options of all rows that name one of the commands. */
#define CORDON_RECIPE_OPTIONS(commands)                                                                                \
	{                                                                                                              \
		"", 0, CORDON_ARG_NONE, NULL, NULL, commands                                                           \
	}
/* One of the rows, with another help text. */
#define CORDON_RECIPE_OPTION(id, name, arg, meta, help)                                                                \
	{                                                                                                              \
		name, 0, arg, meta, help, CORDON_KEY_RECIPE + (id)                                                     \
	}

static inline bool cordon_recipe_owns(int key)
{
	return key >= CORDON_KEY_RECIPE && key < CORDON_KEY_RECIPE + CORDON_RECIPE__MAX;
}

/* Takes an option. A second one of those that may be given once is an error of kind usage. */
int cordon_cli_set(struct cordon_recipe *recipe, int key, const char *arg, struct cordon_error *err);
/* Compiles the recipe with the WORKSPACE_ variables. Returns 0, or an exit code after having printed every error. */
int cordon_cli_compile(struct cordon_cli *cli, struct cordon_recipe *recipe, cordon_recipe_use use);

#endif
