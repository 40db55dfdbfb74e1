/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor counts the files that are discarded with a run's private home. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/resolve.h"
#include "sandbox/host/discarded.h"

#define LEVELS_MAX 32 /* each level needs an open descriptor */

int cordon_inside_open_dir(const struct cordon_child *child, const char *path)
{
	char name[64], children[512];
	autofd int list = -1;
	ssize_t n;
	int r = -ESRCH;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/children", (int)child->pid, (int)child->pid);
	list = open(name, O_RDONLY | O_CLOEXEC);
	n = list < 0 ? -1 : read(list, children, sizeof(children) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ESRCH;
	children[n] = '\0';
	for (const char *at = children; *at;) {
		autofd int root = -1;
		int digits = (int)strspn(at, "0123456789");

		snprintf(name, sizeof(name), "/proc/%.*s/root", digits, at);
		at += digits;
		at += strspn(at, " ");
		if (!digits)
			return r;
		root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = root < 0 ? -errno : cordon_open_beneath(root, path + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (r >= 0)
			return r;
	}
	return r;
}

static unsigned int count_below(int dir_fd, const char *name, dev_t dev, unsigned int left, unsigned int levels)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	unsigned int count = 0;

	if (!dir) {
		cordon_closep(&fd);
		return 0;
	}
	while (count < left && (entry = readdir(dir))) {
		struct stat st;

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, "..") ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != dev)
			continue;
		if (!S_ISDIR(st.st_mode))
			count++;
		else if (levels)
			count += count_below(fd, entry->d_name, dev, left - count, levels - 1);
	}
	closedir(dir);
	return count;
}

unsigned int cordon_discarded_count(int home_fd)
{
	struct stat st;

	return home_fd < 0 || fstat(home_fd, &st) < 0
		       ? 0
		       : count_below(home_fd, ".", st.st_dev, CORDON_DISCARDED_MAX, LEVELS_MAX);
}
