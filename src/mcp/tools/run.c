/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool run: one command, answered at its end. In a workspace it is the program of a session of its own, in a session
 * that runs it is a further command of that. A server offers it only if its toolset names it, because most clients have the
 * tools for sessions, which do more.
 */
#include "base/text.h"
#include "mcp/tools/session_wait.h"

#define STOP_LIMIT_MS 60000
#define KEPT_MAX ((size_t)64 << 10) /* bytes of a stream's beginning that are kept, and of its end */

/* Returns what one stream wrote; of long output the beginning and the end. */
static json_t *text_of(const json_t *events, const char *type)
{
	autobuf struct cordon_buf all = CORDON_BUF((size_t)64 << 20), cut = CORDON_BUF(4 * KEPT_MAX);
	size_t i, head, tail;
	json_t *event;

	json_array_foreach(events, i, event) {
		if (cordon_streq(cordon_json_string(event, "type"), type) &&
		    cordon_buf_adds(&all, cordon_json_string(event, "text")) < 0)
			break;
	}
	if (all.len <= 2 * KEPT_MAX)
		return json_string(all.data ? all.data : "");
	/* No character is cut in two. */
	for (head = KEPT_MAX; ((unsigned char)all.data[head] & 0xc0) == 0x80; head--)
		;
	for (tail = all.len - KEPT_MAX; ((unsigned char)all.data[tail] & 0xc0) == 0x80; tail++)
		;
	cordon_buf_add(&cut, all.data, head);
	cordon_buf_addf(&cut, "\n[cordon: %zu bytes are left out here]\n", tail - head);
	cordon_buf_adds(&cut, all.data + tail);
	return json_string(cut.data);
}

static json_t *make_result(const struct cordon_mcp_call *call)
{
	const struct cordon_mcp_session_wait *waiting = call->state;
	const struct cordon_store *store = call->request.mcp->store;
	autosessionrecord struct cordon_session_record session = { 0 };
	json_auto_t *output = NULL;
	struct cordon_error err = { 0 };
	json_t *result;

	if (cordon_session_get(store, waiting->id, &session, &err) < 0 ||
	    cordon_session_output(store, waiting->id, -1, 0, &output, &err) < 0)
		return cordon_mcp_error_json(&err);
	result = json_pack("{s:s, s:s, s:b, s:o, s:o}", "session_id", waiting->id, "workspace_id", session.workspace_id,
			   "timed_out", (int)waiting->timed_out, "stdout",
			   text_of(json_object_get(output, "events"), "stdout"), "stderr",
			   text_of(json_object_get(output, "events"), "stderr"));
	if (cordon_json_integer(output, "dropped_events"))
		json_object_set(result, "dropped_events", json_object_get(output, "dropped_events"));
	cordon_mcp_session_put_result(&session, result);
	return json_pack("{s:o}", "result", result);
}

/* The session has ended, or its time is over: then it is stopped, and the call goes on until it has. */
static bool over(struct cordon_mcp_call *call, const struct cordon_session_record *session, int64_t now)
{
	struct cordon_mcp_session_wait *waiting = call->state;

	if (session->status == CORDON_SESSION_ACTIVE && !waiting->timed_out) {
		waiting->timed_out = true;
		waiting->until = now + STOP_LIMIT_MS;
		cordon_mcp_session_stop_aside(call->request.mcp, waiting->id);
		return false;
	}
	return cordon_mcp_session_answer(call, make_result);
}

static int in_workspace(struct cordon_mcp_request *request, json_t *args, int64_t wait_ms, struct cordon_error *err)
{
	json_auto_t *wanted = json_pack("{s:O, s:O*, s:O, s:O*, s:O*, s:O*, s:b, s:b}", "project_id",
					json_object_get(args, "project_id"), "workspace_id",
					json_object_get(args, "workspace_id"), "command",
					json_object_get(args, "command"), "message", json_object_get(args, "input"),
					"net", json_object_get(args, "net"), "fail_on_violation",
					json_object_get(args, "fail_on_violation"), "new_session", 1, "end_input", 1);

	if (!wanted)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	return cordon_mcp_session_start_call(request, &cordon_mcp_run, wanted, wait_ms, over, err);
}

static int run(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
	       struct cordon_error *err)
{
	static const char *const of_workspace[] = { "project_id", "workspace_id", "net", "fail_on_violation" };
	bool in_session = json_object_get(args, "session_id") != NULL;

	(void)ret_result, (void)ret_text;
	for (size_t i = 0; in_session && i < CORDON_ARRAY_SIZE(of_workspace); i++)
		if (json_object_get(args, of_workspace[i]))
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
					   "session_id says where to run; %s is not for a session that runs",
					   of_workspace[i]);
	if (in_session)
		return cordon_mcp_session_exec_call(request, &cordon_mcp_run, args, err);
	if (!json_object_get(args, "project_id"))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "project_id or session_id is required");
	return in_workspace(request, args,
			    1000 * cordon_json_integer_or(args, "timeout_seconds", CORDON_DEFAULT_RUN_TIMEOUT_SECONDS),
			    err);
}

const struct cordon_mcp_tool cordon_mcp_run = {
	.name = "run",
	.title = "Run a command",
	.description =
		"Run a command inside a sandbox and return its output and exit_code when it has ended: in a workspace of a project "
		"(default: its default one), or in a session that runs. It is stopped when its time is over (timed_out) or the call is "
		"cancelled. Of long output the beginning and the end are returned.",
	.input = CORDON_INPUT_RUN,
	.output = CORDON_OUTPUT_RUN,
	.always = CORDON_ALWAYS_RUN,
	.open_world = true,
	.extra = true,
	.call = run,
};
