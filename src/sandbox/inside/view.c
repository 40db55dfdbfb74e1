/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 makes the overlay of a view. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/overlay.h"
#include "base/path.h"
#include "base/resolve.h"
#include "sandbox/inside/view.h"

#define DIRECTORY (O_PATH | O_DIRECTORY | O_CLOEXEC)

int cordon_inside_open_judged(int slash_fd, const char *path, dev_t dev, ino_t ino)
{
	int fd = cordon_open_beneath(slash_fd, path + 1, O_PATH | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	r = fstat(fd, &st) < 0 ? -errno : st.st_dev == dev && st.st_ino == ino ? 0 : -ESTALE;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* Opens the layers, the topmost first, and last the workspace itself. */
static int open_lowers(const struct cordon_plan *plan, int slash_fd, int *ret_fds)
{
	const struct cordon_area *root = &plan->areas[0];
	size_t i;

	for (i = 0; i < plan->n_view_layers; i++) {
		ret_fds[i] = cordon_open_beneath(slash_fd, plan->view_layers[i] + 1, DIRECTORY);
		if (ret_fds[i] < 0)
			return ret_fds[i];
	}
	ret_fds[i] = cordon_inside_open_judged(slash_fd, root->source, root->dev, root->ino);
	return ret_fds[i] < 0 ? ret_fds[i] : 0;
}

static unsigned int attributes_of(int root)
{
	struct statvfs fs;

	return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	       (fstatvfs(root, &fs) == 0 && fs.f_flag & ST_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);
}

int cordon_inside_view_make(const struct cordon_plan *plan, int slash_fd)
{
	autofd int dir = cordon_open_beneath(slash_fd, plan->view + 1, DIRECTORY);
	autofd int upper = dir < 0 ? dir : cordon_open_beneath(dir, "upper", DIRECTORY);
	autofd int work = upper < 0 ? upper : cordon_open_beneath(dir, "work", DIRECTORY);
	autofd int fds = openat(slash_fd, "proc/self/fd", DIRECTORY);
	int lowers[CORDON_OVERLAY_LOWER_MAX];
	size_t n = plan->n_view_layers + 1;
	int r;

	if (work < 0 || fds < 0)
		return work < 0 ? work : -errno;
	for (size_t i = 0; i < n; i++)
		lowers[i] = -1;
	r = open_lowers(plan, slash_fd, lowers);
	if (r == 0)
		r = cordon_overlay_make(fds, lowers, n, upper, work, attributes_of(lowers[n - 1]));
	for (size_t i = 0; i < n; i++)
		cordon_closep(&lowers[i]);
	return r;
}

int cordon_inside_changes_make(const struct cordon_step *step, int slash_fd, int upper)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	autofd int lower = cordon_open_beneath(slash_fd, step->text + 1, DIRECTORY);
	autofd int fds = openat(slash_fd, "proc/self/fd", DIRECTORY);
	autofd int work = -1;

	if (lower < 0 || fds < 0)
		return lower < 0 ? lower : -errno;
	if (cordon_concat(path, sizeof(path), step->source + 1, CORDON_OVERLAY_WORK, (char *)NULL) < 0)
		return -ENAMETOOLONG;
	work = cordon_open_beneath(slash_fd, path, DIRECTORY);
	return work < 0 ? work : cordon_overlay_make(fds, &lower, 1, upper, work, attributes_of(lower));
}

int cordon_inside_view_open(const struct cordon_plan *plan, int slash_fd, int view_fd, const struct cordon_step *step)
{
	const char *path = step->source + strlen(plan->root);
	int judged = cordon_inside_open_judged(slash_fd, step->source, step->dev, step->ino);
	int fd = cordon_open_beneath(view_fd, path + strspn(path, "/"), O_PATH | O_CLOEXEC);
	struct stat st;
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0 && !S_ISDIR(st.st_mode) != !(step->flags & CORDON_STEP_IS_DIR))
		r = -ESTALE;
	/* What a layer has changed has another inode, and the host may change the rest meanwhile. */
	if (r == 0 && judged < 0 && !plan->n_view_layers)
		r = judged;
	cordon_closep(&judged);
	if (r < 0)
		cordon_closep(&fd);
	return r < 0 ? r : fd;
}
