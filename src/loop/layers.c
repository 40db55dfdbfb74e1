/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, compares, merges and copies upper directories. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/dirs.h"
#include "base/path.h"
#include "base/resolve.h"
#include "loop/layers.h"
#include "view/stage.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define OPAQUE "user.overlay.opaque"

/* Opens a directory. The agent may have taken away our right to read or change it; we take it back. */
static int open_dir(int parent, const char *name)
{
	int fd = openat(parent, name, OPEN_DIR);
	autofd int path_fd = -1;
	char path[CORDON_FD_PATH_SIZE];
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || (st.st_mode & 0700) == 0700))
		return fd;
	if (fd < 0 && errno != EACCES)
		return -1;
	cordon_closep(&fd);
	path_fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path_fd < 0 || fstat(path_fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return errno = EACCES, -1;
	if (chmod(cordon_fd_path(path_fd, path), (st.st_mode & 07777) | 0700) < 0)
		return -1;
	return openat(parent, name, OPEN_DIR);
}

static bool is_opaque(int fd)
{
	char value[8];

	return fgetxattr(fd, OPAQUE, value, sizeof(value)) >= 0 || errno == ERANGE;
}

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* ---- listing ---- */

static int add(struct cordon_layer *layer, const char *path, const struct stat *st, bool opaque,
	       struct cordon_error *err)
{
	struct cordon_layer_entry *item;

	if (layer->n >= CORDON_LAYER_ENTRIES_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the result has more than %d files",
				   CORDON_LAYER_ENTRIES_MAX);
	if (layer->n == layer->cap) {
		size_t cap = layer->cap ? 2 * layer->cap : 64;
		struct cordon_layer_entry *more = reallocarray(layer->items, cap, sizeof(*more));

		if (!more)
			return cordon_fail_errno(err, -ENOMEM, "cannot list the result");
		layer->items = more;
		layer->cap = cap;
	}
	item = &layer->items[layer->n];
	*item = (struct cordon_layer_entry){ .path = cordon_arena_strdup(layer->arena, path),
					     .mode = is_whiteout(st) ? 0 : st->st_mode,
					     .opaque = opaque,
					     .in_scope = true };
	if (!item->path)
		return cordon_fail_errno(err, -ENOMEM, "cannot list the result");
	layer->n++;
	return 0;
}

static int list(struct cordon_layer *layer, int dir_fd, const char *path, unsigned int depth, struct cordon_error *err)
{
	int again = openat(dir_fd, ".", OPEN_DIR);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	int r = 0;

	if (!dir || depth > CORDON_LAYER_DEPTH_MAX) {
		r = dir ? -ELOOP : -errno;
		if (dir)
			closedir(dir);
		else
			cordon_closep(&again);
		return cordon_fail_errno(err, r, "cannot list %s of the result", path);
	}
	for (struct dirent *entry; r == 0 && (errno = 0, entry = readdir(dir));) {
		CORDON_UNCLEARED char inner[CORDON_PATH_MAX];
		autofd int fd = -1;
		struct stat st;

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (cordon_path_join(path, entry->d_name, inner, sizeof(inner)) < 0)
			r = cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
		else if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			 (S_ISDIR(st.st_mode) && (fd = open_dir(dir_fd, entry->d_name)) < 0))
			r = cordon_fail_errno(err, -errno, "cannot read %s of the result", inner);
		else if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) || is_whiteout(&st))
			r = add(layer, inner, &st, fd >= 0 && is_opaque(fd), err);
		if (r == 0 && fd >= 0)
			r = list(layer, fd, inner, depth + 1, err);
	}
	if (r == 0 && errno)
		r = cordon_fail_errno(err, -errno, "cannot list %s of the result", path);
	closedir(dir);
	return r;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct cordon_layer_entry *)a)->path, ((const struct cordon_layer_entry *)b)->path);
}

int cordon_layer_read(int upper_fd, struct cordon_layer *ret_layer, struct cordon_error *err)
{
	struct cordon_layer layer = { .arena = cordon_arena_new() };
	int r = layer.arena ? list(&layer, upper_fd, "", 0, err)
			    : cordon_fail_errno(err, -ENOMEM, "cannot list the result");

	if (r < 0) {
		cordon_layer_done(&layer);
		return r;
	}
	if (layer.n)
		qsort(layer.items, layer.n, sizeof(*layer.items), by_path);
	*ret_layer = layer;
	return 0;
}

void cordon_layer_done(struct cordon_layer *layer)
{
	free(layer->items);
	cordon_arena_free(layer->arena);
	*layer = (struct cordon_layer){ 0 };
}

const char *cordon_layer_conflict(const struct cordon_layer *a, const struct cordon_layer *b)
{
	for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
		const struct cordon_layer_entry *one = &a->items[i], *other = &b->items[k];
		int order = strcmp(one->path, other->path);

		if (order == 0 && !(S_ISDIR(one->mode) && S_ISDIR(other->mode) && !one->opaque && !other->opaque) &&
		    (one->mode || other->mode))
			return one->path;
		i += order <= 0;
		k += order >= 0;
	}
	return NULL;
}

/* ---- merging ---- */

static int merge_dir(int from, int to, unsigned int depth, struct cordon_error *err);

/* Whether something that is no directory stands at a name. What comes on top of it is opaque then: the lower entry hid what
 * lies below. */
static bool hides(const struct stat *st)
{
	return st->st_mode && !S_ISDIR(st->st_mode);
}

static int move_entry(int from, const char *name, int to, unsigned int depth, struct cordon_error *err)
{
	struct stat st, below = { 0 };
	autofd int dir = -1, other = -1;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cordon_fail_errno(err, -errno, "cannot merge %s", name);
	if (fstatat(to, name, &below, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
		return cordon_fail_errno(err, -errno, "cannot merge %s", name);
	if (S_ISDIR(st.st_mode) && (dir = open_dir(from, name)) < 0)
		return cordon_fail_errno(err, -errno, "cannot merge %s", name);
	if (dir >= 0 && hides(&below) && fsetxattr(dir, OPAQUE, "y", 1, 0) < 0)
		return cordon_fail_errno(err, -errno, "cannot merge %s", name);
	if (dir >= 0 && S_ISDIR(below.st_mode) && !is_opaque(dir)) {
		other = open_dir(to, name);
		if (other < 0)
			return cordon_fail_errno(err, -errno, "cannot merge %s", name);
		if (merge_dir(dir, other, depth + 1, err) < 0)
			return err ? err->code : -EIO;
		if (fchmod(other, st.st_mode & 0777) < 0 || unlinkat(from, name, AT_REMOVEDIR) < 0)
			return cordon_fail_errno(err, -errno, "cannot merge %s", name);
		return 0;
	}
	if (below.st_mode && cordon_dirs_remove(to, name, err) < 0)
		return err ? err->code : -EIO;
	return renameat2(from, name, to, name, RENAME_NOREPLACE) < 0
		       ? cordon_fail_errno(err, -errno, "cannot merge %s", name)
		       : 0;
}

static int merge_dir(int from, int to, unsigned int depth, struct cordon_error *err)
{
	int again = openat(from, ".", OPEN_DIR);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	int r = 0;

	if (!dir || depth > CORDON_LAYER_DEPTH_MAX) {
		r = dir ? -ELOOP : -errno;
		if (dir)
			closedir(dir);
		else
			cordon_closep(&again);
		return cordon_fail_errno(err, r, "cannot merge results");
	}
	for (struct dirent *entry; r == 0 && (errno = 0, entry = readdir(dir));)
		if (!cordon_streq(entry->d_name, ".") && !cordon_streq(entry->d_name, ".."))
			r = move_entry(from, entry->d_name, to, depth, err);
	if (r == 0 && errno)
		r = cordon_fail_errno(err, -errno, "cannot merge results");
	closedir(dir);
	return r;
}

int cordon_layer_merge(int from_fd, int to_fd, struct cordon_error *err)
{
	return merge_dir(from_fd, to_fd, 0, err);
}

/* ---- copying ---- */

/* Opens the directory of a path, by component. `make`: makes those that are missing. */
static int open_parent(int root, const char *path, bool make, const char **ret_name)
{
	autofd int fd = fcntl(root, F_DUPFD_CLOEXEC, 3);

	*ret_name = path;
	for (const char *slash; fd >= 0 && (slash = strchr(*ret_name, '/')); *ret_name = slash + 1) {
		CORDON_UNCLEARED char name[CORDON_PATH_MAX];
		int next;

		if (cordon_copy(name, sizeof(name), *ret_name, (size_t)(slash - *ret_name)) < 0)
			return -ENAMETOOLONG;
		if (make && mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		next = open_dir(fd, name);
		if (next < 0)
			return -errno;
		close(fd);
		fd = next;
	}
	return fd < 0 ? -errno : cordon_steal_fd(&fd);
}

int cordon_layer_open(int upper_fd, const struct cordon_layer_entry *entry, struct stat *ret_st)
{
	int flags = (S_ISLNK(entry->mode) ? O_PATH : O_RDONLY | O_NONBLOCK | O_NOCTTY) | O_NOFOLLOW | O_CLOEXEC;
	const char *name;
	autofd int parent = open_parent(upper_fd, entry->path, false, &name);
	autofd int fd = parent < 0 ? -1 : openat(parent, name, flags);

	if (parent < 0)
		return parent;
	if (fd < 0 && errno == EACCES && S_ISREG(entry->mode)) {
		/* The agent took away our right to read it; nobody else has it. */
		autofd int path_fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		char path[CORDON_FD_PATH_SIZE];
		struct stat st;

		if (path_fd >= 0 && fstat(path_fd, &st) == 0 && S_ISREG(st.st_mode) &&
		    chmod(cordon_fd_path(path_fd, path), (st.st_mode & 07777) | 0400) == 0)
			fd = openat(parent, name, flags);
	}
	if (fd < 0 || fstat(fd, ret_st) < 0)
		return -errno;
	if ((ret_st->st_mode & S_IFMT) != (entry->mode & S_IFMT))
		return -ESTALE;
	return cordon_steal_fd(&fd);
}

static int copy_entry(int from, const struct cordon_layer_entry *entry, int to)
{
	const char *name;
	autofd int parent = open_parent(to, entry->path, true, &name);
	autofd int fd = -1;
	struct stat st = { 0 };

	if (parent < 0)
		return parent;
	if (!entry->mode)
		return mknodat(parent, name, S_IFCHR, makedev(0, 0)) < 0 ? -errno : 0;
	if (S_ISDIR(entry->mode)) {
		if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = open_dir(parent, name);
		if (fd < 0 || fchmod(fd, (entry->mode & 0777) | 0700) < 0 ||
		    (entry->opaque && fsetxattr(fd, OPAQUE, "y", 1, 0) < 0))
			return -errno;
		return 0;
	}
	fd = cordon_layer_open(from, entry, &st);
	if (fd < 0)
		return fd;
	if (S_ISLNK(entry->mode))
		return cordon_stage_link(fd, &st, parent, name);
	return cordon_stage_file(fd, &st, &(struct cordon_stage_like){ .mode = st.st_mode & 0777 }, parent, name);
}

int cordon_layer_copy(int from_fd, const struct cordon_layer *layer, int to_fd, struct cordon_error *err)
{
	for (size_t i = 0; i < layer->n; i++) {
		int r = layer->items[i].in_scope ? copy_entry(from_fd, &layer->items[i], to_fd) : 0;

		if (r < 0)
			return cordon_fail_errno(err, r, "cannot copy %s of the result", layer->items[i].path);
	}
	return 0;
}
