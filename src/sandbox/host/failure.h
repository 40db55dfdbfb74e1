/* SPDX-License-Identifier: Apache-2.0 */
/* Says in words why a sandbox could not be set up. */
#ifndef CORDON_SANDBOX_HOST_FAILURE_H
#define CORDON_SANDBOX_HOST_FAILURE_H

#include "base/error.h"
#include "sandbox/inside/notice.h"

/* Fills `err` from a CORDON_NOTICE_FAILED, unless it has an error already. */
void cordon_failure_describe(const struct cordon_notice *notice, struct cordon_error *err);

#endif
