/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor starts and ends cordon-net, hears what it refuses, and gives it new rules. */
#ifndef CORDON_SANDBOX_HOST_NET_PROCESS_H
#define CORDON_SANDBOX_HOST_NET_PROCESS_H

#include "sandbox/plan/plan.h"

struct cordon_child;

struct cordon_net_process {
	pid_t pid; /* -1: none */
	int pidfd;
	int ctl; /* to and from cordon-net (net_record.h); or -1 */
};
/* clang-format off */
#define CORDON_NET_PROCESS_NONE { .pid = -1, .pidfd = -1, .ctl = -1 }
/* clang-format on */

/* What a start needs and can be found out before anything of the run exists. */
struct cordon_net_start {
	char program[CORDON_PATH_MAX];
	int config; /* a file with what cordon-net must know; or -1 */
};

/* Finds the program and collects rules, proxy and credentials from our environment. *ret_start is to be released with
 * cordon_net_start_done(). Does nothing for a plan without a list. */
int cordon_net_prepare(const struct cordon_plan *plan, struct cordon_net_start *ret_start, struct cordon_error *err);
void cordon_net_start_done(struct cordon_net_start *start);
/* Starts it; `sockets` is its end of the pair whose other end PID 1 has (sandbox/inside/network.h). */
int cordon_net_start(const struct cordon_net_start *start, int sockets, struct cordon_net_process *ret_process,
		     struct cordon_error *err);
/* Kills it, if it is there, and waits for it. */
void cordon_net_stop(struct cordon_net_process *process);

/* Replaces the rules of a run with a list; connections that no rule allows any more end. Credentials stay. Call it from
 * within the observer's serve(). */
int cordon_child_net(struct cordon_child *child, const char *list_text, struct cordon_error *err);

#endif
