/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans the lower tier, which serves machines without namespaces (a locked-down container) and only on request.
 * Landlock and seccomp enforce folder scopes on the host's own tree. Nothing can be mounted, so what is protected by
 * default inside a writable folder is not protected, and the agent can see other processes; the result, stderr and the
 * audit say so. What somebody asked for by name and Landlock can't hold is refused.
 */
#include "base/path.h"
#include "base/setting.h"
#include "sandbox/plan/plan.h"

static int rule(struct cordon_plan *plan, const char *path, cordon_right right, struct cordon_error *err)
{
	struct cordon_step *step = cordon_plan_step(plan, CORDON_STEP_RULE, path);

	if (!step)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->right = right;
	return 0;
}

/* Adds a rule for a path of the system that may be a link, or may be missing. */
static int system_rule(struct cordon_plan *plan, const char *path, cordon_right right, struct cordon_error *err)
{
	struct cordon_root slash = { .fd = -1, .path = "/" };
	struct cordon_resolved found;
	char host[CORDON_PATH_MAX];

	cordon_resolve(&slash, path, &found);
	if (found.place != CORDON_PLACE_INSIDE || !found.exists ||
	    cordon_path_join("/", found.path, host, sizeof(host)) < 0)
		return 0;
	return rule(plan, host, right, err);
}

static int boundary(void *data, const char *path, cordon_access access, cordon_access outer, struct cordon_error *err)
{
	struct cordon_plan *plan = data;
	char host[CORDON_PATH_MAX];

	if (access == CORDON_ACCESS_NONE && outer == CORDON_ACCESS_NONE)
		return 0;
	if (access < outer) {
		cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
			    "%s has fewer rights than what it lies in, which Landlock alone can't hold", path);
		cordon_error_hint(err,
				  "allow user namespaces (see 'cordon doctor'), or grant the folders beside it instead");
		return -EOPNOTSUPP;
	}
	if (cordon_path_join(plan->root, path, host, sizeof(host)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	return rule(plan, host, access == CORDON_ACCESS_READ ? CORDON_RIGHT_READ : CORDON_RIGHT_WRITE, err);
}

/* Refuses a run of which somebody asked that a path in a writable folder be protected. */
static int refuse_protected(const struct cordon_plan *plan, const struct cordon_policy *policy, struct cordon_error *err)
{
	char host[CORDON_PATH_MAX];

	for (size_t i = 0; i < policy->n_protected; i++) {
		const struct cordon_protected *p = &policy->protected_paths[i];

		if (p->by_default || cordon_path_join(plan->root, p->path, host, sizeof(host)) < 0)
			continue;
		for (size_t j = 0; j < plan->n_steps; j++) {
			if (plan->steps[j].right != CORDON_RIGHT_WRITE || !cordon_path_within(host, plan->steps[j].path))
				continue;
			cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
				    "protected path %s lies in a writable folder, where Landlock alone can't hold it",
				    p->path);
			cordon_error_hint(
				err, "allow user namespaces (see 'cordon doctor'), or grant only the folders beside it");
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

/* The git directory of a worktree is not asked for; it does not come along here. */
static bool asks_for_shares(const struct cordon_policy *policy)
{
	for (size_t i = 0; i < policy->n_shares; i++)
		if (!policy->shares[i].git)
			return true;
	return false;
}

/* The agent has the caller's own terminal, and programs open /dev/stdout. It gets no other terminal of the user's, in which
 * it could read what is typed. */
static int terminal_rules(struct cordon_plan *plan, struct cordon_error *err)
{
	char name[CORDON_PATH_MAX];
	int r = 0;

	for (int fd = 0; r == 0 && fd < 3; fd++)
		if (ttyname_r(fd, name, sizeof(name)) == 0)
			r = system_rule(plan, name, CORDON_RIGHT_DEVICE, err);
	return r;
}

int cordon_plan_lower_tier(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	static const char *const readable[] = { "/usr",
						"/bin",
						"/sbin",
						"/lib",
						"/lib32",
						"/lib64",
						"/etc/alternatives",
						"/etc/ld.so.cache",
						"/etc/ld.so.conf",
						"/etc/ld.so.conf.d",
						"/etc/passwd",
						"/etc/group",
						"/etc/hosts",
						"/etc/resolv.conf",
						"/etc/nsswitch.conf",
						"/etc/localtime",
						"/etc/ssl/certs",
						"/proc" };
	static const char *const devices[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					       "/dev/random", "/dev/urandom", "/dev/tty" };
	const struct cordon_policy *part;
	int r = 0;

	if (!plan->layers.landlock_abi)
		return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
				   "without namespaces and without Landlock nothing holds the folders of a run");
	if (plan->mode == CORDON_MODE_PERMISSIVE)
		return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
				   "permissive mode needs namespaces, which this machine refuses");
	if (!cordon_streq(plan->at, plan->root) || plan->own_network || asks_for_shares(spec->run->policy))
		return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
				   "%s, %s, %s and %s need namespaces, which this machine refuses",
				   cordon_setting_name(CORDON_SETTING_AT), cordon_setting_name(CORDON_SETTING_HOME),
				   cordon_setting_name(CORDON_SETTING_SHARE),
				   cordon_setting_name(CORDON_SETTING_NET_NONE));
	for (size_t p = 0; (part = cordon_policy_part(spec->run->policy, p)); p++)
		for (size_t i = 0; i < part->n_grants; i++)
			for (size_t j = 0; j < cordon_pattern_alternatives(part->grants[i].pattern); j++)
				if (!cordon_pattern_literal(part->grants[i].pattern, j))
					return cordon_fail(
						err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
						"pattern %s judges files by name, which needs namespaces and FUSE",
						cordon_pattern_text(part->grants[i].pattern));
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(readable); i++)
		r = system_rule(plan, readable[i], CORDON_RIGHT_READ, err);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(devices); i++)
		r = system_rule(plan, devices[i], CORDON_RIGHT_DEVICE, err);
	if (r == 0)
		r = terminal_rules(plan, err);
	if (r == 0)
		r = rule(plan, spec->tier_tmp, CORDON_RIGHT_WRITE, err);
	if (r == 0)
		r = cordon_plan_boundaries(plan, spec->run->policy, boundary, plan, err);
	if (r == 0)
		r = refuse_protected(plan, spec->run->policy, err);
	if (r == 0 &&
	    cordon_plan_note(plan, "best effort: without namespaces; Landlock and seccomp alone hold the folders, "
				   "what is protected by default inside them is not protected") < 0)
		r = cordon_fail_errno(err, -ENOMEM, "plan");
	return r;
}
