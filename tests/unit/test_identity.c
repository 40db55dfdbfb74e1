/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of files and directories, and the records of paths that settings name. */
#include "unit.h"

#include "base/confirmed.h"
#include "base/identity.h"
#include "base/resolve.h"

static struct cordon_identity identity_of(const char *path)
{
	struct cordon_identity identity;
	autofd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(cordon_identity_of(fd, &identity), 0);
	return identity;
}

static void the_text_of_an_identity_is_read_as_it_was_written(void **state)
{
	static const char *const rubbish[] = {
		"",
		"x",
		"0 1 2 3 4",
		"0000000000000001 1 1 1 1 ",
		"0000000000000001 1 1 1 1 a",
		"0000000000000001 1 1 1 1 AB",
		"0000000000000001 01 1 1 1 ab",
		"1 1 1 1 1 ab",
		"0000000000000001 1 1 1 1 ab ",
		" 0000000000000001 1 1 1 1 ab",
	};
	struct cordon_identity identity, parsed;
	char text[CORDON_IDENTITY_SIZE];

	(void)state;
	unit_mkdir("a");
	identity = identity_of("a");
	cordon_identity_text(&identity, text);
	assert_int_equal(cordon_identity_parse(text, &parsed), 0);
	assert_true(cordon_identity_same(&identity, &parsed));
	identity = (struct cordon_identity){ .fsid = UINT64_MAX,
					     .handle_type = INT32_MIN,
					     .handle_len = CORDON_HANDLE_MAX,
					     .ino = UINT64_MAX,
					     .born_s = INT64_MIN,
					     .born_ns = UINT32_MAX };
	cordon_identity_text(&identity, text);
	assert_int_equal(cordon_identity_parse(text, &parsed), 0);
	assert_true(cordon_identity_same(&identity, &parsed));
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rubbish); i++)
		assert_int_equal(cordon_identity_parse(rubbish[i], &parsed), -EINVAL);
}

static void a_directory_stays_itself_and_one_made_again_does_not(void **state)
{
	struct cordon_identity before, after;

	(void)state;
	unit_mkdir("a");
	before = identity_of("a");
	assert_int_equal(rename("a", "b"), 0);
	assert_int_equal(chmod("b", 0700), 0);
	after = identity_of("b");
	assert_true(cordon_identity_same(&before, &after));
	for (int i = 0; i < 20; i++) {
		assert_int_equal(rmdir("b"), 0);
		unit_mkdir("b");
		after = identity_of("b");
		assert_false(cordon_identity_same(&before, &after));
	}
}

/* INVARIANT of the comparison: where one side has no handle, number and birth decide; the file system always does. */
static void without_handles_number_and_birth_decide(void **state)
{
	struct cordon_identity a = { .fsid = 1, .handle_len = 1, .handle = { 7 }, .ino = 5, .born_s = 9, .born_ns = 3 },
			       b = a;

	(void)state;
	b.handle_len = 0;
	assert_true(cordon_identity_same(&a, &b));
	b.born_ns = 4;
	assert_false(cordon_identity_same(&a, &b));
	b = a;
	b.ino = 6; /* of two handles only these count */
	assert_true(cordon_identity_same(&a, &b));
	b.handle[0] = 8;
	assert_false(cordon_identity_same(&a, &b));
	b = a;
	b.fsid = 2;
	assert_false(cordon_identity_same(&a, &b));
}

struct path {
	struct cordon_named named;
	char given[2 * UNIT_PATH], path[CORDON_PATH_MAX];
};

static struct path *open_named(struct path *path, const char *below)
{
	snprintf(path->given, sizeof(path->given), "%s/%s", unit_dir, below);
	path->named = (struct cordon_named){ .given = path->given, .path = path->path };
	path->named.fd = cordon_resolve_open(path->given, path->path);
	assert_true(path->named.fd >= 0);
	return path;
}

static int checked(const struct cordon_home *home, const char *below, bool *ret_known)
{
	struct path path;
	int r = cordon_confirmed_check(home, &open_named(&path, below)->named, ret_known, NULL);

	close(path.named.fd);
	return r;
}

static int taken(const struct cordon_home *home, const char *below, bool anew)
{
	struct path path;
	int r = cordon_confirmed_take(home, &open_named(&path, below)->named, anew, NULL, NULL);

	close(path.named.fd);
	return r;
}

static int used(const struct cordon_home *home, const char *below)
{
	struct path path;
	int r = cordon_confirmed_use(home, &open_named(&path, below)->named, NULL);

	close(path.named.fd);
	return r;
}

static void open_home(struct cordon_home *home)
{
	char path[2 * UNIT_PATH];

	snprintf(path, sizeof(path), "%s/home", unit_dir);
	assert_int_equal(setenv("CORDON_HOME", path, 1), 0);
	assert_int_equal(cordon_home_open(home, NULL), 0);
}

static void write_in(const struct cordon_home *home, const char *below)
{
	char path[2 * UNIT_PATH];

	snprintf(path, sizeof(path), "%s/%s", unit_dir, below);
	assert_int_equal(cordon_written_add(home, path, NULL), 0);
}

static void what_was_confirmed_counts_until_it_is_replaced(void **state)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	bool known = true;

	(void)state;
	open_home(&home);
	unit_mkdir("a");
	assert_int_equal(checked(&home, "a", &known), 0);
	assert_false(known);
	assert_int_equal(used(&home, "a"), 0);
	assert_int_equal(checked(&home, ".//a/", &known), 0); /* the same path in another spelling */
	assert_true(known);
	assert_int_equal(rename("a", "old"), 0);
	unit_mkdir("a");
	assert_int_equal(checked(&home, "a", NULL), -ESTALE);
	assert_int_equal(used(&home, "a"), -ESTALE);
	assert_int_equal(taken(&home, "a", false), -ESTALE);
	assert_int_equal(taken(&home, "a", true), 0);
	assert_int_equal(checked(&home, "a", NULL), 0);
	assert_int_equal(rmdir("a"), 0);
	unit_link("old", "a");
	assert_int_equal(checked(&home, "a", NULL), -ESTALE);
	/* A link back to the same object leads elsewhere all the same. */
	assert_int_equal(taken(&home, "a", true), 0);
	assert_int_equal(checked(&home, "a", NULL), 0);
	assert_int_equal(unlink("a"), 0);
	assert_int_equal(rename("old", "a"), 0);
	assert_int_equal(checked(&home, "a", NULL), -ESTALE);
}

static void nobody_takes_what_an_agent_could_have_chosen(void **state)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;

	(void)state;
	open_home(&home);
	unit_mkdir("root");
	unit_mkdir("root/in");
	unit_mkdir("rooted");
	unit_mkdir("out");
	unit_link("../out", "root/link");
	unit_link("root/in", "way");
	assert_int_equal(checked(&home, "root/in", NULL), 0);
	write_in(&home, "root");
	assert_int_equal(checked(&home, "root/in", NULL), -EPERM);
	assert_int_equal(checked(&home, "way", NULL), -EPERM);
	assert_int_equal(checked(&home, "root/link", NULL), -EPERM);
	assert_int_equal(checked(&home, "root/link/../rooted", NULL), -EPERM);
	assert_int_equal(used(&home, "root/in"), -EPERM);
	assert_int_equal(checked(&home, "root", NULL), 0); /* nobody inside can replace the root itself */
	assert_int_equal(checked(&home, "rooted", NULL), 0);
	/* A person may say yes to a directory there, and to a link only by name. */
	assert_int_equal(taken(&home, "root/in", false), 0);
	assert_int_equal(checked(&home, "root/in", NULL), 0);
	assert_int_equal(taken(&home, "root/link", false), -EPERM);
	assert_int_equal(taken(&home, "root/link", true), 0);
	assert_int_equal(checked(&home, "root/link", NULL), 0);
	assert_int_equal(unlink("root/link"), 0);
	unit_link("in", "root/link");
	assert_int_equal(checked(&home, "root/link", NULL), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(the_text_of_an_identity_is_read_as_it_was_written),
		unit_test_in_dir(a_directory_stays_itself_and_one_made_again_does_not),
		cmocka_unit_test(without_handles_number_and_birth_decide),
		unit_test_in_dir(what_was_confirmed_counts_until_it_is_replaced),
		unit_test_in_dir(nobody_takes_what_an_agent_could_have_chosen),
	};

	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
