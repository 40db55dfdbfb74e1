/* SPDX-License-Identifier: Apache-2.0 */
/* cordon token create, list, revoke: who may use the HTTP server, and for what. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/records.h"
#include "project/token.h"

enum { OPT_PROJECT = 1, OPT_SCOPE, OPT_EXPIRES, OPT_NAME };

struct args {
	const struct cordon_store *store;
	struct cordon_token_request wanted;
	const char *scope;
	json_t *projects; /* as they were written */
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (key == OPT_PROJECT)
		return cordon_cli_append_text(args->projects, "--project", arg, err);
	if (key == OPT_SCOPE)
		args->scope = arg;
	else if (key == OPT_NAME)
		args->wanted.name = arg;
	else if (cordon_parse_duration(arg, 1000, &args->wanted.expiry_ms) < 0 || !args->wanted.expiry_ms)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--expires needs a duration such as 720h, not %s",
				   arg);
	return 0;
}

/* Finds what the projects mean; each must exist. */
static int find_projects(const struct cordon_store *store, const json_t *named, json_t *ids, struct cordon_error *err)
{
	size_t i;
	json_t *name;

	json_array_foreach(named, i, name) {
		autoprojectrecord struct cordon_project_record project = { 0 };
		char id[CORDON_ID_SIZE];
		int r = cordon_project_find(store, json_string_value(name), 0, id, err);

		if (r == 0)
			r = cordon_project_get(store, id, &project, err);
		if (r < 0)
			return r;
		json_array_append_new(ids, json_string(id));
	}
	return 0;
}

static int create(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	json_auto_t *named = json_array();
	json_auto_t *ids = json_array();
	struct args args = { .scope = "run", .projects = named };
	autotokenrecord struct cordon_token_record record = { 0 };
	autofree char *project = NULL;
	char token[CORDON_TOKEN_SIZE];
	struct cordon_error err = { 0 };
	json_t *answer;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	if (cordon_token_scope_parse(args.scope, &args.wanted.scope, &project, &err) < 0 ||
	    (project && cordon_cli_append_text(named, "--scope", project, &err) < 0))
		return cordon_cli_fail(cli, &err);
	if (!cordon_cli_open_store(cli, &store, &r))
		return r;
	args.wanted.projects = ids;
	if (find_projects(&store, named, ids, &err) < 0 ||
	    cordon_token_create(&store, &args.wanted, &record, token, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (!cli->json) {
		/* The token is the data, so that a script can take it; it is shown once. */
		cordon_cli_log(cli, "TOKEN", "%s with the scope %s; it is not shown again", record.id,
			       cordon_token_scope_name(record.scope));
		puts(token);
		return CORDON_EXIT_OK;
	}
	answer = cordon_token_json(&record);
	json_object_set_new(answer, "token", json_string(token));
	return cordon_cli_print_json(cli, answer);
}

static int list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = { { "id", "ID" },
							{ "name", "NAME" },
							{ "scope", "SCOPE" },
							{ "projects", "PROJECTS" },
							{ "expires_at", "EXPIRES" },
							{ NULL, NULL } };
	autostore struct cordon_store store = CORDON_STORE_NONE;
	autotokens struct cordon_tokens tokens = { 0 };
	struct cordon_error err = { 0 };
	json_auto_t *records = json_array();
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	if (!cordon_cli_open_store(cli, &store, &r))
		return r;
	if (cordon_tokens_load(&store, &tokens, &err) < 0)
		return cordon_cli_fail(cli, &err);
	for (size_t i = 0; i < tokens.n; i++)
		json_array_append_new(records, cordon_token_json(&tokens.items[i]));
	if (cli->json)
		return cordon_cli_print_json(cli, json_incref(records));
	cordon_cli_print_table(cli, columns, records);
	return CORDON_EXIT_OK;
}

static int revoke_one(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	char id[CORDON_ID_SIZE];
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first != 1)
		return cordon_cli_usage(cli, "one TOKEN is expected: its id or its name");
	if (!cordon_cli_open_store(cli, &store, &r))
		return r;
	if (cordon_token_revoke(&store, argv[first], id, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, json_pack("{s:s, s:b}", "id", id, "revoked", 1));
}

static const struct cordon_option none[] = { { 0 } };

static const struct cordon_option create_options[] = {
	{ "scope", 0, CORDON_ARG_TEXT, "SCOPE", "read, run or admin; default: run", OPT_SCOPE },
	{ "project", 0, CORDON_ARG_TEXT, "PROJECT", "only in this project; may be given several times", OPT_PROJECT },
	{ "expires", 0, CORDON_ARG_TEXT, "DURATION", "how long it is valid, as in 720h; default: until it is revoked",
	  OPT_EXPIRES },
	{ "name", 0, CORDON_ARG_TEXT, "NAME", "what people call it", OPT_NAME },
	{ 0 },
};

const struct cordon_command cordon_cmd_token_create = {
	.name = "token create",
	.operands = "",
	.summary = "make a token for the HTTP server and print it, once",
	.details = "read sees; run also starts and stops sessions, agents and workflows; admin also changes settings and grants, and\n"
		   "deletes. The older words admin:ro, project:ID and project:ID:ro are understood.\n",
	.options = create_options,
	.run = create,
};

const struct cordon_command cordon_cmd_token_list = {
	.name = "token list",
	.operands = "",
	.summary = "list the tokens of the HTTP server",
	.options = none,
	.run = list,
};

const struct cordon_command cordon_cmd_token_revoke = {
	.name = "token revoke",
	.operands = "TOKEN",
	.summary = "revoke a token; streams that it opened end at once",
	.options = none,
	.run = revoke_one,
};
