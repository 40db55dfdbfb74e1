/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits a file in one atomic step. The lock is on the file itself, which leaves no file behind. Because the file
 * is replaced, a process that gets the lock checks whether the name still means the file that it locked.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/time.h"
#include "config/edit_file.h"

struct update {
	const char *path;
	const char *name; /* in dir_fd */
	int dir_fd;
	int64_t deadline;
	size_t max;
	cordon_edit_fn *edit;
	void *data;
	struct cordon_errors *errors;
};

static int add(const struct update *update, const struct cordon_error *err)
{
	return cordon_errors_add(update->errors, err, NULL, 0, 0);
}

static int fail_errno(const struct update *update, int code, const char *what)
{
	struct cordon_error err;

	cordon_fail_errno(&err, code, "cannot %s %s", what, update->path);
	return add(update, &err);
}

static int fail_type(const struct update *update, bool link)
{
	struct cordon_error err;

	cordon_fail(&err, -EINVAL, CORDON_KIND_IO, "%s is %s", update->path,
		    link ? "a symbolic link" : "not a regular file");
	if (link)
		cordon_error_hint(&err, "give the path of the file that the link points to");
	return add(update, &err);
}

static int fail_busy(const struct update *update)
{
	struct cordon_error err;

	cordon_fail(&err, -EBUSY, CORDON_KIND_CONFLICT, "%s is being changed by another process", update->path);
	cordon_error_hint(&err, "try again when it has ended");
	return add(update, &err);
}

/* A path without a last component is no file. */
static int open_dir(struct update *update)
{
	const char *slash = strrchr(update->path, '/');
	char dir[CORDON_PATH_MAX] = ".";

	update->name = slash ? slash + 1 : update->path;
	if (!update->name[0] || cordon_streq(update->name, ".") || cordon_streq(update->name, ".."))
		return fail_type(update, false);
	if (slash &&
	    cordon_copy(dir, sizeof(dir), update->path, slash == update->path ? 1 : (size_t)(slash - update->path)) < 0)
		return fail_errno(update, -ENAMETOOLONG, "open");
	update->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return update->dir_fd < 0 ? fail_errno(update, -errno, "open") : 0;
}

static int lock(const struct update *update, int fd)
{
	int r = cordon_lock_within(fd, LOCK_EX, update->deadline - cordon_time_monotonic());

	return r == -EWOULDBLOCK ? fail_busy(update) : r < 0 ? fail_errno(update, r, "lock") : 0;
}

/* Opens the file for writing, although only the directory is written: a file that may not be changed must not be
 * replaced either. */
static int open_locked(const struct update *update, int *ret_fd, struct stat *ret_st)
{
	for (;;) {
		autofd int fd = openat(update->dir_fd, update->name,
				       O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		struct stat st, now;
		int r;

		if (fd < 0)
			return errno == ELOOP	 ? fail_type(update, true)
			       : errno == EISDIR ? fail_type(update, false)
			       : errno == ENXIO	 ? fail_type(update, false)
						 : fail_errno(update, -errno, "open");
		if (fstat(fd, &st) < 0)
			return fail_errno(update, -errno, "read");
		if (!S_ISREG(st.st_mode))
			return fail_type(update, false);
		r = lock(update, fd);
		if (r < 0)
			return r;
		if (fstat(fd, &st) < 0)
			return fail_errno(update, -errno, "read");
		if (fstatat(update->dir_fd, update->name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == st.st_dev &&
		    now.st_ino == st.st_ino) {
			*ret_fd = cordon_steal_fd(&fd);
			*ret_st = st;
			return 0;
		}
		/* Another process replaced the file while we waited for the old one. */
		if (cordon_time_monotonic() >= update->deadline)
			return fail_busy(update);
	}
}

static bool same_content(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads, edits and writes once. Returns -EAGAIN when a process that ignores the lock wrote the file meanwhile. */
static int update_once(const struct update *update)
{
	struct cordon_buf old autobuf = CORDON_BUF(update->max);
	struct cordon_buf new autobuf = CORDON_BUF(update->max);
	struct cordon_error err;
	autofd int fd = -1;
	struct stat st = { 0 }, now;
	bool changed = false;
	int r = open_locked(update, &fd, &st);

	if (r < 0)
		return r;
	if (cordon_read_fd(fd, update->path, &old, &err) < 0)
		return add(update, &err);
	r = update->edit(update->data, update->path, old.data ? old.data : "", old.len, &new, &changed, update->errors);
	if (r < 0 || !changed)
		return r;
	if (fstat(fd, &now) < 0)
		return fail_errno(update, -errno, "read");
	if (!same_content(&st, &now))
		return -EAGAIN;
	if (cordon_replace_file(update->dir_fd, update->name, &st, new.data, new.len, &err) < 0)
		return add(update, &err);
	return 0;
}

int cordon_edit_file(const char *path, size_t max, cordon_edit_fn *edit, void *data, struct cordon_errors *errors)
{
	struct update update = { .path = path,
				 .dir_fd = -1,
				 .deadline = cordon_time_monotonic() + CORDON_EDIT_LOCK_MS,
				 .max = max,
				 .edit = edit,
				 .data = data,
				 .errors = errors };
	int r = open_dir(&update);

	if (r < 0)
		return r;
	do
		r = update_once(&update);
	while (r == -EAGAIN && cordon_time_monotonic() < update.deadline);
	close(update.dir_fd);
	return r == -EAGAIN ? fail_busy(&update) : r;
}
