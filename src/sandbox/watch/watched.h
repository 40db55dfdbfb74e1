/* SPDX-License-Identifier: Apache-2.0 */
/* What the watch knows of the run that it watches. */
#ifndef CORDON_SANDBOX_WATCH_WATCHED_H
#define CORDON_SANDBOX_WATCH_WATCHED_H

#include "base/meter.h"
#include "policy/policy.h"
#include "sandbox/plan/plan.h"

struct cordon_hand;

/* The numbers that the plan's open directories have in a view, in the order of the plan. They are not those of the host's
 * directories. The first watch takes them, before the program can change anything. */
struct cordon_open_ids {
	bool known;
	struct {
		dev_t dev;
		ino_t ino; /* 0: it can't be found */
	} * dirs;	   /* NULL when there is no memory: then the hand makes all entries */
};

struct cordon_watched {
	const struct cordon_plan *plan;
	const struct cordon_policy *policy;
	int workspace_fd;			/* the tree that the lens shows: the host's, or the view of the run */
	const struct cordon_observer *observer; /* receives refusals and warnings; its event() is not NULL */
	struct cordon_hand *hand;		/* takes requests for the hand */
	struct cordon_open_ids *open_ids;	/* of a run in a view; the lock of the watches guards it */
	unsigned int filters;			/* the number of seccomp filters with which the agent starts */
	/* Called before a report: forwards what the agent has written until now, so that the report comes after it. */
	void (*forward_output)(void *data);
	struct cordon_meter *meter; /* or NULL; the lock of the watches guards it */
	void *data;
};

#endif
