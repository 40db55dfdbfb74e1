/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory and points in time. */
#include "unit.h"

#include <time.h>

#include "base/home.h"
#include "base/time.h"

static void set_home(const char *below)
{
	char path[2 * UNIT_PATH];

	snprintf(path, sizeof(path), "%s%s", unit_dir, below);
	assert_int_equal(setenv("CORDON_HOME", path, 1), 0);
}

static unsigned int mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void expect_refusal(const char *word)
{
	struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_error err = { 0 };

	assert_true(cordon_home_open(&home, &err) < 0);
	assert_int_equal(home.fd, -1);
	assert_int_equal(err.kind, CORDON_KIND_CONFIG);
	assert_non_null(strstr(err.message, word));
}

static void home_is_made_private_with_its_parents(void **state)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_error err = { 0 };
	autofd int runs = -1;
	autofd int again = -1;

	(void)state;
	set_home("//new/./deep/home/");
	assert_int_equal(cordon_home_open(&home, &err), 0);
	assert_int_equal(mode_of("new"), 0700);
	assert_int_equal(mode_of("new/deep/home"), 0700);
	assert_int_equal(mode_of("new/deep/home/state"), 0700);
	assert_int_equal(cordon_home_subdir(&home, "runs/abc", &runs, &err), 0);
	assert_int_equal(mode_of("new/deep/home/state/runs"), 0700);
	assert_int_equal(mode_of("new/deep/home/state/runs/abc"), 0700);
	assert_int_equal(cordon_home_subdir(&home, "runs", &again, &err), 0);
	assert_int_equal(faccessat(again, "abc", F_OK, 0), 0);
}

static void home_name_is_canonical_and_parents_may_be_links(void **state)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_error err = { 0 };
	char want[2 * UNIT_PATH];

	(void)state;
	unit_mkdir("real");
	unit_link("real", "link");
	set_home("/link/home");
	assert_int_equal(cordon_home_open(&home, &err), 0);
	snprintf(want, sizeof(want), "%s/real/home", unit_dir);
	assert_string_equal(home.path, want);
}

static void default_home_follows_xdg_and_then_home(void **state)
{
	struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_error err = { 0 };
	char data[2 * UNIT_PATH];

	(void)state;
	snprintf(data, sizeof(data), "%s/data", unit_dir);
	setenv("CORDON_HOME", "", 1);
	setenv("XDG_DATA_HOME", data, 1);
	setenv("HOME", unit_dir, 1);
	assert_int_equal(cordon_home_open(&home, &err), 0);
	cordon_home_done(&home);
	assert_int_equal(mode_of("data/cordon/state"), 0700);
	setenv("XDG_DATA_HOME", "relative/is/ignored", 1);
	assert_int_equal(cordon_home_open(&home, &err), 0);
	cordon_home_done(&home);
	assert_int_equal(mode_of(".local/share/cordon/state"), 0700);
	assert_int_equal(access("relative", F_OK), -1);
	unsetenv("XDG_DATA_HOME");
	unsetenv("HOME");
	expect_refusal("HOME is not set");
}

static void home_that_others_could_have_written_is_refused(void **state)
{
	(void)state;
	set_home("/home");
	unit_mkdir("home");
	chmod("home", 0770);
	expect_refusal("can be written by others (mode 0770)");
	chmod("home", 0702);
	expect_refusal("can be written by others");
	assert_int_equal(access("home/state", F_OK), -1);
	chmod("home", 0755);
	unit_mkdir("home/state");
	chmod("home/state", 0777);
	expect_refusal("can be written by others");
}

static void home_of_somebody_else_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		setenv("CORDON_HOME", "/usr", 1);
		expect_refusal("belongs to user 0");
		return;
	}
	unit_mkdir("home");
	assert_int_equal(chown("home", 12345, 12345), 0);
	set_home("/home");
	expect_refusal("belongs to user 12345, not to you (user 0)");
}

static void home_that_is_no_plain_absolute_directory_is_refused(void **state)
{
	(void)state;
	unit_mkdir("real");
	unit_link("real", "link");
	unit_write("file", "");
	set_home("/link");
	expect_refusal("symbolic link");
	set_home("/link/");
	expect_refusal("symbolic link");
	set_home("/file");
	expect_refusal("no directory");
	set_home("/real/../real");
	expect_refusal("'..'");
	setenv("CORDON_HOME", "real", 1);
	expect_refusal("not an absolute path");
	setenv("CORDON_HOME", "//.", 1);
	expect_refusal("root of the file system");
	unit_link("/nowhere", "real/state");
	set_home("/real");
	expect_refusal("symbolic link");
}

static void subdir_follows_no_link_and_stays_below(void **state)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_error err = { 0 };
	int fd = -1;

	(void)state;
	set_home("/home");
	assert_int_equal(cordon_home_open(&home, &err), 0);
	unit_mkdir("elsewhere");
	unit_link("../../elsewhere", "home/state/runs");
	assert_true(cordon_home_subdir(&home, "runs", &fd, &err) < 0);
	assert_true(cordon_home_subdir(&home, "runs/abc", &fd, &err) < 0);
	assert_int_equal(access("elsewhere/abc", F_OK), -1);
	assert_int_equal(cordon_home_subdir(&home, "../x", &fd, &err), -EXDEV);
	assert_int_equal(cordon_home_subdir(&home, "", &fd, &err), -EINVAL);
	assert_int_equal(cordon_home_subdir(&home, "/tmp", &fd, &err), -EINVAL);
	assert_int_equal(fd, -1);
}

static void time_is_written_as_the_c_library_would(void **state)
{
	static const int64_t seconds[] = { 0,	       951782399,    951782400,	 1709164799,   1709251200,
					   4107542400, 253402300799, -1,	 -62135596800, -62167219200,
					   1767225599, 1767225600,   12345678901 };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(seconds); i++) {
		char want[40], got[CORDON_TIME_SIZE];
		time_t t = (time_t)seconds[i];
		struct tm tm;
		int64_t back;
		size_t n;

		assert_non_null(gmtime_r(&t, &tm));
		n = (size_t)snprintf(want, sizeof(want), "%04d-", tm.tm_year + 1900);
		n += strftime(want + n, sizeof(want) - n, "%m-%dT%H:%M:%S", &tm);
		snprintf(want + n, sizeof(want) - n, ".007Z");
		cordon_time_format(seconds[i] * 1000 + 7, got);
		assert_string_equal(got, want);
		assert_int_equal(cordon_time_parse(got, &back), 0);
		assert_int_equal(back, seconds[i] * 1000 + 7);
	}
}

static void time_outside_four_digit_years_stays_writable(void **state)
{
	char got[CORDON_TIME_SIZE];

	(void)state;
	cordon_time_format(INT64_MAX, got);
	assert_string_equal(got, "9999-12-31T23:59:59.999Z");
	cordon_time_format(INT64_MIN, got);
	assert_string_equal(got, "0000-01-01T00:00:00.000Z");
}

static void time_is_read_in_every_form_of_rfc_3339(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{ "2026-01-02T03:04:05Z", 1767323045000 },	  { "2026-01-02t03:04:05.6z", 1767323045600 },
		{ "2026-01-02 03:04:05.678901Z", 1767323045678 }, { "2026-01-02T04:04:05+01:00", 1767323045000 },
		{ "2026-01-01T21:34:05-05:30", 1767323045000 },	  { "2026-01-02", 1767312000000 },
		{ "2016-12-31T23:59:60Z", 1483228800000 },	  { "2024-02-29", 1709164800000 },
	};
	static const char *const bad[] = { "",
					   "x",
					   "2026",
					   "2026-01",
					   "2026-13-01",
					   "2026-00-01",
					   "2026-02-29",
					   "2026-01-02T",
					   "2026-01-02T03:04Z",
					   "2026-01-02T24:00:00Z",
					   "2026-01-02T03:04:05",
					   "2026-01-02T03:04:05.Z",
					   "2026-01-02T03:04:05+1:00",
					   "2026-01-02T03:04:05Zx",
					   "2026-1-2",
					   "+2026-01-02",
					   "10m" };
	int64_t ms = 42;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(good); i++) {
		assert_int_equal(cordon_time_parse(good[i].text, &ms), 0);
		assert_int_equal(ms, good[i].ms);
	}
	ms = 42;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(bad); i++)
		assert_int_equal(cordon_time_parse(bad[i], &ms), -EINVAL);
	assert_int_equal(ms, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(home_is_made_private_with_its_parents),
		unit_test_in_dir(home_name_is_canonical_and_parents_may_be_links),
		unit_test_in_dir(default_home_follows_xdg_and_then_home),
		unit_test_in_dir(home_that_others_could_have_written_is_refused),
		unit_test_in_dir(home_of_somebody_else_is_refused),
		unit_test_in_dir(home_that_is_no_plain_absolute_directory_is_refused),
		unit_test_in_dir(subdir_follows_no_link_and_stays_below),
		cmocka_unit_test(time_is_written_as_the_c_library_would),
		cmocka_unit_test(time_outside_four_digit_years_stays_writable),
		cmocka_unit_test(time_is_read_in_every_form_of_rfc_3339),
	};

	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
