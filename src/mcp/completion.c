/* SPDX-License-Identifier: Apache-2.0 */
/* Completes ids in templates and prompts from the records of the store. */
#include "base/time.h"
#include "mcp/internal.h"
#include "store/store.h"

#define VALUES_MAX 100

/* Adds `value` if it begins with `prefix`. Every match is counted, the first hundred are listed. */
static void offer(json_t *values, const char *prefix, const char *value, size_t *total)
{
	if (!value || strncmp(value, prefix, strlen(prefix)) != 0)
		return;
	if ((*total)++ < VALUES_MAX)
		json_array_append_new(values, json_string(value));
}

static void offer_all(json_t *values, const char *prefix, const json_t *ids, size_t *total)
{
	size_t i;
	json_t *id;

	json_array_foreach(ids, i, id) {
		offer(values, prefix, json_string_value(id), total);
	}
}

static void offer_projects(const struct cordon_store *store, const json_t *only, json_t *values, const char *prefix,
			   size_t *total)
{
	struct cordon_list_query all = { .ids_only = true, .only = only };
	json_auto_t *ids = NULL;

	if (cordon_project_list(store, &all, &ids, NULL, NULL) == 0)
		offer_all(values, prefix, ids, total);
}

static void offer_workspaces(const struct cordon_store *store, const json_t *only, const char *project, json_t *values,
			     const char *prefix, size_t *total)
{
	struct cordon_list_query all = { .ids_only = true };
	json_auto_t *ids = NULL;

	if (project && cordon_mcp_scope_has(only, project) &&
	    cordon_workspace_list(store, project, &all, &ids, NULL, NULL) == 0)
		offer_all(values, prefix, ids, total);
}

static void offer_sessions(const struct cordon_store *store, const json_t *only, json_t *values, const char *prefix,
			   size_t *total)
{
	struct cordon_session_query all = { .ids_only = true, .only = only };
	json_auto_t *ids = NULL;

	if (cordon_session_list(store, &all, &ids, NULL, NULL) == 0)
		offer_all(values, prefix, ids, total);
}

static void offer_days(json_t *values, const char *prefix, size_t *total)
{
	int64_t now = cordon_time_now();

	for (int64_t i = 0; i < 31; i++) {
		char day[CORDON_TIME_SIZE];

		cordon_time_format(now - i * 86400000, day);
		day[10] = '\0';
		offer(values, prefix, day, total);
	}
}

/* The reference must name a prompt or template of ours that has the argument. */
static int check_reference(const json_t *ref, const char *argument, struct cordon_mcp_fault *fault)
{
	const char *type = cordon_json_string(ref, "type");
	const char *name = cordon_json_string(ref, "name");
	const char *uri = cordon_json_string(ref, "uri");
	cordon_mcp_place place;
	char variable[64];

	if (type && cordon_streq(type, "ref/prompt") && name && cordon_mcp_prompt_has(name, argument))
		return 0;
	if (type && cordon_streq(type, "ref/resource") && uri && cordon_mcp_template_find(uri, &place) == 0 &&
	    strlen(argument) < sizeof(variable) - 3) {
		autobuf struct cordon_buf wanted = CORDON_BUF(sizeof(variable));

		if (cordon_buf_addf(&wanted, "{%s}", argument) == 0 &&
		    strstr(cordon_mcp_templates[place].path, wanted.data))
			return 0;
	}
	return cordon_mcp_fail(
		fault, CORDON_MCP_INVALID_PARAMS,
		"ref must name a prompt or a resource template of this server, and argument one of its arguments");
}

int cordon_mcp_complete(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const struct cordon_store *store = request->mcp->store;
	const json_t *argument = json_object_get(request->params, "argument");
	const char *name = cordon_json_string(argument, "name");
	const char *prefix = cordon_json_string(argument, "value");
	const json_t *only = cordon_mcp_scope_projects(request->channel);
	const json_t *known = json_object_get(json_object_get(request->params, "context"), "arguments");
	json_t *values;
	size_t total = 0;
	int r;

	if (!name || !prefix)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "argument needs name and value");
	r = check_reference(json_object_get(request->params, "ref"), name, fault);
	if (r < 0)
		return r;
	values = json_array();
	if (request->mcp->options.session)
		; /* the agent of one session has no choice of ids */
	else if (cordon_streq(name, "project_id"))
		offer_projects(store, only, values, prefix, &total);
	else if (cordon_streq(name, "workspace_id"))
		offer_workspaces(store, only, cordon_json_string(known, "project_id"), values, prefix, &total);
	else if (cordon_streq(name, "session_id"))
		offer_sessions(store, only, values, prefix, &total);
	else if (cordon_streq(name, "day"))
		offer_days(values, prefix, &total);
	else if (cordon_streq(name, "operation")) {
		offer(values, prefix, "read", &total);
		offer(values, prefix, "write", &total);
	}
	*ret_result = json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", values, "total", (json_int_t)total,
				"hasMore", total > VALUES_MAX);
	return 0;
}
