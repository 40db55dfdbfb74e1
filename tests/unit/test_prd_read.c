/* SPDX-License-Identifier: Apache-2.0 */
/* PRDs: what they say, every error at its place in one pass, the order of stories, and edits of single stories. */
#include "unit.h"

#include "base/io.h"
#include "config/prd.h"

#define autoerrors CORDON_CLEANUP(cordon_errors_done)
#define autochanges CORDON_CLEANUP(cordon_prd_changes_done)

static struct cordon_prd *read_good(const char *text)
{
	autoerrors struct cordon_errors errors = { 0 };
	struct cordon_prd *prd = NULL;

	if (cordon_prd_read("p", text, strlen(text), &prd, &errors) < 0)
		fail_msg("%s %s", errors.items[0].where, errors.items[0].message);
	assert_int_equal(errors.n, 0);
	return prd;
}

static void every_field_is_read(void **state)
{
	autoprd struct cordon_prd *prd = read_good(
		"{\"project\":\"shop\",\"branchName\":\"feature/cart\",\"description\":\"d\",\"source_project\":\"../x\","
		"\"parallelization\":{\"enabled\":false,\"maxWorkers\":5,\"defaultModel\":\"m\",\"modelStrategy\":\"auto\"},"
		"\"workspace\":{\"folders\":[\"lib\",\"src\"],\"mode\":\"strict\",\"preset\":\"web\"},\"own\":{\"x\":1},"
		"\"userStories\":["
		"{\"id\":\"US-001\",\"title\":\"A\",\"description\":\"text\",\"acceptanceCriteria\":[\"one\",\"two\"],"
		"\"priority\":-2,\"passes\":true,\"notes\":\"n\\n\",\"dependencies\":[\"US 2\",\"US 2\"],"
		"\"fileScope\":[\"lib/**/*.ts\"],\"estimatedComplexity\":\"complex\",\"suggestedModel\":\"opus\"},"
		"{\"id\":\"US 2\",\"title\":\"B\",\"fileScope\":null,\"dependencies\":null,\"priority\":null,\"notes\":null}]}");
	const struct cordon_prd_story *a = &prd->stories[0], *b = &prd->stories[1];

	(void)state;
	assert_string_equal(prd->project, "shop");
	assert_string_equal(prd->branch, "feature/cart");
	assert_string_equal(prd->source_project, "../x");
	assert_false(prd->parallel_enabled);
	assert_int_equal(prd->max_workers, 5);
	assert_string_equal(prd->default_model, "m");
	assert_true(prd->has_workspace && prd->has_mode && prd->mode == CORDON_MODE_STRICT);
	assert_int_equal(prd->n_folders, 2);
	assert_string_equal(prd->folders[1], "src");
	assert_string_equal(prd->preset, "web");
	assert_int_equal(prd->n_stories, 2);
	assert_string_equal(a->id, "US-001");
	assert_string_equal(a->description, "text");
	assert_int_equal(a->n_criteria, 2);
	assert_string_equal(a->criteria[1], "two");
	assert_true(a->has_priority && a->priority == -2 && a->passes);
	assert_string_equal(a->notes, "n\n");
	assert_int_equal(a->n_deps, 1);
	assert_int_equal(a->deps[0], 1);
	assert_int_equal(a->n_scope, 1);
	assert_string_equal(a->complexity, "complex");
	assert_string_equal(a->model, "opus");
	assert_false(b->has_priority || b->passes || b->notes || b->model);
	assert_string_equal(b->complexity, "medium");
	assert_int_equal(b->n_scope + b->n_deps, 0);
	assert_int_equal(prd->n_notices, 0);
}

static void defaults_are_those_of_the_format(void **state)
{
	autoprd struct cordon_prd *prd = read_good("{\"project\":\"p\",\"userStories\":[],\"source_project\":null,"
						   "\"workspace\":null}");

	(void)state;
	assert_true(prd->parallel_enabled);
	assert_int_equal(prd->max_workers, 0);
	assert_false(prd->has_workspace || prd->branch || prd->source_project);
	assert_int_equal(prd->n_stories, 0);
}

static void a_mistyped_key_is_told_and_a_foreign_one_is_not(void **state)
{
	autoprd struct cordon_prd *prd = read_good(
		"{\"project\":\"p\",\"userStories\":[{\"id\":\"A\",\"title\":\"t\",\n\"dependancies\":[\"B\"],"
		"\"testingStrategy\":1}]}");

	(void)state;
	assert_int_equal(prd->n_notices, 1);
	assert_non_null(strstr(prd->notices[0], "p:2:1: 'dependancies'"));
	assert_non_null(strstr(prd->notices[0], "did you mean 'dependencies'?"));
}

static void every_error_is_reported_at_its_place_in_one_pass(void **state)
{
	static const char *const story = "{\"project\":\"p\",\"userStories\":[{\"id\":\"A\",\"title\":\"t\",\n";
	static const struct {
		const char *front, *text, *errors[6];
	} rows[] = {
		{ "", "", { "p:1:1 not valid JSON" } },
		{ "", "[]", { "p:1:1 a PRD must be an object" } },
		{ "", "{}", { "p:1:1 the PRD has no project", "p:1:1 the PRD has no userStories" } },
		{ "",
		  "{\"project\":null,\"userStories\":7}",
		  { "p:1:12 project of the PRD must be text, not null",
		    "p:1:31 userStories must be a list, not a number" } },
		{ "",
		  "{\"project\":\" \",\n\"userStories\":[1,{},{\"id\":3,\"title\":\"\"}]}",
		  { "p:1:12 project of the PRD must not be empty",
		    "p:2:16 userStories[0] must be a mapping, not a number", "p:2:18 userStories[1] has no id",
		    "p:2:18 userStories[1] has no title", "p:2:27 id of userStories[2] must be text",
		    "p:2:37 title of userStories[2] must not be empty" } },
		{ "",
		  "{\"project\":\"p\",\"userStories\":[],\n\"branchName\":\"-x\",\"source_project\":\"\",\"workspace\":{\"folder\":[]}}",
		  { "p:2:14 branchName of the PRD is not a name that git accepts",
		    "p:2:36 source_project of the PRD must not be empty", "p:2:52 workspace has no key 'folder'" } },
		{ "",
		  "{\"project\":\"p\",\"userStories\":[],\n\"source_project\":\"a\\u0007\",\"workspace\":{\"folders\":[],\"mode\":\"lax\"}}",
		  { "p:2:18 source_project of the PRD must not have control characters",
		    "p:2:51 folders of workspace must not be empty", "p:2:61 mode of workspace must be" } },
		{ "",
		  "{\"project\":\"p\",\"userStories\":[],\n\"parallelization\":{\"enabled\":1,\"maxWorkers\":0,\"x\":1}}",
		  { "p:2:30 enabled of parallelization must be true or false",
		    "p:2:45 maxWorkers of parallelization must be a whole number from 1 to 64",
		    "p:2:47 parallelization has no key 'x'" } },
		{ story,
		  "\"priority\":1.5,\"passes\":\"yes\",\"fileScope\":[\"[z\",5]}]}",
		  { "p:2:12 priority of userStories[0] must be a whole number",
		    "p:2:25 passes of userStories[0] must be true", "p:2:45 ",
		    "p:2:49 an entry of fileScope of userStories[0] must be text" } },
		{ story,
		  "\"priority\":-1e3,\"acceptanceCriteria\":\"x\",\"estimatedComplexity\":\"hard\"}]}",
		  { "p:2:12 priority", "p:2:38 acceptanceCriteria of userStories[0] must be a list, not text",
		    "p:2:64 estimatedComplexity of userStories[0] must be" } },
		{ story,
		  "\"dependencies\":[\"B\",\"AA\",1]}]}",
		  { "p:2:17 no story has the id 'B'", "p:2:21 no story has the id 'AA'",
		    "p:2:26 an entry of dependencies must be text" } },
		{ story,
		  "\"dependencies\":[]},{\"id\":\"A\",\"title\":\"x\"}]}",
		  { "p:2:26 the id A is used twice; the other story begins in line 1" } },
		{ story,
		  "\"dependencies\":[\"C\"]},{\"id\":\"B\",\"title\":\"x\",\"dependencies\":[\"A\"]},\n"
		  "{\"id\":\"C\",\"title\":\"x\",\"dependencies\":[\"B\"]}]}",
		  { "p:2:16 stories depend on each other: A -> C -> B -> A" } },
		{ "",
		  "{\"project\":\"p\",\"userStories\":[{\"id\":\"a/b\",\"title\":\"t\"},\n{\"id\":\"..\",\"title\":\"t\"},\n"
		  "{\"id\":\"-x\",\"title\":\"t\"},\n{\"id\":\"a\\nb\",\"title\":\"t\"}]}",
		  { "p:1:37 id of userStories[0] must be 1 to 128", "p:2:7 id of userStories[1]",
		    "p:3:7 id of userStories[2]", "p:4:7 id of userStories[3]" } },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autobuf struct cordon_buf text = CORDON_BUF(1 << 16);
		autoerrors struct cordon_errors errors = { 0 };
		struct cordon_prd *prd = NULL;
		size_t n = 0;

		cordon_buf_addf(&text, "%s%s", rows[i].front, rows[i].text);
		assert_true(cordon_prd_read("p", text.data ? text.data : "", text.len, &prd, &errors) < 0);
		assert_null(prd);
		for (; n < 6 && rows[i].errors[n]; n++) {
			char said[2048];

			if (n >= errors.n)
				fail_msg("row %zu: no error like %s", i, rows[i].errors[n]);
			snprintf(said, sizeof(said), "%s %s", errors.items[n].where, errors.items[n].message);
			if (strncmp(said, rows[i].errors[n], strlen(rows[i].errors[n])) != 0)
				fail_msg("row %zu: %s, not %s", i, said, rows[i].errors[n]);
		}
		assert_int_equal(errors.n, n);
	}
}

/* A chain of the greatest length must not need a deep stack, and one more story is refused. */
static void the_largest_chain_is_read_and_a_larger_one_refused(void **state)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_PRD_SIZE_MAX);
	autoerrors struct cordon_errors errors = { 0 };
	struct cordon_prd *prd = NULL;
	size_t *ready = calloc(CORDON_PRD_STORIES_MAX, sizeof(*ready));
	bool *marks = calloc(CORDON_PRD_STORIES_MAX, sizeof(*marks));

	(void)state;
	cordon_buf_adds(&text, "{\"project\":\"p\",\"userStories\":[{\"id\":\"s0\",\"title\":\"t\"}");
	for (int i = 1; i < CORDON_PRD_STORIES_MAX; i++)
		cordon_buf_addf(&text, ",{\"id\":\"s%d\",\"title\":\"t\",\"dependencies\":[\"s%d\"]}", i, i - 1);
	cordon_buf_adds(&text, "]}");
	assert_int_equal(cordon_prd_read("p", text.data, text.len, &prd, &errors), 0);
	assert_int_equal(cordon_prd_ready(prd, ready), 1);
	assert_int_equal(ready[0], 0);
	assert_int_equal(cordon_prd_mark_deps(prd, CORDON_PRD_STORIES_MAX - 1, marks), 0);
	for (int i = 0; i < CORDON_PRD_STORIES_MAX - 1; i++)
		assert_true(marks[i]);
	assert_false(marks[CORDON_PRD_STORIES_MAX - 1]);
	cordon_prd_free(prd);
	prd = NULL;
	text.len -= 2;
	cordon_buf_adds(&text, ",{\"id\":\"x\",\"title\":\"t\"}]}");
	assert_true(cordon_prd_read("p", text.data, text.len, &prd, &errors) < 0);
	assert_non_null(strstr(errors.items[0].message, "at most 10000 stories"));
	free(ready);
	free(marks);
}

static void ready_stories_come_by_priority_then_by_place(void **state)
{
	autoprd struct cordon_prd *prd = read_good(
		"{\"project\":\"p\",\"userStories\":["
		"{\"id\":\"none\",\"title\":\"t\"},{\"id\":\"five\",\"title\":\"t\",\"priority\":5},"
		"{\"id\":\"waits\",\"title\":\"t\",\"priority\":0,\"dependencies\":[\"five\",\"done\"]},"
		"{\"id\":\"two\",\"title\":\"t\",\"priority\":2,\"dependencies\":[\"done\"]},"
		"{\"id\":\"two-too\",\"title\":\"t\",\"priority\":2},"
		"{\"id\":\"done\",\"title\":\"t\",\"passes\":true},{\"id\":\"last\",\"title\":\"t\"}]}");
	static const char *const order[] = { "two", "two-too", "five", "none", "last" };
	size_t ready[7], n = cordon_prd_ready(prd, ready);

	(void)state;
	assert_int_equal(n, CORDON_ARRAY_SIZE(order));
	for (size_t i = 0; i < n; i++)
		assert_string_equal(prd->stories[ready[i]].id, order[i]);
}

static void cycles_can_be_had_as_data(void **state)
{
	static const char text[] = "{\"project\":\"p\",\"userStories\":["
				   "{\"id\":\"A\",\"title\":\"t\",\"dependencies\":[\"B\"]},"
				   "{\"id\":\"B\",\"title\":\"t\",\"dependencies\":[\"A\"]},"
				   "{\"id\":\"C\",\"title\":\"t\",\"dependencies\":[\"C\",\"A\"]}]}";
	autoerrors struct cordon_errors errors = { 0 };
	autoprd struct cordon_prd *prd = NULL;

	(void)state;
	assert_int_equal(cordon_prd_read_flags("p", text, strlen(text), CORDON_PRD_CYCLES_ALLOWED, &prd, &errors), 0);
	assert_int_equal(prd->n_cycles, 2);
	assert_int_equal(prd->cycles[0].n, 2);
	assert_int_equal(prd->cycles[0].stories[0], 0);
	assert_int_equal(prd->cycles[1].n, 1);
	assert_int_equal(prd->cycles[1].stories[0], 2);
}

static void an_inferred_scope_is_known_again(void **state)
{
	static const struct {
		const char *scope;
		bool inferred;
	} rows[] = {
		{ "[\"lib/**/*.sh\",\"lib/**/*.js\",\"lib/**/*.ts\",\"lib/**/*.py\",\"lib/**/*.json\",\"lib/**/*.md\","
		  "\"lib/**/*.yaml\",\"lib/**/*.yml\"]",
		  true },
		{ "[\"lib/**/*.sh\",\"lib/**/*.js\",\"lib/**/*.ts\",\"lib/**/*.py\",\"lib/**/*.json\",\"lib/**/*.md\","
		  "\"lib/**/*.yaml\",\"lib/**/*.yml\",\"lib/\"]",
		  true },
		{ "[\"lib/**/*.sh\",\"lib/**/*.js\",\"lib/**/*.ts\",\"lib/**/*.py\",\"lib/**/*.json\",\"lib/**/*.md\","
		  "\"lib/**/*.yaml\",\"lib/**/*.yml\",\"lib/**/*.go\"]",
		  true },
		{ "[\"lib/**/*.sh\",\"lib/**/*.js\",\"lib/**/*.ts\",\"lib/**/*.py\",\"lib/**/*.json\",\"lib/**/*.md\","
		  "\"lib/**/*.yaml\",\"lib/**/*.yml\",\"src/**/*.go\"]",
		  false },
		{ "[\"lib/**/*.sh\",\"lib/**/*.js\",\"lib/**/*.ts\",\"lib/**/*.py\",\"lib/**/*.json\",\"lib/**/*.md\","
		  "\"lib/**/*.yaml\",\"lib/**/*.yml\",\"lib/**/*.*\"]",
		  false },
		{ "[\"lib/**/*.ts\"]", false },
		{ "[]", false },
	};
	static const char *const folders[] = { "lib" };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autobuf struct cordon_buf text = CORDON_BUF(1 << 16);
		autoprd struct cordon_prd *prd = NULL;

		cordon_buf_addf(&text,
				"{\"project\":\"p\",\"userStories\":[{\"id\":\"A\",\"title\":\"t\",\"fileScope\":%s}]}",
				rows[i].scope);
		prd = read_good(text.data);
		if (cordon_prd_scope_inferred(&prd->stories[0], folders, 1) != rows[i].inferred)
			fail_msg("row %zu", i);
	}
}

static void an_edit_changes_the_named_values_and_no_other_byte(void **state)
{
	static const struct {
		const char *old, *new;
	} rows[] = {
		/* one member per line: replaced in place, or added behind the last */
		{ "{\n  \"userStories\": [\n    {\n      \"id\": \"A\",\n      \"passes\":  false ,\n      \"x\": 1.50\n    },\n"
		  "    { \"id\": \"B\" }\n  ]\n}\n",
		  "{\n  \"userStories\": [\n    {\n      \"id\": \"A\",\n      \"passes\":  true ,\n      \"x\": 1.50,\n"
		  "      \"notes\": \"a \\\"b\\\"\\n\"\n    },\n    { \"id\": \"B\", \"fileScope\": [\"lib/**\"] }\n  ]\n}\n" },
		/* the last member is replaced, and another one is added behind it */
		{ "{\"userStories\":[{\"id\":\"B\",\"fileScope\":[]},{\"id\":\"A\",\"passes\":false}]}",
		  "{\"userStories\":[{\"id\":\"B\",\"fileScope\":[\"lib/**\"]},"
		  "{\"id\":\"A\",\"passes\":true,\"notes\":\"a \\\"b\\\"\\n\"}]}" },
		/* what is already so stays as it is written */
		{ "{\"userStories\":[{\"id\":\"\\u0041\",\"notes\":\"a \\u0022b\\u0022\\n\",\"passes\":true},"
		  "{\"fileScope\":[ \"lib\\/**\" ],\"id\":\"B\"}]}",
		  "{\"userStories\":[{\"id\":\"\\u0041\",\"notes\":\"a \\u0022b\\u0022\\n\",\"passes\":true},"
		  "{\"fileScope\":[ \"lib\\/**\" ],\"id\":\"B\"}]}" },
	};
	json_t *scope = json_pack("[s]", "lib/**");
	const struct cordon_prd_edit edits[] = {
		{ .id = "B", .set_passes = true, .passes = false, .scope = scope },
		{ .id = "A", .set_passes = true, .passes = true, .notes = "a \"b\"\n" },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autobuf struct cordon_buf text = CORDON_BUF(1 << 16);
		autoerrors struct cordon_errors errors = { 0 };
		autochanges struct cordon_prd_changes changes = { 0 };

		assert_int_equal(cordon_prd_edit_text("p", rows[i].old, strlen(rows[i].old), edits, 2, &text, &changes,
						      &errors),
				 0);
		assert_string_equal(text.data, rows[i].new);
		assert_int_equal(changes.n, i == 2 ? 0 : 2);
	}
	json_decref(scope);
}

static void an_edit_that_is_not_clear_leaves_the_file_alone(void **state)
{
	static const char text[] = "{\"userStories\":[{\"id\":\"A\"},{\"id\":\"A\"},{\"id\":\"B\"}]}";
	static const struct {
		struct cordon_prd_edit edit;
		const char *message;
	} rows[] = {
		{ { .id = "A", .set_passes = true, .passes = true }, "the id A is used twice" },
		{ { .id = "C", .set_passes = true, .passes = true }, "there is no story C" },
		{ { .id = "B", .notes = "\xff" }, "are not UTF-8" },
	};
	autobuf struct cordon_buf now = CORDON_BUF(4096);

	(void)state;
	unit_write("prd.json", text);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autoerrors struct cordon_errors errors = { 0 };

		assert_true(cordon_prd_apply("prd.json", &rows[i].edit, 1, &errors) < 0);
		assert_non_null(strstr(errors.items[0].message, rows[i].message));
	}
	assert_int_equal(cordon_read_file(AT_FDCWD, "prd.json", 0, &now, NULL), 0);
	assert_string_equal(now.data, text);
}

static void only_a_regular_file_is_read(void **state)
{
	static const struct {
		const char *path, *message;
		cordon_kind kind;
	} rows[] = {
		{ "link.json", "is a symbolic link", CORDON_KIND_IO },
		{ "fifo", "fifo", CORDON_KIND_IO },
		{ "missing", "missing", CORDON_KIND_NOT_FOUND },
		{ ".", ".", CORDON_KIND_IO },
	};

	(void)state;
	unit_write("prd.json", "{}");
	unit_link("prd.json", "link.json");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autoerrors struct cordon_errors errors = { 0 };
		struct cordon_prd *prd = NULL;

		assert_true(cordon_prd_load(rows[i].path, &prd, &errors) < 0);
		assert_non_null(strstr(errors.items[0].message, rows[i].message));
		assert_int_equal(errors.items[0].kind, rows[i].kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_read),
		cmocka_unit_test(defaults_are_those_of_the_format),
		cmocka_unit_test(a_mistyped_key_is_told_and_a_foreign_one_is_not),
		cmocka_unit_test(every_error_is_reported_at_its_place_in_one_pass),
		cmocka_unit_test(the_largest_chain_is_read_and_a_larger_one_refused),
		cmocka_unit_test(ready_stories_come_by_priority_then_by_place),
		cmocka_unit_test(cycles_can_be_had_as_data),
		cmocka_unit_test(an_inferred_scope_is_known_again),
		cmocka_unit_test(an_edit_changes_the_named_values_and_no_other_byte),
		unit_test_in_dir(an_edit_that_is_not_clear_leaves_the_file_alone),
		unit_test_in_dir(only_a_regular_file_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
