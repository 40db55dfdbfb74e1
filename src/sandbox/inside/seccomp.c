/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's process and the hand install the filters that seccomp_gen made. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "sandbox/inside/seccomp.h"
#include "sandbox/inside/seccomp_filters.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* 5.19 */
#endif

/* The kernel's structure wants a pointer to writable memory, which it only reads. */
/* clang-format off */
#define PROGRAM(array) { .len = CORDON_ARRAY_SIZE(array), .filter = (struct sock_filter *)(uintptr_t)(array) }

static const struct sock_fprog programs[CORDON_SECCOMP__MAX] = {
	[CORDON_SECCOMP_BASE] = PROGRAM(filter_base),
	[CORDON_SECCOMP_CHANGE] = PROGRAM(filter_change),
	[CORDON_SECCOMP_FULL] = PROGRAM(filter_full),
	[CORDON_SECCOMP_LEARN] = PROGRAM(filter_learn),
	[CORDON_SECCOMP_PIN_CPUS] = PROGRAM(filter_pin_cpus),
	[CORDON_SECCOMP_NO_UNIX] = PROGRAM(filter_no_unix),
	[CORDON_SECCOMP_NO_TRUNCATE] = PROGRAM(filter_no_truncate),
	[CORDON_SECCOMP_HAND] = PROGRAM(filter_hand),
	[CORDON_SECCOMP_NO_XATTR] = PROGRAM(filter_no_xattr),
};
/* clang-format on */

/* The same with sockets of NETLINK_ROUTE. */
static const struct sock_fprog programs_with_routes[] = {
	[CORDON_SECCOMP_BASE] = PROGRAM(filter_base_routes),
	[CORDON_SECCOMP_CHANGE] = PROGRAM(filter_change_routes),
	[CORDON_SECCOMP_FULL] = PROGRAM(filter_full_routes),
	[CORDON_SECCOMP_LEARN] = PROGRAM(filter_learn_routes),
};

bool cordon_seccomp_watches(enum cordon_seccomp_variant variant)
{
	return variant == CORDON_SECCOMP_CHANGE || variant == CORDON_SECCOMP_FULL || variant == CORDON_SECCOMP_LEARN;
}

static int install(unsigned long flags, const struct sock_fprog *program)
{
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);

	return r < 0 ? -errno : (int)r;
}

static int install_variant(enum cordon_seccomp_variant variant, const struct sock_fprog *program, int *ret_listener)
{
	int r;

	/* We do not set SECCOMP_FILTER_FLAG_SPEC_ALLOW: it would switch off a mitigation against the code that this
	 * filter is for. */
	if (!cordon_seccomp_watches(variant)) {
		r = install(0, program);
		if (r < 0)
			return r;
		if (ret_listener)
			*ret_listener = -1;
		return 0;
	}
	r = install(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, program);
	if (r == -EINVAL)
		r = install(SECCOMP_FILTER_FLAG_NEW_LISTENER, program);
	if (r < 0)
		return r;
	*ret_listener = r;
	return 0;
}

int cordon_seccomp_install(enum cordon_seccomp_variant variant, int *ret_listener)
{
	return install_variant(variant, &programs[variant], ret_listener);
}

int cordon_seccomp_install_with_routes(enum cordon_seccomp_variant variant, int *ret_listener)
{
	return install_variant(variant, &programs_with_routes[variant], ret_listener);
}
