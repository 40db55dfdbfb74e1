/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the steps of a plan in the child: mounts by descriptor only. Runs between clone and exec, so nothing here
 * allocates. The caller is in new user, mount and pid namespaces and holds all capabilities there.
 */
#ifndef CORDON_SANDBOX_MOUNTS_H
#define CORDON_SANDBOX_MOUNTS_H

#include "sandbox/plan.h"

/* What PID 1 keeps to bind and pin again when the host replaces something. */
struct cordon_mounts {
	int root_fd;	 /* the new root */
	int mask_dir_fd; /* an empty, unreadable directory and file of ours */
	int mask_file_fd;
	int pins_fd; /* a directory nobody can reach; hidden mounts of the workspace are stacked there */
};

#define CORDON_MOUNTS_NONE                                                                                             \
	{                                                                                                              \
		-1, -1, -1, -1                                                                                         \
	}

/* What failed, for the one line the user sees. */
struct cordon_failure {
	const char *what;   /* "mount", "pin", ... */
	const char *object; /* a string of the plan, or a literal */
};

/* Gives the device of a freshly mounted view away and waits until it is served. 0 or -errno. */
typedef int (*cordon_view_fn)(void *data, int fuse_fd);

/* Builds the tree and makes it the root; the umask must be 0. 0 or -errno with *fail filled. */
int cordon_mounts_apply(const struct cordon_plan *plan, cordon_view_fn serve_view, void *data,
			struct cordon_mounts *ret_mounts, struct cordon_failure *fail);

/* One protected step again, after the host replaced what it stands on. 0 when it is (again) protected, 1 when it was
 * already, -ENOENT when there is nothing to protect, or another -errno. */
int cordon_mounts_protect_again(const struct cordon_mounts *mounts, const char *inside);
/* All pins of the plan again, on a fresh hidden mount. Missing ones are passed over. 0 or -errno. */
int cordon_mounts_pin_again(const struct cordon_mounts *mounts, const struct cordon_plan *plan);

#endif
