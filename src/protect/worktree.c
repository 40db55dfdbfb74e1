/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the git directory of a linked worktree or a submodule, and adds it to a policy as a share. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "policy/shares.h"
#include "protect/defaults.h"
#include "protect/gitconfig.h"
#include "protect/links.h"
#include "protect/worktree.h"

#define POINTER_MAX CORDON_PATH_MAX /* bytes of a .git file, commondir or gitdir */
#define CONFIG_MAX ((size_t)256 << 10)

static const struct cordon_root slash = { .fd = -1, .path = "/" };

/* Whether git directories are usually called so. An agent can't make a directory that is called otherwise, such as the
 * home, look like one. */
static bool is_git_name(const char *name, size_t n)
{
	return (n >= 4 && memcmp(name + n - 4, ".git", 4) == 0) || (n == 5 && memcmp(name, ".bare", 5) == 0);
}

static bool is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid();
}

/* Reads a regular file that belongs to the user; follows no link. */
static bool read_own(int dir, const char *name, size_t max, struct cordon_buf *text)
{
	autofd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return false;
	text->max = max;
	return cordon_read_regular(fd, &st, name, text, NULL) == 0 && text->len;
}

/* Finds where a path in git's metadata leads on the host; relative ones start at `base`. */
static bool resolve(const char *base, const char *text, char ret[static CORDON_PATH_MAX])
{
	CORDON_UNCLEARED struct cordon_resolved found;
	CORDON_UNCLEARED char joined[CORDON_PATH_MAX];

	if (!*text || strchr(text, '\n') ||
	    cordon_path_join(text[0] == '/' ? "" : base, text, joined, sizeof(joined)) < 0)
		return false;
	cordon_resolve(&slash, joined, &found);
	return found.place == CORDON_PLACE_INSIDE && found.exists &&
	       cordon_path_join("/", found.path, ret, CORDON_PATH_MAX) == 0;
}

/* Reads a file that holds one path behind the text `prefix`, and finds where that leads. */
static bool follow(int dir, const char *name, const char *prefix, const char *base, char ret[static CORDON_PATH_MAX])
{
	autobuf struct cordon_buf text = { 0 };
	size_t skip = strlen(prefix);

	if (!read_own(dir, name, POINTER_MAX - 1, &text) || strncmp(text.data, prefix, skip) != 0)
		return false;
	while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.data[--text.len] = '\0';
	return text.len > skip && strlen(text.data) == text.len && resolve(base, text.data + skip, ret);
}

/* Opens a directory of the user by its canonical path. */
static bool open_own(const char *path, struct cordon_root *ret)
{
	autofd int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autofd int fd = top < 0 ? -1 : cordon_open_beneath(top, path + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || !is_ours(fd) || cordon_copy(ret->path, sizeof(ret->path), path, strlen(path)) < 0)
		return false;
	ret->fd = cordon_steal_fd(&fd);
	return true;
}

static bool is_git_dir(int fd)
{
	static const char *const parts[] = { "HEAD", "objects", "refs" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(parts); i++)
		if (faccessat(fd, parts[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return false;
	return true;
}

/* The start of the name before the slash at `end`. */
static const char *name_before(const char *path, const char *end)
{
	while (end > path && end[-1] != '/')
		end--;
	return end;
}

/* COMMON/worktrees/ID: its `commondir` must lead to COMMON, and its `gitdir` to the `.git` of the root. */
static bool find_linked(const struct cordon_root *root, const struct cordon_root *own, struct cordon_worktree *ret)
{
	CORDON_UNCLEARED char common[CORDON_PATH_MAX], path[CORDON_PATH_MAX], dot_git[CORDON_PATH_MAX];
	const char *id = cordon_path_base(own->path);
	const char *name = id - own->path > 1 ? name_before(own->path, id - 1) : own->path;

	if (strncmp(name, "worktrees/", 10) != 0 || name - own->path < 2 ||
	    cordon_copy(common, sizeof(common), own->path, (size_t)(name - own->path) - 1) < 0 ||
	    !is_git_name(cordon_path_base(common), strlen(cordon_path_base(common))))
		return false;
	if (!follow(own->fd, "commondir", "", own->path, path) || !cordon_streq(path, common) ||
	    cordon_path_join(root->path, ".git", dot_git, sizeof(dot_git)) < 0 ||
	    !follow(own->fd, "gitdir", "", own->path, path) || !cordon_streq(path, dot_git))
		return false;
	return open_own(common, &ret->git) && cordon_copy(ret->own, sizeof(ret->own), name, strlen(name)) == 0;
}

struct module {
	const struct cordon_root *root, *git;
	bool ours; /* the last core.worktree leads to the root */
};

static int on_entry(const struct cordon_gitconfig_entry *entry, void *data)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	struct module *module = data;

	if (entry->value && cordon_streq(entry->section, "core") && !*entry->subsection &&
	    cordon_streq(entry->key, "worktree"))
		module->ours = resolve(module->git->path, entry->value, path) && cordon_streq(path, module->root->path);
	return 0;
}

/* Whether a git directory keeps its submodules at or above this path: .git/modules/NAME, where a name may hold
 * slashes, or .git/worktrees/ID/modules/NAME. */
static bool is_module_path(const char *path)
{
	static const char *const below[] = { "/modules/", "/worktrees/" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(below); i++) {
		for (const char *at = strstr(path, below[i]); at; at = strstr(at + 1, below[i])) {
			const char *name = name_before(path, at);

			if (is_git_name(name, (size_t)(at - name)) && strstr(at, "/modules/"))
				return true;
		}
	}
	return false;
}

/* A submodule's git directory: its core.worktree must lead to the root. */
static bool find_module(const struct cordon_root *root, struct cordon_root *own, struct cordon_worktree *ret)
{
	autobuf struct cordon_buf text = { 0 };
	struct module module = { root, own, false };

	if (!is_module_path(own->path) || faccessat(own->fd, "commondir", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    !read_own(own->fd, "config", CONFIG_MAX, &text))
		return false;
	cordon_gitconfig_parse(text.data, text.len, on_entry, &module);
	if (!module.ours)
		return false;
	ret->git = *own;
	own->fd = -1;
	ret->own[0] = '\0';
	return true;
}

bool cordon_worktree_find(const struct cordon_root *root, struct cordon_worktree *ret)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	struct cordon_root own = { .fd = -1 };
	struct stat st;
	bool found;

	ret->git.fd = -1;
	if (fstatat(root->fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    !follow(root->fd, ".git", "gitdir: ", root->path, path) || cordon_path_within(path, root->path) ||
	    !open_own(path, &own))
		return false;
	found = (find_linked(root, &own, ret) || find_module(root, &own, ret)) && is_git_dir(ret->git.fd) &&
		!cordon_path_within(root->path, ret->git.path) && !cordon_path_within(ret->git.path, root->path);
	cordon_root_done(&own);
	if (!found)
		cordon_worktree_done(ret);
	return found;
}

void cordon_worktree_done(struct cordon_worktree *worktree)
{
	cordon_closep(&worktree->git.fd);
}

static bool overlap(const char *a, const char *b)
{
	return cordon_path_within(a, b) || cordon_path_within(b, a);
}

/* The rights that the grants give to `.git`. It is protected by default as a file, which says nothing about the
 * directory behind it; what the user protects counts. */
static cordon_access access_of_git(const struct cordon_policy *policy)
{
	struct cordon_policy grants = *policy;
	cordon_access access;

	grants.n_protected = 0;
	access = cordon_policy_access(&grants, ".git");
	for (size_t i = 0; i < policy->n_protected; i++)
		if (!policy->protected_paths[i].by_default && access == CORDON_ACCESS_WRITE &&
		    cordon_path_within(".git", policy->protected_paths[i].path))
			access = CORDON_ACCESS_READ;
	return access;
}

static int protect(struct cordon_policy *policy, const char *own, struct cordon_error *err)
{
	struct cordon_protect_list list = { 0 };
	int r = cordon_protect_git_dir(&policy->root, own, &list, err);

	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = cordon_policy_add_protected(policy, list.paths[i], "in the git directory, by default", true, err);
	cordon_protect_list_done(&list);
	return r < 0 ? r : cordon_protect_links_add(policy, err);
}

static int add_share(struct cordon_policy *policy, const struct cordon_worktree *worktree, bool read_only,
		     struct cordon_error *err)
{
	size_t before = policy->n_shares;
	struct cordon_policy_share *share;
	struct stat judged, shared;
	int r = cordon_policy_add_git_share(policy, worktree->git.path, read_only, err);

	if (r < 0)
		return r;
	share = &policy->shares[before];
	if (!share->policy || fstat(worktree->git.fd, &judged) < 0 || fstat(share->policy->root.fd, &shared) < 0 ||
	    judged.st_dev != shared.st_dev || judged.st_ino != shared.st_ino)
		r = cordon_fail(err, -ESTALE, CORDON_KIND_POLICY_DENIED, "the git directory %s was replaced",
				worktree->git.path);
	else if (!read_only)
		r = protect(share->policy, worktree->own, err);
	if (r < 0)
		cordon_policy_drop_shares(policy, before);
	return r;
}

int cordon_worktree_share(struct cordon_policy *policy, struct cordon_error *err)
{
	struct cordon_worktree worktree;
	cordon_access access;
	int r = 0;

	if (!cordon_worktree_find(&policy->root, &worktree))
		return 0;
	access = access_of_git(policy);
	for (size_t i = 0; i < policy->n_shares; i++)
		if (overlap(policy->shares[i].source, worktree.git.path) ||
		    (policy->shares[i].target && overlap(policy->shares[i].target, worktree.git.path)))
			access = CORDON_ACCESS_NONE;
	if (access != CORDON_ACCESS_NONE)
		r = add_share(policy, &worktree, access == CORDON_ACCESS_READ, err);
	cordon_worktree_done(&worktree);
	return r;
}
