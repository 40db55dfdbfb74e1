/* SPDX-License-Identifier: Apache-2.0 */
/* What the host did to the files of a view's root since the view began. */
#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "view/delta_internal.h"
#include "view/internal.h"
#include "view/lower.h"

bool cordon_delta_later(const struct timespec *time, const struct timespec *since)
{
	if (time->tv_sec != since->tv_sec)
		return time->tv_sec > since->tv_sec;
	/* A file system that keeps whole seconds cuts the rest off. */
	return time->tv_nsec >= since->tv_nsec || time->tv_nsec == 0;
}

/* Whether the host has what the layers below the view have. Then it was their changes that were applied, and not the host
 * that changed the file. Of a directory, that is its mode; what is in it has answers of its own. */
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
	return S_ISDIR(old->mode) || (cordon_delta_same_bytes(layer, host, &same) == 0 && same);
}

bool cordon_host_edited(const struct cordon_walk *walk, const struct cordon_level *level, const char *path,
			const struct cordon_ident *old, int dir)
{
	/* What a layer has is as it was. */
	return old->mode && dir == level->lower->root &&
	       (level->moved || (!S_ISDIR(old->mode) && cordon_delta_later(&old->ctime, &walk->delta->since))) &&
	       !cordon_known_has(&walk->known, path, old) && !is_of_layer(walk, path, old);
}

/*
 * Whether the host put a directory into its place. A rename sets this time of the directory, and the other one of its
 * parent. A change to its entries sets both times of a directory, so whoever made files here and beside it looks the same:
 * the note of the end of the run says which directory was there. Without a note, such a directory counts as the one that
 * was there where the view changes single files; where the view deletes all of it, a needless conflict is the smaller harm.
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

int cordon_host_look(const struct cordon_walk *walk, const struct cordon_level *parent, struct cordon_level *level)
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

bool cordon_host_made(const struct cordon_walk *walk, const struct cordon_level *level)
{
	struct statx st = { 0 };

	/* What apply or undo made there is noted, and stands for what was there. */
	return level->lower->root >= 0 && !level->lower->n && !cordon_known_find(&walk->known, level->path) &&
	       statx(level->lower->root, "", AT_EMPTY_PATH, STATX_BTIME, &st) == 0 && st.stx_mask & STATX_BTIME &&
	       cordon_delta_later(&(struct timespec){ st.stx_btime.tv_sec, st.stx_btime.tv_nsec }, &walk->delta->since);
}

/*
 * The mode that the view began with; 0 when it is not known. A change time says nothing about the mode of a directory, and
 * where no note does, the view counts as not having changed it: then the host's stays.
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
 * INVARIANT: a mode that the view did not change is the host's own, as it is now. Set-id and sticky bits never come from
 * a view. Those of a host's directory stay, because its steps only set the other bits; a file whose bits, content or
 * attributes the view changed loses them, as a program that writes it would make it lose them.
 */
void cordon_host_settle_mode(const struct cordon_walk *walk, struct cordon_delta_change *change)
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
