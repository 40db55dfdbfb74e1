/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the steps of a plan in the child: mounts by descriptor only. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/resolve.h"
#include "sandbox/mounts.h"

#define MASK_DIR "proc/mask-dir"
#define MASK_FILE "proc/mask-file"
#define PINS "proc/pins"
#define INODES_PER_MIB 256 /* bounds the number of files as well as the bytes of our file system */

struct applier {
	const struct cordon_plan *plan;
	struct cordon_mounts *m;
	int slash_fd; /* the host's root */
	cordon_view_fn serve_view;
	void *data;
	struct cordon_failure *fail;
};

static int failed(struct applier *a, int code, const char *what, const char *object)
{
	*a->fail = (struct cordon_failure){ what, object };
	return code;
}

static int attach(int tree, int target)
{
	return move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

static int clone_tree(int fd, unsigned int recursive)
{
	int tree = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | recursive);

	return tree < 0 ? -errno : tree;
}

static int set_attributes(int tree, uint64_t set, uint64_t clear)
{
	struct mount_attr attr = { .attr_set = set, .attr_clr = clear, .propagation = MS_PRIVATE };

	return mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

/* Clones what fd is, with these attributes, and puts it on target. */
static int put(int fd, int target, unsigned int recursive, uint64_t set, uint64_t clear)
{
	int tree = clone_tree(fd, recursive);
	int r;

	if (tree < 0)
		return tree;
	r = set || clear ? set_attributes(tree, set, clear) : 0;
	if (r == 0)
		r = attach(tree, target);
	close(tree);
	return r;
}

static int open_inside(const struct cordon_mounts *m, const char *path)
{
	while (*path == '/')
		path++;
	return cordon_open_beneath(m->root_fd, path, O_PATH | O_CLOEXEC);
}

/* A file system from its name, with options in pairs; the mount is detached. */
static int make_fs(const char *type, const char *const *options, unsigned int attributes)
{
	int fs = fsopen(type, FSOPEN_CLOEXEC);
	int r = fs < 0 ? -errno : 0;
	int mount_fd = -1;

	for (; r == 0 && options && *options; options += 2) {
		if (options[1])
			r = fsconfig(fs, FSCONFIG_SET_STRING, options[0], options[1], 0) < 0 ? -errno : 0;
		else
			r = fsconfig(fs, FSCONFIG_SET_FLAG, options[0], NULL, 0) < 0 ? -errno : 0;
	}
	if (r == 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		r = -errno;
	if (r == 0 && (mount_fd = fsmount(fs, FSMOUNT_CLOEXEC, attributes)) < 0)
		r = -errno;
	if (fs >= 0)
		close(fs);
	return r < 0 ? r : mount_fd;
}

/* snprintf is not on the list of async-signal-safe functions; numbers are all we need. */
static const char *number(char buf[static 24], uint64_t value)
{
	char *p = buf + 23;

	*p = '\0';
	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	return p;
}

static int begin(struct applier *a)
{
	char size[24], inodes[24];
	uint64_t mib = a->plan->tmp_size >> 20;
	const char *options[] = { "size",      number(size, a->plan->tmp_size),
				  "nr_inodes", number(inodes, (mib < 16 ? 16 : mib) * INODES_PER_MIB),
				  "mode",      "0755",
				  NULL };

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return failed(a, -errno, "make mounts private", "/");
	a->slash_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (a->slash_fd < 0)
		return failed(a, -errno, "open", "/");
	a->m->root_fd = make_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (a->m->root_fd < 0)
		return failed(a, a->m->root_fd, "make file system", "tmpfs");
	/* On top of the old root: our descriptors of it still lead below, names do not. */
	if (attach(a->m->root_fd, a->slash_fd) < 0)
		return failed(a, -errno, "mount", "the new root");
	return 0;
}

static int make_file(const struct applier *a, const struct cordon_step *step)
{
	/* The umask is 0 here, and a file may be written by who made it whatever its mode. */
	int fd = openat(a->m->root_fd, step->path + 1, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, step->mode);
	int r;

	if (fd < 0)
		return -errno;
	r = step->text ? cordon_write_all(fd, step->text, step->text_len) : 0;
	close(fd);
	return r;
}

static int make_dir(const struct applier *a, const struct cordon_step *step)
{
	return mkdirat(a->m->root_fd, step->path + 1, step->mode) < 0 && errno != EEXIST ? -errno : 0;
}

/* INVARIANT: what was judged is what is mounted. */
static int check_identity(int fd, dev_t dev, ino_t ino)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == dev && st.st_ino == ino ? 0 : -ESTALE;
}

static int bind_step(const struct applier *a, const struct cordon_step *step)
{
	uint64_t attributes = MOUNT_ATTR_NOSUID |
			      (step->flags & CORDON_STEP_IS_DEVICE ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV) |
			      (step->flags & CORDON_STEP_READ_ONLY ? MOUNT_ATTR_RDONLY : 0);
	autofd int source = cordon_open_beneath(a->slash_fd, step->source + 1, O_PATH | O_CLOEXEC);
	autofd int target = -1;
	int r = source < 0 ? source : check_identity(source, step->dev, step->ino);

	if (r < 0)
		return r;
	target = open_inside(a->m, step->path);
	if (target < 0)
		return target;
	return put(source, target, step->flags & CORDON_STEP_IS_DIR ? AT_RECURSIVE : 0,
		   step->flags & CORDON_STEP_SYSTEM ? 0 : attributes, 0);
}

static int private_step(const struct applier *a, const struct cordon_step *step)
{
	autofd int here = open_inside(a->m, step->path);

	if (here < 0)
		return here;
	return put(here, here, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, MOUNT_ATTR_RDONLY);
}

static int mask_step(const struct applier *a, const struct cordon_step *step)
{
	autofd int target = open_inside(a->m, step->path);

	if (target < 0)
		return target;
	return put(step->flags & CORDON_STEP_IS_DIR ? a->m->mask_dir_fd : a->m->mask_file_fd, target, 0,
		   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0);
}

/*
 * A name can't be renamed or removed while it is a mount point anywhere in the namespace. So the pin goes onto the
 * same directory entry as seen through a second mount of the workspace that nobody can reach: the entry is held,
 * and the way through the agent's own mount stays free, for renames across it too.
 */
static int pin_one(const struct cordon_mounts *m, int hidden, const struct cordon_step *step, bool as_judged)
{
	const char *slash = strrchr(step->source, '/');
	char parent[CORDON_PATH_MAX];
	autofd int dir = -1;
	autofd int entry = -1;
	struct stat st;

	if (cordon_copy(parent, sizeof(parent), step->source, slash ? (size_t)(slash - step->source) : 0) < 0)
		return -ENAMETOOLONG;
	dir = cordon_open_beneath(hidden, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return dir;
	/* The entry itself, also when it is a link. */
	entry = openat(dir, slash ? slash + 1 : step->source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (entry < 0 || fstat(entry, &st) < 0)
		return -errno;
	if (as_judged && (st.st_dev != step->dev || st.st_ino != step->ino))
		return -ESTALE;
	return put(S_ISDIR(st.st_mode) ? m->mask_dir_fd : m->mask_file_fd, entry, 0, MOUNT_ATTR_RDONLY, 0);
}

static int hidden_workspace(const struct cordon_mounts *m, int workspace)
{
	int tree = clone_tree(workspace, AT_RECURSIVE);
	int r;

	if (tree < 0)
		return tree;
	r = attach(tree, m->pins_fd);
	if (r == 0)
		return tree;
	close(tree);
	return r;
}

/* The pins hold names of the tree that the agent is shown, and of no other that took its place meanwhile. */
static int open_pin_base(const struct applier *a)
{
	const struct cordon_plan *plan = a->plan;
	int fd = cordon_open_beneath(a->slash_fd, plan->pin_base + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? fd : check_identity(fd, plan->pin_base_dev, plan->pin_base_ino);

	if (r < 0 && fd >= 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* The steps hold pins deepest first: a pinned directory hides what lies below it in the hidden mount. */
static int pin_steps(struct applier *a)
{
	autofd int workspace = -1;
	autofd int hidden = -1;

	for (size_t i = 0; i < a->plan->n_steps; i++) {
		const struct cordon_step *step = &a->plan->steps[i];
		int r;

		if (step->kind != CORDON_STEP_PIN)
			continue;
		if (hidden < 0) {
			workspace = open_pin_base(a);
			hidden = workspace < 0 ? workspace : hidden_workspace(a->m, workspace);
			if (hidden < 0)
				return failed(a, hidden, "pin", a->plan->pin_base);
		}
		r = pin_one(a->m, hidden, step, true);
		if (r < 0)
			return failed(a, r, "pin", step->path);
	}
	return 0;
}

static int make_own_places(struct applier *a)
{
	int root = a->m->root_fd;
	int file;

	if (mkdirat(root, MASK_DIR, 0) < 0 || mkdirat(root, PINS, 0) < 0)
		return failed(a, -errno, "make", "a place for masks");
	file = openat(root, MASK_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	if (file < 0)
		return failed(a, -errno, "make", "a place for masks");
	close(file);
	a->m->mask_dir_fd = cordon_open_beneath(root, MASK_DIR, O_PATH | O_CLOEXEC);
	a->m->mask_file_fd = cordon_open_beneath(root, MASK_FILE, O_PATH | O_CLOEXEC);
	a->m->pins_fd = cordon_open_beneath(root, PINS, O_PATH | O_CLOEXEC);
	if (a->m->mask_dir_fd < 0 || a->m->mask_file_fd < 0 || a->m->pins_fd < 0)
		return failed(a, -errno, "open", "a place for masks");
	return 0;
}

static int mount_fs(const struct applier *a, const char *type, const char *const *options, unsigned int attributes,
		    const char *path)
{
	autofd int fs = make_fs(type, options, attributes);
	autofd int target = -1;

	if (fs < 0)
		return fs;
	target = open_inside(a->m, path);
	return target < 0 ? target : attach(fs, target);
}

/* The view is mounted here, where we may, and served from outside, where the workspace is. The device must be opened in
 * the user namespace that mounts; nobody but cordon-lens may keep it, so that its death ends the view. */
static int lens_step(const struct applier *a, const struct cordon_step *step)
{
	autofd int device = cordon_open_beneath(a->slash_fd, "dev/fuse", O_RDWR | O_CLOEXEC);
	char fd[24], uid[24], gid[24];
	const char *options[] = {
		"fd", NULL, "rootmode", "40000", "user_id", NULL, "group_id", NULL, "default_permissions", NULL, NULL
	};
	int r;

	if (device < 0)
		return device;
	options[1] = number(fd, (uint64_t)device);
	options[5] = number(uid, a->plan->uid);
	options[7] = number(gid, a->plan->gid);
	r = mount_fs(a, "fuse", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, step->path);
	return r < 0 ? r : a->serve_view(a->data, cordon_steal_fd(&device));
}

static int apply_step(struct applier *a, const struct cordon_step *step)
{
	static const char *const devpts[] = { "newinstance", NULL, "ptmxmode", "0666", "mode", "0620", NULL };

	switch (step->kind) {
	case CORDON_STEP_DIR:
		return make_dir(a, step);
	case CORDON_STEP_FILE:
		return make_file(a, step);
	case CORDON_STEP_LINK:
		return symlinkat(step->text, a->m->root_fd, step->path + 1) < 0 ? -errno : 0;
	case CORDON_STEP_FREEZE:
		return set_attributes(a->m->root_fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0);
	case CORDON_STEP_BIND:
		return bind_step(a, step);
	case CORDON_STEP_PRIVATE:
		return private_step(a, step);
	case CORDON_STEP_MASK:
		return mask_step(a, step);
	case CORDON_STEP_LENS:
		return lens_step(a, step);
	case CORDON_STEP_DEVPTS:
		return mount_fs(a, "devpts", devpts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, step->path);
	case CORDON_STEP_PIN:  /* all together, see pin_steps() */
	case CORDON_STEP_PROC: /* last, it covers what must not be reached */
	case CORDON_STEP_RULE: /* of the lower tier, which mounts nothing */
	case CORDON_STEP__MAX:
		break;
	}
	return 0;
}

static int enter_root(struct applier *a)
{
	if (fchdir(a->m->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return failed(a, -errno, "pivot_root", "/");
	/* The old root now lies on top of the new one; "." still means it. */
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return failed(a, -errno, "leave", "the old root");
	return 0;
}

int cordon_mounts_apply(const struct cordon_plan *plan, cordon_view_fn serve_view, void *data,
			struct cordon_mounts *ret_mounts, struct cordon_failure *fail)
{
	static const char *const names[] = {
		[CORDON_STEP_DIR] = "make directory",
		[CORDON_STEP_FILE] = "make file",
		[CORDON_STEP_LINK] = "make link",
		[CORDON_STEP_FREEZE] = "freeze",
		[CORDON_STEP_BIND] = "mount",
		[CORDON_STEP_PRIVATE] = "mount",
		[CORDON_STEP_MASK] = "mask",
		[CORDON_STEP_DEVPTS] = "mount",
		[CORDON_STEP_LENS] = "show through the lens",
	};
	struct applier a = {
		.plan = plan, .m = ret_mounts, .slash_fd = -1, .serve_view = serve_view, .data = data, .fail = fail
	};
	bool own_places = false;
	int r = begin(&a);

	for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];

		/* Before the freeze, once /proc is there to hide them. */
		if (!own_places && step->kind != CORDON_STEP_DIR && step->kind != CORDON_STEP_FILE &&
		    step->kind != CORDON_STEP_LINK) {
			own_places = true;
			r = make_own_places(&a);
			if (r < 0)
				break;
		}
		r = apply_step(&a, step);
		if (r < 0)
			failed(&a, r, names[step->kind] ? names[step->kind] : "apply",
			       step->source ? step->source : step->path);
	}
	if (r == 0)
		r = pin_steps(&a);
	if (r == 0) {
		r = mount_fs(&a, "proc", NULL,
			     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, "/proc");
		if (r < 0)
			failed(&a, r, "mount", "/proc");
	}
	if (r == 0)
		r = enter_root(&a);
	cordon_closep(&a.slash_fd);
	return r;
}

int cordon_mounts_protect_again(const struct cordon_mounts *mounts, const char *inside)
{
	autofd int here = open_inside(mounts, inside);
	struct statvfs fs;
	struct stat st;

	if (here < 0)
		return here;
	if (fstatvfs(here, &fs) < 0 || fstat(here, &st) < 0)
		return -errno;
	if (fs.f_flag & ST_RDONLY)
		return 1;
	return put(here, here, S_ISDIR(st.st_mode) ? AT_RECURSIVE : 0,
		   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0);
}

int cordon_mounts_pin_again(const struct cordon_mounts *mounts, const struct cordon_plan *plan)
{
	autofd int workspace = open_inside(mounts, plan->pin_base_at);
	autofd int hidden = -1;

	for (size_t i = 0; i < plan->n_steps; i++) {
		if (plan->steps[i].kind != CORDON_STEP_PIN)
			continue;
		if (hidden < 0) {
			hidden = workspace < 0 ? workspace : hidden_workspace(mounts, workspace);
			if (hidden < 0)
				return hidden;
		}
		pin_one(mounts, hidden, &plan->steps[i], false);
	}
	return 0;
}
