/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the calls that the kernel would refuse to the agent because they make an entry in a held directory, and has the
 * hand make the entry.
 *
 * INVARIANT: nothing is allowed because of the agent's memory. The name is copied once; the copy is judged, and the
 * hand acts on the copy and on the directory that was opened for it. Every other call continues in the kernel: even
 * when the agent changes its memory meanwhile, the kernel makes no entry in a held directory for it.
 */
#ifndef CORDON_SANDBOX_WATCH_HELD_H
#define CORDON_SANDBOX_WATCH_HELD_H

#include "sandbox/inside/caller.h"
#include "sandbox/watch/hand_ask.h"
#include "sandbox/watch/watched.h"
#include "sandbox/inside/where.h"

/* The directory and the name that a call acts on. */
struct cordon_spot {
	int dir_fd; /* O_PATH, or -1 */
	bool held;  /* the agent itself can't make an entry there */
	bool free;  /* the agent itself can make entries there, and no boundary lies in that directory or below it */
	const struct cordon_open_dir *open_dir; /* the open directory in which a free spot lies; or NULL */
	bool exists;				/* the name exists already */
	bool slash;				/* slashes followed the name */
	mode_t type;				/* the file type of what exists */
	char name[NAME_MAX + 1];
	char path[CORDON_PATH_MAX];	  /* true path inside, with the name */
	const struct cordon_guard *guard; /* the boundary that has this path, or lies below it; or NULL */
};

struct cordon_held_call {
	struct cordon_spot spots[CORDON_TOUCHES_MAX];
	size_t n;
	int file_fd; /* for a linkat() that names its file by a descriptor: that file; or -1 */
};

struct cordon_held_watch {
	const struct cordon_watched *watched;
	const struct cordon_places *places;
	int listener; /* borrowed */
	struct cordon_caller_files files;
	unsigned int filters; /* the number of seccomp filters of a process that gave up no rights */
	const atomic_bool *stop;
	struct cordon_hand_request request;
	/* The last directory in which the agent itself made an entry, because many entries are often made there one
	 * after the other. cordon_held_forget() clears it. */
	dev_t free_dev;
	ino_t free_ino;			/* 0: none */
	char free_dir[CORDON_PATH_MAX]; /* as the agent wrote it */
};

void cordon_held_init(struct cordon_held_watch *held, const struct cordon_watched *watched,
		      const struct cordon_places *places, int listener, const atomic_bool *stop);
void cordon_held_done(struct cordon_held_watch *held);

/* A quick test: true when a path certainly lies where the agent itself makes entries and no boundary is. */
bool cordon_held_is_free(const struct cordon_held_watch *held, const struct cordon_touch *touch);

/* Whether a call may rename a directory of a view: then cordon_held_find() must see it. */
bool cordon_held_may_move(const struct cordon_held_watch *held, const struct seccomp_notif *notif);

/* Call it before a name is moved, removed or linked, because a path may lead somewhere else afterwards. */
void cordon_held_forget(struct cordon_held_watch *held);

typedef enum cordon_held_found {
	CORDON_HELD_NOT,  /* it would not: the kernel answers the call */
	CORDON_HELD_FREE, /* the same, and certainly no boundary is concerned */
	CORDON_HELD_YES,  /* it would, or it renames a directory of a view: *ret_call needs cordon_held_call_done() */
} cordon_held_found;

/* Whether a call would make an entry in a held directory. */
cordon_held_found cordon_held_find(struct cordon_held_watch *held, const struct seccomp_notif *notif,
				   const struct cordon_touch *touches, size_t n, struct cordon_held_call *ret_call);
void cordon_held_call_done(struct cordon_held_call *call);

typedef enum cordon_held_answer {
	CORDON_HELD_CONTINUE, /* let the call continue: the kernel answers it */
	CORDON_HELD_REFUSE,   /* refuse it with *ret_error, for boundary *ret_guard; NULL: the caller gave up rights */
	CORDON_HELD_DONE,     /* the hand did it: *ret_error is 0 or its error; *ret_fd is the opened file, or -1 */
	CORDON_HELD_GONE,     /* the caller is gone */
} cordon_held_answer;

cordon_held_answer cordon_held_serve(struct cordon_held_watch *held, const struct seccomp_notif *notif,
				     const struct cordon_touch *touches, const struct cordon_held_call *call,
				     int *ret_error, int *ret_fd, const struct cordon_guard **ret_guard);

#endif
