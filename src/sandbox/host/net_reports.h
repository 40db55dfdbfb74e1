/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor reports what cordon-net refused. */
#ifndef CORDON_SANDBOX_HOST_NET_REPORTS_H
#define CORDON_SANDBOX_HOST_NET_REPORTS_H

#include "sandbox/host/net_process.h"

/* Receives the records that are there and calls the observer for each. 0; -EIO when cordon-net could not begin, which
 * result->error explains; -EPIPE when it has ended. */
int cordon_net_reports_read(const struct cordon_net_process *process, const struct cordon_observer *observer,
			    struct cordon_result *result);

#endif
