/* SPDX-License-Identifier: Apache-2.0 */
/* Which step of a workflow a person answers. */
#ifndef CORDON_CLI_WORKFLOW_STEP_H
#define CORDON_CLI_WORKFLOW_STEP_H

#include "cli/cli.h"
#include "flow/flow.h"

/* A step, and how often it was answered before. */
struct cordon_cli_step {
	char step[CORDON_FLOW_ID_MAX + 1];
	uint64_t attempt;
};

/* The step that `given` names, as STEP or STEP:ATTEMPT; NULL: the one that waits, if a person says yes to it on the terminal. Returns 0, or
 * prints the error and returns the exit code. */
int cordon_cli_step_choose(const struct cordon_cli *cli, const struct cordon_home *home,
			   const struct cordon_flow_run *run, const char *given, bool approve,
			   struct cordon_cli_step *ret);

#endif
