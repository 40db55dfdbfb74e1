/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 builds the tree of the sandbox: it applies the steps of a plan, and names source and target of every mount by a
 * descriptor. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/overlay.h"
#include "base/resolve.h"
#include "sandbox/inside/mounts.h"
#include "sandbox/inside/view.h"
#include "sandbox/plan/tripwire.h"

#define MASK_DIR "proc/mask-dir"
#define MASK_FILE "proc/mask-file"
#define PINS "proc/pins"
#define VIEW "proc/view"
#define TRIPWIRES "proc/tripwires"
#define ETC_ATTEMPTS 16	   /* to mount a file of /etc that is replaced again and again */
#define INODES_PER_MIB 256 /* limits the number of files in our file system, as `size` limits its bytes */

struct applier {
	const struct cordon_plan *plan;
	struct cordon_mounts *m;
	int slash_fd; /* the host's root */
	const struct cordon_mounts_calls *calls;
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

/* The same by a path in our own tree, where nobody else can have put a link. */
static int attach_own(const struct cordon_mounts *m, int tree, const char *path)
{
	return move_mount(tree, "", m->root_fd, path + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
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

/* Mounts a clone of what fd is on target, with these attributes. */
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

/* Makes a file system of a type, with options in pairs, and returns a detached mount of it. */
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

static int begin(struct applier *a)
{
	char size[CORDON_DIGITS_SIZE], inodes[CORDON_DIGITS_SIZE];
	uint64_t mib = a->plan->tmp_size >> 20;
	const char *options[] = { "size",      cordon_digits(a->plan->tmp_size, size),
				  "nr_inodes", cordon_digits((mib < 16 ? 16 : mib) * INODES_PER_MIB, inodes),
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
	/* The new root covers the old one: our descriptors still lead to the old root, paths do not. */
	if (attach(a->m->root_fd, a->slash_fd) < 0)
		return failed(a, -errno, "mount", "the new root");
	return 0;
}

/* The umask is 0 here, and the descriptor that creates a file can write it whatever its mode. */
static int make_file(const struct applier *a, const struct cordon_step *step)
{
	int fd, r;

	if (!step->text) /* a mount point */
		return mknodat(a->m->root_fd, step->path + 1, S_IFREG | step->mode, 0) < 0 ? -errno : 0;
	fd = openat(a->m->root_fd, step->path + 1, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, step->mode);
	if (fd < 0)
		return -errno;
	r = cordon_write_all(fd, step->text, step->text_len);
	close(fd);
	return r;
}

static int make_dir(const struct applier *a, const struct cordon_step *step)
{
	return mkdirat(a->m->root_fd, step->path + 1, step->mode) < 0 && errno != EEXIST ? -errno : 0;
}

/* INVARIANT: we mount only the inode that the plan judged. */
static int check_identity(int fd, dev_t dev, ino_t ino)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == dev && st.st_ino == ino ? 0 : -ESTALE;
}

static uint64_t bind_attributes(const struct cordon_step *step)
{
	if (step->flags & CORDON_STEP_SYSTEM)
		return 0; /* CORDON_STEP_FREEZE sets them */
	return MOUNT_ATTR_NOSUID | (step->flags & CORDON_STEP_IS_DEVICE ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV) |
	       (step->flags & CORDON_STEP_READ_ONLY ? MOUNT_ATTR_RDONLY : 0);
}

/* What the administrator put in the place of a part of /etc since the plan was built is judged as the plan would judge
 * it: of the same type, no link, and everybody may read it. A package manager replaces such files at any time. */
static int judge_again(int fd, const struct cordon_step *step)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!(st.st_mode & S_IROTH) || (step->flags & CORDON_STEP_IS_DIR ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode)))
		return -ENOENT;
	return 0;
}

/* Mounts a part of the system, which only the administrator can change, in our own tree. It uses few calls, because
 * each start mounts a dozen of them. */
static int bind_system_once(const struct applier *a, const struct cordon_step *step)
{
	unsigned int recursive = step->flags & CORDON_STEP_IS_DIR ? AT_RECURSIVE : 0;
	uint64_t attributes = bind_attributes(step);
	autofd int tree = open_tree(a->slash_fd, step->source + 1,
				    AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | recursive);
	int r = tree < 0 ? -errno : check_identity(tree, step->dev, step->ino);

	if (r == -ESTALE && step->flags & CORDON_STEP_IN_ETC)
		r = judge_again(tree, step);
	if (r == 0 && attributes)
		r = set_attributes(tree, attributes, 0);
	return r < 0 ? r : attach_own(a->m, tree, step->path);
}

static int bind_system(const struct applier *a, const struct cordon_step *step)
{
	int r = bind_system_once(a, step);

	if (!(step->flags & CORDON_STEP_IN_ETC))
		return r;
	/* The kernel mounts no file that lost its name since it was opened. If another one took its place, we mount that. */
	for (unsigned int i = 0; r == -ENOENT && i < ETC_ATTEMPTS; i++)
		r = bind_system_once(a, step);
	return r == -ENOENT ? 0 : r; /* it has gone: an empty file or directory of ours is in its place */
}

/* Makes the view and mounts it where nobody can reach it; the steps that show parts of the workspace take them from
 * there. */
static int view_step(const struct applier *a)
{
	a->m->view_fd = cordon_inside_view_make(a->plan, a->slash_fd);
	if (a->m->view_fd < 0)
		return a->m->view_fd;
	return move_mount(a->m->view_fd, "", a->m->root_fd, VIEW, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

static int bind_step(const struct applier *a, const struct cordon_step *step)
{
	bool in_view = step->flags & CORDON_STEP_IN_VIEW;
	autofd int source = in_view ? cordon_inside_view_open(a->plan, a->slash_fd, a->m->view_fd, step)
				    : cordon_open_beneath(a->slash_fd, step->source + 1, O_PATH | O_CLOEXEC);
	autofd int target = -1;
	dev_t dev = step->dev;
	ino_t ino = step->ino;
	int r;

	for (size_t i = 0; i < a->m->n_copied; i++)
		if (&a->plan->steps[a->m->copied[i].step] == step)
			dev = a->m->copied[i].dev, ino = a->m->copied[i].ino;
	r = source < 0 ? source : in_view ? 0 : check_identity(source, dev, ino);
	if (r < 0)
		return r;
	target = open_inside(a->m, step->path);
	if (target < 0)
		return target;
	if (step->text) {
		autofd int changes = cordon_inside_changes_make(step, a->slash_fd, source);

		return changes < 0 ? changes : attach(changes, target);
	}
	return put(source, target, step->flags & CORDON_STEP_IS_DIR ? AT_RECURSIVE : 0, bind_attributes(step), 0);
}

/* Makes a FUSE file system: PID 1 does it, because it has the right to, and somebody outside serves it. The device must be opened in the
 * user namespace that mounts it. Only who serves may keep the device, so that the file system ends with that process.
 *
 * "rootmode" is what the kernel judges by while it has no attributes of the root. It throws the first ones away when it hears of
 * a change in the root before they arrive. The mode grants nothing: who serves judges every name, and works with the rights of
 * the user. */
static int make_fuse(const struct applier *a, bool default_permissions, int *ret_device)
{
	autofd int device = cordon_open_beneath(a->slash_fd, "dev/fuse", O_RDWR | O_CLOEXEC);
	char fd[CORDON_DIGITS_SIZE], uid[CORDON_DIGITS_SIZE], gid[CORDON_DIGITS_SIZE];
	const char *options[] = {
		"fd", NULL, "rootmode", "40777", "user_id", NULL, "group_id", NULL, "default_permissions", NULL, NULL
	};
	int fs;

	if (device < 0)
		return device;
	options[1] = cordon_digits((uint64_t)device, fd);
	options[5] = cordon_digits(a->plan->uid, uid);
	options[7] = cordon_digits(a->plan->gid, gid);
	if (!default_permissions)
		options[8] = NULL;
	fs = make_fs("fuse", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fs >= 0)
		*ret_device = cordon_steal_fd(&device);
	return fs;
}

/* Reads the top of the tripwires once, so that the kernel knows the nodes: asking for each costs a look at the supervisor. */
static void list_tripwires(int top)
{
	autofd int dir = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char entries[8192];

	while (dir >= 0 && syscall(SYS_getdents64, dir, entries, sizeof(entries)) > 0)
		;
}

/*
 * Mounts the tree of the tripwires where nobody can reach it. Its server judges alone ("default_permissions" would have the kernel
 * refuse by the mode, and nobody would hear of it), and answers from its loop: we do not wait for it here.
 */
static int start_tripwires(struct applier *a)
{
	autofd int device = -1;
	int fs = make_fuse(a, false, &device), r;
	size_t n = 0;

	if (fs < 0)
		return fs;
	a->m->trip_fd = fs;
	if (move_mount(fs, "", a->m->root_fd, TRIPWIRES, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	r = a->calls->serve_tripwires(a->calls->data, cordon_steal_fd(&device));
	for (size_t i = 0; i < a->plan->n_steps; i++)
		n += (a->plan->steps[i].flags & CORDON_STEP_TRIP) && a->plan->steps[i].kind == CORDON_STEP_MASK;
	if (r == 0 && n > 2)
		list_tripwires(fs);
	return r;
}

/* Mounts a tripwire. It is not read-only: a change of it gets the answer of the server, which is the same everywhere. */
static int put_tripwire(const struct cordon_mounts *m, uint64_t number, int target)
{
	char digits[CORDON_DIGITS_SIZE];
	autofd int node = openat(m->trip_fd, cordon_digits(number, digits), O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return node < 0 ? -errno : put(node, target, 0, 0, 0);
}

static int trip_step(struct applier *a, const struct cordon_step *step)
{
	autofd int target = open_inside(a->m, step->path);
	int r = target < 0 ? target : a->m->trip_fd < 0 ? start_tripwires(a) : 0;

	return r < 0 ? r : put_tripwire(a->m, cordon_trip_of_step((size_t)(step - a->plan->steps)), target);
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
		return target == -ENOENT && step->flags & CORDON_STEP_IF_THERE ? 0 : target;
	return put(step->flags & CORDON_STEP_IS_DIR ? a->m->mask_dir_fd : a->m->mask_file_fd, target, 0,
		   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0);
}

/*
 * Nobody can rename or remove an entry while it is a mount point anywhere in the namespace. So the pin goes on the same
 * directory entry in a second mount of the workspace, which nobody can reach: the entry is fixed, and in the agent's
 * own mount nothing covers it, so renames across it work too.
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
	/* Open the entry itself, also when it is a link. */
	entry = openat(dir, slash ? slash + 1 : step->source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (entry < 0 || fstat(entry, &st) < 0)
		return -errno;
	if (as_judged && (st.st_dev != step->dev || st.st_ino != step->ino))
		return -ESTALE;
	/* The mount is read-only without attributes, because it is a clone of our frozen tree. */
	return put(S_ISDIR(st.st_mode) ? m->mask_dir_fd : m->mask_file_fd, entry, 0, 0, 0);
}

static int mount_hidden(const struct cordon_mounts *m, int workspace)
{
	int tree = workspace < 0 ? workspace : clone_tree(workspace, AT_RECURSIVE);
	int r;

	if (tree < 0)
		return tree;
	r = attach(tree, m->pins_fd);
	if (r == 0)
		return tree;
	close(tree);
	return r;
}

/* The plan has the pins deepest first, because a pinned directory hides what lies below it in the hidden mount. */
static int pin_area(struct applier *a, size_t index)
{
	const struct cordon_area *area = &a->plan->areas[index];
	bool in_view = index == 0 && a->plan->view;
	autofd int base = -1;
	autofd int hidden = -1;

	for (size_t i = 0; i < a->plan->n_steps; i++) {
		const struct cordon_step *step = &a->plan->steps[i];
		int r;

		if (step->kind != CORDON_STEP_PIN || step->area != index)
			continue;
		if (hidden < 0) {
			/* The pins must be in the tree that the agent sees. */
			if (!in_view)
				base = cordon_inside_open_judged(a->slash_fd, area->source, area->dev, area->ino);
			hidden = mount_hidden(a->m, in_view ? a->m->view_fd : base);
			if (hidden < 0)
				return failed(a, hidden, "pin", area->source);
		}
		r = pin_one(a->m, hidden, step, !in_view);
		if (r < 0)
			return failed(a, r, "pin", step->path);
	}
	return 0;
}

/* Keeps a copy of each share's mount in the workspace, to mount it again when the host replaces the directory under
 * it. */
static int keep_shares(struct applier *a)
{
	for (size_t i = 0; i < a->plan->n_guards; i++) {
		autofd int here = -1;
		int tree;

		if (a->plan->guards[i].kind != CORDON_GUARD_SHARE || a->m->n_shares == CORDON_AREAS_MAX)
			continue;
		here = open_inside(a->m, a->plan->guards[i].inside);
		tree = here < 0 ? here : clone_tree(here, AT_RECURSIVE);
		if (tree < 0)
			return failed(a, tree, "keep", a->plan->guards[i].inside);
		a->m->shares[a->m->n_shares].guard = i;
		a->m->shares[a->m->n_shares++].tree_fd = tree;
	}
	return 0;
}

static int make_own_places(struct applier *a)
{
	int root = a->m->root_fd;

	if (mkdirat(root, MASK_DIR, 0) < 0 || mkdirat(root, PINS, 0) < 0 || mknodat(root, MASK_FILE, S_IFREG, 0) < 0 ||
	    (a->plan->view && mkdirat(root, VIEW, 0) < 0) || (a->plan->tripwires && mkdirat(root, TRIPWIRES, 0) < 0))
		return failed(a, -errno, "make", "a place for masks");
	a->m->mask_dir_fd = openat(root, MASK_DIR, O_PATH | O_CLOEXEC);
	a->m->mask_file_fd = openat(root, MASK_FILE, O_PATH | O_CLOEXEC);
	a->m->pins_fd = openat(root, PINS, O_PATH | O_CLOEXEC);
	if (a->m->mask_dir_fd < 0 || a->m->mask_file_fd < 0 || a->m->pins_fd < 0)
		return failed(a, -errno, "open", "a place for masks");
	return 0;
}

/* Mounts a new file system in our own tree. */
static int mount_own_fs(const struct applier *a, const char *type, const char *const *options, unsigned int attributes,
			const char *path)
{
	autofd int fs = make_fs(type, options, attributes);

	return fs < 0 ? fs : attach_own(a->m, fs, path);
}

/* A kernel without message queues has none inside either. */
static int mount_queues(const struct applier *a, const char *path)
{
	int r = mount_own_fs(a, "mqueue", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, path);

	return r == -ENODEV ? 0 : r;
}

/* Mounts what the lens shows. */
static int lens_step(const struct applier *a, const struct cordon_step *step)
{
	autofd int target = open_inside(a->m, step->path);
	autofd int device = -1;
	autofd int fs = target < 0 ? target : make_fuse(a, true, &device);
	int r = fs < 0 ? fs : attach(fs, target);

	return r < 0 ? r : a->calls->serve_lens(a->calls->data, cordon_steal_fd(&device), a->m->view_fd);
}

static int apply_step(struct applier *a, const struct cordon_step *step)
{
	static const char *const devpts[] = { "newinstance", NULL, "ptmxmode", "0666", "mode", "0620", NULL };

	if (step->flags & CORDON_STEP_TRIP) /* directories and files of the skeleton are there with it */
		return step->kind == CORDON_STEP_MASK || step->kind == CORDON_STEP_PRIVATE ? trip_step(a, step) : 0;
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
		return step->flags & (CORDON_STEP_SYSTEM | CORDON_STEP_IS_DEVICE) ? bind_system(a, step)
										  : bind_step(a, step);
	case CORDON_STEP_VIEW:
		return view_step(a);
	case CORDON_STEP_PRIVATE:
		return private_step(a, step);
	case CORDON_STEP_MASK:
		return mask_step(a, step);
	case CORDON_STEP_LENS:
		return lens_step(a, step);
	case CORDON_STEP_LAYER:
		return cordon_overlay_mount(a->m->root_fd, step->source, step->path);
	case CORDON_STEP_DEVPTS:
		return mount_own_fs(a, "devpts", devpts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, step->path);
	case CORDON_STEP_MQUEUE:
		return mount_queues(a, step->path);
	case CORDON_STEP_PIN:  /* pin_area() makes all pins of an area together */
	case CORDON_STEP_PROC: /* mounted last, because it covers what nobody may reach */
	case CORDON_STEP_RULE: /* only in the lower tier, which mounts nothing */
	case CORDON_STEP__MAX:
		break;
	}
	return 0;
}

/*
 * Masks the files of /proc that only root may read, or that show more to root: memory, addresses and keys of the whole
 * machine. An agent that is started by root still has uid 0 here, and /proc asks for no more. The mask is read-only,
 * because it is a clone of our frozen tree.
 */
static int mask_proc(struct applier *a)
{
	static const char
		*const
			names[] = {
				"allocinfo",	"kallsyms",    "kcore",	     "key-users",  "keys",
				"kmsg",		"kpagecgroup", "kpagecount", "kpageflags", "latency_stats",
				"pagetypeinfo", "sched_debug", "slabinfo",   "timer_list", "vmcore",
				"vmallocinfo", /* the last one always exists: closing a clone that was mounted nowhere takes long */
			};
	autofd int proc = a->plan->uid == 0 ? open_inside(a->m, "/proc") : -1;
	autofd int mask = -1;

	for (size_t i = 0; proc >= 0 && i < CORDON_ARRAY_SIZE(names); i++) {
		if (mask < 0 && (mask = clone_tree(a->m->mask_file_fd, 0)) < 0)
			return failed(a, mask, "make", "a mask");
		if (move_mount(mask, "", proc, names[i], MOVE_MOUNT_F_EMPTY_PATH) == 0)
			cordon_closep(&mask);
		else if (errno != ENOENT) /* a missing file: the next one gets this mask */
			return failed(a, -errno, "mask in /proc", names[i]);
	}
	return a->plan->uid == 0 && proc < 0 ? failed(a, proc, "open", "/proc") : 0;
}

static int enter_root(struct applier *a)
{
	if (fchdir(a->m->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return failed(a, -errno, "pivot_root", "/");
	return 0;
}

int cordon_mounts_leave(struct cordon_failure *fail)
{
	/* The old root is now mounted over the new one, and "." still means the old one. */
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) {
		*fail = (struct cordon_failure){ "leave", "the old root" };
		return -errno;
	}
	return 0;
}

int cordon_mounts_apply(const struct cordon_plan *plan, const struct cordon_mounts_calls *calls,
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
		[CORDON_STEP_MQUEUE] = "mount",
		[CORDON_STEP_LENS] = "show through the lens",
		[CORDON_STEP_LAYER] = "lay a discarded layer on",
		[CORDON_STEP_VIEW] = CORDON_MAKE_VIEW,
	};
	struct applier a = { .plan = plan, .m = ret_mounts, .slash_fd = -1, .calls = calls, .fail = fail };
	bool own_places = false;
	int r = begin(&a);

	for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];

		/* They must be made before the freeze, and after the directory /proc, which later hides them. */
		if (!own_places && step->kind != CORDON_STEP_DIR && step->kind != CORDON_STEP_FILE &&
		    step->kind != CORDON_STEP_LINK) {
			own_places = true;
			r = make_own_places(&a);
			if (r < 0)
				break;
		}
		/* INVARIANT: nothing of the workspace is mounted before the run is recorded. What comes before the
		 * freeze is ours and the system's, and is made while the supervisor still writes the record. */
		if (step->kind == CORDON_STEP_FREEZE)
			calls->await_record(calls->data);
		r = apply_step(&a, step);
		if (r < 0)
			failed(&a, r, names[step->kind] ? names[step->kind] : "apply",
			       step->source ? step->source : step->path);
	}
	/* Names that are denied and missing get theirs when the host makes them. */
	if (r == 0 && plan->tripwires && ret_mounts->trip_fd < 0 && (r = start_tripwires(&a)) < 0)
		failed(&a, r, "mount", "tripwires");
	for (size_t i = 0; r == 0 && i < plan->n_areas; i++)
		r = pin_area(&a, i);
	if (r == 0)
		r = keep_shares(&a);
	if (r == 0) {
		r = mount_own_fs(&a, "proc", NULL,
				 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, "/proc");
		if (r < 0)
			failed(&a, r, "mount", "/proc");
	}
	if (r == 0)
		r = mask_proc(&a);
	if (r == 0)
		r = enter_root(&a);
	cordon_closep(&a.slash_fd);
	return r;
}

static int make_read_only(int here, const struct stat *st)
{
	struct statvfs fs;

	if (fstatvfs(here, &fs) < 0)
		return -errno;
	if (fs.f_flag & ST_RDONLY)
		return 1;
	return put(here, here, S_ISDIR(st->st_mode) ? AT_RECURSIVE : 0,
		   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0);
}

static int mask(const struct cordon_mounts *m, const struct cordon_plan *plan, size_t index, int here,
		const struct stat *st)
{
	int own = S_ISDIR(st->st_mode) ? m->mask_dir_fd : m->mask_file_fd;
	struct stat mask;

	if (fstat(m->trip_fd < 0 ? own : m->trip_fd, &mask) < 0)
		return -errno;
	if (mask.st_dev == st->st_dev && (m->trip_fd >= 0 || mask.st_ino == st->st_ino))
		return 1;
	if (m->trip_fd >= 0)
		return put_tripwire(m, cordon_trip_of_guard(plan, index, S_ISDIR(st->st_mode)), here);
	return put(own, here, 0, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0);
}

static int share_again(const struct cordon_mounts *m, size_t index, int here, const struct stat *st)
{
	for (size_t i = 0; i < m->n_shares; i++) {
		struct stat kept;

		if (m->shares[i].guard != index)
			continue;
		if (fstat(m->shares[i].tree_fd, &kept) < 0)
			return -errno;
		if (st->st_dev == kept.st_dev && st->st_ino == kept.st_ino)
			return 1;
		return put(m->shares[i].tree_fd, here, AT_RECURSIVE, 0, 0);
	}
	return -ENOENT;
}

/* Whether Landlock lets the agent itself make entries in this directory; the rule follows it when it is moved. */
static bool is_open_dir(const struct cordon_plan *plan, const struct stat *st)
{
	/* Nobody moves a directory of the host into a view, or one that the view shows of the host. */
	if (plan->view)
		return false;
	for (size_t i = 0; i < plan->n_open_dirs; i++)
		if (plan->open_dirs[i].ino == st->st_ino && plan->open_dirs[i].dev == st->st_dev)
			return true;
	return false;
}

/* Looks at the directories that lead to a missing boundary and were made after the plan. 0 when one was made read-only
 * now. */
static int hold_way(const struct cordon_mounts *m, const struct cordon_plan *plan, const struct cordon_guard *guard,
		    unsigned int *ret_way)
{
	const char *end = guard->inside + strlen(guard->dir) + 1;
	char part[CORDON_PATH_MAX];
	int held = 1;

	while ((end = strchr(end, '/'))) {
		autofd int here = -1;
		struct stat st;
		int r = 1;

		if (cordon_copy(part, sizeof(part), guard->inside, (size_t)(end - guard->inside)) < 0)
			return -ENAMETOOLONG;
		here = open_inside(m, part);
		if (here < 0)
			return here == -ENOENT ? held : here;
		++*ret_way;
		if (fstat(here, &st) < 0)
			return -errno;
		if (!S_ISDIR(st.st_mode) || is_open_dir(plan, &st))
			r = make_read_only(here, &st);
		if (r < 0)
			return r;
		held = held == 0 ? 0 : r;
		end++;
	}
	return held;
}

int cordon_mounts_hold(const struct cordon_mounts *mounts, const struct cordon_plan *plan, size_t index,
		       unsigned int *ret_way)
{
	const struct cordon_guard *guard = &plan->guards[index];
	int way = hold_way(mounts, plan, guard, ret_way);
	autofd int here = -1;
	struct stat st;
	int r;

	if (way < 0)
		return way;
	here = open_inside(mounts, guard->inside);
	if (here < 0)
		return (here == -ENOENT || here == -ENOTDIR) && way == 0 ? 0 : here == -ENOTDIR ? -ENOENT : here;
	if (fstat(here, &st) < 0)
		return -errno;
	if (guard->kind == CORDON_GUARD_SHARE)
		r = share_again(mounts, index, here, &st);
	else if (guard->kind == CORDON_GUARD_DENIED)
		r = mask(mounts, plan, index, here, &st);
	else
		r = make_read_only(here, &st);
	return r == 1 && way == 0 ? 0 : r;
}

int cordon_mounts_pin_again(const struct cordon_mounts *mounts, const struct cordon_plan *plan)
{
	for (size_t area = 0; area < plan->n_areas; area++) {
		autofd int base = -1;
		autofd int hidden = -1;

		for (size_t i = 0; i < plan->n_steps; i++) {
			if (plan->steps[i].kind != CORDON_STEP_PIN || plan->steps[i].area != area)
				continue;
			if (hidden < 0) {
				base = open_inside(mounts, plan->areas[area].at);
				hidden = mount_hidden(mounts, base);
				if (hidden < 0)
					return hidden;
			}
			pin_one(mounts, hidden, &plan->steps[i], false);
		}
	}
	return 0;
}
