/* SPDX-License-Identifier: Apache-2.0 */
/* Resources by URI: projects, workspaces, sessions and the audit log. */
#include <stdio.h>

#include "audit/query.h"
#include "base/time.h"
#include "mcp/internal.h"
#include "mcp/methods.h"
#include "session/session.h"

#define TEMPLATES_TTL_MS 3600000
#define AUDIT_TEXT_MAX ((size_t)1 << 20)
#define AUDIT_TIME_MS 1000
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
	int r = cordon_mcp_cursor_read(request->params, &query.offset, fault);

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
		json_object_set_new(result, "nextCursor",
				    cordon_mcp_cursor_make(query.offset + json_array_size(projects)));
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

/* The records of a day, newest first. */
struct day {
	json_t *lines;
	size_t bytes;
	bool failed; /* no memory */
};

static bool add_line(void *data, const struct cordon_audit_record *record, const char *line, size_t n)
{
	struct day *day = data;

	(void)record;
	day->bytes += n + 1;
	if (day->bytes > AUDIT_TEXT_MAX)
		return false;
	day->failed = json_array_append_new(day->lines, json_stringn(line, n)) < 0;
	return !day->failed;
}

/* Returns the records of one day; of a long day the newest ones that fit, after a line that says so. It looks from the end of the log and
 * for a second at most, because everybody waits. */
static int read_audit(const struct cordon_store *store, const char *day, struct cordon_buf *ret_text,
		      struct cordon_error *err)
{
	json_auto_t *lines = json_array();
	struct day found = { .lines = lines };
	struct cordon_audit_search search = { .filter = { .has_since = true, .has_until = true },
					      .deadline = cordon_time_monotonic() + AUDIT_TIME_MS,
					      .data = &found,
					      .take = add_line };
	struct cordon_audit_searched searched = { 0 };
	int r;

	if (cordon_time_parse(day, &search.filter.since) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a day: %s", day);
	search.filter.until = search.filter.since + DAY_MS;
	r = cordon_audit_search(&store->home, &search, &searched, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (searched.more && cordon_buf_adds(ret_text, "{\"cut\":\"there may be earlier records of this day, which "
						       "'cordon audit' shows\"}\n") < 0)
		found.failed = true;
	for (size_t i = json_array_size(lines); !found.failed && i-- > 0;) {
		const json_t *line = json_array_get(lines, i);

		found.failed = cordon_buf_add(ret_text, json_string_value(line), json_string_length(line)) < 0 ||
			       cordon_buf_addc(ret_text, '\n') < 0;
	}
	return found.failed ? cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory") : 0;
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

static int read_record(const struct cordon_store *store, const struct cordon_mcp_uri *uri, json_t **ret_value,
		       struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record session = { 0 };
	autoprojectrecord struct cordon_project_record project = { 0 };
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	int r;

	if (uri->place == CORDON_MCP_SESSION) {
		r = cordon_session_get(store, uri->id, &session, err);
		*ret_value = r < 0 ? NULL : cordon_session_json(&session);
	} else if (uri->place == CORDON_MCP_PROJECT) {
		r = cordon_project_get(store, uri->id, &project, err);
		*ret_value = r < 0 ? NULL : cordon_project_json(&project);
	} else {
		r = cordon_workspace_get(store, uri->id, uri->workspace, &workspace, err);
		*ret_value = r < 0 ? NULL : cordon_workspace_json(&workspace);
	}
	return r;
}

/* `only` are the projects of the client, or NULL for all. */
static int read_place(const struct cordon_store *store, const struct cordon_mcp_uri *uri, const json_t *only,
		      json_t **ret_value, struct cordon_buf *ret_text, struct cordon_error *err)
{
	struct cordon_list_query query = { .limit = 1000, .only = only };
	size_t total = 0;
	json_t *list = NULL;
	int r;

	switch (uri->place) {
	case CORDON_MCP_SESSION:
	case CORDON_MCP_PROJECT:
	case CORDON_MCP_WORKSPACE:
		return read_record(store, uri, ret_value, err);
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

int cordon_mcp_resources_read(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	autobuf struct cordon_buf text = CORDON_BUF(64 * AUDIT_TEXT_MAX);
	const char *wanted = cordon_mcp_arg(request->params, "uri");
	struct cordon_error err = { 0 };
	struct cordon_mcp_uri uri;
	json_auto_t *value = NULL;
	autofree char *dumped = NULL;
	json_t *result;
	int r;

	if (!wanted)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "resources/read needs a uri");
	if (cordon_mcp_uri_parse(wanted, &uri) < 0 || !cordon_mcp_bound_resource(request->mcp, &uri) ||
	    !cordon_mcp_scope_resource(request->mcp, request->channel, &uri))
		return not_found(request, wanted, fault);
	r = read_place(request->mcp->store, &uri, cordon_mcp_scope_projects(request->channel), &value, &text, &err);
	if (r < 0)
		return err.kind == CORDON_KIND_NOT_FOUND
			       ? not_found(request, wanted, fault)
			       : cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "%s", err.message);
	if (value)
		dumped = json_dumps(value, JSON_INDENT(2));
	result = json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", wanted, "mimeType", mime_of(uri.place), "text",
			   dumped ? dumped : (text.data ? text.data : ""));
	if (!result)
		return cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "out of memory");
	cordon_mcp_cache(request, result, 0, "private");
	*ret_result = result;
	return 0;
}
