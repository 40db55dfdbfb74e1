/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room share. */
#ifndef CORDON_VIEW_INTERNAL_H
#define CORDON_VIEW_INTERNAL_H

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>

#include "base/lock.h"
#include "base/path.h"
#include "state/record.h"
#include "view/view.h"

#define CORDON_VIEW_POLICY "policy"
#define CORDON_VIEW_RECORD "record.json"

extern const struct cordon_record_kind cordon_view_kind;

/* Opens state/views, and makes it when it is missing. */
int cordon_view_dir(const struct cordon_home *home, int *ret_fd, struct cordon_error *err);

/* The number of the root's device. What is written down about the root's files has the one that the record has, because
 * the number changes when the machine starts again. */
struct cordon_view_devices {
	uint64_t noted, now;
};

void cordon_view_devices(const struct cordon_view *view, int root_fd, struct cordon_view_devices *ret_devices);
/* From the one to the other, and back. */
uint64_t cordon_view_renumber(const struct cordon_view_devices *devices, uint64_t dev);

/* The state of another view in the same directory; CORDON_VIEW_STATE__MAX when there is no such view. */
cordon_view_state cordon_view_beside_state(const struct cordon_view *view, const char *id);
/* Refuses (kind conflict) when another view that may still be applied was made on top of this one. */
int cordon_view_check_above(const struct cordon_home *home, const char *id, struct cordon_error *err);

#endif
