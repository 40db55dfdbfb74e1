/* SPDX-License-Identifier: Apache-2.0 */
/* What the watch knows of the run that it watches. */
#ifndef CORDON_SANDBOX_WATCH_WATCHED_H
#define CORDON_SANDBOX_WATCH_WATCHED_H

#include "policy/policy.h"
#include "sandbox/plan/plan.h"

struct cordon_hand;

struct cordon_watched {
	const struct cordon_plan *plan;
	const struct cordon_policy *policy;
	const struct cordon_observer *observer; /* receives refusals and warnings; its event() is not NULL */
	struct cordon_hand *hand;		/* takes requests for the hand */
	unsigned int filters;			/* the number of seccomp filters with which the agent starts */
	/* Called before a report: forwards what the agent has written until now, so that the report comes after it. */
	void (*forward_output)(void *data);
	void *data;
};

#endif
