/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that we find our own control groups in the tables of /proc, whatever those contain. */
#include "unit.h"

#include "sandbox/host/cgroup.h"

static const char v1_mounts[] = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
				"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:3 - cgroup cgroup rw,cpu,cpuacct\n"
				"33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
				"34 31 0:31 / /sys/fs/cgroup/mem\\040ory rw - cgroup cgroup rw,memory\n"
				"35 31 0:32 /docker/x /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
				"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";

static void groups_are_found_where_the_host_has_them(void **state)
{
	static struct cordon_cgroup_trees trees;

	(void)state;
	cordon_cgroup_parse("5:pids:/docker/x/y\n4:memory:/a/b\n2:cpu,cpuacct:/\n1:name=systemd:/s\n0::/u\n", v1_mounts,
			    &trees);
	assert_string_equal(trees.v1[CORDON_CONTROLLER_CPU].dir, "/sys/fs/cgroup/cpu,cpuacct");
	assert_string_equal(trees.v1[CORDON_CONTROLLER_MEMORY].dir, "/sys/fs/cgroup/mem ory/a/b");
	assert_string_equal(trees.v1[CORDON_CONTROLLER_PIDS].dir, "/sys/fs/cgroup/pids/y");
	assert_string_equal(trees.v1[CORDON_CONTROLLER_PIDS].top, "/sys/fs/cgroup/pids");
	assert_string_equal(trees.v2.dir, "/sys/fs/cgroup/unified/u");

	/* A group that the mount does not show, one outside the cgroup namespace, and one whose path only begins the
	 * same. */
	cordon_cgroup_parse("5:pids:/docker/other\n4:memory:/../up\n0::/../../x\n", v1_mounts, &trees);
	assert_string_equal(trees.v1[CORDON_CONTROLLER_PIDS].dir, "");
	assert_string_equal(trees.v1[CORDON_CONTROLLER_MEMORY].dir, "");
	assert_string_equal(trees.v1[CORDON_CONTROLLER_CPU].dir, "");
	assert_string_equal(trees.v2.dir, "");
	cordon_cgroup_parse("5:pids:/docker/xy\n", v1_mounts, &trees);
	assert_string_equal(trees.v1[CORDON_CONTROLLER_PIDS].dir, "");

	cordon_cgroup_parse("0::/user.slice/a b\n", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", &trees);
	assert_string_equal(trees.v2.dir, "/sys/fs/cgroup/user.slice/a b");
	assert_string_equal(trees.v2.top, "/sys/fs/cgroup");
}

static void broken_tables_find_nothing(void **state)
{
	static const char *const broken[] = { "", "\n\n", "x", "0", "0:", "0::", "0::relative\n", ":::::", "4:memory\n" };
	static const char *const mounts[] = { "",
					      "1 2 3 4 5 6\n",
					      "- cgroup2\n",
					      "1 2 0:1 / /p rw - cgroup2\n",
					      "1 2 0:1 / /p rw - cgroup2 x",
					      "- - - - - - - - - - -\n" };
	static struct cordon_cgroup_trees trees;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(broken); i++) {
		cordon_cgroup_parse(broken[i], v1_mounts, &trees);
		assert_string_equal(trees.v2.dir, "");
		assert_string_equal(trees.v1[CORDON_CONTROLLER_MEMORY].dir, "");
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(mounts); i++) {
		cordon_cgroup_parse("0::/a\n", mounts[i], &trees);
		assert_string_equal(trees.v2.dir, "");
	}
}

static void words_and_values_are_read_whole(void **state)
{
	(void)state;
	assert_true(cordon_cgroup_has_word("cpuset cpu io memory pids\n", "cpu"));
	assert_true(cordon_cgroup_has_word("pids", "pids"));
	assert_false(cordon_cgroup_has_word("cpuset io\n", "cpu"));
	assert_false(cordon_cgroup_has_word("", "cpu"));
	assert_int_equal(cordon_cgroup_value("low 0\noom 1\noom_kill 3\n", "oom_kill"), 3);
	assert_int_equal(cordon_cgroup_value("low 0\noom 1\noom_kill 3\n", "oom"), 1);
	assert_int_equal(cordon_cgroup_value("oom_kill_disable 1\n", "oom_kill"), 0);
	assert_int_equal(cordon_cgroup_value("", "max"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_found_where_the_host_has_them),
		cmocka_unit_test(broken_tables_find_nothing),
		cmocka_unit_test(words_and_values_are_read_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
