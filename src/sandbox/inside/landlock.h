/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock rulesets: begin one that handles everything that the kernel's ABI knows, allow what the plan grants, enforce
 * it. Nothing here allocates; all of it is async-signal-safe and returns a descriptor, 0 or -errno.
 *
 * A ruleset handles all file system rights of the ABI, and from ABI 6 on also the scopes, so that no abstract socket
 * and no signal crosses the domain (processes of the same domain reach each other). It does not handle TCP rights: the
 * network namespace controls the network. Every domain also refuses mounts in nested namespaces, and ptrace of
 * processes outside it. Landlock judges the inodes that a path leads through. It does not judge chmod, utimes, xattrs
 * and stat at all, so it needs the mounts beside it.
 */
#ifndef CORDON_SANDBOX_INSIDE_LANDLOCK_H
#define CORDON_SANDBOX_INSIDE_LANDLOCK_H

#include "base/util.h"

#define CORDON_LANDLOCK_ABI_KNOWN                                                                                      \
	7 /* newer kernels are used as if they had this one; plan/layers.h has what each brought */

enum cordon_landlock_class {
	CORDON_LANDLOCK_LIST, /* list directories; no file content, no execution */
	CORDON_LANDLOCK_TRIP, /* read files, list directories; for tripwires, which hear of an attempt only if Landlock lets
				   it pass */
	CORDON_LANDLOCK_READ,	/* read files, list directories, execute */
	CORDON_LANDLOCK_WRITE,	/* READ; write, truncate, create and remove, rename and link across directories. No
	                           device nodes. */
	CORDON_LANDLOCK_DEVICE, /* read, write and ioctl device nodes: one node, or a directory of them such as
	                           devpts; nothing can be created */
	CORDON_LANDLOCK_NODE,	/* the same for one node, which is no directory */
	CORDON_LANDLOCK_MAKE,	/* the part of WRITE that makes, writes and removes entries, and nothing else; for the
				   second layer, as the next two */
	CORDON_LANDLOCK_WRITE_FILES, /* only the part that writes and truncates; for devices */
	CORDON_LANDLOCK_MAKE_NO_LINKS, /* MAKE without symbolic links, and so that no directory comes in from, or leaves to, one
					  that has MAKE: then it could bring links along, or get some and come back */
	CORDON_LANDLOCK__MAX
};

/* The ABI to work with: what the kernel reports, at most CORDON_LANDLOCK_ABI_KNOWN; 0 when there is no Landlock. */
unsigned int cordon_landlock_abi(void);

/* A new ruleset for this ABI; a close-on-exec descriptor. -EOPNOTSUPP for ABI 0. */
int cordon_landlock_begin(unsigned int abi);

/* A ruleset for a second layer that handles only making, writing and removing entries, and moving them between directories.
 * In a held directory the agent does not have these rights; the hand, which has no layer, does. */
int cordon_landlock_begin_second(unsigned int abi);

/* Grants a class of rights on what `path_fd` is (O_PATH is enough) and everything below it. Rights that only
 * directories have are left out for anything else. Grants add up; what no grant gives is refused. */
int cordon_landlock_allow(int ruleset_fd, unsigned int abi, int path_fd, enum cordon_landlock_class rights);

/* Puts the calling process into the domain for good; no_new_privs must be set. Does not close the descriptor. From ABI
 * 7 on refusals do not go to the host's audit log, because an agent in a loop could fill it; cordon keeps a record of
 * its own. */
int cordon_landlock_enforce(int ruleset_fd, unsigned int abi);

#endif
