/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON objects: what is there, what is missing, and what has another type. */
#include "base/json.h"
#include "unit.h"

static json_t *example(void)
{
	return json_pack("{s:s, s:s, s:i, s:b, s:b, s:n, s:f}", "text", "words", "empty", "", "number", -7, "yes", 1,
			 "no", 0, "null", "real", 1.0);
}

static void a_string_that_is_missing_is_null_or_empty(void **state)
{
	json_auto_t *object = example();

	(void)state;
	assert_string_equal(cordon_json_string(object, "text"), "words");
	assert_string_equal(cordon_json_text(object, "text"), "words");
	assert_string_equal(cordon_json_string(object, "empty"), "");
	for (size_t i = 0; i < 4; i++) {
		const char *key = (const char *[]){ "missing", "number", "null", "yes" }[i];

		assert_null(cordon_json_string(object, key));
		assert_string_equal(cordon_json_text(object, key), "");
	}
}

static void a_missing_member_is_no_text(void **state)
{
	json_auto_t *object = example();

	(void)state;
	assert_true(cordon_json_is(object, "text", "words"));
	assert_true(cordon_json_is(object, "empty", ""));
	assert_false(cordon_json_is(object, "text", "word"));
	assert_false(cordon_json_is(object, "missing", ""));
	assert_false(cordon_json_is(object, "null", ""));
}

static void what_has_another_type_is_missing(void **state)
{
	json_auto_t *object = example();

	(void)state;
	assert_true(cordon_json_true(object, "yes"));
	assert_false(cordon_json_true(object, "no"));
	assert_false(cordon_json_true(object, "number"));
	assert_false(cordon_json_true(object, "missing"));
	assert_int_equal(cordon_json_integer(object, "number"), -7);
	assert_int_equal(cordon_json_integer_or(object, "number", 5), -7);
	assert_int_equal(cordon_json_integer(object, "text"), 0);
	assert_int_equal(cordon_json_integer_or(object, "missing", 5), 5);
	assert_int_equal(cordon_json_integer_or(object, "real", 5), 5);
}

static void what_is_no_object_has_no_members(void **state)
{
	json_auto_t *array = json_array();

	(void)state;
	assert_null(cordon_json_string(NULL, "a"));
	assert_null(cordon_json_string(array, "a"));
	assert_string_equal(cordon_json_text(NULL, "a"), "");
	assert_false(cordon_json_is(NULL, "a", ""));
	assert_false(cordon_json_true(array, "a"));
	assert_int_equal(cordon_json_integer_or(NULL, "a", 3), 3);
}

static void an_array_has_only_its_own_strings(void **state)
{
	json_auto_t *array = json_pack("[s, i, s]", "a", 1, "");

	(void)state;
	assert_true(cordon_json_has(array, "a"));
	assert_true(cordon_json_has(array, ""));
	assert_false(cordon_json_has(array, "1"));
	assert_false(cordon_json_has(NULL, "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_string_that_is_missing_is_null_or_empty),
		cmocka_unit_test(a_missing_member_is_no_text),
		cmocka_unit_test(what_has_another_type_is_missing),
		cmocka_unit_test(what_is_no_object_has_no_members),
		cmocka_unit_test(an_array_has_only_its_own_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
