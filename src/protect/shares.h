/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the shares that a front end wants into the shares of a policy (policy/shares.h): adds each, protects what
 * the host would execute later in the writable ones, and makes shares that overlap agree, or refuses them.
 */
#ifndef CORDON_PROTECT_SHARES_H
#define CORDON_PROTECT_SHARES_H

#include "policy/shares.h"

/* `home` is the share that becomes the home directory, or NULL, of which only the source and who named it count; `at` is where the agent sees the root, NULL for
 * the same path. */
int cordon_shares_add(struct cordon_policy *policy, const struct cordon_share *shares, size_t n,
		      const struct cordon_share *home, const char *at, bool default_protect, struct cordon_error *err);

/*
 * Adds the default protection of one share (protect/share_defaults.c): the list of protect/defaults.h with the share
 * as root. In a share that is an agent's own directory (~/.claude) everything can be written except settings, hooks
 * and whatever else the agent obeys. A share in which the host executes everything (~/bin) is refused. What lies under
 * a layer of the same policy needs no protection: the run writes into the layer, which is discarded.
 */
int cordon_protect_share(const struct cordon_policy *policy, struct cordon_policy_share *share,
			 struct cordon_error *err);

#endif
