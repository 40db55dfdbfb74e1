/* SPDX-License-Identifier: Apache-2.0 */
/* Finds repositories that a run made or changed and in which git would execute something. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/time.h"
#include "policy/shares.h"
#include "protect/gitconfig.h"
#include "protect/gitindex.h"
#include "protect/repositories.h"

#define CONFIG_MAX ((size_t)256 << 10)
#define POINTER_MAX CORDON_PATH_MAX
#define INDEX_MAX ((size_t)256 << 20)
#define INDEX_SMALL ((off_t)64 << 10) /* an index up to this size is read even when it did not change */
#define GITLINKS_MAX 1024
#define HOOKS_MAX 256	/* names read in one directory of hooks */
#define MODULES_MAX 256 /* names read in one directory of submodules */
#define MODULES_DEPTH 4
#define NAMES_MAX 512  /* bytes of the report on one repository */
#define DIRS_MAX 65536 /* directories that wait to be read */
#define WAIT_MS 1000   /* for the whole search, however little processor time it got */

struct finder {
	const struct cordon_policy *policy; /* of the root, or of a share */
	const char *share;		    /* its path on the host; NULL for the root */
	struct timespec since;
	int64_t cpu_end;  /* of this thread, in nanoseconds */
	int64_t wall_end; /* in milliseconds of the monotonic clock */
	struct cordon_repositories *found;
	struct cordon_buf names; /* what git would execute in the current repository */
	char **dirs;		 /* a queue */
	size_t first, n, cap;
	char *old[GITLINKS_MAX]; /* gitlinks of the index before the run */
	size_t n_old;
	bool index_changed;
	bool holds; /* repositories that were there before the run */
	bool moved; /* something on the way to the current git directory is new: what lies in it may have come with a move */
};

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The work is bounded by processor time, so that on a busy machine the search finds as much as on a quiet one. The
 * other clock bounds the wait for a slow disk. */
static bool deadline_passed(const struct finder *f)
{
	return cpu_ns() > f->cpu_end || cordon_time_monotonic() > f->wall_end;
}

static bool is_new(const struct finder *f, const struct stat *st)
{
	return st->st_ctim.tv_sec > f->since.tv_sec ||
	       (st->st_ctim.tv_sec == f->since.tv_sec && st->st_ctim.tv_nsec >= f->since.tv_nsec);
}

/* A path that the agent cannot write is as the host left it. */
static bool is_writable(const struct finder *f, const char *path)
{
	CORDON_UNCLEARED struct cordon_decision decision;

	cordon_policy_decide(f->policy, path, CORDON_OP_WRITE, &decision);
	return decision.verdict != CORDON_DENY;
}

static void add_repository(struct finder *f, const char *path, bool gitlink)
{
	struct cordon_repository *item = &f->found->items[f->found->n];
	char absolute[CORDON_PATH_MAX];

	if (f->share && cordon_path_join(f->share, path, absolute, sizeof(absolute)) == 0)
		path = absolute;
	for (size_t i = 0; i < f->found->n && i < CORDON_REPOSITORIES_SHOWN_MAX; i++)
		if (cordon_streq(f->found->items[i].path, path) && f->found->items[i].gitlink == gitlink)
			return;
	if (f->found->n++ >= CORDON_REPOSITORIES_SHOWN_MAX)
		return;
	*item = (struct cordon_repository){ .path = strdup(path), .gitlink = gitlink };
	if (!gitlink && f->names.len)
		item->names = strdup(f->names.data);
	if (!item->path)
		f->found->n--;
}

static void add_name(struct finder *f, const char *name)
{
	/* A name is added once, and left out when it does not fit. */
	if (!f->names.len || !strstr(f->names.data, name))
		cordon_buf_addf(&f->names, "%s%s", f->names.len ? ", " : "", name);
}

static bool is_boolean(const char *value)
{
	static const char *const words[] = { "true", "false", "yes", "no", "on", "off", "1", "0", "" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(words); i++)
		if (strcasecmp(value, words[i]) == 0)
			return true;
	return false;
}

static int on_entry(const struct cordon_gitconfig_entry *entry, void *data)
{
	bool include = (cordon_streq(entry->section, "include") || cordon_streq(entry->section, "includeif")) &&
		       cordon_streq(entry->key, "path");
	bool hooks = cordon_streq(entry->section, "core") && cordon_streq(entry->key, "hookspath");
	char name[3 * CORDON_GITCONFIG_NAME_MAX + 4];

	if (!entry->value || is_boolean(entry->value) || (!include && !hooks && !cordon_gitconfig_is_command(entry)))
		return 0;
	/* Without "!" the value is a command of git itself. */
	if ((cordon_streq(entry->section, "alias") || cordon_streq(entry->key, "update")) && entry->value[0] != '!')
		return 0;
	snprintf(name, sizeof(name), "%s%s%s.%s", entry->section, *entry->subsection ? "." : "", entry->subsection,
		 entry->key);
	add_name(data, name);
	return 0;
}

/* Whether the run made, changed or moved what is at a path. */
static bool is_new_at(const struct finder *f, const char *path)
{
	autofd int fd = cordon_open_beneath(f->policy->root.fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && is_new(f, &st);
}

/* Finds what git would find at a path in a git directory, also through links. False when that is nothing in the root; what is
 * outside of it is added to the report. */
static bool find_own(struct finder *f, const char *path, const char *outside, struct cordon_resolved *ret)
{
	cordon_resolve(&f->policy->root, path, ret);
	if (outside && ret->place == CORDON_PLACE_OUTSIDE && ret->exists && is_writable(f, path) &&
	    (f->moved || is_new_at(f, path)))
		add_name(f, outside);
	return ret->place == CORDON_PLACE_INSIDE && ret->exists;
}

/* Whether what was found at a path is of this run: as a file, by a link, which git makes nowhere in a git directory, or with a
 * directory that was moved. */
static bool is_of_run(const struct finder *f, const char *path, const struct cordon_resolved *found,
		      const struct stat *st)
{
	return is_writable(f, found->path) && (is_new(f, st) || f->moved || !cordon_streq(path, found->path));
}

/* Reads a regular file. Returns -errno when there is none that the agent could have written. */
static int read_own(struct finder *f, const char *path, bool only_new, size_t max, struct cordon_buf *buf)
{
	CORDON_UNCLEARED struct cordon_resolved found;
	autofd int fd = -1;
	struct stat st;

	if (!find_own(f, path, only_new ? "a file outside of the root" : NULL, &found))
		return -ENOENT;
	fd = cordon_open_beneath(f->policy->root.fd, found.path,
				 O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	if (only_new && !is_of_run(f, path, &found, &st))
		return -EUNATCH;
	buf->max = max;
	return cordon_read_fd(fd, path, buf, NULL);
}

static void look_at_config(struct finder *f, const char *dir, const char *name)
{
	autobuf struct cordon_buf text = { 0 };
	char path[CORDON_PATH_MAX];
	int r;

	if (cordon_path_join(dir, name, path, sizeof(path)) < 0)
		return;
	r = read_own(f, path, true, CONFIG_MAX, &text);
	if (r == -E2BIG)
		add_name(f, "a configuration too large to be read");
	else if (r == 0 && text.len)
		cordon_gitconfig_parse(text.data, text.len, on_entry, f);
}

static void look_at_hooks(struct finder *f, const char *git)
{
	CORDON_UNCLEARED struct cordon_resolved found;
	char dir[CORDON_PATH_MAX], path[CORDON_PATH_MAX];
	DIR *stream = NULL;
	size_t n = 0;
	int fd;

	if (cordon_path_join(git, "hooks", dir, sizeof(dir)) < 0 ||
	    !find_own(f, dir, "hooks outside of the root", &found))
		return;
	fd = cordon_open_beneath(f->policy->root.fd, found.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !stream)
		close(fd);
	for (struct dirent *entry; stream && n++ < HOOKS_MAX && (entry = readdir(stream));) {
		const char *dot = strrchr(entry->d_name, '.');
		CORDON_UNCLEARED struct cordon_resolved hook;
		struct stat st;

		if (entry->d_name[0] == '.' || (dot && cordon_streq(dot, ".sample")) ||
		    fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    cordon_path_join(found.path, entry->d_name, hook.path, sizeof(hook.path)) < 0 ||
		    cordon_path_join(dir, entry->d_name, path, sizeof(path)) < 0 || !is_of_run(f, path, &hook, &st))
			continue;
		if (S_ISLNK(st.st_mode) || (S_ISREG(st.st_mode) && st.st_mode & 0111))
			add_name(f, path + strlen(git) + (*git ? 1 : 0));
	}
	if (stream)
		closedir(stream);
}

/* Whether a line of a rebase's list is a command for the shell. */
static bool is_exec(const char *line)
{
	size_t n;

	line += strspn(line, " \t");
	n = strcspn(line, " \t\r\n");
	return (n == 1 && *line == 'x') || (n == 4 && memcmp(line, "exec", n) == 0);
}

/* What a rebase that the host continues would execute. Git keeps the list while it rebases, so a run can write it. */
static void look_at_rebase(struct finder *f, const char *git)
{
	static const char list[] = "rebase-merge/git-rebase-todo";
	autobuf struct cordon_buf text = { 0 };
	char dir[CORDON_PATH_MAX], path[CORDON_PATH_MAX];
	int r = cordon_path_join(git, list, path, sizeof(path));
	bool found;

	if (r == 0)
		r = cordon_path_join(git, "rebase-merge", dir, sizeof(dir));
	if (r == 0) {
		f->moved |= is_new_at(f, dir);
		r = read_own(f, path, true, CONFIG_MAX, &text);
	}
	found = r == -E2BIG;
	for (const char *line = r == 0 ? text.data : NULL; line && !found; line = strchr(line, '\n')) {
		line += *line == '\n';
		found = is_exec(line);
	}
	if (found)
		add_name(f, list);
}

/* Resolves the path in a file such as commondir; false when it leads to nothing in the root. When it leads to
 * something outside, that is added to the report. */
static bool follow(struct finder *f, const char *file, const char *prefix, const char *base, struct cordon_resolved *ret)
{
	autobuf struct cordon_buf text = { 0 };
	char joined[CORDON_PATH_MAX];
	size_t skip = strlen(prefix);

	if (read_own(f, file, false, POINTER_MAX - 1, &text) < 0 || text.len <= skip ||
	    strncmp(text.data, prefix, skip) != 0)
		return false;
	while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.data[--text.len] = '\0';
	if (text.len <= skip ||
	    cordon_path_join(text.data[skip] == '/' ? "" : base, text.data + skip, joined, sizeof(joined)) < 0)
		return false;
	cordon_resolve(&f->policy->root, joined, ret);
	if (ret->place == CORDON_PLACE_OUTSIDE && ret->exists && is_writable(f, file)) {
		autofd int fd = cordon_open_beneath(f->policy->root.fd, file, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 && is_new(f, &st))
			add_name(f, "a git directory outside of the root");
	}
	return ret->place == CORDON_PLACE_INSIDE && ret->exists;
}

static void look_at_git_dir(struct finder *f, const char *git)
{
	CORDON_UNCLEARED struct cordon_resolved common;
	char path[CORDON_PATH_MAX];

	/* One that was there before is held, and nobody moved it. */
	f->moved &= cordon_path_join(git, "config", path, sizeof(path)) == 0 && is_writable(f, path);
	look_at_config(f, git, "config");
	look_at_config(f, git, "config.worktree");
	look_at_hooks(f, git);
	if (cordon_path_join(git, "commondir", path, sizeof(path)) == 0 && follow(f, path, "", git, &common)) {
		f->moved |= f->holds && (is_new_at(f, path) || is_new_at(f, common.path));
		look_at_config(f, common.path, "config");
		look_at_hooks(f, common.path);
	}
	look_at_rebase(f, git);
}

static void begin_names(struct finder *f)
{
	cordon_buf_reset(&f->names);
	f->names.max = NAMES_MAX;
	f->moved = false;
}

/* `path` is the `.git` of a directory, of any type, or a bare repository. */
static void look_at_repository(struct finder *f, const char *path)
{
	CORDON_UNCLEARED struct cordon_resolved git;
	char base[CORDON_PATH_MAX];
	const char *name = cordon_path_base(path);
	struct stat st;

	begin_names(f);
	cordon_resolve(&f->policy->root, path, &git);
	if (git.place != CORDON_PLACE_INSIDE || !git.exists ||
	    fstatat(f->policy->root.fd, *git.path ? git.path : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	/* Git itself changes its directory all the time, so this counts only where no repository that was there before can be
	 * written: and that of the root can't be moved then. */
	f->moved = f->holds && !cordon_streq(path, ".git") && (is_new_at(f, path) || is_new(f, &st));
	if (S_ISDIR(st.st_mode) ||
	    (S_ISREG(st.st_mode) &&
	     cordon_copy(base, sizeof(base), path, name == path ? 0 : (size_t)(name - path) - 1) == 0 &&
	     follow(f, git.path, "gitdir: ", base, &git))) {
		f->moved |= f->holds && !cordon_streq(git.path, ".git") && is_new_at(f, git.path);
		look_at_git_dir(f, git.path);
	}
	if (f->names.len)
		add_repository(f, path, false);
}

/* Git directories of submodules, in modules/NAME, where a name may hold slashes. Git on the host takes one that is there for a
 * submodule of that name which is checked out later. */
static void look_at_modules(struct finder *f, const char *dir, unsigned int depth)
{
	int fd = cordon_open_beneath(f->policy->root.fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	char path[CORDON_PATH_MAX], head[CORDON_PATH_MAX];
	size_t n = 0;

	if (fd >= 0 && !stream)
		close(fd);
	for (struct dirent *entry; stream && n++ < MODULES_MAX && (entry = readdir(stream));) {
		struct stat st;

		if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
		    cordon_path_join(dir, entry->d_name, path, sizeof(path)) < 0 ||
		    cordon_path_join(path, "HEAD", head, sizeof(head)) < 0)
			continue;
		if (fstatat(f->policy->root.fd, head, &st, AT_SYMLINK_NOFOLLOW) == 0)
			look_at_repository(f, path);
		else if (depth > 1)
			look_at_modules(f, path, depth - 1);
	}
	if (stream)
		closedir(stream);
}

static void add_rebase(struct finder *f, const char *git)
{
	begin_names(f);
	look_at_rebase(f, git);
	if (f->names.len)
		add_repository(f, git, false);
}

/* The git directory of a root that is a linked worktree or a submodule: what git executes is held there, but for rebases. */
static void look_at_outer(struct finder *f)
{
	int fd = cordon_open_beneath(f->policy->root.fd, "worktrees", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	char path[CORDON_PATH_MAX];

	add_rebase(f, "");
	if (fd >= 0 && !stream)
		close(fd);
	for (struct dirent *entry; stream && (entry = readdir(stream)) && !deadline_passed(f);)
		if (entry->d_name[0] != '.' && cordon_path_join("worktrees", entry->d_name, path, sizeof(path)) == 0)
			add_rebase(f, path);
	if (stream)
		closedir(stream);
}

/* ---- the index ---- */

static bool is_gitlink(uint32_t mode)
{
	return (mode & CORDON_GITINDEX_TYPE) == CORDON_GITINDEX_GITLINK;
}

static int on_old(void *data, const char *path, uint32_t mode)
{
	struct finder *f = data;

	if (!is_gitlink(mode))
		return 0;
	if (f->n_old == GITLINKS_MAX || !(f->old[f->n_old] = strdup(path)))
		return -E2BIG;
	f->n_old++;
	return 0;
}

static int on_gitlink(void *data, const char *path, uint32_t mode)
{
	struct finder *f = data;
	char clean[CORDON_PATH_MAX], git[CORDON_PATH_MAX];
	bool known = !f->index_changed;

	if (!is_gitlink(mode))
		return 0;
	for (size_t i = 0; i < f->n_old && !known; i++)
		known = cordon_streq(f->old[i], path);
	if (!*path && !known)
		add_repository(f, "an entry of the split index", true);
	if (cordon_path_clean(path, clean, sizeof(clean)) < 0 || !*clean || *clean == '/')
		return 0; /* git does not accept such a path either */
	if (!known)
		add_repository(f, clean, true);
	if (cordon_path_join(clean, ".git", git, sizeof(git)) == 0)
		look_at_repository(f, git);
	return 0;
}

static int parse(struct finder *f, int fd, cordon_gitindex_fn found, char ret_shared[static CORDON_GITINDEX_SHARED_SIZE])
{
	autobuf struct cordon_buf bytes = CORDON_BUF(INDEX_MAX);
	struct stat st;
	int r;

	ret_shared[0] = '\0';
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EBADMSG;
	r = cordon_read_fd(fd, "index", &bytes, NULL);
	return r < 0 ? r : cordon_gitindex_parse(bytes.data ? bytes.data : "", bytes.len, found, f, ret_shared);
}

/* Parses the index and the other half of a split one. Returns -errno when either cannot be read. */
static int parse_both(struct finder *f, int fd, cordon_gitindex_fn found)
{
	char shared[CORDON_GITINDEX_SHARED_SIZE], path[CORDON_GITINDEX_SHARED_SIZE + 8],
		none[CORDON_GITINDEX_SHARED_SIZE];
	autofd int other = -1;
	int r = parse(f, fd, found, shared);

	if (r < 0 || !*shared)
		return r;
	snprintf(path, sizeof(path), ".git/%s", shared);
	other = cordon_open_beneath(f->policy->root.fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	return parse(f, other, found, none);
}

static int open_index(const struct cordon_policy *policy)
{
	return cordon_open_beneath(policy->root.fd, ".git/index",
				   O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
}

static void look_at_index(struct finder *f, int before)
{
	autofd int fd = open_index(f->policy);
	struct stat now, then;

	if (fd < 0 || fstat(fd, &now) < 0)
		return;
	f->index_changed = is_new(f, &now);
	if (!f->index_changed && now.st_size > INDEX_SMALL)
		return;
	/* Git replaces the file, so the old one can still be read. If the file was written in place, the old entries
	 * are lost. */
	if (f->index_changed && before >= 0 && fstat(before, &then) == 0 && then.st_ino != now.st_ino)
		parse_both(f, before, on_old);
	if (parse_both(f, fd, on_gitlink) < 0 && f->index_changed)
		add_repository(f, ".git/index", true);
}

/* ---- the walk ---- */

static void push(struct finder *f, const char *path)
{
	char *copy;

	if (f->n == DIRS_MAX)
		return;
	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 256;
		char **bigger = reallocarray(f->dirs, cap, sizeof(*bigger));

		if (!bigger)
			return;
		f->dirs = bigger;
		f->cap = cap;
	}
	copy = strdup(path);
	if (copy)
		f->dirs[f->n++] = copy;
}

static void read_dir(struct finder *f, const char *dir)
{
	int fd = cordon_open_beneath(f->policy->root.fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	unsigned int bare = 0; /* one bit for each part of a bare repository that exists */
	char path[CORDON_PATH_MAX];
	size_t n = 0;

	if (fd >= 0 && !stream)
		close(fd);
	for (struct dirent *entry; stream && (entry = readdir(stream)) && !(++n % 256 == 0 && deadline_passed(f));) {
		bool is_git = cordon_streq(entry->d_name, ".git");

		bare |= cordon_streq(entry->d_name, "HEAD")	   ? 1u
			: cordon_streq(entry->d_name, "objects")   ? 2u
			: cordon_streq(entry->d_name, "refs")	   ? 4u
			: cordon_streq(entry->d_name, "commondir") ? 6u /* the other parts are elsewhere */
								   : 0u;
		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, "..") ||
		    (!is_git && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
		    cordon_path_join(dir, entry->d_name, path, sizeof(path)) < 0)
			continue;
		if (is_git)
			look_at_repository(f, path);
		else
			push(f, path);
	}
	if (stream)
		closedir(stream);
	if (bare == 7)
		look_at_repository(f, dir);
}

/* Begins with the directories that the agent may write: the folders that grants name, or the whole root. */
static void begin_walk(struct finder *f)
{
	const struct cordon_policy *policy = f->policy;
	bool everywhere = policy->mode == CORDON_MODE_PERMISSIVE || !cordon_policy_has_scope(policy);

	for (size_t i = 0; i < policy->n_grants; i++)
		for (size_t j = 0; j < cordon_pattern_alternatives(policy->grants[i].pattern); j++)
			everywhere |= policy->grants[i].access == CORDON_ACCESS_WRITE &&
				      !cordon_pattern_literal(policy->grants[i].pattern, j);
	if (everywhere)
		push(f, "");
	for (size_t i = 0; !everywhere && i < policy->n_grants; i++)
		for (size_t j = 0; j < cordon_pattern_alternatives(policy->grants[i].pattern); j++)
			if (policy->grants[i].access == CORDON_ACCESS_WRITE)
				push(f, cordon_pattern_literal(policy->grants[i].pattern, j));
}

static bool protects_by_default(const struct cordon_policy *policy)
{
	for (size_t i = 0; i < policy->n_protected; i++)
		if (policy->protected_paths[i].by_default)
			return true;
	return false;
}

void cordon_repositories_begin(const struct cordon_policy *policy, struct cordon_repositories_mark *ret_mark)
{
	/* This is the clock of file times, so no later file has an earlier time. */
	clock_gettime(CLOCK_REALTIME_COARSE, &ret_mark->since);
	ret_mark->index_fd = cordon_policy_has_write(policy) ? open_index(policy) : -1;
}

static void begin_budget(struct finder *f, uint64_t duration_ms)
{
	uint64_t us = duration_ms >= 8000 ? 1000000 : duration_ms * 125 < 200 ? 200 : duration_ms * 125;

	f->cpu_end = cpu_ns() + (int64_t)us * 1000;
	f->wall_end = cordon_time_monotonic() + WAIT_MS;
}

/* Looks for repositories in the root of the policy. */
static void search(struct finder *f)
{
	look_at_repository(f, ".git"); /* first: the walk may end before it, among many names */
	look_at_modules(f, ".git/modules", MODULES_DEPTH);
	f->first = f->n = 0;
	for (begin_walk(f); f->first < f->n && !deadline_passed(f); f->first++)
		read_dir(f, f->dirs[f->first]);
	for (size_t i = 0; i < f->n; i++)
		free(f->dirs[i]);
	f->n = 0;
}

/* Whether a person or a program of the host may work in a share after the run. */
static bool is_of_host(const struct cordon_policy_share *share)
{
	return share->kind == CORDON_SHARE_PLAIN && share->policy && !share->read_only && !share->own &&
	       !share->commits && !share->lower;
}

void cordon_repositories_find(const struct cordon_policy *policy, struct cordon_repositories_mark *mark,
			      unsigned int where, uint64_t duration_ms, struct cordon_repositories *ret)
{
	struct finder *f = calloc(1, sizeof(*f));

	*ret = (struct cordon_repositories){ 0 };
	if (f) {
		f->since = mark->since;
		f->found = ret;
		f->holds = protects_by_default(policy);
		if ((where & CORDON_REPOSITORIES_IN_ROOT) && cordon_policy_has_write(policy)) {
			f->policy = policy;
			begin_budget(f, duration_ms);
			look_at_index(f, mark->index_fd);
			search(f);
		}
		begin_budget(f, duration_ms);
		for (size_t i = 0; (where & CORDON_REPOSITORIES_IN_SHARES) && i < policy->n_shares; i++) {
			const struct cordon_policy_share *share = &policy->shares[i];

			f->policy = share->policy;
			f->share = share->source;
			if (is_of_host(share) && share->git)
				look_at_outer(f);
			else if (is_of_host(share))
				search(f);
		}
		for (size_t i = 0; i < f->n_old; i++)
			free(f->old[i]);
		free(f->dirs);
		cordon_buf_done(&f->names);
	}
	free(f);
	cordon_closep(&mark->index_fd);
}

void cordon_repositories_done(struct cordon_repositories *repositories)
{
	for (size_t i = 0; i < repositories->n && i < CORDON_REPOSITORIES_SHOWN_MAX; i++) {
		free(repositories->items[i].path);
		free(repositories->items[i].names);
	}
	*repositories = (struct cordon_repositories){ 0 };
}

int cordon_repository_text(const struct cordon_repository *repository, struct cordon_buf *ret_text)
{
	if (repository->gitlink && cordon_streq(repository->path, ".git/index"))
		return cordon_buf_addf(
			ret_text, ".git/index was changed, and can't be read here: which gitlinks it has is not known");
	if (repository->gitlink)
		return cordon_buf_addf(ret_text, "%s is a new gitlink in the index: git looks into the repository there",
				       repository->path);
	return cordon_buf_addf(ret_text, "%s was made or changed, and has git execute: %s", repository->path,
			       repository->names ? repository->names : "something");
}
