/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: bounded reads that never wait, and writes that replace in one step. */
#include "unit.h"

#include <dirent.h>
#include <sys/mman.h>

#include "base/io.h"

static void read_is_bounded(void **state)
{
	autobuf struct cordon_buf exact = CORDON_BUF(5), small = CORDON_BUF(4), empty = CORDON_BUF(4);
	struct cordon_error err = { 0 };

	(void)state;
	unit_write("five", "12345");
	unit_write("none", "");
	assert_int_equal(cordon_read_file(AT_FDCWD, "five", 0, &exact, &err), 0);
	assert_string_equal(exact.data, "12345");
	assert_int_equal(cordon_read_file(AT_FDCWD, "five", 0, &small, &err), -E2BIG);
	assert_int_equal(err.kind, CORDON_KIND_LIMIT);
	assert_int_equal(cordon_read_file(AT_FDCWD, "none", 0, &empty, &err), 0);
	assert_int_equal(empty.len, 0);
}

static void read_goes_on_where_a_file_is_longer_than_it_was(void **state)
{
	autobuf struct cordon_buf more = CORDON_BUF(100), proc = CORDON_BUF(65536);
	autofd int fd = -1;
	struct stat st;

	(void)state;
	unit_write("grows", "123");
	fd = open("grows", O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	unit_write("grows", "1234567");
	assert_int_equal(cordon_read_regular(fd, &st, "grows", &more, NULL), 0);
	assert_string_equal(more.data, "1234567");
	/* This file has the size 0. */
	assert_int_equal(cordon_read_file(AT_FDCWD, "/proc/self/status", 0, &proc, NULL), 0);
	assert_true(proc.len > 100);
}

static void read_takes_regular_files_only_and_never_waits(void **state)
{
	autobuf struct cordon_buf buf = CORDON_BUF(100);
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	unit_mkdir("dir");
	unit_link("five", "link");
	unit_write("five", "12345");
	assert_int_equal(cordon_read_file(AT_FDCWD, "fifo", 0, &buf, &err), -EINVAL);
	assert_int_equal(cordon_read_file(AT_FDCWD, "dir", 0, &buf, &err), -EINVAL);
	assert_int_equal(cordon_read_file(AT_FDCWD, "/dev/zero", 0, &buf, &err), -EINVAL);
	assert_int_equal(cordon_read_file(AT_FDCWD, "missing", 0, &buf, &err), -ENOENT);
	assert_int_equal(cordon_read_file(AT_FDCWD, "link", O_NOFOLLOW, &buf, &err), -ELOOP);
	assert_int_equal(cordon_read_file(AT_FDCWD, "link", 0, &buf, &err), 0);
}

static int count_entries(void)
{
	DIR *dir = opendir(".");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void copy_is_bounded_and_reads_what_the_kernel_does_not_copy(void **state)
{
	autofd int from = memfd_create("from", MFD_CLOEXEC), to = memfd_create("to", MFD_CLOEXEC);
	char text[16] = { 0 };
	uint64_t budget = 9;
	int pipes[2];

	(void)state;
	assert_int_equal(cordon_write_all(from, "123456789", 9), 0);
	assert_int_equal(lseek(from, 0, SEEK_SET), 0);
	assert_int_equal(cordon_copy_bytes(from, to, &budget), 0);
	assert_int_equal(budget, 0);
	assert_int_equal(lseek(from, 0, SEEK_SET), 0);
	budget = 8;
	assert_int_equal(cordon_copy_bytes(from, to, &budget), -E2BIG);
	assert_int_equal(ftruncate(to, 9), 0);
	assert_int_equal(lseek(to, 0, SEEK_END), 9);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(write(pipes[1], "abc", 3), 3);
	close(pipes[1]);
	budget = 3;
	assert_int_equal(cordon_copy_bytes(pipes[0], to, &budget), 0);
	close(pipes[0]);
	assert_int_equal(pread(to, text, sizeof(text) - 1, 0), 12);
	assert_string_equal(text, "123456789abc");
}

static void write_replaces_in_one_step_and_follows_no_link(void **state)
{
	autobuf struct cordon_buf buf = CORDON_BUF(100), victim = CORDON_BUF(100);
	struct cordon_error err = { 0 };
	struct stat st;

	(void)state;
	unit_write("victim", "untouched");
	unit_link("victim", "name");
	assert_int_equal(cordon_write_file(AT_FDCWD, "name", 0640, "new", 3, &err), 0);
	assert_int_equal(cordon_read_file(AT_FDCWD, "name", O_NOFOLLOW, &buf, &err), 0);
	assert_string_equal(buf.data, "new");
	assert_int_equal(cordon_read_file(AT_FDCWD, "victim", 0, &victim, &err), 0);
	assert_string_equal(victim.data, "untouched");
	assert_int_equal(stat("name", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(count_entries(), 2);
}

static void failed_write_leaves_the_old_file_and_no_temporary_one(void **state)
{
	struct cordon_error err = { 0 };

	(void)state;
	unit_mkdir("name");
	unit_write("name/inside", "x");
	assert_true(cordon_write_file(AT_FDCWD, "name", 0600, "new", 3, &err) < 0);
	assert_non_null(strstr(err.message, "cannot write name"));
	assert_int_equal(count_entries(), 1);
}

static void replace_keeps_mode_and_owner_or_the_old_file(void **state)
{
	struct cordon_error err = { 0 };
	struct stat old, now;

	(void)state;
	unit_write("file", "old");
	assert_int_equal(chmod("file", 0604), 0);
	assert_int_equal(stat("file", &old), 0);
	assert_int_equal(cordon_replace_file(AT_FDCWD, "file", &old, "new", 3, &err), 0);
	assert_int_equal(stat("file", &now), 0);
	assert_int_equal(now.st_mode, old.st_mode);
	assert_int_not_equal(now.st_ino, old.st_ino);
	old.st_uid = 4321;
	if (geteuid() == 0) {
		assert_int_equal(cordon_replace_file(AT_FDCWD, "file", &old, "third", 5, &err), 0);
		assert_int_equal(stat("file", &now), 0);
		assert_int_equal(now.st_uid, 4321);
	} else {
		assert_int_equal(cordon_replace_file(AT_FDCWD, "file", &old, "third", 5, &err), -EPERM);
		assert_int_equal(stat("file", &now), 0);
		assert_int_equal(now.st_size, 3);
	}
	assert_int_equal(count_entries(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(read_is_bounded),
		unit_test_in_dir(read_goes_on_where_a_file_is_longer_than_it_was),
		unit_test_in_dir(read_takes_regular_files_only_and_never_waits),
		cmocka_unit_test(copy_is_bounded_and_reads_what_the_kernel_does_not_copy),
		unit_test_in_dir(write_replaces_in_one_step_and_follows_no_link),
		unit_test_in_dir(replace_keeps_mode_and_owner_or_the_old_file),
		unit_test_in_dir(failed_write_leaves_the_old_file_and_no_temporary_one),
	};

	return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
