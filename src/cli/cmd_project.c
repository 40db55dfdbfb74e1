/* SPDX-License-Identifier: Apache-2.0 */
/* cordon project: create, list, get, update and delete projects. */
#include "cli/commands.h"
#include "cli/recipe_options.h"
#include "cli/records.h"

enum {
	OPT_NAME = 1,
	OPT_DESCRIPTION,
	OPT_ISOLATION,
	OPT_NO_ISOLATION,
	OPT_PROTECT,
	OPT_NO_PROTECT,
	OPT_REMOTE_URL,
	OPT_NO_GIT,
	OPT_TEMPLATE,
	OPT_NET,
	OPT_PROFILE,
	OPT_NO_PROFILE,
	OPT_SHARE,
	OPT_NO_SHARE,
	OPT_HOME,
	OPT_ENV,
	OPT_ENV_PASS,
	OPT_MAX_SESSIONS,
	OPT_MAX_DEPTH,
	OPT_MAX_AGENTS,
	OPT_NO_COW,
	OPT_DEFAULT_PROTECT,
	OPT_NO_DEFAULT_PROTECT,
	OPT_MODEL,
	OPT_AUTONOMY,
	OPT_REASONING,
	OPT_DISABLE_TOOL,
	OPT_NAME_CONTAINS,
	OPT_LIMIT,
};

/* The options that create and update have in common. */
/* clang-format off */
#define SETTING_OPTIONS                                                                                              \
	{ "description", 0, CORDON_ARG_TEXT, "TEXT", "what the project is for", OPT_DESCRIPTION },                    \
	{ "isolation", 0, CORDON_ARG_NONE, NULL, "agents see their own workspace only", OPT_ISOLATION },              \
	{ "protect", 0, CORDON_ARG_TEXT, "PATH", "path in the workspace that agents can't change; repeatable",        \
	  OPT_PROTECT },                                                                                              \
	{ "no-default-protect", 0, CORDON_ARG_NONE, NULL, "leave what the host would execute unprotected",            \
	  OPT_NO_DEFAULT_PROTECT },                                                                                   \
	{ "remote-url", 0, CORDON_ARG_TEXT, "URL", "where the repository comes from", OPT_REMOTE_URL },               \
	{ "net", 0, CORDON_ARG_HOSTS, "HOSTS|host|none|profile", "hosts that agents reach (default: host, which is all)", \
	  OPT_NET },                                                                                                  \
	{ "profile", 0, CORDON_ARG_TEXT, "NAME", "profile of the agent's program; repeatable", OPT_PROFILE },         \
	{ "share", 0, CORDON_ARG_DIR, "DIR[:PATH][:ro]", "directory or file of the host for all agents; repeatable",  \
	  OPT_SHARE },                                                                                                \
	{ "home", 0, CORDON_ARG_DIR, "private|workspace|DIR",                                                         \
	  "a new home for each session, one that stays for each workspace, or DIR for all", OPT_HOME },               \
	{ "env", 0, CORDON_ARG_TEXT, "NAME=VALUE", "variable of the agents' environment; repeatable", OPT_ENV },      \
	{ "env-pass", 0, CORDON_ARG_TEXT, "NAME", "variable taken from cordon's environment; repeatable",             \
	  OPT_ENV_PASS },                                                                                             \
	{ "max-sessions", 0, CORDON_ARG_TEXT, "N", "sessions at once (default: 10)", OPT_MAX_SESSIONS },              \
	{ "max-recursion-depth", 0, CORDON_ARG_TEXT, "N", "sessions started by sessions (default: 3)",                \
	  OPT_MAX_DEPTH },                                                                                            \
	{ "max-agents-per-session", 0, CORDON_ARG_TEXT, "N", "child sessions of one session (default: 50)",           \
	  OPT_MAX_AGENTS },                                                                                           \
	CORDON_RECIPE_OPTION(CORDON_RECIPE_TIMEOUT, "timeout", CORDON_ARG_TEXT, "DURATION", "how long a session may take"), \
	CORDON_RECIPE_OPTION(CORDON_RECIPE_MEMORY, "memory", CORDON_ARG_TEXT, "SIZE", "memory of a session"),         \
	CORDON_RECIPE_OPTION(CORDON_RECIPE_PIDS, "pids", CORDON_ARG_TEXT, "N", "processes of a session"),             \
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_PROJECTS),                                                             \
	CORDON_RECIPE_OPTION(CORDON_RECIPE_BEST_EFFORT, "best-effort", CORDON_ARG_NONE, NULL,                         \
			     "start sessions although a protection is missing"),                                      \
	CORDON_RECIPE_OPTION(CORDON_RECIPE_COW, "cow", CORDON_ARG_NONE, NULL, "sessions work in copy-on-write views"), \
	{ "no-cow", 0, CORDON_ARG_NONE, NULL, "sessions change the workspace itself (default)", OPT_NO_COW },         \
	CORDON_RECIPE_OPTION(CORDON_RECIPE_GIT, "git", CORDON_ARG_CHOICE, "default|none|read|commit",                 \
			     "the repository: not there, read-only, or a copy whose commits are taken over"),         \
	{ "model", 0, CORDON_ARG_TEXT, "TEXT", "passed on to the agent", OPT_MODEL },                                 \
	{ "autonomy", 0, CORDON_ARG_TEXT, "TEXT", "passed on to the agent", OPT_AUTONOMY },                           \
	{ "reasoning", 0, CORDON_ARG_TEXT, "TEXT", "passed on to the agent", OPT_REASONING },                         \
	{ "disable-tool", 0, CORDON_ARG_TEXT, "NAME", "passed on to the agent; repeatable", OPT_DISABLE_TOOL }
/* clang-format on */

static const struct cordon_option create_options[] = {
	SETTING_OPTIONS,
	{ "no-git", 0, CORDON_ARG_NONE, NULL, "make no repository in the default workspace", OPT_NO_GIT },
	{ "template", 0, CORDON_ARG_DIR, "DIR", "copy AGENTS.md and .factory from here", OPT_TEMPLATE },
	{ 0 },
};

static const struct cordon_option update_options[] = {
	{ "name", 0, CORDON_ARG_TEXT, "TEXT", "a new name", OPT_NAME },
	SETTING_OPTIONS,
	{ "no-isolation", 0, CORDON_ARG_NONE, NULL, "agents see the whole project", OPT_NO_ISOLATION },
	{ "no-protect", 0, CORDON_ARG_NONE, NULL, "protect nothing", OPT_NO_PROTECT },
	{ "default-protect", 0, CORDON_ARG_NONE, NULL, "protect what the host would execute again", OPT_DEFAULT_PROTECT },
	{ "no-profile", 0, CORDON_ARG_NONE, NULL, "use no profile", OPT_NO_PROFILE },
	{ "no-share", 0, CORDON_ARG_NONE, NULL, "share nothing", OPT_NO_SHARE },
	{ 0 },
};

struct settings {
	json_t *object;
	struct cordon_template template;
};

/* Returns the array under `key` and makes it if it is missing. */
static json_t *array_at(json_t *object, const char *key)
{
	json_t *array = json_object_get(object, key);

	if (!array && json_object_set_new(object, key, json_array()) == 0)
		array = json_object_get(object, key);
	return array;
}

static json_t *object_at(json_t *object, const char *key)
{
	json_t *found = json_object_get(object, key);

	if (!found && json_object_set_new(object, key, json_object()) == 0)
		found = json_object_get(object, key);
	return found;
}

static int set_env(json_t *settings, const char *arg, struct cordon_error *err)
{
	const char *equals = strchr(arg, '=');
	char name[CORDON_NAME_MAX];

	if (!equals || cordon_copy(name, sizeof(name), arg, (size_t)(equals - arg)) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--env is NAME=VALUE, not %.80s", arg);
	return cordon_cli_set_text(object_at(settings, "env"), name, equals + 1, err);
}

static int set_flag(json_t *settings, const char *key, bool value)
{
	return json_object_set_new(settings, key, json_boolean(value)) < 0 ? -ENOMEM : 0;
}

static int set_limit(json_t *settings, int key, const char *arg, struct cordon_error *err)
{
	const char *name = key == OPT_MAX_SESSIONS ? "max_sessions"
			   : key == OPT_MAX_DEPTH  ? "max_recursion_depth"
						   : "max_agents_per_session";
	uint64_t value;

	if (cordon_parse_u64(arg, 0, INT64_MAX, &value) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a value for %s: %.80s", name, arg);
	if (json_object_set_new(object_at(settings, "limits"), name, json_integer((json_int_t)value)) < 0)
		return cordon_fail_errno(err, -ENOMEM, "%s", name);
	return 0;
}

/* A setting that each run has, by its row in the table. */
static int set_row(json_t *settings, cordon_recipe_id id, const char *arg, struct cordon_error *err)
{
	const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
	const char *below = cordon_recipe_limit(row->project);
	uint64_t value = 0, unit = row->unit ? row->unit : 1;

	if (row->type == CORDON_RECIPE_FLAG)
		return set_flag(settings, row->project, true);
	if (row->type == CORDON_RECIPE_WORD)
		return cordon_cli_set_text(settings, row->project, arg, err);
	/* A number that is out of bounds is refused together with what else is wrong with the settings. */
	if (cordon_parse_u64(arg, 0, INT64_MAX, &value) < 0) {
		if (row->parse(arg, &value, err) < 0)
			return cordon_error_prefix(err, -EINVAL, "%s", row->project);
		/* A part of a unit is rounded up, so that a short limit never becomes no limit. */
		value = value / unit + (value % unit != 0);
	}
	if (json_object_set_new(below ? object_at(settings, "limits") : settings, below ? below : row->project,
				json_integer((json_int_t)value)) < 0)
		return cordon_fail_errno(err, -ENOMEM, "%s", row->project);
	return 0;
}

static int set_setting(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct settings *settings = data;
	json_t *object = settings->object;

	if (cordon_recipe_owns(key))
		return set_row(object, (cordon_recipe_id)(key - CORDON_KEY_RECIPE), arg, err);
	switch (key) {
	case OPT_NAME:
		return cordon_cli_set_text(object, "name", arg, err);
	case OPT_DESCRIPTION:
		return cordon_cli_set_text(object, "description", arg, err);
	case OPT_ISOLATION:
		return set_flag(object, "workspace_isolation", true);
	case OPT_NO_ISOLATION:
		return set_flag(object, "workspace_isolation", false);
	case OPT_PROTECT:
		return cordon_cli_append_text(array_at(object, "protected_paths"), "--protect", arg, err);
	case OPT_NO_PROTECT:
		return array_at(object, "protected_paths") ? 0 : -ENOMEM;
	case OPT_REMOTE_URL:
		return cordon_cli_set_text(object, "remote_url", arg, err);
	case OPT_NO_GIT:
		return set_flag(object, "init_git", false);
	case OPT_TEMPLATE:
		settings->template.dir = arg;
		return 0;
	case OPT_NET:
		return cordon_cli_set_hosts(object, "net", arg, err);
	case OPT_PROFILE:
		return cordon_cli_append_text(array_at(object, "profile"), "--profile", arg, err);
	case OPT_NO_PROFILE:
		return array_at(object, "profile") ? 0 : -ENOMEM;
	case OPT_SHARE:
		return cordon_cli_append_text(array_at(object, "shares"), "--share", arg, err);
	case OPT_NO_SHARE:
		return array_at(object, "shares") ? 0 : -ENOMEM;
	case OPT_HOME:
		return cordon_cli_set_text(object, "home", arg, err);
	case OPT_ENV:
		return set_env(object, arg, err);
	case OPT_ENV_PASS:
		return cordon_cli_append_text(array_at(object, "env_pass"), "--env-pass", arg, err);
	case OPT_DEFAULT_PROTECT:
		return set_flag(object, "default_protection", true);
	case OPT_NO_DEFAULT_PROTECT:
		return set_flag(object, "default_protection", false);
	case OPT_NO_COW:
		return set_flag(object, "cow", false);
	case OPT_MODEL:
		return cordon_cli_set_text(object, "model", arg, err);
	case OPT_AUTONOMY:
		return cordon_cli_set_text(object, "autonomy", arg, err);
	case OPT_REASONING:
		return cordon_cli_set_text(object, "reasoning", arg, err);
	case OPT_DISABLE_TOOL:
		return cordon_cli_append_text(array_at(object, "disabled_tools"), "--disable-tool", arg, err);
	default:
		return set_limit(object, key, arg, err);
	}
}

/* Operands after the first are the agent's command. */
static int take_command(json_t *settings, int argc, char **argv, int at, struct cordon_error *err)
{
	int r = 0;

	for (; r == 0 && at < argc; at++)
		r = cordon_cli_append_text(array_at(settings, "agent_command"), "the command", argv[at], err);
	return r;
}

static int run_create(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	json_auto_t *object = json_object();
	struct settings settings = { .object = object };
	struct cordon_error err = { 0 };
	autoprojectrecord struct cordon_project_record project = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set_setting, &settings, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first == argc)
		return cordon_cli_usage(cli, "a name is expected");
	if (cordon_cli_set_text(object, "name", argv[first], &err) < 0 ||
	    take_command(object, argc, argv, first + 1, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (!cordon_cli_open_store(cli, &store, &r))
		return r;
	if (cordon_project_create(&store, object, settings.template.dir ? &settings.template : NULL, &project, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, cordon_project_json(&project));
}

static const struct cordon_option import_options[] = {
	{ "name", 0, CORDON_ARG_TEXT, "TEXT", "the project's name (default: that of the directory)", OPT_NAME },
	SETTING_OPTIONS,
	{ "no-git", 0, CORDON_ARG_NONE, NULL, "make no repository if the directory is none", OPT_NO_GIT },
	{ 0 },
};

static void print_notices(const struct cordon_cli *cli, const json_t *notices)
{
	for (size_t i = 0; i < json_array_size(notices); i++)
		cordon_cli_log(cli, "NOTICE", "%s", json_string_value(json_array_get(notices, i)));
}

static int run_import(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = {
		{ "id", "ID" },
		{ "name", "NAME" },
		{ "default_workspace_id", "WORKSPACE" },
		{ 0 },
	};
	autostore struct cordon_store store = CORDON_STORE_NONE;
	json_auto_t *object = json_object();
	json_auto_t *notices = json_array();
	json_auto_t *projects = NULL;
	struct settings settings = { .object = object };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set_setting, &settings, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first == argc)
		return cordon_cli_usage(cli, "a directory is expected");
	if (take_command(object, argc, argv, first + 1, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (!cordon_cli_open_store(cli, &store, &r))
		return r;
	r = cordon_project_import(&store, argv[first], object, &projects, notices, &err);
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:O, s:O}", "projects", projects, "notices", notices));
	print_notices(cli, notices);
	cordon_cli_print_table(cli, columns, projects);
	return CORDON_EXIT_OK;
}

static int run_update(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	json_auto_t *object = json_object();
	struct settings settings = { .object = object };
	struct cordon_error err = { 0 };
	autoprojectrecord struct cordon_project_record project = { 0 };
	json_t *answer, *running = NULL;
	char id[CORDON_ID_SIZE];
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set_setting, &settings, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first == argc)
		return cordon_cli_usage(cli, "a project is expected");
	if (take_command(object, argc, argv, first + 1, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (json_object_size(object) == 0)
		return cordon_cli_usage(cli, "nothing to change was given");
	if (!cordon_cli_open_store(cli, &store, &r) || !cordon_cli_find_project(cli, &store, argv[first], 0, id, &r))
		return r;
	if (cordon_project_update(&store, id, object, NULL, &project, &running, &err) < 0)
		return cordon_cli_fail(cli, &err);
	answer = cordon_project_json(&project);
	json_object_set_new(answer, "sessions_with_earlier_settings", running);
	return cordon_cli_answer(cli, answer);
}

static int set_listing(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct cordon_list_query *query = data;

	if (key == OPT_LIMIT)
		return cordon_cli_parse_limit(arg, &query->limit, err);
	query->name_contains = arg;
	return 0;
}

static const struct cordon_option list_options[] = {
	{ "name-contains", 0, CORDON_ARG_TEXT, "TEXT", "only projects with this in their name, ignoring case",
	  OPT_NAME_CONTAINS },
	{ "limit", 0, CORDON_ARG_TEXT, "N", "at most this many, the oldest", OPT_LIMIT },
	{ 0 },
};

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = {
		{ "id", "ID" },
		{ "name", "NAME" },
		{ "workspace_isolation", "ISOLATION" },
		{ "protected_paths", "PROTECTED" },
		{ "created_at", "CREATED" },
		{ 0 },
	};
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct cordon_list_query query = { 0 };
	struct cordon_error err = { 0 };
	json_t *projects = NULL;
	size_t total;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set_listing, &query, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "no argument is expected, not %s", argv[first]);
	if (!cordon_cli_open_store(cli, &store, &r))
		return r;
	if (cordon_project_list(&store, &query, &projects, &total, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli,
					     json_pack("{s:o, s:I}", "projects", projects, "total", (json_int_t)total));
	cordon_cli_print_table(cli, columns, projects);
	json_decref(projects);
	return CORDON_EXIT_OK;
}

static int no_option(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err;
	return 0;
}

/* Opens the store and finds the project that the one operand of get and delete names. Returns false with the exit code
 * on failure. */
static bool begin(struct cordon_cli *cli, int argc, char **argv, unsigned int flags, struct cordon_store *ret_store,
		  char ret_id[static CORDON_ID_SIZE], int *ret_exit)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, no_option, NULL, &first, &err);

	if (r != 0)
		*ret_exit = r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	else if (argc - first != 1)
		*ret_exit = cordon_cli_usage(cli, "one project is expected");
	return r == 0 && argc - first == 1 && cordon_cli_open_store(cli, ret_store, ret_exit) &&
	       cordon_cli_find_project(cli, ret_store, argv[first], flags, ret_id, ret_exit);
}

static int run_get(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct cordon_error err = { 0 };
	autoprojectrecord struct cordon_project_record project = { 0 };
	char id[CORDON_ID_SIZE];
	int code;

	if (!begin(cli, argc, argv, 0, &store, id, &code))
		return code;
	if (cordon_project_get(&store, id, &project, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, cordon_project_json(&project));
}

static int run_delete(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct cordon_error err = { 0 };
	char id[CORDON_ID_SIZE];
	bool deleted;
	int code;

	if (!begin(cli, argc, argv, CORDON_FIND_TO_DELETE, &store, id, &code))
		return code;
	if (cordon_project_delete(&store, id, &deleted, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, json_pack("{s:s, s:b}", "project_id", id, "deleted", (int)deleted));
}

const struct cordon_command cordon_cmd_project_create = {
	.name = "project create",
	.operands = "NAME [-- CMD [ARG]...]",
	.summary = "create a project with its default workspace",
	.details = "CMD is the agent that sessions of the project run. With --isolation an agent sees its own workspace at\n"
		   "/workspace and nothing else of the project; only then are paths protected.\n",
	.options = create_options,
	.run = run_create,
};

const struct cordon_command cordon_cmd_project_import = {
	.name = "project import",
	.operands = "DIR [-- CMD [ARG]...]",
	.summary = "make a project of a repository, or take over a store of projects",
	.details = "Every workspace of the new project begins with a copy of DIR. If DIR holds projects/ID/metadata.json, these\n"
		   "projects are taken over with their workspaces instead. Follows no link; on failure nothing has changed.\n",
	.options = import_options,
	.run = run_import,
};

const struct cordon_command cordon_cmd_project_list = {
	.name = "project list",
	.operands = "",
	.summary = "list projects, oldest first",
	.options = list_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_project_get = {
	.name = "project get",
	.operands = "PROJECT",
	.summary = "show a project's settings",
	.run = run_get,
};

const struct cordon_command cordon_cmd_project_update = {
	.name = "project update",
	.operands = "PROJECT [-- CMD [ARG]...]",
	.summary = "change settings for the sessions that start from now on",
	.details = "What is not named stays as it is; --protect, --env and --env-pass replace their whole list. Running\n"
		   "sessions keep what they started with and are listed.\n",
	.options = update_options,
	.run = run_update,
};

const struct cordon_command cordon_cmd_project_delete = {
	.name = "project delete",
	.operands = "PROJECT",
	.summary = "delete a project with everything in it",
	.details = "Refused while a session runs. Deleting an id that does not exist succeeds.\n",
	.run = run_delete,
};
