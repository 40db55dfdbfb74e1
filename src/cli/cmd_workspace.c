/* SPDX-License-Identifier: Apache-2.0 */
/* cordon workspace: creates, lists, shows, syncs and deletes workspaces of a project. */
#include "cli/commands.h"
#include "cli/records.h"

enum { OPT_ID = 1, OPT_EXTERNAL_ID, OPT_SOURCE, OPT_LIMIT };

struct args {
	struct cordon_workspace_request request;
	struct cordon_list_query query;
	unsigned int find;
	char project[CORDON_ID_SIZE], workspace[CORDON_ID_SIZE];
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	switch (key) {
	case OPT_ID:
		args->request.id = arg;
		return 0;
	case OPT_EXTERNAL_ID:
		args->request.external_id = arg;
		return 0;
	case OPT_SOURCE:
		args->request.source = arg;
		return 0;
	default:
		return cordon_cli_parse_limit(arg, &args->query.limit, err);
	}
}

/* Parses the options, opens the store and finds what the operands name: a project, and a workspace if two are `wanted`.
 * Returns false with the exit code on failure. */
static bool begin(struct cordon_cli *cli, int argc, char **argv, int wanted, struct args *args,
		  struct cordon_store *ret_store, int *ret_exit)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);

	if (r != 0) {
		*ret_exit = r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
		return false;
	}
	if (argc - first != wanted) {
		*ret_exit = cordon_cli_usage(cli, wanted == 1 ? "a project is expected"
							      : "a project and a workspace are expected");
		return false;
	}
	return cordon_cli_open_store(cli, ret_store, ret_exit) &&
	       cordon_cli_find_project(cli, ret_store, argv[first], 0, args->project, ret_exit) &&
	       (wanted == 1 || cordon_cli_find_workspace(cli, ret_store, args->project, argv[first + 1], args->find,
							 args->workspace, ret_exit));
}

/* Prints the record with the workspace's path on this machine, which the record itself does not have. */
static int answer(const struct cordon_cli *cli, const struct cordon_store *store,
		  const struct cordon_workspace_record *workspace, const bool *created)
{
	json_t *shown = cordon_workspace_json(workspace);
	char path[CORDON_PATH_MAX];

	if (created)
		json_object_set_new(shown, "created", json_boolean(*created));
	if (cordon_workspace_path(store, workspace->project_id, workspace->id, path, NULL) == 0)
		json_object_set_new(shown, "path", cordon_cli_json_text(path));
	return cordon_cli_answer(cli, shown);
}

static int run_create(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	bool created;
	int code;

	if (!begin(cli, argc, argv, 1, &args, &store, &code))
		return code;
	if (cordon_workspace_create(&store, args.project, &args.request, &workspace, &created, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return answer(cli, &store, &workspace, &created);
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = {
		{ "id", "ID" },
		{ "source", "SOURCE" },
		{ "external_id", "EXTERNAL ID" },
		{ "created_at", "CREATED" },
		{ "last_session_at", "LAST SESSION" },
		{ 0 },
	};
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	json_t *workspaces = NULL;
	size_t total;
	int code;

	if (!begin(cli, argc, argv, 1, &args, &store, &code))
		return code;
	if (cordon_workspace_list(&store, args.project, &args.query, &workspaces, &total, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:o, s:I}", "workspaces", workspaces, "total",
							    (json_int_t)total));
	cordon_cli_print_table(cli, columns, workspaces);
	json_decref(workspaces);
	return CORDON_EXIT_OK;
}

static int run_get(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	int code;

	if (!begin(cli, argc, argv, 2, &args, &store, &code))
		return code;
	if (cordon_workspace_get(&store, args.project, args.workspace, &workspace, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return answer(cli, &store, &workspace, NULL);
}

static int run_sync(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	json_t *copied = NULL;
	int code;

	if (!begin(cli, argc, argv, 2, &args, &store, &code))
		return code;
	if (cordon_workspace_sync(&store, args.project, args.workspace, &copied, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, json_pack("{s:s, s:o}", "workspace_id", args.workspace, "copied", copied));
}

static int run_delete(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { .find = CORDON_FIND_TO_DELETE };
	struct cordon_error err = { 0 };
	bool deleted;
	int code;

	if (!begin(cli, argc, argv, 2, &args, &store, &code))
		return code;
	if (cordon_workspace_delete(&store, args.project, args.workspace, &deleted, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, json_pack("{s:s, s:b}", "workspace_id", args.workspace, "deleted", (int)deleted));
}

static const struct cordon_option create_options[] = {
	{ "id", 0, CORDON_ARG_TEXT, "ID", "use this id: 1 to 64 of a-z, 0-9 and '-' (default: a new UUID)", OPT_ID },
	{ "external-id", 0, CORDON_ARG_TEXT, "TEXT", "id of the owner of the workspace in another system",
	  OPT_EXTERNAL_ID },
	{ "source", 0, CORDON_ARG_TEXT, "TEXT", "the system that the external id comes from", OPT_SOURCE },
	{ 0 },
};

static const struct cordon_option list_options[] = {
	{ "limit", 0, CORDON_ARG_TEXT, "N", "at most this many, the oldest", OPT_LIMIT },
	{ 0 },
};

const struct cordon_command cordon_cmd_workspace_create = {
	.name = "workspace create",
	.operands = "PROJECT",
	.summary = "create a workspace, or show the one that exists",
	.details = "Copies the project's AGENTS.md (isolated projects only) and .factory, never over anything. A workspace\n"
		   "that exists is left as it is.\n",
	.options = create_options,
	.run = run_create,
};

const struct cordon_command cordon_cmd_workspace_list = {
	.name = "workspace list",
	.operands = "PROJECT",
	.summary = "list the workspaces of a project, oldest first",
	.options = list_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_workspace_get = {
	.name = "workspace get",
	.operands = "PROJECT WORKSPACE",
	.summary = "show a workspace",
	.run = run_get,
};

const struct cordon_command cordon_cmd_workspace_sync = {
	.name = "workspace sync",
	.operands = "PROJECT WORKSPACE",
	.summary = "bring the project's AGENTS.md and .factory into a workspace",
	.details = "Replaces the workspace's files of these names; files that only the workspace has stay. AGENTS.md comes with\n"
		   "isolated projects only. Refused while a session runs in it.\n",
	.run = run_sync,
};

const struct cordon_command cordon_cmd_workspace_delete = {
	.name = "workspace delete",
	.operands = "PROJECT WORKSPACE",
	.summary = "delete a workspace with everything in it",
	.details = "Refused for the default workspace and while a session runs in it. Deleting one that does not exist succeeds.\n",
	.run = run_delete,
};
