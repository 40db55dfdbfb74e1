/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans a copy-on-write view: an overlay whose lower layer is the workspace and whose upper layer is a directory of the
 * caller's. All other steps stay as they are; those that mount a part of the workspace take it from the view.
 */
#include "base/arena.h"
#include "base/overlay.h"
#include "base/path.h"
#include "base/setting.h"
#include "sandbox/plan/plan.h"

static int judge(const struct cordon_plan *plan, const struct cordon_run_spec *run, struct cordon_error *err)
{
	if (plan->tier != CORDON_TIER_FULL)
		return cordon_fail(err, -ENOTSUP, CORDON_KIND_KERNEL_UNSUPPORTED, "a view needs a full sandbox: %s",
				   plan->tier_why);
	if (run->view[0] != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "the directory of a view must be absolute: %s",
				   run->view);
	if (cordon_path_within(run->view, plan->root)) {
		cordon_fail(err, -ELOOP, CORDON_KIND_POLICY_DENIED,
			    "a view of %s can't keep its changes in %s, which lies in it", plan->root, run->view);
		cordon_error_hint(err, "set CORDON_HOME to a directory outside the root, or choose a smaller %s",
				  cordon_setting_name(CORDON_SETTING_ROOT));
		return -ELOOP;
	}
	if (run->n_view_layers >= CORDON_OVERLAY_LOWER_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a view has at most %d layers",
				   CORDON_OVERLAY_LOWER_MAX - 1);
	return 0;
}

int cordon_plan_view(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	const struct cordon_run_spec *run = spec->run;
	struct cordon_step *step;
	int r;

	if (!run->view)
		return 0;
	r = judge(plan, run, err);
	if (r < 0)
		return r;
	plan->view = cordon_arena_strdup(plan->arena, run->view);
	plan->view_layers = cordon_arena_alloc(plan->arena, (run->n_view_layers + 1) * sizeof(*plan->view_layers));
	if (!plan->view || !plan->view_layers)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	for (; plan->n_view_layers < run->n_view_layers; plan->n_view_layers++) {
		char **layer = &plan->view_layers[plan->n_view_layers];

		if (!(*layer = cordon_arena_strdup(plan->arena, run->view_layers[plan->n_view_layers])))
			return cordon_fail_errno(err, -ENOMEM, "plan");
	}
	step = cordon_plan_step(plan, CORDON_STEP_VIEW, plan->at);
	if (!step)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->source = plan->root;
	step->text = plan->view;
	clock_gettime(CLOCK_REALTIME, &plan->view_since);
	return 0;
}
