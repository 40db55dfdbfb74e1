/* SPDX-License-Identifier: Apache-2.0 */
/* The tools about sessions; those that wait become calls that are moved on as the session goes on. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/time.h"
#include "mcp/internal.h"
#include "mcp/tools.h"
#include "store/session.h"

#define LOOK_MS 50 /* between two looks at a session that is waited for */
#define GRACE_MS 5000
#define STOP_LIMIT_MS 60000
#define TEXT_MAX ((size_t)256 << 10) /* of output in one result */
#define PROGRESS_TEXT 200

typedef enum waiting_for { FOR_END, FOR_OUTPUT, FOR_STOP } waiting_for;

struct waiting {
	waiting_for what;
	char id[CORDON_ID_SIZE];
	int64_t since;
	size_t max;
	int64_t until; /* monotonic */
	off_t size;    /* of the log, at the last look */
	ino_t inode;
	json_t *answer; /* of session_start */
};

static void drop_waiting(struct cordon_mcp_call *call)
{
	struct waiting *waiting = call->state;

	json_decref(waiting->answer);
	free(waiting);
}

/* The transcript as a person would see it, ended by a line about the session; control characters are shown. */
char *cordon_mcp_transcript(const json_t *output)
{
	autobuf struct cordon_buf text = CORDON_BUF(8 * TEXT_MAX);
	json_int_t dropped = json_integer_value(json_object_get(output, "dropped_events"));
	size_t i;
	json_t *event;

	if (dropped)
		cordon_buf_addf(&text, "[%lld earlier events are not kept]\n", (long long)dropped);
	json_array_foreach(json_object_get(output, "events"), i, event) {
		const char *type = cordon_mcp_arg(event, "type");
		const char *bytes = cordon_mcp_arg(event, "text");
		bool agent = cordon_streq(type, "stdout") || cordon_streq(type, "stderr");

		if (!agent)
			cordon_buf_addf(&text, "%s[%s] ", text.len && text.data[text.len - 1] != '\n' ? "\n" : "", type);
		cordon_text_escape_lines(&text, bytes, strlen(bytes));
		if (!agent)
			cordon_buf_addc(&text, '\n');
	}
	cordon_buf_addf(&text, "%s[session %s is %s, last_index %lld]",
			text.len && text.data[text.len - 1] != '\n' ? "\n" : "", cordon_mcp_arg(output, "session_id"),
			cordon_mcp_arg(output, "status"),
			(long long)json_integer_value(json_object_get(output, "last_index")));
	return cordon_buf_steal(&text);
}

/* Cuts the list so that one result stays readable; what follows is had with since_index. */
static void bound(json_t *output)
{
	json_t *events = json_object_get(output, "events");
	size_t bytes = 0, i;
	json_t *event;

	json_array_foreach(events, i, event) {
		bytes += json_string_length(json_object_get(event, "text")) + 64;
		if (bytes <= TEXT_MAX || i == 0)
			continue;
		while (json_array_size(events) > i)
			json_array_remove(events, json_array_size(events) - 1);
		json_object_set_new(output, "more", json_true());
		return;
	}
}

static int read_output(const struct cordon_store *store, const char *id, int64_t since, size_t max, json_t **ret_output,
		       char **ret_text, struct cordon_error *err)
{
	json_t *output = NULL;
	int r = cordon_session_output(store, id, since, max, &output, err);

	if (r < 0)
		return r;
	bound(output);
	*ret_text = cordon_mcp_transcript(output);
	*ret_output = output;
	return 0;
}

/* The last line that was written, for progress. */
static void last_line(const json_t *output, char ret_line[static PROGRESS_TEXT])
{
	const json_t *events = json_object_get(output, "events");
	const json_t *last = json_array_get(events, json_array_size(events) - 1);
	const char *text = last ? cordon_mcp_arg(last, "text") : NULL;
	size_t n = text ? strlen(text) : 0;
	size_t start;

	while (n && text[n - 1] == '\n')
		n--;
	for (start = n; start && text[start - 1] != '\n'; start--)
		;
	if (text)
		cordon_text_escape_fixed(ret_line, PROGRESS_TEXT, text + start, n - start);
	else
		cordon_copy(ret_line, PROGRESS_TEXT, "running", 7);
}

static void finish_start(struct cordon_mcp_call *call, const json_t *session)
{
	static const char *const kept[] = { "status", "state", "exit_code", "signal", "duration_ms", "violations" };
	struct waiting *waiting = call->state;
	struct cordon_error err = { 0 };
	json_t *output = NULL;
	char *text = NULL;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(kept); i++) {
		json_t *value = json_object_get(session, kept[i]);

		if (value && !json_is_null(value))
			json_object_set(waiting->answer, kept[i], value);
	}
	if (read_output(call->request.mcp->store, waiting->id, waiting->since, 0, &output, &text, &err) == 0) {
		json_object_set(waiting->answer, "events", json_object_get(output, "events"));
		json_object_set(waiting->answer, "last_event_index", json_object_get(output, "last_index"));
	}
	json_decref(output);
	cordon_mcp_tool_answer(&call->request, "session_start", json_incref(waiting->answer), text, NULL);
}

/* Whether the log has grown since the last look; parsing it is not for every look. */
static bool has_grown(const struct cordon_store *store, struct waiting *waiting)
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

static void tell_progress(struct cordon_mcp_call *call, int64_t now)
{
	struct waiting *waiting = call->state;
	json_auto_t *output = NULL;
	char line[PROGRESS_TEXT];

	if (!json_object_get(call->request.meta, "progressToken") || !has_grown(call->request.mcp->store, waiting) ||
	    cordon_session_output(call->request.mcp->store, waiting->id, -1, 0, &output, NULL) < 0)
		return;
	last_line(output, line);
	cordon_mcp_call_progress(call, now, line);
}

/* Answers when there is something new, or nothing more to come. */
static bool step_output(struct cordon_mcp_call *call, bool last)
{
	struct waiting *waiting = call->state;
	struct cordon_error err = { 0 };
	json_t *output = NULL;
	char *text = NULL;
	int r;

	if (!last && !has_grown(call->request.mcp->store, waiting))
		return false;
	r = read_output(call->request.mcp->store, waiting->id, waiting->since, waiting->max, &output, &text, &err);
	if (r == 0 && !last && json_array_size(json_object_get(output, "events")) == 0) {
		json_decref(output);
		free(text);
		return false;
	}
	cordon_mcp_tool_answer(&call->request, "session_output", output, text, r < 0 ? &err : NULL);
	return true;
}

static bool step(struct cordon_mcp_call *call, int64_t now)
{
	struct waiting *waiting = call->state;
	struct cordon_error err = { 0 };
	json_auto_t *session = NULL;
	bool ended, over = now >= waiting->until;

	if (cordon_session_get(call->request.mcp->store, waiting->id, &session, &err) < 0) {
		cordon_mcp_tool_answer(&call->request, call->tool->name, NULL, NULL, &err);
		return true;
	}
	call->due = now + LOOK_MS;
	ended = !cordon_streq(cordon_mcp_arg(session, "status"), "active");
	if (waiting->what == FOR_OUTPUT)
		return step_output(call, ended || over);
	if (!ended && !over) {
		tell_progress(call, now);
		return false;
	}
	if (waiting->what == FOR_END) {
		finish_start(call, session);
		return true;
	}
	if (!ended)
		cordon_fail(&err, -ETIMEDOUT, CORDON_KIND_LIMIT, "session %s has not ended yet", waiting->id);
	cordon_mcp_tool_answer(&call->request, "session_stop", ended ? json_incref(session) : NULL, NULL,
			       ended ? NULL : &err);
	return true;
}

/* Cancelling what waits for a session that it started ends that session; other waits are only given up. */
static void cancel(struct cordon_mcp_call *call)
{
	const struct waiting *waiting = call->state;

	if (waiting->what == FOR_END && json_is_true(json_object_get(waiting->answer, "spawned")))
		cordon_session_stop(call->request.mcp->store, waiting->id, GRACE_MS, NULL);
}

static int wait_for(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, waiting_for what,
		    const char *id, int64_t since, size_t max, int64_t wait_ms, json_t *answer, struct cordon_error *err)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	struct cordon_mcp_call *call = waiting ? cordon_mcp_call_begin(request) : NULL;
	int64_t now = cordon_time_monotonic();

	if (!call) {
		free(waiting);
		json_decref(answer);
		return cordon_fail(err, -EAGAIN, CORDON_KIND_LIMIT,
				   "too many calls are waiting; ask again without wait_seconds");
	}
	*waiting = (struct waiting){ .what = what, .since = since, .max = max, .until = now + wait_ms, .answer = answer };
	cordon_copy(waiting->id, sizeof(waiting->id), id, strlen(id));
	call->tool = tool;
	call->state = waiting;
	call->step = step;
	call->cancel = cancel;
	call->drop = drop_waiting;
	call->due = now;
	return CORDON_MCP_LATER;
}

static void read_request(const struct cordon_mcp_request *request, const json_t *args,
			 struct cordon_session_request *ret_wanted)
{
	*ret_wanted = (struct cordon_session_request){
		.project = cordon_mcp_arg(args, "project_id"),
		.workspace = { .id = cordon_mcp_arg(args, "workspace_id"),
			       .external_id = cordon_mcp_arg(args, "external_id"),
			       .source = cordon_mcp_arg(args, "source") },
		.create_workspace = json_is_true(json_object_get(args, "create_workspace")),
		.new_session = json_is_true(json_object_get(args, "new_session")),
		.command = json_object_get(args, "command"),
		.message = cordon_mcp_arg(args, "message"),
		.end_input = json_is_true(json_object_get(args, "end_input")),
		.context = json_object_get(args, "context"),
		.attachments = json_object_get(args, "attachments"),
		.parent = request->mcp->options.session ? request->mcp->options.session
							: cordon_mcp_arg(args, "parent_session_id"),
	};
}

static int session_start(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			 struct cordon_error *err)
{
	json_int_t wait = json_integer_value(json_object_get(args, "wait_seconds"));
	struct cordon_session_request wanted;
	json_t *answer = NULL;
	int r;

	(void)ret_text;
	read_request(request, args, &wanted);
	r = cordon_session_start(request->mcp->store, &wanted, &answer, err);
	if (r < 0)
		return r;
	if (!wait) {
		*ret_result = answer;
		return 0;
	}
	return wait_for(request, &cordon_mcp_session_start, FOR_END, cordon_mcp_arg(answer, "session_id"), -1, 0,
			wait * 1000, answer, err);
}

static int session_send(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	const struct cordon_store *store = request->mcp->store;
	const char *id = cordon_mcp_arg(args, "session_id");
	struct cordon_session_request wanted;
	json_auto_t *session = NULL;
	int64_t last;
	int r;

	(void)ret_text;
	read_request(request, args, &wanted);
	if (!id && !wanted.project)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "session_id or project_id is required");
	if (!id)
		return cordon_session_start(store, &wanted, ret_result, err);
	r = cordon_session_send(store, id, wanted.message, wanted.end_input, &last, err);
	if (r == 0)
		r = cordon_session_get(store, id, &session, err);
	if (r == 0)
		*ret_result = json_pack("{s:s, s:O, s:b, s:b, s:I, s:O}", "session_id", id, "workspace_id",
					json_object_get(session, "workspace_id"), "spawned", 0, "workspace_created", 0,
					"last_event_index", (json_int_t)last, "status",
					json_object_get(session, "status"));
	return r;
}

/* Output of the sessions that it started, each with its own session_id. */
static void add_children(const struct cordon_store *store, const json_t *session, json_t *output)
{
	size_t i, k;
	json_t *child, *event;

	json_array_foreach(json_object_get(session, "child_sessions"), i, child) {
		json_auto_t *more = NULL;

		if (cordon_session_output(store, json_string_value(child), -1, 0, &more, NULL) < 0)
			continue;
		json_array_foreach(json_object_get(more, "events"), k, event) {
			json_array_append(json_object_get(output, "events"), event);
		}
	}
}

static int session_output(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			  struct cordon_error *err)
{
	const struct cordon_store *store = request->mcp->store;
	const char *id = cordon_mcp_arg(args, "session_id");
	const json_t *from = json_object_get(args, "since_index");
	int64_t since = from ? json_integer_value(from) : -1;
	size_t max = (size_t)json_integer_value(json_object_get(args, "max_events"));
	json_int_t wait = json_integer_value(json_object_get(args, "wait_seconds"));
	json_auto_t *session = NULL;
	json_t *output = NULL;
	int r = cordon_session_get(store, id, &session, err);

	if (r == 0)
		r = cordon_session_output(store, id, since, max, &output, err);
	if (r < 0)
		return r;
	if (wait && json_array_size(json_object_get(output, "events")) == 0 &&
	    cordon_streq(cordon_mcp_arg(session, "status"), "active")) {
		json_decref(output);
		return wait_for(request, &cordon_mcp_session_output, FOR_OUTPUT, cordon_mcp_arg(session, "session_id"),
				since, max, wait * 1000, NULL, err);
	}
	if (json_is_true(json_object_get(args, "include_children")))
		add_children(store, session, output);
	bound(output);
	*ret_text = cordon_mcp_transcript(output);
	*ret_result = output;
	return 0;
}

static int session_get(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		       struct cordon_error *err)
{
	(void)ret_text;
	return cordon_session_get(request->mcp->store, cordon_mcp_arg(args, "session_id"), ret_result, err);
}

static int session_list(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	struct cordon_list_query page = { 0 };
	struct cordon_session_query query = { .project = cordon_mcp_arg(args, "project_id"),
					      .workspace = cordon_mcp_arg(args, "workspace_id"),
					      .status = cordon_mcp_arg(args, "status") };
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

static int session_stop(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	const struct cordon_store *store = request->mcp->store;
	const char *id = cordon_mcp_arg(args, "session_id");
	const json_t *given = json_object_get(args, "grace_seconds");
	int64_t grace = given ? json_integer_value(given) * 1000 : GRACE_MS;
	json_auto_t *session = NULL;
	int r = cordon_session_stop(store, id, (uint64_t)grace, err);

	(void)ret_text;
	if (r == 0)
		r = cordon_session_get(store, id, &session, err);
	if (r < 0)
		return r;
	if (!cordon_streq(cordon_mcp_arg(session, "status"), "active")) {
		*ret_result = json_incref(session);
		return 0;
	}
	return wait_for(request, &cordon_mcp_session_stop, FOR_STOP, cordon_mcp_arg(session, "session_id"), -1, 1,
			grace + STOP_LIMIT_MS, NULL, err);
}

#define SESSION_ID "\"session_id\": {\"type\": \"string\", \"description\": \"UUID of the session\"}"

#define WHERE                                                                                                                   \
	"\"project_id\": {\"type\": \"string\", \"description\": \"UUID of the project\"},"                                     \
	"\"workspace_id\": {\"type\": \"string\", \"description\": \"Default: the project's default workspace\"},"              \
	"\"create_workspace\": {\"type\": \"boolean\", \"default\": false},"                                                    \
	"\"new_session\": {\"type\": \"boolean\", \"default\": false,"                                                          \
	" \"description\": \"Do not resume the latest session of the workspace\"},"                                             \
	"\"external_id\": {\"type\": \"string\", \"maxLength\": 1024}, \"source\": {\"type\": \"string\", \"maxLength\": 256}," \
	"\"command\": {\"type\": \"array\", \"items\": {\"type\": \"string\"},"                                                 \
	" \"description\": \"Default: the project's agent_command\"},"                                                          \
	"\"end_input\": {\"type\": \"boolean\", \"default\": false, \"description\": \"Close its standard input afterwards\"}," \
	"\"context\": {\"type\": \"object\", \"description\": \"Given to the agent as CORDON_CONTEXT\"},"                       \
	"\"attachments\": {\"type\": \"array\", \"maxItems\": 32, \"items\": {\"type\": \"object\","                            \
	" \"required\": [\"filename\", \"data\"], \"additionalProperties\": false, \"properties\": {"                           \
	"\"filename\": {\"type\": \"string\"}, \"content_type\": {\"type\": \"string\"},"                                       \
	"\"data\": {\"type\": \"string\", \"description\": \"base64\"}}}},"                                                     \
	"\"parent_session_id\": {\"type\": \"string\"}"

#define WAIT "\"wait_seconds\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 3600, \"default\": 0"

#define ANSWER                                                                                                                     \
	"{\"session_id\": {\"type\": \"string\"}, \"workspace_id\": {\"type\": \"string\"}, \"spawned\": {\"type\": \"boolean\"}," \
	"\"workspace_created\": {\"type\": \"boolean\"}, \"last_event_index\": {\"type\": \"integer\"},"                           \
	"\"status\": {\"type\": \"string\"}, \"state\": {\"type\": \"string\"}, \"exit_code\": {\"type\": \"integer\"},"           \
	"\"signal\": {\"type\": \"integer\"}, \"duration_ms\": {\"type\": \"integer\"}, \"violations\": {\"type\": \"integer\"},"  \
	"\"events\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}"

#define ANSWER_ALWAYS                                                                                                  \
	"[\"session_id\", \"workspace_id\", \"spawned\", \"workspace_created\", \"last_event_index\", \"status\"]"

#define RECORD                                                                                                                       \
	"{\"session_id\": {\"type\": \"string\"}, \"project_id\": {\"type\": \"string\"}, \"workspace_id\": {\"type\": \"string\"}," \
	"\"status\": {\"type\": \"string\", \"enum\": [\"active\", \"completed\", \"failed\"]}, \"state\": {\"type\": \"string\"},"  \
	"\"created_at\": {\"type\": \"string\"}, \"updated_at\": {\"type\": \"string\"}, \"turns\": {\"type\": \"array\"},"          \
	"\"depth\": {\"type\": \"integer\"}, \"workspace_isolation\": {\"type\": \"boolean\"},"                                      \
	"\"protected_paths\": {\"type\": \"array\"}, \"enforcement\": {\"type\": \"object\"}}"

#define RECORD_ALWAYS                                                                                                  \
	"[\"session_id\", \"project_id\", \"workspace_id\", \"status\", \"workspace_isolation\", \"protected_paths\"]"

const struct cordon_mcp_tool cordon_mcp_session_start = {
	.name = "session_start",
	.title = "Start session",
	.description =
		"Run the project's agent, or a command, in a workspace, inside a sandbox. Without a command the latest session "
		"of the workspace is resumed. Returns when the program runs, or with wait_seconds when it has ended or the "
		"time is over; cancelling then stops it. A session lives until its program ends or session_stop; its record "
		"stays for session_output.",
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"project_id\"], \"properties\": {" WHERE
		 ","
		 "\"message\": {\"type\": \"string\", \"description\": \"Goes to its standard input\"}," WAIT "}}}",
	.output = ANSWER,
	.always = ANSWER_ALWAYS,
	.open_world = true,
	.call = session_start,
};

const struct cordon_mcp_tool cordon_mcp_session_send = {
	.name = "session_send",
	.title = "Send to session",
	.description = "Send a line to a session's standard input: to session_id, or to the latest session of a workspace, which is "
		       "started when it does not run.",
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"message\"], \"properties\": {" SESSION_ID
		 "," WHERE ", \"message\": {\"type\": \"string\"}}}",
	.output = ANSWER,
	.always = ANSWER_ALWAYS,
	.open_world = true,
	.call = session_send,
};

const struct cordon_mcp_tool cordon_mcp_session_output = {
	.name = "session_output",
	.title = "Read session output",
	.description =
		"Read what a session wrote and what happened to it, after since_index (-1: all of the last 1000 events). With "
		"wait_seconds it waits for something new. `more` says that the result was cut: ask again from the last index.",
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"session_id\"], \"properties\": {" SESSION_ID
		 ","
		 "\"since_index\": {\"type\": \"integer\", \"minimum\": -1, \"default\": -1},"
		 "\"max_events\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000},"
		 "\"include_children\": {\"type\": \"boolean\", \"default\": false}," WAIT "}}}",
	.output = "{\"session_id\": {\"type\": \"string\"}, \"status\": {\"type\": \"string\"}, \"last_index\": {\"type\": \"integer\"},"
		  "\"events\": {\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {\"index\": {\"type\": \"integer\"},"
		  "\"type\": {\"type\": \"string\"}, \"text\": {\"type\": \"string\"}, \"role\": {\"type\": \"string\"},"
		  "\"session_id\": {\"type\": \"string\"}}}},"
		  "\"completed\": {\"type\": \"boolean\"}, \"failed\": {\"type\": \"boolean\"}, \"error\": {\"type\": \"object\"},"
		  "\"dropped_events\": {\"type\": \"integer\"}, \"more\": {\"type\": \"boolean\"}}",
	.always = "[\"session_id\", \"status\", \"last_index\", \"events\", \"completed\", \"failed\", \"dropped_events\"]",
	.read_only = true,
	.idempotent = true,
	.call = session_output,
};

const struct cordon_mcp_tool cordon_mcp_session_get = {
	.name = "session_get",
	.title = "Get session",
	.description = "Show how a session stands, what it was started with and what holds it.",
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"session_id\"], \"properties\": {" SESSION_ID
		 "}}",
	.output = RECORD,
	.always = RECORD_ALWAYS,
	.read_only = true,
	.idempotent = true,
	.call = session_get,
};

const struct cordon_mcp_tool cordon_mcp_session_list = {
	.name = "session_list",
	.title = "List sessions",
	.description = "List sessions, oldest first.",
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
		 "\"project_id\": {\"type\": \"string\"}, \"workspace_id\": {\"type\": \"string\"},"
		 "\"status\": {\"type\": \"string\", \"enum\": [\"active\", \"completed\", \"failed\"]}, " CORDON_MCP_LIST_INPUT
		 "}}",
	.output = "{\"sessions\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}, \"total\": {\"type\": \"integer\"}}",
	.always = "[\"sessions\", \"total\"]",
	.read_only = true,
	.idempotent = true,
	.call = session_list,
};

const struct cordon_mcp_tool cordon_mcp_session_stop = {
	.name = "session_stop",
	.title = "Stop session",
	.description = "End a session with everything in it: SIGTERM, then SIGKILL after grace_seconds. Returns its record when it has "
		       "ended; one that has ended already is fine.",
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"session_id\"], \"properties\": {" SESSION_ID
		 ","
		 "\"grace_seconds\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 300, \"default\": 5}}}",
	.output = RECORD,
	.always = RECORD_ALWAYS,
	.destructive = true,
	.idempotent = true,
	.call = session_stop,
};
