/* SPDX-License-Identifier: Apache-2.0 */
/* Installs a hook that judges commits before they are made or pushed. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "git/internal.h"

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
