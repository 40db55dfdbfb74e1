/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the records, with the fields in the order in which people read them. */
#include "state/fields.h"
#include "store/internal.h"

static const char *const status_names[] = {
	[CORDON_SESSION_ACTIVE] = "active",
	[CORDON_SESSION_COMPLETED] = "completed",
	[CORDON_SESSION_FAILED] = "failed",
	NULL,
};

static const char *const state_names[] = {
	[CORDON_SESSION_STARTING] = "starting",
	[CORDON_SESSION_RUNNING] = "running",
	[CORDON_SESSION_RUN_COMPLETED] = "completed",
	[CORDON_SESSION_RUN_FAILED] = "failed",
	[CORDON_SESSION_RUN_TIMEOUT] = "timeout",
	[CORDON_SESSION_RUN_CANCELLED] = "cancelled",
	[CORDON_SESSION_REFUSED] = "refused",
	[CORDON_SESSION_LOST] = "lost",
	NULL,
};

/* NOLINTBEGIN(bugprone-macro-parentheses, bugprone-sizeof-expression): names of members; pointers have a size, too. */
#define FIELD(struct_, key_, type_, member_)                                                                           \
	.key = key_, .type = CORDON_FIELD_##type_, .offset = offsetof(struct struct_, member_),                        \
	.size = sizeof(((struct struct_ *)0)->member_)

static const struct cordon_field limits_fields[] = {
	{ FIELD(cordon_settings_limits, "max_sessions", NUMBER, max_sessions) },
	{ FIELD(cordon_settings_limits, "max_recursion_depth", NUMBER, max_recursion_depth) },
	{ FIELD(cordon_settings_limits, "max_agents_per_session", NUMBER, max_agents_per_session) },
	{ FIELD(cordon_settings_limits, "limits", RECIPE, run) },
	{ FIELD(cordon_settings_limits, "max_cost_usd", REAL, max_cost_usd) },
	{ 0 },
};

static const struct cordon_record_kind limits_kind = {
	.what = "project",
	.size = sizeof(struct cordon_settings_limits),
	.other = offsetof(struct cordon_settings_limits, other),
	.fields = limits_fields,
};

#define PROJECT(key_, type_, member_) FIELD(cordon_project_record, key_, type_, member_)

/* The published copy does not show hidden fields: values of the environment may be secrets, the agent's command line
 * may contain one, and agents need not know the paths of the host. */
static const struct cordon_field project_fields[] = {
	{ PROJECT("id", TEXT, id), .needed = true },
	{ PROJECT("name", STRING, name), .needed = true },
	{ PROJECT("created_at", TEXT, created_at) },
	{ PROJECT("default_workspace_id", TEXT, default_workspace_id), .needed = true },
	{ PROJECT("agent", OBJECT, settings.agent) },
	{ PROJECT("description", STRING, description) },
	{ PROJECT("workspace_isolation", BOOL, settings.workspace_isolation) },
	{ PROJECT("protected_paths", STRINGS, settings.protected_paths) },
	{ PROJECT("default_protection", BOOL, settings.default_protection), .initial = true },
	{ PROJECT("agent_command", STRINGS, agent_command), .hidden = true },
	{ PROJECT("limits", INNER, settings.limits), .inner = &limits_kind },
	{ PROJECT("net", NET, settings.net), .former = "network" },
	{ PROJECT("profile", STRINGS, settings.profile), .hidden = true },
	{ PROJECT("shares", STRINGS, settings.shares), .hidden = true },
	{ PROJECT("home", TEXT, settings.home), .hidden = true },
	{ PROJECT("env", OBJECT, settings.env), .hidden = true },
	{ PROJECT("env_pass", STRINGS, settings.env_pass), .hidden = true },
	{ PROJECT("", RECIPE, settings.run) },
	{ PROJECT("remote_url", STRING, remote_url) },
	{ PROJECT("updated_at", TEXT, updated_at) },
	{ 0 },
};

const struct cordon_record_kind cordon_project_kind = {
	.what = "project",
	.size = sizeof(struct cordon_project_record),
	.other = offsetof(struct cordon_project_record, other),
	.id = offsetof(struct cordon_project_record, id),
	.created_at = offsetof(struct cordon_project_record, created_at),
	.fields = project_fields,
};

#define WORKSPACE(key_, type_, member_) FIELD(cordon_workspace_record, key_, type_, member_)

static const struct cordon_field workspace_fields[] = {
	{ WORKSPACE("id", TEXT, id), .needed = true },
	{ WORKSPACE("project_id", TEXT, project_id), .needed = true },
	{ WORKSPACE("external_id", STRING, external_id) },
	{ WORKSPACE("source", STRING, source) },
	{ WORKSPACE("created_at", TEXT, created_at) },
	{ WORKSPACE("last_session_at", TEXT, last_session_at) },
	{ WORKSPACE("last_session_id", TEXT, last_session_id), .hidden = true },
	{ 0 },
};

const struct cordon_record_kind cordon_workspace_kind = {
	.what = "workspace",
	.size = sizeof(struct cordon_workspace_record),
	.other = offsetof(struct cordon_workspace_record, other),
	.id = offsetof(struct cordon_workspace_record, id),
	.created_at = offsetof(struct cordon_workspace_record, created_at),
	.fields = workspace_fields,
};

#define SESSION(key_, type_, member_) FIELD(cordon_session_record, key_, type_, member_)
#define ENDED .group = 1 + offsetof(struct cordon_session_record, ended)

static const struct cordon_field session_fields[] = {
	{ SESSION("session_id", TEXT, id), .needed = true },
	{ SESSION("project_id", TEXT, project_id), .needed = true },
	{ SESSION("workspace_id", TEXT, workspace_id), .needed = true },
	{ SESSION("status", NAME, status), .names = status_names, .needed = true },
	{ SESSION("state", NAME, state), .names = state_names, .needed = true },
	{ SESSION("turns", ARRAY, turns), .needed = true },
	{ SESSION("depth", NUMBER, depth) },
	{ SESSION("child_sessions", STRINGS, child_sessions), .needed = true },
	{ SESSION("created_at", TEXT, created_at) },
	{ SESSION("workspace_isolation", BOOL, settings.workspace_isolation) },
	{ SESSION("protected_paths", STRINGS, settings.protected_paths) },
	{ SESSION("default_protection", BOOL, settings.default_protection), .initial = true },
	{ SESSION("net", NET, settings.net), .former = "network" },
	{ SESSION("profile", STRINGS, settings.profile), .hidden = true },
	{ SESSION("shares", STRINGS, settings.shares), .hidden = true },
	{ SESSION("home", TEXT, settings.home), .hidden = true },
	{ SESSION("env", OBJECT, settings.env), .hidden = true },
	{ SESSION("env_pass", STRINGS, settings.env_pass), .hidden = true },
	{ SESSION("", RECIPE, settings.run) },
	{ SESSION("agent", OBJECT, settings.agent) },
	{ SESSION("limits", INNER, settings.limits), .inner = &limits_kind },
	{ SESSION("command", STRINGS, command) },
	{ SESSION("own_command", FLAG, own_command), .hidden = true },
	{ SESSION("terminal", BOOL, terminal) },
	{ SESSION("context", OBJECT, context), .hidden = true },
	{ SESSION("timeout_ms", COUNT, timeout_ms) },
	{ SESSION("fail_on_violation", FLAG, fail_on_violation) },
	{ SESSION("ancestor_workspaces", STRINGS, ancestor_workspaces) },
	{ SESSION("allowances", ARRAY, allowances), .hidden = true },
	{ SESSION("parent_session_id", TEXT, parent_session_id) },
	{ SESSION("updated_at", TEXT, updated_at) },
	{ SESSION("notes", STRINGS, notes) },
	{ SESSION("run_id", TEXT, run_id) },
	{ SESSION("view_id", TEXT, view_id) },
	{ SESSION("git_result", OBJECT, git_result) },
	{ SESSION("pid", COUNT, pid), .hidden = true },
	{ SESSION("started_at", TEXT, started_at) },
	{ SESSION("enforcement", OBJECT, enforcement) },
	{ SESSION("protected", ARRAY, protected) },
	{ SESSION("protected_table", TEXT, protected_table), .hidden = true },
	{ SESSION("exit_code", CODE, exit_code), ENDED },
	{ SESSION("signal", CODE, signal), ENDED },
	{ SESSION("ended_at", TEXT, ended_at), ENDED },
	{ SESSION("duration_ms", NUMBER, duration_ms), ENDED },
	{ SESSION("violations", NUMBER, violations), ENDED },
	{ SESSION("failed_on_violation", FLAG, failed_on_violation) },
	{ SESSION("error", OBJECT, error) },
	{ 0 },
};

const struct cordon_record_kind cordon_session_kind = {
	.what = "session",
	.size = sizeof(struct cordon_session_record),
	.other = offsetof(struct cordon_session_record, other),
	.id = offsetof(struct cordon_session_record, id),
	.created_at = offsetof(struct cordon_session_record, created_at),
	.fields = session_fields,
};
/* NOLINTEND(bugprone-macro-parentheses, bugprone-sizeof-expression) */

void cordon_project_record_done(struct cordon_project_record *record)
{
	cordon_fields_done(&cordon_project_kind, record);
}

void cordon_workspace_record_done(struct cordon_workspace_record *record)
{
	cordon_fields_done(&cordon_workspace_kind, record);
}

void cordon_session_record_done(struct cordon_session_record *record)
{
	cordon_fields_done(&cordon_session_kind, record);
}

json_t *cordon_project_json(const struct cordon_project_record *record)
{
	return cordon_fields_write(&cordon_project_kind, record, false);
}

int cordon_project_digest(const struct cordon_project_record *record, char ret_digest[static CORDON_DIGEST_SIZE])
{
	json_auto_t *object = cordon_project_json(record);
	autofree char *text = NULL;

	json_object_del(object, "updated_at");
	text = object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (!text)
		return -ENOMEM;
	cordon_digest(text, strlen(text), ret_digest);
	return 0;
}

json_t *cordon_project_public_json(const struct cordon_project_record *record)
{
	return cordon_fields_write(&cordon_project_kind, record, true);
}

json_t *cordon_workspace_json(const struct cordon_workspace_record *record)
{
	return cordon_fields_write(&cordon_workspace_kind, record, true);
}

/* A session that was started by another version may have names in its list that this version can't derive. */
static int add_unlisted_note(json_t *object, size_t n)
{
	json_t *notes = json_object_get(object, "notes");

	if (!notes) {
		notes = json_array();
		if (json_object_set_new(object, "notes", notes) < 0)
			return -1;
	}
	return json_array_append_new(notes,
				     json_sprintf("%zu missing names that are protected by default are not listed: "
						  "another version of cordon started the session",
						  n));
}

json_t *cordon_session_json(const struct cordon_session_record *record)
{
	json_auto_t *object = cordon_fields_write(&cordon_session_kind, record, true);
	const json_t *items = json_object_get(object, "protected");
	size_t unlisted = 0;

	if (items && json_object_set_new(object, "protected",
					 cordon_protected_unpack(items, record->protected_table, &unlisted)) < 0)
		return NULL;
	if (unlisted && add_unlisted_note(object, unlisted) < 0)
		return NULL;
	return cordon_steal_ptr(&object);
}

json_t *cordon_session_brief_json(const struct cordon_session_record *record)
{
	struct cordon_session_record brief = *record;

	brief.protected = NULL;
	return cordon_fields_write(&cordon_session_kind, &brief, true);
}

const char *cordon_session_status_name(cordon_session_status status)
{
	return (unsigned int)status < CORDON_SESSION__MAX ? status_names[status] : "?";
}

const char *cordon_session_state_name(cordon_session_state state)
{
	return (unsigned int)state < CORDON_SESSION_STATE__MAX ? state_names[state] : "?";
}

cordon_session_status cordon_session_status_parse(const char *name)
{
	unsigned int i = 0;

	while (i < CORDON_SESSION__MAX && !cordon_streq(status_names[i], name))
		i++;
	return (cordon_session_status)i;
}

int cordon_settings_copy(struct cordon_settings *to, const struct cordon_settings *from)
{
	struct cordon_settings copy = *from;
	json_t **const owned[] = { &copy.protected_paths, &copy.net,   &copy.profile,	  &copy.shares, &copy.env,
				   &copy.env_pass,	  &copy.agent, &copy.limits.other };
	json_t *const before[] = { to->protected_paths, to->net,   to->profile,	    to->shares, to->env,
				   to->env_pass,	to->agent, to->limits.other };
	size_t n = 0;

	for (; n < CORDON_ARRAY_SIZE(owned); n++) {
		json_t *value = *owned[n];

		if (value && !(*owned[n] = json_deep_copy(value)))
			break;
	}
	if (n < CORDON_ARRAY_SIZE(owned)) {
		while (n-- > 0)
			json_decref(*owned[n]);
		return -ENOMEM;
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(before); i++)
		json_decref(before[i]);
	*to = copy;
	return 0;
}
