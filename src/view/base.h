/* SPDX-License-Identifier: Apache-2.0 */
/* What a file was when a view began, if that is known although the host has changed it since. */
#ifndef CORDON_VIEW_BASE_H
#define CORDON_VIEW_BASE_H

#include "view/delta.h"

/*
 * Reads the content that the view began with. Returns -ENOENT when it is not known. *ret_certain is false when it is
 * git's blob, which is what the file was if it had no uncommitted changes then.
 */
int cordon_base_read(const struct cordon_view *view, const struct cordon_delta *delta,
		     const struct cordon_delta_change *change, struct cordon_buf *ret_content, bool *ret_certain);

/*
 * Keeps the files of the host that a view changed, as they are when its run ends, so that later changes of the host can
 * be merged. It keeps texts that the host has not changed since the start, and bounds their number and size. Modes and
 * directories are noted (known.h). Best effort.
 */
void cordon_base_keep(const struct cordon_view *view);

#endif
