/* SPDX-License-Identifier: Apache-2.0 */
/* Names of refs in git. */
#ifndef CORDON_BASE_REFNAME_H
#define CORDON_BASE_REFNAME_H

#include "base/util.h"

#define CORDON_REFNAME_MAX 1024 /* bytes of the full name of a ref */

/* Whether a full name of a ref ("refs/heads/main") is one that git accepts. */
bool cordon_refname_valid(const char *name);

#endif
