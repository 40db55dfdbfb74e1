/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent may do with an entry of the tree, and whether everything below a directory is the same. */
#ifndef CORDON_POLICY_MARKS_H
#define CORDON_POLICY_MARKS_H

#include "policy/policy.h"

typedef enum cordon_mark {
	CORDON_MARK_RW,
	CORDON_MARK_RO,
	CORDON_MARK_PROTECTED, /* can be read, and never changes */
	CORDON_MARK_WARN,      /* permissive mode lets it through and warns */
	CORDON_MARK_DENIED,
	CORDON_MARK__MAX
} cordon_mark;

const char *cordon_mark_name(cordon_mark mark);

/* Returns the mark of a resolved path; `scratch` is the caller's, because a decision is large. */
cordon_mark cordon_mark_of(const struct cordon_policy *policy, const struct cordon_resolved *resolved,
			   struct cordon_decision *scratch);

/*
 * Whether every name that could stand below directory `dir`, whose own mark is given, has that mark too, as far as
 * the policy goes; nothing is read from disk. Patterns that begin with a double star, and so lead everywhere, do not
 * count: *ret_except is the text of the first of them that could differ, or NULL.
 */
bool cordon_mark_uniform(const struct cordon_policy *policy, const char *dir, cordon_mark mark, const char **ret_except);

#endif
