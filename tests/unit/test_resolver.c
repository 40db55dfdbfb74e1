/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver for many paths gives the same answers as cordon_resolve(), however much it remembers. */
#include "unit.h"

#include "base/resolve.h"

#define QUESTIONS 60000

static struct cordon_root root;

/* Three levels of directories with files, links of all kinds between them, and one large directory. */
static int setup(void **state)
{
	static const char *const dirs[] = { "repo",	"repo/a",   "repo/a/b", "repo/a/b/c", "repo/d",
					    "repo/d/e", "repo/big", "outside",	"repo/empty" };
	static const char *const files[] = { "repo/f", "repo/a/f", "repo/a/b/f", "repo/a/b/c/f", "repo/d/f", "outside/f" };
	static const char *const links[][2] = {
		{ "a", "repo/to-a" },
		{ "../outside", "repo/d/out" },
		{ "nowhere/x", "repo/a/dangling" },
		{ "loop", "repo/loop" },
		{ "../a/b", "repo/d/e/to-b" },
		{ "f", "repo/a/b/to-f" },
		{ "../../repo/d", "repo/a/round" },
		{ "/etc", "repo/a/b/c/etc" },
		{ ".", "repo/big/self" },
	};

	if (unit_setup(state) < 0)
		return -1;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], 0755) < 0)
			return -1;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(files); i++)
		unit_write(files[i], "x");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(links); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			return -1;
	for (int i = 0; i < 700; i++) {
		char name[64];

		snprintf(name, sizeof(name), "repo/big/n%d", i);
		unit_write(name, "");
	}
	return cordon_root_open("repo", &root, NULL);
}

static int teardown(void **state)
{
	cordon_root_done(&root);
	return unit_teardown(state);
}

/* A small random generator of our own, so that a failure can be repeated. */
static unsigned int draw(uint64_t *seed, unsigned int n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(*seed >> 33) % n;
}

static void draw_path(uint64_t *seed, char *path, size_t size)
{
	static const char *const names[] = { "a",    "b",	"c",   "d",	"e",	"f",	    "to-a", "to-b",
					     "to-f", "out",	"etc", "round", "loop", "dangling", "big",  "self",
					     "new",  "missing", "n17", "empty", "..",	".",	    "A",    "passwd" };
	unsigned int components = 1 + draw(seed, 5);
	size_t at = 0;

	if (draw(seed, 40) == 0)
		path[at++] = '/';
	for (unsigned int i = 0; i < components; i++)
		at += (size_t)snprintf(path + at, size - at, "%s%s", i ? (draw(seed, 50) ? "/" : "//") : "",
				       names[draw(seed, CORDON_ARRAY_SIZE(names))]);
}

static void assert_same(struct cordon_resolver *resolver, const char *path)
{
	static struct cordon_resolved full, quick;

	cordon_resolve(&root, path, &full);
	cordon_resolver_ask(resolver, path, &quick);
	if (quick.place != full.place || strcmp(quick.path, full.path) != 0 ||
	    (full.place != CORDON_PLACE_UNRESOLVABLE && quick.exists != full.exists))
		fail_msg("%s: place %d %s exists %d, not %d %s exists %d", path, quick.place, quick.path, quick.exists,
			 full.place, full.path, full.exists);
}

static void random_paths_have_the_answers_of_the_long_way(void **state)
{
	struct cordon_resolver resolver;
	uint64_t seed = 20240611;
	char path[256], absolute[CORDON_PATH_MAX + 256];

	(void)state;
	cordon_resolver_init(&resolver, &root);
	for (int i = 0; i < QUESTIONS; i++) {
		draw_path(&seed, path, sizeof(path));
		assert_same(&resolver, path);
		/* The same below the root's own path. */
		snprintf(absolute, sizeof(absolute), "%s/%s", root.path, path);
		assert_same(&resolver, absolute);
		if (draw(&seed, 20000) == 0)
			cordon_resolver_refresh(&resolver);
	}
	cordon_resolver_done(&resolver);
}

static void a_directory_that_is_asked_often_is_listed_and_still_right(void **state)
{
	struct cordon_resolver resolver;
	char path[64];

	(void)state;
	cordon_resolver_init(&resolver, &root);
	for (int i = 0; i < 2000; i++) {
		snprintf(path, sizeof(path), "big/n%d", i % 900);
		assert_same(&resolver, path);
		snprintf(path, sizeof(path), "empty/n%d", i);
		assert_same(&resolver, path);
		assert_same(&resolver, "big/self");
	}
	cordon_resolver_done(&resolver);
}

static void more_directories_than_are_held_open_are_remembered(void **state)
{
	struct cordon_resolver resolver;
	char path[64];

	(void)state;
	mkdir("repo/many", 0755);
	for (int i = 0; i < 600; i++) {
		snprintf(path, sizeof(path), "repo/many/%d", i);
		assert_int_equal(mkdir(path, 0755), 0);
		snprintf(path, sizeof(path), "repo/many/%d/link", i);
		assert_int_equal(symlink("/etc/passwd", path), 0);
	}
	cordon_resolver_init(&resolver, &root);
	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "many/%d/%s", i % 600, i % 3 ? "new" : "link");
		assert_same(&resolver, path);
	}
	cordon_resolver_done(&resolver);
}

static void an_absolute_path_does_not_believe_that_the_root_is_still_there(void **state)
{
	struct cordon_resolver resolver;
	char path[CORDON_PATH_MAX + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/a/f", root.path);
	cordon_resolver_init(&resolver, &root);
	assert_same(&resolver, path);
	assert_int_equal(rename("repo", "moved"), 0);
	assert_int_equal(symlink("outside", "repo"), 0);
	cordon_resolver_refresh(&resolver);
	assert_same(&resolver, path);
	assert_same(&resolver, "a/f");
	cordon_resolver_done(&resolver);
}

static void what_changed_is_seen_after_a_refresh(void **state)
{
	struct cordon_resolver resolver;
	struct cordon_resolved resolved;

	(void)state;
	mkdir("repo/swap", 0755);
	cordon_resolver_init(&resolver, &root);
	for (int i = 0; i < 50; i++)
		assert_same(&resolver, "swap/x");
	assert_int_equal(symlink("/etc/passwd", "repo/swap/x"), 0);
	cordon_resolver_refresh(&resolver);
	cordon_resolver_ask(&resolver, "swap/x", &resolved);
	assert_int_equal(resolved.place, CORDON_PLACE_OUTSIDE);
	assert_int_equal(rename("repo/swap", "repo/swapped"), 0);
	assert_int_equal(symlink("/etc", "repo/swap"), 0);
	cordon_resolver_refresh(&resolver);
	cordon_resolver_ask(&resolver, "swap/new", &resolved);
	assert_int_equal(resolved.place, CORDON_PLACE_OUTSIDE);
	cordon_resolver_done(&resolver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_paths_have_the_answers_of_the_long_way, setup, teardown),
		cmocka_unit_test_setup_teardown(a_directory_that_is_asked_often_is_listed_and_still_right, setup,
						teardown),
		cmocka_unit_test_setup_teardown(more_directories_than_are_held_open_are_remembered, setup, teardown),
		cmocka_unit_test_setup_teardown(an_absolute_path_does_not_believe_that_the_root_is_still_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_changed_is_seen_after_a_refresh, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
