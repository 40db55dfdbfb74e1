/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published copies of records, for whoever looks into the project's directory. They have no authority, and where
 * they are written an agent may have prepared something: no link is followed, no temporary name can be guessed.
 */
#include <sys/stat.h>

#include "base/io.h"
#include "base/tree.h"
#include "store/internal.h"

json_t *cordon_project_metadata(const json_t *record)
{
	/* Values of the environment may be secrets, and the agent's command line may carry one. */
	static const char *const hidden[] = { "env", "env_pass", "agent_command", NULL };

	return cordon_record_public(record, hidden);
}

/* Takes away a directory that took our name, or gives us back the right to write. */
static int clear(const struct cordon_stage *stage, int tree_fd, const char *name)
{
	struct stat st;
	int r;

	if (fstat(tree_fd, &st) == 0 && (st.st_mode & 0700) != 0700 && fchmod(tree_fd, st.st_mode | 0700) < 0)
		return -errno;
	if (fstatat(tree_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	r = cordon_tree_remove(stage->fd, "obstacle", NULL);
	return r < 0 ? r : cordon_tree_move(tree_fd, name, stage->fd, "obstacle");
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
		r = clear(stage, tree_fd, name);
	if (r == 0 && faccessat(stage->fd, "published", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		r = place(stage, tree_fd, name);
	return r < 0 ? cordon_fail_errno(err, r, "cannot publish %s", name) : 0;
}
