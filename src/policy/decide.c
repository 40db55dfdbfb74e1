/* SPDX-License-Identifier: Apache-2.0 */
/* The decision function: what a policy says about a path, and which rule decided it. */
#include "base/path.h"
#include "policy/pattern_impl.h"
#include "policy/policy.h"
#include "policy/shares.h"

static const char *const verdict_names[] = { [CORDON_ALLOW] = "allow", [CORDON_WARN] = "warn", [CORDON_DENY] = "deny" };

static const char *const reason_names[] = {
	[CORDON_REASON_GRANT] = "grant",
	[CORDON_REASON_DENY] = "deny",
	[CORDON_REASON_PROTECTED] = "protected",
	[CORDON_REASON_NO_GRANT] = "no_grant",
	[CORDON_REASON_OUTSIDE_ROOT] = "outside_root",
	[CORDON_REASON_UNRESOLVABLE] = "unresolvable",
	[CORDON_REASON_NO_HOST] = "no_host",
	[CORDON_REASON_OTHER_HOST] = "other_host",
	[CORDON_REASON_NOT_PUBLIC] = "not_public",
	[CORDON_REASON_HIDDEN_HOST] = "hidden_host",
};

const char *cordon_verdict_name(cordon_verdict verdict)
{
	return (unsigned int)verdict < CORDON_ARRAY_SIZE(verdict_names) ? verdict_names[verdict] : "deny";
}

const char *cordon_mode_name(cordon_mode mode)
{
	return mode == CORDON_MODE_STRICT ? "strict" : "permissive";
}

const char *cordon_op_name(cordon_op op)
{
	return op == CORDON_OP_WRITE ? "write" : "read";
}

const char *cordon_reason_name(cordon_reason reason)
{
	return (unsigned int)reason < CORDON_REASON__MAX ? reason_names[reason] : "unresolvable";
}

/* The most specific matching grant so far. */
struct candidate {
	const struct cordon_grant *grant;
	struct cordon_specificity specificity;
};

/* Whether a matching grant beats the one found so far. The result never depends on the order of the two. */
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
	/* Both give the same answer; the text only decides which of the two is named. */
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

/* Clears everything except the path, which has 4 KiB and is filled later. */
static void reset(struct cordon_decision *decision, cordon_verdict verdict, cordon_reason reason)
{
	decision->verdict = verdict;
	decision->reason = reason;
	decision->access = CORDON_ACCESS_NONE;
	decision->rule = decision->rule_where = decision->fence = NULL;
	decision->resolved[0] = '\0';
}

/* INVARIANT: a fence can only make the answer stricter. Of two equally strict answers the first one stays. */
static void add_fence(const struct cordon_policy *fence, const struct cordon_subject *subject, cordon_op op,
		      struct cordon_decision *ret)
{
	CORDON_UNCLEARED struct cordon_decision other;

	reset(&other, CORDON_DENY, CORDON_REASON_UNRESOLVABLE);
	decide_subject(fence, subject, op, &other);
	if (other.access < ret->access)
		ret->access = other.access;
	if (other.verdict <= ret->verdict)
		return;
	ret->verdict = other.verdict;
	ret->reason = other.reason;
	ret->rule = other.rule;
	ret->rule_where = other.rule_where;
	ret->fence = fence->name;
}

void cordon_policy_decide(const struct cordon_policy *policy, const char *path, cordon_op op,
			  struct cordon_decision *ret)
{
	CORDON_UNCLEARED struct cordon_subject subject;

	/* INVARIANT: a path that is not clean and below the root is refused, whoever asks. */
	reset(ret, CORDON_DENY, CORDON_REASON_UNRESOLVABLE);
	if (!cordon_subject_init(&subject, path)) {
		cordon_copy(ret->resolved, sizeof(ret->resolved), path, strnlen(path, sizeof(ret->resolved)));
		return;
	}
	memcpy(ret->resolved, path, subject.len + 1);
	if (policy->n_shares && cordon_share_decide(policy, path, op, ret))
		return;
	decide_subject(policy, &subject, op, ret);
	for (size_t i = 0; i < policy->n_fences; i++)
		add_fence(policy->fences[i], &subject, op, ret);
}

cordon_access cordon_policy_access(const struct cordon_policy *policy, const char *path)
{
	CORDON_UNCLEARED struct cordon_decision decision;

	cordon_policy_decide(policy, path, CORDON_OP_WRITE, &decision);
	if (decision.verdict != CORDON_DENY)
		return CORDON_ACCESS_WRITE;
	cordon_policy_decide(policy, path, CORDON_OP_READ, &decision);
	return decision.verdict == CORDON_DENY ? CORDON_ACCESS_NONE : CORDON_ACCESS_READ;
}

void cordon_policy_judge(const struct cordon_policy *policy, const struct cordon_resolved *resolved, cordon_op op,
			 struct cordon_decision *ret)
{
	switch (resolved->place) {
	case CORDON_PLACE_INSIDE:
		cordon_policy_decide(policy, resolved->path, op, ret);
		return;
	case CORDON_PLACE_OUTSIDE:
		reset(ret, CORDON_DENY, CORDON_REASON_OUTSIDE_ROOT);
		if (policy->n_shares && cordon_share_decide(policy, resolved->path, op, ret))
			return;
		break;
	case CORDON_PLACE_UNRESOLVABLE:
		reset(ret, CORDON_DENY, CORDON_REASON_UNRESOLVABLE);
		break;
	}
	memcpy(ret->resolved, resolved->path, strlen(resolved->path) + 1);
}

static bool part_leads(const struct cordon_policy *policy, const struct cordon_subject *subject)
{
	bool leads = policy->mode == CORDON_MODE_PERMISSIVE || !cordon_policy_has_scope(policy);

	for (size_t i = 0; i < policy->n_grants; i++) {
		const struct cordon_pattern *pattern = policy->grants[i].pattern;

		if (policy->grants[i].access == CORDON_ACCESS_NONE) {
			if (cordon_pattern_covers_subject(pattern, subject, NULL))
				return false;
		} else if (!leads) {
			leads = cordon_pattern_leads_subject(pattern, subject) ||
				cordon_pattern_match_subject(pattern, subject, NULL);
		}
	}
	return leads;
}

bool cordon_policy_leads(const struct cordon_policy *policy, const char *dir)
{
	CORDON_UNCLEARED struct cordon_subject subject;
	const struct cordon_policy *part;

	if (!cordon_subject_init(&subject, dir))
		return false;
	if (policy->n_shares && cordon_share_leads(policy, dir))
		return true;
	for (size_t i = 0; (part = cordon_policy_part(policy, i)); i++)
		if (!part_leads(part, &subject))
			return false;
	return true;
}

/* Whether a read grant covers everything below a directory. There it wins against every grant that is not more
 * specific than *ret_bar. */
static bool covered_for_reading(const struct cordon_policy *part, const struct cordon_subject *subject,
				struct cordon_specificity *ret_bar)
{
	bool covered = false;

	for (size_t i = 0; i < part->n_grants; i++) {
		struct cordon_specificity s;

		if (part->grants[i].access != CORDON_ACCESS_READ ||
		    !cordon_pattern_covers_subject(part->grants[i].pattern, subject, &s))
			continue;
		if (!covered || s.literal_components > ret_bar->literal_components ||
		    (s.literal_components == ret_bar->literal_components && s.literal_prefix > ret_bar->literal_prefix))
			*ret_bar = s;
		covered = true;
	}
	return covered;
}

/* Whether a write grant of this part of the policy can win strictly below the directory. */
static bool part_leads_write(const struct cordon_policy *part, const struct cordon_subject *subject, bool *ret_covered)
{
	struct cordon_specificity bar;

	*ret_covered = covered_for_reading(part, subject, &bar);
	for (size_t i = 0; !part->read_only && i < part->n_grants; i++) {
		const struct cordon_pattern *pattern = part->grants[i].pattern;

		if (part->grants[i].access == CORDON_ACCESS_WRITE &&
		    (*ret_covered ? cordon_pattern_leads_beyond(pattern, subject->path, &bar)
				  : cordon_pattern_leads_subject(pattern, subject)))
			return true;
	}
	return false;
}

bool cordon_policy_leads_write(const struct cordon_policy *policy, const char *dir)
{
	CORDON_UNCLEARED struct cordon_subject subject;
	CORDON_UNCLEARED struct cordon_decision decision;
	const struct cordon_policy *part;
	bool covered;

	if (!cordon_subject_init(&subject, dir))
		return false;
	for (size_t i = 0; (part = cordon_policy_part(policy, i)); i++) {
		reset(&decision, CORDON_DENY, CORDON_REASON_UNRESOLVABLE);
		decide_subject(part, &subject, CORDON_OP_WRITE, &decision);
		if (decision.reason == CORDON_REASON_DENY || decision.reason == CORDON_REASON_PROTECTED)
			return false;
		if (decision.verdict == CORDON_DENY && !part_leads_write(part, &subject, &covered))
			return false;
	}
	return true;
}

/* Whether this part alone forbids every write at and below the path. */
static bool part_holds(const struct cordon_policy *part, const struct cordon_subject *subject)
{
	CORDON_UNCLEARED struct cordon_decision decision;
	bool covered, leads = part_leads_write(part, subject, &covered);

	reset(&decision, CORDON_DENY, CORDON_REASON_UNRESOLVABLE);
	decide_subject(part, subject, CORDON_OP_WRITE, &decision);
	/* A rule that denies or protects the path covers what lies below it. */
	if (decision.reason == CORDON_REASON_DENY || decision.reason == CORDON_REASON_PROTECTED)
		return true;
	if (decision.verdict != CORDON_DENY || leads)
		return false;
	/* In permissive mode a path without a grant can be written; only a read grant that covers all of it forbids
	 * that. */
	return part->mode == CORDON_MODE_STRICT || covered || (part->read_only && !cordon_policy_has_scope(part));
}

bool cordon_policy_holds(const struct cordon_policy *policy, const char *path)
{
	CORDON_UNCLEARED struct cordon_subject subject;
	const struct cordon_policy *part;

	if (!cordon_subject_init(&subject, path))
		return false;
	for (size_t i = 0; (part = cordon_policy_part(policy, i)); i++)
		if (part_holds(part, &subject))
			return true;
	return false;
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

bool cordon_policy_in_git_dir(const struct cordon_policy *policy, const char *path)
{
	static const char mark[] = "/commondir"; /* protected in each git directory, and nowhere else */
	size_t end = sizeof(mark) - 1;

	for (size_t i = 0; i < policy->n_protected; i++) {
		const struct cordon_protected *held = &policy->protected_paths[i];
		size_t n = strlen(held->path);

		/* The root itself may be one. */
		if (held->by_default && cordon_streq(held->path, mark + 1))
			return strncmp(path, "modules/", 8) != 0;
		if (!held->by_default || n <= end || !cordon_streq(held->path + n - end, mark))
			continue;
		n -= end;
		if (strncmp(path, held->path, n) == 0 && path[n] == '/' && strncmp(path + n, "/modules/", 9) != 0)
			return true;
	}
	return false;
}
