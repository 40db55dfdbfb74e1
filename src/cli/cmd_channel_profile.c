/* SPDX-License-Identifier: Apache-2.0 */
/* cordon channel-profile: which orchestrator answers on which channel. */
#include "cli/commands.h"
#include "cli/pairs.h"
#include "flow/settings_json.h"

enum { DOMAIN, WORKFLOW };

static const struct cordon_option options[] = { CORDON_CONFIG_OPTION, { 0 } };
static const struct cordon_option list_options[] = { CORDON_CONFIG_OPTION, CORDON_TABLE_OPTION, { 0 } };
static const struct cordon_option add_options[] = {
	CORDON_CONFIG_OPTION,
	{ "domain", 0, CORDON_ARG_TEXT, "DOMAIN", "subject that the profile belongs to", CORDON_KEY_TEXT(DOMAIN) },
	{ "default-workflow", 0, CORDON_ARG_TEXT, "WORKFLOW", "workflow that runs when none is selected",
	  CORDON_KEY_TEXT(WORKFLOW) },
	{ 0 },
};

static json_t *record(const struct cordon_settings_file *settings, size_t i)
{
	return i < settings->n_profiles ? cordon_channel_profile_json(&settings->profiles[i]) : NULL;
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = {
		{ "id", "ID" },		{ "channel", "CHANNEL" },	    { "orchestrator_id", "ORCHESTRATOR" },
		{ "domain", "DOMAIN" }, { "default_workflow", "WORKFLOW" }, { 0 }
	};

	return cordon_cli_list_settings(cli, argc, argv, columns, record);
}

static json_t *find(const struct cordon_settings_file *settings, const char *id, struct cordon_error *err)
{
	const struct cordon_channel_profile *profile = NULL;

	return cordon_settings_profile(settings, id, &profile, err) < 0 ? NULL : cordon_channel_profile_json(profile);
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	return cordon_cli_show_settings(cli, argc, argv, find);
}

/* Makes the change and prints the profile as it is then, or what was removed. */
static int change(struct cordon_cli *cli, struct cordon_settings_edit edit, const char *done, const char *nothing)
{
	struct cordon_settings_edited edited autoedited = { 0 };
	const struct cordon_channel_profile *profile = NULL;
	int code;

	if (!cordon_cli_change_settings(cli, &edit, &edited, &code))
		return code;
	(void)cordon_settings_profile(edited.after, edit.id, &profile, NULL);
	return cordon_cli_answer_pairs(cli, edited.changed ? done : nothing,
				       profile ? cordon_channel_profile_json(profile)
					       : json_pack("{s:s}", "id", edit.id));
}

static int run_add(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_pairs_args args;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 3, &args, &code))
		return code;
	return change(cli,
		      (struct cordon_settings_edit){ .kind = CORDON_EDIT_ADD_PROFILE,
						     .config = args.config,
						     .id = args.operands[0],
						     .channel = args.operands[1],
						     .key = args.operands[2],
						     .domain = args.text[DOMAIN],
						     .text = args.text[WORKFLOW] },
		      "channel profile added", "channel profile is there already");
}

static int run_remove(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_pairs_args args;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 1, &args, &code))
		return code;
	return change(cli,
		      (struct cordon_settings_edit){
			      .kind = CORDON_EDIT_REMOVE_PROFILE, .config = args.config, .id = args.operands[0] },
		      "channel profile removed", "channel profile was not there");
}

static int run_set_orchestrator(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_pairs_args args;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 2, &args, &code))
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
