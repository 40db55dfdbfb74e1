/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, errors, text, paths and numbers: the promises of src/base that need no file. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/child.h"
#include "base/error.h"
#include "base/path.h"
#include "base/text.h"

static void buffer_grows_to_its_maximum_and_not_beyond(void **state)
{
	autobuf struct cordon_buf buf = CORDON_BUF(10);

	(void)state;
	assert_int_equal(cordon_buf_adds(&buf, "01234"), 0);
	assert_int_equal(cordon_buf_addf(&buf, "%d", 56789), 0);
	assert_string_equal(buf.data, "0123456789");
	assert_int_equal(cordon_buf_addc(&buf, 'x'), -E2BIG);
	assert_int_equal(cordon_buf_addf(&buf, "%s", "x"), -E2BIG);
	assert_string_equal(buf.data, "0123456789");
	assert_int_equal(cordon_buf_add(&buf, "", 0), 0);
	assert_null(cordon_buf_room(&buf, SIZE_MAX));
}

static void stolen_string_is_never_null_and_leaves_an_empty_buffer(void **state)
{
	autobuf struct cordon_buf buf = CORDON_BUF(100);
	autofree char *empty = cordon_buf_steal(&buf);
	autofree char *full = NULL;

	(void)state;
	assert_string_equal(empty, "");
	assert_int_equal(cordon_buf_adds(&buf, "abc"), 0);
	full = cordon_buf_steal(&buf);
	assert_string_equal(full, "abc");
	assert_int_equal(buf.len, 0);
	assert_null(buf.data);
}

static void error_message_is_one_safe_line(void **state)
{
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "bad name: %s", "a\nb\x1b[31m\xff"), -EINVAL);
	assert_string_equal(err.message, "bad name: a\\nb\\e[31m\\xff");
	assert_int_equal(err.kind, CORDON_KIND_USAGE);
	/* Adding a prefix does not escape the old text again. */
	cordon_error_prefix(&err, -EINVAL, "file %s", "x\ny");
	assert_string_equal(err.message, "file x\\ny: bad name: a\\nb\\e[31m\\xff");
	cordon_error_where(&err, "p\tq", 3, 4);
	assert_string_equal(err.where, "p\\tq:3:4");
	cordon_error_where(&err, "plain", 0, 0);
	assert_string_equal(err.where, "plain");
	cordon_error_hint(&err, "try %s", "\r");
	assert_string_equal(err.hint, "try \\r");
	assert_int_equal(cordon_fail_errno(&err, -ENOENT, "open %s", "f"), -ENOENT);
	assert_string_equal(err.message, "open f: No such file or directory");
	assert_int_equal(err.kind, CORDON_KIND_NOT_FOUND);
	assert_string_equal(err.where, "");
	assert_string_equal(err.hint, "");
}

static void error_works_without_an_object(void **state)
{
	(void)state;
	assert_int_equal(cordon_fail(NULL, -EINVAL, CORDON_KIND_USAGE, "x"), -EINVAL);
	assert_int_equal(cordon_fail_errno(NULL, -EIO, "x"), -EIO);
	assert_int_equal(cordon_error_prefix(NULL, -EIO, "x"), -EIO);
	cordon_error_where(NULL, "x", 1, 1);
	cordon_error_hint(NULL, "x");
}

static void too_long_a_message_is_cut_at_a_whole_character(void **state)
{
	struct cordon_error err = { 0 };
	char text[4096];
	size_t len;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 3);
	cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "%s", text);
	len = strlen(err.message);
	assert_true(len >= sizeof(err.message) - 3 && len < sizeof(err.message));
	assert_true(cordon_utf8_valid(err.message, len));
	for (int i = 0; i < 4; i++) {
		cordon_error_prefix(&err, -EINVAL, "%.*s", i, "abcd");
		len = strlen(err.message);
		assert_true(len >= sizeof(err.message) - 3 && len < sizeof(err.message));
		assert_true(cordon_utf8_valid(err.message, len));
	}
	cordon_error_prefix(&err, -EINVAL, "%s", text);
	assert_true(cordon_utf8_valid(err.message, strlen(err.message)));
}

static void every_kind_has_its_word(void **state)
{
	(void)state;
	assert_string_equal(cordon_kind_name(CORDON_KIND_USAGE), "usage");
	assert_string_equal(cordon_kind_name(CORDON_KIND_POLICY_DENIED), "policy_denied");
	assert_string_equal(cordon_kind_name(CORDON_KIND_KERNEL_UNSUPPORTED), "kernel_unsupported");
	for (int i = 0; i < CORDON_KIND__MAX; i++)
		assert_true(*cordon_kind_name((cordon_kind)i));
	assert_string_equal(cordon_kind_name((cordon_kind)-1), "internal");
	assert_string_equal(cordon_kind_name((cordon_kind)1000), "internal");
}

static void utf8_takes_the_shortest_form_only(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} rows[] = {
		{ "a", 1 },
		{ "\xc3\xa9", 2 },
		{ "\xe2\x82\xac", 3 },
		{ "\xf0\x9f\x98\x80", 4 },
		{ "\xc0\x80", 0 },
		{ "\xc1\xbf", 0 },
		{ "\xe0\x80\x80", 0 },
		{ "\xe0\x9f\xbf", 0 },
		{ "\xf0\x80\x80\x80", 0 },
		{ "\xed\xa0\x80", 0 },
		{ "\xed\xbf\xbf", 0 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf5\x80\x80\x80", 0 },
		{ "\x80", 0 },
		{ "\xc3", 0 },
		{ "\xe2\x82", 0 },
		{ "\xc3(", 0 },
		{ "\xff", 0 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++)
		assert_int_equal(cordon_utf8_char(rows[i].bytes, strlen(rows[i].bytes)), rows[i].len);
	assert_true(cordon_utf8_valid("a\xc3\xa9", 3));
	assert_false(cordon_utf8_valid("a\xc3\xa9", 2));
	assert_true(cordon_utf8_valid("a\0b", 3));
}

static void escaped_text_stays_on_its_line(void **state)
{
	static const struct {
		const char *raw, *safe;
	} rows[] = {
		{ "plain \xc3\xa9", "plain \xc3\xa9" },
		{ "a\nb\tc\rd", "a\\nb\\tc\\rd" },
		{ "\x1b]0;x\a", "\\e]0;x\\x07" },
		{ "back\\slash", "back\\\\slash" },
		{ "\x7f", "\\x7f" },
		{ "\xc2\x9b", "\\u{9b}" },					     /* CSI as one character */
		{ "\xe2\x80\xa8", "\\u{2028}" },				     /* line separator */
		{ "\xe2\x80\xae", "\\u{202e}" },				     /* right-to-left override */
		{ "\xe2\x81\xa0\xc2\xad\xe3\x85\xa4", "\\u{2060}\\u{ad}\\u{3164}" }, /* nothing to be seen */
		{ "\xef\xb8\x8f\xe2\x81\xaa\xe2\xa0\x80", "\\u{fe0f}\\u{206a}\\u{2800}" },
		{ "\xcd\x8f\xf3\xa0\x84\x80", "\\u{34f}\\u{e0100}" }, /* joins graphemes; selects a variant */
		{ "\xe6\xbc\xa2\xe3\x80\x80 \xe2\xa0\x81",
		  "\xe6\xbc\xa2\xe3\x80\x80 \xe2\xa0\x81" }, /* all of it is seen */
		{ "\xff\xfe", "\\xff\\xfe" },
		{ "\xe2\x82", "\\xe2\\x82" },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autobuf struct cordon_buf buf = CORDON_BUF(100);
		char fixed[100];

		assert_int_equal(cordon_text_escape(&buf, rows[i].raw, strlen(rows[i].raw)), 0);
		assert_string_equal(buf.data, rows[i].safe);
		cordon_text_escape_fixed(fixed, sizeof(fixed), rows[i].raw, strlen(rows[i].raw));
		assert_string_equal(fixed, rows[i].safe);
	}
}

static void quoted_text_can_not_close_its_quotation(void **state)
{
	autobuf struct cordon_buf buf = CORDON_BUF(100), small = CORDON_BUF(6);

	(void)state;
	assert_int_equal(cordon_text_quote(&buf, "a\"b\\\n\"", 6), 0);
	assert_string_equal(buf.data, "\"a\\\"b\\\\\\n\\\"\"");
	assert_int_equal(cordon_text_quote(&buf, "", 0), 0);
	assert_int_equal(cordon_buf_adds(&small, "ab"), 0);
	assert_int_equal(cordon_text_quote(&small, "cde", 3), -E2BIG);
	assert_string_equal(small.data, "ab");
}

static void escape_that_does_not_fit_changes_nothing(void **state)
{
	autobuf struct cordon_buf buf = CORDON_BUF(6);
	char fixed[6];

	(void)state;
	assert_int_equal(cordon_buf_adds(&buf, "abc"), 0);
	assert_int_equal(cordon_text_escape(&buf, "xy\n", 3), -E2BIG);
	assert_string_equal(buf.data, "abc");
	assert_int_equal(cordon_text_fit("abc", 3, 2), 2);
	assert_int_equal(cordon_text_fit("abc", 3, 9), 3);
	assert_int_equal(cordon_text_fit("\xc3\xa4\xe6\xbc\xa2z", 6, 3), 5);
	assert_int_equal(cordon_text_fit("\xc3\xa4\xe6\xbc\xa2z", 6, 2), 2);
	cordon_text_escape_fixed(fixed, sizeof(fixed), "abcd\n", 5);
	assert_string_equal(fixed, "abcd");
}

static void text_of_several_lines_keeps_them(void **state)
{
	autobuf struct cordon_buf lines = CORDON_BUF(100);

	(void)state;
	assert_int_equal(cordon_text_escape_lines(&lines, "a\tb\\\n\x1b[31m\xff\xc3\xa9\r", 14), 0);
	assert_string_equal(lines.data, "a\tb\\\n\\e[31m\\xff\xc3\xa9\\r");
}

static void marked_text_says_whose_each_line_is(void **state)
{
	autobuf struct cordon_buf lines = CORDON_BUF(200);

	(void)state;
	assert_int_equal(cordon_text_mark_lines(&lines, "| ", "one\n\ntw", 7), 0);
	/* A line without a newline continues. */
	assert_int_equal(cordon_text_mark_lines(&lines, "| ", "o\n\r[x]\xe2\x80\xa8[y]", 11), 0);
	assert_string_equal(lines.data, "| one\n| \n| two\n| \\r[x]\\u{2028}[y");
	assert_int_equal(cordon_text_mark_lines(&lines, "| ", "", 0), 0);
	assert_int_equal(lines.data[lines.len - 1], 'y');
}

static void kinds_are_found_by_name(void **state)
{
	(void)state;
	for (int kind = CORDON_KIND_USAGE; kind < CORDON_KIND__MAX; kind++)
		assert_int_equal(cordon_kind_parse(cordon_kind_name((cordon_kind)kind)), kind);
	assert_int_equal(cordon_kind_parse("no such kind"), CORDON_KIND_INTERNAL);
	assert_int_equal(cordon_kind_parse(NULL), CORDON_KIND_INTERNAL);
}

static void paths_are_compared_by_component(void **state)
{
	(void)state;
	assert_true(cordon_path_within("lib", "lib"));
	assert_true(cordon_path_within("lib/a", "lib"));
	assert_false(cordon_path_within("libsecret/key", "lib"));
	assert_false(cordon_path_within("li", "lib"));
	assert_true(cordon_path_within("anything", ""));
	assert_false(cordon_path_within("/anything", ""));
	assert_true(cordon_path_within("/x", "/"));
	assert_false(cordon_path_within("x", "/"));
	assert_false(cordon_path_within("/repo-evil/x", "/repo"));
}

static void paths_are_cleaned_by_their_text(void **state)
{
	static const struct {
		const char *path, *clean;
		int code;
	} rows[] = {
		{ "a//b/./c/", "a/b/c", 0 },
		{ ".", "", 0 },
		{ "./", "", 0 },
		{ "", "", 0 },
		{ "/", "/", 0 },
		{ "//a", "/a", 0 },
		{ "/./a/", "/a", 0 },
		{ "...", "...", 0 },
		{ "a/..", NULL, -EXDEV },
		{ "..", NULL, -EXDEV },
		{ "/../a", NULL, -EXDEV },
		{ "a..", "a..", 0 },
	};
	char ret[CORDON_PATH_MAX], huge[CORDON_PATH_MAX + 2];

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		assert_int_equal(cordon_path_clean(rows[i].path, ret, sizeof(ret)), rows[i].code);
		if (rows[i].clean)
			assert_string_equal(ret, rows[i].clean);
	}
	memset(huge, 'a', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	assert_int_equal(cordon_path_clean(huge, ret, sizeof(ret)), -ENAMETOOLONG);
	assert_int_equal(cordon_path_clean("abc", ret, 3), -ENAMETOOLONG);
	assert_int_equal(cordon_path_join("a", "b", ret, sizeof(ret)), 0);
	assert_string_equal(ret, "a/b");
	assert_int_equal(cordon_path_join("/", "b", ret, sizeof(ret)), 0);
	assert_string_equal(ret, "/b");
	assert_int_equal(cordon_path_join("", "b", ret, sizeof(ret)), 0);
	assert_string_equal(ret, "b");
	assert_int_equal(cordon_path_join("a", "", ret, sizeof(ret)), 0);
	assert_string_equal(ret, "a");
	assert_int_equal(cordon_path_join("ab", "cd", ret, 5), -ENAMETOOLONG);
	assert_string_equal(cordon_path_base("a/b"), "b");
	assert_string_equal(cordon_path_base("/"), "");
}

static void numbers_take_nothing_but_digits(void **state)
{
	uint64_t value = 77;

	(void)state;
	assert_int_equal(cordon_parse_u64("12", 0, 12, &value), 0);
	assert_int_equal(value, 12);
	assert_int_equal(cordon_parse_u64("13", 0, 12, &value), -ERANGE);
	assert_int_equal(cordon_parse_u64("3", 4, 12, &value), -ERANGE);
	assert_int_equal(cordon_parse_u64("18446744073709551615", 0, UINT64_MAX, &value), 0);
	assert_int_equal(cordon_parse_u64("18446744073709551616", 0, UINT64_MAX, &value), -ERANGE);
	for (const char *const *bad = (const char *const[]){ "", " 1", "+1", "-1", "0x1", "1 ", "1e3", NULL }; *bad;
	     bad++)
		assert_int_equal(cordon_parse_u64(*bad, 0, 100, &value), -EINVAL);
	assert_true(value == UINT64_MAX);
}

static void durations_and_sizes_have_units(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_int_equal(cordon_parse_duration("90", 1000, &v), 0);
	assert_int_equal(v, 90000);
	assert_int_equal(cordon_parse_duration("90", 1, &v), 0);
	assert_int_equal(v, 90);
	assert_int_equal(cordon_parse_duration("1500ms", 1000, &v), 0);
	assert_int_equal(v, 1500);
	assert_int_equal(cordon_parse_duration("2m", 1000, &v), 0);
	assert_int_equal(v, 120000);
	assert_int_equal(cordon_parse_duration("1h", 1000, &v), 0);
	assert_int_equal(v, 3600000);
	assert_int_equal(cordon_parse_duration("1d", 1000, &v), -EINVAL);
	assert_int_equal(cordon_parse_duration("m", 1000, &v), -EINVAL);
	assert_int_equal(cordon_parse_duration("9999999999999999999h", 1000, &v), -ERANGE);
	assert_int_equal(cordon_parse_size("4096", &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(cordon_parse_size("512k", &v), 0);
	assert_int_equal(v, 512 * 1024);
	assert_int_equal(cordon_parse_size("64MiB", &v), 0);
	assert_int_equal(v, 64 * 1024 * 1024);
	assert_int_equal(cordon_parse_size("2GB", &v), 0);
	assert_true(v == (uint64_t)2 << 30);
	assert_int_equal(cordon_parse_size("2X", &v), -EINVAL);
	assert_int_equal(cordon_parse_size("2iB", &v), -EINVAL);
	assert_int_equal(cordon_parse_size("99999999T", &v), -ERANGE);
}

static void strings_are_joined_without_stdio(void **state)
{
	char digits[CORDON_DIGITS_SIZE], fd[CORDON_FD_PATH_SIZE], text[8] = "old";

	(void)state;
	assert_string_equal(cordon_digits(0, digits), "0");
	assert_string_equal(cordon_digits(1090, digits), "1090");
	assert_string_equal(cordon_digits(UINT64_MAX, digits), "18446744073709551615");
	assert_string_equal(cordon_fd_path(1023, fd), "/proc/self/fd/1023");
	assert_int_equal(cordon_concat(text, sizeof(text), "ab", "", "cde", "fg", NULL), 0);
	assert_string_equal(text, "abcdefg");
	assert_int_equal(cordon_concat(text, sizeof(text), "abcd", "efgh", NULL), -ENAMETOOLONG);
	assert_string_equal(text, "");
	assert_int_equal(cordon_concat(text, sizeof(text), NULL), 0);
	assert_string_equal(text, "");
}

static void arena_hands_out_zeroed_memory_and_keeps_what_grew(void **state)
{
	struct cordon_arena *arena = cordon_arena_new();
	const uint32_t *bigger, old[] = { 7, 8 };
	const char *large;

	(void)state;
	assert_non_null(arena);
	assert_string_equal(cordon_arena_strdup(arena, "x"), "x");
	assert_string_equal(cordon_arena_printf(arena, "%s-%d", "abc", 5), "abc-5");
	large = cordon_arena_alloc(arena, 100000);
	assert_non_null(large);
	assert_true(large[0] == 0 && large[99999] == 0);
	bigger = cordon_arena_grow(arena, old, 2, 4, sizeof(*bigger));
	assert_non_null(bigger);
	assert_true(bigger[0] == 7 && bigger[1] == 8 && bigger[2] == 0 && bigger[3] == 0);
	assert_null(cordon_arena_alloc(arena, SIZE_MAX));
	assert_null(cordon_arena_grow(arena, old, 2, SIZE_MAX / 4, sizeof(*bigger) + 4));
	assert_null(cordon_arena_free(arena));
}

static void uuids_are_random_and_checked(void **state)
{
	char a[CORDON_UUID_SIZE], b[CORDON_UUID_SIZE];

	(void)state;
	assert_int_equal(cordon_uuid_new(a), 0);
	assert_int_equal(cordon_uuid_new(b), 0);
	assert_true(cordon_uuid_valid(a));
	assert_string_not_equal(a, b);
	assert_int_equal(a[14], '4');
	assert_false(cordon_uuid_valid(""));
	assert_false(cordon_uuid_valid("../../../etc/passwd"));
	a[8] = '/';
	assert_false(cordon_uuid_valid(a));
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Opens 3 and 10 to 19, and checks that afterwards only `kept` and 0 to 2 are open. It runs in a child, so that the
 * test keeps its own descriptors. */
static void assert_stay(const int *kept, size_t n)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		for (int fd = 3; fd < 20; fd = fd == 3 ? 10 : fd + 1)
			if (dup2(0, fd) != fd)
				_exit(2);
		cordon_close_except(kept, n);
		for (int fd = 0; fd < 64; fd++) {
			bool wanted = fd < 3;

			for (size_t i = 0; i < n; i++)
				wanted |= kept[i] == fd;
			if (is_open(fd) != wanted)
				_exit(1);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void descriptors_are_closed_but_for_those_that_are_named(void **state)
{
	(void)state;
	assert_stay(NULL, 0);
	assert_stay((const int[]){ 3 }, 1);
	assert_stay((const int[]){ 19, 3, 11, 10 }, 4);
	assert_stay((const int[]){ -1, 12, 12, -1, 2 }, 5);
}

static void on_signal(int number)
{
	(void)number;
	_exit(9);
}

/* What a child of cordon_child_fork() is, checked in it; the number of the first thing that is wrong, or 0. */
static int check_child(const int ends[static 2], pid_t parent)
{
	sigset_t blocked;
	struct rlimit limit;

	if (write(1, "x", 1) != 1 || read(0, &blocked, 1) != 0 || is_open(ends[0]) || !is_open(ends[1]))
		return 1;
	if (getsid(0) != getpid() || getppid() != parent)
		return 2;
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	if (!sigismember(&blocked, SIGHUP) || sigismember(&blocked, SIGUSR1) || signal(SIGUSR1, SIG_DFL) != SIG_DFL)
		return 3;
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur != 4096 || getrlimit(RLIMIT_CORE, &limit) < 0 ||
	    limit.rlim_max)
		return 4;
#ifndef __SANITIZE_ADDRESS__
	if (getrlimit(RLIMIT_DATA, &limit) < 0 || limit.rlim_max != (rlim_t)1 << 30)
		return 5;
#endif
	return alarm(0) == 50 ? 0 : 6;
}

static void a_child_has_what_it_was_given_and_its_bounds(void **state)
{
	pid_t pid, parent = getpid();
	sigset_t blocked;
	char byte = '\0';
	int ends[2], status;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGHUP);
	signal(SIGUSR1, on_signal);
	pid = cordon_child_fork(&(struct cordon_fork){ .streams = (const int[]){ -1, ends[1], 2 },
						       .kept = &ends[1],
						       .n_kept = 1,
						       .own_session = true,
						       .plain_signals = true,
						       .blocked = &blocked,
						       .death_signal = SIGKILL,
						       .seconds = 50,
						       .memory_bytes = (uint64_t)1 << 30,
						       .file_bytes = 4096 });
	if (pid == 0)
		_exit(check_child(ends, parent));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	assert_ptr_equal(signal(SIGUSR1, SIG_DFL), on_signal);
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	assert_false(sigismember(&blocked, SIGHUP));
	close(ends[0]);
	close(ends[1]);
}

static void a_child_without_wishes_is_as_its_parent(void **state)
{
	pid_t pid, session = getsid(0);
	int ends[2], status;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = cordon_child_fork(&(struct cordon_fork){ 0 });
	if (pid == 0)
		_exit(!is_open(ends[0]) || !is_open(ends[1]) || getsid(0) != session || alarm(0));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* A stream that can't be had is not replaced by another one. */
	pid = cordon_child_fork(&(struct cordon_fork){ .streams = (const int[]){ -1, 999, -1 } });
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), CORDON_CHILD_UNMADE);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffer_grows_to_its_maximum_and_not_beyond),
		cmocka_unit_test(stolen_string_is_never_null_and_leaves_an_empty_buffer),
		cmocka_unit_test(error_message_is_one_safe_line),
		cmocka_unit_test(error_works_without_an_object),
		cmocka_unit_test(too_long_a_message_is_cut_at_a_whole_character),
		cmocka_unit_test(every_kind_has_its_word),
		cmocka_unit_test(utf8_takes_the_shortest_form_only),
		cmocka_unit_test(escaped_text_stays_on_its_line),
		cmocka_unit_test(quoted_text_can_not_close_its_quotation),
		cmocka_unit_test(escape_that_does_not_fit_changes_nothing),
		cmocka_unit_test(text_of_several_lines_keeps_them),
		cmocka_unit_test(marked_text_says_whose_each_line_is),
		cmocka_unit_test(kinds_are_found_by_name),
		cmocka_unit_test(paths_are_compared_by_component),
		cmocka_unit_test(paths_are_cleaned_by_their_text),
		cmocka_unit_test(numbers_take_nothing_but_digits),
		cmocka_unit_test(durations_and_sizes_have_units),
		cmocka_unit_test(strings_are_joined_without_stdio),
		cmocka_unit_test(arena_hands_out_zeroed_memory_and_keeps_what_grew),
		cmocka_unit_test(uuids_are_random_and_checked),
		cmocka_unit_test(descriptors_are_closed_but_for_those_that_are_named),
		cmocka_unit_test(a_child_has_what_it_was_given_and_its_bounds),
		cmocka_unit_test(a_child_without_wishes_is_as_its_parent),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
