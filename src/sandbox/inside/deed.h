/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hand does for a call: finds the calls that the kernel would refuse to the agent because they make, change or
 * remove something in a held directory, judges them, and does them.
 *
 * INVARIANT: nothing is allowed because of the agent's memory. The text of a call is copied once; the copy is judged, and
 * the hand acts on the copy and on the directory that was opened for it. A call that is not served continues in the
 * kernel, which makes, writes and removes nothing in a held directory for the agent, whatever its memory says by then.
 */
#ifndef CORDON_SANDBOX_INSIDE_DEED_H
#define CORDON_SANDBOX_INSIDE_DEED_H

#include "sandbox/inside/caller.h"
#include "sandbox/inside/spot.h"

/* What a hand works with. */
struct cordon_hand {
	const struct cordon_inside *in;
	const struct cordon_plan *plan;
	struct cordon_hand_memory *memory;
	uint32_t number; /* of the listener */
	int listener;
	int socket;  /* to the supervisor */
	int lock_fd; /* one deed at a time, of all hands in this root */
	struct cordon_spots spots;
	struct cordon_caller_files files;
	unsigned int filters; /* the number of seccomp filters of a process that gave up no rights */
	bool served_last;     /* the last call was about a held directory: the next one probably is, too */
};

typedef enum cordon_deed_kind {
	CORDON_DEED_NONE,
	CORDON_DEED_OPEN,
	CORDON_DEED_MKDIR,
	CORDON_DEED_MKNOD,
	CORDON_DEED_SYMLINK,
	CORDON_DEED_LINK,
	CORDON_DEED_RENAME,
	CORDON_DEED_BIND,
	CORDON_DEED_REMOVE,
	CORDON_DEED_TRUNCATE,
	CORDON_DEED_SET_XATTR,
} cordon_deed_kind;

struct cordon_deed {
	cordon_deed_kind kind;
	int arg; /* the argument with the mode, the flags, the length, or the text of a link */
	const struct seccomp_notif *notif;
	const struct cordon_touch *touches;
	size_t n;
	struct cordon_caller caller;
	struct cordon_spot_caller who;
	struct cordon_spot spots[CORDON_TOUCHES_MAX];
	int file_fd; /* a linkat() names its file by a descriptor: that file; or -1 */
	/* The outcome. */
	int error;			 /* what the call returns */
	int fd;				 /* the file that was opened, or -1 */
	const struct cordon_spot *blame; /* the spot for which it was refused */
	int why;			 /* the boundary's number, or enum cordon_hand_why */
	bool too_large;			 /* a directory of a view was not renamed, because too much is in it */
};

typedef enum cordon_deed_answer {
	CORDON_DEED_CONTINUE, /* the kernel answers the call */
	CORDON_DEED_FREE,     /* the same, and certainly no boundary is concerned */
	CORDON_DEED_REFUSED,  /* with `error`, because of `blame` and `why` */
	CORDON_DEED_DONE,     /* `error` is 0 or why it failed */
	CORDON_DEED_APART,    /* a child of the hand answers it */
	CORDON_DEED_GONE,     /* the caller is gone */
} cordon_deed_answer;

/* Serves one call. *ret_deed needs cordon_deed_done(). */
cordon_deed_answer cordon_deed_serve(struct cordon_hand *hand, const struct seccomp_notif *notif,
				     const struct cordon_touch *touches, size_t n, struct cordon_deed *ret_deed);
void cordon_deed_done(struct cordon_deed *deed);

/* Gives the file to the caller, and the call its answer. The file is closed before the answer: it could not be executed
 * while we have it open for writing. */
void cordon_deed_give_file(const struct cordon_hand *hand, uint64_t id, int *fd, bool close_on_exec);
/* Whether the caller is still waiting; else another process may have its pid by now. */
bool cordon_deed_caller_waits(const struct cordon_hand *hand, uint64_t id);
/* Answers with 0 or -errno. */
void cordon_deed_answer_call(const struct cordon_hand *hand, uint64_t id, int error, bool go_on);

/* Parts, each in a file of its own. Whether the rules allow the deed: DONE, else what to answer. */
cordon_deed_answer cordon_deed_judge(struct cordon_hand *hand, struct cordon_deed *deed);
cordon_deed_answer cordon_deed_act(struct cordon_hand *hand, struct cordon_deed *deed);
/* setxattr and its relatives, anywhere. */
cordon_deed_answer cordon_deed_set_xattr(struct cordon_hand *hand, struct cordon_deed *deed);

#endif
