/* SPDX-License-Identifier: Apache-2.0 */
/* Turns shares into mounts; what is protected in a writable share is held as in the workspace. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/setting.h"
#include "sandbox/plan/plan.h"

static bool overlap(const char *a, const char *b)
{
	return cordon_path_within(a, b) || cordon_path_within(b, a);
}

/* Whether the policy denies reading anything in the root. A second view of the root would show it. */
static bool hides(const struct cordon_policy *policy)
{
	CORDON_UNCLEARED struct cordon_decision decision;

	for (size_t i = 0; i < policy->n_grants; i++)
		if (policy->grants[i].access == CORDON_ACCESS_NONE)
			return true;
	cordon_policy_decide(policy, "", CORDON_OP_READ, &decision);
	return decision.verdict == CORDON_DENY;
}

/* Refuses a share that is a second path to the workspace when the agent could write what is protected, or read what is
 * denied, through it. */
static int check_overlap(const struct cordon_plan *plan, const struct cordon_plan_spec *spec,
			 const struct cordon_policy_share *share, struct cordon_error *err)
{
	if (!overlap(share->source, plan->root))
		return 0;
	if (!share->read_only) {
		cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED,
			    "%s overlaps the workspace %s: what is protected there could be changed through it",
			    share->where, plan->root);
		cordon_error_hint(err, "choose a directory that lies apart from it, or share it read-only");
		return -EINVAL;
	}
	if (!hides(spec->run->policy))
		return 0;
	cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED,
		    "%s overlaps the workspace %s: what the policy hides there could be read through it", share->where,
		    plan->root);
	cordon_error_hint(err,
			  "choose a directory that lies apart from it, or leave out the denial and grant the root with %s",
			  cordon_setting_name(CORDON_SETTING_RO));
	return -EINVAL;
}

static int check_records(const struct cordon_plan_spec *spec, const struct cordon_policy_share *share,
			 struct cordon_error *err)
{
	if (!spec->home_path || !overlap(share->source, spec->home_path))
		return 0;
	return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED, "%s %s cordon's own records (%s)", share->where,
			   cordon_path_within(spec->home_path, share->source) ? "holds" : "lies in", spec->home_path);
}

static int check_target(const struct cordon_plan *plan, const struct cordon_policy_share *share,
			struct cordon_error *err)
{
	const char *taken = cordon_streq(share->target, plan->at) ? "the workspace"
			    : overlap(share->target, plan->tmp)	  ? "the run's temporary directory"
								  : NULL;

	if (!taken)
		return 0;
	cordon_fail(err, -EBUSY, CORDON_KIND_POLICY_DENIED, "%s can't be shown at %s: that is where %s is",
		    share->where, share->target, taken);
	cordon_error_hint(err, "give it another place with DIR:PATH");
	return -EBUSY;
}

/* When a share is mounted in the workspace, its name is a boundary: nobody may rename the directory that it covers. */
static int guard_target(struct cordon_plan *plan, const struct cordon_policy_share *share, struct cordon_error *err)
{
	const struct cordon_step *step = &plan->steps[plan->n_steps - 1];
	struct cordon_guard *guard;
	int r;

	if (!share->in_root || !*share->in_root)
		return 0;
	r = cordon_plan_guard(plan, 0, CORDON_GUARD_SHARE, CORDON_GUARD_PRESENT, share->in_root, &guard, err);
	if (r < 0)
		return r;
	guard->dev = step->dev;
	guard->ino = step->ino;
	return 0;
}

/* Grants the mount point of a share to cordon-lens, which knows nothing of shares and would not show it. The share
 * covers everything below the mount point, so the grant gives nothing else. */
static int grant_target_to_lens(const struct cordon_plan *plan, struct cordon_policy *policy,
				const struct cordon_policy_share *share, struct cordon_error *err)
{
	autofree char *pattern = NULL;

	if (!plan->lens || !share->in_root || !cordon_policy_has_scope(policy))
		return 0;
	pattern = cordon_pattern_quote(share->in_root);
	if (!pattern)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	return cordon_policy_add_grant(policy, pattern, CORDON_ACCESS_READ, share->where, err);
}

/* Makes one link of the host inside, at the same place. Where the agent sees the host's own directory, or something else
 * has the name, nothing is made. */
static int make_link(void *data, const char *link, const char *rest)
{
	struct cordon_plan *plan = data;
	CORDON_UNCLEARED char path[CORDON_PATH_MAX], target[CORDON_PATH_MAX], host[CORDON_PATH_MAX];
	struct cordon_step *step;
	ssize_t n;

	(void)rest;
	if (cordon_path_join("/", link, path, sizeof(path)) < 0 || cordon_path_within(path, plan->at) ||
	    cordon_plan_is_made(plan, path) || cordon_plan_parents(plan, path, host, NULL) < 0 || *host)
		return 0;
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return 0;
	target[n] = '\0';
	step = cordon_plan_step(plan, CORDON_STEP_LINK, path);
	return step && (step->text = cordon_arena_strdup(plan->arena, target)) ? 0 : -ENOMEM;
}

/* A share that was named through links has that name inside, too: the links lead to its target. */
static int show_links(struct cordon_plan *plan, const struct cordon_policy_share *share, struct cordon_error *err)
{
	const struct cordon_root slash = { .fd = -1, .path = "/" };
	CORDON_UNCLEARED struct cordon_resolved found;

	if (share->given && cordon_resolve_links(&slash, share->given, make_link, plan, &found) < 0)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	return 0;
}

static int show(struct cordon_plan *plan, const struct cordon_plan_spec *spec, const struct cordon_policy_share *share,
		const char *target, struct cordon_error *err)
{
	int r = check_records(spec, share, err);

	if (r < 0 || (r = check_overlap(plan, spec, share, err)) < 0 ||
	    (r = grant_target_to_lens(plan, spec->run->policy, share, err)) < 0)
		return r;
	r = cordon_plan_bind(plan, share->source, target,
			     CORDON_STEP_SHARE | (share->read_only ? CORDON_STEP_READ_ONLY : 0),
			     share->read_only ? CORDON_RIGHT_READ : CORDON_RIGHT_WRITE, err);
	if (r == 0)
		r = guard_target(plan, share, err);
	if (r == 0)
		r = show_links(plan, share, err);
	return r < 0 || share->read_only || !share->policy ? r : cordon_plan_area(plan, target, share->policy, err);
}

int cordon_plan_home(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	for (size_t i = 0; i < spec->run->policy->n_shares; i++) {
		int r;

		if (!spec->run->policy->shares[i].home)
			continue;
		r = show(plan, spec, &spec->run->policy->shares[i], plan->home, err);
		return r < 0 ? r : 1;
	}
	return 0;
}

/* Puts shorter paths first: a share that lies in another one must be mounted after it. */
static int by_length(const void *a, const void *b)
{
	size_t x = strlen((*(const struct cordon_policy_share *const *)a)->target),
	       y = strlen((*(const struct cordon_policy_share *const *)b)->target);

	return x < y ? -1 : x > y ? 1 : 0;
}

int cordon_plan_shares(struct cordon_plan *plan, const struct cordon_plan_spec *spec, bool around,
		       struct cordon_error *err)
{
	const struct cordon_policy *policy = spec->run->policy;
	size_t n = 0, size = (policy->n_shares + 1) * sizeof(struct cordon_policy_share *);
	const struct cordon_policy_share **ordered = cordon_arena_alloc(plan->arena, size);
	int r = 0;

	if (!ordered)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	for (size_t i = 0; i < policy->n_shares; i++)
		if (policy->shares[i].target && cordon_path_within(plan->at, policy->shares[i].target) == around)
			ordered[n++] = &policy->shares[i];
	qsort(ordered, n, sizeof(struct cordon_policy_share *), by_length);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = check_target(plan, ordered[i], err);
		if (r == 0)
			r = show(plan, spec, ordered[i], ordered[i]->target, err);
	}
	return r;
}
