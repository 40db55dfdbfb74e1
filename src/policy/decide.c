/* SPDX-License-Identifier: Apache-2.0 */
/* The one decision function: what a policy says about a path, and which rule said so. */
#include "base/path.h"
#include "policy/pattern_impl.h"
#include "policy/policy.h"

static const char *const verdict_names[] = { [CORDON_ALLOW] = "allow", [CORDON_WARN] = "warn", [CORDON_DENY] = "deny" };

static const char *const reason_names[] = {
	[CORDON_REASON_GRANT] = "grant",
	[CORDON_REASON_DENY] = "deny",
	[CORDON_REASON_PROTECTED] = "protected",
	[CORDON_REASON_NO_GRANT] = "no_grant",
	[CORDON_REASON_OUTSIDE_ROOT] = "outside_root",
	[CORDON_REASON_UNRESOLVABLE] = "unresolvable",
};

const char *cordon_verdict_name(cordon_verdict verdict)
{
	return (unsigned int)verdict < CORDON_ARRAY_SIZE(verdict_names) ? verdict_names[verdict] : "deny";
}

const char *cordon_reason_name(cordon_reason reason)
{
	return (unsigned int)reason < CORDON_REASON__MAX ? reason_names[reason] : "unresolvable";
}

/* The best grant of one kind so far. */
struct candidate {
	const struct cordon_grant *grant;
	struct cordon_specificity specificity;
};

/* Whether a grant that matches beats the one found so far; never depends on the order of the two. */
static bool beats(const struct candidate *old, const struct cordon_grant *grant, const struct cordon_specificity *s)
{
	if (!old->grant)
		return true;
	if (s->literal_components != old->specificity.literal_components)
		return s->literal_components > old->specificity.literal_components;
	if (s->literal_prefix != old->specificity.literal_prefix)
		return s->literal_prefix > old->specificity.literal_prefix;
	if (grant->access != old->grant->access)
		return grant->access < old->grant->access;
	/* The same answer; the text only settles which of the two is named. */
	return strcmp(cordon_pattern_text(grant->pattern), cordon_pattern_text(old->grant->pattern)) < 0;
}

static const struct cordon_protected *find_protected(const struct cordon_policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_protected; i++) {
		const struct cordon_protected *protected = &policy->protected_paths[i];

		if (cordon_path_within(path, protected->path) ||
		    (protected->target && cordon_path_within(path, protected->target)))
			return protected;
	}
	return NULL;
}

static void decide_subject(const struct cordon_policy *policy, const struct cordon_subject *subject, cordon_op op,
			   struct cordon_decision *ret)
{
	struct candidate denial = { 0 }, best = { 0 };
	const struct cordon_protected *protected = find_protected(policy, subject->path);
	bool scope = false;

	for (size_t i = 0; i < policy->n_grants; i++) {
		const struct cordon_grant *grant = &policy->grants[i];
		struct candidate *candidate = grant->access == CORDON_ACCESS_NONE ? &denial : &best;
		struct cordon_specificity specificity;

		scope |= candidate == &best;
		if (cordon_edges_fit(&grant->edges, subject) &&
		    cordon_pattern_match_subject(grant->pattern, subject, &specificity) &&
		    beats(candidate, grant, &specificity))
			*candidate = (struct candidate){ grant, specificity };
	}
	if (denial.grant) {
		ret->verdict = CORDON_DENY;
		ret->reason = CORDON_REASON_DENY;
		ret->rule = cordon_pattern_text(denial.grant->pattern);
		ret->rule_where = denial.grant->where;
		return;
	}
	if (best.grant || !scope)
		ret->access = best.grant ? best.grant->access : CORDON_ACCESS_WRITE;
	if (ret->access == CORDON_ACCESS_WRITE && (policy->read_only || protected))
		ret->access = CORDON_ACCESS_READ;
	if (protected && op == CORDON_OP_WRITE) {
		ret->verdict = CORDON_DENY;
		ret->reason = CORDON_REASON_PROTECTED;
		ret->rule = protected->path;
		ret->rule_where = protected->where;
		return;
	}
	if (best.grant || !scope) {
		bool enough = op == CORDON_OP_READ || ret->access == CORDON_ACCESS_WRITE;

		ret->verdict = enough ? CORDON_ALLOW : CORDON_DENY;
		ret->reason = CORDON_REASON_GRANT;
		ret->rule = best.grant ? cordon_pattern_text(best.grant->pattern) : NULL;
		ret->rule_where = best.grant ? best.grant->where : NULL;
		return;
	}
	ret->verdict = policy->mode == CORDON_MODE_PERMISSIVE ? CORDON_WARN : CORDON_DENY;
	ret->reason = CORDON_REASON_NO_GRANT;
}

/* Everything but the path; that one is 4 KiB and would be cleared for nothing. */
static void reset(struct cordon_decision *decision, cordon_verdict verdict, cordon_reason reason)
{
	decision->verdict = verdict;
	decision->reason = reason;
	decision->access = CORDON_ACCESS_NONE;
	decision->rule = decision->rule_where = NULL;
	decision->resolved[0] = '\0';
}

void cordon_policy_decide(const struct cordon_policy *policy, const char *path, cordon_op op,
			  struct cordon_decision *ret)
{
	CORDON_UNCLEARED struct cordon_subject subject;

	/* INVARIANT: what is not a clean path below the root is refused, whoever asks. */
	reset(ret, CORDON_DENY, CORDON_REASON_UNRESOLVABLE);
	if (!cordon_subject_init(&subject, path)) {
		cordon_copy(ret->resolved, sizeof(ret->resolved), path, strnlen(path, sizeof(ret->resolved)));
		return;
	}
	memcpy(ret->resolved, path, subject.len + 1);
	decide_subject(policy, &subject, op, ret);
}

void cordon_policy_judge(const struct cordon_policy *policy, const struct cordon_resolved *resolved, cordon_op op,
			 struct cordon_decision *ret)
{
	switch (resolved->place) {
	case CORDON_PLACE_INSIDE:
		cordon_policy_decide(policy, resolved->path, op, ret);
		return;
	case CORDON_PLACE_OUTSIDE:
		reset(ret, policy->mode == CORDON_MODE_PERMISSIVE ? CORDON_WARN : CORDON_DENY,
		      CORDON_REASON_OUTSIDE_ROOT);
		break;
	case CORDON_PLACE_UNRESOLVABLE:
		reset(ret, CORDON_DENY, CORDON_REASON_UNRESOLVABLE);
		break;
	}
	memcpy(ret->resolved, resolved->path, strlen(resolved->path) + 1);
}

bool cordon_policy_leads(const struct cordon_policy *policy, const char *dir)
{
	CORDON_UNCLEARED struct cordon_subject subject;
	bool leads = policy->mode == CORDON_MODE_PERMISSIVE || !cordon_policy_has_scope(policy);

	if (!cordon_subject_init(&subject, dir))
		return false;
	for (size_t i = 0; i < policy->n_grants; i++) {
		const struct cordon_pattern *pattern = policy->grants[i].pattern;

		if (policy->grants[i].access == CORDON_ACCESS_NONE) {
			if (cordon_pattern_covers_subject(pattern, &subject))
				return false;
		} else if (!leads) {
			leads = cordon_pattern_leads_subject(pattern, &subject) ||
				cordon_pattern_match_subject(pattern, &subject, NULL);
		}
	}
	return leads;
}

int cordon_policy_check(const struct cordon_policy *policy, const char *path, cordon_op op,
			struct cordon_decision *ret_decision, struct cordon_error *err)
{
	struct cordon_resolved resolved;

	if (!*path)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "the path is empty");
	cordon_resolve(&policy->root, path, &resolved);
	cordon_policy_judge(policy, &resolved, op, ret_decision);
	return 0;
}
