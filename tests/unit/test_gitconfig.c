/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of git configuration, compared with what git itself reads. */
#include "unit.h"

#include <sys/wait.h>

#include "base/buf.h"
#include "protect/gitconfig.h"

static int note(const struct cordon_gitconfig_entry *entry, void *data)
{
	return cordon_buf_addf(data, "%s%s%s.%s=%s\n", entry->section, *entry->subsection ? "." : "", entry->subsection,
			       entry->key, entry->value ? entry->value : "(none)");
}

static const struct {
	const char *text, *expected;
} cases[] = {
	{ "", "" },
	{ "[core]\n\thooksPath = .husky/_\n", "core.hookspath=.husky/_\n" },
	{ "[CORE] HooksPath=a\n", "core.hookspath=a\n" },
	{ "[core]\r\n\tbare = false\r\n", "core.bare=false\n" },
	{ "[core]\nbare\n", "core.bare=(none)\n" },
	{ "\xef\xbb\xbf[a]\nb=c\n", "a.b=c\n" },
	{ "[remote \"origin\"]\nurl = x ; comment\n", "remote.origin.url=x\n" },
	{ "[a \"B \\\"q\\\" ]\"]\nk=v", "a.B \"q\" ].k=v\n" },
	{ "[a.Sub]\nk=v\n", "a.sub.k=v\n" },
	{ "[a]\nk = \"x # y\" # z\n", "a.k=x # y\n" },
	{ "[a]\nk = \"  x  \"  \n", "a.k=  x  \n" },
	{ "[a]\nk = one\\\n  two\nl=m\n", "a.k=one  two\na.l=m\n" },
	{ "[a]\nk = tab\\tq\\\\\\\"\n", "a.k=tab\tq\\\"\n" },
	{ "[a]\nk = a   b\n", "a.k=a   b\n" },
	{ "# c\n; c\n[a]# c\nk=v\n", "a.k=v\n" },
};

static void text_of(const char *text, struct cordon_buf *ret)
{
	cordon_buf_reset(ret);
	assert_int_equal(cordon_gitconfig_parse(text, strlen(text), note, ret), 0);
}

static void entries_are_read_as_git_reads_them(void **state)
{
	autobuf struct cordon_buf buf = CORDON_BUF(65536);

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		text_of(cases[i].text, &buf);
		assert_string_equal(buf.data ? buf.data : "", cases[i].expected);
	}
}

/* The oracle: `git config --list` gives the same answer for each of them. */
static void git_agrees(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		char out[4096] = "", expected[4096];
		size_t len = 0;
		int pipes[2], status;
		char *none;
		pid_t pid;

		unit_write("config", cases[i].text);
		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		pid = fork();
		if (pid == 0) {
			dup2(pipes[1], 1);
			execlp("git", "git", "config", "--file", "config", "--list", (char *)NULL);
			_exit(127);
		}
		close(pipes[1]);
		for (ssize_t n; (n = read(pipes[0], out + len, sizeof(out) - 1 - len)) > 0;)
			len += (size_t)n;
		close(pipes[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		/* git writes a key without a value without "=". */
		snprintf(expected, sizeof(expected), "%s", cases[i].expected);
		while ((none = strstr(expected, "=(none)")))
			memmove(none, none + 7, strlen(none + 7) + 1);
		assert_string_equal(out, expected);
	}
}

static void broken_lines_do_not_hide_what_follows(void **state)
{
	static const char *const broken[] = { "[",  "[a",      "[a \"b", "=x",	     "[]\n]",  "\\",
					      "\"", "[a \"\\", "k=v",	 "[a]\n%\n", "[a]\n\"" };
	autobuf struct cordon_buf buf = CORDON_BUF(65536);
	char text[256];

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(broken); i++) {
		snprintf(text, sizeof(text), "%s\n[core]\nhookspath = here\n", broken[i]);
		text_of(text, &buf);
		assert_non_null(strstr(buf.data, "core.hookspath=here\n"));
	}
}

static void long_names_and_values_stay_in_bounds(void **state)
{
	autobuf struct cordon_buf text = CORDON_BUF(1 << 20), buf = CORDON_BUF(1 << 20);

	(void)state;
	assert_int_equal(cordon_buf_adds(&text, "[core]\nlong="), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(cordon_buf_addc(&text, 'x'), 0);
	assert_int_equal(cordon_buf_adds(&text, "\n[core \""), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(cordon_buf_addc(&text, 'y'), 0);
	assert_int_equal(cordon_buf_adds(&text, "\"]\nlost=1\n["), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(cordon_buf_addc(&text, 'z'), 0);
	assert_int_equal(cordon_buf_adds(&text, "]\nlost=2\n[core]\nkept=3\n"), 0);
	text_of(text.data, &buf);
	assert_null(strstr(buf.data, "lost"));
	assert_non_null(strstr(buf.data, "core.kept=3\n"));
	assert_in_range(buf.len, CORDON_PATH_MAX, CORDON_PATH_MAX + 64);
}

static int stop(const struct cordon_gitconfig_entry *entry, void *data)
{
	(void)entry;
	++*(int *)data;
	return -E2BIG;
}

static void the_caller_can_stop(void **state)
{
	int calls = 0;

	(void)state;
	assert_int_equal(cordon_gitconfig_parse("[a]\nb=1\nc=2\n", 12, stop, &calls), -E2BIG);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read_as_git_reads_them),
		unit_test_in_dir(git_agrees),
		cmocka_unit_test(broken_lines_do_not_hide_what_follows),
		cmocka_unit_test(long_names_and_values_stay_in_bounds),
		cmocka_unit_test(the_caller_can_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
