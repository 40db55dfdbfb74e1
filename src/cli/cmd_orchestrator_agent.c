/* SPDX-License-Identifier: Apache-2.0 */
/* cordon orchestrator-agent: the agents in the file of an orchestrator. */
#include "cli/commands.h"
#include "cli/pairs.h"
#include "flow/settings_json.h"

enum { PROVIDER, MODEL };
enum { CAN_ORCHESTRATE };

static const struct cordon_option options[] = { CORDON_CONFIG_OPTION, { 0 } };
static const struct cordon_option list_options[] = { CORDON_CONFIG_OPTION, CORDON_TABLE_OPTION, { 0 } };
static const struct cordon_option add_options[] = {
	CORDON_CONFIG_OPTION,
	{ "provider", 0, CORDON_ARG_TEXT, "PROVIDER", "anthropic, openai or one of the settings (default: anthropic)",
	  CORDON_KEY_TEXT(PROVIDER) },
	{ "model", 0, CORDON_ARG_TEXT, "MODEL", "passed on to the provider's program", CORDON_KEY_TEXT(MODEL) },
	{ "can-orchestrate", 0, CORDON_ARG_NONE, NULL, "it may select workflows", CORDON_KEY_FLAG(CAN_ORCHESTRATE) },
	{ 0 },
};

static bool load(const struct cordon_cli *cli, const struct cordon_orchestrator *orchestrator,
		 struct cordon_orchestrator_file **ret_file, int *ret_exit)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };

	if (cordon_orchestrator_file_load(orchestrator, ret_file, &errors) == 0)
		return true;
	*ret_exit = cordon_cli_fail_all(cli, &errors);
	return false;
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = { { "id", "ID" },
							{ "provider", "PROVIDER" },
							{ "model", "MODEL" },
							{ "can_orchestrate_workflows", "MAY ORCHESTRATE" },
							{ "selector", "SELECTOR" },
							{ 0 } };
	autoorchestratorfile struct cordon_orchestrator_file *file = NULL;
	autosettings struct cordon_settings_file *settings = NULL;
	const struct cordon_orchestrator *orchestrator = NULL;
	struct cordon_pairs_args args;
	json_t *records;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 1, &args, &code) ||
	    !cordon_cli_load_orchestrator(cli, args.config, args.operands[0], &settings, &orchestrator, &code) ||
	    !load(cli, orchestrator, &file, &code))
		return code;
	records = json_array();
	for (size_t i = 0; i < file->n_agents; i++)
		json_array_append_new(records, cordon_flow_agent_json(file, &file->agents[i]));
	return cordon_cli_list_pairs(cli, columns, args.table, records);
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	autoorchestratorfile struct cordon_orchestrator_file *file = NULL;
	autosettings struct cordon_settings_file *settings = NULL;
	const struct cordon_orchestrator *orchestrator = NULL;
	const struct cordon_flow_agent *agent = NULL;
	struct cordon_error err = { 0 };
	struct cordon_pairs_args args;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 2, &args, &code) ||
	    !cordon_cli_load_orchestrator(cli, args.config, args.operands[0], &settings, &orchestrator, &code) ||
	    !load(cli, orchestrator, &file, &code))
		return code;
	if (cordon_orchestrator_file_agent(file, args.operands[1], &agent, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer_pairs(cli, NULL, cordon_flow_agent_json(file, agent));
}

static int change(struct cordon_cli *cli, int argc, char **argv, cordon_orchestrator_edit_kind kind, const char *done,
		  const char *nothing)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	const struct cordon_orchestrator *orchestrator = NULL;
	const struct cordon_provider *provider = NULL;
	struct cordon_orchestrator_edit edit = { .kind = kind };
	struct cordon_pairs_args args;
	struct cordon_error err = { 0 };
	bool changed = false;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 2, &args, &code) ||
	    !cordon_cli_load_orchestrator(cli, args.config, args.operands[0], &settings, &orchestrator, &code))
		return code;
	edit.id = args.operands[1];
	if (kind == CORDON_EDIT_ADD_AGENT) {
		edit.provider = args.text[PROVIDER] ? args.text[PROVIDER] : "anthropic";
		edit.model = args.text[MODEL];
		edit.can_orchestrate = args.flag[CAN_ORCHESTRATE];
		if (cordon_settings_provider(settings, edit.provider, &provider, &err) < 0)
			return cordon_cli_fail(cli, &err);
	}
	if (cordon_orchestrator_edit(orchestrator, &edit, &changed, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	return cordon_cli_answer_pairs(cli, changed ? done : nothing,
				       json_pack("{s:s, s:s}", "id", edit.id, "orchestrator_id", orchestrator->id));
}

static int run_add(struct cordon_cli *cli, int argc, char **argv)
{
	return change(cli, argc, argv, CORDON_EDIT_ADD_AGENT, "agent added", "agent is there already");
}

static int run_remove(struct cordon_cli *cli, int argc, char **argv)
{
	return change(cli, argc, argv, CORDON_EDIT_REMOVE_AGENT, "agent removed", "agent was not there");
}

const struct cordon_command cordon_cmd_orchestrator_agent_list = {
	.name = "orchestrator-agent list",
	.operands = "ORCHESTRATOR",
	.summary = "list the agents of an orchestrator",
	.options = list_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_orchestrator_agent_add = {
	.name = "orchestrator-agent add",
	.operands = "ORCHESTRATOR ID",
	.summary = "add an agent to the file of an orchestrator",
	.details = "Comments, order and every other byte of the file stay. An agent has no access of its own.\n",
	.options = add_options,
	.run = run_add,
};

const struct cordon_command cordon_cmd_orchestrator_agent_show = {
	.name = "orchestrator-agent show",
	.operands = "ORCHESTRATOR AGENT",
	.summary = "show an agent of an orchestrator",
	.options = options,
	.run = run_show,
};

const struct cordon_command cordon_cmd_orchestrator_agent_remove = {
	.name = "orchestrator-agent remove",
	.operands = "ORCHESTRATOR AGENT",
	.summary = "remove an agent from the file of an orchestrator",
	.options = options,
	.run = run_remove,
};
