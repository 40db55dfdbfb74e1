/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the held directories. Landlock withholds from the agent the right to make, write and remove entries in the
 * directory where the name of a boundary stands or would appear, and in every directory above it. In the other
 * subdirectories the agent has that right, so this file lists them. It lists the held directories only and walks no tree.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/arena.h"
#include "base/listing.h"
#include "base/path.h"
#include "sandbox/plan/plan.h"

#define BELOW_MAX 256
#define KEPT_OPEN 32	 /* held directories that stay open until they are listed */
#define ENTRIES_MAX 1024 /* we look at no more in a held directory, so that a start costs the same in every tree */

/* The deepest directory of a boundary's path that exists, as a path inside. */
static const char *existing_dir(struct cordon_plan *plan, const struct cordon_area *area, const char *path)
{
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];
	struct stat st;
	char *slash;

	if (cordon_copy(dir, sizeof(dir), path, strlen(path)) < 0)
		return NULL;
	for (;;) {
		slash = strrchr(dir, '/');
		if (!slash)
			return area->at;
		*slash = '\0';
		if (fstatat(area->policy->root.fd, dir, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
			break;
	}
	return cordon_path_join(area->at, dir, inside, sizeof(inside)) < 0 ? NULL
									   : cordon_arena_strdup(plan->arena, inside);
}

static const char *known_dir(struct cordon_plan *plan, const struct cordon_area *area, const char *dir, size_t len)
{
	CORDON_UNCLEARED char way[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];

	if (!len)
		return area->at;
	if (cordon_copy(way, sizeof(way), dir, len) < 0 || cordon_path_join(area->at, way, inside, sizeof(inside)) < 0)
		return NULL;
	return cordon_arena_strdup(plan->arena, inside);
}

int cordon_plan_guard(struct cordon_plan *plan, size_t area, cordon_guard_kind kind, cordon_guard_state state,
		      const char *path, struct cordon_guard **ret_guard, struct cordon_error *err)
{
	return cordon_plan_guard_in(plan, area, kind, state, path, NULL, 0, ret_guard, err);
}

int cordon_plan_guard_in(struct cordon_plan *plan, size_t area, cordon_guard_kind kind, cordon_guard_state state,
			 const char *path, const char *dir, size_t dir_len, struct cordon_guard **ret_guard,
			 struct cordon_error *err)
{
	CORDON_UNCLEARED char inside[CORDON_PATH_MAX];
	struct cordon_guard *guard;
	size_t len = strlen(path);
	uint64_t sum = cordon_held_name_sum(path);
	uint64_t *known = &plan->guard_sums[sum / 64 % CORDON_ARRAY_SIZE(plan->guard_sums)];

	for (size_t i = 0; *known >> sum % 64 & 1 && i < plan->n_guards; i++) {
		guard = &plan->guards[i];
		if (guard->sum != sum || guard->area != area || !cordon_streq(guard->path, path))
			continue;
		if (ret_guard)
			*ret_guard = &plan->guards[i];
		return 0;
	}
	if (plan->n_guards == CORDON_GUARDS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a run has more than %d boundaries",
				   CORDON_GUARDS_MAX);
	if (plan->n_guards == plan->cap_guards) {
		/* Mostly there is one for each path that is protected in the workspace, and few others. */
		plan->cap_guards = plan->cap_guards ? 2 * plan->cap_guards : plan->areas[0].policy->n_protected + 64;
		plan->guards = cordon_arena_grow(plan->arena, plan->guards, plan->n_guards, plan->cap_guards,
						 sizeof(*plan->guards));
		if (!plan->guards)
			return cordon_fail_errno(err, -ENOMEM, "plan");
	}
	if (cordon_path_join(plan->areas[area].at, path, inside, sizeof(inside)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	guard = &plan->guards[plan->n_guards];
	*guard = (struct cordon_guard){ .kind = kind, .state = state, .area = area, .len = len, .sum = sum };
	guard->path = cordon_arena_strdup(plan->arena, path);
	guard->inside = cordon_arena_strdup(plan->arena, inside);
	guard->inside_len = strlen(inside);
	guard->dir = dir ? known_dir(plan, &plan->areas[area], dir, dir_len)
			 : existing_dir(plan, &plan->areas[area], path);
	if (!guard->path || !guard->inside || !guard->dir)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	plan->n_guards++;
	*known |= (uint64_t)1 << sum % 64;
	if (ret_guard)
		*ret_guard = guard;
	return 0;
}

const struct cordon_guard *cordon_plan_guard_at(const struct cordon_plan *plan, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];

		if (guard->inside_len >= n && memcmp(guard->inside, path, n) == 0 &&
		    (guard->inside[n] == '\0' || guard->inside[n] == '/'))
			return guard;
	}
	return NULL;
}

const struct cordon_guard *cordon_plan_guard_above(const struct cordon_plan *plan, const char *dir, const char *path)
{
	size_t least = strlen(dir), len = strlen(path);

	for (size_t i = 0; i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];
		size_t n = guard->inside_len;

		if (n > least && len >= n && memcmp(guard->inside, path, n) == 0 && (path[n] == '\0' || path[n] == '/'))
			return guard;
	}
	return NULL;
}

const struct cordon_guard *cordon_plan_guard_of_name(const struct cordon_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];

		if (cordon_path_within(guard->inside, path) &&
		    (guard->state != CORDON_GUARD_ABSENT || cordon_streq(guard->inside, path) ||
		     cordon_path_within(guard->dir, path)))
			return guard;
	}
	return NULL;
}

bool cordon_plan_in_git_dir(const struct cordon_plan *plan, const char *path)
{
	static const char mark[] = "/commondir"; /* a default boundary of each git directory, and of nothing else */
	const size_t end = sizeof(mark) - 1;

	for (size_t i = 0; i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];
		const char *inside = guard->inside;
		size_t n;

		/* Most names are told apart by the last byte of their path. */
		if (!guard->by_default || guard->len < end - 1 || guard->path[guard->len - 1] != 'r')
			continue;
		n = strlen(inside);
		if (n <= end || !cordon_streq(inside + n - end, mark))
			continue;
		n -= end;
		if (strncmp(path, inside, n) == 0 && path[n] == '/' && strncmp(path + n, "/modules/", 9) != 0)
			return true;
	}
	return false;
}

static bool is_held(const struct cordon_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_held; i++)
		if (cordon_streq(plan->held[i].path, path))
			return true;
	return false;
}

/* Whether the mounts allow the agent to make entries at an inside path. */
static bool is_writable(const struct cordon_plan *plan, const char *path)
{
	const struct cordon_step *step = cordon_plan_covering(plan, path);

	return step && step->kind == CORDON_STEP_BIND && step->right == CORDON_RIGHT_WRITE;
}

/* Opens the host's directory behind an inside path, beneath the directory that the policy of the area judged. */
static int open_held(const struct cordon_area *area, const char *inside, int flags)
{
	const char *path = inside + strlen(area->at);

	return cordon_open_beneath(area->policy->root.fd, path + strspn(path, "/"), flags | O_DIRECTORY | O_CLOEXEC);
}

/*
 * Looks at a directory that is to be held. Returns 1, 0 when it is not there, or an error.
 *
 * INVARIANT: a directory that can't be read is held or refused, never left out. An agent has its owner's id: it closes a
 * directory in one run (chmod 311 .git) and opens it in the next one.
 */
static int look_at_held(const struct cordon_area *area, const char *path, struct stat *ret_st, int *ret_fd,
			struct cordon_error *err)
{
	autofd int fd = open_held(area, path, O_PATH), readable = -1;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0 || fstat(fd, ret_st) < 0)
		return cordon_fail_errno(err, fd < 0 ? fd : -errno, "cannot look at directory %s of a boundary", path);
	readable = ret_st->st_uid == geteuid() ? open_held(area, path, O_RDONLY) : -1;
	if (readable >= 0 || ret_st->st_uid != geteuid()) {
		*ret_fd = readable >= 0 ? cordon_steal_fd(&readable) : -1;
		return 1;
	}
	(void)cordon_fail_errno(err, readable,
				"cannot read directory %s, in which the name of a boundary stands or would appear",
				path);
	cordon_error_hint(err, "open it with chmod u+rx");
	return readable;
}

static struct cordon_open_dir *add_open_dir(struct cordon_plan *plan, size_t *cap)
{
	if (plan->n_open_dirs == *cap) {
		*cap = *cap ? 2 * *cap : 64;
		plan->open_dirs = cordon_arena_grow(plan->arena, plan->open_dirs, plan->n_open_dirs, *cap,
						    sizeof(*plan->open_dirs));
	}
	return plan->open_dirs ? &plan->open_dirs[plan->n_open_dirs] : NULL;
}

/* Finds the steps below a directory and returns how many there are. A result above BELOW_MAX means that they did not
 * fit. */
static size_t find_below(const struct cordon_plan *plan, const char *path, const struct cordon_step **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_steps && n <= BELOW_MAX; i++) {
		const struct cordon_step *s = &plan->steps[i];

		if (s->kind == CORDON_STEP_PIN || !cordon_path_within(s->path, path) || cordon_streq(s->path, path))
			continue;
		if (n < BELOW_MAX)
			ret[n] = s;
		n++;
	}
	return n;
}

/* Whether one of these steps has this path, which then has rights of its own. */
static bool is_mounted(const struct cordon_step *const *below, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (cordon_streq(below[i]->path, path))
			return true;
	return false;
}

/* Adds a subdirectory that contains no boundary. */
static int add_listed_dir(struct cordon_plan *plan, const struct cordon_held *held, const char *path, ino_t ino,
			  size_t *cap, struct cordon_error *err)
{
	struct cordon_open_dir *dir = add_open_dir(plan, cap);

	/* The number that a listing gives is that of the directory beneath a mount. When something is mounted on the
	 * directory, the comparison at the start fails and the hand makes the entries. */
	if (dir)
		*dir = (struct cordon_open_dir){ cordon_arena_strdup(plan->arena, path), held->dev, ino,
						 cordon_plan_in_git_dir(plan, path) };
	if (!dir || !dir->path)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	plan->n_open_dirs++;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t cordon_held_name_sum(const char *name)
{
	uint64_t sum = 0xcbf29ce484222325ULL;

	for (; *name; name++)
		sum = (sum ^ (unsigned char)*name) * 0x100000001b3ULL;
	return sum;
}

static uint64_t *keep_sorted(struct cordon_plan *plan, uint64_t *values, size_t n)
{
	uint64_t *kept = cordon_arena_grow(plan->arena, NULL, 0, n, sizeof(*values));

	qsort(values, n, sizeof(*values), by_number);
	if (kept)
		memcpy(kept, values, n * sizeof(*values));
	return kept;
}

static int keep_entries(struct cordon_plan *plan, struct cordon_held *held, uint64_t *numbers, uint64_t *names,
			size_t n, struct cordon_error *err)
{
	held->n_entries = n;
	if (!n)
		return 0;
	held->entries = keep_sorted(plan, numbers, n);
	held->names = keep_sorted(plan, names, n);
	return held->entries && held->names ? 0 : cordon_fail_errno(err, -ENOMEM, "plan");
}

/* Lists a held directory: the directories in it that contain no boundary, and, where the name of a boundary stands or would
 * appear in it, the numbers of all that is there. */
static int list_held(struct cordon_plan *plan, const struct cordon_area *area, struct cordon_held *held, size_t *cap,
		     struct cordon_error *err)
{
	autofd int fd = held->fd >= 0 || !held->ino ? held->fd : open_held(area, held->path, O_RDONLY);
	CORDON_UNCLEARED uint64_t numbers[CORDON_HELD_ENTRIES_MAX], names[CORDON_HELD_ENTRIES_MAX];
	CORDON_UNCLEARED struct cordon_listing listing;
	const struct dirent64 *entry;
	const struct cordon_step *below[BELOW_MAX];
	size_t listed = 0, entries = 0, n_below = find_below(plan, held->path, below);
	size_t most = held->boundary ? CORDON_HELD_ENTRIES_MAX : ENTRIES_MAX;
	int r = 0;

	held->fd = -1;
	if (fd < 0)
		return 0; /* we can't list it: the hand makes all entries below it */
	held->listed_ns = now_ns();
	cordon_listing_init(&listing, fd);
	for (; r == 0 && entries < most && (entry = cordon_listing_next(&listing)); entries++) {
		CORDON_UNCLEARED char path[CORDON_PATH_MAX];
		struct stat st;

		numbers[entries] = entry->d_ino;
		names[entries] = cordon_held_name_sum(entry->d_name);
		/* When too much is mounted in it, the hand makes all entries. */
		if (entries >= ENTRIES_MAX || listed == CORDON_OPEN_DIRS_MAX || n_below > CORDON_ARRAY_SIZE(below) ||
		    (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
			continue;
		if (entry->d_type == DT_UNKNOWN &&
		    (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)))
			continue;
		if (cordon_path_join(held->path, entry->d_name, path, sizeof(path)) < 0 || is_held(plan, path) ||
		    is_mounted(below, n_below, path))
			continue;
		r = add_listed_dir(plan, held, path, entry->d_ino, cap, err);
		listed++;
	}
	return r == 0 && held->boundary ? keep_entries(plan, held, numbers, names, entries, err) : r;
}

/* Finds out what kind of directory a held one is. */
static void describe_held(const struct cordon_plan *plan, struct cordon_held *held, const struct cordon_area *area)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	size_t n = strlen(held->path);

	for (size_t i = 0; !held->boundary && i < plan->n_guards; i++) {
		const char *inside = plan->guards[i].inside;

		held->boundary = cordon_streq(plan->guards[i].dir, held->path) ||
				 ((size_t)(strrchr(inside, '/') - inside) == n && memcmp(inside, held->path, n) == 0);
	}
	held->git = cordon_path_join(held->path, "x", path, sizeof(path)) == 0 && cordon_plan_in_git_dir(plan, path);
	held->all_known = plan->view && area == &plan->areas[0];
}

static int add_held(struct cordon_plan *plan, const struct cordon_held *held, size_t *cap)
{
	if (plan->n_held == *cap) {
		*cap = *cap ? 2 * *cap : 16;
		plan->held = cordon_arena_grow(plan->arena, plan->held, plan->n_held, *cap, sizeof(*plan->held));
		if (!plan->held)
			return -ENOMEM;
	}
	plan->held[plan->n_held++] = *held;
	return 0;
}

/* Holds the directory of a boundary and every directory above it in its area in which the agent may write. */
static int hold_upwards(struct cordon_plan *plan, const struct cordon_area *area, const char *dir, size_t *cap,
			struct cordon_error *err)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	size_t len = strlen(dir);

	memcpy(path, dir, len + 1);
	for (;;) {
		autofd int fd = -1;
		struct stat st;
		char *slash;
		int r;

		if (is_held(plan, path))
			return 0; /* then all directories above it are held as well */
		r = is_writable(plan, path) ? look_at_held(area, path, &st, &fd, err) : 0;
		if (r < 0)
			return r;
		if (r == 1) {
			struct cordon_held new = { .path = cordon_arena_strdup(plan->arena, path),
						   .dev = st.st_dev,
						   .ino = st.st_ino,
						   .fd = plan->n_held < KEPT_OPEN ? fd : -1 };

			if (!new.path || add_held(plan, &new, cap) < 0)
				return cordon_fail_errno(err, -ENOMEM, "plan");
			if (new.fd >= 0)
				fd = -1;
		}
		if (cordon_streq(path, area->at) || !(slash = strrchr(path, '/')))
			return 0;
		*(slash == path ? slash + 1 : slash) = '\0';
	}
}

static bool holds_held(const struct cordon_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_held; i++)
		if (cordon_path_within(plan->held[i].path, path))
			return true;
	return false;
}

/*
 * INVARIANT: no rule on a directory gives the right to make entries in a held directory below it. A Landlock rule
 * applies to everything below its directory, also across mounts. So a private /tmp that contains the workspace is held
 * as well, and so is a share that contains another one.
 */
static int mark_held(struct cordon_plan *plan, struct cordon_step *step, size_t *cap, struct cordon_error *err)
{
	if (step->right != CORDON_RIGHT_WRITE || !holds_held(plan, step->path))
		return 0;
	step->flags |= CORDON_STEP_HELD;
	if (is_held(plan, step->path))
		return 0;
	return add_held(plan, &(struct cordon_held){ .path = step->path, .fd = -1 }, cap) < 0
		       ? cordon_fail_errno(err, -ENOMEM, "plan")
		       : 0;
}

static const struct cordon_area *area_of(const struct cordon_plan *plan, const char *path)
{
	const struct cordon_area *best = &plan->areas[0];

	for (size_t i = 1; i < plan->n_areas; i++)
		if (cordon_path_within(path, plan->areas[i].at) &&
		    (!cordon_path_within(path, best->at) || strlen(plan->areas[i].at) > strlen(best->at)))
			best = &plan->areas[i];
	return best;
}

int cordon_plan_hold(struct cordon_plan *plan, struct cordon_error *err)
{
	size_t cap_held = 0, cap_dirs = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];

		if (guard->area == 0 && plan->lens)
			continue; /* the lens judges every name itself */
		r = hold_upwards(plan, &plan->areas[guard->area], guard->dir, &cap_held, err);
	}
	for (size_t i = 0; r == 0 && i < plan->n_held; i++) {
		const struct cordon_area *area = area_of(plan, plan->held[i].path);

		describe_held(plan, &plan->held[i], area);
		r = list_held(plan, area, &plan->held[i], &cap_dirs, err);
	}
	for (size_t i = 0; r == 0 && i < plan->n_steps; i++)
		r = mark_held(plan, &plan->steps[i], &cap_held, err);
	for (size_t i = 0; i < plan->n_held; i++)
		cordon_closep(&plan->held[i].fd);
	return r;
}
