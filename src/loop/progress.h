/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a loop is, from the events of its journal: the one place that knows what an event means. The status, the board,
 * gc and the loop that goes on after a kill ask it. What the PRDs say and what waits beside the journal is theirs to add.
 */
#ifndef CORDON_LOOP_PROGRESS_H
#define CORDON_LOOP_PROGRESS_H

#include <jansson.h>

#include "base/error.h"

struct cordon_loop_progress {
	json_t *events; /* all of them, to which the texts below belong */
	/*
	 * By cordon_loop_story_key(): {"state", "attempts", "failures", "violations", "reason", "commit", "since",
	 * "duration_ms", "calls", "parked", "notes"}, as far as they are known. `notes` are [attempt, text] of calls that
	 * failed.
	 */
	json_t *stories;
	json_t *calls;	     /* by number, as cordon_loop_board() shows them */
	json_t *owners;	     /* stories, by the numbers of their calls */
	json_t *workers;     /* calls of the last process that have not ended, by number */
	json_t *views;	     /* views of all calls that have not ended, by number, and of what they are made on */
	json_t *accepted;    /* events of results that have not landed, oldest first */
	json_t *kept;	     /* [{"view", "story"}] of calls that the last process interrupted */
	const json_t *begin; /* the last event of this kind, or NULL */
	const char *crew, *boot, *base; /* of it, or NULL */
	const char *last_time;		/* of all events, or NULL */
	const char *landing;		/* the view that is being brought over, or NULL */
	const char *parent;		/* the commit on which those of `accepted` were made, or NULL: they were not */
	uint64_t n;			/* the highest number of a call */
	json_int_t iterations;		/* calls of the last process */
	json_int_t violations;
	bool done; /* the last event says that the loop has ended */
};

#define autoprogress CORDON_CLEANUP(cordon_loop_progress_done)

/* Keeps a reference to the events, and adds to those of accepted results the commits that were made of them. */
int cordon_loop_progress_read(json_t *events, struct cordon_loop_progress *ret_progress, struct cordon_error *err);
void cordon_loop_progress_done(struct cordon_loop_progress *progress);
/* The attempts of a story are given back; `event` names it. */
void cordon_loop_progress_retry(struct cordon_loop_progress *progress, const json_t *event);

/* The length of the id comes first, so that no two stories have one key. The caller frees it; NULL without memory. */
char *cordon_loop_story_key(const char *prd, const char *id);
/* NULL when no event names it. */
json_t *cordon_loop_progress_story(const struct cordon_loop_progress *progress, const char *prd, const char *id);
/* Whether a call has not ended. */
bool cordon_loop_call_is_open(const json_t *call);
/* Nobody said how these calls ended: the process that made them is gone. */
void cordon_loop_calls_end(const json_t *calls);

#endif
