/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to the audit log what happens in a run: its start, refusals, what happened to its boundaries, and its end. */
#ifndef CORDON_RUN_AUDIT_H
#define CORDON_RUN_AUDIT_H

#include "audit/audit.h"
#include "sandbox/plan/plan.h"

struct cordon_run_audit {
	struct cordon_audit *log; /* NULL: nothing is recorded */
	const struct cordon_policy *policy;
};

/* An error when the start can't be recorded: then the run must not begin. */
int cordon_run_audit_start(struct cordon_run_audit *audit, const struct cordon_plan *plan, struct cordon_error *err);
void cordon_run_audit_event(struct cordon_run_audit *audit, const struct cordon_event *event);
void cordon_run_audit_end(struct cordon_run_audit *audit, const struct cordon_result *result);
void cordon_run_audit_refusal(struct cordon_run_audit *audit, const struct cordon_error *why);

#endif
