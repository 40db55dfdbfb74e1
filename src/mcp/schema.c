/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of JSON Schema that our own schemas use: type, enum, properties, required, additionalProperties, items and
 * bounds. The schemas are ours, so their depth is bounded; the values come from the client.
 */
#include <stdio.h>

#include "mcp/internal.h"

static bool has_type(const json_t *value, const char *type)
{
	if (cordon_streq(type, "object"))
		return json_is_object(value);
	if (cordon_streq(type, "array"))
		return json_is_array(value);
	if (cordon_streq(type, "string"))
		return json_is_string(value);
	if (cordon_streq(type, "integer"))
		return json_is_integer(value);
	if (cordon_streq(type, "number"))
		return json_is_number(value);
	return cordon_streq(type, "boolean") && json_is_boolean(value);
}

static int check_bounds(const json_t *schema, const json_t *value, const char *at, struct cordon_error *err)
{
	const json_t *least = json_object_get(schema, "minimum"), *most = json_object_get(schema, "maximum");
	const json_t *shortest = json_object_get(schema, "minLength"), *longest = json_object_get(schema, "maxLength");
	const json_t *items = json_object_get(schema, "maxItems");
	size_t n = json_string_length(value);

	if (json_is_integer(value) && least && json_integer_value(value) < json_integer_value(least))
		return cordon_fail(err, -ERANGE, CORDON_KIND_USAGE, "%s must be at least %lld", at,
				   (long long)json_integer_value(least));
	if (json_is_integer(value) && most && json_integer_value(value) > json_integer_value(most))
		return cordon_fail(err, -ERANGE, CORDON_KIND_USAGE, "%s must be at most %lld", at,
				   (long long)json_integer_value(most));
	if (json_is_string(value) && shortest && n < (size_t)json_integer_value(shortest))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s must not be empty", at);
	if (json_is_string(value) && longest && n > (size_t)json_integer_value(longest))
		return cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "%s has %zu bytes; at most %lld are taken", at, n,
				   (long long)json_integer_value(longest));
	if (json_is_array(value) && items && json_array_size(value) > (size_t)json_integer_value(items))
		return cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "%s has %zu entries; at most %lld are taken", at,
				   json_array_size(value), (long long)json_integer_value(items));
	return 0;
}

static int check_enum(const json_t *choices, const json_t *value, const char *at, struct cordon_error *err)
{
	autobuf struct cordon_buf list = CORDON_BUF(512);
	size_t i;
	json_t *choice;

	json_array_foreach(choices, i, choice) {
		if (json_equal(choice, value))
			return 0;
		cordon_buf_addf(&list, "%s%s", list.len ? ", " : "", json_string_value(choice));
	}
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s must be one of %s", at,
			   list.len ? list.data : "nothing");
}

static int unknown(json_t *properties, const char *key, const char *at, struct cordon_error *err)
{
	autobuf struct cordon_buf list = CORDON_BUF(512);
	const char *name;
	json_t *ignored;

	json_object_foreach(properties, name, ignored) {
		cordon_buf_addf(&list, "%s%s", list.len ? ", " : "", name);
	}
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s has no %.80s; there are %s", at, key,
		    list.len ? list.data : "none");
	if (cordon_streq(key, "github_token") || cordon_streq(key, "credential_refs"))
		cordon_error_hint(err, "cordon keeps no credentials; name the variable in env_pass");
	return -EINVAL;
}

static int check_object(const json_t *schema, json_t *value, const char *at, struct cordon_error *err)
{
	json_t *properties = json_object_get(schema, "properties");
	const json_t *others = json_object_get(schema, "additionalProperties");
	const json_t *required = json_object_get(schema, "required");
	const char *key;
	json_t *item;
	size_t i;

	json_array_foreach(required, i, item) {
		if (!json_object_get(value, json_string_value(item)))
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s.%s is required", at,
					   json_string_value(item));
	}
	json_object_foreach(value, key, item) {
		const json_t *wanted = json_object_get(properties, key);
		char below[256];
		int r;

		if (!wanted && json_is_false(others))
			return unknown(properties, key, at, err);
		if (!wanted)
			wanted = others;
		snprintf(below, sizeof(below), "%.100s.%.100s", at, key);
		r = wanted ? cordon_mcp_schema_check(wanted, item, below, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* "type" is a name or a list of names. */
static bool fits_type(const json_t *types, const json_t *value)
{
	size_t i;
	json_t *type;

	if (json_is_string(types))
		return has_type(value, json_string_value(types));
	json_array_foreach(types, i, type) {
		if (has_type(value, json_string_value(type)))
			return true;
	}
	return false;
}

static int wrong_type(const json_t *types, const char *at, struct cordon_error *err)
{
	const char *type = json_string_value(types);

	if (!type)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s has the wrong type", at);
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s must be %s %s", at, strchr("aeio", *type) ? "an" : "a",
			   type);
}

int cordon_mcp_schema_check(const json_t *schema, json_t *value, const char *at, struct cordon_error *err)
{
	const json_t *types = json_object_get(schema, "type");
	const json_t *choices = json_object_get(schema, "enum");
	const json_t *items = json_object_get(schema, "items");
	size_t i;
	json_t *item;
	int r;

	if (types && !fits_type(types, value))
		return wrong_type(types, at, err);
	r = choices ? check_enum(choices, value, at, err) : 0;
	if (r == 0)
		r = check_bounds(schema, value, at, err);
	if (r == 0 && json_is_object(value))
		r = check_object(schema, value, at, err);
	if (r < 0 || !items || !json_is_array(value))
		return r;
	json_array_foreach(value, i, item) {
		char below[256];

		snprintf(below, sizeof(below), "%.200s[%zu]", at, i);
		r = cordon_mcp_schema_check(items, item, below, err);
		if (r < 0)
			return r;
	}
	return 0;
}
