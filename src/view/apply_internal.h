/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that apply a view share. */
#ifndef CORDON_VIEW_APPLY_INTERNAL_H
#define CORDON_VIEW_APPLY_INTERNAL_H

#include "view/apply.h"
#include "view/journal.h"

/* What is known of a change while it is applied. */
struct cordon_choice {
	bool chosen;
	bool part;
	bool merged;
	bool warned;
	struct cordon_buf content; /* merged or picked; else it is the upper layer's */
};

struct cordon_applying {
	struct cordon_view *view;
	const struct cordon_apply_request *request;
	struct cordon_apply_result *result;
	struct cordon_delta delta;
	struct cordon_policy *policy;
	struct cordon_choice *choices; /* one for each change of the delta */
	size_t n_choices;
	struct cordon_apply_journal journal;
	void *links;		      /* a tree (tsearch) of files with several names that are staged */
	char opened[CORDON_PATH_MAX]; /* the directory that was looked at last, whether it must be opened; "": the root */
	struct cordon_error *err;
};

/* apply_stage.c: stages what was chosen, and has a journal carry it out. `whole`: that is all of the view. */
int cordon_apply_carry_out(struct cordon_applying *apply, bool whole);

#endif
