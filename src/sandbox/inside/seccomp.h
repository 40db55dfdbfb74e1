/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Installs the system call filter. The BPF programs are made when cordon is built (seccomp_gen.c has the table and says
 * why each call is where it is), so that a start costs one seccomp(2) and needs no library.
 *
 * What a filter answers:
 *   - foreign ABIs (i386 and x32 on x86-64, 32-bit on arm64): the process is killed;
 *   - a call number that it does not know, clone3 and openat2: ENOSYS, so that libc falls back to other calls;
 *   - a call that it knows and refuses: EPERM (also a mode with set-user-id or set-group-id bits, and a lease); a socket
 *     family that is not on the list: EAFNOSUPPORT; an ioctl request that is not on the list: ENOTTY;
 *   - it compares exactly the bits of an argument that the kernel reads (the low 32 of flags, families, ioctl requests).
 */
#ifndef CORDON_SANDBOX_INSIDE_SECCOMP_H
#define CORDON_SANDBOX_INSIDE_SECCOMP_H

#include "base/util.h"

enum cordon_seccomp_variant {
	CORDON_SECCOMP_BASE, /* every run */
	/* BASE, and a notification for every call that can change something by its path: opening with a flag that
	 * writes, makes or truncates, mkdir, mknod, symlink, link, rename, bind, unlink, truncate, chmod,
	 * chown, utimes, xattrs. And for landlock_restrict_self, because the hand must know which processes gave up
	 * rights. */
	CORDON_SECCOMP_CHANGE,
	/* CHANGE, and opening to read and execve. stat, access, readlink, opening with O_PATH and listing a directory
	 * (O_DIRECTORY) do not count as access and are not trapped. */
	CORDON_SECCOMP_FULL,
	/* FULL, and those calls too, for cordon learn: the next run must show what the program looks at. Slow. */
	CORDON_SECCOMP_LEARN,
	/* Not a complete filter: it only refuses sched_setaffinity. It is installed in addition, before one of the
	 * others, when the CPU limit is an affinity mask (limits.h), which any process could otherwise widen again. */
	CORDON_SECCOMP_PIN_CPUS,
	/* In the same way, on older kernels (plan/layers.h). EACCES for socket(AF_UNIX), and for socketpair(2) of any type but
	 * SOCK_STREAM and SOCK_SEQPACKET. */
	CORDON_SECCOMP_NO_UNIX,
	/* EACCES for truncate(2) and for O_TRUNC without O_WRONLY or O_RDWR. */
	CORDON_SECCOMP_NO_TRUNCATE,
	CORDON_SECCOMP_HAND, /* the hand: BASE, openat2 and the ioctl requests of a seccomp listener */
	/* EOPNOTSUPP for every call that sets or removes an extended attribute; where there is no hand. */
	CORDON_SECCOMP_NO_XATTR,
	CORDON_SECCOMP__MAX
};

/* Whether the variant needs a listener. */
bool cordon_seccomp_watches(enum cordon_seccomp_variant variant);

/*
 * Installs the filter in the calling process, which has one thread and has no_new_privs set or CAP_SYS_ADMIN.
 * Async-signal-safe. For a variant with a listener, *ret_listener is the close-on-exec notification descriptor, which
 * must reach the supervisor before the first trapped call (under FULL that is the exec of the agent); else it is set to
 * -1 (and ret_listener may be NULL). From Linux 5.19 on signals do not interrupt a call whose notification was
 * received; before, they may. Before Linux 6.11 the listener hangs up only when its last process was reaped, so watch a
 * pidfd to see the end. Returns 0 or -errno; -EBUSY when there is a listener already, -ENOSYS without seccomp.
 */
int cordon_seccomp_install(enum cordon_seccomp_variant variant, int *ret_listener);
/* The same for a run whose network is its own and has a list of hosts: sockets of NETLINK_ROUTE can be made, with which
 * programs find out interfaces and addresses. Only for BASE, CHANGE, FULL and LEARN. */
int cordon_seccomp_install_with_routes(enum cordon_seccomp_variant variant, int *ret_listener);

#endif
