/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what a policy holds below a path. */
#include "base/path.h"
#include "policy/policy.h"

const char *cordon_policy_protected_below(const struct cordon_policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_protected; i++) {
		const struct cordon_protected *held = &policy->protected_paths[i];

		if (cordon_path_within(held->path, path) && !cordon_streq(held->path, path))
			return held->path;
		if (held->target && cordon_path_within(held->target, path) && !cordon_streq(held->target, path))
			return held->target;
	}
	return NULL;
}

const char *cordon_policy_held_below(const struct cordon_policy *policy, const char *path)
{
	const char *below = cordon_policy_protected_below(policy, path);

	for (size_t i = 0; !below && i < policy->n_grants; i++) {
		const struct cordon_grant *grant = &policy->grants[i];

		for (size_t k = 0;
		     grant->access != CORDON_ACCESS_WRITE && k < cordon_pattern_alternatives(grant->pattern); k++) {
			const char *literal = cordon_pattern_literal(grant->pattern, k);

			if (literal && cordon_path_within(literal, path) && !cordon_streq(literal, path))
				below = literal;
		}
	}
	return below;
}
