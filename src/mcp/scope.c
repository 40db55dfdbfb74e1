/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the token of a client allows: tool, scope and project, in one table. Names of projects and sessions of others look as
 * if they did not exist; a tool that the token is not for says which scope it needs.
 */
#include "job/session.h"
#include "mcp/internal.h"

/* To which project a call belongs. */
enum belongs {
	TO_PROJECT, /* the arguments name it, or one of its sessions */
	TO_LIST,    /* to those of the client: the tool lists only them, if the arguments name none */
	TO_NONE,    /* to the whole machine: no token for some projects allows it */
};

/* clang-format off */
static const struct line {
	const char *tool;
	cordon_token_scope scope;
	enum belongs belongs;
} table[] = {
	{ "project_create",	 CORDON_SCOPE_ADMIN, TO_NONE },
	{ "project_list",	 CORDON_SCOPE_READ,  TO_LIST },
	{ "project_get",	 CORDON_SCOPE_READ,  TO_PROJECT },
	{ "project_update",	 CORDON_SCOPE_ADMIN, TO_PROJECT },
	{ "project_delete",	 CORDON_SCOPE_ADMIN, TO_PROJECT },
	{ "workspace_create",	 CORDON_SCOPE_RUN,   TO_PROJECT },
	{ "workspace_list",	 CORDON_SCOPE_READ,  TO_PROJECT },
	{ "workspace_get",	 CORDON_SCOPE_READ,  TO_PROJECT },
	{ "workspace_delete",	 CORDON_SCOPE_ADMIN, TO_PROJECT },
	{ "session_start",	 CORDON_SCOPE_RUN,   TO_PROJECT },
	{ "session_send",	 CORDON_SCOPE_RUN,   TO_PROJECT },
	{ "session_output",	 CORDON_SCOPE_READ,  TO_PROJECT },
	{ "session_get",	 CORDON_SCOPE_READ,  TO_PROJECT },
	{ "session_list",	 CORDON_SCOPE_READ,  TO_LIST },
	{ "session_exec",	 CORDON_SCOPE_RUN,   TO_PROJECT },
	{ "session_stop",	 CORDON_SCOPE_RUN,   TO_PROJECT },
	{ "run",		 CORDON_SCOPE_RUN,   TO_PROJECT },
	{ "policy_check",	 CORDON_SCOPE_READ,  TO_PROJECT },
	{ "agent_list",		 CORDON_SCOPE_READ,  TO_NONE },
	{ "agent_execute",	 CORDON_SCOPE_RUN,   TO_NONE },
	{ "agent_status",	 CORDON_SCOPE_READ,  TO_NONE },
	{ "agent_cancel",	 CORDON_SCOPE_RUN,   TO_NONE },
	{ "orchestrator_list",	 CORDON_SCOPE_READ,  TO_NONE },
	{ "orchestrator_add",	 CORDON_SCOPE_ADMIN, TO_NONE },
	{ "orchestrator_remove", CORDON_SCOPE_ADMIN, TO_NONE },
	{ "shared_add",		 CORDON_SCOPE_ADMIN, TO_NONE },
	{ "shared_remove",	 CORDON_SCOPE_ADMIN, TO_NONE },
	{ "shared_grant",	 CORDON_SCOPE_ADMIN, TO_NONE },
	{ "shared_revoke",	 CORDON_SCOPE_ADMIN, TO_NONE },
	{ "workflow_list",	 CORDON_SCOPE_READ,  TO_NONE },
	{ "workflow_run",	 CORDON_SCOPE_RUN,   TO_NONE },
	{ "workflow_status",	 CORDON_SCOPE_READ,  TO_NONE },
	{ "workflow_logs",	 CORDON_SCOPE_READ,  TO_NONE },
	{ "workflow_cancel",	 CORDON_SCOPE_RUN,   TO_NONE },
	{ "workflow_resume",	 CORDON_SCOPE_RUN,   TO_NONE },
	{ "workflow_answer",	 CORDON_SCOPE_RUN,   TO_NONE },
	{ "changes_list",	 CORDON_SCOPE_READ,  TO_NONE },
	{ "changes_diff",	 CORDON_SCOPE_READ,  TO_NONE },
	{ "changes_apply",	 CORDON_SCOPE_ADMIN, TO_NONE },
	{ "changes_discard",	 CORDON_SCOPE_ADMIN, TO_NONE },
	{ "loop_start",		 CORDON_SCOPE_ADMIN, TO_NONE }, /* results leave their views */
	{ "loop_status",	 CORDON_SCOPE_READ,  TO_NONE },
	{ "loop_stop",		 CORDON_SCOPE_RUN,   TO_NONE },
	{ "grant_request",	 CORDON_SCOPE_RUN,   TO_PROJECT }, /* asks; a person answers */
};
/* clang-format on */

static const struct line *find(const char *tool)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(table); i++)
		if (cordon_streq(table[i].tool, tool))
			return &table[i];
	return NULL;
}

int cordon_mcp_scope_of(const char *tool, cordon_token_scope *ret_scope)
{
	const struct line *line = find(tool);

	if (!line)
		return -ENOENT;
	*ret_scope = line->scope;
	return 0;
}

bool cordon_mcp_is_strange(const struct cordon_mcp_request *request)
{
	const struct cordon_mcp_grant *grant = request->channel->grant;

	return request->mcp->options.session || (grant && grant->scope < CORDON_SCOPE_ADMIN);
}

const json_t *cordon_mcp_scope_projects(const struct cordon_mcp_channel *channel)
{
	return channel->grant && json_array_size(channel->grant->projects) ? channel->grant->projects : NULL;
}

bool cordon_mcp_scope_shows(const struct cordon_mcp_channel *channel, const char *tool)
{
	const struct line *line = find(tool);

	if (!channel->grant)
		return true;
	return line && line->scope <= channel->grant->scope &&
	       (line->belongs != TO_NONE || !cordon_mcp_scope_projects(channel));
}

/* `id` is as the caller wrote it; upper case becomes lower case, as everywhere. */
bool cordon_mcp_scope_has(const json_t *projects, const char *id)
{
	char judged[CORDON_ID_SIZE];
	size_t i;
	json_t *project;

	if (!projects)
		return true;
	if (cordon_id_uuid("project_id", id, judged, NULL) < 0)
		return false;
	json_array_foreach(projects, i, project) {
		if (cordon_streq(json_string_value(project), judged))
			return true;
	}
	return false;
}

static bool has_session(const struct cordon_mcp *mcp, const json_t *projects, const char *id)
{
	autosessionrecord struct cordon_session_record session = { 0 };

	return cordon_session_get(mcp->store, id, &session, NULL) == 0 &&
	       cordon_mcp_scope_has(projects, session.project_id);
}

static int no_project(const char *id, struct cordon_error *err)
{
	char judged[CORDON_ID_SIZE];
	int r = cordon_id_uuid("project_id", id, judged, err);

	if (r < 0)
		return r;
	/* These are the words of the store. */
	r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "project %s does not exist", judged);
	cordon_error_hint(err, "see 'cordon project list'");
	return r;
}

static int no_session(const char *id, struct cordon_error *err)
{
	char judged[CORDON_ID_SIZE];
	int r = cordon_id_uuid("session_id", id, judged, err);

	if (r < 0)
		return r;
	r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "session %s does not exist", judged);
	cordon_error_hint(err, "see 'cordon session list'; ended sessions are removed by 'cordon session cleanup'");
	return r;
}

static int denied(const struct cordon_mcp_grant *grant, const char *tool, const struct line *line,
		  struct cordon_error *err)
{
	if (!line || line->scope > grant->scope) {
		cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
			    "%s needs a token with the scope %s; this one has %s", tool,
			    cordon_token_scope_name(line ? line->scope : CORDON_SCOPE_ADMIN),
			    cordon_token_scope_name(grant->scope));
		cordon_error_hint(err, "ask the owner of the server for another token");
	} else {
		cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "%s is not for a token that is bound to projects",
			    tool);
		cordon_error_hint(err, "ask the owner of the server");
	}
	return -EPERM;
}

int cordon_mcp_scope_tool(const struct cordon_mcp_request *request, const char *tool, const json_t *args,
			  struct cordon_error *err)
{
	static const char *const sessions[] = { "session_id", "parent_session_id" };
	const struct cordon_mcp_grant *grant = request->channel->grant;
	const json_t *projects = cordon_mcp_scope_projects(request->channel);
	const char *project = cordon_json_string(args, "project_id");
	bool named = project != NULL;

	if (!cordon_mcp_scope_shows(request->channel, tool))
		return denied(grant, tool, find(tool), err);
	if (!projects)
		return 0;
	if (project && !cordon_mcp_scope_has(projects, project))
		return no_project(project, err);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(sessions); i++) {
		const char *session = cordon_json_string(args, sessions[i]);

		if (!session)
			continue;
		named = true;
		if (!has_session(request->mcp, projects, session))
			return no_session(session, err);
	}
	if (!named && find(tool)->belongs == TO_PROJECT)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "project_id or session_id is required");
	return 0;
}

bool cordon_mcp_scope_resource(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel,
			       const struct cordon_mcp_uri *uri)
{
	const json_t *projects = cordon_mcp_scope_projects(channel);

	if (!projects)
		return true;
	switch (uri->place) {
	case CORDON_MCP_PROJECT:
	case CORDON_MCP_WORKSPACES:
	case CORDON_MCP_WORKSPACE:
		return cordon_mcp_scope_has(projects, uri->id);
	case CORDON_MCP_SESSION:
	case CORDON_MCP_SESSION_LOG:
		return has_session(mcp, projects, uri->id);
	case CORDON_MCP_PROJECTS:
	case CORDON_MCP_SESSIONS:
		return true; /* Reading them lists only those of the client. */
	case CORDON_MCP_AUDIT:
	case CORDON_MCP_PLACE__MAX:
	default:
		return false;
	}
}
