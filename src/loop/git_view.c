/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repository that the agent of a call gets. Its view may lie on top of results that are in no commit of the host yet. Then
 * HEAD is a commit that has them, made in the agent's own git directory: `git status` shows what the agent itself did, and
 * `git stash` or `git reset --hard` take nothing else back.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/time.h"
#include "loop/git.h"
#include "loop/internal.h"

/* Makes the commit of all that lies below the view; "" when git sees nothing there. */
static int make_commit(struct cordon_loop *loop, const char *from, const char *objects,
		       char ret[static CORDON_LOOP_GIT_ID], struct cordon_error *err)
{
	char ids[CORDON_LOOP_STACK_MAX + 1][CORDON_LOOP_GIT_ID] = { 0 };
	int r = cordon_loop_git_import(loop, from, objects, ids, err);

	memcpy(ret, from, CORDON_LOOP_GIT_ID);
	for (size_t i = 0; r == 0 && i < loop->n_stack; i++)
		if (*ids[i])
			memcpy(ret, ids[i], sizeof(ids[i]));
	return r;
}

/* Writes a file of the agent's git directory, which is ours until the agent is started, and makes the directories that it needs. `add`:
 * at its end. */
static int put(const char *dir, const char *path, bool add, const char *text, struct cordon_error *err)
{
	autofd int at = open(dir, CORDON_LOOP_OPEN_DIR), fd = -1;

	for (const char *slash; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		char name[NAME_MAX + 1];
		int next = -1;

		if (cordon_copy(name, sizeof(name), path, (size_t)(slash - path)) == 0 &&
		    (mkdirat(at, name, 0755) == 0 || errno == EEXIST))
			next = openat(at, name, CORDON_LOOP_OPEN_DIR);
		close(at);
		at = next;
	}
	if (at >= 0)
		fd = openat(at, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (add ? O_APPEND : O_TRUNC), 0644);
	if (fd < 0 || cordon_write_all(fd, text, strlen(text)) < 0)
		return cordon_fail_errno(err, -errno, "cannot write %s", path);
	return 0;
}

/* What git would write to the log of a ref. */
static int put_log(const char *dir, const char *ref, const char *from, const char *to, struct cordon_error *err)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	char line[512];

	snprintf(path, sizeof(path), "logs/%s", ref);
	snprintf(line, sizeof(line), "%s %s cordon <cordon@localhost> %lld +0000\n", *from ? from : CORDON_LOOP_NO_ID,
		 to, (long long)(cordon_time_now() / 1000));
	return put(dir, path, true, line, err);
}

/* The branch of the results, or no branch where results are not committed, is at the commit; and so is the index. `common` is the directory
 * with the refs. */
static int check_out(const struct cordon_loop *loop, const struct cordon_git_call *own, const char *common,
		     const char *from, const char *commit, struct cordon_error *err)
{
	const char *const index[] = { "read-tree", "--reset", commit, NULL };
	struct cordon_git_call call = *own;
	const char *branch = loop->git.active ? loop->git.branch : NULL;
	char line[sizeof(loop->git.branch) + 16];
	int r = 0;

	if (branch) {
		snprintf(line, sizeof(line), "%s\n", commit);
		r = put(common, branch, false, line, err);
		if (r == 0)
			r = put_log(common, branch, from, commit, err);
	}
	snprintf(line, sizeof(line), "%s%s\n", branch ? "ref: " : "", branch ? branch : commit);
	if (r == 0)
		r = put(own->git_dir, "HEAD", false, line, err);
	if (r == 0)
		r = put_log(own->git_dir, "HEAD", from, commit, err);
	call.argv = index;
	return r < 0 ? r : cordon_loop_git_call(loop, &call, NULL, err);
}

int cordon_loop_git_begin(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX], common[CORDON_PATH_MAX], objects[CORDON_PATH_MAX];
	struct cordon_git_call own = { .git_dir = dir, .objects = objects };
	struct cordon_git_begin ask = { .mode = loop->options.git,
					.asked = loop->options.git == CORDON_GIT_READ, /* `commit` is the default */
					.record = call->view.dir_fd >= 0 ? call->view.path : NULL,
					.view = call->view.dir_fd >= 0,
					.at = loop->options.spec.at };
	char commit[CORDON_LOOP_GIT_ID] = "", from[CORDON_LOOP_GIT_ID];
	int r = ask.mode == CORDON_GIT_DEFAULT ? 0 : cordon_git_begin(call->policy, &ask, err);

	if (r < 0 || ask.mode != CORDON_GIT_COMMIT || !ask.view || !call->n_layers)
		return r;
	if (cordon_git_before(call->view.path, loop->git.repo.own, dir) < 0 ||
	    cordon_git_before(call->view.path, "", common) < 0 ||
	    cordon_git_before(call->view.path, "objects", objects) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", call->view.path);
	r = cordon_loop_git_tip(&loop->git, from, err);
	if (r == 0)
		r = make_commit(loop, from, objects, commit, err);
	return r < 0 || !*commit ? r : check_out(loop, &own, common, from, commit, err);
}
