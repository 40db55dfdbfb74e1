/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for one session (`cordon mcp --session`): the client acts for an agent inside a sandbox. It reaches its own
 * project and the sessions that it started, and it can start only sessions that are as strict as its own;
 * cordon_session_start() checks that.
 */
#include "job/session.h"
#include "mcp/internal.h"

static int denied(const char *what, struct cordon_error *err)
{
	cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "%s is not for the agent of a session", what);
	cordon_error_hint(err, "ask the project's owner");
	return -EPERM;
}

/* Returns whether the session is the client's own or one that it started. */
static bool is_ours(const struct cordon_mcp *mcp, const char *id)
{
	autosessionrecord struct cordon_session_record session = { 0 };

	if (!id || cordon_session_get(mcp->store, id, &session, NULL) < 0)
		return false;
	return cordon_streq(session.id, mcp->options.session) ||
	       cordon_streq(session.parent_session_id, mcp->options.session);
}

int cordon_mcp_bound_tool(const struct cordon_mcp *mcp, const char *tool, const json_t *args, struct cordon_error *err)
{
	static const char *const of_sessions[] = { "session_send", "session_exec", "session_output",
						   "session_get",  "session_stop", "grant_request" };
	const char *project = cordon_json_string(args, "project_id");
	const char *workspace = cordon_json_string(args, "workspace_id");
	autosessionrecord struct cordon_session_record own = { 0 };

	if (!mcp->options.session)
		return 0;
	/* It may ask for more; a person answers, and not through its client. */
	if (cordon_streq(tool, "grant_request") && !json_object_get(args, "session_id"))
		return 0;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(of_sessions); i++)
		if (cordon_streq(tool, of_sessions[i]))
			return is_ours(mcp, cordon_json_string(args, "session_id")) ? 0 : denied("that session", err);
	if (!cordon_streq(tool, "session_start") && !cordon_streq(tool, "policy_check") &&
	    !cordon_streq(tool, "project_get"))
		return denied(tool, err);
	if (cordon_session_get(mcp->store, mcp->options.session, &own, err) < 0)
		return err->code;
	if (!project || !cordon_streq(project, own.project_id))
		return denied("that project", err);
	if (own.settings.workspace_isolation && !cordon_streq(tool, "project_get") &&
	    (!workspace || !cordon_streq(workspace, own.workspace_id)))
		return denied("another workspace", err);
	return 0;
}

bool cordon_mcp_bound_resource(const struct cordon_mcp *mcp, const struct cordon_mcp_uri *uri)
{
	if (!mcp->options.session)
		return true;
	return (uri->place == CORDON_MCP_SESSION || uri->place == CORDON_MCP_SESSION_LOG) && is_ours(mcp, uri->id);
}
