/* SPDX-License-Identifier: Apache-2.0 */
/* The changes of a view, and what became of them, as JSON. Names are escaped (base/text.h). */
#ifndef CORDON_VIEW_SHOW_H
#define CORDON_VIEW_SHOW_H

#include <jansson.h>

#include "view/apply.h"

/* Whether a person decides about a change: not about directories on the way, or other times. */
bool cordon_delta_shown(const struct cordon_delta_change *change, const char *const *paths, size_t n_paths);

/* The places of the changes at `paths` (none: all) that people are shown: first what the host would execute. The caller
 * frees *ret_places; 0 or -ENOMEM. */
int cordon_changes_order(const struct cordon_delta *delta, const char *const *paths, size_t n_paths,
			 size_t **ret_places, size_t *ret_n);

/* How many files and links a view changes; directories are not counted. */
struct cordon_changes_counts {
	size_t added, modified, deleted;
	size_t executed; /* of them, what the host would execute */
	size_t left_out;
};
void cordon_changes_count(const struct cordon_delta *delta, struct cordon_changes_counts *ret_counts);

/* An object with `changes` and `left_out` at `paths` (none: all), and with `counts` also lines that were added and
 * removed. What the host would execute comes first. Lists have at most `max` items (0: all); then `total` is how many
 * changes there are, and `truncated` whether a list lacks some. NULL without memory. */
json_t *cordon_changes_json(const struct cordon_delta *delta, const char *const *paths, size_t n_paths, bool counts,
			    size_t max);
/* The lists of an apply or undo as an object, with `max` as above; `git` is what became of the commits, if they were
 * looked at. */
json_t *cordon_apply_json(const struct cordon_apply_result *result, size_t max);
/* What became of the commits of a run: state, commits, refused, warned, refs, paths and notes. NULL without memory. */
json_t *cordon_git_take_json(const struct cordon_git_take *take);
/* Calls `tell` with each line that is shown of that object, without an end of line. */
void cordon_git_lines(const json_t *git, void (*tell)(void *data, const char *line), void *data);

#endif
