/* SPDX-License-Identifier: Apache-2.0 */
/* Resources by URI: projects, workspaces, sessions and the audit log. */
#include <stdio.h>

#include "audit/query.h"
#include "base/time.h"
#include "job/session.h"
#include "mcp/internal.h"
#include "mcp/methods.h"

/* ---- pages of a list ---- */

#define PREFIX "c1-"

/* Opaque cursors. Returns -EPROTO for a bad one. */
static int mcp_cursor_read(const json_t *params, size_t *ret_offset, struct cordon_mcp_fault *fault)
{
	const json_t *cursor = json_object_get(params, "cursor");
	const char *text = json_string_value(cursor);
	uint64_t offset = 0;

	if (cursor && (!text || strncmp(text, PREFIX, strlen(PREFIX)) != 0 ||
		       cordon_parse_u64(text + strlen(PREFIX), 1, CORDON_LIST_MAX, &offset) < 0))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "Invalid cursor");
	*ret_offset = offset;
	return 0;
}

static json_t *mcp_cursor_make(size_t offset)
{
	return json_sprintf(PREFIX "%zu", offset);
}

/* ---- resources ---- */

#define TEMPLATES_TTL_MS 3600000
#define AUDIT_TEXT_MAX ((size_t)1 << 20)
#define AUDIT_TIME_MS 20000 /* less than a child that reads may take */
#define DAY_MS 86400000

static const char *mime_of(cordon_mcp_place place)
{
	const char *mime = cordon_mcp_templates[place].mime;

	return mime ? mime : "application/json";
}

/* Makes one entry of the list; `title` may be a project's name. */
static void add(json_t *list, const struct cordon_mcp_uri *uri, const char *title)
{
	const struct cordon_mcp_template *template = &cordon_mcp_templates[uri->place];
	char text[CORDON_MCP_URI_SIZE], name[CORDON_NAME_MAX + 32];

	if (cordon_mcp_uri_text(uri, text, sizeof(text)) < 0)
		return;
	snprintf(name, sizeof(name), "%s%s%s", template->name, title ? ": " : "", title ? title : "");
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "uri", text, "name", name, "description",
					      template->description, "mimeType", mime_of(uri->place)));
}

static void today(char ret_day[static CORDON_TIME_SIZE])
{
	cordon_time_format(cordon_time_now(), ret_day);
	ret_day[10] = '\0';
}

/* One that is deleted meanwhile is no part of the list. */
static void add_project(const struct cordon_store *store, const char *id, json_t *list)
{
	autoprojectrecord struct cordon_project_record project = { 0 };
	struct cordon_mcp_uri uri = { .place = CORDON_MCP_PROJECT };

	if (cordon_project_get(store, id, &project, NULL) < 0)
		return;
	cordon_copy(uri.id, sizeof(uri.id), project.id, strlen(project.id));
	add(list, &uri, project.name);
	uri.place = CORDON_MCP_WORKSPACES;
	add(list, &uri, project.name);
}

int cordon_mcp_resources_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const json_t *only = cordon_mcp_scope_projects(request->channel);
	struct cordon_list_query query = { .limit = CORDON_MCP_PAGE, .ids_only = true, .only = only };
	struct cordon_error err = { 0 };
	json_auto_t *projects = NULL;
	json_t *list, *result, *project;
	char day[CORDON_TIME_SIZE];
	size_t i, total;
	int r = mcp_cursor_read(request->params, &query.offset, fault);

	if (r < 0)
		return r;
	if (cordon_project_list(request->mcp->store, &query, &projects, &total, &err) < 0)
		return cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "%s", err.message);
	list = json_array();
	if (request->mcp->options.session) {
		struct cordon_mcp_uri own = { .place = CORDON_MCP_SESSION_LOG };

		cordon_copy(own.id, sizeof(own.id), request->mcp->options.session,
			    strlen(request->mcp->options.session));
		add(list, &own, NULL);
		*ret_result = json_pack("{s:o}", "resources", list);
		cordon_mcp_cache(request, *ret_result, 0, "private");
		return 0;
	}
	if (query.offset == 0) {
		struct cordon_mcp_uri audit = { .place = CORDON_MCP_AUDIT };

		today(day);
		cordon_copy(audit.id, sizeof(audit.id), day, strlen(day));
		add(list, &(struct cordon_mcp_uri){ .place = CORDON_MCP_PROJECTS }, NULL);
		add(list, &(struct cordon_mcp_uri){ .place = CORDON_MCP_SESSIONS }, NULL);
		if (!only)
			add(list, &audit, day);
	}
	json_array_foreach(projects, i, project) {
		add_project(request->mcp->store, json_string_value(project), list);
	}
	result = json_pack("{s:o}", "resources", list);
	if (query.offset + json_array_size(projects) < total)
		json_object_set_new(result, "nextCursor", mcp_cursor_make(query.offset + json_array_size(projects)));
	cordon_mcp_cache(request, result, 0, "private");
	*ret_result = result;
	return 0;
}

int cordon_mcp_templates_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	json_t *list, *result;

	if (json_object_get(request->params, "cursor"))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "Invalid cursor");
	list = json_array();
	for (size_t i = 0; i < CORDON_MCP_PLACE__MAX; i++) {
		const struct cordon_mcp_template *template = &cordon_mcp_templates[i];

		if (strchr(template->path, '{'))
			json_array_append_new(list, json_pack("{s:o, s:s, s:s, s:s}", "uriTemplate",
							      json_sprintf("cordon://%s", template->path), "name",
							      template->name, "description", template->description,
							      "mimeType", mime_of((cordon_mcp_place)i)));
	}
	result = json_pack("{s:o}", "resourceTemplates", list);
	cordon_mcp_cache(request, result, TEMPLATES_TTL_MS, "public");
	*ret_result = result;
	return 0;
}

/* The records of a day: of each log the newest that fit. */
struct day {
	json_t *lines; /* [{"time", "line"}] */
	size_t bytes;
	bool failed; /* no memory */
};

static bool add_line(void *data, const struct cordon_audit_record *record, const char *line, size_t n)
{
	struct day *day = data;

	day->bytes += n + 1;
	if (day->bytes > AUDIT_TEXT_MAX)
		return false;
	day->failed = json_array_append_new(day->lines, json_pack("{s:I, s:s%}", "time", (json_int_t)record->time,
								  "line", line, n)) < 0;
	return !day->failed;
}

struct line {
	json_int_t time;
	size_t at; /* in the order of its log */
	const json_t *text;
};

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->time != y->time ? (x->time > y->time) - (x->time < y->time) : (x->at > y->at) - (x->at < y->at);
}

/* Writes the lines by their time. */
static int write_day(const json_t *lines, struct cordon_buf *ret_text)
{
	size_t n = json_array_size(lines);
	autofree struct line *sorted = calloc(n + 1, sizeof(*sorted));
	int r = sorted ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++) { /* The newest was found first. */
		const json_t *found = json_array_get(lines, n - 1 - i);

		sorted[i] = (struct line){ .time = cordon_json_integer(found, "time"),
					   .at = i,
					   .text = json_object_get(found, "line") };
	}
	if (r == 0)
		qsort(sorted, n, sizeof(*sorted), by_time);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = cordon_buf_add(ret_text, json_string_value(sorted[i].text), json_string_length(sorted[i].text));
		if (r == 0)
			r = cordon_buf_addc(ret_text, '\n');
	}
	return r;
}

/* Returns the records of one day; of a long day the newest ones that fit, after a line that says so. It looks from the end of each log, for
 * a bounded time. */
static int read_audit(const struct cordon_store *store, const char *day, struct cordon_buf *ret_text,
		      struct cordon_error *err)
{
	json_auto_t *lines = json_array();
	struct day found = { .lines = lines };
	struct cordon_audit_search search = { .filter = { .has_since = true, .has_until = true },
					      .deadline = cordon_time_monotonic() + AUDIT_TIME_MS,
					      .data = &found,
					      .take = add_line };
	bool more = false;

	if (cordon_time_parse(day, &search.filter.since) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a day: %s", day);
	search.filter.until = search.filter.since + DAY_MS;
	for (int calls = 0; calls < 2; calls++) {
		struct cordon_audit_searched searched = { 0 };
		int r;

		search.filter.calls = calls;
		found.bytes = 0;
		r = cordon_audit_search(&store->home, &search, &searched, err);
		if (r < 0 && r != -ENOENT)
			return r;
		more |= searched.more;
	}
	if (more && cordon_buf_adds(ret_text, "{\"cut\":\"there may be earlier records of this day, which "
					      "'cordon audit' shows\"}\n") < 0)
		found.failed = true;
	return found.failed || write_day(lines, ret_text) < 0
		       ? cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory")
		       : 0;
}

static int read_log(const struct cordon_store *store, const char *id, struct cordon_buf *ret_text,
		    struct cordon_error *err)
{
	json_auto_t *output = NULL;
	autofree char *text = NULL;
	int r = cordon_session_output(store, id, -1, 0, &output, err);

	if (r < 0)
		return r;
	text = cordon_mcp_transcript(output);
	return text && cordon_buf_adds(ret_text, text) == 0
		       ? 0
		       : cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the log is too long");
}

static int read_record(const struct cordon_mcp_request *request, const struct cordon_mcp_uri *uri, json_t **ret_value,
		       struct cordon_error *err)
{
	const struct cordon_store *store = request->mcp->store;
	autosessionrecord struct cordon_session_record session = { 0 };
	autoprojectrecord struct cordon_project_record project = { 0 };
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	int r;

	if (uri->place == CORDON_MCP_SESSION) {
		r = cordon_session_get(store, uri->id, &session, err);
		*ret_value = r < 0 ? NULL : cordon_session_json(&session);
	} else if (uri->place == CORDON_MCP_PROJECT) {
		r = cordon_project_get(store, uri->id, &project, err);
		*ret_value = r < 0 ? NULL : cordon_mcp_project_json(request, &project);
	} else {
		r = cordon_workspace_get(store, uri->id, uri->workspace, &workspace, err);
		*ret_value = r < 0 ? NULL : cordon_workspace_json(&workspace);
	}
	return r;
}

static int read_place(const struct cordon_mcp_request *request, const struct cordon_mcp_uri *uri, json_t **ret_value,
		      struct cordon_buf *ret_text, struct cordon_error *err)
{
	const json_t *only = cordon_mcp_scope_projects(request->channel); /* NULL: all */
	const struct cordon_store *store = request->mcp->store;
	struct cordon_list_query query = { .limit = 1000, .only = only };
	size_t total = 0;
	json_t *list = NULL;
	int r;

	switch (uri->place) {
	case CORDON_MCP_SESSION:
	case CORDON_MCP_PROJECT:
	case CORDON_MCP_WORKSPACE:
		return read_record(request, uri, ret_value, err);
	case CORDON_MCP_SESSION_LOG:
		return read_log(store, uri->id, ret_text, err);
	case CORDON_MCP_SESSIONS:
		r = cordon_session_list(store, &(struct cordon_session_query){ .limit = 1000, .only = only }, &list,
					&total, err);
		if (r == 0)
			*ret_value = json_pack("{s:o, s:I}", "sessions", list, "total", (json_int_t)total);
		return r;
	case CORDON_MCP_AUDIT:
		return read_audit(store, uri->id, ret_text, err);
	case CORDON_MCP_WORKSPACES:
		r = cordon_workspace_list(store, uri->id, &query, &list, &total, err);
		break;
	case CORDON_MCP_PROJECTS:
	case CORDON_MCP_PLACE__MAX:
	default:
		r = cordon_project_list(store, &query, &list, &total, err);
		cordon_mcp_hide_values(request, list);
	}
	if (r == 0)
		*ret_value = json_pack("{s:o, s:I}", uri->place == CORDON_MCP_PROJECTS ? "projects" : "workspaces",
				       list, "total", (json_int_t)total);
	return r;
}

static int not_found(const struct cordon_mcp_request *request, const char *uri, struct cordon_mcp_fault *fault)
{
	fault->data = json_pack("{s:s}", "uri", uri);
	return cordon_mcp_fail(fault, request->modern ? CORDON_MCP_INVALID_PARAMS : CORDON_MCP_OLD_NOT_FOUND,
			       "Resource not found");
}

/* ---- reading, in a child ---- */

static json_t *work_read(struct cordon_mcp_call *call, int *ret_fd)
{
	autobuf struct cordon_buf text = CORDON_BUF(64 * AUDIT_TEXT_MAX);
	const struct cordon_mcp_request *request = &call->request;
	const struct cordon_mcp_uri *uri = call->state;
	struct cordon_error err = { 0 };
	json_auto_t *value = NULL;
	autofree char *dumped = NULL;

	(void)ret_fd;
	if (read_place(request, uri, &value, &text, &err) < 0)
		return cordon_mcp_error_json(&err);
	if (value && !(dumped = json_dumps(value, JSON_INDENT(2))))
		return NULL;
	return json_string(dumped ? dumped : text.data ? text.data : "");
}

static bool was_read(struct cordon_mcp_call *call, json_t *value, int *fd, int64_t now)
{
	const struct cordon_mcp_request *request = &call->request;
	const struct cordon_mcp_uri *uri = call->state;
	const char *wanted = cordon_json_string(request->params, "uri");
	struct cordon_mcp_fault fault = { 0 };
	struct cordon_error err = { 0 };
	json_t *result;
	int r = 0;

	(void)fd, (void)now;
	if (cordon_mcp_error_read(value, &err) < 0)
		r = err.kind == CORDON_KIND_NOT_FOUND
			    ? not_found(request, wanted, &fault)
			    : cordon_mcp_fail(&fault, CORDON_MCP_INTERNAL_ERROR, "%s", err.message);
	else if (!json_is_string(value))
		r = cordon_mcp_fail(&fault, CORDON_MCP_INTERNAL_ERROR,
				    "reading took too much time or memory, or failed");
	if (r < 0) {
		cordon_mcp_send_fault(request->channel, request->id, &fault);
		return true;
	}
	result = json_pack("{s:[{s:s, s:s, s:O}]}", "contents", "uri", wanted, "mimeType", mime_of(uri->place), "text",
			   value);
	if (result)
		cordon_mcp_cache(request, result, 0, "private");
	cordon_mcp_send_result(request, result);
	return true;
}

static void drop_read(struct cordon_mcp_call *call)
{
	free(call->state);
}

/* Logs and lists may be long, and everybody else would wait. */
int cordon_mcp_resources_read(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	static const struct cordon_mcp_work reads = { .work = work_read, .done = was_read, .reads = true };
	const char *wanted = cordon_json_string(request->params, "uri");
	struct cordon_mcp_call *call;
	struct cordon_mcp_uri uri, *state;

	(void)ret_result;
	if (!wanted)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "resources/read needs a uri");
	if (cordon_mcp_uri_parse(wanted, &uri) < 0 || !cordon_mcp_bound_resource(request->mcp, &uri) ||
	    !cordon_mcp_scope_resource(request->mcp, request->channel, &uri))
		return not_found(request, wanted, fault);
	state = malloc(sizeof(*state));
	call = state ? cordon_mcp_call_begin(request) : NULL;
	if (!call) {
		free(state);
		return cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "too many calls are waiting; ask again later");
	}
	*state = uri;
	call->state = state;
	call->drop = drop_read;
	if (cordon_mcp_apart(call, &reads) == 0)
		return CORDON_MCP_LATER;
	cordon_mcp_call_drop(call);
	return cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "out of memory");
}
