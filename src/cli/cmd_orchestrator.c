/* SPDX-License-Identifier: Apache-2.0 */
/* cordon orchestrator: orchestrators, their private workspaces and their grants. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/pairs.h"
#include "flow/settings_json.h"

enum { READ_ONLY, CROSS_DOMAIN, KEEP_RUNNING };

static const struct cordon_option options[] = { CORDON_CONFIG_OPTION, { 0 } };
static const struct cordon_option list_options[] = { CORDON_CONFIG_OPTION, CORDON_TABLE_OPTION, { 0 } };
static const struct cordon_option grant_options[] = {
	CORDON_CONFIG_OPTION,
	{ "read-only", 0, CORDON_ARG_NONE, NULL, "for reading only (default: for reading and writing)",
	  CORDON_KEY_FLAG(READ_ONLY) },
	{ "cross-domain", 0, CORDON_ARG_NONE, NULL, "also when the area belongs to another domain",
	  CORDON_KEY_FLAG(CROSS_DOMAIN) },
	{ 0 },
};

static const struct cordon_option revoke_options[] = {
	CORDON_CONFIG_OPTION,
	{ "keep-running", 0, CORDON_ARG_NONE, NULL,
	  "do not end what holds the area; list the steps of workflows among it", CORDON_KEY_FLAG(KEEP_RUNNING) },
	{ 0 },
};

/* ---- showing ---- */

static json_t *record(const struct cordon_settings_file *settings, size_t i)
{
	return i < settings->n_orchestrators ? cordon_orchestrator_json(&settings->orchestrators[i]) : NULL;
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = {
		{ "id", "ID" }, { "private_workspace", "PRIVATE WORKSPACE" }, { "shared_access", "SHARED ACCESS" }, { 0 }
	};

	return cordon_cli_list_settings(cli, argc, argv, columns, record);
}

static json_t *find(const struct cordon_settings_file *settings, const char *id, struct cordon_error *err)
{
	const struct cordon_orchestrator *orchestrator = NULL;

	return cordon_settings_orchestrator(settings, id, &orchestrator, err) < 0
		       ? NULL
		       : cordon_orchestrator_json(orchestrator);
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	return cordon_cli_show_settings(cli, argc, argv, find);
}

/* ---- changing the settings ---- */

/* Makes the change; *ret_now is the orchestrator afterwards, or NULL. */
static bool change(struct cordon_cli *cli, const struct cordon_settings_edit *edit,
		   struct cordon_settings_edited *edited, const struct cordon_orchestrator **ret_now, int *ret_exit)
{
	*ret_now = NULL;
	if (!cordon_cli_change_settings(cli, edit, edited, ret_exit))
		return false;
	(void)cordon_settings_orchestrator(edited->after, edit->id, ret_now, NULL);
	return true;
}

static json_t *place_json(const struct cordon_orchestrator *orchestrator, bool with_config)
{
	json_t *record = cordon_orchestrator_json(orchestrator);

	json_object_del(record, "shared_access");
	if (!with_config)
		json_object_del(record, "config");
	return record;
}

static int run_add(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_settings_edited edited autoedited = { 0 };
	const struct cordon_orchestrator *now;
	struct cordon_pairs_args args;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 1, &args, &code) ||
	    !change(cli,
		    &(struct cordon_settings_edit){
			    .kind = CORDON_EDIT_ADD_ORCHESTRATOR, .config = args.config, .id = args.operands[0] },
		    &edited, &now, &code))
		return code;
	return cordon_cli_answer_pairs(cli, edited.changed ? "orchestrator added" : "orchestrator is there already",
				       place_json(now, true));
}

/* Makes a change that may take access away; *ret_holders is what held it, or NULL. */
static bool change_access(struct cordon_cli *cli, const struct cordon_settings_edit *edit,
			  struct cordon_settings_edited *edited, json_t **ret_holders, int *ret_exit)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_error err = { 0 };

	if (cordon_home_open(&home, &err) < 0) {
		*ret_exit = cordon_cli_fail(cli, &err);
		return false;
	}
	if (cordon_settings_change(&home, edit, edited, ret_holders, &errors) == 0)
		return true;
	*ret_exit = cordon_cli_fail_all(cli, &errors);
	return false;
}

static void add_holders(json_t *record, bool kept, json_t *holders)
{
	if (holders)
		json_object_set_new(record, kept ? "kept_running" : "ended", holders);
}

static int run_remove(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_settings_edited edited autoedited = { 0 };
	const struct cordon_orchestrator *old = NULL;
	struct cordon_pairs_args args;
	json_t *record, *holders = NULL;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 1, &args, &code) ||
	    !change_access(cli,
			   &(struct cordon_settings_edit){ .kind = CORDON_EDIT_REMOVE_ORCHESTRATOR,
							   .config = args.config,
							   .id = args.operands[0] },
			   &edited, &holders, &code))
		return code;
	if (cordon_settings_orchestrator(edited.before, args.operands[0], &old, NULL) < 0)
		return cordon_cli_answer_pairs(cli, "orchestrator was not there",
					       json_pack("{s:s}", "id", args.operands[0]));
	/* The data stays; this is where. */
	record = place_json(old, false);
	add_holders(record, false, holders);
	return cordon_cli_answer_pairs(cli, "orchestrator removed", record);
}

static int set_private(struct cordon_cli *cli, int argc, char **argv, int n)
{
	struct cordon_settings_edited edited autoedited = { 0 };
	const struct cordon_orchestrator *now, *old = NULL;
	struct cordon_pairs_args args;
	json_t *record;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, n, &args, &code) ||
	    !change(cli,
		    &(struct cordon_settings_edit){ .kind = CORDON_EDIT_SET_PRIVATE,
						    .config = args.config,
						    .id = args.operands[0],
						    .path = args.operands[1] },
		    &edited, &now, &code))
		return code;
	record = place_json(now, false);
	if (cordon_settings_orchestrator(edited.before, args.operands[0], &old, NULL) == 0 &&
	    !cordon_streq(old->private_workspace, now->private_workspace))
		json_object_set_new(record, "old_private_workspace", cordon_cli_json_text(old->private_workspace));
	return cordon_cli_answer_pairs(cli, "orchestrator updated", record);
}

static int run_set_private(struct cordon_cli *cli, int argc, char **argv)
{
	return set_private(cli, argc, argv, 2);
}

static int run_unset_private(struct cordon_cli *cli, int argc, char **argv)
{
	return set_private(cli, argc, argv, 1);
}

static int change_grant(struct cordon_cli *cli, int argc, char **argv, cordon_settings_edit_kind kind)
{
	struct cordon_settings_edited edited autoedited = { 0 };
	const struct cordon_orchestrator *now = NULL;
	const struct cordon_area_grant *grant;
	struct cordon_pairs_args args;
	json_t *record, *holders = NULL;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 2, &args, &code) ||
	    !change_access(cli,
			   &(struct cordon_settings_edit){ .kind = kind,
							   .config = args.config,
							   .id = args.operands[0],
							   .key = args.operands[1],
							   .read_only = args.flag[READ_ONLY],
							   .cross_domain = args.flag[CROSS_DOMAIN],
							   .keep_running = args.flag[KEEP_RUNNING] },
			   &edited, &holders, &code))
		return code;
	(void)cordon_settings_orchestrator(edited.after, args.operands[0], &now, NULL);
	record = json_pack("{s:s, s:s}", "id", args.operands[0], "shared_key", args.operands[1]);
	grant = now ? cordon_orchestrator_grant(now, args.operands[1]) : NULL;
	if (grant)
		json_object_set_new(record, "access", json_string(grant->read_only ? "read-only" : "read-write"));
	add_holders(record, args.flag[KEEP_RUNNING], holders);
	return cordon_cli_answer_pairs(cli, grant ? "shared access granted" : "shared access revoked", record);
}

static int run_grant(struct cordon_cli *cli, int argc, char **argv)
{
	return change_grant(cli, argc, argv, CORDON_EDIT_GRANT);
}

static int run_revoke(struct cordon_cli *cli, int argc, char **argv)
{
	return change_grant(cli, argc, argv, CORDON_EDIT_REVOKE);
}

/* ---- changing orchestrator.yaml ---- */

static int change_file(struct cordon_cli *cli, int argc, char **argv, cordon_orchestrator_edit_kind kind,
		       const char *headline, const char *key)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_orchestrator_edit edit = { .kind = kind };
	autosettings struct cordon_settings_file *settings = NULL;
	const struct cordon_orchestrator *orchestrator = NULL;
	struct cordon_pairs_args args;
	bool changed;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 2, &args, &code))
		return code;
	edit.id = args.operands[1];
	if (kind == CORDON_EDIT_SELECTION_MAX_RETRIES) {
		edit.id = NULL;
		if (cordon_parse_u64(args.operands[1], 1, 1000, &edit.number) < 0)
			return cordon_cli_usage(cli, "COUNT is a number from 1 to 1000, not %.80s", args.operands[1]);
	}
	if (!cordon_cli_load_orchestrator(cli, args.config, args.operands[0], &settings, &orchestrator, &code))
		return code;
	if (cordon_orchestrator_edit(orchestrator, &edit, &changed, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	return cordon_cli_answer_pairs(cli, headline,
				       json_pack("{s:s, s:s}", "id", orchestrator->id, key, args.operands[1]));
}

static int run_set_selector(struct cordon_cli *cli, int argc, char **argv)
{
	return change_file(cli, argc, argv, CORDON_EDIT_SELECTOR_AGENT, "selector updated", "selector_agent");
}

static int run_set_workflow(struct cordon_cli *cli, int argc, char **argv)
{
	return change_file(cli, argc, argv, CORDON_EDIT_DEFAULT_WORKFLOW, "default workflow updated",
			   "default_workflow");
}

static int run_set_retries(struct cordon_cli *cli, int argc, char **argv)
{
	return change_file(cli, argc, argv, CORDON_EDIT_SELECTION_MAX_RETRIES, "selection retries updated",
			   "selection_max_retries");
}

const struct cordon_command cordon_cmd_orchestrator_list = {
	.name = "orchestrator list",
	.operands = "",
	.summary = "list the orchestrators",
	.options = list_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_orchestrator_add = {
	.name = "orchestrator add",
	.operands = "ID",
	.summary = "add an orchestrator with a private workspace",
	.details = "The private workspace has mode 0700 and a first orchestrator.yaml. The orchestrator has no shared area.\n",
	.options = options,
	.run = run_add,
};

const struct cordon_command cordon_cmd_orchestrator_show = {
	.name = "orchestrator show",
	.operands = "ORCHESTRATOR",
	.summary = "show the private workspace and the shared areas of an orchestrator",
	.options = options,
	.run = run_show,
};

const struct cordon_command cordon_cmd_orchestrator_remove = {
	.name = "orchestrator remove",
	.operands = "ORCHESTRATOR",
	.summary = "take an orchestrator out of the settings",
	.details = "Its private workspace stays, and its place is printed. An orchestrator that a channel profile uses is not removed.\n",
	.options = options,
	.run = run_remove,
};

const struct cordon_command cordon_cmd_orchestrator_set_private_workspace = {
	.name = "orchestrator set-private-workspace",
	.operands = "ORCHESTRATOR DIR",
	.summary = "give an orchestrator another private workspace",
	.details = "DIR is absolute, and is made with mode 0700 when it is missing. No data is moved.\n",
	.options = options,
	.run = run_set_private,
};

const struct cordon_command cordon_cmd_orchestrator_unset_private_workspace = {
	.name = "orchestrator unset-private-workspace",
	.operands = "ORCHESTRATOR",
	.summary = "give an orchestrator the default private workspace again",
	.options = options,
	.run = run_unset_private,
};

const struct cordon_command cordon_cmd_orchestrator_grant_shared_access = {
	.name = "orchestrator grant-shared-access",
	.operands = "ORCHESTRATOR AREA",
	.summary = "let an orchestrator use a shared area",
	.options = grant_options,
	.run = run_grant,
};

const struct cordon_command cordon_cmd_orchestrator_revoke_shared_access = {
	.name = "orchestrator revoke-shared-access",
	.operands = "ORCHESTRATOR AREA",
	.summary = "take a shared area away from an orchestrator",
	.details = "Steps that start from now on do not see the area. Those that hold it are ended after their grace\n"
		   "time, and so are commands of 'orchestrator run'.\n",
	.options = revoke_options,
	.run = run_revoke,
};

const struct cordon_command cordon_cmd_orchestrator_set_selector_agent = {
	.name = "orchestrator set-selector-agent",
	.operands = "ORCHESTRATOR AGENT",
	.summary = "choose the agent that selects workflows",
	.options = options,
	.run = run_set_selector,
};

const struct cordon_command cordon_cmd_orchestrator_set_default_workflow = {
	.name = "orchestrator set-default-workflow",
	.operands = "ORCHESTRATOR WORKFLOW",
	.summary = "choose the workflow that runs when none is selected",
	.options = options,
	.run = run_set_workflow,
};

const struct cordon_command cordon_cmd_orchestrator_set_selection_max_retries = {
	.name = "orchestrator set-selection-max-retries",
	.operands = "ORCHESTRATOR COUNT",
	.summary = "choose how often a failed selection is tried again",
	.options = options,
	.run = run_set_retries,
};
