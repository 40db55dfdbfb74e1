/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor knows of the run whose hands it listens to. */
#ifndef CORDON_SANDBOX_WATCH_WATCHED_H
#define CORDON_SANDBOX_WATCH_WATCHED_H

#include <stdatomic.h>

#include "base/meter.h"
#include "policy/policy.h"
#include "sandbox/inside/hand.h"
#include "sandbox/plan/plan.h"

struct cordon_watched {
	const struct cordon_plan *plan;
	const struct cordon_policy *policy;
	int workspace_fd;			/* the tree that the lens shows: the host's, or the view of the run */
	const struct cordon_observer *observer; /* receives refusals and warnings; its event() is not NULL */
	struct cordon_hand_memory *memory;	/* what the hands share with us; NULL when there are none */
	int ctl;				/* the notice socket to PID 1, which starts the hands; borrowed */
	/* The pids of the hands inside, by which reports of the lens recognise them; 0: none. */
	atomic_int hands[CORDON_HANDS_MAX];
	/* Called before a report: forwards what the agent has written until now, so that the report comes after it. */
	void (*forward_output)(void *data);
	struct cordon_meter *meter; /* or NULL */
	void *data;
};

#endif
