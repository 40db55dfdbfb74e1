/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room share. */
#ifndef CORDON_VIEW_INTERNAL_H
#define CORDON_VIEW_INTERNAL_H

#include "store/internal.h"
#include "view/view.h"

#define CORDON_VIEW_POLICY "policy"
#define CORDON_VIEW_RECORD "record.json"

extern const struct cordon_record_kind cordon_view_kind;

/* Opens state/views, and makes it when it is missing. */
int cordon_view_dir(const struct cordon_home *home, int *ret_fd, struct cordon_error *err);

/* Locks a view by its directory, which costs the start no file. Never waits: -EWOULDBLOCK. */
int cordon_view_lock_dir(int dir_fd, int *ret_fd, struct cordon_error *err);

/* The state of another view in the same directory; CORDON_VIEW_STATE__MAX when there is no such view. */
cordon_view_state cordon_view_beside_state(const struct cordon_view *view, const char *id);
/* Refuses (kind conflict) when another view that may still be applied was made on top of this one. */
int cordon_view_check_above(const struct cordon_home *home, const char *id, struct cordon_error *err);

#endif
