/* SPDX-License-Identifier: Apache-2.0 */
/* Hides denied names that are missing when a view begins. */
#include "view/hide.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/io.h"
#include "base/path.h"
#include "view/internal.h"
#include "view/lower.h"

#define HIDDEN "hidden"
#define HIDDEN_MAX ((size_t)4 << 20)

void cordon_hidden_load(int view_fd, struct cordon_buf *ret_list)
{
	ret_list->max = HIDDEN_MAX;
	if (cordon_read_file(view_fd, HIDDEN, O_NOFOLLOW, ret_list, NULL) < 0 ||
	    (ret_list->len && ret_list->data[ret_list->len - 1] != '\0'))
		cordon_buf_reset(ret_list);
}

bool cordon_hidden_has(const struct cordon_buf *list, const char *path)
{
	for (const char *at = list->data; at && at < list->data + list->len; at += strlen(at) + 1)
		if (cordon_streq(at, path))
			return true;
	return false;
}

/* Gives a directory the times of another one. */
static int set_times(int fd, const struct stat *like)
{
	const struct timespec times[2] = { like->st_atim, like->st_mtim };

	return futimens(fd, times) < 0 ? -errno : 0;
}

/* Opens the directory of the upper layer that stands above one of the layers below it, and makes it when it is missing.
 * It becomes what the view shows, so it is like the other one. */
static int open_upper(int upper, const char *name, const struct stat *like)
{
	int made = mkdirat(upper, name, 0700), fd;

	if (made < 0 && errno != EEXIST)
		return -errno;
	fd = openat(upper, name, CORDON_OPEN_DIR);
	if (fd < 0)
		return -errno;
	/* Only root can keep another owner, and nobody else has a view of such a directory in which the kernel
	 * would. */
	if (made == 0 &&
	    ((geteuid() == 0 && fchown(fd, like->st_uid, like->st_gid) < 0) || fchmod(fd, like->st_mode & 07777) < 0)) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/* Hides the first part of a path that is missing. *ret_n is its length, or 0 when nothing is missing. */
static int hide_below(const struct cordon_lower *lower, int upper, const char *path, size_t *ret_n)
{
	autolower struct cordon_lower below = CORDON_LOWER_NONE;
	size_t n = strcspn(path, "/"), rest = 0;
	char name[NAME_MAX + 1];
	struct cordon_ident ident;
	autofd int fd = -1;
	struct stat st;
	int dir, r;

	*ret_n = 0;
	if (cordon_copy(name, sizeof(name), path, n) < 0)
		return 0; /* no file system has such a name */
	r = cordon_lower_look(lower, name, &ident, &dir);
	if (r < 0)
		return r;
	if (!ident.mode) {
		*ret_n = n;
		return mknodat(upper, name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST ? -errno : 0;
	}
	if (!path[n] || !S_ISDIR(ident.mode))
		return 0;
	r = cordon_lower_open(lower, name, &below);
	if (r < 0)
		return r;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	fd = open_upper(upper, name, &st);
	r = fd < 0 ? fd : hide_below(&below, fd, path + n + 1, &rest);
	if (r == 0)
		r = set_times(fd, &st);
	*ret_n = rest ? n + 1 + rest : 0;
	return r;
}

/* Whether a part of the path is missing, so that the upper layer stays as it is where none is. */
static bool is_missing(const struct cordon_lower *lower, const char *path)
{
	autofd int fd = cordon_lower_find(lower, path, true);

	return fd == -ENOENT;
}

static int hide_all(const struct cordon_policy *policy, const struct cordon_lower *lower, int upper,
		    struct cordon_buf *list, struct cordon_error *err)
{
	for (size_t g = 0; g < policy->n_grants; g++) {
		const struct cordon_grant *grant = &policy->grants[g];

		for (size_t i = 0;
		     grant->access == CORDON_ACCESS_NONE && i < cordon_pattern_alternatives(grant->pattern); i++) {
			const char *path = cordon_pattern_literal(grant->pattern, i);
			size_t n = 0;
			int r;

			if (!path || !*path || !is_missing(lower, path))
				continue;
			r = hide_below(lower, upper, path, &n);
			if (r == 0 && n)
				r = cordon_buf_add(list, path, n);
			if (r == 0 && n)
				r = cordon_buf_addc(list, '\0');
			if (r < 0)
				return cordon_fail_errno(err, r, "cannot hide %s in the view", path);
		}
	}
	return 0;
}

int cordon_view_hide(const struct cordon_view *view, const struct cordon_policy *policy, struct cordon_error *err)
{
	autobuf struct cordon_buf list = CORDON_BUF(HIDDEN_MAX);
	autolower struct cordon_lower lower = CORDON_LOWER_NONE;
	autofd int upper = -1, fd = -1;
	bool denies = false;
	struct stat st;
	int r;

	for (size_t i = 0; !denies && i < policy->n_grants; i++)
		denies = policy->grants[i].access == CORDON_ACCESS_NONE;
	if (!denies)
		return 0;
	r = cordon_lower_top(view, policy->root.fd, &lower, err);
	if (r < 0)
		return r;
	upper = openat(view->dir_fd, CORDON_VIEW_UPPER, CORDON_OPEN_DIR);
	if (upper < 0)
		return cordon_fail_errno(err, -errno, "cannot open the layer of the view");
	r = hide_all(policy, &lower, upper, &list, err);
	if (r < 0 || !list.len)
		return r;
	if (fstat(policy->root.fd, &st) < 0 || set_times(upper, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot make the layer of the view");
	fd = openat(view->dir_fd, HIDDEN, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : cordon_write_all(fd, list.data, list.len);
	return r < 0 ? cordon_fail_errno(err, r, "cannot write what the view hides") : 0;
}

void cordon_view_unhide(const struct cordon_view *view)
{
	autobuf struct cordon_buf list = { 0 };
	autofd int upper = openat(view->dir_fd, CORDON_VIEW_UPPER, CORDON_OPEN_DIR);

	cordon_hidden_load(view->dir_fd, &list);
	for (const char *at = list.data; upper >= 0 && at && at < list.data + list.len; at += strlen(at) + 1) {
		const char *base = cordon_path_base(at);
		char dir[CORDON_PATH_MAX];
		autofd int parent = -1;
		struct stat st;

		if (cordon_copy(dir, sizeof(dir), at, base > at ? (size_t)(base - at) - 1 : 0) == 0)
			parent = cordon_open_beneath(upper, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (parent >= 0 && fstatat(parent, base, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
		    st.st_rdev == makedev(0, 0))
			unlinkat(parent, base, 0);
	}
}
