/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes inside: PID 1, which builds the sandbox, reaps and keeps protected paths protected, and the agent's
 * process until it is the agent. Nothing here allocates: both are copies of the supervisor after clone.
 *
 * The agent's process is forked first of all and makes the network, which takes the kernel as long as the whole tree that
 * PID 1 builds meanwhile. Then it hands the network to PID 1, which says go.
 */
#ifndef CORDON_SANDBOX_INSIDE_H
#define CORDON_SANDBOX_INSIDE_H

#include "sandbox/limits.h"
#include "sandbox/mounts.h"
#include "sandbox/notice.h"
#include "sandbox/plan.h"
#include "sandbox/seccomp.h"

struct cordon_inside {
	const struct cordon_plan *plan;
	const struct cordon_limits_state *limits;
	enum cordon_seccomp_variant variant;
	unsigned int landlock_abi;
	int ctl;	  /* the notice socket */
	int exec_fd;	  /* held by the agent's process alone: closed by its exec */
	bool terminal[3]; /* which standard streams become the agent's terminal */
	int peer; /* between PID 1 and the agent's process until both have done their part; -1 in the lower tier */
	int go;	  /* the agent's process may go on. An eventfd: a socket would make it wait for PID 1's processor */
	mode_t umask;
	uint32_t number; /* 0: the agent; else the further program that this process becomes */
	struct cordon_mounts mounts;
};

/* Sends FAILED and ends the process. */
_Noreturn void cordon_inside_fail(const struct cordon_inside *in, int code, const char *what, const char *object);

/* launch.c's child: never returns. */
_Noreturn void cordon_inside_build(struct cordon_inside *in);
/* The same for the lower tier, which has no namespaces: never returns. */
_Noreturn void cordon_tier_build(struct cordon_inside *in);
/* Ends every process below the calling one, also those that left its process group. For a subreaper. */
void cordon_tier_kill_all(int signal);
/* PID 1 from the moment the agent was forked: never returns. */
_Noreturn void cordon_init(struct cordon_inside *in, pid_t agent);
/* The agent's process: all layers, then exec. Never returns. */
_Noreturn void cordon_agent(struct cordon_inside *in);

/* Drops every capability but those of `keep` (bits of 1 << CAP_X) from all sets, for good. 0 or -errno. */
int cordon_caps_keep(uint64_t keep);

#endif
