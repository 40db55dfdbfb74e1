/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system call filter. The BPF programs are made when cordon is built (seccomp_gen.c holds the table and says why
 * each call is where it is), so that a start costs one seccomp(2) and no library.
 *
 * What a program answers:
 *   - foreign ABIs (i386 and x32 on x86-64, 32-bit on arm64): the process is killed;
 *   - a number it does not know: ENOSYS, also clone3, so that libc falls back;
 *   - a call that is known and refused: EPERM; a socket family off the list: EAFNOSUPPORT;
 *   - arguments are compared in exactly the bits the kernel reads (the low 32 of flags, families, ioctl requests).
 */
#ifndef CORDON_SANDBOX_SECCOMP_H
#define CORDON_SANDBOX_SECCOMP_H

#include <linux/filter.h>

#include "base/util.h"

enum cordon_seccomp_variant {
	CORDON_SECCOMP_BASE, /* every run */
	/* BASE, and a notification for every call that can make a name: open with O_CREAT, creat, openat2, mkdir, mknod,
	 * symlink, link, rename, bind */
	CORDON_SECCOMP_CREATE,
	/* CREATE, and all other calls that act on a path: open, execve, truncate, unlink, chmod, chown, utimes, xattrs.
	 * stat, access, readlink, opening with O_PATH and listing a directory (O_DIRECTORY) are no access and are not trapped. */
	CORDON_SECCOMP_FULL,
	/* FULL, and those too: what a program looks at it must be able to see the next time (cordon learn). Slow. */
	CORDON_SECCOMP_LEARN,
	/* No filter of its own: only refuses sched_setaffinity. Installed in addition, before one of the others, when
	 * the CPU limit is an affinity mask (limits.h), which any process could otherwise widen again. */
	CORDON_SECCOMP_PIN_CPUS,
	CORDON_SECCOMP__MAX
};

const struct sock_fprog *cordon_seccomp_program(enum cordon_seccomp_variant variant);

/* Whether the variant wants a listener. */
bool cordon_seccomp_watches(enum cordon_seccomp_variant variant);

/*
 * Puts the filter on the calling process (single-threaded; no_new_privs must be set, or CAP_SYS_ADMIN be held).
 * Async-signal-safe. For a watching variant *ret_listener is the close-on-exec notification descriptor, to be handed
 * to the supervisor before the first trapped call (the exec of the agent under FULL); else it is set to -1 (and may
 * be NULL). Signals do not interrupt a call whose notification was received (kernel 5.19 on; before, they may).
 * Before 6.11 the listener hangs up only once its last process was reaped, so the end is to be seen by a pidfd.
 * Returns 0 or -errno; -EBUSY when a listener is already there, -ENOSYS without seccomp.
 */
int cordon_seccomp_install(enum cordon_seccomp_variant variant, int *ret_listener);

#endif
