/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole trees that somebody hostile may have made, by descriptor: nothing here follows a link at either end or
 * waits on a FIFO, and every copy is bounded.
 */
#ifndef CORDON_BASE_TREE_H
#define CORDON_BASE_TREE_H

#include "base/error.h"

#define CORDON_COPY_BYTES_MAX ((uint64_t)64 << 20)
#define CORDON_COPY_ENTRIES_MAX 10000
#define CORDON_COPY_DEPTH_MAX 32

/* What a copy may still take; shared by several copies that count as one. */
struct cordon_copy_budget {
	uint64_t bytes;
	size_t entries;
};

#define CORDON_COPY_BUDGET                                                                                             \
	{                                                                                                              \
		.bytes = CORDON_COPY_BYTES_MAX, .entries = CORDON_COPY_ENTRIES_MAX                                     \
	}

/*
 * Copies the regular file or directory `name` of src_fd to dst_fd, where that name must not exist. Directories hold
 * regular files and directories only: a link, FIFO, socket or device anywhere is -EINVAL, too much of it -E2BIG,
 * and each error names the path. Permission bits are kept without set-id and write bits for others; everything is
 * synced. What was copied before a failure stays: copy into a place of your own. -ENOENT when there is no source.
 */
int cordon_tree_copy(int src_fd, const char *name, int dst_fd, struct cordon_copy_budget *budget,
		     struct cordon_error *err);

/*
 * Moves the tree `name` of src_fd onto dst_fd: a directory is merged into one of the same name, a file replaces a
 * file or a link, and what stands in the way otherwise is -EEXIST. The source is a private copy (cordon_tree_copy);
 * the destination may be anybody's. Each file is replaced in one step.
 */
int cordon_tree_merge(int src_fd, const char *name, int dst_fd, struct cordon_error *err);

/* Renames within one file system, never over anything (-EEXIST). A directory that its last user made unwritable is
 * made writable first. 0 or -errno. */
int cordon_tree_move(int from_fd, const char *name, int to_fd, const char *to_name);

/*
 * Removes `name` and everything below; a missing one is fine. Needs two descriptors and no memory however deep the
 * tree is, because sub-directories are first moved up into `name`. Unreadable directories are made readable.
 */
int cordon_tree_remove(int dir_fd, const char *name, struct cordon_error *err);

#endif
