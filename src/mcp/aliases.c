/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts the spellings of older clients: earlier names of tools, one tool with an `action`, `prompt` for `message`, and
 * the original's settings of a project.
 */
#include "mcp/internal.h"

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
	const char *action = cordon_mcp_arg(*args, "action");
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

int cordon_mcp_alias(const char **name, json_t **args, struct cordon_error *err)
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
