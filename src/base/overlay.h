/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writable layer over a directory, made by overlayfs in a user namespace of ours (Linux 5.11 and later allow
 * this): the directory can be written, and what is written goes into another file system.
 */
#ifndef CORDON_BASE_OVERLAY_H
#define CORDON_BASE_OVERLAY_H

/* Mounts an overlay over the directory `path` below root_fd. `work` is a directory relative to root_fd on a writable
 * mount, with the empty directories "upper" and "work" in it. Changes the working directory. No malloc, no stdio. */
int cordon_overlay_mount(int root_fd, const char *work, const char *path);

/* Tries this for a directory in a child process. Returns 0, or the error. */
int cordon_overlay_probe(const char *dir);

#endif
