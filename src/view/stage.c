/* SPDX-License-Identifier: Apache-2.0 */
/* Copies single files with their holes, times and attributes. */
#include <endian.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "view/stage.h"

#define CHUNK ((size_t)256 << 10)
#define OVERLAY_PREFIX "user.overlay."
#define ACCESS_LIST "system.posix_acl_access"
#define ACL_TAG_GROUP 0x04 /* the group of the file; the mask is another entry */
#define ACL_ENTRIES_MAX 512

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

#define FEW_NAMES 256 /* bytes of names that nearly all files get along with */

static bool is_of_user(const char *name)
{
	return strncmp(name, "user.", 5) == 0 && strncmp(name, OVERLAY_PREFIX, strlen(OVERLAY_PREFIX)) != 0;
}

/* Copies attributes: all that we may set, or those of the user that belong to no overlay. A file system that keeps none
 * is good enough. Both descriptors may be O_PATH. */
static int copy_attributes(int from_fd, int to_fd, bool all)
{
	char from[CORDON_FD_PATH_SIZE], to[CORDON_FD_PATH_SIZE], few[FEW_NAMES];
	autofree char *many = NULL, *value = NULL;
	const char *list = few;
	ssize_t n;

	cordon_fd_path(from_fd, from);
	cordon_fd_path(to_fd, to);
	n = listxattr(from, few, sizeof(few));
	if (n < 0 && errno == ERANGE) {
		list = many = malloc(XATTR_LIST_MAX);
		n = many ? listxattr(from, many, XATTR_LIST_MAX) : -1;
		if (n < 0)
			return -errno;
	}
	for (const char *name = list; n > 0 && name < list + n; name += strlen(name) + 1) {
		ssize_t size;

		if (!all && !is_of_user(name))
			continue;
		if (!value && !(value = malloc(XATTR_SIZE_MAX)))
			return -ENOMEM;
		size = getxattr(from, name, value, XATTR_SIZE_MAX);
		if (size >= 0 && setxattr(to, name, value, (size_t)size, 0) < 0 && errno != ENOTSUP &&
		    (is_of_user(name) || errno == ENOSPC || errno == EDQUOT))
			return -errno;
	}
	return 0;
}

/*
 * Gives a file the access list of another one. Where that has one, the group's bits of its mode are the most that
 * anybody but owner and others may do, and not what the group may. Returns the mode that the file is to have then.
 */
static mode_t copy_access(int from_fd, int to_fd, mode_t mode)
{
	struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} entry[ACL_ENTRIES_MAX];
	} list;
	char from[CORDON_FD_PATH_SIZE];
	mode_t group = 0;
	ssize_t n;

	cordon_fd_path(from_fd, from);
	n = getxattr(from, ACCESS_LIST, &list, sizeof(list));
	if (n < 0 && errno != ERANGE)
		return mode; /* it has none */
	if (n > 0 && fsetxattr(to_fd, ACCESS_LIST, &list, (size_t)n, 0) == 0)
		return mode;
	for (size_t i = 0; n > 0 && i < ((size_t)n - sizeof(list.version)) / sizeof(list.entry[0]); i++)
		if (le16toh(list.entry[i].tag) == ACL_TAG_GROUP)
			group = (mode_t)(le16toh(list.entry[i].perm) & 7) << 3;
	return (mode & ~(mode_t)070) | (mode & group);
}

int cordon_stage_file(int src_fd, const struct stat *st, const struct cordon_stage_like *like, int dir_fd,
		      const char *name)
{
	autofd int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };
	mode_t mode = like->mode & (like->exact ? 07777 : 0777);
	int r;

	if (fd < 0)
		return -errno;
	r = like->content ? cordon_write_all(fd, like->content->data, like->content->len) : copy_content(src_fd, st, fd);
	/* Who may not give files away keeps them, as an editor that replaces a file does. */
	if (r == 0 && like->owned && fchown(fd, like->uid, like->gid) < 0) {
		mode &= (mode_t)~06000;
		if (fchown(fd, (uid_t)-1, like->gid) < 0)
			r = 0;
	}
	/* A change of the owner takes capabilities away, and so they come after it. */
	if (r == 0)
		r = copy_attributes(src_fd, fd, like->exact);
	if (r == 0 && like->acl_fd >= 0)
		mode = copy_access(like->acl_fd, fd, mode);
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	/* A merged text is newer than what it was made of; builds compare times. */
	if (r == 0 && !like->content && futimens(fd, times) < 0)
		r = -errno;
	return r;
}

void cordon_stage_attributes(int src_fd, int dir_fd, const char *name)
{
	autofd int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		copy_attributes(src_fd, fd, false);
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

static int again_file(int src_dir_fd, const char *src_name, const struct stat *st, int dir_fd, const char *name)
{
	const struct cordon_stage_like like = {
		.mode = st->st_mode, .owned = true, .uid = st->st_uid, .gid = st->st_gid, .acl_fd = -1, .exact = true
	};
	autofd int fd = openat(src_dir_fd, src_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat now;

	if (fd < 0 || fstat(fd, &now) < 0)
		return -errno;
	if (now.st_ino != st->st_ino || now.st_dev != st->st_dev)
		return -ESTALE;
	return cordon_stage_file(fd, &now, &like, dir_fd, name);
}

/* Gives a new directory, FIFO, socket or device what the old one has. */
static int again_rights(int src_fd, const struct stat *st, int dir_fd, const char *name)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };
	autofd int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	mode_t mode = (st->st_mode & 07777) | (S_ISDIR(st->st_mode) ? 0700 : 0);
	char path[CORDON_FD_PATH_SIZE];
	int r;

	if (fd < 0)
		return -errno;
	if (fchownat(dir_fd, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
	    fchownat(dir_fd, name, (uid_t)-1, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		mode &= (mode_t)~06000;
	r = copy_attributes(src_fd, fd, true);
	if (r < 0)
		return r;
	cordon_fd_path(fd, path);
	return chmod(path, mode) < 0 || utimensat(AT_FDCWD, path, times, 0) < 0 ? -errno : 0;
}

int cordon_stage_again(int src_dir_fd, const char *src_name, int dir_fd, const char *name)
{
	autofd int fd = openat(src_dir_fd, src_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode)) {
		r = cordon_stage_link(fd, &st, dir_fd, name);
		if (r == 0 && fchownat(dir_fd, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
			r = 0; /* nobody asks who owns a link */
		return r;
	}
	if (S_ISREG(st.st_mode)) {
		r = again_file(src_dir_fd, src_name, &st, dir_fd, name);
	} else {
		r = S_ISDIR(st.st_mode) ? mkdirat(dir_fd, name, 0700)
					: mknodat(dir_fd, name, (st.st_mode & S_IFMT) | 0600, st.st_rdev);
		r = r < 0 ? -errno : again_rights(fd, &st, dir_fd, name);
	}
	if (r < 0 && r != -EEXIST)
		unlinkat(dir_fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	return r;
}
