/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a plan into JSON values (docs/plan-schema.json) that callers put into larger ones; cordon.h declares the
 * functions that return the whole text. */
#ifndef CORDON_SANDBOX_PLAN_PRINT_H
#define CORDON_SANDBOX_PLAN_PRINT_H

#include <jansson.h>

#include "sandbox/plan/plan.h"

/* These return new references; NULL when there is no memory. */
json_t *cordon_plan_json(const struct cordon_plan *plan);
/* `by` names the mechanism that enforces each limit, indexed by enum cordon_limit; an entry is NULL when nothing does.
 * `by` itself may be NULL. */
json_t *cordon_plan_limits_json(const struct cordon_plan *plan, const char *const *by);
json_t *cordon_plan_protected_json(const struct cordon_plan *plan);
/* Sentences about what a program in the run would not meet on a newer kernel. */
json_t *cordon_plan_differs_json(const struct cordon_plan *plan);

#endif
