/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The git directory of a run in a view is an overlay: RECORD/git has what the run changed, and git-start/git what it started
 * with. When the run is over, whatever it left alone gets a second name in RECORD/git, so that everybody who reads it finds a
 * whole directory. First all names are made, then git-start/git gets another name, and then the whiteouts go: so a process
 * that is killed in between never brings back what the run removed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/name_list.h"
#include "base/path.h"
#include "base/resolve.h"
#include "base/upper.h"
#include "git/internal.h"

#define DEPTH_MAX 8 /* of what we made ourselves */

typedef int (*entry_fn)(int lower, int upper, const char *name, const struct stat *below, unsigned int depth);

static int each(int lower, int upper, unsigned int depth, entry_fn fn)
{
	autonames struct cordon_name_list names = { 0 };
	int r = depth > DEPTH_MAX ? -E2BIG : cordon_name_list_read(lower, &names);

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		struct stat st;

		r = fstatat(lower, names.name[i], &st, AT_SYMLINK_NOFOLLOW) < 0
			    ? -errno
			    : fn(lower, upper, names.name[i], &st, depth);
	}
	return r;
}

/* Opens a directory of the run's to add names to it. The run may have taken the right to do so away; the directory is ours. */
static int open_upper(int dir_fd, const char *name)
{
	autofd int fd = cordon_upper_open(dir_fd, name, O_RDONLY | O_DIRECTORY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || ((st.st_mode & 0700) != 0700 && fchmod(fd, (st.st_mode & 07777) | 0700) < 0))
		return -1;
	return cordon_steal_fd(&fd);
}

/* Goes on in a directory that both have, unless the run removed the old one and made another. */
static int each_below(int lower, int upper, const char *name, unsigned int depth, entry_fn fn)
{
	autofd int below = openat(lower, name, CORDON_OPEN_DIR);
	autofd int above = open_upper(upper, name);

	if (below < 0 || above < 0)
		return -errno;
	return cordon_upper_has(above, CORDON_OVERLAY_ATTRIBUTE("opaque")) ? 0 : each(below, above, depth + 1, fn);
}

static int add_name(int lower, int upper, const char *name, const struct stat *below, unsigned int depth)
{
	struct stat st;

	if (fstatat(upper, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return -errno;
		if (!S_ISDIR(below->st_mode))
			return linkat(lower, name, upper, name, 0) < 0 ? -errno : 0;
		if (mkdirat(upper, name, below->st_mode & 0777) < 0)
			return -errno;
	} else if (!S_ISDIR(st.st_mode) || !S_ISDIR(below->st_mode)) {
		return 0;
	}
	return each_below(lower, upper, name, depth, add_name);
}

static int remove_whiteout(int lower, int upper, const char *name, const struct stat *below, unsigned int depth)
{
	struct stat st;

	if (fstatat(upper, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return S_ISDIR(below->st_mode) ? each_below(lower, upper, name, depth, remove_whiteout) : 0;
	return cordon_upper_is_whiteout(upper, name, &st) && unlinkat(upper, name, 0) < 0 ? -errno : 0;
}

int cordon_git_settle(int record_fd, int start_fd, struct cordon_error *err)
{
	autofd int upper = open_upper(record_fd, CORDON_GIT_DIR), lower = -1;
	int r = 0;

	if (upper < 0)
		return cordon_fail_errno(err, -errno, "cannot open the git directory of the run");
	lower = openat(start_fd, CORDON_GIT_LOWER, CORDON_OPEN_DIR);
	if (lower >= 0) {
		r = each(lower, upper, 0, add_name);
		if (r == 0 && renameat(start_fd, CORDON_GIT_LOWER, start_fd, CORDON_GIT_LEFT) < 0)
			r = -errno;
	} else {
		lower = openat(start_fd, CORDON_GIT_LEFT, CORDON_OPEN_DIR);
	}
	if (r == 0 && lower >= 0)
		r = each(lower, upper, 0, remove_whiteout);
	return r < 0 ? cordon_fail_errno(err, r, "cannot complete the git directory of the run") : 0;
}

int cordon_git_before(const char *record, const char *own, char ret[static CORDON_PATH_MAX])
{
	struct stat st;
	int r = cordon_concat(ret, CORDON_PATH_MAX, record, "/" CORDON_GIT_START "/" CORDON_GIT_LOWER, (char *)NULL);

	if (r == 0 && stat(ret, &st) < 0)
		r = cordon_concat(ret, CORDON_PATH_MAX, record, "/" CORDON_GIT_DIR, (char *)NULL);
	if (r == 0 && *own) {
		CORDON_UNCLEARED char dir[CORDON_PATH_MAX];

		memcpy(dir, ret, strlen(ret) + 1);
		r = cordon_path_join(dir, own, ret, CORDON_PATH_MAX);
	}
	return r;
}

int cordon_git_start_index(int record_fd)
{
	static const char *const places[] = { CORDON_GIT_START "/" CORDON_GIT_LEFT "/index",
					      CORDON_GIT_START "/" CORDON_GIT_LOWER "/index",
					      CORDON_GIT_START "/index" };
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < CORDON_ARRAY_SIZE(places); i++)
		fd = cordon_open_beneath(record_fd, places[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd;
}
