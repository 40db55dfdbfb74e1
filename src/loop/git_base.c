/* SPDX-License-Identifier: Apache-2.0 */
/* The view that holds what a branch has and the checkout has not, so that agents see the branch. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/dirs.h"
#include "base/io.h"
#include "loop/git.h"
#include "loop/internal.h"

#define PATH_MODES 8

/* Opens the directory of a path in the layer, and makes what is missing. */
static int open_parent(int upper, const char *path, const char **ret_name)
{
	autofd int fd = fcntl(upper, F_DUPFD_CLOEXEC, 3);
	const char *at = path;

	for (const char *slash; fd >= 0 && (slash = strchr(at, '/')); at = slash + 1) {
		CORDON_UNCLEARED char name[CORDON_PATH_MAX];
		int next;

		if (cordon_copy(name, sizeof(name), at, (size_t)(slash - at)) < 0)
			return -ENAMETOOLONG;
		if (mkdirat(fd, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		next = openat(fd, name, CORDON_LOOP_OPEN_DIR);
		if (next < 0)
			return -errno;
		close(fd);
		fd = next;
	}
	*ret_name = at;
	return fd < 0 ? -errno : cordon_steal_fd(&fd);
}

static int put(int upper, const char *path, const char *mode, const char *content, size_t n)
{
	const char *name = "";
	autofd int parent = open_parent(upper, path, &name), fd = -1;
	autofree char *target = NULL;

	if (parent < 0)
		return parent;
	if (cordon_streq(mode, "000000"))
		return mknodat(parent, name, S_IFCHR, makedev(0, 0)) < 0 ? -errno : 0;
	if (cordon_streq(mode, "120000")) {
		target = strndup(content, n);
		return !target ? -ENOMEM : symlinkat(target, parent, name) < 0 ? -errno : 0;
	}
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    cordon_streq(mode, "100755") ? 0755 : 0644);
	return fd < 0 ? -errno : cordon_write_all(fd, content, n);
}

/* One line ":OLD NEW OLDID NEWID X" of git diff-tree, and its path. */
struct change {
	char mode[PATH_MODES], id[CORDON_LOOP_GIT_ID];
	const char *path;
};

static bool next_change(const struct cordon_buf *raw, size_t *at, struct change *ret)
{
	char old_mode[PATH_MODES], old_id[CORDON_LOOP_GIT_ID], letter[2];
	const char *entry = raw->data + *at;

	if (*at >= raw->len ||
	    sscanf(entry, ":%7s %7s %64s %64s %1s", old_mode, ret->mode, old_id, ret->id, letter) != 5)
		return false;
	ret->path = entry + strlen(entry) + 1;
	*at = (size_t)(ret->path - raw->data) + strlen(ret->path) + 1;
	return *at <= raw->len;
}

static bool has_content(const struct change *change)
{
	return strncmp(change->mode, "10", 2) == 0 || cordon_streq(change->mode, "120000");
}

/* Fills the layer from the list of changes and the answer of git cat-file --batch. */
static int fill(int upper, const struct cordon_buf *raw, const struct cordon_buf *blobs)
{
	const char *blob = blobs->data ? blobs->data : "";
	struct change change;
	size_t at = 0;

	while (next_change(raw, &at, &change)) {
		size_t n = 0;
		int r;

		if (has_content(&change)) {
			const char *size = strrchr(blob, ' '), *line = strchr(blob, '\n');

			/* "ID blob SIZE\n", the content, "\n" */
			size = line ? memrchr(blob, ' ', (size_t)(line - blob)) : NULL;
			if (!size || (n = strtoull(size + 1, NULL, 10)) > blobs->len - (size_t)(line + 1 - blobs->data))
				return -EBADMSG;
			r = put(upper, change.path, change.mode, line + 1, n);
			blob = line + 1 + n + 1;
		} else {
			r = cordon_streq(change.mode, "000000") ? put(upper, change.path, change.mode, "", 0) : 0;
		}
		if (r < 0 && r != -EEXIST)
			return r;
	}
	return 0;
}

static int build(struct cordon_loop *loop, int upper, const char *from, const char *to, struct cordon_error *err)
{
	const char *const diff[] = { "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to, NULL };
	static const char *const cat[] = { "cat-file", "--batch", NULL };
	autobuf struct cordon_buf raw = { 0 }, ids = CORDON_BUF((size_t)64 << 20), blobs = { 0 };
	struct change change;
	size_t at = 0;
	int r = cordon_loop_git_run(loop, diff, NULL, NULL, &raw, err);

	while (r == 0 && next_change(&raw, &at, &change))
		if (has_content(&change))
			r = cordon_buf_addf(&ids, "%s\n", change.id);
	if (r == 0 && ids.len)
		r = cordon_loop_git_run(loop, cat, &ids, NULL, &blobs, err);
	if (r < 0)
		return r;
	r = fill(upper, &raw, &blobs);
	return r < 0 ? cordon_fail_errno(err, r, "cannot show the branch to agents") : 0;
}

int cordon_loop_git_base(struct cordon_loop *loop, const char *from, const char *to, struct cordon_error *err)
{
	static char name[] = "cordon", verb[] = "loop";
	char *argv[] = { name, verb, NULL };
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	struct cordon_loop_scope scope = { 0 };
	struct cordon_view_request request = { .argv = argv };
	autofd int upper = -1;
	int r;

	/* One that an interrupted landing has filled partly is built on. */
	if (*loop->landing) {
		memcpy(loop->git.base, loop->landing, sizeof(loop->landing));
		return 0;
	}
	r = loop->options.observer.policy(loop->options.observer.maker, &scope, &policy, err);
	request.policy = policy;
	if (r == 0)
		r = cordon_view_create(loop->home, &request, &view, err);
	if (r == 0)
		r = cordon_loop_upper(loop, view.record.id, &upper, err);
	if (r == 0 && !cordon_streq(from, to))
		r = build(loop, upper, from, to, err);
	if (r < 0)
		return r;
	view.record.state = CORDON_VIEW_ENDED;
	memcpy(loop->git.base, view.record.id, sizeof(loop->git.base));
	return cordon_view_save(&view, err);
}
