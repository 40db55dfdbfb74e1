/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layers a run has on a kernel, and what differs where its Landlock is an older one. Pure: the ABI is an argument.
 *
 * Linux 6.12 (ABI 6) keeps signals and abstract sockets in a Landlock domain. Before that the pid namespace keeps signals in, and
 * a network namespace of the run's own keeps abstract sockets in. On the host's network nothing does: no filter can tell abstract
 * names from others, because they stand in memory. So there the run gets no socket that could name one. The lower tier gets none
 * on any kernel: it has no mounts, so every service of the host that listens on a path would be in reach.
 */
#ifndef CORDON_SANDBOX_PLAN_LAYERS_H
#define CORDON_SANDBOX_PLAN_LAYERS_H

#include "base/error.h"

#define CORDON_LANDLOCK_ABI_RENAME 2   /* 5.19: renames and links between directories can be allowed */
#define CORDON_LANDLOCK_ABI_TRUNCATE 3 /* 6.2 */
#define CORDON_LANDLOCK_ABI_SCOPES 6   /* 6.12: signals and abstract sockets */
#define CORDON_LANDLOCK_ABI_REQUIRED CORDON_LANDLOCK_ABI_RENAME /* below, a run needs best_effort */

/* How much of the design this kernel lets us build. */
typedef enum cordon_tier {
	CORDON_TIER_FULL,     /* namespaces, mounts, Landlock, seccomp, no capabilities */
	CORDON_TIER_LANDLOCK, /* best effort where namespaces are refused: Landlock and seccomp carry folder scopes */
} cordon_tier;

/* What a program in the run meets, and would not meet on a newer kernel. */
typedef enum cordon_difference {
	CORDON_DIFFERENCE_UNIX_SOCKETS, /* no socket(AF_UNIX), and of socketpair(AF_UNIX) streams and SOCK_SEQPACKET only */
	CORDON_DIFFERENCE_TRUNCATE,	/* no truncate(2), no O_TRUNC without a right to write */
	CORDON_DIFFERENCE_SIGNALS,	/* programs that enter the run later and the agent can signal each other */
	CORDON_DIFFERENCE_RENAME,	/* nothing moves from one directory to another */
	CORDON_DIFFERENCE__MAX
} cordon_difference;

struct cordon_layers {
	unsigned int landlock_abi;
	bool scopes;	  /* Landlock keeps signals and abstract sockets in */
	bool scopes_held; /* it does, or namespaces and the filter do what it would */
	bool lower;	  /* the lower tier */
	bool differs[CORDON_DIFFERENCE__MAX];
};

struct cordon_layers_spec {
	cordon_tier tier;
	bool own_network;
	bool best_effort;
	bool enterable;		   /* further programs may be started inside later */
	unsigned int landlock_abi; /* 0: none */
};

/* -EOPNOTSUPP when the kernel lacks a layer that every run must have and best effort was not asked for. */
int cordon_layers_choose(const struct cordon_layers_spec *spec, struct cordon_layers *ret, struct cordon_error *err);

/* A sentence without its full stop, and what one would use instead in runs with these layers, as text. */
#define CORDON_REMEDY_SIZE 80
const char *cordon_difference_text(cordon_difference difference);
void cordon_difference_remedy(const struct cordon_layers *layers, cordon_difference difference,
			      char ret[static CORDON_REMEDY_SIZE]);

#endif
