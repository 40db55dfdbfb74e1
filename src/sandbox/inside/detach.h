/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detaches the caller's standard streams from the host's mounts, before the agent gets them. A descriptor also gives
 * access to the mount on which it was opened, and that is a mount of the host, where nothing is read-only: through
 * /proc/self/fd a file can be opened again with more rights, a directory leads to all that lies below and above it, and
 * the owner of a file can change its mode.
 */
#ifndef CORDON_SANDBOX_INSIDE_DETACH_H
#define CORDON_SANDBOX_INSIDE_DETACH_H

#include <sys/types.h>

/*
 * PID 1 calls it while it still sees the host's tree. It opens files that were opened for reading, devices, and a
 * standard input that could be written, again on read-only mounts that nobody else has. Allocates nothing. Returns 0,
 * or -errno with the number of the stream.
 */
int cordon_detach_files(uid_t uid, int *ret_stream);

/* The agent's process calls it inside the sandbox: replaces the host's /dev/null and similar devices by the sandbox's
 * own. 0 or -errno. */
int cordon_detach_devices(void);

/* The name of a stream for error messages. */
const char *cordon_detach_name(int fd);

#endif
