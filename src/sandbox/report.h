/* SPDX-License-Identifier: Apache-2.0 */
/* A plan and a result as JSON (docs/plan-schema.json, docs/result-schema.json), and a plan as text. */
#ifndef CORDON_SANDBOX_REPORT_H
#define CORDON_SANDBOX_REPORT_H

#include <jansson.h>

#include "sandbox/launch.h"

/* NULL without memory. */
json_t *cordon_plan_json(const struct cordon_plan *plan);
int cordon_plan_text(const struct cordon_plan *plan, struct cordon_buf *ret_text);
/* Names of the layers that are not on in such a run: empty, but for best effort. */
json_t *cordon_missing_json(cordon_tier tier, unsigned int landlock_abi);
/* `child` is NULL when the run was refused before it was launched. */
json_t *cordon_result_json(const char *run_id, const struct cordon_plan *plan, const struct cordon_child *child,
			   const struct cordon_result *result);

#endif
