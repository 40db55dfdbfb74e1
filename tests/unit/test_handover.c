/* SPDX-License-Identifier: Apache-2.0 */
/* Passing a policy to another process: the same policy arrives, and no other bytes are accepted as one. */
#include "unit.h"

#include <sys/mman.h>

#include "policy/handover.h"

static struct cordon_policy *make_policy(void)
{
	struct cordon_policy *policy = NULL;

	assert_int_equal(cordon_policy_new(unit_dir, &policy, NULL), 0);
	return policy;
}

static int memory_file(void)
{
	int fd = memfd_create("policy", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void the_same_policy_arrives(void **state)
{
	struct cordon_policy *policy = make_policy(), *copy = NULL;
	autofd int fd = memory_file();
	bool temps = true;

	(void)state;
	cordon_policy_set_mode(policy, CORDON_MODE_PERMISSIVE);
	policy->read_only = true;
	assert_int_equal(cordon_policy_add_grant(policy, "src/**/*.ts", CORDON_ACCESS_WRITE, "p.yaml:3:1", NULL), 0);
	assert_int_equal(cordon_policy_add_grant(policy, "a\nb\xff*", CORDON_ACCESS_READ, NULL, NULL), 0);
	assert_int_equal(cordon_policy_add_grant(policy, "**/.env", CORDON_ACCESS_NONE, "--deny", NULL), 0);
	assert_int_equal(cordon_policy_add_protected(policy, "AGENTS.md", "--protect", false, NULL), 0);
	assert_int_equal(cordon_policy_add_protected(policy, ".git/config", NULL, true, NULL), 0);
	assert_int_equal(cordon_handover_write(policy, false, fd, NULL), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(cordon_handover_read(fd, policy->root.fd, &copy, &temps, NULL), 0);

	assert_false(temps);
	assert_int_equal(copy->mode, CORDON_MODE_PERMISSIVE);
	assert_true(copy->read_only);
	assert_string_equal(copy->root.path, policy->root.path);
	assert_true(copy->root.fd >= 0 && copy->root.fd != policy->root.fd);
	assert_int_equal(copy->n_grants, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(copy->grants[i].access, policy->grants[i].access);
		assert_string_equal(cordon_pattern_text(copy->grants[i].pattern),
				    cordon_pattern_text(policy->grants[i].pattern));
	}
	assert_string_equal(copy->grants[0].where, "p.yaml:3:1");
	assert_null(copy->grants[1].where);
	assert_int_equal(copy->n_protected, 2);
	assert_string_equal(copy->protected_paths[0].path, "AGENTS.md");
	assert_false(copy->protected_paths[0].by_default);
	assert_true(copy->protected_paths[1].by_default);
	cordon_policy_free(policy);
	cordon_policy_free(copy);
}

/* Reads `n` bytes as a policy of another process. */
static int read_bytes(const void *bytes, size_t n, struct cordon_error *err)
{
	struct cordon_policy *policy = make_policy(), *copy = NULL;
	autofd int fd = memory_file();
	bool temps = true;
	int r;

	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	r = cordon_handover_read(fd, policy->root.fd, &copy, &temps, err);
	assert_true((r == 0) == (copy != NULL));
	cordon_policy_free(policy);
	cordon_policy_free(copy);
	return r;
}

static void every_cut_is_noticed(void **state)
{
	struct cordon_policy *policy = make_policy(), *fence = make_policy();
	autofd int fd = memory_file();
	char bytes[8192];
	ssize_t n;

	(void)state;
	assert_int_equal(cordon_policy_add_grant(policy, "src/*", CORDON_ACCESS_WRITE, "x", NULL), 0);
	assert_int_equal(cordon_policy_add_protected(policy, "p", NULL, false, NULL), 0);
	assert_int_equal(cordon_policy_add_grant(fence, "src/a", CORDON_ACCESS_READ, "y", NULL), 0);
	assert_int_equal(cordon_policy_fence(policy, "around", fence, NULL), 0);
	assert_int_equal(cordon_handover_write(policy, true, fd, NULL), 0);
	n = pread(fd, bytes, sizeof(bytes), 0);
	assert_true(n > 0 && n < (ssize_t)sizeof(bytes));
	assert_int_equal(read_bytes(bytes, (size_t)n, NULL), 0);
	for (size_t cut = 0; cut < (size_t)n; cut++) {
		struct cordon_error err = { 0 };

		assert_true(read_bytes(bytes, cut, &err) < 0);
		assert_int_equal(err.kind, CORDON_KIND_INTERNAL);
	}
	bytes[n] = 'x';
	assert_true(read_bytes(bytes, (size_t)n + 1, NULL) < 0);
	cordon_policy_free(policy);
}

static void nothing_else_is_taken_for_a_policy(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} wrong[] = {
/* clang-format off */
#define WRONG(text) { text, sizeof(text) }
		/* clang-format on */
		WRONG("cordon-policy\0001\0end"),
		WRONG("something\0001\0end"),
		WRONG("cordon-policy\0002\0unknown\0x\0end"),
		WRONG("cordon-policy\0002\0mode\0loose\0end"),
		WRONG("cordon-policy\0002\0root\0relative\0end"),
		WRONG("cordon-policy\0002\0grant\0all\0src\0\0end"),
		WRONG("cordon-policy\0002\0protect\0a\0\0maybe\0end"),
		WRONG("cordon-policy\0002\0fence\0name\0perhaps\0end"),
		WRONG("cordon-policy\0002\0fence\0name\0no\0grant\0all\0src\0\0end"),
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(wrong); i++) {
		struct cordon_error err = { 0 };

		assert_true(read_bytes(wrong[i].bytes, wrong[i].n, &err) < 0);
		assert_non_null(strstr(err.message, "damaged"));
	}
}

static void a_bad_pattern_is_an_error_here_too(void **state)
{
	static const char bytes[] = "cordon-policy\0002\0grant\0write\0src/**.ts\0\0end";
	struct cordon_error err = { 0 };

	(void)state;
	assert_true(read_bytes(bytes, sizeof(bytes), &err) < 0);
	assert_non_null(strstr(err.message, "src/**.ts"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(the_same_policy_arrives),
		unit_test_in_dir(every_cut_is_noticed),
		unit_test_in_dir(nothing_else_is_taken_for_a_policy),
		unit_test_in_dir(a_bad_pattern_is_an_error_here_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
