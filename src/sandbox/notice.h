/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the supervisor and the processes inside, over one SOCK_SEQPACKET pair; at most one descriptor. */
#ifndef CORDON_SANDBOX_NOTICE_H
#define CORDON_SANDBOX_NOTICE_H

#include <sys/resource.h>

#include "base/util.h"

typedef enum cordon_notice_kind {
	/* to the inside */
	CORDON_NOTICE_GO,	  /* limits are in place: begin */
	CORDON_NOTICE_LENS_READY, /* cordon-lens answers: go on */
	CORDON_NOTICE_TERMINATE,  /* SIGTERM to every process inside */
	CORDON_NOTICE_STREAM,	  /* with one for the next ENTER; code: which of 0, 1, 2 */
	CORDON_NOTICE_ENTER,	  /* start a further program: index, with a file that says which (enter.h) */
	CORDON_NOTICE_LEAVE,	  /* kill that program: index */
	/* from the inside; index is that of a further program, 0 for the agent */
	CORDON_NOTICE_FAILED,  /* set-up failed: code, what, object; the run is refused */
	CORDON_NOTICE_NO_EXEC, /* the program could not be started: code, object */
	CORDON_NOTICE_PTY,     /* with the master of the agent's terminal */
	CORDON_NOTICE_FUSE,    /* with the FUSE device of the view, mounted; waits for LENS_READY */
	CORDON_NOTICE_STARTED, /* all layers are on, the program is about to run; with the seccomp listener, if there is one */
	CORDON_NOTICE_EXITED, /* code: wait status of the agent; usage of all; index 1: nothing but init is left inside */
	CORDON_NOTICE_LEFT,   /* a further program has ended: index; code: wait status */
	CORDON_NOTICE_LOST,   /* a protected mount dissolved and was bound again; index: plan step */
	CORDON_NOTICE_MADE,   /* a guarded name came to be and is read-only now; index: plan guard */
} cordon_notice_kind;

struct cordon_notice {
	uint32_t kind;
	int32_t code;
	uint32_t index;
	struct rusage usage;
	char what[48];
	char object[440];
};

/* Async-signal-safe. 0 or -errno; a peer that is gone is -EPIPE. fd may be -1. */
int cordon_notice_send(int socket, const struct cordon_notice *notice, int fd);
/* 1 with a notice (and *ret_fd, -1 when none came), 0 at the end, -EAGAIN, or -errno. */
int cordon_notice_receive(int socket, struct cordon_notice *ret_notice, int *ret_fd);

#endif
