/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a change may come out of a view: the decision function, and what it can't see in one path alone. */
#ifndef CORDON_VIEW_JUDGE_H
#define CORDON_VIEW_JUDGE_H

#include "policy/policy.h"
#include "view/delta.h"

/*
 * Judges one change. Returns NULL when it may come out, and *ret_warned says whether it is outside the scope of a
 * permissive run; else the reason, made in the arena. The policy's own rule comes first. A name that another file
 * system or git takes for `.git` is refused, and so is a file or link in the place of a directory above a protected
 * path.
 */
const char *cordon_judge_change(const struct cordon_policy *policy, const struct cordon_delta_change *change,
				struct cordon_arena *arena, bool *ret_warned);

#endif
