/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes inside: PID 1, which builds the sandbox, reaps its processes and keeps boundaries in force, and the
 * agent's process until its exec. Nothing here allocates: both are copies of the supervisor after clone.
 *
 * PID 1 forks the agent's process before anything else. That process makes the network namespace, which takes the
 * kernel as long as the whole tree that PID 1 builds at the same time. Then it passes the network namespace to PID 1
 * and waits until PID 1 lets it go on.
 */
#ifndef CORDON_SANDBOX_INSIDE_INSIDE_H
#define CORDON_SANDBOX_INSIDE_INSIDE_H

#include <sys/resource.h>

#include "sandbox/inside/limits.h"
#include "sandbox/inside/mounts.h"
#include "sandbox/inside/notice.h"
#include "sandbox/inside/seccomp.h"
#include "sandbox/plan/plan.h"

struct cordon_hand_memory;
struct cordon_policy;

struct cordon_inside {
	const struct cordon_plan *plan;
	const struct cordon_policy *policy; /* for the hand, which says what is worth a report */
	struct cordon_hand_memory *memory;  /* what the hands of the run share; NULL when nothing is watched */
	int hand_lock;			    /* a file of which the hands of all runs in this root lock a byte, or -1 */
	const struct cordon_limits_choice *limits;
	enum cordon_seccomp_variant variant;
	unsigned int landlock_abi;
	char *const *argv;	 /* of the program that this process becomes; NULL-terminated, like the next one */
	char *const *candidates; /* full paths to try for it */
	int ctl;		 /* the notice socket */
	int exec_fd;		 /* only the agent's process has it: its exec closes it */
	bool terminal[3];	 /* which standard streams become the agent's terminal */
	int host_proc;		 /* the host's /proc, with which the agent's process forbids user namespaces; or -1 */
	int peer;		 /* a socket between PID 1 and the agent's process for the start; or -1 */
	int net;		 /* a socket to cordon-net, for a run with a list of hosts; or -1 */
	int wake; /* the supervisor's epoll descriptor, in which the sockets of that network are; or -1 */
	int go;	  /* lets the agent's process go on; no socket, which would wake it on PID 1's processor */
	mode_t umask;
	struct rlimit nofile; /* the caller's limit of descriptors; PID 1 raises its own */
	uint32_t number;      /* 0: the agent; else the number of the program that this process becomes (door.h) */
	struct cordon_mounts mounts;
};

/* Sends FAILED and ends the process. */
_Noreturn void cordon_inside_fail(const struct cordon_inside *in, int code, const char *what, const char *object);

/* Runs in the child of cordon_launch(), which is PID 1. Never returns. */
_Noreturn void cordon_inside_build(struct cordon_inside *in);
/* The same for the lower tier, which has no namespaces. Never returns. */
_Noreturn void cordon_lower_tier_build(struct cordon_inside *in);
/* Signals every process below the calling one, which is a subreaper; also those that left its process group. With
 * SIGKILL it returns when none is left. */
void cordon_lower_tier_kill_all(int signal);
/* Runs in PID 1 when the tree is built and the agent's process may start. Never returns. */
_Noreturn void cordon_init(struct cordon_inside *in, pid_t agent);
/* Runs in the agent's process: applies all layers, then execs. Never returns. */
_Noreturn void cordon_agent(struct cordon_inside *in);
/*
 * The first of three measures against nested user namespaces; seccomp and Landlock are the others. The agent's process
 * calls it while it waits for the tree, because it may take long: every user namespace of the host has an entry of its
 * own for this setting, and the kernel searches all of them.
 */
void cordon_inside_forbid_namespaces(const struct cordon_inside *in);

/* Drops every capability but those of `keep` (bits of 1 << CAP_X) from all sets, for good. 0 or -errno. */
int cordon_caps_keep(uint64_t keep);
/* Its two parts. The first drops them from the sets that outlive an exec, with a call for each capability; the process
 * itself still has them. The second drops them from the process. */
int cordon_caps_keep_lasting(uint64_t keep);
int cordon_caps_keep_now(uint64_t keep);

#endif
