/* SPDX-License-Identifier: Apache-2.0 */
/* Folder lists, their resolution, and the top level of a repository. */
#include "unit.h"

#include "policy/folders.h"
#include "policy/policy.h"

static void assert_list(const char *list, size_t n, const char *const *items)
{
	struct cordon_folders folders = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_folders_parse(list, &folders, &err) < 0)
		fail_msg("%s: %s", list, err.message);
	assert_int_equal(folders.n, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(folders.items[i], items[i]);
	cordon_folders_done(&folders);
	assert_int_equal(folders.n, 0);
}

#define LIST(text, ...)                                                                                                \
	assert_list(text, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *),                               \
		    (const char *const[]){ __VA_ARGS__ })

static void lists_are_split_at_commas_and_blanks_dropped(void **state)
{
	(void)state;
	LIST("lib", "lib");
	LIST("lib,src", "lib", "src");
	LIST(" lib , src\t,tests\n", "lib", "src", "tests");
	LIST("my folder,b", "my folder", "b");
	LIST("a\\,b,c", "a,b", "c");
	LIST("a\\b", "a\\b");
	LIST("/abs/olute,./rel/", "/abs/olute", "./rel/");
	LIST("lib,lib/utils", "lib", "lib/utils");
}

static void empty_lists_and_entries_are_errors(void **state)
{
	static const char *const lists[] = { "", "  ", ",", "lib,", ",lib", "lib,,src", "lib, ,src" };
	struct cordon_folders folders = { .n = 77 };
	struct cordon_error err;
	autobuf struct cordon_buf many = CORDON_BUF(1 << 20);

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(lists); i++) {
		err = (struct cordon_error){ 0 };
		assert_int_equal(cordon_folders_parse(lists[i], &folders, &err), -EINVAL);
		assert_int_equal(err.kind, CORDON_KIND_USAGE);
		assert_true(err.hint[0] != '\0');
		assert_int_equal(folders.n, 77);
	}
	for (size_t i = 0; i < CORDON_FOLDERS_MAX; i++)
		assert_int_equal(cordon_buf_adds(&many, i ? ",a" : "a"), 0);
	assert_int_equal(cordon_folders_parse(many.data, &folders, &err), 0);
	assert_int_equal(folders.n, CORDON_FOLDERS_MAX);
	cordon_folders_done(&folders);
	assert_int_equal(cordon_buf_adds(&many, ",a"), 0);
	assert_int_equal(cordon_folders_parse(many.data, &folders, &err), -EINVAL);
	cordon_buf_reset(&many);
	for (size_t i = 0; i <= CORDON_PATH_MAX; i++)
		assert_int_equal(cordon_buf_addc(&many, 'a'), 0);
	assert_int_equal(cordon_folders_parse(many.data, &folders, &err), -EINVAL);
	assert_non_null(strstr(err.message, "too long"));
}

static void make_tree(void)
{
	unit_mkdir("repo");
	unit_mkdir("repo/lib");
	unit_mkdir("repo/lib/utils");
	unit_mkdir("repo/we[i]rd, yes");
	unit_mkdir("repo-evil");
	unit_write("repo/file", "");
	unit_link("lib", "repo/alias");
	unit_link("/", "repo/out");
	unit_link("../repo-evil", "repo/sibling");
	unit_link("missing", "repo/dangling");
	unit_link("repo", "link-to-repo");
}

static void folders_must_exist_inside_the_root(void **state)
{
	static const struct {
		const char *folder;
		cordon_kind kind; /* NONE: resolves to `path` */
		const char *path;
	} cases[] = {
		{ "lib", CORDON_KIND_NONE, "lib" },
		{ "lib/", CORDON_KIND_NONE, "lib" },
		{ "./lib//utils", CORDON_KIND_NONE, "lib/utils" },
		{ ".", CORDON_KIND_NONE, "" },
		{ "alias", CORDON_KIND_NONE, "lib" },
		{ "lib/../lib", CORDON_KIND_NONE, "lib" },
		{ "../repo/lib", CORDON_KIND_NONE, "lib" },
		{ "missing", CORDON_KIND_NOT_FOUND, "Workspace folder does not exist: missing" },
		{ "dangling", CORDON_KIND_NOT_FOUND, "Workspace folder does not exist: dangling" },
		{ "file", CORDON_KIND_NOT_FOUND, "Workspace folder is not a directory: file" },
		{ "file/x", CORDON_KIND_NOT_FOUND, "Workspace folder does not exist: file/x" },
		{ "out", CORDON_KIND_POLICY_DENIED, "Workspace folder is outside repository: out" },
		{ "sibling", CORDON_KIND_POLICY_DENIED, "Workspace folder is outside repository: sibling" },
		{ "..", CORDON_KIND_POLICY_DENIED, "Workspace folder is outside repository: .." },
		{ "../repo-evil", CORDON_KIND_POLICY_DENIED, "Workspace folder is outside repository: ../repo-evil" },
		{ "/etc", CORDON_KIND_POLICY_DENIED, "Workspace folder is outside repository: /etc" },
	};
	struct cordon_root root;
	char path[CORDON_PATH_MAX], absolute[2 * UNIT_PATH];

	(void)state;
	make_tree();
	assert_int_equal(cordon_root_open("link-to-repo", &root, NULL), 0);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		struct cordon_error err = { 0 };
		int r = cordon_folder_resolve(&root, cases[i].folder, path, &err);

		if (err.kind != cases[i].kind || (r < 0) != (cases[i].kind != CORDON_KIND_NONE))
			fail_msg("%s: %d %s", cases[i].folder, r, err.message);
		assert_string_equal(r < 0 ? err.message : path, cases[i].path);
	}
	snprintf(absolute, sizeof(absolute), "%s/link-to-repo/lib", unit_dir);
	assert_int_equal(cordon_folder_resolve(&root, absolute, path, NULL), 0);
	assert_string_equal(path, "lib");
	cordon_root_done(&root);
}

static void granted_folders_are_remembered_or_nothing_is(void **state)
{
	struct cordon_policy *policy = NULL;
	struct cordon_error err = { 0 };
	struct cordon_decision d;

	(void)state;
	make_tree();
	assert_int_equal(cordon_policy_new("repo", &policy, NULL), 0);
	assert_int_equal(cordon_policy_grant_folders(policy, "lib,missing", &err), -ENOENT);
	assert_int_equal(policy->n_grants, 0);
	assert_null(policy->folders);
	assert_false(policy->reports_reads);
	assert_int_equal(cordon_policy_grant_folders(policy, "alias, we[i]rd\\, yes", &err), 0);
	assert_int_equal(policy->n_grants, 2);
	assert_string_equal(policy->folders, "alias, we[i]rd\\, yes");
	assert_true(policy->reports_reads);
	cordon_policy_decide(policy, "lib/a", CORDON_OP_WRITE, &d);
	assert_int_equal(d.verdict, CORDON_ALLOW);
	assert_string_equal(d.rule, "lib");
	cordon_policy_decide(policy, "we[i]rd, yes/a", CORDON_OP_WRITE, &d);
	assert_int_equal(d.verdict, CORDON_ALLOW);
	cordon_policy_decide(policy, "weird, yes/a", CORDON_OP_WRITE, &d);
	assert_int_equal(d.verdict, CORDON_DENY);
	assert_int_equal(cordon_policy_grant_folders(policy, "..", &err), -EXDEV);
	assert_int_equal(policy->n_grants, 2);
	assert_int_equal(cordon_policy_grant_folders(policy, ".", &err), 0);
	assert_string_equal(policy->folders, "alias, we[i]rd\\, yes,.");
	cordon_policy_decide(policy, "any/thing", CORDON_OP_WRITE, &d);
	assert_int_equal(d.verdict, CORDON_ALLOW);
	cordon_policy_free(policy);
}

static void assert_repo(const char *start, const char *want)
{
	struct cordon_root root = { .fd = -1 };
	char expected[2 * UNIT_PATH];
	struct cordon_root canonical;

	snprintf(expected, sizeof(expected), "%s/%s", unit_dir, want);
	assert_int_equal(cordon_root_open(expected, &canonical, NULL), 0);
	assert_int_equal(cordon_repo_root(start, &root, NULL), 0);
	assert_string_equal(root.path, canonical.path);
	assert_true(root.fd >= 0);
	cordon_root_done(&root);
	cordon_root_done(&canonical);
}

static void the_repository_is_found_by_its_git_entry_alone(void **state)
{
	struct cordon_root root = { .fd = -1 };

	(void)state;
	unit_mkdir("top");
	unit_mkdir("top/.git");
	unit_write("top/.git/config", "[core]\n\tworktree = /\n");
	unit_mkdir("top/a");
	unit_mkdir("top/a/b");
	unit_link("top/a", "shortcut");
	assert_repo("top", "top");
	assert_repo("top/a/b", "top");
	assert_repo("shortcut", "top");
	/* A gitfile marks a top level, and nobody follows it. */
	unit_mkdir("top/sub");
	unit_mkdir("top/sub/x");
	unit_write("top/sub/.git", "gitdir: /\n");
	assert_repo("top/sub/x", "top/sub");
	/* A .git that is neither a directory nor a gitfile is ignored, and nobody waits for a FIFO. */
	unit_write("top/a/.git", "hello");
	assert_repo("top/a/b", "top");
	assert_int_equal(remove("top/a/.git"), 0);
	assert_int_equal(mkfifo("top/a/.git", 0600), 0);
	assert_repo("top/a/b", "top");
	assert_int_equal(remove("top/a/.git"), 0);
	unit_link("dangling", "top/a/.git");
	assert_repo("top/a/b", "top");
	assert_int_equal(cordon_repo_root("missing", &root, NULL), -ENOENT);
	assert_int_equal(root.fd, -1);
}

static void a_repository_that_somebody_planted_above_is_passed_by(void **state)
{
	enum { SOMEBODY = 65534 };

	(void)state;
	unit_mkdir("own");
	unit_mkdir("own/.git");
	unit_mkdir("own/shared");
	unit_mkdir("own/shared/.git");
	unit_mkdir("own/shared/work");
	assert_repo("own/shared/work", "own/shared");
	/* Only root can make files of another user. */
	if (geteuid() != 0)
		return;
	assert_int_equal(chown("own/shared/.git", SOMEBODY, SOMEBODY), 0);
	assert_repo("own/shared/work", "own");
	/* A repository that belongs to the other user as a whole is one. */
	assert_int_equal(chown("own/shared", SOMEBODY, SOMEBODY), 0);
	assert_repo("own/shared/work", "own/shared");
}

static void without_a_repository_the_start_is_the_root(void **state)
{
	struct stat st;

	(void)state;
	if (stat("/.git", &st) == 0 || stat("../.git", &st) == 0)
		skip();
	unit_mkdir("plain");
	unit_mkdir("plain/dir");
	assert_repo("plain/dir", "plain/dir");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_split_at_commas_and_blanks_dropped),
		cmocka_unit_test(empty_lists_and_entries_are_errors),
		unit_test_in_dir(folders_must_exist_inside_the_root),
		unit_test_in_dir(granted_folders_are_remembered_or_nothing_is),
		unit_test_in_dir(the_repository_is_found_by_its_git_entry_alone),
		unit_test_in_dir(a_repository_that_somebody_planted_above_is_passed_by),
		unit_test_in_dir(without_a_repository_the_start_is_the_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
