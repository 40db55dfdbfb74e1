/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of a loop: one JSON object per line, only ever appended to. A line counts when its newline is there, so a
 * writer that is killed at any instant leaves whole lines, and at most half a line that the next writer cuts off. The
 * same objects are what an observer gets and what `cordon loop --json` prints.
 *
 *     {"seq":1,"time":"...","event":"begin","crew":"<uuid>","stories":12,"workers":4,
 *      "loop":"<id>","pid":1,"root":"/...","prds":["/..."]}        a loop begins, or goes on
 *     {"event":"call","n":1,"prd":"prd.json","story":"US-001","attempt":1,"view":"<uuid>","job":0}   an agent is about to start
 *     {"event":"check","n":1,"story":"US-001","job":1}         it has ended, and its result is checked
 *     {"event":"failed","n":1,"story":"US-001","counts":true,"note":"..."}     the call came to nothing
 *     {"event":"accepted","n":1,"story":"US-001","view":"<uuid>","commit":"..."}   its result is to be brought over
 *     {"event":"landing","calls":[1,2],"view":"<uuid>"}        these results are being brought over, in this order
 *     {"event":"passed","calls":[1,2],"stories":[...]}         they are in the host's tree, and the PRD says so
 *     {"event":"parked","story":"US-001","reason":"..."}
 *     {"event":"retry","story":"US-001","uid":1000}            a person gave it its attempts back
 *     {"event":"done"}                                         the loop has ended, and the next one begins anew
 */
#ifndef CORDON_LOOP_JOURNAL_H
#define CORDON_LOOP_JOURNAL_H

#include <jansson.h>

#include "base/error.h"

#define CORDON_LOOP_JOURNAL "journal" /* locked by the process that runs the loop */
#define CORDON_LOOP_JOURNAL_MAX ((size_t)256 << 20)
#define CORDON_LOOP_JOURNAL_LINE_MAX ((size_t)4 << 20)

struct cordon_loop_journal {
	int fd;
	uint64_t seq; /* of the last line */
};

/* clang-format off */
#define CORDON_LOOP_JOURNAL_NONE { .fd = -1 }
/* clang-format on */

/* Reads the whole lines as an array, and opens the journal for more. Half a line at the end is cut off. The caller has the
 * lock of the loop. */
int cordon_loop_journal_open(int dir_fd, struct cordon_loop_journal *ret_journal, json_t **ret_events,
			     struct cordon_error *err);
/* The same for whoever only looks, with or without the lock. */
int cordon_loop_journal_read(int dir_fd, json_t **ret_events, struct cordon_error *err);
void cordon_loop_journal_done(struct cordon_loop_journal *journal);
/* Adds `seq` and `time` to the event, which stays the caller's, and appends it. With `durable` it is on the disk when this
 * returns 0; all others are when the process ends, however it ends. */
int cordon_loop_journal_add(struct cordon_loop_journal *journal, json_t *event, bool durable, struct cordon_error *err);
/* Begins anew. */
int cordon_loop_journal_clear(struct cordon_loop_journal *journal, struct cordon_error *err);

#endif
