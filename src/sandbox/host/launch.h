/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a planned run and supervises it to its end.
 *
 *   cordon_launch()     clones into new namespaces; the child builds the sandbox, forks the agent and stays as PID 1
 *   cordon_supervise()  handles time-out, signals, terminal, watch and limits; returns when PID 1 is alone and ending
 *   cordon_child_reap() returns when it has ended, too: then nothing of the run is left
 *
 * The calling process becomes the supervisor: it handles signals for the run, and its death ends the run.
 */
#ifndef CORDON_SANDBOX_HOST_LAUNCH_H
#define CORDON_SANDBOX_HOST_LAUNCH_H

#include <time.h>

#include "sandbox/host/limits.h"
#include "sandbox/host/net_process.h"
#include "sandbox/host/output.h"
#include "sandbox/inside/inside.h"
#include "sandbox/plan/plan.h"

struct cordon_child {
	const struct cordon_plan *plan;
	const struct cordon_policy *policy;
	pid_t pid; /* PID 1 of the sandbox; this is its number in our own pid namespace */
	int pidfd;
	int ctl;     /* the notice socket */
	int exec_fd; /* reaches its end when the agent's program was started or could not be started; then -1 */
	struct cordon_net_process net;
	struct cordon_limits_state limits;
	enum cordon_seccomp_variant variant;
	struct cordon_hand_memory *memory; /* what the hands share with us; NULL when nothing is watched */
	bool terminal[3];
	struct cordon_output *output; /* cordon_supervise() frees it */
	struct timespec started;
};

/* Tests whether the namespaces of a sandbox can be made and used here, by making them. 0 or -errno. */
int cordon_namespaces_probe(void);

struct cordon_launch {
	int meter_fd; /* the memory of the meters (sandbox/host/metrics.h), or -1 */
	int lock_fd;  /* the file that the hands of all runs in this root lock, or -1 */
	/* Records the run, or refuses it; NULL: nobody asks. It is called once, before anything of the host is touched, if possible
	 * while PID 1 makes its namespaces. */
	int (*admit)(void *data, struct cordon_error *err);
	void *data;
};

/* On failure nothing of the run is left. */
int cordon_launch(const struct cordon_plan *plan, const struct cordon_policy *policy,
		  const struct cordon_observer *observer, const struct cordon_launch *how,
		  struct cordon_child *ret_child, struct cordon_error *err);
/* Waits for the end and cleans up. Fills `result`, which the caller has zeroed. Releases the child. */
void cordon_supervise(struct cordon_child *child, const struct cordon_observer *observer, struct cordon_result *result);
/* Waits until PID 1 has ended. Call it after cordon_supervise(), as late as possible: the kernel takes its time to remove the
 * mounts of the run. */
void cordon_child_reap(struct cordon_child *child);

#endif
