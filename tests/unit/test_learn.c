/* SPDX-License-Identifier: Apache-2.0 */
/* Learning: tables of accesses and the grants they become, and a check that those grants cover the accesses. */
#include "unit.h"

#include "base/buf.h"
#include "learn/learn.h"

/* One access per entry, separated by commas and blanks: "r path" (read), "w path" (written), "c path" (made), "l
 * dir/" (listed), "d dir/" (looked at), "m dir/" (made), "a path" (absent), "t path" (made, then renamed), "g path"
 * (made, then removed), "k dir" (the same for a directory). */
static unsigned int uses_of(char c)
{
	switch (c) {
	case 'r':
		return CORDON_LEARN_READ | CORDON_LEARN_EXISTED;
	case 'w':
		return CORDON_LEARN_WRITTEN | CORDON_LEARN_EXISTED;
	case 'c':
		return CORDON_LEARN_WRITTEN | CORDON_LEARN_MADE;
	case 'l':
		return CORDON_LEARN_LISTED | CORDON_LEARN_DIRECTORY;
	case 'd':
		return CORDON_LEARN_LOOKED | CORDON_LEARN_DIRECTORY;
	case 'm':
		return CORDON_LEARN_MADE | CORDON_LEARN_DIRECTORY;
	case 'a':
		return CORDON_LEARN_ABSENT;
	case 't':
		return CORDON_LEARN_MADE | CORDON_LEARN_WRITTEN | CORDON_LEARN_MOVED | CORDON_LEARN_GONE;
	case 'k':
		return CORDON_LEARN_MADE | CORDON_LEARN_WRITTEN | CORDON_LEARN_GONE | CORDON_LEARN_DIRECTORY;
	case 'g':
		return CORDON_LEARN_MADE | CORDON_LEARN_WRITTEN | CORDON_LEARN_GONE;
	default:
		fail_msg("no use %c", c);
		return 0;
	}
}

static struct cordon_learn *learn_of(const char *text)
{
	struct cordon_learn *learn = cordon_learn_new();

	assert_non_null(learn);
	while (*text) {
		size_t n = strcspn(text, ",");
		char path[256];

		assert_int_equal(cordon_copy(path, sizeof(path), text + 2, n - 2), 0);
		assert_int_equal(cordon_learn_add(learn, path, uses_of(text[0])), 0);
		text += n;
		while (*text == ',' || *text == ' ')
			text++;
	}
	return learn;
}

static void print_grants(const struct cordon_learn_grants *grants, struct cordon_buf *text)
{
	for (size_t i = 0; i < grants->n; i++)
		assert_int_equal(cordon_buf_addf(text, "%s%s %s", i ? ", " : "",
						 grants->items[i].access == CORDON_ACCESS_WRITE ? "rw" : "ro",
						 grants->items[i].pattern),
				 0);
	assert_non_null(cordon_buf_room(text, 1));
	text->data[text->len] = '\0';
}

static void complain(void *data, const char *path, cordon_access access)
{
	fail_msg("%s: %s of %s is refused by the grants", (const char *)data,
		 access == CORDON_ACCESS_WRITE ? "write" : "read", path);
}

static const struct row {
	const char *uses;
	const char *grants;
	bool literal;
} rows[] = {
	/* Single files stay single. */
	{ "r src/a.ts", "ro src/a.ts", false },
	{ "r src/a.ts, r src/b.css", "ro src/a.ts, ro src/b.css", false },
	{ "r src/a.ts, w src/b.ts", "rw src/b.ts, ro src/a.ts", false },
	/* Many files of one type become a pattern of that type, in one folder or in all below it. */
	{ "r src/a.ts, r src/b.ts, r src/c.ts", "ro src/*.ts", false },
	{ "r src/a.ts, r src/b.ts, r src/c.ts, r src/x/d.ts", "ro src/**/*.ts", false },
	{ "r src/p/a.ts, r src/p/b.ts, r src/p/c.ts, r src/q/a.ts, r src/q/b.ts, r src/q/c.ts", "ro src/**/*.ts", false },
	{ "r src/a/1.ts, r src/b/2.ts, r src/c/3.ts, r src/d/4.ts", "ro src/**/*.ts", false },
	{ "w a/b/c/1.o, w a/b/c/2.o, w a/b/c/3.o", "rw a/b/c/*.o", false },
	{ "r lib/a.py, r lib/b.py, r lib/c.py, w out/log", "rw out/log, ro lib/*.py", false },
	/* Many types become the folder. */
	{ "r src/a.ts, r src/b.css, r src/c.json, r src/d.md, r src/e.svg", "ro src", false },
	{ "r s/1.a, r s/2.a, r s/3.a, r s/1.b, r s/2.b, r s/3.b, r s/1.c, r s/2.c, r s/3.c", "ro s", false },
	{ "r s/1.a, r s/2.a, r s/3.a, r s/1.b, r s/2.b, r s/3.b", "ro s/*.a, ro s/*.b", false },
	/* The root is not granted because it has several files. */
	{ "r a.md, r b.json, r c.toml, r Makefile, r d.txt, r e.cfg",
	  "ro Makefile, ro a.md, ro b.json, ro c.toml, ro d.txt, ro e.cfg", false },
	{ "r a.md, r b.md, r c.md", "ro *.md", false },
	/* Reading what may be written needs no second grant; writing wins. */
	{ "r out/a.o, w out/a.o", "rw out/a.o", false },
	{ "m dist, c dist/a.js, r dist/b.css, c dist/x/y/z", "rw dist", false },
	/* The repository's own data becomes one grant. */
	{ "r .git/HEAD, r .git/refs/heads/main, l .git", "ro .git", false },
	{ "r .git/HEAD, c .git/index.lock, c .git/objects/aa/bb, r x.c", "rw .git, ro x.c", false },
	/* Directories above a granted path need no grant. */
	{ "l src, d src/deep, r src/deep/a.c", "ro src/deep/a.c", false },
	{ "l docs", "ro docs/*", false },
	{ "d docs", "ro doc[s]", false },
	{ "l docs, l docs/old, l docs/new", "ro docs/*, ro docs/new/*, ro docs/old/*", false },
	{ "l p, l p/a, l p/b, l p/c, l p/d, l q/a", "ro p, ro q/a/*", false },
	{ "l p/a/1, l p/b/1, l p/c/1, l p/d/1, l p/e/1", "ro p", false },
	{ "d p/a, d p/b, d p/c, d p/d, d p/e", "ro p", false },
	{ "l .git, l .git/a, l .git/b, l .git/c, l .git/d, l .git/e/f", "ro .git", false },
	{ "d docs, d docs/old", "ro docs/ol[d]", false },
	{ "l , d , r a.c", "ro a.c", false },
	/* Names that were looked for and missing. */
	{ "r src/a.py, r src/b.py, r src/c.py, a src/d.py, a conf.ini", "ro conf.ini, ro src/*.py", false },
	/* The lens handles temporary names of atomic saves; other random names become a pattern. */
	{ "w src/a.ts, t src/sedXy12Ab", "rw src/a.ts", false },
	/* The lens allows such a name only beside a file that exists, or that the name contains. */
	{ "c src/a.ts, t src/sedXy12Ab", "rw src/a.ts, rw src/sed*", false },
	{ "c src/a.ts, t src/a.ts.Xy12Ab", "rw src/a.ts", false },
	{ "w a.txt, t tmp.Xy12Ab", "rw a.txt, rw tmp.*", false },
	{ "w a.txt, g job-Xy12Ab[1]", "rw a.txt, rw job-*\\[1\\]", false },
	{ "w a.txt, g tmpabcdefgh", "rw a.txt, rw tmp*", false },
	{ "w a.txt, g work.ABCDEF", "rw a.txt, rw work.*", false },
	{ "w a.txt, g work.sorted", "rw a.txt, rw work.sorted", false },
	{ "k tmpXy12Ab, g tmpXy12Ab/x, g tmpXy12Ab/d/y", "rw tmp*/**", false },
	{ "c d/x, t d/tmpXy12Ab, m d/tmpXy12Ab", "rw d/tmp*/**, rw d/x", false },
	{ "g work/cc1Ab2Cd.o", "rw work/cc*.o", false },
	{ "g work/plain.o", "rw work/plain.o", false },
	/* Secrets are never granted. */
	{ "r .env, r a/.ssh/config, r k/server.pem, r a.c", "ro a.c", false },
	/* Special characters in a name are escaped. */
	{ "r app/[id]/p.tsx, r a{b}*.c", "ro a\\{b\\}\\*.c, ro app/\\[id\\]/p.tsx", false },
	{ "r a-b/c, r a/b", "ro a-b/c, ro a/b", false },
	/* Without the lens: only folders and files; a folder where names are made and removed is granted as a whole. */
	{ "r src/a.ts, r src/b.ts, r src/c.ts", "ro src/a.ts, ro src/b.ts, ro src/c.ts", true },
	{ "r src/a.ts, r src/b.ts, r src/c.ts, r src/d.ts, r src/e.ts", "ro src", true },
	{ "w out/a, r x", "rw out/a, ro x", true },
	{ "c out/a, r x", "rw out, ro x", true },
	{ "c made, r x", "rw **", true },
	{ "l docs", "ro docs", true },
	{ "a missing", "", true },
	/* Where mounts alone enforce the policy, the run learns of a missing name anyway. */
	{ "r src/a.c, a src/b.h", "ro src/a.c", false },
	{ "r src/a.c, a src/b.h, c out", "rw out, ro src/a.c, ro src/b.h", false },
};

static int add_grant(struct cordon_policy *policy, const struct cordon_learn_grant *grant)
{
	return cordon_policy_add_grant(policy, grant->pattern, grant->access, NULL, NULL);
}

static void grants_are_few_and_cover_what_was_used(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		struct cordon_learn *learn = learn_of(rows[i].uses);
		struct cordon_policy *policy = NULL;
		struct cordon_learn_grants grants = { 0 };
		struct cordon_error err = { 0 };
		autobuf struct cordon_buf text = CORDON_BUF(4096);

		if (cordon_learn_grants(learn, !rows[i].literal, &grants, &err) < 0)
			fail_msg("%s: %s", rows[i].uses, err.message);
		print_grants(&grants, &text);
		if (!cordon_streq(text.data, rows[i].grants))
			fail_msg("%s:\n  gave      %s\n  expected  %s", rows[i].uses, text.data, rows[i].grants);
		assert_int_equal(cordon_policy_new(unit_dir, &policy, NULL), 0);
		for (size_t k = 0; k < grants.n; k++)
			assert_int_equal(add_grant(policy, &grants.items[k]), 0);
		cordon_learn_check(learn, policy, grants.lens, complain, (void *)(uintptr_t)rows[i].uses);
		cordon_policy_free(policy);
		cordon_learn_grants_done(&grants);
		cordon_learn_free(learn);
	}
}

static void count_refused(void *data, const char *path, cordon_access access)
{
	(void)path, (void)access;
	++*(size_t *)data;
}

static void the_check_finds_what_a_policy_refuses(void **state)
{
	struct cordon_learn *learn = learn_of("r src/a.ts, w src/b.ts, r docs/x, l docs, r .env");
	struct cordon_policy *policy = NULL;
	size_t n = 0;

	(void)state;
	assert_int_equal(cordon_policy_new(unit_dir, &policy, NULL), 0);
	assert_int_equal(cordon_policy_grant(policy, "src", CORDON_ACCESS_READ, NULL), 0);
	assert_int_equal(cordon_learn_check(learn, policy, true, count_refused, &n), 3);
	assert_int_equal(n, 3);
	cordon_policy_free(policy);
	cordon_learn_free(learn);
}

static void many_paths_stay_bounded_and_become_few_grants(void **state)
{
	struct cordon_learn *learn = cordon_learn_new();
	struct cordon_learn_grants grants = { 0 };
	int r = 0;

	(void)state;
	for (unsigned int i = 0; r == 0; i++) {
		char path[64];

		snprintf(path, sizeof(path), "d%u/s%u/f%u.t%u", i % 1000, i % 7, i, i % 50000);
		r = cordon_learn_add(learn, path, CORDON_LEARN_READ);
		assert_true(i <= CORDON_LEARN_PATHS_MAX);
	}
	assert_int_equal(r, -E2BIG);
	assert_int_equal(cordon_learn_add(learn, "d1/s1/f1.t1", CORDON_LEARN_WRITTEN), 0);
	assert_int_equal(cordon_learn_grants(learn, true, &grants, NULL), 0);
	assert_in_range(grants.n, 1, CORDON_LEARN_GRANTS_MAX + 1);
	cordon_learn_grants_done(&grants);
	cordon_learn_free(learn);
}

static void bytes_that_are_no_text_become_any_character(void **state)
{
	struct cordon_learn *learn = learn_of("r a\xff"
					      "b.c");
	struct cordon_learn_grants grants = { 0 };

	(void)state;
	assert_int_equal(cordon_learn_grants(learn, true, &grants, NULL), 0);
	assert_int_equal(grants.n, 1);
	assert_string_equal(grants.items[0].pattern, "a?b.c");
	cordon_learn_grants_done(&grants);
	cordon_learn_free(learn);
}

static void secrets_are_known_by_name(void **state)
{
	static const char *const yes[] = {
		".env",	  "a/.env.local",      "prod.env", ".ssh",	  "x/.ssh/known_hosts",
		"id_rsa", "keys/server.pem",   "tls.KEY",  ".aws/config", ".git-credentials",
		".netrc", "config/secrets.yml"
	};
	static const char *const no[] = { "",	 "src/env.ts",	".env.example", "environment",	      "sshd",
					  "key", "keys/readme", "secrets.py",	"src/credentials.ts", "pem" };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(yes); i++)
		if (!cordon_secret(yes[i]))
			fail_msg("%s is no secret", yes[i]);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(no); i++)
		if (cordon_secret(no[i]))
			fail_msg("%s is a secret", no[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(grants_are_few_and_cover_what_was_used),
		unit_test_in_dir(the_check_finds_what_a_policy_refuses),
		cmocka_unit_test(many_paths_stay_bounded_and_become_few_grants),
		cmocka_unit_test(bytes_that_are_no_text_become_any_character),
		cmocka_unit_test(secrets_are_known_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
