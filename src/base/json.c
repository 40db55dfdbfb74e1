/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a JSON object, with a default for a member that is missing or has another type. */
#include "base/json.h"
#include "base/util.h"

const char *cordon_json_string(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

const char *cordon_json_text(const json_t *object, const char *key)
{
	const char *text = cordon_json_string(object, key);

	return text ? text : "";
}

bool cordon_json_is(const json_t *object, const char *key, const char *text)
{
	const char *found = cordon_json_string(object, key);

	return found && cordon_streq(found, text);
}

bool cordon_json_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

json_int_t cordon_json_integer(const json_t *object, const char *key)
{
	return cordon_json_integer_or(object, key, 0);
}

json_int_t cordon_json_integer_or(const json_t *object, const char *key, json_int_t otherwise)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool cordon_json_has(const json_t *array, const char *text)
{
	size_t i;
	json_t *item;

	json_array_foreach(array, i, item) {
		if (json_is_string(item) && cordon_streq(json_string_value(item), text))
			return true;
	}
	return false;
}
