/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the top level of a git checkout without git: it looks at names and types only and trusts no content. */
#include <fcntl.h>
#include <sys/stat.h>

#include "policy/folders.h"

/*
 * A gitfile (worktrees and submodules have one) marks a top level. We ignore where it points to, so it cannot widen
 * the root. Anything else with the name .git (a FIFO, a device, a link to one) marks nothing and is not opened.
 */
static bool is_gitfile(int dir)
{
	static const char start[] = "gitdir: ";
	char text[sizeof(start) - 1];
	struct stat st;
	autofd int fd = openat(dir, ".git", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       read(fd, text, sizeof(text)) == (ssize_t)sizeof(text) && memcmp(text, start, sizeof(text)) == 0;
}

/* Whether another user put the .git into a directory that many users may write to, such as /tmp. It must not make
 * that directory our root. */
static bool is_from_other_user(int dir, const struct stat *git)
{
	struct stat st;

	return git->st_uid != geteuid() && git->st_uid != 0 && (fstat(dir, &st) < 0 || git->st_uid != st.st_uid);
}

static bool is_top_level(int dir)
{
	struct stat st;

	if (fstatat(dir, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 || is_from_other_user(dir, &st))
		return false;
	if (S_ISLNK(st.st_mode) && fstatat(dir, ".git", &st, 0) < 0)
		return false;
	return S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && is_gitfile(dir));
}

int cordon_repo_root(const char *start, struct cordon_root *ret_root, struct cordon_error *err)
{
	struct cordon_root root;
	char path[CORDON_PATH_MAX];
	autofd int dir = -1;
	int r = cordon_root_open(start, &root, err);

	if (r < 0)
		return r;
	memcpy(path, root.path, strlen(root.path) + 1);
	dir = fcntl(root.fd, F_DUPFD_CLOEXEC, 0);
	while (dir >= 0 && !is_top_level(dir)) {
		char *slash = strrchr(path, '/');
		int up;

		if (cordon_streq(path, "/")) {
			/* No repository: the start itself is the root. */
			*ret_root = root;
			return 0;
		}
		slash[slash == path ? 1 : 0] = '\0';
		up = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(dir);
		dir = up;
	}
	if (dir >= 0 && cordon_streq(path, root.path)) {
		*ret_root = root;
		return 0;
	}
	cordon_root_done(&root);
	if (dir < 0)
		return cordon_fail_errno(err, -errno, "cannot look for the repository above %s", start);
	return cordon_root_open(path, ret_root, err);
}
