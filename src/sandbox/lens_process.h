/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of cordon-lens: start it on a mounted view, notice its death, let it end. */
#ifndef CORDON_SANDBOX_LENS_PROCESS_H
#define CORDON_SANDBOX_LENS_PROCESS_H

#include "policy/policy.h"

struct cordon_lens_process {
	pid_t pid;
	int pidfd; /* readable when it ended; -1 when there is none */
};

#define CORDON_LENS_PROCESS_NONE                                                                                       \
	{                                                                                                              \
		.pid = -1, .pidfd = -1                                                                                 \
	}

/* Starts the lens that lies beside our own program, else the installed one, and waits until it answers. Takes the
 * device. */
int cordon_lens_start(const struct cordon_policy *policy, int fuse_fd, struct cordon_lens_process *ret_process,
		      struct cordon_error *err);
/* The view is gone: the lens removes left-over temporary names and ends; after a while it is made to. */
void cordon_lens_stop(struct cordon_lens_process *process);

#endif
