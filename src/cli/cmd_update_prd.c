/* SPDX-License-Identifier: Apache-2.0 */
/* cordon update-prd: gives a fileScope to the stories of a PRD that lack one. */
#include "cli/commands.h"
#include "cli/manager.h"
#include "cli/recipe_options.h"
#include "config/prd.h"

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_FOLDERS),
	{ 0 },
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	return cordon_cli_set(data, key, arg, err);
}

static int report(struct cordon_cli *cli, const char *prd, const struct cordon_prd_changes *changes)
{
	json_t *stories = json_array();

	for (size_t i = 0; i < changes->n; i++) {
		cordon_cli_workspace_log(cli, "Setting fileScope for story %s", changes->ids[i]);
		json_array_append_new(stories, cordon_cli_json_text(changes->ids[i]));
	}
	cordon_cli_workspace_log(cli, "Updated fileScope for %zu stories", changes->n);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:o, s:o}", "prd", cordon_cli_json_text(prd), "updated",
							    stories));
	json_decref(stories);
	return CORDON_EXIT_OK;
}

static int update(struct cordon_cli *cli, const struct cordon_manager *ws, const char *prd)
{
	struct cordon_prd_changes changes CORDON_CLEANUP(cordon_prd_changes_done) = { 0 };
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_error err = { 0 };
	json_t *patterns = NULL;
	int r;

	/* A workspace that is disabled infers nothing. */
	if (ws->disabled) {
		cordon_manager_report_disabled(cli, ws->root.path);
		return report(cli, prd, &changes);
	}
	if (cordon_manager_check_folders(cli, &ws->root, &ws->folders) > 0)
		return CORDON_EXIT_NO;
	if (cordon_manager_infer(ws, 0, &patterns, &err) < 0)
		return cordon_cli_fail(cli, &err);
	cordon_cli_workspace_log(cli, "Auto-inferring fileScope from workspace...");
	r = cordon_prd_update_scope(prd, patterns, &changes, &errors);
	json_decref(patterns);
	return r < 0 ? cordon_cli_fail_all(cli, &errors) : report(cli, prd, &changes);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_recipe recipe = { 0 };
	struct cordon_manager ws;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &recipe, &first, &err);
	const char *folders = NULL;

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first < 1 || argc - first > 2)
		return cordon_cli_usage(cli, "a list of folders and a PRD are expected, not %d arguments", argc - first);
	if (argc - first == 2)
		folders = argv[first];
	r = cordon_manager_open(cli, &recipe, folders, &ws);
	if (r)
		return r;
	r = update(cli, &ws, argv[argc - 1]);
	cordon_manager_done(&ws);
	return r;
}

const struct cordon_command cordon_cmd_update_prd = {
	.name = "update-prd",
	.operands = "[FOLDERS] PRD",
	.summary = "give a fileScope to the stories of a PRD that lack one",
	.details = "Stories with a fileScope of their own are left alone, and so is every other byte of the file, which is\n"
		   "replaced in one step. Without FOLDERS WORKSPACE_FOLDERS is read.\n",
	.options = options,
	.run = run,
};
