/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor chooses the mechanism for each limit of a run, and makes and removes the control groups of the run. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/path.h"
#include "base/setting.h"
#include "sandbox/host/limits.h"

#define CPU_PERIOD_US 100000
#define PORTION ((uint64_t)1 << 20) /* more than the kernel charges to a group at once before it kills */
#define LONG_BITS (8 * sizeof(unsigned long))

/* Sets of limits, as bits. */
#define BIT(limit) (1U << (limit))

static const enum cordon_controller controller_of[CORDON_LIMIT__MAX] = {
	[CORDON_LIMIT_MEMORY] = CORDON_CONTROLLER_MEMORY,
	[CORDON_LIMIT_PIDS] = CORDON_CONTROLLER_PIDS,
	[CORDON_LIMIT_CPUS] = CORDON_CONTROLLER_CPU,
};

static const cordon_setting setting_of[CORDON_LIMIT__MAX] = {
	[CORDON_LIMIT_MEMORY] = CORDON_SETTING_MEMORY,
	[CORDON_LIMIT_PIDS] = CORDON_SETTING_PIDS,
	[CORDON_LIMIT_CPUS] = CORDON_SETTING_CPUS,
};

static unsigned int wanted(const struct cordon_limits *limits)
{
	return (limits->memory_bytes ? BIT(CORDON_LIMIT_MEMORY) : 0) | (limits->pids ? BIT(CORDON_LIMIT_PIDS) : 0) |
	       (limits->cpu_millis ? BIT(CORDON_LIMIT_CPUS) : 0);
}

static int check_values(const struct cordon_limits *limits, const char *run_id, struct cordon_error *err)
{
	if (!cordon_uuid_valid(run_id))
		return cordon_fail(err, -EINVAL, CORDON_KIND_INTERNAL, "%s is no run id", run_id);
	if (limits->memory_bytes && (limits->memory_bytes < CORDON_LIMITS_MEMORY_MIN || limits->memory_bytes > INT64_MAX))
		return cordon_fail(err, -ERANGE, CORDON_KIND_USAGE, "a memory limit is at least 1M");
	if (limits->pids > INT32_MAX - limits->pids_own)
		return cordon_fail(err, -ERANGE, CORDON_KIND_USAGE, "a process limit is at most %d", INT32_MAX);
	if (limits->cpu_millis &&
	    (limits->cpu_millis < CORDON_LIMITS_CPU_MIN || limits->cpu_millis > CORDON_LIMITS_CPU_MAX))
		return cordon_fail(err, -ERANGE, CORDON_KIND_USAGE, "a CPU limit is between 0.01 and %d",
				   CORDON_LIMITS_CPU_MAX / 1000);
	return 0;
}

static int write_number(int fd, const char *file, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return cordon_cgroup_write(fd, file, text);
}

/* Sets one limit of a v2 group. */
static int set_v2(int fd, enum cordon_limit which, const struct cordon_limits *limits)
{
	char text[64];
	int r;

	switch (which) {
	case CORDON_LIMIT_MEMORY:
		r = write_number(fd, "memory.max", limits->memory_bytes);
		if (r < 0)
			return r;
		/* Kernels without swap do not have this file. */
		r = cordon_cgroup_write(fd, "memory.swap.max", "0");
		if (r < 0 && r != -ENOENT)
			return r;
		return cordon_cgroup_write(fd, "memory.oom.group", "1");
	case CORDON_LIMIT_PIDS:
		return write_number(fd, "pids.max", (uint64_t)limits->pids + limits->pids_own);
	case CORDON_LIMIT_CPUS:
		snprintf(text, sizeof(text), "%llu %d", (unsigned long long)limits->cpu_millis * (CPU_PERIOD_US / 1000),
			 CPU_PERIOD_US);
		return cordon_cgroup_write(fd, "cpu.max", text);
	case CORDON_LIMIT__MAX:
		break;
	}
	return -EINVAL;
}

/* An event descriptor that becomes readable when the group runs out of memory, or -1. */
static int watch_oom_v1(int fd)
{
	autofd int control = openat(fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	autofd int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	char text[32];

	if (control < 0 || event < 0)
		return -1;
	snprintf(text, sizeof(text), "%d %d", event, control);
	return cordon_cgroup_write(fd, "cgroup.event_control", text) < 0 ? -1 : cordon_steal_fd(&event);
}

static int set_v1(int fd, enum cordon_limit which, const struct cordon_limits *limits)
{
	int r;

	switch (which) {
	case CORDON_LIMIT_MEMORY:
		r = write_number(fd, "memory.limit_in_bytes", limits->memory_bytes);
		if (r < 0)
			return r;
		r = write_number(fd, "memory.memsw.limit_in_bytes", limits->memory_bytes);
		/* This host does not count swap: then at least nothing of the run should be swapped. */
		if (r < 0)
			r = cordon_cgroup_write(fd, "memory.swappiness", "0");
		return r;
	case CORDON_LIMIT_PIDS:
		return write_number(fd, "pids.max", (uint64_t)limits->pids + limits->pids_own);
	case CORDON_LIMIT_CPUS:
		r = write_number(fd, "cpu.cfs_period_us", CPU_PERIOD_US);
		if (r < 0)
			return r;
		return write_number(fd, "cpu.cfs_quota_us", (uint64_t)limits->cpu_millis * (CPU_PERIOD_US / 1000));
	case CORDON_LIMIT__MAX:
		break;
	}
	return -EINVAL;
}

static unsigned int controllers_in(int fd, const char *file, unsigned int want)
{
	char text[1024];
	unsigned int have = 0;

	if (cordon_cgroup_read(fd, file, text, sizeof(text)) < 0)
		return 0;
	for (size_t i = 0; i < CORDON_LIMIT__MAX; i++)
		if ((want & BIT(i)) && cordon_cgroup_has_word(text, cordon_controller_names[controller_of[i]]))
			have |= BIT(i);
	return have;
}

/* A text such as "+memory +pids", for subtree_control. */
static void controllers_text(char sign, unsigned int set, char *ret, size_t size)
{
	size_t len = 0;

	*ret = '\0';
	for (size_t i = 0; i < CORDON_LIMIT__MAX; i++)
		if (set & BIT(i))
			len += (size_t)snprintf(ret + len, size - len, "%s%c%s", len ? " " : "", sign,
						cordon_controller_names[controller_of[i]]);
}

static void move_back(struct cordon_limits_state *state, unsigned int set)
{
	char text[64];

	controllers_text('-', set, text, sizeof(text));
	cordon_cgroup_move_back(state->own_group_fd, text);
	cordon_closep(&state->own_group_fd);
}

/*
 * Whether a group may enable controllers for its children. A group that contains processes must not, except the root
 * group of the machine. The kernel refuses it for memory, but for cpu and pids it makes the group a threaded one, whose
 * children accept no process.
 */
static bool may_enable_controllers(struct cordon_limits_state *state, int fd, bool may_move)
{
	char text[16];

	if (faccessat(fd, "cgroup.type", F_OK, 0) < 0)
		return true; /* only the root group has no such file */
	if (cordon_cgroup_read(fd, "cgroup.procs", text, sizeof(text)) < 0)
		return false;
	if (!*text)
		return true;
	if (!may_move || state->own_group_fd >= 0 || cordon_cgroup_move_to_leaf(fd) < 0)
		return false;
	state->own_group_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return state->own_group_fd >= 0;
}

/* Enables the controllers of a v2 group for its children. Returns those of `want` that are enabled. */
static unsigned int enable_controllers(struct cordon_limits_state *state, int fd, bool may_move, unsigned int want)
{
	unsigned int missing = controllers_in(fd, "cgroup.controllers", want) &
			       ~controllers_in(fd, "cgroup.subtree_control", want);
	char text[64];

	if (missing) {
		controllers_text('+', missing, text, sizeof(text));
		if (!may_enable_controllers(state, fd, may_move) ||
		    cordon_cgroup_write(fd, "cgroup.subtree_control", text) < 0)
			return 0;
	}
	return controllers_in(fd, "cgroup.subtree_control", want);
}

/* False for a child of a threaded group, which accepts no process. */
static bool is_domain(int fd)
{
	char text[32];

	return cordon_cgroup_read(fd, "cgroup.type", text, sizeof(text)) == 0 && cordon_streq(text, "domain\n");
}

static bool set_all_v2(int fd, unsigned int want, const struct cordon_limits *limits)
{
	for (size_t i = 0; i < CORDON_LIMIT__MAX; i++)
		if ((want & BIT(i)) && set_v2(fd, (enum cordon_limit)i, limits) < 0)
			return false;
	return is_domain(fd);
}

/* Makes the group below `dir` if that enables all of `want`; returns the limits that the group enforces, 0 for none. */
static unsigned int make_v2(struct cordon_limits_state *state, const char *dir, bool may_move, unsigned int want)
{
	autofd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct cordon_cgroup *group = &state->groups[state->n_groups];

	/* Moving a process needs the right to write the list of processes of the common ancestor. */
	if (fd < 0 || faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0 ||
	    enable_controllers(state, fd, may_move, want) != want)
		return 0;
	if (cordon_cgroup_make(dir, state->name, true, group) < 0)
		return 0;
	if (!set_all_v2(group->fd, want, &state->choice.limits)) {
		cordon_cgroup_remove(group, state->name);
		cordon_cgroup_done(group);
		return 0;
	}
	state->n_groups++;
	state->cgroup_fd = group->fd;
	return want;
}

/* Tries our own group and its ancestors, and takes the first that works. With `partial`, a group that has only some of
 * the wanted controllers is enough. */
static unsigned int try_ancestors_v2(struct cordon_limits_state *state, const struct cordon_cgroup_tree *tree,
				     bool may_move, bool partial, unsigned int want)
{
	char dir[CORDON_PATH_MAX];

	if (cordon_copy(dir, sizeof(dir), tree->dir, strlen(tree->dir)) < 0)
		return 0;
	for (int level = 0; level < CORDON_CGROUP_LEVELS && *dir; level++) {
		autofd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		unsigned int here = fd < 0 ? 0 : controllers_in(fd, "cgroup.controllers", want);
		unsigned int got = 0;

		if (here && (partial || here == want))
			got = make_v2(state, dir, may_move && level == 0, here);
		if (got)
			return got;
		if (cordon_streq(dir, tree->top))
			break;
		*strrchr(dir, '/') = '\0';
	}
	return 0;
}

/* Looks for a group with all wanted controllers, if necessary by moving into a group below our own; else takes what
 * there is. */
static unsigned int use_v2(struct cordon_limits_state *state, const struct cordon_cgroup_tree *tree, unsigned int want)
{
	unsigned int got = try_ancestors_v2(state, tree, false, false, want);

	if (!got)
		got = try_ancestors_v2(state, tree, true, false, want);
	if (!got)
		got = try_ancestors_v2(state, tree, true, true, want);
	if (!got && state->own_group_fd >= 0)
		move_back(state, want);
	return got;
}

static struct cordon_cgroup *group_v1(struct cordon_limits_state *state, const struct cordon_cgroup_tree *tree)
{
	char path[CORDON_PATH_MAX];
	struct cordon_cgroup *group = &state->groups[state->n_groups];

	if (!*tree->dir || cordon_path_join(tree->dir, state->name, path, sizeof(path)) < 0)
		return NULL;
	/* Controllers may share a hierarchy. */
	for (size_t i = 0; i < state->n_groups; i++)
		if (!state->groups[i].v2 && cordon_streq(state->groups[i].path, path))
			return &state->groups[i];
	if (cordon_cgroup_make(tree->dir, state->name, false, group) < 0)
		return NULL;
	state->n_groups++;
	return group;
}

static bool use_v1(struct cordon_limits_state *state, const struct cordon_cgroup_tree *tree, enum cordon_limit which)
{
	size_t before = state->n_groups;
	struct cordon_cgroup *group = group_v1(state, tree);

	if (!group)
		return false;
	if (set_v1(group->fd, which, &state->choice.limits) < 0) {
		if (state->n_groups > before) {
			cordon_cgroup_remove(group, state->name);
			cordon_cgroup_done(group);
			state->n_groups = before;
		}
		return false;
	}
	if (which == CORDON_LIMIT_MEMORY)
		state->oom_fd = watch_oom_v1(group->fd);
	return true;
}

static void use_cgroups(struct cordon_limits_state *state, unsigned int want)
{
	autofree struct cordon_cgroup_trees *trees = malloc(sizeof(*trees));
	unsigned int got = 0;

	if (!trees || cordon_cgroup_find(trees) < 0)
		return;
	if (*trees->v2.dir)
		got = use_v2(state, &trees->v2, want);
	for (size_t i = 0; i < CORDON_LIMIT__MAX; i++) {
		if (got & BIT(i))
			state->choice.by[i] = CORDON_LIMITS_BY_CGROUP2;
		else if ((want & BIT(i)) && use_v1(state, &trees->v1[controller_of[i]], (enum cordon_limit)i))
			state->choice.by[i] = CORDON_LIMITS_BY_CGROUP1;
	}
}

/*
 * Tests whether RLIMIT_NPROC counts the processes of one user namespace, and limits us. In a new namespace with a limit
 * of two, the first fork succeeds and the second fails. Before Linux 5.14 the first fails, because the user already has
 * this process and the probe; for the host's root neither fails.
 */
static int probe_nproc(void)
{
	struct rlimit two = { 2, 2 };
	long first, second;

	if (unshare(CLONE_NEWUSER) < 0 || setrlimit(RLIMIT_NPROC, &two) < 0)
		return 1;
	first = syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (first == 0) {
		second = syscall(SYS_clone, 0, 0, 0, 0, 0);
		syscall(SYS_exit_group, second < 0 && errno == EAGAIN ? 0 : 1);
	}
	if (first > 0) {
		int status;

		if (waitpid((pid_t)first, &status, __WALL) == first && WIFEXITED(status))
			return WEXITSTATUS(status);
	}
	return 1;
}

static bool nproc_holds(void)
{
	/* The child has no exit signal, so that the caller's handling of SIGCHLD never sees it. */
	pid_t pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
	int status;

	if (pid == 0)
		syscall(SYS_exit_group, probe_nproc());
	while (pid > 0 && waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return false;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Chooses ceil(N) of the CPUs that we may use. Where it starts depends on the run's name, so that runs do not all get
 * the same. */
static int choose_cpus(struct cordon_limits_state *state)
{
	size_t want = (state->choice.limits.cpu_millis + 999) / 1000, have = 0, skip, start = 0;
	unsigned long usable[CORDON_ARRAY_SIZE(state->choice.cpu_mask)] = { 0 };
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof(usable), usable);

	if (bytes <= 0)
		return bytes < 0 ? -errno : -EIO;
	for (size_t cpu = 0; cpu < CORDON_LIMITS_CPUS; cpu++)
		have += (usable[cpu / LONG_BITS] >> (cpu % LONG_BITS)) & 1;
	if (want > have)
		want = have;
	for (const char *c = state->name; *c; c++)
		start = start * 31 + (unsigned char)*c;
	skip = have ? start % have : 0;
	state->choice.cpu_mask_bytes = (size_t)bytes;
	/* Go round twice: the second round takes what the first has skipped. */
	for (size_t i = 0; i < 2 * (size_t)CORDON_LIMITS_CPUS && want > 0; i++) {
		size_t cpu = i % CORDON_LIMITS_CPUS;

		if (!((usable[cpu / LONG_BITS] >> (cpu % LONG_BITS)) & 1))
			continue;
		if (skip > 0) {
			skip--;
			continue;
		}
		state->choice.cpu_mask[cpu / LONG_BITS] |= 1UL << (cpu % LONG_BITS);
		want--;
	}
	return 0;
}

static enum cordon_limits_by fall_back(struct cordon_limits_state *state, enum cordon_limit which)
{
	switch (which) {
	case CORDON_LIMIT_MEMORY:
		return CORDON_LIMITS_BY_WATCHER;
	case CORDON_LIMIT_PIDS:
		return state->choice.limits.user_namespace && nproc_holds() ? CORDON_LIMITS_BY_RLIMIT
									    : CORDON_LIMITS_BY_NOTHING;
	case CORDON_LIMIT_CPUS:
		return choose_cpus(state) == 0 ? CORDON_LIMITS_BY_AFFINITY : CORDON_LIMITS_BY_NOTHING;
	case CORDON_LIMIT__MAX:
		break;
	}
	return CORDON_LIMITS_BY_NOTHING;
}

int cordon_limits_prepare(const struct cordon_limits *limits, const char *run_id, struct cordon_limits_state *ret,
			  struct cordon_error *err)
{
	autofree struct cordon_limits_state *state = calloc(1, sizeof(*state));
	unsigned int want = wanted(limits);
	int r = check_values(limits, run_id, err);

	if (r < 0)
		return r;
	if (!state)
		return cordon_fail_errno(err, -ENOMEM, "cannot prepare the limits");
	state->choice.limits = *limits;
	state->cgroup_fd = state->oom_fd = state->own_group_fd = -1;
	snprintf(state->name, sizeof(state->name), CORDON_LIMITS_PREFIX "%s", run_id);
	if (want)
		use_cgroups(state, want);
	for (size_t i = 0; i < CORDON_LIMIT__MAX; i++) {
		if (!(want & BIT(i)) || state->choice.by[i] != CORDON_LIMITS_BY_NOTHING)
			continue;
		state->choice.by[i] = fall_back(state, (enum cordon_limit)i);
		if (state->choice.by[i] == CORDON_LIMITS_BY_NOTHING && !limits->best_effort) {
			cordon_limits_remove(state);
			cordon_limits_done(state);
			r = cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
					"nothing here can hold %s: no writable cgroup with the %s controller, and no "
					"resource limit that would bind this run",
					cordon_setting_name(setting_of[i]), cordon_controller_names[controller_of[i]]);
			cordon_error_hint(err,
					  "start it through systemd-run --scope -p Delegate=yes (with --user as an "
					  "ordinary user), or accept the loss with %s",
					  cordon_setting_name(CORDON_SETTING_BEST_EFFORT));
			return r;
		}
	}
	*ret = *state;
	return 0;
}

int cordon_limits_attach(const struct cordon_limits_state *state, pid_t pid, struct cordon_error *err)
{
	for (size_t i = 0; i < state->n_groups; i++) {
		int r = write_number(state->groups[i].fd, "cgroup.procs", (uint64_t)pid);

		if (r < 0)
			return cordon_fail_errno(err, r, "cannot put the run into %s", state->groups[i].path);
	}
	return 0;
}

const char *cordon_limits_mechanism(const struct cordon_limits_state *state, enum cordon_limit which)
{
	switch (state->choice.by[which]) {
	case CORDON_LIMITS_BY_CGROUP2:
		return "cgroup2";
	case CORDON_LIMITS_BY_CGROUP1:
		return "cgroup1";
	case CORDON_LIMITS_BY_RLIMIT:
		return "rlimit";
	case CORDON_LIMITS_BY_WATCHER:
		return "watcher";
	case CORDON_LIMITS_BY_AFFINITY:
		return "affinity";
	case CORDON_LIMITS_BY_NOTHING:
		break;
	}
	return NULL;
}

static uint64_t number_in(int fd, const char *file)
{
	char text[32];

	return cordon_cgroup_read(fd, file, text, sizeof(text)) < 0 ? 0 : strtoull(text, NULL, 10);
}

/* v1: whether the group was ever at its own limit. The kernel tells of memory that ran out in a group around in the same
 * way, and counts processes that it killed for that as well. It takes memory in portions, of which the last may not fit. */
static bool was_at_limit_v1(const struct cordon_limits_state *state, int fd)
{
	uint64_t most = number_in(fd, "memory.max_usage_in_bytes"),
		 with_swap = number_in(fd, "memory.memsw.max_usage_in_bytes");

	return state->choice.limits.memory_bytes &&
	       (most > with_swap ? most : with_swap) + PORTION >= state->choice.limits.memory_bytes;
}

bool cordon_limits_ran_out(const struct cordon_limits_state *state)
{
	uint64_t times;
	ssize_t n;

	if (state->n_groups == 0 || state->oom_fd < 0)
		return false;
	do
		n = read(state->oom_fd, &times, sizeof(times));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return false;
	for (size_t i = 0; i < state->n_groups; i++)
		if (!state->groups[i].v2 && was_at_limit_v1(state, state->groups[i].fd))
			return true;
	return false;
}

void cordon_limits_hit(const struct cordon_limits_state *state, struct cordon_limits_hits *ret_hits)
{
	char text[4096];

	/* v1 reports before it kills: if the tree was ended at once, the count below shows no kill. */
	*ret_hits = (struct cordon_limits_hits){ .memory = cordon_limits_ran_out(state) };
	for (size_t i = 0; i < state->n_groups; i++) {
		int fd = state->groups[i].fd;
		bool v2 = state->groups[i].v2;

		/* A group has these files only with the controller. "oom" counts only what happened at the group's own
		 * limit, "oom_kill" every process in it that was killed. */
		if (cordon_cgroup_read(fd, v2 ? "memory.events" : "memory.oom_control", text, sizeof(text)) == 0 &&
		    cordon_cgroup_value(text, "oom_kill") > 0) {
			bool own = v2 ? cordon_cgroup_value(text, "oom") > 0 : was_at_limit_v1(state, fd);

			ret_hits->memory |= own;
			ret_hits->outer_memory |= !own;
		}
		if (cordon_cgroup_read(fd, "pids.events", text, sizeof(text)) == 0 &&
		    cordon_cgroup_value(text, "max") > 0)
			ret_hits->pids = true;
	}
}

int cordon_limits_remove(struct cordon_limits_state *state)
{
	int first = 0;

	for (size_t i = 0; i < state->n_groups; i++) {
		int r = cordon_cgroup_remove(&state->groups[i], state->name);

		if (r < 0 && first == 0)
			first = r;
	}
	if (first == 0 && state->n_groups > 0 && state->own_group_fd >= 0) {
		unsigned int mine = 0;

		for (size_t i = 0; i < CORDON_LIMIT__MAX; i++)
			if (state->choice.by[i] == CORDON_LIMITS_BY_CGROUP2)
				mine |= BIT(i);
		move_back(state, mine);
	}
	return first;
}

void cordon_limits_done(struct cordon_limits_state *state)
{
	for (size_t i = 0; i < state->n_groups; i++)
		cordon_cgroup_done(&state->groups[i]);
	if (state->n_groups > 0) {
		cordon_closep(&state->oom_fd);
		cordon_closep(&state->own_group_fd);
	}
	state->n_groups = 0;
	state->cgroup_fd = -1;
}
