/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor enforces the memory, process and CPU limits of a run, each by the best mechanism that this host allows:
 *
 *   limit    cgroup v2 / v1 (holds for the whole tree)           else
 *   memory   memory.max, no swap, memory.oom.group; v1 limit_in_bytes   the supervisor looks (sandbox/host/memory.h)
 *   pids     pids.max (threads count)                            RLIMIT_NPROC in the run's own user namespace
 *   cpus     cpu.max / cfs quota                                 affinity to ceil(N) CPUs
 *
 * A cgroup is made below the supervisor's own one (v2: or below the nearest ancestor that enables the controllers and
 * that we may write), and only when the user asked for a limit; /proc/self/cgroup and mountinfo say where that is. Its
 * name is CORDON_LIMITS_PREFIX + run id, so that cordon can find and remove the cgroups of a killed supervisor.
 *
 * Never RLIMIT_AS: programs reserve far more addresses than they use (Node, Bun and Java do), and crash under it.
 *
 * RLIMIT_NPROC: since Linux 5.14 the kernel counts a user's processes per user namespace, so a limit that is set
 * *inside* a new namespace counts the run only. It must be set after the namespace was made: a limit that exists when
 * the namespace is made also limits the count of its parent, which includes everything else that the user runs.
 * RLIMIT_NPROC never limits the host's root; so for root without cgroups a pids limit is refused.
 *
 * Life cycle: prepare → clone (cgroup_fd may go into CLONE_INTO_CGROUP) → attach(child) before the agent runs, in any
 * case → cordon_limits_child() (sandbox/inside/limits.h) in the child → poll oom_fd → hit → remove. No part of it walks
 * a tree.
 */
#ifndef CORDON_SANDBOX_HOST_LIMITS_H
#define CORDON_SANDBOX_HOST_LIMITS_H

#include <sys/types.h>

#include "base/error.h"
#include "sandbox/host/cgroup.h"
#include "sandbox/inside/limits.h"

#define CORDON_LIMITS_PREFIX "cordon-"
#define CORDON_LIMITS_GROUPS 4 /* one of v2, or up to three of v1, or both */

/* Plain data and descriptors, all close-on-exec. */
struct cordon_limits_state {
	struct cordon_limits_choice choice; /* the part that the child needs */
	char name[sizeof(CORDON_LIMITS_PREFIX) + CORDON_UUID_SIZE];
	struct cordon_cgroup groups[CORDON_LIMITS_GROUPS];
	size_t n_groups;
	int own_group_fd; /* v2: our own group, when we had to move into a group below it; or -1 */
	int cgroup_fd;	  /* for CLONE_INTO_CGROUP, or -1; borrowed from groups */
	int oom_fd; /* v1 memory: readable when memory has run out, here or in a group around; or -1. v2 needs none: the
	             * kernel ends the whole group */
};

struct cordon_limits_hits {
	bool memory;	   /* the run reached its limit, and the kernel killed, or was about to */
	bool outer_memory; /* the kernel killed for a limit of a group around, or because the machine had no more */
	bool pids;	   /* a fork was refused */
};

/*
 * Chooses mechanisms and makes the cgroups. `run_id` is a UUID. Without any limit it opens nothing. On failure nothing
 * is left: the kind is usage for a value out of range, kernel_unsupported (with a hint) for a limit that nothing here
 * can enforce. *ret needs cordon_limits_remove() and then cordon_limits_done().
 */
int cordon_limits_prepare(const struct cordon_limits *limits, const char *run_id, struct cordon_limits_state *ret,
			  struct cordon_error *err);

/* Moves a child, before it runs the agent, into every group; harmless for a group into which it was cloned. */
int cordon_limits_attach(const struct cordon_limits_state *state, pid_t pid, struct cordon_error *err);

/* "cgroup2", "cgroup1", "rlimit", "watcher", "affinity", or NULL when nothing enforces this limit. */
const char *cordon_limits_mechanism(const struct cordon_limits_state *state, enum cordon_limit which);

/* Clears oom_fd; whether it was readable, and the run's own limit the reason: then kill the tree. */
bool cordon_limits_ran_out(const struct cordon_limits_state *state);

/* After the end and before remove: which limits the run has reached. The kernel shows it for cgroups only. */
void cordon_limits_hit(const struct cordon_limits_state *state, struct cordon_limits_hits *ret_hits);

/* Ends the processes that are left in the groups and removes the groups, within about two seconds. 0, or -errno when a
 * group stays. May be called again; does nothing on a state of zeros that was never prepared. */
int cordon_limits_remove(struct cordon_limits_state *state);
/* Closes the descriptors and removes nothing. */
void cordon_limits_done(struct cordon_limits_state *state);

/* What cordon_limits_gc() asks about each cgroup that has a name of ours. */
enum cordon_run_fate {
	CORDON_RUN_ALIVE,   /* its supervisor lives: leave it alone */
	CORDON_RUN_GONE,    /* ours, and its supervisor is dead: end what is left, remove */
	CORDON_RUN_UNKNOWN, /* perhaps of another CORDON_HOME: remove it only if it is empty and older than a minute */
};
typedef enum cordon_run_fate (*cordon_limits_fate_fn)(const char *run_id, void *data);

/* Looks only in the groups where cordon_limits_prepare() would make a cgroup now. *ret_removed is how many were
 * removed. */
int cordon_limits_gc(cordon_limits_fate_fn fate, void *data, size_t *ret_removed, struct cordon_error *err);

#endif
