/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and extended attributes of files: what cordon-lens answers to the kernel, and what the run may change. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

#include "lens/lens.h"

#define XATTR_PREFIX "user."
#define FRESH_NS 20000000 /* file times may be as coarse as the kernel's tick, 10 ms at most */

static struct timespec time_of(const struct statx_timestamp *t)
{
	return (struct timespec){ .tv_sec = t->tv_sec, .tv_nsec = t->tv_nsec };
}

/* The owner's permission bits that we show for a file of another user: what our own credentials can do with it. */
static mode_t own_bits(int fd, const char *name)
{
	static const struct {
		int access;
		mode_t bit;
	} ways[] = { { R_OK, S_IRUSR }, { W_OK, S_IWUSR }, { X_OK, S_IXUSR } };
	int flags = AT_EACCESS | (*name ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH);
	mode_t bits = 0;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(ways); i++)
		if (faccessat(fd, name, ways[i].access, flags) == 0)
			bits |= ways[i].bit;
	return bits;
}

void lens_attr(const struct lens *lens, const struct fuse_ctx *ctx, int fd, const char *name, const struct statx *stx,
	       bool writable, struct stat *ret)
{
	mode_t mode = stx->stx_mode;

	if (stx->stx_uid != lens->euid && !S_ISLNK(mode))
		mode = (mode & ~(mode_t)S_IRWXU) | own_bits(fd, name);
	/* The kernel sends no request when it opens a file, so these bits are what refuses to open it for writing. A
	 * directory keeps them: the kernel sends a request for every change in it, and our answer can have the reason
	 * of a refusal. */
	if (!writable && !S_ISDIR(mode) && !S_ISLNK(mode))
		mode &= ~(mode_t)(S_IWUSR | S_IWGRP | S_IWOTH);
	*ret = (struct stat){
		.st_ino = stx->stx_ino,
		.st_mode = mode,
		.st_nlink = stx->stx_nlink,
		.st_uid = ctx->uid,
		.st_gid = ctx->gid,
		.st_rdev = makedev(stx->stx_rdev_major, stx->stx_rdev_minor),
		.st_size = (off_t)stx->stx_size,
		.st_blksize = (blksize_t)stx->stx_blksize,
		.st_blocks = (blkcnt_t)stx->stx_blocks,
		.st_atim = time_of(&stx->stx_atime),
		.st_mtim = time_of(&stx->stx_mtime),
		.st_ctim = time_of(&stx->stx_ctime),
	};
}

static double valid_seconds(const struct lens_node *node, const struct statx *stx)
{
	/* fanotify reports changes of a directory through the directory's own mark. */
	if (S_ISDIR(node->type))
		return node->mark ? LENS_VALID_LONG : LENS_VALID_SHORT;
	/* A file with several names may be changed under a name in a directory without a mark. */
	if (stx->stx_nlink > 1 && S_ISREG(node->type))
		return LENS_VALID_SHORT;
	/* A file whose last name is gone changes only through the lens. */
	if (!node->names)
		return node->pin_fd >= 0 && stx->stx_nlink == 0 ? LENS_VALID_LONG : LENS_VALID_SHORT;
	return node->names->parent->mark ? LENS_VALID_LONG : LENS_VALID_SHORT;
}

static bool is_fresh(const struct statx *stx)
{
	struct timespec now;
	int64_t seconds;

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	seconds = now.tv_sec - stx->stx_ctime.tv_sec;
	if (seconds < 0 || seconds > 1)
		return seconds < 0;
	return seconds * 1000000000 + now.tv_nsec - (long)stx->stx_ctime.tv_nsec < FRESH_NS;
}

static void remember(struct lens_node *node, const struct statx *stx)
{
	node->ctime = time_of(&stx->stx_ctime);
	node->size = (off_t)stx->stx_size;
	node->fresh = is_fresh(stx);
	node->known = true;
}

/* Whether the kernel has the content that the file has now. This compares the time of change, which nobody can set
 * back. Content that was fresh when the kernel got it counts only as long as it is fresh: it may have changed again
 * within the same tick of the clock. */
static bool kernel_knows(const struct lens_node *node, const struct statx *stx)
{
	return node->known && node->size == (off_t)stx->stx_size && node->ctime.tv_sec == stx->stx_ctime.tv_sec &&
	       node->ctime.tv_nsec == (long)stx->stx_ctime.tv_nsec && (!node->fresh || is_fresh(stx));
}

/* Whether the kernel may hold content that is out of date. Without fanotify the kernel compares times by itself. */
static bool is_outdated(const struct lens *lens, const struct lens_node *node, const struct statx *stx)
{
	return node->unmonitored && node->known && lens->fanotify_fd >= 0 && !kernel_knows(node, stx);
}

double lens_attr_valid_for(const struct lens *lens, struct lens_node *node, const struct statx *stx)
{
	double seconds = valid_seconds(node, stx);

	node->unmonitored = S_ISREG(node->type) && seconds < LENS_VALID_LONG;
	if (is_outdated(lens, node, stx) || node->drop > lens->dropped) {
		node->size = (off_t)stx->stx_size;
		return 0;
	}
	remember(node, stx);
	return seconds;
}

bool lens_attr_kernel_knows(const struct lens_node *node, int fd)
{
	struct statx stx;

	return node->unmonitored && lens_stat(fd, "", &stx) == 0 && kernel_knows(node, &stx);
}

void lens_attr_own_change(struct lens_node *node, int fd, bool was_known)
{
	struct statx stx;

	if (was_known && lens_stat(fd, "", &stx) == 0)
		remember(node, &stx);
}

/* When the kernel may hold content that is out of date, the answer waits until the kernel has dropped it. An answer
 * that may not wait is valid for no time, so that the kernel asks again. When the size is new we answer at once: the
 * kernel drops the content because of the size, and it ignores the size in a delayed answer. */
static void reply_attr(fuse_req_t req, struct lens_node *node, int fd, bool may_wait)
{
	struct lens *lens = fuse_req_userdata(req);
	struct statx stx;
	struct stat st;
	double seconds;
	bool resized;
	int r = lens_stat(fd, "", &stx);

	if (r < 0) {
		lens_reply_err(req, -r);
		return;
	}
	resized = node->size != (off_t)stx.stx_size;
	seconds = lens_attr_valid_for(lens, node, &stx);
	lens_attr(lens, fuse_req_ctx(req), fd, "", &stx, node->writable, &st);
	if (seconds > 0 || resized || !may_wait) {
		fuse_reply_attr(req, &st, seconds);
		return;
	}
	r = lens_delayed_attr(req, node, &st);
	if (r < 0)
		lens_reply_err(req, -r);
	else
		remember(node, &stx);
}

void lens_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_node *node = lens_node(lens, ino);
	autofd int fd = -1;

	(void)fi;
	/* After every change in a directory the kernel asks for its times, most often at once. */
	if (S_ISDIR(node->type)) {
		int dir_fd = lens_open_recent(lens, node);

		if (dir_fd >= 0) {
			reply_attr(req, node, dir_fd, true);
			return;
		}
	}
	fd = lens_open_node(lens, node, false);
	/* The file is open and the host removed its name: the file is still there. */
	if (fd == -ESTALE && node->file_fd >= 0)
		reply_attr(req, node, node->file_fd, true);
	else if (fd < 0)
		fuse_reply_err(req, -fd);
	else
		reply_attr(req, node, fd, true);
}

static void proc_path(char *ret, size_t size, int fd)
{
	(void)snprintf(ret, size, "/proc/self/fd/%d", fd);
}

static int change_mode(int path_fd, mode_t mode)
{
	char path[32];
	struct statx stx;
	int r = lens_stat(path_fd, "", &stx);

	if (r < 0)
		return r;
	if (S_ISLNK(stx.stx_mode))
		return -EOPNOTSUPP;
	/* The run may keep set-user-id and set-group-id bits that the host set, but it never adds one. */
	if (mode & ~stx.stx_mode & (S_ISUID | S_ISGID))
		return -EPERM;
	proc_path(path, sizeof(path), path_fd);
	return chmod(path, mode & 07777) < 0 ? -errno : 0;
}

static int change_size(struct lens *lens, struct lens_node *node, uint64_t handle, off_t size)
{
	autofd int fd = lens_file_write(lens, node, handle);

	if (fd < 0)
		return fd;
	return ftruncate(fd, size) < 0 ? -errno : 0;
}

static int change_times(int path_fd, const struct stat *attr, int to_set)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };

	if (to_set & FUSE_SET_ATTR_ATIME_NOW)
		times[0].tv_nsec = UTIME_NOW;
	else if (to_set & FUSE_SET_ATTR_ATIME)
		times[0] = attr->st_atim;
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		times[1].tv_nsec = UTIME_NOW;
	else if (to_set & FUSE_SET_ATTR_MTIME)
		times[1] = attr->st_mtim;
	return utimensat(path_fd, "", times, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Every file seems to belong to the caller. So a change of the owner to the caller does nothing, and any other is
 * refused. */
static int change_owner(const struct fuse_ctx *ctx, const struct stat *attr, int to_set)
{
	if (((to_set & FUSE_SET_ATTR_UID) && attr->st_uid != ctx->uid) ||
	    ((to_set & FUSE_SET_ATTR_GID) && attr->st_gid != ctx->gid))
		return -EPERM;
	return 0;
}

void lens_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_node *node = lens_node(lens, ino);
	autofd int fd = lens_open_to_change(lens, node);
	bool known = fd >= 0 && lens_attr_kernel_knows(node, fd);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
		r = change_owner(fuse_req_ctx(req), attr, to_set);
	/* INVARIANT: the lens can remove every temporary name when it ends, so the run must not take away our access
	 * to its directory. */
	if (r == 0 && (to_set & FUSE_SET_ATTR_MODE) && S_ISDIR(node->type) &&
	    (attr->st_mode & (S_IWUSR | S_IXUSR)) != (S_IWUSR | S_IXUSR) && lens_temp_names_below(lens, node))
		r = -EBUSY;
	if (r == 0 && (to_set & FUSE_SET_ATTR_MODE))
		r = change_mode(fd, attr->st_mode);
	if (r == 0 && (to_set & FUSE_SET_ATTR_SIZE))
		r = change_size(lens, node, fi ? fi->fh : 0, attr->st_size);
	if (r == 0 &&
	    (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW)))
		r = change_times(fd, attr, to_set);
	if (r < 0) {
		lens_reply_err(req, -r);
		return;
	}
	lens_attr_own_change(node, fd, known);
	/* During SETATTR the kernel writes nothing back, and dropping the content might wait for exactly that. */
	reply_attr(req, node, fd, false);
}

/* The run sees only attributes of users: security labels and capabilities belong to the host. */
static bool xattr_known(const char *name)
{
	return strncmp(name, XATTR_PREFIX, sizeof(XATTR_PREFIX) - 1) == 0;
}

/* A path to a verified node, for calls that take no O_PATH descriptor. *ret_fd must stay open as long as the path is
 * used. */
static int xattr_path(struct lens *lens, fuse_ino_t ino, const char *name, bool write, int *ret_fd, char *ret_path,
		      size_t size)
{
	struct lens_node *node = lens_node(lens, ino);
	int fd;

	if (name && !xattr_known(name))
		return -EOPNOTSUPP;
	if (!S_ISREG(node->type) && !S_ISDIR(node->type))
		return write ? -EPERM : -EOPNOTSUPP;
	fd = write ? lens_open_to_change(lens, node) : lens_open_node(lens, node, false);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	proc_path(ret_path, size, fd);
	return 0;
}

void lens_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	autofd int fd = -1;
	char path[32];
	int r = xattr_path(fuse_req_userdata(req), ino, name, true, &fd, path, sizeof(path));

	if (r == 0 && setxattr(path, name, value, size, flags) < 0)
		r = -errno;
	lens_reply_err(req, -r);
}

void lens_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	autofd int fd = -1;
	char path[32];
	int r = xattr_path(fuse_req_userdata(req), ino, name, true, &fd, path, sizeof(path));

	if (r == 0 && removexattr(path, name) < 0)
		r = -errno;
	lens_reply_err(req, -r);
}

bool lens_attr_has_none(int dir_fd)
{
	char path[32];

	proc_path(path, sizeof(path), dir_fd);
	return getxattr(path, XATTR_PREFIX "cordon", NULL, 0) < 0 && errno == EOPNOTSUPP;
}

void lens_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct lens *lens = fuse_req_userdata(req);
	autofd int fd = -1;
	char path[32];
	ssize_t n;
	int r;

	/* The kernel asks for security.capability at the first write to each file. With this answer it does not ask again, and
	 * tells programs what the file system itself would: EOPNOTSUPP. */
	if (lens->no_attributes) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	r = xattr_path(lens, ino, name, false, &fd, path, sizeof(path));
	if (size > LENS_REQUEST_MAX)
		size = LENS_REQUEST_MAX;
	n = r < 0 ? r : getxattr(path, name, lens->bytes, size);
	if (n < 0)
		fuse_reply_err(req, r < 0 ? -r : errno);
	else if (size == 0)
		fuse_reply_xattr(req, (size_t)n);
	else
		fuse_reply_buf(req, lens->bytes, (size_t)n);
}

void lens_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct lens *lens = fuse_req_userdata(req);
	autofd int fd = -1;
	char path[32];
	size_t kept = 0;
	ssize_t n;
	int r = xattr_path(lens, ino, NULL, false, &fd, path, sizeof(path));

	n = r < 0 ? r : listxattr(path, lens->bytes, LENS_REQUEST_MAX);
	if (n < 0) {
		fuse_reply_err(req, r < 0 ? -r : errno);
		return;
	}
	for (const char *at = lens->bytes, *end = at + n; at < end;) {
		size_t len = strlen(at) + 1;

		if (xattr_known(at)) {
			memmove(lens->bytes + kept, at, len);
			kept += len;
		}
		at += len;
	}
	if (size == 0)
		fuse_reply_xattr(req, kept);
	else if (kept > size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, lens->bytes, kept);
}

void lens_op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct lens *lens = fuse_req_userdata(req);
	struct statvfs st;

	(void)ino;
	if (fstatvfs(lens->root_fd, &st) < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_statfs(req, &st);
}
