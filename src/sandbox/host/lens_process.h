/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of cordon-lens: starts it for a mounted view, gives a descriptor that shows its death, and ends
 * it. */
#ifndef CORDON_SANDBOX_HOST_LENS_PROCESS_H
#define CORDON_SANDBOX_HOST_LENS_PROCESS_H

#include <sys/resource.h>

#include "policy/policy.h"
#include "sandbox/plan/plan.h"

struct cordon_lens_process {
	pid_t pid;
	int pidfd;	     /* readable when the process has ended; -1 when there is none */
	struct rusage usage; /* once it has ended */
	int refusals_fd;     /* brings the records of its refusals, for cordon_lens_reports_start(), which takes it */
};

/* clang-format off */
#define CORDON_LENS_PROCESS_NONE { .pid = -1, .pidfd = -1, .refusals_fd = -1 }
/* clang-format on */

/* Starts the cordon-lens that lies beside our own program, else the installed one, and waits until it answers.
 * `root_fd` is the tree that it shows, `meter_fd` the memory of its meter (sandbox/host/metrics.h), or -1. Takes fuse_fd. */
int cordon_lens_start(const struct cordon_policy *policy, const struct cordon_plan *plan, int root_fd, int fuse_fd,
		      int meter_fd, struct cordon_lens_process *ret_process, struct cordon_error *err);
/* Asks the lens to end, after the view is gone; it removes the temporary names that are left. Kills it when it does not
 * end in time. */
void cordon_lens_stop(struct cordon_lens_process *process);

#endif
