/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link in a protected directory leads the host elsewhere: with `.git/hooks/pre-commit -> ../../scripts/pre-commit`
 * git executes a file outside of the protected directory. So the places in the root to which such links lead are
 * protected too, with every further link on the way, whether they exist yet or not. A target outside of the root
 * does not exist inside the sandbox.
 *
 * The search is bounded. When there is more than the bound allows, it is an error of kind limit, because nobody can
 * vouch for the rest.
 */
#ifndef CORDON_PROTECT_LINKS_H
#define CORDON_PROTECT_LINKS_H

#include "policy/policy.h"

#define CORDON_PROTECT_LINKS_ENTRIES_MAX 1048576 /* entries read in all protected directories of a policy */
#define CORDON_PROTECT_LINKS_DEPTH_MAX 64

/* Must be called when all protected paths, the user's and the default ones, are in the policy. Adds paths to it,
 * marked as default. */
int cordon_protect_links_add(struct cordon_policy *policy, struct cordon_error *err);

#endif
