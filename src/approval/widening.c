/* SPDX-License-Identifier: Apache-2.0 */
/* What agents could do under other settings that they can't do now, in the words of a question to a person. */
#include "approval/widening.h"
#include "base/path.h"
#include "base/text.h"
#include "config/values.h"
#include "policy/policy.h"

static bool lacks(const json_t *list, const json_t *wanted)
{
	size_t i;
	json_t *item;

	json_array_foreach(list, i, item) {
		if (json_equal(item, wanted))
			return false;
	}
	return true;
}

/* A limit of 0 means that there is no limit. */
static bool grows(int64_t before, int64_t after)
{
	return before && (!after || after > before);
}

/*
 * What would be wider, all of it: a person who reads the first of five things has not read the deed. What a client wrote is quoted, so
 * that it can't pass for our words. INVARIANT: when a reason could not be written down, nothing is said.
 */
struct reasons {
	struct cordon_buf *text;
	int failed; /* the first error, or 0 */
};

static void note(struct reasons *reasons, int r)
{
	if (r < 0 && !reasons->failed)
		reasons->failed = r;
}

static void add_reason(struct reasons *reasons, const char *reason)
{
	note(reasons, cordon_buf_addf(reasons->text, "%s%s", reasons->text->len ? "; " : "", reason));
}

static void add_quoted(struct reasons *reasons, const char *value)
{
	note(reasons, cordon_text_quote(reasons->text, value, strlen(value)));
}

static void add_words(struct reasons *reasons, const char *words)
{
	note(reasons, cordon_buf_adds(reasons->text, words));
}

static void add_if(struct reasons *reasons, bool holds, const char *reason)
{
	if (holds)
		add_reason(reasons, reason);
}

/* Whether an item of a list is there already, as it stands or because of another item. */
typedef bool covered_fn(const char *item, const char *by);

static bool is_covered(const json_t *list, const json_t *wanted, covered_fn *covered)
{
	size_t i;
	json_t *item;

	if (!lacks(list, wanted))
		return true;
	json_array_foreach(list, i, item) {
		if (covered && covered(json_string_value(wanted), json_string_value(item)))
			return true;
	}
	return false;
}

/* A protected path protects all that lies below it. */
static bool path_covered(const char *path, const char *by)
{
	char inner[CORDON_PATH_MAX], outer[CORDON_PATH_MAX];

	return cordon_protected_clean(path, inner, NULL) == 0 && cordon_protected_clean(by, outer, NULL) == 0 &&
	       cordon_path_within(inner, outer);
}

/* The same share is no more when it can only be read. What lies in a share is no part of it here: a name in it may be a link that an
 * agent made, and leads elsewhere. */
static bool share_covered(const char *share, const char *by)
{
	struct cordon_share_value inner = { 0 }, outer = { 0 };
	bool covered = cordon_share_parse(share, &inner, NULL) == 0 && cordon_share_parse(by, &outer, NULL) == 0 &&
		       (inner.read_only || !outer.read_only) && cordon_streq(inner.source, outer.source) &&
		       cordon_streq(inner.target ? inner.target : "", outer.target ? outer.target : "");

	cordon_share_done(&inner);
	cordon_share_done(&outer);
	return covered;
}

/* Adds the reason with every item of `list` that `other` has not; nothing when there is none. */
static void add_more(struct reasons *reasons, const char *reason, const json_t *list, const json_t *other,
		     covered_fn *covered)
{
	size_t i, n = 0;
	json_t *item;

	json_array_foreach(list, i, item) {
		if (is_covered(other, item, covered))
			continue;
		if (n++)
			add_words(reasons, ", ");
		else
			add_reason(reasons, reason);
		add_quoted(reasons, json_string_value(item));
	}
}

/* Lists the shares of `after` that show more than those of `before`: new ones, and those that were read-only. */
static void add_shares(struct reasons *reasons, const json_t *before, const json_t *after)
{
	size_t i;
	json_t *item;

	json_array_foreach(after, i, item) {
		struct cordon_share_value share = { 0 };
		int r;

		if (is_covered(before, item, share_covered))
			continue;
		r = cordon_share_parse(json_string_value(item), &share, NULL);
		note(reasons, r);
		if (r < 0)
			continue;
		add_reason(reasons, share.read_only ? "agents could read " : "agents could read and change ");
		add_quoted(reasons, share.source);
		add_words(reasons, " of the host");
		if (share.target) {
			add_words(reasons, " at ");
			add_quoted(reasons, share.target);
		}
		cordon_share_done(&share);
	}
}

static void add_home(struct reasons *reasons, const char *before, const char *after)
{
	if (*after != '/' || cordon_streq(before, after))
		return;
	add_reason(reasons, "the agents of all workspaces would share one home, ");
	add_quoted(reasons, after);
	add_words(reasons, " of the host, and see what the others leave there");
}

/* Adds one limit that is wider; `n` counts those that were added before. `wide` says that 0 is no limit. */
static void put_limit(struct reasons *reasons, const char *name, int64_t before, int64_t after, bool wide, size_t *n)
{
	if ((*n)++)
		add_words(reasons, ", ");
	else
		add_reason(reasons, "agents would get more processes, memory, time, money or sessions: ");
	note(reasons, wide && !after
			      ? cordon_buf_addf(reasons->text, "%s from %lld to no limit", name, (long long)before)
			      : cordon_buf_addf(reasons->text, "%s from %lld to %lld", name, (long long)before,
						(long long)after));
}

static void add_limit(struct reasons *reasons, const char *name, int64_t before, int64_t after, bool wide, size_t *n)
{
	if (wide ? grows(before, after) : after > before)
		put_limit(reasons, name, before, after, wide, n);
}

/* A number of each run. */
static void add_number(struct reasons *reasons, cordon_recipe_id id, const struct cordon_settings *before,
		       const struct cordon_settings *after, size_t *n)
{
	const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
	int64_t from, to;

	if (!row->project || row->type != CORDON_RECIPE_NUMBER)
		return;
	from = (int64_t)cordon_settings_value(before, id);
	to = (int64_t)cordon_settings_value(after, id);
	if (row->widens == CORDON_RECIPE_HIGHER ? grows(from, to) : row->widens == CORDON_RECIPE_LOWER && to < from)
		put_limit(reasons, cordon_recipe_limit(row->project) ? cordon_recipe_limit(row->project) : row->project,
			  from, to, row->widens == CORDON_RECIPE_HIGHER, n);
}

static void add_limits(struct reasons *reasons, const struct cordon_settings *from, const struct cordon_settings *to)
{
	const struct cordon_settings_limits *before = &from->limits, *after = &to->limits;
	size_t n = 0;

	add_limit(reasons, "max_sessions", before->max_sessions, after->max_sessions, true, &n);
	/* For the depth, 0 is a value like any other: it means no recursion. */
	add_limit(reasons, "max_recursion_depth", before->max_recursion_depth, after->max_recursion_depth, false, &n);
	add_limit(reasons, "max_agents_per_session", before->max_agents_per_session, after->max_agents_per_session,
		  true, &n);
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++)
		add_number(reasons, id, from, to, &n);
	if (before->max_cost_usd <= 0 || (after->max_cost_usd > 0 && after->max_cost_usd <= before->max_cost_usd))
		return;
	if (n)
		add_words(reasons, ", ");
	else
		add_reason(reasons, "agents would get more processes, memory, time, money or sessions: ");
	note(reasons, after->max_cost_usd <= 0 ? cordon_buf_addf(reasons->text, "max_cost_usd from %.17g to no limit",
								 before->max_cost_usd)
					       : cordon_buf_addf(reasons->text, "max_cost_usd from %.17g to %.17g",
								 before->max_cost_usd, after->max_cost_usd));
}

static void add_hosts(struct reasons *reasons, const struct cordon_net_list *more)
{
	for (size_t i = 0; i < more->n; i++) {
		if (i)
			add_words(reasons, ", ");
		else
			add_reason(reasons, "agents would reach more of the network: ");
		add_quoted(reasons, more->rules[i].text);
		/* What a star stands for is said by a name. */
		if (more->rules[i].kind == CORDON_NET_KIND_WILDCARD)
			note(reasons, cordon_buf_addf(reasons->text, " (as in a.%s)", more->rules[i].name));
	}
	for (size_t i = 0; i < more->n_inject; i++) {
		const struct cordon_net_inject *inject = &more->inject[i];

		add_reason(reasons, "agents would use the credential ");
		add_quoted(reasons, inject->from_env);
		add_words(reasons, " of cordon's environment at ");
		add_quoted(reasons, inject->host);
		note(reasons, cordon_buf_addf(reasons->text, ", port %u", (unsigned int)inject->port));
	}
}

/* A list that can't be told counts as wider. */
static void add_net(struct reasons *reasons, const struct cordon_settings *before, const struct cordon_settings *after)
{
	struct cordon_net_list outer = { 0 }, inner = { 0 }, more = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_settings_net(before, &outer, &err) < 0 || cordon_settings_net(after, &inner, &err) < 0 ||
	    (outer.listed && !inner.listed))
		add_reason(reasons, "agents would get the host's network");
	else
		note(reasons, cordon_net_list_excess(&inner, &outer, &more));
	add_hosts(reasons, &more);
	cordon_net_list_done(&more);
	cordon_net_list_done(&outer);
	cordon_net_list_done(&inner);
}

static void add_git(struct reasons *reasons, cordon_git_mode before, cordon_git_mode after)
{
	if (cordon_git_within(after, before))
		return;
	add_reason(reasons, "agents could do more with the repository of the workspace: ");
	add_words(reasons, cordon_git_mode_name(after));
	add_words(reasons, " instead of ");
	add_words(reasons, cordon_git_mode_name(before));
}

int cordon_settings_widening(const struct cordon_settings *before, const struct cordon_settings *after,
			     struct cordon_buf *ret_text, struct cordon_error *err)
{
	struct reasons reasons = { .text = ret_text };

	add_if(&reasons, before->workspace_isolation && !after->workspace_isolation,
	       "agents would see the whole project and every workspace in it");
	add_more(&reasons, "agents could change paths that are protected now: ", before->protected_paths,
		 after->protected_paths, path_covered);
	add_if(&reasons, before->default_protection && !after->default_protection,
	       "agents could change what the host executes later");
	add_net(&reasons, before, after);
	add_if(&reasons,
	       cordon_settings_value(before, CORDON_RECIPE_COW) && !cordon_settings_value(after, CORDON_RECIPE_COW),
	       "sessions would change the workspace itself");
	add_git(&reasons, (cordon_git_mode)cordon_settings_value(before, CORDON_RECIPE_GIT),
		(cordon_git_mode)cordon_settings_value(after, CORDON_RECIPE_GIT));
	add_if(&reasons,
	       cordon_settings_value(after, CORDON_RECIPE_BEST_EFFORT) &&
		       !cordon_settings_value(before, CORDON_RECIPE_BEST_EFFORT),
	       "sessions would start although a protection is missing");
	add_more(&reasons, "agents would get more variables of cordon's environment: ", after->env_pass,
		 before->env_pass, NULL);
	add_limits(&reasons, before, after);
	add_home(&reasons, before->home, after->home);
	add_more(&reasons, "agents would get the program and the variables of the profiles ", after->profile,
		 before->profile, NULL);
	add_shares(&reasons, before->shares, after->shares);
	return reasons.failed ? cordon_fail_errno(err, reasons.failed, "cannot tell what agents could do then") : 0;
}
