/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes whole files: bounded, regular files only, atomic and durable. */
#ifndef CORDON_BASE_IO_H
#define CORDON_BASE_IO_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * Reads a regular file of at most buf->max bytes (-E2BIG for more). Never waits: a FIFO, socket or device is
 * -EINVAL. `dir_fd` may be AT_FDCWD; `flags` may add O_NOFOLLOW. The error names `path`.
 */
int cordon_read_file(int dir_fd, const char *path, int flags, struct cordon_buf *buf, struct cordon_error *err);
/* Reads an open descriptor to its end, with the same bound. */
int cordon_read_fd(int fd, const char *name, struct cordon_buf *buf, struct cordon_error *err);

/* The same for a regular file whose fstat() result is `st`: this nearly always takes one read. */
int cordon_read_regular(int fd, const struct stat *st, const char *name, struct cordon_buf *buf,
			struct cordon_error *err);

/* Writes all of it, across short writes and EINTR. 0 or -errno. */
int cordon_write_all(int fd, const void *bytes, size_t n);

/* Copies `from` to `to` until its end. Returns -E2BIG when that is more than *budget, which is reduced by what was
 * copied. Returns 0 or -errno. */
int cordon_copy_bytes(int from, int to, uint64_t *budget);

/* Opens a terminal again, so that we can set O_NONBLOCK on it and others who write to it are not affected. Returns
 * -1 if it is no terminal, or may not be opened again. */
int cordon_open_terminal_again(int fd);

/*
 * Replaces `name` in dir_fd in one step: an unpredictable temporary name, fsync, rename, fsync of the directory. On
 * any failure the old file stays as it was. A link under that name is replaced, not followed.
 */
int cordon_write_file(int dir_fd, const char *name, mode_t mode, const void *bytes, size_t n, struct cordon_error *err);
/* The same without waiting for the disk: a kill loses nothing, but after a power cut the file may be the old one, empty, or
 * not there. Only for what can be done again. */
int cordon_write_file_unsynced(int dir_fd, const char *name, mode_t mode, const void *bytes, size_t n,
			       struct cordon_error *err);
/* The same as cordon_write_file() for a file that exists: the new file gets the mode and owner of `old`. -EPERM when we may not set that
 * owner. */
int cordon_replace_file(int dir_fd, const char *name, const struct stat *old, const void *bytes, size_t n,
			struct cordon_error *err);

#endif
