/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second name of a protected file is a way around its protection. At start such files are found (protected files,
 * and with bounds the files in protected directories) and copied apart: the protected name gets an inode of its own
 * with the same content, mode, owner, times and extended attributes; the other name keeps the old inode.
 */
#ifndef CORDON_PROTECT_HARDLINKS_H
#define CORDON_PROTECT_HARDLINKS_H

#include "base/error.h"
#include "policy/policy.h"

#define CORDON_HARDLINKS_ENTRIES_MAX 1048576 /* entries read below one protected directory */
#define CORDON_HARDLINKS_DEPTH_MAX 64
#define CORDON_HARDLINKS_COPIES_MAX 32768	       /* files below one protected directory that are copied apart */
#define CORDON_HARDLINKS_SIZE_MAX ((int64_t)256 << 20) /* a file larger than this is refused, not copied */

/* Only looks. Names that `kept` counts are none. When there is more than a bound allows, it is an error (kind limit), because nobody can vouch for the
 * rest. *ret_sockets says whether there is a socket or a FIFO. */
int cordon_hardlinks_find(int root_fd, const char *path, const struct cordon_kept_names *kept, bool *ret_found,
			  bool *ret_sockets, struct cordon_error *err);
/* Copies apart the files that cordon_hardlinks_find() finds; *ret_count is how many. */
int cordon_hardlinks_break(int root_fd, const char *path, const struct cordon_kept_names *kept, size_t *ret_count,
			   struct cordon_error *err);

#endif
