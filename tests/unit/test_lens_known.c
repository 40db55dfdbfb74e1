/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what the lens takes for the run's own beside a boundary: clocks that are set, numbers that are used again, and the
 * memory of what was made. The clocks are the test's own. */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int64_t realtime, boottime;

static int test_clock(clockid_t clock, struct timespec *ret)
{
	int64_t now = clock == CLOCK_REALTIME ? realtime : boottime;

	*ret = (struct timespec){ .tv_sec = now / 1000000000, .tv_nsec = now % 1000000000 };
	return 0;
}

#define clock_gettime test_clock
#include "lens/known.c" /* NOLINT(bugprone-suspicious-include): so that it reads the clocks above */

#define SECOND INT64_C(1000000000)

static bool view;

bool lens_in_view(void)
{
	return view;
}

bool lens_id_equal(const struct lens_id *a, const struct lens_id *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->born == b->born;
}

struct lens_id lens_id_of(const struct statx *stx)
{
	return (struct lens_id){ .ino = stx->stx_ino,
				 .born = (int64_t)(stx->stx_btime.tv_sec * SECOND + stx->stx_btime.tv_nsec) };
}

int lens_stat(int fd, const char *name, struct statx *ret)
{
	int r = statx(fd, name, AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH), STATX_BASIC_STATS | STATX_BTIME, ret);

	return r < 0 ? -errno : 0;
}

enum lens_rights lens_judge(const struct lens *lens, const char *path)
{
	struct cordon_decision decision;

	cordon_policy_decide(lens->policy, path, CORDON_OP_WRITE, &decision);
	return decision.verdict == CORDON_DENY ? LENS_READ : LENS_WRITE;
}

bool lens_judge_forbidden(const struct lens *lens, const char *path)
{
	return lens_judge(lens, path) != LENS_WRITE;
}

bool lens_judge_uniform(const struct lens *lens, const char *path)
{
	(void)lens;
	(void)path;
	return true;
}

static struct lens lens;

static int begin(void **state)
{
	(void)state;
	memset(&lens, 0, sizeof(lens));
	lens.root_fd = -1;
	view = false;
	realtime = 1000 * SECOND;
	boottime = 100 * SECOND;
	assert_int_equal(cordon_policy_new("/usr", &lens.policy, NULL), 0);
	assert_int_equal(cordon_policy_add_protected(lens.policy, "held/name", "test", false, NULL), 0);
	lens_known_init(&lens);
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(lens.known.made);
	free(lens.known.names);
	cordon_policy_freep(&lens.policy);
	return 0;
}

static void pass(int64_t ns)
{
	realtime += ns;
	boottime += ns;
}

/* A file that is made now. */
static struct statx born(uint64_t ino)
{
	struct statx stx = { .stx_ino = ino };

	stx.stx_btime.tv_sec = stx.stx_ctime.tv_sec = realtime / SECOND;
	stx.stx_btime.tv_nsec = stx.stx_ctime.tv_nsec = (uint32_t)(realtime % SECOND);
	return stx;
}

static bool knows(const struct statx *stx)
{
	return lens_known(&lens, "held/x", stx);
}

static void what_was_there_is_known_and_what_came_later_is_not(void **state)
{
	struct statx old, new;

	(void)state;
	realtime -= 10 * SECOND;
	old = born(1);
	realtime += 10 * SECOND;
	pass(SECOND);
	new = born(2);
	assert_true(knows(&old));
	assert_false(knows(&new));
	assert_true(lens_known(&lens, "free/x", &new));
	assert_true(lens_known(&lens, "x", &new));
	lens_known_made(&lens, "held/x", &new);
	assert_true(knows(&new));
	pass(SECOND);
	new = born(2); /* the number is used again */
	assert_false(knows(&new));
	view = true;
	assert_true(knows(&new));
}

static void a_clock_that_is_set_back_makes_nothing_old(void **state)
{
	struct statx old, new;

	(void)state;
	realtime -= 3600 * SECOND;
	old = born(1);
	realtime += 3600 * SECOND;
	pass(SECOND);
	realtime -= 60 * SECOND;
	pass(SECOND);
	new = born(2);
	assert_false(knows(&new));
	assert_true(knows(&old));
	realtime += 60 * SECOND; /* and set right again */
	assert_false(knows(&new));
	realtime += 3600 * SECOND;
	new = born(3);
	assert_false(knows(&new));
	assert_true(knows(&old));
}

static void a_clock_that_runs_slower_changes_nothing(void **state)
{
	struct statx old = born(1);

	(void)state;
	pass(3600 * SECOND); /* both clocks are slowed down alike */
	assert_true(knows(&old));
	realtime -= SECOND / 2000; /* no step: two clocks are not read at one instant */
	assert_true(knows(&old));
}

static void without_times_of_birth_the_number_counts_once_it_was_seen(void **state)
{
	struct statx old, new;

	(void)state;
	old = born(1);
	old.stx_btime = (struct statx_timestamp){ 0 };
	pass(SECOND);
	new = born(2);
	new.stx_btime = (struct statx_timestamp){ 0 };
	assert_false(knows(&new));
	assert_true(knows(&old));
	old.stx_ctime = new.stx_ctime; /* the run changed it */
	assert_true(knows(&old));
}

static void the_memory_holds_what_was_made_and_forgets_what_is_gone(void **state)
{
	enum { N = 50000 };
	size_t expected = N;

	(void)state;
	pass(SECOND);
	for (uint64_t i = 1; i <= N; i++) {
		struct statx stx = born(i);

		lens_known_made(&lens, "held/x", &stx);
		lens_known_made(&lens, "held/x", &stx);
	}
	assert_int_equal(lens.known.n_made, N);
	for (uint64_t i = 1; i <= N; i += 3) {
		struct statx stx = born(i);
		struct lens_id id = lens_id_of(&stx);

		lens_known_drop(&lens, &id);
		lens_known_drop(&lens, &id);
		expected--;
	}
	assert_int_equal(lens.known.n_made, expected);
	for (uint64_t i = 1; i <= N; i++) {
		struct statx stx = born(i);

		assert_int_equal(knows(&stx), i % 3 != 1);
	}
	for (uint64_t i = 1; i <= 10; i++) {
		struct statx stx = born(i);

		lens_known_made(&lens, "free/x", &stx);
	}
	assert_int_equal(lens.known.n_made, expected);
}

static void temporary_names_of_a_boundary_are_found(void **state)
{
	static const char *const yes[] = { "held/name.lock", "held/.name.swp", "held/name~",  "held/name.tmp",
					   "held/name.tmpl", "held/name.17",   "held/#name#", "held/.#name" };
	static const char *const no[] = { "held/other.lock", "name.lock",  "held/name",	      "held/names.lock",
					  "held/name.bak",   "held/.lock", "held/name/.lock", "x" };
	char boundary[NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(yes); i++) {
		assert_true(lens_temp_of_boundary(&lens, -1, yes[i], boundary));
		assert_string_equal(boundary, "name");
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(no); i++)
		assert_false(lens_temp_of_boundary(&lens, -1, no[i], boundary));
}

static void make(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

/* Whether the file at the path is known. The files of the test are younger than the start by the test's clocks. */
static bool knows_at(const char *path)
{
	struct statx stx;

	assert_int_equal(lens_stat(lens.root_fd, path, &stx), 0);
	return lens_known(&lens, path, &stx);
}

static void a_name_that_was_there_stays_known_in_its_directory(void **state)
{
	char name[32];
	struct statx other;

	assert_int_equal(unit_setup(state), 0);
	lens.root_fd = open(unit_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(lens.root_fd >= 0);
	assert_int_equal(mkdirat(lens.root_fd, "held", 0700), 0);
	make(lens.root_fd, "held/there");
	make(lens.root_fd, "held/name.lock");
	lens_known_init(&lens);
	assert_int_equal(lens.known.n_names, 2);
	assert_int_equal(renameat(lens.root_fd, "held/there", lens.root_fd, "held/later"), 0);
	make(lens.root_fd, "held/there");
	assert_true(knows_at("held/there"));
	assert_false(knows_at("held/later"));
	assert_false(knows_at("held/name.lock"));
	assert_int_equal(lens_stat(lens.root_fd, "held/later", &other), 0);
	assert_false(lens_known(&lens, "held/there", &other)); /* another file than the one that stands there */
	/* Another directory at the same path. */
	assert_int_equal(renameat(lens.root_fd, "held", lens.root_fd, "old"), 0);
	assert_int_equal(mkdirat(lens.root_fd, "held", 0700), 0);
	make(lens.root_fd, "held/there");
	assert_false(knows_at("held/there"));
	/* A large directory is not read to its end. */
	for (int i = 0; i < LENS_LISTED_NAMES; i++) {
		(void)snprintf(name, sizeof(name), "held/%d", i);
		make(lens.root_fd, name);
	}
	free(lens.known.names);
	lens.known = (struct lens_known){ 0 };
	lens_known_init(&lens);
	assert_int_equal(lens.known.n_names, LENS_LISTED_NAMES);
	/* In a view nobody else makes files. */
	free(lens.known.names);
	lens.known = (struct lens_known){ 0 };
	view = true;
	lens_known_init(&lens);
	assert_int_equal(lens.known.n_names, 0);
	assert_int_equal(close(lens.root_fd), 0);
	assert_int_equal(unit_teardown(state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_there_is_known_and_what_came_later_is_not, begin, end),
		cmocka_unit_test_setup_teardown(a_clock_that_is_set_back_makes_nothing_old, begin, end),
		cmocka_unit_test_setup_teardown(a_clock_that_runs_slower_changes_nothing, begin, end),
		cmocka_unit_test_setup_teardown(without_times_of_birth_the_number_counts_once_it_was_seen, begin, end),
		cmocka_unit_test_setup_teardown(the_memory_holds_what_was_made_and_forgets_what_is_gone, begin, end),
		cmocka_unit_test_setup_teardown(a_name_that_was_there_stays_known_in_its_directory, begin, end),
		cmocka_unit_test_setup_teardown(temporary_names_of_a_boundary_are_found, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
