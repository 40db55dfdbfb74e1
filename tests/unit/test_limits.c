/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the limits with real control groups as root, and with resource limits in a user namespace as an ordinary
 * user. */
#include "unit.h"

#include <dirent.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/dirs.h"
#include "sandbox/host/limits.h"
#include "sandbox/inside/seccomp.h"

#define USER_ID 54321
#define MIB (1024 * 1024UL)

static struct cordon_limits_state run;

/* Uses a new run id each time, because tests run at the same time. */
static int prepare(struct cordon_limits limits, struct cordon_error *err)
{
	char id[CORDON_UUID_SIZE];

	assert_int_equal(cordon_uuid_new(id), 0);
	return cordon_limits_prepare(&limits, id, &run, err);
}

/* Prepares the limits, or skips the test when this account can't write any control group. */
static void prepare_in_cgroup(struct cordon_limits limits, enum cordon_limit which)
{
	struct cordon_error err = { 0 };
	bool cgroup;

	limits.best_effort = true;
	assert_int_equal(prepare(limits, &err), 0);
	cgroup = run.choice.by[which] == CORDON_LIMITS_BY_CGROUP1 || run.choice.by[which] == CORDON_LIMITS_BY_CGROUP2;
	if (!cgroup) {
		cordon_limits_remove(&run);
		cordon_limits_done(&run);
		print_message("# this account has no control group to write, the test is left out\n");
		skip();
	}
}

static void finish(void)
{
	static char paths[CORDON_LIMITS_GROUPS][CORDON_PATH_MAX];
	size_t n = run.n_groups;

	for (size_t i = 0; i < n; i++)
		memcpy(paths[i], run.groups[i].path, sizeof(paths[i]));
	assert_int_equal(cordon_limits_remove(&run), 0);
	assert_int_equal(cordon_limits_remove(&run), 0);
	cordon_limits_done(&run);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(access(paths[i], F_OK), -1);
}

/* Removes what a test has left, also when it failed. */
static int clean_up(void **state)
{
	(void)state;
	cordon_limits_remove(&run);
	cordon_limits_done(&run);
	return 0;
}

/* Starts the body in a child to which the limits apply before it does anything. */
static pid_t start(int (*body)(void))
{
	struct cordon_error err = { 0 };
	int gate[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(gate[1]);
		if (read(gate[0], &byte, 1) != 1 || cordon_limits_child(&run.choice) < 0)
			_exit(250);
		_exit(body());
	}
	close(gate[0]);
	assert_int_equal(cordon_limits_attach(&run, pid, &err), 0);
	assert_int_equal(write(gate[1], &byte, 1), 1);
	close(gate[1]);
	return pid;
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int code_of(pid_t pid)
{
	int status = status_of(pid);

	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Forks sleeping processes until fork() fails (at most 100), ends them, and returns how many there were. */
static int count_forks(void)
{
	pid_t pids[100];
	int n = 0, refused;

	for (; n < 100; n++) {
		pids[n] = fork();
		if (pids[n] < 0)
			break;
		if (pids[n] == 0)
			for (;;)
				pause();
	}
	refused = n < 100 && errno != EAGAIN ? 200 : n; /* 200: fork() failed for another reason than a limit */
	for (int i = 0; i < n; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	return refused;
}

/* Maps memory and writes to it; 0, or 1 when the kernel gives none. */
static int touch_memory(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
	return 0;
}

static int touch_a_little(void)
{
	return touch_memory(16 * MIB);
}

/* Four processes that use 24 MiB each; only their sum is too much. */
static int touch_together(void)
{
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			touch_memory(24 * MIB);
			for (;;)
				pause();
		}
	while (pause() < 0)
		;
	return 0;
}

static size_t open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void without_limits_nothing_is_opened(void **state)
{
	struct cordon_limits_state untouched = { 0 };
	size_t before = open_descriptors();
	struct cordon_error err = { 0 };
	struct cordon_limits_hits hits;

	(void)state;
	assert_int_equal(prepare((struct cordon_limits){ .pids_own = 1 }, &err), 0);
	assert_int_equal(run.n_groups, 0);
	assert_int_equal(run.cgroup_fd, -1);
	assert_int_equal(run.oom_fd, -1);
	assert_int_equal(open_descriptors(), before);
	for (int i = 0; i < CORDON_LIMIT__MAX; i++)
		assert_null(cordon_limits_mechanism(&run, (enum cordon_limit)i));
	cordon_limits_hit(&run, &hits);
	assert_false(hits.memory || hits.pids);
	finish();
	assert_int_equal(cordon_limits_remove(&untouched), 0);
	cordon_limits_done(&untouched);
	assert_true(fcntl(0, F_GETFD) >= 0);
}

static void values_out_of_range_are_refused(void **state)
{
	static const struct cordon_limits bad[] = {
		{ .memory_bytes = 4096 }, { .memory_bytes = UINT64_MAX }, { .pids = UINT32_MAX },
		{ .cpu_millis = 1 },	  { .cpu_millis = UINT32_MAX },
	};
	struct cordon_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(bad); i++) {
		assert_int_equal(prepare(bad[i], &err), -ERANGE);
		assert_int_equal(err.kind, CORDON_KIND_USAGE);
	}
	assert_int_equal(cordon_limits_prepare(&bad[0], "../x", &run, &err), -EINVAL);
}

static void fork_bomb_is_bounded_by_pids(void **state)
{
	struct cordon_limits_hits hits;

	(void)state;
	prepare_in_cgroup((struct cordon_limits){ .pids = 8, .pids_own = 1 }, CORDON_LIMIT_PIDS);
	cordon_limits_hit(&run, &hits);
	assert_false(hits.pids);
	assert_int_equal(code_of(start(count_forks)), 8); /* nine with itself; one is cordon's own */
	cordon_limits_hit(&run, &hits);
	assert_true(hits.pids);
	assert_false(hits.memory);
	finish();
}

static void memory_is_limited_for_the_sum_and_the_tree_ends(void **state)
{
	struct cordon_limits_hits hits;
	int status;
	pid_t pid;

	(void)state;
	prepare_in_cgroup((struct cordon_limits){ .memory_bytes = 64 * MIB }, CORDON_LIMIT_MEMORY);
	assert_int_equal(code_of(start(touch_a_little)), 0);
	cordon_limits_hit(&run, &hits);
	assert_false(hits.memory);

	pid = start(touch_together);
	if (run.choice.by[CORDON_LIMIT_MEMORY] == CORDON_LIMITS_BY_CGROUP1) {
		struct pollfd oom = { .fd = run.oom_fd, .events = POLLIN };

		assert_true(run.oom_fd >= 0);
		assert_int_equal(poll(&oom, 1, 20000), 1);
		kill(pid, SIGKILL); /* a supervisor does this; cordon_limits_remove() ends the rest */
	}
	status = status_of(pid); /* with v2 the kernel killed the whole group */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	cordon_limits_hit(&run, &hits);
	assert_true(hits.memory);
	finish();
}

static int spin(void)
{
	struct timespec now, begin;
	struct rusage usage;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 1000);
	getrusage(RUSAGE_SELF, &usage);
	/* In hundredths of a second. */
	return (int)((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 100 +
		     (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 10000);
}

static void cpu_quota_is_written_and_holds(void **state)
{
	char text[64];
	int fd;

	(void)state;
	prepare_in_cgroup((struct cordon_limits){ .cpu_millis = 1500 }, CORDON_LIMIT_CPUS);
	fd = run.groups[0].fd;
	if (run.choice.by[CORDON_LIMIT_CPUS] == CORDON_LIMITS_BY_CGROUP2) {
		assert_int_equal(cordon_cgroup_read(fd, "cpu.max", text, sizeof(text)), 0);
		assert_string_equal(text, "150000 100000\n");
	} else {
		assert_int_equal(cordon_cgroup_read(fd, "cpu.cfs_quota_us", text, sizeof(text)), 0);
		assert_string_equal(text, "150000\n");
	}
	finish();

	prepare_in_cgroup((struct cordon_limits){ .cpu_millis = 100 }, CORDON_LIMIT_CPUS);
	assert_in_range(code_of(start(spin)), 0, 25); /* a tenth of a second, and one or two time slices */
	finish();
}

static int sleep_on(void)
{
	while (pause() < 0)
		;
	return 0;
}

static void all_limits_together_are_held_and_removed_with_what_lives(void **state)
{
	pid_t pid;

	(void)state;
	prepare_in_cgroup((struct cordon_limits){ .memory_bytes = 64 * MIB, .pids = 8, .cpu_millis = 1000 },
			  CORDON_LIMIT_PIDS);
	for (int i = 0; i < CORDON_LIMIT__MAX; i++)
		assert_non_null(cordon_limits_mechanism(&run, (enum cordon_limit)i));
	pid = start(sleep_on);
	finish();
	assert_int_equal(status_of(pid), SIGKILL);
}

static void clone_can_start_in_the_group(void **state)
{
	struct cordon_error err = { 0 };
	struct clone_args {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
			set_tid_size, cgroup;
	} args = { .flags = 0x200000000ULL /* CLONE_INTO_CGROUP */, .exit_signal = SIGCHLD };
	pid_t pid;

	(void)state;
	prepare_in_cgroup((struct cordon_limits){ .pids = 4 }, CORDON_LIMIT_PIDS);
	if (run.cgroup_fd < 0) {
		/* v1 has no CLONE_INTO_CGROUP: cordon_limits_attach() must do it. */
		assert_int_equal(run.choice.by[CORDON_LIMIT_PIDS], CORDON_LIMITS_BY_CGROUP1);
		finish();
		return;
	}
	args.cgroup = (uint64_t)run.cgroup_fd;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(count_forks());
	assert_true(cordon_limits_attach(&run, pid, &err) == 0 || err.code == -ESRCH);
	assert_int_equal(code_of(pid), 3);
	finish();
}

/* A run for which only resource limits work: an ordinary user without control groups, in a user namespace. */
static int nproc_counts_the_run_only(void)
{
	struct cordon_error err = { 0 };
	pid_t others[10];
	int result;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(others); i++) {
		others[i] = fork();
		if (others[i] == 0)
			for (;;)
				pause();
	}
	result = prepare((struct cordon_limits){ .pids = 5, .user_namespace = true }, &err) < 0 ? 240 : 0;
	if (result == 0 && cordon_limits_mechanism(&run, CORDON_LIMIT_PIDS) &&
	    cordon_streq(cordon_limits_mechanism(&run, CORDON_LIMIT_PIDS), "rlimit")) {
		result = unshare(CLONE_NEWUSER) < 0 || cordon_limits_child(&run.choice) < 0 ? 241 : count_forks();
	} else if (result == 0) {
		result = 242;
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(others); i++) {
		kill(others[i], SIGKILL);
		waitpid(others[i], NULL, 0);
	}
	return result;
}

static int refused_without_user_namespace(void)
{
	struct cordon_error err = { 0 };

	if (prepare((struct cordon_limits){ .pids = 5 }, &err) != -EOPNOTSUPP)
		return 1;
	return err.kind == CORDON_KIND_KERNEL_UNSUPPORTED && *err.hint ? 0 : 2;
}

/* No limit on addresses: programs reserve far more than they use. */
static int memory_by_watcher(void)
{
	struct cordon_error err = { 0 };
	struct rlimit before, after;

	if (getrlimit(RLIMIT_AS, &before) < 0 || prepare((struct cordon_limits){ .memory_bytes = 64 * MIB }, &err) < 0 ||
	    !cordon_streq(cordon_limits_mechanism(&run, CORDON_LIMIT_MEMORY), "watcher") ||
	    cordon_limits_child(&run.choice) < 0 || getrlimit(RLIMIT_AS, &after) < 0)
		return 240;
	return after.rlim_cur == before.rlim_cur && touch_memory(128 * MIB) == 0 ? 0 : 1;
}

static int cpus_by_affinity(void)
{
	struct cordon_error err = { 0 };
	cpu_set_t set;
	int listener;

	if (prepare((struct cordon_limits){ .cpu_millis = 500 }, &err) < 0 ||
	    !cordon_streq(cordon_limits_mechanism(&run, CORDON_LIMIT_CPUS), "affinity") ||
	    cordon_limits_child(&run.choice) < 0)
		return 240;
	if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) != 1)
		return 1;
	/* The process can't undo it. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || cordon_seccomp_install(CORDON_SECCOMP_PIN_CPUS, &listener) < 0)
		return 241;
	memset(&set, 0xff, sizeof(set));
	return sched_setaffinity(0, sizeof(set), &set) < 0 && errno == EPERM ? 0 : 2;
}

/* Hides the control groups, wherever they are mounted, so that only the other mechanisms are left. */
static int hide_cgroups(void)
{
	static struct cordon_cgroup_trees trees;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	for (int i = 0; i < 1000; i++) {
		const char *top = "";

		if (cordon_cgroup_find(&trees) < 0)
			return -1;
		if (*trees.v2.dir)
			top = trees.v2.top;
		for (size_t c = 0; c < CORDON_CONTROLLER__MAX; c++)
			if (*trees.v1[c].dir)
				top = trees.v1[c].top;
		if (!*top)
			return 0;
		if (umount2(top, MNT_DETACH) < 0)
			return -1;
	}
	return -1;
}

static int become_user(void)
{
	return setgroups(0, NULL) < 0 || setresgid(USER_ID, USER_ID, USER_ID) < 0 ||
			       setresuid(USER_ID, USER_ID, USER_ID) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0
		       ? -1
		       : 0;
}

/* Runs the body in a child that has no control groups, as the given kind of account, and returns its exit code. */
static int without_cgroups(bool as_user, int (*body)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (getuid() == 0 && (hide_cgroups() < 0 || (as_user && become_user() < 0)))
			_exit(249);
		_exit(body());
	}
	return code_of(pid);
}

static void ordinary_user_gets_resource_limits(void **state)
{
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(prepare((struct cordon_limits){ .pids = 5, .best_effort = true }, &err), 0);
	if (getuid() != 0 && run.n_groups > 0) {
		print_message("# this account has control groups that only root could hide, the test is left out\n");
		skip();
	}
	finish();
	assert_int_equal(without_cgroups(true, nproc_counts_the_run_only), 4);
	assert_int_equal(without_cgroups(true, refused_without_user_namespace), 0);
	assert_int_equal(without_cgroups(true, memory_by_watcher), 0);
	assert_int_equal(without_cgroups(true, cpus_by_affinity), 0);
}

static int root_is_refused_pids(void)
{
	struct cordon_error err = { 0 };
	struct cordon_limits limits = { .pids = 5, .user_namespace = true };

	if (prepare(limits, &err) != -EOPNOTSUPP || err.kind != CORDON_KIND_KERNEL_UNSUPPORTED)
		return 1;
	limits.best_effort = true;
	return prepare(limits, &err) == 0 && !cordon_limits_mechanism(&run, CORDON_LIMIT_PIDS) ? 0 : 2;
}

static void root_without_cgroups_is_refused_a_process_limit(void **state)
{
	(void)state;
	if (getuid() != 0) {
		print_message("# only root can test what root is refused, the test is left out\n");
		skip();
	}
	assert_int_equal(without_cgroups(false, root_is_refused_pids), 0);
	assert_int_equal(without_cgroups(false, memory_by_watcher), 0);
	assert_int_equal(without_cgroups(false, cpus_by_affinity), 0);
}

/* The answer to gc's question about our run. Every other run counts as alive, so that gc does not touch those of this
 * machine. */
struct question {
	enum cordon_run_fate fate;
	int asked;
};

static enum cordon_run_fate fate_of(const char *run_id, void *data)
{
	struct question *question = data;

	if (!cordon_streq(run.name + strlen(CORDON_LIMITS_PREFIX), run_id))
		return CORDON_RUN_ALIVE;
	question->asked++;
	return question->fate;
}

static size_t collect(enum cordon_run_fate fate)
{
	struct question question = { .fate = fate };
	struct cordon_error err = { 0 };
	size_t removed = 99;

	assert_int_equal(cordon_limits_gc(fate_of, &question, &removed, &err), 0);
	assert_true(question.asked > 0);
	return removed;
}

static void gc_removes_what_is_gone_and_spares_the_rest(void **state)
{
	struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	char path[CORDON_PATH_MAX];
	pid_t pid;

	(void)state;
	prepare_in_cgroup((struct cordon_limits){ .pids = 5 }, CORDON_LIMIT_PIDS);
	assert_int_equal(cordon_copy(path, sizeof(path), run.groups[0].path, strlen(run.groups[0].path)), 0);
	pid = start(sleep_on);

	assert_int_equal(collect(CORDON_RUN_ALIVE), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_int_equal(collect(CORDON_RUN_UNKNOWN), 0); /* it has a process */
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(collect(CORDON_RUN_GONE), 1);
	assert_int_equal(status_of(pid), SIGKILL);
	assert_int_equal(access(path, F_OK), -1);
	cordon_limits_done(&run);

	prepare_in_cgroup((struct cordon_limits){ .pids = 5 }, CORDON_LIMIT_PIDS);
	assert_int_equal(collect(CORDON_RUN_UNKNOWN), 0); /* it is young: a run may be about to use it */
	assert_int_equal(utimensat(AT_FDCWD, run.groups[0].path, old, 0), 0);
	assert_int_equal(collect(CORDON_RUN_UNKNOWN), 1); /* it is empty and old */
	finish();
}

static void a_directory_of_another_file_system_is_no_cgroup(void **state)
{
	static const char name[] = CORDON_LIMITS_PREFIX "00000000-0000-4000-8000-000000000001";
	struct cordon_cgroup group;

	(void)state;
	unit_mkdir(name);
	assert_int_equal(cordon_cgroup_open(unit_dir, name, &group), -EMEDIUMTYPE);
	assert_int_equal(access(name, F_OK), 0);
}

static int clean_up_dir(void **state)
{
	clean_up(state);
	return unit_teardown(state);
}

#define limits_test(name) cmocka_unit_test_teardown(name, clean_up)

static void put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* What the kernel would show of a group, in files of our own. */
static void who_killed_for_memory_is_told_apart(void **state)
{
	static const struct {
		bool v2;
		const char *events, *most, *swap;
		bool memory, outer;
	} cases[] = {
		{ true, "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\n", "", "", true, false },
		{ true, "low 0\nhigh 0\nmax 9\noom 0\noom_kill 3\noom_group_kill 1\n", "", "", false, true },
		{ true, "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\n", "", "", false, false },
		{ false, "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "67108864\n", "0\n", true, false },
		{ false, "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "60000000\n", "67000000\n", true, false },
		{ false, "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "60000000\n", "61000000\n", false, true },
		{ false, "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "67108864\n", "67108864\n", false, false },
	};
	char path[] = "/tmp/cordon-unit-XXXXXX";
	int dir;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		struct cordon_limits_state fake = { .n_groups = 1, .oom_fd = -1 };
		struct cordon_limits_hits hits;

		fake.choice.limits.memory_bytes = 64 * MIB;
		fake.groups[0] = (struct cordon_cgroup){ .fd = dir, .v2 = cases[i].v2 };
		put(dir, cases[i].v2 ? "memory.events" : "memory.oom_control", cases[i].events);
		put(dir, "memory.max_usage_in_bytes", cases[i].most);
		put(dir, "memory.memsw.max_usage_in_bytes", cases[i].swap);
		cordon_limits_hit(&fake, &hits);
		assert_int_equal(hits.memory, cases[i].memory);
		assert_int_equal(hits.outer_memory, cases[i].outer);
	}
	close(dir);
	assert_int_equal(cordon_dirs_remove(AT_FDCWD, path, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		limits_test(without_limits_nothing_is_opened),
		limits_test(values_out_of_range_are_refused),
		limits_test(fork_bomb_is_bounded_by_pids),
		limits_test(memory_is_limited_for_the_sum_and_the_tree_ends),
		limits_test(cpu_quota_is_written_and_holds),
		limits_test(all_limits_together_are_held_and_removed_with_what_lives),
		limits_test(clone_can_start_in_the_group),
		limits_test(ordinary_user_gets_resource_limits),
		limits_test(root_without_cgroups_is_refused_a_process_limit),
		limits_test(gc_removes_what_is_gone_and_spares_the_rest),
		cmocka_unit_test_setup_teardown(a_directory_of_another_file_system_is_no_cgroup, unit_setup,
						clean_up_dir),
		cmocka_unit_test(who_killed_for_memory_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
