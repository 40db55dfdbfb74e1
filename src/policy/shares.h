/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares: directories and files of the host outside the root that the agent sees. Each has a policy of its own with
 * the source as its root, in which everything is granted for reading or writing and some paths are protected. This
 * policy decides for a host path in the source, and for a path of the root at which the share is mounted.
 */
#ifndef CORDON_POLICY_SHARES_H
#define CORDON_POLICY_SHARES_H

#include "policy/policy.h"

#define CORDON_SHARES_MAX 256

typedef enum cordon_share_kind {
	CORDON_SHARE_PLAIN,
	CORDON_SHARE_LAYER, /* a directory as the host has it; what the run writes there is discarded at the end */
	CORDON_SHARE_LINK,  /* a symbolic link of the host */
} cordon_share_kind;

/* Who named the source of a share. */
typedef enum cordon_share_named {
	CORDON_NAMED_BY_NOBODY, /* cordon found it, or keeps it itself */
	CORDON_NAMED_NOW,	/* a person, for this run or with this change of settings */
	CORDON_NAMED_BEFORE,	/* settings: what is there must be what a person said yes to (base/confirmed.h) */
} cordon_share_named;

/* What a front end asks for. The pointers belong to the caller. */
struct cordon_share {
	const char *source; /* absolute; may lead through links, except for the last name of a link; must exist */
	const char *target; /* absolute, or "~/..." for a place in the run's home; NULL: the same path inside */
	bool read_only;
	cordon_share_kind kind;
	cordon_share_named named;
	const char *as;	   /* the path as the settings write it, if the source is where that leads; else NULL */
	bool own;	   /* a directory that cordon keeps for a workspace: it may lie in $CORDON_HOME */
	bool commits;	   /* a part of the git directory of a run whose commits are taken over */
	const char *lower; /* own: the source is what the run changes of this directory, as in a view; or NULL */
	const char *where; /* the setting, for messages; NULL: made from the source */
	/* Names in the source that the agent can't change or make. */
	const char *const *protect;
	size_t n_protect;
};

struct cordon_policy_share {
	cordon_share_kind kind;
	char *source; /* on the host, canonical; of a link: canonical up to its name */
	/* What is there, O_PATH, opened without following links: what was judged, and the only thing that a run mounts. -1 for a
	 * link. */
	int fd;
	char *named;   /* the path as settings write it, when its identity counts; else NULL */
	bool is_known; /* that identity is on record */
	char *given; /* the path that leads to the source through links, and is to lead there inside as well; or NULL */
	char *link;  /* of a link: where it leads, as the host has it */
	bool own;    /* as asked */
	/* Path inside the sandbox, clean, absolute or "~/..." in the run's home, whose place the plan decides; NULL for
	 * the home itself. */
	char *target;
	char *in_root; /* the target relative to the root, when it lies in the workspace; else NULL */
	char *where;   /* "share /data:ro", as base/setting.h names it, for decisions and errors */
	bool read_only;
	bool home;    /* becomes the home directory */
	bool git;     /* the git directory of a worktree, which comes along without being asked for */
	bool commits; /* as asked */
	char *lower;  /* as asked */
	bool is_directory;
	struct cordon_policy *policy; /* of the source, and strict; NULL when the source is no directory */
};

/* Adds a share. `at` is where the agent sees the root, NULL for its own path. The share that becomes the run's home is
 * added with `home`, and has no target. */
int cordon_policy_add_share(struct cordon_policy *policy, const struct cordon_share *ask, bool home, const char *at,
			    struct cordon_error *err);
/* Adds the git directory of a linked worktree or a submodule (protect/worktree.h), at its own path. */
int cordon_policy_add_git_share(struct cordon_policy *policy, const char *source, bool read_only,
				struct cordon_error *err);
/* Removes the shares that were added last, until there are n_shares. */
void cordon_policy_drop_shares(struct cordon_policy *policy, size_t n_shares);

/* The share that is mounted at or above a path of the root; or the share whose source contains an absolute host
 * path. If there are several, the deepest. `ret_rest` is the path below it. NULL when there is none. */
const struct cordon_policy_share *cordon_share_at(const struct cordon_policy *policy, const char *path,
						  const char **ret_rest);
const struct cordon_policy_share *cordon_share_of(const struct cordon_policy *policy, const char *host,
						  const char **ret_rest);

/* Decides for a path in a share; false when it is in none. `path` is a path for cordon_share_at() or, when absolute,
 * for cordon_share_of(). */
bool cordon_share_decide(const struct cordon_policy *policy, const char *path, cordon_op op,
			 struct cordon_decision *ret);
/* Whether a directory of the root leads to the place where a share is mounted, or lies in one. */
bool cordon_share_leads(const struct cordon_policy *policy, const char *dir);

#endif
