/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing and merging texts by line, judged by a slow algorithm that is easy to read; and the names of blobs. */
#include "git/twin.h"
#include "unit.h"
#include "view/lines.h"
#include "view/patch.h"
#include "view/sha1.h"

#define LINES_MAX 24

static uint32_t seed = 13;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* A text of short lines, of which many are equal; sometimes without a newline at its end. */
static void make_text(struct cordon_buf *buf)
{
	uint32_t n = random_below(LINES_MAX);

	cordon_buf_reset(buf);
	for (uint32_t i = 0; i < n; i++)
		cordon_buf_addf(buf, "%c\n", 'a' + (char)random_below(4));
	if (buf->len && random_below(4) == 0)
		buf->data[--buf->len] = '\0';
}

/* Changes, adds and removes a few lines. */
static void edit_text(const struct cordon_buf *from, struct cordon_buf *ret)
{
	cordon_buf_reset(ret);
	for (size_t i = 0; i < from->len; i++) {
		if (random_below(12) == 0)
			cordon_buf_addf(ret, "%c\n", 'e' + (char)random_below(3));
		if (random_below(12) != 0)
			cordon_buf_addc(ret, from->data[i]);
	}
}

static void init(struct cordon_text *text, const struct cordon_buf *buf)
{
	assert_int_equal(cordon_text_init(text, buf->data, buf->len), 0);
}

static bool same(const struct cordon_text *a, size_t i, const struct cordon_text *b, size_t j)
{
	size_t n = a->at[i + 1] - a->at[i];

	return n == b->at[j + 1] - b->at[j] && memcmp(a->bytes + a->at[i], b->bytes + b->at[j], n) == 0;
}

/* The length of the longest common subsequence, by the table that every book has. */
static size_t longest_common(const struct cordon_text *a, const struct cordon_text *b)
{
	size_t table[8 * LINES_MAX + 1][8 * LINES_MAX + 1] = { 0 };

	assert_true(a->n <= 8 * LINES_MAX && b->n <= 8 * LINES_MAX);
	for (size_t i = 1; i <= a->n; i++)
		for (size_t j = 1; j <= b->n; j++)
			table[i][j] = same(a, i - 1, b, j - 1)		  ? table[i - 1][j - 1] + 1
				      : table[i - 1][j] > table[i][j - 1] ? table[i - 1][j]
									  : table[i][j - 1];
	return table[a->n][b->n];
}

static void edits_are_right_and_shortest(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 3000; round++) {
		autobuf struct cordon_buf one = CORDON_BUF(4096), two = CORDON_BUF(4096), got = CORDON_BUF(8192);
		autotext struct cordon_text a = { 0 }, b = { 0 };
		autoedits struct cordon_edits edits = { 0 };
		autofree bool *all = NULL;
		size_t kept, gone = 0, came = 0;

		make_text(&one);
		if (round % 2)
			make_text(&two);
		else
			edit_text(&one, &two);
		init(&a, &one);
		init(&b, &two);
		assert_int_equal(cordon_lines_diff(&a, &b, &edits), 0);
		all = calloc(edits.n + 1, sizeof(*all));
		for (size_t i = 0; i < edits.n; i++) {
			all[i] = true;
			gone += edits.edit[i].n_a;
			came += edits.edit[i].n_b;
		}
		assert_int_equal(cordon_lines_apply(&a, &b, &edits, all, &got), 0);
		assert_int_equal(got.len, two.len);
		assert_true(two.len == 0 || memcmp(got.data, two.data, two.len) == 0);
		kept = longest_common(&a, &b);
		assert_int_equal(a.n - gone, kept);
		assert_int_equal(b.n - came, kept);
	}
}

static int merge(const char *base, const char *ours, const char *theirs, struct cordon_buf *ret, bool *common)
{
	autotext struct cordon_text b = { 0 }, o = { 0 }, t = { 0 };

	cordon_text_init(&b, base, strlen(base));
	cordon_text_init(&o, ours, strlen(ours));
	cordon_text_init(&t, theirs, strlen(theirs));
	return cordon_lines_merge(&b, &o, &t, ret, common);
}

static void merges_are_what_people_expect(void **state)
{
	static const struct {
		const char *base, *ours, *theirs, *merged; /* NULL: a conflict */
		bool common;
	} rows[] = {
		{ "1\n2\n3\n4\n", "x\n2\n3\n4\n", "1\n2\n3\ny\n", "x\n2\n3\ny\n", false },
		{ "1\n2\n3\n4\n", "1\n2\n3\n4\n", "1\n2\n3\ny\n", "1\n2\n3\ny\n", false },
		{ "1\n2\n3\n", "1\nx\n3\n", "1\ny\n3\n", NULL, false },
		{ "1\n2\n3\n", "1\nx\n3\n", "1\nx\n3\n", "1\nx\n3\n", true },
		{ "1\n2\n3\n", "1\nx\n3\n", "1\n2\ny\n", NULL, false }, /* they touch */
		{ "1\n2\n3\n4\n", "2\n3\n4\n", "1\n2\n3\n", "2\n3\n", false },
		{ "", "a\n", "b\n", NULL, false },
		{ "", "a\n", "a\n", "a\n", true },
		{ "", "", "b\n", "b\n", false },
		{ "1\n2\n3", "0\n1\n2\n3", "1\n2\n3\n", "0\n1\n2\n3\n", false },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autobuf struct cordon_buf merged = CORDON_BUF(4096);
		bool common = false;
		int r = merge(rows[i].base, rows[i].ours, rows[i].theirs, &merged, &common);

		if (!rows[i].merged) {
			assert_int_equal(r, -EEXIST);
			continue;
		}
		assert_int_equal(r, 0);
		assert_string_equal(merged.data ? merged.data : "", rows[i].merged);
		assert_int_equal(common, rows[i].common);
	}
}

static void a_merge_loses_nothing(void **state)
{
	unsigned int merged = 0, conflicts = 0;

	(void)state;
	for (unsigned int round = 0; round < 3000; round++) {
		autobuf struct cordon_buf base = CORDON_BUF(4096), ours = CORDON_BUF(8192), theirs = CORDON_BUF(8192);
		autobuf struct cordon_buf one = CORDON_BUF(16384), two = CORDON_BUF(16384),
					  same_side = CORDON_BUF(16384);
		autotext struct cordon_text b = { 0 }, o = { 0 }, t = { 0 };
		bool common;
		int r;

		make_text(&base);
		edit_text(&base, &ours);
		edit_text(&base, &theirs);
		init(&b, &base);
		init(&o, &ours);
		init(&t, &theirs);
		r = cordon_lines_merge(&b, &o, &t, &one, &common);
		assert_true(r == 0 || r == -EEXIST);
		/* The other way round it is the same. */
		assert_int_equal(cordon_lines_merge(&b, &t, &o, &two, &common), r);
		if (r == 0) {
			assert_int_equal(one.len, two.len);
			assert_true(one.len == 0 || memcmp(one.data, two.data, one.len) == 0);
			merged++;
		} else {
			conflicts++;
		}
		/* A side that changed nothing takes all of the other. */
		assert_int_equal(cordon_lines_merge(&b, &b, &t, &same_side, &common), 0);
		assert_int_equal(same_side.len, theirs.len);
		assert_true(theirs.len == 0 || memcmp(same_side.data, theirs.data, theirs.len) == 0);
	}
	assert_true(merged > 300 && conflicts > 300);
}

static void texts_that_differ_very_much_end_in_time(void **state)
{
	autobuf struct cordon_buf one = CORDON_BUF(8 << 20), two = CORDON_BUF(8 << 20);
	autotext struct cordon_text a = { 0 }, b = { 0 };
	autoedits struct cordon_edits edits = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 200000; i++) {
		cordon_buf_addf(&one, "a%u\n", i);
		cordon_buf_addf(&two, "b%u\n", i);
	}
	init(&a, &one);
	init(&b, &two);
	assert_int_equal(cordon_lines_diff(&a, &b, &edits), 0);
	assert_int_equal(edits.n, 1);
}

/* The hash of a line that whoever writes one knows, if it has no key (FNV-1a). */
static uint64_t known_hash(const char *line)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *line; line++)
		hash = (hash ^ (unsigned char)*line) * 0x100000001b3u;
	return hash ^ hash >> 29;
}

static void lines_that_were_made_to_collide_end_in_time(void **state)
{
	autobuf struct cordon_buf one = CORDON_BUF(8 << 20);
	autotext struct cordon_text a = { 0 }, b = { 0 };
	autoedits struct cordon_edits edits = { 0 };
	clock_t before;

	(void)state;
	/* All fall into the first 32nd of a table that has room for twice as many. */
	for (unsigned int i = 0, n = 0; n < 130000; i++) {
		char line[16];

		snprintf(line, sizeof(line), "%u\n", i);
		if ((known_hash(line) & 0x7ffff) < 0x4000) {
			cordon_buf_adds(&one, line);
			n++;
		}
	}
	init(&a, &one);
	b.at = calloc(1, sizeof(*b.at));
	before = clock();
	assert_int_equal(cordon_lines_diff(&a, &b, &edits), 0);
	assert_true(clock() - before < CLOCKS_PER_SEC);
	assert_int_equal(edits.n, 1);
}

static void blobs_have_the_names_that_git_gives_them(void **state)
{
	char name[CORDON_BLOB_NAME_SIZE];

	(void)state;
	cordon_blob_name("", 0, name);
	assert_string_equal(name, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
	cordon_blob_name("hello\n", 6, name);
	assert_string_equal(name, "ce013625030ba8dba906f756967f9e9ca394464a");
}

static void twins_of_the_git_directory_are_known(void **state)
{
	static const char *const twins[] = { ".GIT",   ".gIt",	 "git~1",      "GIT~1",	    ".git.",
					     ".git .", ".git:x", ".g\u200cit", "\ufeff.git" };
	static const char *const others[] = { ".git", "git", ".gitx", ".github", "git~2", "g.it",
					      "",     ".",   ".gi",   ".git-x",	 "x.git" };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(twins); i++)
		assert_true(cordon_git_is_twin(twins[i], strlen(twins[i])));
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(others); i++)
		assert_false(cordon_git_is_twin(others[i], strlen(others[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edits_are_right_and_shortest),
		cmocka_unit_test(merges_are_what_people_expect),
		cmocka_unit_test(a_merge_loses_nothing),
		cmocka_unit_test(texts_that_differ_very_much_end_in_time),
		cmocka_unit_test(lines_that_were_made_to_collide_end_in_time),
		cmocka_unit_test(blobs_have_the_names_that_git_gives_them),
		cmocka_unit_test(twins_of_the_git_directory_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
