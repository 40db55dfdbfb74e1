/* SPDX-License-Identifier: Apache-2.0 */
/* Names and ids for the completions of shells. */
#ifndef CORDON_CLI_COMPLETION_IDS_H
#define CORDON_CLI_COMPLETION_IDS_H

#include "base/error.h"

/* The kinds, as words of a choice (cli.h). Runs are those of the audit log, crews those of 'cordon execute', views those of
 * 'cordon changes'. */
#define CORDON_ID_KINDS                                                                                                \
	"projects|workspaces|sessions|runs|crews|workflow-runs|views|orchestrators|areas|channel-profiles|approvals"

/* Prints those that begin with `beginning`, one per line: the name or id, a tab, and what it is. */
int cordon_cli_completion_ids(const char *kind, const char *project, const char *beginning, struct cordon_error *err);

#endif
