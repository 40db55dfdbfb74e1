/* SPDX-License-Identifier: Apache-2.0 */
/* cordon workflow add and remove: workflows in the file of an orchestrator. */
#include "cli/commands.h"
#include "cli/pairs.h"

enum { AGENT, PROMPT, DESCRIPTION };

static const struct cordon_option add_options[] = {
	CORDON_CONFIG_OPTION,
	{ "agent", 0, CORDON_ARG_TEXT, "AGENT", "who does its one step (default: the selector agent)",
	  CORDON_KEY_TEXT(AGENT) },
	{ "prompt", 0, CORDON_ARG_TEXT, "TEXT", "what the step is told (default: {{inputs.user_prompt}})",
	  CORDON_KEY_TEXT(PROMPT) },
	{ "description", 0, CORDON_ARG_TEXT, "TEXT", "what the workflow is for (default: its id)",
	  CORDON_KEY_TEXT(DESCRIPTION) },
	{ 0 },
};
static const struct cordon_option remove_options[] = { CORDON_CONFIG_OPTION, { 0 } };

static int change(struct cordon_cli *cli, int argc, char **argv, cordon_orchestrator_edit_kind kind, const char *done,
		  const char *nothing)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	const struct cordon_orchestrator *orchestrator = NULL;
	struct cordon_orchestrator_edit edit = { .kind = kind };
	struct cordon_pairs_args args;
	bool changed = false;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 2, &args, &code) ||
	    !cordon_cli_load_orchestrator(cli, args.config, args.operands[0], &settings, &orchestrator, &code))
		return code;
	edit.id = args.operands[1];
	edit.agent = args.text[AGENT];
	edit.prompt = args.text[PROMPT];
	edit.description = args.text[DESCRIPTION];
	if (cordon_orchestrator_edit(orchestrator, &edit, &changed, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	return cordon_cli_answer_pairs(cli, changed ? done : nothing,
				       json_pack("{s:s, s:s}", "workflow", edit.id, "orchestrator", orchestrator->id));
}

static int run_add(struct cordon_cli *cli, int argc, char **argv)
{
	return change(cli, argc, argv, CORDON_EDIT_ADD_WORKFLOW, "workflow added", "workflow is there already");
}

static int run_remove(struct cordon_cli *cli, int argc, char **argv)
{
	return change(cli, argc, argv, CORDON_EDIT_REMOVE_WORKFLOW, "workflow removed", "workflow was not there");
}

const struct cordon_command cordon_cmd_workflow_add = {
	.name = "workflow add",
	.operands = "ORCHESTRATOR ID",
	.summary = "add a workflow of one step to the file of an orchestrator",
	.details = "Comments, order and every other byte of the file stay. More steps are added by editing the file.\n",
	.options = add_options,
	.run = run_add,
};

const struct cordon_command cordon_cmd_workflow_remove = {
	.name = "workflow remove",
	.operands = "ORCHESTRATOR WORKFLOW",
	.summary = "remove a workflow from the file of an orchestrator",
	.details = "The default workflow is not removed. Runs go on: each has a copy of its definition.\n",
	.options = remove_options,
	.run = run_remove,
};
