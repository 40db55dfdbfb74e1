/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The upper layer of an overlay, which has what a run changed: files, whiteouts for what it deleted, and attributes of the
 * kernel's. INVARIANT: a run made it, and it is hostile. No link is followed, and nothing waits.
 */
#ifndef CORDON_BASE_UPPER_H
#define CORDON_BASE_UPPER_H

#include <sys/stat.h>

#include "base/util.h"

#define CORDON_OVERLAY_ATTRIBUTE(name) "user.overlay." name

/* Opens a file or directory. The run may have taken away our right to read it: a file is open to us for a moment, a directory
 * from now on. A descriptor, or -1 with errno. */
int cordon_upper_open(int dir_fd, const char *name, int flags);
/* The mode that the run gave an open directory whose mode is `mode` now. */
mode_t cordon_upper_mode(int fd, mode_t mode);
bool cordon_upper_has(int fd, const char *attribute);
/* Whether an entry stands for a deletion: a device 0:0, or an empty file with the attribute for it. */
bool cordon_upper_is_whiteout(int dir_fd, const char *name, const struct stat *st);

#endif
