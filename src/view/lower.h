/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies below the upper layer of a view: the root, and between the two the upper layers of the views on which this one
 * was made. They are shown as the kernel shows them: the topmost entry counts, a whiteout hides what lies below it,
 * directories are merged down to one that is opaque.
 *
 * INVARIANT: runs made the layers, and they are hostile. Everything is opened by descriptor from its directory, no link is
 * followed, and nothing waits.
 */
#ifndef CORDON_VIEW_LOWER_H
#define CORDON_VIEW_LOWER_H

#include <sys/stat.h>

#include "base/name_list.h"
#include "view/delta.h"

#define CORDON_OVERLAY_ATTRIBUTE(name) "user.overlay." name

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

/* The names in a directory, sorted, each of them allocated. */
struct cordon_listing {
	char **name;
	size_t n, cap;
};

#define autolisting CORDON_CLEANUP(cordon_listing_done)
void cordon_listing_done(struct cordon_listing *names);
int cordon_listing_read(int dir_fd, struct cordon_listing *names);
/* The names of all layers, each once. Whiteouts are among them; cordon_lower_look() finds nothing there. */
int cordon_lower_names(const struct cordon_lower *lower, struct cordon_listing *names);

/* ---- one upper layer ---- */

/* Opens a file or directory. The run may have taken away our right to read it: a file is open to us for a moment, a directory
 * from now on. A descriptor, or -1 with errno. */
int cordon_upper_open(int dir_fd, const char *name, int flags);
/* The mode that the run gave an open directory whose mode is `mode` now. */
mode_t cordon_upper_mode(int fd, mode_t mode);
bool cordon_upper_has(int fd, const char *attribute);
/* Whether an entry stands for a deletion: a device 0:0, or an empty file with the attribute for it. */
bool cordon_upper_is_whiteout(int dir_fd, const char *name, const struct stat *st);

#endif
