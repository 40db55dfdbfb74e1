/* SPDX-License-Identifier: Apache-2.0 */
/* The tools about projects. */
#include "mcp/internal.h"
#include "mcp/tools.h"

/* Puts what had no effect in the arguments as the client wrote them into the result. */
static void put_notices(const struct cordon_mcp_request *request, json_t *result)
{
	json_auto_t *given = json_copy(json_object_get(request->params, "arguments"));
	json_auto_t *notices = json_array();

	if (given && cordon_original_settings(given, notices) == 0 && json_array_size(notices))
		json_object_set(result, "notices", notices);
}

static int project_create(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			  struct cordon_error *err)
{
	autoprojectrecord struct cordon_project_record project = { 0 };
	int r = cordon_project_create(request->mcp->store, args, NULL, &project, err);

	(void)ret_text;
	if (r < 0)
		return r;
	*ret_result = cordon_project_json(&project);
	put_notices(request, *ret_result);
	return 0;
}

/* Replaces the values of an object by null: the names stay. */
static void hide(json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
		json_object_set_new(object, name, json_null());
}

/* Servers of the agent's get variables and headers, too. */
static void hide_servers(json_t *servers)
{
	const char *name;
	json_t *server;

	json_object_foreach(servers, name, server) {
		hide(json_object_get(server, "env"));
		hide(json_object_get(server, "headers"));
	}
}

void cordon_mcp_hide_values(const struct cordon_mcp_request *request, json_t *projects)
{
	size_t i;
	json_t *project;

	if (!cordon_mcp_is_strange(request))
		return;
	json_array_foreach(projects, i, project) {
		hide(json_object_get(project, "env"));
		hide_servers(json_object_get(json_object_get(project, "agent"), "mcp_servers"));
		hide_servers(json_object_get(project, "mcp_servers"));
	}
}

json_t *cordon_mcp_project_json(const struct cordon_mcp_request *request, const struct cordon_project_record *project)
{
	json_auto_t *list = NULL;
	json_t *record;

	if (request->mcp->options.session)
		return cordon_project_public_json(project);
	list = json_pack("[o]", cordon_project_json(project));
	record = json_array_get(list, 0);
	cordon_mcp_hide_values(request, list);
	return json_incref(record);
}

static int project_get(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		       struct cordon_error *err)
{
	autoprojectrecord struct cordon_project_record project = { 0 };
	int r = cordon_project_get(request->mcp->store, cordon_json_string(args, "project_id"), &project, err);

	(void)ret_text;
	if (r == 0)
		*ret_result = cordon_mcp_project_json(request, &project);
	return r;
}

static int project_list(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	struct cordon_list_query query = { .name_contains = cordon_json_string(args, "name_contains"),
					   .only = cordon_mcp_scope_projects(request->channel) };
	json_t *projects = NULL;
	size_t total;
	int r;

	(void)ret_text;
	cordon_mcp_list_query(args, &query);
	r = cordon_project_list(request->mcp->store, &query, &projects, &total, err);
	cordon_mcp_hide_values(request, projects);
	if (r == 0)
		*ret_result = cordon_mcp_list_result("projects", projects, total);
	return r;
}

static int project_update(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			  struct cordon_error *err)
{
	autoprojectrecord struct cordon_project_record project = { 0 };
	const struct cordon_settings_judge judge = { .judge = cordon_mcp_judge_settings, .data = request };
	json_auto_t *changes = json_copy(args);
	json_t *running = NULL;
	int r;

	(void)ret_text;
	json_object_del(changes, "project_id");
	r = cordon_project_update(request->mcp->store, cordon_json_string(args, "project_id"), changes, &judge,
				  &project, &running, err);
	if (r < 0)
		return r;
	*ret_result = cordon_project_json(&project);
	json_object_set_new(*ret_result, "sessions_with_earlier_settings", running);
	put_notices(request, *ret_result);
	return 0;
}

static int project_delete(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			  struct cordon_error *err)
{
	const char *id = cordon_json_string(args, "project_id");
	bool deleted = false;
	/* Nobody is asked about one that does not exist; then there is nothing to be done. */
	int r = cordon_mcp_may(request) ? cordon_project_delete(request->mcp->store, id, &deleted, err) : 0;

	(void)ret_text;
	if (r == 0)
		*ret_result = json_pack("{s:s, s:b}", "project_id", id, "deleted", (int)deleted);
	return r;
}

const struct cordon_mcp_tool cordon_mcp_project_create = {
	.name = "project_create",
	.title = "Create project",
	.apart = true,
	.description = "Create a project with its default workspace. Returns the record; keep its id. A project lives until it is "
		       "deleted. Settings that are wider than the defaults need a person's approval.",
	.input = CORDON_INPUT_PROJECT_CREATE,
	.output = CORDON_OUTPUT_PROJECT_CREATE,
	.always = CORDON_ALWAYS_PROJECT_CREATE,
	.ask = cordon_mcp_ask_settings,
	.call = project_create,
};

const struct cordon_mcp_tool cordon_mcp_project_get = {
	.name = "project_get",
	.title = "Get project",
	.description = "Show a project's record and settings, workspace_isolation and protected_paths among them.",
	.input = CORDON_INPUT_PROJECT_GET,
	.output = CORDON_OUTPUT_PROJECT_GET,
	.always = CORDON_ALWAYS_PROJECT_GET,
	.read_only = true,
	.idempotent = true,
	.call = project_get,
};

const struct cordon_mcp_tool cordon_mcp_project_list = {
	.name = "project_list",
	.title = "List projects",
	.description = "List projects, oldest first.",
	.input = CORDON_INPUT_PROJECT_LIST,
	.output = CORDON_OUTPUT_PROJECT_LIST,
	.always = CORDON_ALWAYS_PROJECT_LIST,
	.read_only = true,
	.idempotent = true,
	.call = project_list,
};

const struct cordon_mcp_tool cordon_mcp_project_update = {
	.name = "project_update",
	.title = "Update project",
	.apart = true,
	.ordered_by = "project_id",
	.description = "Change settings (see project_create) for sessions that start from now on; what is not named stays. Running sessions keep what they "
		       "started with and are listed. Settings that widen access need a person's approval.",
	.input = CORDON_INPUT_PROJECT_UPDATE,
	.output = CORDON_OUTPUT_PROJECT_UPDATE,
	.always = CORDON_ALWAYS_PROJECT_UPDATE,
	.destructive = true,
	.idempotent = true,
	.ask = cordon_mcp_ask_settings,
	.call = project_update,
};

const struct cordon_mcp_tool cordon_mcp_project_delete = {
	.name = "project_delete",
	.title = "Delete project",
	.apart = true,
	.ordered_by = "project_id",
	.description = "Delete a project with all its workspaces and files. Needs a person's approval; refused while a session runs. "
		       "Deleting one that does not exist succeeds.",
	.input = CORDON_INPUT_PROJECT_DELETE,
	.output = CORDON_OUTPUT_PROJECT_DELETE,
	.always = CORDON_ALWAYS_PROJECT_DELETE,
	.destructive = true,
	.idempotent = true,
	.ask = cordon_mcp_ask_delete,
	.call = project_delete,
};
