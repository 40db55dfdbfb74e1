/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a decision in words: what decided, and what to change to get the other answer. */
#include "base/setting.h"
#include "base/text.h"
#include "policy/policy.h"
#include "policy/shares.h"

/* A sentence that is being written. After the first failure, which stays in `r`, nothing is added. */
struct sentence {
	struct cordon_buf *buf;
	int r;
};

static void append(struct sentence *s, const char *text)
{
	if (s->r == 0)
		s->r = cordon_buf_adds(s->buf, text);
}

static void append_escaped(struct sentence *s, const char *text)
{
	if (s->r == 0)
		s->r = cordon_text_escape(s->buf, text, strlen(text));
}

/* The path as users write it: the root is ".". */
static void append_path(struct sentence *s, const char *path)
{
	append_escaped(s, *path ? path : ".");
}

static void append_rule(struct sentence *s, const struct cordon_decision *decision)
{
	append(s, "`");
	append_escaped(s, decision->rule);
	append(s, "`");
	if (decision->rule_where) {
		append(s, " (");
		append_escaped(s, decision->rule_where);
		append(s, ")");
	}
}

/* Whether escaping would only double the backslashes: no control characters, and valid UTF-8. */
static bool is_printable(const char *text)
{
	autobuf struct cordon_buf escaped = CORDON_BUF(SIZE_MAX / 2);
	size_t backslashes = 0;

	for (const char *p = text; *p; p++)
		backslashes += *p == '\\';
	return cordon_text_escape(&escaped, text, strlen(text)) == 0 && escaped.len == strlen(text) + backslashes;
}

/* A setting and its value, quoted for the shell. */
static void append_setting(struct sentence *s, cordon_setting setting, const char *value)
{
	append(s, cordon_setting_name(setting));
	append(s, " '");
	if (!is_printable(value)) {
		append_escaped(s, value);
	} else {
		for (const char *p = value; *p; p++)
			append(s, *p == '\'' ? "'\\''" : (const char[]){ *p, '\0' });
	}
	append(s, "'");
}

/* The same with a pattern for exactly this path. */
static void append_setting_for(struct sentence *s, cordon_setting setting, const char *path)
{
	autofree char *pattern = cordon_pattern_quote(path);

	if (pattern)
		append_setting(s, setting, pattern);
	else if (s->r == 0)
		s->r = -ENOMEM;
}

static void append_grant(struct sentence *s, cordon_op op, const char *path)
{
	append(s, "grant it with ");
	append_setting_for(s, op == CORDON_OP_WRITE ? CORDON_SETTING_RW : CORDON_SETTING_RO, path);
}

/* What helps against a rule that is the mode in which the run has the repository, and no path that somebody listed.
 * False when the rule is another one. */
static bool append_git_remedy(struct sentence *remedy, const struct cordon_decision *d, cordon_op op)
{
	const char *git = cordon_setting_name(CORDON_SETTING_GIT);
	size_t n = strlen(git);

	if (!d->rule_where || strncmp(d->rule_where, git, n) != 0 || d->rule_where[n] != ' ')
		return false;
	append(remedy, "use ");
	append(remedy, git);
	append(remedy, op == CORDON_OP_WRITE ? " commit" : " read");
	return true;
}

/* The part of the policy that decided: the policy itself, or one of its fences. */
static const struct cordon_policy *decider(const struct cordon_policy *policy, const struct cordon_decision *d)
{
	for (size_t i = 0; d->fence && i < policy->n_fences; i++)
		if (policy->fences[i]->name == d->fence)
			return policy->fences[i];
	return policy;
}

/* Another grant would not help: the fence must allow it, too. */
static void append_fence_remedy(struct sentence *remedy, const struct cordon_decision *d)
{
	append(remedy, "widen the fence ");
	append_escaped(remedy, d->fence);
	append(remedy, ", or leave it out");
}

static void append_fence(struct sentence *text, const struct cordon_decision *d)
{
	if (!d->fence)
		return;
	append(text, " of the fence ");
	append_escaped(text, d->fence);
}

/* Whether the rule is a grant for exactly this path. Another grant for the path cannot beat it. */
static bool is_grant_for_path(const struct cordon_decision *d)
{
	autofree char *pattern = cordon_pattern_quote(d->resolved);

	return pattern && d->rule && cordon_streq(pattern, d->rule);
}

static void explain_grant(const struct cordon_policy *policy, const struct cordon_decision *d, cordon_op op,
			  struct sentence *text, struct sentence *remedy)
{
	const struct cordon_policy *part = decider(policy, d);
	bool denied = d->verdict == CORDON_DENY;

	append_path(text, d->resolved);
	append(text, denied ? " may not be " : " may be ");
	append(text, op == CORDON_OP_WRITE ? "written: " : "read: ");
	if (denied && part->read_only) {
		append(text, "the policy");
		append_fence(text, d);
		append(text, " is read-only");
	} else if (!d->rule) {
		append(text, "no scope was given, so the whole root is in it");
	} else {
		append(text, "the most specific grant");
		append_fence(text, d);
		append(text, denied ? " is for reading only, " : " is ");
		append_rule(text, d);
	}

	if (!denied) {
		append(remedy, "refuse it with ");
		append_setting_for(remedy, CORDON_SETTING_DENY, d->resolved);
	} else if (d->fence) {
		append_fence_remedy(remedy, d);
	} else if (part->read_only) {
		append(remedy, "use a policy that is not read-only");
	} else if (append_git_remedy(remedy, d, op)) {
		return;
	} else if (is_grant_for_path(d)) {
		append(remedy, "grant it for writing (");
		append(remedy, cordon_setting_name(CORDON_SETTING_RW));
		append(remedy, ") in place of ");
		append_rule(remedy, d);
	} else {
		append_grant(remedy, op, d->resolved);
	}
}

static void explain_share(const struct cordon_policy_share *share, const struct cordon_decision *d, cordon_op op,
			  struct sentence *text, struct sentence *remedy)
{
	bool denied = d->verdict == CORDON_DENY;
	size_t n = strlen(share->where);

	append_path(text, d->resolved);
	append(text, denied ? " may not be " : " may be ");
	append(text, op == CORDON_OP_WRITE ? "written: " : "read: ");
	append(text, "it lies in what is shown by ");
	append_escaped(text, share->where);
	if (share->git) {
		append(remedy, denied ? "grant .git for writing" : "deny .git");
		return;
	}
	if (denied && (n < 3 || !cordon_streq(share->where + n - 3, ":ro"))) {
		append(remedy, "let ");
		append_escaped(remedy, share->where);
		append(remedy, " be written");
		return;
	}
	append(remedy, denied ? "share it without :ro" : "leave the share out");
	if (!denied && op == CORDON_OP_WRITE && !share->home)
		append(remedy, ", or share it with :ro");
}

static void explain_protected(const struct cordon_policy *policy, const struct cordon_decision *d,
			      struct sentence *text, struct sentence *remedy)
{
	const struct cordon_protected *found = NULL;
	bool listed;

	for (size_t i = 0; i < policy->n_protected && !found; i++)
		if (cordon_streq(policy->protected_paths[i].path, d->rule))
			found = &policy->protected_paths[i];
	listed = found && found->by_default && found->where && cordon_streq(found->where, CORDON_PROTECTED_BY_DEFAULT);
	append_path(text, d->resolved);
	append(text, " may not be written: ");
	if (listed) {
		append(text, "`");
		append_escaped(text, d->rule);
		append(text, "` is protected by default");
		append(remedy, "lift it with ");
		append_setting(remedy, CORDON_SETTING_UNPROTECT, d->rule);
		return;
	}
	append_rule(text, d);
	append(text, " is protected against every change");
	if (cordon_streq(d->rule, CORDON_RULE_NOT_OF_RUN)) {
		append(remedy, "change it in the next run, or put such files into a subdirectory");
		return;
	}
	/* A rule that is no path of the policy's is one that nobody can lift. */
	if (!found || found->by_default) {
		append(remedy, "change it from outside");
		return;
	}
	if (append_git_remedy(remedy, d, CORDON_OP_WRITE))
		return;
	append(remedy, "take it off the protected paths: ");
	append_rule(remedy, d);
}

static void explain_no_grant(const struct cordon_policy *policy, const struct cordon_decision *d, cordon_op op,
			     struct sentence *text, struct sentence *remedy)
{
	append_path(text, d->resolved);
	append(text, " is not covered by any grant");
	append_fence(text, d);
	if (policy->folders && !d->fence) {
		append(text, "; the workspace is ");
		append_escaped(text, policy->folders);
	}
	if (d->verdict == CORDON_WARN) {
		append(text, "; permissive mode lets it pass with a warning");
		append(remedy, "use strict mode to refuse it; to end the warning, ");
	}
	if (d->fence)
		append_fence_remedy(remedy, d);
	else
		append_grant(remedy, op, d->resolved);
}

static void explain_outside(const struct cordon_policy *policy, const struct cordon_decision *d, struct sentence *text,
			    struct sentence *remedy)
{
	append_path(text, d->resolved);
	append(text, " is outside the root ");
	append_escaped(text, policy->root.path);
	append(remedy, "move it inside, show it with ");
	append(remedy, cordon_setting_name(CORDON_SETTING_SHARE));
	append(remedy, ", or use a root that holds it");
}

int cordon_policy_explain(const struct cordon_policy *policy, const struct cordon_decision *decision, cordon_op op,
			  struct cordon_buf *ret_text, struct cordon_buf *ret_remedy)
{
	struct sentence text = { ret_text, 0 }, remedy = { ret_remedy, 0 };
	const char *rest;
	const struct cordon_policy_share *share = decision->resolved[0] == '/'
							  ? cordon_share_of(policy, decision->resolved, &rest)
							  : cordon_share_at(policy, decision->resolved, &rest);

	if (share && decision->reason == CORDON_REASON_GRANT) {
		explain_share(share, decision, op, &text, &remedy);
		return text.r < 0 ? text.r : remedy.r;
	}
	if (share && share->policy)
		policy = share->policy;
	switch (decision->reason) {
	case CORDON_REASON_GRANT:
		explain_grant(policy, decision, op, &text, &remedy);
		break;
	case CORDON_REASON_DENY:
		append_path(&text, decision->resolved);
		append(&text, " is denied by ");
		append_rule(&text, decision);
		append(&text, ", and a denial always wins");
		if (decision->rule_where && cordon_streq(decision->rule_where, CORDON_DENIED_BY_DEFAULT)) {
			append_setting(&remedy, CORDON_SETTING_UNPROTECT, decision->rule);
		} else if (!append_git_remedy(&remedy, decision, op)) {
			append(&remedy, "remove or narrow that deny, ");
			append_rule(&remedy, decision);
		}
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
	case CORDON_REASON_NO_HOST:
	case CORDON_REASON_OTHER_HOST:
	case CORDON_REASON_NOT_PUBLIC:
	case CORDON_REASON_HIDDEN_HOST:
		/* Of a host, which is no path. */
		return cordon_policy_explain_host(policy, decision, ret_text, ret_remedy);
	case CORDON_REASON_UNRESOLVABLE:
	case CORDON_REASON__MAX:
		append_path(&text, decision->resolved);
		append(&text, " cannot be resolved: a loop of links, or a name that cannot be");
		append(&remedy, "look at the links on the way to it");
		break;
	}
	return text.r < 0 ? text.r : remedy.r;
}
