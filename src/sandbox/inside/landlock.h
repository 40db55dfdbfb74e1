/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock: begin a ruleset that handles everything the kernel's ABI knows, allow what the plan grants, enforce.
 * Nothing here allocates; all of it is async-signal-safe and returns a descriptor, 0 or -errno.
 *
 * What is handled: all file system rights of the ABI; from ABI 6 on also the scopes, so that no abstract socket and
 * no signal crosses the domain (its own members reach each other). TCP rights are not handled: the network is a
 * matter of its namespace. A domain, any domain, also refuses mounts in nested namespaces and ptrace across it.
 * Landlock judges the inode the walk passes through, so it holds together with mounts, not instead of them: chmod,
 * utimes, xattrs and stat are not judged at all.
 */
#ifndef CORDON_SANDBOX_LANDLOCK_H
#define CORDON_SANDBOX_LANDLOCK_H

#include "base/util.h"

#define CORDON_LANDLOCK_ABI_REQUIRED 6 /* scopes; below, a run needs best_effort */
#define CORDON_LANDLOCK_ABI_KNOWN 7    /* newer kernels are used as this one */

enum cordon_landlock_class {
	CORDON_LANDLOCK_LIST,	/* list directories; no file content, no execution */
	CORDON_LANDLOCK_READ,	/* read files, list directories, execute */
	CORDON_LANDLOCK_WRITE,	/* READ; write, truncate, create and remove, rename and link across directories. No
	                           device nodes. */
	CORDON_LANDLOCK_DEVICE, /* read, write and ioctl device nodes: one node, or a directory of them such as
	                           devpts; nothing can be created */
	CORDON_LANDLOCK__MAX
};

/* The ABI to work with: what the kernel reports, at most CORDON_LANDLOCK_ABI_KNOWN; 0 when there is no Landlock. */
unsigned int cordon_landlock_abi(void);

/* A new ruleset for this ABI; a close-on-exec descriptor. -EOPNOTSUPP for ABI 0. */
int cordon_landlock_begin(unsigned int abi);

/* Grants a class of rights on what `path_fd` is (O_PATH will do) and all below it. Rights that only directories
 * have are left out for anything else. Grants add up; nothing granted is nothing allowed. */
int cordon_landlock_allow(int ruleset_fd, unsigned int abi, int path_fd, enum cordon_landlock_class rights);

/* Puts the calling process into the domain for good; no_new_privs must be set. Does not close the descriptor.
 * From ABI 7 on refusals are kept out of the host's audit log: an agent in a loop must not fill it, and cordon keeps
 * a record of its own. */
int cordon_landlock_enforce(int ruleset_fd, unsigned int abi);

#endif
