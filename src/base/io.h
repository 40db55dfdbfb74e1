/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out: bounded, regular files only, atomic and durable. */
#ifndef CORDON_BASE_IO_H
#define CORDON_BASE_IO_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * Reads a regular file of at most buf->max bytes (-E2BIG beyond). Never waits: a FIFO, socket or device is -EINVAL.
 * `dir_fd` may be AT_FDCWD; `flags` may add O_NOFOLLOW. `path` is named in the error.
 */
int cordon_read_file(int dir_fd, const char *path, int flags, struct cordon_buf *buf, struct cordon_error *err);
/* Reads what an open descriptor gives until its end; the same bound. */
int cordon_read_fd(int fd, const char *name, struct cordon_buf *buf, struct cordon_error *err);

/* Writes all of it, across short writes and EINTR. 0 or -errno. */
int cordon_write_all(int fd, const void *bytes, size_t n);

/* Writes to `to` what `from` gives until its end; -E2BIG when that is more than *budget, which is used up. 0 or -errno. */
int cordon_copy_bytes(int from, int to, uint64_t *budget);

/* A description of our own of a terminal that others write to as well, so that O_NONBLOCK is ours alone. -1 for what is no
 * terminal, or one that may not be opened again. */
int cordon_open_terminal_again(int fd);

/*
 * Replaces `name` in dir_fd in one step: an unpredictable temporary name, fsync, rename, fsync of the directory. The
 * old file stays whole on any failure. Follows no link: a link under that name is replaced, not followed.
 */
int cordon_write_file(int dir_fd, const char *name, mode_t mode, const void *bytes, size_t n, struct cordon_error *err);
/* The same for a file that exists: mode and owner are those of `old`. -EPERM when we may not give it to its owner. */
int cordon_replace_file(int dir_fd, const char *name, const struct stat *old, const void *bytes, size_t n,
			struct cordon_error *err);

#endif
