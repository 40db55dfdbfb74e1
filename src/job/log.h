/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a session, a ring on disk: one JSON object per line in `events`. When this file has CORDON_EVENTS_RING
 * events or CORDON_EVENTS_BYTES bytes, it becomes `events.old` and a new file begins. So the last CORDON_EVENTS_RING
 * events are kept, unless they are larger than CORDON_EVENTS_BYTES, and the two files have about 2 ×
 * CORDON_EVENTS_BYTES bytes at most. One process writes.
 *
 *     {"index": 7, "time": "...", "type": "stdout", "text": "hello\n"}
 *
 * Types: started, message (sent to the program), stdout, stderr, violation, notice, warning, ended.
 */
#ifndef CORDON_JOB_LOG_H
#define CORDON_JOB_LOG_H

#include <jansson.h>

#include "base/error.h"

#define CORDON_EVENTS_RING 1000
#define CORDON_EVENTS_BYTES ((uint64_t)8 << 20)
#define CORDON_EVENT_TEXT_MAX 8192

struct cordon_job_log {
	int dir_fd; /* borrowed */
	int fd;
	int64_t last; /* index of the last event, -1 before the first */
	size_t in_file;
	uint64_t bytes;
};

/* clang-format off */
#define CORDON_JOB_LOG_NONE { .dir_fd = -1, .fd = -1, .last = -1 }
/* clang-format on */

/* Continues after the last event in the files, and cuts off half a line that a killed writer left. */
int cordon_job_log_open(int dir_fd, struct cordon_job_log *ret_log, struct cordon_error *err);
void cordon_job_log_done(struct cordon_job_log *log);
/* Adds an event. The text may have any bytes: those that are not UTF-8 are written as \xNN. A text longer than
 * CORDON_EVENT_TEXT_MAX becomes several events. Returns 0 or -errno. */
int cordon_job_log_add(struct cordon_job_log *log, const char *type, const char *role, const char *text, size_t n);

/* Reads the events after index `since`, at most `max` (0: all). *ret_dropped counts those that are not kept any
 * more. */
int cordon_job_log_read(int dir_fd, int64_t since, size_t max, json_t **ret_events, int64_t *ret_last,
			int64_t *ret_dropped, struct cordon_error *err);

#endif
