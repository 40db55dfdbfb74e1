/* SPDX-License-Identifier: Apache-2.0 */
/* Which system calls name paths, where, and to do what; and reading those names from a process that is stopped in one. */
#ifndef CORDON_SANDBOX_WATCH_CALLS_H
#define CORDON_SANDBOX_WATCH_CALLS_H

#include <linux/seccomp.h>

#include "base/error.h"

/* One path a call acts on. */
struct cordon_touch {
	const char *op; /* "read", "write", "create", "delete", "rename", "execute", "look" */
	bool writes;
	bool creates;		    /* a name may come to be */
	bool follows;		    /* a link at the end is followed; false: the name itself is meant */
	bool known;		    /* false: the path could not be read */
	bool nameless;		    /* the descriptor it starts from is of something without a name */
	bool direct;		    /* `path` is one name in a directory whose true path the kernel told */
	char path[CORDON_PATH_MAX]; /* absolute, as the process sees it, not yet resolved */
};

#define CORDON_TOUCHES_MAX 2

/* Fills up to two touches; returns how many, 0 for a call that touches no path (a socket without one). */
size_t cordon_watch_read_call(const struct seccomp_notif *notif, struct cordon_touch touches[static CORDON_TOUCHES_MAX]);

#endif
