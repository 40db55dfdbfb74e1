/* SPDX-License-Identifier: Apache-2.0 */
/* What a file was when a view began: texts that were kept when the run ended, or git's blobs. */
#include <fcntl.h>
#include <stdio.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/path.h"
#include "git/repo.h"
#include "view/base.h"
#include "view/internal.h"
#include "view/known.h"
#include "view/lines.h"
#include "view/lower.h"

/* ---- from git ---- */

/*
 * Git's blob of a file as what it was when a view began. It is used only if git's index has known the file since before
 * the start, and has not looked at it again since: then the file was clean at the last time that git looked, and
 * whoever changed it did so behind git's back. apply.c finds out whether that was before the start.
 */

#define SHIM "base-git" /* in the directory of the view, while git runs */

struct ask {
	struct cordon_root root;
	struct cordon_git_repo repo;
	char shim[CORDON_PATH_MAX], index[CORDON_PATH_MAX];
	int view_fd;
	bool shimmed;
};

static void ask_done(struct ask *ask)
{
	if (ask->shimmed)
		cordon_dirs_remove(ask->view_fd, SHIM, NULL);
	cordon_git_repo_done(&ask->repo);
	cordon_root_done(&ask->root);
}

static int ask_begin(const struct cordon_view *view, struct ask *ask)
{
	int r = cordon_root_open(view->record.root, &ask->root, NULL);

	if (r < 0)
		return r;
	r = cordon_git_repo_open(&ask->root, &ask->repo, NULL);
	if (r != 0)
		return r > 0 ? -ENOENT : r;
	ask->view_fd = view->dir_fd;
	ask->shimmed = true;
	r = cordon_git_shim_make(&ask->repo, view->dir_fd, SHIM, NULL);
	if (r == 0)
		r = cordon_path_join(view->path, SHIM, ask->shim, sizeof(ask->shim));
	if (r == 0)
		r = cordon_concat(ask->index, sizeof(ask->index), ask->repo.common, *ask->repo.own ? "/" : "",
				  ask->repo.own, "/index", (char *)NULL);
	return r;
}

static int run_git(const struct ask *ask, const char *const *argv, size_t max, struct cordon_buf *ret_output)
{
	struct cordon_git_call call = {
		.repo = &ask->repo,
		.git_dir = ask->shim,
		.argv = argv,
		.index = ask->index,
		.max_output = max,
	};

	return cordon_git_call(&call, ret_output, NULL);
}

/* Reads the id of the blob and both times from the answer of `ls-files --stage --debug`. The file must have been last
 * looked at before the view began. */
static int read_entry(const struct cordon_buf *text, const struct timespec *since,
		      char ret_id[static CORDON_GIT_ID_SIZE])
{
	long long ctime, mtime;
	long ctime_ns, mtime_ns;
	unsigned int mode, stage;
	const char *times = text->len ? strstr(text->data, "\n  ctime: ") : NULL;

	/* NOLINTBEGIN(cert-err34-c): git wrote them, and they have 32 bits in its index. */
	if (!times || sscanf(text->data, "%o %64s %u", &mode, ret_id, &stage) != 3 || stage != 0 ||
	    (mode != 0100644 && mode != 0100755) || !cordon_git_id_valid(ret_id, strlen(ret_id)) ||
	    sscanf(times, " ctime: %lld:%ld mtime: %lld:%ld", &ctime, &ctime_ns, &mtime, &mtime_ns) != 4)
		return -ENOENT;
	/* NOLINTEND(cert-err34-c) */
	return cordon_delta_later(&(struct timespec){ ctime, ctime_ns }, since) ||
			       cordon_delta_later(&(struct timespec){ mtime, mtime_ns }, since)
		       ? -ENOENT
		       : 0;
}

/* The same from git alone. */
static int base_read_git(const struct cordon_view *view, const struct cordon_delta *delta, const char *path,
			 struct cordon_buf *ret_content)
{
	CORDON_CLEANUP(ask_done) struct ask ask = { .root = { .fd = -1 }, .repo = CORDON_GIT_REPO_NONE };
	autobuf struct cordon_buf entry = { 0 }, literal = CORDON_BUF(CORDON_PATH_MAX + 32);
	char id[CORDON_GIT_ID_SIZE];
	size_t max = ret_content->max;
	int r = ask_begin(view, &ask);

	/* The path is a name and no pattern. */
	if (r == 0)
		r = cordon_buf_addf(&literal, ":(top,literal)%s", path);
	if (r == 0)
		r = run_git(&ask, (const char *[]){ "ls-files", "--stage", "--debug", "--", literal.data, NULL }, 65536,
			    &entry);
	if (r == 0)
		r = read_entry(&entry, &delta->since, id);
	if (r == 0)
		r = run_git(&ask, (const char *[]){ "cat-file", "blob", id, NULL }, max, ret_content);
	return r;
}

/* ---- kept copies ---- */

#define BASE "base"
#define LIST "list"
#define KEPT_FILES_MAX 2000
#define KEPT_BYTES_MAX ((uint64_t)64 << 20)
#define KEPT_FILE_MAX ((size_t)1 << 20)
#define LIST_MAX ((size_t)KEPT_FILES_MAX * (CORDON_PATH_MAX + 1))

/* The list has one path for each number, in order, each with a NUL. Returns the number of a path, or -1. */
static long find_number(const struct cordon_buf *list, const char *path)
{
	long number = 0;

	for (const char *at = list->data; at && at < list->data + list->len; at += strlen(at) + 1, number++)
		if (cordon_streq(at, path))
			return number;
	return -1;
}

static int read_kept(const struct cordon_view *view, const char *path, struct cordon_buf *ret_content)
{
	autobuf struct cordon_buf list = CORDON_BUF(LIST_MAX);
	autofd int dir = openat(view->dir_fd, BASE, CORDON_OPEN_DIR);
	char digits[CORDON_DIGITS_SIZE];
	long number;
	int r = dir < 0 ? -errno : cordon_read_file(dir, LIST, O_NOFOLLOW, &list, NULL);

	if (r < 0)
		return r;
	number = find_number(&list, path);
	return number < 0
		       ? -ENOENT
		       : cordon_read_file(dir, cordon_digits((uint64_t)number, digits), O_NOFOLLOW, ret_content, NULL);
}

int cordon_base_read(const struct cordon_view *view, const struct cordon_delta *delta,
		     const struct cordon_delta_change *change, struct cordon_buf *ret_content, bool *ret_certain)
{
	if (read_kept(view, change->path, ret_content) == 0) {
		*ret_certain = true;
		return 0;
	}
	*ret_certain = false;
	cordon_buf_reset(ret_content);
	return base_read_git(view, delta, change->path, ret_content);
}

/* Whether the host's text is what the view began with, and small enough to be kept. */
static bool is_worth(const struct cordon_delta_change *change, uint64_t bytes_left)
{
	return change->kind == CORDON_DELTA_MODIFIED && !change->edited && S_ISREG(change->old.mode) &&
	       S_ISREG(change->new.mode) && change->old.size <= KEPT_FILE_MAX && change->old.size <= bytes_left;
}

static int keep_text(const struct cordon_delta *delta, const struct cordon_delta_change *change, int dir_fd, long number)
{
	autobuf struct cordon_buf content = CORDON_BUF(KEPT_FILE_MAX);
	char digits[CORDON_DIGITS_SIZE];
	autofd int fd = -1, path_fd = -1;
	struct stat st;
	int r = cordon_delta_read(delta, change, true, &content, NULL);

	if (r < 0)
		return r;
	/* If the host changed it since the list was made, the text may be the new one. */
	path_fd = cordon_lower_find(&delta->base, change->path, true);
	if (path_fd < 0 || fstat(path_fd, &st) < 0 || st.st_ino != change->old.ino ||
	    st.st_ctim.tv_sec != change->old.ctime.tv_sec || st.st_ctim.tv_nsec != change->old.ctime.tv_nsec ||
	    !cordon_text_is(content.data, content.len))
		return -EINVAL;
	fd = openat(dir_fd, cordon_digits((uint64_t)number, digits), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : cordon_write_all(fd, content.data ? content.data : "", content.len);
}

void cordon_base_keep(const struct cordon_view *view)
{
	autobuf struct cordon_buf list = CORDON_BUF(LIST_MAX);
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	struct cordon_view_devices devices;
	uint64_t left = KEPT_BYTES_MAX;
	autofd int dir = -1;
	long number = 0;

	if (cordon_delta_find(view, &delta, NULL) < 0)
		return;
	cordon_view_devices(view, delta.root_fd, &devices);
	cordon_known_note(view->dir_fd, &devices, &delta);
	for (size_t i = 0; i < delta.n && number < KEPT_FILES_MAX; i++) {
		const struct cordon_delta_change *change = &delta.changes[i];

		if (!is_worth(change, left))
			continue;
		if (dir < 0 &&
		    (mkdirat(view->dir_fd, BASE, 0700) < 0 || (dir = openat(view->dir_fd, BASE, CORDON_OPEN_DIR)) < 0))
			return;
		if (keep_text(&delta, change, dir, number) < 0)
			continue;
		if (cordon_buf_add(&list, change->path, strlen(change->path) + 1) < 0)
			break;
		left -= change->old.size;
		number++;
	}
	if (number)
		cordon_write_file(dir, LIST, 0600, list.data, list.len, NULL);
}
