/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git would execute, from git's own metadata.
 *
 * A git directory runs what its config says and its hooks hold. Which git directory that is, and which config, is said
 * by a few files that must not change either: a `.git` file, `commondir` (a git directory that has one takes its
 * config from elsewhere; a planted one is enough), and `gitdir` of a worktree. INVARIANT: what is read here decides
 * only what is protected in addition; no path leads out of the root, and nothing is created or run.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "sandbox/gitconfig.h"
#include "sandbox/protect_git.h"

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

/* Keys whose value is a command, in whatever section; all of `alias` and `pager` are too. */
static const char *const command_keys[] = {
	"alternaterefscommand",
	"askpass",
	"clean",
	"cmd",
	"command",
	"difffilter",
	"driver",
	"editor",
	"external",
	"fsmonitor",
	"gitproxy",
	"helper",
	"pager",
	"process",
	"program",
	"receivepack",
	"recentobjectshook",
	"smudge",
	"sshcommand",
	"textconv",
	"tocmd",
	"update",
	"uploadpack",
};

/* One git directory while its configuration is read. */
struct git_dir {
	struct cordon_protect_collector *c;
	const char *dir;      /* relative to the root; "" for a bare repository */
	const char *worktree; /* where relative names start, relative to the root; NULL when unknown */
	bool is_module;	      /* below .git/modules: core.worktree says where its files are */
};

/* The configuration file that is being read. */
struct config_file {
	const struct git_dir *git;
	char dir[CORDON_PATH_MAX]; /* where it lies */
};

static int collect_git_dir(struct cordon_protect_collector *c, const char *dir, const char *worktree, bool is_module);
static int collect_config(const struct git_dir *git, const char *path);

/*
 * Reads a regular file of the tree that is there for everybody: links inside the root are followed, those that leave it
 * are not. 0 with the text, 1 when there is nothing to read, -E2BIG, -ENOMEM.
 */
static int read_text(struct cordon_protect_collector *c, const char *path, size_t max, struct cordon_buf *buf)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	autofd int fd = cordon_open_beneath(c->root->fd, path, flags);
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
	r = cordon_read_fd(fd, path, buf, NULL);
	if (r == -E2BIG || r == -ENOMEM)
		return r;
	c->bytes_left -= buf->len;
	return r < 0 || buf->len == 0 ? 1 : 0;
}

/* A file that holds one path, such as commondir; `prefix` is what stands in front of it. 0, 1 for nothing, -errno. */
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
		return 1; /* git takes no such path either */
	if (r != 0)
		return r;
	while (buf.len > 0 && (buf.data[buf.len - 1] == '\n' || buf.data[buf.len - 1] == '\r'))
		buf.data[--buf.len] = '\0';
	if (strncmp(buf.data, prefix, skip) != 0)
		return 1;
	return cordon_copy(ret, POINTER_MAX, buf.data + skip, strlen(buf.data + skip)) < 0 ? 1 : 0;
}

/*
 * Where a name in git's metadata leads, as a clean path relative to the root: `base` is where relative ones start.
 * False when it leaves the root or cannot be said. Links on the way stay in the path, for whoever protects it to hold
 * them too.
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
	/* Another name of the same place, or one with "..": what it resolves to now. */
	if (joined[0] == '/' || cordon_path_clean(joined, ret, CORDON_PATH_MAX) < 0)
		return cordon_copy(ret, CORDON_PATH_MAX, where.path, strlen(where.path)) == 0;
	return true;
}

/* Whether protecting `path` would make the git directory, or everything, read-only. */
static bool swallows(const struct git_dir *git, const char *path)
{
	return !*path || (*git->dir && cordon_path_within(git->dir, path));
}

static int collect_hooks(const struct git_dir *git, const char *path)
{
	if (!swallows(git, path))
		return cordon_protect_collect(git->c, "", path);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(hook_names); i++) {
		int r = cordon_protect_collect(git->c, path, hook_names[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The files of the tree that a command line names, wherever in it. The first word without a slash is searched on PATH. */
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

static bool is_command(const struct cordon_gitconfig_entry *entry)
{
	if (cordon_streq(entry->section, "alias") || cordon_streq(entry->section, "pager"))
		return true;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(command_keys); i++)
		if (cordon_streq(entry->key, command_keys[i]))
			return true;
	return false;
}

/* A work tree of a submodule: its `.git` says which git directory serves it. */
static int collect_submodule(struct cordon_protect_collector *c, const char *worktree)
{
	char path[CORDON_PATH_MAX];

	if (!*worktree || cordon_path_join(worktree, ".git", path, sizeof(path)) < 0)
		return 0;
	switch (cordon_protect_type_of(c, path)) {
	case CORDON_PROTECT_DIR:
		return collect_git_dir(c, path, worktree, false);
	case CORDON_PROTECT_MISSING:
		/* Not checked out: the directory is there and empty, and a planted .git in it would be obeyed. */
		return cordon_protect_type_of(c, worktree) == CORDON_PROTECT_DIR ? cordon_protect_collect(c, "", path)
										 : 0;
	case CORDON_PROTECT_FILE:
	case CORDON_PROTECT_OTHER:
		break;
	}
	return cordon_protect_collect(c, "", path);
}

static int collect_include(const struct config_file *file, const char *value)
{
	const struct git_dir *git = file->git;
	char path[CORDON_PATH_MAX];
	int r;

	if (!locate(git->c, file->dir, value, path) || cordon_protect_collected(git->c, path) ||
	    cordon_protect_type_of(git->c, path) == CORDON_PROTECT_DIR)
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
	return is_command(entry) ? collect_command(git, entry->value) : 0;
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

/* The entries of a directory, sorted, so that the list is the same each time. Each one is taken from *left. */
static int read_names(const struct cordon_protect_collector *c, const char *path, size_t *left, char ***ret_names,
		      size_t *ret_n)
{
	int fd = cordon_open_beneath(c->root->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char **names = calloc(CORDON_PROTECT_MODULES_MAX + 1, sizeof(*names));
	struct dirent *entry;
	size_t n = 0;
	int r = names ? 0 : -ENOMEM;

	if (fd >= 0 && !dir)
		close(fd);
	while (r == 0 && dir && (entry = readdir(dir))) {
		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
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

/* One linked worktree. */
static int collect_worktree(struct cordon_protect_collector *c, const char *dir)
{
	static const char *const inside[] = { "commondir", "gitdir", "config.worktree" };
	char pointer[POINTER_MAX], path[CORDON_PATH_MAX];
	int r = read_pointer(c, dir, "gitdir", "", pointer);

	if (r < 0)
		return r;
	/* Its files are not in the root: nobody inside has any business with it, and git's own housekeeping, which
	 * does not see them, would throw it away. */
	if (r != 0 || !locate(c, dir, pointer, path) || !cordon_streq(cordon_path_base(path), ".git") ||
	    cordon_protect_type_of(c, path) == CORDON_PROTECT_DIR)
		return cordon_protect_collect(c, "", dir);
	r = cordon_protect_collect(c, "", path);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(inside); i++)
		r = cordon_protect_collect(c, dir, inside[i]);
	return r;
}

static int collect_worktrees(struct cordon_protect_collector *c, const char *dir)
{
	char **names = NULL, path[CORDON_PATH_MAX];
	size_t n = 0;
	int r;

	if (cordon_protect_type_of(c, dir) == CORDON_PROTECT_OTHER)
		return cordon_protect_collect(c, "", dir);
	r = read_names(c, dir, &c->worktrees_left, &names, &n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = cordon_path_join(dir, names[i], path, sizeof(path));
		if (r == 0)
			r = collect_worktree(c, path);
	}
	free_names(names, n);
	return r;
}

/* Modules, or the directory of them as a whole when they are too many or too deep; submodules of submodules leave that
 * to the outermost. What is spent stays spent, so that the work is bounded. */
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
		return r; /* seen: pointers may go in circles */
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(parts); i++)
		r = cordon_protect_collect(c, dir, parts[i]);
	/* A .git without its own HEAD is none, and then git takes the directory around it for a bare repository, if it
	 * has the parts of one; HEAD is the part that no project has. */
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
