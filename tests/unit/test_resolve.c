/* SPDX-License-Identifier: Apache-2.0 */
/* Resolution by component: what is inside the root, what only looks like it, and opening without links. */
#include "unit.h"

#include "base/names.h"
#include "base/resolve.h"

static struct cordon_root root;

static int setup(void **state)
{
	if (unit_setup(state) < 0 || mkdir("repo", 0755) < 0 || mkdir("repo/lib", 0755) < 0 ||
	    mkdir("repo-evil", 0755) < 0 || mkdir("repo/libsecret", 0755) < 0)
		return -1;
	return cordon_root_open("repo", &root, NULL);
}

static int teardown(void **state)
{
	cordon_root_done(&root);
	return unit_teardown(state);
}

/* Resolves in both ways, which must agree. */
static struct cordon_resolved ask(const char *path)
{
	struct cordon_resolver resolver;
	struct cordon_resolved full, quick;

	cordon_resolve(&root, path, &full);
	cordon_resolver_init(&resolver, &root);
	for (int i = 0; i < 2; i++) {
		cordon_resolver_ask(&resolver, path, &quick);
		assert_int_equal(quick.place, full.place);
		assert_string_equal(quick.path, full.path);
		if (full.place != CORDON_PLACE_UNRESOLVABLE)
			assert_int_equal(quick.exists, full.exists);
	}
	cordon_resolver_done(&resolver);
	return full;
}

static void assert_inside(const char *path, const char *resolved, bool exists)
{
	struct cordon_resolved r = ask(path);

	assert_int_equal(r.place, CORDON_PLACE_INSIDE);
	assert_string_equal(r.path, resolved);
	assert_int_equal(r.exists, exists);
}

static void assert_outside(const char *path)
{
	assert_int_equal(ask(path).place, CORDON_PLACE_OUTSIDE);
}

static void plain_names_resolve_to_themselves(void **state)
{
	(void)state;
	unit_write("repo/lib/a", "x");
	assert_inside("lib/a", "lib/a", true);
	assert_inside("lib//./a", "lib/a", true);
	assert_inside(".", "", true);
	assert_inside("lib/", "lib", true);
	assert_inside("lib/../libsecret", "libsecret", true);
	assert_inside(root.path, "", true);
}

static void what_does_not_exist_yet_is_judged_by_its_name(void **state)
{
	(void)state;
	assert_inside("lib/newdir/new.ts", "lib/newdir/new.ts", false);
	assert_inside("lib/new/../other", "lib/other", false);
	assert_outside("lib/new/../../../x");
}

static void dotdot_and_absolute_paths_leave_the_root(void **state)
{
	(void)state;
	assert_outside("..");
	assert_outside("../repo-evil");
	assert_outside("lib/../../repo-evil/x");
	assert_outside("/etc/passwd");
	assert_outside("/");
}

static void links_are_followed_to_where_they_lead(void **state)
{
	char absolute[sizeof(root.path) + 8];

	(void)state;
	unit_link("/etc/passwd", "repo/lib/pw");
	unit_link("../libsecret", "repo/lib/secret");
	unit_link("../../repo-evil", "repo/lib/evil");
	unit_link("missing", "repo/lib/dangling");
	snprintf(absolute, sizeof(absolute), "%s/lib", root.path);
	unit_link(absolute, "repo/absolute");
	assert_outside("lib/pw");
	assert_inside("lib/secret/key", "libsecret/key", false);
	assert_outside("lib/evil/new");
	assert_inside("lib/dangling", "lib/missing", false);
	assert_inside("absolute/x", "lib/x", false);
	assert_inside("lib/secret/../lib", "lib", true);
}

static void a_loop_of_links_has_no_answer(void **state)
{
	(void)state;
	unit_link("b", "repo/a");
	unit_link("a", "repo/b");
	assert_int_equal(ask("a").place, CORDON_PLACE_UNRESOLVABLE);
	assert_int_equal(ask("a/x").place, CORDON_PLACE_UNRESOLVABLE);
	assert_int_equal(ask("").place, CORDON_PLACE_UNRESOLVABLE);
}

static void names_that_cannot_be_have_no_answer(void **state)
{
	char name[400], path[2 * CORDON_PATH_MAX];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(ask(name).place, CORDON_PLACE_UNRESOLVABLE);
	for (size_t i = 0; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "d/", 3);
	assert_int_equal(ask(path).place, CORDON_PLACE_UNRESOLVABLE);
}

static void root_may_be_reached_through_a_link(void **state)
{
	struct cordon_root linked;
	struct cordon_resolved r;
	char absolute[UNIT_PATH * 2];

	(void)state;
	unit_link("repo", "way");
	assert_int_equal(cordon_root_open("way", &linked, NULL), 0);
	assert_string_equal(linked.path, root.path);
	snprintf(absolute, sizeof(absolute), "%s/way/lib/x", unit_dir);
	cordon_resolve(&linked, absolute, &r);
	assert_int_equal(r.place, CORDON_PLACE_INSIDE);
	assert_string_equal(r.path, "lib/x");
	cordon_root_done(&linked);
}

struct met {
	char text[512];
	int stop;
};

static int on_link(void *data, const char *link, const char *rest)
{
	struct met *met = data;

	snprintf(met->text + strlen(met->text), sizeof(met->text) - strlen(met->text), "%s+%s;", link, rest);
	return met->stop;
}

static void links_on_the_way_are_told_where_they_lie(void **state)
{
	struct met met = { 0 };
	struct cordon_resolved r;

	(void)state;
	unit_mkdir("repo/real");
	unit_mkdir("repo/real/deep");
	unit_link("../dir/one", "repo/real/first");
	unit_link("real", "repo/dir");
	unit_link("deep/gone", "repo/real/one");
	unit_link("/etc", "repo/real/out");
	assert_int_equal(cordon_resolve_links(&root, "real/first", on_link, &met, &r), 0);
	assert_string_equal(met.text, "real/first+;dir+one/;real/one+;");
	assert_int_equal(r.place, CORDON_PLACE_INSIDE);
	assert_string_equal(r.path, "real/deep/gone");
	met = (struct met){ 0 };
	assert_int_equal(cordon_resolve_links(&root, "dir/out/localtime", on_link, &met, &r), 0);
	/* Links outside the root are not reported. */
	assert_string_equal(met.text, "dir+out/localtime;real/out+localtime;");
	met = (struct met){ .stop = -7 };
	assert_int_equal(cordon_resolve_links(&root, "real/first", on_link, &met, &r), -7);
	assert_string_equal(met.text, "real/first+;");
}

static void root_must_be_a_directory(void **state)
{
	struct cordon_root none = { .fd = -7 };
	struct cordon_error err = { 0 };

	(void)state;
	unit_write("file", "x");
	assert_int_equal(cordon_root_open("file", &none, &err), -ENOTDIR);
	assert_int_equal(cordon_root_open("missing", &none, &err), -ENOENT);
	assert_int_equal(cordon_root_open("", &none, &err), -EINVAL);
	assert_int_equal(none.fd, -7);
}

static void open_beneath_meets_no_link(void **state)
{
	int fd;

	(void)state;
	unit_write("repo/lib/a", "x");
	unit_link("lib", "repo/way");
	unit_link("a", "repo/lib/leaf");
	fd = cordon_open_beneath(root.fd, "lib/a", O_RDONLY);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	fd = cordon_open_beneath(root.fd, "", O_PATH | O_DIRECTORY);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(cordon_open_beneath(root.fd, "way/a", O_RDONLY), -ELOOP);
	assert_int_equal(cordon_open_beneath(root.fd, "lib/leaf", O_RDONLY), -ELOOP);
	assert_int_equal(cordon_open_beneath(root.fd, "lib/leaf", O_PATH), -ELOOP);
	assert_int_equal(cordon_open_beneath(root.fd, "../repo-evil", O_PATH), -EXDEV);
	assert_int_equal(cordon_open_beneath(root.fd, "lib/none", O_RDONLY), -ENOENT);
}

static bool lack(const char *path)
{
	struct cordon_names names;

	cordon_names_init(&names, root.fd);
	return cordon_names_lack(&names, path);
}

static void names_are_missing_only_where_nothing_is_found(void **state)
{
	(void)state;
	unit_write("repo/Makefile", "x");
	unit_link("nowhere", "repo/dangling");
	unit_link("lib", "repo/way");
	assert_true(lack("none"));
	assert_true(lack("none/deeper/still"));
	assert_true(lack("lib/none"));
	assert_true(lack("libs"));
	assert_true(lack("li"));
	assert_false(lack("lib"));
	assert_false(lack("dangling"));
	/* For what lies behind a link or in a file, and for the root, the answer is "not known". */
	assert_false(lack("way/none"));
	assert_false(lack("Makefile/none"));
	assert_false(lack(""));
	assert_false(cordon_names_lack(NULL, "none"));
}

static void a_name_that_may_fold_to_another_is_not_called_missing(void **state)
{
	(void)state;
	unit_write("repo/MiXed", "x");
	assert_false(lack("mixed"));
	assert_false(lack("na\xc3\xafve"));
	assert_true(lack("kiro"));
	unit_write("repo/\xe2\x84\xaairo", "x"); /* begins with the Kelvin sign, whose lower case is k */
	assert_false(lack("kiro"));
}

static void a_large_directory_says_nothing_about_names(void **state)
{
	char name[64];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "repo/lib/a-name-that-takes-some-room-%d", i);
		unit_write(name, "");
	}
	assert_false(lack("lib/none"));
	assert_true(lack("none"));
}

static void the_start_of_names_is_asked_for(void **state)
{
	struct cordon_names names;

	(void)state;
	unit_write("repo/mise.test.toml", "x");
	cordon_names_init(&names, root.fd);
	assert_false(cordon_names_lack_start(&names, "mise."));
	assert_true(cordon_names_lack_start(&names, ".mise."));
}

#define in_repo(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_repo(plain_names_resolve_to_themselves),
		in_repo(what_does_not_exist_yet_is_judged_by_its_name),
		in_repo(dotdot_and_absolute_paths_leave_the_root),
		in_repo(links_are_followed_to_where_they_lead),
		in_repo(a_loop_of_links_has_no_answer),
		in_repo(names_that_cannot_be_have_no_answer),
		in_repo(root_may_be_reached_through_a_link),
		in_repo(links_on_the_way_are_told_where_they_lie),
		in_repo(root_must_be_a_directory),
		in_repo(open_beneath_meets_no_link),
		in_repo(names_are_missing_only_where_nothing_is_found),
		in_repo(a_name_that_may_fold_to_another_is_not_called_missing),
		in_repo(a_large_directory_says_nothing_about_names),
		in_repo(the_start_of_names_is_asked_for),
	};

	return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
