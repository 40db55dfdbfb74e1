/* SPDX-License-Identifier: Apache-2.0 */
/* cordon infer-scope: prints the fileScope patterns of a list of folders. */
#include "cli/commands.h"
#include "cli/manager.h"
#include "cli/recipe_options.h"
#include "config/prd.h"

enum { KEY_WITH_FOLDER };

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_FOLDERS),
	{ "with-folder", 0, CORDON_ARG_NONE, NULL, "add the folder itself ('lib/') behind its patterns",
	  KEY_WITH_FOLDER },
	{ 0 },
};

struct args {
	struct cordon_recipe recipe;
	unsigned int flags;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	args->flags |= CORDON_SCOPE_WITH_FOLDER;
	return 0;
}

static int infer(struct cordon_cli *cli, const struct cordon_manager *ws, unsigned int flags)
{
	struct cordon_error err = { 0 };
	json_t *patterns = NULL;

	if (ws->disabled)
		cordon_manager_report_disabled(cli, ws->root.path);
	if (cordon_manager_infer(ws, flags, &patterns, &err) < 0) {
		if (err.kind != CORDON_KIND_POLICY_DENIED)
			return cordon_cli_fail(cli, &err);
		cordon_manager_report_folder(cli, &err);
		return CORDON_EXIT_NO;
	}
	return cordon_cli_print_json(cli, patterns);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	struct cordon_manager ws;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first > 1)
		return cordon_cli_usage(cli, "one list of folders is expected, not %d arguments", argc - first);
	r = cordon_manager_open(cli, &args.recipe, first < argc ? argv[first] : NULL, &ws);
	if (r)
		return r;
	r = infer(cli, &ws, args.flags);
	cordon_manager_done(&ws);
	return r;
}

const struct cordon_command cordon_cmd_infer_scope = {
	.name = "infer-scope",
	.operands = "[FOLDERS]",
	.summary = "print the fileScope patterns of workspace folders as JSON",
	.details = "One line: for each folder the patterns of its sh, js, ts, py, json, md, yaml and yml files. A folder\n"
		   "need not exist yet, but must lie inside the repository. Without FOLDERS WORKSPACE_FOLDERS is read.\n",
	.options = options,
	.run = run,
};
