/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pattern grammar of cordon: compile once, match in time linear in pattern × path.
 *
 * Grammar: `*`, `?`, `[a-z]`, `[!a]`/`[^a]` (`]` first is literal), `{a,b}` (nested, alternatives may be empty or
 * hold slashes), `\` escapes, `**` as a whole component. Characters are UTF-8 characters, an invalid byte counts
 * as one; a leading dot is nothing special. A pattern is relative to its root: never absolute, never `..`.
 *
 * Braces are expanded into alternatives when a pattern is compiled (bounded; over the bound is an error). An
 * alternative whose last component is literal covers what lies below it; one that ends in a wildcard covers that
 * level only; `a/**` covers `a` and everything below.
 */
#ifndef CORDON_POLICY_PATTERN_H
#define CORDON_POLICY_PATTERN_H

#include "base/error.h"

#define CORDON_ALTERNATIVES_MAX 1024
#define CORDON_BRACE_DEPTH_MAX 10

struct cordon_pattern;

/* How specific an alternative is: more literal components first, then the longer literal prefix (in bytes). */
struct cordon_specificity {
	size_t literal_components;
	size_t literal_prefix;
};

/* The first and the last bytes that every matching path has, at most 8 of each, in the order of memory. They allow a
 * quick "no" before the real match. */
struct cordon_edges {
	uint64_t head, head_mask;
	uint64_t tail, tail_mask;
};

/* On failure `err` names the pattern, the column (from 1, in characters, in err->message) and the likely meaning
 * (err->hint). */
int cordon_pattern_compile(const char *text, struct cordon_pattern **ret_pattern, struct cordon_error *err);
/* The same, but the pattern also covers everything below a match, even where it ends in a wildcard: `sec*` matches
 * `secret/key`. For grants that deny. */
int cordon_pattern_compile_deep(const char *text, struct cordon_pattern **ret_pattern, struct cordon_error *err);
/* Whether `text` compiles. On failure *ret_column is the column that `err` names, or 0 when it names none; for
 * callers that know where the text stands in a file. */
int cordon_pattern_check(const char *text, size_t *ret_column, struct cordon_error *err);
struct cordon_pattern *cordon_pattern_free(struct cordon_pattern *pattern);
const char *cordon_pattern_text(const struct cordon_pattern *pattern);

const struct cordon_edges *cordon_pattern_edges(const struct cordon_pattern *pattern);

/* Puts a backslash before every special character of a literal path, so that the compiled pattern matches exactly
 * that path and everything below it. NULL without memory. */
char *cordon_pattern_quote(const char *path);

/* Matches a clean relative path ("" is the root). A path with "..", with empty components, or of CORDON_PATH_MAX
 * bytes and more matches nothing. When it matches and `ret` is not NULL, *ret is the greatest specificity among the
 * matching alternatives. Allocates nothing. */
bool cordon_pattern_match(const struct cordon_pattern *pattern, const char *path, struct cordon_specificity *ret);

/* Whether `dir` and every path below it match because one alternative covers them all. */
bool cordon_pattern_covers(const struct cordon_pattern *pattern, const char *dir);

/* Whether some path strictly below the directory `dir` could match. A directory listing shows only directories that
 * lead to something. */
bool cordon_pattern_leads(const struct cordon_pattern *pattern, const char *dir);

/* The same for matches that are more specific than `bar`, and so could win against a grant of that specificity. */
bool cordon_pattern_leads_beyond(const struct cordon_pattern *pattern, const char *dir,
				 const struct cordon_specificity *bar);

/* The alternatives, for code that turns grants into mounts. cordon_pattern_literal() is the unescaped path when
 * alternative i is a plain subtree (`src`, `src/**`, `**` as ""), and NULL when each name must be judged. */
size_t cordon_pattern_alternatives(const struct cordon_pattern *pattern);
const char *cordon_pattern_literal(const struct cordon_pattern *pattern, size_t i);

#endif
