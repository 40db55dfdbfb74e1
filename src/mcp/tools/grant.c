/* SPDX-License-Identifier: Apache-2.0 */
/* grant_request: an agent asks for a host or a path that its session does not have. A person decides (approval.c). */
#include "base/text.h"
#include "job/session.h"
#include "mcp/tools.h"

/* What the arguments ask for. The agent of a session need not say which session it is. */
static const char *wanted(const struct cordon_mcp_request *request, const json_t *args,
			  struct cordon_allowance *ret_allowance)
{
	const char *session = cordon_json_string(args, "session_id");

	*ret_allowance = (struct cordon_allowance){ .host = cordon_json_string(args, "host"),
						    .path = cordon_json_string(args, "path"),
						    .write = cordon_json_is(args, "access", "write") };
	return session ? session : request->mcp->options.session;
}

/* What the session has already is no question. To a strange caller, who must not learn from us what the host has, everything
 * that can be written is one, whether or not it exists. */
static int ask(const struct cordon_mcp_request *request, const json_t *args, struct cordon_mcp_question *question,
	       struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record session = { 0 };
	autoprojectrecord struct cordon_project_record project = { 0 };
	struct cordon_session_allowed allowed = { 0 };
	struct cordon_allowance allowance;
	const char *id = wanted(request, args, &allowance), *reason = cordon_json_string(args, "reason");
	int r;

	if (!id)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "session_id is required");
	r = cordon_session_may_allow(request->mcp->store, id, &allowance, cordon_mcp_is_strange(request), &session,
				     &allowed, err);
	if (r < 0 || allowed.already)
		return r;
	if (allowance.host)
		cordon_buf_adds(&question->widens, "the session could reach ");
	else
		cordon_buf_addf(&question->widens, "the session could %s ",
				allowance.write ? "read and change" : "read");
	cordon_text_quote(&question->widens, allowed.text,
			  strlen(allowed.text) - (allowance.host || allowance.write ? 0 : strlen(":ro")));
	if (allowance.path)
		cordon_buf_adds(&question->widens, " of the host, from its next start on");
	cordon_buf_addf(&question->text, "Allow session %s of project ", session.id);
	if (cordon_project_get(request->mcp->store, session.project_id, &project, NULL) == 0)
		cordon_text_quote(&question->text, project.name, strlen(project.name));
	cordon_buf_addf(&question->text, " more? Then %s.", question->widens.data);
	cordon_buf_adds(&question->text, " The agent says: ");
	cordon_text_quote(&question->text, reason, strlen(reason));
	memcpy(question->project, session.project_id, sizeof(question->project));
	question->grant = allowance.host ? json_pack("{s:s, s:s, s:s}", "session_id", session.id, "run_id",
						     session.run_id, "host", allowance.host)
					 : json_pack("{s:s, s:s, s:s, s:s}", "session_id", session.id, "run_id",
						     session.run_id, "path", allowance.path, "access",
						     allowance.write ? "write" : "read");
	return question->grant ? 0 : cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
}

/* Does what a person approved. A strange caller hears no reason from the host when that fails; the person does. */
static int allow(const struct cordon_mcp_request *request, const char *id, const struct cordon_allowance *allowance,
		 struct cordon_session_allowed *ret_allowed, struct cordon_error *err)
{
	const char *run = cordon_json_string(request->question->grant, "run_id");
	int r = cordon_session_allow(request->mcp->store, id, allowance, request->span, run, ret_allowed, err);

	if (r < 0 && cordon_mcp_is_strange(request) && err->kind != CORDON_KIND_CONFLICT &&
	    err->kind != CORDON_KIND_LIMIT)
		return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "this can't be allowed on this host");
	return r;
}

static int grant_request(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			 struct cordon_error *err)
{
	const struct cordon_mcp *mcp = request->mcp;
	struct cordon_session_allowed allowed = { 0 };
	struct cordon_allowance allowance;
	const char *id = wanted(request, args, &allowance);
	int r = cordon_session_may_allow(mcp->store, id, &allowance, cordon_mcp_is_strange(request), NULL, &allowed,
					 err);

	(void)ret_text;
	/* INVARIANT: without an approval, only what is allowed already succeeds. */
	if (r == 0 && !allowed.already && !cordon_mcp_may(request))
		r = cordon_fail(err, -EAGAIN, CORDON_KIND_CONFLICT,
				"what the session may do has just changed: ask again");
	if (r == 0 && (!allowed.already || request->approved))
		r = allow(request, id, &allowance, &allowed, err);
	if (r < 0)
		return r;
	*ret_result = json_pack("{s:s, s:s, s:s, s:s*, s:s*}", "session_id", id, "allowed", allowed.text, "effective",
				allowed.now ? "now" : "next_start", "for",
				request->approved ? cordon_approval_span_name(request->span) : NULL, "note",
				allowed.now ? NULL : CORDON_SESSION_ALLOWED_LATER);
	return *ret_result ? 0 : cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
}

const struct cordon_mcp_tool cordon_mcp_grant_request = {
	.name = "grant_request",
	.title = "Ask for access",
	.apart = true,
	.description =
		"Ask a person to allow a session a host or a path of the host. A host counts at once if the session has a list of "
		"hosts; a path counts from its next start. If the answer says that an approval waits, call again with the same "
		"arguments later.",
	.input = CORDON_INPUT_GRANT_REQUEST,
	.output = CORDON_OUTPUT_GRANT_REQUEST,
	.always = CORDON_ALWAYS_GRANT_REQUEST,
	.idempotent = true,
	.open_world = true,
	.ask = ask,
	.call = grant_request,
};
