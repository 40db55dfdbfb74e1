/* SPDX-License-Identifier: Apache-2.0 */
/* The limits that the user asks for a run: memory, processes and CPUs. */
#ifndef CORDON_SANDBOX_PLAN_LIMITS_H
#define CORDON_SANDBOX_PLAN_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#define CORDON_LIMITS_MEMORY_MIN (1024 * 1024)
#define CORDON_LIMITS_CPU_MIN 10 /* in thousandths of a CPU: the smallest quota that the kernel accepts */
#define CORDON_LIMITS_CPU_MAX (8192 * 1000)

enum cordon_limit { CORDON_LIMIT_MEMORY, CORDON_LIMIT_PIDS, CORDON_LIMIT_CPUS, CORDON_LIMIT__MAX };

/* The value 0 means "no limit". */
struct cordon_limits {
	uint64_t memory_bytes;
	uint32_t pids;	     /* processes and threads of the agent */
	uint32_t pids_own;   /* cordon's own processes inside (init); they do not count against the agent's limit */
	uint32_t cpu_millis; /* 1500 is one CPU and a half */
	bool user_namespace; /* the run has its own user namespace; without one RLIMIT_NPROC does not limit the run */
	bool best_effort;    /* leave out a limit that this machine can't enforce, instead of refusing the run */
};

#endif
