/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the host had a file, when the view began, that only the view has now. Then the host removed or renamed what the view
 * changed, and a person decides. Where the host made or removed nothing in the directory it had none; else a list of names would
 * tell, which no start of a view makes. What there is instead:
 *
 *  - The note of the end of the run (known.h).
 *  - The kernel marks a file that it copied from the host, and the copy has the time of the original. If the view deletes such a
 *    file with the same bytes, the run moved it to here.
 *  - Git's index at the start names the files that git knew. A program that writes a new file and renames it over the old one
 *    leaves no mark of the kernel's.
 */
#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "protect/gitindex.h"
#include "view/delta_internal.h"
#include "git/internal.h"
#include "view/internal.h"
#include "view/lower.h"

#define ORIGIN CORDON_OVERLAY_ATTRIBUTE("origin")
#define INDEX_MAX ((size_t)512 << 20)

#define ALIKE_MAX 64 /* deleted files with one size and time that are compared */

void cordon_gone_look(struct cordon_walk *walk, const struct cordon_level *level, const char *name,
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

static int compare(long long a, long long b)
{
	return a < b ? -1 : a > b;
}

static int by_size_and_time(const struct cordon_ident *a, const struct cordon_ident *b)
{
	int r = compare((long long)a->size, (long long)b->size);

	if (r == 0)
		r = compare(a->mtime.tv_sec, b->mtime.tv_sec);
	return r ? r : compare(a->mtime.tv_nsec, b->mtime.tv_nsec);
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

	return mine >= 0 && theirs >= 0 && cordon_delta_same_bytes(mine, theirs, &same) == 0 && same;
}

/* Whether a copy of the kernel's is that of a file which the view deletes: it has the same time, size and bytes. */
static bool is_moved(const struct cordon_delta *delta, const struct cordon_delta_change *change,
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
	struct cordon_delta_change *const *found = bsearch(&wanted, doubts->items, doubts->n, sizeof(wanted), by_path);

	(void)mode;
	if (found)
		(*found)->gone = (*found)->edited = true;
	return 0;
}

/* Opens the index that the run began with; where it had no git directory of its own, the repository's. */
static int open_index(const struct cordon_view *view, int root_fd)
{
	static const char *const places[] = { CORDON_GIT_START "/" CORDON_GIT_LEFT "/index",
					      CORDON_GIT_START "/" CORDON_GIT_LOWER "/index",
					      CORDON_GIT_START "/index" };
	static const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(places); i++) {
		int fd = cordon_open_beneath(view->dir_fd, places[i], flags);

		if (fd >= 0)
			return fd;
	}
	return cordon_open_beneath(root_fd, ".git/index", flags);
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

int cordon_gone_settle(struct cordon_walk *walk, const struct cordon_view *view)
{
	CORDON_CLEANUP(list_done) struct list deleted = { 0 }, doubts = { 0 };
	struct cordon_delta *delta = walk->delta;

	if (!walk->doubts)
		return 0;
	doubts.items = calloc(delta->n, sizeof(*doubts.items));
	deleted.items = calloc(delta->n, sizeof(*deleted.items));
	if (!doubts.items || !deleted.items)
		return cordon_fail_errno(walk->err, -ENOMEM, "cannot list the changes");
	for (size_t i = 0; i < delta->n; i++)
		if (is_deleted_file(&delta->changes[i]))
			deleted.items[deleted.n++] = &delta->changes[i];
	qsort(deleted.items, deleted.n, sizeof(*deleted.items), by_old);
	for (size_t i = 0; i < delta->n; i++) {
		struct cordon_delta_change *change = &delta->changes[i];

		if (change->doubt && change->copied)
			change->gone = change->edited = !is_moved(delta, change, &deleted);
		else if (change->doubt)
			doubts.items[doubts.n++] = change;
	}
	qsort(doubts.items, doubts.n, sizeof(*doubts.items), by_path);
	if (doubts.n)
		ask_git(view, delta->root_fd, &doubts);
	for (size_t i = 0; i < delta->n; i++)
		if (delta->changes[i].doubt)
			delta->changes[i].fresh = !delta->changes[i].gone;
	return 0;
}
