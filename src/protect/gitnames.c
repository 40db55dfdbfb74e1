/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the files of the root that a git configuration names: hooks, attributes, commands and included files.
 *
 * Three kinds of configuration are read. Those in the root, and those of a git directory outside of it that a file of
 * the root leads to, may be hostile: no path in them leads to another file outside. The user's own ones and the
 * system's are read wherever they lie, and so is what they include. Every condition of an includeIf counts as true.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sys.h"
#include "protect/git.h"
#include "protect/gitconfig.h"
#include "protect/gitnames.h"

#define HOST_FILES_MAX 64 /* of the user and the system, for one repository */
#define HOST_DEPTH_MAX 10 /* of files that include each other, as in git itself */

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

/* The configuration file that is being read. */
struct config_file {
	const struct cordon_git_dir *git;
	char dir[CORDON_PATH_MAX]; /* its directory, relative to the root or absolute */
	size_t *host_left;	   /* how many more files outside of the root may be read; NULL: none */
	unsigned int depth;
};

static int collect_config(const struct config_file *from, const struct cordon_git_dir *git, const char *path);
static int collect_host(const struct config_file *from, const struct cordon_git_dir *git, const char *path);
static int on_entry(const struct cordon_gitconfig_entry *entry, void *data);

/* Whether protecting `path` would make the git directory, or everything, read-only. */
static bool would_cover(const struct cordon_git_dir *git, const char *path)
{
	return !*path || (*git->dir && cordon_path_within(git->dir, path));
}

static int collect_hooks(const struct cordon_git_dir *git, const char *path)
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

/* Whether a word looks like the path of a file below some directory, and like nothing else. */
static bool is_plain_path(const char *word)
{
	return *word != '-' && strchr(word, '/') && !strpbrk(word, "$*?{}[]\\:%~^@,");
}

/* Collects the files of the tree that a command line names, anywhere in it. A first word without a slash is searched
 * on PATH, so it is skipped. With `missing` also those that do not exist yet: the next command would run what an agent
 * puts there. */
static int collect_command(const struct cordon_git_dir *git, const char *command, bool missing)
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
		if (searched || !cordon_protect_locate(git->c, git->worktree, word, path) || !*path)
			continue;
		type = cordon_protect_type_of(git->c, path);
		if (type == CORDON_PROTECT_DIR || (type == CORDON_PROTECT_MISSING && !(missing && is_plain_path(word))))
			continue;
		r = cordon_protect_collect(git->c, "", path);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Reads a configuration file of the git directory outside of the root, by its path in that directory, to find the files
 * of the root that it names. */
int cordon_gitnames_outer(const struct cordon_git_dir *git, const char *path)
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
	return where.place == CORDON_PLACE_INSIDE && *where.path ? cordon_gitnames_outer(file->git, where.path) : 0;
}

/* A file that the user's or the system's configuration includes, and that is not in the root. */
static int collect_host_include(const struct config_file *file, const char *value)
{
	const char *home = getenv("HOME");
	char joined[CORDON_PATH_MAX];

	if (value[0] == '~' && (value[1] != '/' || !home || *home != '/'))
		return 0;
	if (cordon_path_join(value[0] == '~'   ? home
			     : value[0] == '/' ? ""
					       : file->dir,
			     value[0] == '~' ? value + 2 : value, joined, sizeof(joined)) < 0)
		return 0;
	return collect_host(file, file->git, joined);
}

static int collect_include(const struct config_file *file, const char *value)
{
	const struct cordon_git_dir *git = file->git;
	char path[CORDON_PATH_MAX];
	int r;

	if (!cordon_protect_locate(git->c, file->dir, value, path))
		return file->host_left ? collect_host_include(file, value) : collect_outer_include(file, value);
	/* What the user's configuration includes means something else in each repository, so it is read again. */
	if ((cordon_protect_collected(git->c, path) && !file->host_left) ||
	    cordon_protect_type_of(git->c, path) == CORDON_PROTECT_DIR)
		return 0;
	if (file->host_left ? !*file->host_left : git->c->includes_left == 0)
		return -E2BIG;
	(*(file->host_left ? file->host_left : &git->c->includes_left))--;
	r = cordon_protect_collect(git->c, "", path);
	return r < 0 ? r : collect_config(file, git, path);
}

/* A directory whose content git copies into a new repository, hooks included. */
static int collect_template(const struct cordon_git_dir *git, const char *value)
{
	char path[CORDON_PATH_MAX];

	return cordon_protect_locate(git->c, git->worktree, value, path) && !would_cover(git, path)
		       ? cordon_protect_collect(git->c, "", path)
		       : 0;
}

static int on_entry(const struct cordon_gitconfig_entry *entry, void *data)
{
	const struct config_file *file = data;
	const struct cordon_git_dir *git = file->git;
	bool core = cordon_streq(entry->section, "core");
	char path[CORDON_PATH_MAX];

	if (!entry->value)
		return 0;
	if ((cordon_streq(entry->section, "include") || cordon_streq(entry->section, "includeif")) &&
	    cordon_streq(entry->key, "path"))
		return collect_include(file, entry->value);
	if (core && cordon_streq(entry->key, "hookspath"))
		return cordon_protect_locate(git->c, git->worktree, entry->value, path) ? collect_hooks(git, path) : 0;
	if (core && cordon_streq(entry->key, "attributesfile"))
		return cordon_protect_locate(git->c, git->worktree, entry->value, path) &&
				       cordon_protect_type_of(git->c, path) != CORDON_PROTECT_DIR
			       ? cordon_protect_collect(git->c, "", path)
			       : 0;
	if (core && cordon_streq(entry->key, "worktree") && git->is_module)
		return cordon_protect_locate(git->c, git->dir, entry->value, path)
			       ? cordon_protect_submodule(git->c, path)
			       : 0;
	if (cordon_streq(entry->section, "init") && cordon_streq(entry->key, "templatedir"))
		return collect_template(git, entry->value);
	/* An alias without "!" is a command of git itself. */
	return cordon_gitconfig_is_command(entry)
		       ? collect_command(git, entry->value,
					 !cordon_streq(entry->section, "alias") || entry->value[0] == '!')
		       : 0;
}

/* Begins a file that another one includes, or that none does. False when its path is too long. */
static bool begin_file(struct config_file *file, const struct config_file *from, const struct cordon_git_dir *git,
		       const char *path)
{
	const char *base = cordon_path_base(path);

	file->git = git;
	file->host_left = from ? from->host_left : NULL;
	file->depth = from ? from->depth + 1 : 0;
	return file->depth <= HOST_DEPTH_MAX + CORDON_PROTECT_INCLUDES_MAX &&
	       cordon_copy(file->dir, sizeof(file->dir), path, base == path ? 0 : (size_t)(base - path) - 1) == 0;
}

static int collect_config(const struct config_file *from, const struct cordon_git_dir *git, const char *path)
{
	autobuf struct cordon_buf buf = { 0 };
	struct config_file file;
	int r = cordon_protect_read(git->c, path, CORDON_PROTECT_CONFIG_MAX, &buf);

	if (r != 0)
		return r < 0 ? r : 0;
	return begin_file(&file, from, git, path) ? cordon_gitconfig_parse(buf.data, buf.len, on_entry, &file)
						  : -ENAMETOOLONG;
}

int cordon_gitnames_config(const struct cordon_git_dir *git, const char *path)
{
	return collect_config(NULL, git, path);
}

static int on_link(void *data, const char *link, const char *rest)
{
	char clean[CORDON_PATH_MAX];

	return cordon_protect_collect(data, link, cordon_path_clean(rest, clean, sizeof(clean)) < 0 ? "" : clean);
}

/* Reads a file up to the bound of the buffer. -ENOMEM, or 0. */
static int read_start(int fd, struct cordon_buf *text)
{
	CORDON_UNCLEARED char part[4096];
	ssize_t n = 1;

	while (n > 0 && text->len + sizeof(part) < text->max) {
		n = read(fd, part, sizeof(part));
		if (n > 0 && cordon_buf_add(text, part, (size_t)n) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Collects what of the way to a file of the host, and of the file, lies in the root. */
static int collect_way(struct cordon_protect_collector *c, const char *path)
{
	struct cordon_resolved where;
	int r = cordon_resolve_links(c->root, path, on_link, c, &where);

	return r == 0 && where.place == CORDON_PLACE_INSIDE && *where.path ? cordon_protect_collect(c, "", where.path)
									   : r;
}

/* Reads a file of the user or the system. Dotfiles are often links into a repository: what of the way to the file, and
 * of the file, lies in the root is protected. */
static int collect_host(const struct config_file *from, const struct cordon_git_dir *git, const char *path)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_PROTECT_CONFIG_MAX);
	const struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS };
	autofd int fd = cordon_sys_openat2(AT_FDCWD, path, &how, sizeof(how));
	CORDON_UNCLEARED struct config_file file;
	struct stat st;
	int r = 0;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!*from->host_left)
		return -E2BIG;
	(*from->host_left)--;
	/* Without a link on the way, the path says where the file is. */
	if (fd < 0 || cordon_path_within(path, git->c->root->path)) {
		r = collect_way(git->c, path);
		if (fd < 0)
			fd = open(path, (int)how.flags);
	}
	if (r < 0 || fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return r;
	/* The file is the user's own: a large one is read as far as the bound, and stops no run. */
	r = read_start(fd, &text);
	if (r < 0 || !text.len)
		return r;
	/* Git does not go deeper either. */
	if (!begin_file(&file, from, git, path) || file.depth > HOST_DEPTH_MAX)
		return 0;
	return cordon_gitconfig_parse(text.data, text.len, on_entry, &file);
}

static int collect_below(const struct config_file *from, const char *dir, const char *name)
{
	char path[CORDON_PATH_MAX];

	if (!dir || *dir != '/' || cordon_path_join(dir, name, path, sizeof(path)) < 0)
		return 0;
	return collect_host(from, from->git, path);
}

int cordon_gitnames_user(const struct cordon_git_dir *git)
{
	const char *global = getenv("GIT_CONFIG_GLOBAL"), *system = getenv("GIT_CONFIG_SYSTEM");
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	size_t left = HOST_FILES_MAX;
	const struct config_file none = { .git = git, .host_left = &left };
	int r = collect_host(&none, git, "/etc/gitconfig");

	/* The variables replace the files; but another shell may not have them, so both count. */
	if (r == 0 && system && *system == '/')
		r = collect_host(&none, git, system);
	if (r == 0 && global && *global == '/')
		r = collect_host(&none, git, global);
	if (r == 0)
		r = collect_below(&none, config && *config ? config : home,
				  config && *config ? "git/config" : ".config/git/config");
	return r < 0 ? r : collect_below(&none, home, ".gitconfig");
}
