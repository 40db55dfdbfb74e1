/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor starts and ends cordon-net, hears what it refuses, and gives it new rules. */
#ifndef CORDON_SANDBOX_HOST_NET_PROCESS_H
#define CORDON_SANDBOX_HOST_NET_PROCESS_H

#include <sys/resource.h>

#include "sandbox/plan/plan.h"

struct cordon_child;

struct cordon_net_process {
	char program[CORDON_PATH_MAX];
	int config;  /* a file with what cordon-net must know, until it is started; or -1 */
	int inside;  /* the end of the pair that PID 1 gets (sandbox/inside/network.h), until it has it; or -1 */
	int sockets; /* the end that cordon-net gets, until it is started; or -1 */
	int wake;  /* readable when the run first uses its network; -1 when cordon-net was started, or there is none */
	int meter; /* memory in which it counts, which belongs to the caller; or -1 */
	int ctl;   /* to and from cordon-net (net_record.h), while it runs; or -1 */
	pid_t pid; /* -1: it does not run */
	struct rusage usage; /* once it has ended */
	bool at_once; /* it may fail to start by what the user has set, or has much to take over: so it starts with the run */
};
/* clang-format off */
#define CORDON_NET_PROCESS_NONE { .config = -1, .inside = -1, .sockets = -1, .wake = -1, .meter = -1, .ctl = -1, .pid = -1 }
/* clang-format on */

/* Finds the program, collects rules, proxy and credentials from our environment, and makes what PID 1 and the agent's
 * process need. *ret_process is to be released with cordon_net_stop(). Does nothing for a plan without a list. `learning`:
 * cordon-net also tells what was reached. */
int cordon_net_prepare(const struct cordon_plan *plan, bool learning, struct cordon_net_process *ret_process,
		       struct cordon_error *err);
/* Starts it. On failure the network is closed: nothing can be reached. */
int cordon_net_start(struct cordon_net_process *process, struct cordon_error *err);
/* Whether it should be running, and is not yet: the run has used its network. */
bool cordon_net_is_due(const struct cordon_net_process *process);
/* Ends it, if it is there, waits for it, and releases everything. Returns its status, as of waitpid(). */
int cordon_net_stop(struct cordon_net_process *process);

/* Replaces the rules of a run with a list; connections that no rule allows any more end. Credentials stay. Call it from
 * within the observer's serve(). */
int cordon_child_net(struct cordon_child *child, const char *list_text, struct cordon_error *err);

#endif
