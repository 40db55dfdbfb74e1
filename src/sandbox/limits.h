/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, process and CPU limits of a run, each by the best mechanism that this host lets us use:
 *
 *   limit    cgroup v2 / v1 (holds for the whole tree)           else
 *   memory   memory.max, no swap, memory.oom.group; v1 limit_in_bytes   RLIMIT_AS: per process, declared as "rlimit"
 *   pids     pids.max (threads count)                            RLIMIT_NPROC in the run's own user namespace
 *   cpus     cpu.max / cfs quota                                 affinity to ceil(N) CPUs
 *
 * A cgroup is made below the supervisor's own one (v2: or the nearest ancestor that hands out the controllers and
 * that we may write), found from /proc/self/cgroup and mountinfo and only when a limit was asked for. Its name is
 * CORDON_LIMITS_PREFIX + run id, so that what a killed supervisor leaves behind can be found and removed.
 *
 * RLIMIT_NPROC. Since 5.14 the kernel counts a user's processes per user namespace, so a limit set *inside* a new
 * one counts the run only. It must be set after the namespace was made: a limit that stands when the namespace is
 * made becomes the bound of its parent too, which counts everything else the user runs. Global root is never
 * bound by it; as root without cgroups a pids limit is therefore refused.
 *
 * Life cycle: prepare → clone (cgroup_fd may go into CLONE_INTO_CGROUP) → attach(child) before the agent runs, in any
 * case → child() in the child → poll oom_fd → hit → remove. No part of it walks a tree.
 */
#ifndef CORDON_SANDBOX_LIMITS_H
#define CORDON_SANDBOX_LIMITS_H

#include <sys/types.h>

#include "base/error.h"
#include "sandbox/cgroup.h"

#define CORDON_LIMITS_PREFIX "cordon-"
#define CORDON_LIMITS_MEMORY_MIN (1024 * 1024)
#define CORDON_LIMITS_CPU_MIN 10 /* thousandths of a CPU: the kernel's smallest quota */
#define CORDON_LIMITS_CPU_MAX (8192 * 1000)
#define CORDON_LIMITS_CPUS 8192 /* CPUs an affinity mask of ours can name */
#define CORDON_LIMITS_GROUPS 4	/* one of v2, or up to three of v1, or both */

/* What was asked for; 0 is no limit. */
struct cordon_limits {
	uint64_t memory_bytes;
	uint32_t pids;	     /* processes and threads of the agent */
	uint32_t pids_own;   /* cordon's own processes inside (init), which are not counted against the agent */
	uint32_t cpu_millis; /* 1500 is one CPU and a half */
	bool user_namespace; /* the run has a user namespace of its own (else RLIMIT_NPROC is no limit for the run) */
	bool best_effort;    /* a limit that nothing can hold is left out instead of refused */
};

enum cordon_limit { CORDON_LIMIT_MEMORY, CORDON_LIMIT_PIDS, CORDON_LIMIT_CPUS, CORDON_LIMIT__MAX };

enum cordon_limits_by {
	CORDON_LIMITS_BY_NOTHING,
	CORDON_LIMITS_BY_CGROUP2,
	CORDON_LIMITS_BY_CGROUP1,
	CORDON_LIMITS_BY_RLIMIT,
	CORDON_LIMITS_BY_AFFINITY,
};

/* Plain data and descriptors (all close-on-exec); the child may read its copy. */
struct cordon_limits_state {
	struct cordon_limits limits;
	enum cordon_limits_by by[CORDON_LIMIT__MAX];
	char name[sizeof(CORDON_LIMITS_PREFIX) + CORDON_UUID_SIZE];
	struct cordon_cgroup groups[CORDON_LIMITS_GROUPS]; /* keep each path in the run's record for
	                                                      cordon_limits_sweep() */
	size_t n_groups;
	int aside_fd;  /* v2: our own group, which we had to leave for a leaf below it; or -1 */
	int cgroup_fd; /* for CLONE_INTO_CGROUP, or -1; borrowed from groups */
	int oom_fd;    /* v1 memory: readable once memory ran out, then kill the tree; or -1. Poll it, never read it:
	                  hit() looks at it again. v2 needs none: the kernel ends the whole group */
	unsigned long cpu_mask[CORDON_LIMITS_CPUS / (8 * sizeof(unsigned long))];
	size_t cpu_mask_bytes;
};

struct cordon_limits_hits {
	bool memory; /* memory ran out within the limit */
	bool pids;   /* a fork was refused */
};

/*
 * Chooses mechanisms and makes the cgroups. `run_id` is a UUID. Without any limit it opens nothing. On failure nothing
 * is left behind: kind usage for a value out of range, kernel_unsupported (with a hint) for a limit that nothing can
 * hold. *ret needs cordon_limits_remove() and then cordon_limits_done().
 */
int cordon_limits_prepare(const struct cordon_limits *limits, const char *run_id, struct cordon_limits_state *ret,
			  struct cordon_error *err);

/* Moves a child that has not run the agent yet into every group; harmless for those it was cloned into. */
int cordon_limits_attach(const struct cordon_limits_state *state, pid_t pid, struct cordon_error *err);

/* In the process that will exec the agent, in its user namespace: resource limits and affinity, all inherited. When
 * by[CORDON_LIMIT_CPUS] is affinity, CORDON_SECCOMP_PIN_CPUS must be installed afterwards. Async-signal-safe; 0 or
 * -errno. */
int cordon_limits_child(const struct cordon_limits_state *state);

/* "cgroup2", "cgroup1", "rlimit", "affinity", or NULL where no limit holds. */
const char *cordon_limits_mechanism(const struct cordon_limits_state *state, enum cordon_limit which);

/* After the end and before remove: which limits were run into, as far as the kernel tells (cgroups only). */
void cordon_limits_hit(const struct cordon_limits_state *state, struct cordon_limits_hits *ret_hits);

/* Ends what still lives in the groups and removes them, within about two seconds. 0, or -errno of what stays. May be
 * called again; does nothing on a state of zeros that was never prepared. */
int cordon_limits_remove(struct cordon_limits_state *state);
/* Closes the descriptors; for a forked process that must not remove. */
void cordon_limits_done(struct cordon_limits_state *state);

/* What gc asks about each cgroup that carries our name. */
enum cordon_run_fate {
	CORDON_RUN_ALIVE,   /* its supervisor lives: leave it alone */
	CORDON_RUN_GONE,    /* ours, and its supervisor is dead: end what is left, remove */
	CORDON_RUN_UNKNOWN, /* of another CORDON_HOME perhaps: remove only if empty and older than a minute */
};
typedef enum cordon_run_fate (*cordon_limits_fate_fn)(const char *run_id, void *data);

/* Looks through the places where prepare would make a cgroup now, and only there. *ret_removed counts. */
int cordon_limits_gc(cordon_limits_fate_fn fate, void *data, size_t *ret_removed, struct cordon_error *err);
/* Ends and removes one cgroup by the path a run's record holds. The path is believed only if it lies on a cgroup
 * file system and its last component is the prefix and that UUID. A missing one is 0. */
int cordon_limits_sweep(const char *path, const char *run_id);

#endif
