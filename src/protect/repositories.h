/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds repositories that a run made or changed and in which git would execute something: `core.fsmonitor` in the
 * configuration of a nested repository runs at `git status`, also in the outer one if its index has a gitlink to it.
 * Making a repository is normal work (git clone), so nothing is refused; but the user who runs git next must know,
 * so it is always reported.
 *
 * The agent wrote everything that is read here: only regular files are read, with bounds; no link is followed out of
 * the root, and git is not executed. The index is read whole when it changed. The search for other repositories is
 * breadth first and takes a small part of the time that the run took, as processor time.
 */
#ifndef CORDON_PROTECT_REPOSITORIES_H
#define CORDON_PROTECT_REPOSITORIES_H

#include <time.h>

#include "base/buf.h"
#include "policy/policy.h"

#define CORDON_REPOSITORIES_SHOWN_MAX 10

/* What must be stored before the run. */
struct cordon_repositories_mark {
	struct timespec since;
	int index_fd; /* the index as it was, or -1 */
};

/* clang-format off */
#define CORDON_REPOSITORIES_MARK_NONE { .index_fd = -1 }
/* clang-format on */

struct cordon_repository {
	char *path;  /* of the git directory or the gitlink, relative to the root; in a share absolute */
	char *names; /* what git would execute, "core.fsmonitor, hooks/pre-commit"; or NULL */
	/* It is new in the index of the root's own repository; the path is ".git/index" when that cannot be read. */
	bool gitlink;
};

struct cordon_repositories {
	struct cordon_repository items[CORDON_REPOSITORIES_SHOWN_MAX];
	size_t n; /* how many were found; the first ones are in `items` */
};

void cordon_repositories_begin(const struct cordon_policy *policy, struct cordon_repositories_mark *ret_mark);
/* Where to look: in the root, and in the shares that may be written. */
#define CORDON_REPOSITORIES_IN_ROOT 1U
#define CORDON_REPOSITORIES_IN_SHARES 2U

/* Takes up to 200 µs of processor time, or an eighth of `duration_ms`, and at most a second by the clock; the same for all
 * shares together. Without memory it returns what it has found so far. */
void cordon_repositories_find(const struct cordon_policy *policy, struct cordon_repositories_mark *mark,
			      unsigned int where, uint64_t duration_ms, struct cordon_repositories *ret);
void cordon_repositories_done(struct cordon_repositories *repositories);

/* Writes one sentence for a person. */
int cordon_repository_text(const struct cordon_repository *repository, struct cordon_buf *ret_text);

#endif
