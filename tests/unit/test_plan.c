/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a plan has the identities of the files that the policy judged, even when other files have their names by
 * now. */
#include "unit.h"

#include <linux/fs.h>

#include "sandbox/plan/plan.h"

static const char *const held[] = { "", "AGENTS.md", "deep", "deep/held.txt" };

static void make_tree(const char *name)
{
	char path[UNIT_PATH];

	unit_mkdir(name);
	snprintf(path, sizeof(path), "%s/deep", name);
	unit_mkdir(path);
	for (size_t i = 1; i < CORDON_ARRAY_SIZE(held); i += 2) {
		snprintf(path, sizeof(path), "%s/%s", name, held[i]);
		close(open(path, O_CREAT | O_WRONLY, 0644));
	}
}

static struct cordon_plan *build(struct cordon_policy *policy)
{
	char program[] = "true", *argv[] = { program, NULL };
	struct cordon_run_spec run = { .policy = policy, .argv = argv };
	struct cordon_plan_spec spec = { .run = &run, .run_id = "run", .landlock_abi = CORDON_LANDLOCK_ABI_SCOPES };
	struct cordon_plan *plan = NULL;

	assert_int_equal(cordon_plan_build(&spec, &plan, NULL), 0);
	return plan;
}

/* Counts the steps at `path` of the tree `judged`, which the plan knows as "a"; each must have the identity of that
 * file. */
static size_t count_steps(const struct cordon_plan *plan, const char *judged, const char *path)
{
	char inside[2 * UNIT_PATH], now[UNIT_PATH];
	struct stat st;
	size_t n = 0;

	snprintf(inside, sizeof(inside), "%s/a%s%s", unit_dir, *path ? "/" : "", path);
	snprintf(now, sizeof(now), "%s/%s", judged, path);
	assert_int_equal(stat(now, &st), 0);
	for (size_t i = 0; i < plan->n_steps; i++) {
		if ((plan->steps[i].kind != CORDON_STEP_BIND && plan->steps[i].kind != CORDON_STEP_PIN) ||
		    !cordon_streq(plan->steps[i].path, inside))
			continue;
		assert_int_equal(plan->steps[i].ino, st.st_ino);
		assert_int_equal(plan->steps[i].dev, st.st_dev);
		n++;
	}
	return n;
}

static void what_is_judged_is_planned(cordon_mode mode)
{
	struct cordon_policy *policy = NULL;
	struct cordon_plan *plan;
	char root[UNIT_PATH + 2];
	struct stat st;

	make_tree("a");
	make_tree("b");
	snprintf(root, sizeof(root), "%s/a", unit_dir);
	assert_int_equal(cordon_policy_new(root, &policy, NULL), 0);
	cordon_policy_set_mode(policy, mode);
	assert_int_equal(cordon_policy_add_grant(policy, "**", CORDON_ACCESS_WRITE, NULL, NULL), 0);
	assert_int_equal(cordon_policy_add_protected(policy, "AGENTS.md", NULL, false, NULL), 0);
	assert_int_equal(cordon_policy_add_protected(policy, "deep/held.txt", NULL, false, NULL), 0);
	assert_int_equal(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE), 0);
	plan = build(policy);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(held); i++)
		assert_true(count_steps(plan, "b", held[i]) > 0);
	assert_int_equal(stat("b", &st), 0);
	assert_int_equal(plan->areas[0].ino, st.st_ino);
	assert_int_equal(plan->areas[0].dev, st.st_dev);
	cordon_plan_free(plan);
	cordon_policy_free(policy);
}

static void a_tree_that_took_the_name_of_the_workspace_is_not_planned(void **state)
{
	(void)state;
	what_is_judged_is_planned(CORDON_MODE_STRICT);
}

static void nor_in_permissive_mode(void **state)
{
	(void)state;
	what_is_judged_is_planned(CORDON_MODE_PERMISSIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(a_tree_that_took_the_name_of_the_workspace_is_not_planned),
		unit_test_in_dir(nor_in_permissive_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
