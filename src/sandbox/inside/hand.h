/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand is a process in the sandbox that makes entries in held directories, where Landlock lets the agent make none.
 *
 * It has the agent's namespaces, ids and limits, and the rules of the agent's first Landlock layer, but not the second
 * layer. No process inside can trace it, and from Linux 6.12 on none can signal it. Only the supervisor sends it
 * requests, over a socket that nobody else has: the watch has copied the name, has opened the directory in the agent's
 * tree and has judged both. The hand acts on that descriptor and that name; it never follows a link and never reads the
 * agent's memory. What the hand may not do, the kernel refuses to it as it would refuse it to the agent.
 *
 * PID 1 starts the hand when the first request comes. Nothing here allocates: the hand is a copy of the supervisor
 * after clone. sandbox/watch/hand_ask.h is the supervisor's side.
 */
#ifndef CORDON_SANDBOX_INSIDE_HAND_H
#define CORDON_SANDBOX_INSIDE_HAND_H

#include <limits.h>

#include "sandbox/inside/inside.h"

typedef enum cordon_hand_request_kind {
	CORDON_HAND_OPEN, /* with O_CREAT; the reply brings a descriptor */
	CORDON_HAND_MKDIR,
	CORDON_HAND_MKNOD,
	CORDON_HAND_SYMLINK, /* to `text` */
	CORDON_HAND_LINK,    /* to `other` in the second directory; "": the second descriptor is the file itself */
	CORDON_HAND_RENAME,  /* of `other` in the second directory; with the flags of renameat2 */
	CORDON_HAND_BIND,    /* the second descriptor is the socket */
} cordon_hand_request_kind;

struct cordon_hand_request {
	uint32_t kind;
	uint32_t umask;
	uint32_t mode;
	uint32_t resolve; /* of openat2: RESOLVE_NO_XDEV or 0 */
	uint64_t flags;
	char name[NAME_MAX + 2]; /* may end with a slash */
	char other[NAME_MAX + 2];
	char text[CORDON_PATH_MAX]; /* the last field, because only its used part is sent */
};

/* The hand's first message has the same form; its result is the hand's pid inside. */
struct cordon_hand_reply {
	int32_t result;	    /* 0 or -errno; -ENOTSUP when the name belongs to something else than a regular file */
	uint32_t too_large; /* a directory of a view was not renamed, because too much is in it (base/move_dir.h) */
};

/* Both sides send and receive with these; a message has at most two descriptors. Sending returns 0 or -errno; receiving
 * returns 1 with a message, 0 at the end, or -errno. With `soon` the receiver polls for a while before it sleeps:
 * requests often follow each other, and waking a sleeping processor takes longer than a request. */
int cordon_hand_send(int socket, const void *message, size_t n, const int *fds, size_t n_fds);
int cordon_hand_receive(int socket, void *message, size_t size, bool soon, size_t *ret_n, int fds[static 2]);

/* Runs in the hand's process, a child of PID 1: applies all the agent's layers except the second Landlock layer, then
 * serves the requests that come over `socket`. Never returns. */
_Noreturn void cordon_hand(const struct cordon_inside *in, int socket);

#endif
