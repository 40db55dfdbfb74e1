/* SPDX-License-Identifier: Apache-2.0 */
/* The pattern grammar: the tables of cases, the limits, and what a pattern reports about itself. */
#include "cases.h"

#include "policy/pattern_impl.h"

static struct cordon_pattern *compile(const char *text)
{
	struct cordon_pattern *pattern = NULL;
	struct cordon_error err = { 0 };

	if (cordon_pattern_compile(text, &pattern, &err) < 0)
		fail_msg("%s", err.message);
	return pattern;
}

static bool matches(const char *text, const char *path)
{
	struct cordon_pattern *pattern = compile(text);
	bool answer = cordon_pattern_match(pattern, path, NULL);

	cordon_pattern_free(pattern);
	return answer;
}

static void check_glob(char **field, const char *where)
{
	struct cordon_pattern *pattern = NULL, *graph = NULL;
	struct cordon_error err = { 0 };
	bool want = cordon_streq(field[2], "1");

	if (cordon_pattern_compile(field[0], &pattern, &err) < 0)
		fail_msg("%s: %s", where, err.message);
	assert_int_equal(cordon_pattern_compile_within(field[0], 0, &graph, NULL), 0);
	if (cordon_pattern_match(pattern, field[1], NULL) != want || cordon_pattern_match(graph, field[1], NULL) != want)
		fail_msg("%s: `%s` and `%s` should be %s", where, field[0], field[1], field[2]);
	cordon_pattern_free(pattern);
	cordon_pattern_free(graph);
}

static void public_glob_cases_agree(void **state)
{
	(void)state;
	assert_int_equal(cases_each("globs.tsv", false, 3, check_glob), 3020);
}

static void check_bad(char **field, const char *where)
{
	struct cordon_pattern *pattern = NULL;
	struct cordon_error err = { 0 };
	char column[32];

	snprintf(column, sizeof(column), "at column %s:", field[1]);
	if (cordon_pattern_compile(field[0], &pattern, &err) != -EINVAL)
		fail_msg("%s: `%s` is no error", where, field[0]);
	assert_null(pattern);
	assert_int_equal(err.kind, CORDON_KIND_USAGE);
	if (!strstr(err.message, column))
		fail_msg("%s: %s, not %s", where, err.message, column);
	if (!strstr(err.hint, field[2]))
		fail_msg("%s: the hint is %s, not %s", where, err.hint, field[2]);
}

static void bad_patterns_are_errors_with_column_and_hint(void **state)
{
	(void)state;
	assert_true(cases_each("bad-patterns.tsv", true, 3, check_bad) > 40);
	assert_int_equal(cordon_pattern_compile("[", NULL, NULL), -EINVAL);
	check_bad((char *[]){ (char[]){ "" }, (char[]){ "1" }, (char[]){ "`**`" } }, "the empty pattern");
	check_bad((char *[]){ (char[]){ "x[a-\xff]" }, (char[]){ "3" }, (char[]){ "two ranges" } }, "a mixed range");
	check_bad((char *[]){ (char[]){ "a{\xc3,b}\xa9" }, (char[]){ "1" }, (char[]){ "whole UTF-8" } },
		  "a split character");
}

static void a_message_about_a_long_pattern_still_names_the_column(void **state)
{
	char text[CORDON_PATTERN_MAX + 2];
	struct cordon_pattern *pattern = NULL;
	struct cordon_error err = { 0 };

	(void)state;
	memset(text, 'a', sizeof(text));
	text[CORDON_PATTERN_MAX] = '\0';
	assert_int_equal(cordon_pattern_compile(text, &pattern, &err), 0);
	assert_true(cordon_pattern_match(pattern, text + 1, NULL) == false);
	pattern = cordon_pattern_free(pattern);
	text[CORDON_PATTERN_MAX - 1] = '[';
	assert_int_equal(cordon_pattern_compile(text, &pattern, &err), -EINVAL);
	assert_non_null(strstr(err.message, "at column 4096: the bracket is not closed"));
	memset(text, 'a', sizeof(text));
	text[CORDON_PATTERN_MAX + 1] = '\0';
	assert_int_equal(cordon_pattern_compile(text, &pattern, &err), -EINVAL);
	assert_non_null(strstr(err.message, "longer than 4096 bytes"));
	assert_null(pattern);
}

static void braces_up_to_the_bound_compile_and_match(void **state)
{
	struct cordon_pattern *pattern = compile("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}/**");

	(void)state;
	assert_int_equal(cordon_pattern_alternatives(pattern), 1024);
	assert_true(pattern->graph);
	assert_true(cordon_pattern_match(pattern, "abababbaab/x", NULL));
	assert_false(cordon_pattern_match(pattern, "abababbaa/x", NULL));
	assert_false(cordon_pattern_match(pattern, "abababbaac/x", NULL));
	cordon_pattern_free(pattern);
	assert_true(matches("{a,{b,{c,{d,{e,{f,{g,{h,{i,{j,k}}}}}}}}}}", "k"));
	assert_true(matches("{{{{{{{{{{a,b}}}}}}}}}}", "b"));
}

static void assert_specificity(const char *text, const char *path, size_t components, size_t prefix)
{
	struct cordon_pattern *pattern = compile(text);
	struct cordon_specificity s = { 99, 99 };

	assert_true(cordon_pattern_match(pattern, path, &s));
	assert_int_equal(s.literal_components, components);
	assert_int_equal(s.literal_prefix, prefix);
	cordon_pattern_free(pattern);
}

static void specificity_is_that_of_the_best_matching_alternative(void **state)
{
	(void)state;
	assert_specificity("src", "src/x", 1, 3);
	assert_specificity("src/**", "src/x", 1, 3);
	assert_specificity("src/*", "src/x", 1, 4);
	assert_specificity("src/**/*.ts", "src/x.ts", 1, 4);
	assert_specificity("src/a*/b", "src/ax/b", 2, 5);
	assert_specificity("**", "x", 0, 0);
	assert_specificity("**/x", "x", 1, 0);
	assert_specificity(".", "x", 0, 0);
	assert_specificity("{src,src/app}", "src/app/x", 2, 7);
	assert_specificity("{src,src/app}", "src/x", 1, 3);
	assert_specificity("{*,src}/x", "src/x", 2, 5);
}

static void what_a_directory_leads_to_is_known(void **state)
{
	struct cordon_pattern *pattern = compile("src/*/gen/**/*.ts");

	(void)state;
	assert_true(cordon_pattern_leads(pattern, ""));
	assert_true(cordon_pattern_leads(pattern, "src"));
	assert_true(cordon_pattern_leads(pattern, "src/a"));
	assert_true(cordon_pattern_leads(pattern, "src/a/gen"));
	assert_true(cordon_pattern_leads(pattern, "src/a/gen/x/y"));
	assert_false(cordon_pattern_leads(pattern, "src/a/other"));
	assert_false(cordon_pattern_leads(pattern, "lib"));
	assert_false(cordon_pattern_covers(pattern, "src/a/gen"));
	cordon_pattern_free(pattern);
	pattern = compile("{src,lib/*}");
	assert_true(cordon_pattern_leads(pattern, "src/a"));
	assert_true(cordon_pattern_covers(pattern, "src/a"));
	assert_true(cordon_pattern_leads(pattern, "lib"));
	assert_false(cordon_pattern_leads(pattern, "lib/a"));
	assert_false(cordon_pattern_covers(pattern, "lib/a"));
	cordon_pattern_free(pattern);
}

static void subtrees_have_a_literal_path(void **state)
{
	static const struct {
		const char *text, *literal;
	} cases[] = {
		{ "src", "src" },	    { "src/", "src" }, { "./a//b", "a/b" },  { "src/**", "src" },
		{ "src/**/**", "src" },	    { "**", "" },      { ".", "" },	     { "a\\*b", "a*b" },
		{ "a\\[1\\]/b", "a[1]/b" }, { "src/*", NULL }, { "src/**/a", NULL }, { "*/src", NULL },
		{ "src/**/*.ts", NULL },    { "[s]rc", NULL },
	};
	struct cordon_pattern *pattern;
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		const char *literal;

		pattern = compile(cases[i].text);
		literal = cordon_pattern_literal(pattern, 0);
		assert_int_equal(cordon_pattern_alternatives(pattern), 1);
		if (!literal || !cases[i].literal)
			assert_true(literal == cases[i].literal);
		else
			assert_string_equal(literal, cases[i].literal);
		cordon_pattern_free(pattern);
	}
	pattern = compile("{lib,src/**,*.ts}");
	assert_int_equal(cordon_pattern_alternatives(pattern), 3);
	for (size_t i = 0; i < 3; i++) {
		const char *literal = cordon_pattern_literal(pattern, i);

		found += !literal ? 1 : cordon_streq(literal, "lib") ? 10 : cordon_streq(literal, "src") ? 100 : 1000;
	}
	assert_int_equal(found, 111);
	assert_null(cordon_pattern_literal(pattern, 3));
	cordon_pattern_free(pattern);
}

static void paths_that_are_not_clean_match_nothing(void **state)
{
	static const char *const paths[] = { "/", "/a", "a/", "a//b", ".", "./a", "..", "a/../b", "a/." };
	struct cordon_pattern *pattern = compile("**");
	char path[CORDON_PATH_MAX + 1];

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(paths); i++) {
		assert_false(cordon_pattern_match(pattern, paths[i], NULL));
		assert_false(cordon_pattern_leads(pattern, paths[i]));
	}
	assert_true(cordon_pattern_match(pattern, "", NULL));
	assert_true(cordon_pattern_match(pattern, "...", NULL));
	memset(path, 'a', sizeof(path));
	path[CORDON_PATH_MAX - 1] = '\0';
	assert_true(cordon_pattern_match(pattern, path, NULL));
	path[CORDON_PATH_MAX - 1] = 'a';
	path[CORDON_PATH_MAX] = '\0';
	assert_false(cordon_pattern_match(pattern, path, NULL));
	cordon_pattern_free(pattern);
}

static void brackets_may_hold_what_looks_like_a_named_class(void **state)
{
	(void)state;
	assert_true(matches("[[:]x:]", "[x:]"));
	assert_true(matches("[[:]x:]", ":x:]"));
	assert_true(matches("[[.]a.]", ".a.]"));
	assert_true(matches("[[=]", "="));
	assert_true(matches("[[a]", "["));
	assert_true(matches("[\\[:a:]", ":"));
}

static void characters_are_never_split(void **state)
{
	(void)state;
	assert_true(matches("?", "\xc3\xa9"));
	assert_false(matches("??", "\xc3\xa9"));
	assert_true(matches("??", "\xa9\xc3"));
	assert_false(matches("*\xa9", "\xc3\xa9"));
	assert_true(matches("*\xa9", "\xa9\xa9"));
	assert_false(matches("\xc3*", "\xc3\xa9"));
	assert_false(matches("\xc3?", "\xc3\xa9"));
	assert_true(matches("[\xc3\xa9]", "\xc3\xa9"));
	assert_false(matches("[!\xc3\xa9]", "\xc3\xa9"));
	assert_true(matches("[\x80-\xff]", "\xc3"));
	assert_false(matches("[\x80-\xff]", "\xc3\xa9"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(public_glob_cases_agree),
		cmocka_unit_test(bad_patterns_are_errors_with_column_and_hint),
		cmocka_unit_test(a_message_about_a_long_pattern_still_names_the_column),
		cmocka_unit_test(braces_up_to_the_bound_compile_and_match),
		cmocka_unit_test(specificity_is_that_of_the_best_matching_alternative),
		cmocka_unit_test(what_a_directory_leads_to_is_known),
		cmocka_unit_test(subtrees_have_a_literal_path),
		cmocka_unit_test(paths_that_are_not_clean_match_nothing),
		cmocka_unit_test(brackets_may_hold_what_looks_like_a_named_class),
		cmocka_unit_test(characters_are_never_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
