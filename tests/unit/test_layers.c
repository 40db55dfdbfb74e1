/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers a run gets on which kernel. */
#include "unit.h"

#include "sandbox/plan/layers.h"

#define KNOWN 7

static struct cordon_layers chosen(cordon_tier tier, bool own_network, bool best_effort, unsigned int abi)
{
	struct cordon_layers_spec spec = {
		.tier = tier, .own_network = own_network, .best_effort = best_effort, .landlock_abi = abi
	};
	struct cordon_layers layers = { 0 };
	struct cordon_error err = { 0 };

	assert_int_equal(cordon_layers_choose(&spec, &layers, &err), 0);
	assert_int_equal(layers.landlock_abi, abi);
	return layers;
}

static bool differs_at_all(const struct cordon_layers *layers)
{
	for (size_t i = 0; i < CORDON_DIFFERENCE__MAX; i++)
		if (layers->differs[i])
			return true;
	return false;
}

static void with_scopes_nothing_differs(void **state)
{
	(void)state;
	for (unsigned int abi = CORDON_LANDLOCK_ABI_SCOPES; abi <= KNOWN; abi++)
		for (int choice = 0; choice < 8; choice++) {
			struct cordon_layers layers = chosen(choice & 1 ? CORDON_TIER_LANDLOCK : CORDON_TIER_FULL,
							     choice & 2, choice & 4, abi);

			assert_true(layers.scopes && layers.scopes_held);
			/* The lower tier has no mounts that would keep the host's sockets out of reach. */
			assert_int_equal(layers.differs[CORDON_DIFFERENCE_UNIX_SOCKETS], choice & 1);
			layers.differs[CORDON_DIFFERENCE_UNIX_SOCKETS] = false;
			assert_true(!differs_at_all(&layers));
		}
}

static void without_scopes_a_network_of_its_own_makes_up_for_them(void **state)
{
	(void)state;
	for (unsigned int abi = CORDON_LANDLOCK_ABI_REQUIRED; abi < CORDON_LANDLOCK_ABI_SCOPES; abi++) {
		struct cordon_layers layers = chosen(CORDON_TIER_FULL, true, false, abi);

		assert_true(!layers.scopes && layers.scopes_held && !differs_at_all(&layers));
	}
}

static void without_scopes_the_hosts_network_comes_without_unix_sockets(void **state)
{
	(void)state;
	for (unsigned int abi = 0; abi < CORDON_LANDLOCK_ABI_SCOPES; abi++) {
		/* Best effort gives none back. */
		struct cordon_layers layers = chosen(CORDON_TIER_FULL, false, true, abi);

		assert_true(layers.differs[CORDON_DIFFERENCE_UNIX_SOCKETS] && !layers.scopes);
		assert_int_equal(layers.scopes_held, abi >= CORDON_LANDLOCK_ABI_REQUIRED);
		assert_false(layers.differs[CORDON_DIFFERENCE_TRUNCATE]);
		/* The lower tier shares the host's network whatever was asked for, and its processes are the host's. */
		layers = chosen(CORDON_TIER_LANDLOCK, true, true, abi);
		assert_true(layers.differs[CORDON_DIFFERENCE_UNIX_SOCKETS] && !layers.scopes_held);
		assert_int_equal(layers.differs[CORDON_DIFFERENCE_TRUNCATE], abi == 1 || abi == 2);
	}
}

static void below_renames_a_run_needs_best_effort(void **state)
{
	(void)state;
	for (unsigned int abi = 0; abi < CORDON_LANDLOCK_ABI_REQUIRED; abi++)
		for (int own_network = 0; own_network < 2; own_network++) {
			struct cordon_layers_spec spec = { .own_network = own_network, .landlock_abi = abi };
			struct cordon_layers layers = { .landlock_abi = 99 };
			struct cordon_error err = { 0 };

			assert_int_equal(cordon_layers_choose(&spec, &layers, &err), -EOPNOTSUPP);
			assert_int_equal(err.kind, CORDON_KIND_KERNEL_UNSUPPORTED);
			assert_non_null(strstr(err.message, "Landlock"));
			assert_non_null(strstr(err.hint, "best_effort"));
			assert_int_equal(layers.landlock_abi, 99);
			layers = chosen(CORDON_TIER_FULL, own_network, true, abi);
			assert_int_equal(layers.differs[CORDON_DIFFERENCE_RENAME], abi == 1);
		}
}

static void without_scopes_who_enters_a_session_can_be_signalled(void **state)
{
	(void)state;
	for (unsigned int abi = CORDON_LANDLOCK_ABI_REQUIRED; abi <= KNOWN; abi++) {
		struct cordon_layers_spec spec = { .own_network = true, .enterable = true, .landlock_abi = abi };
		struct cordon_layers layers;

		assert_int_equal(cordon_layers_choose(&spec, &layers, NULL), 0);
		assert_int_equal(layers.differs[CORDON_DIFFERENCE_SIGNALS], abi < CORDON_LANDLOCK_ABI_SCOPES);
	}
}

static void each_difference_is_said_with_its_remedy(void **state)
{
	const struct cordon_layers full = { 0 }, lower = { .lower = true };
	char remedy[CORDON_REMEDY_SIZE];

	(void)state;
	for (size_t i = 0; i < CORDON_DIFFERENCE__MAX; i++) {
		assert_true(strlen(cordon_difference_text((cordon_difference)i)) > 20);
		cordon_difference_remedy(&full, (cordon_difference)i, remedy);
		assert_non_null(strstr(remedy, "Linux "));
		cordon_difference_remedy(&lower, (cordon_difference)i, remedy);
		assert_int_equal(strstr(remedy, "Linux ") == NULL, i == CORDON_DIFFERENCE_UNIX_SOCKETS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_scopes_nothing_differs),
		cmocka_unit_test(without_scopes_a_network_of_its_own_makes_up_for_them),
		cmocka_unit_test(without_scopes_the_hosts_network_comes_without_unix_sockets),
		cmocka_unit_test(below_renames_a_run_needs_best_effort),
		cmocka_unit_test(without_scopes_who_enters_a_session_can_be_signalled),
		cmocka_unit_test(each_difference_is_said_with_its_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
