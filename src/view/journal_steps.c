/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the steps of a journal, and takes them back. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/path.h"
#include "view/internal.h"
#include "view/journal_steps.h"

/* Opens the directory of a path beneath the root, through no link, and finds the last name. Returns a descriptor or
 * -errno. */
static int open_parent(const struct cordon_journal *journal, const char *path, const char **ret_name)
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

int cordon_steps_look(const struct cordon_journal *journal, const char *path, struct cordon_ident *ret_ident)
{
	const char *name;
	autofd int parent = open_parent(journal, path, &name);

	*ret_ident = (struct cordon_ident){ 0 };
	if (parent < 0)
		return stale_if_gone(parent) == -ESTALE ? 0 : parent;
	return look_at(parent, name, ret_ident);
}

static bool is_file(const struct cordon_ident *a, const struct cordon_ident *b)
{
	return a->mode && a->dev == b->dev && a->ino == b->ino;
}

static bool is_empty(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, CORDON_OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool empty = dir != NULL;

	if (!dir)
		cordon_closep(&fd);
	for (struct dirent *entry; empty && (errno = 0, entry = readdir(dir));)
		empty = cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, "..");
	if (dir)
		closedir(dir);
	return empty;
}

/* Gives the stage's entry, which is `what`, a name in the root. Does nothing when the stage does not have it. */
static int give(struct cordon_journal *journal, const struct cordon_step *step, const struct cordon_ident *what)
{
	char digits[CORDON_DIGITS_SIZE];
	const char *entry = cordon_journal_entry(step->n, digits), *name;
	struct cordon_ident staged;
	autofd int parent = -1;
	int r = look_at(journal->stage_fd, entry, &staged);

	if (r < 0 || !staged.mode)
		return r;
	if (!is_file(&staged, what))
		return -EBADMSG;
	parent = open_parent(journal, step->path, &name);
	if (parent < 0)
		return stale_if_gone(parent);
	if (renameat2(journal->stage_fd, entry, parent, name, RENAME_NOREPLACE) < 0)
		return errno == EEXIST ? -ESTALE : -errno;
	return 0;
}

/* Takes the root's entry into the stage. It must be `what`, and a directory must be empty, before the move and after it:
 * whoever was faster gets the name back. */
static int take(struct cordon_journal *journal, const struct cordon_step *step, const struct cordon_ident *what)
{
	char digits[CORDON_DIGITS_SIZE];
	const char *entry = cordon_journal_entry(step->n, digits), *name;
	struct cordon_ident found;
	autofd int parent = -1;
	int r = look_at(journal->stage_fd, entry, &found);

	if (r < 0 || found.mode)
		return r;
	parent = open_parent(journal, step->path, &name);
	if (parent < 0)
		return stale_if_gone(parent);
	r = look_at(parent, name, &found);
	if (r < 0)
		return r;
	if (!cordon_ident_same(&found, what) || (S_ISDIR(found.mode) && !is_empty(parent, name)))
		return -ESTALE;
	if (renameat2(parent, name, journal->stage_fd, entry, RENAME_NOREPLACE) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	r = look_at(journal->stage_fd, entry, &found);
	if (r == 0 && cordon_ident_same(&found, what) && (!S_ISDIR(found.mode) || is_empty(journal->stage_fd, entry)))
		return 0;
	return renameat2(journal->stage_fd, entry, parent, name, RENAME_NOREPLACE) < 0 ? -errno : -ESTALE;
}

/* Exchanges the stage's entry, which is `incoming`, with the root's, which must be `outgoing` before and after it. */
static int swap(struct cordon_journal *journal, const struct cordon_step *step, const struct cordon_ident *outgoing,
		const struct cordon_ident *incoming)
{
	char digits[CORDON_DIGITS_SIZE];
	const char *entry = cordon_journal_entry(step->n, digits), *name;
	struct cordon_ident found;
	autofd int parent = -1;
	int r = look_at(journal->stage_fd, entry, &found);

	if (r < 0 || is_file(&found, outgoing))
		return r;
	if (!is_file(&found, incoming))
		return -EBADMSG;
	parent = open_parent(journal, step->path, &name);
	if (parent < 0)
		return stale_if_gone(parent);
	r = look_at(parent, name, &found);
	if (r < 0)
		return r;
	if (!cordon_ident_same(&found, outgoing))
		return -ESTALE;
	if (renameat2(journal->stage_fd, entry, parent, name, RENAME_EXCHANGE) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	r = look_at(journal->stage_fd, entry, &found);
	if (r == 0 && cordon_ident_same(&found, outgoing))
		return 0;
	return renameat2(journal->stage_fd, entry, parent, name, RENAME_EXCHANGE) < 0 ? -errno : -ESTALE;
}

/* Sets mode and time of what is still the file or directory that the step is about. */
static void set_meta(struct cordon_journal *journal, const struct cordon_step *step, bool forward)
{
	const struct cordon_ident *wanted = forward ? &step->new : &step->old;
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, wanted->mtime };
	autofd int fd = cordon_open_beneath(journal->root_fd, step->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char path[CORDON_FD_PATH_SIZE];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != step->old.ino || st.st_dev != step->old.dev ||
	    S_ISLNK(st.st_mode))
		return;
	cordon_fd_path(fd, path);
	if ((st.st_mode & 0777) != (wanted->mode & 0777))
		chmod(path, (st.st_mode & 07000) | (wanted->mode & 0777));
	if (wanted->mtime.tv_sec || wanted->mtime.tv_nsec)
		utimensat(AT_FDCWD, path, times, 0);
}

static int run_step(struct cordon_journal *journal, const struct cordon_step *step, bool forward)
{
	switch (step->kind) {
	case CORDON_STEP_SWAP:
		return forward ? swap(journal, step, &step->old, &step->new)
			       : swap(journal, step, &step->new, &step->old);
	case CORDON_STEP_PUT:
		return forward ? give(journal, step, &step->new) : take(journal, step, &step->new);
	case CORDON_STEP_TAKE:
		return forward ? take(journal, step, &step->old) : give(journal, step, &step->old);
	case CORDON_STEP_META:
		break;
	}
	return 0;
}

static void run_meta(struct cordon_journal *journal, bool forward)
{
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_step *step = &journal->steps[i];

		/* A directory that came back got a new time when its entries did. */
		if (step->kind == CORDON_STEP_META ||
		    (!forward && step->kind == CORDON_STEP_TAKE && S_ISDIR(step->old.mode)))
			set_meta(journal, step, forward);
	}
}

static int fail_step(const char *path, int code, bool forward, struct cordon_error *err)
{
	if (code == -ESTALE)
		return cordon_fail(err, code, CORDON_KIND_CONFLICT, "the host changed %s meanwhile", path);
	return cordon_fail_errno(err, code, "cannot %s %s", forward ? "change" : "restore", path);
}

int cordon_steps_run(struct cordon_journal *journal, bool forward, bool forced, struct cordon_error *err)
{
	int first = 0;

	/* Directories that we made, and that are closed to their owner, must be open again to be emptied. */
	if (!forward)
		run_meta(journal, false);
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_step *step = &journal->steps[forward ? i : journal->n - 1 - i];
		int r = run_step(journal, step, forward);

		if (r == 0)
			continue;
		if (first == 0)
			first = fail_step(step->path, r, forward, err);
		if (!forced)
			return first;
	}
	run_meta(journal, forward);
	return first;
}
