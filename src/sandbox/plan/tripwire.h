/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tripwires: what must not be read stands in the agent's tree as a node of a small FUSE tree, so that each attempt reaches the
 * supervisor (sandbox/host/tripwire.h) without a trap for every open. The tree is a fixed table, made of the plan itself: steps
 * with CORDON_STEP_TRIP are its nodes, and each denied name has a file and a directory, of which PID 1 takes one when the host
 * makes that name during the run. The directory at the top has the nodes by their numbers; PID 1 mounts them from there:
 *
 *   - a MASK covers what is denied, and can be neither opened nor listed;
 *   - the skeleton of a root that is not granted is one mount, with its placeholders in it.
 */
#ifndef CORDON_SANDBOX_PLAN_TRIPWIRE_H
#define CORDON_SANDBOX_PLAN_TRIPWIRE_H

#include "sandbox/plan/plan.h"

#define CORDON_TRIPWIRES_MAX 64 /* masks; a run with more of them traps reads instead */
#define CORDON_TRIP_TOP 1	/* the number of the directory at the top */

static inline uint64_t cordon_trip_of_step(size_t i)
{
	return CORDON_TRIP_TOP + 1 + i;
}

static inline uint64_t cordon_trip_of_guard(const struct cordon_plan *plan, size_t i, bool dir)
{
	return CORDON_TRIP_TOP + 1 + plan->n_steps + 2 * i + dir;
}

struct cordon_trip_node {
	const char *inside; /* its path; "" for the top */
	bool dir;
	bool hidden; /* else it is a directory of the skeleton, or a place on which something is mounted */
};

/* False when there is no node with this number. */
bool cordon_trip_find(const struct cordon_plan *plan, uint64_t number, struct cordon_trip_node *ret);
/* The number of the entry of a directory that has this name; 0: none. */
uint64_t cordon_trip_entry(const struct cordon_plan *plan, uint64_t dir, const char *name);
/* The number of the first entry of a directory from `from` on; 0: none. *ret_name is its name. */
uint64_t cordon_trip_next(const struct cordon_plan *plan, uint64_t dir, uint64_t from, const char **ret_name,
			  char digits[static CORDON_DIGITS_SIZE]);

/* Whether something in the tree can't be read because of a rule. */
bool cordon_plan_hides(const struct cordon_plan *plan);
/* Marks the steps that become tripwires, if the run has use for them and FUSE can be used. Call it last. */
void cordon_plan_tripwires(struct cordon_plan *plan, const struct cordon_plan_spec *spec);

#endif
