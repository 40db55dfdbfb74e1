/* SPDX-License-Identifier: Apache-2.0 */
/* The time line of the page: every event is counted once, in the bar of its time, however far apart events are. */
#include "unit.h"

#include "page/timeline.h"

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)
#define NOW (INT64_C(1767323045) * SECOND) /* 2026-01-02T03:04:05Z */

static uint64_t sum(const struct cordon_timeline *line, bool refused)
{
	uint64_t n = 0;

	for (size_t i = 0; i < cordon_timeline_bars(line); i++)
		n += refused ? cordon_timeline_refused(line, i) : cordon_timeline_all(line, i);
	return n;
}

/* The bar in which a time is, or -1. */
static int bar_of(const struct cordon_timeline *line, int64_t time)
{
	for (size_t i = 0; i < cordon_timeline_bars(line); i++)
		if (time >= cordon_timeline_time(line, i) && time < cordon_timeline_time(line, i + 1))
			return (int)i;
	return -1;
}

static void events_stand_in_the_bar_of_their_time(void **state)
{
	struct cordon_timeline line;

	(void)state;
	cordon_timeline_init(&line, NOW);
	assert_int_equal(cordon_timeline_bars(&line), 30);
	assert_int_equal(sum(&line, false), 0);
	cordon_timeline_add(&line, NOW, false);
	cordon_timeline_add(&line, NOW - 10 * SECOND, true);
	assert_string_equal(cordon_timeline_width(&line), "1 second");
	assert_int_equal(cordon_timeline_all(&line, (size_t)bar_of(&line, NOW)), 1);
	assert_int_equal(cordon_timeline_refused(&line, (size_t)bar_of(&line, NOW - 10 * SECOND)), 1);
	/* What is later than the end, because a clock was set, is in the last bar. */
	cordon_timeline_add(&line, NOW + DAY, false);
	assert_int_equal(cordon_timeline_all(&line, cordon_timeline_bars(&line) - 1), 2);
}

static void bars_become_wider_and_lose_nothing(void **state)
{
	static const int64_t ago[] = { 0, 1, 59, 60, 61, 600, 3600, 7200, 86400, 864000, 31536000, 315360000, 1700000000 };
	struct cordon_timeline line;
	uint64_t n = 0;

	(void)state;
	cordon_timeline_init(&line, NOW);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(ago); i++) {
		cordon_timeline_add(&line, NOW - ago[i] * SECOND, i % 2);
		n++;
		assert_int_equal(sum(&line, false), n);
		assert_int_equal(sum(&line, true), n / 2);
		assert_true(cordon_timeline_bars(&line) <= CORDON_TIMELINE_BARS);
		assert_true(bar_of(&line, NOW - ago[i] * SECOND) >= 0 && bar_of(&line, NOW) >= 0);
		assert_true(cordon_timeline_all(&line, (size_t)bar_of(&line, NOW - ago[i] * SECOND)) > 0);
	}
	/* Further than the widest bars reach, also before 1970. */
	cordon_timeline_add(&line, -1000 * 365 * DAY, false);
	assert_int_equal(sum(&line, false), n + 1);
}

static void time_line_reaches_back_to_what_was_asked_for(void **state)
{
	struct cordon_timeline line;

	(void)state;
	cordon_timeline_init(&line, NOW);
	cordon_timeline_add(&line, NOW - SECOND, false);
	cordon_timeline_reach(&line, NOW - 7 * DAY);
	assert_string_equal(cordon_timeline_width(&line), "3 hours");
	assert_true(bar_of(&line, NOW - 7 * DAY) == 0 && sum(&line, false) == 1);
	assert_int_equal(cordon_timeline_all(&line, (size_t)bar_of(&line, NOW - SECOND)), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_stand_in_the_bar_of_their_time),
		cmocka_unit_test(bars_become_wider_and_lose_nothing),
		cmocka_unit_test(time_line_reaches_back_to_what_was_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
