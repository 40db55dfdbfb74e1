/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 starts more programs in a sandbox that already runs; "door" is the name of that part of PID 1. The supervisor
 * asks for a program (sandbox/host/enter.h). PID 1, which the agent can't trace or signal, forks, and the new process
 * applies all the agent's layers, with the same code as the agent's process, before the program runs. It uses nothing
 * that the agent can write: the program's arguments come from the supervisor's memory.
 *
 * The agent and the new program have Landlock domains of their own: neither can trace or signal the other.
 */
#ifndef CORDON_SANDBOX_INSIDE_DOOR_H
#define CORDON_SANDBOX_INSIDE_DOOR_H

#include "sandbox/inside/inside.h"

/* The bounds of what the supervisor may ask for. */
#define CORDON_ENTER_MAX 8 /* programs at the same time */
#define CORDON_ENTER_ARGS_MAX 1024
#define CORDON_ENTER_CANDIDATES_MAX 256 /* paths to try for one program */
#define CORDON_ENTER_BYTES_MAX ((size_t)1 << 20)

/* Nothing here allocates. */
struct cordon_door {
	int streams[3]; /* the standard streams of the next program; -1 until they have arrived */
	struct {
		pid_t pid; /* 0: this entry is free */
		uint32_t number;
	} programs[CORDON_ENTER_MAX];
};

/* clang-format off */
#define CORDON_DOOR_CLOSED { .streams = { -1, -1, -1 } }
/* clang-format on */

/* Handles STREAM, ENTER and LEAVE, ignores other notices, and takes fd. */
void cordon_door_notice(struct cordon_door *door, struct cordon_inside *in, const struct cordon_notice *notice, int fd);
/* PID 1 has reaped a process: reports it to the supervisor when it was one of these programs. */
void cordon_door_reaped(struct cordon_door *door, const struct cordon_inside *in, pid_t pid, int status);

#endif
