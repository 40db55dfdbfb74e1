/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that a hostile process made are copied, merged, moved and removed without following any link. */
#include "unit.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "base/dirs.h"
#include "base/io.h"

static void expect_content(const char *path, const char *want)
{
	autobuf struct cordon_buf text = CORDON_BUF(4096);

	assert_int_equal(cordon_read_file(AT_FDCWD, path, O_NOFOLLOW, &text, NULL), 0);
	assert_string_equal(text.data, want);
}

static int copy(const char *name, struct cordon_error *err)
{
	struct cordon_copy_budget budget = CORDON_COPY_BUDGET;
	autofd int src = open("src", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autofd int dst = open("dst", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return cordon_dirs_copy(src, name, dst, &budget, err);
}

static void make_two(void)
{
	unit_mkdir("src");
	unit_mkdir("dst");
}

static void files_and_directories_are_copied_with_their_permissions(void **state)
{
	struct stat st;

	(void)state;
	make_two();
	unit_mkdir("src/t");
	unit_mkdir("src/t/deep");
	unit_write("src/t/deep/run", "#!/bin/sh\n");
	unit_write("src/t/plain", "plain");
	assert_int_equal(chmod("src/t/deep/run", 04775), 0);
	assert_int_equal(chmod("src/t/plain", 0466), 0);
	assert_int_equal(copy("t", NULL), 0);
	expect_content("dst/t/deep/run", "#!/bin/sh\n");
	assert_int_equal(stat("dst/t/deep/run", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat("dst/t/plain", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void missing_source_is_not_found(void **state)
{
	struct cordon_error err = { 0 };

	(void)state;
	make_two();
	assert_int_equal(copy("t", &err), -ENOENT);
	assert_int_equal(err.kind, CORDON_KIND_NOT_FOUND);
}

static void link_fifo_and_socket_are_refused_and_named(void **state)
{
	static const char *const names[] = { "link", "dangling", "fifo", "socket", "t/inner" };
	autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "src/socket" };

	(void)state;
	make_two();
	unit_mkdir("src/t");
	unit_write("secret", "secret");
	unit_link("../secret", "src/link");
	unit_link("nowhere", "src/dangling");
	unit_link("../../secret", "src/t/inner");
	assert_int_equal(mkfifo("src/fifo", 0600), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(names); i++) {
		struct cordon_error err = { 0 };

		assert_int_equal(copy(i == 4 ? "t" : names[i], &err), -EINVAL);
		assert_non_null(strstr(err.message, names[i]));
	}
	assert_int_equal(access("dst/link", F_OK), -1);
	assert_int_equal(access("dst/t/inner", F_OK), -1);
}

static void copy_never_overwrites_and_follows_no_link_at_its_target(void **state)
{
	(void)state;
	make_two();
	unit_write("src/a", "new");
	unit_write("victim", "old");
	unit_link("../victim", "dst/a");
	assert_int_equal(copy("a", NULL), -EEXIST);
	expect_content("victim", "old");
}

static void copy_is_bounded_in_bytes_entries_and_depth(void **state)
{
	struct cordon_copy_budget bytes = { .bounds = &cordon_copy_small, .bytes = 4, .entries = 10 };
	struct cordon_copy_budget entries = { .bounds = &cordon_copy_small, .bytes = 100, .entries = 2 };
	struct cordon_error err = { 0 };
	char path[512] = "src/deep";
	autofd int src = -1;
	autofd int dst = -1;

	(void)state;
	make_two();
	src = open("src", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dst = open("dst", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unit_write("src/five", "12345");
	unit_mkdir("src/two");
	unit_write("src/two/a", "");
	unit_write("src/two/b", "");
	assert_int_equal(cordon_dirs_copy(src, "five", dst, &bytes, &err), -E2BIG);
	assert_int_equal(err.kind, CORDON_KIND_LIMIT);
	assert_int_equal(cordon_dirs_copy(src, "two", dst, &entries, &err), -E2BIG);
	unit_mkdir(path);
	for (size_t i = 0; i <= CORDON_COPY_DEPTH_MAX; i++) {
		size_t n = strlen(path);

		assert_int_equal(cordon_copy(path + n, sizeof(path) - n, "/d", 2), 0);
		unit_mkdir(path);
	}
	assert_int_equal(copy("deep", &err), -E2BIG);
}

static bool leave_out(void *data, const char *path)
{
	return cordon_streq(path, data);
}

static void a_whole_tree_is_copied_with_its_links_and_without_what_is_left_out(void **state)
{
	const struct cordon_copy_bounds bounds = { CORDON_COPY_TREE, .leave_out = leave_out,
						   .data = (char[]){ "t/secret" } };
	struct cordon_copy_budget budget = CORDON_COPY_BUDGET_OF(&bounds);
	char target[32] = "";
	struct cordon_error err = { 0 };
	autofd int src = -1;
	autofd int dst = -1;

	(void)state;
	make_two();
	src = open("src", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dst = open("dst", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unit_write("victim", "old");
	unit_mkdir("src/t");
	unit_write("src/t/a", "a");
	unit_write("src/t/secret", "key");
	unit_write("src/secret", "no key");
	unit_link("../victim", "src/t/out");
	unit_link("nowhere", "src/dangling");
	assert_int_equal(cordon_dirs_copy_all(src, dst, &budget, &err), 0);
	expect_content("dst/t/a", "a");
	expect_content("dst/secret", "no key");
	assert_int_equal(access("dst/t/secret", F_OK), -1);
	assert_int_equal(readlink("dst/t/out", target, sizeof(target)), 9);
	assert_string_equal(target, "../victim");
	assert_int_equal(readlink("dst/dangling", target, sizeof(target)), 7);
	assert_int_equal(mkfifo("src/fifo", 0600), 0);
	assert_int_equal(cordon_dirs_copy(src, "fifo", dst, &budget, &err), -EINVAL);
}

static void merge_replaces_files_keeps_others_and_stops_at_a_foreign_type(void **state)
{
	struct cordon_error err = { 0 };
	autofd int src = -1;
	autofd int dst = -1;

	(void)state;
	make_two();
	src = open("src", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dst = open("dst", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unit_mkdir("src/t");
	unit_write("src/t/a", "new");
	unit_write("src/t/l", "new");
	unit_mkdir("dst/t");
	unit_write("dst/t/a", "old");
	unit_write("dst/t/own", "own");
	unit_write("victim", "old");
	unit_link("../../victim", "dst/t/l");
	assert_int_equal(cordon_dirs_merge(src, "t", dst, &err), 0);
	expect_content("dst/t/a", "new");
	expect_content("dst/t/own", "own");
	expect_content("dst/t/l", "new"); /* the link is gone, its target untouched */
	expect_content("victim", "old");

	unit_mkdir("src/u");
	unit_write("src/u/a", "new");
	unit_mkdir("outside");
	unit_link("../outside", "dst/u");
	assert_int_equal(cordon_dirs_merge(src, "u", dst, &err), -EEXIST);
	assert_int_equal(access("outside/a", F_OK), -1);
	unit_write("src/f", "file");
	unit_mkdir("dst/f");
	assert_int_equal(cordon_dirs_merge(src, "f", dst, &err), -EEXIST);
}

static void remove_takes_deep_unreadable_trees_and_no_link_target(void **state)
{
	enum { LEVELS = 3000 };

	(void)state;
	unit_mkdir("t");
	unit_mkdir("outside");
	unit_write("outside/kept", "kept");
	unit_link("../outside", "t/out");
	unit_write("t/file", "x");
	unit_mkdir("t/locked");
	unit_write("t/locked/in", "x");
	assert_int_equal(chmod("t/locked", 0), 0);
	assert_int_equal(chdir("t"), 0);
	for (int i = 0; i < LEVELS; i++) {
		unit_mkdir("d");
		unit_write("f", "x");
		assert_int_equal(chdir("d"), 0);
	}
	assert_int_equal(chdir(unit_dir), 0);
	assert_int_equal(chmod("t/d", 0500), 0);
	assert_int_equal(chmod("t", 0), 0);
	assert_int_equal(cordon_dirs_remove(AT_FDCWD, "t", NULL), 0);
	assert_int_equal(access("t", F_OK), -1);
	expect_content("outside/kept", "kept");
	assert_int_equal(cordon_dirs_remove(AT_FDCWD, "t", NULL), 0); /* a missing directory is no error */
}

static void remove_takes_a_link_itself(void **state)
{
	(void)state;
	unit_mkdir("outside");
	unit_write("outside/kept", "kept");
	unit_link("outside", "t");
	assert_int_equal(cordon_dirs_remove(AT_FDCWD, "t", NULL), 0);
	expect_content("outside/kept", "kept");
}

static void move_takes_an_unwritable_directory_and_never_replaces(void **state)
{
	(void)state;
	make_two();
	unit_mkdir("src/t");
	unit_write("src/t/a", "x");
	assert_int_equal(chmod("src/t", 0500), 0);
	unit_mkdir("dst/taken");
	assert_int_equal(cordon_dirs_move(AT_FDCWD, "src/t", AT_FDCWD, "dst/taken"), -EEXIST);
	assert_int_equal(cordon_dirs_move(AT_FDCWD, "src/t", AT_FDCWD, "dst/t"), 0);
	expect_content("dst/t/a", "x");
	assert_int_equal(cordon_dirs_move(AT_FDCWD, "src/t", AT_FDCWD, "dst/u"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(files_and_directories_are_copied_with_their_permissions),
		unit_test_in_dir(missing_source_is_not_found),
		unit_test_in_dir(link_fifo_and_socket_are_refused_and_named),
		unit_test_in_dir(copy_never_overwrites_and_follows_no_link_at_its_target),
		unit_test_in_dir(copy_is_bounded_in_bytes_entries_and_depth),
		unit_test_in_dir(a_whole_tree_is_copied_with_its_links_and_without_what_is_left_out),
		unit_test_in_dir(merge_replaces_files_keeps_others_and_stops_at_a_foreign_type),
		unit_test_in_dir(remove_takes_deep_unreadable_trees_and_no_link_target),
		unit_test_in_dir(remove_takes_a_link_itself),
		unit_test_in_dir(move_takes_an_unwritable_directory_and_never_replaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
