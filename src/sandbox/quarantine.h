/* SPDX-License-Identifier: Apache-2.0 */
/* Takes away what an agent made under a guarded name: into the run's record, so that nothing is lost. */
#ifndef CORDON_SANDBOX_QUARANTINE_H
#define CORDON_SANDBOX_QUARANTINE_H

#include "sandbox/plan.h"

/*
 * Moves the guarded name out of the root into `quarantine_fd`. On another file system it is first renamed, in one
 * step, to a name that means nothing, then regular files are copied (bounded) and the rest is removed. Follows no
 * link. 0 or -errno; -ENOENT when it is gone already.
 */
int cordon_quarantine_take(int root_fd, const struct cordon_guard *guard, int quarantine_fd);

#endif
