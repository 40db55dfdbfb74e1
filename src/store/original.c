/* SPDX-License-Identifier: Apache-2.0 */
/* The names that the original, whose interface cordon serves, gave to settings of a project. */
#include "base/buf.h"
#include "store/internal.h"

/* Limits that the original's tools take beside the other settings, and their names in its records, where they are below
 * recursion_config. */
static const struct {
	const char *key, *recorded;
} limits[] = {
	{ "max_recursion_depth", "max_depth" },
	{ "max_agents_per_session", "max_agents" },
	{ "max_cost_usd", "max_cost_usd" },
};

/* Settings of containers, which cordon does not have. */
static const char *const ignored[] = { "container_type", "container_id", "container_status", "image_name",
				       "has_dockerfile" };

static int note(json_t *notices, const char *text)
{
	return notices && json_array_append_new(notices, json_string(text)) < 0 ? -ENOMEM : 0;
}

static int notef(json_t *notices, const char *key, const char *why)
{
	autobuf struct cordon_buf text = CORDON_BUF(512);

	return cordon_buf_addf(&text, "%.80s %s", key, why) < 0 ? -ENOMEM : note(notices, text.data);
}

/* Moves one value into `limits`, unless that names the limit itself; null is no value. */
static int move_limit(json_t *settings, json_t *from, const char *key, const char *to)
{
	json_t *value = json_object_get(from, key), *present = json_object_get(settings, "limits");
	int r = 0;

	if (!value)
		return 0;
	if (!json_is_null(value)) {
		if (!present && json_object_set_new(settings, "limits", present = json_object()) < 0)
			return -ENOMEM;
		if (json_is_object(present) && !json_object_get(present, to))
			r = json_object_set(present, to, value);
	}
	json_object_del(from, key);
	return r < 0 ? -ENOMEM : 0;
}

int cordon_original_settings(json_t *settings, json_t *notices)
{
	json_t *recorded = json_object_get(settings, "recursion_config");
	const json_t *cost;
	int r = 0;

	/* The caller may still use the object that we would change. */
	if (json_is_object(json_object_get(settings, "limits")) &&
	    json_object_set_new(settings, "limits", json_copy(json_object_get(settings, "limits"))) < 0)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(limits); i++)
		r = move_limit(settings, settings, limits[i].key, limits[i].key);
	if (json_is_object(recorded)) {
		json_auto_t *copy = json_copy(recorded);

		for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(limits); i++)
			r = move_limit(settings, copy, limits[i].recorded, limits[i].key);
		json_object_del(settings, "recursion_config");
	}
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(ignored); i++) {
		if (json_object_get(settings, ignored[i]))
			r = notef(notices, ignored[i], "is ignored: cordon runs agents without containers");
		json_object_del(settings, ignored[i]);
	}
	cost = json_object_get(json_object_get(settings, "limits"), "max_cost_usd");
	if (r == 0 && json_number_value(cost) > 0)
		r = note(notices,
			 "max_cost_usd is told to the agent as CORDON_MAX_COST_USD; cordon does not enforce it");
	return r;
}
