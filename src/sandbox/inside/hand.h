/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand is a process of the sandbox that serves the seccomp listener. It answers the calls that the filter stopped:
 * it lets most of them continue, makes, opens, moves and removes what the agent itself can't in held directories
 * (sandbox/plan/hold.c), and tells the supervisor what is to be reported.
 *
 * INVARIANT: a name that the agent chose is resolved, judged and used here, where the agent stands. The hand has the
 * agent's namespaces, root, ids and limits. What the agent may not write is read-only or masked for the hand too. It
 * copies the text of a call once, opens the directory once, and judges and uses that descriptor (sandbox/inside/spot.h).
 *
 * It has no Landlock domain, because a process in a domain can look only into processes of its own domain. It has one
 * capability, CAP_SYS_PTRACE in the user namespace of the run, to read the calls of processes that Yama or their own
 * wish closes to others. It is not dumpable: nobody inside can look into it, and from Linux 6.12 on nobody inside can
 * signal it.
 *
 * PID 1 forks it when the first call comes (sandbox/watch/watch.h has the supervisor's side). Nothing here allocates.
 */
#ifndef CORDON_SANDBOX_INSIDE_HAND_H
#define CORDON_SANDBOX_INSIDE_HAND_H

#include <stdatomic.h>

#include "sandbox/inside/calls.h"
#include "sandbox/inside/inside.h"

#define CORDON_HANDS_MAX 16 /* listeners of one run: that of the agent, and those of programs that entered later */
#define CORDON_MADE_MAX                                                                                                \
	(1 << 18) /* entries that one run makes in directories of boundaries and that the hand remembers */

/* Which directory it is, whatever its name is now; all zero: none. */
struct cordon_dir_id {
	uint64_t dev, ino;
};

/*
 * Memory that the supervisor makes before it clones, and that all hands of a run share: what a hand knows must outlive
 * it. Only pages that are used take memory. The supervisor itself reads `serving`, `last`, `changed` and `calls`, and trusts none.
 */
struct cordon_hand_memory {
	_Atomic uint64_t serving[CORDON_HANDS_MAX]; /* per listener: the number of the call in hand; 0: none */
	_Atomic uint64_t last[CORDON_HANDS_MAX];    /* per listener: the number of the last call that was received */
	atomic_bool acting[CORDON_HANDS_MAX]; /* per listener: the hand carries out a deed, and does not only look */
	atomic_bool runs[CORDON_HANDS_MAX];   /* per listener: the program runs; before, our own process calls */
	_Atomic uint64_t calls;		      /* how many calls were received */
	atomic_bool changed;		      /* a call was seen that may change something */
	_Atomic uint64_t placed;	      /* how many directories hands have made or moved */
	/* The directories of the plan as they are inside, which the agent's process finds when it makes its Landlock
	 * rules: held ones, then open ones, then those of steps. */
	size_t n_ids;
	/* What the run made in directories of boundaries: a table by inode number. */
	_Atomic uint32_t n_made;
	struct cordon_made {
		uint64_t ino, mark;
	} made[CORDON_MADE_MAX];
	struct cordon_dir_id ids[];
};

/* Where the ids of held directories, open directories and steps are. */
static inline size_t cordon_hand_held_id(const struct cordon_plan *plan, size_t i)
{
	(void)plan;
	return i;
}

static inline size_t cordon_hand_open_id(const struct cordon_plan *plan, size_t i)
{
	return plan->n_held + i;
}

static inline size_t cordon_hand_step_id(const struct cordon_plan *plan, size_t i)
{
	return plan->n_held + plan->n_open_dirs + i;
}

static inline size_t cordon_hand_n_ids(const struct cordon_plan *plan)
{
	return plan->n_held + plan->n_open_dirs + plan->n_steps;
}

static inline size_t cordon_hand_memory_size(const struct cordon_plan *plan)
{
	return sizeof(struct cordon_hand_memory) + cordon_hand_n_ids(plan) * sizeof(struct cordon_dir_id);
}

/*
 * Messages of the hand to the supervisor, one packet each; the supervisor answers each one but HELLO with one byte when
 * it has reported. The first packet of the supervisor to the hand brings the listener.
 */
typedef enum cordon_hand_kind {
	CORDON_HAND_HELLO,   /* code: the hand's pid inside */
	CORDON_HAND_TOUCHES, /* a call touches these paths; code: what it returned, 0, -errno or CORDON_ERROR_UNKNOWN */
	CORDON_HAND_SIGHTS,  /* the same in a learning run */
	CORDON_HAND_REFUSED, /* the hand refused to act on touch 0; code: the number of the boundary, or enum cordon_hand_why */
	CORDON_HAND_TOO_LARGE, /* a directory of a view was not renamed, because too much is in it (base/move_dir.h) */
	CORDON_HAND__MAX
} cordon_hand_kind;

/* Why the hand refuses, where no single boundary says it. */
enum cordon_hand_why {
	CORDON_HAND_SELF_RESTRICTED = -1, /* the program gave up rights of its own */
	CORDON_HAND_LINK_IN_GIT = -2,	  /* no link comes into a git directory */
	CORDON_HAND_NOT_OF_RUN = -3,	  /* the host made it during the run, in a directory of a boundary */
	CORDON_HAND_OVERLAY_MARK = -4,	  /* an extended attribute that means something to overlayfs */
};

/* The error of a call that continues: the kernel has yet to answer. */
#define CORDON_ERROR_UNKNOWN 1

/* One path of a call, as far as the hand could see. */
struct cordon_hand_touch {
	uint8_t op; /* cordon_touch_op */
	uint8_t writes, creates, if_missing, directory, follows;
	uint8_t known;	  /* the path could be read */
	uint8_t plain;	  /* it is certainly not reported; of the rest only `exists` counts */
	uint8_t shown;	  /* the agent's tree has at least its directory; else only the host's tree may have it */
	uint8_t exists;	  /* it exists inside */
	uint8_t unseen;	  /* nobody looked inside whether it exists; only the host's tree says it */
	uint8_t linked;	  /* the path led through a link */
	uint32_t type;	  /* file type of what exists inside */
	uint32_t path_at; /* in `texts`: absolute, as the agent sees it, resolved as far as it can be */
};

struct cordon_hand_message {
	uint32_t kind;
	int32_t code;
	uint32_t n; /* touches */
	struct cordon_hand_touch touches[CORDON_TOUCHES_MAX];
	char texts[CORDON_TOUCHES_MAX * CORDON_PATH_MAX]; /* the last field, because only its used part is sent */
};

/* Runs in the hand's process, a child of PID 1. `socket` leads to the supervisor. Never returns. */
_Noreturn void cordon_hand(const struct cordon_inside *in, int socket, uint32_t number);

#endif
