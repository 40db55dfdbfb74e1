/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a real sandbox on a directory of its own, and tests its protections from inside and from outside. */
#ifndef CORDON_SANDBOX_HOST_SELFTEST_H
#define CORDON_SANDBOX_HOST_SELFTEST_H

#include "base/error.h"

#define CORDON_SELFTESTS_MAX 32

struct cordon_selftest {
	char name[64];
	bool ok;
};

struct cordon_selftests {
	struct cordon_selftest items[CORDON_SELFTESTS_MAX];
	size_t n;
	bool ok; /* all tests ran and passed */
};

/* An error when the sandbox could not be started. Removes all files that it made. */
int cordon_selftest_run(struct cordon_selftests *ret, struct cordon_error *err);

/*
 * Tries whether this machine lets us set up a sandbox at all, with namespaces and mounts: by setting one up, on a directory
 * of our own, so that nothing in a workspace can change the answer. 0, or -errno with the reason. When the attempt itself
 * can't be made, the answer is 0, and a run finds out by itself.
 */
int cordon_setup_probe(struct cordon_error *ret_why);

#endif
