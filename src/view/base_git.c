/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Git's blob of a file as what it was when a view began. It is used only if git's index has known the file since before the
 * start, and has not looked at it again since: then the file was clean at the last time that git looked, and whoever changed
 * it did so behind git's back. apply.c finds out whether that was before the start.
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/dirs.h"
#include "base/path.h"
#include "view/base.h"
#include "git/internal.h"
#include "view/internal.h"

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

/* Reads the id of the blob and both times from the answer of `ls-files --stage --debug`. The file must have been last looked
 * at before the view began. */
static int read_entry(const struct cordon_buf *text, const struct timespec *since,
		      char ret_id[static CORDON_GIT_ID_SIZE])
{
	long long ctime, mtime;
	long ctime_ns, mtime_ns;
	unsigned int mode, stage;
	const char *times = text->len ? strstr(text->data, "\n  ctime: ") : NULL;

	if (!times || sscanf(text->data, "%o %64s %u", &mode, ret_id, &stage) != 3 || stage != 0 ||
	    (mode != 0100644 && mode != 0100755) || !cordon_git_id_valid(ret_id, strlen(ret_id)) ||
	    sscanf(times, " ctime: %lld:%ld mtime: %lld:%ld", &ctime, &ctime_ns, &mtime, &mtime_ns) != 4)
		return -ENOENT;
	return cordon_delta_later(&(struct timespec){ ctime, ctime_ns }, since) ||
			       cordon_delta_later(&(struct timespec){ mtime, mtime_ns }, since)
		       ? -ENOENT
		       : 0;
}

int cordon_base_read_git(const struct cordon_view *view, const struct cordon_delta *delta, const char *path,
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
