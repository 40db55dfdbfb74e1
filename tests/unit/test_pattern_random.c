/* SPDX-License-Identifier: Apache-2.0 */
/* Random patterns and paths: compares both matchers of the engine with a naive one. */
#include "unit.h"

#include "base/buf.h"
#include "oracle.h"
#include "policy/pattern_impl.h"

#define PAIRS 120000
#define SEED 20240607u

static uint64_t random_state = SEED;

static unsigned int below(unsigned int n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned int)(random_state >> 33) % n;
}

static bool one_in(unsigned int n)
{
	return below(n) == 0;
}

/* Uses few different characters, so that patterns match often: some of two bytes, a special one, an invalid byte. */
static const char *random_char(void)
{
	static const char *const chars[] = { "a", "a", "b", "b", "c", ".", "\xc3\xa9", "*", "\xc3", "-", "{", "," };

	return chars[below(one_in(3) ? CORDON_ARRAY_SIZE(chars) : 5)];
}

static void add(struct cordon_buf *buf, const char *s)
{
	assert_int_equal(cordon_buf_adds(buf, s), 0);
}

static void add_random_path(struct cordon_buf *path)
{
	unsigned int names = 1 + below(4);

	for (unsigned int i = 0; i < names; i++) {
		size_t start;
		unsigned int n = 1 + below(5);

		add(path, i ? "/" : "");
		start = path->len;
		while (n--)
			add(path, random_char());
		/* A name must not consist of dots only. */
		if (path->data[start + strspn(path->data + start, ".")] == '\0')
			add(path, "a");
	}
}

static void add_literal(struct cordon_buf *pattern, const char *s, size_t n)
{
	if (strchr("*?[]{},\\!", *s) || one_in(20))
		add(pattern, "\\");
	assert_int_equal(cordon_buf_add(pattern, s, n), 0);
}

static void add_class(struct cordon_buf *pattern, const char *s, size_t n)
{
	static const char *const others[] = { "a-b", "c", "]", "\\]x", "\xc3\xa9", "b-\xc3\xa9", "-" };
	bool negated = one_in(3);

	add(pattern, negated ? one_in(2) ? "[!" : "[^" : "[");
	add(pattern, others[below(CORDON_ARRAY_SIZE(others))]);
	if (!negated && !one_in(4)) {
		if (strchr("-\\]!^[", *s))
			add(pattern, "\\");
		assert_int_equal(cordon_buf_add(pattern, s, n), 0);
	}
	add(pattern, "]");
}

static void add_pattern_of(struct cordon_buf *pattern, const char *text, size_t len, unsigned int depth);

static void add_noise(struct cordon_buf *pattern)
{
	for (unsigned int k = below(3); k; k--)
		add_pattern_of(pattern, random_char(), 1, 0);
	if (one_in(6))
		add(pattern, one_in(2) ? "/" : "*");
}

/* Puts braces around the text: one alternative is made from it, one or two others are random. */
static void add_braces(struct cordon_buf *pattern, const char *text, size_t len, unsigned int depth)
{
	unsigned int n = 2 + below(2), at = below(n);

	add(pattern, "{");
	for (unsigned int i = 0; i < n; i++) {
		add(pattern, i ? "," : "");
		if (i == at)
			add_pattern_of(pattern, text, len, depth);
		else
			add_noise(pattern);
	}
	add(pattern, "}");
}

/* The length of some whole characters at the start of the text. */
static size_t random_piece(const char *text, size_t len)
{
	size_t n = 1 + below((unsigned int)len);

	while (n < len && ((unsigned char)text[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* Adds a pattern that is made from the text, in most cases so that it still matches; braces are nested up to
 * `depth`. */
static void add_pattern_of(struct cordon_buf *pattern, const char *text, size_t len, unsigned int depth)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = cordon_utf8_char(text + i, len - i);
		n = n ? n : 1;
		if (depth && one_in(10)) {
			n = random_piece(text + i, len - i);
			add_braces(pattern, text + i, n, depth - 1);
		} else if (text[i] == '/') {
			add(pattern, one_in(20) ? "//" : one_in(20) ? "/./" : one_in(8) ? "/**/" : "/");
		} else if (one_in(9)) {
			add(pattern, "?");
		} else if (one_in(9)) {
			add_class(pattern, text + i, n);
		} else if (one_in(8)) {
			add(pattern, "*");
			n = random_piece(text + i, len - i);
			for (size_t k = 0; k < n; k++)
				if (text[i + k] == '/')
					n = k;
		} else {
			add_literal(pattern, text + i, n);
		}
	}
}

static void add_random_pattern(struct cordon_buf *pattern, const struct cordon_buf *path)
{
	size_t len = path->len, start = 0;
	const char *slash = strrchr(path->data, '/');

	add(pattern, one_in(20) ? "./" : one_in(6) ? "**/" : "");
	if (slash && one_in(4))
		len = (size_t)(slash - path->data);
	if (slash && pattern->len > 2 && one_in(2))
		start = (size_t)(strchr(path->data, '/') - path->data) + 1;
	if (start < len)
		add_pattern_of(pattern, path->data + start, len - start, 3);
	if (one_in(8))
		add(pattern, one_in(3) ? "/" : one_in(2) ? "/**" : "/*");
	/* Sometimes add something random. */
	if (one_in(3))
		add_pattern_of(pattern, random_char(), 1, 1);
}

struct tally {
	unsigned int pairs, refused, matched, braces, covered, deep;
};

/* A denial covers a path when the naive matcher says yes to it or to a directory above it. */
static bool oracle_match_deep(const char *text, const char *path)
{
	char part[512];
	bool found = oracle_match(text, path).matches;

	for (const char *slash = strchr(path, '/'); slash && !found; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		found = oracle_match(text, part).matches;
	}
	return found || oracle_match(text, "").matches;
}

static void compare_deep(const char *text, const char *path, struct cordon_pattern *pattern, struct tally *tally)
{
	bool want = oracle_match_deep(text, path);

	cordon_pattern_deepen(pattern);
	if (cordon_pattern_match(pattern, path, NULL) != want || cordon_pattern_covers(pattern, path) != want ||
	    (want && !cordon_pattern_leads(pattern, path)))
		fail_msg("`%s` as a denial and `%s`: %s", text, path, want ? "must match" : "must not match");
	tally->deep += want;
}

static void compare(const char *text, const char *path, struct tally *tally)
{
	struct cordon_pattern *flat = NULL, *graph = NULL;
	struct cordon_specificity of_flat = { 0 }, of_graph = { 0 };
	struct oracle_answer want;
	char below_path[512];
	bool yes, covers;

	if (cordon_pattern_compile(text, &flat, NULL) < 0) {
		tally->refused++;
		return;
	}
	assert_int_equal(cordon_pattern_compile_within(text, 0, &graph, NULL), 0);
	want = oracle_match(text, path);
	yes = cordon_pattern_match(flat, path, &of_flat);
	covers = cordon_pattern_covers(flat, path);
	snprintf(below_path, sizeof(below_path), "%s/%s", path, random_char());
	if (yes != want.matches || cordon_pattern_match(graph, path, &of_graph) != want.matches)
		fail_msg("`%s` and `%s`: %s", text, path, want.matches ? "must match" : "must not match");
	if (yes && (memcmp(&of_flat, &want.specificity, sizeof(of_flat)) != 0 ||
		    memcmp(&of_graph, &want.specificity, sizeof(of_graph)) != 0))
		fail_msg("`%s` and `%s`: specificity %zu/%zu, %zu/%zu, not %zu/%zu", text, path,
			 of_flat.literal_components, of_flat.literal_prefix, of_graph.literal_components,
			 of_graph.literal_prefix, want.specificity.literal_components, want.specificity.literal_prefix);
	if (cordon_pattern_alternatives(flat) != want.alternatives)
		fail_msg("`%s` stands for %zu alternatives, not %zu", text, want.alternatives,
			 cordon_pattern_alternatives(flat));
	if (covers != cordon_pattern_covers(graph, path) ||
	    cordon_pattern_leads(flat, path) != cordon_pattern_leads(graph, path))
		fail_msg("`%s` and `%s`: the matchers differ on what lies below", text, path);
	/* A pattern that covers a path also matches it and what lies below; one that matches below must lead there. */
	if ((covers && !(yes && oracle_match(text, below_path).matches)) ||
	    (oracle_match(text, below_path).matches && !cordon_pattern_leads(flat, path)))
		fail_msg("`%s` and `%s`: wrong about what lies below", text, path);
	tally->pairs++;
	tally->matched += yes;
	tally->braces += want.alternatives > 1;
	tally->covered += covers;
	compare_deep(text, path, flat, tally);
	compare_deep(text, path, graph, tally);
	/* A dot alone is no name. */
	if (!cordon_streq(below_path + strlen(path), "/.")) {
		compare_deep(text, below_path, flat, tally);
		compare_deep(text, below_path, graph, tally);
	}
	cordon_pattern_free(flat);
	cordon_pattern_free(graph);
}

static void both_matchers_agree_with_the_naive_one(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	print_message("# seed %u\n", SEED);
	while (tally.pairs < PAIRS) {
		autobuf struct cordon_buf path = CORDON_BUF(256), pattern = CORDON_BUF(1024);

		add_random_path(&path);
		add_random_pattern(&pattern, &path);
		compare(pattern.data, path.data, &tally);
		if (one_in(4)) {
			autobuf struct cordon_buf other = CORDON_BUF(256);

			add_random_path(&other);
			compare(pattern.data, other.data, &tally);
		}
	}
	print_message("# %u pairs, %u match, %u cover, %u with braces, %u patterns refused\n", tally.pairs,
		      tally.matched, tally.covered, tally.braces, tally.refused);
	assert_true(tally.matched > PAIRS / 4);
	assert_true(tally.pairs - tally.matched > PAIRS / 4);
	assert_true(tally.braces > PAIRS / 10);
	assert_true(tally.covered > PAIRS / 20);
	assert_true(tally.deep > PAIRS);
	assert_true(tally.refused < PAIRS / 2);
}

static void a_quoted_path_matches_itself_and_what_lies_below(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		autobuf struct cordon_buf path = CORDON_BUF(256), other = CORDON_BUF(256);
		autofree char *quoted = NULL;
		struct cordon_pattern *pattern = NULL;

		add_random_path(&path);
		add_random_path(&other);
		quoted = cordon_pattern_quote(path.data);
		assert_non_null(quoted);
		assert_int_equal(cordon_pattern_compile(quoted, &pattern, NULL), 0);
		assert_true(cordon_pattern_match(pattern, path.data, NULL));
		assert_string_equal(cordon_pattern_literal(pattern, 0), path.data);
		assert_int_equal(cordon_pattern_match(pattern, other.data, NULL),
				 strncmp(other.data, path.data, path.len) == 0 &&
					 (other.len == path.len || other.data[path.len] == '/'));
		add(&path, "/below");
		assert_true(cordon_pattern_match(pattern, path.data, NULL));
		cordon_pattern_free(pattern);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_matchers_agree_with_the_naive_one),
		cmocka_unit_test(a_quoted_path_matches_itself_and_what_lies_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
