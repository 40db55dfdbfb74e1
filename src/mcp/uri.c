/* SPDX-License-Identifier: Apache-2.0 */
/* cordon:// URIs. A URI is checked as a whole, and each id by the rules of the store, before anything is looked up. */
#include <stdio.h>

#include "base/time.h"
#include "mcp/uri.h"

#define SCHEME "cordon://"

const struct cordon_mcp_template cordon_mcp_templates[CORDON_MCP_PLACE__MAX] = {
	[CORDON_MCP_PROJECTS] = { "projects", "Projects", "All projects with their settings", NULL },
	[CORDON_MCP_PROJECT] = { "project/{project_id}", "Project", "Record and settings of a project", NULL },
	[CORDON_MCP_WORKSPACES] = { "project/{project_id}/workspaces", "Workspaces", "The workspaces of a project",
				    NULL },
	[CORDON_MCP_WORKSPACE] = { "project/{project_id}/workspace/{workspace_id}", "Workspace",
				   "Record of a workspace", NULL },
	[CORDON_MCP_SESSIONS] = { "sessions", "Sessions", "Sessions that run, and those that have ended", NULL },
	[CORDON_MCP_SESSION] = { "session/{session_id}", "Session", "Record of a session", NULL },
	[CORDON_MCP_SESSION_LOG] = { "session/{session_id}/log", "Session log", "What a session wrote", "text/plain" },
	[CORDON_MCP_AUDIT] = { "audit/{day}", "Audit",
			       "What happened on a day (YYYY-MM-DD, UTC), one JSON record per line",
			       "application/jsonl" },
};

/* Copies one path segment to `ret` and moves *at behind the slash that follows it. */
static bool segment(const char **at, char *ret, size_t size)
{
	size_t n = strcspn(*at, "/");

	if (n == 0 || cordon_copy(ret, size, *at, n) < 0)
		return false;
	*at += n;
	if (**at == '/')
		(*at)++;
	return true;
}

static bool is_day(const char *text)
{
	int64_t ms;

	return strlen(text) == 10 && text[4] == '-' && cordon_time_parse(text, &ms) == 0;
}

/* The value of a variable must be an id in its only spelling. */
static bool take_variable(const char *name, const char *value, struct cordon_mcp_uri *uri)
{
	char id[CORDON_ID_SIZE];

	if (strncmp(name, "{workspace_id", 13) == 0)
		return cordon_id_workspace("", value, uri->workspace, NULL) == 0 && cordon_streq(uri->workspace, value);
	if (strncmp(name, "{day", 4) == 0)
		return is_day(value) && cordon_copy(uri->id, sizeof(uri->id), value, strlen(value)) == 0;
	return cordon_id_uuid("", value, id, NULL) == 0 && cordon_streq(id, value) &&
	       cordon_copy(uri->id, sizeof(uri->id), id, strlen(id)) == 0;
}

static bool matches(const char *template, const char *text, struct cordon_mcp_uri *uri)
{
	char want[64], have[CORDON_ID_SIZE];

	while (*template && *text) {
		bool more = strchr(text, '/') != NULL;

		if (!segment(&template, want, sizeof(want)) || !segment(&text, have, sizeof(have)))
			return false;
		if (*want == '{' ? !take_variable(want, have, uri) : !cordon_streq(want, have))
			return false;
		if (more && !*text)
			return false; /* a trailing slash makes another URI */
	}
	return !*template && !*text;
}

int cordon_mcp_uri_parse(const char *text, struct cordon_mcp_uri *ret_uri)
{
	if (strncmp(text, SCHEME, strlen(SCHEME)) != 0)
		return -EINVAL;
	for (size_t i = 0; i < CORDON_MCP_PLACE__MAX; i++) {
		struct cordon_mcp_uri uri = { .place = (cordon_mcp_place)i };

		if (!matches(cordon_mcp_templates[i].path, text + strlen(SCHEME), &uri))
			continue;
		*ret_uri = uri;
		return 0;
	}
	return -EINVAL;
}

int cordon_mcp_uri_text(const struct cordon_mcp_uri *uri, char *ret_text, size_t size)
{
	const char *at = cordon_mcp_templates[uri->place].path;
	size_t n = (size_t)snprintf(ret_text, size, SCHEME);

	while (*at && n < size) {
		const char *value = strncmp(at, "{workspace_id}", 14) == 0 ? uri->workspace : uri->id;
		int added;

		if (*at == '{') {
			added = snprintf(ret_text + n, size - n, "%s", value);
			at = strchr(at, '}') + 1;
		} else {
			added = snprintf(ret_text + n, size - n, "%c", *at++);
		}
		n += (size_t)added;
	}
	return n < size ? 0 : -ENAMETOOLONG;
}

bool cordon_mcp_uri_same(const struct cordon_mcp_uri *a, const struct cordon_mcp_uri *b)
{
	return a->place == b->place && cordon_streq(a->id, b->id) && cordon_streq(a->workspace, b->workspace);
}

int cordon_mcp_template_find(const char *text, cordon_mcp_place *ret_place)
{
	if (strncmp(text, SCHEME, strlen(SCHEME)) != 0)
		return -ENOENT;
	for (size_t i = 0; i < CORDON_MCP_PLACE__MAX; i++)
		if (cordon_streq(cordon_mcp_templates[i].path, text + strlen(SCHEME)) &&
		    strchr(cordon_mcp_templates[i].path, '{')) {
			*ret_place = (cordon_mcp_place)i;
			return 0;
		}
	return -ENOENT;
}
