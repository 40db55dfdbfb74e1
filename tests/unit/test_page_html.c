/* SPDX-License-Identifier: Apache-2.0 */
/* HTML of the page: what is escaped, what programs' colours become, and how forms are read. */
#include "page/form.h"
#include "page/html.h"
#include "unit.h"

static void check_output(const char *text, const char *want)
{
	struct cordon_html html = { .out = CORDON_BUF(1 << 20) };

	cordon_html_output(&html, text, strlen(text));
	assert_false(html.failed);
	assert_string_equal(html.out.data ? html.out.data : "", want);
	cordon_buf_done(&html.out);
}

static void strings_are_escaped_and_literals_are_not(void **state)
{
	struct cordon_html html = { .out = CORDON_BUF(1 << 20) };

	(void)state;
	cordon_html(&html, "<a href=\"/x/%s\">%s</a>%d %u %zu %lld %llu %.1f%%", "\"><script>",
		    "a&b\n\033[1m\u202e\xff", -1, 2U, (size_t)3, -4LL, 5ULL, 6.25);
	assert_string_equal(html.out.data,
			    "<a href=\"/x/&quot;&gt;&lt;script&gt;\">a&amp;b\n\\e[1m\\u{202e}\\xff</a>-1 2 3 -4 5 6.2%");
	cordon_buf_done(&html.out);
	cordon_html_url(&html, "a b/\"?&%\xff");
	assert_string_equal(html.out.data, "a%20b%2F%22%3F%26%25%FF");
	cordon_buf_done(&html.out);
}

static void long_strings_are_cut_at_a_whole_character(void **state)
{
	struct cordon_html html = { .out = CORDON_BUF(1 << 20) };
	char text[CORDON_HTML_TEXT_MAX + 3];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text + CORDON_HTML_TEXT_MAX - 1, "\u00e9", 3);
	cordon_html(&html, "%s", text);
	assert_int_equal(html.out.len, CORDON_HTML_TEXT_MAX - 1 + strlen("\u2026"));
	assert_string_equal(html.out.data + CORDON_HTML_TEXT_MAX - 1, "\u2026");
	cordon_buf_done(&html.out);
}

static void colours_become_classes_and_other_sequences_vanish(void **state)
{
	char line[CORDON_HTML_LINE_MAX + 11];

	(void)state;
	check_output("a\033[1;31mb\033[0mc", "a<span class=\"a b f2\">b</span>c");
	check_output("\033[31mx", "<span class=\"a f2\">x</span>");
	check_output("\033[97;44m<\033[mz", "<span class=\"a f16 k5\">&lt;</span>z");
	check_output("\033[38;5;1mx\033[48;2;1;2;3my", "xy");
	check_output("\033]0;evil\aA\033]8;;http://x\033\\B\033[2J\033[?25lC", "ABC");
	check_output("one\r\ntwo\rthree\b", "one\ntwo\nthree\\x08");
	check_output("\033", "");
	check_output("\033[", "");
	memset(line, 'a', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	memcpy(line + sizeof(line) - 3, "\nb", 2);
	struct cordon_html html = { .out = CORDON_BUF(1 << 20) };

	cordon_html_output(&html, line, sizeof(line) - 1);
	assert_non_null(strstr(html.out.data, "\u2026 8 bytes more\nb"));
	cordon_buf_done(&html.out);
}

static void forms_are_read_as_browsers_write_them(void **state)
{
	static const char text[] = "a=1&b=two+words&c=%3Cx%3E&&d&e=&a=2";
	autoform struct cordon_form form = { 0 };

	(void)state;
	assert_int_equal(cordon_form_parse(text, strlen(text), &form), 0);
	assert_int_equal(form.n, 6);
	assert_string_equal(cordon_form_get(&form, "a"), "1");
	assert_string_equal(cordon_form_get(&form, "b"), "two words");
	assert_string_equal(cordon_form_get(&form, "c"), "<x>");
	assert_string_equal(cordon_form_get(&form, "d"), "");
	assert_string_equal(cordon_form_get(&form, "e"), "");
	assert_null(cordon_form_get(&form, "f"));
}

static void broken_forms_are_refused(void **state)
{
	static const char *const texts[] = { "a=%", "a=%4", "a=%zz", "a=%00", "%ff=1", "a=%c3%28", "a=%ed%a0%80" };
	struct cordon_form form;
	char many[2 * CORDON_FORM_FIELDS_MAX + 2];

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(texts); i++)
		assert_int_equal(cordon_form_parse(texts[i], strlen(texts[i]), &form), -EINVAL);
	assert_int_equal(cordon_form_parse("a\0b", 3, &form), -EINVAL);
	for (size_t i = 0; i < sizeof(many); i++)
		many[i] = i % 2 ? '&' : 'a';
	assert_int_equal(cordon_form_parse(many, sizeof(many), &form), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_escaped_and_literals_are_not),
		cmocka_unit_test(long_strings_are_cut_at_a_whole_character),
		cmocka_unit_test(colours_become_classes_and_other_sequences_vanish),
		cmocka_unit_test(forms_are_read_as_browsers_write_them),
		cmocka_unit_test(broken_forms_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
