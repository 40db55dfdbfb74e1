/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor reports what cordon-net refused. */
#ifndef CORDON_SANDBOX_HOST_NET_REPORTS_H
#define CORDON_SANDBOX_HOST_NET_REPORTS_H

#include "sandbox/host/net_process.h"

/* What to poll for input; or -1. */
int cordon_net_poll(const struct cordon_net_process *process);
/* Call it when there is input: starts cordon-net, which the run needs now, or passes what it has to say to the observer.
 * When it has ended, the observer hears of that, too. -EIO when it could not begin: result->error says why, and the run
 * must end. */
int cordon_net_serve(struct cordon_net_process *process, const struct cordon_observer *observer,
		     struct cordon_result *result);
/* The run is over: passes on what cordon-net has still to tell, for a moment at most, and ends it. */
void cordon_net_end(struct cordon_net_process *process, const struct cordon_observer *observer,
		    struct cordon_result *result);

#endif
