/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns protected paths into read-only mounts, pins and boundaries.
 *
 * A read-only mount protects the inode that has the name today. The name itself is protected too. Every directory
 * between the root of its area and the path is pinned, so that nobody can rename it away and build it again. A symbolic
 * link on the way is pinned, and its target is protected as well. And the agent can't make the name of a boundary, from
 * its first missing component on (sandbox/plan/hold.c).
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/path.h"
#include "policy/shares.h"
#include "protect/hardlinks.h"
#include "sandbox/plan/plan.h"

struct protect {
	struct cordon_plan *plan;
	size_t area;
	const struct cordon_policy *policy; /* of the area */
	cordon_access root_access; /* the rights at the root of the area, in which most missing names would appear */
	const char *where;	   /* of the boundary that was added last; part of the plan */
	char dir[NAME_MAX + 1];	   /* the directory in the root that was looked at last, or "" */
	cordon_access dir_access;  /* the rights there */
};

static const struct cordon_area *area_of(const struct protect *p)
{
	return &p->plan->areas[p->area];
}

static bool has_step(const struct cordon_plan *plan, cordon_step_kind kind, unsigned int flag, const char *path)
{
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].kind == kind && (plan->steps[i].flags & flag) == flag &&
		    cordon_streq(plan->steps[i].path, path))
			return true;
	return false;
}

static cordon_access access_of(const struct protect *p, const char *path)
{
	return cordon_policy_access(p->policy, path);
}

/* Pins one name, so that nobody inside can rename or remove it. `path` is relative to the area, whose own name nobody
 * inside can change. */
static int pin(struct protect *p, const char *path, struct cordon_error *err)
{
	CORDON_UNCLEARED char inside[CORDON_PATH_MAX];
	struct cordon_step *step;
	struct stat st;

	if (p->area == 0 && p->plan->lens)
		return 0; /* the lens refuses to rename or remove what leads to a protected name */
	if (cordon_path_join(area_of(p)->at, path, inside, sizeof(inside)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	if (has_step(p->plan, CORDON_STEP_PIN, 0, inside))
		return 0;
	/* The start compares the identity of the entry itself. The caller has looked at its directories and found no
	 * links. */
	if (fstatat(p->policy->root.fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat %s", path);
	step = cordon_plan_step(p->plan, CORDON_STEP_PIN, inside);
	if (!step || !(step->source = cordon_arena_strdup(p->plan->arena, path)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->flags = S_ISDIR(st.st_mode) ? CORDON_STEP_IS_DIR : 0;
	step->area = p->area;
	step->dev = st.st_dev;
	step->ino = st.st_ino;
	return 0;
}

/* Pins every directory between the root of the area and `path`, and with `itself` also the entry `path`. */
static int pin_ancestors(struct protect *p, const char *path, bool itself, struct cordon_error *err)
{
	CORDON_UNCLEARED char part[CORDON_PATH_MAX];
	int r = 0;

	for (const char *slash = strchr(path, '/'); r == 0 && slash; slash = strchr(slash + 1, '/')) {
		if (cordon_copy(part, sizeof(part), path, (size_t)(slash - path)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
		r = pin(p, part, err);
	}
	return r == 0 && itself && *path ? pin(p, path, err) : r;
}

/* The length of the directory part of a path. */
static size_t dir_len(const char *path)
{
	const char *base = cordon_path_base(path);

	return base == path ? 0 : (size_t)(base - path) - 1;
}

/* Adds a protected boundary. The first `in` bytes of `path` are the deepest of its directories that exists. */
static int add_guard(struct protect *p, const struct cordon_protected *asked, const char *path, size_t in,
		     cordon_guard_state state, struct cordon_guard **ret_guard, struct cordon_error *err)
{
	struct cordon_guard *guard;
	int r = cordon_plan_guard_in(p->plan, p->area, CORDON_GUARD_PROTECTED, state, path, path, in, &guard, err);

	if (r < 0)
		return r;
	guard->by_default = asked->by_default;
	/* Most have it in common. */
	if (asked->where && (!p->where || !cordon_streq(p->where, asked->where)))
		p->where = cordon_arena_strdup(p->plan->arena, asked->where);
	if (asked->where && !p->where)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	guard->where = asked->where ? p->where : NULL;
	if (ret_guard)
		*ret_guard = guard;
	return 0;
}

/* The name `path` is missing below the existing directory `dir`. */
static int protect_absent(struct protect *p, const struct cordon_protected *asked, const char *path, const char *dir,
			  struct cordon_error *err)
{
	cordon_access access = !*dir ? p->root_access : dir == p->dir ? p->dir_access : access_of(p, dir);
	int r;

	if ((p->area == 0 && p->plan->lens) || access != CORDON_ACCESS_WRITE)
		return 0; /* the lens judges the name, or the agent can't make anything there */
	r = add_guard(p, asked, path, strlen(dir), CORDON_GUARD_ABSENT, NULL, err);
	return r == 0 && *dir ? pin_ancestors(p, dir, true, err) : r;
}

static int refuse(const struct cordon_protected *asked, const char *why, struct cordon_error *err)
{
	cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED, "protected path %s %s", asked->path, why);
	if (asked->where)
		cordon_error_where(err, asked->where, 0, 0);
	return -EINVAL;
}

/* The agent does not see the path. Another name of it, in a directory that the agent may write, would be a way to change
 * it. */
static int protect_unseen(struct protect *p, const char *path, const struct stat *st, struct cordon_error *err)
{
	struct cordon_plan *plan = p->plan;
	struct cordon_second_name *names;
	bool found = S_ISREG(st->st_mode) && st->st_nlink > 1, sockets;
	int r = 0;

	if (p->area == 0 && plan->view)
		return 0; /* a second name is another file in a view */
	if (S_ISDIR(st->st_mode))
		r = cordon_hardlinks_find(p->policy->root.fd, path, &p->policy->kept, &found, &sockets, err);
	if (r < 0 || !found)
		return r;
	names = cordon_arena_grow(plan->arena, plan->second_names, plan->n_second_names, plan->n_second_names + 1,
				  sizeof(*names));
	if (!names || !(names[plan->n_second_names].path = cordon_arena_strdup(plan->arena, path)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	names[plan->n_second_names++].area = p->area;
	plan->second_names = names;
	return 0;
}

/* Whether a share is shown at a path of the root or below it. */
static bool holds_share(const struct protect *p, const char *path)
{
	for (size_t i = 0; p->area == 0 && i < p->policy->n_shares; i++)
		if (p->policy->shares[i].in_root && cordon_path_within(p->policy->shares[i].in_root, path))
			return true;
	return false;
}

static int protect_present(struct protect *p, const struct cordon_protected *asked, const char *path,
			   const struct stat *st, struct cordon_error *err)
{
	char source[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];
	unsigned int flags = CORDON_STEP_READ_ONLY | CORDON_STEP_PROTECT;
	struct cordon_guard *guard;
	bool sockets = false;
	int r;

	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return refuse(asked, "is a FIFO, socket or device, which a read-only mount does not hold", err);
	if (access_of(p, path) == CORDON_ACCESS_NONE)
		return protect_unseen(p, path, st, err);
	/* Its mount, which comes again whenever the host replaces the path, would cover the share. */
	if (holds_share(p, path))
		return refuse(asked, "is where a share is shown, or around it; show the share elsewhere", err);
	if (cordon_path_join(area_of(p)->source, path, source, sizeof(source)) < 0 ||
	    cordon_path_join(area_of(p)->at, path, inside, sizeof(inside)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	r = pin_ancestors(p, path, false, err);
	if (r < 0 || has_step(p->plan, CORDON_STEP_BIND, CORDON_STEP_PROTECT, inside))
		return r;
	r = add_guard(p, asked, path, dir_len(path), CORDON_GUARD_PRESENT, &guard, err);
	if (r == 0 && S_ISREG(st->st_mode))
		guard->hard_links = st->st_nlink > 1;
	else if (r == 0 && p->area == 0 && p->plan->view)
		sockets = true; /* a second name is another file in a view; where sockets are looked for, there may be some */
	else if (r == 0)
		r = cordon_hardlinks_find(p->policy->root.fd, path, &p->policy->kept, &guard->hard_links, &sockets, err);
	if (r < 0 || (p->area == 0 && p->plan->lens))
		return r;
	/* It needs no Landlock rule of its own: the agent may at least read the directory around it, and the mount is
	 * read-only. */
	return cordon_plan_bind(p->plan, source, inside, flags | (sockets ? 0 : CORDON_STEP_NO_SOCKETS),
				CORDON_RIGHT_NONE, err);
}

static int protect_path(struct protect *p, const struct cordon_protected *asked, const char *path, unsigned int hops,
			struct cordon_error *err);

/* When a path of the built-in list is a link into a writable share, its target is protected in that share. */
static int protect_in_share(const struct protect *p, const char *host, struct cordon_error *err)
{
	const char *rest = "";
	const struct cordon_policy_share *share = p->area == 0 && host[0] == '/'
							  ? cordon_share_of(p->policy, host, &rest)
							  : NULL;

	if (!share || share->read_only || !share->policy || !*rest)
		return 0;
	return cordon_policy_add_protected(share->policy, rest, "what a protected link leads to", true, err);
}

static int protect_outside_target(const struct protect *p, const struct cordon_protected *asked,
				  const struct cordon_resolved *found, struct cordon_error *err)
{
	cordon_place place = found->place;

	/* Outside the root the agent sees the target of a link only in a share. So for a path of the built-in list,
	 * which the user did not ask for, it is enough to pin the link. */
	if (asked->by_default)
		return place == CORDON_PLACE_OUTSIDE ? protect_in_share(p, found->path, err) : 0;
	if (place == CORDON_PLACE_INSIDE)
		return refuse(asked, "is a symbolic link to the workspace or a directory above itself", err);
	if (place == CORDON_PLACE_OUTSIDE)
		return refuse(asked, "is a symbolic link that leads out of the workspace", err);
	return refuse(asked, "is a loop of symbolic links", err);
}

/*
 * Computes where one link leads, relative to the root and without following the next link, so that each link of a chain
 * is pinned. `dir` is the real directory of the link. False when the text alone does not say where it leads: an
 * absolute target, or a ".." behind a name that may be a link itself.
 */
static bool one_hop(const char *dir, const char *target, const char *rest, char ret[static CORDON_PATH_MAX])
{
	char at[CORDON_PATH_MAX], joined[CORDON_PATH_MAX];

	if (target[0] == '/' || cordon_copy(at, sizeof(at), dir, strlen(dir)) < 0)
		return false;
	while (strncmp(target, "./", 2) == 0 || strncmp(target, "../", 3) == 0) {
		if (target[1] == '.') {
			char *slash = strrchr(at, '/');

			if (!*at)
				return false; /* leaves the root */
			*(slash ? slash : at) = '\0';
		}
		target += target[1] == '.' ? 3 : 2;
	}
	return cordon_path_join(at, target, joined, sizeof(joined)) == 0 &&
	       cordon_path_join(joined, rest, at, sizeof(at)) == 0 && cordon_path_clean(at, ret, CORDON_PATH_MAX) == 0;
}

/* `link` is a symbolic link in the real directory `dir`; `rest` is what follows it in the protected path. */
static int protect_link(struct protect *p, const struct cordon_protected *asked, const char *dir, const char *link,
			const char *rest, unsigned int hops, struct cordon_error *err)
{
	struct cordon_resolved found;
	char through[CORDON_PATH_MAX], target[CORDON_PATH_MAX];
	ssize_t n;
	int r = pin_ancestors(p, link, true, err);

	if (r < 0)
		return r;
	if (cordon_path_join(link, rest, through, sizeof(through)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", asked->path);
	r = add_guard(p, asked, link, dir_len(link), CORDON_GUARD_LINK, NULL, err);
	if (r < 0)
		return r;
	cordon_resolve(&p->policy->root, through, &found);
	if (found.place != CORDON_PLACE_INSIDE || !*found.path || cordon_path_within(link, found.path))
		return protect_outside_target(p, asked, &found, err);
	if (hops >= CORDON_LINKS_MAX)
		return refuse(asked, "leads through too many symbolic links", err);
	n = readlinkat(p->policy->root.fd, link, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	if (n <= 0 || !one_hop(dir, target, rest, through))
		memcpy(through, found.path, sizeof(through));
	return protect_path(p, asked, through, hops + 1, err);
}

/* Looks at `path` component by component; follows no links. */
static int protect_path(struct protect *p, const struct cordon_protected *asked, const char *path, unsigned int hops,
			struct cordon_error *err)
{
	CORDON_UNCLEARED char part[CORDON_PATH_MAX], parent[CORDON_PATH_MAX];
	const char *at = path;
	size_t len = 0; /* of part */

	part[0] = '\0';
	for (;;) {
		size_t n = strcspn(at, "/");
		bool last = at[n] == '\0';
		char name[NAME_MAX + 1];
		struct stat st;

		if (cordon_copy(name, sizeof(name), at, n) < 0)
			return refuse(asked, "holds a name that is too long", err);
		memcpy(parent, part, len + 1);
		if (cordon_path_join(parent, name, part, sizeof(part)) < 0)
			return refuse(asked, "is too long", err);
		if (fstatat(p->policy->root.fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno != ENOENT && errno != ENOTDIR)
				return cordon_fail_errno(err, -errno, "cannot look at protected path %s", asked->path);
			return protect_absent(p, asked, path, parent, err);
		}
		if (S_ISLNK(st.st_mode))
			return protect_link(p, asked, parent, part, last ? "" : at + n + 1, hops, err);
		/* There is a file where a directory is expected. The name can only appear when this file is replaced,
		 * so we protect the file. */
		if (last || !S_ISDIR(st.st_mode))
			return protect_present(p, asked, part, &st, err);
		at += n + 1;
		len = strlen(part);
	}
}

/* Denies our records, and protects them so that the lens keeps the directories that lead there in their places. */
static int hide_records_from_lens(struct protect *p, const char *path, struct cordon_error *err)
{
	struct cordon_policy *policy = (struct cordon_policy *)(uintptr_t)p->policy;
	autofree char *pattern = NULL;
	int r;

	while (*path == '/')
		path++;
	pattern = cordon_pattern_quote(path);
	if (!pattern)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	r = cordon_policy_add_grant(policy, pattern, CORDON_ACCESS_NONE, "cordon's own records", err);
	return r < 0 ? r : cordon_policy_add_protected(policy, path, "cordon's own records", true, err);
}

/* Protects the symbolic links in the path of $CORDON_HOME that lie in the workspace: an agent that could change one
 * would choose the records that the next run uses. */
static int protect_links_to_records(struct protect *p, const char *asked, struct cordon_error *err)
{
	const struct cordon_root slash = { .fd = -1, .path = "/" };
	struct cordon_policy *policy = (struct cordon_policy *)(uintptr_t)p->policy;
	int r = 0;

	for (const char *end = strchr(asked + 1, '/'); r == 0 && end; end = strchr(end + 1, '/')) {
		char part[CORDON_PATH_MAX], host[CORDON_PATH_MAX];
		struct cordon_resolved found;
		const char *path;
		struct stat st;
		char *name;

		if (cordon_copy(part, sizeof(part), asked, (size_t)(end - asked)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", asked);
		if (lstat(part, &st) < 0 || !S_ISLNK(st.st_mode))
			continue;
		name = strrchr(part, '/');
		*name++ = '\0';
		cordon_resolve(&slash, *part ? part : "/", &found);
		if (cordon_path_join("/", found.path, host, sizeof(host)) < 0 ||
		    cordon_path_join(host, name, host, sizeof(host)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", asked);
		if (!cordon_path_within(host, p->plan->root))
			continue;
		path = host + strlen(p->plan->root);
		path += strspn(path, "/");
		if (*path)
			r = cordon_policy_add_protected(policy, path, "the way to cordon's own records", true, err);
	}
	return r;
}

/* Hides our own records, also when the root is the home directory that contains them. */
static int hide_records(struct protect *p, const char *home, struct cordon_error *err)
{
	const char *root = p->plan->root;
	char state[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];
	struct cordon_step *step;
	const char *path;
	int r;

	if (!home || cordon_path_join(home, "state", state, sizeof(state)) < 0)
		return 0;
	if (cordon_path_within(root, state) || cordon_streq(root, home))
		return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
				   "%s can't be a workspace: it holds cordon's own records", root);
	if (!cordon_path_within(home, root))
		return 0; /* outside the root the agent sees only shares, and a share of our records is refused */
	path = home + strlen(root);
	path += strspn(path, "/");
	/* A pattern may match names further down, so the lens gets a denial whatever the rights around it are. */
	if (p->plan->lens)
		return hide_records_from_lens(p, path, err);
	for (size_t i = 0; i < p->plan->n_steps; i++) {
		const char *source = p->plan->steps[i].kind == CORDON_STEP_BIND ? p->plan->steps[i].source : "/";

		if (cordon_path_within(source, home) && !cordon_streq(source, home))
			return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
					   "%s can't be granted: it lies in cordon's own records", source);
	}
	if (access_of(p, path) == CORDON_ACCESS_NONE)
		return 0;
	if ((r = cordon_plan_guard(p->plan, 0, CORDON_GUARD_DENIED, CORDON_GUARD_PRESENT, path, NULL, err)) < 0)
		return r;
	if (cordon_path_join(p->plan->at, path, inside, sizeof(inside)) < 0 ||
	    !(step = cordon_plan_step(p->plan, CORDON_STEP_MASK, inside)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->flags = CORDON_STEP_IS_DIR;
	return 0;
}

/* Pins the directories that lead to the boundaries of grants and shares, as we do for protected paths. */
static int pin_boundaries(struct protect *p, struct cordon_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->plan->n_guards; i++) {
		const struct cordon_guard *guard = &p->plan->guards[i];

		if (guard->area != p->area || guard->kind == CORDON_GUARD_PROTECTED)
			continue;
		if (guard->state == CORDON_GUARD_PRESENT) {
			r = pin_ancestors(p, guard->path, false, err);
		} else {
			const char *dir = guard->dir + strlen(area_of(p)->at);

			r = pin_ancestors(p, dir + strspn(dir, "/"), true, err);
		}
	}
	return r;
}

/* Whether the run's own git directory lies over this path: what is protected in the real one is not there. */
static bool is_replaced(const struct cordon_policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_shares; i++)
		if (policy->shares[i].commits && policy->shares[i].in_root &&
		    cordon_path_within(path, policy->shares[i].in_root))
			return true;
	return false;
}

/* Whether the first n bytes of a path, one component, still name a directory. Many names in one directory follow each
 * other, so it is asked once for all of them. */
static bool is_dir(struct protect *p, const char *path, size_t n)
{
	struct stat st;

	if (n && strncmp(p->dir, path, n) == 0 && p->dir[n] == '\0')
		return true;
	if (cordon_copy(p->dir, sizeof(p->dir), path, n) == 0 && n &&
	    fstatat(p->policy->root.fd, p->dir, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
		p->dir_access = access_of(p, p->dir);
		return true;
	}
	p->dir[0] = '\0';
	return n == 0;
}

/* `missing`: the policy found no such name. PID 1 finds one that was made since then, as it finds later ones. */
static int protect_asked(struct protect *p, const struct cordon_protected *asked, struct cordon_error *err)
{
	if (asked->missing && is_dir(p, asked->path, asked->lies_in))
		return protect_absent(p, asked, asked->path, p->dir, err);
	return protect_path(p, asked, asked->path, 0, err);
}

static int protect_area(struct protect *p, struct cordon_error *err)
{
	int r = 0;

	p->root_access = access_of(p, "");
	p->dir[0] = '\0';
	for (size_t i = 0; r == 0 && i < p->policy->n_protected; i++) {
		const struct cordon_protected *asked = &p->policy->protected_paths[i];

		if (!is_replaced(p->policy, asked->path))
			r = protect_asked(p, asked, err);
	}
	if (r == 0)
		r = pin_boundaries(p, err);
	return r;
}

int cordon_plan_protect(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	struct protect p = { .plan = plan, .policy = spec->run->policy };
	int r = hide_records(&p, spec->home_path, err);

	if (r == 0 && spec->home_asked && !cordon_streq(spec->home_asked, spec->home_path))
		r = protect_links_to_records(&p, spec->home_asked, err);
	for (p.area = 0; r == 0 && p.area < plan->n_areas; p.area++) {
		p.policy = plan->areas[p.area].policy;
		r = protect_area(&p, err);
	}
	return r;
}
