/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of a run: one JSON object per line, only ever appended to. A line counts when its newline is there, so a
 * writer that is killed at any instant leaves whole lines, and at most half a line that the next writer cuts off.
 *
 *     {"seq":1,"time":"...","event":"engine","crew":"<uuid>","pid":123}   an engine begins
 *     {"event":"attempt","n":1,"step":"plan","attempt":1,"job":"plan.1","areas":["docs"],"view":"<uuid>"}   an agent is about to start
 *     {"event":"end","n":1,"result":"complete"|"failed","outputs":{},"files":[],"dir":"dev:ino","view":"<uuid>",...}   it has ended
 *     {"event":"wait","step":"check"}                          a person has to decide
 *     {"event":"answer","decision":"approve","note":"..."}     the person has decided
 *     {"event":"done","state":"succeeded","reason":""}         the run has ended
 */
#ifndef CORDON_FLOW_JOURNAL_H
#define CORDON_FLOW_JOURNAL_H

#include <jansson.h>

#include "base/error.h"

#define CORDON_FLOW_JOURNAL_LINE_MAX ((size_t)8 << 20)
#define CORDON_FLOW_JOURNAL_MAX ((size_t)256 << 20)
#define CORDON_FLOW_JOURNAL_SPARE ((size_t)1 << 20) /* what outputs leave free for the end of the run */

struct cordon_flow_journal {
	int fd;
	uint64_t seq; /* of the last line */
};

/* clang-format off */
#define CORDON_FLOW_JOURNAL_NONE { .fd = -1 }
/* clang-format on */

/* The whole lines of a text as an array. */
int cordon_flow_journal_parse(const char *text, size_t len, json_t **ret_events, struct cordon_error *err);
/* Reads all whole lines as an array. */
int cordon_flow_journal_read(int run_fd, json_t **ret_events, struct cordon_error *err);
/* Opens it for the holder of the run's lock; cuts off half a line. `events` is what is in it, as read before under the same
 * lock. */
int cordon_flow_journal_open(int run_fd, const json_t *events, struct cordon_flow_journal *ret_journal,
			     struct cordon_error *err);
void cordon_flow_journal_done(struct cordon_flow_journal *journal);
/* Adds `seq` and `time` to the event, which stays the caller's, and appends it. -E2BIG when the journal has no room for more
 * outputs; there is always room for the end of the run. It is on the disk when this returns 0. */
int cordon_flow_journal_add(struct cordon_flow_journal *journal, json_t *event, struct cordon_error *err);

#endif
