/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls and constants that glibc 2.36 and linux-libc-dev 6.1 lack. Each wrapper is the bare call: -1 and
 * errno on failure. Numbers from 424 on are the same on every architecture.
 */
#ifndef CORDON_BASE_SYS_H
#define CORDON_BASE_SYS_H

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static inline int cordon_sys_openat2(int dir_fd, const char *path, const struct open_how *how, size_t size)
{
	return (int)syscall(SYS_openat2, dir_fd, path, how, size);
}

static inline pid_t cordon_sys_clone3(struct clone_args *args, size_t size)
{
	return (pid_t)syscall(SYS_clone3, args, size);
}

/* Asks the scheduler for short time slices, which come sooner (Linux 6.12 and later; before, this changes nothing).
 * For a process that answers others which wait for it. Best effort. */
static inline void cordon_sys_request_short_slice(void)
{
	/* This is struct sched_attr: the kernel's header and glibc's cannot both be included. */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period; /* ns */
	} attr = { .size = sizeof(attr), .policy = SCHED_NORMAL, .runtime = 100000 };

	if (syscall(SYS_sched_getscheduler, 0) != SCHED_NORMAL)
		return;
	attr.nice = getpriority(PRIO_PROCESS, 0);
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

#endif
