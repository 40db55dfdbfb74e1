/* SPDX-License-Identifier: Apache-2.0 */
/* What a run changed in its view, and the commands that make sense then; after the run, on stderr. */
#ifndef CORDON_CLI_VIEW_SUMMARY_H
#define CORDON_CLI_VIEW_SUMMARY_H

#include "cli/cli.h"
#include "view/view.h"

/* Prints what the host would execute of it first, then the counts and the commands. */
void cordon_view_summary(const struct cordon_cli *cli, const struct cordon_view *view);
/* The same on one line. */
void cordon_view_notice(const struct cordon_cli *cli, const struct cordon_view *view);

#endif
