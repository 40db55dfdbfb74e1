/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system call in which a process inside waits for an answer of the lens or of a tripwire: what it does with which name. A FUSE
 * request for a name does not say whether it comes from stat or from open.
 *
 * INVARIANT: what is read here is text of the agent's. It decides about the words of a report and whether there is one, and about
 * nothing else.
 */
#ifndef CORDON_SANDBOX_HOST_STOPPED_H
#define CORDON_SANDBOX_HOST_STOPPED_H

#include "sandbox/host/launch.h"
#include "sandbox/inside/calls.h"

struct cordon_stopped {
	const struct cordon_child *child;
	int proc_fd; /* the sandbox's own /proc, because requests have the sandbox's process numbers; -1: not opened yet */
	/* What cordon_stopped_read() found out. */
	bool known;					    /* false: the process can't be read */
	cordon_call_kind kind;				    /* CORDON_CALL_LOOK for one that the table does not have */
	uint64_t flags;					    /* of an open */
	char path[CORDON_PATH_MAX], path2[CORDON_PATH_MAX]; /* as the process wrote them; "" when they can't be read */
};

/* Reads the call in which this thread waits; `thread` is its number inside. */
void cordon_stopped_read(struct cordon_stopped *stopped, uint32_t thread);
/* The rest of a path behind a refused name; NULL when the name is not in it. */
const char *cordon_stopped_rest(const char *path, const char *name);
/* What an open with these flags attempts whose path ends with the refused name; NULL when it is no attempt. */
const char *cordon_stopped_open(uint64_t flags, bool exists);
/* Accepts one that was never used. */
void cordon_stopped_done(struct cordon_stopped *stopped);

#endif
