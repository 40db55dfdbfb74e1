/* SPDX-License-Identifier: Apache-2.0 */
/* The changes of a view, and what became of them, as JSON. Names are escaped (base/text.h). */
#ifndef CORDON_VIEW_SHOW_H
#define CORDON_VIEW_SHOW_H

#include <jansson.h>

#include "view/apply.h"

/* Whether a person decides about a change: not about directories on the way, or other times. */
bool cordon_delta_shown(const struct cordon_delta_change *change, const char *const *paths, size_t n_paths);

/* An object with `changes` and `left_out` at `paths` (none: all), and with `counts` also lines that were added and removed.
 * What the host would execute comes first. NULL without memory. */
json_t *cordon_changes_json(const struct cordon_delta *delta, const char *const *paths, size_t n_paths, bool counts);
/* The lists of an apply or undo as an object. */
json_t *cordon_apply_json(const struct cordon_apply_result *result);

#endif
