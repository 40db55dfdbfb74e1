/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what comes out of a view. */
#include "view/judge.h"
#include "git/twin.h"

static bool has_git_twin(const char *path)
{
	for (const char *at = path;; at++) {
		size_t n = strcspn(at, "/");

		if (cordon_git_is_twin(at, n))
			return true;
		at += n;
		if (!*at)
			return false;
	}
}

const char *cordon_judge_change(const struct cordon_policy *policy, const struct cordon_delta_change *change,
				struct cordon_arena *arena, bool *ret_warned)
{
	struct cordon_decision decision;
	const char *below;

	*ret_warned = false;
	cordon_policy_decide(policy, change->path, CORDON_OP_WRITE, &decision);
	if (S_ISDIR(change->new.mode) && change->kind != CORDON_DELTA_DELETED && decision.verdict != CORDON_ALLOW &&
	    cordon_policy_leads_write(policy, change->path))
		decision.verdict = CORDON_ALLOW; /* a directory on the way to what may be written */
	if (decision.verdict == CORDON_DENY)
		return cordon_arena_printf(arena, "%s%s%s", cordon_reason_name(decision.reason),
					   decision.rule ? ": " : "", decision.rule ? decision.rule : "");
	*ret_warned = decision.verdict == CORDON_WARN;
	if (has_git_twin(change->path))
		return "a twin of .git";
	if (change->kind == CORDON_DELTA_DELETED)
		below = cordon_policy_protected_below(policy, change->path);
	else
		below = S_ISDIR(change->new.mode) ? NULL : cordon_policy_held_below(policy, change->path);
	return below ? cordon_arena_printf(arena, "%s below it is protected", below) : NULL;
}
