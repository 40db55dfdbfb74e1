/* SPDX-License-Identifier: Apache-2.0 */
/* Copies single files with their holes, times and attributes. */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "view/stage.h"

#define CHUNK ((size_t)256 << 10)
#define OVERLAY_PREFIX "user.overlay."

static int write_at(int fd, const char *bytes, size_t n, off_t at)
{
	while (n > 0) {
		ssize_t done = pwrite(fd, bytes, n, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		bytes += done;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Copies what lies between two places. */
static int copy_range(int from, int to, off_t at, off_t end, char *chunk)
{
	while (at < end) {
		size_t want = (size_t)(end - at) < CHUNK ? (size_t)(end - at) : CHUNK;
		ssize_t n = pread(from, chunk, want, at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = write_at(to, chunk, (size_t)n, at);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

static int copy_content(int from, const struct stat *st, int to)
{
	static bool no_clone; /* this machine's file systems can't share blocks; asking each time would cost a call */
	autofree char *chunk = NULL;
	off_t at = 0;
	int r = 0;

	if (st->st_size == 0)
		return 0;
	if (!no_clone) {
		if (ioctl(to, FICLONE, from) == 0)
			return 0;
		no_clone = true;
	}
	chunk = malloc((size_t)st->st_size < CHUNK ? (size_t)st->st_size : CHUNK);
	if (!chunk)
		return -ENOMEM;
	if ((uint64_t)st->st_blocks * 512 >= (uint64_t)st->st_size)
		return copy_range(from, to, 0, st->st_size, chunk);
	/* It has holes, or the file system compresses; both look the same and are copied the same way. */
	while (r == 0 && at < st->st_size) {
		off_t data = lseek(from, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
		if (hole < 0) {
			data = at;
			hole = st->st_size;
		}
		r = copy_range(from, to, data, hole, chunk);
		at = hole;
	}
	return r == 0 && ftruncate(to, st->st_size) < 0 ? -errno : r;
}

/* Copies the attributes of the user, but none that belongs to an overlay. A file system that keeps none is good enough. */
static int copy_attributes(int from, int to)
{
	char list[8192];
	autofree char *value = NULL;
	ssize_t n = flistxattr(from, list, sizeof(list));

	for (const char *name = list; n > 0 && name < list + n; name += strlen(name) + 1) {
		ssize_t size;

		if (strncmp(name, "user.", 5) != 0 || strncmp(name, OVERLAY_PREFIX, strlen(OVERLAY_PREFIX)) == 0)
			continue;
		if (!value && !(value = malloc(XATTR_SIZE_MAX)))
			return -ENOMEM;
		size = fgetxattr(from, name, value, XATTR_SIZE_MAX);
		if (size >= 0 && fsetxattr(to, name, value, (size_t)size, 0) < 0 && errno != ENOTSUP)
			return -errno;
	}
	return 0;
}

int cordon_stage_file(int src_fd, const struct stat *st, const struct cordon_stage_like *like, int dir_fd,
		      const char *name)
{
	autofd int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };
	int r;

	if (fd < 0)
		return -errno;
	r = like->content ? cordon_write_all(fd, like->content->data, like->content->len) : copy_content(src_fd, st, fd);
	if (r == 0)
		r = copy_attributes(src_fd, fd);
	/* Who may not give files away keeps them, as an editor that replaces a file does. */
	if (r == 0 && like->owned && fchown(fd, like->uid, like->gid) < 0 && fchown(fd, (uid_t)-1, like->gid) < 0)
		r = 0;
	if (r == 0 && fchmod(fd, like->mode & 0777) < 0)
		r = -errno;
	/* A merged text is newer than what it was made of; builds compare times. */
	if (r == 0 && !like->content && futimens(fd, times) < 0)
		r = -errno;
	return r;
}

int cordon_stage_link(int src_fd, const struct stat *st, int dir_fd, const char *name)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };
	char target[CORDON_PATH_MAX];
	ssize_t n = readlinkat(src_fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (symlinkat(target, dir_fd, name) < 0)
		return -errno;
	utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW); /* some file systems keep no times of links */
	return 0;
}

int cordon_stage_again(int src_dir_fd, const char *src_name, int dir_fd, const char *name)
{
	struct cordon_stage_like like = { .owned = true };
	autofd int fd = openat(src_dir_fd, src_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	autofd int open_fd = -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return cordon_stage_link(fd, &st, dir_fd, name);
	if (S_ISDIR(st.st_mode))
		return mkdirat(dir_fd, name, 0700) < 0 || fchmodat(dir_fd, name, st.st_mode & 0777, 0) < 0 ? -errno : 0;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	open_fd = openat(src_dir_fd, src_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (open_fd < 0)
		return -errno;
	like.mode = st.st_mode;
	like.uid = st.st_uid;
	like.gid = st.st_gid;
	return cordon_stage_file(open_fd, &st, &like, dir_fd, name);
}
