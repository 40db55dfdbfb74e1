/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the result of a run (struct cordon_result of cordon.h) into JSON: docs/result-schema.json. */
#ifndef CORDON_RUN_RESULT_H
#define CORDON_RUN_RESULT_H

#include <jansson.h>

#include "sandbox/plan/plan.h"

/* These return new references; NULL when there is no memory. */
json_t *cordon_result_json(const struct cordon_result *result);
/* The part of it that says which layers enforce the policy. */
json_t *cordon_result_enforcement(const struct cordon_result *result);
/* [{"path": ..., "executes": ..., "gitlink": ...}]; NULL when there are none. */
json_t *cordon_result_repositories(const struct cordon_result *result);
/* The names of the layers that such a run does not have and that no other layer replaces; empty unless the run is best
 * effort. */
json_t *cordon_missing_json(const struct cordon_plan *plan);

/* Fills the result of a run that was refused before it began. */
void cordon_result_refuse(struct cordon_result *result, const struct cordon_error *why);

#endif
