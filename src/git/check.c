/* SPDX-License-Identifier: Apache-2.0 */
/* Judges commits of the host's own repository, for hooks and for continuous integration; and installs the hook. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/home.h"
#include "base/io.h"
#include "base/path.h"
#include "git/internal.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void cordon_git_desk_done(struct cordon_git_desk *desk)
{
	if (desk->dir_fd >= 0)
		cordon_dirs_remove(desk->state_fd, desk->name, NULL);
	cordon_closep(&desk->dir_fd);
	cordon_closep(&desk->state_fd);
	cordon_git_repo_done(&desk->repo);
	cordon_home_done(&desk->home);
}

/* What git tells a hook of a server: where the objects are that wait for its answer. Only a directory among the objects of the
 * repository is one. */
static void find_quarantine(struct cordon_git_desk *desk)
{
	const char *said = getenv("GIT_QUARANTINE_PATH");
	autofree char *path = said && *said ? realpath(said, NULL) : NULL;

	if (path && cordon_path_within(path, desk->repo.objects[0]))
		cordon_copy(desk->quarantine, sizeof(desk->quarantine), path, strlen(path));
}

int cordon_git_desk_open(struct cordon_git_desk *desk, const struct cordon_root *root, struct cordon_error *err)
{
	char id[CORDON_UUID_SIZE];
	int r = cordon_git_repo_open(root, &desk->repo, err);

	if (r > 0) {
		r = cordon_git_repo_open_bare(root, &desk->repo, err);
		desk->bare = r == 0;
	}
	if (r > 0)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND,
				   "%s is not the top directory of a git repository", root->path);
	if (r < 0 || (r = cordon_home_open(&desk->home, err)) < 0 ||
	    (r = cordon_home_subdir(&desk->home, "git-check", &desk->state_fd, err)) < 0)
		return r;
	if (desk->bare)
		find_quarantine(desk);
	if ((r = cordon_uuid_new(id)) < 0 || (r = cordon_copy(desk->name, sizeof(desk->name), id, strlen(id))) < 0 ||
	    (r = cordon_concat(desk->path, sizeof(desk->path), desk->home.path, "/state/git-check/", id, (char *)NULL)) <
		    0 ||
	    (r = cordon_path_join(desk->path, "shim", desk->shim, sizeof(desk->shim))) < 0)
		return cordon_fail_errno(err, r, "cannot check");
	if (mkdirat(desk->state_fd, desk->name, 0700) < 0 ||
	    (desk->dir_fd = openat(desk->state_fd, desk->name, DIR_FLAGS)) < 0)
		return cordon_fail_errno(err, -errno, "cannot make %s", desk->path);
	return cordon_git_shim_make(&desk->repo, desk->dir_fd, "shim", err);
}

struct cordon_git_call cordon_git_desk_call(const struct cordon_git_desk *desk, const char *const *argv)
{
	return (struct cordon_git_call){ .repo = &desk->repo,
					 .git_dir = desk->shim,
					 .objects = *desk->quarantine ? desk->quarantine : NULL,
					 .argv = argv,
					 .max_output = CORDON_GIT_DIFF_BYTES };
}

/* Lists the commits of a range. One commit stands for itself; with `unpushed` for all that no remote has. */
int cordon_git_desk_commits(const struct cordon_git_desk *c, const struct cordon_git_check *ask, struct cordon_buf *ret,
			    struct cordon_error *err)
{
	const char *argv[] = { "rev-list", "--topo-order", "--reverse", "--parents", NULL, NULL, NULL, NULL, NULL };
	struct cordon_git_call call = cordon_git_desk_call(c, argv);
	autofree char *single = NULL;
	size_t n = 4;
	int r;

	if (ask->range[0] == '-' || !*ask->range)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' is no range of commits", ask->range);
	if (!ask->unpushed && !strstr(ask->range, "..") && asprintf(&single, "%s^!", ask->range) < 0) {
		single = NULL;
		return cordon_fail_errno(err, -ENOMEM, "range");
	}
	argv[n++] = single ? single : ask->range;
	if (ask->unpushed) {
		argv[n++] = "--not";
		argv[n++] = c->bare ? "--all" : "--remotes";
	}
	argv[n] = "--";
	r = cordon_git_call(&call, ret, err);
	if (r < 0 && err)
		err->kind = CORDON_KIND_USAGE;
	return r;
}

static int write_file(const struct cordon_git_desk *c, const char *name, const struct cordon_buf *text,
		      struct cordon_error *err)
{
	return cordon_write_file(c->dir_fd, name, 0600, text && text->data ? text->data : "", text ? text->len : 0, err);
}

static int read_file(const struct cordon_git_desk *c, const char *name, struct cordon_buf *ret, struct cordon_error *err)
{
	ret->max = CORDON_GIT_DIFF_BYTES;
	return cordon_read_file(c->dir_fd, name, O_NOFOLLOW, ret, err);
}

static int judge_range(const struct cordon_policy *policy, const struct cordon_git_desk *c,
		       const struct cordon_git_check *ask, struct cordon_git_take *take, struct cordon_error *err)
{
	autobuf struct cordon_buf commits = { 0 }, list = { 0 }, diff = { 0 }, script = CORDON_BUF((size_t)64 << 10);
	CORDON_CLEANUP(cordon_git_changes_done) struct cordon_git_changes changes = { 0 };
	autofree struct cordon_git_pair *pairs = NULL;
	struct cordon_git_call call = cordon_git_desk_call(c, NULL);
	size_t n = 0;
	int r = cordon_git_desk_commits(c, ask, &commits, err);

	if (r < 0 || !commits.len)
		return r;
	for (const char *line = commits.data; *line; line++)
		take->n_commits += *line == '\n';
	if (cordon_buf_adds(&script, "set -eu\n") < 0 || cordon_buf_adds(&script, cordon_git_pairs_script) < 0)
		return cordon_fail_errno(err, -ENOMEM, "script");
	call.script = script.data;
	call.cwd = c->path;
	if ((r = write_file(c, "commits", &commits, err)) < 0 || (r = write_file(c, "known", NULL, err)) < 0 ||
	    (r = write_file(c, "moves", NULL, err)) < 0 || (r = cordon_git_call(&call, NULL, err)) < 0 ||
	    (r = read_file(c, "pairs", &list, err)) < 0 || (r = read_file(c, "diff", &diff, err)) < 0 ||
	    (r = cordon_git_pairs_parse(list.data, list.len, &pairs, &n, err)) < 0 ||
	    (r = cordon_git_changes_parse(diff.data, diff.len, pairs, n, &changes, err)) < 0)
		return r;
	return cordon_git_judge_pairs(policy, pairs, n, &changes, take, err);
}

/* The index that a hook is about to commit may be another than the repository's own. */
static int find_index(const struct cordon_git_desk *c, char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	const char *asked = getenv("GIT_INDEX_FILE");
	char cwd[CORDON_PATH_MAX], dir[CORDON_PATH_MAX];
	int r;

	if (asked && *asked)
		r = *asked != '/' && !getcwd(cwd, sizeof(cwd))
			    ? -errno
			    : cordon_path_join(*asked == '/' ? "" : cwd, asked, ret, CORDON_PATH_MAX);
	else if ((r = cordon_path_join(c->repo.common, c->repo.own, dir, sizeof(dir))) == 0)
		r = cordon_path_join(dir, "index", ret, CORDON_PATH_MAX);
	return r < 0 ? cordon_fail_errno(err, r, "cannot find the index") : 0;
}

static int judge_staged(const struct cordon_policy *policy, const struct cordon_git_desk *c,
			struct cordon_git_take *take, struct cordon_error *err)
{
	/* "HEAD" of the shim is not that of a linked worktree, so the commit is named. */
	autobuf struct cordon_buf head = { 0 }, id = { 0 }, text = { 0 }, whole = CORDON_BUF(2 * CORDON_GIT_DIFF_BYTES);
	CORDON_CLEANUP(cordon_git_changes_done) struct cordon_git_changes changes = { 0 };
	CORDON_UNCLEARED char index[CORDON_PATH_MAX];
	const char *verify[] = { "rev-parse", "--verify", "--quiet", NULL, NULL };
	static const char *const empty[] = { "hash-object", "-t", "tree", "--stdin", NULL };
	const char *compare[] = { "diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", NULL, NULL };
	struct cordon_git_call call = cordon_git_desk_call(c, verify);
	struct cordon_git_pair pair = { 0 };
	int r = cordon_git_repo_head(&c->repo, &head, err);

	if (r < 0 || (r = find_index(c, index, err)) < 0)
		return r;
	verify[3] = strncmp(head.data, "ref: ", 5) == 0 ? head.data + 5 : head.data;
	if (cordon_git_call(&call, &id, NULL) < 0) {
		cordon_buf_reset(&id);
		call.argv = empty;
		if ((r = cordon_git_call(&call, &id, err)) < 0)
			return r;
	}
	id.data[strcspn(id.data, "\n")] = '\0';
	compare[6] = id.data;
	call.argv = compare;
	call.index = index;
	if ((r = cordon_git_call(&call, &text, err)) < 0)
		return r;
	memset(pair.commit, '0', 40);
	if ((r = cordon_buf_add(&whole, pair.commit, 41)) < 0 || (r = cordon_buf_add(&whole, text.data, text.len)) < 0)
		return cordon_fail_errno(err, r, "cannot check what is staged");
	if ((r = cordon_git_changes_parse(whole.data, whole.len, &pair, 1, &changes, err)) < 0)
		return r;
	pair.commit[0] = '\0';
	return cordon_git_judge_pairs(policy, &pair, 1, &changes, take, err);
}

int cordon_git_check(const struct cordon_policy *policy, const struct cordon_git_check *ask,
		     struct cordon_git_take **ret_take, struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_git_desk_done) struct cordon_git_desk c = CORDON_GIT_DESK_NONE;
	struct cordon_git_take *take = calloc(1, sizeof(*take));
	int r = take ? cordon_git_desk_open(&c, &policy->root, err) : cordon_fail_errno(err, -ENOMEM, "cannot check");

	if (r == 0)
		r = ask->range ? judge_range(policy, &c, ask, take, err) : judge_staged(policy, &c, take, err);
	if (r < 0) {
		cordon_git_take_free(take);
		return r;
	}
	take->state = take->n_refused ? CORDON_GIT_REFUSED : CORDON_GIT_NOTHING;
	*ret_take = take;
	return 0;
}

/* ---- the hook ---- */

#define HOOK_MAX ((size_t)1 << 20)
#define MARK "# Written by 'cordon git install-hook'."

static const char pre_commit[] = "exec %s --staged\n";
/* For each ref that is pushed: what the remote has not. */
static const char pre_push[] = "while read -r _ new _ old; do\n"
			       "	case $new in *[!0]*) ;; *) continue ;; esac\n"
			       "	case $old in\n"
			       "	*[!0]*) %s \"$old..$new\" || exit 1 ;;\n"
			       "	*) %s --unpushed \"$new\" || exit 1 ;;\n"
			       "	esac\n"
			       "done\n";

/* Whether a hook may be replaced: there is none, or it is one of ours. */
static int judge_old(int dir, const char *name, bool force, struct cordon_error *err)
{
	autobuf struct cordon_buf old = CORDON_BUF(HOOK_MAX);
	int r = cordon_read_file(dir, name, O_NOFOLLOW, &old, NULL);

	if (r == -ENOENT || force || (r == 0 && old.len && strstr(old.data, MARK)))
		return 0;
	r = cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "the repository has a %s hook already", name);
	cordon_error_hint(err, "call 'cordon git check' in it, or remove it first");
	return r;
}

int cordon_git_install_hook(const struct cordon_root *root, const char *name, const char *command, bool force,
			    char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	struct cordon_git_repo repo CORDON_CLEANUP(cordon_git_repo_done) = CORDON_GIT_REPO_NONE;
	autobuf struct cordon_buf text = CORDON_BUF(HOOK_MAX);
	bool push = cordon_streq(name, "pre-push");
	autofd int hooks = -1;
	int r = cordon_git_repo_open(root, &repo, err);

	if (r > 0)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND,
				   "%s is not the top directory of a git repository", root->path);
	if (r < 0)
		return r;
	if (mkdirat(repo.common_fd, "hooks", 0755) < 0 && errno != EEXIST)
		return cordon_fail_errno(err, -errno, "cannot make the directory of hooks");
	hooks = openat(repo.common_fd, "hooks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (hooks < 0)
		return cordon_fail_errno(err, -errno, "cannot open the directory of hooks");
	if ((r = judge_old(hooks, name, force, err)) < 0)
		return r;
	r = cordon_buf_adds(&text, "#!/bin/sh\n" MARK "\n");
	if (r == 0)
		r = push ? cordon_buf_addf(&text, pre_push, command, command)
			 : cordon_buf_addf(&text, pre_commit, command);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot write the hook");
	if (cordon_path_join(repo.common, "hooks", ret_path, CORDON_PATH_MAX) < 0 ||
	    cordon_path_join(ret_path, name, ret_path, CORDON_PATH_MAX) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", repo.common);
	return cordon_write_file(hooks, name, 0755, text.data, text.len, err);
}
