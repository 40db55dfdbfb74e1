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
#include "protect/worktree.h"

#define POINTER_MAX CORDON_PATH_MAX /* bytes of a .git file, commondir or gitdir */

/* The hooks of githooks(5), for a hooks directory that cannot be protected as a whole. */
static const char *const hook_names[] = {
	"applypatch-msg",
	"commit-msg",
	"fsmonitor-watchman",
	"p4-changelist",
	"p4-post-changelist",
	"p4-pre-submit",
	"p4-prepare-changelist",
	"post-applypatch",
	"post-checkout",
	"post-commit",
	"post-index-change",
	"post-merge",
	"post-receive",
	"post-rewrite",
	"post-update",
	"pre-applypatch",
	"pre-auto-gc",
	"pre-commit",
	"pre-merge-commit",
	"pre-push",
	"pre-rebase",
	"pre-receive",
	"prepare-commit-msg",
	"proc-receive",
	"push-to-checkout",
	"reference-transaction",
	"sendemail-validate",
	"update",
};

/* One git directory while its configuration is read. */
struct git_dir {
	struct cordon_protect_collector *c;
	const char *dir;      /* relative to the root; "" for a bare repository */
	const char *worktree; /* where relative paths start, relative to the root; NULL when unknown */
	bool is_module;	      /* below .git/modules, where core.worktree names the directory of its files */
};

/* The configuration file that is being read. */
struct config_file {
	const struct git_dir *git;
	char dir[CORDON_PATH_MAX]; /* its directory */
};

static int collect_git_dir(struct cordon_protect_collector *c, const char *dir, const char *worktree, bool is_module);
static int collect_config(const struct git_dir *git, const char *path);
static int on_entry(const struct cordon_gitconfig_entry *entry, void *data);

/*
 * Reads a regular file of the tree: follows links inside the root, but not those that leave it. Returns 0 with the
 * text, 1 when there is nothing to read, -E2BIG, -ENOMEM.
 */
static int read_text(struct cordon_protect_collector *c, const char *path, size_t max, struct cordon_buf *buf)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	autofd int fd = cordon_names_lack(c->names, path) ? -ENOENT : cordon_open_beneath(c->root->fd, path, flags);
	struct stat st;
	int r;

	if (fd == -ELOOP) {
		struct cordon_resolved where;

		cordon_resolve(c->root, path, &where);
		if (where.place == CORDON_PLACE_INSIDE)
			fd = cordon_open_beneath(c->root->fd, where.path, flags);
	}
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 1;
	buf->max = max < c->bytes_left ? max : c->bytes_left;
	r = cordon_read_regular(fd, &st, path, buf, NULL);
	if (r == -E2BIG || r == -ENOMEM)
		return r;
	c->bytes_left -= buf->len;
	return r < 0 || buf->len == 0 ? 1 : 0;
}

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
	r = read_text(c, path, POINTER_MAX - 1, &buf);
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

/*
 * Finds where a path in git's metadata leads, as a clean path relative to the root; relative paths start at `base`.
 * False when it leaves the root or is not known. Links on the way stay in the path, so that they are protected, too.
 */
static bool locate(const struct cordon_protect_collector *c, const char *base, const char *text,
		   char ret[static CORDON_PATH_MAX])
{
	const char *home = getenv("HOME");
	char joined[CORDON_PATH_MAX];
	struct cordon_resolved where;
	size_t root_len = strlen(c->root->path);

	if (!*text)
		return false;
	if (text[0] == '~') {
		if (text[1] != '/' || !home || cordon_path_join(home, text + 2, joined, sizeof(joined)) < 0)
			return false;
	} else if (text[0] != '/') {
		if (!base || cordon_path_join(base, text, joined, sizeof(joined)) < 0)
			return false;
	} else if (cordon_copy(joined, sizeof(joined), text, strlen(text)) < 0) {
		return false;
	}
	cordon_resolve(c->root, joined, &where);
	if (where.place != CORDON_PLACE_INSIDE)
		return false;
	if (joined[0] == '/' && strncmp(joined, c->root->path, root_len) == 0 && joined[root_len] == '/')
		memmove(joined, joined + root_len + 1, strlen(joined + root_len + 1) + 1);
	/* For another name of the root, or a path with "..", use what it resolves to now. */
	if (joined[0] == '/' || cordon_path_clean(joined, ret, CORDON_PATH_MAX) < 0)
		return cordon_copy(ret, CORDON_PATH_MAX, where.path, strlen(where.path)) == 0;
	return true;
}

/* Whether protecting `path` would make the git directory, or everything, read-only. */
static bool would_cover(const struct git_dir *git, const char *path)
{
	return !*path || (*git->dir && cordon_path_within(git->dir, path));
}

static int collect_hooks(const struct git_dir *git, const char *path)
{
	if (!would_cover(git, path))
		return cordon_protect_collect(git->c, "", path);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(hook_names); i++) {
		int r = cordon_protect_collect(git->c, path, hook_names[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Collects the files of the tree that a command line names, anywhere in it. A first word without a slash is searched
 * on PATH, so it is skipped. */
static int collect_command(const struct git_dir *git, const char *command)
{
	static const char separators[] = " \t\n\r'\"`;|&()<>=!";
	char word[CORDON_PATH_MAX], path[CORDON_PATH_MAX];
	enum cordon_protect_type type;
	bool first = true;

	while (*(command += strspn(command, separators))) {
		size_t n = strcspn(command, separators);
		bool searched;
		int r;

		if (cordon_copy(word, sizeof(word), command, n) < 0)
			return 0;
		command += n;
		searched = first && !strchr(word, '/');
		first = false;
		if (searched || !locate(git->c, git->worktree, word, path))
			continue;
		type = cordon_protect_type_of(git->c, path);
		if (type == CORDON_PROTECT_MISSING || type == CORDON_PROTECT_DIR)
			continue;
		r = cordon_protect_collect(git->c, "", path);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The work tree of a submodule: its `.git` names the git directory that belongs to it. */
static int collect_submodule(struct cordon_protect_collector *c, const char *worktree)
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

/* Reads a configuration file of the git directory outside of the root, by its path in that directory, to find the files
 * of the root that it names. */
static int collect_outer_config(const struct git_dir *git, const char *path)
{
	struct cordon_protect_collector *c = git->c;
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_PROTECT_CONFIG_MAX);
	autofd int fd = cordon_open_beneath(c->outer->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct config_file file = { .git = git };
	const char *base = cordon_path_base(path);
	char dir[CORDON_PATH_MAX];
	struct stat st;
	int r;

	if (c->includes_left == 0)
		return -E2BIG;
	c->includes_left--;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	r = cordon_read_regular(fd, &st, path, &text, NULL);
	if (r < 0)
		return r == -E2BIG || r == -ENOMEM ? r : 0;
	r = cordon_copy(dir, sizeof(dir), path, base == path ? 0 : (size_t)(base - path) - 1);
	if (r == 0)
		r = cordon_path_join(c->outer->path, dir, file.dir, sizeof(file.dir));
	return r < 0 || !text.len ? r : cordon_gitconfig_parse(text.data, text.len, on_entry, &file);
}

/* A file that is not in the root is read only if it is a part of the git directory. */
static int collect_outer_include(const struct config_file *file, const char *value)
{
	const struct cordon_root *outer = file->git->c->outer;
	struct cordon_resolved where;
	char joined[CORDON_PATH_MAX];

	if (!outer || !*value || value[0] == '~' ||
	    cordon_path_join(value[0] == '/' ? "" : file->dir, value, joined, sizeof(joined)) < 0)
		return 0;
	cordon_resolve(outer, joined, &where);
	return where.place == CORDON_PLACE_INSIDE && *where.path ? collect_outer_config(file->git, where.path) : 0;
}

static int collect_include(const struct config_file *file, const char *value)
{
	const struct git_dir *git = file->git;
	char path[CORDON_PATH_MAX];
	int r;

	if (!locate(git->c, file->dir, value, path))
		return collect_outer_include(file, value);
	if (cordon_protect_collected(git->c, path) || cordon_protect_type_of(git->c, path) == CORDON_PROTECT_DIR)
		return 0;
	if (git->c->includes_left == 0)
		return -E2BIG;
	git->c->includes_left--;
	r = cordon_protect_collect(git->c, "", path);
	return r < 0 ? r : collect_config(git, path);
}

static int on_entry(const struct cordon_gitconfig_entry *entry, void *data)
{
	const struct config_file *file = data;
	const struct git_dir *git = file->git;
	bool core = cordon_streq(entry->section, "core");
	char path[CORDON_PATH_MAX];

	if (!entry->value)
		return 0;
	if ((cordon_streq(entry->section, "include") || cordon_streq(entry->section, "includeif")) &&
	    cordon_streq(entry->key, "path"))
		return collect_include(file, entry->value);
	if (core && cordon_streq(entry->key, "hookspath"))
		return locate(git->c, git->worktree, entry->value, path) ? collect_hooks(git, path) : 0;
	if (core && cordon_streq(entry->key, "attributesfile"))
		return locate(git->c, git->worktree, entry->value, path) &&
				       cordon_protect_type_of(git->c, path) != CORDON_PROTECT_DIR
			       ? cordon_protect_collect(git->c, "", path)
			       : 0;
	if (core && cordon_streq(entry->key, "worktree") && git->is_module)
		return locate(git->c, git->dir, entry->value, path) ? collect_submodule(git->c, path) : 0;
	return cordon_gitconfig_is_command(entry) ? collect_command(git, entry->value) : 0;
}

static int collect_config(const struct git_dir *git, const char *path)
{
	autobuf struct cordon_buf buf = { 0 };
	struct config_file file = { .git = git };
	const char *base = cordon_path_base(path);
	int r = read_text(git->c, path, CORDON_PROTECT_CONFIG_MAX, &buf);

	if (r != 0)
		return r < 0 ? r : 0;
	r = cordon_copy(file.dir, sizeof(file.dir), path, base == path ? 0 : (size_t)(base - path) - 1);
	return r < 0 ? r : cordon_gitconfig_parse(buf.data, buf.len, on_entry, &file);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the entries of a directory, sorted, so that the list is the same each time. Each entry reduces *left. */
static int read_names(const struct cordon_protect_collector *c, const char *path, size_t *left, char ***ret_names,
		      size_t *ret_n)
{
	int fd = cordon_names_lack(c->names, path)
			 ? -ENOENT
			 : cordon_open_beneath(c->root->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char **names = NULL;
	struct dirent *entry;
	size_t n = 0, cap = 0;
	int r = 0;

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

static bool is_git_dir(const struct cordon_protect_collector *c, const char *dir)
{
	static const char *const parts[] = { "HEAD", "objects", "refs" };
	char path[CORDON_PATH_MAX];

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(parts); i++)
		if (cordon_path_join(dir, parts[i], path, sizeof(path)) < 0 ||
		    cordon_protect_type_of(c, path) == CORDON_PROTECT_MISSING)
			return false;
	return true;
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
			r = is_git_dir(c, path) ? collect_git_dir(c, path, NULL, true)
						: collect_modules(c, path, depth + 1);
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
	if (r != 0 || !locate(c, dir, pointer, path) || !cordon_streq(cordon_path_base(path), ".git") ||
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
		if (r == 0 && locate(c, way, pointer, path) && cordon_streq(cordon_path_base(path), ".git") &&
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
static int collect_modules_of(const struct git_dir *git)
{
	struct cordon_protect_collector *c = git->c;
	size_t before = c->list.n;
	char path[CORDON_PATH_MAX];
	int r = cordon_path_join(git->dir, "modules", path, sizeof(path));

	if (r == 0 && cordon_protect_type_of(c, path) == CORDON_PROTECT_OTHER)
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
	const struct git_dir git = { c, dir, worktree, is_module };
	char path[CORDON_PATH_MAX], pointer[POINTER_MAX];
	int r = cordon_path_join(dir, "config", path, sizeof(path));

	if (r < 0 || cordon_protect_collected(c, path))
		return r; /* handled already: git directories may point to each other */
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(parts); i++)
		r = cordon_protect_collect(c, dir, parts[i]);
	/* Without HEAD, a .git is no git directory. Then git takes the directory around it for a bare repository if
	 * that has the parts of one. HEAD is the part that no project has, so it is protected. */
	if (r == 0 && worktree && cordon_streq(cordon_path_base(dir), ".git"))
		r = cordon_protect_collect(c, worktree, "HEAD");
	if (r == 0)
		r = collect_config(&git, path);
	if (r == 0 && (r = cordon_path_join(dir, "config.worktree", path, sizeof(path))) == 0)
		r = collect_config(&git, path);
	if (r == 0)
		r = collect_modules_of(&git);
	if (r == 0 && (r = cordon_path_join(dir, "worktrees", path, sizeof(path))) == 0)
		r = collect_worktrees(c, path);
	if (r < 0)
		return r;
	r = read_pointer(c, dir, "commondir", "", pointer);
	if (r != 0)
		return r < 0 ? r : 0;
	return locate(c, dir, pointer, path) && *path ? collect_git_dir(c, path, worktree, false) : 0;
}

static int on_gitmodules(const struct cordon_gitconfig_entry *entry, void *data)
{
	struct cordon_protect_collector *c = data;
	char path[CORDON_PATH_MAX];

	if (!entry->value || !cordon_streq(entry->section, "submodule") || !cordon_streq(entry->key, "path") ||
	    *entry->value == '/' || cordon_path_clean(entry->value, path, sizeof(path)) < 0)
		return 0;
	return collect_submodule(c, path);
}

/* The root is a worktree or submodule whose git directory lies outside. Its configuration names files of the root, such
 * as core.hooksPath does. */
static int collect_outside(struct cordon_protect_collector *c)
{
	const struct git_dir git = { c, "", "", false };
	struct cordon_worktree worktree;
	char path[CORDON_PATH_MAX];
	int r;

	if (!cordon_worktree_find(c->root, &worktree))
		return 0;
	c->outer = &worktree.git;
	r = collect_outer_config(&git, "config");
	if (r == 0 && (r = cordon_path_join(worktree.own, "config.worktree", path, sizeof(path))) == 0)
		r = collect_outer_config(&git, path);
	c->outer = NULL;
	cordon_worktree_done(&worktree);
	return r;
}

int cordon_protect_git_root(struct cordon_protect_collector *c)
{
	return collect_git_dir(c, "", NULL, false);
}

int cordon_protect_git(struct cordon_protect_collector *c)
{
	autobuf struct cordon_buf modules = { 0 };
	char pointer[POINTER_MAX], path[CORDON_PATH_MAX];
	int r = 0;

	switch (cordon_protect_type_of(c, ".git")) {
	case CORDON_PROTECT_MISSING:
		return is_git_dir(c, "") ? collect_git_dir(c, "", "", false) : 0;
	case CORDON_PROTECT_DIR:
		r = collect_git_dir(c, ".git", "", false);
		break;
	case CORDON_PROTECT_FILE:
		r = cordon_protect_collect(c, "", ".git");
		if (r == 0)
			r = read_pointer(c, "", ".git", "gitdir: ", pointer);
		if (r == 0 && locate(c, "", pointer, path) && *path)
			r = collect_git_dir(c, path, "", false);
		else if (r == 0)
			r = collect_outside(c);
		break;
	case CORDON_PROTECT_OTHER:
		r = cordon_protect_collect(c, "", ".git");
		break;
	}
	if (r >= 0)
		r = cordon_protect_collect(c, "", ".gitattributes");
	if (r >= 0)
		r = cordon_protect_collect(c, "", ".gitmodules");
	if (r >= 0)
		r = read_text(c, ".gitmodules", CORDON_PROTECT_CONFIG_MAX, &modules);
	if (r != 0)
		return r < 0 ? r : 0;
	return cordon_gitconfig_parse(modules.data, modules.len, on_gitmodules, c);
}
