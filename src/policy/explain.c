/* SPDX-License-Identifier: Apache-2.0 */
/* A decision in words: what decided, and what to change to get the other answer. */
#include "base/text.h"
#include "policy/policy.h"

/* A sentence being written: the first failure stays, and nothing is added after it. */
struct sentence {
	struct cordon_buf *buf;
	int r;
};

static void say(struct sentence *s, const char *text)
{
	if (s->r == 0)
		s->r = cordon_buf_adds(s->buf, text);
}

static void say_escaped(struct sentence *s, const char *text)
{
	if (s->r == 0)
		s->r = cordon_text_escape(s->buf, text, strlen(text));
}

/* The path as people know it: the root is ".". */
static void say_path(struct sentence *s, const char *path)
{
	say_escaped(s, *path ? path : ".");
}

static void say_rule(struct sentence *s, const struct cordon_decision *decision)
{
	say(s, "`");
	say_escaped(s, decision->rule);
	say(s, "`");
	if (decision->rule_where) {
		say(s, " (");
		say_escaped(s, decision->rule_where);
		say(s, ")");
	}
}

/* Whether escaping would do no more than double the backslashes: no control characters, no bytes that are no UTF-8. */
static bool is_printable(const char *text)
{
	autobuf struct cordon_buf escaped = CORDON_BUF(SIZE_MAX / 2);
	size_t backslashes = 0;

	for (const char *p = text; *p; p++)
		backslashes += *p == '\\';
	return cordon_text_escape(&escaped, text, strlen(text)) == 0 && escaped.len == strlen(text) + backslashes;
}

/* An option with a pattern for exactly this path, as words for the shell. */
static void say_option(struct sentence *s, const char *option, const char *path)
{
	autofree char *pattern = cordon_pattern_quote(path);

	if (!pattern) {
		s->r = s->r < 0 ? s->r : -ENOMEM;
		return;
	}
	say(s, option);
	say(s, " '");
	if (!is_printable(pattern)) {
		say_escaped(s, pattern);
	} else {
		for (const char *p = pattern; *p; p++)
			say(s, *p == '\'' ? "'\\''" : (const char[]){ *p, '\0' });
	}
	say(s, "'");
}

static void say_grant_option(struct sentence *s, cordon_op op, const char *path)
{
	say_option(s, op == CORDON_OP_WRITE ? "grant it with --rw" : "grant it with --ro", path);
}

static void explain_grant(const struct cordon_policy *policy, const struct cordon_decision *d, cordon_op op,
			  struct sentence *text, struct sentence *remedy)
{
	bool denied = d->verdict == CORDON_DENY;

	say_path(text, d->resolved);
	say(text, denied ? " may not be " : " may be ");
	say(text, op == CORDON_OP_WRITE ? "written: " : "read: ");
	if (denied && policy->read_only)
		say(text, "the policy is read-only");
	else if (!d->rule)
		say(text, "no scope was given, so the whole root is in it");
	else
		say(text, denied ? "the most specific grant is for reading only, " : "the most specific grant is ");
	if (d->rule && !(denied && policy->read_only))
		say_rule(text, d);

	if (!denied) {
		say_option(remedy, "refuse it with --deny", d->resolved);
	} else if (policy->read_only) {
		say(remedy, "use a policy that is not read-only");
	} else {
		say_grant_option(remedy, op, d->resolved);
		say(remedy, "; where that very path is granted for reading, change that grant");
	}
}

static void explain_protected(const struct cordon_policy *policy, const struct cordon_decision *d,
			      struct sentence *text, struct sentence *remedy)
{
	bool by_default = false;

	for (size_t i = 0; i < policy->n_protected; i++)
		if (cordon_streq(policy->protected_paths[i].path, d->rule))
			by_default = policy->protected_paths[i].by_default;
	say_path(text, d->resolved);
	say(text, " may not be written: ");
	say_rule(text, d);
	say(text, by_default ? " is protected by default" : " is protected against every change");
	if (by_default)
		say(remedy, "change it from outside; what is protected by default stays so");
	else
		say(remedy, "take it off the protected paths, or change it from outside");
}

static void explain_no_grant(const struct cordon_policy *policy, const struct cordon_decision *d, cordon_op op,
			     struct sentence *text, struct sentence *remedy)
{
	say_path(text, d->resolved);
	say(text, " is not covered by any grant");
	if (policy->folders) {
		say(text, "; the workspace is ");
		say_escaped(text, policy->folders);
	}
	if (d->verdict == CORDON_WARN) {
		say(text, "; permissive mode lets it pass with a warning");
		say(remedy, "use strict mode to refuse it; to end the warning, ");
	}
	say_grant_option(remedy, op, d->resolved);
}

static void explain_outside(const struct cordon_policy *policy, const struct cordon_decision *d, struct sentence *text,
			    struct sentence *remedy)
{
	say_path(text, d->resolved);
	say(text, " is outside the root ");
	say_escaped(text, policy->root.path);
	if (d->verdict == CORDON_WARN) {
		say(text, "; permissive mode lets it pass with a warning");
		say(remedy, "use strict mode to refuse it");
	} else {
		say(remedy, "move it inside, or use a root that holds it");
	}
}

int cordon_policy_explain(const struct cordon_policy *policy, const struct cordon_decision *decision, cordon_op op,
			  struct cordon_buf *ret_text, struct cordon_buf *ret_remedy)
{
	struct sentence text = { ret_text, 0 }, remedy = { ret_remedy, 0 };

	switch (decision->reason) {
	case CORDON_REASON_GRANT:
		explain_grant(policy, decision, op, &text, &remedy);
		break;
	case CORDON_REASON_DENY:
		say_path(&text, decision->resolved);
		say(&text, " is denied by ");
		say_rule(&text, decision);
		say(&text, ", and a denial always wins");
		say(&remedy, "remove or narrow that deny");
		break;
	case CORDON_REASON_PROTECTED:
		explain_protected(policy, decision, &text, &remedy);
		break;
	case CORDON_REASON_NO_GRANT:
		explain_no_grant(policy, decision, op, &text, &remedy);
		break;
	case CORDON_REASON_OUTSIDE_ROOT:
		explain_outside(policy, decision, &text, &remedy);
		break;
	case CORDON_REASON_UNRESOLVABLE:
	case CORDON_REASON__MAX:
		say_path(&text, decision->resolved);
		say(&text, " cannot be resolved: a loop of links, or a name that cannot be");
		say(&remedy, "look at the links on the way to it");
		break;
	}
	return text.r < 0 ? text.r : remedy.r;
}
