/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the git directory of a root that is a linked worktree or a submodule: `.git` is a file there and names a
 * directory elsewhere, without which git does not work.
 *
 * An agent of an earlier run may have written that file, and others that it leads to. INVARIANT: the git directory is
 * believed only if it names this root as well, everything that says so belongs to the user, and it is a git directory
 * by its name and its content. So writing a `.git` file makes no run show another place of the host: whoever wrote it
 * must have been able to write the git directory, too.
 */
#ifndef CORDON_PROTECT_WORKTREE_H
#define CORDON_PROTECT_WORKTREE_H

#include "base/resolve.h"
#include "policy/policy.h"

struct cordon_worktree {
	/* The directory that must come along: the common git directory of a linked worktree, the git directory of a
	 * submodule. */
	struct cordon_root git;
	char own[CORDON_PATH_MAX]; /* of a linked worktree: its own directory, relative to `git`; else "" */
};

/* Whether the root has such a git directory outside of itself; if so, the caller calls cordon_worktree_done(). */
bool cordon_worktree_find(const struct cordon_root *root, struct cordon_worktree *ret);
void cordon_worktree_done(struct cordon_worktree *worktree);

/*
 * Adds the git directory of the root, if it has one outside, as a share with the rights that the policy gives to
 * `.git`. Whatever git would execute in it is protected, and so is the state of other worktrees. Adds nothing when the
 * policy hides `.git`, or has a share that overlaps the directory: then the user has said what to show.
 */
int cordon_worktree_share(struct cordon_policy *policy, struct cordon_error *err);

#endif
