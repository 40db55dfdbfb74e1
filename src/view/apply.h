/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings the changes of a view into the host's tree, and takes them back. Each path is judged by the policy of the run.
 * A text that the host changed meanwhile is merged if the two changes do not touch; anything else is a
 * conflict that has a name, and then nothing is written.
 */
#ifndef CORDON_VIEW_APPLY_H
#define CORDON_VIEW_APPLY_H

#include "git/git.h"
#include "protect/repositories.h"
#include "view/delta.h"

/* What a person chose of one change. */
typedef enum cordon_pick {
	CORDON_PICK_NO,
	CORDON_PICK_ALL,
	CORDON_PICK_PART, /* the new content is in the buffer */
	CORDON_PICK_QUIT, /* apply nothing */
} cordon_pick;

/* A change, or one hunk of it (pick.h), that a person chose from a list. Both are counted from 0. */
struct cordon_picked {
	size_t change; /* its place in the delta */
	size_t hunk;   /* or CORDON_PICKED_WHOLE */
};

#define CORDON_PICKED_WHOLE SIZE_MAX
#define CORDON_SHOWN_SIZE 65 /* hexadecimal text */

struct cordon_apply_request {
	const char *const *paths; /* clean, relative to the root; none: everything */
	size_t n_paths;
	bool only_judge; /* write nothing */
	/* Asks about each change for which cordon_pick_asks() is true; NULL: everything is chosen. A negative errno
	 * with err ends it. */
	int (*pick)(void *data, const struct cordon_delta *delta, const struct cordon_delta_change *change,
		    cordon_pick *ret_pick, struct cordon_buf *ret_content, struct cordon_error *err);
	void *data;
	/* Instead of `pick`: what was chosen from a list that also showed what the host has changed or removed. In
	 * order. */
	const struct cordon_picked *picked;
	size_t n_picked;
	/* What cordon_view_foresee() gave when a person looked at the changes; NULL: nobody did. If the view or what
	 * the host has there is not the same any more, nothing is written: -ESTALE, kind conflict. */
	const char *shown;
};

/* One line of the result. Strings belong to the result. */
struct cordon_apply_item {
	const char *path;
	char letter; /* as of `git diff --name-status` */
	bool dir;
	bool merged;	 /* with what the host changed */
	bool warned;	 /* outside the scope of a permissive run */
	bool part;	 /* not all hunks */
	const char *who; /* would execute it, or NULL */
	const char *why; /* of a conflict or refusal; else NULL */
	size_t change;	 /* its place in the delta */
};

struct cordon_apply_items {
	struct cordon_apply_item *item;
	size_t n, cap;
};

struct cordon_apply_result {
	struct cordon_arena *arena;
	struct cordon_apply_items applied;   /* what was brought over; nothing when there is a conflict or refusal */
	struct cordon_apply_items conflicts; /* what the host changed too */
	struct cordon_apply_items refused;   /* what the policy does not allow */
	struct cordon_apply_items left;	     /* what is never applied; `why` is the reason */
	bool whole;			     /* nothing of the view remains to be applied */
	char shown[CORDON_SHOWN_SIZE];	     /* stands for all that was judged, if nothing was written; else "" */
	/* What the run committed, when all of the view is applied; else NULL. */
	struct cordon_git_take *git;
	/* In which git would execute something that was brought over. */
	struct cordon_repositories repositories;
};

#define autoapply CORDON_CLEANUP(cordon_apply_done)
void cordon_apply_done(struct cordon_apply_result *result);

/*
 * The caller has opened the view; this locks it. Returns 0; -EEXIST (kind conflict) with conflicts in the result;
 * -EPERM (kind policy_denied) with refusals; or another error. *ret_result is filled in each case and needs
 * cordon_apply_done().
 */
int cordon_view_apply(struct cordon_view *view, const struct cordon_apply_request *request,
		      struct cordon_apply_result *ret_result, struct cordon_error *err);

/*
 * What an apply of everything would do, for a person who is to decide: the changes, and in the result what would be
 * refused, conflict or be applied, and `shown`. Takes no lock, ends nothing that was interrupted, and judges no
 * commits, so anybody can look at any time. What is read of the host's files after this call is at least as new as what
 * `shown` stands for.
 */
int cordon_view_foresee(struct cordon_view *view, struct cordon_delta *ret_delta,
			struct cordon_apply_result *ret_result, struct cordon_error *err);
/* Whether the view can be applied at all: its run has ended, and what it was made on top of is applied. */
int cordon_view_check_apply(const struct cordon_view *view, const struct cordon_delta *delta, struct cordon_error *err);

struct cordon_undo_request {
	bool only_judge;   /* write nothing, and take no lock */
	const char *shown; /* of a result that was only judged, or NULL; as with an apply */
};

/* Takes the newest apply back. `result` lists what is restored, or in `conflicts` where the host went on. `request` may
 * be NULL. */
int cordon_view_undo(struct cordon_view *view, const struct cordon_undo_request *request,
		     struct cordon_apply_result *ret_result, struct cordon_error *err);

/* Removes the view with its changes, and what is needed to undo them. */
int cordon_view_discard(const struct cordon_home *home, struct cordon_view *view, struct cordon_error *err);

/* Writes to the audit log what became of a view; `result` and `failed` may be NULL. cordon_view_discard() does it
 * itself. */
void cordon_view_audit(const struct cordon_home *home, const struct cordon_view *view, const char *op,
		       const struct cordon_apply_result *result, const struct cordon_error *failed);

/* Whether an apply or undo of this view was interrupted, or another process is at it. */
bool cordon_view_unfinished(const struct cordon_view *view);
/* Ends what killed processes began, in all views. *ret_ended counts it; `err` is about the first that could not be
 * ended as it was begun. */
int cordon_view_recover(const struct cordon_home *home, size_t *ret_ended, struct cordon_error *err);

#endif
