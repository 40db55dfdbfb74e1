/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts overlays, and finds out whether the kernel allows them. cordon_overlay_mount() and everything it calls may
 * run between clone and exec. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/overlay.h"
#include "base/path.h"
#include "base/resolve.h"
#include "base/sys.h"

/* Escapes colons, which separate several lower directories. False when the result is too long. */
static bool escape_lower(const char *path, char ret[static CORDON_PATH_MAX])
{
	size_t n = 0;

	for (; *path; path++) {
		if (n + 2 >= CORDON_PATH_MAX)
			return false;
		if (*path == ':' || *path == '\\')
			ret[n++] = '\\';
		ret[n++] = *path;
	}
	ret[n] = '\0';
	return true;
}

static int configure(int fs, const char *lower, const char *upper, const char *work)
{
	if (fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", lower, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", upper, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "workdir", work, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return 0;
}

int cordon_overlay_mount(int root_fd, const char *work, const char *path)
{
	CORDON_UNCLEARED char lower[CORDON_PATH_MAX], upper_dir[CORDON_PATH_MAX], work_dir[CORDON_PATH_MAX];
	autofd int fs = -1;
	autofd int target = -1;
	autofd int layer = -1;
	int r;

	while (*path == '/')
		path++;
	if (!escape_lower(path, lower) || cordon_path_join(work, "upper", upper_dir, sizeof(upper_dir)) < 0 ||
	    cordon_path_join(work, "work", work_dir, sizeof(work_dir)) < 0)
		return -ENAMETOOLONG;
	target = cordon_open_beneath(root_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (target < 0)
		return target;
	/* The options are paths. They are relative, because absolute ones would lead into the old root. */
	if (fchdir(root_fd) < 0 || (fs = fsopen("overlay", FSOPEN_CLOEXEC)) < 0)
		return -errno;
	r = configure(fs, lower, upper_dir, work_dir);
	if (r < 0)
		return r;
	layer = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (layer < 0)
		return -errno;
	return move_mount(layer, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Numbers of descriptors, separated by colons. */
static int list_numbers(char *ret, size_t size, const int *fds, size_t n)
{
	char digits[CORDON_DIGITS_SIZE];
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		if (cordon_concat(ret + len, size - len, i ? ":" : "", cordon_digits((uint64_t)fds[i], digits),
				  (char *)NULL) < 0)
			return -ENAMETOOLONG;
		len += strlen(ret + len);
	}
	return 0;
}

int cordon_overlay_make(int proc_fds, const int *lower, size_t n_lower, int upper, int work, unsigned int attributes)
{
	char lowers[256], upper_name[CORDON_DIGITS_SIZE], work_name[CORDON_DIGITS_SIZE];
	autofd int fs = -1;
	int r = list_numbers(lowers, sizeof(lowers), lower, n_lower);
	int layer;

	if (r < 0)
		return r;
	/* With xino a file keeps its number when it is first changed, also where upper and lower are two file systems. */
	if (fchdir(proc_fds) < 0 || (fs = fsopen("overlay", FSOPEN_CLOEXEC)) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "index", "off", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "xino", "on", 0) < 0)
		return -errno;
	r = configure(fs, lowers, cordon_digits((uint64_t)upper, upper_name), cordon_digits((uint64_t)work, work_name));
	if (r < 0)
		return r;
	layer = fsmount(fs, FSMOUNT_CLOEXEC, attributes);
	return layer < 0 ? -errno : layer;
}

static int write_text(const char *path, const char *text)
{
	autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : cordon_write_all(fd, text, strlen(text));
}

/* The namespace has the caller's own id and no other. */
static int map_id(const char *file, uint32_t id)
{
	char digits[CORDON_DIGITS_SIZE], map[2 * CORDON_DIGITS_SIZE];
	const char *number = cordon_digits(id, digits);

	cordon_concat(map, sizeof(map), number, " ", number, " 1", (char *)NULL);
	return write_text(file, map);
}

static int map_ids(uid_t uid, gid_t gid)
{
	int r = map_id("/proc/self/uid_map", uid);

	if (r == 0)
		r = write_text("/proc/self/setgroups", "deny");
	return r < 0 ? r : map_id("/proc/self/gid_map", gid);
}

/* Makes the same mounts as a run: a new file system over the root, and the directory read-only in it. */
static int try_layer(int dir)
{
	autofd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	autofd int slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autofd int root = -1;
	autofd int tree = -1;
	autofd int target = -1;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE };

	if (fs < 0 || slash < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 || (root = fsmount(fs, FSMOUNT_CLOEXEC, 0)) < 0 ||
	    move_mount(root, "", slash, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ||
	    mkdirat(root, "lower", 0700) < 0 || mkdirat(root, "layer", 0700) < 0 ||
	    mkdirat(root, "layer/upper", 0700) < 0 || mkdirat(root, "layer/work", 0700) < 0 ||
	    (target = openat(root, "lower", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    (tree = open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)) < 0 ||
	    mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0 ||
	    move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return cordon_overlay_mount(root, "layer", "lower");
}

int cordon_overlay_probe(const char *dir)
{
	struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWNS, .exit_signal = SIGCHLD };
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int status = 0, r;
	pid_t pid = cordon_sys_clone3(&args, sizeof(args));

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		/* Open it in the namespace: open_tree() cannot clone a mount of the namespace outside. */
		int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

		r = fd < 0 ? -errno : map_ids(uid, gid);
		_exit(r == 0 ? -try_layer(fd) : -r);
	}
	do
		r = waitpid(pid, &status, 0) < 0 ? -errno : 0;
	while (r == -EINTR);
	if (r < 0)
		return r;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}
