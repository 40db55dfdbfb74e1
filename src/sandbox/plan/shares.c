/* SPDX-License-Identifier: Apache-2.0 */
/* Turns shares into mounts; what is protected in a writable share is held as in the workspace. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/identity.h"
#include "base/overlay.h"
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

/* Whether the share shows a directory of the workspace that another share covers, so that there is no second path to it.
 * Only cordon itself asks for such shares. The rules of the share then count there instead of those of the workspace. */
static bool is_covered(const struct cordon_plan *plan, const struct cordon_policy *policy,
		       const struct cordon_policy_share *share)
{
	if (!share->own || !share->in_root || !cordon_streq(plan->at, plan->root))
		return false;
	for (size_t i = 0; i < policy->n_shares; i++) {
		const struct cordon_policy_share *cover = &policy->shares[i];

		if (cover != share && cover->own && cover->read_only && cover->in_root &&
		    cordon_path_within(share->source, cover->target) && !overlap(cover->source, plan->root))
			return true;
	}
	return false;
}

/* Refuses a share that is a second path to the workspace when the agent could write what is protected, or read what is
 * denied, through it. */
static int check_overlap(const struct cordon_plan *plan, const struct cordon_plan_spec *spec,
			 const struct cordon_policy_share *share, struct cordon_error *err)
{
	/* The objects of the repository are what the mode of the repository shows, and the run's own git directory is
	 * nobody else's. */
	if (share->commits || !overlap(share->source, plan->root) || is_covered(plan, spec->run->policy, share))
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
	/* A directory that cordon itself keeps for a workspace lies in $CORDON_HOME, too; only the store asks for one. */
	if (share->own || !spec->home_path || !overlap(share->source, spec->home_path))
		return 0;
	return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED, "%s %s cordon's own records (%s)", share->where,
			   cordon_path_within(spec->home_path, share->source) ? "holds" : "lies in", spec->home_path);
}

static int check_target(const struct cordon_plan *plan, const struct cordon_policy_share *share, const char *target,
			struct cordon_error *err)
{
	const char *taken = cordon_streq(target, plan->at) ? "the workspace"
			    : overlap(target, plan->tmp)   ? "the run's temporary directory"
							   : NULL;

	if (!taken)
		return 0;
	cordon_fail(err, -EBUSY, CORDON_KIND_POLICY_DENIED, "%s can't be shown at %s: that is where %s is",
		    share->where, target, taken);
	cordon_error_hint(err, "give it another place with DIR:PATH");
	return -EBUSY;
}

/* When something is mounted in the workspace or in a writable share, its name is a boundary: nobody may rename the
 * directory that it covers. */
static int guard_target(struct cordon_plan *plan, const char *target, struct cordon_error *err)
{
	size_t area = plan->n_areas;
	const char *rest;

	for (size_t i = 0; i < plan->n_areas; i++)
		if (cordon_path_within(target, plan->areas[i].at) && !cordon_streq(target, plan->areas[i].at) &&
		    (area == plan->n_areas || strlen(plan->areas[i].at) > strlen(plan->areas[area].at)))
			area = i;
	if (area == plan->n_areas)
		return 0;
	rest = target + strlen(plan->areas[area].at);
	return cordon_plan_guard(plan, area, CORDON_GUARD_SHARE, CORDON_GUARD_PRESENT, rest + strspn(rest, "/"), NULL,
				 err);
}

/* Grants the mount point of a share to cordon-lens, which knows nothing of shares and would not show it: in the policy
 * and in each of its fences, because all of them must allow it. The share covers everything below the mount point, so
 * the grant gives nothing else. */
static int grant_target_to_lens(const struct cordon_plan *plan, struct cordon_policy *policy,
				const struct cordon_policy_share *share, struct cordon_error *err)
{
	autofree char *pattern = NULL;

	if (!plan->lens || !share->in_root)
		return 0;
	pattern = cordon_pattern_quote(share->in_root);
	if (!pattern)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	return cordon_policy_add_grant_in_all(policy, pattern, CORDON_ACCESS_READ, share->where, err);
}

/* Makes one link of the host inside, at the same place. Where the agent sees the host's own directory, or something else
 * has the name, nothing is made. */
static int make_link(void *data, const char *link, const char *rest)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX], target[CORDON_PATH_MAX];
	ssize_t n;

	(void)rest;
	if (cordon_path_join("/", link, path, sizeof(path)) < 0 || (n = readlink(path, target, sizeof(target) - 1)) <= 0)
		return 0;
	target[n] = '\0';
	return cordon_plan_link(data, path, target, NULL);
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

/* Shows a directory under a layer that is discarded. Where the kernel has no such layers, the run gets an empty
 * directory instead. */
static int show_layer(struct cordon_plan *plan, const struct cordon_policy_share *share, const char *target,
		      struct cordon_error *err)
{
	int r = cordon_overlay_probe(share->source);

	if (r == 0)
		return cordon_plan_layer(plan, share->source, target, err);
	if (cordon_plan_is_private(plan, target))
		return cordon_plan_note(plan, "%s: this kernel can't lay a layer on %s, so it is empty inside",
					share->where, share->source) < 0
			       ? cordon_fail_errno(err, -ENOMEM, "plan")
			       : 0;
	cordon_fail(err, r, CORDON_KIND_KERNEL_UNSUPPORTED, "%s: this kernel can't lay a discarded layer on %s",
		    share->where, share->source);
	return r;
}

/* INVARIANT: a run mounts what the policy opened and judged. The descriptor stays open until that is done, so that nothing
 * else can get the number of its inode. */
static int check_object(const struct cordon_plan *plan, const struct cordon_policy_share *share, size_t first,
			struct cordon_error *err)
{
	struct stat st;

	if (fstat(share->fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "%s", share->where);
	for (size_t i = first; i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];

		if (step->kind == CORDON_STEP_BIND && (step->dev != st.st_dev || step->ino != st.st_ino))
			return cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
					   "%s: something else was just put in its place", share->where);
	}
	return 0;
}

static int show(struct cordon_plan *plan, const struct cordon_plan_spec *spec, const struct cordon_policy_share *share,
		const char *target, struct cordon_error *err)
{
	size_t first = plan->n_steps;
	int r = check_records(spec, share, err);

	if (r < 0)
		return r;
	if (share->kind == CORDON_SHARE_LINK)
		return cordon_plan_link(plan, target, share->link, err);
	if ((r = check_overlap(plan, spec, share, err)) < 0 ||
	    (r = grant_target_to_lens(plan, spec->run->policy, share, err)) < 0)
		return r;
	if (share->kind == CORDON_SHARE_LAYER)
		r = show_layer(plan, share, target, err);
	else
		r = cordon_plan_bind(plan, share->source, target,
				     CORDON_STEP_SHARE | (share->read_only ? CORDON_STEP_READ_ONLY : 0) |
					     (share->commits && !share->in_root ? CORDON_STEP_NO_SOCKETS : 0),
				     share->read_only ? CORDON_RIGHT_READ : CORDON_RIGHT_WRITE, err);
	if (r == 0)
		r = check_object(plan, share, first, err);
	if (r == 0 && share->lower &&
	    !(plan->steps[plan->n_steps - 1].text = cordon_arena_strdup(plan->arena, share->lower)))
		r = cordon_fail_errno(err, -ENOMEM, "plan");
	if (r == 0)
		r = guard_target(plan, target, err);
	if (r == 0)
		r = show_links(plan, share, err);
	return r < 0 || share->read_only || !share->policy || share->kind != CORDON_SHARE_PLAIN
		       ? r
		       : cordon_plan_area(plan, target, share->policy, err);
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

/* A share and where the run sees it. */
struct placed {
	const struct cordon_policy_share *share;
	const char *target;
};

/* Puts shorter paths first: a share that lies in another one must be mounted after it. */
static int by_length(const void *a, const void *b)
{
	size_t x = strlen(((const struct placed *)a)->target), y = strlen(((const struct placed *)b)->target);

	return x < y ? -1 : x > y ? 1 : 0;
}

static const char *place_of(struct cordon_plan *plan, const struct cordon_policy_share *share)
{
	return share->target[0] == '~' ? cordon_arena_printf(plan->arena, "%s%s", plan->home, share->target + 1)
				       : share->target;
}

int cordon_plan_shares(struct cordon_plan *plan, const struct cordon_plan_spec *spec, bool around,
		       struct cordon_error *err)
{
	const struct cordon_policy *policy = spec->run->policy;
	struct placed *ordered = cordon_arena_alloc(plan->arena, (policy->n_shares + 1) * sizeof(*ordered));
	size_t n = 0;
	int r = 0;

	if (!ordered)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	for (size_t i = 0; i < policy->n_shares; i++) {
		struct placed placed = { .share = &policy->shares[i] };

		if (!placed.share->target)
			continue;
		if (!(placed.target = place_of(plan, placed.share)))
			return cordon_fail_errno(err, -ENOMEM, "plan");
		if (cordon_path_within(plan->at, placed.target) == around)
			ordered[n++] = placed;
	}
	qsort(ordered, n, sizeof(*ordered), by_length);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = check_target(plan, ordered[i].share, ordered[i].target, err);
		if (r == 0)
			r = show(plan, spec, ordered[i].share, ordered[i].target, err);
	}
	return r;
}
