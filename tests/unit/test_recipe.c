/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings of a run, and what a recipe is compiled to. */
#include "unit.h"

#include "recipe/recipe.h"

#define autorecipe CORDON_CLEANUP(cordon_recipe_done)

static void every_row_has_what_its_type_needs_and_names_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < CORDON_RECIPE__MAX; i++) {
		const struct cordon_recipe_row *row = &cordon_recipe_rows[i];

		assert_true(row->key || row->option.name);
		if (row->option.name) {
			assert_int_equal(row->option.key, CORDON_KEY_RECIPE + i);
			assert_true(row->option.help && cordon_streq(row->dashed + 2, row->option.name));
			assert_int_equal(row->type == CORDON_RECIPE_FLAG, row->option.arg == CORDON_ARG_NONE);
		}
		assert_int_equal(row->parse != NULL,
				 row->type == CORDON_RECIPE_NUMBER || row->type == CORDON_RECIPE_WORD);
		assert_true(!row->size || row->type >= CORDON_RECIPE_FLAG);
		assert_true(!row->size || row->size == sizeof(bool) || row->size == sizeof(cordon_lens_use) ||
			    row->size == sizeof(uint64_t));
		assert_true(!row->project || row->type >= CORDON_RECIPE_FLAG);
		assert_int_equal(row->project && row->type == CORDON_RECIPE_NUMBER, row->most > 0);
		assert_true(!row->planned || (row->key && row->size == sizeof(uint64_t)));
		assert_true(!row->limit || (row->key && row->type == CORDON_RECIPE_NUMBER));
		for (int k = 0; k < i; k++) {
			const struct cordon_recipe_row *other = &cordon_recipe_rows[k];

			assert_false(row->key && other->key && row->limit == other->limit &&
				     cordon_streq(row->key, other->key));
			assert_false(row->option.name && other->option.name &&
				     cordon_streq(row->option.name, other->option.name));
			assert_false(row->size && other->size && row->spec == other->spec);
		}
	}
}

static void the_first_number_counts_and_any_flag(void **state)
{
	struct cordon_recipe_values values = { 0 }, file = { 0 };

	(void)state;
	values.of[CORDON_RECIPE_PIDS] = 5;
	values.where[CORDON_RECIPE_PIDS] = "option";
	values.where[CORDON_RECIPE_COW] = "option"; /* says no */
	file.of[CORDON_RECIPE_PIDS] = 9;
	file.of[CORDON_RECIPE_MEMORY] = 7;
	file.of[CORDON_RECIPE_COW] = file.of[CORDON_RECIPE_READ_ONLY] = true;
	file.where[CORDON_RECIPE_PIDS] = file.where[CORDON_RECIPE_MEMORY] = file.where[CORDON_RECIPE_COW] =
		file.where[CORDON_RECIPE_READ_ONLY] = "file";
	cordon_recipe_values_add(&values, &file);
	assert_int_equal(cordon_recipe_value(&values, CORDON_RECIPE_PIDS), 5);
	assert_int_equal(cordon_recipe_value(&values, CORDON_RECIPE_MEMORY), 7);
	assert_int_equal(cordon_recipe_value(&values, CORDON_RECIPE_COW), true);
	/* The policy of the file has it. */
	assert_int_equal(cordon_recipe_value(&values, CORDON_RECIPE_READ_ONLY), false);
	assert_int_equal(cordon_recipe_value(&values, CORDON_RECIPE_DEFAULT_PROTECT), true);
}

static bool fits(cordon_recipe_id id, uint64_t inner, uint64_t outer)
{
	struct cordon_recipe_values values = { 0 }, parent = { 0 };
	const char *why = NULL;
	bool r;

	values.of[id] = inner;
	parent.of[id] = outer;
	values.where[id] = parent.where[id] = "";
	r = cordon_recipe_narrow_value(&values, &parent, id, &why);
	assert_true(r || why);
	return r;
}

static void what_is_wider_is_said_by_the_table(void **state)
{
	(void)state;
	assert_true(fits(CORDON_RECIPE_MEMORY, 5, 5) && fits(CORDON_RECIPE_MEMORY, 5, 0) &&
		    fits(CORDON_RECIPE_MEMORY, 0, 0));
	assert_false(fits(CORDON_RECIPE_MEMORY, 6, 5) || fits(CORDON_RECIPE_MEMORY, 0, 5));
	assert_true(fits(CORDON_RECIPE_BEST_EFFORT, 0, 1) && !fits(CORDON_RECIPE_BEST_EFFORT, 1, 0));
	assert_true(fits(CORDON_RECIPE_COW, 1, 0) && !fits(CORDON_RECIPE_COW, 0, 1));
	assert_true(fits(CORDON_RECIPE_GIT, CORDON_GIT_READ, CORDON_GIT_COMMIT));
	assert_false(fits(CORDON_RECIPE_GIT, CORDON_GIT_COMMIT, CORDON_GIT_READ));
}

static void what_a_project_says_is_read_and_written(void **state)
{
	static const struct {
		cordon_recipe_id id;
		const char *text;
		uint64_t value;
	} cases[] = {
		{ CORDON_RECIPE_COW, "true", 1 },	 { CORDON_RECIPE_COW, "false", 0 },
		{ CORDON_RECIPE_GIT, "\"default\"", 0 }, { CORDON_RECIPE_GIT, "\"read\"", CORDON_GIT_READ },
		{ CORDON_RECIPE_PIDS, "7", 7 },
	};
	static const struct {
		cordon_recipe_id id;
		const char *text, *error;
	} wrong[] = {
		{ CORDON_RECIPE_COW, "1", "cow must be true or false" },
		{ CORDON_RECIPE_GIT, "true", "git must be default|none|read|commit" },
		{ CORDON_RECIPE_PIDS, "-1", "limits.pids must be a number from 1 to 4194304" },
		{ CORDON_RECIPE_PIDS, "\"7\"", "limits.pids must be a number from 1 to 4194304" },
	};
	struct cordon_error err = { 0 };
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		json_auto_t *json = json_loads(cases[i].text, JSON_DECODE_ANY, NULL);
		json_auto_t *again = cordon_recipe_to_json(cases[i].id, cases[i].value);

		assert_int_equal(cordon_recipe_from_json(cases[i].id, json, &value, &err), 0);
		assert_int_equal(value, cases[i].value);
		assert_true(json_equal(json, again));
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(wrong); i++) {
		json_auto_t *json = json_loads(wrong[i].text, JSON_DECODE_ANY, NULL);

		assert_int_equal(cordon_recipe_from_json(wrong[i].id, json, &value, &err), -EINVAL);
		assert_string_equal(err.message, wrong[i].error);
	}
	assert_int_equal(cordon_recipe_of_project("cow", false), CORDON_RECIPE_COW);
	assert_int_equal(cordon_recipe_of_project("pids", true), CORDON_RECIPE_PIDS);
	assert_int_equal(cordon_recipe_of_project("pids", false), CORDON_RECIPE__MAX);
}

static void a_recipe_becomes_a_policy_and_a_run(void **state)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_recipe recipe autorecipe = { .root = unit_dir };
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_recipe_set(&recipe, CORDON_RECIPE_RW, "src", "rw", &err), 0);
	assert_int_equal(cordon_recipe_set(&recipe, CORDON_RECIPE_NET, "none", "net", &err), 0);
	assert_int_equal(cordon_recipe_set(&recipe, CORDON_RECIPE_TIMEOUT, "90s", "timeout", &err), 0);
	assert_int_equal(cordon_recipe_set(&recipe, CORDON_RECIPE_LENS, "never", "lens", &err), 0);
	assert_int_equal(cordon_recipe_set(&recipe, CORDON_RECIPE_BEST_EFFORT, NULL, "best_effort", &err), 0);
	assert_int_equal(cordon_recipe_set(&recipe, CORDON_RECIPE_ENV, "A=1", "env", &err), 0);
	assert_int_equal(cordon_recipe_compile(&recipe, CORDON_RECIPE_PLANS, &errors), 0);
	assert_int_equal(cordon_policy_access(recipe.policy, "src/x"), CORDON_ACCESS_WRITE);
	assert_int_equal(cordon_policy_access(recipe.policy, "doc"), CORDON_ACCESS_NONE);
	assert_ptr_equal(recipe.spec.policy, recipe.policy);
	assert_int_equal(recipe.spec.net, CORDON_NET_NONE);
	assert_int_equal(recipe.spec.timeout_ms, 90000);
	assert_int_equal(recipe.spec.lens, CORDON_LENS_NEVER);
	assert_true(recipe.spec.best_effort && !recipe.spec.fail_on_violation);
	assert_int_equal(recipe.spec.n_env, 1);
	assert_string_equal(recipe.spec.env[0], "A=1");
}

static void what_is_wrong_is_said_with_the_name_of_the_setting(void **state)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_recipe recipe autorecipe = { .root = unit_dir };
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_recipe_set(&recipe, CORDON_RECIPE_MODE, "strict", "mode", &err), 0);
	assert_true(cordon_recipe_set(&recipe, CORDON_RECIPE_MODE, "permissive", "mode", &err) < 0);
	assert_string_equal(err.message, "mode was given twice: strict and permissive");
	assert_true(cordon_recipe_set(&recipe, CORDON_RECIPE_PIDS, "many", "pids", &err) < 0);
	assert_true(strncmp(err.message, "pids: ", 6) == 0);
	assert_true(cordon_recipe_set(&recipe, CORDON_RECIPE_ENV, "A", "env", &err) < 0);
	assert_int_equal(cordon_recipe_set(&recipe, CORDON_RECIPE_RW, "../x", "rw", &err), 0);
	assert_int_equal(cordon_recipe_set(&recipe, CORDON_RECIPE_WORKSPACE, "absent", "workspace", &err), 0);
	assert_true(cordon_recipe_compile(&recipe, CORDON_RECIPE_PLANS, &errors) < 0);
	assert_int_equal(errors.n, 1);
	assert_int_equal(recipe.folder_errors.n, 1);
	assert_null(recipe.policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_what_its_type_needs_and_names_of_its_own),
		cmocka_unit_test(the_first_number_counts_and_any_flag),
		cmocka_unit_test(what_is_wider_is_said_by_the_table),
		cmocka_unit_test(what_a_project_says_is_read_and_written),
		unit_test_in_dir(a_recipe_becomes_a_policy_and_a_run),
		unit_test_in_dir(what_is_wrong_is_said_with_the_name_of_the_setting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
