/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a run the repository in the mode that was asked for, and makes the git directory of its own for `commit`. */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/home.h"
#include "base/io.h"
#include "base/overlay.h"
#include "base/path.h"
#include "base/setting.h"
#include "git/internal.h"
#include "policy/shares.h"

/* ---- names in a tree ---- */

/* Where a record may have one. */
static const char *const places[] = {
	CORDON_GIT_DIR "/index",
	CORDON_GIT_START "/index",
	CORDON_GIT_START "/" CORDON_GIT_LOWER "/index",
	CORDON_GIT_START "/" CORDON_GIT_LEFT "/index",
	CORDON_GIT_TAKE "/index",
};

static void count_in(int records, struct cordon_kept_names *kept)
{
	DIR *dir = fdopendir(records);

	if (!dir) {
		close(records);
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		for (size_t i = 0; cordon_uuid_valid(entry->d_name) && i < CORDON_ARRAY_SIZE(places); i++) {
			char path[CORDON_UUID_SIZE + 64];
			struct stat st;

			if (cordon_concat(path, sizeof(path), entry->d_name, "/", places[i], (char *)NULL) == 0 &&
			    fstatat(records, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == kept->dev &&
			    st.st_ino == kept->ino)
				kept->n++;
		}
	}
	closedir(dir);
}

/* A view and a run that commits keep the index of their start by a second name. Tells the policy how many such
 * names there are, so that nobody copies the host's index apart from them. */
static void git_count_names(struct cordon_policy *policy)
{
	static const char *const records[] = { "views", "git" };
	struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_kept_names kept = { 0 };
	struct stat st;

	if (fstatat(policy->root.fd, ".git/index", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_nlink < 2 || cordon_home_open(&home, NULL) < 0)
		return;
	kept.dev = st.st_dev;
	kept.ino = st.st_ino;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(records); i++) {
		int fd = openat(home.state_fd, records[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0)
			count_in(fd, &kept);
	}
	cordon_home_done(&home);
	policy->kept = kept;
}

/* ---- the git directory ---- */

#define INDEX_MAX ((uint64_t)4 << 30)
#define SMALL_MAX ((uint64_t)16 << 20)
#define OBJECTS_AT "/run/git-objects"

/* ---- modes ---- */

/* "--git read", as the user writes it. */
static const char *name_of(cordon_git_mode mode, char ret[static 64])
{
	snprintf(ret, 64, "%s %s", cordon_setting_name(CORDON_SETTING_GIT), cordon_git_mode_name(mode));
	return ret;
}

static bool has_git(const struct cordon_policy *policy)
{
	struct stat st;

	return fstatat(policy->root.fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool denies(const struct cordon_policy *policy)
{
	for (size_t i = 0; i < policy->n_grants; i++)
		if (policy->grants[i].access == CORDON_ACCESS_NONE)
			return true;
	return false;
}

cordon_git_mode cordon_git_mode_choose(const struct cordon_policy *policy, cordon_git_mode asked, bool view,
				       struct cordon_error *ret_why)
{
	struct cordon_git_repo repo = CORDON_GIT_REPO_NONE;
	int r;

	*ret_why = (struct cordon_error){ 0 };
	if (asked != CORDON_GIT_DEFAULT || !has_git(policy))
		return asked;
	if (view) {
		r = cordon_git_repo_open(&policy->root, &repo, ret_why);
		if (r == 0)
			r = cordon_git_repo_usable(&repo, ret_why);
		cordon_git_repo_done(&repo);
		if (r == 0)
			*ret_why = (struct cordon_error){ 0 };
		return r < 0 ? CORDON_GIT_READ : CORDON_GIT_COMMIT;
	}
	/* The history shows what the policy hides by name. */
	return policy->folders && policy->mode == CORDON_MODE_STRICT && !denies(policy) ? CORDON_GIT_READ
											: CORDON_GIT_DEFAULT;
}

/* Removes the git directory of a linked worktree that came along as a share; it was added last. */
static void drop_worktree_share(struct cordon_policy *policy)
{
	while (policy->n_shares && policy->shares[policy->n_shares - 1].git)
		cordon_policy_drop_shares(policy, policy->n_shares - 1);
}

/* Who asks for the repository gets it, whatever else is hidden. Where nobody asked, a fence hides it. */
static int read_only(struct cordon_policy *policy, bool asked, struct cordon_error *err)
{
	size_t last = policy->n_shares ? policy->n_shares - 1 : 0;
	char where[64];
	struct cordon_policy_share *share = policy->n_shares && policy->shares[last].git ? &policy->shares[last] : NULL;
	int r = 0;

	name_of(CORDON_GIT_READ, where);
	if (share && !share->read_only) {
		autofree char *source = strdup(share->source);

		if (!source)
			return cordon_fail_errno(err, -ENOMEM, "policy");
		drop_worktree_share(policy);
		r = cordon_policy_add_git_share(policy, source, true, err);
		if (r < 0)
			return r;
	}
	if (asked)
		r = cordon_policy_add_grant_in_all(policy, ".git", CORDON_ACCESS_READ, where, err);
	else if (cordon_policy_has_scope(policy))
		r = cordon_policy_add_grant(policy, ".git", CORDON_ACCESS_READ, where, err);
	if (r < 0 || cordon_policy_has_scope(policy))
		return r;
	git_count_names(policy);
	return cordon_policy_add_protected(policy, ".git", where, false, err);
}

/* ---- copies ---- */

static int copy_file(int from, const char *name, int to, uint64_t max, struct cordon_error *err)
{
	autofd int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), out = -1;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	r = out < 0 ? -errno : cordon_copy_bytes(in, out, &max);
	return r < 0 ? cordon_fail_errno(err, r, "cannot copy %s", name) : 0;
}

static int make_dir(int at, const char *path, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = -1;

	if (mkdirat(at, path, 0755) < 0 && errno != EEXIST)
		return cordon_fail_errno(err, -errno, "cannot make %s", path);
	if (!ret_fd)
		return 0;
	fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", path);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

static int write_text(int dir, const char *name, const char *text, struct cordon_error *err)
{
	autofd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : cordon_write_all(fd, text, strlen(text));

	return r < 0 ? cordon_fail_errno(err, r, "cannot write %s", name) : 0;
}

/* ---- the git directory of the run ---- */

struct making {
	const struct cordon_git_repo *repo;
	const struct cordon_git_begin *ask;
	int record_fd;
	bool layered;		      /* RECORD/git has only what the run changes */
	int git_fd;		      /* where the directory is made */
	int start_fd;		      /* RECORD/git-start */
	struct cordon_buf refs, head; /* as they are now */
};

static void making_done(struct making *m)
{
	cordon_closep(&m->record_fd);
	cordon_closep(&m->git_fd);
	cordon_closep(&m->start_fd);
	cordon_buf_done(&m->refs);
	cordon_buf_done(&m->head);
}

/* The refs as git sees them: a list for later, and the same list as packed refs of the run. */
static int copy_refs(struct making *m, struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_git_refs_done) struct cordon_git_refs refs = { 0 };
	int r = cordon_git_refs_read(m->repo->common_fd, true, &refs, err);

	m->refs.max = CORDON_GIT_REFS_BYTES;
	for (size_t i = 0; r == 0 && i < refs.n; i++) {
		r = cordon_buf_addf(&m->refs, "%s %s\n", refs.items[i].id, refs.items[i].name);
		if (r < 0)
			return cordon_fail_errno(err, r, "the refs of the repository");
	}
	return r < 0 ? r : write_text(m->git_fd, "packed-refs", m->refs.data ? m->refs.data : "", err);
}

/* Gives a file of the repository's, which nobody writes into, a second name; where that can't be, copies it. */
static int link_index(const struct making *m, int to, struct cordon_error *err)
{
	struct stat st;
	int r = 0;

	if (linkat(m->repo->own_fd, "index", to, "index", 0) < 0 && errno != ENOENT)
		r = copy_file(m->repo->own_fd, "index", to, INDEX_MAX, err);
	if (r == 0 && fstatat(to, "index", &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		unlinkat(to, "index", 0);
	return r;
}

/*
 * The index. Git never writes into it, it replaces it. So a second name keeps the one of the start for us, and
 * costs nothing. In a view that is also what the run begins with: it can't write to what lies below its changes. Else it
 * gets a copy, which is for nothing where a file system can share blocks.
 */
static int copy_index(const struct making *m, int to, struct cordon_error *err)
{
	int r;

	if (m->layered)
		return link_index(m, to, err);
	r = link_index(m, m->start_fd, err);
	return r < 0 ? r : copy_file(m->start_fd, "index", to, INDEX_MAX, err);
}

/* Whether the file has a line that is no comment. The one that git makes has none. */
static bool says_something(int dir, const char *name)
{
	autobuf struct cordon_buf text = CORDON_BUF(4096);

	if (cordon_read_file(dir, name, O_NOFOLLOW, &text, NULL) < 0)
		return true;
	for (const char *line = text.data; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (*line != '#' && *line != '\n')
			return true;
	return false;
}

/* Copies files of one directory of the repository, and makes the directory only if there is one to be copied: every
 * entry that is made costs the start time. */
static int copy_some(int from, const char *dir, const char *const *names, size_t n, int to, struct cordon_error *err)
{
	autofd int source = cordon_open_beneath(from, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), target = -1;
	struct stat st;
	int r = 0;

	for (size_t i = 0; r == 0 && source >= 0 && i < n; i++) {
		if (fstatat(source, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		    !says_something(source, names[i]))
			continue;
		/* A run can do without a log; its own entries begin one. */
		if (strncmp(dir, "logs", 4) == 0 && (uint64_t)st.st_size > SMALL_MAX)
			continue;
		if (target < 0 && strchr(dir, '/'))
			r = make_dir(to, "logs", NULL, err);
		if (r == 0 && target < 0)
			r = make_dir(to, dir, &target, err);
		if (r == 0)
			r = copy_file(source, names[i], target, SMALL_MAX, err);
	}
	return r;
}

/* HEAD, index and what else belongs to one worktree. */
static int copy_worktree(struct making *m, int to, struct cordon_error *err)
{
	static const char *const infos[] = { "sparse-checkout" }, *const logs[] = { "HEAD" };
	autobuf struct cordon_buf text = CORDON_BUF(8192);
	int r = cordon_git_repo_head(m->repo, &m->head, err);

	if (r == 0 && cordon_buf_addf(&text, "%s\n", m->head.data) < 0)
		r = cordon_fail_errno(err, -ENOMEM, "HEAD");
	if (r < 0 || (r = write_text(to, "HEAD", text.data, err)) < 0 || (r = copy_index(m, to, err)) < 0 ||
	    (r = copy_some(m->repo->own_fd, "info", infos, 1, to, err)) < 0)
		return r;
	return copy_some(m->repo->own_fd, "logs", logs, 1, to, err);
}

/* What all worktrees share. */
static int copy_common(const struct making *m, struct cordon_error *err)
{
	static const char *const infos[] = { "exclude", "attributes" }, *const stash[] = { "stash" };
	int r;

	/* Programs write to info/exclude, and do not expect that they must make the directory. */
	if ((r = make_dir(m->git_fd, "refs", NULL, err)) < 0 || (r = make_dir(m->git_fd, "info", NULL, err)) < 0 ||
	    (r = copy_file(m->repo->common_fd, "shallow", m->git_fd, SMALL_MAX, err)) < 0 ||
	    (r = copy_some(m->repo->common_fd, "info", infos, 2, m->git_fd, err)) < 0)
		return r;
	return copy_some(m->repo->common_fd, "logs/refs", stash, 1, m->git_fd, err);
}

/* A linked worktree has its own part in the common directory, and a main worktree with a HEAD. */
static int make_linked(struct making *m, struct cordon_error *err)
{
	autofd int worktrees = -1, own = -1;
	CORDON_UNCLEARED char gitdir[CORDON_PATH_MAX];
	int r;

	if ((r = make_dir(m->git_fd, "worktrees", &worktrees, err)) < 0 ||
	    (r = make_dir(worktrees, cordon_path_base(m->repo->own), &own, err)) < 0 ||
	    (r = copy_worktree(m, own, err)) < 0 ||
	    (r = copy_file(m->repo->common_fd, "HEAD", m->git_fd, 4096, err)) < 0)
		return r;
	if (cordon_concat(gitdir, sizeof(gitdir), m->repo->root->path, "/.git\n", (char *)NULL) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", m->repo->root->path);
	r = write_text(own, "commondir", "../..\n", err);
	return r < 0 ? r : write_text(own, "gitdir", gitdir, err);
}

static int make_objects(const struct making *m, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(4096);
	autofd int objects = -1, info = -1; /* git makes what else it needs */
	int r;

	for (size_t i = 0; i < m->repo->n_objects; i++)
		if (cordon_buf_addf(&text, OBJECTS_AT "/%zu\n", i) < 0)
			return cordon_fail_errno(err, -ENOMEM, "objects");
	if ((r = make_dir(m->git_fd, "objects", &objects, err)) < 0 || (r = make_dir(objects, "info", &info, err)) < 0)
		return r;
	return write_text(info, "alternates", text.data, err);
}

/* Writes down to which repository the copy belongs, and what it was at the start. This comes last: without it, the run has
 * not begun. */
static int write_started(struct making *m, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_GIT_REFS_BYTES + ((size_t)64 << 10));
	autofree char *line = NULL;
	struct stat st;
	json_t *origin;
	int r;

	if (fstat(m->repo->common_fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat %s", m->repo->common);
	origin = json_pack("{s:s, s:s, s:I, s:I}", "common", m->repo->common, "own", m->repo->own, "dev",
			   (json_int_t)st.st_dev, "ino", (json_int_t)st.st_ino);
	if (!origin)
		return cordon_fail(err, -EILSEQ, CORDON_KIND_CONFIG, "the path %s is no UTF-8", m->repo->common);
	line = json_dumps(origin, JSON_COMPACT);
	json_decref(origin);
	r = !line ? -ENOMEM : cordon_buf_addf(&text, "%s\n%s\n", line, m->head.data);
	r = r < 0 || !m->refs.len ? r : cordon_buf_add(&text, m->refs.data, m->refs.len);
	return r < 0 ? cordon_fail_errno(err, r, "refs") : write_text(m->start_fd, CORDON_GIT_STARTED, text.data, err);
}

static bool has_modules(const struct making *m)
{
	struct stat st;

	return fstatat(m->repo->common_fd, "modules", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int make_dirs(struct making *m, struct cordon_error *err)
{
	int r;

	/* The file system of a view can be the upper layer of an overlay. The git directories of submodules are mounted in ours,
	 * and its directory must then be one of the host. */
	m->layered = m->ask->view && !has_modules(m);
	if (!m->layered)
		return make_dir(m->record_fd, CORDON_GIT_DIR, &m->git_fd, err);
	if ((r = make_dir(m->record_fd, CORDON_GIT_DIR, NULL, err)) < 0 ||
	    (r = make_dir(m->record_fd, CORDON_GIT_DIR CORDON_OVERLAY_WORK, NULL, err)) < 0)
		return r;
	return make_dir(m->start_fd, CORDON_GIT_LOWER, &m->git_fd, err);
}

static int make_git_dir(struct making *m, struct cordon_error *err)
{
	autobuf struct cordon_buf config = CORDON_BUF(256);
	int r;

	/* In a view everything that the run makes or removes changes the time of a directory, because the file system of a layer
	 * is one that keeps times. So git may remember which directories have nothing new, which saves what a view adds
	 * to `git status`. What the repository itself says about it comes later in the file, and counts. */
	if (m->ask->view && cordon_buf_adds(&config, "[core]\n\tuntrackedCache = true\n") < 0)
		return cordon_fail_errno(err, -ENOMEM, "config");
	if ((r = make_dir(m->record_fd, CORDON_GIT_START, &m->start_fd, err)) < 0 || (r = make_dirs(m, err)) < 0 ||
	    (r = cordon_git_repo_config(m->repo, true, &config, err)) < 0 ||
	    (r = write_text(m->git_fd, "config", config.data, err)) < 0 || (r = copy_common(m, err)) < 0 ||
	    (r = make_objects(m, err)) < 0 || (r = copy_refs(m, err)) < 0)
		return r;
	r = *m->repo->own ? make_linked(m, err) : copy_worktree(m, m->git_fd, err);
	return r < 0 ? r : write_started(m, err);
}

/* ---- shares ---- */

static int share(struct cordon_policy *policy, const char *source, const char *lower, const char *target, bool read,
		 const char *at, struct cordon_error *err)
{
	char where[64];
	struct cordon_share ask = { .source = source,
				    .target = target,
				    .read_only = read,
				    .own = true,
				    .lower = lower,
				    .where = name_of(CORDON_GIT_COMMIT, where),
				    .commits = true };

	return cordon_policy_add_share(policy, &ask, false, at, err);
}

static int add_shares(struct cordon_policy *policy, const struct making *m, struct cordon_error *err)
{
	const char *at = m->ask->at;
	CORDON_UNCLEARED char source[CORDON_PATH_MAX], target[CORDON_PATH_MAX], other[CORDON_PATH_MAX];
	int r;

	drop_worktree_share(policy);
	if (cordon_path_join(m->ask->record, CORDON_GIT_DIR, source, sizeof(source)) < 0 ||
	    cordon_path_join(m->ask->record, CORDON_GIT_START "/" CORDON_GIT_LOWER, other, sizeof(other)) < 0 ||
	    cordon_path_join(m->repo->in_root && at ? at
			     : m->repo->in_root	    ? policy->root.path
						    : m->repo->common,
			     m->repo->in_root ? ".git" : "", target, sizeof(target)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", m->ask->record);
	r = share(policy, source, m->layered ? other : NULL, target, false, at, err);
	for (size_t i = 0; r == 0 && i < m->repo->n_objects; i++) {
		char place[sizeof(OBJECTS_AT) + CORDON_DIGITS_SIZE];

		snprintf(place, sizeof(place), OBJECTS_AT "/%zu", i);
		r = share(policy, m->repo->objects[i], NULL, place, true, at, err);
	}
	/* The git directories of submodules stay readable, because git status in the outer repository looks into them. */
	if (r == 0 && has_modules(m) && cordon_path_join(m->repo->common, "modules", source, sizeof(source)) == 0 &&
	    cordon_path_join(target, "modules", other, sizeof(other)) == 0) {
		r = make_dir(m->git_fd, "modules", NULL, err);
		if (r == 0)
			r = share(policy, source, NULL, other, true, at, err);
	}
	return r;
}

static int begin_commit(struct cordon_policy *policy, const struct cordon_git_repo *repo,
			const struct cordon_git_begin *ask, struct cordon_error *err)
{
	CORDON_CLEANUP(making_done)
	struct making m = { .repo = repo, .ask = ask, .record_fd = -1, .git_fd = -1, .start_fd = -1 };
	int r = cordon_git_repo_usable(repo, err);

	if (r < 0)
		return r;
	m.record_fd = open(ask->record, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (m.record_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", ask->record);
	r = make_git_dir(&m, err);
	return r < 0 ? r : add_shares(policy, &m, err);
}

int cordon_git_begin(struct cordon_policy *policy, const struct cordon_git_begin *ask, struct cordon_error *err)
{
	cordon_git_mode mode = ask->mode;
	struct cordon_git_repo repo CORDON_CLEANUP(cordon_git_repo_done) = CORDON_GIT_REPO_NONE;
	char where[64];
	int r;

	if (mode == CORDON_GIT_DEFAULT)
		return 0;
	if (mode == CORDON_GIT_NONE) {
		drop_worktree_share(policy);
		return cordon_policy_add_grant(policy, ".git", CORDON_ACCESS_NONE, name_of(mode, where), err);
	}
	if (mode == CORDON_GIT_READ)
		return has_git(policy) ? read_only(policy, ask->asked, err) : 0;
	r = cordon_git_repo_open(&policy->root, &repo, err);
	if (r == 1 && !ask->asked)
		return 0;
	if (r == 1) {
		r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s is not the top directory of a git repository",
				policy->root.path);
		cordon_error_hint(err, "name the root with %s, or leave out %s",
				  cordon_setting_name(CORDON_SETTING_ROOT), name_of(mode, where));
		return r;
	}
	r = r < 0 ? r : begin_commit(policy, &repo, ask, err);
	return r < 0 ? cordon_error_prefix(err, r, "%s", name_of(mode, where)) : 0;
}
