/* SPDX-License-Identifier: Apache-2.0 */
/* A live sandbox on a directory of its own, whose protections are tried from inside and looked at from outside. */
#ifndef CORDON_SANDBOX_SELFTEST_H
#define CORDON_SANDBOX_SELFTEST_H

#include "base/error.h"

#define CORDON_SELFTESTS_MAX 32

struct cordon_selftest {
	char name[64];
	bool ok;
};

struct cordon_selftests {
	struct cordon_selftest items[CORDON_SELFTESTS_MAX];
	size_t n;
	bool ok; /* all of them, and nothing missing */
};

/* An error when the sandbox could not be started. Leaves nothing behind. */
int cordon_selftest_run(struct cordon_selftests *ret, struct cordon_error *err);

#endif
