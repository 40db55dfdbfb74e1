/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes a tree of the host all at once or not at all, even if this process is killed at any moment.
 *
 *     journal/<k>/stage/<n>       the new entry of a step, before it is carried out
 *     journal/<k>/stage/<n>.old   the old one after it, so that it can be undone
 *     journal/<k>/stage/<n>.copy  a copy of a directory, before that is removed
 *     journal/<k>/stage/empty     a file without content and rights, to which other files can be moved
 *     journal/<k>/place           where the stage is instead, if the root lies on another file system
 *     journal/<k>/intent          the list of steps, once all of them are prepared: from here on they are carried out
 *     journal/<k>/applied         the same file, once they all are
 *     journal/<k>/undo            the same file, while they are taken back
 *     journal/kept-<k>            a journal whose stage has something of the host's that could not be given back
 *
 * A step moves the old entry of a name into the stage, looks at what it got, and gives the name to the new entry, which
 * fails if somebody else has given it one meanwhile. If the host changed the file after it was judged, that is not what
 * the step expects, and the step is taken back: nothing of the host's is ever lost. Which entries the stage has says
 * how far a step has come, so a killed process needs no further notes. For a moment the name is missing. To exchange
 * both entries would avoid that, but then the stage gets whatever has the name in that moment.
 *
 * With a stage in the root, copies of the old entries are in journal/<k>/stage before the first step.
 *
 * INVARIANT: names of the root are opened beneath it without following any link, for every step anew. INVARIANT: no
 * directory of the root is ever moved. An agent of another run may stand in it, and would travel along into the store.
 * A directory that goes is copied (it is empty) and removed; one that comes is new.
 */
#ifndef CORDON_VIEW_JOURNAL_H
#define CORDON_VIEW_JOURNAL_H

#include "view/delta.h"

typedef enum cordon_apply_step_kind {
	CORDON_APPLY_STEP_SWAP = 's', /* the root's entry goes to the stage, and the stage's gets its name; never directories */
	CORDON_APPLY_STEP_PUT = 'p',  /* the stage's entry gets a name that the root does not have */
	CORDON_APPLY_STEP_TAKE = 't', /* the root's entry goes to the stage; a directory must be empty */
	CORDON_APPLY_STEP_META = 'm', /* mode and time of what the root has; never a reason to fail */
	CORDON_APPLY_STEP_OPEN = 'o', /* a directory of the host that has another mode while the other steps are carried out */
} cordon_apply_step_kind;

struct cordon_apply_step {
	cordon_apply_step_kind kind;
	uint32_t n; /* the entry of the stage */
	const char *path;
	bool edited; /* the host had changed it since the view began */
	bool part;   /* only a part of the view's change is applied */
	struct cordon_ident old, new;
};

/* The entries of the stage that a step may have. */
typedef enum cordon_slot {
	CORDON_SLOT_NEW,
	CORDON_SLOT_OLD,
	CORDON_SLOT_COPY,
} cordon_slot;

#define CORDON_SLOT_SIZE (CORDON_DIGITS_SIZE + 8)

typedef enum cordon_apply_journal_state {
	CORDON_APPLY_JOURNAL_PREPARED, /* nothing has happened */
	CORDON_APPLY_JOURNAL_INTENT,
	CORDON_APPLY_JOURNAL_APPLIED,
	CORDON_APPLY_JOURNAL_UNDO,
} cordon_apply_journal_state;

struct cordon_apply_journal {
	struct cordon_arena *arena;
	struct cordon_view *view; /* borrowed, and so is the next */
	int root_fd;
	int all_fd; /* journal/ */
	int dir_fd; /* journal/<k> */
	int stage_fd;
	char name[16];	/* k */
	char place[64]; /* name of the stage in the root; "" when it is in dir_fd */
	cordon_apply_journal_state state;
	struct cordon_apply_step *steps;
	size_t n, cap;
	bool lost;     /* `place` is not there any more, though steps remain */
	bool whole;    /* with these steps, nothing of the view is left to be applied */
	uint32_t next; /* number for the next entry of the stage */
};

/* clang-format off */
#define CORDON_APPLY_JOURNAL_NONE { .root_fd = -1, .all_fd = -1, .dir_fd = -1, .stage_fd = -1 }
/* clang-format on */
#define autojournal CORDON_CLEANUP(cordon_apply_journal_done)

/* Begins a new journal of a view that the caller has locked. */
int cordon_apply_journal_begin(struct cordon_view *view, int root_fd, struct cordon_apply_journal *ret_journal,
			       struct cordon_error *err);
void cordon_apply_journal_done(struct cordon_apply_journal *journal);
int cordon_apply_journal_add(struct cordon_apply_journal *journal, const struct cordon_apply_step *step,
			     struct cordon_error *err);
/* Prepares what is needed to bring back the old entry of a step, before it is added. Returns 0 or -errno. */
int cordon_apply_journal_keep(struct cordon_apply_journal *journal, const struct cordon_apply_step *step);
/* The name of an entry of the stage. */
const char *cordon_apply_journal_slot(uint32_t n, cordon_slot slot, char buf[static CORDON_SLOT_SIZE]);

/*
 * Carries all steps out, and records that the view is applied if they are the whole of it. On failure none is, and the
 * journal is removed. `err` names the first path that the host changed meanwhile (kind conflict).
 */
int cordon_apply_journal_commit(struct cordon_apply_journal *journal, struct cordon_error *err);
/* Removes a journal of which nothing was carried out. */
void cordon_apply_journal_drop(struct cordon_apply_journal *journal);

/* Opens the newest journal that was applied. kind not_found when there is none. */
int cordon_apply_journal_latest(struct cordon_view *view, int root_fd, struct cordon_apply_journal *ret_journal,
				struct cordon_error *err);
/* Lists what prevents an undo, without changing anything: calls `met` for each path on which the host went on. */
int cordon_apply_journal_obstacles(const struct cordon_apply_journal *journal,
				   void (*met)(void *data, const char *path), void *data, struct cordon_error *err);
/* Takes all steps back and removes the journal. On failure all steps are as before. */
int cordon_apply_journal_undo(struct cordon_apply_journal *journal, struct cordon_error *err);

/*
 * Ends what a killed process began in this view, which the caller has locked. *ret_ended counts the journals. If the
 * host went on where a step is missing, everything is taken back; then `err` names the path, and the result is -ESTALE.
 * Needs the root only if there is something to end.
 */
int cordon_apply_journal_recover(struct cordon_view *view, size_t *ret_ended, struct cordon_error *err);
/* Whether there is something to end; needs no lock. */
bool cordon_apply_journal_pending(const struct cordon_view *view);
/* Whether something of the host's is kept for a person, because it could not be restored. */
bool cordon_apply_journal_has_kept(const struct cordon_view *view);

#endif
