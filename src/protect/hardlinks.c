/* SPDX-License-Identifier: Apache-2.0 */
/* Finds protected files that have another name (hard links), and copies them apart. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/resolve.h"
#include "base/setting.h"
#include "protect/hardlinks.h"

struct search {
	const char *path; /* the protected path, for messages */
	const struct cordon_kept_names *kept;
	bool copy_apart;
	size_t entries;
	size_t found;
	bool sockets; /* a socket or a FIFO was found */
};

static int too_large(const struct search *s, struct cordon_error *err)
{
	cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "protected path %s is too large to be searched for hard links",
		    s->path);
	cordon_error_hint(err, "protect the files that matter instead of the whole directory");
	return -E2BIG;
}

static int too_many(const struct search *s, struct cordon_error *err)
{
	cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT,
		    "protected path %s has more than %d files with other names (hard links) to be copied apart",
		    s->path, CORDON_HARDLINKS_COPIES_MAX);
	cordon_error_hint(err, "protect the files that matter, or leave it unprotected with %s",
			  cordon_setting_name(CORDON_SETTING_UNPROTECT));
	return -E2BIG;
}

static void copy_attributes(int from, int to)
{
	char names[4096], value[4096];
	ssize_t n = flistxattr(from, names, sizeof(names));

	for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
		ssize_t len = fgetxattr(from, name, value, sizeof(value));

		if (len >= 0)
			fsetxattr(to, name, value, (size_t)len, 0);
	}
}

/* Gives `name` in dir_fd an inode of its own. */
static int copy_apart(int dir_fd, const char *name, struct cordon_error *err)
{
	uint64_t budget = CORDON_HARDLINKS_SIZE_MAX; /* the file may grow while we copy it */
	autofd int from = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	autofd int to = -1;
	char uuid[CORDON_UUID_SIZE], temp[NAME_MAX + 1];
	struct stat st;
	int r = 0;

	if (from < 0 || fstat(from, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot copy %s apart from its other names", name);
	if (!S_ISREG(st.st_mode) || st.st_size > CORDON_HARDLINKS_SIZE_MAX)
		return cordon_fail(err, -EFBIG, CORDON_KIND_LIMIT,
				   "%s has other names (hard links) and is too large to be copied apart", name);
	r = cordon_uuid_new(uuid);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot copy %s", name);
	snprintf(temp, sizeof(temp), ".cordon-%s.tmp", uuid);
	to = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return cordon_fail_errno(err, -errno, "cannot copy %s apart from its other names", name);
	r = cordon_copy_bytes(from, to, &budget);
	if (r == 0) {
		struct timespec times[2] = { st.st_atim, st.st_mtim };

		copy_attributes(from, to);
		/* If we may not set another owner, the copy belongs to us. */
		if (fchown(to, st.st_uid, st.st_gid) < 0)
			errno = 0;
		if (fchmod(to, st.st_mode & 07777) < 0 || futimens(to, times) < 0 || fsync(to) < 0 ||
		    renameat(dir_fd, temp, dir_fd, name) < 0)
			r = -errno;
	}
	if (r < 0) {
		unlinkat(dir_fd, temp, 0);
		return cordon_fail_errno(err, r, "cannot copy %s apart from its other names", name);
	}
	return 0;
}

static int visit(struct search *s, int dir_fd, const char *name, const struct stat *st, struct cordon_error *err)
{
	nlink_t kept = s->kept->ino == st->st_ino && s->kept->dev == st->st_dev ? s->kept->n : 0;

	s->sockets |= S_ISSOCK(st->st_mode) || S_ISFIFO(st->st_mode);
	if (!S_ISREG(st->st_mode) || st->st_nlink < 2 + kept)
		return 0;
	if (++s->found > CORDON_HARDLINKS_COPIES_MAX)
		return too_many(s, err);
	return s->copy_apart ? copy_apart(dir_fd, name, err) : 0;
}

static int search_dir(struct search *s, int fd, unsigned int depth, struct cordon_error *err)
{
	DIR *dir = fdopendir(fd);
	int r = 0;

	if (!dir) {
		r = -errno;
		close(fd);
		return cordon_fail_errno(err, r, "cannot list protected path %s", s->path);
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(dir));) {
		struct stat st;

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (++s->entries > CORDON_HARDLINKS_ENTRIES_MAX || depth > CORDON_HARDLINKS_DEPTH_MAX)
			r = too_large(s, err);
		else if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = errno == ENOENT
				    ? 0
				    : cordon_fail_errno(err, -errno, "cannot stat %s in %s", entry->d_name, s->path);
		else if (S_ISDIR(st.st_mode)) {
			int sub = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			r = sub < 0 ? cordon_fail_errno(err, -errno, "cannot open %s in %s", entry->d_name, s->path)
				    : search_dir(s, sub, depth + 1, err);
		} else {
			r = visit(s, dirfd(dir), entry->d_name, &st, err);
		}
	}
	closedir(dir);
	return r;
}

static int search(struct search *s, int root_fd, struct cordon_error *err)
{
	const char *slash = strrchr(s->path, '/');
	char parent[CORDON_PATH_MAX] = "";
	autofd int dir = -1;
	struct stat st;
	int fd;

	if (slash && cordon_copy(parent, sizeof(parent), s->path, (size_t)(slash - s->path)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", s->path);
	dir = cordon_open_beneath(root_fd, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return cordon_fail_errno(err, dir, "cannot open protected path %s", s->path);
	if (fstatat(dir, slash ? slash + 1 : s->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat protected path %s", s->path);
	if (!S_ISDIR(st.st_mode))
		return visit(s, dir, slash ? slash + 1 : s->path, &st, err);
	fd = openat(dir, slash ? slash + 1 : s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open protected path %s", s->path);
	return search_dir(s, fd, 0, err);
}

int cordon_hardlinks_find(int root_fd, const char *path, const struct cordon_kept_names *kept, bool *ret_found,
			  bool *ret_sockets, struct cordon_error *err)
{
	struct search s = { .path = path, .kept = kept };
	int r = search(&s, root_fd, err);

	if (r == 0)
		*ret_found = s.found > 0, *ret_sockets = s.sockets;
	return r;
}

int cordon_hardlinks_break(int root_fd, const char *path, const struct cordon_kept_names *kept, size_t *ret_count,
			   struct cordon_error *err)
{
	struct search s = { .path = path, .kept = kept, .copy_apart = true };
	int r = search(&s, root_fd, err);

	if (r == 0)
		*ret_count = s.found;
	return r;
}
