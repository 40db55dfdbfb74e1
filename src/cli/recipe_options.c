/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a recipe from options and variables, and prints what is wrong with it. */
#include "cli/recipe_options.h"
#include "cli/manager.h"

int cordon_cli_set(struct cordon_recipe *recipe, int key, const char *arg, struct cordon_error *err)
{
	cordon_recipe_id id = (cordon_recipe_id)(key - CORDON_KEY_RECIPE);

	return cordon_recipe_set(recipe, id, arg, cordon_recipe_rows[id].dashed, err);
}

int cordon_cli_compile(struct cordon_cli *cli, struct cordon_recipe *recipe, cordon_recipe_use use)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_error err = { 0 };
	int r = 0;

	if (cordon_manager_env(&recipe->variables, &err) < 0)
		return cordon_cli_fail(cli, &err);
	recipe->names_options = true;
	if (cordon_recipe_compile(recipe, use, &errors) < 0)
		r = errors.n ? cordon_cli_fail_all(cli, &errors) : cli->failure_exit;
	for (size_t i = 0; i < recipe->folder_errors.n; i++)
		cordon_manager_report_folder(cli, &recipe->folder_errors.items[i]);
	if (recipe->disabled)
		cordon_manager_report_disabled(cli, recipe->root_path);
	return r;
}
