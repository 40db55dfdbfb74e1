/* SPDX-License-Identifier: Apache-2.0 */
/* cordon shared: the directories that orchestrators can be granted. */
#include "cli/commands.h"
#include "cli/pairs.h"
#include "flow/settings_json.h"

enum { DESCRIPTION, DOMAIN };

static const struct cordon_option options[] = { CORDON_CONFIG_OPTION, { 0 } };
static const struct cordon_option list_options[] = { CORDON_CONFIG_OPTION, CORDON_TABLE_OPTION, { 0 } };
static const struct cordon_option add_options[] = {
	CORDON_CONFIG_OPTION,
	{ "description", 0, CORDON_ARG_TEXT, "TEXT", "what the area is for; agents are told",
	  CORDON_KEY_TEXT(DESCRIPTION) },
	{ "domain", 0, CORDON_ARG_TEXT, "DOMAIN", "subject that the area belongs to", CORDON_KEY_TEXT(DOMAIN) },
	{ 0 },
};

static json_t *record(const struct cordon_settings_file *settings, size_t i)
{
	return i < settings->n_areas ? cordon_area_json(settings, &settings->areas[i]) : NULL;
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = { { "key", "KEY" },
							{ "path", "PATH" },
							{ "domain", "DOMAIN" },
							{ "granted_to", "GRANTED TO" },
							{ "description", "DESCRIPTION" },
							{ 0 } };

	return cordon_cli_list_settings(cli, argc, argv, columns, record);
}

static json_t *find(const struct cordon_settings_file *settings, const char *key, struct cordon_error *err)
{
	const struct cordon_shared_area *area = NULL;

	return cordon_settings_area(settings, key, &area, err) < 0 ? NULL : cordon_area_json(settings, area);
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	return cordon_cli_show_settings(cli, argc, argv, find);
}

static int run_add(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_settings_edited edited autoedited = { 0 };
	const struct cordon_shared_area *area = NULL;
	struct cordon_pairs_args args;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 2, &args, &code))
		return code;
	if (!args.text[DESCRIPTION] || !*args.text[DESCRIPTION])
		return cordon_cli_usage(cli, "--description is expected: agents are told what the area is for");
	if (!cordon_cli_change_settings(cli,
					&(struct cordon_settings_edit){ .kind = CORDON_EDIT_ADD_AREA,
									.config = args.config,
									.key = args.operands[0],
									.path = args.operands[1],
									.text = args.text[DESCRIPTION],
									.domain = args.text[DOMAIN] },
					&edited, &code))
		return code;
	(void)cordon_settings_area(edited.after, args.operands[0], &area, NULL);
	return cordon_cli_answer_pairs(cli, edited.changed ? "shared area added" : "shared area is there already",
				       cordon_area_json(edited.after, area));
}

static int run_remove(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_settings_edited edited autoedited = { 0 };
	const struct cordon_shared_area *area = NULL;
	struct cordon_pairs_args args;
	json_t *record;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 1, &args, &code))
		return code;
	if (!cordon_cli_change_settings(cli,
					&(struct cordon_settings_edit){ .kind = CORDON_EDIT_REMOVE_AREA,
									.config = args.config,
									.key = args.operands[0] },
					&edited, &code))
		return code;
	record = json_pack("{s:s}", "key", args.operands[0]);
	if (cordon_settings_area(edited.before, args.operands[0], &area, NULL) == 0)
		json_object_set_new(record, "path", cordon_cli_json_text(area->path));
	return cordon_cli_answer_pairs(cli, area ? "shared area removed" : "shared area was not there", record);
}

const struct cordon_command cordon_cmd_shared_list = {
	.name = "shared list",
	.operands = "",
	.summary = "list the shared areas",
	.options = list_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_shared_add = {
	.name = "shared add",
	.operands = "KEY DIR",
	.summary = "make a directory an area that can be granted",
	.details = "DIR is absolute and exists, belongs to you or to root, and lies apart from all other areas, from private\n"
		   "workspaces and from cordon's own records. Nobody may use it before 'orchestrator grant-shared-access'.\n",
	.options = add_options,
	.run = run_add,
};

const struct cordon_command cordon_cmd_shared_show = {
	.name = "shared show",
	.operands = "AREA",
	.summary = "show a shared area and who may use it",
	.options = options,
	.run = run_show,
};

const struct cordon_command cordon_cmd_shared_remove = {
	.name = "shared remove",
	.operands = "AREA",
	.summary = "take a shared area out of the settings",
	.details = "The directory stays. An area that is granted is not removed.\n",
	.options = options,
	.run = run_remove,
};
