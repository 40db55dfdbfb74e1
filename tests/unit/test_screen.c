/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the state in which output leaves a terminal, when it comes in one piece and when it comes in any two pieces. */
#include "unit.h"

#include "sandbox/host/screen.h"

static const struct {
	const char *bytes;
	bool mid_line, alternate, left;
} cases[] = {
	{ "", false, false, false },
	{ "text", true, false, false },
	{ "text\n", false, false, false },
	{ "text\r\n", false, false, false },
	{ "50 %\r", true, false, false },
	{ "a\n\x1b[1m\x1b[0m", false, false, false },
	{ "a\n\x1b[31mred", true, false, false },
	{ "a\n\x1b(B\x1b=\x1b]0;a title\x07", false, false, false },
	{ "a\n\x1b]8;;http://x\x1b\\", false, false, false },
	{ "\x1b[?1049h", false, true, false },
	{ "\x1b[?47h", false, true, false },
	{ "\x1b[?1047h", false, true, false },
	{ "\x1b[?25;1049;1h", false, true, false },
	{ "\x1b[?1049;25h", false, true, false },
	{ "\x1b[?2004h", false, false, false },
	{ "\x1b[?10490h\x1b[?104h\x1b[1049h\x1b[?1049n", false, false, false },
	{ "\x1b[?99999999999991049h", false, false, false },
	{ "\x1b]0;\x1b[?1049h\x07", false, false, false },
	{ "\x1b[?1049hdrawn\x1b[?1049l", false, false, true },
	{ "prompt\x1b[?1049hdrawn\n\x1b[?1049l", true, false, true },
	{ "line\n\x1b[?1049hdrawn\x1b[?1049lmore", true, false, true },
	{ "\x1b[?1049hdrawn\x1b"
	  "c",
	  false, false, true },
	{ "\x1b[?1049l", false, false, false },
	{ "\x1b[?1049h\x1b[?1049l\x1b[?1049h", false, true, true },
	{ "\x1b[?10\x1b[?1049h", false, true, false },
};

static void expect(const struct cordon_screen *screen, size_t i)
{
	assert_int_equal(screen->mid_line && !screen->alternate, cases[i].mid_line);
	assert_int_equal(screen->alternate, cases[i].alternate);
	assert_int_equal(screen->left, cases[i].left);
}

static void screen_is_followed_however_the_bytes_come(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		size_t n = strlen(cases[i].bytes);

		for (size_t at = 0; at <= n; at++) {
			struct cordon_screen screen = { 0 };

			cordon_screen_update(&screen, cases[i].bytes, at);
			cordon_screen_update(&screen, cases[i].bytes + at, n - at);
			expect(&screen, i);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(screen_is_followed_however_the_bytes_come) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
