/* SPDX-License-Identifier: Apache-2.0 */
/* The list of what is protected without being asked for: the table, and what git's metadata adds. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "sandbox/protect_git.h"

#define BYTES_MAX (8 * 1024 * 1024)

bool cordon_protect_collected(const struct cordon_protect_collector *c, const char *path)
{
	for (size_t i = 0; i < c->list.n; i++)
		if (cordon_streq(c->list.paths[i], path))
			return true;
	return false;
}

int cordon_protect_collect(struct cordon_protect_collector *c, const char *dir, const char *name)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	int r = cordon_path_join(dir, name, path, sizeof(path));

	if (r < 0)
		return r;
	if (cordon_protect_collected(c, path))
		return 0;
	if (c->list.n == CORDON_PROTECT_DEFAULTS_MAX)
		return -E2BIG;
	if (c->list.n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 128;
		char **bigger = realloc(c->list.paths, cap * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		c->list.paths = bigger;
		c->cap = cap;
	}
	c->list.paths[c->list.n] = strdup(path);
	if (!c->list.paths[c->list.n])
		return -ENOMEM;
	c->list.n++;
	return 0;
}

void cordon_protect_truncate(struct cordon_protect_collector *c, size_t n)
{
	while (c->list.n > n)
		free(c->list.paths[--c->list.n]);
}

void cordon_protect_list_done(struct cordon_protect_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->paths[i]);
	free(list->paths);
	*list = (struct cordon_protect_list){ 0 };
}

enum cordon_protect_type cordon_protect_type_of(const struct cordon_protect_collector *c, const char *path)
{
	autofd int fd = cordon_open_beneath(c->root->fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd == -ENOENT || fd == -ENOTDIR)
		return CORDON_PROTECT_MISSING;
	if (fd < 0 || fstat(fd, &st) < 0)
		return CORDON_PROTECT_OTHER;
	if (S_ISREG(st.st_mode))
		return CORDON_PROTECT_FILE;
	return S_ISDIR(st.st_mode) ? CORDON_PROTECT_DIR : CORDON_PROTECT_OTHER;
}

/* Whether the root is the home directory, reached by whatever name. */
static bool is_home(const struct cordon_root *root)
{
	const char *home = getenv("HOME");
	struct stat a, b;

	return home && *home == '/' && stat(home, &a) == 0 && fstat(root->fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static bool parent_exists(const struct cordon_protect_collector *c, const char *path)
{
	char parent[CORDON_PATH_MAX];
	const char *base = cordon_path_base(path);

	return base == path || (cordon_copy(parent, sizeof(parent), path, (size_t)(base - path) - 1) == 0 &&
				cordon_protect_type_of(c, parent) != CORDON_PROTECT_MISSING);
}

static int collect_rows(struct cordon_protect_collector *c)
{
	bool home = is_home(c->root);
	size_t n;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);

	for (size_t i = 0; i < n; i++) {
		enum cordon_protect_when when = rows[i].when;
		bool only_home = when == CORDON_PROTECT_HOME || when == CORDON_PROTECT_HOME_IN_PARENT;
		bool in_parent = when == CORDON_PROTECT_IN_PARENT || when == CORDON_PROTECT_HOME_IN_PARENT;
		int r;

		if ((only_home && !home) || (in_parent && !parent_exists(c, rows[i].path)))
			continue;
		r = cordon_protect_collect(c, "", rows[i].path);
		if (r < 0)
			return r;
	}
	return 0;
}

int cordon_protect_defaults(const struct cordon_root *root, struct cordon_protect_list *ret_list,
			    struct cordon_error *err)
{
	struct cordon_protect_collector c = {
		.root = root,
		.modules_left = CORDON_PROTECT_MODULES_MAX,
		.worktrees_left = CORDON_PROTECT_MODULES_MAX,
		.includes_left = CORDON_PROTECT_INCLUDES_MAX,
		.bytes_left = BYTES_MAX,
	};
	int r = collect_rows(&c);

	if (r == 0)
		r = cordon_protect_git(&c);
	if (r < 0) {
		cordon_protect_list_done(&c.list);
		if (r != -E2BIG && r != -ENAMETOOLONG)
			return cordon_fail_errno(err, r, "cannot list what git would execute in %s", root->path);
		r = cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT,
				"git's metadata in %s name more submodules, worktrees or files than can be protected",
				root->path);
		cordon_error_hint(err,
				  "clean up .git (git worktree prune), or start with --no-default-protect and name what "
				  "matters with --protect");
		return r;
	}
	*ret_list = c.list;
	return 0;
}

int cordon_protect_defaults_add(struct cordon_policy *policy, struct cordon_error *err)
{
	struct cordon_protect_list list = { 0 };
	int r = cordon_protect_defaults(&policy->root, &list, err);

	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = cordon_policy_add_protected(policy, list.paths[i], "protected by default", true, err);
	cordon_protect_list_done(&list);
	return r;
}
