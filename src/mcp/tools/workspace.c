/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tools, and the tools for workspaces. */
#include "mcp/internal.h"
#include "mcp/tools.h"

/* clang-format off */
const struct cordon_mcp_tool *const cordon_mcp_tools[] = {
	&cordon_mcp_project_create,
	&cordon_mcp_project_list,
	&cordon_mcp_project_get,
	&cordon_mcp_project_update,
	&cordon_mcp_project_delete,
	&cordon_mcp_workspace_create,
	&cordon_mcp_workspace_list,
	&cordon_mcp_workspace_get,
	&cordon_mcp_workspace_delete,
	&cordon_mcp_session_start,
	&cordon_mcp_session_send,
	&cordon_mcp_session_output,
	&cordon_mcp_session_get,
	&cordon_mcp_session_list,
	&cordon_mcp_session_exec,
	&cordon_mcp_session_stop,
	&cordon_mcp_run,
	&cordon_mcp_policy_check,
	&cordon_mcp_agent_list,
	&cordon_mcp_agent_execute,
	&cordon_mcp_agent_status,
	&cordon_mcp_agent_cancel,
	&cordon_mcp_orchestrator_list,
	&cordon_mcp_orchestrator_add,
	&cordon_mcp_orchestrator_remove,
	&cordon_mcp_shared_add,
	&cordon_mcp_shared_remove,
	&cordon_mcp_shared_grant,
	&cordon_mcp_shared_revoke,
	&cordon_mcp_workflow_list,
	&cordon_mcp_workflow_run,
	&cordon_mcp_workflow_status,
	&cordon_mcp_workflow_logs,
	&cordon_mcp_workflow_cancel,
	&cordon_mcp_workflow_resume,
	&cordon_mcp_workflow_answer,
	&cordon_mcp_changes_list,
	&cordon_mcp_changes_diff,
	&cordon_mcp_changes_apply,
	&cordon_mcp_changes_discard,
	&cordon_mcp_loop_start,
	&cordon_mcp_loop_status,
	&cordon_mcp_loop_stop,
	&cordon_mcp_grant_request,
	NULL,
};
/* clang-format on */

void cordon_mcp_list_query(const json_t *args, struct cordon_list_query *query)
{
	query->limit = (size_t)cordon_json_integer_or(args, "limit", CORDON_DEFAULT_WORKSPACE_LIST_LIMIT);
	query->offset = (size_t)cordon_json_integer(args, "offset");
}

json_t *cordon_mcp_list_result(const char *key, json_t *records, size_t total)
{
	return json_pack("{s:o, s:I}", key, records, "total", (json_int_t)total);
}

static int workspace_create(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			    struct cordon_error *err)
{
	struct cordon_workspace_request wanted = {
		.id = cordon_json_string(args, "workspace_id"),
		.external_id = cordon_json_string(args, "external_id"),
		.source = cordon_json_string(args, "source"),
	};
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	bool created;
	int r = cordon_workspace_create(request->mcp->store, cordon_json_string(args, "project_id"), &wanted,
					&workspace, &created, err);

	(void)ret_text;
	if (r < 0)
		return r;
	*ret_result = cordon_workspace_json(&workspace);
	json_object_set_new(*ret_result, "created", json_boolean(created));
	return 0;
}

static int workspace_list(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			  struct cordon_error *err)
{
	struct cordon_list_query query = { 0 };
	json_t *workspaces = NULL;
	size_t total;
	int r;

	(void)ret_text;
	cordon_mcp_list_query(args, &query);
	r = cordon_workspace_list(request->mcp->store, cordon_json_string(args, "project_id"), &query, &workspaces,
				  &total, err);
	if (r == 0)
		*ret_result = cordon_mcp_list_result("workspaces", workspaces, total);
	return r;
}

static int workspace_get(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			 struct cordon_error *err)
{
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	int r = cordon_workspace_get(request->mcp->store, cordon_json_string(args, "project_id"),
				     cordon_json_string(args, "workspace_id"), &workspace, err);

	(void)ret_text;
	if (r == 0)
		*ret_result = cordon_workspace_json(&workspace);
	return r;
}

static int workspace_delete(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			    struct cordon_error *err)
{
	const char *id = cordon_json_string(args, "workspace_id");
	bool deleted = false;
	/* As with a project: nobody is asked about one that does not exist. */
	int r = cordon_mcp_may(request)
			? cordon_workspace_delete(request->mcp->store, cordon_json_string(args, "project_id"), id,
						  &deleted, err)
			: 0;

	(void)ret_text;
	if (r == 0)
		*ret_result = json_pack("{s:s, s:b}", "workspace_id", id, "deleted", (int)deleted);
	return r;
}

const struct cordon_mcp_tool cordon_mcp_workspace_create = {
	.name = "workspace_create",
	.title = "Create workspace",
	.apart = true,
	.description =
		"Create a workspace, or return the one that exists (by workspace_id, else by external_id and source) and touch "
		"nothing. The project's AGENTS.md (isolated projects) and .factory are copied into a new one. It lives until "
		"it is deleted.",
	.input = CORDON_INPUT_WORKSPACE_CREATE,
	.output = CORDON_OUTPUT_WORKSPACE_CREATE,
	.always = CORDON_ALWAYS_WORKSPACE_CREATE,
	.idempotent = true,
	.call = workspace_create,
};

const struct cordon_mcp_tool cordon_mcp_workspace_list = {
	.name = "workspace_list",
	.title = "List workspaces",
	.description = "List the workspaces of a project, oldest first.",
	.input = CORDON_INPUT_WORKSPACE_LIST,
	.output = CORDON_OUTPUT_WORKSPACE_LIST,
	.always = CORDON_ALWAYS_WORKSPACE_LIST,
	.read_only = true,
	.idempotent = true,
	.call = workspace_list,
};

const struct cordon_mcp_tool cordon_mcp_workspace_get = {
	.name = "workspace_get",
	.title = "Get workspace",
	.description = "Show a workspace's record.",
	.input = CORDON_INPUT_WORKSPACE_GET,
	.output = CORDON_OUTPUT_WORKSPACE_GET,
	.always = CORDON_ALWAYS_WORKSPACE_GET,
	.read_only = true,
	.idempotent = true,
	.call = workspace_get,
};

const struct cordon_mcp_tool cordon_mcp_workspace_delete = {
	.name = "workspace_delete",
	.title = "Delete workspace",
	.apart = true,
	.description = "Delete a workspace with all its files. Needs a person's approval; refused for the default workspace and while a "
		       "session runs in it. Deleting one that does not exist succeeds.",
	.input = CORDON_INPUT_WORKSPACE_DELETE,
	.output = CORDON_OUTPUT_WORKSPACE_DELETE,
	.always = CORDON_ALWAYS_WORKSPACE_DELETE,
	.destructive = true,
	.idempotent = true,
	.ask = cordon_mcp_ask_delete,
	.call = workspace_delete,
};
