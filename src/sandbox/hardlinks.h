/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second name of a protected file goes around its protection. Such files are found at start (in protected files,
 * and bounded in protected directories) and copied apart: the protected name gets an inode of its own with the same
 * content, mode, owner, times and extended attributes; the other name keeps the old one.
 */
#ifndef CORDON_SANDBOX_HARDLINKS_H
#define CORDON_SANDBOX_HARDLINKS_H

#include "base/error.h"

#define CORDON_HARDLINKS_ENTRIES_MAX 4096 /* looked at below one protected directory */
#define CORDON_HARDLINKS_DEPTH_MAX 16
#define CORDON_HARDLINKS_SIZE_MAX ((int64_t)256 << 20) /* a file larger than this is refused, not copied */

/* Looks only. Beyond a bound it is an error (kind limit): what was not looked at can't be promised. */
int cordon_hardlinks_find(int root_fd, const char *path, bool *ret_found, struct cordon_error *err);
/* Copies apart what find() found; *ret_count is how many files. */
int cordon_hardlinks_break(int root_fd, const char *path, size_t *ret_count, struct cordon_error *err);

#endif
