/* SPDX-License-Identifier: Apache-2.0 */
/* The summary after a run: what changed, what was refused, and what the host may execute of it. */
#ifndef CORDON_CLI_RUN_SUMMARY_H
#define CORDON_CLI_RUN_SUMMARY_H

#include <time.h>

#include "cli/cli.h"
#include "policy/policy.h"
#include "view/view.h"

#define CORDON_SUMMARY_REFUSED 5 /* attempts that are listed */
#define CORDON_SUMMARY_FOLDERS 5 /* folders listed from which something was removed */

struct cordon_run_summary {
	struct timespec since;
	size_t refused, warned;		     /* attempts, repeated ones included */
	char *shown[CORDON_SUMMARY_REFUSED]; /* "write src/x" */
	size_t n_shown;
	size_t unlisted;
};

/* Call it before the agent starts. */
void cordon_run_summary_begin(struct cordon_run_summary *summary);
void cordon_run_summary_event(struct cordon_run_summary *summary, const struct cordon_event *event);
/* Looks for changes in the tree, or in the view of the run (may be NULL), and prints the summary on stderr. */
void cordon_run_summary_end(struct cordon_run_summary *summary, const struct cordon_cli *cli,
			    const struct cordon_policy *policy, const struct cordon_view *view,
			    const struct cordon_result *result);
void cordon_run_summary_done(struct cordon_run_summary *summary);

#endif
