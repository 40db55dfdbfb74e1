/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the policy denies and that do not exist when a view begins. The host may make one beside the live view,
 * and the overlay would show it, because nothing could be mounted on a name that is missing. So the upper layer gets a
 * whiteout for it, or for the first directory on the way that is missing: whatever the host makes there, the view does
 * not show it.
 *
 *     state/views/<id>/hidden   the paths of these whiteouts, each with a NUL
 *
 * Names that the run itself would make are held by the sandbox. A directory on the way that the run makes hides what
 * the host has in it, as in any overlay.
 */
#ifndef CORDON_VIEW_HIDE_H
#define CORDON_VIEW_HIDE_H

#include "base/buf.h"
#include "view/view.h"

/* Hides what the policy denies. The upper layer has just been made. */
int cordon_view_hide(const struct cordon_view *view, const struct cordon_policy *policy, struct cordon_error *err);
/* Removes the whiteouts that the run has left; it has ended. */
void cordon_view_unhide(const struct cordon_view *view);

/* The list of a view; empty when it has none. */
void cordon_hidden_load(int view_fd, struct cordon_buf *ret_list);
bool cordon_hidden_has(const struct cordon_buf *list, const char *path);

#endif
