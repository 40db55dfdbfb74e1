/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's process and the hand set their resource limits and CPU affinity. */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/inside/limits.h"

int cordon_limits_child(const struct cordon_limits_choice *choice)
{
	if (choice->by[CORDON_LIMIT_PIDS] == CORDON_LIMITS_BY_RLIMIT) {
		rlim_t pids = (rlim_t)choice->limits.pids + choice->limits.pids_own;
		struct rlimit limit = { pids, pids };

		if (setrlimit(RLIMIT_NPROC, &limit) < 0)
			return -errno;
	}
	if (choice->by[CORDON_LIMIT_CPUS] == CORDON_LIMITS_BY_AFFINITY &&
	    syscall(SYS_sched_setaffinity, 0, choice->cpu_mask_bytes, choice->cpu_mask) < 0)
		return -errno;
	return 0;
}
