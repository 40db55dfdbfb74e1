/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the steps of a plan in PID 1: it names source and target of every mount by a descriptor. Runs between clone
 * and exec, so nothing here allocates. The caller is in new user, mount and pid namespaces and has all capabilities
 * there.
 */
#ifndef CORDON_SANDBOX_INSIDE_MOUNTS_H
#define CORDON_SANDBOX_INSIDE_MOUNTS_H

#include "sandbox/plan/plan.h"

/* A protected file with more than one name that got a copy of its own after the plan was built: the inode that its step
 * binds now. */
struct cordon_copied_file {
	size_t step;
	dev_t dev;
	ino_t ino;
};

/* What PID 1 keeps so that it can mount and pin again when the host replaces something. */
struct cordon_mounts {
	const struct cordon_copied_file *copied; /* borrowed while the steps are applied */
	size_t n_copied;
	int root_fd;	 /* the new root */
	int mask_dir_fd; /* an empty, unreadable directory and file of ours */
	int mask_file_fd;
	int pins_fd; /* a directory that nobody can reach; the hidden mounts of the areas are on it */
	int trip_fd; /* the top of the tripwires (plan/tripwire.h); or -1 */
	int view_fd; /* the view of the workspace, mounted where nobody can reach it; or -1 */
	struct {
		size_t guard;
		int tree_fd; /* a copy of the share's mount, to mount it again */
	} shares[CORDON_AREAS_MAX];
	size_t n_shares;
};

/* clang-format off */
#define CORDON_MOUNTS_NONE { .root_fd = -1, .mask_dir_fd = -1, .mask_file_fd = -1, .pins_fd = -1, .trip_fd = -1, .view_fd = -1 }
/* clang-format on */

#define CORDON_MAKE_VIEW "make a view of" /* the `what` of a failure for which the supervisor knows a hint */

/* What failed, for the error message. */
struct cordon_failure {
	const char *what;   /* "mount", "pin", ... */
	const char *object; /* a string of the plan, or a literal */
};

/* What the builder of the tree asks of its caller; each gets `data`. */
struct cordon_mounts_calls {
	/* Waits until the run is recorded. Until then only the system's own part of the tree is built. */
	void (*await_record)(void *data);
	/* Passes the FUSE device of the lens to the process that serves it, and waits until it does. `view_fd` is what
	 * the lens shows when that is not the host's tree itself; or -1. Takes fuse_fd. 0 or -errno. */
	int (*serve_lens)(void *data, int fuse_fd, int view_fd);
	/* The same for the device of the tripwires; does not wait, because whoever looks at one waits anyway. */
	int (*serve_tripwires)(void *data, int fuse_fd);
	void *data;
};

/* Builds the tree and makes it the root; the umask must be 0. 0 or -errno with *fail filled. */
int cordon_mounts_apply(const struct cordon_plan *plan, const struct cordon_mounts_calls *calls,
			struct cordon_mounts *ret_mounts, struct cordon_failure *fail);
/* Unmounts the old root, which no path leads to any more. The agent's program may not run before that. */
int cordon_mounts_leave(struct cordon_failure *fail);

/*
 * Puts what has the name of boundary `index` under its rule, if it is not: makes it read-only, masks it, or mounts its
 * share on it. Adds to *ret_way the number of directories that lead to a missing boundary and were made after the plan:
 * inside, only the hand makes entries in them. When the host has moved an open directory there, in which the agent
 * itself may make entries, that is made read-only. Returns 0 when something was put under its rule now, 1 when there
 * was nothing to do, -ENOENT when the name does not exist, or another -errno (-ELOOP: it is a link, on which nothing
 * can be mounted).
 */
int cordon_mounts_hold(const struct cordon_mounts *mounts, const struct cordon_plan *plan, size_t index,
		       unsigned int *ret_way);
/* Makes all pins of the plan again, on a new hidden mount; skips those whose name does not exist. 0 or -errno. */
int cordon_mounts_pin_again(const struct cordon_mounts *mounts, const struct cordon_plan *plan);

#endif
