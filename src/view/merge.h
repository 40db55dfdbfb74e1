/* SPDX-License-Identifier: Apache-2.0 */
/* Merges what a view and the host changed in one and the same text. */
#ifndef CORDON_VIEW_MERGE_H
#define CORDON_VIEW_MERGE_H

#include "view/delta.h"

/*
 * Appends the host's text with what the view changed in it. 0 with *ret_why NULL; 0 with the reason when both can't be
 * merged, and then the buffer is not valid; or an error. Only for a change that the host `edited`.
 */
int cordon_merge_change(const struct cordon_view *view, const struct cordon_delta *delta,
			const struct cordon_delta_change *change, struct cordon_buf *ret_merged, const char **ret_why,
			struct cordon_error *err);

#endif
