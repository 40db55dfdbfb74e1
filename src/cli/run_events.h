/* SPDX-License-Identifier: Apache-2.0 */
/* What happens during a run, told twice: to the person on stderr, and to the audit log. */
#ifndef CORDON_CLI_RUN_EVENTS_H
#define CORDON_CLI_RUN_EVENTS_H

#include "audit/audit.h"
#include "cli/voice.h"
#include "sandbox/launch.h"

struct cordon_run_events {
	struct cordon_voice voice;
	const struct cordon_policy *policy;
	struct cordon_audit *audit;
	bool hush; /* what is only warned of is recorded, not said */
};

/* With `quiet` (a dry run) nothing is recorded. */
int cordon_run_events_init(struct cordon_run_events *events, struct cordon_cli *cli, const struct cordon_home *home,
			   const char *run_id, const struct cordon_policy *policy, bool quiet, struct cordon_error *err);
/* Says what stderr has not taken yet. */
void cordon_run_events_done(struct cordon_run_events *events);

/* A run does not begin without its record. */
int cordon_run_events_start(struct cordon_run_events *events, const struct cordon_plan *plan, struct cordon_error *err);
void cordon_run_events_take(void *data, const struct cordon_event *event);
void cordon_run_events_end(struct cordon_run_events *events, const struct cordon_result *result);
void cordon_run_events_refused(struct cordon_run_events *events, const struct cordon_error *err);

#endif
