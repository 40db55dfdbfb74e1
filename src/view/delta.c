/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the upper layer of a view with the root. */
#include <fcntl.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/path.h"
#include "git/repo.h"
#include "protect/executes.h"
#include "protect/gitindex.h"
#include "view/delta.h"
#include "view/hide.h"
#include "view/internal.h"
#include "view/known.h"
#include "view/lower.h"

struct cordon_walk {
	struct cordon_delta *delta;
	struct cordon_lower layers; /* without the root; only if all of them are applied */
	struct cordon_known known;
	struct cordon_buf hidden; /* whiteouts of ours (hide.h), where the run was killed or lives */
	size_t most;		  /* changes; one more ends the walk */
	bool ended;
	bool doubts; /* some change has `doubt` */
	struct cordon_error *err;
};

/* Two directories with one path: in the upper layer and below it. Either may be missing. */
struct cordon_level {
	const char *path;
	int upper; /* -1: the view deletes the directory */
	const struct cordon_lower *lower;
	bool opaque;  /* what the host has here is hidden, and so deleted */
	bool moved;   /* the host put this directory here after the view began; nothing in it is as it was */
	bool changed; /* the host made or removed an entry after the view began */
	unsigned int depth;
};

/* ---- what the host did ---- */

static int delta_same_bytes(int a, int b, bool *ret_same);

bool cordon_delta_later(const struct timespec *time, const struct timespec *since)
{
	if (time->tv_sec != since->tv_sec)
		return time->tv_sec > since->tv_sec;
	/* A file system that keeps whole seconds cuts the rest off. */
	return time->tv_nsec >= since->tv_nsec || time->tv_nsec == 0;
}

/* Whether the host has what the layers below the view have. Then it was their changes that were applied, and not the
 * host that changed the file. Of a directory, that is its mode; what is in it has answers of its own. */
static bool is_of_layer(const struct cordon_walk *walk, const char *path, const struct cordon_ident *old)
{
	autofd int layer = -1, host = -1;
	bool plain = S_ISREG(old->mode), same = false;
	struct stat st;

	if (!walk->layers.n || (!plain && !S_ISLNK(old->mode) && !S_ISDIR(old->mode)))
		return false;
	layer = cordon_lower_find(&walk->layers, path, !plain);
	host = cordon_open_beneath(walk->delta->root_fd, path,
				   plain ? O_RDONLY | O_NOFOLLOW | O_NONBLOCK : O_PATH | O_NOFOLLOW);
	if (layer < 0 || host < 0 || fstat(layer, &st) < 0 ||
	    (st.st_mode & (S_IFMT | 0777)) != (old->mode & (S_IFMT | 0777)))
		return false;
	if (S_ISLNK(old->mode)) {
		char target[2][CORDON_PATH_MAX];
		ssize_t n = readlinkat(layer, "", target[0], sizeof(target[0]));

		return n >= 0 && n == readlinkat(host, "", target[1], sizeof(target[1])) &&
		       memcmp(target[0], target[1], (size_t)n) == 0;
	}
	return S_ISDIR(old->mode) || (delta_same_bytes(layer, host, &same) == 0 && same);
}

/* Whether the host changed what is at a path, or put it there. `dir` is the directory in which it lies. */
static bool host_edited(const struct cordon_walk *walk, const struct cordon_level *level, const char *path,
			const struct cordon_ident *old, int dir)
{
	/* What a layer has is as it was. */
	return old->mode && dir == level->lower->root &&
	       (level->moved || (!S_ISDIR(old->mode) && cordon_delta_later(&old->ctime, &walk->delta->since))) &&
	       !cordon_known_has(&walk->known, path, old) && !is_of_layer(walk, path, old);
}

/*
 * Whether the host put a directory into its place. A rename sets this time of the directory, and the other one of its
 * parent. A change to its entries sets both times of a directory, so whoever made files here and beside it looks the
 * same: the note of the end of the run has the directory that was there. Without a note, such a directory counts as the
 * one that was there where the view changes single files; where the view deletes all of it, a needless conflict is the
 * smaller harm.
 */
static bool is_moved(const struct cordon_walk *walk, const struct cordon_level *level, const struct stat *st,
		     const struct stat *parent_st)
{
	const struct cordon_ident *noted = cordon_known_find(&walk->known, level->path);
	const struct timespec *since = &walk->delta->since;
	struct cordon_ident ident;

	if (!cordon_delta_later(&st->st_ctim, since) || !cordon_delta_later(&parent_st->st_mtim, since))
		return false;
	cordon_ident_of(st, &ident);
	if (noted && S_ISDIR(noted->mode))
		return !cordon_ident_same(noted, &ident);
	return level->upper < 0 || level->opaque || !cordon_delta_later(&st->st_mtim, since);
}

/* Finds out what happened to the host's directory of a level that lies in `parent`. Returns -errno if it can't be
 * read. */
static int host_look(const struct cordon_walk *walk, const struct cordon_level *parent, struct cordon_level *level)
{
	struct stat st, parent_st;

	if (level->lower->root < 0)
		return 0;
	if (fstat(level->lower->root, &st) < 0 || fstat(parent->lower->root, &parent_st) < 0)
		return -errno;
	level->changed = level->changed || cordon_delta_later(&st.st_mtim, &walk->delta->since);
	level->moved = level->moved || is_moved(walk, level, &st, &parent_st);
	return 0;
}

/* Whether the host made its directory of a level after the view began. */
static bool host_made(const struct cordon_walk *walk, const struct cordon_level *level)
{
	struct statx st = { 0 };

	/* What apply or undo made there is noted, and stands for what was there. */
	return level->lower->root >= 0 && !level->lower->n && !cordon_known_find(&walk->known, level->path) &&
	       statx(level->lower->root, "", AT_EMPTY_PATH, STATX_BTIME, &st) == 0 && st.stx_mask & STATX_BTIME &&
	       cordon_delta_later(&(struct timespec){ st.stx_btime.tv_sec, st.stx_btime.tv_nsec }, &walk->delta->since);
}

/*
 * The mode that the view began with; 0 when it is not known. A change time does not show that the mode of a directory
 * changed, and where no note does, the view counts as not having changed it: then the host's stays.
 */
static mode_t find_base_mode(const struct cordon_walk *walk, const struct cordon_delta_change *change)
{
	const struct cordon_ident *old = &change->old, *noted;
	bool dir = S_ISDIR(old->mode);

	if (change->of_layer || !(change->edited || (dir && cordon_delta_later(&old->ctime, &walk->delta->since))))
		return old->mode;
	noted = cordon_known_find(&walk->known, change->path);
	if (noted && (noted->mode & S_IFMT) == (old->mode & S_IFMT) && (!dir || cordon_ident_same(noted, old)))
		return noted->mode;
	if (!dir)
		return 0;
	return is_of_layer(walk, change->path, old) ? old->mode : change->new.mode;
}

/*
 * Decides which permission bits a file or directory gets that both sides have; new.mode has those of the view before.
 * INVARIANT: a mode that the view did not change is the host's own, as it is now. Set-id and sticky bits never come
 * from a view. Those of a host's directory stay, because its steps only set the other bits; a file whose bits, content
 * or attributes the view changed loses them, as a program that writes it would make it lose them.
 */
static void host_settle_mode(const struct cordon_walk *walk, struct cordon_delta_change *change)
{
	mode_t host = change->old.mode & 0777, view = change->new.mode & 0777, base;
	bool dir = S_ISDIR(change->new.mode);

	if (S_ISLNK(change->new.mode))
		return;
	change->set_id = (change->new.mode & 07000 & ~(dir ? change->old.mode : 0)) != 0;
	change->new.mode &= (mode_t)~07000;
	if ((change->old.mode & S_IFMT) != (change->new.mode &S_IFMT))
		return;
	change->base_mode = find_base_mode(walk, change);
	base = change->base_mode & 0777;
	if (change->base_mode && view == base) {
		view = host;
	} else if (view != host && (!change->base_mode || host != base)) {
		if (dir)
			view = host;
		else
			change->mode_edited = true;
	}
	change->new.mode = (change->new.mode &S_IFMT) | view | (dir ? change->old.mode & 07000 : 0);
}

/* ---- what is gone ---- */

/*
 * Whether the host had a file, when the view began, that only the view has now. Then the host removed or renamed what
 * the view changed, and a person decides. Where the host made or removed nothing in the directory it had none; else a
 * list of names would be needed, which no start of a view makes. What there is instead:
 *
 *  - The note of the end of the run (known.h).
 *  - The kernel marks a file that it copied from the host, and the copy has the time of the original. If the view
 *    deletes such a file with the same bytes, the run moved it to here.
 *  - Git's index at the start names the files that git knew. A program that writes a new file and renames it over the
 *    old one leaves no mark of the kernel's.
 */

#define ORIGIN CORDON_OVERLAY_ATTRIBUTE("origin")
#define INDEX_MAX ((size_t)512 << 20)

#define ALIKE_MAX 64 /* deleted files with one size and time that are compared */

/* Looks whether a file that only the view has is one that the host removed, or else sets `doubt`. */
static void gone_look(struct cordon_walk *walk, const struct cordon_level *level, const char *name,
		      struct cordon_delta_change *change)
{
	const struct cordon_ident *noted = cordon_known_find(&walk->known, change->path);
	autofd int fd = -1;

	if (cordon_lower_is_empty(level->lower))
		return;
	if (S_ISREG(change->new.mode))
		fd = cordon_upper_open(level->upper, name, O_RDONLY);
	change->copied = fd >= 0 && cordon_upper_has(fd, ORIGIN);
	if (noted || !level->changed) {
		change->gone = change->edited = noted && noted->mode;
		change->fresh = !change->gone;
		return;
	}
	change->doubt = true;
	walk->doubts = true;
}

/* ---- what the view deletes ---- */

struct list {
	struct cordon_delta_change **items;
	size_t n;
};

static void list_done(struct list *list)
{
	free(list->items);
}

static int compare_numbers(long long a, long long b)
{
	return a < b ? -1 : a > b;
}

static int by_size_and_time(const struct cordon_ident *a, const struct cordon_ident *b)
{
	int r = compare_numbers((long long)a->size, (long long)b->size);

	if (r == 0)
		r = compare_numbers(a->mtime.tv_sec, b->mtime.tv_sec);
	return r ? r : compare_numbers(a->mtime.tv_nsec, b->mtime.tv_nsec);
}

static int by_old(const void *a, const void *b)
{
	return by_size_and_time(&(*(struct cordon_delta_change *const *)a)->old,
				&(*(struct cordon_delta_change *const *)b)->old);
}

static bool same_content(const struct cordon_delta *delta, const char *path, const char *deleted)
{
	static const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	autofd int mine = cordon_open_beneath(delta->upper_fd, path, flags);
	autofd int theirs = cordon_open_beneath(delta->root_fd, deleted, flags);
	bool same = false;

	return mine >= 0 && theirs >= 0 && delta_same_bytes(mine, theirs, &same) == 0 && same;
}

/* Whether a copy of the kernel's is that of a file which the view deletes: it has the same time, size and bytes. */
static bool is_moved_file(const struct cordon_delta *delta, const struct cordon_delta_change *change,
			  const struct list *deleted)
{
	size_t low = 0, high = deleted->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_size_and_time(&deleted->items[middle]->old, &change->new) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i < deleted->n && i < low + ALIKE_MAX; i++) {
		if (by_size_and_time(&deleted->items[i]->old, &change->new) != 0)
			return false;
		if (same_content(delta, change->path, deleted->items[i]->path))
			return true;
	}
	return false;
}

/* ---- what git knew ---- */

static int by_path(const void *a, const void *b)
{
	return strcmp((*(struct cordon_delta_change *const *)a)->path, (*(struct cordon_delta_change *const *)b)->path);
}

static int on_entry(void *data, const char *path, uint32_t mode)
{
	const struct cordon_delta_change key = { .path = path }, *wanted = &key;
	const struct list *doubts = data;
	struct cordon_delta_change *const *found = bsearch(&wanted, doubts->items, doubts->n,
							   sizeof(struct cordon_delta_change *), by_path);

	(void)mode;
	if (found)
		(*found)->gone = (*found)->edited = true;
	return 0;
}

/* Opens the index that the run began with; where it had no git directory of its own, the repository's. */
static int open_index(const struct cordon_view *view, int root_fd)
{
	int fd = cordon_git_start_index(view->dir_fd);

	return fd >= 0 ? fd : cordon_open_beneath(root_fd, ".git/index", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static void ask_git(const struct cordon_view *view, int root_fd, struct list *doubts)
{
	autobuf struct cordon_buf bytes = CORDON_BUF(INDEX_MAX);
	char shared[CORDON_GITINDEX_SHARED_SIZE];
	autofd int fd = open_index(view, root_fd);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && cordon_read_fd(fd, "index", &bytes, NULL) == 0)
		(void)cordon_gitindex_parse(bytes.data ? bytes.data : "", bytes.len, on_entry, doubts, shared);
}

static bool is_deleted_file(const struct cordon_delta_change *change)
{
	return change->kind == CORDON_DELTA_DELETED && S_ISREG(change->old.mode) && !change->of_layer && !change->edited;
}

/* Settles the doubts when the whole list of changes is there. */
static int gone_settle(struct cordon_walk *walk, const struct cordon_view *view)
{
	CORDON_CLEANUP(list_done) struct list deleted = { 0 }, doubts = { 0 };
	struct cordon_delta *delta = walk->delta;

	if (!walk->doubts)
		return 0;
	doubts.items = calloc(delta->n, sizeof(struct cordon_delta_change *));
	deleted.items = calloc(delta->n, sizeof(struct cordon_delta_change *));
	if (!doubts.items || !deleted.items)
		return cordon_fail_errno(walk->err, -ENOMEM, "cannot list the changes");
	for (size_t i = 0; i < delta->n; i++)
		if (is_deleted_file(&delta->changes[i]))
			deleted.items[deleted.n++] = &delta->changes[i];
	qsort(deleted.items, deleted.n, sizeof(struct cordon_delta_change *), by_old);
	for (size_t i = 0; i < delta->n; i++) {
		struct cordon_delta_change *change = &delta->changes[i];

		if (change->doubt && change->copied)
			change->gone = change->edited = !is_moved_file(delta, change, &deleted);
		else if (change->doubt)
			doubts.items[doubts.n++] = change;
	}
	qsort(doubts.items, doubts.n, sizeof(struct cordon_delta_change *), by_path);
	if (doubts.n)
		ask_git(view, delta->root_fd, &doubts);
	for (size_t i = 0; i < delta->n; i++)
		if (delta->changes[i].doubt)
			delta->changes[i].fresh = !delta->changes[i].gone;
	return 0;
}

/* ---- walking the layers ---- */

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

/* Whether two files have the same bytes from here on. */
static int delta_same_bytes(int a, int b, bool *ret_same)
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

/* Opens the directory that lies below the view at a level, and notes what happened to the host's since the view
 * began. */
static int open_lower(struct cordon_walk *walk, const struct cordon_level *parent, const char *name,
		      struct cordon_lower *ret_lower, struct cordon_level *level)
{
	int r = cordon_lower_open(parent->lower, name, ret_lower);

	if (r == 0) {
		level->lower = ret_lower;
		r = host_look(walk, parent, level);
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
		.edited = host_edited(walk, level, path, old, dir),
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
	autonames struct cordon_name_list names = { 0 };
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
	/* What we can't read on the host counts as changed; apply reports why it can't be replaced. */
	if (lower < 0)
		return 0;
	r = delta_same_bytes(upper, lower, &same);
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
		/* The kernel marks every new directory. One that the host made meanwhile has nothing that the view
		 * deletes. */
		if (r == 0 && below.opaque && host_made(walk, &below))
			below.opaque = false;
	}
	host_settle_mode(walk, change);
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

	host_settle_mode(walk, change);
	if (S_ISDIR(change->old.mode)) {
		/* The directory itself becomes the file; what is in it is deleted before. */
		r = delete_all(walk, level, name, change->path, &change->old, dir);
		change->old = (struct cordon_ident){ 0 };
		change->kind = CORDON_DELTA_ADDED;
	} else if (!change->old.mode) {
		change->kind = CORDON_DELTA_ADDED;
		gone_look(walk, level, name, change);
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
	change.edited = host_edited(walk, level, path, &change.old, dir);
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
 * Opens what the view is compared with. As long as the views below it wait, that is their layers on top of the root.
 * When all of them are applied, the root itself has their changes.
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
			int settled = gone_settle(&walk, view);

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

/* ---- reading ---- */

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
