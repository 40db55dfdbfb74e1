/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that outlive the one that starts them. */
#ifndef CORDON_BASE_CHILD_H
#define CORDON_BASE_CHILD_H

#include <sys/types.h>

#include "base/util.h"

struct cordon_detach {
	int error_fd;	 /* becomes standard error; 0: /dev/null, as the other two streams */
	bool keep_cwd;	 /* else the working directory is "/" */
	const int *kept; /* descriptors that stay open, by the same numbers; no others do */
	size_t n_kept;
};

/*
 * Returns twice: with 0 in a new process, with the number of that process in the caller, or with -errno. The new process has
 * a session of its own and no parent that waits for it, no signal is blocked, and each has its default action. Until exec it
 * must make async-signal-safe calls only if the caller has threads.
 */
pid_t cordon_child_detach(const struct cordon_detach *how);

#endif
