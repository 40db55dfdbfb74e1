/* SPDX-License-Identifier: Apache-2.0 */
/* Views on disk: made, found, locked, ended, and what a killed process leaves. */
#include "unit.h"

#include "base/io.h"
#include "view/delta.h"
#include "view/internal.h"

static struct cordon_home home = CORDON_HOME_NONE;
static struct cordon_policy *policy;

static int view_setup(void **state)
{
	char path[2 * UNIT_PATH];

	if (unit_setup(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/root", unit_dir);
	if (mkdir(path, 0755) < 0 || cordon_policy_new(path, &policy, NULL) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/home", unit_dir);
	return setenv("CORDON_HOME", path, 1) == 0 && cordon_home_open(&home, NULL) == 0 ? 0 : -1;
}

static int view_teardown(void **state)
{
	policy = cordon_policy_free(policy);
	cordon_home_done(&home);
	return unit_teardown(state);
}

#define view_test(name) cmocka_unit_test_setup_teardown(name, view_setup, view_teardown)

static void create(struct cordon_view *view)
{
	char program[] = "make", argument[] = "a\n\xff";
	char *const argv[] = { program, argument, NULL };
	struct cordon_view_request request = { .policy = policy, .argv = argv, .git = CORDON_VIEW_GIT_READ };

	assert_int_equal(cordon_view_create(&home, &request, view, NULL), 0);
}

static void change(const struct cordon_view *view)
{
	assert_int_equal(mkdirat(view->dir_fd, "upper/made", 0755), 0);
}

static void test_a_view_is_found_by_its_id_by_a_prefix_and_as_the_latest_of_its_root(void **state)
{
	autoview struct cordon_view first = CORDON_VIEW_NONE, second = CORDON_VIEW_NONE;
	autofd int elsewhere = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char id[CORDON_ID_SIZE], prefix[9];
	struct cordon_error err = { 0 };

	(void)state;
	create(&first);
	create(&second);
	assert_int_equal(cordon_view_find(&home, second.record.id, -1, id, NULL), 0);
	assert_string_equal(id, second.record.id);
	snprintf(prefix, sizeof(prefix), "%.8s", first.record.id);
	assert_int_equal(cordon_view_find(&home, prefix, -1, id, NULL), 0);
	assert_string_equal(id, first.record.id);
	assert_int_equal(cordon_view_find(&home, "latest", policy->root.fd, id, NULL), 0);
	assert_string_equal(id, second.record.id);
	assert_int_equal(cordon_view_find(&home, "latest", elsewhere, id, &err), -ENOENT);
	assert_int_equal(err.kind, CORDON_KIND_NOT_FOUND);
	assert_int_equal(cordon_view_find(&home, "../x", -1, id, NULL), -ENOENT);
	assert_int_equal(cordon_view_find(&home, "zzzzzzzz", -1, id, NULL), -ENOENT);
}

/* Lets the clock of file times pass the start of a view. */
static void pass(const struct cordon_view *view)
{
	struct timespec coarse, pause = { .tv_nsec = 500000 };

	do {
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_REALTIME_COARSE, &coarse);
	} while (coarse.tv_sec < view->record.started.sec ||
		 (coarse.tv_sec == view->record.started.sec && coarse.tv_nsec < view->record.started.nsec));
}

static void put(int dir_fd, const char *path, const char *text)
{
	autofd int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(cordon_write_all(fd, text, strlen(text)), 0);
}

static void test_a_view_on_top_of_another_keeps_that_ones_text_as_its_base(void **state)
{
	autoview struct cordon_view below = CORDON_VIEW_NONE, above = CORDON_VIEW_NONE;
	autobuf struct cordon_buf text = CORDON_BUF(64);
	char program[] = "make";
	char *const argv[] = { program, NULL };
	struct cordon_view_request request = { .policy = policy, .argv = argv };
	struct cordon_view_counts counts;
	struct cordon_error err = { 0 };
	bool removed;

	(void)state;
	put(policy->root.fd, "file", "host\n");
	create(&below);
	put(below.dir_fd, "upper/file", "host\nbelow\n");
	assert_int_equal(cordon_view_end(&home, &below, NULL, false, &removed, NULL), 0);
	request.layers = json_pack("[s]", below.record.id);
	assert_int_equal(cordon_view_create(&home, &request, &above, NULL), 0);
	json_decref((json_t *)(uintptr_t)request.layers);
	pass(&above);
	/* A copy of what the layer has is no change. */
	put(above.dir_fd, "upper/file", "host\nbelow\n");
	put(above.dir_fd, "upper/new", "");
	assert_int_equal(cordon_view_end(&home, &above, NULL, false, &removed, NULL), 0);
	assert_false(removed);
	put(above.dir_fd, "upper/file", "host\nbelow\nabove\n");
	assert_int_equal(cordon_view_end(&home, &above, NULL, false, &removed, NULL), 0);
	assert_int_equal(cordon_read_file(above.dir_fd, "base/0", 0, &text, NULL), 0);
	assert_string_equal(text.data, "host\nbelow\n");
	/* The lower one is needed as long as the upper one waits. */
	assert_int_equal(cordon_view_check_above(&home, below.record.id, &err), -EBUSY);
	assert_int_equal(err.kind, CORDON_KIND_CONFLICT);
	below.record.state = CORDON_VIEW_APPLIED;
	assert_int_equal(cordon_view_save(&below, NULL), 0);
	cordon_view_close(&below);
	assert_int_equal(cordon_view_gc(&home, 0, &counts, NULL), 0);
	assert_int_equal(counts.removed, 0);
	above.record.state = CORDON_VIEW_APPLIED;
	assert_int_equal(cordon_view_save(&above, NULL), 0);
	cordon_view_close(&above);
	assert_int_equal(cordon_view_gc(&home, 0, &counts, NULL), 0);
	assert_int_equal(counts.removed, 2);
}

static void test_a_record_survives_and_tells_times_apart(void **state)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE, again = CORDON_VIEW_NONE;
	char before[2 * UNIT_PATH], after[2 * UNIT_PATH];
	struct timespec start;
	struct stat st;

	(void)state;
	snprintf(before, sizeof(before), "%s/root/before", unit_dir);
	snprintf(after, sizeof(after), "%s/root/after", unit_dir);
	assert_int_equal(mkdir(before, 0755), 0);
	create(&view);
	pass(&view); /* as the sandbox does before the program begins */
	assert_int_equal(mkdir(after, 0755), 0);
	assert_int_equal(cordon_view_open(&home, view.record.id, &again, NULL), 0);
	assert_string_equal(again.record.root, policy->root.path);
	assert_string_equal(again.path, view.path);
	assert_int_equal(again.record.state, CORDON_VIEW_LIVE);
	assert_int_equal(again.record.git, CORDON_VIEW_GIT_READ);
	assert_string_equal(json_string_value(json_array_get(again.record.command, 1)), "a\\n\\xff");
	start = (struct timespec){ .tv_sec = again.record.started.sec, .tv_nsec = again.record.started.nsec };
	assert_int_equal(stat(before, &st), 0);
	assert_true(st.st_ctim.tv_sec < start.tv_sec ||
		    (st.st_ctim.tv_sec == start.tv_sec && st.st_ctim.tv_nsec < start.tv_nsec));
	assert_int_equal(stat(after, &st), 0);
	assert_true(st.st_ctim.tv_sec > start.tv_sec ||
		    (st.st_ctim.tv_sec == start.tv_sec && st.st_ctim.tv_nsec >= start.tv_nsec));
}

static void test_a_time_in_whole_seconds_may_be_later(void **state)
{
	const struct timespec since = { 100, 500 };

	(void)state;
	assert_false(cordon_delta_later(&(struct timespec){ 99, 900 }, &since));
	assert_false(cordon_delta_later(&(struct timespec){ 100, 499 }, &since));
	assert_true(cordon_delta_later(&(struct timespec){ 100, 500 }, &since));
	assert_true(cordon_delta_later(&(struct timespec){ 101, 0 }, &since));
	assert_false(cordon_delta_later(&(struct timespec){ 99, 0 }, &since));
	/* A file system without fractions of a second says this of everything that happened from 100.0 on. */
	assert_true(cordon_delta_later(&(struct timespec){ 100, 0 }, &since));
}

static void test_nobody_works_on_a_view_while_its_run_lives(void **state)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE, other = CORDON_VIEW_NONE;
	struct cordon_error err = { 0 };
	bool removed = true;

	(void)state;
	create(&view);
	change(&view);
	assert_int_equal(cordon_view_open(&home, view.record.id, &other, NULL), 0);
	assert_int_equal(cordon_view_lock(&other, &err), -EBUSY);
	assert_int_equal(err.kind, CORDON_KIND_CONFLICT);
	assert_int_equal(cordon_view_end(&home, &view, "run", false, &removed, NULL), 0);
	assert_false(removed);
	cordon_view_close(&view);
	assert_int_equal(cordon_view_lock(&other, NULL), 0);
	assert_int_equal(other.record.state, CORDON_VIEW_ENDED);
	assert_false(other.record.lost);
	other.record.state = CORDON_VIEW_APPLIED;
	assert_int_equal(cordon_view_save(&other, NULL), 0);
}

static void test_a_view_whose_process_was_killed_has_ended(void **state)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE, other = CORDON_VIEW_NONE;
	char id[CORDON_ID_SIZE];

	(void)state;
	create(&view);
	change(&view);
	memcpy(id, view.record.id, sizeof(id));
	cordon_view_close(&view); /* releases the lock, as a death does */
	assert_int_equal(cordon_view_open(&home, id, &other, NULL), 0);
	assert_int_equal(other.record.state, CORDON_VIEW_ENDED);
	assert_true(other.record.lost);
}

static void test_a_view_in_which_nothing_changed_is_removed_at_its_end(void **state)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE, other = CORDON_VIEW_NONE;
	char id[CORDON_ID_SIZE];
	bool removed = false;

	(void)state;
	create(&view);
	memcpy(id, view.record.id, sizeof(id));
	assert_int_equal(cordon_view_end(&home, &view, "run", false, &removed, NULL), 0);
	assert_true(removed);
	assert_int_equal(cordon_view_open(&home, id, &other, NULL), -ENOENT);
}

static void test_gc_removes_what_is_half_made_and_what_is_settled_and_nothing_else(void **state)
{
	autoview struct cordon_view live = CORDON_VIEW_NONE, waiting = CORDON_VIEW_NONE, done = CORDON_VIEW_NONE;
	autoviewlist struct cordon_view_list list = { 0 };
	struct cordon_view_counts counts;
	autofd int views = -1;
	bool removed;

	(void)state;
	create(&live);
	create(&waiting);
	change(&waiting);
	assert_int_equal(cordon_view_end(&home, &waiting, "run", false, &removed, NULL), 0);
	cordon_view_close(&waiting);
	create(&done);
	change(&done);
	assert_int_equal(cordon_view_end(&home, &done, "run", false, &removed, NULL), 0);
	done.record.state = CORDON_VIEW_DISCARDED;
	assert_int_equal(cordon_view_save(&done, NULL), 0);
	cordon_view_close(&done);
	assert_int_equal(cordon_view_dir(&home, &views, NULL), 0);
	assert_int_equal(mkdirat(views, "00000000-0000-4000-8000-000000000000", 0700), 0);
	assert_int_equal(cordon_view_gc(&home, CORDON_VIEW_KEEP_MS, &counts, NULL), 0);
	assert_int_equal(counts.removed, 1);
	assert_int_equal(cordon_view_gc(&home, 0, &counts, NULL), 0);
	assert_int_equal(counts.removed, 1);
	assert_int_equal(counts.live, 1);
	assert_int_equal(counts.waiting, 1);
	assert_int_equal(cordon_view_list(&home, policy->root.fd, &list, NULL), 0);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.items[0].id, live.record.id);
}

static void test_the_policy_of_a_view_answers_as_the_run_s_did(void **state)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	struct cordon_policy *again = NULL;
	struct cordon_decision decision;
	char moved[2 * UNIT_PATH], root[2 * UNIT_PATH];

	(void)state;
	assert_int_equal(cordon_policy_grant(policy, "src/*.ts", CORDON_ACCESS_WRITE, NULL), 0);
	assert_int_equal(cordon_policy_protect(policy, "AGENTS.md", NULL), 0);
	create(&view);
	assert_int_equal(cordon_view_policy(&view, &again, NULL), 0);
	cordon_policy_check(again, "src/a.ts", CORDON_OP_WRITE, &decision, NULL);
	assert_int_equal(decision.verdict, CORDON_ALLOW);
	cordon_policy_check(again, "src/a.js", CORDON_OP_WRITE, &decision, NULL);
	assert_int_equal(decision.verdict, CORDON_DENY);
	cordon_policy_check(again, "AGENTS.md", CORDON_OP_WRITE, &decision, NULL);
	assert_int_equal(decision.reason, CORDON_REASON_PROTECTED);
	again = cordon_policy_free(again);
	/* Another directory under the name of the root is not the root. */
	snprintf(root, sizeof(root), "%s/root", unit_dir);
	snprintf(moved, sizeof(moved), "%s/moved", unit_dir);
	assert_int_equal(rename(root, moved), 0);
	assert_int_equal(mkdir(root, 0755), 0);
	assert_int_equal(cordon_view_policy(&view, &again, NULL), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		view_test(test_a_view_is_found_by_its_id_by_a_prefix_and_as_the_latest_of_its_root),
		view_test(test_a_view_on_top_of_another_keeps_that_ones_text_as_its_base),
		view_test(test_a_record_survives_and_tells_times_apart),
		cmocka_unit_test(test_a_time_in_whole_seconds_may_be_later),
		view_test(test_nobody_works_on_a_view_while_its_run_lives),
		view_test(test_a_view_whose_process_was_killed_has_ended),
		view_test(test_a_view_in_which_nothing_changed_is_removed_at_its_end),
		view_test(test_gc_removes_what_is_half_made_and_what_is_settled_and_nothing_else),
		view_test(test_the_policy_of_a_view_answers_as_the_run_s_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
