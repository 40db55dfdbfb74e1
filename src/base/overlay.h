/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writable layer over a directory, made by overlayfs in a user namespace of ours (Linux 5.11 and later allow
 * this): the directory can be written, and what is written goes into another file system.
 */
#ifndef CORDON_BASE_OVERLAY_H
#define CORDON_BASE_OVERLAY_H

#include <stddef.h>

/* The directory for the kernel's own use beside one that an overlay writes to: its path with this behind it. */
#define CORDON_OVERLAY_WORK "-work"

/* Mounts an overlay over the directory `path` below root_fd. `work` is a directory relative to root_fd on a writable
 * mount, with the empty directories "upper" and "work" in it. Changes the working directory. No malloc, no stdio. */
int cordon_overlay_mount(int root_fd, const char *work, const char *path);

/*
 * Makes an overlay of directories that are named by descriptors, the topmost lower one first, and returns a detached
 * mount of it or -errno. `proc_fds` is a descriptor of /proc/self/fd. Options of a mount have at most 255 characters, and
 * whoever sees the mount sees them: the numbers of descriptors are short and tell nothing. Changes the working
 * directory. No malloc, no stdio.
 */
#define CORDON_OVERLAY_LOWER_MAX 32
int cordon_overlay_make(int proc_fds, const int *lower, size_t n_lower, int upper, int work, unsigned int attributes);

/* Tries cordon_overlay_mount() for a directory in a child process. Returns 0, or the error. */
int cordon_overlay_probe(const char *dir);

#endif
