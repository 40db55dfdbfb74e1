/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time in RFC 3339. The calendar is computed here: gmtime_r() would read /etc/localtime at every start. */
#include <stdio.h>
#include <time.h>

#include "base/time.h"

#define DAY_MS INT64_C(86400000)
#define TIME_MIN INT64_C(-62167219200000) /* 0000-01-01T00:00:00.000Z */
#define TIME_MAX INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

static int64_t clock_ms(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) < 0)
		return 0;
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t cordon_time_now(void)
{
	return clock_ms(CLOCK_REALTIME);
}

int64_t cordon_time_monotonic(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

static bool leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int month_days(int64_t year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return days[month - 1] + (month == 2 && leap(year));
}

/* Days from 0000-01-01 to the first of January of `year` (0 to 10000). */
static int64_t days_before_year(int64_t year)
{
	int64_t y = year - 1; /* the last whole year; year 0 is a leap year */

	return year == 0 ? 0 : 366 + y * 365 + y / 4 - y / 100 + y / 400;
}

void cordon_time_format(int64_t ms, char ret[static CORDON_TIME_SIZE])
{
	int64_t days, rest, year;
	int month = 1;

	if (ms < TIME_MIN)
		ms = TIME_MIN;
	if (ms > TIME_MAX)
		ms = TIME_MAX;
	days = (ms - TIME_MIN) / DAY_MS;
	rest = (ms - TIME_MIN) % DAY_MS;
	year = days * 400 / 146097;
	while (days_before_year(year) > days)
		year--;
	while (days_before_year(year + 1) <= days)
		year++;
	days -= days_before_year(year);
	while (days >= month_days(year, month))
		days -= month_days(year, month++);
	/* The remainders tell the compiler what the limits above already ensure: it all fits. */
	snprintf(ret, CORDON_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned int)year % 10000,
		 (unsigned int)month % 100, ((unsigned int)days + 1) % 100, (unsigned int)(rest / 3600000) % 100,
		 (unsigned int)(rest / 60000 % 60), (unsigned int)(rest / 1000 % 60), (unsigned int)(rest % 1000));
}

/* Exactly `digits` digits, within [min, max]; moves *s behind them. */
static bool number(const char **s, int digits, int min, int max, int *ret_value)
{
	int value = 0;

	for (int i = 0; i < digits; i++, (*s)++) {
		if (**s < '0' || **s > '9')
			return false;
		value = value * 10 + (**s - '0');
	}
	*ret_value = value;
	return value >= min && value <= max;
}

static bool skip(const char **s, char c)
{
	if (**s != c)
		return false;
	(*s)++;
	return true;
}

static bool fraction(const char **s, int *ret_ms)
{
	int scale = 100;

	*ret_ms = 0;
	if (!skip(s, '.'))
		return true;
	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; (*s)++, scale /= 10)
		*ret_ms += (**s - '0') * scale;
	return true;
}

/* 'Z' or +hh:mm. *ret_minutes is what to subtract to get UTC. */
static bool offset(const char **s, int *ret_minutes)
{
	int hour, minute, sign = **s == '-' ? -1 : 1;

	*ret_minutes = 0;
	if (skip(s, 'Z') || skip(s, 'z'))
		return true;
	if (!skip(s, '+') && !skip(s, '-'))
		return false;
	if (!number(s, 2, 0, 23, &hour) || !skip(s, ':') || !number(s, 2, 0, 59, &minute))
		return false;
	*ret_minutes = sign * (hour * 60 + minute);
	return true;
}

int cordon_time_parse(const char *s, int64_t *ret_ms)
{
	int year, month, day, hour = 0, minute = 0, second = 0, ms = 0, zone = 0;
	int64_t days;

	if (!number(&s, 4, 0, 9999, &year) || !skip(&s, '-') || !number(&s, 2, 1, 12, &month) || !skip(&s, '-') ||
	    !number(&s, 2, 1, month_days(year, month), &day))
		return -EINVAL;
	if (*s) {
		if (!skip(&s, 'T') && !skip(&s, 't') && !skip(&s, ' '))
			return -EINVAL;
		/* 60 is a leap second; it counts as the first second of the next minute. */
		if (!number(&s, 2, 0, 23, &hour) || !skip(&s, ':') || !number(&s, 2, 0, 59, &minute) ||
		    !skip(&s, ':') || !number(&s, 2, 0, 60, &second) || !fraction(&s, &ms) || !offset(&s, &zone) || *s)
			return -EINVAL;
	}
	days = days_before_year(year) + day - 1;
	for (int m = 1; m < month; m++)
		days += month_days(year, m);
	*ret_ms = TIME_MIN + days * DAY_MS + (hour * 60 + minute - zone) * INT64_C(60000) + second * INT64_C(1000) + ms;
	return 0;
}
