/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the shares that a front end wants to a policy, and makes shares that show the same files agree. */
#include "protect/shares.h"
#include "base/confirmed.h"
#include "base/path.h"

static bool overlap(const char *a, const char *b)
{
	return cordon_path_within(a, b) || cordon_path_within(b, a);
}

/* Protects in one of two shares what is protected in the other, as far as it shows the same files. */
static int protect_alike(const struct cordon_policy_share *from, struct cordon_policy_share *to,
			 struct cordon_error *err)
{
	for (size_t i = 0; i < from->policy->n_protected; i++) {
		const struct cordon_protected *p = &from->policy->protected_paths[i];
		char path[CORDON_PATH_MAX];
		const char *rest;
		int r;

		if (cordon_path_join(from->source, p->path, path, sizeof(path)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", p->path);
		if (!cordon_path_within(path, to->source) || cordon_streq(path, to->source))
			continue;
		rest = path + strlen(to->source);
		r = cordon_policy_add_protected(to->policy, rest + strspn(rest, "/"), p->where, p->by_default, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int refuse_pair(const struct cordon_policy_share *a, const struct cordon_policy_share *b, const char *why,
		       const char *hint, struct cordon_error *err)
{
	cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED, "%s and %s %s", a->where, b->where, why);
	cordon_error_hint(err, "%s", hint);
	return -EINVAL;
}

/* Two shares that show the same files must have the same rights, or else the one with more rights is a way around
 * the other. */
static int agree_on_sources(struct cordon_policy_share *a, struct cordon_policy_share *b, struct cordon_error *err)
{
	int r;

	/* A layer keeps nothing, and a link is no file. */
	if (!overlap(a->source, b->source) || a->kind != CORDON_SHARE_PLAIN || b->kind != CORDON_SHARE_PLAIN)
		return 0;
	if (a->read_only != b->read_only)
		return refuse_pair(a, b, "show the same files with different rights",
				   "give both the same rights, or leave one out", err);
	if (a->read_only || !a->policy || !b->policy)
		return 0;
	r = protect_alike(a, b, err);
	return r < 0 ? r : protect_alike(b, a, err);
}

/* The agent could rename a directory in a writable share, together with what is mounted on it. */
static int agree_on_targets(const struct cordon_policy_share *a, const struct cordon_policy_share *b,
			    struct cordon_error *err)
{
	const struct cordon_policy_share *outer = a, *inner = b;

	if (!a->target || !b->target || !overlap(a->target, b->target))
		return 0;
	if (cordon_streq(a->target, b->target))
		return refuse_pair(a, b, "would be shown at the same place",
				   "give one of them another place with DIR:PATH", err);
	if (strlen(a->target) > strlen(b->target)) {
		outer = b;
		inner = a;
	}
	/* The plan guards the place of a layer like any other boundary. */
	if (outer->read_only || outer->kind != CORDON_SHARE_PLAIN || inner->kind != CORDON_SHARE_PLAIN)
		return 0;
	return refuse_pair(inner, outer, "would be shown one inside the other",
			   "give one of them another place with DIR:PATH", err);
}

/* A directory of the run's home that the home itself shows already: only its protected names count. */
static int add_to_home(struct cordon_policy *policy, const struct cordon_policy_share *home,
		       const struct cordon_policy_share *inner, struct cordon_error *err)
{
	const char *below = inner->source + strlen(home->source);
	int r = 0;

	below += strspn(below, "/");
	for (size_t i = 0; r == 0 && i < inner->policy->n_protected; i++) {
		const struct cordon_protected *p = &inner->policy->protected_paths[i];
		char path[CORDON_PATH_MAX];

		r = cordon_path_join(below, p->path, path, sizeof(path)) < 0
			    ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", p->path)
			    : cordon_policy_add_protected(home->policy, path, p->where, p->by_default, err);
	}
	cordon_policy_drop_shares(policy, policy->n_shares - 1);
	return r;
}

/* Judges the source of the share that was added last by who named it. */
static int judge_named(const struct cordon_policy *policy, const struct cordon_share *ask, struct cordon_home *home,
		       struct cordon_error *err)
{
	struct cordon_policy_share *share = &policy->shares[policy->n_shares - 1];
	const char *root = policy->root.path[1] ? policy->root.path : NULL; /* of "/" nothing is a part of a root only */
	const char *given = ask->as ? ask->as : ask->source;
	struct cordon_named named = { .given = given, .path = share->source, .fd = share->fd };
	int r = home->fd < 0 ? cordon_home_open(home, err) : 0;

	if (r == 0 && ask->named == CORDON_NAMED_BEFORE) {
		r = cordon_confirmed_check(home, &named, &share->is_known, err);
		if (r == 0 && !(share->named = strdup(given)))
			r = cordon_fail_errno(err, -ENOMEM, "shares");
	} else if (r == 0) {
		/* What a person confirmed may lead through any link. What else they confirmed there before is not asked now. */
		(void)cordon_confirmed_check(home, &named, &share->is_known, NULL);
	}
	if (r == 0 && !share->is_known)
		r = cordon_confirmed_way(home, given, root, share->source, err);
	return r < 0 ? cordon_error_prefix(err, r, "%s", share->where) : 0;
}

static int add_judged(struct cordon_policy *policy, const struct cordon_share *ask, bool as_home, const char *at,
		      struct cordon_home *home, struct cordon_error *err)
{
	int r = cordon_policy_add_share(policy, ask, as_home, at, err);

	return r < 0 || ask->named == CORDON_NAMED_BY_NOBODY ? r : judge_named(policy, ask, home, err);
}

static int add_one(struct cordon_policy *policy, const struct cordon_share *ask, const char *at,
		   struct cordon_home *records, struct cordon_error *err)
{
	const struct cordon_policy_share *home = NULL, *last;
	int r = add_judged(policy, ask, false, at, records, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < policy->n_shares; i++)
		if (policy->shares[i].home)
			home = &policy->shares[i];
	last = &policy->shares[policy->n_shares - 1];
	if (!home || last->kind != CORDON_SHARE_PLAIN || last->read_only || !last->policy || last->target[0] != '~' ||
	    !cordon_path_within(last->source, home->source))
		return 0;
	return add_to_home(policy, home, last, err);
}

int cordon_shares_add(struct cordon_policy *policy, const struct cordon_share *shares, size_t n,
		      const struct cordon_share *home, const char *at, bool default_protect, struct cordon_error *err)
{
	size_t before = policy->n_shares;
	autohome struct cordon_home records = CORDON_HOME_NONE;
	int r = home ? add_judged(policy, home, true, at, &records, err) : 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_one(policy, &shares[i], at, &records, err);
	for (size_t i = 0; r == 0 && default_protect && i < policy->n_shares; i++)
		if (!policy->shares[i].read_only && policy->shares[i].kind == CORDON_SHARE_PLAIN)
			r = cordon_protect_share(policy, &policy->shares[i], err);
	for (size_t i = 0; r == 0 && i < policy->n_shares; i++) {
		for (size_t j = 0; r == 0 && j < i; j++) {
			r = agree_on_sources(&policy->shares[j], &policy->shares[i], err);
			if (r == 0)
				r = agree_on_targets(&policy->shares[j], &policy->shares[i], err);
		}
	}
	if (r < 0)
		cordon_policy_drop_shares(policy, before);
	return r;
}
