/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the upper layer of a view with the root. */
#include <fcntl.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/path.h"
#include "protect/executes.h"
#include "view/delta_internal.h"
#include "protect/gitindex.h"
#include "view/delta.h"
#include "view/hide.h"
#include "view/internal.h"
#include "view/known.h"
#include "view/lower.h"

#define COMPARE_BYTES 65536

static const struct cordon_lower no_lower = CORDON_LOWER_NONE;

void cordon_ident_of(const struct stat *st, struct cordon_ident *ret_ident)
{
	*ret_ident = (struct cordon_ident){
		.mode = st->st_mode,
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
		.uid = st->st_uid,
		.gid = st->st_gid,
	};
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool cordon_ident_same(const struct cordon_ident *a, const struct cordon_ident *b)
{
	if (a->dev != b->dev || a->ino != b->ino)
		return false;
	/* A directory is the same whatever is in it. */
	if (S_ISDIR(a->mode))
		return S_ISDIR(b->mode);
	return a->mode == b->mode && a->size == b->size && same_time(&a->mtime, &b->mtime);
}

static int fail_memory(struct cordon_walk *walk)
{
	return cordon_fail_errno(walk->err, -ENOMEM, "cannot list the changes");
}

static int add_change(struct cordon_walk *walk, const struct cordon_delta_change *change)
{
	struct cordon_delta *delta = walk->delta;
	struct cordon_delta_change *added;

	if (delta->n >= walk->most) {
		walk->ended = true;
		return cordon_fail(walk->err, -E2BIG, CORDON_KIND_LIMIT, "the view changes more than %zu files",
				   walk->most);
	}
	if (delta->n == delta->cap) {
		size_t cap = delta->cap ? 2 * delta->cap : 64;
		struct cordon_delta_change *more = reallocarray(delta->changes, cap, sizeof(*more));

		if (!more)
			return fail_memory(walk);
		delta->changes = more;
		delta->cap = cap;
	}
	added = &delta->changes[delta->n];
	*added = *change;
	added->path = cordon_arena_strdup(delta->arena, change->path);
	if (!added->path)
		return fail_memory(walk);
	if (change->kind != CORDON_DELTA_DELETED && !S_ISDIR(change->new.mode))
		added->who = cordon_executes(change->path, change->new.mode);
	delta->n_executes += added->who != NULL;
	delta->n++;
	return 0;
}

static int add_left(struct cordon_walk *walk, const char *path, const char *what)
{
	struct cordon_delta *delta = walk->delta;

	if (delta->n_left >= CORDON_DELTA_CHANGES_MAX)
		return cordon_fail(walk->err, -E2BIG, CORDON_KIND_LIMIT, "the view has too many special files");
	if (delta->n_left == delta->left_cap) {
		size_t cap = delta->left_cap ? 2 * delta->left_cap : 16;
		struct cordon_delta_left *more = reallocarray(delta->left, cap, sizeof(*more));

		if (!more)
			return fail_memory(walk);
		delta->left = more;
		delta->left_cap = cap;
	}
	delta->left[delta->n_left] = (struct cordon_delta_left){
		.path = cordon_arena_strdup(delta->arena, path),
		.what = what,
	};
	return delta->left[delta->n_left++].path ? 0 : fail_memory(walk);
}

static int fail_read(struct cordon_walk *walk, const char *path)
{
	return cordon_fail_errno(walk->err, -errno, "cannot read %s of the view", *path ? path : "the root");
}

/* Describes what is at a name; `mode` is 0 when nothing is. */
static int look(int dir_fd, const char *name, struct cordon_ident *ret_ident, struct stat *ret_st)
{
	if (dir_fd < 0 || fstatat(dir_fd, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0) {
		*ret_ident = (struct cordon_ident){ 0 };
		*ret_st = (struct stat){ 0 };
		return dir_fd < 0 || errno == ENOENT ? 0 : -errno;
	}
	cordon_ident_of(ret_st, ret_ident);
	return 0;
}

int cordon_delta_same_bytes(int a, int b, bool *ret_same)
{
	autofree char *one = malloc(2 * COMPARE_BYTES);
	ssize_t n, m;

	if (!one)
		return -ENOMEM;
	do {
		n = read(a, one, COMPARE_BYTES);
		m = n < 0 ? -1 : read(b, one + COMPARE_BYTES, COMPARE_BYTES);
		if (n < 0 || m < 0)
			return -errno;
		if (n != m || memcmp(one, one + COMPARE_BYTES, (size_t)n) != 0) {
			*ret_same = false;
			return 0;
		}
	} while (n > 0);
	*ret_same = true;
	return 0;
}

/* Opens the directory that lies below the view at a level, and notes what happened to the host's since the view began. */
static int open_lower(struct cordon_walk *walk, const struct cordon_level *parent, const char *name,
		      struct cordon_lower *ret_lower, struct cordon_level *level)
{
	int r = cordon_lower_open(parent->lower, name, ret_lower);

	if (r == 0) {
		level->lower = ret_lower;
		r = cordon_host_look(walk, parent, level);
	}
	return r < 0 ? cordon_fail_errno(walk->err, r, "cannot read %s of the view", level->path) : 0;
}

/* Reports that all of the host's `name` is deleted, what lies in a directory before the directory. */
static int delete_all(struct cordon_walk *walk, const struct cordon_level *level, const char *name, const char *path,
		      const struct cordon_ident *old, int dir)
{
	struct cordon_delta_change change = {
		.path = path,
		.kind = CORDON_DELTA_DELETED,
		.old = *old,
		.edited = cordon_host_edited(walk, level, path, old, dir),
		.of_layer = dir != level->lower->root,
	};
	struct cordon_level below = {
		.path = path,
		.upper = -1,
		.lower = &no_lower,
		.moved = level->moved,
		.changed = level->changed,
		.depth = level->depth + 1,
	};
	autolisting struct cordon_listing names = { 0 };
	autolower struct cordon_lower lower = CORDON_LOWER_NONE;
	int r;

	if (!S_ISDIR(old->mode))
		return add_change(walk, &change);
	if (below.depth > CORDON_DELTA_DEPTH_MAX)
		return cordon_fail(walk->err, -E2BIG, CORDON_KIND_LIMIT, "more than %d levels of directories: %s",
				   CORDON_DELTA_DEPTH_MAX, path);
	r = open_lower(walk, level, name, &lower, &below);
	if (r == 0 && (r = cordon_lower_names(&lower, &names)) < 0)
		return cordon_fail_errno(walk->err, r, "cannot read %s", path);
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		char inner[CORDON_PATH_MAX];
		struct cordon_ident ident;
		int at;

		if (cordon_path_join(path, names.name[i], inner, sizeof(inner)) < 0)
			return cordon_fail_errno(walk->err, -ENAMETOOLONG, "%s", path);
		r = cordon_lower_look(&lower, names.name[i], &ident, &at);
		if (r < 0)
			return cordon_fail_errno(walk->err, r, "cannot read %s", inner);
		if (ident.mode)
			r = delete_all(walk, &below, names.name[i], inner, &ident, at);
	}
	change.edited = change.edited || below.moved;
	return r == 0 ? add_change(walk, &change) : r;
}

/* Whether the user's attributes differ, without those of the overlay. */
static bool attributes_differ(int upper, int lower)
{
	char list[2][4096];
	ssize_t n[2] = { flistxattr(upper, list[0], sizeof(list[0])), flistxattr(lower, list[1], sizeof(list[1])) };

	if (n[0] < 0 || n[1] < 0)
		return n[0] != n[1]; /* too many: they are copied again; else neither side has any */
	for (int side = 0; side < 2; side++)
		for (const char *name = list[side]; name < list[side] + n[side]; name += strlen(name) + 1) {
			char value[2][1024];
			ssize_t a, b;

			if (strncmp(name, "user.", 5) != 0 || strncmp(name, CORDON_OVERLAY_ATTRIBUTE(""), 13) == 0)
				continue;
			a = fgetxattr(upper, name, value[0], sizeof(value[0]));
			b = fgetxattr(lower, name, value[1], sizeof(value[1]));
			if (a < 0 || b < 0 || a != b || memcmp(value[0], value[1], (size_t)a) != 0)
				return true;
		}
	return false;
}

/* Compares two regular files or two links with the same name and mode. */
static int compare(struct cordon_walk *walk, const struct cordon_level *level, const char *name, int dir,
		   struct cordon_delta_change *change, bool *ret_changed)
{
	autofd int upper = -1, lower = -1;
	bool same = false;
	int r;

	change->kind = CORDON_DELTA_MODIFIED;
	*ret_changed = true;
	if ((change->old.mode & ~(mode_t)07000) != change->new.mode || change->old.size != change->new.size)
		return 0;
	if (S_ISLNK(change->old.mode)) {
		char target[2][CORDON_PATH_MAX];
		ssize_t n = readlinkat(level->upper, name, target[0], sizeof(target[0]));
		ssize_t m = readlinkat(dir, name, target[1], sizeof(target[1]));

		*ret_changed = n < 0 || n != m || memcmp(target[0], target[1], (size_t)n) != 0;
		return 0;
	}
	upper = cordon_upper_open(level->upper, name, O_RDONLY);
	lower = dir == level->lower->root ? openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
					  : cordon_upper_open(dir, name, O_RDONLY);
	if (upper < 0)
		return fail_read(walk, change->path);
	/* What we can't read on the host counts as changed; apply says why it can't be replaced. */
	if (lower < 0)
		return 0;
	r = cordon_delta_same_bytes(upper, lower, &same);
	if (r < 0)
		return cordon_fail_errno(walk->err, r, "cannot compare %s", change->path);
	if (!same || attributes_differ(upper, lower)) {
		change->attributes = same;
		if (same)
			change->kind = CORDON_DELTA_TOUCHED;
		return 0;
	}
	change->kind = CORDON_DELTA_TOUCHED;
	/* A new time leaves the host's set-id bits alone. */
	change->new.mode = change->old.mode;
	change->set_id = change->set_id && !(change->old.mode & 07000);
	*ret_changed = !same_time(&change->old.mtime, &change->new.mtime);
	return 0;
}

static int walk_level(struct cordon_walk *walk, const struct cordon_level *level);

/* A directory of the upper layer. What the host has at its path may be anything, or nothing. */
static int walk_dir(struct cordon_walk *walk, const struct cordon_level *level, const char *name,
		    struct cordon_delta_change *change)
{
	autofd int upper = cordon_upper_open(level->upper, name, O_RDONLY | O_DIRECTORY);
	autolower struct cordon_lower lower = CORDON_LOWER_NONE;
	struct cordon_level below = {
		.path = change->path,
		.upper = upper,
		.lower = &no_lower,
		.moved = level->moved,
		.changed = level->changed,
		.depth = level->depth + 1,
	};
	bool was_dir = S_ISDIR(change->old.mode);
	int r = 0;

	if (upper < 0)
		return fail_read(walk, change->path);
	if (below.depth > CORDON_DELTA_DEPTH_MAX)
		return cordon_fail(walk->err, -E2BIG, CORDON_KIND_LIMIT, "more than %d levels of directories: %s",
				   CORDON_DELTA_DEPTH_MAX, change->path);
	if (cordon_upper_has(upper, CORDON_OVERLAY_ATTRIBUTE("redirect")) ||
	    cordon_upper_has(upper, CORDON_OVERLAY_ATTRIBUTE("metacopy")))
		return cordon_fail(walk->err, -EBADMSG, CORDON_KIND_POLICY_DENIED,
				   "%s has an attribute of overlayfs that no view of cordon makes", change->path);
	/* The kernel marks only the topmost directory that hides what lies below it. */
	change->new.mode = cordon_upper_mode(upper, change->new.mode);
	below.opaque = level->opaque || cordon_upper_has(upper, CORDON_OVERLAY_ATTRIBUTE("opaque"));
	if (was_dir) {
		r = open_lower(walk, level, name, &lower, &below);
		change->edited = change->edited || below.moved;
		/* The kernel marks every new directory. One that the host made meanwhile has nothing that the view deletes. */
		if (r == 0 && below.opaque && cordon_host_made(walk, &below))
			below.opaque = false;
	}
	cordon_host_settle_mode(walk, change);
	if (was_dir) {
		change->kind = change->old.mode != change->new.mode ? CORDON_DELTA_MODIFIED : CORDON_DELTA_TOUCHED;
	} else {
		/* The kernel marks a directory that it copied from the host. If the host has none, it removed it. */
		if (!change->old.mode && cordon_upper_has(upper, CORDON_OVERLAY_ATTRIBUTE("origin")))
			change->edited = change->gone = true;
		change->kind = change->old.mode ? CORDON_DELTA_MODIFIED : CORDON_DELTA_ADDED;
	}
	if (r == 0)
		r = add_change(walk, change);
	return r == 0 ? walk_level(walk, &below) : r;
}

static const char *special_name(const struct stat *st)
{
	return S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? "a device"
	       : S_ISFIFO(st->st_mode)			    ? "a FIFO"
	       : S_ISSOCK(st->st_mode)			    ? "a socket"
							    : "a special file";
}

/* `dir` is the directory below the view that has the old file. */
static int walk_file(struct cordon_walk *walk, const struct cordon_level *level, const char *name, int dir,
		     struct cordon_delta_change *change)
{
	bool changed = true;
	int r = 0;

	cordon_host_settle_mode(walk, change);
	if (S_ISDIR(change->old.mode)) {
		/* The directory itself becomes the file; what is in it is deleted before. */
		r = delete_all(walk, level, name, change->path, &change->old, dir);
		change->old = (struct cordon_ident){ 0 };
		change->kind = CORDON_DELTA_ADDED;
	} else if (!change->old.mode) {
		change->kind = CORDON_DELTA_ADDED;
		cordon_gone_look(walk, level, name, change);
	} else {
		r = compare(walk, level, name, dir, change, &changed);
	}
	return r == 0 && changed ? add_change(walk, change) : r;
}

static int walk_entry(struct cordon_walk *walk, const struct cordon_level *level, const char *name)
{
	struct cordon_delta_change change = { 0 };
	char path[CORDON_PATH_MAX];
	struct stat st;
	int r, dir = -1;

	if (cordon_path_join(level->path, name, path, sizeof(path)) < 0)
		return cordon_fail_errno(walk->err, -ENAMETOOLONG, "%s", level->path);
	change.path = path;
	r = look(level->upper, name, &change.new, &st);
	if (r == 0)
		r = cordon_lower_look(level->lower, name, &change.old, &dir);
	if (r < 0)
		return cordon_fail_errno(walk->err, r, "cannot read %s of the view", path);
	if (!change.new.mode)
		return 0; /* a live view has removed it meanwhile */
	if (cordon_upper_is_whiteout(level->upper, name, &st))
		return change.old.mode && !cordon_hidden_has(&walk->hidden, path)
			       ? delete_all(walk, level, name, path, &change.old, dir)
			       : 0;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode))
		return add_left(walk, path, special_name(&st));
	change.edited = cordon_host_edited(walk, level, path, &change.old, dir);
	change.of_layer = dir != level->lower->root;
	change.links = S_ISREG(st.st_mode) ? (uint32_t)st.st_nlink : 1;
	if (S_ISDIR(st.st_mode)) {
		if (change.old.mode && !S_ISDIR(change.old.mode)) {
			/* A file became a directory: the file goes first. */
			r = delete_all(walk, level, name, path, &change.old, dir);
			change.old = (struct cordon_ident){ 0 };
			change.edited = false;
		}
		return r == 0 ? walk_dir(walk, level, name, &change) : r;
	}
	return walk_file(walk, level, name, dir, &change);
}

static int walk_level(struct cordon_walk *walk, const struct cordon_level *level)
{
	autonames struct cordon_name_list upper = { 0 }, lower = { 0 };
	size_t at = 0;
	int r = cordon_name_list_read(level->upper, &upper);

	if (r == 0 && level->opaque)
		r = cordon_lower_names(level->lower, &lower);
	if (r < 0)
		return cordon_fail_errno(walk->err, r, "cannot read %s of the view", *level->path ? level->path : "/");
	/* Both lists are sorted; what only the host has is deleted by an opaque directory. */
	for (size_t i = 0; r == 0 && i < lower.n; i++) {
		struct cordon_ident ident;
		char path[CORDON_PATH_MAX];
		int dir;

		while (at < upper.n && strcmp(upper.name[at], lower.name[i]) < 0)
			at++;
		if (at < upper.n && cordon_streq(upper.name[at], lower.name[i]))
			continue;
		if (cordon_path_join(level->path, lower.name[i], path, sizeof(path)) < 0)
			return cordon_fail_errno(walk->err, -ENAMETOOLONG, "%s", level->path);
		r = cordon_lower_look(level->lower, lower.name[i], &ident, &dir);
		if (r < 0)
			return cordon_fail_errno(walk->err, r, "cannot read %s", path);
		if (ident.mode)
			r = delete_all(walk, level, lower.name[i], path, &ident, dir);
	}
	for (size_t i = 0; r == 0 && i < upper.n; i++)
		r = walk_entry(walk, level, upper.name[i]);
	return r;
}

/*
 * Opens what the view is compared with. As long as the views below it wait, that is their layers on top of the root. When
 * all of them are applied, the root itself has their changes.
 */
static int open_base(struct cordon_walk *walk, const struct cordon_view *view)
{
	struct cordon_delta *delta = walk->delta;
	struct cordon_lower *top = &delta->base;
	bool applied = true;
	size_t i;
	json_t *id;
	int r = cordon_lower_top(view, delta->root_fd, top, walk->err);

	if (r < 0 || !top->n)
		return r;
	json_array_foreach(view->record.layers, i, id)
		applied = applied && cordon_view_beside_state(view, json_string_value(id)) == CORDON_VIEW_APPLIED;
	delta->stacked = !applied;
	if (!applied)
		return 0;
	walk->layers = *top;
	walk->layers.root = -1;
	*top = (struct cordon_lower){ .root = top->root };
	return 0;
}

static int find(const struct cordon_view *view, size_t most, struct cordon_delta *ret_delta, bool *ret_more,
		struct cordon_error *err)
{
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	struct cordon_walk walk = { .delta = &delta, .layers = CORDON_LOWER_NONE, .most = most, .err = err };
	struct cordon_level top = { .path = "" };
	struct cordon_view_devices devices;
	struct stat st;
	int r = cordon_view_root(view, &delta.root_fd, err);

	if (r < 0)
		return r;
	delta.since = (struct timespec){ .tv_sec = view->record.started.sec, .tv_nsec = view->record.started.nsec };
	delta.upper_fd = openat(view->dir_fd, CORDON_VIEW_UPPER, CORDON_OPEN_DIR);
	if (delta.upper_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot read the changes of view %s", view->record.id);
	delta.arena = cordon_arena_new();
	if (!delta.arena)
		return fail_memory(&walk);
	r = open_base(&walk, view);
	if (r == 0) {
		cordon_view_devices(view, delta.root_fd, &devices);
		cordon_known_load(view->dir_fd, &devices, &walk.known);
		cordon_hidden_load(view->dir_fd, &walk.hidden);
		top.upper = delta.upper_fd;
		top.lower = &delta.base;
		top.changed = fstat(delta.root_fd, &st) < 0 || cordon_delta_later(&st.st_mtim, &delta.since);
		r = walk_level(&walk, &top);
		if (r == 0 || (ret_more && walk.ended)) {
			int settled = cordon_gone_settle(&walk, view);

			r = settled < 0 ? settled : r;
		}
		cordon_known_done(&walk.known);
		cordon_buf_done(&walk.hidden);
	}
	cordon_lower_done(&walk.layers);
	if (r < 0 && !(ret_more && walk.ended))
		return r;
	if (ret_more)
		*ret_more = walk.ended;
	*ret_delta = delta;
	delta = (struct cordon_delta)CORDON_DELTA_NONE;
	return 0;
}

int cordon_delta_find(const struct cordon_view *view, struct cordon_delta *ret_delta, struct cordon_error *err)
{
	return find(view, CORDON_DELTA_CHANGES_MAX, ret_delta, NULL, err);
}

int cordon_delta_find_most(const struct cordon_view *view, size_t most, struct cordon_delta *ret_delta, bool *ret_more,
			   struct cordon_error *err)
{
	return find(view, most, ret_delta, ret_more, err);
}

void cordon_delta_done(struct cordon_delta *delta)
{
	cordon_closep(&delta->upper_fd);
	cordon_closep(&delta->root_fd);
	cordon_lower_done(&delta->base);
	cordon_arena_free(delta->arena);
	free(delta->changes);
	free(delta->left);
	*delta = (struct cordon_delta)CORDON_DELTA_NONE;
}

bool cordon_delta_named(const char *path, const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (cordon_path_within(path, paths[i]))
			return true;
	return n == 0;
}
