/* SPDX-License-Identifier: Apache-2.0 */
/* Results of stories as commits. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/text.h"
#include "loop/git.h"
#include "loop/git_objects.h"
#include "loop/internal.h"

#define SHIM "git"
#define RUNNING "git-runs"
#define RUNNING_WAIT_MS 60000 /* how long a git that a killed loop started may take to end */
#define OUTPUT_MAX ((size_t)64 << 20)
#define INDEX_MAX ((uint64_t)4 << 30)
#define WORDS_MAX ((size_t)64 << 10) /* bytes of changes that are given to git as words */

int cordon_loop_git_call(const struct cordon_loop *loop, struct cordon_git_call *call, struct cordon_buf *ret_output,
			 struct cordon_error *err)
{
	call->repo = &loop->git.repo;
	call->git_dir = call->git_dir ? call->git_dir : loop->git.shim;
	call->max_output = OUTPUT_MAX;
	call->held = loop->git.running_fd;
	return cordon_git_call(call, ret_output, err);
}

int cordon_loop_git_run(const struct cordon_loop *loop, const char *const *argv, const struct cordon_buf *input,
			const char *index, struct cordon_buf *ret_output, struct cordon_error *err)
{
	struct cordon_git_call call = {
		.argv = argv, .index = index, .input = input ? input->data : NULL, .n_input = input ? input->len : 0
	};

	return cordon_loop_git_call(loop, &call, ret_output, err);
}

/* Makes the git directory of ours. The links of an old one may be out of date: packed-refs or logs may have been made
 * since. */
static int make_shim(const struct cordon_loop *loop, struct cordon_error *err)
{
	return cordon_git_shim_make(&loop->git.repo, loop->dir_fd, SHIM, err);
}

/* A killed loop leaves the git that it had started, and this one must not meet its locks. Each of ours holds a lock as long
 * as it runs, so we wait for that. */
static int wait_for_git(struct cordon_loop *loop, struct cordon_error *err)
{
	autofd int fd = openat(loop->dir_fd, RUNNING, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : cordon_lock_within(fd, LOCK_EX, RUNNING_WAIT_MS);

	if (r == -EWOULDBLOCK)
		return cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "a git of the loop that was killed still runs");
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock the git of the loop");
	loop->git.running_fd = cordon_steal_fd(&fd);
	return 0;
}

/* ---- opening ---- */

/* The commit that a ref has now; "" when there is no such ref. */
static int read_ref(const struct cordon_loop_git *git, const char *name, char ret[static CORDON_LOOP_GIT_ID],
		    struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_git_refs_done) struct cordon_git_refs refs = { 0 };
	int r = cordon_git_refs_read(git->repo.common_fd, true, &refs, err);
	const char *id = r < 0 ? NULL : cordon_git_refs_find(&refs, name);

	ret[0] = '\0';
	if (id)
		cordon_copy(ret, CORDON_LOOP_GIT_ID, id, strlen(id));
	return r;
}

/* All PRDs of a loop have one branch, because their results lie on top of each other. */
static int find_branch(struct cordon_loop *loop, const char **ret_branch, struct cordon_error *err)
{
	*ret_branch = loop->prds[0]->branch;
	for (size_t i = 1; i < loop->options.n_prds; i++) {
		const char *other = loop->prds[i]->branch;

		if ((other != NULL) != (*ret_branch != NULL) || (other && !cordon_streq(other, *ret_branch)))
			return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG,
					   "%s and %s have different values of branchName: start a loop for each",
					   loop->options.prds[0].path, loop->options.prds[i].path);
	}
	return 0;
}

/* The value of a key in the section "user" of a configuration that cordon wrote. */
static bool find_value(const char *config, const char *key, char *ret, size_t size)
{
	const char *section = strstr(config, "[user");

	for (const char *line = section; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = line + strspn(line, "\t "), *end;
		size_t n = strlen(key);

		if (strncmp(at, key, n) != 0 || !(end = strchr(at, '=')) || strcspn(at, "\n") < (size_t)(end - at))
			continue;
		at = end + 1 + strspn(end + 1, " \"");
		n = strcspn(at, "\"\n<>\\");
		return n && cordon_copy(ret, size, at, n) == 0;
	}
	return false;
}

/* Who made the commits, and how objects are named. */
static void find_settings(struct cordon_loop_git *git)
{
	autobuf struct cordon_buf config = { 0 };
	char name[200] = "cordon", address[200] = "cordon@localhost";

	if (cordon_git_repo_config(&git->repo, true, &config, NULL) == 0 && config.data) {
		(void)find_value(config.data, "name", name, sizeof(name));
		(void)find_value(config.data, "email", address, sizeof(address));
		git->sha256 = strstr(config.data, "\n\tobjectformat = sha256\n") != NULL;
	}
	snprintf(git->author, sizeof(git->author), "%s <%s>", name, address);
}

static void notice(struct cordon_loop *loop, const char *fmt, const char *what)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s%.900s", fmt, what);
	cordon_loop_tell(loop, json_pack("{s:s, s:s}", "event", "notice", "message", text));
}

/* Finds branch and commits. 1 when results are applied without commits. */
static int find_refs(struct cordon_loop *loop, const char *branch, struct cordon_error *err)
{
	struct cordon_loop_git *git = &loop->git;
	autobuf struct cordon_buf head = { 0 };
	CORDON_UNCLEARED char other[CORDON_PATH_MAX];
	char tip[CORDON_LOOP_GIT_ID];
	int r = cordon_git_repo_head(&git->repo, &head, err);

	if (r < 0)
		return r;
	if (strncmp(head.data, "ref: ", 5) == 0)
		r = read_ref(git, head.data + 5, git->head, err);
	else
		r = cordon_copy(git->head, sizeof(git->head), head.data, strlen(head.data));
	if (r < 0)
		return r;
	if (!branch && strncmp(head.data, "ref: ", 5) != 0) {
		notice(loop, "HEAD is detached and the PRD has no branchName: results are applied without commits", "");
		return 1;
	}
	snprintf(git->branch, sizeof(git->branch), "%s%s", branch ? "refs/heads/" : "", branch ? branch : head.data + 5);
	git->checked_out = strncmp(head.data, "ref: ", 5) == 0 && cordon_streq(head.data + 5, git->branch);
	if (git->checked_out)
		return 0;
	if (!*git->head)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFLICT,
				   "the repository has no commit yet to make %s from", branch);
	cordon_git_repo_in_use(&git->repo, git->branch, other);
	if (*other)
		return cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "the branch %s is checked out in %s", branch,
				   other);
	r = read_ref(git, git->branch, tip, err);
	return r < 0 ? r : cordon_loop_git_base(loop, git->head, *tip ? tip : git->head, err);
}

int cordon_loop_git_open(struct cordon_loop *loop, struct cordon_error *err)
{
	struct cordon_loop_git *git = &loop->git;
	struct cordon_error why = { 0 };
	const char *branch;
	int r = find_branch(loop, &branch, err);

	if (r < 0)
		return r;
	r = cordon_git_repo_open(&loop->root, &git->repo, &why);
	if (r == 0)
		r = cordon_git_repo_usable(&git->repo, &why);
	if (r < 0 && loop->options.git == CORDON_GIT_COMMIT) {
		if (err)
			*err = why;
		return r;
	}
	if (r < 0)
		notice(loop, "results are applied without commits: ", why.message);
	if (r == 0 && loop->options.git == CORDON_GIT_DEFAULT)
		loop->options.git = CORDON_GIT_COMMIT;
	else if (loop->options.git == CORDON_GIT_DEFAULT)
		loop->options.git = r > 0 ? CORDON_GIT_DEFAULT : CORDON_GIT_READ;
	if (r != 0 || loop->options.git != CORDON_GIT_COMMIT || loop->options.no_views) {
		if (loop->options.no_views && loop->options.git == CORDON_GIT_COMMIT)
			loop->options.git = CORDON_GIT_DEFAULT;
		return 0;
	}
	if (cordon_path_join(loop->dir, SHIM, git->shim, sizeof(git->shim)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", loop->dir);
	find_settings(git);
	r = wait_for_git(loop, err);
	if (r == 0)
		r = make_shim(loop, err);
	if (r == 0)
		r = find_refs(loop, branch, err);
	git->active = r == 0;
	return r < 0 ? r : 0;
}

void cordon_loop_git_close(struct cordon_loop_git *git)
{
	cordon_git_stop(&git->reader);
	cordon_closep(&git->running_fd);
	cordon_git_repo_done(&git->repo);
}

/* ---- commits ---- */

static int say_committed(struct cordon_loop *loop, struct cordon_error *err)
{
	json_t *commits = json_object();

	for (size_t i = 0; i < loop->n_stack; i++) {
		char number[CORDON_DIGITS_SIZE];

		json_object_set_new(commits, cordon_digits(loop->stack[i].n, number),
				    json_string(loop->stack[i].commit));
	}
	return cordon_loop_say(loop,
			       json_pack("{s:s, s:s, s:o}", "event", "committed", "parent", loop->git.parent, "commits",
					 commits),
			       true, err);
}

int cordon_loop_git_tip(const struct cordon_loop_git *git, char ret[static CORDON_LOOP_GIT_ID], struct cordon_error *err)
{
	int r = read_ref(git, git->branch, ret, err);

	if (r == 0 && !*ret && !git->checked_out)
		memcpy(ret, git->head, sizeof(git->head));
	return r;
}

int cordon_loop_git_commit(struct cordon_loop *loop, struct cordon_error *err)
{
	char ids[CORDON_LOOP_STACK_MAX + 1][CORDON_LOOP_GIT_ID] = { 0 };
	bool any = false;
	int r;

	if (!loop->git.active)
		return 0;
	r = make_shim(loop, err);
	if (r == 0)
		r = cordon_loop_git_tip(&loop->git, loop->git.parent, err);
	if (r < 0)
		return r;
	loop->git.has_parent = true;
	r = cordon_loop_git_import(loop, loop->git.parent, NULL, ids, err);
	for (size_t i = 0; i < loop->n_stack; i++) {
		memcpy(loop->stack[i].commit, ids[i], sizeof(ids[i]));
		any |= *ids[i] != '\0';
	}
	return r < 0 || !any ? r : say_committed(loop, err);
}

/* ---- landing ---- */

/* One change of the index; the text is "MODE ID\\tPATH". */
static bool is_removed(const char *info)
{
	return strncmp(info, "0 ", 2) == 0;
}

static int add_word(const char ***words, size_t *n, size_t *cap, const char *word)
{
	if (*n + 1 >= *cap) {
		size_t more = *cap ? 2 * *cap : 64;
		const char **larger = reallocarray(*words, more, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		*words = larger;
		*cap = more;
	}
	(*words)[(*n)++] = word;
	(*words)[*n] = NULL;
	return 0;
}

/* The words of a command that changes the index and looks at the files of the tree, all in one: paths that are removed come first, so
 * that they are not in the way. `info` is changed, and has the words. */
static int make_words(struct cordon_buf *info, const char ***ret)
{
	static const char *const first[] = { "update-index", "-q", "--add", "--remove", "--replace", "--force-remove" };
	autofree const char **words = NULL;
	size_t n = 0, cap = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(first); i++)
		r = add_word(&words, &n, &cap, first[i]);
	for (size_t at = 0, next; r == 0 && at < info->len; at = next) {
		char *tab = strchr(info->data + at, '\t');

		next = at + strlen(info->data + at) + 1;
		if (is_removed(info->data + at)) { /* "./PATH", so that none looks like an option */
			tab[-1] = '.';
			tab[0] = '/';
			r = add_word(&words, &n, &cap, tab - 1);
		}
	}
	for (size_t at = 0, next; r == 0 && at < info->len; at = next) {
		char *text = info->data + at, *space = strchr(text, ' '), *tab;

		next = at + strlen(text) + 1;
		if (is_removed(text))
			continue;
		tab = strchr(text, '\t');
		*space = *tab = ',';
		r = add_word(&words, &n, &cap, "--cacheinfo");
		if (r == 0)
			r = add_word(&words, &n, &cap, text);
	}
	if (r == 0)
		r = add_word(&words, &n, &cap, "--refresh");
	*ret = r < 0 ? NULL : cordon_steal_ptr(&words);
	return r;
}

/* Changes the index at `path`, and has git look which files of the tree are as it says. */
static int change_index(struct cordon_loop *loop, const char *path, struct cordon_buf *info, struct cordon_error *err)
{
	static const char *const argv[] = { "update-index", "-z", "--index-info", NULL };
	static const char *const refresh[] = { "update-index", "-q", "--refresh", NULL };
	autofree const char **words = NULL;
	struct cordon_git_call call = { .index = path, .may_differ = true };
	int r;

	if (info->len && info->len <= WORDS_MAX) {
		r = make_words(info, &words);
		if (r < 0)
			return cordon_fail_errno(err, r, "the index");
		call.argv = words;
		return cordon_loop_git_call(loop, &call, NULL, err);
	}
	r = info->len ? cordon_loop_git_run(loop, argv, info, path, NULL, err) : 0;
	if (r == 0)
		(void)cordon_loop_git_run(loop, refresh, NULL, path, NULL, NULL); /* fails where files differ */
	return r;
}

/* Takes git's lock of the index. Ours is a second name of a file in the loop's directory, so that a killed loop finds its
 * own again. */
static int lock_index(struct cordon_loop *loop, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = -1;
	struct stat ours, theirs;

	if (fstatat(loop->dir_fd, "locked", &ours, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstatat(loop->git.repo.own_fd, "index.lock", &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
	    ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
		unlinkat(loop->git.repo.own_fd, "index.lock", 0);
	unlinkat(loop->dir_fd, "locked", 0);
	fd = openat(loop->dir_fd, "locked", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd >= 0 && linkat(loop->dir_fd, "locked", loop->git.repo.own_fd, "index.lock", 0) < 0 && errno == EXDEV) {
		cordon_closep(&fd);
		fd = openat(loop->git.repo.own_fd, "index.lock", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	} else if (fd >= 0 && fstatat(loop->git.repo.own_fd, "index.lock", &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
		   fstat(fd, &ours) == 0 && ours.st_ino != theirs.st_ino) {
		errno = EEXIST;
		cordon_closep(&fd);
	}
	if (fd < 0 && errno == EEXIST) {
		cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "another git works in the repository: index.lock exists");
		cordon_error_hint(err, "wait for it and start the loop again");
		return -EBUSY;
	}
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot lock the index");
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

static int copy_index(int from_dir, const char *name, int to)
{
	autofd int in = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t max = INDEX_MAX;

	if (in < 0)
		return errno == ENOENT ? 0 : -errno;
	return cordon_copy_bytes(in, to, &max);
}

/* The index with the new entries, beside the real one. */
static int make_index(struct cordon_loop *loop, const char *from, const char *to, struct cordon_error *err)
{
	autobuf struct cordon_buf info = CORDON_BUF(2 * OUTPUT_MAX);
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	autofd int fd = -1;
	struct stat st;
	int r;

	unlinkat(loop->dir_fd, "new-index", 0);
	unlinkat(loop->dir_fd, "new-index.lock", 0); /* of a git that was killed: none of ours runs */
	if (cordon_path_join(loop->dir, "new-index", path, sizeof(path)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", loop->dir);
	if (fstatat(loop->git.repo.own_fd, "index", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		fd = openat(loop->dir_fd, "new-index", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		r = fd < 0 ? -errno : copy_index(loop->git.repo.own_fd, "index", fd);
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot copy the index");
	}
	r = cordon_git_trees_compare(loop, from, to, &info, err);
	return r < 0 ? r : change_index(loop, path, &info, err);
}

static int move_branch(struct cordon_loop *loop, const char *to, struct cordon_error *err)
{
	static const char *const argv[] = { "update-ref", "--create-reflog", "-m", "cordon loop", "--stdin", NULL };
	autobuf struct cordon_buf text = CORDON_BUF(4096);
	char now[CORDON_LOOP_GIT_ID];
	int r = read_ref(&loop->git, loop->git.branch, now, err);

	if (r < 0 || cordon_streq(now, to))
		return r;
	r = *now || loop->git.checked_out ? cordon_buf_addf(&text, "update %s %s %s\n", loop->git.branch, to,
							    *loop->git.parent ? loop->git.parent : CORDON_LOOP_NO_ID)
					  : cordon_buf_addf(&text, "create %s %s\n", loop->git.branch, to);
	return r < 0 ? cordon_fail_errno(err, r, "refs") : cordon_loop_git_run(loop, argv, &text, NULL, NULL, err);
}

static int land_checked_out(struct cordon_loop *loop, const char *to, struct cordon_error *err)
{
	autofd int lock = -1, in = -1;
	uint64_t max = INDEX_MAX;
	int r = lock_index(loop, &lock, err);

	if (r < 0)
		return r;
	r = make_index(loop, loop->git.parent, to, err);
	if (r == 0) {
		in = openat(loop->dir_fd, "new-index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (in < 0 || cordon_copy_bytes(in, lock, &max) < 0)
			r = cordon_fail_errno(err, -EIO, "cannot write the index");
	}
	if (r == 0)
		r = move_branch(loop, to, err);
	if (r == 0 && renameat(loop->git.repo.own_fd, "index.lock", loop->git.repo.own_fd, "index") < 0)
		r = cordon_fail_errno(err, -errno, "cannot write the index");
	if (r < 0)
		unlinkat(loop->git.repo.own_fd, "index.lock", 0);
	unlinkat(loop->dir_fd, "locked", 0);
	return r;
}

int cordon_loop_git_land(struct cordon_loop *loop, struct cordon_error *err)
{
	struct cordon_error why = { 0 };
	const char *to = "";
	int r;

	for (size_t i = 0; i < loop->n_stack; i++)
		to = *loop->stack[i].commit ? loop->stack[i].commit : to;
	if (!loop->git.active || !*to)
		return 0;
	r = loop->git.checked_out ? land_checked_out(loop, to, &why) : move_branch(loop, to, &why);
	if (r == -EBUSY) {
		if (err)
			*err = why;
		return r;
	}
	/* The files are in the tree; a person who moved the branch meanwhile decides about the commit. */
	if (r < 0)
		notice(loop, "the branch was not moved, and the results are not committed: ", why.message);
	return 0;
}
