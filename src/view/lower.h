/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies below the upper layer of a view: the root, and between the two the upper layers of the views on which this
 * one was made. They are shown as the kernel shows them: the topmost entry counts, a whiteout hides what lies below it,
 * directories are merged down to one that is opaque.
 *
 * INVARIANT: runs made the layers, and they are hostile. Everything is opened by descriptor from its directory, no link
 * is followed, and nothing waits.
 */
#ifndef CORDON_VIEW_LOWER_H
#define CORDON_VIEW_LOWER_H

#include <sys/stat.h>

#include "base/name_list.h"
#include "base/upper.h"
#include "view/delta.h"

/* clang-format off */
#define CORDON_LOWER_NONE { .root = -1 }
/* clang-format on */
#define autolower CORDON_CLEANUP(cordon_lower_done)

/* Opens the layers of a view and its root. `root` is borrowed for the copy that the result has. -ESTALE (kind conflict)
 * when a layer is not there any more. */
int cordon_lower_top(const struct cordon_view *view, int root, struct cordon_lower *ret_lower, struct cordon_error *err);
void cordon_lower_done(struct cordon_lower *lower);
bool cordon_lower_is_empty(const struct cordon_lower *lower);

/* Describes what is at a name; `mode` is 0 when nothing is. *ret_dir is the directory in which it is, borrowed. */
int cordon_lower_look(const struct cordon_lower *lower, const char *name, struct cordon_ident *ret_ident, int *ret_dir);
/* Opens a directory, of each layer that has a part of it. */
int cordon_lower_open(const struct cordon_lower *lower, const char *name, struct cordon_lower *ret_lower);
/* Opens a file (O_RDONLY) or a link (O_PATH) by its path below this directory. A descriptor or -errno. */
int cordon_lower_find(const struct cordon_lower *lower, const char *path, bool link);

/* The names of all layers, each once. Whiteouts are among them; cordon_lower_look() finds nothing there. */
int cordon_lower_names(const struct cordon_lower *lower, struct cordon_name_list *names);

#endif
