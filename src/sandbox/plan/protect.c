/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protected paths become read-only mounts, pins and guarded names.
 *
 * A read-only mount guards an inode where it lies today. The name is held too: every directory between the root and
 * the path is pinned (it can't be renamed away and rebuilt), a link on the way is pinned and its target protected in
 * turn, and a path that is missing is guarded from its first missing component on.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/arena.h"
#include "base/path.h"
#include "sandbox/hardlinks.h"
#include "sandbox/plan.h"

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000
#endif

struct protect {
	struct cordon_plan *plan;
	const struct cordon_policy *policy;
	size_t cap;
	cordon_access root_access; /* of the root itself, in which most of what is missing would be made */
};

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
	CORDON_UNCLEARED struct cordon_decision decision;

	cordon_policy_decide(p->policy, path, CORDON_OP_READ, &decision);
	if (decision.reason == CORDON_REASON_NO_GRANT && p->policy->mode == CORDON_MODE_PERMISSIVE)
		return CORDON_ACCESS_WRITE;
	return decision.access;
}

/* Holds one name in its place; `path` is relative to the pin base, whose own name nobody inside can change. */
static int pin(struct protect *p, const char *path, struct cordon_error *err)
{
	CORDON_UNCLEARED char inside[CORDON_PATH_MAX], host[CORDON_PATH_MAX];
	const char *way = host;
	struct cordon_step *step;
	struct stat st;
	int anchor;

	if (p->plan->lens)
		return 0; /* which refuses to rename or remove what leads to a protected name */
	if (cordon_path_join(p->plan->pin_base_at, path, inside, sizeof(inside)) < 0 ||
	    cordon_path_join(p->plan->pin_base, path, host, sizeof(host)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	if (has_step(p->plan, CORDON_STEP_PIN, 0, inside))
		return 0;
	/* What is compared at the end is the entry itself; the way to it was walked without links by the caller. */
	anchor = cordon_plan_anchor(p->plan, &way);
	if (fstatat(anchor, way, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat %s", host);
	step = cordon_plan_step(p->plan, CORDON_STEP_PIN, inside);
	if (!step || !(step->source = cordon_arena_strdup(p->plan->arena, path)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->flags = S_ISDIR(st.st_mode) ? CORDON_STEP_IS_DIR : 0;
	step->dev = st.st_dev;
	step->ino = st.st_ino;
	return 0;
}

/* Pins every directory between the base and an absolute host path, and what stands there itself when asked to. */
static int pin_host_way(struct protect *p, const char *host, bool itself, struct cordon_error *err)
{
	const char *path = host + strlen(p->plan->pin_base);
	CORDON_UNCLEARED char part[CORDON_PATH_MAX];
	int r = 0;

	while (*path == '/')
		path++;
	for (const char *slash = strchr(path, '/'); r == 0 && slash; slash = strchr(slash + 1, '/')) {
		if (cordon_copy(part, sizeof(part), path, (size_t)(slash - path)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", host);
		r = pin(p, part, err);
	}
	return r == 0 && itself && *path ? pin(p, path, err) : r;
}

/* The same for a path relative to the root. */
static int pin_way(struct protect *p, const char *path, bool itself, struct cordon_error *err)
{
	CORDON_UNCLEARED char host[CORDON_PATH_MAX];

	if (cordon_path_join(p->plan->root, path, host, sizeof(host)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	return pin_host_way(p, host, itself, err);
}

static struct cordon_guard *add_guard(struct protect *p, const struct cordon_protected *asked, const char *path,
				      cordon_guard_state state)
{
	struct cordon_guard *guard;
	CORDON_UNCLEARED char inside[CORDON_PATH_MAX];

	if (p->plan->n_guards == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 64;
		struct cordon_guard *bigger = cordon_plan_alloc(p->plan, cap * sizeof(*bigger));

		if (!bigger)
			return NULL;
		if (p->plan->n_guards)
			memcpy(bigger, p->plan->guards, p->plan->n_guards * sizeof(*bigger));
		p->plan->guards = bigger;
		p->cap = cap;
	}
	guard = &p->plan->guards[p->plan->n_guards];
	*guard = (struct cordon_guard){ .state = state, .by_default = asked->by_default };
	guard->path = cordon_arena_strdup(p->plan->arena, path);
	guard->where = asked->where ? cordon_arena_strdup(p->plan->arena, asked->where) : NULL;
	if (!guard->path || cordon_path_join(p->plan->at, path, inside, sizeof(inside)) < 0 ||
	    !(guard->inside = cordon_arena_strdup(p->plan->arena, inside)))
		return NULL;
	p->plan->n_guards++;
	return guard;
}

/* The name `path` is missing below the existing directory `dir`. */
static int protect_absent(struct protect *p, const struct cordon_protected *asked, const char *path, const char *dir,
			  const char *name, struct cordon_error *err)
{
	struct cordon_guard *guard;

	if (p->plan->lens || (*dir ? access_of(p, dir) : p->root_access) != CORDON_ACCESS_WRITE)
		return 0; /* nothing can be made there anyway */
	guard = add_guard(p, asked, path, CORDON_GUARD_ABSENT);
	if (!guard || !(guard->dir = cordon_arena_strdup(p->plan->arena, dir)) ||
	    !(guard->name = cordon_arena_strdup(p->plan->arena, name)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	return *dir ? pin_way(p, dir, true, err) : 0;
}

static int refuse(const struct cordon_protected *asked, const char *why, struct cordon_error *err)
{
	cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED, "protected path %s %s", asked->path, why);
	if (asked->where)
		cordon_error_where(err, asked->where, 0, 0);
	return -EINVAL;
}

static int protect_present(struct protect *p, const struct cordon_protected *asked, const char *path,
			   const struct stat *st, struct cordon_error *err)
{
	char source[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];
	struct cordon_guard *guard;
	int r;

	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return refuse(asked, "is a FIFO, socket or device, which a read-only mount does not hold", err);
	if (access_of(p, path) == CORDON_ACCESS_NONE)
		return 0; /* not to be seen at all */
	if (cordon_path_join(p->plan->root, path, source, sizeof(source)) < 0 ||
	    cordon_path_join(p->plan->at, path, inside, sizeof(inside)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	r = pin_way(p, path, false, err);
	if (r < 0 || has_step(p->plan, CORDON_STEP_BIND, CORDON_STEP_PROTECT, inside))
		return r;
	guard = add_guard(p, asked, path, CORDON_GUARD_PRESENT);
	if (!guard)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	r = cordon_hardlinks_find(p->policy->root.fd, path, &guard->hard_links, err);
	if (r < 0 || p->plan->lens)
		return r;
	/* No Landlock rule of its own: what it lies in may be read at least, and the mount is read-only. */
	return cordon_plan_bind(p->plan, source, inside, CORDON_STEP_READ_ONLY | CORDON_STEP_PROTECT, CORDON_RIGHT_NONE,
				err);
}

static int protect_path(struct protect *p, const struct cordon_protected *asked, const char *path, unsigned int hops,
			struct cordon_error *err);

static int outside(const struct cordon_protected *asked, cordon_place place, struct cordon_error *err)
{
	/* What leads out of the root is not to be seen inside, so holding the link is enough where nobody asked. */
	if (asked->by_default)
		return 0;
	if (place == CORDON_PLACE_INSIDE)
		return refuse(asked, "is a symbolic link to the workspace or a directory above itself", err);
	if (place == CORDON_PLACE_OUTSIDE)
		return refuse(asked, "is a symbolic link that leads out of the workspace", err);
	return refuse(asked, "is a loop of symbolic links", err);
}

/*
 * Where one link leads, relative to the root and without following the next one, so that each link of a chain is held.
 * `dir` is the real directory of the link. False when that can't be told from the text alone: an absolute target, or a
 * ".." behind a name that may be a link itself.
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
	int r = pin_way(p, link, true, err);

	if (r < 0)
		return r;
	if (cordon_path_join(link, rest, through, sizeof(through)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", asked->path);
	if (!add_guard(p, asked, link, CORDON_GUARD_LINK))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	cordon_resolve(&p->policy->root, through, &found);
	if (found.place != CORDON_PLACE_INSIDE || !*found.path || cordon_path_within(link, found.path))
		return outside(asked, found.place, err);
	if (hops >= CORDON_LINKS_MAX)
		return refuse(asked, "leads through too many symbolic links", err);
	n = readlinkat(p->policy->root.fd, link, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	if (n <= 0 || !one_hop(dir, target, rest, through))
		memcpy(through, found.path, sizeof(through));
	return protect_path(p, asked, through, hops + 1, err);
}

/* Looks at `path` component by component, following nothing. */
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
			return protect_absent(p, asked, path, parent, name, err);
		}
		if (S_ISLNK(st.st_mode))
			return protect_link(p, asked, parent, part, last ? "" : at + n + 1, hops, err);
		/* A file where a directory is expected: the name can only come to be by replacing it, so hold it. */
		if (last || !S_ISDIR(st.st_mode))
			return protect_present(p, asked, part, &st, err);
		at += n + 1;
		len = strlen(part);
	}
}

/* Denied, and protected so that what leads there stays in its place. */
static int hide_from_lens(struct protect *p, const char *path, struct cordon_error *err)
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

/* Holds one link of the way to our own records. */
static int hold_link(struct protect *p, const char *dir, const char *name, struct cordon_error *err)
{
	struct cordon_policy *policy = (struct cordon_policy *)(uintptr_t)p->policy;
	char host[CORDON_PATH_MAX];
	const char *path = host + strlen(p->plan->root);

	if (cordon_path_join(dir, name, host, sizeof(host)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", dir);
	if (!p->plan->lens)
		return cordon_path_within(dir, p->plan->pin_base) ? pin_host_way(p, host, true, err) : 0;
	if (!cordon_path_within(dir, p->plan->root))
		return 0;
	while (*path == '/')
		path++;
	return cordon_policy_add_protected(policy, path, "the way to cordon's own records", true, err);
}

/* A link on that way, which an agent could turn elsewhere for the next run, stays as it is. */
static int hold_way_to_home(struct protect *p, const char *asked, struct cordon_error *err)
{
	const struct cordon_root slash = { .fd = -1, .path = "/" };
	int r = 0;

	for (const char *end = strchr(asked + 1, '/'); r == 0 && end; end = strchr(end + 1, '/')) {
		char part[CORDON_PATH_MAX], dir[CORDON_PATH_MAX];
		struct cordon_resolved found;
		struct stat st;
		char *name;

		if (cordon_copy(part, sizeof(part), asked, (size_t)(end - asked)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", asked);
		if (lstat(part, &st) < 0 || !S_ISLNK(st.st_mode))
			continue;
		name = strrchr(part, '/');
		*name++ = '\0';
		cordon_resolve(&slash, *part ? part : "/", &found);
		if (cordon_path_join("/", found.path, dir, sizeof(dir)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", asked);
		r = hold_link(p, dir, name, err);
	}
	return r;
}

/* Our own records are never to be seen, also when the root is the home directory that holds them, or when everything
 * the user has is shown. */
static int hide_home(struct protect *p, const char *home, struct cordon_error *err)
{
	const char *base = p->plan->pin_base;
	char state[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];
	struct cordon_step *step;
	int r;

	if (!home || cordon_path_join(home, "state", state, sizeof(state)) < 0)
		return 0;
	if (cordon_path_within(p->plan->root, state) || cordon_streq(p->plan->root, home))
		return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
				   "%s can't be a workspace: it holds cordon's own records", p->plan->root);
	/* A workspace that lies in our directory (projects) shows itself; the records beside it are hidden alone. */
	if (cordon_path_within(p->plan->root, home))
		home = state;
	if (!cordon_path_within(home, base))
		return 0;
	/* Whatever is granted around it: a pattern may match names further down. */
	if (p->plan->lens && cordon_path_within(home, p->plan->root))
		return hide_from_lens(p, home + strlen(p->plan->root), err);
	for (size_t i = 0; i < p->plan->n_steps; i++) {
		const char *source = p->plan->steps[i].kind == CORDON_STEP_BIND ? p->plan->steps[i].source : "/";

		if (cordon_path_within(source, home) && !cordon_streq(source, home))
			return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
					   "%s can't be granted: it lies in cordon's own records", source);
	}
	if (p->policy->mode == CORDON_MODE_STRICT) {
		const char *rel = home + strlen(base);

		while (*rel == '/')
			rel++;
		if (access_of(p, rel) == CORDON_ACCESS_NONE)
			return 0;
	}
	if ((r = pin_host_way(p, home, false, err)) < 0)
		return r;
	if (cordon_path_join(p->plan->pin_base_at, home + strlen(base), inside, sizeof(inside)) < 0 ||
	    !(step = cordon_plan_step(p->plan, CORDON_STEP_MASK, inside)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->flags = CORDON_STEP_IS_DIR;
	return 0;
}

/* Whether AGENTS.md and agents.md are one name here: ext4 and f2fs per directory, FAT and SMB as a whole. */
static bool folds_case(const struct cordon_root *root)
{
	static const long folding[] = { 0x4d44, 0x2011bab0, 0x5346544e, 0x7366746e, 0xff534d42, 0xfe534d42 };
	autofd int fd = openat(root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned int flags = 0;
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(folding); i++)
		if (fs.f_type == folding[i])
			return true;
	return ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL);
}

int cordon_plan_protect(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err)
{
	struct protect p = { .plan = plan, .policy = spec->policy };
	const char *base = plan->pin_base;
	int anchor = cordon_plan_anchor(plan, &base);
	struct stat st;
	int r;

	if (fstatat(anchor, base, &st, AT_EMPTY_PATH) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat %s", plan->pin_base);
	plan->pin_base_dev = st.st_dev;
	plan->pin_base_ino = st.st_ino;
	r = hide_home(&p, spec->home_path, err);
	p.root_access = access_of(&p, "");
	if (r == 0 && spec->home_asked && !cordon_streq(spec->home_asked, spec->home_path))
		r = hold_way_to_home(&p, spec->home_asked, err);
	for (size_t i = 0; r == 0 && i < spec->policy->n_protected; i++) {
		const struct cordon_protected *asked = &spec->policy->protected_paths[i];

		/* What came to be since then is found by PID 1, as what comes later is. */
		r = asked->missing ? protect_absent(&p, asked, asked->path, "", asked->path, err)
				   : protect_path(&p, asked, asked->path, 0, err);
	}
	plan->fold_case = plan->n_guards && folds_case(&spec->policy->root);
	return r;
}
