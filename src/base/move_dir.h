/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renames a directory that overlayfs refuses to rename because it lies in a lower layer: makes a directory of the new
 * name and moves the entries one by one. Works on descriptors, follows no link, and allocates no memory.
 */
#ifndef CORDON_BASE_MOVE_DIR_H
#define CORDON_BASE_MOVE_DIR_H

#include "base/util.h"

/* No more than this is moved: each file of a lower layer has to be copied. */
#define CORDON_MOVE_ENTRIES_MAX 100000
#define CORDON_MOVE_BYTES_MAX ((uint64_t)8 << 30)
#define CORDON_MOVE_DEPTH_MAX 64

/*
 * Like renameat2(), which it tries first. `flags` are those of renameat2(). Where that answers EXDEV for two names on
 * one mount of an overlay, and the first is a directory, it moves the directory. Returns 0 or -errno. -EXDEV with
 * *ret_too_large set: there is too much in it; nothing has changed. When a part can't be moved, what was moved goes back
 * to its place as far as possible.
 */
int cordon_move_dir(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags, bool *ret_too_large);

#endif
