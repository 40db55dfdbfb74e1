/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal: one JSON object per line, only ever appended to. Each has a number, `seq`, from 1 on, and a `time`. A line counts
 * when its newline is there, so a writer that is killed at any instant leaves whole lines, and at most half a line that the
 * next writer cuts off. Which events there are is the matter of whoever writes them.
 */
#ifndef CORDON_STATE_JOURNAL_H
#define CORDON_STATE_JOURNAL_H

#include <jansson.h>

#include "base/error.h"

#define CORDON_JOURNAL "journal" /* the name of the file */
#define CORDON_JOURNAL_MAX ((size_t)256 << 20)
#define CORDON_JOURNAL_LINE_MAX ((size_t)8 << 20)
#define CORDON_JOURNAL_SPARE ((size_t)1 << 20) /* what a bulky event leaves free for those that end it all */

struct cordon_journal {
	int fd;
	uint64_t seq; /* of the last line */
};

/* clang-format off */
#define CORDON_JOURNAL_NONE { .fd = -1 }
/* clang-format on */

typedef enum cordon_journal_how {
	CORDON_JOURNAL_SOON,	/* it is on the disk when the process ends, however it ends */
	CORDON_JOURNAL_DURABLE, /* it is on the disk when cordon_journal_add() returns 0 */
	CORDON_JOURNAL_BULKY,	/* the same, if the journal has room for more than what ends it; else -E2BIG */
} cordon_journal_how;

/* The whole lines of a text as an array; -EBADMSG when one is damaged. *ret_whole, unless NULL, is where the last one ends. */
int cordon_journal_parse(const char *text, size_t len, json_t **ret_events, size_t *ret_whole, struct cordon_error *err);
/* Reads the whole lines of the journal in a directory; with or without its lock. A missing journal is an empty one. */
int cordon_journal_read(int dir_fd, json_t **ret_events, struct cordon_error *err);
/* The same, and opens it for more; cuts off half a line. The caller has the lock that the journal is written under.
 * `ret_events` may be NULL. */
int cordon_journal_open(int dir_fd, struct cordon_journal *ret_journal, json_t **ret_events, struct cordon_error *err);
void cordon_journal_done(struct cordon_journal *journal);
/* Adds `seq` and `time` to the event, which stays the caller's, and appends it. */
int cordon_journal_add(struct cordon_journal *journal, json_t *event, cordon_journal_how how, struct cordon_error *err);
/* Begins anew. */
int cordon_journal_clear(struct cordon_journal *journal, struct cordon_error *err);

#endif
