/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private workspace of an orchestrator: a directory of mode 0700 with these names in it.
 *
 *     orchestrator.yaml     its agents and workflows
 *     prompts/, workflows/  what workflows refer to
 *     shared/<key>/         empty directories on the host, on which each step has the granted areas mounted
 *     work/runs/<run_id>/   the work areas of runs
 *
 * INVARIANT: agents write here, so everything is opened by component without following links.
 */
#ifndef CORDON_FLOW_PRIVATE_H
#define CORDON_FLOW_PRIVATE_H

#include "config/settings_file.h"

#define CORDON_PRIVATE_SHARED "shared"
#define CORDON_PRIVATE_RUNS "work/runs"

/* Opens the directory. With `make` it makes what is missing of its path, with mode 0700. -ENOENT of kind not_found when it
 * is missing otherwise. Refuses a directory of another user, one that others can write to, and one that is not what a
 * person said yes to (base/confirmed.h); with `make` the first use counts as that. */
int cordon_private_open(const struct cordon_orchestrator *orchestrator, bool make, int *ret_fd,
			struct cordon_error *err);
/* Makes the places where a step has its areas mounted, and takes away those of areas that are not granted any more, and
 * links to areas. Whatever else stands at such a place is an error. Also makes work/runs. */
int cordon_private_prepare(const struct cordon_settings_file *settings, const struct cordon_orchestrator *orchestrator,
			   int fd, struct cordon_error *err);
/* Opens a directory in a private workspace, and makes it (0700) when it is missing. The path has no links. */
int cordon_private_subdir(int fd, const char *path, int *ret_fd, struct cordon_error *err);

#endif
