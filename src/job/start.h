/* SPDX-License-Identifier: Apache-2.0 */
/* A start under way: start.c begins it and await.c waits for its end. */
#ifndef CORDON_JOB_START_H
#define CORDON_JOB_START_H

#include "base/buf.h"
#include "job/internal.h"

struct cordon_session_start {
	struct cordon_session_answer answer;
	int fd;			/* our end of the start's socket; -1 when there is nothing to wait for */
	int64_t due;		/* monotonic milliseconds */
	struct cordon_buf text; /* what the process has sent so far */
	bool cancelled;
};

/* What the steps of a start share; it owns none of these. */
struct starting {
	const struct cordon_store *store;
	const struct cordon_session_request *request;
	const struct cordon_project *project; /* with its lock held */
	const char *workspace;		      /* its id */
	int lock_fd;			      /* of the workspace */
	const char *message;		      /* for the program's standard input, or NULL */
	struct cordon_session_start *start;
};

/* Returns -EAGAIN while another process has one of the locks. */
int cordon_session_begin(const struct cordon_store *store, const struct cordon_session_request *request,
			 struct cordon_session_start *start, struct cordon_error *err);
/* Records which session it is. If it was spawned, sets the time at which its start has taken too long. */
void cordon_session_start_of(struct cordon_session_start *start, const struct cordon_session_record *record,
			     bool spawned);
/* Records that the program could not be started, and why; the session is then over. The caller holds the lock
 * `alive`. */
void cordon_session_refuse(const struct cordon_store *store, struct cordon_session_record *record,
			   const struct cordon_error *err);

#endif
