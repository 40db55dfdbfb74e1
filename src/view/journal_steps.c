/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the steps of a journal, and takes them back. */
#include <fcntl.h>
#include <stdio.h>

#include "base/path.h"
#include "view/internal.h"
#include "view/journal_steps.h"
#include "view/stage.h"

#define EMPTY "empty" /* an entry of the stage */

int cordon_apply_steps_open_parent(const struct cordon_apply_journal *journal, const char *path, const char **ret_name)
{
	char dir[CORDON_PATH_MAX];
	const char *base = cordon_path_base(path);
	size_t n = (size_t)(base - path);

	*ret_name = base;
	if (cordon_copy(dir, sizeof(dir), path, n ? n - 1 : 0) < 0)
		return -ENAMETOOLONG;
	return cordon_open_beneath(journal->root_fd, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int look_at(int dir_fd, const char *name, struct cordon_ident *ret_ident)
{
	struct stat st;

	*ret_ident = (struct cordon_ident){ 0 };
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	cordon_ident_of(&st, ret_ident);
	return 0;
}

/* A directory on the way that is missing, or is a link or a file now, was changed by the host. */
static int stale_if_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EXDEV ? -ESTALE : r;
}

/* The same for a move: the name was given to something else, or it was taken away with its directory. */
static int stale_if_taken(int r)
{
	return r == -EEXIST || r == -ENOENT || r == -ENOTDIR ? -ESTALE : r;
}

int cordon_apply_steps_look(const struct cordon_apply_journal *journal, const char *path, struct cordon_ident *ret_ident)
{
	const char *name;
	autofd int parent = cordon_apply_steps_open_parent(journal, path, &name);

	*ret_ident = (struct cordon_ident){ 0 };
	if (parent < 0)
		return stale_if_gone(parent) == -ESTALE ? 0 : parent;
	return look_at(parent, name, ret_ident);
}

static bool is_file(const struct cordon_ident *a, const struct cordon_ident *b)
{
	return a->mode && a->dev == b->dev && a->ino == b->ino;
}

/*
 * Describes an entry of the stage that may be `what`. A regular file without content and rights is none: it only holds
 * the place of a file that is to come.
 */
static int look_slot(const struct cordon_apply_journal *journal, const char *entry, const struct cordon_ident *what,
		     struct cordon_ident *ret_ident)
{
	int r = look_at(journal->stage_fd, entry, ret_ident);

	if (r == 0 && S_ISREG(ret_ident->mode) && !(ret_ident->mode & 07777) && !ret_ident->size &&
	    !is_file(ret_ident, what))
		*ret_ident = (struct cordon_ident){ 0 };
	return r;
}

/* The directory of a step in the root. Both halves of the step use one descriptor of it. */
struct place {
	int parent; /* -1: not open yet */
	const char *name;
};

static void place_done(struct place *place)
{
	cordon_closep(&place->parent);
}

static int open_place(const struct cordon_apply_journal *journal, const struct cordon_apply_step *step,
		      struct place *place)
{
	if (place->parent < 0)
		place->parent = cordon_apply_steps_open_parent(journal, step->path, &place->name);
	return place->parent < 0 ? stale_if_gone(place->parent) : 0;
}

/* Gives the stage's entry, which is `what`, a name in the root. Does nothing when the stage does not have it. What the
 * host had may have been written to since by a process that has it open, and is restored as it is. */
static int give(struct cordon_apply_journal *journal, const struct cordon_apply_step *step, cordon_slot slot,
		const struct cordon_ident *what, struct place *place)
{
	char buf[CORDON_SLOT_SIZE];
	const char *entry = cordon_apply_journal_slot(step->n, slot, buf);
	struct cordon_ident staged;
	int r = look_slot(journal, entry, what, &staged);

	if (r < 0 || !staged.mode)
		return r;
	if (S_ISDIR(what->mode)	      ? !S_ISDIR(staged.mode)
	    : slot == CORDON_SLOT_NEW ? !cordon_ident_same(&staged, what)
				      : !is_file(&staged, what))
		return -ESTALE;
	r = open_place(journal, step, place);
	if (r < 0)
		return r;
	if (renameat2(journal->stage_fd, entry, place->parent, place->name, RENAME_NOREPLACE) < 0)
		return stale_if_taken(-errno);
	return 0;
}

/* Gives back what the stage got and did not expect. If the host has given the name to something else, the stage keeps
 * it. */
static int give_back(struct cordon_apply_journal *journal, const struct cordon_apply_step *step, const char *entry)
{
	const char *name;
	autofd int parent = cordon_apply_steps_open_parent(journal, step->path, &name);

	if (parent < 0)
		return stale_if_gone(parent);
	return renameat2(journal->stage_fd, entry, parent, name, RENAME_NOREPLACE) < 0 ? stale_if_taken(-errno)
										       : -ESTALE;
}

int cordon_apply_steps_copy_dir(const struct cordon_apply_journal *journal, const struct cordon_apply_step *step)
{
	char buf[CORDON_SLOT_SIZE];
	const char *copy = cordon_apply_journal_slot(step->n, CORDON_SLOT_COPY, buf), *name;
	autofd int parent = cordon_apply_steps_open_parent(journal, step->path, &name);
	int r = parent < 0 ? stale_if_gone(parent) : cordon_stage_again(parent, name, journal->stage_fd, copy);

	return r == -EEXIST ? 0 : stale_if_taken(r);
}

/* Removes an empty directory; that its copy becomes the stage's entry says so. One that the host has removed counts as
 * removed by us, and somebody else's empty directory with the same rights is as good. */
static int take_dir(struct cordon_apply_journal *journal, const struct cordon_apply_step *step, cordon_slot slot,
		    const struct cordon_ident *what)
{
	char buf[CORDON_SLOT_SIZE], copy_buf[CORDON_SLOT_SIZE];
	const char *entry = cordon_apply_journal_slot(step->n, slot, buf), *name;
	const char *copy = cordon_apply_journal_slot(step->n, CORDON_SLOT_COPY, copy_buf);
	struct cordon_ident found;
	autofd int parent = -1;
	int r = look_at(journal->stage_fd, entry, &found);

	if (r < 0 || found.mode)
		return r;
	parent = cordon_apply_steps_open_parent(journal, step->path, &name);
	if (parent < 0)
		return stale_if_gone(parent);
	r = look_at(parent, name, &found);
	if (r < 0)
		return r;
	if (found.mode) {
		/* Steps that open it, or fill it again, change the rights of its owner for a while. */
		if (slot == CORDON_SLOT_OLD ? ((found.mode ^ what->mode) & ~(mode_t)0700) != 0 : !S_ISDIR(found.mode))
			return -ESTALE;
		r = cordon_apply_steps_copy_dir(journal, step);
		if (r < 0)
			return r;
		if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			return errno == ENOTEMPTY ? -ESTALE : stale_if_taken(-errno);
	}
	return renameat(journal->stage_fd, copy, journal->stage_fd, entry) < 0 && errno != ENOENT ? -errno : 0;
}

/* Makes an entry that only holds the place of a file. They are links of one file, because a new one each time costs
 * more. */
static int hold_place(int stage_fd, const char *entry)
{
	if (linkat(stage_fd, EMPTY, stage_fd, entry, 0) == 0 || errno == EEXIST ||
	    (errno == ENOENT && mknodat(stage_fd, EMPTY, S_IFREG, 0) == 0 &&
	     linkat(stage_fd, EMPTY, stage_fd, entry, 0) == 0))
		return 0;
	return mknodat(stage_fd, entry, S_IFREG, 0) < 0 && errno != EEXIST ? -errno : 0;
}

/*
 * Takes the root's entry into the stage. It must be `what`, before the move and after it: whoever was faster gets the
 * name back, and so he does if we were killed in between.
 *
 * INVARIANT: the stage has a file at the entry, because then the kernel refuses to move a directory to there.
 */
static int take(struct cordon_apply_journal *journal, const struct cordon_apply_step *step, cordon_slot slot,
		const struct cordon_ident *what, struct place *place)
{
	char buf[CORDON_SLOT_SIZE];
	const char *entry = cordon_apply_journal_slot(step->n, slot, buf);
	struct cordon_ident found;
	int r;

	if (S_ISDIR(what->mode))
		return take_dir(journal, step, slot, what);
	r = look_slot(journal, entry, what, &found);
	if (r < 0 || cordon_ident_same(&found, what))
		return r;
	if (found.mode)
		return give_back(journal, step, entry);
	r = open_place(journal, step, place);
	if (r == 0)
		r = look_at(place->parent, place->name, &found);
	if (r < 0)
		return r;
	if (!cordon_ident_same(&found, what))
		return -ESTALE;
	r = hold_place(journal->stage_fd, entry);
	if (r < 0)
		return r;
	if (renameat(place->parent, place->name, journal->stage_fd, entry) < 0)
		return stale_if_taken(-errno);
	r = look_at(journal->stage_fd, entry, &found);
	return r == 0 && cordon_ident_same(&found, what) ? 0 : give_back(journal, step, entry);
}

static bool is_set(const struct timespec *time)
{
	return time->tv_sec || time->tv_nsec;
}

/* Changes mode and time from those of `from` to those of `to`. Whatever the host has changed meanwhile stays: the mode,
 * or the time of a file. */
static void set_meta(struct cordon_apply_journal *journal, const struct cordon_apply_step *step,
		     const struct cordon_ident *from, const struct cordon_ident *to)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, to->mtime };
	autofd int fd = cordon_open_beneath(journal->root_fd, step->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct cordon_ident found;
	char path[CORDON_FD_PATH_SIZE];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || ((st.st_mode ^ to->mode) & S_IFMT) || S_ISLNK(st.st_mode))
		return;
	cordon_ident_of(&st, &found);
	if (!S_ISDIR(found.mode) && !is_file(&found, &step->old))
		return;
	cordon_fd_path(fd, path);
	if ((found.mode & 0777) == (from->mode & 0777) && (found.mode & 0777) != (to->mode & 0777))
		chmod(path, (found.mode & 07000) | (to->mode & 0777));
	if (is_set(&to->mtime) &&
	    (!is_set(&from->mtime) || (found.size == from->size && found.mtime.tv_sec == from->mtime.tv_sec &&
				       found.mtime.tv_nsec == from->mtime.tv_nsec)))
		utimensat(AT_FDCWD, path, times, 0);
}

/* Takes the entry that goes, and gives the name to the one that comes. */
static int run_step(struct cordon_apply_journal *journal, const struct cordon_apply_step *step, bool forward)
{
	bool had = step->kind == CORDON_APPLY_STEP_SWAP || step->kind == CORDON_APPLY_STEP_TAKE;
	bool has = step->kind == CORDON_APPLY_STEP_SWAP || step->kind == CORDON_APPLY_STEP_PUT;
	CORDON_CLEANUP(place_done) struct place place = { .parent = -1 };
	int r = 0;

	if (forward) {
		if (had)
			r = take(journal, step, CORDON_SLOT_OLD, &step->old, &place);
		return r == 0 && has ? give(journal, step, CORDON_SLOT_NEW, &step->new, &place) : r;
	}
	if (has)
		r = take(journal, step, CORDON_SLOT_NEW, &step->new, &place);
	return r == 0 && had ? give(journal, step, CORDON_SLOT_OLD, &step->old, &place) : r;
}

/* Directories that are closed to us are open while steps are carried out in them. */
static void run_open(struct cordon_apply_journal *journal, bool open)
{
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];

		if (step->kind == CORDON_APPLY_STEP_OPEN)
			set_meta(journal, step, open ? &step->old : &step->new, open ? &step->new : &step->old);
	}
}

static void run_meta(struct cordon_apply_journal *journal, bool forward)
{
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];

		if (step->kind == CORDON_APPLY_STEP_META)
			set_meta(journal, step, forward ? &step->old : &step->new, forward ? &step->new : &step->old);
	}
}

/* A directory that came back was open to be filled, and got a new time by that. What lies in it comes before it. */
static void close_restored(struct cordon_apply_journal *journal)
{
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];
		const struct cordon_ident open = { .mode = step->old.mode | 0700 };
		struct cordon_ident found;

		/* One that was never removed is the host's own. */
		if (step->kind == CORDON_APPLY_STEP_TAKE && S_ISDIR(step->old.mode) &&
		    cordon_apply_steps_look(journal, step->path, &found) == 0 && !is_file(&found, &step->old))
			set_meta(journal, step, &open, &step->old);
	}
}

static int fail_step(const char *path, int code, bool forward, struct cordon_error *err)
{
	if (code == -ESTALE)
		return cordon_fail(err, code, CORDON_KIND_CONFLICT, "the host changed %s meanwhile", path);
	return cordon_fail_errno(err, code, "cannot %s %s", forward ? "change" : "restore", path);
}

int cordon_apply_steps_run(struct cordon_apply_journal *journal, bool forward, bool forced, struct cordon_error *err)
{
	int first = 0;

	/* Directories that we made, and that are closed to their owner, must be open again to be emptied. */
	if (!forward)
		run_meta(journal, false);
	run_open(journal, true);
	for (size_t i = 0; i < journal->n && (first == 0 || forced); i++) {
		const struct cordon_apply_step *step = &journal->steps[forward ? i : journal->n - 1 - i];
		int r = run_step(journal, step, forward);

		if (r < 0 && first == 0)
			first = fail_step(step->path, r, forward, err);
	}
	run_open(journal, false);
	if (forward && (first == 0 || forced))
		run_meta(journal, true);
	if (!forward)
		close_restored(journal);
	return first;
}
