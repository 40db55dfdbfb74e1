/* SPDX-License-Identifier: Apache-2.0 */
/* The pattern grammar: the tables of cases, and a naive matcher as oracle over random pairs. */
#include "unit.h"

#include "base/buf.h"
#include "base/io.h"
#include "oracle.h"
#include "policy/pattern_impl.h"

#define RANDOM_PAIRS 150000
#define SEED 20240607u

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

/* Reads tests/cases/NAME and calls `row` with the fields of each line that is not empty and, where the table has
 * comments, starts with no #. */
static size_t for_each_row(const char *name, bool comments, size_t fields, void (*row)(char **field, size_t line))
{
	autobuf struct cordon_buf text = CORDON_BUF(1 << 20);
	char path[1024];
	size_t rows = 0, line = 0;

	snprintf(path, sizeof(path), "%s/%s", getenv("CORDON_CASES"), name);
	assert_int_equal(cordon_read_file(AT_FDCWD, path, 0, &text, NULL), 0);
	for (char *p = text.data, *end; *p; p = end + 1) {
		char *field[8] = { 0 };
		size_t n = 0;

		end = strchr(p, '\n');
		assert_non_null(end);
		*end = '\0';
		line++;
		if (!*p || (comments && *p == '#'))
			continue;
		for (char *f = p; f && n < CORDON_ARRAY_SIZE(field); n++) {
			field[n] = f;
			f = strchr(f, '\t');
			if (f)
				*f++ = '\0';
		}
		if (n != fields)
			fail_msg("%s:%zu has %zu fields", name, line, n);
		row(field, line);
		rows++;
	}
	return rows;
}

static void check_glob(char **field, size_t line)
{
	struct cordon_pattern *pattern = NULL, *graph = NULL;
	struct cordon_error err = { 0 };
	bool want = cordon_streq(field[2], "1");

	if (cordon_pattern_compile(field[0], &pattern, &err) < 0)
		fail_msg("globs.tsv:%zu: %s", line, err.message);
	assert_int_equal(cordon_pattern_compile_within(field[0], 0, &graph, NULL), 0);
	if (cordon_pattern_match(pattern, field[1], NULL) != want || cordon_pattern_match(graph, field[1], NULL) != want)
		fail_msg("globs.tsv:%zu: `%s` and `%s` should be %s", line, field[0], field[1], field[2]);
	cordon_pattern_free(pattern);
	cordon_pattern_free(graph);
}

static void public_glob_cases_agree(void **state)
{
	(void)state;
	assert_int_equal(for_each_row("globs.tsv", false, 3, check_glob), 3020);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(public_glob_cases_agree),
	};

	(void)matches;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
