/* SPDX-License-Identifier: Apache-2.0 */
/* cordon channel-profile: which orchestrator answers on which channel. */
#include "cli/commands.h"
#include "cli/pairs.h"
#include "flow/edit.h"
#include "flow/settings_json.h"

enum { OPT_DOMAIN = 1, OPT_WORKFLOW };

static const struct cordon_option options[] = { CORDON_CONFIG_OPTION, { 0 } };
static const struct cordon_option list_options[] = { CORDON_CONFIG_OPTION, CORDON_TABLE_OPTION, { 0 } };
static const struct cordon_option add_options[] = {
	CORDON_CONFIG_OPTION,
	{ "domain", 0, CORDON_ARG_TEXT, "DOMAIN", "subject that the profile belongs to", OPT_DOMAIN },
	{ "default-workflow", 0, CORDON_ARG_TEXT, "WORKFLOW", "workflow that runs when none is selected", OPT_WORKFLOW },
	{ 0 },
};

#define OPERANDS_MAX 3

struct args {
	const char *config, *domain, *workflow;
	bool table;
	const char *operands[OPERANDS_MAX];
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	(void)err;
	switch (key) {
	case CORDON_KEY_CONFIG:
		args->config = arg;
		break;
	case CORDON_KEY_TABLE:
		args->table = true;
		break;
	case OPT_DOMAIN:
		args->domain = arg;
		break;
	default:
		args->workflow = arg;
		break;
	}
	return 0;
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = {
		{ "id", "ID" },		{ "channel", "CHANNEL" },	    { "orchestrator_id", "ORCHESTRATOR" },
		{ "domain", "DOMAIN" }, { "default_workflow", "WORKFLOW" }, { 0 }
	};
	autosettings struct cordon_settings_file *settings = NULL;
	struct args args = { 0 };
	json_t *records;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 0, set, &args, args.operands, &code) ||
	    !cordon_cli_load_settings(cli, args.config, 0, &settings, &code))
		return code;
	records = json_array();
	for (size_t i = 0; i < settings->n_profiles; i++)
		json_array_append_new(records, cordon_channel_profile_json(&settings->profiles[i]));
	return cordon_cli_list_pairs(cli, columns, args.table, records);
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	autosettings struct cordon_settings_file *settings = NULL;
	const struct cordon_channel_profile *profile = NULL;
	struct cordon_error err = { 0 };
	struct args args = { 0 };
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 1, set, &args, args.operands, &code) ||
	    !cordon_cli_load_settings(cli, args.config, 0, &settings, &code))
		return code;
	if (cordon_settings_profile(settings, args.operands[0], &profile, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer_pairs(cli, NULL, cordon_channel_profile_json(profile));
}

/* Makes the change and prints the profile as it is then, or what was removed. */
static int change(struct cordon_cli *cli, struct cordon_settings_edit edit, const char *done, const char *nothing)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_settings_edited edited autoedited = { 0 };
	const struct cordon_channel_profile *profile = NULL;
	json_t *record;

	if (cordon_settings_edit(&edit, &edited, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	if (cordon_settings_profile(edited.after, edit.id, &profile, NULL) == 0)
		record = cordon_channel_profile_json(profile);
	else
		record = json_pack("{s:s}", "id", edit.id);
	return cordon_cli_answer_pairs(cli, edited.changed ? done : nothing, record);
}

static int run_add(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 3, set, &args, args.operands, &code))
		return code;
	return change(cli,
		      (struct cordon_settings_edit){ .kind = CORDON_EDIT_ADD_PROFILE,
						     .config = args.config,
						     .id = args.operands[0],
						     .channel = args.operands[1],
						     .key = args.operands[2],
						     .domain = args.domain,
						     .text = args.workflow },
		      "channel profile added", "channel profile is there already");
}

static int run_remove(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 1, set, &args, args.operands, &code))
		return code;
	return change(cli,
		      (struct cordon_settings_edit){
			      .kind = CORDON_EDIT_REMOVE_PROFILE, .config = args.config, .id = args.operands[0] },
		      "channel profile removed", "channel profile was not there");
}

static int run_set_orchestrator(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 2, set, &args, args.operands, &code))
		return code;
	return change(cli,
		      (struct cordon_settings_edit){ .kind = CORDON_EDIT_SET_PROFILE,
						     .config = args.config,
						     .id = args.operands[0],
						     .key = args.operands[1] },
		      "channel profile updated", "channel profile updated");
}

const struct cordon_command cordon_cmd_channel_profile_list = {
	.name = "channel-profile list",
	.operands = "",
	.summary = "list the channel profiles",
	.options = list_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_channel_profile_add = {
	.name = "channel-profile add",
	.operands = "ID CHANNEL ORCH",
	.summary = "let an orchestrator answer on a channel",
	.details = "CHANNEL is local, slack, discord, telegram or whatsapp.\n"
		   "With a domain, the orchestrator may have no area of another domain, unless the grant says --cross-domain.\n",
	.options = add_options,
	.run = run_add,
};

const struct cordon_command cordon_cmd_channel_profile_show = {
	.name = "channel-profile show",
	.operands = "CHANNEL-PROFILE",
	.summary = "show a channel profile",
	.options = options,
	.run = run_show,
};

const struct cordon_command cordon_cmd_channel_profile_remove = {
	.name = "channel-profile remove",
	.operands = "CHANNEL-PROFILE",
	.summary = "remove a channel profile",
	.options = options,
	.run = run_remove,
};

const struct cordon_command cordon_cmd_channel_profile_set_orchestrator = {
	.name = "channel-profile set-orchestrator",
	.operands = "CHANNEL-PROFILE ORCHESTRATOR",
	.summary = "give a channel profile another orchestrator",
	.options = options,
	.run = run_set_orchestrator,
};
