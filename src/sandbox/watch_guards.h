/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded names (protected ones that are missing): which call would make one, and who made the one that stands there. */
#ifndef CORDON_SANDBOX_WATCH_GUARDS_H
#define CORDON_SANDBOX_WATCH_GUARDS_H

#include "sandbox/launch.h"
#include "sandbox/watch_calls.h"

struct cordon_watch_guards;

/* NULL without memory; freed with free(). The child is borrowed. */
struct cordon_watch_guards *cordon_watch_guards_new(const struct cordon_child *child);

/* Of a call that makes a name: the guard whose name that is, and the call must be refused; or NULL, and it is remembered
 * as one that was let through. `root_fd` is the root directory that the agent's processes have, or -1. */
const struct cordon_guard *cordon_watch_guards_judge(struct cordon_watch_guards *guards, int root_fd,
						     const struct cordon_touch *touch);

/* Whether the name that stands there was probably made from inside: the agent tried to make that very name lately,
 * or a creation that was let through just before it did not make what it said it would. */
bool cordon_watch_guards_blame(const struct cordon_watch_guards *guards, int root_fd, const struct cordon_guard *guard);

#endif
