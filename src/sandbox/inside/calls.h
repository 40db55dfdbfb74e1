/* SPDX-License-Identifier: Apache-2.0 */
/* Knows which system calls name paths, in which arguments, and what they do to them; reads those paths from the memory
 * of a process that is stopped in such a call. */
#ifndef CORDON_SANDBOX_INSIDE_CALLS_H
#define CORDON_SANDBOX_INSIDE_CALLS_H

#include <linux/seccomp.h>
#include <sys/types.h>

#include "base/error.h"

typedef enum cordon_call_kind {
	CORDON_CALL_OPEN,	    /* what it does depends on its argument `flags` */
	CORDON_CALL_OPEN_BY_STRUCT, /* openat2: the argument is the address of a structure that begins with them */
	CORDON_CALL_CREATE,	    /* makes the name */
	CORDON_CALL_DELETE,
	CORDON_CALL_RENAME, /* removes one name, makes another */
	CORDON_CALL_LINK,   /* reads one name, makes another */
	CORDON_CALL_CHANGE, /* changes what has the name */
	CORDON_CALL_EXECUTE,
	CORDON_CALL_LOOK, /* stat and similar calls; with a bare descriptor ("" as path) they look at no path */
	CORDON_CALL_BIND, /* makes the name; the path is in a socket address */
} cordon_call_kind;

enum { CORDON_CALL_CWD = -1, CORDON_CALL_NONE = -2 };

/* A system call that names paths, for all who read one: the hand, the lens's reports and tripwires. */
struct cordon_call {
	long nr;
	cordon_call_kind kind;
	signed char dir, path;	 /* argument numbers; CWD: relative to the working directory */
	signed char dir2, path2; /* of the second path, NONE */
	signed char flags;
};

/* NULL for a call that names none, or that no report is about. */
const struct cordon_call *cordon_call_find(long nr);

/* One path that a call acts on. */
struct cordon_touch {
	const char *op; /* "read", "write", "create", "delete", "rename", "execute", "look" */
	bool writes;
	bool creates;	 /* the call may make this name */
	bool follows;	 /* the call follows a link at the end; false: it acts on the name itself */
	bool known;	 /* false: the path could not be read */
	bool nameless;	 /* the path starts from a descriptor of something that has no name */
	bool if_missing; /* an open that makes a missing file, and only reads a file that exists */
	bool deep;	 /* one name in a directory whose path is too long, or a long path that leads nowhere */
	bool has_text;	 /* `text` could be read */
	bool too_long;	 /* it could not, because it is longer than any path */
	int start;	 /* the descriptor from which a relative path starts, or AT_FDCWD */
	bool directory;	 /* the call makes a directory, and nothing else */
	bool direct;	 /* `path` is one name in a directory whose true path the kernel gave */
	uint64_t flags;	 /* of an open, as the kernel reads them; else 0 */
	uint64_t mode;
	char text[CORDON_PATH_MAX]; /* what the process wrote, copied once */
	char path[CORDON_PATH_MAX]; /* absolute, as the process sees it, not yet resolved; for reports */
};

#define CORDON_TOUCHES_MAX 2

/* All values of `op`; NULL behind the last one. */
#define CORDON_TOUCH_OPS 7
extern const char *const cordon_touch_ops[];

/* "/proc/PID/what". */
#define CORDON_PROC_PATH_SIZE 96
const char *cordon_proc_path(pid_t pid, const char *what, char ret[static CORDON_PROC_PATH_SIZE]);

/* Fills up to two touches and returns how many; 0 for a call that acts on no path, such as a bind without one. */
size_t cordon_calls_read(const struct seccomp_notif *notif, struct cordon_touch touches[static CORDON_TOUCHES_MAX]);

/* Copies memory of a process; false unless all of it could be read. */
bool cordon_calls_read_memory(pid_t pid, uint64_t address, void *into, size_t n);
/* Reads a string from the memory of a process, as it is now. False when it can't be read or is too long. */
bool cordon_calls_read_string(pid_t pid, uint64_t address, char ret[static CORDON_PATH_MAX]);

#endif
