/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a plan from a run specification: pure data, nothing on the machine is changed. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/path.h"
#include "sandbox/plan.h"

void *cordon_plan_alloc(struct cordon_plan *plan, size_t size)
{
	return cordon_arena_alloc(plan->arena, size);
}

char *cordon_plan_printf(struct cordon_plan *plan, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = cordon_arena_vprintf(plan->arena, fmt, args);
	va_end(args);
	return text;
}

/* Doubles an array that lives in the arena; the old one stays until the arena goes. */
static void *grow(struct cordon_plan *plan, void *old, size_t n, size_t cap, size_t size)
{
	void *bigger = cordon_plan_alloc(plan, cap * size);

	if (bigger && n)
		memcpy(bigger, old, n * size);
	return bigger;
}

struct cordon_step *cordon_plan_step(struct cordon_plan *plan, cordon_step_kind kind, const char *path)
{
	struct cordon_step *step;

	if (plan->n_steps == plan->cap_steps) {
		size_t cap = plan->cap_steps ? plan->cap_steps * 2 : 128;
		struct cordon_step *steps;

		if (cap > CORDON_MOUNTS_MAX)
			return NULL;
		steps = grow(plan, plan->steps, plan->n_steps, cap, sizeof(*steps));
		if (!steps)
			return NULL;
		plan->steps = steps;
		plan->cap_steps = cap;
	}
	step = &plan->steps[plan->n_steps];
	*step = (struct cordon_step){ .kind = kind, .mode = 0755 };
	step->path = cordon_arena_strdup(plan->arena, path);
	if (!step->path)
		return NULL;
	plan->n_steps++;
	return step;
}

int cordon_plan_note(struct cordon_plan *plan, const char *fmt, ...)
{
	char **notes = grow(plan, plan->notes, plan->n_notes, plan->n_notes + 1, sizeof(*notes));
	va_list args;

	if (!notes)
		return -ENOMEM;
	va_start(args, fmt);
	notes[plan->n_notes] = cordon_arena_vprintf(plan->arena, fmt, args);
	va_end(args);
	if (!notes[plan->n_notes])
		return -ENOMEM;
	plan->notes = notes;
	plan->n_notes++;
	return 0;
}

static bool makes_something(const struct cordon_step *step)
{
	return step->kind == CORDON_STEP_DIR || step->kind == CORDON_STEP_FILE || step->kind == CORDON_STEP_LINK;
}

/* The last mounted step whose tree holds `path`; later steps cover earlier ones. */
static const struct cordon_step *covering(const struct cordon_plan *plan, const char *path)
{
	const struct cordon_step *best = NULL;

	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *s = &plan->steps[i];

		if ((s->kind == CORDON_STEP_BIND || s->kind == CORDON_STEP_MASK || s->kind == CORDON_STEP_PROC) &&
		    cordon_path_within(path, s->path) && (!best || strlen(s->path) >= strlen(best->path)))
			best = s;
	}
	return best;
}

static const struct cordon_step *made(const struct cordon_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_steps; i++)
		if (makes_something(&plan->steps[i]) && cordon_streq(plan->steps[i].path, path))
			return &plan->steps[i];
	return NULL;
}

/* Emits DIR steps for the ancestors of `path` that nothing makes yet, down to but not including `path`. */
static int make_ancestors(struct cordon_plan *plan, const char *path, struct cordon_error *err)
{
	char part[CORDON_PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		const struct cordon_step *there;

		if (cordon_copy(part, sizeof(part), path, (size_t)(slash - path)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
		there = made(plan, part);
		if (there && there->kind != CORDON_STEP_DIR) {
			cordon_fail(err, -ENOTDIR, CORDON_KIND_POLICY_DENIED,
				    "%s can't lie below %s, which is no directory inside", path, part);
			return -ENOTDIR;
		}
		if (!there && !cordon_plan_step(plan, CORDON_STEP_DIR, part))
			return cordon_fail_errno(err, -ENOMEM, "plan");
	}
	return 0;
}

int cordon_plan_parents(struct cordon_plan *plan, const char *path, char *ret_host, struct cordon_error *err)
{
	const struct cordon_step *cover = covering(plan, path);

	if (ret_host)
		ret_host[0] = '\0';
	if (!cover)
		return make_ancestors(plan, path, err);
	if (cover->kind != CORDON_STEP_BIND)
		return cordon_fail(err, -EBUSY, CORDON_KIND_POLICY_DENIED,
				   "%s lies below %s, which the sandbox needs itself", path, cover->path);
	if (ret_host && cordon_path_join(cover->source, path + strlen(cover->path), ret_host, CORDON_PATH_MAX) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	return 0;
}

int cordon_plan_anchor(const struct cordon_plan *plan, const char **path)
{
	bool in_root = cordon_path_within(*path, plan->root);

	if (in_root)
		*path += strlen(plan->root);
	while (**path == '/')
		(*path)++;
	return in_root ? plan->root_fd : plan->slash_fd;
}

/* Looks at a canonical host path without following anything. */
static int identify(const struct cordon_plan *plan, const char *source, struct stat *ret_st, struct cordon_error *err)
{
	const char *path = source;
	int anchor = cordon_plan_anchor(plan, &path);
	autofd int fd = cordon_open_beneath(anchor, path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return cordon_fail_errno(err, fd, "cannot open %s", source);
	if (fstat(fd, ret_st) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat %s", source);
	return 0;
}

int cordon_plan_bind(struct cordon_plan *plan, const char *source, const char *path, unsigned int flags,
		     cordon_right right, struct cordon_error *err)
{
	char host[CORDON_PATH_MAX];
	struct cordon_step *step;
	struct stat st, there;
	int r = identify(plan, source, &st, err);

	if (r < 0)
		return r;
	r = cordon_plan_parents(plan, path, host, err);
	if (r < 0)
		return r;
	if (*host && cordon_streq(host, source)) {
		/* On itself: it is there. */
	} else if (*host) {
		/* The mount point lies in something of the host: it must be there already, nothing is ever made. */
		if (identify(plan, host, &there, NULL) < 0 || S_ISDIR(st.st_mode) != S_ISDIR(there.st_mode))
			return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND,
					   "cannot show %s at %s: there is no such %s to mount on", source, path,
					   S_ISDIR(st.st_mode) ? "directory" : "file");
	} else if (!made(plan, path) && !cordon_streq(path, "/")) {
		step = cordon_plan_step(plan, S_ISDIR(st.st_mode) ? CORDON_STEP_DIR : CORDON_STEP_FILE, path);
		if (!step)
			return cordon_fail_errno(err, -ENOMEM, "plan");
	}
	step = cordon_plan_step(plan, CORDON_STEP_BIND, path);
	if (!step || !(step->source = cordon_arena_strdup(plan->arena, source)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->flags = flags | (S_ISDIR(st.st_mode) ? CORDON_STEP_IS_DIR : 0);
	step->right = right;
	step->dev = st.st_dev;
	step->ino = st.st_ino;
	return 0;
}

bool cordon_plan_is_private(const struct cordon_plan *plan, const char *path)
{
	const struct cordon_step *best = NULL;

	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *s = &plan->steps[i];

		if ((s->kind == CORDON_STEP_BIND || s->kind == CORDON_STEP_PRIVATE) &&
		    cordon_path_within(path, s->path) && (!best || strlen(s->path) >= strlen(best->path)))
			best = s;
	}
	return best && best->kind == CORDON_STEP_PRIVATE;
}

static int step_phase(const struct cordon_step *step)
{
	if (makes_something(step))
		return 0;
	if (step->flags & CORDON_STEP_SYSTEM)
		return 1;
	return step->kind == CORDON_STEP_FREEZE ? 2 : step->kind == CORDON_STEP_PIN ? 4 : 3;
}

/* A longer path first: what lies below a directory always has one. */
static int deepest_first(const void *a, const void *b)
{
	size_t x = strlen(((const struct cordon_step *)a)->path), y = strlen(((const struct cordon_step *)b)->path);

	return x < y ? 1 : x > y ? -1 : 0;
}

/* What is made comes first, then the system, the freeze, the other mounts; each in the order it was planned. Pins
 * come last and deepest first, because a pinned directory hides what lies below it from the next pin. */
static int order_steps(struct cordon_plan *plan)
{
	struct cordon_step *sorted = cordon_plan_alloc(plan, plan->n_steps * sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (int phase = 0; phase <= 4; phase++) {
		size_t first = n;

		for (size_t i = 0; i < plan->n_steps; i++)
			if (step_phase(&plan->steps[i]) == phase)
				sorted[n++] = plan->steps[i];
		if (phase == 4)
			qsort(sorted + first, n - first, sizeof(*sorted), deepest_first);
	}
	plan->steps = sorted;
	return 0;
}

/* A second way to the workspace that may be written would go around what is protected or denied in it. */
int cordon_plan_apart(const struct cordon_plan *plan, const char *option, const char *source, struct cordon_error *err)
{
	if (!cordon_path_within(source, plan->root) && !cordon_path_within(plan->root, source))
		return 0;
	cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED,
		    "%s %s overlaps the workspace %s: what is protected there could be changed through it", option,
		    source, plan->root);
	cordon_error_hint(err, "choose a directory that lies apart from it, or share it read-only");
	return -EINVAL;
}

static int plan_shares(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err)
{
	for (size_t i = 0; i < spec->n_shares; i++) {
		const struct cordon_share *share = &spec->shares[i];
		struct cordon_root slash = { .fd = -1, .path = "/" };
		struct cordon_resolved found;
		char source[CORDON_PATH_MAX], target[CORDON_PATH_MAX];
		int r;

		if (share->source[0] != '/' || (share->target && share->target[0] != '/'))
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--share %s: paths must be absolute",
					   share->source);
		cordon_resolve(&slash, share->source, &found);
		if (found.place != CORDON_PLACE_INSIDE || !found.exists)
			return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "--share %s: no such file or directory",
					   share->source);
		if (cordon_path_join("/", found.path, source, sizeof(source)) < 0 ||
		    cordon_path_clean(share->target ? share->target : source, target, sizeof(target)) < 0)
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
					   "--share %s: the path is too long or holds '..'", share->source);
		if (spec->home_path && cordon_path_within(spec->home_path, source))
			return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
					   "--share %s holds cordon's own records (%s)", source, spec->home_path);
		if (spec->home_path && cordon_path_within(source, spec->home_path))
			return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
					   "--share %s lies in cordon's own records", source);
		r = share->read_only ? 0 : cordon_plan_apart(plan, "--share", source, err);
		if (r < 0)
			return r;
		r = cordon_plan_bind(plan, source, target, share->read_only ? CORDON_STEP_READ_ONLY : 0,
				     share->read_only ? CORDON_RIGHT_READ : CORDON_RIGHT_WRITE, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Where the agent starts: the caller's directory when it is shown, else the root. */
static int plan_cwd(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err)
{
	char cwd[CORDON_PATH_MAX];

	plan->cwd = plan->at;
	if (!spec->cwd || !cordon_path_within(spec->cwd, plan->root))
		return 0;
	if (cordon_path_join(plan->at, spec->cwd + strlen(plan->root), cwd, sizeof(cwd)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", spec->cwd);
	plan->cwd = cordon_arena_strdup(plan->arena, cwd);
	return plan->cwd ? 0 : cordon_fail_errno(err, -ENOMEM, "plan");
}

/* Directories the sandbox builds itself; a root at or above one of them can't be shown. */
static int check_root(const char *root, const char *at, struct cordon_error *err)
{
	static const char *const own[] = { "/usr", "/bin",  "/sbin", "/lib", "/lib64",
					   "/etc", "/proc", "/dev",  "/sys", "/run" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(own); i++) {
		if (!cordon_path_within(own[i], at) && !cordon_path_within(own[i], root))
			continue;
		cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED, "%s can't be a workspace: it holds the system (%s)",
			    cordon_path_within(own[i], root) ? root : at, own[i]);
		cordon_error_hint(err, "choose a directory below it with --root, or another place with --at");
		return -EINVAL;
	}
	return 0;
}

static int build(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err)
{
	char at[CORDON_PATH_MAX];
	int r;

	plan->run_id = cordon_arena_strdup(plan->arena, spec->run_id);
	plan->root = cordon_arena_strdup(plan->arena, spec->policy->root.path);
	if (!plan->run_id || !plan->root)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	if (spec->at && spec->at[0] != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--at %s: the path must be absolute", spec->at);
	if (cordon_path_clean(spec->at ? spec->at : plan->root, at, sizeof(at)) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--at: the path is too long or holds '..'");
	r = check_root(plan->root, at, err);
	if (r < 0)
		return r;
	plan->at = cordon_arena_strdup(plan->arena, at);
	if (!plan->at)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	plan->pin_base = spec->policy->mode == CORDON_MODE_PERMISSIVE ? "/" : plan->root;
	plan->pin_base_at = spec->policy->mode == CORDON_MODE_PERMISSIVE ? "/" : plan->at;
	plan->uid = geteuid();
	plan->gid = getegid();
	plan->tier = spec->tier;
	plan->hostname = "cordon";
	plan->mode = spec->policy->mode;
	plan->net_none = spec->net_none;
	plan->terminal = spec->terminal;
	plan->best_effort = spec->best_effort;
	plan->enterable = spec->enterable;
	plan->limits = spec->limits;
	plan->tmp_size = spec->tmp_size ? spec->tmp_size : CORDON_TMP_SIZE_DEFAULT;
	plan->timeout_ms = spec->timeout_ms;
	plan->grace_ms = spec->grace_ms ? spec->grace_ms : CORDON_GRACE_DEFAULT_MS;

	if ((r = cordon_plan_env(plan, spec, err)) < 0)
		return r;
	if (plan->tier == CORDON_TIER_LANDLOCK)
		return (r = cordon_plan_lower_tier(plan, spec, err)) < 0 ? r : plan_cwd(plan, spec, err);
	if ((r = cordon_plan_system(plan, spec, err)) < 0 || (r = cordon_plan_scope(plan, spec, err)) < 0 ||
	    (r = plan_shares(plan, spec, err)) < 0 || (r = cordon_plan_protect(plan, spec, err)) < 0 ||
	    (r = plan_cwd(plan, spec, err)) < 0)
		return r;
	return order_steps(plan) < 0 ? cordon_fail_errno(err, -ENOMEM, "plan") : 0;
}

int cordon_plan_build(const struct cordon_run_spec *spec, struct cordon_plan **ret_plan, struct cordon_error *err)
{
	struct cordon_plan *plan = calloc(1, sizeof(*plan));
	int r;

	if (!plan || !(plan->arena = cordon_arena_new())) {
		free(plan);
		return cordon_fail_errno(err, -ENOMEM, "plan");
	}
	plan->slash_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	plan->root_fd = spec->policy->root.fd;
	r = plan->slash_fd < 0 ? cordon_fail_errno(err, -errno, "cannot open /") : build(plan, spec, err);
	cordon_closep(&plan->slash_fd);
	if (r < 0) {
		cordon_plan_free(plan);
		return r;
	}
	*ret_plan = plan;
	return 0;
}

struct cordon_plan *cordon_plan_free(struct cordon_plan *plan)
{
	if (plan) {
		cordon_arena_free(plan->arena);
		free(plan);
	}
	return NULL;
}
