/* SPDX-License-Identifier: Apache-2.0 */
/* cordon agent, cordon role: the file of agents, made, shown, judged, trusted and changed. */
#include <stdio.h>

#include "agent/agent.h"
#include "agent/edit.h"
#include "agent/trust.h"
#include "cli/commands.h"
#include "cli/records.h"

enum {
	OPT_ROOT = 1,
	OPT_CONFIG,
	OPT_PRESET,
	OPT_REVOKE,
	OPT_NAME,
	OPT_ROLE,
	OPT_PATTERNS,
	OPT_READ_ONLY,
	OPT_DESCRIPTION,
	OPT_MODEL,
};

/* clang-format off */
#define ROOT_OPTION \
	{ "root", 0, CORDON_ARG_DIR, "DIR", "repository root (default: the git top level, else .)", OPT_ROOT }
#define FILE_OPTIONS \
	ROOT_OPTION, \
	{ "config", 0, CORDON_ARG_FILE, "FILE", "file of agents (default: agents.json or .agent/agents.yaml in the root)", OPT_CONFIG }
/* clang-format on */

static const struct cordon_option file_options[] = { FILE_OPTIONS, { 0 } };
static const struct cordon_option init_options[] = {
	ROOT_OPTION,
	{ "preset", 0, CORDON_ARG_CHOICE, "frontend|backend|docs|tests|read-only", "what the first agent may do",
	  OPT_PRESET },
	{ 0 },
};
static const struct cordon_option trust_options[] = {
	FILE_OPTIONS,
	{ "revoke", 0, CORDON_ARG_NONE, NULL, "trust the file no longer", OPT_REVOKE },
	{ 0 },
};
static const struct cordon_option add_options[] = {
	FILE_OPTIONS,
	{ "name", 0, CORDON_ARG_TEXT, "NAME", "the same as the operand", OPT_NAME },
	{ "role", 0, CORDON_ARG_TEXT, "ROLE",
	  "what it is for (default: unknown); 'cordon role list' shows the known ones", OPT_ROLE },
	{ "patterns", 0, CORDON_ARG_TEXT, "PATTERNS", "comma list of what it may use (default: src/**)", OPT_PATTERNS },
	{ "scope", 0, CORDON_ARG_TEXT, "PATTERNS", "the same", OPT_PATTERNS },
	{ "read-only", 0, CORDON_ARG_NONE, NULL, "it may read that, not write it", OPT_READ_ONLY },
	{ "description", 0, CORDON_ARG_TEXT, "TEXT", "one sentence for people", OPT_DESCRIPTION },
	{ "model", 0, CORDON_ARG_TEXT, "MODEL", "kept for the agent's program", OPT_MODEL },
	{ 0 },
};

struct args {
	const char *root, *config, *preset, *operand;
	bool revoke;
	struct cordon_agent_draft draft;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	(void)err;
	switch (key) {
	case OPT_ROOT:
		args->root = arg;
		break;
	case OPT_CONFIG:
		args->config = arg;
		break;
	case OPT_PRESET:
		args->preset = arg;
		break;
	case OPT_REVOKE:
		args->revoke = true;
		break;
	case OPT_NAME:
		args->draft.name = arg;
		break;
	case OPT_ROLE:
		args->draft.role = arg;
		break;
	case OPT_PATTERNS:
		args->draft.patterns = arg;
		break;
	case OPT_READ_ONLY:
		args->draft.read_only = true;
		break;
	case OPT_DESCRIPTION:
		args->draft.description = arg;
		break;
	default:
		args->draft.model = arg;
		break;
	}
	return 0;
}

/* Parses the options and at most one operand. Returns false with the exit code when there is nothing more to do. */
static bool begin(struct cordon_cli *cli, int argc, char **argv, int operands, struct args *args, int *ret_exit)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);

	if (r != 0) {
		*ret_exit = r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
		return false;
	}
	if (argc - first > operands) {
		*ret_exit = cordon_cli_usage(cli, "unexpected argument: %s", argv[first + operands]);
		return false;
	}
	args->operand = first < argc ? argv[first] : NULL;
	return true;
}

static bool load(struct cordon_cli *cli, const struct args *args, struct cordon_agents **ret_agents, int *ret_exit)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };

	if (cordon_agents_load(args->root, args->config, ret_agents, &errors) == 0)
		return true;
	*ret_exit = cordon_cli_fail_all(cli, &errors);
	return false;
}

/* ---- showing ---- */

static json_t *patterns_json(const struct cordon_setting_list *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(array, cordon_cli_json_text(list->items[i].text));
	return array;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, cordon_cli_json_text(text));
}

static void set_number(json_t *object, const char *key, uint64_t number)
{
	if (number)
		json_object_set_new(object, key, json_integer((json_int_t)number));
}

static void add_notice(void *data, const char *where, const char *text)
{
	json_t *line = json_pack("{s:o, s:s}", "where", cordon_cli_json_text(where ? where : ""), "message", text);

	json_array_append_new(data, line);
}

/* The setting as the file has it: the word `profile` stays, because this says nothing about a run. */
static json_t *net_json(const struct cordon_net_setting *net)
{
	const struct cordon_net_list nothing = { .listed = true };
	struct cordon_net_list list = { 0 };
	json_t *value = NULL;

	if (net->word)
		return json_string(net->word);
	if (net->allow.n && !net->n_inject)
		return patterns_json(&net->allow);
	if (cordon_net_setting_list(net, &nothing, &list, NULL) == 0)
		value = cordon_net_list_json(&list);
	cordon_net_list_done(&list);
	return value;
}

static json_t *limits_json(const struct cordon_agent *agent)
{
	json_t *limits = json_object();

	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++) {
		const char *key = cordon_recipe_rows[id].agent, *name = key ? cordon_recipe_limit(key) : NULL;
		uint64_t value = agent->values.of[id];

		if (name && id != CORDON_RECIPE_CPUS)
			set_number(limits, name, value);
		else if (name && value)
			json_object_set_new(limits, name, json_real((double)value / 1000));
	}
	return limits;
}

/* Everything that counts for the agent: what it inherited is in it. */
static json_t *agent_json(const struct cordon_agents *agents, const struct cordon_agent *agent)
{
	json_t *object = json_pack("{s:s, s:s, s:{s:o, s:o}, s:o, s:o}", "name", agent->name, "role", agent->role,
				   "scope", "read", patterns_json(&agent->read), "write", patterns_json(&agent->write),
				   "env", json_object(), "env_pass", patterns_json(&agent->env_pass));
	json_t *notices = json_array(), *command = json_array(), *env = json_object_get(object, "env");

	for (size_t i = 0; i < agent->n_env; i++)
		set_text(env, agent->env[i].name, agent->env[i].value);
	for (size_t i = 0; agent->command && agent->command[i]; i++)
		json_array_append_new(command, cordon_cli_json_text(agent->command[i]));
	if (agent->command)
		json_object_set(object, "command", command);
	json_decref(command);
	set_text(object, "description", agent->description);
	set_text(object, "model", agent->model);
	set_text(object, "instructions", agent->instructions);
	set_text(object, "profile", agent->profile.text);
	set_text(object, "extends", agent->extends.text);
	json_object_set_new(object, "net", net_json(&agent->net));
	set_number(object, "timeout_ms", agent->values.of[CORDON_RECIPE_TIMEOUT]);
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++) {
		const struct cordon_recipe_row *row = &cordon_recipe_rows[id];

		if (row->agent && row->type == CORDON_RECIPE_NUMBER && id != CORDON_RECIPE_TIMEOUT &&
		    !cordon_recipe_limit(row->agent))
			set_number(object, row->agent, agent->values.of[id]);
	}
	json_object_set_new(object, "limits", limits_json(agent));
	json_object_set_new(object, "best_effort", json_boolean(agent->values.of[CORDON_RECIPE_BEST_EFFORT]));
	json_object_set_new(object, "editor_temps",
			    json_boolean(cordon_recipe_value(&agent->values, CORDON_RECIPE_EDITOR_TEMPS)));
	json_object_set_new(object, "trusted", json_boolean(agents->trusted));
	cordon_agent_notices(agents, agent, add_notice, notices);
	json_object_set_new(object, "notices", notices);
	return object;
}

static void join_patterns(const struct cordon_setting_list *list, struct cordon_buf *text)
{
	for (size_t i = 0; i < list->n; i++)
		cordon_buf_addf(text, "%s%s", text->len ? ", " : "", list->items[i].text);
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = {
		{ "name", "NAME" },
		{ "role", "ROLE" },
		{ "reads", "READS" },
		{ "writes", "WRITES" },
		{ "description", "DESCRIPTION" },
		{ 0 },
	};
	autoagents struct cordon_agents *agents = NULL;
	struct args args = { 0 };
	json_t *rows;
	int code;

	if (!begin(cli, argc, argv, 0, &args, &code) || !load(cli, &args, &agents, &code))
		return code;
	rows = json_array();
	for (size_t i = 0; i < agents->n; i++) {
		const struct cordon_agent *agent = &agents->items[i];
		autobuf struct cordon_buf reads = CORDON_BUF(65536);
		autobuf struct cordon_buf writes = CORDON_BUF(65536);
		json_t *row;

		if (cli->json) {
			json_array_append_new(rows, agent_json(agents, agent));
			continue;
		}
		join_patterns(&agent->read, &reads);
		join_patterns(&agent->write, &writes);
		row = json_pack("{s:s, s:s}", "name", agent->name, "role", agent->role);
		set_text(row, "reads", reads.data);
		set_text(row, "writes", writes.data);
		set_text(row, "description", agent->description);
		json_array_append_new(rows, row);
	}
	if (cli->json)
		return cordon_cli_print_json(cli,
					     json_pack("{s:o, s:b, s:o}", "file", cordon_cli_json_text(agents->path),
						       "trusted", agents->trusted, "agents", rows));
	cordon_cli_print_table(cli, columns, rows);
	json_decref(rows);
	return CORDON_EXIT_OK;
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	autoagents struct cordon_agents *agents = NULL;
	const struct cordon_agent *agent;
	struct cordon_error err = { 0 };
	struct args args = { 0 };
	int code;

	if (!begin(cli, argc, argv, 1, &args, &code))
		return code;
	if (!args.operand)
		return cordon_cli_usage(cli, "the name of an agent is expected");
	if (!load(cli, &args, &agents, &code))
		return code;
	if (cordon_agents_get(agents, args.operand, &agent, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, agent_json(agents, agent));
}

static int run_validate(struct cordon_cli *cli, int argc, char **argv)
{
	autoagents struct cordon_agents *agents = NULL;
	struct args args = { 0 };
	int code;

	if (!begin(cli, argc, argv, 1, &args, &code))
		return code;
	if (args.operand && args.config)
		return cordon_cli_usage(cli, "a file is named twice");
	args.config = args.operand ? args.operand : args.config;
	if (!load(cli, &args, &agents, &code))
		return code;
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:b, s:o, s:I, s:b}", "valid", 1, "file",
							    cordon_cli_json_text(agents->path), "agents",
							    (json_int_t)agents->n, "trusted", agents->trusted));
	printf("Configuration valid (%zu agents)\n", agents->n);
	return CORDON_EXIT_OK;
}

/* ---- trust ---- */

/* Prints what the trust is about. */
static void print_wishes(const struct cordon_agents *agents)
{
	for (size_t i = 0; i < agents->n; i++) {
		const struct cordon_agent *agent = &agents->items[i];

		for (size_t k = 0; k < agent->env_pass.n; k++)
			printf("%s: gets the variable %s\n", agent->name, agent->env_pass.items[k].text);
		if (agent->profile.text)
			printf("%s: has the profile %s\n", agent->name, agent->profile.text);
		for (size_t k = 0; k < agent->net.n_inject; k++)
			printf("%s: may use the credential in %s at %s\n", agent->name, agent->net.inject[k].from_env,
			       agent->net.inject[k].host);
		if (agent->values.of[CORDON_RECIPE_BEST_EFFORT])
			printf("%s: runs with fewer layers where the kernel lacks some\n", agent->name);
	}
}

static int run_trust(struct cordon_cli *cli, int argc, char **argv)
{
	autoagents struct cordon_agents *agents = NULL;
	struct cordon_error err = { 0 };
	struct args args = { 0 };
	int code;

	if (!begin(cli, argc, argv, 0, &args, &code) || !load(cli, &args, &agents, &code))
		return code;
	if (cordon_agents_trust(agents, !args.revoke, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli,
					     json_pack("{s:o, s:b, s:s}", "file", cordon_cli_json_text(agents->path),
						       "trusted", agents->trusted, "sha256", agents->hash));
	if (agents->trusted)
		print_wishes(agents);
	printf("%s %s\n", agents->trusted ? "trusted:" : "no longer trusted:", agents->path);
	return CORDON_EXIT_OK;
}

/* ---- changing ---- */

static int answer_change(struct cordon_cli *cli, const char *what, const char *name, const char *path)
{
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:s, s:s, s:o}", "action", what, "name", name, "file",
							    cordon_cli_json_text(path)));
	printf("%s agent %s: %s\n", what, name, path);
	return CORDON_EXIT_OK;
}

static int run_init(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_root root = { .fd = -1 };
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	struct args args = { 0 };
	int code, r;

	if (!begin(cli, argc, argv, 0, &args, &code))
		return code;
	r = cordon_agents_root(args.root, &root, &err);
	if (r == 0)
		r = cordon_agents_init(&root, args.preset, path, &err);
	cordon_root_done(&root);
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:o}", "file", cordon_cli_json_text(path)));
	printf("Initialized %s\n", path);
	return CORDON_EXIT_OK;
}

static int run_add(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_root root = { .fd = -1 };
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	struct args args = { .draft = { .role = "unknown", .patterns = "src/**" } };
	int code, r;

	if (!begin(cli, argc, argv, 1, &args, &code))
		return code;
	if (args.operand && args.draft.name)
		return cordon_cli_usage(cli, "a name is given twice: %s and %s", args.operand, args.draft.name);
	args.draft.name = args.operand ? args.operand : args.draft.name;
	if (!args.draft.name)
		return cordon_cli_usage(cli, "the name of an agent is expected");
	if (cordon_agent_name_check(args.draft.name, &err) < 0 || cordon_agent_role_check(args.draft.role, &err) < 0 ||
	    cordon_agents_root(args.root, &root, &err) < 0)
		return cordon_cli_fail(cli, &err);
	r = cordon_agents_add(&root, args.config, &args.draft, path, &errors);
	cordon_root_done(&root);
	return r < 0 ? cordon_cli_fail_all(cli, &errors) : answer_change(cli, "Added", args.draft.name, path);
}

static int run_remove(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_root root = { .fd = -1 };
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	struct args args = { 0 };
	int code, r;

	if (!begin(cli, argc, argv, 1, &args, &code))
		return code;
	if (!args.operand)
		return cordon_cli_usage(cli, "the name of an agent is expected");
	if (cordon_agents_root(args.root, &root, &err) < 0)
		return cordon_cli_fail(cli, &err);
	r = cordon_agents_remove(&root, args.config, args.operand, path, &errors);
	cordon_root_done(&root);
	return r < 0 ? cordon_cli_fail_all(cli, &errors) : answer_change(cli, "Removed", args.operand, path);
}

static int run_role_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = { { "name", "ROLE" }, { "description", "WHAT IT IS FOR" }, { 0 } };
	struct args args = { 0 };
	json_t *rows;
	size_t n;
	const struct cordon_agent_role *roles = cordon_agent_roles(&n);
	int code;

	if (!begin(cli, argc, argv, 0, &args, &code))
		return code;
	rows = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(rows, json_pack("{s:s, s:s}", "name", roles[i].name, "description",
						      roles[i].description));
	if (cli->json)
		return cordon_cli_print_json(cli, rows);
	cordon_cli_print_table(cli, columns, rows);
	json_decref(rows);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_agent_init = {
	.name = "agent init",
	.operands = "",
	.summary = "write a first agents.json",
	.details = "The file is written into the root of the repository. 'cordon agent add' adds more agents.\n",
	.options = init_options,
	.run = run_init,
};

const struct cordon_command cordon_cmd_agent_list = {
	.name = "agent list",
	.operands = "",
	.summary = "list the agents of this repository",
	.options = file_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_agent_show = {
	.name = "agent show",
	.operands = "NAME",
	.summary = "show all that counts for an agent",
	.options = file_options,
	.run = run_show,
};

const struct cordon_command cordon_cmd_agent_validate = {
	.name = "agent validate",
	.operands = "[FILE]",
	.summary = "report every error in a file of agents",
	.details = "Exit status: 0 when the file is valid, 1 when it is not.\n",
	.options = file_options,
	.run = run_validate,
};

const struct cordon_command cordon_cmd_agent_trust = {
	.name = "agent trust",
	.operands = "",
	.summary = "let a file of agents reach beyond its repository",
	.details = "Until then env_pass, profile, best_effort, and profile and inject in net, have no effect. The trust is in\n"
		   "the content: a file that changes is not trusted any more.\n",
	.options = trust_options,
	.run = run_trust,
};

const struct cordon_command cordon_cmd_agent_add = {
	.name = "agent add",
	.operands = "NAME",
	.summary = "add an agent to the file",
	.details = "Comments, order and every other byte of the file stay. Without a file, agents.json is made.\n",
	.options = add_options,
	.run = run_add,
};

const struct cordon_command cordon_cmd_agent_remove = {
	.name = "agent remove",
	.operands = "NAME",
	.summary = "remove an agent from the file",
	.options = file_options,
	.run = run_remove,
};

const struct cordon_command cordon_cmd_role_list = {
	.name = "role list",
	.operands = "",
	.summary = "list the known roles of agents",
	.details = "A role says what an agent is for. It gives no rights, and others than these may be used, too.\n",
	.options = NULL,
	.run = run_role_list,
};
