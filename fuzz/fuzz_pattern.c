/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes patterns: the input is a pattern, a NUL and a path. For every pattern that compiles, both matchers must
 * give the same answer, and for a short one the naive matcher, too; a pattern that does not compile must have an
 * error message.
 */
#include <assert.h>

#include "../tests/unit/oracle.h"
#include "base/path.h"
#include "policy/pattern_impl.h"

#define SHORT_PATTERN 48
#define SHORT_PATH 24
#define FEW_STARS 4
#define FEW_ALTERNATIVES 64
#define LONGEST (CORDON_PATTERN_MAX + CORDON_PATH_MAX + 2)
#define WORK (1 << 16) /* bound of pattern x path; `make bench` measures how slow the slowest is */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const struct cordon_error *err, int r)
{
	assert(r == -EINVAL && err->code == r && err->kind == CORDON_KIND_USAGE);
	assert(strstr(err->message, "at column ") && err->hint[0]);
}

/* A quoted path is a pattern for that path. */
static void check_quote(const char *path)
{
	struct cordon_pattern *pattern = NULL;
	struct cordon_specificity s;
	autofree char *quoted = cordon_pattern_quote(path);

	assert(quoted);
	if (strlen(quoted) <= CORDON_PATTERN_MAX) {
		int r = cordon_pattern_compile(quoted, &pattern, NULL);

		assert(r == 0);
		assert(cordon_pattern_match(pattern, path, &s) && s.literal_prefix == strlen(path));
		assert(cordon_pattern_alternatives(pattern) == 1 &&
		       cordon_streq(cordon_pattern_literal(pattern, 0), path));
		assert(cordon_pattern_covers(pattern, path));
	}
	cordon_pattern_free(pattern);
}

/* Literal alternatives match themselves. */
static void check_literals(const struct cordon_pattern *pattern)
{
	for (size_t i = 0; i < cordon_pattern_alternatives(pattern) && i < 16; i++) {
		const char *literal = cordon_pattern_literal(pattern, i);

		if (literal && strlen(literal) < CORDON_PATH_MAX)
			assert(cordon_pattern_match(pattern, literal, NULL) && cordon_pattern_covers(pattern, literal));
	}
}

static bool is_short(const char *text, const char *path, const struct cordon_pattern *pattern)
{
	size_t stars = 0;

	for (const char *p = text; *p; p++)
		stars += *p == '*';
	return strlen(text) <= SHORT_PATTERN && strlen(path) <= SHORT_PATH && stars <= FEW_STARS &&
	       cordon_pattern_alternatives(pattern) <= FEW_ALTERNATIVES && !strchr(text, ORACLE_JOINT) &&
	       !strchr(path, ORACLE_JOINT);
}

static void check_match(const char *text, const char *path, const struct cordon_pattern *flat,
			const struct cordon_pattern *graph)
{
	struct cordon_specificity of_flat = { 0 }, of_graph = { 0 };
	bool yes = cordon_pattern_match(flat, path, &of_flat);

	assert(yes == cordon_pattern_match(graph, path, &of_graph));
	assert(of_flat.literal_components == of_graph.literal_components &&
	       of_flat.literal_prefix == of_graph.literal_prefix);
	assert(cordon_pattern_covers(flat, path) == cordon_pattern_covers(graph, path));
	assert(cordon_pattern_leads(flat, path) == cordon_pattern_leads(graph, path));
	if (is_short(text, path, flat)) {
		struct oracle_answer want = oracle_match(text, path);

		assert(yes == want.matches && cordon_pattern_alternatives(flat) == want.alternatives);
		assert(!yes || memcmp(&of_flat, &want.specificity, sizeof(of_flat)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *input = malloc(size + 2);
	struct cordon_pattern *flat = NULL, *graph = NULL;
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	const char *rest;
	int r;

	if (!input || size > LONGEST)
		return 0;
	if (size)
		memcpy(input, data, size);
	input[size] = input[size + 1] = '\0';
	rest = input + strlen(input) + 1;
	r = cordon_pattern_compile(input, &flat, &err);
	if (r < 0)
		check_error(&err, r);
	if (cordon_path_clean(rest, path, sizeof(path)) < 0 || path[0] == '/')
		path[0] = '\0';
	check_quote(path);
	if (r == 0) {
		assert(cordon_pattern_compile_within(input, 0, &graph, NULL) == 0);
		if (strlen(input) * strlen(path) > WORK)
			path[WORK / CORDON_PATTERN_MAX] = '\0';
		if (path[0] && path[strlen(path) - 1] == '/')
			path[strlen(path) - 1] = '\0';
		check_literals(flat);
		check_match(input, path, flat, graph);
	}
	cordon_pattern_free(flat);
	cordon_pattern_free(graph);
	return 0;
}
