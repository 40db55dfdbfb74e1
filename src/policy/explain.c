/* SPDX-License-Identifier: Apache-2.0 */
/* A decision in words: what decided, and what to change to get the other answer. */
#include "base/text.h"
#include "policy/policy.h"

static int add_escaped(struct cordon_buf *buf, const char *s)
{
	return cordon_text_escape(buf, s, strlen(s));
}

/* The path as people know it: the root is ".". */
static int add_path(struct cordon_buf *buf, const char *path)
{
	return add_escaped(buf, *path ? path : ".");
}

static int add_rule(struct cordon_buf *buf, const struct cordon_decision *decision)
{
	int r = cordon_buf_adds(buf, "`");

	r = r < 0 ? r : add_escaped(buf, decision->rule);
	r = r < 0 ? r : cordon_buf_adds(buf, "`");
	if (r == 0 && decision->rule_where) {
		r = cordon_buf_adds(buf, " (");
		r = r < 0 ? r : add_escaped(buf, decision->rule_where);
		r = r < 0 ? r : cordon_buf_adds(buf, ")");
	}
	return r;
}

/* Whether escaping would change more than double its backslashes: control characters, bytes that are no UTF-8. */
static bool is_printable(const char *s)
{
	autobuf struct cordon_buf escaped = CORDON_BUF(16 * CORDON_PATTERN_MAX);
	size_t backslashes = 0;

	for (const char *p = s; *p; p++)
		backslashes += *p == '\\';
	return add_escaped(&escaped, s) == 0 && escaped.len == strlen(s) + backslashes;
}

/* A pattern for exactly this path as a word for the shell. */
static int add_pattern_word(struct cordon_buf *buf, const char *path)
{
	autofree char *pattern = cordon_pattern_quote(path);
	int r;

	if (!pattern)
		return -ENOMEM;
	r = cordon_buf_adds(buf, "'");
	if (r == 0 && !is_printable(pattern))
		r = add_escaped(buf, pattern);
	else
		for (const char *p = pattern; *p && r == 0; p++)
			r = *p == '\'' ? cordon_buf_adds(buf, "'\\''") : cordon_buf_addc(buf, *p);
	return r < 0 ? r : cordon_buf_adds(buf, "'");
}

static int add_grant_option(struct cordon_buf *buf, cordon_op op, const char *path)
{
	int r = cordon_buf_adds(buf, op == CORDON_OP_WRITE ? "grant it with --rw " : "grant it with --ro ");

	return r < 0 ? r : add_pattern_word(buf, path);
}

static int explain_grant(const struct cordon_policy *policy, const struct cordon_decision *d, cordon_op op,
			 struct cordon_buf *text, struct cordon_buf *remedy)
{
	const char *verb = op == CORDON_OP_WRITE ? "written" : "read";
	int r = add_path(text, d->resolved);

	if (r < 0)
		return r;
	r = cordon_buf_addf(text, " may %sbe %s: ", d->verdict == CORDON_DENY ? "not " : "", verb);
	if (r < 0)
		return r;
	if (!d->rule)
		r = cordon_buf_adds(text, policy->read_only ? "the whole policy is read-only" :
							      "no scope was given, so the whole root is in it");
	else if (d->verdict != CORDON_DENY)
		r = cordon_buf_adds(text, "the most specific grant is ");
	else
		r = cordon_buf_adds(text, policy->read_only ? "the policy is read-only, whatever is granted by " :
							      "the most specific grant is for reading only, ");
	if (r == 0 && d->rule)
		r = add_rule(text, d);
	if (r < 0)
		return r;
	if (d->verdict == CORDON_DENY && policy->read_only)
		return cordon_buf_adds(remedy, "use a policy that is not read-only");
	if (d->verdict == CORDON_DENY) {
		r = add_grant_option(remedy, op, d->resolved);
		return r < 0 ? r : cordon_buf_adds(remedy, ", unless that very path is granted for reading: change that grant then");
	}
	r = cordon_buf_adds(remedy, "refuse it with --deny ");
	return r < 0 ? r : add_pattern_word(remedy, d->resolved);
}

static int explain_protected(const struct cordon_policy *policy, const struct cordon_decision *d,
			     struct cordon_buf *text, struct cordon_buf *remedy)
{
	bool by_default = false;
	int r = add_path(text, d->resolved);

	for (size_t i = 0; i < policy->n_protected; i++)
		if (cordon_streq(policy->protected_paths[i].path, d->rule))
			by_default = policy->protected_paths[i].by_default;
	r = r < 0 ? r : cordon_buf_adds(text, " may not be written: ");
	r = r < 0 ? r : add_rule(text, d);
	r = r < 0 ? r : cordon_buf_adds(text, by_default ? " is protected by default" : " is protected against every change");
	return r < 0 ? r : cordon_buf_adds(remedy, by_default ? "change it from outside; what is protected by default stays so" :
								"take it off the protected paths, or change it from outside");
}

static int explain_no_grant(const struct cordon_policy *policy, const struct cordon_decision *d, cordon_op op,
			    struct cordon_buf *text, struct cordon_buf *remedy)
{
	int r = add_path(text, d->resolved);

	r = r < 0 ? r : cordon_buf_adds(text, " is not covered by any grant");
	if (r == 0 && policy->folders) {
		r = cordon_buf_adds(text, "; the workspace is ");
		r = r < 0 ? r : add_escaped(text, policy->folders);
	}
	r = r < 0 ? r : cordon_buf_adds(text, d->verdict == CORDON_WARN ? "; permissive mode lets it pass with a warning" : "");
	if (r < 0)
		return r;
	if (d->verdict == CORDON_WARN) {
		r = cordon_buf_adds(remedy, "use strict mode to refuse it; to end the warning, ");
		if (r < 0)
			return r;
	}
	return add_grant_option(remedy, op, d->resolved);
}

static int explain_outside(const struct cordon_policy *policy, const struct cordon_decision *d, struct cordon_buf *text,
			   struct cordon_buf *remedy)
{
	int r = add_path(text, d->resolved);

	r = r < 0 ? r : cordon_buf_adds(text, " is outside the root ");
	r = r < 0 ? r : add_escaped(text, policy->root.path);
	if (r == 0 && d->verdict == CORDON_WARN)
		r = cordon_buf_adds(text, "; permissive mode lets it pass with a warning");
	return r < 0 ? r : cordon_buf_adds(remedy, d->verdict == CORDON_WARN ? "use strict mode to refuse it" :
									      "move it inside, or use a root that holds it");
}

int cordon_policy_explain(const struct cordon_policy *policy, const struct cordon_decision *decision, cordon_op op,
			  struct cordon_buf *ret_text, struct cordon_buf *ret_remedy)
{
	int r;

	switch (decision->reason) {
	case CORDON_REASON_GRANT:
		return explain_grant(policy, decision, op, ret_text, ret_remedy);
	case CORDON_REASON_DENY:
		r = add_path(ret_text, decision->resolved);
		r = r < 0 ? r : cordon_buf_adds(ret_text, " is denied by ");
		r = r < 0 ? r : add_rule(ret_text, decision);
		r = r < 0 ? r : cordon_buf_adds(ret_text, ", and a denial always wins");
		return r < 0 ? r : cordon_buf_adds(ret_remedy, "remove or narrow that deny");
	case CORDON_REASON_PROTECTED:
		return explain_protected(policy, decision, ret_text, ret_remedy);
	case CORDON_REASON_NO_GRANT:
		return explain_no_grant(policy, decision, op, ret_text, ret_remedy);
	case CORDON_REASON_OUTSIDE_ROOT:
		return explain_outside(policy, decision, ret_text, ret_remedy);
	case CORDON_REASON_UNRESOLVABLE:
	case CORDON_REASON__MAX:
		break;
	}
	r = add_path(ret_text, decision->resolved);
	r = r < 0 ? r : cordon_buf_adds(ret_text, " cannot be resolved: a loop of links, or a name that cannot be");
	return r < 0 ? r : cordon_buf_adds(ret_remedy, "look at the links on the way to it");
}
