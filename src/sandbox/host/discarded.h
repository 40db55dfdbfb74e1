/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the files that a run leaves in its private home, which is discarded: the user should know that there were
 * some. */
#ifndef CORDON_SANDBOX_HOST_DISCARDED_H
#define CORDON_SANDBOX_HOST_DISCARDED_H

#include "sandbox/host/launch.h"

#define CORDON_DISCARDED_MAX 10000 /* we count no more files than this */

/* An O_PATH descriptor of a directory as the processes of the sandbox see it, when the agent's program runs; or -errno.
 * It uses the root directory of one of PID 1's children, because PID 1's own can't be opened. */
int cordon_inside_open_dir(const struct cordon_child *child, const char *path);

/* How many files are in the private home, at most CORDON_DISCARDED_MAX; 0 when home_fd is -1. The descriptor keeps the
 * home alive after the end of all processes. What is mounted in it from elsewhere is not discarded, and not counted. */
unsigned int cordon_discarded_count(int home_fd);

#endif
