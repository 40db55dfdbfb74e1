/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a policy is no freer than another one, exactly: paths by the automaton of all their rules (compare.h),
 * hosts by their rules, and shares by their sources.
 *
 * INVARIANT: what can't be compared counts as freer.
 */
#include "base/path.h"
#include "base/text.h"
#include "policy/compare.h"
#include "policy/shares.h"

#define SHOWN_MAX 160 /* bytes of a path or a rule in a message */

static int freer(struct cordon_error *err, const char *what, const char *rule)
{
	return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "it would %s: %s", what, rule);
}

/* What an answer is due to, for a message. */
static void describe(const struct cordon_answer *answer, const char *none, char ret[static SHOWN_MAX])
{
	char rule[SHOWN_MAX - 4];

	if (!answer->rule) {
		cordon_concat(ret, SHOWN_MAX, none, (char *)NULL);
		return;
	}
	cordon_text_escape_fixed(rule, sizeof(rule), answer->rule, strlen(answer->rule));
	cordon_concat(ret, SHOWN_MAX, "`", rule, "`", (char *)NULL);
}

/* Compares everything except shares and hosts. */
static int compare_paths(const struct cordon_policy *child, const struct cordon_policy *parent, struct cordon_error *err)
{
	struct cordon_policy_difference found = { 0 };
	char path[SHOWN_MAX], inner[SHOWN_MAX], outer[SHOWN_MAX];
	const char *prefix = child->root.path;
	int r;

	if (!cordon_path_within(child->root.path, parent->root.path))
		return freer(err, "have another root", child->root.path);
	prefix += strlen(parent->root.path);
	while (*prefix == '/')
		prefix++;
	r = cordon_policy_find_freer(child, parent, prefix, &found, err);
	if (r < 0 || !found.witness)
		return r;
	cordon_text_escape_fixed(path, sizeof(path), *found.witness ? found.witness : ".",
				 *found.witness ? strlen(found.witness) : 1);
	describe(&found.after, "nothing", inner);
	describe(&found.before, "no rule", outer);
	free(found.witness);
	return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "it would %s %s: %s %s, and outside %s %s",
			   found.op == CORDON_COMPARED_WRITE ? "write" : "read", path, inner,
			   found.after.rule ? "allows it" : "limits it", outer,
			   found.before.rule ? "denies it" : "gives it");
}

/* Whether the parent has a share that shows the same, with no fewer rights and no more protection. */
static bool share_holds(const struct cordon_policy *parent, const struct cordon_policy_share *share)
{
	for (size_t i = 0; i < parent->n_shares; i++) {
		const struct cordon_policy_share *outer = &parent->shares[i];

		if (!cordon_path_within(share->source, outer->source) || (outer->read_only && !share->read_only))
			continue;
		if (share->read_only || !outer->policy ||
		    (share->policy && compare_paths(share->policy, outer->policy, NULL) == 0))
			return true;
	}
	return false;
}

int cordon_policy_within(const struct cordon_policy *child, const struct cordon_policy *parent, struct cordon_error *err)
{
	for (size_t i = 0; i < child->n_shares; i++)
		if (!share_holds(parent, &child->shares[i]))
			return freer(err, "show more of the host", child->shares[i].source);
	if (cordon_net_list_within(&child->net, &parent->net, err) < 0)
		return -EPERM;
	return compare_paths(child, parent, err);
}
