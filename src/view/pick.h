/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person sees of one change and may choose of it: both sides compared by line, in hunks. `cordon changes apply
 * -p` asks about each hunk; the page shows them all and sends back which ones were chosen.
 */
#ifndef CORDON_VIEW_PICK_H
#define CORDON_VIEW_PICK_H

#include "view/apply.h"
#include "view/patch.h"

struct cordon_compared {
	struct cordon_buf old; /* what the host has, or the target of a link */
	struct cordon_buf new; /* what it becomes when the whole change is applied */
	bool too_large;	       /* one side has more than was to be read; then there is nothing more here */
	bool text;	       /* both sides can be compared by line; else there are no hunks */
	bool merged;	       /* the host changed it, too, and `new` has both changes */
	const char *conflict; /* the host changed it, too, and why that can't be merged; `new` is the view's; or NULL */
	struct cordon_text a, b;
	struct cordon_edits edits;
	struct cordon_hunk *hunks;
	size_t n;
	size_t added, removed; /* lines */
};

#define autocompared CORDON_CLEANUP(cordon_compared_done)

/* Compares the sides of a change that is none of a directory. `max` bounds the bytes of each side. */
int cordon_compare(const struct cordon_view *view, const struct cordon_delta *delta,
		   const struct cordon_delta_change *change, size_t max, struct cordon_compared *ret_compared,
		   struct cordon_error *err);
void cordon_compared_done(struct cordon_compared *compared);

/* Whether hunks of the change can be chosen: a text that stays one, with the same mode. All else is taken as a
 * whole. */
bool cordon_pick_by_hunk(const struct cordon_delta_change *change, const struct cordon_compared *compared);
/* Makes the choice of the hunks whose entry in `chosen` is true. */
int cordon_pick_hunks(const struct cordon_compared *compared, const bool *chosen, cordon_pick *ret_pick,
		      struct cordon_buf *ret_content);

/* Whether a person is asked about a change: not about times, and not about a directory that comes along with what is in
 * it. */
bool cordon_pick_asks(const struct cordon_delta *delta, const struct cordon_delta_change *change);

/* For cordon_apply_request.pick: what was chosen before, in the order of the changes. */
struct cordon_pick_list {
	const struct cordon_view *view;
	const struct cordon_picked *items;
	size_t n, at;
};
int cordon_pick_listed(void *data, const struct cordon_delta *delta, const struct cordon_delta_change *change,
		       cordon_pick *ret_pick, struct cordon_buf *ret_content, struct cordon_error *err);

#endif
