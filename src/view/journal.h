/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes a tree of the host all at once or not at all, even if this process is killed at any moment.
 *
 *     journal/<k>/stage/<n>       the new files before the change; the old ones after it, so that it can be undone
 *     journal/<k>/place           where the stage is instead, if the root lies on another file system
 *     journal/<k>/intent          the list of steps, once all of them are prepared: from here on they are carried out
 *     journal/<k>/applied         the same file, once they all are
 *     journal/<k>/undo            the same file, while they are taken back
 *
 * A step exchanges a name of the root with an entry of the stage, in one system call, and then looks at what it got. If the
 * host changed the file after it was judged, that is not what the step expects, and the step is taken back: nothing of the
 * host's is ever lost. Where an entry of the stage is says whether a step was carried out, so a killed process needs
 * no further notes.
 *
 * INVARIANT: names of the root are opened beneath it without following any link, for every step anew.
 */
#ifndef CORDON_VIEW_JOURNAL_H
#define CORDON_VIEW_JOURNAL_H

#include "view/delta.h"

typedef enum cordon_step_kind {
	CORDON_STEP_SWAP = 's', /* the root's entry and the stage's change places */
	CORDON_STEP_PUT = 'p',	/* the stage's entry gets a name that the root does not have */
	CORDON_STEP_TAKE = 't', /* the root's entry goes to the stage; a directory must be empty */
	CORDON_STEP_META = 'm', /* mode and time of what the root has; never a reason to fail */
} cordon_step_kind;

struct cordon_step {
	cordon_step_kind kind;
	uint32_t n; /* the entry of the stage */
	const char *path;
	bool edited; /* the host had changed it since the view began */
	bool part;   /* only a part of the view's change is applied */
	struct cordon_ident old, new;
};

typedef enum cordon_journal_state {
	CORDON_JOURNAL_PREPARED, /* nothing has happened */
	CORDON_JOURNAL_INTENT,
	CORDON_JOURNAL_APPLIED,
	CORDON_JOURNAL_UNDO,
} cordon_journal_state;

struct cordon_journal {
	struct cordon_arena *arena;
	struct cordon_view *view; /* borrowed, and so is the next */
	int root_fd;
	int all_fd; /* journal/ */
	int dir_fd; /* journal/<k> */
	int stage_fd;
	char name[16];	/* k */
	char place[64]; /* name of the stage in the root; "" when it is in dir_fd */
	cordon_journal_state state;
	struct cordon_step *steps;
	size_t n, cap;
	bool whole;    /* with these steps, nothing of the view is left to be applied */
	uint32_t next; /* number for the next entry of the stage */
};

/* clang-format off */
#define CORDON_JOURNAL_NONE { .root_fd = -1, .all_fd = -1, .dir_fd = -1, .stage_fd = -1 }
/* clang-format on */
#define autojournal CORDON_CLEANUP(cordon_journal_done)

/* Begins a new journal of a view that the caller has locked. */
int cordon_journal_begin(struct cordon_view *view, int root_fd, struct cordon_journal *ret_journal,
			 struct cordon_error *err);
void cordon_journal_done(struct cordon_journal *journal);
int cordon_journal_add(struct cordon_journal *journal, const struct cordon_step *step, struct cordon_error *err);
/* The name of an entry of the stage. */
const char *cordon_journal_entry(uint32_t n, char buf[static CORDON_DIGITS_SIZE]);

/*
 * Carries all steps out, and records that the view is applied if they are the whole of it. On failure none is, and the journal is removed. `err` names the first path that the host changed
 * meanwhile (kind conflict).
 */
int cordon_journal_commit(struct cordon_journal *journal, struct cordon_error *err);
/* Removes a journal of which nothing was carried out. */
void cordon_journal_drop(struct cordon_journal *journal);

/* Opens the newest journal that was applied. kind not_found when there is none. */
int cordon_journal_latest(struct cordon_view *view, int root_fd, struct cordon_journal *ret_journal,
			  struct cordon_error *err);
/* Lists what prevents an undo, without changing anything: calls `met` for each path on which the host went on. */
int cordon_journal_obstacles(const struct cordon_journal *journal, void (*met)(void *data, const char *path),
			     void *data, struct cordon_error *err);
/* Takes all steps back and removes the journal. On failure all steps are as before. */
int cordon_journal_undo(struct cordon_journal *journal, struct cordon_error *err);

/*
 * Ends what a killed process began in this view, which the caller has locked. *ret_ended counts the journals. If the host
 * went on where a step is missing, everything is taken back; then `err` names the path, and the result is -ESTALE.
 */
int cordon_journal_recover(struct cordon_view *view, size_t *ret_ended, struct cordon_error *err);
/* Whether there is something to end; needs no lock. */
bool cordon_journal_pending(const struct cordon_view *view);

#endif
