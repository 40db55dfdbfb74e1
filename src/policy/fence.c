/* SPDX-License-Identifier: Apache-2.0 */
/* Puts one policy inside another, its fence, so that the strictest answer counts. */
#include <fcntl.h>
#include <sys/stat.h>

#include "policy/policy.h"

int cordon_policy_new_like(const struct cordon_policy *policy, struct cordon_policy **ret_policy,
			   struct cordon_error *err)
{
	struct cordon_policy *like = calloc(1, sizeof(*like));

	if (!like)
		return cordon_fail_errno(err, -ENOMEM, "cannot make a policy");
	like->root = policy->root;
	/* Duplicate the descriptor, so that it is the same directory even if the path of the root leads to another
	 * by now. */
	like->root.fd = fcntl(policy->root.fd, F_DUPFD_CLOEXEC, 3);
	if (like->root.fd < 0) {
		int r = cordon_fail_errno(err, -errno, "cannot take the root directory");

		free(like);
		return r;
	}
	*ret_policy = like;
	return 0;
}

static bool same_root(const struct cordon_policy *a, const struct cordon_policy *b)
{
	struct stat x, y;

	return fstat(a->root.fd, &x) == 0 && fstat(b->root.fd, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Moves denials and protected paths from the fence to the policy, where all code looks for them: they hold whoever
 * asks. */
static int move_rules(struct cordon_policy *policy, struct cordon_policy *fence, struct cordon_error *err)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < fence->n_grants; i++)
		if (fence->grants[i].access == CORDON_ACCESS_NONE)
			r = cordon_policy_add_grant(policy, cordon_pattern_text(fence->grants[i].pattern),
						    CORDON_ACCESS_NONE, fence->grants[i].where, err);
	for (size_t i = 0; r == 0 && i < fence->n_protected; i++)
		r = cordon_policy_add_protected(policy, fence->protected_paths[i].path, fence->protected_paths[i].where,
						fence->protected_paths[i].by_default, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < fence->n_grants; i++) {
		struct cordon_grant grant = fence->grants[i];

		if (grant.access == CORDON_ACCESS_NONE)
			continue;
		/* Swap them, so that the denials end up behind the others and can be cut off. */
		fence->grants[i] = fence->grants[kept];
		fence->grants[kept++] = grant;
	}
	cordon_policy_truncate(fence, kept, 0);
	return 0;
}

static int add_one(struct cordon_policy *policy, struct cordon_policy *fence, struct cordon_error *err)
{
	struct cordon_policy **fences;

	if (policy->n_fences == CORDON_FENCES_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a policy has more than %d fences",
				   CORDON_FENCES_MAX);
	fences = reallocarray(policy->fences, policy->n_fences + 1, sizeof(struct cordon_policy *));
	if (!fences)
		return cordon_fail_errno(err, -ENOMEM, "cannot add a fence");
	policy->fences = fences;
	fences[policy->n_fences++] = fence;
	return 0;
}

/* The fences of a fence become fences beside it. */
static int flatten(struct cordon_policy *policy, struct cordon_policy *fence, struct cordon_error *err)
{
	int r = 0;

	while (r == 0 && fence->n_fences) {
		r = add_one(policy, fence->fences[fence->n_fences - 1], err);
		if (r == 0)
			fence->n_fences--;
	}
	return r;
}

static int narrow_net(const struct cordon_policy *policy, const struct cordon_policy *fence,
		      struct cordon_net_list *ret_net, struct cordon_error *err)
{
	int r = cordon_net_list_copy(ret_net, &policy->net);

	return r < 0 ? cordon_fail_errno(err, r, "cannot add a fence")
		     : cordon_net_list_narrow(ret_net, &fence->net, err);
}

int cordon_policy_fence(struct cordon_policy *policy, const char *name, struct cordon_policy *fence,
			struct cordon_error *err)
{
	size_t n_grants = policy->n_grants, n_protected = policy->n_protected;
	bool strict = fence->mode == CORDON_MODE_STRICT || fence->strict_fence;
	struct cordon_net_list net = { 0 }, outer = { 0 };
	autofree char *outer_name = NULL;
	int r = 0;

	if (!same_root(policy, fence))
		r = cordon_fail(err, -EXDEV, CORDON_KIND_USAGE, "a fence has another root than the policy: %s",
				fence->root.path);
	if (r == 0 && !fence->name && !(fence->name = strdup(name)))
		r = cordon_fail_errno(err, -ENOMEM, "cannot add a fence");
	if (r == 0)
		r = move_rules(policy, fence, err);
	if (r == 0)
		r = narrow_net(policy, fence, &net, err);
	if (r == 0 && fence->net.listed &&
	    (!(outer_name = strdup(fence->name)) || cordon_net_list_copy(&outer, &fence->net) < 0))
		r = cordon_fail_errno(err, -ENOMEM, "cannot add a fence");
	if (r == 0)
		r = flatten(policy, fence, err);
	if (r == 0) {
		policy->strict_fence |= strict;
		policy->no_editor_temps |= fence->no_editor_temps;
		/* Without a scope the fence allows everything, so it is not needed. */
		if (!cordon_policy_has_scope(fence) && !fence->read_only)
			fence = cordon_policy_free(fence);
		else
			r = add_one(policy, fence, err);
	}
	if (r < 0) {
		cordon_policy_truncate(policy, n_grants, n_protected);
		cordon_policy_free(fence);
		cordon_net_list_done(&net);
		cordon_net_list_done(&outer);
		return r;
	}
	cordon_net_list_done(&policy->net);
	policy->net = net;
	if (outer.listed) {
		cordon_net_list_done(&policy->fence_net);
		policy->fence_net = outer;
		free(policy->fence_net_name);
		policy->fence_net_name = cordon_steal_ptr(&outer_name);
	}
	cordon_policy_set_mode(policy, policy->mode);
	return 0;
}
