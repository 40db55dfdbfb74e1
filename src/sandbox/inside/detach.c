/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 and the agent's process detach the standard streams from the host's mounts. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/resolve.h"
#include "sandbox/inside/detach.h"

const char *cordon_detach_name(int fd)
{
	return fd == 0 ? "standard input" : fd == 1 ? "standard output" : "standard error";
}

/* Opens the same file through a read-only mount of its own. A device can still be written through such a mount. */
static int open_sealed(int slash_fd, int fd, int flags, const struct stat *was)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
				   .propagation = MS_PRIVATE };
	char path[CORDON_PATH_MAX];
	char link[CORDON_FD_PATH_SIZE];
	ssize_t n = readlink(cordon_fd_path(fd, link), path, sizeof(path) - 1);
	autofd int place = -1;
	struct stat st;
	int tree, sealed;

	if (n <= 0 || path[0] != '/')
		return -ENOENT;
	path[n] = '\0';
	place = cordon_open_beneath(slash_fd, path + 1, O_PATH | O_CLOEXEC);
	if (place < 0)
		return place;
	if (fstat(place, &st) < 0 || st.st_dev != was->st_dev || st.st_ino != was->st_ino)
		return -ESTALE;
	/* We do not close the tree: the kernel would wait for all processors, and the tree ends with the sandbox
	 * anyway. */
	tree = open_tree(place, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	sealed = open(cordon_fd_path(tree, link), (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK)) | O_NOCTTY | O_CLOEXEC);
	return sealed < 0 ? -errno : sealed;
}

static int seal(int slash_fd, int fd, int flags, const struct stat *st)
{
	int sealed;
	off_t at;

	if (S_ISREG(st->st_mode) && (flags & O_ACCMODE) == O_WRONLY)
		sealed = open("/dev/null", O_RDONLY | O_CLOEXEC); /* nothing could be read from this standard input */
	else
		sealed = open_sealed(slash_fd, fd, S_ISREG(st->st_mode) ? flags & ~O_ACCMODE : flags, st);
	if (sealed < 0)
		return sealed;
	at = lseek(fd, 0, SEEK_CUR);
	if ((at > 0 && lseek(sealed, at, SEEK_SET) < 0) || dup2(sealed, fd) < 0) {
		int r = -errno;

		close(sealed);
		return r;
	}
	close(sealed);
	return 0;
}

/* The devices that every sandbox has in /dev, by their minor numbers. */
static const char *own_device(const struct stat *st)
{
	static const char *const names[] = {
		[3] = "/dev/null", [5] = "/dev/zero", [7] = "/dev/full", [8] = "/dev/random", [9] = "/dev/urandom"
	};

	return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1 && minor(st->st_rdev) < CORDON_ARRAY_SIZE(names)
		       ? names[minor(st->st_rdev)]
		       : NULL;
}

/* Whether a stream must be opened again. A terminal is replaced by one of the sandbox. Nobody else can reach a file
 * that has no name any more. The agent never gets files for output (sandbox/host/output.h); a file for input is only
 * read. */
static bool needs_sealing(int fd, int flags, const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		return (fd == 0 || (flags & O_ACCMODE) == O_RDONLY) && st->st_nlink > 0;
	return (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) && !own_device(st) && !isatty(fd);
}

/* Whether the agent could do more with the file than the stream allows. */
static bool gives_more_rights(int fd, const struct stat *st, uid_t uid)
{
	char link[CORDON_FD_PATH_SIZE];

	return S_ISREG(st->st_mode) &&
	       (st->st_uid == uid || faccessat(AT_FDCWD, cordon_fd_path(fd, link), W_OK, AT_EACCESS) == 0);
}

int cordon_detach_files(uid_t uid, int *ret_stream)
{
	autofd int slash_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++) {
		int flags = fcntl(fd, F_GETFL);
		struct stat st;
		int r;

		if (flags < 0 || fstat(fd, &st) < 0 || !needs_sealing(fd, flags, &st))
			continue;
		r = slash_fd < 0 ? -EBADF : seal(slash_fd, fd, flags, &st);
		if (r < 0 && gives_more_rights(fd, &st, uid)) {
			*ret_stream = fd;
			return r;
		}
	}
	return 0;
}

int cordon_detach_devices(void)
{
	for (int fd = 0; fd < 3; fd++) {
		int flags = fcntl(fd, F_GETFL);
		const char *name;
		struct stat st;
		int own, r;

		if (flags < 0 || fstat(fd, &st) < 0 || !(name = own_device(&st)))
			continue;
		own = open(name, (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK)) | O_CLOEXEC);
		r = own < 0 || dup2(own, fd) < 0 ? -errno : 0;
		if (own > 2)
			close(own);
		if (r < 0)
			return r;
	}
	return 0;
}
