/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the upper layer of an overlay. */
#include "base/upper.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

/* Which mode the run gave a directory that we opened for ourselves. The kernel lets no run set this attribute. */
#define MODE_ATTRIBUTE CORDON_OVERLAY_ATTRIBUTE("cordon.mode")

/* Opens it if we may read it, and a directory if we may also look at what is in it. */
static int try_open(int dir_fd, const char *name, int flags)
{
	autofd int fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && (flags & O_DIRECTORY) && fstatat(fd, ".", &st, 0) < 0 ? -1 : cordon_steal_fd(&fd);
}

int cordon_upper_open(int dir_fd, const char *name, int flags)
{
	int fd = try_open(dir_fd, name, flags);
	autofd int path_fd = -1;
	char path[CORDON_FD_PATH_SIZE], mode[8];
	struct stat st;

	if (fd >= 0 || errno != EACCES)
		return fd;
	path_fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path_fd < 0 || fstat(path_fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return errno = EACCES, -1;
	cordon_fd_path(path_fd, path);
	if (chmod(path, (st.st_mode & 07777) | 0700) < 0)
		return -1;
	fd = try_open(dir_fd, name, flags);
	/* What is in a directory can only be looked at as long as it is open to us. */
	if (S_ISREG(st.st_mode)) {
		chmod(path, st.st_mode & 07777);
	} else if (fd >= 0) {
		snprintf(mode, sizeof(mode), "%04o", st.st_mode & 07777);
		fsetxattr(fd, MODE_ATTRIBUTE, mode, strlen(mode), 0);
	}
	return fd;
}

mode_t cordon_upper_mode(int fd, mode_t mode)
{
	char text[8] = "";
	ssize_t n = fgetxattr(fd, MODE_ATTRIBUTE, text, sizeof(text) - 1);
	mode_t given = n > 0 ? (mode_t)strtoul(text, NULL, 8) & 07777 : 0;

	/* A live run may have given it another one since. */
	return n > 0 && (given | 0700) == (mode & 07777) ? (mode & S_IFMT) | given : mode;
}

bool cordon_upper_has(int fd, const char *attribute)
{
	char value[8];

	/* A value that is too long for the buffer is there, too. */
	return fgetxattr(fd, attribute, value, sizeof(value)) >= 0 || errno == ERANGE;
}

bool cordon_upper_is_whiteout(int dir_fd, const char *name, const struct stat *st)
{
	autofd int fd = -1;

	if (S_ISCHR(st->st_mode))
		return st->st_rdev == makedev(0, 0);
	if (!S_ISREG(st->st_mode) || st->st_size != 0)
		return false;
	fd = cordon_upper_open(dir_fd, name, O_RDONLY);
	return fd >= 0 && cordon_upper_has(fd, CORDON_OVERLAY_ATTRIBUTE("whiteout"));
}
