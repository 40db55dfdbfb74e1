/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy: pure data, and the decision function. All code that needs to know about a path (check-file, why, tree,
 * the plan, the watch, the lens) calls cordon_policy_decide().
 *
 * Rules, in this order:
 *   0. a path in a share (shares.h), or where one is mounted in the root: the share's own policy decides;
 *   1. a path outside the root, or one that cannot be resolved: deny, in either mode;
 *   2. a matching grant with access `none`: deny, always, in either mode;
 *   3. a write to a protected path, or below one: deny, always, in either mode;
 *   4. the most specific matching grant (literal components, then literal prefix; a tie goes to the stricter)
 *      says read or write; too little is a denial in either mode, because somebody wrote the grant down;
 *   5. no grant matches: strict denies, permissive warns.
 * A policy without any read or write grant grants the whole root for writing ("no scope"). The order in which grants
 * were added never matters. A `none` grant covers everything below what it matches, also when it ends in a wildcard.
 *
 * A policy may stand inside others, its fences: each judges by the rules above, and the strictest answer counts.
 */
#ifndef CORDON_POLICY_POLICY_H
#define CORDON_POLICY_POLICY_H

#include "base/buf.h"
#include "base/names.h"
#include "base/resolve.h"
#include "policy/net.h"
#include "policy/pattern.h"

#define CORDON_PROTECTED_MAX 4096
#define CORDON_PROTECTED_ASKED_MAX 1024 /* of them, in the settings of a project */
/* The `where` of a path of the built-in list; `unprotect` lifts these and no others. */
#define CORDON_PROTECTED_BY_DEFAULT "protected by default"
/* The `where` of a denial that nobody wrote: of a known secret (protect/secrets.h). `unprotect` lifts it. */
#define CORDON_DENIED_BY_DEFAULT "a known secret"

struct cordon_grant {
	struct cordon_edges edges; /* of the pattern; stored here because most grants are ruled out by them */
	struct cordon_pattern *pattern;
	cordon_access access;
	char *where; /* "file:line:column", the option it was given by, or NULL */
};

struct cordon_protected {
	char *path;	 /* clean, relative to the root, as written */
	uint32_t sum;	 /* of its bytes: most paths are told apart by it */
	char *target;	 /* where links in it lead, inside the root; NULL when that is the same. Protected too. */
	char *where;	 /* part of the memory of `path`, or NULL */
	bool by_default; /* from the built-in list, not from the user */
	bool missing; /* its first component did not exist in the root when it was added, or the second one in the first: */
	size_t lies_in; /* if missing: how many bytes of the path name a directory that existed, no link */
	bool is_dir;	/* it was a directory at that time, reached without a link */
};

struct cordon_policy_share;

/* A file of the root that has `n` other names where no agent gets to: in records of ours. */
struct cordon_kept_names {
	dev_t dev;
	ino_t ino;
	nlink_t n;
};

struct cordon_policy {
	struct cordon_root root;
	cordon_mode mode;
	/* Attempts to read outside the scope are reported, as changes always are: the scope is a list of folders, or
	 * the user chose a mode by its name. */
	bool reports_reads;
	bool read_only;	      /* every write grant counts as read */
	bool has_home;	      /* the root is the caller's home directory or contains it */
	bool no_editor_temps; /* the temporary names of atomic saves are judged like all other names */
	struct cordon_grant *grants;
	size_t n_grants;
	struct cordon_protected *protected_paths;
	size_t n_protected;
	struct cordon_kept_names kept;	    /* these are no second names of a protected file */
	uint64_t protected_sums[64];	    /* a bit for each sum that a protected path has or had */
	char *folders;			    /* the folder list as the user wrote it, or NULL; for messages only */
	struct cordon_policy_share *shares; /* what else of the host the agent sees (shares.h) */
	size_t n_shares;
	/* The hosts that a run may reach; a fence that is added narrows it, so this is all that counts. */
	struct cordon_net_list net;
	/* The list of the fence that was added last and had one, and its name: to say whose list a host is not in. */
	struct cordon_net_list fence_net;
	char *fence_net_name;
	/* The scopes inside which this policy stands. A fence has read and write grants, read_only and this policy's
	 * mode. What it denied or protected was moved to this policy when the fence was added, because that holds
	 * whoever asks. */
	struct cordon_policy **fences;
	size_t n_fences;
	bool strict_fence; /* one of them was strict when it was added */
	char *name;	   /* of a fence: its name in decisions; NULL otherwise */
	/* Borrowed while the built-in list is added: knows what is missing in the root; else NULL. */
	struct cordon_names *names;
};

#define CORDON_FENCES_MAX 64

/* An empty policy of the same root directory, to become a fence. */
int cordon_policy_new_like(const struct cordon_policy *policy, struct cordon_policy **ret_policy,
			   struct cordon_error *err);

/* The policy itself, then its fences; NULL behind the last one. For code that must look at every grant. */
static inline const struct cordon_policy *cordon_policy_part(const struct cordon_policy *policy, size_t i)
{
	return i == 0 ? policy : i <= policy->n_fences ? policy->fences[i - 1] : NULL;
}

/* The rules in reports that no policy has written (sandbox/inside/hand.h, enum cordon_hand_why). */
#define CORDON_RULE_SELF_RESTRICTED "a program that has restricted itself makes nothing beside a boundary"
#define CORDON_RULE_LINK_IN_GIT "no link in a git directory"
#define CORDON_RULE_NOT_OF_RUN "the host made it during the run, beside a boundary"
#define CORDON_RULE_OVERLAY_MARK "no attributes of overlayfs"

/* "strict", "permissive"; "read", "write" */
const char *cordon_mode_name(cordon_mode mode);
const char *cordon_op_name(cordon_op op);

/* For CORDON_CLEANUP(). */
void cordon_policy_freep(struct cordon_policy **policy);

/* The public functions of cordon.h with the place where a rule was written (copied; may be NULL). A protected path
 * must be relative, not empty, not ".", without ".."; a repeated one counts once. A FIFO, socket or device, and a
 * link that leads out of the root, is refused with kind policy_denied. */
int cordon_policy_add_grant(struct cordon_policy *policy, const char *pattern, cordon_access access, const char *where,
			    struct cordon_error *err);
/* Adds a grant to the policy and to each of its fences, if they have a scope: what is granted so, no part hides. */
int cordon_policy_add_grant_in_all(struct cordon_policy *policy, const char *pattern, cordon_access access,
				   const char *where, struct cordon_error *err);
int cordon_policy_add_protected(struct cordon_policy *policy, const char *path, const char *where, bool by_default,
				struct cordon_error *err);
/* The part of this check that needs no root; `ret_clean` gets the path in the form that a policy stores. */
int cordon_protected_clean(const char *path, char ret_clean[static CORDON_PATH_MAX], struct cordon_error *err);
/* Grants one folder for writing; it must exist inside the root. Does not touch `folders`. */
int cordon_policy_add_folder(struct cordon_policy *policy, const char *folder, const char *where,
			     struct cordon_error *err);
/* Removes what was added last, until there are this many grants and protected paths. */
void cordon_policy_truncate(struct cordon_policy *policy, size_t n_grants, size_t n_protected);

/* Whether the policy itself has a read or write grant; and whether the policy and its fences allow any write. */
bool cordon_policy_has_scope(const struct cordon_policy *policy);
bool cordon_policy_has_write(const struct cordon_policy *policy);

/* Pure: judges a clean path relative to the root that is already resolved. `ret->resolved` is filled with it. */
void cordon_policy_decide(const struct cordon_policy *policy, const char *path, cordon_op op,
			  struct cordon_decision *ret);
/* Judges the result of a resolver, which may be outside the root. */
void cordon_policy_judge(const struct cordon_policy *policy, const struct cordon_resolved *resolved, cordon_op op,
			 struct cordon_decision *ret);
/* The rights at a path when a warning counts as allowed: what a sandbox must give. */
cordon_access cordon_policy_access(const struct cordon_policy *policy, const char *path);
/* Whether the run may reach something at or below `dir`: for walking and listing directories. */
bool cordon_policy_leads(const struct cordon_policy *policy, const char *dir);

/* Whether a write grant of each part allows `dir` itself or leads to something below it: for making the directories
 * above a file. False for what is denied or protected. */
bool cordon_policy_leads_write(const struct cordon_policy *policy, const char *dir);

/* Whether a path lies in a git directory of the host's, as the built-in list knows it. A link that a run made there would lead git
 * on the host to write elsewhere. */
bool cordon_policy_in_git_dir(const struct cordon_policy *policy, const char *path);
/* Whether the policy forbids every write at and below a path, now and later; false when that is not certain. */
bool cordon_policy_holds(const struct cordon_policy *policy, const char *path);

/* Writes one sentence for a person that says what decided, and one line with the option or rule to change for the
 * other answer. Both are escaped and never empty. */
int cordon_policy_explain(const struct cordon_policy *policy, const struct cordon_decision *decision, cordon_op op,
			  struct cordon_buf *ret_text, struct cordon_buf *ret_remedy);

/* The same for the answer of cordon_policy_check_host(). */
int cordon_policy_explain_host(const struct cordon_policy *policy, const struct cordon_decision *decision,
			       struct cordon_buf *ret_text, struct cordon_buf *ret_remedy);

/* The protected path that lies below `path`, or NULL. */
const char *cordon_policy_protected_below(const struct cordon_policy *policy, const char *path);
/* The path that the policy protects, denies or makes read-only and that lies below `path`, where a file or link would take
 * its place; or NULL. */
const char *cordon_policy_held_below(const struct cordon_policy *policy, const char *path);

#endif
