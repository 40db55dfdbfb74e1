/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the host's mounts away from behind the standard streams. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/resolve.h"
#include "sandbox/streams.h"

/* "/proc/self/fd/N"; snprintf is not for the child. */
struct fd_path {
	char text[32];
};

static const char *fd_path(struct fd_path *path, int fd)
{
	static const char dir[] = "/proc/self/fd/";
	char *p = path->text + sizeof(path->text) - 1;

	*p = '\0';
	do
		*--p = (char)('0' + fd % 10);
	while (fd /= 10);
	p -= sizeof(dir) - 1;
	memcpy(p, dir, sizeof(dir) - 1);
	return p;
}

const char *cordon_stream_name(int fd)
{
	return fd == 0 ? "standard input" : fd == 1 ? "standard output" : "standard error";
}

int cordon_streams_check(struct cordon_error *err)
{
	for (int fd = 0; fd < 3; fd++) {
		int flags = fcntl(fd, F_GETFL);
		struct stat st;

		if (flags < 0 || fstat(fd, &st) < 0)
			continue; /* closed; it will be /dev/null */
		if (!S_ISDIR(st.st_mode) && !(flags & O_PATH))
			continue;
		return cordon_fail(err, -EISDIR, CORDON_KIND_POLICY_DENIED,
				   "%s is %s, through which the agent could leave the sandbox", cordon_stream_name(fd),
				   S_ISDIR(st.st_mode) ? "a directory" : "opened with O_PATH");
	}
	return 0;
}

/* The same file through a read-only mount of its own. A device can still be written through one. */
static int open_sealed(int slash_fd, int fd, int flags, const struct stat *was)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
				   .propagation = MS_PRIVATE };
	char path[CORDON_PATH_MAX];
	struct fd_path link;
	ssize_t n = readlink(fd_path(&link, fd), path, sizeof(path) - 1);
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
	/* The tree is not closed here: the kernel would wait for all processors, and it goes with the sandbox anyway. */
	tree = open_tree(place, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	sealed = open(fd_path(&link, tree), (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK)) | O_NOCTTY | O_CLOEXEC);
	return sealed < 0 ? -errno : sealed;
}

static int seal(int slash_fd, int fd, int flags, const struct stat *st)
{
	int sealed = open_sealed(slash_fd, fd, flags, st);
	off_t at;

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

/* Those of /dev that every sandbox has, by their minor numbers. */
static const char *own_device(const struct stat *st)
{
	static const char *const names[] = {
		[3] = "/dev/null", [5] = "/dev/zero", [7] = "/dev/full", [8] = "/dev/random", [9] = "/dev/urandom"
	};

	return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1 && minor(st->st_rdev) < CORDON_ARRAY_SIZE(names)
		       ? names[minor(st->st_rdev)]
		       : NULL;
}

/* A terminal is replaced by one of the sandbox; what has no name any more is nobody else's. */
static bool to_be_sealed(int fd, int flags, const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		return (flags & O_ACCMODE) == O_RDONLY && st->st_nlink > 0;
	return (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) && !own_device(st) && !isatty(fd);
}

/* Whether the agent could do more with it than the stream allows. */
static bool matters(int fd, const struct stat *st, uid_t uid)
{
	struct fd_path link;

	return S_ISREG(st->st_mode) &&
	       (st->st_uid == uid || faccessat(AT_FDCWD, fd_path(&link, fd), W_OK, AT_EACCESS) == 0);
}

int cordon_streams_seal(uid_t uid, int *ret_stream)
{
	autofd int slash_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++) {
		int flags = fcntl(fd, F_GETFL);
		struct stat st;
		int r;

		if (flags < 0 || fstat(fd, &st) < 0 || !to_be_sealed(fd, flags, &st))
			continue;
		r = slash_fd < 0 ? -EBADF : seal(slash_fd, fd, flags, &st);
		if (r < 0 && matters(fd, &st, uid)) {
			*ret_stream = fd;
			return r;
		}
	}
	return 0;
}

int cordon_streams_devices(void)
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
