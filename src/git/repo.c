/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's repository, as far as taking over commits needs to know it. An agent of an earlier run may have written what
 * is read here: only regular files are read, within bounds, no link is followed, and of the configuration only settings
 * that name no program and no place count.
 */
#include <dirent.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/name_list.h"
#include "base/path.h"
#include "base/setting.h"
#include "config/profile.h"
#include "git/internal.h"
#include "protect/gitconfig.h"
#include "protect/gitindex.h"
#include "protect/worktree.h"

#define CONFIG_MAX ((size_t)256 << 10)
#define ALTERNATES_MAX ((size_t)64 << 10)
#define HEAD_MAX 4096
#define INDEX_MAX ((size_t)256 << 20)
#define VALUE_MAX 2048
#define WORKTREES_MAX 1024

/* ---- opening ---- */

static int open_git_dir(const struct cordon_root *root, struct cordon_git_repo *repo, struct cordon_error *err)
{
	struct stat st;

	repo->common_fd = cordon_open_beneath(root->fd, ".git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (repo->common_fd < 0)
		return cordon_fail_errno(err, repo->common_fd, "cannot open .git");
	if (fstatat(repo->common_fd, "commondir", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return cordon_fail(err, -ENOTSUP, CORDON_KIND_POLICY_DENIED,
				   ".git has a file commondir: git would take its configuration from elsewhere");
	repo->in_root = true;
	return cordon_path_join(root->path, ".git", repo->common, sizeof(repo->common)) < 0
		       ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", root->path)
		       : 0;
}

static int open_elsewhere(const struct cordon_root *root, struct cordon_git_repo *repo, struct cordon_error *err)
{
	struct cordon_worktree worktree;
	int r = 0;

	if (!cordon_worktree_find(root, &worktree)) {
		cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
			    ".git is a file that leads to a directory which does not name this root");
		cordon_error_hint(err, "'git worktree repair' mends the two paths");
		return -EPERM;
	}
	repo->common_fd = openat(worktree.git.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	repo->module = !*worktree.own;
	if (repo->common_fd < 0 ||
	    cordon_copy(repo->common, sizeof(repo->common), worktree.git.path, strlen(worktree.git.path)) < 0 ||
	    cordon_copy(repo->own, sizeof(repo->own), worktree.own, strlen(worktree.own)) < 0)
		r = cordon_fail_errno(err, -errno, "cannot open %s", worktree.git.path);
	cordon_worktree_done(&worktree);
	return r;
}

/* ---- directories of objects ---- */

static int add_objects(struct cordon_git_repo *repo, const char *path, struct cordon_error *err)
{
	for (size_t i = 0; i < repo->n_objects; i++)
		if (cordon_streq(repo->objects[i], path))
			return 0;
	if (repo->n_objects == CORDON_GIT_ALTERNATES_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the repository has more than %d alternates",
				   CORDON_GIT_ALTERNATES_MAX);
	if (!(repo->objects[repo->n_objects] = strdup(path)))
		return cordon_fail_errno(err, -ENOMEM, "repository");
	repo->n_objects++;
	return 0;
}

/* Whoever can write the list of alternates could name the objects of any repository, so only those in the root count. */
static int add_alternate(struct cordon_git_repo *repo, const char *base, const char *line, struct cordon_error *err)
{
	CORDON_UNCLEARED char joined[CORDON_PATH_MAX], path[CORDON_PATH_MAX];
	CORDON_UNCLEARED struct cordon_resolved found;

	if (!*line || *line == '#')
		return 0;
	if (cordon_path_join(*line == '/' ? "" : base, line, joined, sizeof(joined)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", line);
	cordon_resolve(repo->root, joined, &found);
	if (*line != '"' && found.place == CORDON_PLACE_INSIDE && found.exists &&
	    cordon_path_join(repo->root->path, found.path, path, sizeof(path)) == 0)
		return add_objects(repo, path, err);
	cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
		    "the repository borrows objects from %s, which lies outside the root", line);
	cordon_error_hint(err, "'git repack -a -d', then remove objects/info/alternates of its git directory");
	return -EPERM;
}

static int add_alternates(struct cordon_git_repo *repo, const char *base, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(ALTERNATES_MAX);
	autofd int dir = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	autofd int info = dir < 0 ? -1 : openat(dir, "info", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = info < 0 ? -ENOENT : cordon_read_file(info, "alternates", O_NOFOLLOW, &text, err);

	if (dir < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", base);
	if (r == -ENOENT)
		return 0;
	for (char *line = text.data; r == 0 && line && *line;) {
		size_t n = strcspn(line, "\n");
		char *next = line + n + (line[n] == '\n');

		line[n] = '\0';
		r = add_alternate(repo, base, line, err);
		line = next;
	}
	return r;
}

static int find_objects(struct cordon_git_repo *repo, struct cordon_error *err)
{
	char path[CORDON_PATH_MAX];
	int r = cordon_path_join(repo->common, "objects", path, sizeof(path)) < 0
			? cordon_fail_errno(err, -ENAMETOOLONG, "%s", repo->common)
			: add_objects(repo, path, err);

	for (size_t i = 0; r == 0 && i < repo->n_objects; i++)
		r = add_alternates(repo, repo->objects[i], err);
	return r;
}

/* Ends the opening of a repository whose directory is open, or releases it. */
static int open_rest(struct cordon_git_repo *repo, int r, struct cordon_git_repo *ret_repo, struct cordon_error *err)
{
	if (r == 0) {
		repo->own_fd = cordon_open_beneath(repo->common_fd, repo->own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = repo->own_fd < 0 ? cordon_fail_errno(err, repo->own_fd, "cannot open %s", repo->own) : 0;
	}
	if (r == 0)
		r = find_objects(repo, err);
	if (r == 0 && !cordon_program_on_path("git", getenv("PATH"), repo->root->path, repo->git)) {
		r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "git is not installed");
		cordon_error_hint(err, "install it, or leave out %s", cordon_setting_name(CORDON_SETTING_GIT));
	}
	if (r < 0) {
		cordon_git_repo_done(repo);
		return r;
	}
	*ret_repo = *repo;
	return 0;
}

int cordon_git_repo_open_bare(const struct cordon_root *root, struct cordon_git_repo *ret_repo, struct cordon_error *err)
{
	struct cordon_git_repo repo = CORDON_GIT_REPO_NONE;
	struct stat head, objects, refs;

	if (fstatat(root->fd, "HEAD", &head, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(head.st_mode) ||
	    fstatat(root->fd, "objects", &objects, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(objects.st_mode) ||
	    fstatat(root->fd, "refs", &refs, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(refs.st_mode))
		return 1;
	repo.root = root;
	repo.common_fd = openat(root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (repo.common_fd < 0 || cordon_copy(repo.common, sizeof(repo.common), root->path, strlen(root->path)) < 0)
		return cordon_fail_errno(err, repo.common_fd < 0 ? -errno : -ENAMETOOLONG, "cannot open %s", root->path);
	return open_rest(&repo, 0, ret_repo, err);
}

int cordon_git_repo_open(const struct cordon_root *root, struct cordon_git_repo *ret_repo, struct cordon_error *err)
{
	struct cordon_git_repo repo = CORDON_GIT_REPO_NONE;
	struct stat st;
	int r;

	repo.root = root;
	if (fstatat(root->fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 1 : cordon_fail_errno(err, -errno, "cannot stat .git");
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, ".git is neither a directory nor a file");
	r = S_ISDIR(st.st_mode) ? open_git_dir(root, &repo, err) : open_elsewhere(root, &repo, err);
	return open_rest(&repo, r, ret_repo, err);
}

void cordon_git_repo_done(struct cordon_git_repo *repo)
{
	for (size_t i = 0; i < repo->n_objects; i++)
		free(repo->objects[i]);
	repo->n_objects = 0;
	cordon_closep(&repo->common_fd);
	cordon_closep(&repo->own_fd);
}

/* ---- configuration ---- */

/* The settings that are copied; a section with a sub-section has "*". None names a program. */
static const struct {
	const char *section, *key;
	bool sub, remotes;
} copied[] = {
	{ "core", "filemode", false, false },
	{ "core", "ignorecase", false, false },
	{ "core", "precomposeunicode", false, false },
	{ "core", "symlinks", false, false },
	{ "core", "autocrlf", false, false },
	{ "core", "eol", false, false },
	{ "core", "safecrlf", false, false },
	{ "core", "sparsecheckout", false, false },
	{ "core", "sparsecheckoutcone", false, false },
	{ "core", "untrackedcache", false, true },
	{ "core", "commentchar", false, true },
	{ "core", "whitespace", false, true },
	{ "core", "quotepath", false, true },
	{ "core", "abbrev", false, true },
	{ "i18n", "commitencoding", false, true },
	{ "user", "name", false, true },
	{ "user", "email", false, true },
	{ "remote", "url", true, true },
	{ "remote", "pushurl", true, true },
	{ "remote", "fetch", true, true },
	{ "branch", "remote", true, true },
	{ "branch", "merge", true, true },
	{ "branch", "rebase", true, true },
	{ "pull", "rebase", false, true },
	{ "pull", "ff", false, true },
	{ "push", "default", false, true },
	{ "merge", "conflictstyle", false, true },
	{ "rebase", "autosquash", false, true },
	{ "rebase", "autostash", false, true },
};

struct config {
	const struct cordon_git_repo *repo;
	struct cordon_buf *text; /* NULL: only look */
	bool remotes;
	char format[32]; /* extensions.objectformat */
	bool worktree_config, bare, worktree, split;
	char unknown[128]; /* an extension that is not known */
};

static bool is_plain(const char *value)
{
	if (strlen(value) > VALUE_MAX)
		return false;
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			return false;
	return true;
}

static int add_quoted(struct cordon_buf *text, const char *value)
{
	int r = cordon_buf_addc(text, '"');

	for (; r == 0 && *value; value++) {
		if (*value == '"' || *value == '\\')
			r = cordon_buf_addc(text, '\\');
		if (r == 0)
			r = cordon_buf_addc(text, *value);
	}
	return r < 0 ? r : cordon_buf_addc(text, '"');
}

static int copy_entry(const struct config *config, const struct cordon_gitconfig_entry *entry)
{
	const char *value = entry->value ? entry->value : "true";
	int r;

	if (!is_plain(value) || !is_plain(entry->subsection))
		return 0;
	r = cordon_buf_addf(config->text, "[%s", entry->section);
	if (r == 0 && *entry->subsection) {
		r = cordon_buf_addc(config->text, ' ');
		r = r < 0 ? r : add_quoted(config->text, entry->subsection);
	}
	r = r < 0 ? r : cordon_buf_addf(config->text, "]\n\t%s = ", entry->key);
	r = r < 0 ? r : add_quoted(config->text, value);
	return r < 0 ? r : cordon_buf_addc(config->text, '\n');
}

static bool is_true(const char *value)
{
	return !value || strcasecmp(value, "true") == 0 || strcasecmp(value, "yes") == 0 ||
	       strcasecmp(value, "on") == 0 || (*value >= '1' && *value <= '9');
}

static void on_extension(struct config *config, const struct cordon_gitconfig_entry *entry)
{
	const char *value = entry->value ? entry->value : "";
	bool known = cordon_streq(entry->key, "noop") || cordon_streq(entry->key, "preciousobjects");

	if (cordon_streq(entry->key, "worktreeconfig")) {
		config->worktree_config = is_true(entry->value);
	} else if (cordon_streq(entry->key, "objectformat") &&
		   (cordon_streq(value, "sha1") || cordon_streq(value, "sha256"))) {
		cordon_copy(config->format, sizeof(config->format), value, strlen(value));
	} else if (!known && !(cordon_streq(entry->key, "refstorage") && cordon_streq(value, "files"))) {
		if (cordon_copy(config->unknown, sizeof(config->unknown), entry->key, strlen(entry->key)) < 0)
			memcpy(config->unknown, "of an unknown kind", 19);
	}
}

static int on_entry(const struct cordon_gitconfig_entry *entry, void *data)
{
	struct config *config = data;
	bool core = cordon_streq(entry->section, "core") && !*entry->subsection;

	if (core && cordon_streq(entry->key, "bare"))
		config->bare = is_true(entry->value);
	if (core && cordon_streq(entry->key, "worktree"))
		config->worktree = true;
	if (core && cordon_streq(entry->key, "splitindex"))
		config->split = is_true(entry->value);
	if (cordon_streq(entry->section, "extensions") && !*entry->subsection)
		on_extension(config, entry);
	if (cordon_streq(entry->section, "remote") && cordon_streq(entry->key, "promisor") && is_true(entry->value))
		memcpy(config->unknown, "partialclone", 13);
	for (size_t i = 0; config->text && i < CORDON_ARRAY_SIZE(copied); i++)
		if (cordon_streq(entry->section, copied[i].section) && cordon_streq(entry->key, copied[i].key) &&
		    copied[i].sub == !!*entry->subsection && (config->remotes || !copied[i].remotes))
			return copy_entry(config, entry);
	return 0;
}

static int read_config(struct config *config, int dir, const char *name, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CONFIG_MAX);
	int r = cordon_read_file(dir, name, O_NOFOLLOW, &text, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = text.len ? cordon_gitconfig_parse(text.data, text.len, on_entry, config) : 0;
	return r < 0 ? cordon_fail_errno(err, r, "cannot read the repository's configuration") : 0;
}

static int read_configs(struct config *config, struct cordon_error *err)
{
	int r = read_config(config, config->repo->common_fd, "config", err);

	return r < 0 || !config->worktree_config ? r : read_config(config, config->repo->own_fd, "config.worktree", err);
}

int cordon_git_repo_config(const struct cordon_git_repo *repo, bool remotes, struct cordon_buf *ret_text,
			   struct cordon_error *err)
{
	struct config config = { .repo = repo, .text = ret_text, .remotes = remotes };
	int r;

	ret_text->max = 4 * CONFIG_MAX;
	/* Sections may come in any number; what git must know first is added at the end. */
	r = read_configs(&config, err);
	if (r < 0)
		return r;
	r = cordon_buf_addf(ret_text,
			    "[core]\n\trepositoryformatversion = %d\n\tbare = false\n\tlogallrefupdates = true\n",
			    *config.format ? 1 : 0);
	if (r == 0 && *config.format)
		r = cordon_buf_addf(ret_text, "[extensions]\n\tobjectformat = %s\n", config.format);
	/* A submodule's git directory says where its files are. */
	if (r == 0 && repo->module && remotes) {
		r = cordon_buf_adds(ret_text, "[core]\n\tworktree = ");
		r = r < 0 ? r : add_quoted(ret_text, repo->root->path);
		r = r < 0 ? r : cordon_buf_addc(ret_text, '\n');
	}
	return r < 0 ? cordon_fail_errno(err, r, "cannot write a configuration") : 0;
}

static int ignore_entry(void *data, const char *path, uint32_t mode)
{
	(void)data;
	(void)path;
	(void)mode;
	return 0;
}

/* Whether a part of the index is in another file, whatever the configuration says by now. Without such a file nothing has to be
 * read. */
static bool has_split_index(const struct cordon_git_repo *repo)
{
	autobuf struct cordon_buf index = CORDON_BUF(INDEX_MAX);
	autonames struct cordon_name_list names = { 0 };
	char shared[CORDON_GITINDEX_SHARED_SIZE] = "";
	bool any = false;

	if (cordon_name_list_read(repo->own_fd, &names) < 0)
		return false;
	for (size_t i = 0; i < names.n; i++)
		any |= strncmp(names.name[i], "sharedindex.", 12) == 0;
	if (!any || cordon_read_file(repo->own_fd, "index", O_NOFOLLOW, &index, NULL) < 0 || !index.len)
		return false;
	return cordon_gitindex_parse(index.data, index.len, ignore_entry, NULL, shared) == 0 && *shared;
}

int cordon_git_repo_usable(const struct cordon_git_repo *repo, struct cordon_error *err)
{
	static const struct {
		const char *name, *what;
	} unfinished[] = {
		{ "MERGE_HEAD", "merge" },     { "CHERRY_PICK_HEAD", "cherry-pick" }, { "REVERT_HEAD", "revert" },
		{ "rebase-merge", "rebase" },  { "rebase-apply", "rebase" },	      { "sequencer", "cherry-pick" },
		{ "BISECT_LOG", "bisection" },
	};
	struct config config = { .repo = repo };
	struct stat st;
	int r = read_configs(&config, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(unfinished); i++) {
		if (fstatat(repo->own_fd, unfinished[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "the repository is in the middle of a %s",
			    unfinished[i].what);
		cordon_error_hint(err, "end it first, or leave the repository as it is with %s read",
				  cordon_setting_name(CORDON_SETTING_GIT));
		return -EBUSY;
	}
	config.split = config.split || has_split_index(repo);
	if (!*config.unknown && !(config.bare && !*repo->own) && !(config.worktree && !repo->module) && !config.split)
		return 0;
	r = cordon_fail(err, -ENOTSUP, CORDON_KIND_POLICY_DENIED, "%s: a run can't get a copy of such a repository",
			*config.unknown		     ? "the repository has an extension that is not known here"
			: config.split		     ? "the repository has a split index"
			: config.bare && !*repo->own ? "the repository says that it is bare"
						     : "the repository has its files elsewhere (core.worktree)");
	cordon_error_hint(err, "use %s read%s%s", cordon_setting_name(CORDON_SETTING_GIT),
			  *config.unknown ? "; the extension is " : "", config.unknown);
	return r;
}

/* ---- HEAD and worktrees ---- */

int cordon_git_repo_head(const struct cordon_git_repo *repo, struct cordon_buf *ret_text, struct cordon_error *err)
{
	return cordon_git_head_read(repo->own_fd, ret_text, err);
}

/* Whether HEAD of a git directory leads to this branch. */
static bool has_branch(int dir, const char *branch)
{
	autobuf struct cordon_buf head = CORDON_BUF(HEAD_MAX);

	return cordon_git_head_read(dir, &head, NULL) == 0 && strncmp(head.data, "ref: ", 5) == 0 &&
	       cordon_streq(head.data + 5, branch);
}

void cordon_git_repo_in_use(const struct cordon_git_repo *repo, const char *branch, char ret[static CORDON_PATH_MAX])
{
	int fd = openat(repo->common_fd, "worktrees", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;

	ret[0] = '\0';
	if (fd >= 0 && !dir)
		close(fd);
	if (*repo->own && has_branch(repo->common_fd, branch))
		cordon_copy(ret, CORDON_PATH_MAX, "the main worktree", 17);
	for (struct dirent *entry; dir && !*ret && n < WORKTREES_MAX && (entry = readdir(dir)); n++) {
		autofd int one = -1;

		if (entry->d_name[0] == '.' || (*repo->own && cordon_streq(cordon_path_base(repo->own), entry->d_name)))
			continue;
		one = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (one >= 0 && has_branch(one, branch))
			cordon_concat(ret, CORDON_PATH_MAX, "the worktree ", entry->d_name, (char *)NULL);
	}
	if (dir)
		closedir(dir);
}
