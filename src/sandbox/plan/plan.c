/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a plan from a run specification. It changes nothing on the machine. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/setting.h"
#include "sandbox/plan/plan.h"
#include "sandbox/plan/tripwire.h"

struct cordon_step *cordon_plan_step(struct cordon_plan *plan, cordon_step_kind kind, const char *path)
{
	struct cordon_step *step;

	if (plan->n_steps == plan->cap_steps) {
		size_t cap = plan->cap_steps ? plan->cap_steps * 2 : 128;
		struct cordon_step *steps;

		if (cap > CORDON_MOUNTS_MAX)
			return NULL;
		steps = cordon_arena_grow(plan->arena, plan->steps, plan->n_steps, cap, sizeof(*steps));
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
	char **notes = cordon_arena_grow(plan->arena, plan->notes, plan->n_notes, plan->n_notes + 1, sizeof(*notes));
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

/* The deepest step that shows something of the host, a mask or /proc, and contains `path`; later steps cover earlier
 * ones. */
static const struct cordon_step *covering_host(const struct cordon_plan *plan, const char *path)
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

const struct cordon_step *cordon_plan_covering(const struct cordon_plan *plan, const char *path)
{
	const struct cordon_step *best = NULL;

	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *s = &plan->steps[i];
		bool mounted = s->kind == CORDON_STEP_BIND || s->kind == CORDON_STEP_PRIVATE ||
			       s->kind == CORDON_STEP_MASK || s->kind == CORDON_STEP_LENS ||
			       s->kind == CORDON_STEP_RULE || s->kind == CORDON_STEP_LAYER;

		if (mounted && cordon_path_within(path, s->path) && (!best || strlen(s->path) >= strlen(best->path)))
			best = s;
	}
	return best;
}

static const struct cordon_step *find_made(const struct cordon_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_steps; i++)
		if (makes_something(&plan->steps[i]) && cordon_streq(plan->steps[i].path, path))
			return &plan->steps[i];
	return NULL;
}

/* Adds a DIR step for each ancestor of `path` that no step makes yet; `path` itself is not included. */
static int make_ancestors(struct cordon_plan *plan, const char *path, struct cordon_error *err)
{
	char part[CORDON_PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		const struct cordon_step *there;
		struct cordon_step *step;

		if (cordon_copy(part, sizeof(part), path, (size_t)(slash - path)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
		there = find_made(plan, part);
		if (there && there->kind != CORDON_STEP_DIR) {
			cordon_fail(err, -ENOTDIR, CORDON_KIND_POLICY_DENIED,
				    "%s can't lie below %s, which is no directory inside", path, part);
			return -ENOTDIR;
		}
		if (there)
			continue;
		step = cordon_plan_step(plan, CORDON_STEP_DIR, part);
		if (!step)
			return cordon_fail_errno(err, -ENOMEM, "plan");
		/* In the workspace it takes the place of a directory that is not granted. */
		if (cordon_path_within(part, plan->at))
			step->mode = 0555;
	}
	return 0;
}

int cordon_plan_parents(struct cordon_plan *plan, const char *path, char *ret_host, struct cordon_error *err)
{
	const struct cordon_step *cover = covering_host(plan, path);

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

/* Finds out the identity of a canonical host path; follows no links. */
static int identify(const struct cordon_plan *plan, const char *source, struct stat *ret_st, struct cordon_error *err)
{
	const char *path = source;
	int anchor = cordon_plan_anchor(plan, &path);
	autofd int fd = -1;

	if (!*path)
		return fstat(anchor, ret_st) < 0 ? cordon_fail_errno(err, -errno, "cannot stat %s", source) : 0;
	fd = cordon_open_beneath(anchor, path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return cordon_fail_errno(err, fd, "cannot open %s", source);
	if (fstat(fd, ret_st) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat %s", source);
	return 0;
}

/* The same with a single system call, for paths that only the administrator can change: /usr, devices and similar
 * ones. */
static int identify_system(const struct cordon_plan *plan, const char *source, struct stat *ret_st,
			   struct cordon_error *err)
{
	if (fstatat(plan->slash_fd, source + 1, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", source);
	return S_ISLNK(ret_st->st_mode) ? cordon_fail_errno(err, -ELOOP, "cannot open %s", source) : 0;
}

int cordon_plan_bind(struct cordon_plan *plan, const char *source, const char *path, unsigned int flags,
		     cordon_right right, struct cordon_error *err)
{
	CORDON_UNCLEARED char host[CORDON_PATH_MAX];
	struct cordon_step *step;
	struct stat st, there;
	int r = flags & (CORDON_STEP_SYSTEM | CORDON_STEP_IS_DEVICE) ? identify_system(plan, source, &st, err)
								     : identify(plan, source, &st, err);

	if (r < 0)
		return r;
	r = cordon_plan_parents(plan, path, host, err);
	if (r < 0)
		return r;
	if (*host && cordon_streq(host, source)) {
		/* It is mounted on itself, so the mount point exists. */
	} else if (*host) {
		/* The mount point lies in a tree of the host: it must exist already, because we make nothing there. */
		if (identify(plan, host, &there, NULL) < 0 || S_ISDIR(st.st_mode) != S_ISDIR(there.st_mode))
			return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND,
					   "cannot show %s at %s: there is no such %s to mount on", source, path,
					   S_ISDIR(st.st_mode) ? "directory" : "file");
	} else if (!find_made(plan, path) && !cordon_streq(path, "/")) {
		step = cordon_plan_step(plan, S_ISDIR(st.st_mode) ? CORDON_STEP_DIR : CORDON_STEP_FILE, path);
		if (!step)
			return cordon_fail_errno(err, -ENOMEM, "plan");
	}
	step = cordon_plan_step(plan, CORDON_STEP_BIND, path);
	if (!step || !(step->source = cordon_arena_strdup(plan->arena, source)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->flags = flags | (S_ISDIR(st.st_mode) ? CORDON_STEP_IS_DIR : 0);
	if (plan->view && !(flags & CORDON_STEP_SHARE) && cordon_path_within(source, plan->root))
		step->flags |= CORDON_STEP_IN_VIEW;
	step->right = right;
	step->dev = st.st_dev;
	step->ino = st.st_ino;
	return 0;
}

int cordon_plan_link(struct cordon_plan *plan, const char *path, const char *text, struct cordon_error *err)
{
	struct cordon_step *step;
	int r;

	if (cordon_path_within(path, plan->at) || covering_host(plan, path) || find_made(plan, path))
		return 0;
	r = make_ancestors(plan, path, err);
	if (r < 0)
		return r == -ENOTDIR ? 0 : r;
	step = cordon_plan_step(plan, CORDON_STEP_LINK, path);
	if (!step || !(step->text = cordon_arena_strdup(plan->arena, text)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	return 0;
}

int cordon_plan_layer(struct cordon_plan *plan, const char *source, const char *path, struct cordon_error *err)
{
	struct cordon_step *step;
	char *dir, *upper, *work;
	unsigned int number = 0;
	struct stat st;
	int r = cordon_plan_bind(plan, source, path, CORDON_STEP_READ_ONLY, CORDON_RIGHT_READ, err);

	if (r < 0)
		return r;
	if (lstat(source, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat %s", source);
	for (size_t i = 0; i < plan->n_steps; i++)
		number += plan->steps[i].kind == CORDON_STEP_LAYER;
	dir = cordon_arena_printf(plan->arena, "/proc/layer-%u", number);
	upper = cordon_arena_printf(plan->arena, "/proc/layer-%u/upper", number);
	work = cordon_arena_printf(plan->arena, "/proc/layer-%u/work", number);
	if (!dir || !upper || !work || !(step = cordon_plan_step(plan, CORDON_STEP_DIR, dir)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->mode = 0700;
	/* An overlay has the mode of its upper directory. */
	if (!(step = cordon_plan_step(plan, CORDON_STEP_DIR, upper)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->mode = st.st_mode & 07777;
	if (!(step = cordon_plan_step(plan, CORDON_STEP_DIR, work)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->mode = 0700;
	if (!cordon_plan_step(plan, CORDON_STEP_PRIVATE, dir) ||
	    !(step = cordon_plan_step(plan, CORDON_STEP_LAYER, path)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->source = dir + 1;
	step->right = CORDON_RIGHT_WRITE;
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

#define LAST_PHASE 6

static int step_phase(const struct cordon_step *step)
{
	if (makes_something(step))
		return 0;
	if (step->flags & CORDON_STEP_SYSTEM)
		return 1;
	if (step->kind == CORDON_STEP_FREEZE)
		return 2;
	if (step->kind == CORDON_STEP_VIEW)
		return 3;
	return step->kind == CORDON_STEP_PIN ? LAST_PHASE : step->kind == CORDON_STEP_MASK ? 5 : 4;
}

/* Puts longer paths first: what lies below a directory always has a longer path. */
static int deepest_first(const void *a, const void *b)
{
	size_t x = strlen(((const struct cordon_step *)a)->path), y = strlen(((const struct cordon_step *)b)->path);

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Orders the steps: first everything that is made, then the system, the freeze, the view, the other mounts and the masks, each in
 * the order in which it was planned. Masks come after the mounts, because a protected directory around a denied one
 * would otherwise cover the mask. Pins come last and deepest first, because a pinned directory hides what lies below it
 * from the next pin. */
static int order_steps(struct cordon_plan *plan)
{
	struct cordon_step *sorted = cordon_arena_alloc(plan->arena, plan->n_steps * sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (int phase = 0; phase <= LAST_PHASE; phase++) {
		size_t first = n;

		for (size_t i = 0; i < plan->n_steps; i++)
			if (step_phase(&plan->steps[i]) == phase)
				sorted[n++] = plan->steps[i];
		if (phase == LAST_PHASE)
			qsort(sorted + first, n - first, sizeof(*sorted), deepest_first);
	}
	plan->steps = sorted;
	return 0;
}

/* Plans where the agent starts: in the caller's directory when that lies in the workspace, else in the root. */
static int plan_cwd(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	char cwd[CORDON_PATH_MAX];

	plan->cwd = spec->run->in_temp ? plan->tmp : plan->at;
	if (spec->run->in_temp || !spec->cwd || !cordon_path_within(spec->cwd, plan->root))
		return 0;
	if (cordon_path_join(plan->at, spec->cwd + strlen(plan->root), cwd, sizeof(cwd)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", spec->cwd);
	plan->cwd = cordon_arena_strdup(plan->arena, cwd);
	return plan->cwd ? 0 : cordon_fail_errno(err, -ENOMEM, "plan");
}

/* Refuses a root that is, or contains, a directory which the sandbox builds itself. */
static int check_root(const char *root, const char *at, struct cordon_error *err)
{
	static const char *const own[] = { "/usr", "/bin",  "/sbin", "/lib", "/lib64",
					   "/etc", "/proc", "/dev",  "/sys", "/run" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(own); i++) {
		if (!cordon_path_within(own[i], at) && !cordon_path_within(own[i], root))
			continue;
		cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED, "%s can't be a workspace: it holds the system (%s)",
			    cordon_path_within(own[i], root) ? root : at, own[i]);
		cordon_error_hint(err, "choose a directory below it with %s, or another place with %s",
				  cordon_setting_name(CORDON_SETTING_ROOT), cordon_setting_name(CORDON_SETTING_AT));
		return -EINVAL;
	}
	return 0;
}

int cordon_plan_area(struct cordon_plan *plan, const char *at, const struct cordon_policy *policy,
		     struct cordon_error *err)
{
	struct cordon_area *area = &plan->areas[plan->n_areas];
	struct stat st;

	if (plan->n_areas == CORDON_AREAS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT,
				   "a run has more than %d trees with something protected in them", CORDON_AREAS_MAX);
	if (fstat(policy->root.fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat %s", policy->root.path);
	*area = (struct cordon_area){ .dev = st.st_dev, .ino = st.st_ino, .policy = policy };
	area->source = cordon_arena_strdup(plan->arena, policy->root.path);
	area->at = cordon_arena_strdup(plan->arena, at);
	if (!area->source || !area->at)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	plan->n_areas++;
	return 0;
}

static int choose_layers(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	struct cordon_layers_spec ask = { .tier = plan->tier,
					  .own_network = plan->own_network,
					  .best_effort = plan->asked.best_effort,
					  .enterable = plan->asked.enterable,
					  .landlock_abi = spec->landlock_abi };

	return cordon_layers_choose(&ask, &plan->layers, err);
}

static int choose_network(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	const struct cordon_net_list *list = &spec->run->policy->net;

	plan->net_none = spec->run->net == CORDON_NET_NONE || cordon_net_list_is_none(list);
	plan->own_network = plan->net_none || list->listed;
	if (plan->net_none || !list->listed)
		return 0;
	if (cordon_net_list_copy(&plan->net_list, list) < 0)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	plan->net = &plan->net_list;
	return 0;
}

static int build(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	char at[CORDON_PATH_MAX];
	int r;

	plan->run_id = cordon_arena_strdup(plan->arena, spec->run_id);
	plan->root = cordon_arena_strdup(plan->arena, spec->run->policy->root.path);
	if (!plan->run_id || !plan->root)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	if (spec->run->at && spec->run->at[0] != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s %s: the path must be absolute",
				   cordon_setting_name(CORDON_SETTING_AT), spec->run->at);
	if (cordon_path_clean(spec->run->at ? spec->run->at : plan->root, at, sizeof(at)) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s: the path is too long or holds '..'",
				   cordon_setting_name(CORDON_SETTING_AT));
	r = check_root(plan->root, at, err);
	if (r < 0)
		return r;
	plan->at = cordon_arena_strdup(plan->arena, at);
	if (!plan->at)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	plan->uid = geteuid();
	plan->gid = getegid();
	plan->tier = spec->tier;
	plan->tier_why = spec->tier_why ? cordon_arena_strdup(plan->arena, spec->tier_why) : NULL;
	if (spec->tier_why && !plan->tier_why)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	plan->hostname = "cordon";
	plan->mode = spec->run->policy->mode;
	plan->asked = *spec->run;
	plan->limits = (struct cordon_limits){ .memory_bytes = spec->run->memory_bytes,
					       .pids = (uint32_t)spec->run->pids,
					       .cpu_millis = (uint32_t)spec->run->cpu_millis };
	plan->tmp_size = spec->run->tmp_bytes ? spec->run->tmp_bytes : CORDON_TMP_SIZE_DEFAULT;
	plan->timeout_ms = spec->run->timeout_ms;
	plan->grace_ms = spec->run->grace_ms ? spec->run->grace_ms : CORDON_GRACE_DEFAULT_MS;

	if ((r = cordon_plan_view(plan, spec, err)) < 0 || (r = choose_network(plan, spec, err)) < 0 ||
	    (r = choose_layers(plan, spec, err)) < 0 || (r = cordon_plan_env(plan, spec, err)) < 0 ||
	    (r = cordon_plan_area(plan, plan->at, spec->run->policy, err)) < 0)
		return r;
	if (plan->tier == CORDON_TIER_LANDLOCK)
		return (r = cordon_plan_lower_tier(plan, spec, err)) < 0 ? r : plan_cwd(plan, spec, err);
	if ((r = cordon_plan_system(plan, spec, err)) < 0 || (r = cordon_plan_shares(plan, spec, true, err)) < 0 ||
	    (r = cordon_plan_scope(plan, spec, err)) < 0 || (r = cordon_plan_shares(plan, spec, false, err)) < 0 ||
	    (r = cordon_plan_protect(plan, spec, err)) < 0 || (r = cordon_plan_folding(plan, err)) < 0 ||
	    (r = cordon_plan_sockets(plan, err)) < 0 || (r = cordon_plan_hold(plan, err)) < 0 ||
	    (r = plan_cwd(plan, spec, err)) < 0)
		return r;
	if (order_steps(plan) < 0)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	cordon_plan_tripwires(plan, spec);
	return 0;
}

int cordon_plan_build(const struct cordon_plan_spec *spec, struct cordon_plan **ret_plan, struct cordon_error *err)
{
	struct cordon_plan *plan = calloc(1, sizeof(*plan));
	int r;

	if (!plan || !(plan->arena = cordon_arena_new())) {
		free(plan);
		return cordon_fail_errno(err, -ENOMEM, "plan");
	}
	plan->slash_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	plan->root_fd = spec->run->policy->root.fd;
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
		cordon_net_list_done(&plan->net_list);
		cordon_arena_free(plan->arena);
		free(plan);
	}
	return NULL;
}
