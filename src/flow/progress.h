/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a run stands. It follows from the definition and the journal alone: the engine, `status` and `resume` all get it by
 * applying the events one by one, so they can't disagree. Pure.
 */
#ifndef CORDON_FLOW_PROGRESS_H
#define CORDON_FLOW_PROGRESS_H

#include "flow/flow.h"

#define CORDON_FLOW_LOST_MAX 5 /* how often in a row a supervisor may be lost before the run fails */

struct cordon_flow_step_state {
	unsigned int attempt;  /* of the latest, 0 before the first */
	unsigned int failures; /* since the step was entered */
	unsigned int finished; /* how often */
	bool failed;	       /* the latest attempt */
	json_t *outputs;       /* of the latest that finished; borrowed from the events; or NULL */
	const char *decision;  /* the same */
	const char *error;     /* why the latest attempt failed; the same */
	int64_t ended;
};

struct cordon_flow_progress {
	cordon_flow_state state;
	size_t at;	 /* the step that runs, waits or comes next; CORDON_FLOW_END: the workflow has ended */
	bool open;	 /* an attempt began and has not ended */
	bool revoked;	 /* the latest attempt was ended because its grant was revoked */
	bool rejected;	 /* the workflow ends because a review without on_reject has rejected */
	uint64_t serial; /* of the latest attempt */
	uint64_t iterations;
	uint64_t used_ms;
	unsigned int lost; /* attempts in a row that began and never ended */
	const char *reason;
	const char *crew, *job; /* of the latest engine and attempt, or NULL */
	const json_t *areas;	/* of the latest attempt */
	const char *dir;	/* identity of the directory of the latest finished step, or NULL */
	uint64_t dir_serial;
	const char *view; /* with what the latest finished step changed in the private workspace; or NULL */
	int64_t updated;
	json_t *files; /* paths of all outputs that are files */
	struct cordon_flow_step_state steps[CORDON_FLOW_STEPS_MAX];
	const char *blocked; /* a step that the next one needs, and that has not finished; or NULL */
};

/* Applies all events, which must live as long as the progress. */
void cordon_flow_progress_init(struct cordon_flow_progress *progress, const struct cordon_flow_run *run,
			       const json_t *events);
void cordon_flow_progress_add(struct cordon_flow_progress *progress, const struct cordon_flow_run *run,
			      const json_t *event);
void cordon_flow_progress_done(struct cordon_flow_progress *progress);

/* Why the run must end before its next step; NULL when it may go on. */
const char *cordon_flow_must_end(const struct cordon_flow_progress *progress, const struct cordon_flow_run *run);

#endif
