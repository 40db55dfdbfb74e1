/* SPDX-License-Identifier: Apache-2.0 */
/* The limits that the agent's process and the hand set for themselves, as the supervisor chose them
 * (sandbox/host/limits.h). */
#ifndef CORDON_SANDBOX_INSIDE_LIMITS_H
#define CORDON_SANDBOX_INSIDE_LIMITS_H

#include <stddef.h>

#include "sandbox/plan/limits.h"

#define CORDON_LIMITS_CPUS 8192 /* the number of CPUs that our affinity mask has room for */

enum cordon_limits_by {
	CORDON_LIMITS_BY_NOTHING,
	CORDON_LIMITS_BY_CGROUP2,
	CORDON_LIMITS_BY_CGROUP1,
	CORDON_LIMITS_BY_RLIMIT,
	CORDON_LIMITS_BY_WATCHER,
	CORDON_LIMITS_BY_AFFINITY,
};

/* Descriptors that PID 1 passes to the watcher (sandbox/host/memory.h): they show its own namespaces. */
enum cordon_memory_fd {
	CORDON_MEMORY_PROC, /* its /proc */
	CORDON_MEMORY_SHM,  /* its /proc/sysvipc/shm */
	CORDON_MEMORY__MAX
};

/* Which mechanism enforces each limit. Plain data: the child reads its copy. */
struct cordon_limits_choice {
	struct cordon_limits limits;
	enum cordon_limits_by by[CORDON_LIMIT__MAX];
	unsigned long cpu_mask[CORDON_LIMITS_CPUS / (8 * sizeof(unsigned long))];
	size_t cpu_mask_bytes;
};

/* Sets resource limits and CPU affinity, which children inherit, in the agent's process, in its user namespace. When
 * by[CORDON_LIMIT_CPUS] is affinity, CORDON_SECCOMP_PIN_CPUS must be installed afterwards. Async-signal-safe; 0 or
 * -errno. */
int cordon_limits_child(const struct cordon_limits_choice *choice);

#endif
