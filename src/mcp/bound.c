/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for one session (`cordon mcp --session`): whoever is at the other end speaks for an agent inside a sandbox.
 * It reaches its own project and what it started itself, and can start only sessions that are as strict as its own,
 * which cordon_session_start() judges (not_freer).
 */
#include "mcp/internal.h"
#include "store/session.h"

static int denied(const char *what, struct cordon_error *err)
{
	cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "%s is not for the agent of a session", what);
	cordon_error_hint(err, "ask the project's owner");
	return -EPERM;
}

/* Whether the session is its own, or one that it started. */
static bool is_ours(const struct cordon_mcp *mcp, const char *id)
{
	json_auto_t *session = NULL;
	const char *parent;

	if (!id || cordon_session_get(mcp->store, id, &session, NULL) < 0)
		return false;
	parent = cordon_mcp_arg(session, "parent_session_id");
	return cordon_streq(cordon_mcp_arg(session, "session_id"), mcp->options.session) ||
	       (parent && cordon_streq(parent, mcp->options.session));
}

int cordon_mcp_bound_tool(const struct cordon_mcp *mcp, const char *tool, const json_t *args, struct cordon_error *err)
{
	static const char *const of_sessions[] = { "session_send", "session_output", "session_get", "session_stop" };
	const char *project = cordon_mcp_arg(args, "project_id");
	const char *workspace = cordon_mcp_arg(args, "workspace_id");
	json_auto_t *own = NULL;
	bool isolated;

	if (!mcp->options.session)
		return 0;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(of_sessions); i++)
		if (cordon_streq(tool, of_sessions[i]))
			return is_ours(mcp, cordon_mcp_arg(args, "session_id")) ? 0 : denied("that session", err);
	if (!cordon_streq(tool, "session_start") && !cordon_streq(tool, "policy_check") &&
	    !cordon_streq(tool, "project_get"))
		return denied(tool, err);
	if (cordon_session_get(mcp->store, mcp->options.session, &own, err) < 0)
		return err->code;
	isolated = json_is_true(json_object_get(own, "workspace_isolation"));
	if (!project || !cordon_streq(project, cordon_mcp_arg(own, "project_id")))
		return denied("that project", err);
	if (isolated && !cordon_streq(tool, "project_get") &&
	    (!workspace || !cordon_streq(workspace, cordon_mcp_arg(own, "workspace_id"))))
		return denied("another workspace", err);
	return 0;
}

bool cordon_mcp_bound_resource(const struct cordon_mcp *mcp, const struct cordon_mcp_uri *uri)
{
	if (!mcp->options.session)
		return true;
	return (uri->place == CORDON_MCP_SESSION || uri->place == CORDON_MCP_SESSION_LOG) && is_ours(mcp, uri->id);
}
