/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles of times: right within an eighth for any value, and the same after merging. */
#include "unit.h"

#include "base/meter.h"

static void a_single_value_is_every_percentile(void **state)
{
	(void)state;
	for (uint64_t value = 1; value < (UINT64_C(1) << 34); value += value / 3 + 1) {
		struct cordon_histogram histogram = { 0 };
		uint64_t found;

		cordon_histogram_add(&histogram, value);
		found = cordon_histogram_percentile(&histogram, 50);
		assert_true(found >= value && found <= value + value / 8);
		assert_int_equal(cordon_histogram_percentile(&histogram, 99), found);
	}
}

static void percentiles_split_the_values(void **state)
{
	struct cordon_histogram low = { 0 }, high = { 0 };

	(void)state;
	assert_int_equal(cordon_histogram_percentile(&low, 99), 0);
	for (int i = 0; i < 990; i++)
		cordon_histogram_add(&low, 100);
	for (int i = 0; i < 10; i++)
		cordon_histogram_add(&high, 1000000);
	cordon_histogram_merge(&low, &high);
	assert_int_equal(low.n, 1000);
	assert_in_range(cordon_histogram_percentile(&low, 50), 100, 112);
	assert_in_range(cordon_histogram_percentile(&low, 99), 100, 112);
	assert_in_range(cordon_histogram_percentile(&low, 100), 1000000, 1125000);
}

static void a_value_that_is_too_large_counts_as_the_largest(void **state)
{
	struct cordon_histogram histogram = { 0 };

	(void)state;
	cordon_histogram_add(&histogram, UINT64_MAX);
	assert_true(cordon_histogram_percentile(&histogram, 50) > UINT64_C(30000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_single_value_is_every_percentile),
		cmocka_unit_test(percentiles_split_the_values),
		cmocka_unit_test(a_value_that_is_too_large_counts_as_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
