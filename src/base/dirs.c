/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, merges and removes whole directories that a hostile process may have made; works on descriptors. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/path.h"

#define PASSES_MAX 100000 /* emptying a directory takes at most as many passes as it has levels */
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define autodir CORDON_CLEANUP(closedirp)

static bool is_dots(const char *name)
{
	return cordon_streq(name, ".") || cordon_streq(name, "..");
}

/* Opens a directory stream with its own descriptor, so that the caller's descriptor keeps its position. */
static DIR *list(int dir_fd)
{
	int fd = openat(dir_fd, ".", OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

const struct cordon_copy_bounds cordon_copy_small = {
	.bytes = CORDON_COPY_BYTES_MAX,
	.entries = CORDON_COPY_ENTRIES_MAX,
	.depth = CORDON_COPY_DEPTH_MAX,
};

static int too_much(const char *path, const struct cordon_copy_budget *budget, struct cordon_error *err)
{
	return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT,
			   "%s: a copy holds at most %llu MiB, %zu files and directories, %u levels", path,
			   (unsigned long long)(budget->bounds->bytes >> 20), budget->bounds->entries,
			   budget->bounds->depth);
}

/* Makes a link again. It is not followed, so it does not matter where it leads. */
static int copy_link(int src_fd, const char *name, int dst_fd, const char *path, struct cordon_error *err)
{
	char target[CORDON_PATH_MAX];
	ssize_t n = readlinkat(src_fd, name, target, sizeof(target) - 1);

	if (n >= 0)
		target[n] = '\0';
	return n < 0 || symlinkat(target, dst_fd, name) < 0 ? cordon_fail_errno(err, -errno, "cannot copy %s", path) : 0;
}

static int copy_file(int src, const struct stat *st, int dst_fd, const char *name, const char *path,
		     struct cordon_copy_budget *budget, struct cordon_error *err)
{
	autofd int dst = openat(dst_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };
	int r;

	if (dst < 0)
		return cordon_fail_errno(err, -errno, "cannot copy %s", path);
	r = cordon_copy_bytes(src, dst, &budget->bytes);
	if (r == -E2BIG)
		return too_much(path, budget, err);
	if (r == 0 && (fchmod(dst, (st->st_mode & 0755) | 0600) < 0 || (!budget->bounds->unsynced && fsync(dst) < 0)))
		r = -errno;
	/* Builds compare the times of files. A file system that can't keep them is good enough. */
	if (r == 0)
		futimens(dst, times);
	return r < 0 ? cordon_fail_errno(err, r, "cannot copy %s", path) : 0;
}

static int copy_entry(int src_fd, const char *name, int dst_fd, const char *path, unsigned int depth,
		      struct cordon_copy_budget *budget, struct cordon_error *err);

static int copy_content(int src, int dst, const char *path, unsigned int depth, struct cordon_copy_budget *budget,
			struct cordon_error *err)
{
	const struct cordon_copy_bounds *bounds = budget->bounds;
	autodir DIR *dir = list(src);
	struct dirent *entry;

	if (!dir)
		return cordon_fail_errno(err, -errno, "cannot copy %s", *path ? path : "the directory");
	while (errno = 0, (entry = readdir(dir))) {
		char below[CORDON_PATH_MAX];
		int r;

		if (is_dots(entry->d_name))
			continue;
		if (depth == 0 || cordon_path_join(path, entry->d_name, below, sizeof(below)) < 0)
			return too_much(path, budget, err);
		if (bounds->leave_out && bounds->leave_out(bounds->data, below))
			continue;
		r = copy_entry(src, entry->d_name, dst, below, depth - 1, budget, err);
		if (r < 0)
			return r;
	}
	return errno ? cordon_fail_errno(err, -errno, "cannot copy %s", path) : 0;
}

static int copy_dir(int src, const struct stat *st, int dst_fd, const char *name, const char *path, unsigned int depth,
		    struct cordon_copy_budget *budget, struct cordon_error *err)
{
	autofd int dst = -1;
	int r;

	if (mkdirat(dst_fd, name, 0700) < 0)
		return cordon_fail_errno(err, -errno, "cannot copy %s", path);
	dst = openat(dst_fd, name, OPEN_DIR);
	if (dst < 0)
		return cordon_fail_errno(err, -errno, "cannot copy %s", path);
	r = copy_content(src, dst, path, depth, budget, err);
	if (r == 0 && (fchmod(dst, (st->st_mode & 0755) | 0700) < 0 || (!budget->bounds->unsynced && fsync(dst) < 0)))
		r = cordon_fail_errno(err, -errno, "cannot copy %s", path);
	return r;
}

static int copy_entry(int src_fd, const char *name, int dst_fd, const char *path, unsigned int depth,
		      struct cordon_copy_budget *budget, struct cordon_error *err)
{
	/* O_NONBLOCK so that a FIFO can't make us wait; a socket fails to open, a link too. */
	autofd int src = openat(src_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (src < 0 && errno == ENOENT)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s does not exist", path);
	if (budget->entries == 0)
		return too_much(path, budget, err);
	budget->entries--;
	if (src < 0 && errno == ELOOP && budget->bounds->links)
		return copy_link(src_fd, name, dst_fd, path, err);
	if (src < 0 && (errno == ELOOP || errno == ENXIO))
		return cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED,
				   "%s is a link or a socket; only regular files and directories are copied", path);
	if (src < 0 || fstat(src, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot copy %s", path);
	if (S_ISREG(st.st_mode))
		return copy_file(src, &st, dst_fd, name, path, budget, err);
	if (S_ISDIR(st.st_mode))
		return copy_dir(src, &st, dst_fd, name, path, depth, budget, err);
	return cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED,
			   "%s is a FIFO or a device; only regular files and directories are copied", path);
}

int cordon_dirs_copy(int src_fd, const char *name, int dst_fd, struct cordon_copy_budget *budget,
		     struct cordon_error *err)
{
	return copy_entry(src_fd, name, dst_fd, name, budget->bounds->depth, budget, err);
}

int cordon_dirs_copy_all(int src_fd, int dst_fd, struct cordon_copy_budget *budget, struct cordon_error *err)
{
	return copy_content(src_fd, dst_fd, "", budget->bounds->depth, budget, err);
}

static int in_the_way(const char *path, struct cordon_error *err)
{
	return cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "%s: something of another type stands there", path);
}

static int merge_dir(int src_fd, const char *name, int dst_fd, const char *path, struct cordon_error *err);

static int merge_entry(int src_fd, const char *name, int dst_fd, const char *path, struct cordon_error *err)
{
	struct stat st;

	if (fstatat(src_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cordon_fail_errno(err, -errno, "cannot copy %s", path);
	if (S_ISDIR(st.st_mode))
		return merge_dir(src_fd, name, dst_fd, path, err);
	if (renameat(src_fd, name, dst_fd, name) == 0)
		return 0;
	return errno == EISDIR ? in_the_way(path, err) : cordon_fail_errno(err, -errno, "cannot copy %s", path);
}

static int merge_dir(int src_fd, const char *name, int dst_fd, const char *path, struct cordon_error *err)
{
	autodir DIR *dir = NULL;
	autofd int src = -1;
	autofd int dst = -1;
	struct dirent *entry;

	if (renameat2(src_fd, name, dst_fd, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EEXIST)
		return cordon_fail_errno(err, -errno, "cannot copy %s", path);
	src = openat(src_fd, name, OPEN_DIR);
	if (src < 0 || !(dir = list(src)))
		return cordon_fail_errno(err, -errno, "cannot copy %s", path);
	dst = openat(dst_fd, name, OPEN_DIR);
	if (dst < 0)
		return errno == ELOOP || errno == ENOTDIR ? in_the_way(path, err)
							  : cordon_fail_errno(err, -errno, "cannot copy %s", path);
	while (errno = 0, (entry = readdir(dir))) {
		char below[CORDON_PATH_MAX];
		int r;

		if (is_dots(entry->d_name))
			continue;
		r = cordon_path_join(path, entry->d_name, below, sizeof(below));
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot copy %s", path);
		r = merge_entry(src, entry->d_name, dst, below, err);
		if (r < 0)
			return r;
	}
	if (errno || fsync(dst) < 0)
		return cordon_fail_errno(err, -errno, "cannot copy %s", path);
	return 0;
}

int cordon_dirs_merge(int src_fd, const char *name, int dst_fd, struct cordon_error *err)
{
	return merge_entry(src_fd, name, dst_fd, name, err);
}

/* Gives the owner all rights on a directory of ours. It works on a descriptor because chmod by name would follow a
 * link that somebody put there meanwhile. The descriptor is O_PATH because one for reading would need the right to
 * read. */
static int make_writable(int dir_fd, const char *name)
{
	autofd int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char self[64];

	if (fd < 0)
		return -errno;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, 0700) < 0 ? -errno : 0;
}

static int open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, OPEN_DIR);
	int r;

	if (fd >= 0 || errno != EACCES)
		return fd < 0 ? -errno : fd;
	r = make_writable(dir_fd, name);
	if (r < 0)
		return r;
	fd = openat(dir_fd, name, OPEN_DIR);
	return fd < 0 ? -errno : fd;
}

int cordon_dirs_move(int from_fd, const char *name, int to_fd, const char *to_name)
{
	int r;

	if (renameat2(from_fd, name, to_fd, to_name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EACCES)
		return -errno;
	/* Moving a directory elsewhere changes its "..", which needs write permission on it. */
	r = make_writable(from_fd, name);
	if (r < 0)
		return r == -ENOTDIR ? -EACCES : r;
	return renameat2(from_fd, name, to_fd, to_name, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

static int move_up(int from_fd, const char *name, int top_fd, uint64_t *counter)
{
	int r;

	do {
		char up[32];

		snprintf(up, sizeof(up), "%016llx", (unsigned long long)(*counter)++);
		r = cordon_dirs_move(from_fd, name, top_fd, up);
	} while (r == -EEXIST);
	return r;
}

/* Empties one directory: removes files, and passes directories to `below`, which moves them up to `top_fd` or
 * empties them. */
static int empty_dir(int fd, int top_fd, uint64_t *counter, int (*below)(int, const char *, int, uint64_t *))
{
	autodir DIR *dir = NULL;
	struct dirent *entry;
	int r = 0;

	if (fchmod(fd, 0700) < 0 || !(dir = list(fd)))
		return -errno;
	while (errno = 0, (entry = readdir(dir))) {
		if (is_dots(entry->d_name))
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0)
			continue;
		if (errno != EISDIR && errno != EPERM)
			return -errno;
		r = below(fd, entry->d_name, top_fd, counter);
		if (r < 0)
			return r;
	}
	return -errno;
}

static int empty_and_remove(int dir_fd, const char *name, int top_fd, uint64_t *counter)
{
	autofd int fd = open_dir(dir_fd, name);
	int r;

	if (fd < 0)
		return fd;
	r = empty_dir(fd, top_fd, counter, move_up);
	if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

int cordon_dirs_remove(int dir_fd, const char *name, struct cordon_error *err)
{
	autofd int top = -1;
	uint64_t counter = 0;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	top = open_dir(dir_fd, name);
	if (top < 0)
		return cordon_fail_errno(err, top, "cannot remove %s", name);
	for (unsigned int passes = 0;; passes++) {
		int r;

		if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return cordon_fail_errno(err, -errno, "cannot remove %s", name);
		/* A process that still has the directory open may fill it as fast as we empty it. */
		if (passes == PASSES_MAX)
			return cordon_fail_errno(err, -EBUSY, "cannot remove %s", name);
		r = empty_dir(top, top, &counter, empty_and_remove);
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot remove %s", name);
	}
}
