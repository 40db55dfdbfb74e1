/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy: pure data, and the one decision function. Everything that asks about a path (check-file, why, tree,
 * the plan, the watch, the lens) asks cordon_policy_decide().
 *
 * Rules, in this order:
 *   1. a path outside the root, or one that cannot be resolved: deny (warn in permissive mode when outside);
 *   2. a matching grant with access `none`: deny, always, in either mode;
 *   3. a write to a protected path, or below one: deny, always, in either mode;
 *   4. the most specific matching grant (literal components, then literal prefix; a tie goes to the stricter)
 *      says read or write; too little is a denial in either mode, because somebody wrote it down;
 *   5. no grant matches: strict denies, permissive warns.
 * A policy to which no read or write grant was added grants the whole root for writing ("no scope"). The order in
 * which grants were added never matters.
 */
#ifndef CORDON_POLICY_POLICY_H
#define CORDON_POLICY_POLICY_H

#include "base/buf.h"
#include "base/resolve.h"
#include "policy/pattern.h"

#define CORDON_PROTECTED_MAX 1024

struct cordon_grant {
	struct cordon_edges edges; /* of the pattern, here because most questions end with them */
	struct cordon_pattern *pattern;
	cordon_access access;
	char *where; /* "file:line:column", "--rw", or NULL */
};

struct cordon_protected {
	char *path;   /* clean, relative to the root, as written */
	char *target; /* where links in it lead, inside the root; NULL when that is the same. Protected too. */
	char *where;
	bool by_default; /* from the built-in list, not asked for */
	bool missing;	 /* a name in the root itself that was not there when it was added */
};

struct cordon_policy {
	struct cordon_root root;
	cordon_mode mode;
	bool reports; /* somebody asked for a mode by its name: attempts to leave the scope are told, whatever kind it is */
	bool read_only;	      /* every write grant counts as read */
	bool no_editor_temps; /* the temporary names of atomic saves are judged like any other */
	struct cordon_grant *grants;
	size_t n_grants;
	struct cordon_protected *protected_paths;
	size_t n_protected;
	char *folders; /* the folder list as the user wrote it, for messages; or NULL */
};

/* The public calls of cordon.h with the place a rule came from (copied; may be NULL). A protected path must be
 * relative, not empty, not ".", without ".."; a repeated one is folded. One that is a FIFO, socket or device, or a
 * link that leads out of the root, is refused with kind policy_denied. */
int cordon_policy_add_grant(struct cordon_policy *policy, const char *pattern, cordon_access access, const char *where,
			    struct cordon_error *err);
int cordon_policy_add_protected(struct cordon_policy *policy, const char *path, const char *where, bool by_default,
				struct cordon_error *err);
/* The part of that judgement which needs no root; `ret_clean` gets the path as a policy keeps it. */
int cordon_protected_clean(const char *path, char ret_clean[static CORDON_PATH_MAX], struct cordon_error *err);
/* Grants one folder for writing; it must exist inside the root. Does not touch `folders`. */
int cordon_policy_add_folder(struct cordon_policy *policy, const char *folder, const char *where,
			     struct cordon_error *err);
/* Takes back what was added last, down to so many grants and protected paths. */
void cordon_policy_truncate(struct cordon_policy *policy, size_t n_grants, size_t n_protected);

/* Whether any read or write grant was added, and whether the policy lets anything be written. */
bool cordon_policy_has_scope(const struct cordon_policy *policy);
bool cordon_policy_has_write(const struct cordon_policy *policy);

/* Pure: judges a clean path relative to the root that is already resolved. `ret->resolved` is filled with it. */
void cordon_policy_decide(const struct cordon_policy *policy, const char *path, cordon_op op,
			  struct cordon_decision *ret);
/* Judges what a resolver found, places outside the root included. */
void cordon_policy_judge(const struct cordon_policy *policy, const struct cordon_resolved *resolved, cordon_op op,
			 struct cordon_decision *ret);
/* Whether something at or below `dir` may be reached: for traversal and listing. */
bool cordon_policy_leads(const struct cordon_policy *policy, const char *dir);

/* One sentence for a person: what decided, and what to change to get the other answer. */
int cordon_policy_explain(const struct cordon_policy *policy, const struct cordon_decision *decision, cordon_op op,
			  struct cordon_buf *ret_text, struct cordon_buf *ret_remedy);

#endif
