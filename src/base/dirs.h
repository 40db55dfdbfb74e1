/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, merges and removes whole directories, with everything below, that a hostile process may have made. All
 * functions work on descriptors: none follows a link at either end or waits on a FIFO, and every copy is bounded.
 */
#ifndef CORDON_BASE_DIRS_H
#define CORDON_BASE_DIRS_H

#include "base/error.h"

#define CORDON_COPY_BYTES_MAX ((uint64_t)64 << 20)
#define CORDON_COPY_ENTRIES_MAX 10000
#define CORDON_COPY_DEPTH_MAX 32

/* What may be copied. */
struct cordon_copy_bounds {
	uint64_t bytes;
	size_t entries;
	unsigned int depth;
	bool links;    /* symbolic links are made again, wherever they lead; else one is refused */
	bool unsynced; /* the caller syncs everything at the end */
	/* Whether to leave out a path, relative to the directory from which is copied; may be NULL. */
	bool (*leave_out)(void *data, const char *path);
	void *data;
};

/* A few files. */
extern const struct cordon_copy_bounds cordon_copy_small;
/* A whole repository. */
#define CORDON_COPY_TREE_BYTES_MAX ((uint64_t)8 << 30)
#define CORDON_COPY_TREE_ENTRIES_MAX 1000000
#define CORDON_COPY_TREE_DEPTH_MAX 64

/* How much a copy may still use. Several copies that count as one share it. */
struct cordon_copy_budget {
	const struct cordon_copy_bounds *bounds;
	uint64_t bytes;
	size_t entries;
};

/* clang-format off */
#define CORDON_COPY_BUDGET CORDON_COPY_BUDGET_OF(&cordon_copy_small)
#define CORDON_COPY_BUDGET_OF(of) { .bounds = (of), .bytes = (of)->bytes, .entries = (of)->entries }
#define CORDON_COPY_TREE \
	.bytes = CORDON_COPY_TREE_BYTES_MAX, .entries = CORDON_COPY_TREE_ENTRIES_MAX, \
	.depth = CORDON_COPY_TREE_DEPTH_MAX, .links = true, .unsynced = true
/* clang-format on */

/*
 * Copies the regular file or directory `name` of src_fd to dst_fd, where that name must not exist. A FIFO, socket or
 * device anywhere in it is -EINVAL, and so is a link unless the bounds allow it; too much of it is -E2BIG; each error
 * names the path. Permission bits are kept, but without set-id bits and write bits for others; everything is synced. On failure the part that
 * was copied stays: copy into a directory of your own. -ENOENT when there is no source.
 */
int cordon_dirs_copy(int src_fd, const char *name, int dst_fd, struct cordon_copy_budget *budget,
		     struct cordon_error *err);

/* Copies everything that the directory src_fd has. */
int cordon_dirs_copy_all(int src_fd, int dst_fd, struct cordon_copy_budget *budget, struct cordon_error *err);

/*
 * Moves `name` of src_fd, a file or a directory with everything below, to dst_fd. A directory is merged into one of
 * the same name, a file replaces a file or a link; anything else under that name is -EEXIST. The source is a private
 * copy (cordon_dirs_copy); the destination may belong to anybody. Each file is replaced in one step.
 */
int cordon_dirs_merge(int src_fd, const char *name, int dst_fd, struct cordon_error *err);

/* Renames within one file system, never over anything (-EEXIST). Makes a directory writable first if its last user
 * made it unwritable. Returns 0 or -errno. */
int cordon_dirs_move(int from_fd, const char *name, int to_fd, const char *to_name);

/*
 * Removes `name` and everything below it; returns 0 when it is missing. Needs two descriptors and no memory at any
 * depth, because it first moves sub-directories up into `name`. Makes unreadable directories readable.
 */
int cordon_dirs_remove(int dir_fd, const char *name, struct cordon_error *err);

#endif
