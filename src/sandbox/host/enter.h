/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor asks PID 1 to start another program in a sandbox that already runs; sandbox/inside/door.h is PID 1's
 * side. */
#ifndef CORDON_SANDBOX_HOST_ENTER_H
#define CORDON_SANDBOX_HOST_ENTER_H

#include "sandbox/host/launch.h"
#include "sandbox/inside/door.h"

/*
 * For sandboxes whose plan is `enterable`; call it from within the observer's serve(). `number` (not 0) names the
 * program in the event CORDON_EVENT_LEFT, which comes once. The streams are borrowed, and must be pipes: through a file
 * of the host the program could reach the host.
 */
int cordon_enter(const struct cordon_child *child, uint32_t number, char *const *argv, const int streams[static 3],
		 struct cordon_error *err);
/* Kills the program's process group. */
void cordon_enter_end(const struct cordon_child *child, uint32_t number);

#endif
