/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A further program in a sandbox that runs. The supervisor asks; PID 1, which is inside and which the agent can't reach, forks,
 * and the new process puts on all the agent's layers before the program's first byte, in the same code as the agent did.
 * Nothing the agent can write takes part: the program's arguments come in memory of the supervisor's.
 *
 * The two processes have Landlock domains of their own: neither can trace or signal the other.
 */
#ifndef CORDON_SANDBOX_ENTER_H
#define CORDON_SANDBOX_ENTER_H

#include "sandbox/launch.h"

#define CORDON_ENTER_MAX 8 /* at a time */
#define CORDON_ENTER_ARGS_MAX 1024
#define CORDON_ENTER_BYTES_MAX ((size_t)1 << 20)

/*
 * For the plan's `enterable` sandboxes, from within serve(). `number` (not 0) names the program in observer->left(), which is told
 * once. The streams are borrowed, and must be pipes: a file of the host's would lead there.
 */
int cordon_enter(const struct cordon_child *child, uint32_t number, char *const *argv, const int streams[static 3],
		 struct cordon_error *err);
/* Kills its process group. */
void cordon_enter_end(const struct cordon_child *child, uint32_t number);

/* PID 1's side. Nothing here allocates. */
struct cordon_door {
	int streams[3]; /* for the next one; -1 while they have not come */
	struct {
		pid_t pid; /* 0: free */
		uint32_t number;
	} programs[CORDON_ENTER_MAX];
};

#define CORDON_DOOR_CLOSED                                                                                             \
	{                                                                                                              \
		.streams = { -1, -1, -1 }                                                                              \
	}

/* A notice that PID 1 has nothing else to do with; takes fd. */
void cordon_door_notice(struct cordon_door *door, struct cordon_inside *in, const struct cordon_notice *notice, int fd);
/* A process has ended; tells when it was one of ours. */
void cordon_door_reaped(struct cordon_door *door, const struct cordon_inside *in, pid_t pid, int status);

#endif
