/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Git's own locks of index and HEAD, as a killed process of ours is known by them. A lock begins as a file with another name;
 * which file that is gets written down before it becomes the lock. So the next process finds out whether a lock is ours, and
 * also whether the file has become the index already.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/home.h"
#include "base/io.h"
#include "git/taking.h"

#define LOCKS "locks" /* in git-start: lines of a name, a device, an inode, and the first name of the file */
#define TAKEN "taken" /* in git-start: everything was taken over once */
#define LOCKS_MAX 4096
#define FIRST_NAME "cordon-lock-"

static int note(const struct cordon_git_taking *t, const char *name, const struct stat *st, const char *first,
		struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(LOCKS_MAX);
	int r = cordon_read_file(t->start_fd, LOCKS, O_NOFOLLOW, &text, err);

	if (r < 0 && r != -ENOENT)
		return r;
	if (cordon_buf_addf(&text, "%s %ju %ju %s\n", name, (uintmax_t)st->st_dev, (uintmax_t)st->st_ino, first) < 0)
		return cordon_fail_errno(err, -ENOMEM, "lock");
	return cordon_write_file(t->start_fd, LOCKS, 0600, text.data, text.len, err);
}

static bool lock_name(const char *name, char ret[static 32])
{
	return cordon_concat(ret, 32, name, ".lock", NULL) == 0;
}

int cordon_git_lock(const struct cordon_git_taking *t, const char *name, int *ret_fd, struct cordon_error *err)
{
	char first[sizeof(FIRST_NAME) + CORDON_UUID_SIZE], id[CORDON_UUID_SIZE], last[32];
	autofd int fd = -1;
	struct stat st;
	int r;

	if (!lock_name(name, last) || cordon_uuid_new(id) < 0 ||
	    cordon_concat(first, sizeof(first), FIRST_NAME, id, NULL) < 0)
		return cordon_fail_errno(err, -EINVAL, "cannot lock %s", name);
	fd = openat(t->repo.own_fd, first, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot lock %s", name);
	r = note(t, name, &st, first, err);
	if (r == 0 && renameat2(t->repo.own_fd, first, t->repo.own_fd, last, RENAME_NOREPLACE) < 0)
		r = cordon_fail_errno(err, -errno, "cannot make %s", last);
	if (r == -EEXIST) {
		r = cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "another git works in the repository: %s exists",
				last);
		cordon_error_hint(err, "wait for it; when no git runs, remove the file in the git directory");
	}
	if (r < 0) {
		unlinkat(t->repo.own_fd, first, 0);
		return r;
	}
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

int cordon_git_lock_commit(const struct cordon_git_taking *t, const char *name, struct cordon_error *err)
{
	char last[32];

	if (!lock_name(name, last) || renameat(t->repo.own_fd, last, t->repo.own_fd, name) < 0)
		return cordon_fail_errno(err, -errno, "cannot write %s", name);
	return 0;
}

static bool is_file(int dir, const char *name, uintmax_t dev, uintmax_t ino)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == dev && st.st_ino == ino;
}

/* Removes the locks that the list names. True when the index is one of the files. */
static bool clear(const struct cordon_git_taking *t, bool *ret_any)
{
	autobuf struct cordon_buf text = CORDON_BUF(LOCKS_MAX);
	bool ended = false;

	*ret_any = cordon_read_file(t->start_fd, LOCKS, O_NOFOLLOW, &text, NULL) != -ENOENT;
	for (char *line = text.data; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		char name[16], first[sizeof(FIRST_NAME) + CORDON_UUID_SIZE], last[32];
		uintmax_t dev, ino;

		if (sscanf(line, "%15s %ju %ju %48s", name, &dev, &ino, first) != 4 || !lock_name(name, last))
			continue;
		if (is_file(t->repo.own_fd, last, dev, ino))
			unlinkat(t->repo.own_fd, last, 0);
		if (is_file(t->repo.own_fd, first, dev, ino))
			unlinkat(t->repo.own_fd, first, 0);
		ended |= cordon_streq(name, "index") && is_file(t->repo.own_fd, name, dev, ino);
	}
	return ended;
}

/* The files are gone. The list itself says that there is something left to be done. */
static void forget(const struct cordon_git_taking *t, bool done)
{
	if (done)
		unlinkat(t->start_fd, LOCKS, 0);
	else
		cordon_write_file(t->start_fd, LOCKS, 0600, "", 0, NULL);
}

void cordon_git_note_taken(const struct cordon_git_taking *t)
{
	cordon_write_file(t->start_fd, TAKEN, 0600, "", 0, NULL);
}

bool cordon_git_was_taken(const struct cordon_git_taking *t)
{
	struct stat st;

	return fstatat(t->start_fd, TAKEN, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void cordon_git_locks_clear(const struct cordon_git_taking *t, bool done)
{
	bool any;

	clear(t, &any);
	forget(t, done);
}

void cordon_git_locks_recover(const struct cordon_git_taking *t, bool *ret_interrupted, bool *ret_ended)
{
	*ret_ended = clear(t, ret_interrupted);
	if (*ret_ended)
		cordon_git_note_taken(t);
	if (*ret_interrupted)
		forget(t, *ret_ended);
}

bool cordon_git_locks_left(const struct cordon_git_taking *t)
{
	struct stat st;

	return fstatat(t->start_fd, LOCKS, &st, AT_SYMLINK_NOFOLLOW) == 0;
}
