/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory and the name that a call means, and who may make entries there.
 *
 * INVARIANT: the text of the agent is resolved once, in the agent's own tree, and everything is judged by the descriptor
 * of the directory that this gave: by the numbers of the directory and of those above it, never by a path. What can't be
 * judged (no name, removed, too deep) is not served: the call continues, and the kernel refuses it.
 */
#ifndef CORDON_SANDBOX_INSIDE_SPOT_H
#define CORDON_SANDBOX_INSIDE_SPOT_H

#include <limits.h>
#include <sys/stat.h>

#include "sandbox/inside/hand.h"

#define CORDON_SPOT_DEPTH_MAX 255 /* directories between a spot and the one that says whose it is */

typedef enum cordon_spot_class {
	CORDON_SPOT_ELSEWHERE, /* not ours to judge: no held directory contains it, or it lies below a boundary */
	CORDON_SPOT_FREE,      /* the agent itself makes entries there */
	CORDON_SPOT_HELD,      /* only the hand makes, changes and removes entries there */
} cordon_spot_class;

struct cordon_spot {
	int dir_fd; /* O_PATH, or -1 */
	struct cordon_dir_id dir_id;
	uint64_t dir_birth; /* the directory's time of birth in ns; 0: the file system has none */
	cordon_spot_class class;
	bool boundary;	/* held: the name of a boundary stands in this directory, or would */
	bool in_git;	/* the directory is, or lies in, a git directory of the host's */
	bool mixed;	/* free, but something that can only be read is mounted below */
	bool slash;	/* slashes followed the name */
	bool exists;	/* the name exists */
	mode_t type;	/* the file type of what exists */
	uint64_t ino;	/* of what exists */
	bool only_name; /* what exists has no other name */
	uint64_t birth; /* its time of birth in ns; 0: the file system has none */
	size_t held;	/* the held directory that contains it, if it is held */
	char name[NAME_MAX + 1];
	char path[CORDON_PATH_MAX]; /* held: in the plan's words, with the name; "": it is longer than any boundary's */
	const struct cordon_guard *guard; /* the boundary that has this path, or lies below it; or NULL */
	const struct cordon_guard *temp;  /* the boundary for which this name is one of its temporary names; or NULL */
};

/* Directories that were found to be free lately. */
struct cordon_spots {
	const struct cordon_plan *plan;
	const struct cordon_hand_memory *memory;
	int root_fd; /* the root of the agent's processes */
	/* A directory that was free lately may be taken for free, because then the kernel decides. Not for a call with two
	 * places. The number of a directory that was removed comes back elsewhere, and there the kernel would refuse: so all
	 * are forgotten when a hand makes or moves a directory, and the time of birth must fit, because the host makes some. */
	bool quick;
	uint64_t placed; /* what the hands' count of directories was when the first one was remembered */
	struct cordon_free_dir {
		struct cordon_dir_id id;
		uint64_t birth;
	} free[64];
};

/* Whose tree a call is about: the thread that is stopped, and its process. */
struct cordon_spot_caller {
	pid_t thread, leader;
};

/* A time of birth in ns; 0: the file system has none. */
static inline uint64_t cordon_spot_birth(const struct statx *st)
{
	return st->stx_mask & STATX_BTIME ? (uint64_t)st->stx_btime.tv_sec * 1000000000U + st->stx_btime.tv_nsec : 0;
}

/* Where the path of a touch begins, and the rest of its text. Opens the directory once; the caller closes *ret_fd, which
 * may be -1 for "the root". False when it can't be opened. */
bool cordon_spot_base(const struct cordon_spot_caller *caller, const struct cordon_touch *touch, int *ret_fd,
		      const char **ret_text);

/* Finds the spot of a touch. False when there is none, or none that can be judged: *ret needs no clean-up then. */
bool cordon_spot_find(const struct cordon_spots *spots, const struct cordon_spot_caller *caller,
		      const struct cordon_touch *touch, struct cordon_spot *ret);
/* The same for something that is open: the directory and the name at which it stands. */
bool cordon_spot_of_file(const struct cordon_spots *spots, int fd, struct cordon_spot *ret);
/* Looks again at what has the name. */
void cordon_spot_look(const struct cordon_spots *spots, struct cordon_spot *spot);
/* Says who may make entries in an open directory. False when that can't be judged. Fills class, boundary, in_git, held,
 * and `path` without a name. */
bool cordon_spot_classify(const struct cordon_spots *spots, int dir_fd, struct cordon_spot *ret);
void cordon_spot_done(struct cordon_spot *spot);

/* Opens (O_PATH) what a text leads to, name by name, also through links to links of the caller's process. `base` is borrowed;
 * -1: the root. Without `follow` a link at the end is opened itself. */
int cordon_spot_walk(const struct cordon_spots *spots, const struct cordon_spot_caller *caller, int base,
		     const char *text, bool follow);

/* Remembers that the directory of a spot is free. */
void cordon_spot_remember_free(struct cordon_spots *spots, const struct cordon_spot *spot);

#endif
