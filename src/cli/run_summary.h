/* SPDX-License-Identifier: Apache-2.0 */
/* A few lines after a run: what changed, what was refused, and what the host would execute of it. */
#ifndef CORDON_CLI_RUN_SUMMARY_H
#define CORDON_CLI_RUN_SUMMARY_H

#include <time.h>

#include "cli/cli.h"
#include "sandbox/launch.h"

#define CORDON_SUMMARY_REFUSED 5 /* attempts that are shown */
#define CORDON_SUMMARY_FOLDERS 5 /* folders from which something was removed */

struct cordon_run_summary {
	struct timespec since;
	size_t refused;			     /* attempts, repeated ones included */
	char *shown[CORDON_SUMMARY_REFUSED]; /* "write src/x" */
	size_t n_shown;
	size_t untold;
};

/* Before the agent starts. */
void cordon_run_summary_begin(struct cordon_run_summary *summary);
void cordon_run_summary_event(struct cordon_run_summary *summary, const struct cordon_event *event);
/* Looks at the tree and says it on stderr. */
void cordon_run_summary_end(struct cordon_run_summary *summary, const struct cordon_cli *cli,
			    const struct cordon_child *child);
void cordon_run_summary_done(struct cordon_run_summary *summary);

#endif
