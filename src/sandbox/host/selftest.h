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

#endif
