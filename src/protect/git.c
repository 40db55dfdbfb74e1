/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what git would execute, from git's own metadata.
 *
 * Git runs what the config of a git directory says, and its hooks. A few files decide which git directory and which
 * config that is, so these must not change either: a `.git` file, `commondir` (a git directory that has one takes
 * its config from elsewhere, so an attacker needs only to make this file), and `gitdir` of a worktree. INVARIANT:
 * what is read here only adds paths to protect; no path leads out of the root, and nothing is created or executed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "protect/git.h"
#include "protect/gitconfig.h"
#include "protect/gitnames.h"
#include "protect/worktree.h"

#define POINTER_MAX CORDON_PATH_MAX /* bytes of a .git file, commondir or gitdir */
#define ABOVE_MAX 4		    /* repositories around each other, with the root inside */

static int collect_git_dir(struct cordon_protect_collector *c, const char *dir, const char *worktree, bool is_module);
static int collect_modules(struct cordon_protect_collector *c, const char *dir, int depth);

/* Reads a file that contains one path, such as commondir, behind the text `prefix`. Returns 0, 1 for nothing, or
 * -errno. */
static int read_pointer(struct cordon_protect_collector *c, const char *dir, const char *name, const char *prefix,
			char ret[static POINTER_MAX])
{
	autobuf struct cordon_buf buf = { 0 };
	char path[CORDON_PATH_MAX];
	size_t skip = strlen(prefix);
	int r = cordon_path_join(dir, name, path, sizeof(path));

	if (r < 0)
		return r;
	r = cordon_protect_read(c, path, POINTER_MAX - 1, &buf);
	if (r == -E2BIG)
		return 1; /* git does not accept such a path either */
	if (r != 0)
		return r;
	while (buf.len > 0 && (buf.data[buf.len - 1] == '\n' || buf.data[buf.len - 1] == '\r'))
		buf.data[--buf.len] = '\0';
	if (strncmp(buf.data, prefix, skip) != 0)
		return 1;
	return cordon_copy(ret, POINTER_MAX, buf.data + skip, strlen(buf.data + skip)) < 0 ? 1 : 0;
}

/* The work tree of a submodule: its `.git` names the git directory that belongs to it. */
int cordon_protect_submodule(struct cordon_protect_collector *c, const char *worktree)
{
	char path[CORDON_PATH_MAX];

	if (!*worktree || cordon_path_join(worktree, ".git", path, sizeof(path)) < 0)
		return 0;
	switch (cordon_protect_type_of(c, path)) {
	case CORDON_PROTECT_DIR:
		return collect_git_dir(c, path, worktree, false);
	case CORDON_PROTECT_MISSING:
		/* The submodule is not checked out: its directory is empty, and git would obey a .git that the agent
		 * puts there. */
		return cordon_protect_type_of(c, worktree) == CORDON_PROTECT_DIR ? cordon_protect_collect(c, "", path)
										 : 0;
	case CORDON_PROTECT_FILE:
	case CORDON_PROTECT_OTHER:
		break;
	}
	return cordon_protect_collect(c, "", path);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the entries of a directory, sorted, so that the list is the same each time. Each entry reduces *left. */
static int read_names(struct cordon_protect_collector *c, const char *path, size_t *left, char ***ret_names,
		      size_t *ret_n)
{
	int fd = cordon_names_lack(c->names, path)
			 ? -ENOENT
			 : cordon_open_beneath(c->root->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char **names = NULL;
	struct dirent *entry;
	size_t n = 0, cap = 0;
	int r = fd < 0 ? cordon_protect_unread(c, path, fd) : 0;

	if (fd >= 0 && !dir)
		close(fd);
	while (r == 0 && dir && (entry = readdir(dir))) {
		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (n == cap) {
			char **bigger = reallocarray(names, cap ? 2 * cap : 64, sizeof(*names));

			if (!bigger) {
				r = -ENOMEM;
				break;
			}
			names = bigger;
			cap = cap ? 2 * cap : 64;
		}
		if (*left == 0)
			r = -E2BIG;
		else if (!(names[n] = strdup(entry->d_name)))
			r = -ENOMEM;
		else
			n++, (*left)--;
	}
	if (dir)
		closedir(dir);
	if (n > 1)
		qsort(names, n, sizeof(*names), compare_names);
	*ret_names = names;
	*ret_n = n;
	return r;
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static int on_format(const struct cordon_gitconfig_entry *entry, void *data)
{
	(void)data;
	return cordon_streq(entry->section, "core") && cordon_streq(entry->key, "repositoryformatversion");
}

/* Whether a directory has a configuration as each git directory has. */
static bool has_config(struct cordon_protect_collector *c, const char *dir)
{
	autobuf struct cordon_buf config = { 0 };
	char path[CORDON_PATH_MAX];
	int r = cordon_path_join(dir, "config", path, sizeof(path));

	if (r == 0)
		r = cordon_protect_read(c, path, CORDON_PROTECT_CONFIG_MAX, &config);
	return r == 0 ? cordon_gitconfig_parse(config.data, config.len, on_format, NULL) > 0 : r < 0;
}

/* INVARIANT: what was held as a git directory once is found again. A run may move HEAD, objects and refs away and bring them
 * back in the next one, but not config, which is held. */
bool cordon_protect_is_git_dir(struct cordon_protect_collector *c, const char *dir)
{
	static const char *const parts[] = { "HEAD", "objects", "refs" };
	char path[CORDON_PATH_MAX];

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(parts); i++)
		if (cordon_path_join(dir, parts[i], path, sizeof(path)) < 0 ||
		    cordon_protect_type_of(c, path) == CORDON_PROTECT_MISSING)
			return has_config(c, dir);
	return true;
}

/* A directory between modules and the git directories of submodules. One that became a git directory itself would hide
 * them. */
static int collect_between(struct cordon_protect_collector *c, const char *dir, int depth)
{
	int r = cordon_protect_collect(c, dir, "HEAD");

	if (r == 0)
		r = cordon_protect_collect(c, dir, "config");
	return r < 0 ? r : collect_modules(c, dir, depth);
}

/* Git directories of submodules: modules/NAME, where a name may hold slashes. */
static int collect_modules(struct cordon_protect_collector *c, const char *dir, int depth)
{
	char **names = NULL, path[CORDON_PATH_MAX];
	size_t n = 0;
	int r = depth > CORDON_PROTECT_DEPTH_MAX ? -E2BIG : read_names(c, dir, &c->modules_left, &names, &n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = cordon_path_join(dir, names[i], path, sizeof(path));
		if (r < 0)
			break;
		switch (cordon_protect_type_of(c, path)) {
		case CORDON_PROTECT_DIR:
			r = cordon_protect_is_git_dir(c, path) ? collect_git_dir(c, path, NULL, true)
							       : collect_between(c, path, depth + 1);
			break;
		case CORDON_PROTECT_OTHER:
			r = cordon_protect_collect(c, "", path); /* a link: git would follow it */
			break;
		case CORDON_PROTECT_FILE:
		case CORDON_PROTECT_MISSING:
			break;
		}
	}
	free_names(names, n);
	return r;
}

/* The worktree of the run, of which only the git directory is here. Git keeps its index, HEAD and logs there. */
static int collect_own_worktree(struct cordon_protect_collector *c, const char *dir)
{
	static const char *const parts[] = { "commondir", "gitdir", "config.worktree" };
	char path[CORDON_PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(parts); i++)
		r = cordon_protect_collect(c, dir, parts[i]);
	if (r == 0)
		r = cordon_path_join(dir, "modules", path, sizeof(path));
	if (r == 0 && cordon_protect_type_of(c, path) == CORDON_PROTECT_OTHER)
		return cordon_protect_collect(c, "", path);
	return r < 0 ? r : collect_modules(c, path, 1);
}

/* One linked worktree. */
static int collect_worktree(struct cordon_protect_collector *c, const char *dir)
{
	static const char *const inside[] = { "commondir", "gitdir", "config.worktree" };
	char pointer[POINTER_MAX], path[CORDON_PATH_MAX];
	int r;

	if (c->own && cordon_streq(dir, c->own))
		return collect_own_worktree(c, dir);
	r = read_pointer(c, dir, "gitdir", "", pointer);
	if (r < 0)
		return r;
	/* Its files are not in the root, so the run does not need it. It is protected as a whole also because git's
	 * own clean-up, which does not see these files inside, would remove it. */
	if (r != 0 || !cordon_protect_locate(c, dir, pointer, path) || !cordon_streq(cordon_path_base(path), ".git") ||
	    cordon_protect_type_of(c, path) == CORDON_PROTECT_DIR)
		return cordon_protect_collect(c, "", dir);
	r = cordon_protect_collect(c, "", path);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(inside); i++)
		r = cordon_protect_collect(c, dir, inside[i]);
	return r;
}

/* Too many to protect one by one: protects all of them as a whole, and the `.git` files in the root that lead to
 * them. */
static int collect_worktrees_whole(struct cordon_protect_collector *c, const char *dir, char **names, size_t n)
{
	char pointer[POINTER_MAX], way[CORDON_PATH_MAX], path[CORDON_PATH_MAX];
	int r = cordon_protect_collect(c, "", dir);

	c->list.collapsed = true;
	for (size_t i = 0; r == 0 && i < n; i++) {
		/* A file that cannot be read within the bound must not count as missing. */
		r = c->bytes_left < POINTER_MAX ? -E2BIG : cordon_path_join(dir, names[i], way, sizeof(way));
		if (r < 0)
			break;
		r = read_pointer(c, way, "gitdir", "", pointer);
		if (r == 0 && cordon_protect_locate(c, way, pointer, path) &&
		    cordon_streq(cordon_path_base(path), ".git") &&
		    cordon_protect_type_of(c, path) == CORDON_PROTECT_FILE)
			r = cordon_protect_collect(c, "", path);
		r = r > 0 ? 0 : r;
	}
	return r;
}

static int collect_worktrees(struct cordon_protect_collector *c, const char *dir)
{
	char **names = NULL, path[CORDON_PATH_MAX];
	size_t n = 0, before = c->list.n;
	int r;

	if (cordon_protect_type_of(c, dir) == CORDON_PROTECT_OTHER)
		return cordon_protect_collect(c, "", dir);
	r = read_names(c, dir, &c->worktrees_left, &names, &n);
	for (size_t i = 0; r == 0 && n <= CORDON_PROTECT_MODULES_MAX && i < n; i++) {
		r = cordon_path_join(dir, names[i], path, sizeof(path));
		if (r == 0)
			r = collect_worktree(c, path);
	}
	if ((r == 0 && n > CORDON_PROTECT_MODULES_MAX) || (r == -E2BIG && n <= CORDON_PROTECT_MODULES_MAX)) {
		cordon_protect_truncate(c, before);
		r = collect_worktrees_whole(c, dir, names, n);
	}
	free_names(names, n);
	return r;
}

/* Protects the modules, or their directory as a whole when they are too many or too deep; for submodules of
 * submodules the outermost repository does that. The bounds are not restored then, so that the work stays bounded. */
static int collect_modules_of(const struct cordon_git_dir *git)
{
	struct cordon_protect_collector *c = git->c;
	size_t before = c->list.n;
	char path[CORDON_PATH_MAX];
	int r = cordon_path_join(git->dir, "modules", path, sizeof(path));

	/* Git takes what is there for a submodule that the host checks out later, hooks and all: nobody makes the first one. */
	if (r == 0 && cordon_protect_type_of(c, path) != CORDON_PROTECT_DIR)
		return cordon_protect_collect(c, "", path);
	if (r == 0)
		r = collect_modules(c, path, 1);
	if (r != -E2BIG || git->is_module)
		return r;
	cordon_protect_truncate(c, before);
	c->list.collapsed = true;
	return cordon_protect_collect(c, "", path);
}

static int collect_git_dir(struct cordon_protect_collector *c, const char *dir, const char *worktree, bool is_module)
{
	static const char *const parts[] = { "config", "config.worktree", "hooks", "info/attributes", "commondir" };
	const struct cordon_git_dir git = { c, dir, worktree, is_module };
	char path[CORDON_PATH_MAX], pointer[POINTER_MAX];
	int r = cordon_protect_visit(c, dir);

	if (r != 0)
		return r < 0 ? r : 0;
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(parts); i++)
		r = cordon_protect_collect(c, dir, parts[i]);
	/* Without HEAD, a .git is no git directory. Then git takes the directory around it for a bare repository if
	 * that has the parts of one. HEAD is the part that no project has, so it is protected. */
	if (r == 0 && worktree && cordon_streq(cordon_path_base(dir), ".git"))
		r = cordon_protect_collect(c, worktree, "HEAD");
	if (r == 0 && (r = cordon_path_join(dir, "config", path, sizeof(path))) == 0)
		r = cordon_gitnames_config(&git, path);
	if (r == 0 && (r = cordon_path_join(dir, "config.worktree", path, sizeof(path))) == 0)
		r = cordon_gitnames_config(&git, path);
	if (r == 0)
		r = collect_modules_of(&git);
	if (r == 0 && (r = cordon_path_join(dir, "worktrees", path, sizeof(path))) == 0)
		r = collect_worktrees(c, path);
	if (r < 0)
		return r;
	r = read_pointer(c, dir, "commondir", "", pointer);
	if (r != 0)
		return r < 0 ? r : 0;
	return cordon_protect_locate(c, dir, pointer, path) && *path ? collect_git_dir(c, path, worktree, false) : 0;
}

struct gitmodules {
	struct cordon_protect_collector *c;
	const char *dir; /* of the worktree, relative to the root */
};

/* The git directory of a submodule that was never checked out: git would take what an agent puts there. */
static int collect_missing_module(const struct gitmodules *modules, const char *name)
{
	struct cordon_protect_collector *c = modules->c;
	char dir[CORDON_PATH_MAX], joined[CORDON_PATH_MAX], path[CORDON_PATH_MAX];

	if (!*name || *name == '/' || cordon_path_join(modules->dir, ".git/modules", dir, sizeof(dir)) < 0 ||
	    cordon_protect_type_of(c, dir) != CORDON_PROTECT_DIR ||
	    cordon_path_join(dir, name, joined, sizeof(joined)) < 0 ||
	    cordon_path_clean(joined, path, sizeof(path)) < 0 || !cordon_path_within(path, dir) ||
	    cordon_streq(path, dir) || cordon_protect_type_of(c, path) != CORDON_PROTECT_MISSING)
		return 0;
	return cordon_protect_collect(c, "", path);
}

static int on_gitmodules(const struct cordon_gitconfig_entry *entry, void *data)
{
	const struct gitmodules *modules = data;
	char joined[CORDON_PATH_MAX], path[CORDON_PATH_MAX];
	int r;

	if (!entry->value || !cordon_streq(entry->section, "submodule") || !cordon_streq(entry->key, "path") ||
	    *entry->value == '/' || cordon_path_join(modules->dir, entry->value, joined, sizeof(joined)) < 0 ||
	    cordon_path_clean(joined, path, sizeof(path)) < 0)
		return 0;
	r = collect_missing_module(modules, entry->subsection);
	return r < 0 ? r : cordon_protect_submodule(modules->c, path);
}

/* Reads the configuration of a git directory outside of the root, and that of its worktree `own` if it has one. Files of
 * the root may stand in it, as core.hooksPath does. */
static int collect_outer(struct cordon_protect_collector *c, const struct cordon_root *git_dir, const char *own,
			 const char *worktree)
{
	const struct cordon_git_dir git = { c, "", worktree, false };
	char path[CORDON_PATH_MAX];
	int r;

	c->outer = git_dir;
	r = cordon_gitnames_outer(&git, "config");
	if (r == 0 && (r = cordon_path_join(own, "config.worktree", path, sizeof(path))) == 0)
		r = cordon_gitnames_outer(&git, path);
	c->outer = NULL;
	return r;
}

/* The same for the directory `top`, which is a worktree or submodule whose git directory lies elsewhere. */
static int collect_outside(struct cordon_protect_collector *c, const struct cordon_root *top, const char *worktree)
{
	struct cordon_worktree found;
	int r;

	if (!cordon_worktree_find(top, &found))
		return 0;
	r = collect_outer(c, &found.git, found.own, worktree);
	cordon_worktree_done(&found);
	return r;
}

/* A repository above the root: files of the root may stand in its configuration, and in the user's, as that counts
 * there. Its own files are not in the root, and no run sees them. */
static int collect_above(struct cordon_protect_collector *c, const char *top_path, mode_t mode)
{
	const struct cordon_git_dir user = { c, "", top_path, false };
	struct cordon_root top = { .fd = open(top_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) };
	struct cordon_root git = { .fd = -1 };
	int r = 0;

	if (top.fd < 0 || cordon_copy(top.path, sizeof(top.path), top_path, strlen(top_path)) < 0) {
		cordon_root_done(&top);
		return 0;
	}
	if (!S_ISDIR(mode)) {
		r = collect_outside(c, &top, top_path);
	} else if ((git.fd = cordon_open_beneath(top.fd, ".git", O_PATH | O_DIRECTORY | O_CLOEXEC)) >= 0 &&
		   cordon_path_join(top_path, ".git", git.path, sizeof(git.path)) == 0) {
		r = collect_outer(c, &git, "", top_path);
	}
	cordon_root_done(&git);
	cordon_root_done(&top);
	if (r == 0)
		r = cordon_gitnames_user(&user);
	return r < 0 ? r : cordon_protect_collect(c, "", ".gitattributes");
}

/* Looks for repositories above the root, as git does when it is started in it. */
static int collect_repositories_above(struct cordon_protect_collector *c)
{
	char path[CORDON_PATH_MAX], dot_git[CORDON_PATH_MAX];
	unsigned int found = 0;
	int r = 0;

	if (cordon_copy(path, sizeof(path), c->root->path, strlen(c->root->path)) < 0)
		return 0;
	for (char *slash = strrchr(path, '/'); r == 0 && slash && found < ABOVE_MAX; slash = strrchr(path, '/')) {
		struct stat st;

		*slash = '\0';
		if (cordon_path_join(*path ? path : "/", ".git", dot_git, sizeof(dot_git)) < 0 ||
		    lstat(dot_git, &st) < 0)
			continue;
		r = collect_above(c, *path ? path : "/", st.st_mode);
		found++;
	}
	return r;
}

int cordon_protect_git_root(struct cordon_protect_collector *c)
{
	return collect_git_dir(c, "", NULL, false);
}

/* The files of the worktree `dir` that say what git executes in it. */
static int collect_worktree_files(struct cordon_protect_collector *c, const char *dir)
{
	static const char *const names[] = { ".gitattributes", ".gitmodules" };
	autobuf struct cordon_buf modules = { 0 };
	struct gitmodules data = { c, dir };
	char path[CORDON_PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(names); i++)
		r = cordon_protect_collect(c, dir, names[i]);
	if (r == 0)
		r = cordon_path_join(dir, ".gitmodules", path, sizeof(path));
	if (r == 0)
		r = cordon_protect_read(c, path, CORDON_PROTECT_CONFIG_MAX, &modules);
	if (r != 0)
		return r < 0 ? r : 0;
	return cordon_gitconfig_parse(modules.data, modules.len, on_gitmodules, &data);
}

/* The `.git` of the worktree `dir`, which has one. */
static int collect_dot_git(struct cordon_protect_collector *c, const char *dir)
{
	char pointer[POINTER_MAX], path[CORDON_PATH_MAX], git[CORDON_PATH_MAX];
	int r = cordon_path_join(dir, ".git", path, sizeof(path));

	if (r < 0)
		return r;
	switch (cordon_protect_type_of(c, path)) {
	case CORDON_PROTECT_MISSING:
		return 0;
	case CORDON_PROTECT_DIR:
		return collect_git_dir(c, path, dir, false);
	case CORDON_PROTECT_OTHER:
		return cordon_protect_collect(c, "", path);
	case CORDON_PROTECT_FILE:
		break;
	}
	r = cordon_protect_collect(c, "", path);
	if (r == 0)
		r = read_pointer(c, dir, ".git", "gitdir: ", pointer);
	if (r != 0)
		return r < 0 ? r : 0;
	if (cordon_protect_locate(c, dir, pointer, git) && *git)
		return collect_git_dir(c, git, dir, false);
	return *dir ? 0 : collect_outside(c, c->root, "");
}

int cordon_protect_repository(struct cordon_protect_collector *c, const char *dir, bool bare)
{
	char path[CORDON_PATH_MAX];
	const struct cordon_git_dir user = { c, path, dir, false };
	int r = bare ? cordon_path_join("", dir, path, sizeof(path)) : cordon_path_join(dir, ".git", path, sizeof(path));

	if (r == 0)
		r = bare ? collect_git_dir(c, dir, dir, false) : collect_dot_git(c, dir);
	if (r == 0)
		r = cordon_gitnames_user(&user);
	return r < 0 || bare ? r : collect_worktree_files(c, dir);
}

int cordon_protect_git(struct cordon_protect_collector *c)
{
	const struct cordon_git_dir user = { c, "", "", false };
	int r;

	if (cordon_protect_type_of(c, ".git") != CORDON_PROTECT_MISSING)
		r = cordon_protect_repository(c, "", false);
	else if (cordon_protect_is_git_dir(c, ""))
		r = cordon_protect_repository(c, "", true);
	else
		/* A repository that is made here later obeys the user's configuration. */
		r = cordon_gitnames_user(&user);
	return r < 0 ? r : collect_repositories_above(c);
}
