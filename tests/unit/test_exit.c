/* SPDX-License-Identifier: Apache-2.0 */
/* Exit statuses: a table of how a run ended and the number that this gives. */
#include <signal.h>

#include "base/exit.h"
#include "unit.h"

static void an_ending_has_one_exit_status(void **state)
{
	static const struct {
		struct cordon_ending ending;
		int status;
	} cases[] = {
		{ { .exit_code = 0 }, 0 },
		{ { .exit_code = 7 }, 7 },
		{ { .exit_code = 255 }, 255 },
		{ { .exit_code = -1 }, 1 },
		{ { .exit_code = -1, .signal = SIGKILL }, 137 },
		{ { .exit_code = 0, .signal = SIGINT }, 130 },
		{ { .exit_code = 0, .failed_on_violation = true }, 3 },
		{ { .exit_code = -1, .signal = SIGTERM, .timed_out = true }, 124 },
		{ { .exit_code = 0, .refused = true, .timed_out = true }, 125 },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++)
		assert_int_equal(cordon_exit_of_ending(&cases[i].ending), cases[i].status);
}

static void a_wait_status_is_a_signal_or_an_exit_code(void **state)
{
	struct cordon_ending exited = cordon_ending_of_wait(42 << 8), killed = cordon_ending_of_wait(SIGSEGV);

	(void)state;
	assert_int_equal(exited.exit_code, 42);
	assert_int_equal(exited.signal, 0);
	assert_int_equal(killed.exit_code, -1);
	assert_int_equal(killed.signal, SIGSEGV);
}

static void an_error_is_told_by_its_kind_and_code_and_never_by_its_text(void **state)
{
	struct cordon_error err = { 0 };

	(void)state;
	cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "x");
	assert_int_equal(cordon_exit_of_error(&err, CORDON_EXIT_REFUSED), 2);
	cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "cannot run it");
	assert_int_equal(cordon_exit_of_error(&err, CORDON_EXIT_REFUSED), 125);
	assert_int_equal(cordon_exit_of_error(&err, CORDON_EXIT_NO), 1);
	assert_int_equal(cordon_fail_exec(&err, -ENOENT, "cat"), -ENOEXEC);
	assert_string_equal(err.message, "cannot run cat: no such program in the sandbox");
	assert_int_equal(err.kind, CORDON_KIND_NOT_FOUND);
	assert_int_equal(cordon_exit_of_error(&err, CORDON_EXIT_REFUSED), 127);
	assert_int_equal(cordon_fail_exec(&err, -EACCES, "cat"), -ENOEXEC);
	assert_string_equal(err.message, "cannot run cat: Permission denied");
	assert_int_equal(cordon_exit_of_error(&err, CORDON_EXIT_REFUSED), 126);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ending_has_one_exit_status),
		cmocka_unit_test(a_wait_status_is_a_signal_or_an_exit_code),
		cmocka_unit_test(an_error_is_told_by_its_kind_and_code_and_never_by_its_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
