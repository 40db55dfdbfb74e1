/* SPDX-License-Identifier: Apache-2.0 */
/* cordon validate: checks that the folders of a workspace exist inside the repository. */
#include "cli/commands.h"
#include "cli/manager.h"
#include "cli/recipe_options.h"

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_FOLDERS | CORDON_RECIPE_OF_MODES),
	{ 0 },
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	return cordon_cli_set(data, key, arg, err);
}

/* Checks one folder, reports the outcome, and adds it to the array. */
static bool validate_one(const struct cordon_manager *ws, const char *folder, json_t *array)
{
	char path[CORDON_PATH_MAX] = "";
	struct cordon_error err = { 0 };
	bool valid = cordon_folder_resolve(&ws->root, folder, path, &err) == 0;

	if (valid)
		cordon_cli_workspace_log(ws->cli, "Validated workspace folder: %s", folder);
	else
		cordon_manager_report_folder(ws->cli, &err);
	json_array_append_new(array, json_pack("{s:o, s:b, s:o}", "folder", cordon_cli_json_text(folder), "valid",
					       (int)valid, "path", valid ? cordon_cli_json_text(path) : json_null()));
	return valid;
}

static int validate(struct cordon_cli *cli, const struct cordon_manager *ws)
{
	json_t *array = json_array();
	size_t bad = 0;

	if (ws->disabled)
		cordon_manager_report_disabled(cli, ws->root.path);
	else
		cordon_manager_announce(ws);
	for (size_t i = 0; i < ws->folders.n; i++)
		bad += !validate_one(ws, ws->folders.items[i], array);
	if (bad == 0 && !ws->disabled)
		cordon_cli_workspace_log(cli, "All workspace folders validated");
	if (ws->disabled)
		cordon_cli_log(cli, "INFO", "Workspace sandboxing: Disabled");
	else if (bad == 0)
		cordon_cli_log(cli, "INFO", "Workspace sandboxing: Enabled (mode: %s)", cordon_mode_name(ws->mode));
	if (cli->json) {
		int r = cordon_cli_print_json(cli, json_pack("{s:b, s:b, s:s, s:o, s:o}", "valid", bad == 0, "enabled",
							     !ws->disabled, "mode", cordon_mode_name(ws->mode), "root",
							     cordon_cli_json_text(ws->root.path), "folders", array));
		return r ? r : bad ? CORDON_EXIT_NO : CORDON_EXIT_OK;
	}
	json_decref(array);
	return bad ? CORDON_EXIT_NO : CORDON_EXIT_OK;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_recipe recipe = { 0 };
	struct cordon_manager ws;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &recipe, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first > 1)
		return cordon_cli_usage(cli, "one list of folders is expected, not %d arguments", argc - first);
	if (first == argc && !recipe.preset_name && !getenv("WORKSPACE_FOLDERS") && !getenv("WORKSPACE_ENABLED")) {
		cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "no folders: give FOLDERS or set WORKSPACE_FOLDERS");
		cordon_error_hint(&err, "'cordon agent validate' and 'cordon config validate' check files");
		return cordon_cli_fail(cli, &err);
	}
	r = cordon_manager_open(cli, &recipe, first < argc ? argv[first] : NULL, &ws);
	if (r)
		return r;
	r = validate(cli, &ws);
	cordon_manager_done(&ws);
	return r;
}

const struct cordon_command cordon_cmd_validate = {
	.name = "validate",
	.operands = "[FOLDERS]",
	.summary = "check that workspace folders exist inside the repository",
	.details = "FOLDERS is a comma-separated list, relative to the repository root or absolute; every bad folder is\n"
		   "reported. Without it WORKSPACE_FOLDERS is read.\n"
		   "\n"
		   "Exit status: 0 all are valid, 1 one is not, 2 wrong usage.\n",
	.options = options,
	.run = run,
};
