/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record by which cordon-lens reports a request that it refused to the supervisor: one per message of a
 * SOCK_SEQPACKET socket.
 *
 * A request that changes something says what was refused. A look-up of a name does not: the kernel sends the same
 * request for stat(2) and for open(2). So the supervisor looks at the system call in which the process is stopped. The
 * lens does not answer the kernel until the supervisor has sent the number of the record back. The lens never waits for
 * that: it serves other requests meanwhile, it answers without the number when that does not come in time, and it
 * counts the records that the socket does not take.
 */
#ifndef CORDON_SANDBOX_HOST_LENS_RECORD_H
#define CORDON_SANDBOX_HOST_LENS_RECORD_H

#include <linux/limits.h>
#include <stdint.h>

#include "base/util.h"

enum cordon_lens_record_kind {
	CORDON_LENS_REFUSED = 1, /* `op` on `path` was refused */
	CORDON_LENS_ASKED,	 /* a look-up of `path` is refused; the supervisor must find out what it was for */
	CORDON_LENS_DROPPED,	 /* `count` records could not be sent */
	CORDON_LENS_BESIDE, /* `op` was refused: the host made `path` during the run, beside a boundary; or, where the
				  * name is not empty, `path` is a temporary name of that boundary */
	CORDON_LENS_TOO_LARGE, /* the directory `path` of a view was not renamed, because too much is in it */
};

enum cordon_lens_op {
	CORDON_LENS_OP_WRITE,
	CORDON_LENS_OP_CREATE,
	CORDON_LENS_OP_DELETE,
	CORDON_LENS_OP_RENAME,
};

struct cordon_lens_record {
	uint32_t kind;
	uint32_t op;
	uint32_t count;
	uint32_t thread;  /* ASKED: the thread that asks, by its number in the sandbox */
	uint64_t number;  /* the supervisor sends it back, except for DROPPED */
	uint32_t exists;  /* ASKED: the path exists on the host */
	uint32_t path_at; /* where in texts the path begins, behind the name */
	/* The refused name (when a link was followed, the name of the link) and the path that it stands for, relative
	 * to the root or absolute. Both end with a NUL. */
	char texts[NAME_MAX + 1 + CORDON_PATH_MAX];
};

#endif
