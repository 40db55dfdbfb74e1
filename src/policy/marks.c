/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the marks of tree entries from the policy alone. */
#include "policy/marks.h"
#include "base/path.h"
#include "policy/shares.h"

const char *cordon_mark_name(cordon_mark mark)
{
	static const char *const names[] = { "rw", "ro", "protected", "warn", "denied" };

	return names[mark];
}

cordon_mark cordon_mark_of(const struct cordon_policy *policy, const struct cordon_resolved *resolved,
			   struct cordon_decision *scratch)
{
	bool is_protected;

	cordon_policy_judge(policy, resolved, CORDON_OP_WRITE, scratch);
	if (scratch->verdict == CORDON_ALLOW)
		return CORDON_MARK_RW;
	if (scratch->verdict == CORDON_WARN)
		return CORDON_MARK_WARN;
	is_protected = scratch->reason == CORDON_REASON_PROTECTED;
	cordon_policy_judge(policy, resolved, CORDON_OP_READ, scratch);
	if (scratch->verdict == CORDON_DENY)
		return CORDON_MARK_DENIED;
	return is_protected ? CORDON_MARK_PROTECTED : CORDON_MARK_RO;
}

static bool strictly_below(const char *path, const char *dir)
{
	return path && !cordon_streq(path, dir) && cordon_path_within(path, dir);
}

/* Returns whether all alternatives are plain subtrees, and if so whether one of them begins strictly below `dir`. */
static bool all_literal(const struct cordon_pattern *pattern, const char *dir, bool *ret_below)
{
	*ret_below = false;
	for (size_t i = 0; i < cordon_pattern_alternatives(pattern); i++) {
		const char *literal = cordon_pattern_literal(pattern, i);

		if (!literal)
			return false;
		*ret_below |= strictly_below(literal, dir);
	}
	return true;
}

/* Returns whether the grant could give something below `dir` another mark than `dir` has. */
static bool differs_below(const struct cordon_grant *grant, const char *dir, cordon_mark mark)
{
	bool below;

	/* A grant of `none` changes nothing below a directory that is denied already. */
	if (mark == CORDON_MARK_DENIED && grant->access == CORDON_ACCESS_NONE)
		return false;
	if (all_literal(grant->pattern, dir, &below))
		return below;
	return cordon_pattern_leads(grant->pattern, dir);
}

/* A literal `none` grant that covers the directory denies everything below it. */
static bool denies_all_below(const struct cordon_policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_grants; i++) {
		const struct cordon_grant *grant = &policy->grants[i];

		for (size_t a = 0;
		     grant->access == CORDON_ACCESS_NONE && a < cordon_pattern_alternatives(grant->pattern); a++) {
			const char *literal = cordon_pattern_literal(grant->pattern, a);

			if (literal && cordon_path_within(path, literal))
				return true;
		}
	}
	return false;
}

static bool protects_below(const struct cordon_policy *policy, const char *dir)
{
	for (size_t i = 0; i < policy->n_protected; i++)
		if (strictly_below(policy->protected_paths[i].path, dir) ||
		    strictly_below(policy->protected_paths[i].target, dir))
			return true;
	return false;
}

bool cordon_mark_uniform(const struct cordon_policy *policy, const char *dir, cordon_mark mark, const char **ret_except)
{
	const struct cordon_policy *part;

	*ret_except = NULL;
	if (denies_all_below(policy, dir))
		return true;
	for (size_t i = 0; i < policy->n_shares; i++)
		if (strictly_below(policy->shares[i].in_root, dir))
			return false;
	if (mark != CORDON_MARK_DENIED && mark != CORDON_MARK_PROTECTED && protects_below(policy, dir))
		return false;
	for (size_t p = 0; (part = cordon_policy_part(policy, p)); p++) {
		for (size_t i = 0; i < part->n_grants; i++) {
			const char *text = cordon_pattern_text(part->grants[i].pattern);

			if (!differs_below(&part->grants[i], dir, mark))
				continue;
			if (strncmp(text, "**/", 3) != 0)
				return false;
			if (!*ret_except)
				*ret_except = text;
		}
	}
	return true;
}
