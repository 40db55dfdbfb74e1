/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what counts as the run's in a directory of a boundary: number and time of birth must both fit, whatever numbers the
 * file system uses again and whatever the clock says. */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "sandbox/inside/made.h"

#define STARTED 1000000000000000000ULL /* when the directory was listed */
#define BEFORE (STARTED - 5)
#define AFTER (STARTED + 5)

static uint64_t numbers[] = { 10, 20, 30 };
static struct cordon_held held[] = {
	{ .path = "/w", .boundary = true, .entries = numbers, .n_entries = 3, .listed_ns = STARTED },
};
static struct cordon_plan plan = { .held = held, .n_held = 1 };
static struct cordon_hand_memory *memory;

static int begin(void **state)
{
	memory = calloc(1, sizeof(*memory));
	held[0].n_entries = CORDON_ARRAY_SIZE(numbers);
	return memory ? unit_setup(state) : -1;
}

static int end(void **state)
{
	free(memory);
	return unit_teardown(state);
}

static bool knows(const char *path, uint64_t ino, uint64_t birth)
{
	static struct cordon_spot spot;

	spot = (struct cordon_spot){
		.class = CORDON_SPOT_HELD, .boundary = true, .exists = true, .ino = ino, .birth = birth
	};
	assert_true(strlen(path) < sizeof(spot.path));
	memcpy(spot.path, path, strlen(path) + 1);
	return cordon_made_knows(memory, &plan, &spot);
}

static void what_was_there_has_a_listed_number_and_was_born_before(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(numbers); i++) {
		assert_true(knows("/w/a", numbers[i], BEFORE));
		assert_true(knows("/w/a", numbers[i], STARTED));
		/* The number is used again. */
		assert_false(knows("/w/a", numbers[i], AFTER));
	}
	/* The clock was set back: the host's new file seems older than the run. */
	assert_false(knows("/w/a", 11, BEFORE));
	assert_false(knows("/w/a", 0, BEFORE));
	assert_false(knows("/w/a", UINT64_MAX, 1));
	/* Where a file system has no time of birth, the number alone counts. */
	assert_true(knows("/w/a", 20, 0));
	assert_false(knows("/w/a", 21, 0));
}

static void what_stands_at_a_name_that_was_there_is_known_but_no_temporary_name_of_a_boundary(void **state)
{
	static uint64_t names[1];
	static const struct cordon_guard guard;
	static struct cordon_spot spot;

	(void)state;
	names[0] = cordon_held_name_sum("index");
	held[0].names = names;
	held[0].n_entries = 1;
	spot = (struct cordon_spot){ .class = CORDON_SPOT_HELD,
				     .boundary = true,
				     .exists = true,
				     .ino = 77,
				     .birth = AFTER,
				     .name = "index",
				     .path = "/w/index" };
	assert_true(cordon_made_knows(memory, &plan, &spot));
	spot.temp = &guard;
	assert_false(cordon_made_knows(memory, &plan, &spot));
	spot.temp = NULL;
	memcpy(spot.name, "other", 6);
	memcpy(spot.path, "/w/other", 9);
	assert_false(cordon_made_knows(memory, &plan, &spot));
	held[0].names = NULL;
}

static void only_the_listed_directory_itself_was_listed(void **state)
{
	(void)state;
	assert_false(knows("/w/new/a", 20, BEFORE));
	assert_false(knows("", 20, BEFORE));
	assert_false(knows("/elsewhere/a", 20, BEFORE));
}

static void where_a_directory_was_too_large_the_time_alone_counts(void **state)
{
	static uint64_t many[CORDON_HELD_ENTRIES_MAX];

	(void)state;
	for (size_t i = 0; i < CORDON_HELD_ENTRIES_MAX; i++)
		many[i] = i + 1;
	held[0].entries = many;
	held[0].n_entries = CORDON_HELD_ENTRIES_MAX;
	assert_true(knows("/w/a", CORDON_HELD_ENTRIES_MAX + 7, BEFORE));
	assert_false(knows("/w/a", CORDON_HELD_ENTRIES_MAX + 7, AFTER));
	assert_false(knows("/w/a", CORDON_HELD_ENTRIES_MAX + 7, 0));
	held[0].entries = numbers;
}

static void what_the_run_made_is_known_by_number_and_birth(void **state)
{
	struct cordon_spot spot = { .class = CORDON_SPOT_HELD, .boundary = true, .exists = true, .path = "/w/mine" };
	struct statx st;
	int fd;

	(void)state;
	unit_write("mine", "x");
	fd = open("mine", O_PATH | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st), 0);
	spot.ino = st.stx_ino;
	spot.birth = cordon_spot_birth(&st);
	spot.dir_fd = fd; /* with an empty name: the file itself */
	assert_false(cordon_made_knows(memory, &plan, &spot));
	cordon_made_add(memory, fd, "");
	cordon_made_add(memory, AT_FDCWD, "mine");
	assert_int_equal(memory->n_made, 1);
	assert_true(cordon_made_knows(memory, &plan, &spot));
	/* The host's file that has its number by now, born later, or earlier by a clock that was set back. */
	spot.birth++;
	assert_false(cordon_made_knows(memory, &plan, &spot));
	spot.birth -= 2;
	assert_false(cordon_made_knows(memory, &plan, &spot));
	cordon_made_add(memory, AT_FDCWD, "missing");
	assert_int_equal(memory->n_made, 1);
	close(fd);
}

static void a_file_with_the_number_and_the_birth_of_a_removed_one_is_another(void **state)
{
	struct cordon_spot spot = {
		.class = CORDON_SPOT_HELD, .boundary = true, .exists = true, .path = "/w/mine", .name = "mine"
	};
	struct statx first, second;

	(void)state;
	spot.dir_fd = AT_FDCWD;
	for (int i = 0; i < 20; i++) {
		unit_write("mine", "x");
		cordon_made_add(memory, AT_FDCWD, "mine");
		assert_int_equal(statx(AT_FDCWD, "mine", 0, STATX_INO | STATX_BTIME, &first), 0);
		assert_int_equal(unlink("mine"), 0);
		unit_write("mine", "x");
		assert_int_equal(statx(AT_FDCWD, "mine", 0, STATX_INO | STATX_BTIME, &second), 0);
		/* The file system may not use the number again; then there is less to tell apart. */
		spot.ino = second.stx_ino;
		spot.birth = cordon_spot_birth(&first);
		assert_false(cordon_made_knows(memory, &plan, &spot));
		assert_int_equal(unlink("mine"), 0);
	}
}

static void what_is_forgotten_makes_room_and_hides_no_other(void **state)
{
	static struct cordon_spot spots[600];
	struct statx st;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(spots); i++) {
		spots[i] = (struct cordon_spot){
			.class = CORDON_SPOT_HELD, .boundary = true, .exists = true, .path = "/w/mine", .dir_fd = AT_FDCWD
		};
		snprintf(spots[i].name, sizeof(spots[i].name), "f%zu", i);
		unit_write(spots[i].name, "x");
		cordon_made_add(memory, AT_FDCWD, spots[i].name);
		assert_int_equal(statx(AT_FDCWD, spots[i].name, 0, STATX_INO | STATX_BTIME, &st), 0);
		spots[i].ino = st.stx_ino;
		spots[i].birth = cordon_spot_birth(&st);
	}
	assert_int_equal(memory->n_made, CORDON_ARRAY_SIZE(spots));
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(spots); i += 2)
		cordon_made_forget(memory, spots[i].ino);
	assert_int_equal(memory->n_made, CORDON_ARRAY_SIZE(spots) / 2);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(spots); i++)
		assert_int_equal(cordon_made_knows(memory, &plan, &spots[i]), i % 2);
	cordon_made_forget(memory, UINT64_MAX);
	for (size_t i = 1; i < CORDON_ARRAY_SIZE(spots); i += 2)
		cordon_made_forget(memory, spots[i].ino);
	assert_int_equal(memory->n_made, 0);
	for (size_t i = 0; i < CORDON_MADE_MAX; i++)
		assert_int_equal(memory->made[i].ino, 0);
}

static void a_full_table_forgets_nothing_and_learns_nothing(void **state)
{
	(void)state;
	memory->n_made = CORDON_MADE_MAX / 4 * 3;
	unit_write("late", "x");
	cordon_made_add(memory, AT_FDCWD, "late");
	assert_int_equal(memory->n_made, CORDON_MADE_MAX / 4 * 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_there_has_a_listed_number_and_was_born_before, begin, end),
		cmocka_unit_test_setup_teardown(
			what_stands_at_a_name_that_was_there_is_known_but_no_temporary_name_of_a_boundary, begin, end),
		cmocka_unit_test_setup_teardown(only_the_listed_directory_itself_was_listed, begin, end),
		cmocka_unit_test_setup_teardown(where_a_directory_was_too_large_the_time_alone_counts, begin, end),
		cmocka_unit_test_setup_teardown(what_the_run_made_is_known_by_number_and_birth, begin, end),
		cmocka_unit_test_setup_teardown(a_file_with_the_number_and_the_birth_of_a_removed_one_is_another, begin,
						end),
		cmocka_unit_test_setup_teardown(what_is_forgotten_makes_room_and_hides_no_other, begin, end),
		cmocka_unit_test_setup_teardown(a_full_table_forgets_nothing_and_learns_nothing, begin, end),
	};

	return cmocka_run_group_tests_name("made", tests, NULL, NULL);
}
