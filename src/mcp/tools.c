/* SPDX-License-Identifier: Apache-2.0 */
/* tools/list and tools/call: arguments are checked with the schema that is listed; results have text and structure. */
#include <stdio.h>

#include "base/time.h"
#include "mcp/internal.h"
#include "mcp/methods.h"

/* ---- old names ---- */

/*
 * Accepts the spellings of older clients: earlier names of tools, one tool with an `action`, `prompt` for `message`, and
 * the original's settings of a project.
 */

static const struct {
	const char *from, *to;
} names[] = {
	{ "session_spawn", "session_start" },
	{ "session_message", "session_send" },
	{ "session_events", "session_output" },
	{ "session_end", "session_stop" },
};

static const struct {
	const char *tool, *action, *to;
} actions[] = {
	{ "project", "create", "project_create" },     { "project", "list", "project_list" },
	{ "project", "get", "project_get" },	       { "project", "update", "project_update" },
	{ "project", "delete", "project_delete" },     { "workspace", "create", "workspace_create" },
	{ "workspace", "list", "workspace_list" },     { "workspace", "get", "workspace_get" },
	{ "workspace", "delete", "workspace_delete" }, { "session", "start", "session_start" },
	{ "session", "spawn", "session_start" },       { "session", "send", "session_send" },
	{ "session", "message", "session_send" },      { "session", "exec", "session_exec" },
	{ "session", "output", "session_output" },     { "session", "events", "session_output" },
	{ "session", "get", "session_get" },	       { "session", "list", "session_list" },
	{ "session", "stop", "session_stop" },	       { "session", "end", "session_stop" },
};

static int by_action(const char **name, json_t **args, struct cordon_error *err)
{
	const char *action = cordon_json_string(*args, "action");
	autobuf struct cordon_buf valid = CORDON_BUF(512);
	bool known = false;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(actions); i++) {
		json_t *rest;

		if (!cordon_streq(actions[i].tool, *name))
			continue;
		known = true;
		if (!action || !cordon_streq(actions[i].action, action)) {
			cordon_buf_addf(&valid, "%s%s", valid.len ? ", " : "", actions[i].action);
			continue;
		}
		rest = json_copy(*args);
		if (!rest)
			return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
		json_object_del(rest, "action");
		json_decref(*args);
		*args = rest;
		*name = actions[i].to;
		return 0;
	}
	if (!known)
		return 0;
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s needs an action: %s", *name, valid.data);
}

/* The original's names of settings. The tool reports what has no effect (tools/project.c). */
static int alias_settings(json_t **args, struct cordon_error *err)
{
	json_t *renamed = json_copy(*args);

	if (!renamed || cordon_original_settings(renamed, NULL) < 0) {
		json_decref(renamed);
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	}
	json_decref(*args);
	*args = renamed;
	return 0;
}

/* Earlier spellings, which are accepted and not listed. Replaces *name and *args (a new reference). Returns
 * -EINVAL with err for an unknown action. */
static int mcp_alias(const char **name, json_t **args, struct cordon_error *err)
{
	json_t *prompt;
	int r = by_action(name, args, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(names); i++)
		if (cordon_streq(names[i].from, *name))
			*name = names[i].to;
	if (cordon_streq(*name, "project_create") || cordon_streq(*name, "project_update"))
		return alias_settings(args, err);
	prompt = json_object_get(*args, "prompt");
	if (prompt && (cordon_streq(*name, "session_start") || cordon_streq(*name, "session_send"))) {
		json_t *renamed = json_copy(*args);

		if (!renamed ||
		    (!json_object_get(renamed, "message") && json_object_set(renamed, "message", prompt) < 0))
			return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
		json_object_del(renamed, "prompt");
		json_decref(*args);
		*args = renamed;
	}
	return 0;
}

/* ---- tools ---- */

#define LIST_TTL_MS 3600000
#define USUAL "manage" /* the toolset of a server that is told of none */

/* Returns {"input": ..., "output": ...}. A failure has `error` instead of the properties that a success always has. */
static json_t *make_schemas(const struct cordon_mcp_tool *tool)
{
	json_t *properties;

	if (!tool->output)
		return json_pack("{s:o}", "input", json_loads(tool->input, 0, NULL));
	properties = json_loads(tool->output, 0, NULL);
	json_object_set_new(properties, "error",
			    json_pack("{s:s, s:s}", "type", "object", "description",
				      "Only on failure: kind, message, where, hint"));
	return json_pack("{s:o, s:{s:s, s:o, s:[{s:o}, {s:[s]}]}}", "input", json_loads(tool->input, 0, NULL), "output",
			 "type", "object", "properties", properties, "anyOf", "required",
			 json_loads(tool->always, 0, NULL), "required", "error");
}

static const json_t *schemas_of(struct cordon_mcp *mcp, const struct cordon_mcp_tool *tool)
{
	if (!mcp->schemas)
		mcp->schemas = json_object();
	if (!json_object_get(mcp->schemas, tool->name))
		json_object_set_new(mcp->schemas, tool->name, make_schemas(tool));
	return json_object_get(mcp->schemas, tool->name);
}

/* A word of the set is a tool's name, what comes before its first underscore, or the word for all that are usual. */
static bool is_in_set(const char *set, const struct cordon_mcp_tool *tool)
{
	size_t family = strcspn(tool->name, "_"), whole = strlen(tool->name);

	for (const char *word = set; *word; word += strcspn(word, ",") + (word[strcspn(word, ",")] == ',')) {
		size_t n = strcspn(word, ",");

		if ((n == family || n == whole) && strncmp(word, tool->name, n) == 0)
			return true;
		if (!tool->extra && n == strlen(USUAL) && strncmp(word, USUAL, n) == 0)
			return true;
	}
	return false;
}

/* Whether the server offers the tool at all. */
static bool mcp_offers(const struct cordon_mcp *mcp, const struct cordon_mcp_tool *tool)
{
	return is_in_set(mcp->options.toolset ? mcp->options.toolset : USUAL, tool);
}

int cordon_mcp_toolset_check(const struct cordon_mcp *mcp, struct cordon_error *err)
{
	const char *set = mcp->options.toolset;

	for (const char *word = set; word; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL) {
		int n = (int)strcspn(word, ",");
		autofree char *one = strndup(word, (size_t)n);
		bool found = false;

		for (size_t i = 0; one && mcp->offer->tools[i]; i++)
			found |= is_in_set(one, mcp->offer->tools[i]);
		if (found)
			continue;
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "no tool belongs to %.*s in the toolset", n, word);
		cordon_error_hint(
			err,
			"name tools, or their first words: project,workspace,session; manage stands for all that are usual");
		return -EINVAL;
	}
	return 0;
}

int cordon_mcp_tools_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	json_t *list, *result;

	/* All tools fit on one page, so no cursor can be ours. */
	if (json_object_get(request->params, "cursor"))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "Invalid cursor");
	list = json_array();
	for (size_t i = 0; request->mcp->offer->tools[i]; i++) {
		const struct cordon_mcp_tool *tool = request->mcp->offer->tools[i];
		const json_t *schemas = schemas_of(request->mcp, tool);

		if (!mcp_offers(request->mcp, tool) || !cordon_mcp_scope_shows(request->channel, tool->name))
			continue;
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:O, s:O*, s:{s:b, s:b, s:b, s:b}}", "name",
						      tool->name, "title", tool->title, "description", tool->description,
						      "inputSchema", json_object_get(schemas, "input"), "outputSchema",
						      json_object_get(schemas, "output"), "annotations", "readOnlyHint",
						      (int)tool->read_only, "destructiveHint", (int)tool->destructive,
						      "idempotentHint", (int)tool->idempotent, "openWorldHint",
						      (int)tool->open_world));
	}
	result = json_pack("{s:o}", "tools", list);
	cordon_mcp_cache(request, result, LIST_TTL_MS, request->channel->grant ? "private" : "public");
	*ret_result = result;
	return 0;
}

static char *error_text(const struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(4096);

	cordon_buf_addf(&text, "%s: %s", cordon_kind_name(err->kind), err->message);
	if (*err->where)
		cordon_buf_addf(&text, " (%s)", err->where);
	if (*err->hint)
		cordon_buf_addf(&text, ". What to do: %s", err->hint);
	return cordon_buf_steal(&text);
}

json_t *cordon_mcp_tool_result(json_t *result, char *text, const struct cordon_error *err)
{
	autofree char *shown = text;
	json_t *answer;

	if (err) {
		json_decref(result);
		result = json_pack("{s:{s:s, s:s, s:s, s:s}}", "error", "kind", cordon_kind_name(err->kind), "message",
				   err->message, "where", err->where, "hint", err->hint);
	}
	if (!shown)
		shown = err ? error_text(err) : json_dumps(result, JSON_COMPACT);
	answer = json_pack("{s:[{s:s, s:s}], s:o}", "content", "type", "text", "text", shown ? shown : "",
			   "structuredContent", result);
	if (err)
		json_object_set_new(answer, "isError", json_true());
	return answer;
}

/* Writes one audit record for each call: who called what, how it ended and how long it took. */
void cordon_mcp_tool_record(const struct cordon_mcp_request *request, const char *name, const struct cordon_error *err)
{
	const json_t *client = request->modern ? json_object_get(request->meta, CORDON_META_CLIENT)
					       : request->channel->client;
	const json_t *args = json_object_get(request->params, "arguments");
	const char *who = cordon_json_string(client, "name");
	json_auto_t *detail = json_pack("{s:s, s:o*, s:o*, s:o*, s:o*, s:I}", "tool", name, "principal",
					cordon_audit_text(request->channel->principal), "client", cordon_audit_text(who),
					"trace", cordon_audit_text(cordon_json_string(request->meta, "traceparent")),
					"project_id", cordon_audit_text(cordon_json_string(args, "project_id")),
					"duration_ms", (json_int_t)(cordon_time_monotonic() - request->began));
	char principal[CORDON_MCP_PRINCIPAL_SIZE];
	struct cordon_audit_event event = {
		.type = CORDON_AUDIT_CALL,
		.success = err ? CORDON_AUDIT_FAILED : CORDON_AUDIT_SUCCEEDED,
		.kind = err ? err->kind : CORDON_KIND_NONE,
		.detail = detail,
	};
	autofree char *id = json_dumps(request->id, JSON_COMPACT | JSON_ENCODE_ANY);

	event.request_id = id;
	event.principal = cordon_mcp_principal(request, principal);
	cordon_audit_write(request->mcp->audit, &event, NULL);
}

void cordon_mcp_tool_answer(const struct cordon_mcp_request *request, const char *name, json_t *result, char *text,
			    const struct cordon_error *err)
{
	cordon_mcp_tool_record(request, name, err);
	cordon_mcp_send_result(request, cordon_mcp_tool_result(result, text, err));
}

static const struct cordon_mcp_tool *find(const struct cordon_mcp *mcp, const char *name)
{
	for (size_t i = 0; mcp->offer->tools[i]; i++)
		if (cordon_streq(mcp->offer->tools[i]->name, name) && mcp_offers(mcp, mcp->offer->tools[i]))
			return mcp->offer->tools[i];
	return NULL;
}

int cordon_mcp_tool_call(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
			 const struct cordon_mcp_question *question, json_t **ret_result, char **ret_text,
			 struct cordon_error *err)
{
	int r;

	if (tool->ask && !question)
		return cordon_fail(err, -EPERM, CORDON_KIND_INTERNAL, "nobody looked at what %s would do", tool->name);
	request->question = question;
	r = tool->call(request, args, ret_result, ret_text, err);
	request->question = NULL;
	return r;
}

/* Checks the arguments and calls the tool. Returns 0 or CORDON_MCP_LATER; a failure of the tool is a result too. */
static int call(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
		json_t **ret_result, struct cordon_mcp_fault *fault)
{
	autoquestion struct cordon_mcp_question question = CORDON_MCP_QUESTION;
	struct cordon_error err = { 0 };
	json_t *result = NULL;
	char *text = NULL;
	bool asks = false;
	int r = cordon_mcp_schema_check(json_object_get(schemas_of(request->mcp, tool), "input"), args, "arguments",
					&err);

	if (r == 0)
		r = cordon_mcp_scope_tool(request, tool->name, args, &err);
	if (r == 0)
		r = cordon_mcp_bound_tool(request->mcp, tool->name, args, &err);
	if (r == 0 && tool->apart && (r = cordon_mcp_tool_apart(request, tool, args, NULL, &err)) == CORDON_MCP_LATER)
		return r;
	if (r == 0)
		r = cordon_mcp_look(request, tool, args, &question, &asks, &err);
	if (r == 0 && asks) {
		r = cordon_mcp_approve(request, tool, args, &question, ret_result, fault);
		if (r != CORDON_MCP_APPROVED)
			return r;
		r = 0;
	}
	if (r == 0)
		r = cordon_mcp_tool_call(request, tool, args, &question, &result, &text, &err);
	if (r == CORDON_MCP_LATER)
		return r;
	cordon_mcp_tool_record(request, tool->name, r < 0 ? &err : NULL);
	*ret_result = r == 0 && !tool->output ? result : cordon_mcp_tool_result(result, text, r < 0 ? &err : NULL);
	return 0;
}

void cordon_mcp_tool_run(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
			 const struct cordon_mcp_question *question)
{
	struct cordon_error err = { 0 };
	json_t *result = NULL;
	char *text = NULL;
	int r = cordon_mcp_tool_call(request, tool, args, question, &result, &text, &err);

	if (r != CORDON_MCP_LATER)
		cordon_mcp_tool_answer(request, tool->name, result, text, r < 0 ? &err : NULL);
}

int cordon_mcp_tools_call(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const char *name = cordon_json_string(request->params, "name");
	json_t *given = json_object_get(request->params, "arguments");
	json_auto_t *args = given ? json_incref(given) : json_object();
	const struct cordon_mcp_tool *tool;
	struct cordon_error err = { 0 };

	if (!name)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "tools/call needs the name of a tool");
	if (!json_is_object(args))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "arguments must be an object");
	if (mcp_alias(&name, &args, &err) < 0) {
		*ret_result = cordon_mcp_tool_result(NULL, NULL, &err);
		return 0;
	}
	tool = find(request->mcp, name);
	if (!tool)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "Unknown tool: %.100s", name);
	return call(request, tool, args, ret_result, fault);
}
