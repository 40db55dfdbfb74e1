/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the supervisor and the processes inside, over one SOCK_SEQPACKET pair, with at most one descriptor
 * each. */
#ifndef CORDON_SANDBOX_INSIDE_NOTICE_H
#define CORDON_SANDBOX_INSIDE_NOTICE_H

#include <sys/resource.h>

#include "base/util.h"

typedef enum cordon_notice_kind {
	/* From the supervisor to the processes inside. */
	CORDON_NOTICE_GO, /* the limits are in place: begin; a second time: the run is recorded, build the tree */
	CORDON_NOTICE_LENS_READY, /* cordon-lens answers: go on */
	CORDON_NOTICE_TERMINATE,  /* send SIGTERM to every process inside */
	CORDON_NOTICE_STREAM,	  /* brings a standard stream for the next ENTER; code: which of 0, 1, 2 */
	CORDON_NOTICE_ENTER,	  /* start program `index`; brings a file with its paths and arguments */
	CORDON_NOTICE_LEAVE,	  /* kill program `index` */
	CORDON_NOTICE_HAND, /* start the hand of listener `index`; brings its end of a socket (sandbox/inside/hand.h) */
	/* From the processes inside to the supervisor; index is the number of the program, 0 for the agent. */
	CORDON_NOTICE_FAILED,  /* set-up failed: code, what, object; the run is refused */
	CORDON_NOTICE_NO_EXEC, /* the program could not be started: code, object */
	CORDON_NOTICE_PTY,     /* brings the master of the agent's terminal */
	CORDON_NOTICE_OWN, /* brings an O_PATH descriptor of the private file systems; before EXITED. index 1: of the private home */
	CORDON_NOTICE_MEMORY, /* brings what shows the memory of the run; code: enum cordon_memory_fd; before EXITED */
	CORDON_NOTICE_VIEW,   /* brings what the lens shows instead of the host's tree; before FUSE */
	CORDON_NOTICE_FUSE,   /* brings the FUSE device of the lens; PID 1 then waits for LENS_READY */
	CORDON_NOTICE_TRIPWIRES, /* brings the FUSE device of the tripwires; PID 1 does not wait */
	CORDON_NOTICE_STARTED, /* all layers are applied and the program will run; code: the number of Landlock rules; may bring the seccomp listener */
	CORDON_NOTICE_EXITED,  /* code: the agent's wait status; usage: of all; index 1: only PID 1 is left inside */
	CORDON_NOTICE_LEFT,    /* program `index` has ended; code: wait status */
	CORDON_NOTICE_LOST,    /* the mount of boundary `index` is gone; code: 0 when it is back in force */
	CORDON_NOTICE_MADE,    /* the host made the name of boundary `index`; code: 0 when it is under its rule now */
} cordon_notice_kind;

struct cordon_notice {
	uint32_t kind;
	int32_t code;
	uint32_t index;
	struct rusage usage;
	char what[48];
	char object[440];
};

/* Async-signal-safe. 0 or -errno; -EPIPE when the peer is gone. fd may be -1. */
int cordon_notice_send(int socket, const struct cordon_notice *notice, int fd);
/* 1 with a notice (and *ret_fd, -1 when none came), 0 at the end, -EAGAIN, or -errno. */
int cordon_notice_receive(int socket, struct cordon_notice *ret_notice, int *ret_fd);

#endif
