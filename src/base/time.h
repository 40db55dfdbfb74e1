/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as milliseconds since 1970 in UTC, and their only written form, RFC 3339. */
#ifndef CORDON_BASE_TIME_H
#define CORDON_BASE_TIME_H

#include "base/util.h"

#define CORDON_TIME_SIZE 25 /* "2026-01-02T03:04:05.678Z" and a NUL */

/* The wall clock, for records; and a clock that never jumps, for intervals. Both in milliseconds. */
int64_t cordon_time_now(void);
int64_t cordon_time_monotonic(void);

/* Years 0 to 9999; a time outside is written as the nearest of them. Reads no time zone files. */
void cordon_time_format(int64_t ms, char ret[static CORDON_TIME_SIZE]);

/* RFC 3339 with 'T', 't' or a blank between date and time, any fraction (cut at milliseconds), 'Z' or an offset; a
 * date alone is its midnight in UTC. -EINVAL for anything else. */
int cordon_time_parse(const char *s, int64_t *ret_ms);

#endif
