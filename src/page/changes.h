/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about the changes of a view share. */
#ifndef CORDON_PAGE_CHANGES_H
#define CORDON_PAGE_CHANGES_H

#include "page/internal.h"
#include "view/pick.h"
#include "view/show.h"

/* One view while it is shown. */
struct cordon_page_view {
	struct cordon_view view;
	struct cordon_delta delta;
	struct cordon_apply_result judged;
	size_t *places; /* of the changes in the order in which they are shown */
	size_t n;
	bool ready; /* can be applied: its run has ended, and nothing is in the way of all of it */
	/* For each change: the refusal or conflict, or NULL. */
	const struct cordon_apply_item **in_the_way;
};

/* How much of the diffs still fits on the page. */
struct cordon_page_room {
	size_t lines, bytes;
	size_t each_lines, each_bytes; /* of one file */
	size_t file_bytes;	       /* a side of a file that is longer is not read */
};

/* changes_diff.c: the hunks of one change, those that can be chosen with a box. Returns false when there was no room for all of
 * it, and then says so. */
bool cordon_page_diff(struct cordon_page *page, const struct cordon_page_view *shown,
		      const struct cordon_delta_change *change, struct cordon_page_room *room);
/* The word for what happens to it: "added", "deleted", ... */
const char *cordon_page_change_word(const struct cordon_delta_change *change);

/* changes.c: "3 files: 1 added, ...". */
void cordon_page_counts(struct cordon_page *page, const struct cordon_changes_counts *counts);

/* changes_view.c: opens the view that the path names, or answers with a page about the failure and returns false. */
bool cordon_page_view_open(struct cordon_page *page, struct cordon_view *ret_view);

#endif
