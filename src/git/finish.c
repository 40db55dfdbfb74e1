/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes over what was judged: stores the pack in the host's repository, moves the refs in one transaction that expects the
 * old values, and brings HEAD and the index along. The locks of both are held meanwhile, as git itself does, so that no other
 * git works on the same worktree; when the refs move, the new HEAD and index are complete and only have to be renamed. Who is
 * killed in between has left his locks : then judging finds all that is not done yet, and it is done again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/home.h"
#include "base/io.h"
#include "base/path.h"
#include "git/taking.h"

/* ---- locks ---- */

/*
 * Git's own locks of index and HEAD, as a killed process of ours is known by them. A lock begins as a file with another name;
 * which file that is gets written down before it becomes the lock. So the next process finds out whether a lock is ours, and
 * also whether the file has become the index already.
 */

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
	return cordon_concat(ret, 32, name, ".lock", (char *)NULL) == 0;
}

/* Takes the lock of `name`; *ret_fd can be written. A file in git-start says that it is ours, before it is taken. */
static int git_lock(const struct cordon_git_taking *t, const char *name, int *ret_fd, struct cordon_error *err)
{
	char first[sizeof(FIRST_NAME) + CORDON_UUID_SIZE], id[CORDON_UUID_SIZE], last[32];
	autofd int fd = -1;
	struct stat st;
	int r;

	if (!lock_name(name, last) || cordon_uuid_new(id) < 0 ||
	    cordon_concat(first, sizeof(first), FIRST_NAME, id, (char *)NULL) < 0)
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

/* The file that was written under the lock takes the place of `name`. */
static int git_lock_commit(const struct cordon_git_taking *t, const char *name, struct cordon_error *err)
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

		/* NOLINTNEXTLINE(cert-err34-c): a number that does not fit is no file's. */
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

/* That everything was taken over. A view can be applied again, and then its commits are no news. */
static void git_note_taken(const struct cordon_git_taking *t)
{
	cordon_write_file(t->start_fd, TAKEN, 0600, "", 0, NULL);
}

bool cordon_git_was_taken(const struct cordon_git_taking *t)
{
	struct stat st;

	return fstatat(t->start_fd, TAKEN, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Removes locks of ours that are still there. With `done` it is forgotten that there were any. */
static void git_locks_clear(const struct cordon_git_taking *t, bool done)
{
	bool any;

	clear(t, &any);
	forget(t, done);
}

void cordon_git_locks_recover(const struct cordon_git_taking *t, bool *ret_interrupted, bool *ret_ended)
{
	*ret_ended = clear(t, ret_interrupted);
	if (*ret_ended)
		git_note_taken(t);
	if (*ret_interrupted)
		forget(t, *ret_ended);
}

bool cordon_git_locks_left(const struct cordon_git_taking *t)
{
	struct stat st;

	return fstatat(t->start_fd, LOCKS, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- finishing ---- */

#define INDEX_MAX ((uint64_t)4 << 30)
#define MESSAGE "cordon: taken over from a run"

static struct cordon_git_call make_call(const struct cordon_git_taking *t, const char *const *argv)
{
	return (struct cordon_git_call){ .repo = &t->repo,
					 .git_dir = t->shim,
					 .argv = argv,
					 .max_output = CORDON_GIT_DIFF_BYTES,
					 .held = t->start_fd };
}

/* ---- the pack ---- */

/* Stores one file of the pack under its own name, which its content decides: a file that is there already is the same. */
static int store_file(int from, const char *name, int to, struct cordon_error *err)
{
	autofd int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), out = -1;
	char temporary[CORDON_UUID_SIZE + 16] = "tmp_cordon_", id[CORDON_UUID_SIZE];
	uint64_t max = CORDON_GIT_PACK_BYTES;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return cordon_fail(err, -EINVAL, CORDON_KIND_IO, "the new pack can't be read");
	if ((r = cordon_uuid_new(id)) < 0 ||
	    (r = cordon_concat(temporary, sizeof(temporary), "tmp_cordon_", id, (char *)NULL)) < 0)
		return cordon_fail_errno(err, r, "cannot store the pack");
	out = openat(to, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	r = out < 0 ? -errno : cordon_copy_bytes(in, out, &max);
	if (r == 0 && (fsync(out) < 0 || renameat2(to, temporary, to, name, RENAME_NOREPLACE) < 0))
		r = -errno;
	if (r < 0)
		unlinkat(to, temporary, 0);
	return r < 0 && r != -EEXIST ? cordon_fail_errno(err, r, "cannot store the pack") : 0;
}

static bool is_pack_file(const char *name, const char *suffix)
{
	size_t n = strlen(name), end = strlen(suffix);

	return n > 5 + end && strncmp(name, "pack-", 5) == 0 && cordon_streq(name + n - end, suffix) &&
	       cordon_git_id_valid(name + 5, n - 5 - end);
}

/* The index of a pack comes last, because with it git finds the pack. */
static int store_pack(const struct cordon_git_taking *t, struct cordon_error *err)
{
	static const char *const order[] = { ".pack", ".rev", ".idx" };
	autofd int from = cordon_open_beneath(t->scratch_fd, "repo/objects/pack", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autofd int to = cordon_open_beneath(t->repo.common_fd, "objects/pack", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = from < 0 || to < 0
			? cordon_fail_errno(err, from < 0 ? from : to, "cannot open the packs of %s", t->repo.common)
			: 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(order); i++) {
		int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *dir = fd < 0 ? NULL : fdopendir(fd);

		for (struct dirent *entry; r == 0 && dir && (entry = readdir(dir));)
			if (is_pack_file(entry->d_name, order[i]))
				r = store_file(from, entry->d_name, to, err);
		if (dir)
			closedir(dir);
		else if (r == 0)
			r = cordon_fail_errno(err, -errno, "cannot list the new packs");
	}
	return r == 0 && fsync(to) < 0 ? cordon_fail_errno(err, -errno, "cannot store the pack") : r;
}

/* ---- the index ---- */

static int copy_index(const struct cordon_git_taking *t, struct cordon_error *err)
{
	autofd int in = openat(t->repo.own_fd, "index", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	autofd int out = openat(t->take_fd, "index", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	uint64_t max = INDEX_MAX;
	int r = in < 0 ? 0 : out < 0 ? -errno : cordon_copy_bytes(in, out, &max);

	if (in < 0)
		unlinkat(t->take_fd, "index", 0);
	return r < 0 ? cordon_fail_errno(err, r, "cannot copy the index") : 0;
}

static int feed(struct cordon_git_call *call, const struct cordon_buf *lines, struct cordon_error *err)
{
	static const char *const argv[] = { "update-index", "-z", "--index-info", NULL };

	if (!lines->len)
		return 0;
	call->argv = argv;
	call->input = lines->data;
	call->n_input = lines->len;
	return cordon_git_call(call, NULL, err);
}

/* Whether the host staged something since it was judged. The same files may have got other times. */
static int check_index(const struct cordon_git_taking *t, struct cordon_git_call call, struct cordon_error *err)
{
	const char *const argv[] = {
		"diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "--ita-invisible-in-index",
		t->tree_old,  NULL
	};
	autobuf struct cordon_buf now = { 0 }, judged = { 0 };
	struct stat st;
	int r = 0;

	if (cordon_git_same_file(t->take_fd, "index", t->scratch_fd, "index.host"))
		return 0;
	call.argv = argv;
	if (fstatat(t->take_fd, "index", &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = cordon_git_call(&call, &now, err);
	if (r == 0)
		r = cordon_git_scratch_read(t, "staged.host", CORDON_GIT_DIFF_BYTES, &judged, err);
	if (r < 0 || (now.len == judged.len && (!now.len || memcmp(now.data, judged.data, now.len) == 0)))
		return r;
	return cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT, "the host staged changes meanwhile");
}

/* Makes the index that fits the new HEAD, beside the real one. It goes there as `git checkout` does it: entries that stay keep
 * what git knows about their files. */
static int make_index(const struct cordon_git_taking *t, struct cordon_error *err)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	const char *const move[] = { "read-tree", "-i", "-m", t->tree_old, t->tree_new, NULL };
	static const char *const refresh[] = { "update-index", "-q", "--refresh", NULL };
	struct cordon_git_call call = make_call(t, move);
	int r = copy_index(t, err);

	if (r == 0 && cordon_path_join(t->take, "index", path, sizeof(path)) < 0)
		r = cordon_fail_errno(err, -ENAMETOOLONG, "%s", t->take);
	if (r < 0)
		return r;
	call.index = path;
	if ((r = check_index(t, call, err)) < 0 || (r = feed(&call, &t->unstaged, err)) < 0)
		return r;
	call.argv = move;
	call.input = NULL;
	if ((r = cordon_git_call(&call, NULL, err)) < 0 || (r = feed(&call, &t->staged, err)) < 0)
		return r;
	call.argv = refresh;
	call.input = NULL;
	cordon_git_call(&call, NULL, NULL); /* it fails where files differ from the index, which is no error */
	return 0;
}

/* Fills the lock with the new index. */
static int fill_index(const struct cordon_git_taking *t, int to, struct cordon_error *err)
{
	autofd int in = openat(t->take_fd, "index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t max = INDEX_MAX;
	int r = in < 0 ? -errno : cordon_copy_bytes(in, to, &max);

	if (r == 0 && fsync(to) < 0)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot write the index") : 0;
}

/* ---- refs ---- */

static int move_refs(const struct cordon_git_taking *t, const struct cordon_git_take *take, struct cordon_error *err)
{
	static const char *const argv[] = { "update-ref", "--create-reflog", "-m", MESSAGE, "--stdin", NULL };
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_GIT_REFS_BYTES);
	struct cordon_git_call call = make_call(t, argv);
	int r = cordon_buf_adds(&text, "start\n");

	if (!take->n_refs)
		return 0;
	for (size_t i = 0; r == 0 && i < take->n_refs; i++) {
		const struct cordon_git_ref *ref = &take->refs[i];

		r = cordon_buf_adds(&text, "option no-deref\n");
		if (r == 0)
			r = *ref->old ? cordon_buf_addf(&text, "update %s %s %s\n", ref->name, ref->new, ref->old)
				      : cordon_buf_addf(&text, "create %s %s\n", ref->name, ref->new);
	}
	r = r < 0 ? r : cordon_buf_adds(&text, "prepare\ncommit\n");
	if (r < 0)
		return cordon_fail_errno(err, r, "refs");
	call.input = text.data;
	call.n_input = text.len;
	r = cordon_git_call(&call, NULL, err);
	if (r < 0 && err) {
		cordon_error_prefix(err, r, "the host's refs have moved, and none was changed");
		err->kind = CORDON_KIND_CONFLICT;
	}
	return r;
}

static int push_stashes(const struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n_stashes; i++) {
		const char *const argv[] = { "update-ref",     "--create-reflog", "-m", t->stashes[i].message,
					     CORDON_GIT_STASH, t->stashes[i].id,  NULL };
		struct cordon_git_call call = make_call(t, argv);
		struct cordon_error fault = { 0 };

		if (cordon_git_call(&call, NULL, &fault) == 0)
			r = cordon_git_note(take, err, "stash: new entry: %s", t->stashes[i].message);
		else
			r = cordon_git_note(take, err, "an entry of the stash was not taken over: %s", fault.message);
	}
	return r;
}

/* ---- HEAD ---- */

/* Locks HEAD, if it changes, with what it will be. */
static int lock_head(const struct cordon_git_taking *t, bool *ret_changes, struct cordon_error *err)
{
	autobuf struct cordon_buf head = { 0 };
	autofd int fd = -1;
	int r = cordon_streq(t->head_run.data, t->head_start.data) ? 0 : git_lock(t, "HEAD", &fd, err);

	if (r < 0 || (r = cordon_git_repo_head(&t->repo, &head, err)) < 0)
		return r;
	*ret_changes = !cordon_streq(head.data, t->head_run.data);
	if (!cordon_streq(head.data, t->head_start.data) && (*ret_changes || !t->interrupted))
		return cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
				   "HEAD: the host changed to another branch while the run went on");
	if (!*ret_changes)
		return 0;
	r = cordon_write_all(fd, t->head_run.data, t->head_run.len);
	r = r < 0 ? r : cordon_write_all(fd, "\n", 1);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot write HEAD") : 0;
}

/* The log of HEAD gets its entry by way of our own HEAD. */
static int log_head(const struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
{
	const char *target = t->head_run.data;
	bool branch = strncmp(target, "ref: ", 5) == 0;
	const char *const symbolic[] = { "symbolic-ref", "-m", MESSAGE, "HEAD", target + 5, NULL };
	const char *const detached[] = { "update-ref", "--no-deref", "-m", MESSAGE, "HEAD", target, NULL };
	struct cordon_git_call call = make_call(t, branch ? symbolic : detached);
	struct cordon_error fault = { 0 };

	if (*t->repo.own || cordon_git_call(&call, NULL, &fault) == 0)
		return 0;
	return cordon_git_note(take, err, "the log of HEAD has no entry about it: %s", fault.message);
}

/* Everything that happens under the lock of the index. */
static int finish_locked(const struct cordon_git_taking *t, struct cordon_git_take *take, int index,
			 struct cordon_error *err)
{
	bool head = false;
	int r;

	if ((r = lock_head(t, &head, err)) < 0 || (r = make_index(t, err)) < 0 || (r = fill_index(t, index, err)) < 0 ||
	    (r = move_refs(t, take, err)) < 0)
		return r;
	/* From here on the refs have moved. The index comes last: with it everything is done. */
	take->state = CORDON_GIT_TAKEN;
	if ((r = push_stashes(t, take, err)) < 0 || (head && (r = log_head(t, take, err)) < 0) ||
	    (head && (r = git_lock_commit(t, "HEAD", err)) < 0))
		return r;
	return git_lock_commit(t, "index", err);
}

/* What is known about the run becomes a note at its commits. */
static int attach(const struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_GIT_ATTESTATION_MAX);
	struct cordon_git_call call = make_call(t, NULL);
	struct cordon_error fault = { 0 };
	int r = take->commits ? cordon_read_file(t->record_fd, CORDON_GIT_ATTESTATION, O_NOFOLLOW, &text, &fault)
			      : -ENOENT;

	if (r == 0)
		r = cordon_git_notes_write(&call, take->commits, text.data, text.len, &fault);
	return r == 0 || r == -ENOENT ? 0 : cordon_git_note(take, err, "the attestation is no note: %s", fault.message);
}

int cordon_git_take_finish(struct cordon_git_take *take, struct cordon_error *err)
{
	struct cordon_git_taking *t = take->taking;
	autofd int index = -1;
	int r;

	if (take->state != CORDON_GIT_READY)
		return cordon_fail(err, -EINVAL, CORDON_KIND_INTERNAL, "nothing was found that may be taken over");
	/* The links of the old one may be out of date: logs may have been made since. */
	if ((r = cordon_git_shim_make(&t->repo, t->take_fd, CORDON_GIT_SHIM, err)) < 0)
		return r;
	if (t->has_pack && (r = store_pack(t, err)) < 0)
		return r;
	r = git_lock(t, "index", &index, err);
	if (r == 0)
		r = finish_locked(t, take, index, err);
	if (r == 0)
		git_note_taken(t);
	if (r == 0)
		r = attach(t, take, err);
	/* What failed before anything moved was not begun, unless it had begun earlier. */
	git_locks_clear(t, r == 0 || (take->state != CORDON_GIT_TAKEN && !t->interrupted));
	return r;
}
