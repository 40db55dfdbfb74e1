/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a project: one table says what values each may have and where it is kept. Those that each run has are in
 * the table of config/recipe_table.h. */
#include "base/buf.h"
#include "base/path.h"
#include "base/setting.h"
#include "base/text.h"
#include "config/net_setting.h"
#include "config/recipe_table.h"
#include "config/values.h"
#include "policy/policy.h"
#include "store/internal.h"

#define ARGS_MAX 256
#define ARG_MAX_BYTES 65536
#define ENV_MAX 256
#define SHARES_MAX 32 /* a person reads all of them in one question */

/* Judges `value` and returns what the record keeps of it; `key` names it in errors. */
typedef int (*judge_fn)(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err);

static int wrong_type(const char *key, const char *wanted, struct cordon_error *err)
{
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s must be %s", key, wanted);
}

static int keep(const json_t *value, json_t **ret_value, struct cordon_error *err)
{
	*ret_value = json_deep_copy(value);
	return *ret_value ? 0 : cordon_no_memory(err);
}

int cordon_text_judge(const char *what, const char *text, size_t max, struct cordon_error *err)
{
	size_t n = strlen(text);

	if (n > max)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "%s is longer than %zu bytes", what, max);
	if (!cordon_utf8_valid(text, n))
		return cordon_fail(err, -EILSEQ, CORDON_KIND_USAGE, "%s is not valid UTF-8", what);
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s must not hold control characters", what);
	return 0;
}

static int judge_name(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	const char *text = json_string_value(value);
	int r;

	if (!text || !*text)
		return wrong_type(key, "a string that is not empty", err);
	r = cordon_text_judge(key, text, CORDON_NAME_MAX, err);
	return r < 0 ? r : keep(value, ret_value, err);
}

static int judge_text(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	if (!json_is_string(value))
		return wrong_type(key, "a string", err);
	if (json_string_length(value) > CORDON_DESCRIPTION_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "%s is longer than %d bytes", key,
				   CORDON_DESCRIPTION_MAX);
	return keep(value, ret_value, err);
}

static int judge_bool(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	return json_is_boolean(value) ? keep(value, ret_value, err) : wrong_type(key, "true or false", err);
}

static int judge_object(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	return json_is_object(value) ? keep(value, ret_value, err) : wrong_type(key, "an object", err);
}

static int judge_url(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	int r;

	if (!json_is_string(value))
		return wrong_type(key, "a string", err);
	r = cordon_git_url_judge(json_string_value(value), err);
	return r < 0 ? r : keep(value, ret_value, err);
}

/* A record keeps what was written, but for the forms of the hosts. Whether a profile has a list is judged later. */
static int judge_net(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	int r = cordon_net_json_valid(key, value, err);

	return r < 0 ? r : keep(value, ret_value, err);
}

static int judge_strings(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	size_t i;
	json_t *item;

	if (!json_is_array(value))
		return wrong_type(key, "an array of strings", err);
	if (json_array_size(value) > ARGS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "%s has more than %d entries", key, ARGS_MAX);
	json_array_foreach(value, i, item) {
		if (!json_is_string(item))
			return wrong_type(key, "an array of strings", err);
		if (json_string_length(item) > ARG_MAX_BYTES)
			return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "%s[%zu] is longer than %d bytes", key, i,
					   ARG_MAX_BYTES);
	}
	return keep(value, ret_value, err);
}

static int judge_command(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	int r = judge_strings(key, value, ret_value, err);

	if (r == 0 && json_array_size(value) && !*json_string_value(json_array_get(value, 0))) {
		json_decref(*ret_value);
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s[0] is empty: it names the program", key);
	}
	return r;
}

int cordon_command_judge(const char *what, json_t *command, struct cordon_error *err)
{
	json_t *kept = NULL;
	int r = judge_command(what, command, &kept, err);

	if (r < 0)
		return r;
	json_decref(kept);
	return json_array_size(command) ? 0 : cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s is empty", what);
}

static bool is_env_name(const char *name)
{
	if (!*name || (*name >= '0' && *name <= '9'))
		return false;
	for (; *name; name++)
		if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
		      (*name >= '0' && *name <= '9') || *name == '_'))
			return false;
	return true;
}

/* A profile is named by a text or by a list of texts; the record keeps a list. Whether it exists is judged later. */
static int judge_profile(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	json_auto_t *list = json_is_string(value) ? json_pack("[O]", value) : json_incref(value);

	if (json_array_size(list) > CORDON_PROJECT_PROFILES_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "%s has more than %d entries", key,
				   CORDON_PROJECT_PROFILES_MAX);
	return judge_strings(key, list, ret_value, err);
}

/* Names every bad share, not only the first. Whether the sources exist is judged later. */
static int judge_shares(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	autobuf struct cordon_buf faults = CORDON_BUF(sizeof(err->message));
	size_t i;
	json_t *item;
	int r = judge_strings(key, value, ret_value, err);

	if (r < 0)
		return r;
	if (json_array_size(value) > SHARES_MAX)
		cordon_buf_addf(&faults, "%s has more than %d entries", key, SHARES_MAX);
	json_array_foreach(value, i, item) {
		struct cordon_share_value share = { 0 };
		struct cordon_error fault = { 0 };

		r = cordon_share_parse(json_string_value(item), &share, &fault);
		if (r == 0 && share.source[0] != '/')
			r = cordon_fail(&fault, -EINVAL, CORDON_KIND_USAGE, "share '%.80s': the path must be absolute",
					json_string_value(item));
		if (r < 0)
			cordon_buf_addf(&faults, "%s%s[%zu]: %s", faults.len ? "; " : "", key, i, fault.message);
		cordon_share_done(&share);
	}
	if (!faults.len)
		return 0;
	json_decref(*ret_value);
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s", faults.data);
}

static int judge_home(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	const char *text = json_string_value(value);

	if (!text || (!cordon_streq(text, CORDON_HOME_PRIVATE) && !cordon_streq(text, CORDON_HOME_WORKSPACE) &&
		      (*text != '/' || strlen(text) >= CORDON_PATH_MAX)))
		return wrong_type(key, "\"private\", \"workspace\" or an absolute directory", err);
	return keep(value, ret_value, err);
}

static int judge_env(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	const char *name;
	json_t *item;

	if (!json_is_object(value))
		return wrong_type(key, "an object of strings", err);
	if (json_object_size(value) > ENV_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "%s has more than %d entries", key, ENV_MAX);
	json_object_foreach(value, name, item) {
		if (!is_env_name(name))
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s: not a variable name: %.80s", key, name);
		if (!json_is_string(item) || json_string_length(item) > ARG_MAX_BYTES)
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
					   "%s.%s must be a string of at most %d bytes", key, name, ARG_MAX_BYTES);
	}
	return keep(value, ret_value, err);
}

static int judge_env_names(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	int r = judge_strings(key, value, ret_value, err);
	size_t i;
	json_t *item;

	if (r < 0)
		return r;
	json_array_foreach(value, i, item) {
		if (is_env_name(json_string_value(item)))
			continue;
		json_decref(*ret_value);
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s[%zu] is not a variable name: %.80s", key, i,
				   json_string_value(item));
	}
	return 0;
}

/* Returns what is wrong with a protected path, or NULL. Puts its clean form, by which we find duplicates, into
 * `clean`. */
static const char *path_fault(const json_t *item, char clean[static CORDON_PATH_MAX])
{
	const char *text = json_string_value(item);
	int r;

	if (!text)
		return "is not a string";
	if (!*text)
		return "is empty";
	if (*text == '/')
		return "is absolute; it must be relative to the workspace";
	r = cordon_path_clean(text, clean, CORDON_PATH_MAX);
	if (r == -EXDEV)
		return "has '..' in it";
	if (r < 0)
		return "is too long";
	return *clean ? NULL : "means the workspace itself";
}

/* Names every bad path, not only the first. Drops duplicates; the paths stay as they were written. */
static int judge_protected(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	autobuf struct cordon_buf faults = CORDON_BUF(sizeof(err->message));
	json_auto_t *seen = json_object();
	json_auto_t *kept = json_array();
	size_t i;
	json_t *item;

	if (!json_is_array(value))
		return wrong_type(key, "an array of paths", err);
	if (!seen || !kept)
		return cordon_no_memory(err);
	if (json_array_size(value) > CORDON_PROTECTED_ASKED_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "%s has more than %d entries", key,
				   CORDON_PROTECTED_ASKED_MAX);
	json_array_foreach(value, i, item) {
		char clean[CORDON_PATH_MAX];
		const char *fault = path_fault(item, clean);

		if (fault) {
			const char *text = json_string_value(item);

			cordon_buf_addf(&faults, "%s%s[%zu] %s", faults.len ? "; " : "", key, i, fault);
			if (text && *text)
				cordon_buf_addf(&faults, ": %.80s", text);
			continue;
		}
		if (json_object_get(seen, clean))
			continue;
		if (json_object_set_new(seen, clean, json_true()) < 0 || json_array_append(kept, item) < 0)
			return cordon_no_memory(err);
	}
	if (faults.len)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s", faults.data);
	*ret_value = cordon_steal_ptr(&kept);
	return 0;
}

static const struct {
	const char *key;
	json_int_t min, max;
	json_int_t initial;
} limits[] = {
	{ "max_sessions", 1, 10000, 10 },
	{ "max_recursion_depth", 0, CORDON_DEPTH_MAX, 3 },
	{ "max_agents_per_session", 1, 10000, 50 },
};

#define COST_KEY "max_cost_usd" /* the only limit that is no whole number */
#define COST_MAX 1e9

static json_t *default_limits(void)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < CORDON_ARRAY_SIZE(limits); i++)
		if (json_object_set_new(object, limits[i].key, json_integer(limits[i].initial)) < 0)
			return json_decref(object), NULL;
	return object;
}

/* A setting that each run has: the table of these says what values it may have. */
static int judge_row(cordon_recipe_id id, const json_t *value, struct cordon_error *err)
{
	const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
	uint64_t number;
	int r = cordon_recipe_from_json(id, value, &number, err);

	if (r == 0 && row->type == CORDON_RECIPE_NUMBER && (number < row->least || number > row->most))
		r = cordon_fail(err, -ERANGE, CORDON_KIND_USAGE, "%s must be a number from %llu to %llu", row->project,
				(unsigned long long)row->least, (unsigned long long)row->most);
	return r;
}

/* Adds what is wrong with one limit; false when it is fine. */
static bool add_limit_fault(const char *key, const char *name, const json_t *value, struct cordon_buf *faults)
{
	const char *and = faults->len ? "; " : "";
	cordon_recipe_id id = cordon_recipe_of_project(name, true);
	struct cordon_error err = { 0 };
	size_t i = 0;

	if (id != CORDON_RECIPE__MAX) {
		if (judge_row(id, value, &err) == 0)
			return false;
		cordon_buf_addf(faults, "%s%s", and, err.message);
		return true;
	}

	if (cordon_streq(name, COST_KEY)) {
		if (json_is_number(value) && json_number_value(value) >= 0 && json_number_value(value) <= COST_MAX)
			return false;
		cordon_buf_addf(faults, "%s%s.%s must be a number from 0 to %.0f", and, key, name, COST_MAX);
		return true;
	}
	while (i < CORDON_ARRAY_SIZE(limits) && !cordon_streq(limits[i].key, name))
		i++;
	if (i == CORDON_ARRAY_SIZE(limits)) {
		cordon_buf_addf(faults, "%s%s: unknown limit: %.80s", and, key, name);
		return true;
	}
	if (json_is_integer(value) && json_integer_value(value) >= limits[i].min &&
	    json_integer_value(value) <= limits[i].max)
		return false;
	cordon_buf_addf(faults, "%s%s.%s must be a number from %lld to %lld", and, key, name, (long long)limits[i].min,
			(long long)limits[i].max);
	return true;
}

static int judge_limits(const char *key, json_t *value, json_t **ret_value, struct cordon_error *err)
{
	autobuf struct cordon_buf faults = CORDON_BUF(sizeof(err->message));
	json_auto_t *kept = default_limits();
	const char *name;
	json_t *item;

	if (!json_is_object(value))
		return wrong_type(key, "an object", err);
	if (!kept)
		return cordon_no_memory(err);
	json_object_foreach(value, name, item) {
		if (add_limit_fault(key, name, item, &faults))
			continue;
		if (json_object_set(kept, name, item) < 0)
			return cordon_no_memory(err);
	}
	if (faults.len)
		return cordon_fail(err, -ERANGE, CORDON_KIND_USAGE, "%s", faults.data);
	*ret_value = cordon_steal_ptr(&kept);
	return 0;
}

static const struct {
	const char *key;
	judge_fn judge;
	const char *initial; /* JSON; NULL: absent unless it is given */
	bool of_agent;	     /* kept under `agent`: the agent gets it, cordon does not enforce it */
} settings[] = {
	{ "name", judge_name, NULL, false },
	{ "description", judge_text, "\"\"", false },
	{ "remote_url", judge_url, NULL, false },
	{ "workspace_isolation", judge_bool, "false", false },
	{ "protected_paths", judge_protected, "[]", false },
	{ "default_protection", judge_bool, "true", false },
	{ "agent_command", judge_command, "[]", false },
	{ "limits", judge_limits, "{}", false },
	{ "net", judge_net, "\"host\"", false },
	{ "profile", judge_profile, "[]", false },
	{ "shares", judge_shares, "[]", false },
	{ "home", judge_home, "\"private\"", false },
	{ "env", judge_env, "{}", false },
	{ "env_pass", judge_env_names, "[]", false },
	{ "model", judge_text, NULL, true },
	{ "autonomy", judge_text, NULL, true },
	{ "reasoning", judge_text, NULL, true },
	{ "disabled_tools", judge_strings, NULL, true },
	{ "mcp_servers", judge_object, NULL, true },
	{ "permissions", judge_object, NULL, true },
};

static int unknown_setting(const char *key, struct cordon_error *err)
{
	int r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "unknown setting: %.80s", key);

	if (cordon_streq(key, "github_token") || cordon_streq(key, "credential_refs"))
		cordon_error_hint(err, "cordon keeps no credentials; name the variable in env_pass");
	return r;
}

static int apply_one(json_t *record, const char *key, json_t *value, struct cordon_error *err)
{
	json_auto_t *initial = NULL;
	json_t *target = record, *kept;
	cordon_recipe_id id = cordon_recipe_of_project(key, false);
	size_t i = 0;
	int r;

	if (id != CORDON_RECIPE__MAX && json_is_null(value)) {
		json_object_del(record, key);
		return 0;
	}
	if (id != CORDON_RECIPE__MAX) {
		r = judge_row(id, value, err);
		return r < 0 ? r : json_object_set(record, key, value) < 0 ? cordon_no_memory(err) : 0;
	}

	while (i < CORDON_ARRAY_SIZE(settings) && !cordon_streq(settings[i].key, key))
		i++;
	if (i == CORDON_ARRAY_SIZE(settings))
		return unknown_setting(key, err);
	if (settings[i].of_agent)
		target = json_object_get(record, "agent");
	if (json_is_null(value)) {
		if (settings[i].judge == judge_name)
			return wrong_type(key, "a string that is not empty", err);
		if (!settings[i].initial) {
			json_object_del(target, key);
			return 0;
		}
		initial = json_loads(settings[i].initial, JSON_DECODE_ANY, NULL);
		if (!initial)
			return cordon_no_memory(err);
		value = initial;
	}
	r = settings[i].judge(key, value, &kept, err);
	if (r < 0)
		return r;
	return json_object_set_new(target, key, kept) < 0 ? cordon_no_memory(err) : 0;
}

/* Keeps the present value of each limit that the change does not name. */
static int merge_limits(const json_t *object, json_t *wanted, struct cordon_error *err)
{
	json_t *given = json_object_get(wanted, "limits");
	json_auto_t *limits_now = json_is_object(given) ? json_deep_copy(json_object_get(object, "limits")) : NULL;

	if (!limits_now)
		return 0;
	return json_object_update(limits_now, given) < 0 || json_object_set(wanted, "limits", limits_now) < 0
		       ? cordon_no_memory(err)
		       : 0;
}

/* Works on the JSON form of a record, in which the settings have the names that the interface gives them. */
static int apply_all(json_t *object, const json_t *changes, struct cordon_error *err)
{
	json_auto_t *wanted = json_deep_copy(changes);
	const char *key;
	json_t *value;
	autobuf struct cordon_buf faults = CORDON_BUF(sizeof(err->message));
	struct cordon_error first = { 0 };
	int r;

	if (!json_is_object(wanted))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "settings must be an object");
	r = merge_limits(object, wanted, err);
	if (r < 0)
		return r;
	/* One pass names every bad setting. */
	json_object_foreach(wanted, key, value) {
		struct cordon_error fault = { 0 };

		if (apply_one(object, key, value, &fault) == 0)
			continue;
		cordon_buf_addf(&faults, "%s%s", faults.len ? "; " : "", fault.message);
		if (!first.code || (!*first.hint && *fault.hint))
			first = fault;
	}
	if (!first.code)
		return 0;
	r = cordon_fail(err, first.code, first.kind, "%s", faults.data ? faults.data : first.message);
	if (*first.hint)
		cordon_error_hint(err, "%s", first.hint);
	return r;
}

/* Whether the change is about what agents see of the host; only then is that looked at, so that a directory that
 * was removed since does not keep a person from changing a name. */
static bool changes_places(const json_t *wanted)
{
	static const char *const keys[] = { "profile", "shares", "home", "default_protection" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(keys); i++)
		if (json_object_get(wanted, keys[i]))
			return true;
	return false;
}

int cordon_settings_apply(struct cordon_project_record *record, const json_t *wanted, struct cordon_error *err)
{
	struct cordon_project_record changed = { 0 };
	json_auto_t *object = cordon_fields_write(&cordon_project_kind, record, false);
	int r = object ? apply_all(object, wanted, err) : cordon_no_memory(err);

	if (r == 0)
		r = cordon_fields_read(&cordon_project_kind, object, &changed, err);
	if (r == 0 && changes_places(wanted)) {
		r = cordon_places_judge(&changed.settings, err);
		if (r < 0)
			cordon_project_record_done(&changed);
	}
	if (r < 0)
		return r;
	cordon_project_record_done(record);
	*record = changed;
	return 0;
}

int cordon_settings_default(struct cordon_project_record *ret_record, struct cordon_error *err)
{
	json_auto_t *object = json_pack("{s:{}}", "agent");
	int r = object ? 0 : cordon_no_memory(err);

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(settings); i++)
		if (settings[i].initial)
			r = apply_one(object, settings[i].key, json_null(), err);
	return r < 0 ? r : cordon_fields_read(&cordon_project_kind, object, ret_record, err);
}

/* The names of a project's fields, where they differ from the keys of a policy file. */
static const char *const fields[CORDON_SETTING__MAX] = {
	[CORDON_SETTING_PROTECT] = "protected_paths",
	[CORDON_SETTING_NO_DEFAULT_PROTECT] = "default_protection: false",
	[CORDON_SETTING_NET_NONE] = "net: none",
	[CORDON_SETTING_SHARE] = "shares",
	[CORDON_SETTING_MEMORY] = "limits.memory_bytes",
	[CORDON_SETTING_TIMEOUT] = "limits.timeout_seconds",
	[CORDON_SETTING_MAX_SESSIONS] = "limits.max_sessions of the project",
};

void cordon_settings_name(void)
{
	cordon_setting_names(fields);
}
