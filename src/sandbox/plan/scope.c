/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns grants into mounts. Rights change only at paths that grants name literally, so this file looks at each of those
 * once, parents first. It walks no tree.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/setting.h"
#include "sandbox/plan/plan.h"

#define SKELETON_MODE 0555

struct boundary {
	const char *path; /* relative to the root */
	cordon_access access;
};

struct scope {
	struct cordon_plan *plan;
	const struct cordon_policy *policy;
	struct boundary *items;
	size_t n;
};

/* Orders paths by component (a/b before a-b), so that what lies below a parent follows it directly. */
static int by_component(const void *a, const void *b)
{
	const unsigned char *x = (const unsigned char *)((const struct boundary *)a)->path;
	const unsigned char *y = (const unsigned char *)((const struct boundary *)b)->path;

	while (*x && *x == *y)
		x++, y++;
	return (*x == '/' ? 1 : *x ? *x + 1 : 0) - (*y == '/' ? 1 : *y ? *y + 1 : 0);
}

/* The first grant of one part of a policy that must judge names. In permissive mode only a grant that takes rights away
 * counts. */
static const struct cordon_grant *part_name_pattern(const struct cordon_policy *policy)
{
	for (size_t i = 0; i < policy->n_grants; i++) {
		const struct cordon_grant *grant = &policy->grants[i];

		if (policy->mode == CORDON_MODE_PERMISSIVE && grant->access == CORDON_ACCESS_WRITE && !policy->read_only)
			continue; /* it gives nothing more: permissive mode allows writes with a warning anyway */
		for (size_t j = 0; j < cordon_pattern_alternatives(grant->pattern); j++)
			if (!cordon_pattern_literal(grant->pattern, j))
				return grant;
	}
	return NULL;
}

static const struct cordon_grant *name_pattern(const struct cordon_policy *policy)
{
	const struct cordon_grant *found = NULL;
	const struct cordon_policy *part;

	for (size_t i = 0; !found && (part = cordon_policy_part(policy, i)); i++)
		found = part_name_pattern(part);
	return found;
}

static int choose_lens(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	const struct cordon_grant *grant = name_pattern(spec->run->policy);

	plan->lens = spec->run->lens == CORDON_LENS_ALWAYS || (grant && spec->run->lens == CORDON_LENS_AUTO);
	if (plan->lens && access("/dev/fuse", R_OK | W_OK) < 0) {
		int r = -errno;

		cordon_fail(err, r, CORDON_KIND_KERNEL_UNSUPPORTED,
			    "%s%s needs the lens, but /dev/fuse can't be used: %s",
			    grant ? "pattern " : cordon_setting_name(CORDON_SETTING_LENS_ALWAYS),
			    grant ? cordon_pattern_text(grant->pattern) : "", strerror(-r));
		cordon_error_hint(
			err,
			"give this user access to /dev/fuse (see 'cordon doctor'), or name folders and single files");
		return r;
	}
	if (grant && !plan->lens) {
		cordon_fail(err, -ENOTSUP, CORDON_KIND_POLICY_DENIED,
			    "pattern %s judges files by name, which needs the lens",
			    cordon_pattern_text(grant->pattern));
		cordon_error_hint(err, "leave out %s, or name folders and single files",
				  cordon_setting_name(CORDON_SETTING_LENS_NEVER));
		return -ENOTSUP;
	}
	return 0;
}

/* Plans the whole workspace as one mount, in which cordon-lens asks the policy about every name. */
static int plan_view(struct cordon_plan *plan, struct cordon_error *err)
{
	struct cordon_step *step;
	char host[CORDON_PATH_MAX];
	int r = cordon_plan_parents(plan, plan->at, host, err);

	if (r < 0)
		return r;
	if (*host && !cordon_streq(host, plan->root))
		return cordon_fail(err, -EBUSY, CORDON_KIND_POLICY_DENIED,
				   "%s lies in a part of the system that is shown as it is", plan->at);
	if (!*host && !cordon_plan_step(plan, CORDON_STEP_DIR, plan->at))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step = cordon_plan_step(plan, CORDON_STEP_LENS, plan->at);
	if (!step)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->source = plan->root;
	step->right = CORDON_RIGHT_WRITE;
	return 0;
}

static void gather_part(struct scope *scope, const struct cordon_policy *part)
{
	for (size_t i = 0; i < part->n_grants; i++) {
		for (size_t j = 0; j < cordon_pattern_alternatives(part->grants[i].pattern); j++) {
			const char *literal = cordon_pattern_literal(part->grants[i].pattern, j);

			/* Patterns without a literal path get here only in permissive mode, which reports and does not
			 * enforce them. */
			if (literal)
				scope->items[scope->n++].path = literal;
		}
	}
}

/* Gathers the literal paths of the policy and of all its fences: rights can change only at these. */
static int gather(struct scope *scope, struct cordon_error *err)
{
	const struct cordon_policy *policy = scope->policy;
	const struct cordon_policy *part;
	size_t cap = 1;

	for (size_t p = 0; (part = cordon_policy_part(policy, p)); p++)
		for (size_t i = 0; i < part->n_grants; i++)
			cap += cordon_pattern_alternatives(part->grants[i].pattern);
	scope->items = cordon_arena_alloc(scope->plan->arena, cap * sizeof(*scope->items));
	if (!scope->items)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	scope->items[scope->n++].path = "";
	for (size_t p = 0; (part = cordon_policy_part(policy, p)); p++)
		gather_part(scope, part);
	qsort(scope->items, scope->n, sizeof(*scope->items), by_component);
	/* The access includes what a permissive run only warns of: the agent must be able to reach it. */
	for (size_t i = 0; i < scope->n; i++)
		scope->items[i].access = cordon_policy_access(policy, scope->items[i].path);
	return 0;
}

/* The rights around item i, which are those of the nearest boundary above it. */
static cordon_access around(const struct scope *scope, size_t i)
{
	for (size_t j = i; j-- > 0;)
		if (cordon_path_within(scope->items[i].path, scope->items[j].path) &&
		    !cordon_streq(scope->items[i].path, scope->items[j].path))
			return scope->items[j].access;
	return CORDON_ACCESS_NONE;
}

static int inside_path(const struct scope *scope, const char *path, char ret[static CORDON_PATH_MAX])
{
	return cordon_path_join(scope->plan->at, path, ret, CORDON_PATH_MAX);
}

/* Plans unreadable placeholders that show only that the siblings of a granted folder exist. Of a directory with more
 * than CORDON_PLACEHOLDERS_MAX entries it shows the first ones; the others do not exist inside. */
static int plan_placeholders(struct scope *scope, const char *dir, struct cordon_error *err)
{
	int fd = cordon_open_beneath(scope->policy->root.fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	size_t shown = 0;
	int r = 0;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return 0; /* we can't list it either: there is nothing to show */
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(stream));) {
		char rel[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];
		struct cordon_step *step;

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (++shown > CORDON_PLACEHOLDERS_MAX) {
			r = cordon_plan_note(scope->plan,
					     "%s/%s has more than %d entries; those beyond are absent, not denied",
					     scope->plan->at, dir, CORDON_PLACEHOLDERS_MAX);
			break;
		}
		if (cordon_path_join(dir, entry->d_name, rel, sizeof(rel)) < 0 || inside_path(scope, rel, inside) < 0)
			continue;
		if (cordon_policy_leads(scope->policy, rel))
			continue; /* a granted folder, or a directory that leads to one */
		step = cordon_plan_step(scope->plan, entry->d_type == DT_DIR ? CORDON_STEP_DIR : CORDON_STEP_FILE,
					inside);
		if (!step)
			r = -ENOMEM;
		else
			step->mode = 0;
	}
	closedir(stream);
	return r < 0 ? cordon_fail_errno(err, r, "plan") : 0;
}

/* Makes the directories between the skeleton's root and a granted path, with their placeholders. */
static int plan_ancestors(struct scope *scope, const char *path, struct cordon_error *err)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		char part[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];
		struct cordon_step *step;
		bool known = false;
		int r;

		if (cordon_copy(part, sizeof(part), path, (size_t)(slash - path)) < 0 ||
		    inside_path(scope, part, inside) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
		for (size_t i = 0; i < scope->plan->n_steps; i++)
			known |= scope->plan->steps[i].kind == CORDON_STEP_DIR &&
				 cordon_streq(scope->plan->steps[i].path, inside);
		if (known)
			continue;
		if (!(step = cordon_plan_step(scope->plan, CORDON_STEP_DIR, inside)))
			return cordon_fail_errno(err, -ENOMEM, "plan");
		step->mode = SKELETON_MODE;
		r = plan_placeholders(scope, part, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Plans the skeleton: directories of ours that take the place of a root which is not granted. Its mount is writable,
 * and its mode closes it (and Landlock does, unless it lies in a private directory), so that an attempt to make
 * something there fails with "Permission denied", not with "Read-only file system". Nothing in it belongs to the
 * host. */
static int plan_skeleton(struct scope *scope, struct cordon_error *err)
{
	struct cordon_step *step;
	char host[CORDON_PATH_MAX];
	int r = cordon_plan_parents(scope->plan, scope->plan->at, host, err);

	if (r < 0)
		return r;
	if (*host)
		return cordon_fail(err, -EBUSY, CORDON_KIND_POLICY_DENIED,
				   "%s lies in a part of the system that is shown as it is", scope->plan->at);
	if (!(step = cordon_plan_step(scope->plan, CORDON_STEP_DIR, scope->plan->at)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->mode = SKELETON_MODE;
	if (!(step = cordon_plan_step(scope->plan, CORDON_STEP_PRIVATE, scope->plan->at)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->right = CORDON_RIGHT_LIST;
	return plan_placeholders(scope, "", err);
}

/* Adds a boundary where the rights are narrower than around it. */
static int plan_guard(struct scope *scope, const char *path, cordon_access access, cordon_guard_state state,
		      struct cordon_error *err)
{
	cordon_guard_kind kind = access == CORDON_ACCESS_NONE ? CORDON_GUARD_DENIED : CORDON_GUARD_READ_ONLY;

	return cordon_plan_guard(scope->plan, 0, kind, state, path, NULL, err);
}

static int plan_boundary(void *data, const char *path, cordon_access access, cordon_access outer,
			 struct cordon_error *err)
{
	struct scope *scope = data;
	char source[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];
	struct cordon_step *step;
	struct stat st;
	int fd, r;

	if (!*path && access == CORDON_ACCESS_NONE)
		return plan_skeleton(scope, err);
	if (cordon_path_join(scope->plan->root, path, source, sizeof(source)) < 0 ||
	    inside_path(scope, path, inside) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	fd = cordon_open_beneath(scope->policy->root.fd, path, O_PATH | O_CLOEXEC);
	if (fd == -ELOOP) {
		cordon_fail(err, fd, CORDON_KIND_POLICY_DENIED, "grant %s is reached through a symbolic link", path);
		cordon_error_hint(err, "grant the place the link leads to");
		return fd;
	}
	if (fd == -ENOENT || fd == -ENOTDIR) {
		if (outer == CORDON_ACCESS_WRITE)
			return plan_guard(scope, path, access, CORDON_GUARD_ABSENT, err);
		if (access != CORDON_ACCESS_WRITE)
			return 0;
		cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "grant %s does not exist in %s", path,
			    scope->plan->root);
		cordon_error_hint(err, "make it first, or grant its parent");
		return -ENOENT;
	}
	if (fd < 0)
		return cordon_fail_errno(err, fd, "cannot open %s", source);
	r = fstat(fd, &st) < 0 ? -errno : 0;
	close(fd);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot stat %s", source);
	if (outer == CORDON_ACCESS_WRITE && (r = plan_guard(scope, path, access, CORDON_GUARD_PRESENT, err)) < 0)
		return r;
	if (access == CORDON_ACCESS_NONE) {
		if (!(step = cordon_plan_step(scope->plan, CORDON_STEP_MASK, inside)))
			return cordon_fail_errno(err, -ENOMEM, "plan");
		step->flags = S_ISDIR(st.st_mode) ? CORDON_STEP_IS_DIR : 0;
		return 0;
	}
	if (outer == CORDON_ACCESS_NONE && *path && (r = plan_ancestors(scope, path, err)) < 0)
		return r;
	return cordon_plan_bind(scope->plan, source, inside, access == CORDON_ACCESS_READ ? CORDON_STEP_READ_ONLY : 0,
				access == CORDON_ACCESS_READ ? CORDON_RIGHT_READ : CORDON_RIGHT_WRITE, err);
}

int cordon_plan_boundaries(struct cordon_plan *plan, const struct cordon_policy *policy, cordon_boundary_fn fn,
			   void *data, struct cordon_error *err)
{
	struct scope scope = { .plan = plan, .policy = policy };
	int r = gather(&scope, err);

	for (size_t i = 0; r == 0 && i < scope.n; i++) {
		const struct boundary *item = &scope.items[i];
		cordon_access outer = around(&scope, i);

		if (i > 0 && (cordon_streq(item->path, scope.items[i - 1].path) || item->access == outer))
			continue; /* it was named twice, or the rights do not change here */
		r = fn(data, item->path, item->access, outer, err);
	}
	return r;
}

int cordon_plan_scope(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	struct scope scope = { .plan = plan, .policy = spec->run->policy };
	int r = choose_lens(plan, spec, err);

	if (r < 0)
		return r;
	return plan->lens ? plan_view(plan, err)
			  : cordon_plan_boundaries(plan, spec->run->policy, plan_boundary, &scope, err);
}
