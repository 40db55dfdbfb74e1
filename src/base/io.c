/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes whole files: bounded, regular files only, atomic and durable. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"

#define AT_ONCE ((uint64_t)1 << 30) /* bytes of one copy in the kernel */

int cordon_read_fd(int fd, const char *name, struct cordon_buf *buf, struct cordon_error *err)
{
	for (;;) {
		char *room = cordon_buf_room(buf, 1);
		size_t space;
		ssize_t n;

		if (!room) {
			char byte;

			if (buf->len < buf->max)
				return cordon_fail_errno(err, -ENOMEM, "cannot read %s", name);
			n = read(fd, &byte, 1);
			if (n == 0)
				return 0;
			return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "%s is larger than %zu bytes", name,
					   buf->max);
		}
		space = buf->cap - buf->len - 1;
		if (space > buf->max - buf->len)
			space = buf->max - buf->len;
		n = read(fd, room, space);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return cordon_fail_errno(err, -errno, "cannot read %s", name);
		buf->len += (size_t)n;
		buf->data[buf->len] = '\0';
		if (n == 0)
			return 0;
	}
}

int cordon_read_regular(int fd, const struct stat *st, const char *name, struct cordon_buf *buf,
			struct cordon_error *err)
{
	size_t want;
	char *room;
	ssize_t n;

	/* Files of /proc have the size 0. */
	if (st->st_size <= 0 || (uintmax_t)st->st_size >= buf->max - buf->len)
		return cordon_read_fd(fd, name, buf, err);
	/* Ask for one byte more than the file has: if the read returns less, that was the end. */
	want = (size_t)st->st_size + 1;
	room = cordon_buf_room(buf, want);
	if (!room)
		return cordon_fail_errno(err, -ENOMEM, "cannot read %s", name);
	do
		n = read(fd, room, want);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return cordon_fail_errno(err, -errno, "cannot read %s", name);
	buf->len += (size_t)n;
	buf->data[buf->len] = '\0';
	/* Otherwise the file changed after fstat(), or the file system returns less at once. */
	return n == st->st_size ? 0 : cordon_read_fd(fd, name, buf, err);
}

int cordon_read_file(int dir_fd, const char *path, int flags, struct cordon_buf *buf, struct cordon_error *err)
{
	/* O_NONBLOCK so that a FIFO in this place cannot make us wait. */
	autofd int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
	struct stat st;

	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", path);
	if (fstat(fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot read %s", path);
	if (!S_ISREG(st.st_mode))
		return cordon_fail(err, -EINVAL, CORDON_KIND_IO, "%s is not a regular file", path);
	return cordon_read_regular(fd, &st, path, buf, err);
}

int cordon_open_terminal_again(int fd)
{
	char path[32];

	if (!isatty(fd))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int cordon_write_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

int cordon_copy_bytes(int from, int to, uint64_t *budget)
{
	CORDON_UNCLEARED char chunk[65536];
	ssize_t copied;

	/* The kernel copies faster, and some file systems share the blocks. Where it does not, and at the end, we read. */
	while (*budget && (copied = copy_file_range(from, NULL, to, NULL, *budget < AT_ONCE ? *budget : AT_ONCE, 0)) > 0)
		*budget -= (uint64_t)copied;
	for (;;) {
		ssize_t n = read(from, chunk, sizeof(chunk));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		if ((uint64_t)n > *budget)
			return -E2BIG;
		*budget -= (uint64_t)n;
		r = cordon_write_all(to, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

/* Sets the owner first: changing the owner may clear bits of the mode. */
static int set_owner_and_mode(int fd, mode_t mode, const struct stat *old)
{
	struct stat st;

	if (old && fstat(fd, &st) < 0)
		return -errno;
	if (old && (st.st_uid != old->st_uid || st.st_gid != old->st_gid) && fchown(fd, old->st_uid, old->st_gid) < 0)
		return -errno;
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

/* Writes a file that has the name `temp`, or with `nameless` gets it only when it is complete: a process that is killed while it
 * writes leaves nothing. */
static int write_temp(int parent, const char *temp, bool nameless, mode_t mode, const struct stat *old,
		      const void *bytes, size_t n, bool durable)
{
	autofd int fd = nameless ? openat(parent, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600)
				 : openat(parent, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char path[CORDON_FD_PATH_SIZE];
	int r;

	if (fd < 0)
		return -errno;
	r = cordon_write_all(fd, bytes, n);
	if (r == 0)
		r = set_owner_and_mode(fd, mode, old);
	if (r == 0 && durable && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && nameless && linkat(AT_FDCWD, cordon_fd_path(fd, path), parent, temp, AT_SYMLINK_FOLLOW) < 0)
		r = -errno;
	if (r < 0 && !nameless)
		unlinkat(parent, temp, 0);
	return r;
}

static int write_and_rename(int dir_fd, const char *name, mode_t mode, const struct stat *old, const void *bytes,
			    size_t n, bool durable, struct cordon_error *err)
{
	char uuid[CORDON_UUID_SIZE], temp[NAME_MAX + 1];
	autofd int parent = -1;
	int r = cordon_uuid_new(uuid);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot write %s", name);
	/* The directory is opened again because an O_PATH descriptor cannot be synced. */
	parent = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return cordon_fail_errno(err, -errno, "cannot write %s", name);
	snprintf(temp, sizeof(temp), ".cordon-%s.tmp", uuid);
	/* A file that exists may be a person's, beside other files of theirs. Not every file system has nameless files. */
	r = old ? write_temp(parent, temp, true, mode, old, bytes, n, durable) : -EOPNOTSUPP;
	if (r == -EOPNOTSUPP || r == -EISDIR || r == -ENOENT || r == -EINVAL)
		r = write_temp(parent, temp, false, mode, old, bytes, n, durable);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot write %s", name);
	if (renameat(parent, temp, parent, name) < 0) {
		r = -errno;
		unlinkat(parent, temp, 0);
		return cordon_fail_errno(err, r, "cannot write %s", name);
	}
	if (durable && fsync(parent) < 0)
		return cordon_fail_errno(err, -errno, "cannot write %s", name);
	return 0;
}

int cordon_write_file(int dir_fd, const char *name, mode_t mode, const void *bytes, size_t n, struct cordon_error *err)
{
	return write_and_rename(dir_fd, name, mode, NULL, bytes, n, true, err);
}

int cordon_write_file_unsynced(int dir_fd, const char *name, mode_t mode, const void *bytes, size_t n,
			       struct cordon_error *err)
{
	return write_and_rename(dir_fd, name, mode, NULL, bytes, n, false, err);
}

int cordon_replace_file(int dir_fd, const char *name, const struct stat *old, const void *bytes, size_t n,
			struct cordon_error *err)
{
	return write_and_rename(dir_fd, name, old->st_mode & 0777, old, bytes, n, true, err);
}
