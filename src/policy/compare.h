/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one policy allows and another one does not, exactly: no difference is missed, and none is invented.
 *
 * Patterns are regular languages over the characters of a path. All rules of both policies together make one automaton,
 * which is made deterministic while it is walked; two paths that lead to the same state match the same rules, so one path
 * per state is enough, and cordon_policy_decide() itself is asked about it. What would take more than
 * CORDON_COMPARE_STATES_MAX states is refused, never guessed.
 */
#ifndef CORDON_POLICY_COMPARE_H
#define CORDON_POLICY_COMPARE_H

#include "policy/policy.h"

#define CORDON_COMPARE_STATES_MAX 200000
#define CORDON_COMPARE_NODES_MAX 1000000 /* characters and wildcards of all patterns, braces written out */
#define CORDON_DIFFERENCES_MAX 1024

typedef enum cordon_compared_op {
	CORDON_COMPARED_READ,
	CORDON_COMPARED_WRITE,
	CORDON_COMPARED_CONNECT
} cordon_compared_op;

/* What a policy says about the witness; the strings belong to the policy. */
struct cordon_answer {
	cordon_verdict verdict;
	cordon_reason reason;
	const char *rule, *rule_where, *fence; /* or NULL */
};

/* Paths or hosts about which the same two rules decide, and differently. */
struct cordon_policy_difference {
	cordon_compared_op op;
	struct cordon_answer before, after; /* of the first and of the second policy */
	char *witness;			    /* the shortest such path ("" is the root), or a HOST:PORT */
};

struct cordon_policy_differences {
	struct cordon_policy_difference *items;
	size_t n;
	size_t n_states; /* of the automaton, for those who measure */
};

void cordon_policy_differences_done(struct cordon_policy_differences *differences);

/* Whether the second policy lets through what the first one does not: a denial became a warning or a permission, or a
 * warning a permission. Every difference either adds or takes away. */
static inline bool cordon_policy_difference_adds(const struct cordon_policy_difference *difference)
{
	return difference->after.verdict < difference->before.verdict;
}

/* Compares two policies of one root: first paths, shortest first, then hosts. Sources of shares are not part of a root,
 * and are not compared. -E2BIG when the bound does not suffice, -EILSEQ when a rule is not UTF-8. */
int cordon_policy_compare(const struct cordon_policy *before, const struct cordon_policy *after,
			  struct cordon_policy_differences *ret, struct cordon_error *err);

/*
 * Finds the shortest path of `inner` that it lets through, if only with a warning, and `outer` does not. The root of `inner`
 * is `prefix` in that of `outer`. The witness is NULL when there is none, and belongs to the caller; `before` is what the
 * outer policy says. Errors are those of cordon_policy_compare(). Hosts, and sources of shares, are not compared.
 */
int cordon_policy_find_freer(const struct cordon_policy *inner, const struct cordon_policy *outer, const char *prefix,
			     struct cordon_policy_difference *ret, struct cordon_error *err);

#endif
