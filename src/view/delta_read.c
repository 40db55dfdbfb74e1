/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and reads either side of a change. */
#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "view/internal.h"
#include "view/lower.h"

static int open_new(const struct cordon_delta *delta, const char *path, bool link)
{
	static const int to_read = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	autofd int parent = -1;
	const char *base = cordon_path_base(path);
	char dir[CORDON_PATH_MAX];
	size_t n = (size_t)(base - path);
	int fd = cordon_open_beneath(delta->upper_fd, path, link ? O_PATH | O_NOFOLLOW | O_CLOEXEC : to_read);

	/* What the run closed to its owner must be opened first. */
	if (fd != -EACCES || link)
		return fd;
	if (cordon_copy(dir, sizeof(dir), path, n ? n - 1 : 0) < 0)
		return -ENAMETOOLONG;
	parent = cordon_open_beneath(delta->upper_fd, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (parent < 0)
		return parent;
	fd = cordon_upper_open(parent, base, O_RDONLY);
	return fd < 0 ? -errno : fd;
}

/* Opens one side of a change. The type must be the one that the list has. */
static int open_side(const struct cordon_delta *delta, const struct cordon_delta_change *change, bool old,
		     struct stat *ret_st)
{
	const struct cordon_ident *ident = old ? &change->old : &change->new;
	bool link = S_ISLNK(ident->mode);
	autofd int fd = old ? cordon_lower_find(&delta->base, change->path, link) : open_new(delta, change->path, link);

	if (fd < 0 || fstat(fd, ret_st) < 0)
		return fd < 0 ? fd : -errno;
	return (ret_st->st_mode & S_IFMT) != (ident->mode & S_IFMT) ? -ESTALE : cordon_steal_fd(&fd);
}

int cordon_delta_open(const struct cordon_delta *delta, const struct cordon_delta_change *change, struct stat *ret_st)
{
	return open_side(delta, change, false, ret_st);
}

int cordon_delta_read(const struct cordon_delta *delta, const struct cordon_delta_change *change, bool old,
		      struct cordon_buf *ret_content, struct cordon_error *err)
{
	const struct cordon_ident *ident = old ? &change->old : &change->new;
	autofd int fd = -1;
	struct stat st;

	if (!S_ISREG(ident->mode) && !S_ISLNK(ident->mode))
		return 0;
	fd = open_side(delta, change, old, &st);
	if (fd == -ESTALE)
		return cordon_fail(err, fd, CORDON_KIND_CONFLICT, "%s has just changed", change->path);
	if (fd < 0)
		return cordon_fail_errno(err, fd, "cannot read %s", change->path);
	if (S_ISLNK(st.st_mode)) {
		char target[CORDON_PATH_MAX];
		ssize_t n = readlinkat(fd, "", target, sizeof(target));

		if (n < 0)
			return cordon_fail_errno(err, -errno, "cannot read %s", change->path);
		return cordon_buf_add(ret_content, target, (size_t)n);
	}
	return cordon_read_regular(fd, &st, change->path, ret_content, err);
}
