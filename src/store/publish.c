/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published copies of records, for readers of the project's directory. cordon never reads them. An agent may have
 * prepared the place where they are written, so we follow no link there and use no temporary name there.
 */
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "store/internal.h"

/* Removes a directory that has our name, and restores our right to write. */
static int remove_obstacle(const struct cordon_stage *stage, int tree_fd, const char *name)
{
	struct stat st;
	int r;

	if (fstat(tree_fd, &st) == 0 && (st.st_mode & 0700) != 0700 && fchmod(tree_fd, st.st_mode | 0700) < 0)
		return -errno;
	if (fstatat(tree_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	r = cordon_dirs_remove(stage->fd, "obstacle", NULL);
	return r < 0 ? r : cordon_dirs_move(tree_fd, name, stage->fd, "obstacle");
}

static int place(const struct cordon_stage *stage, int tree_fd, const char *name)
{
	return renameat(stage->fd, "published", tree_fd, name) < 0 || fsync(tree_fd) < 0 ? -errno : 0;
}

int cordon_publish(const struct cordon_stage *stage, int tree_fd, const char *name, const json_t *value,
		   struct cordon_error *err)
{
	autofree char *text = value ? json_dumps(value, JSON_INDENT(2)) : NULL;
	size_t n;
	int r;

	if (!text)
		return cordon_no_memory(err);
	n = strlen(text);
	text[n++] = '\n';
	r = cordon_write_file(stage->fd, "published", 0644, text, n, err);
	if (r < 0)
		return r;
	r = place(stage, tree_fd, name);
	if (r < 0)
		r = remove_obstacle(stage, tree_fd, name);
	if (r == 0 && faccessat(stage->fd, "published", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		r = place(stage, tree_fd, name);
	return r < 0 ? cordon_fail_errno(err, r, "cannot publish %s", name) : 0;
}
