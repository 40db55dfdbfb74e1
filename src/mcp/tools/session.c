/* SPDX-License-Identifier: Apache-2.0 */
/* The tools for sessions. A tool that waits becomes a call (session_wait.h), which goes on when the session does. */
#include <poll.h>

#include "base/time.h"
#include "mcp/tools/session_wait.h"

#define STOP_LIMIT_MS 60000

static void read_request(const struct cordon_mcp_request *request, const json_t *args,
			 struct cordon_session_request *ret_wanted)
{
	*ret_wanted = (struct cordon_session_request){
		.project = cordon_json_string(args, "project_id"),
		.workspace = { .id = cordon_json_string(args, "workspace_id"),
			       .external_id = cordon_json_string(args, "external_id"),
			       .source = cordon_json_string(args, "source") },
		.create_workspace = cordon_json_true(args, "create_workspace"),
		.new_session = cordon_json_true(args, "new_session"),
		.command = json_object_get(args, "command"),
		.message = cordon_json_string(args, "message"),
		.end_input = cordon_json_true(args, "end_input"),
		.fail_on_violation = cordon_json_true(args, "fail_on_violation"),
		.net = json_object_get(args, "net"),
		.context = json_object_get(args, "context"),
		.attachments = json_object_get(args, "attachments"),
		.parent = request->mcp->options.session ? request->mcp->options.session
							: cordon_json_string(args, "parent_session_id"),
	};
}

/* The session runs: answers, or waits for its end. */
static bool started(struct cordon_mcp_call *call, const struct cordon_session_answer *answer, int64_t now)
{
	struct cordon_mcp_session_wait *waiting = call->state;

	if (!waiting->wait_ms) {
		cordon_mcp_tool_answer(&call->request, call->tool->name, cordon_session_answer_json(answer), NULL, NULL);
		return true;
	}
	waiting->start = cordon_session_start_free(waiting->start);
	waiting->what = CORDON_MCP_WAIT_END;
	waiting->answer = *answer;
	waiting->since = -1;
	waiting->until = now + waiting->wait_ms;
	cordon_copy(waiting->id, sizeof(waiting->id), answer->session_id, strlen(answer->session_id));
	call->kept = false;
	call->step = cordon_mcp_session_wait_step;
	call->due = now;
	return false;
}

static bool step_start(struct cordon_mcp_call *call, int64_t now)
{
	struct cordon_mcp_session_wait *waiting = call->state;
	struct cordon_session_answer answer;
	struct cordon_error err = { 0 };
	int r = cordon_session_start_finish(call->request.mcp->store, waiting->start, &answer, &err);

	if (r == -EAGAIN) {
		call->due = cordon_session_start_due(waiting->start);
		return false;
	}
	cordon_mcp_call_wait(call, -1);
	if (r == 0)
		return started(call, &answer, now);
	cordon_mcp_tool_answer(&call->request, call->tool->name, NULL, NULL, &err);
	return true;
}

/* In a child process: the session is found or started as soon as no other start is under way in the workspace. It may copy a tree
 * for a new workspace, wait for locks, or talk to a session that hangs. */
static json_t *begin_start(struct cordon_mcp_call *call, int *ret_fd)
{
	struct cordon_mcp_session_wait *waiting = call->state;
	struct cordon_session_request wanted;
	struct cordon_error err = { 0 };
	int r;

	read_request(&call->request, waiting->args, &wanted);
	while ((r = cordon_session_start_begin(call->request.mcp->store, &wanted, waiting->start, &err)) == -EAGAIN) {
		if (cordon_mcp_apart_left())
			return NULL;
		if (cordon_time_monotonic() >= waiting->until) {
			r = cordon_session_start_busy(&err);
			break;
		}
		poll(NULL, 0, CORDON_MCP_TRY_MS);
	}
	if (r < 0)
		return cordon_mcp_error_json(&err);
	*ret_fd = cordon_session_start_fd(waiting->start);
	return json_pack("{s:o}", "start", cordon_session_start_json(waiting->start));
}

/* A start whose client has gone goes on; one that was cancelled ends. */
static void leave_start(struct cordon_mcp_call *call, const json_t *value, bool cancelled)
{
	const struct cordon_mcp_session_wait *waiting = call->state;

	(void)value;
	if (cancelled)
		cordon_session_start_cancel(waiting->start);
}

static bool start_begun(struct cordon_mcp_call *call, json_t *value, int *fd, int64_t now)
{
	struct cordon_mcp_session_wait *waiting = call->state;
	const json_t *start = json_object_get(value, "start");
	struct cordon_error err = { 0 };
	int r = cordon_mcp_error_read(value, &err);

	if (r == 0 && !start)
		r = cordon_fail(&err, -EIO, CORDON_KIND_INTERNAL, "the session could not be started");
	if (r == 0)
		cordon_session_start_take(waiting->start, start, cordon_steal_fd(fd));
	if (r == 0 && (r = cordon_mcp_call_wait(call, cordon_session_start_fd(waiting->start))) < 0)
		cordon_fail_errno(&err, r, "cannot wait for the session");
	if (r == 0)
		return step_start(call, now);
	cordon_mcp_tool_answer(&call->request, call->tool->name, NULL, NULL, &err);
	return true;
}

/* The server does not block here: the start is begun apart, and the call goes on when cordon-job reports. */
int cordon_mcp_session_start_call(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
				  int64_t wait_ms,
				  bool (*over)(struct cordon_mcp_call *, const struct cordon_session_record *, int64_t),
				  struct cordon_error *err)
{
	static const struct cordon_mcp_work work = { .work = begin_start, .left = leave_start, .done = start_begun };
	struct cordon_mcp_session_wait waiting = {
		.what = CORDON_MCP_WAIT_START,
		.args = args,
		.start = cordon_session_start_new(),
		.wait_ms = wait_ms,
		.over = over,
		.until = cordon_time_monotonic() + CORDON_START_TIMEOUT_MS,
	};
	struct cordon_mcp_call *call;

	if (!waiting.start)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	call = cordon_mcp_session_wait_begin(request, tool, &waiting, err);
	if (!call) {
		cordon_session_start_free(waiting.start);
		return err->code;
	}
	json_incref(args);
	call->step = step_start;
	call->kept = true;
	if (cordon_mcp_apart(call, &work) == 0)
		return CORDON_MCP_LATER;
	cordon_mcp_call_drop(call);
	return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
}

static int session_start(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			 struct cordon_error *err)
{
	(void)ret_result, (void)ret_text;
	return cordon_mcp_session_start_call(request, &cordon_mcp_session_start, args,
					     cordon_json_integer(args, "wait_seconds") * 1000, NULL, err);
}

static int session_send(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	const struct cordon_store *store = request->mcp->store;
	const char *id = cordon_json_string(args, "session_id");
	autosessionrecord struct cordon_session_record session = { 0 };
	struct cordon_session_request wanted;
	struct cordon_session_answer answer = { 0 };
	int r;

	(void)ret_text;
	read_request(request, args, &wanted);
	if (!id && !wanted.project)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "session_id or project_id is required");
	if (!id)
		return CORDON_MCP_LATER;
	r = cordon_session_send(store, id, wanted.message, wanted.end_input, &answer.last_event_index, err);
	if (r == 0)
		r = cordon_session_get(store, id, &session, err);
	if (r < 0)
		return r;
	cordon_copy(answer.session_id, sizeof(answer.session_id), session.id, strlen(session.id));
	cordon_copy(answer.workspace_id, sizeof(answer.workspace_id), session.workspace_id,
		    strlen(session.workspace_id));
	answer.status = session.status;
	*ret_result = cordon_session_answer_json(&answer);
	return 0;
}

static int send_or_start(struct cordon_mcp_request *request, json_t *args, const json_t *result,
			 struct cordon_error *err)
{
	(void)result;
	return cordon_mcp_session_start_call(request, &cordon_mcp_session_send, args, 0, NULL, err);
}

/* Adds the output of the sessions that this one started, each event with its own session_id. */
static void add_children(const struct cordon_store *store, const struct cordon_session_record *session, json_t *output)
{
	size_t i, k;
	json_t *child, *event;

	json_array_foreach(session->child_sessions, i, child) {
		json_auto_t *more = NULL;

		if (cordon_session_output(store, json_string_value(child), -1, 0, &more, NULL) < 0)
			continue;
		json_array_foreach(json_object_get(more, "events"), k, event) {
			json_array_append(json_object_get(output, "events"), event);
		}
	}
}

static int64_t since_of(const json_t *args)
{
	return cordon_json_integer_or(args, "since_index", CORDON_DEFAULT_SESSION_OUTPUT_SINCE_INDEX);
}

static size_t max_of(const json_t *args)
{
	return (size_t)cordon_json_integer(args, "max_events");
}

static int session_output(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			  struct cordon_error *err)
{
	const struct cordon_store *store = request->mcp->store;
	const char *id = cordon_json_string(args, "session_id");
	json_int_t wait = cordon_json_integer(args, "wait_seconds");
	autosessionrecord struct cordon_session_record session = { 0 };
	json_t *output = NULL;
	int r = cordon_session_get(store, id, &session, err);

	if (r == 0)
		r = cordon_session_output(store, id, since_of(args), max_of(args), &output, err);
	if (r < 0)
		return r;
	if (wait && json_array_size(json_object_get(output, "events")) == 0 && session.status == CORDON_SESSION_ACTIVE) {
		json_decref(output);
		*ret_result = json_pack("{s:s}", "session_id", session.id);
		return CORDON_MCP_LATER;
	}
	if (cordon_json_true(args, "include_children"))
		add_children(store, &session, output);
	cordon_mcp_cut_events(output);
	*ret_text = cordon_mcp_transcript(output);
	*ret_result = output;
	return 0;
}

static int wait_for_output(struct cordon_mcp_request *request, json_t *args, const json_t *result,
			   struct cordon_error *err)
{
	return cordon_mcp_session_wait(request, &cordon_mcp_session_output, CORDON_MCP_WAIT_OUTPUT,
				       cordon_json_string(result, "session_id"), since_of(args), max_of(args),
				       cordon_json_integer(args, "wait_seconds") * 1000, err);
}

static int session_get(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		       struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record session = { 0 };
	int r = cordon_session_get(request->mcp->store, cordon_json_string(args, "session_id"), &session, err);

	(void)ret_text;
	if (r == 0)
		*ret_result = cordon_session_json(&session);
	return r;
}

static int session_list(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	struct cordon_list_query page = { 0 };
	struct cordon_session_query query = { .project = cordon_json_string(args, "project_id"),
					      .only = cordon_mcp_scope_projects(request->channel),
					      .workspace = cordon_json_string(args, "workspace_id"),
					      .status = cordon_json_string(args, "status") };
	json_t *sessions = NULL;
	size_t total;
	int r;

	(void)ret_text;
	cordon_mcp_list_query(args, &page);
	query.limit = page.limit;
	query.offset = page.offset;
	r = cordon_session_list(request->mcp->store, &query, &sessions, &total, err);
	if (r == 0)
		*ret_result = cordon_mcp_list_result("sessions", sessions, total);
	return r;
}

static int64_t grace_of(const json_t *args)
{
	const json_t *given = json_object_get(args, "grace_seconds");

	return given ? json_integer_value(given) * 1000 : CORDON_MCP_GRACE_MS;
}

static int session_stop(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	const struct cordon_store *store = request->mcp->store;
	const char *id = cordon_json_string(args, "session_id");
	autosessionrecord struct cordon_session_record session = { 0 };
	int r = cordon_session_stop(store, id, (uint64_t)grace_of(args), err);

	(void)ret_text;
	if (r == 0)
		r = cordon_session_get(store, id, &session, err);
	if (r < 0)
		return r;
	*ret_result = cordon_session_json(&session);
	return session.status == CORDON_SESSION_ACTIVE ? CORDON_MCP_LATER : 0;
}

static int wait_for_stop(struct cordon_mcp_request *request, json_t *args, const json_t *result,
			 struct cordon_error *err)
{
	return cordon_mcp_session_wait(request, &cordon_mcp_session_stop, CORDON_MCP_WAIT_STOP,
				       cordon_json_string(result, "session_id"), -1, 1, grace_of(args) + STOP_LIMIT_MS,
				       err);
}

const struct cordon_mcp_tool cordon_mcp_session_start = {
	.name = "session_start",
	.title = "Start session",
	.description =
		"Run the project's agent, or a command, in a workspace, inside a sandbox. Without a command the latest session "
		"of the workspace is resumed. Returns when the program runs, or with wait_seconds when it has ended or the "
		"time is over; cancelling then stops it. A session lives until its program ends or session_stop; its record "
		"stays for session_output.",
	.input = CORDON_INPUT_SESSION_START,
	.output = CORDON_OUTPUT_SESSION_START, /* with wait_seconds also duration_ms, violations, failed_on_violation */
	.always = CORDON_ALWAYS_SESSION_START,
	.open_world = true,
	.call = session_start,
};

const struct cordon_mcp_tool cordon_mcp_session_send = {
	.name = "session_send",
	.title = "Send to session",
	.apart = true,
	.ordered_by = "session_id",
	.description = "Send a line to a session's standard input: to session_id, or to the latest session of a workspace, which is "
		       "started when it does not run.",
	.input = CORDON_INPUT_SESSION_SEND,
	.output = CORDON_OUTPUT_SESSION_SEND,
	.always = CORDON_ALWAYS_SESSION_SEND,
	.open_world = true,
	.call = session_send,
	.then = send_or_start,
};

const struct cordon_mcp_tool cordon_mcp_session_output = {
	.name = "session_output",
	.title = "Read session output",
	.apart = true,
	.description =
		"Read what a session wrote and what happened to it, after since_index (-1: all of the last 1000 events). With "
		"wait_seconds it waits for something new. `more`: the result was cut; ask again from last_index, and children from children_since.",
	.input = CORDON_INPUT_SESSION_OUTPUT,
	.output = CORDON_OUTPUT_SESSION_OUTPUT,
	.always = CORDON_ALWAYS_SESSION_OUTPUT,
	.read_only = true,
	.idempotent = true,
	.call = session_output,
	.then = wait_for_output,
};

const struct cordon_mcp_tool cordon_mcp_session_get = {
	.name = "session_get",
	.title = "Get session",
	.description = "Show how a session stands, what it was started with and what holds it.",
	.input = CORDON_INPUT_SESSION_GET,
	.output = CORDON_OUTPUT_SESSION_GET,
	.always = CORDON_ALWAYS_SESSION_GET,
	.read_only = true,
	.idempotent = true,
	.call = session_get,
};

const struct cordon_mcp_tool cordon_mcp_session_list = {
	.name = "session_list",
	.title = "List sessions",
	.description = "List sessions, oldest first.",
	.input = CORDON_INPUT_SESSION_LIST,
	.output = CORDON_OUTPUT_SESSION_LIST,
	.always = CORDON_ALWAYS_SESSION_LIST,
	.read_only = true,
	.idempotent = true,
	.call = session_list,
};

const struct cordon_mcp_tool cordon_mcp_session_stop = {
	.name = "session_stop",
	.title = "Stop session",
	.apart = true,
	.description = "End a session with everything in it: SIGTERM, then SIGKILL after grace_seconds. Returns its record when it has "
		       "ended; one that has ended already is fine.",
	.input = CORDON_INPUT_SESSION_STOP,
	.output = CORDON_OUTPUT_SESSION_STOP,
	.always = CORDON_ALWAYS_SESSION_STOP,
	.destructive = true,
	.idempotent = true,
	.call = session_stop,
	.then = wait_for_stop,
};
