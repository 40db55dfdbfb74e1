/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's standard streams before they become the agent's. A descriptor is also a way to the mount it was opened
 * on, and that is the host's, where nothing is read-only: through /proc/self/fd a file can be opened again with more
 * rights, a directory leads to all that lies below and above it, and the owner of a file can change its mode.
 */
#ifndef CORDON_SANDBOX_STREAMS_H
#define CORDON_SANDBOX_STREAMS_H

#include "base/error.h"

/* Refuses streams that are no streams: directories, and descriptors that only name a place. */
int cordon_streams_check(struct cordon_error *err);

/*
 * For the child, while it still sees the host's tree: files that were opened for reading, and devices, are opened again on
 * read-only mounts that nobody else has. What the caller opened for writing stays as it is. Allocates nothing.
 * 0, or -errno with the number of the stream.
 */
int cordon_streams_seal(uid_t uid, int *ret_stream);

/* For the child, inside the sandbox: the host's /dev/null and its like become the sandbox's own. 0 or -errno. */
int cordon_streams_devices(void);

const char *cordon_stream_name(int fd);

#endif
