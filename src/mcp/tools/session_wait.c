/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of calls that wait for a session, and their answers. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/time.h"
#include "mcp/tools/session_wait.h"

#define TEXT_MAX ((size_t)256 << 10) /* bytes of output in one result */
#define TRANSCRIPT_MAX (8 * TEXT_MAX)
#define LAST_LINES_MAX ((size_t)64 << 10)
#define PROGRESS_TEXT 200

static void drop_waiting(struct cordon_mcp_call *call)
{
	struct cordon_mcp_session_wait *waiting = call->state;

	cordon_session_start_free(waiting->start);
	json_decref(waiting->args);
	free(waiting);
}

static void end_line(struct cordon_buf *text)
{
	if (text->len && text->data[text->len - 1] != '\n')
		cordon_buf_addc(text, '\n');
}

/* Adds an event, whole or not at all. */
static int add_event(struct cordon_buf *text, const json_t *event)
{
	const char *type = cordon_json_string(event, "type");
	const char *bytes = cordon_json_string(event, "text");
	bool output = cordon_streq(type, "stdout") || cordon_streq(type, "stderr");
	char mark[64];
	size_t before = text->len;
	int r;

	snprintf(mark, sizeof(mark), "[%s] ", type);
	if (!output)
		end_line(text);
	r = cordon_text_mark_lines(text, output ? CORDON_AGENT_MARK : mark, bytes, strlen(bytes));
	if (r < 0 && text->data) {
		text->len = before;
		text->data[before] = '\0';
	}
	if (!output)
		end_line(text);
	return r;
}

static json_int_t index_of(const json_t *event)
{
	return cordon_json_integer(event, "index");
}

static bool is_of(const json_t *event, const json_t *output)
{
	return cordon_streq(cordon_json_string(event, "session_id"), cordon_json_string(output, "session_id"));
}

/* Returns the transcript for a person, with a last line about the session; control characters are escaped. INVARIANT:
 * each line shows its origin: `|` for the agent's output, [type] for an event; only [cut ...] and [session ...] are the server's own
 * statements. What does not fit is told: last_index is that of the last event that is there. */
char *cordon_mcp_transcript(const json_t *output)
{
	autobuf struct cordon_buf text = CORDON_BUF(TRANSCRIPT_MAX);
	json_int_t dropped = cordon_json_integer(output, "dropped_events");
	json_int_t last = cordon_json_integer(output, "last_index");
	const json_t *events = json_object_get(output, "events"), *since;
	const char *child;
	size_t i, cut = 0;
	json_t *event;

	if (dropped)
		cordon_buf_addf(&text, "[%lld earlier events are not kept]\n", (long long)dropped);
	json_array_foreach(events, i, event) {
		if (!cut && add_event(&text, event) == 0)
			continue;
		if (is_of(event, output) && index_of(event) <= last)
			last = index_of(event) - 1;
		cut++;
	}
	text.max += LAST_LINES_MAX;
	end_line(&text);
	if (cut || cordon_json_true(output, "more"))
		cordon_buf_addf(&text, "[cut: session_output with since_index %lld goes on]\n", (long long)last);
	json_object_foreach((json_t *)(uintptr_t)json_object_get(output, "children_since"), child, since)
		cordon_buf_addf(&text, "[cut: session %s goes on after index %lld]\n", child,
				(long long)json_integer_value(since));
	cordon_buf_addf(&text, "[session %s is %s, last_index %lld]", cordon_json_string(output, "session_id"),
			cordon_json_string(output, "status"), (long long)last);
	return cordon_buf_steal(&text);
}

/* Cuts the list of events so that one result stays readable. INVARIANT: the client gets the rest: last_index, and children_since for
 * the sessions that this one started, say from where. */
void cordon_mcp_cut_events(json_t *output)
{
	json_t *events = json_object_get(output, "events"), *children = json_object();
	size_t bytes = 0, kept;
	json_t *event;

	json_array_foreach(events, kept, event) {
		bytes += json_string_length(json_object_get(event, "text")) + 64;
		if (bytes > TEXT_MAX && kept)
			break;
	}
	/* From the last one on, so that the first that is left out of each session says where to go on. */
	for (size_t i = json_array_size(events); i > kept; i--) {
		event = json_array_get(events, i - 1);
		if (is_of(event, output))
			json_object_set_new(output, "last_index", json_integer(index_of(event) - 1));
		else
			json_object_set_new(children, cordon_json_string(event, "session_id"),
					    json_integer(index_of(event) - 1));
		json_object_set_new(output, "more", json_true());
		json_array_remove(events, i - 1);
	}
	if (json_object_size(children))
		json_object_set(output, "children_since", children);
	json_decref(children);
}

static int read_output(const struct cordon_store *store, const char *id, int64_t since, size_t max, json_t **ret_output,
		       char **ret_text, struct cordon_error *err)
{
	json_t *output = NULL;
	int r = cordon_session_output(store, id, since, max, &output, err);

	if (r < 0)
		return r;
	cordon_mcp_cut_events(output);
	*ret_text = cordon_mcp_transcript(output);
	*ret_output = output;
	return 0;
}

/* Returns the last line that was written, for progress. */
static void last_line(const json_t *output, char ret_line[static PROGRESS_TEXT])
{
	const json_t *events = json_object_get(output, "events");
	const json_t *last = json_array_get(events, json_array_size(events) - 1);
	const char *text = last ? cordon_json_string(last, "text") : NULL;
	const char *type = last ? cordon_json_string(last, "type") : NULL;
	size_t n = text ? strlen(text) : 0;
	size_t start;

	while (n && text[n - 1] == '\n')
		n--;
	for (start = n; start && text[start - 1] != '\n'; start--)
		;
	if (!text)
		snprintf(ret_line, PROGRESS_TEXT, "running");
	else if (cordon_streq(type, "stdout") || cordon_streq(type, "stderr"))
		snprintf(ret_line, PROGRESS_TEXT, "%s", CORDON_AGENT_MARK);
	else
		snprintf(ret_line, PROGRESS_TEXT, "[%.40s] ", type);
	if (text)
		cordon_text_escape_fixed(ret_line + strlen(ret_line), PROGRESS_TEXT - strlen(ret_line), text + start,
					 n - start);
}

/* What an answer says of the session's end beside what a start says; what there is not (an exit code, a signal) is left out. */
void cordon_mcp_session_put_result(const struct cordon_session_record *session, json_t *answer)
{
	json_object_set_new(answer, "status", json_string(cordon_session_status_name(session->status)));
	json_object_set_new(answer, "state", json_string(cordon_session_state_name(session->state)));
	if (!session->ended)
		return;
	if (session->exit_code >= 0)
		json_object_set_new(answer, "exit_code", json_integer(session->exit_code));
	if (session->signal >= 0)
		json_object_set_new(answer, "signal", json_integer(session->signal));
	json_object_set_new(answer, "duration_ms", json_integer(session->duration_ms));
	json_object_set_new(answer, "violations", json_integer(session->violations));
	if (session->failed_on_violation)
		json_object_set_new(answer, "failed_on_violation", json_true());
}

/* ---- what is read in a child ---- */

static json_t *work_answer(struct cordon_mcp_call *call, int *ret_fd)
{
	const struct cordon_mcp_session_wait *waiting = call->state;

	(void)ret_fd;
	return waiting->make(call);
}

static bool answer_made(struct cordon_mcp_call *call, json_t *value, int *fd, int64_t now)
{
	json_t *result = json_object_get(value, "result");
	const char *text = cordon_json_string(value, "text");
	struct cordon_error err = { 0 };

	(void)fd;
	if (!json_is_object(value)) {
		cordon_fail(&err, -EIO, CORDON_KIND_LIMIT,
			    "reading the session took too much time or memory, or failed");
		cordon_error_hint(&err, "ask for less with session_output");
	} else if (cordon_mcp_error_read(value, &err) == 0 && !result) {
		call->due = now + CORDON_MCP_LOOK_MS;
		return false;
	}
	cordon_mcp_tool_answer(&call->request, call->tool->name, json_incref(result), text ? strdup(text) : NULL,
			       err.code ? &err : NULL);
	return true;
}

bool cordon_mcp_session_answer(struct cordon_mcp_call *call, json_t *(*make)(const struct cordon_mcp_call *call))
{
	static const struct cordon_mcp_work reads = { .work = work_answer, .done = answer_made, .reads = true };
	struct cordon_mcp_session_wait *waiting = call->state;
	struct cordon_error err = { 0 };

	waiting->make = make;
	if (cordon_mcp_apart(call, &reads) == 0)
		return false;
	cordon_fail(&err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	cordon_mcp_tool_answer(&call->request, call->tool->name, NULL, NULL, &err);
	return true;
}

/* The answer to a start that waited for the end of the session, or until its time was over: that of the start, and the outcome. */
static json_t *make_ended(const struct cordon_mcp_call *call)
{
	const struct cordon_mcp_session_wait *waiting = call->state;
	const struct cordon_store *store = call->request.mcp->store;
	autosessionrecord struct cordon_session_record session = { 0 };
	json_auto_t *answer = cordon_session_answer_json(&waiting->answer);
	json_auto_t *output = NULL;
	autofree char *text = NULL;
	struct cordon_error err = { 0 };

	if (cordon_session_get(store, waiting->id, &session, &err) < 0)
		return cordon_mcp_error_json(&err);
	cordon_mcp_session_put_result(&session, answer);
	if (read_output(store, waiting->id, waiting->since, 0, &output, &text, &err) == 0) {
		json_object_set(answer, "events", json_object_get(output, "events"));
		json_object_set(answer, "last_event_index", json_object_get(output, "last_index"));
		if (cordon_json_integer(output, "dropped_events"))
			json_object_set(answer, "dropped_events", json_object_get(output, "dropped_events"));
		if (json_object_get(output, "more"))
			json_object_set_new(answer, "more", json_true());
	}
	return json_pack("{s:O, s:s*}", "result", answer, "text", text);
}

/* New output, or {} when there is none and more can come. */
static json_t *make_output(const struct cordon_mcp_call *call)
{
	const struct cordon_mcp_session_wait *waiting = call->state;
	json_auto_t *output = NULL;
	autofree char *text = NULL;
	struct cordon_error err = { 0 };

	if (read_output(call->request.mcp->store, waiting->id, waiting->since, waiting->max, &output, &text, &err) < 0)
		return cordon_mcp_error_json(&err);
	if (!waiting->last && json_array_size(json_object_get(output, "events")) == 0)
		return json_object();
	return json_pack("{s:O, s:s*}", "result", output, "text", text);
}

static json_t *work_progress(struct cordon_mcp_call *call, int *ret_fd)
{
	const struct cordon_mcp_session_wait *waiting = call->state;
	json_auto_t *output = NULL;
	char line[PROGRESS_TEXT];

	(void)ret_fd;
	if (cordon_session_output(call->request.mcp->store, waiting->id, -1, 0, &output, NULL) < 0)
		return NULL;
	last_line(output, line);
	return json_string(line);
}

static bool progress_made(struct cordon_mcp_call *call, json_t *value, int *fd, int64_t now)
{
	(void)fd;
	if (json_is_string(value))
		cordon_mcp_call_progress(call, now, json_string_value(value));
	call->due = now + CORDON_MCP_LOOK_MS;
	return false;
}

/* Returns whether the log has grown since the last look, so that it is parsed only then. */
static bool has_grown(const struct cordon_store *store, struct cordon_mcp_session_wait *waiting)
{
	autofd int dir = -1;
	struct stat st = { 0 };
	bool grown;

	if (cordon_session_open(store, waiting->id, &dir, NULL) < 0 ||
	    fstatat(dir, "events", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	grown = st.st_size != waiting->size || st.st_ino != waiting->inode;
	waiting->size = st.st_size;
	waiting->inode = st.st_ino;
	return grown;
}

static void send_progress(struct cordon_mcp_call *call, int64_t now)
{
	static const struct cordon_mcp_work tells = { .work = work_progress, .done = progress_made, .reads = true };

	if (cordon_mcp_call_may_progress(call, now) && has_grown(call->request.mcp->store, call->state))
		(void)cordon_mcp_apart(call, &tells);
}

/* Answers when there is new output, or when no more can come. */
static bool step_output(struct cordon_mcp_call *call, bool last)
{
	struct cordon_mcp_session_wait *waiting = call->state;

	if (!last && !has_grown(call->request.mcp->store, waiting))
		return false;
	waiting->last = last;
	return cordon_mcp_session_answer(call, make_output);
}

bool cordon_mcp_session_wait_step(struct cordon_mcp_call *call, int64_t now)
{
	autosessionrecord struct cordon_session_record session = { 0 };
	struct cordon_mcp_session_wait *waiting = call->state;
	struct cordon_error err = { 0 };
	bool ended, over = now >= waiting->until;

	if (cordon_session_get(call->request.mcp->store, waiting->id, &session, &err) < 0) {
		cordon_mcp_tool_answer(&call->request, call->tool->name, NULL, NULL, &err);
		return true;
	}
	call->due = now + CORDON_MCP_LOOK_MS;
	ended = session.status != CORDON_SESSION_ACTIVE;
	if (waiting->what == CORDON_MCP_WAIT_OUTPUT)
		return step_output(call, ended || over);
	if (!ended && !over) {
		send_progress(call, now);
		return false;
	}
	if (waiting->what == CORDON_MCP_WAIT_END && waiting->over)
		return waiting->over(call, &session, now);
	if (waiting->what == CORDON_MCP_WAIT_END)
		return cordon_mcp_session_answer(call, make_ended);
	if (!ended)
		cordon_fail(&err, -ETIMEDOUT, CORDON_KIND_LIMIT, "session %s has not ended yet", waiting->id);
	cordon_mcp_tool_answer(&call->request, call->tool->name, ended ? cordon_session_json(&session) : NULL, NULL,
			       ended ? NULL : &err);
	return true;
}

static void stop(const struct cordon_store *store, const char *id)
{
	cordon_session_stop(store, id, CORDON_MCP_GRACE_MS, NULL);
}

void cordon_mcp_session_stop_aside(struct cordon_mcp *mcp, const char *id)
{
	cordon_mcp_aside(mcp, stop, id);
}

/* Cancelling a start, or the wait for a session that was started, ends that session. Cancelling another wait only ends
 * the wait. */
static void cancel(struct cordon_mcp_call *call)
{
	const struct cordon_mcp_session_wait *waiting = call->state;

	if (waiting->what == CORDON_MCP_WAIT_START)
		cordon_session_start_cancel(waiting->start);
	if (waiting->what == CORDON_MCP_WAIT_END && waiting->answer.spawned)
		cordon_mcp_session_stop_aside(call->request.mcp, waiting->id);
}

struct cordon_mcp_call *cordon_mcp_session_wait_begin(struct cordon_mcp_request *request,
						      const struct cordon_mcp_tool *tool,
						      const struct cordon_mcp_session_wait *waiting,
						      struct cordon_error *err)
{
	struct cordon_mcp_session_wait *state = calloc(1, sizeof(*state));
	struct cordon_mcp_call *call = state ? cordon_mcp_call_begin(request) : NULL;

	if (!call) {
		free(state);
		cordon_fail(err, -EAGAIN, CORDON_KIND_LIMIT,
			    "too many calls are waiting; ask again later, or without wait_seconds");
		return NULL;
	}
	*state = *waiting;
	call->tool = tool;
	call->state = state;
	call->step = cordon_mcp_session_wait_step;
	call->cancel = cancel;
	call->drop = drop_waiting;
	call->due = cordon_time_monotonic();
	return call;
}

int cordon_mcp_session_wait(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool,
			    cordon_mcp_session_wait_for what, const char *id, int64_t since, size_t max,
			    int64_t wait_ms, struct cordon_error *err)
{
	struct cordon_mcp_session_wait waiting = {
		.what = what, .since = since, .max = max, .until = cordon_time_monotonic() + wait_ms
	};

	cordon_copy(waiting.id, sizeof(waiting.id), id, strlen(id));
	return cordon_mcp_session_wait_begin(request, tool, &waiting, err) ? CORDON_MCP_LATER : err->code;
}
