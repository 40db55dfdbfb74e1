/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcordon: ask what a policy says about a path.
 *
 * A policy belongs to one root directory. It holds grants (a pattern below the root and rights),
 * protected paths and a mode. cordon_policy_check() resolves a path the way the kernel would, and
 * judges the result by component, never by string prefix.
 *
 * Conventions. A function returns 0 or a negative errno; outputs are untouched on failure; `err`
 * may be NULL. Nothing here prints, exits or logs. A policy may be read by several threads once it
 * is no longer changed.
 */
#ifndef CORDON_H
#define CORDON_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORDON_API __attribute__((visibility("default")))

/* Named maxima for what a user controls. */
#define CORDON_PATH_MAX 4096
#define CORDON_PATTERN_MAX 4096
#define CORDON_GRANTS_MAX 4096

/* The stable vocabulary of failures; cordon_kind_name() gives the word used in JSON. */
typedef enum cordon_kind {
	CORDON_KIND_NONE,
	CORDON_KIND_USAGE,
	CORDON_KIND_CONFIG,
	CORDON_KIND_POLICY_DENIED,
	CORDON_KIND_KERNEL_UNSUPPORTED,
	CORDON_KIND_NOT_FOUND,
	CORDON_KIND_CONFLICT,
	CORDON_KIND_LIMIT,
	CORDON_KIND_IO,
	CORDON_KIND_INTERNAL,
	CORDON_KIND__MAX
} cordon_kind;

/* Lives on the caller's stack; start from `struct cordon_error err = {0};`. */
struct cordon_error {
	int code;	   /* negative errno, 0 when nothing went wrong */
	cordon_kind kind;  /* what sort of failure */
	char message[768]; /* one line: what failed and on which object, control characters escaped */
	char where[512];   /* "file:line:column" or "", for configuration */
	char hint[256];	   /* what to do about it, or "" */
};

typedef enum cordon_access { CORDON_ACCESS_NONE, CORDON_ACCESS_READ, CORDON_ACCESS_WRITE } cordon_access;
typedef enum cordon_op { CORDON_OP_READ, CORDON_OP_WRITE } cordon_op;
typedef enum cordon_mode { CORDON_MODE_STRICT, CORDON_MODE_PERMISSIVE } cordon_mode;
typedef enum cordon_verdict { CORDON_ALLOW, CORDON_WARN, CORDON_DENY } cordon_verdict;

/* Which kind of rule decided. */
typedef enum cordon_reason {
	CORDON_REASON_GRANT,	    /* the most specific matching grant */
	CORDON_REASON_DENY,	    /* a `none` grant, which always wins */
	CORDON_REASON_PROTECTED,    /* a protected path or something below one */
	CORDON_REASON_NO_GRANT,	    /* inside the root, no grant matches */
	CORDON_REASON_OUTSIDE_ROOT, /* resolves to a place outside the root */
	CORDON_REASON_UNRESOLVABLE, /* a loop of links, or a name that cannot be */
	CORDON_REASON__MAX
} cordon_reason;

struct cordon_decision {
	cordon_verdict verdict;
	cordon_reason reason;
	cordon_access access;		/* rights the path has under the policy, whatever was asked */
	const char *rule;		/* text of the deciding pattern or path, or NULL; the policy's memory */
	const char *rule_where;		/* "file:line:column" or the option it came from, or NULL */
	char resolved[CORDON_PATH_MAX]; /* relative to the root ("" is the root), absolute when outside */
};

struct cordon_policy;

/* The root may be reached through symbolic links; it is opened once, here. */
CORDON_API int cordon_policy_new(const char *root, struct cordon_policy **ret_policy, struct cordon_error *err);
/* Accepts NULL; always returns NULL. */
CORDON_API struct cordon_policy *cordon_policy_free(struct cordon_policy *policy);

/* Adds a grant. A bad pattern is an error that names the column; it is never skipped. */
CORDON_API int cordon_policy_grant(struct cordon_policy *policy, const char *pattern, cordon_access access,
				   struct cordon_error *err);
/* Grants write access to each folder of a comma-separated list (blanks around entries are dropped, `\,` is a
 * comma). Folders are resolved first: each must exist and lie inside the root. */
CORDON_API int cordon_policy_grant_folders(struct cordon_policy *policy, const char *folders, struct cordon_error *err);
/* Protects a path relative to the root against every change; a trailing slash is ignored. */
CORDON_API int cordon_policy_protect(struct cordon_policy *policy, const char *path, struct cordon_error *err);
CORDON_API void cordon_policy_set_mode(struct cordon_policy *policy, cordon_mode mode);
/* Adds what a cordon.yaml or .json file says. On failure `err` holds the first error and the policy is
 * unchanged. */
CORDON_API int cordon_policy_load(struct cordon_policy *policy, const char *file, struct cordon_error *err);

/* Resolves `path` (relative to the root, or absolute) and decides. Denial is a decision, not an error. */
CORDON_API int cordon_policy_check(const struct cordon_policy *policy, const char *path, cordon_op op,
				   struct cordon_decision *ret_decision, struct cordon_error *err);

/* Stable words: "usage", "allow", "grant", ... */
CORDON_API const char *cordon_kind_name(cordon_kind kind);
CORDON_API const char *cordon_verdict_name(cordon_verdict verdict);
CORDON_API const char *cordon_reason_name(cordon_reason reason);
CORDON_API const char *cordon_version(void);

#ifdef __cplusplus
}
#endif
#endif
