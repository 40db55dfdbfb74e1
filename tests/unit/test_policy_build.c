/* SPDX-License-Identifier: Apache-2.0 */
/* The builder of policies: rules, fences, the built-in list and what is removed from it, and the policy file itself. */
#include "unit.h"

#include "config/policy_build.h"

#define RULES(...)                                                                                                     \
	(const struct cordon_policy_rule[])                                                                            \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}

/* Builds a policy in the test's directory; on failure `faults` has the text of all errors. */
static char faults[4096];

static struct cordon_policy *build_spec(struct cordon_policy_spec *spec)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy *policy = NULL;
	int r;

	spec->root = unit_dir;
	faults[0] = '\0';
	r = cordon_policy_build(spec, &policy, &errors);
	assert_true((r == 0) == (policy != NULL) && (r == 0) == (errors.n == 0));
	for (size_t i = 0; i < errors.n; i++)
		snprintf(faults + strlen(faults), sizeof(faults) - strlen(faults), "%s%s%s (%s)\n",
			 errors.items[i].where, *errors.items[i].where ? ": " : "", errors.items[i].message,
			 errors.items[i].hint);
	return policy;
}

static struct cordon_policy *build(const struct cordon_policy_rule *rules, size_t n)
{
	struct cordon_policy_spec spec = { .rules = rules, .n_rules = n };

	return build_spec(&spec);
}

static const struct cordon_protected *find(const struct cordon_policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_protected; i++)
		if (cordon_streq(policy->protected_paths[i].path, path))
			return &policy->protected_paths[i];
	return NULL;
}

static cordon_access access_to(const struct cordon_policy *policy, const char *path)
{
	return cordon_policy_access(policy, path);
}

static void the_built_in_list_is_there_unless_it_is_switched_off(void **state)
{
	struct cordon_policy_spec off = { .no_default_protection = true };
	struct cordon_policy *policy = build(NULL, 0);

	(void)state;
	assert_true(policy->n_protected > 30);
	for (size_t i = 0; i < policy->n_protected; i++)
		assert_true(policy->protected_paths[i].by_default);
	cordon_policy_free(policy);
	policy = build_spec(&off);
	assert_int_equal(policy->n_protected, 0);
	cordon_policy_free(policy);
}

static void a_directory_below_has_a_list_of_its_own(void **state)
{
	static const char *const places[] = { "workspaces/w", "workspaces/gone" };
	struct cordon_policy_spec spec = { .defaults_below = places, .n_defaults_below = 2 };
	struct cordon_policy *policy;

	(void)state;
	unit_mkdir("workspaces");
	unit_mkdir("workspaces/w");
	policy = build_spec(&spec);
	assert_non_null(find(policy, ".vscode/tasks.json"));
	assert_non_null(find(policy, "workspaces/w/.vscode/tasks.json"));
	assert_int_equal(access_to(policy, "workspaces/w/.vscode/tasks.json"), CORDON_ACCESS_READ);
	cordon_policy_free(policy);
}

static void one_default_is_lifted_and_nothing_else(void **state)
{
	struct cordon_policy *policy = build(RULES({ CORDON_RULE_UNPROTECT, "./.vscode/", "--unprotect" }), 1);

	(void)state;
	assert_non_null(policy);
	assert_null(find(policy, ".vscode/tasks.json"));
	assert_null(find(policy, ".vscode/mcp.json"));
	assert_non_null(find(policy, ".envrc"));
	assert_int_equal(access_to(policy, ".vscode/tasks.json"), CORDON_ACCESS_WRITE);
	cordon_policy_free(policy);
	policy = build(RULES({ CORDON_RULE_UNPROTECT, ".vscode/tasks.json", "--unprotect" }), 1);
	assert_null(find(policy, ".vscode/tasks.json"));
	assert_non_null(find(policy, ".vscode/mcp.json"));
	cordon_policy_free(policy);
	assert_null(build(RULES({ CORDON_RULE_UNPROTECT, "src", "--unprotect" }), 1));
	assert_string_equal(
		faults,
		"--unprotect: src is not protected by default ('cordon why src' says which rule decides about it)\n");
	assert_null(build(RULES({ CORDON_RULE_UNPROTECT, ".envrc/x", "--unprotect" }), 1));
	assert_string_equal(faults, "--unprotect: .envrc/x is not protected by default (what is protected is .envrc)\n");
	assert_null(build(RULES({ CORDON_RULE_UNPROTECT, ".vscode", "--unprotect" },
				{ CORDON_RULE_PROTECT, ".vscode", "--protect" }),
			  2));
	assert_string_equal(
		faults,
		"--unprotect: .vscode is protected because it was asked for (--protect) (leave one of the two out)\n");
	assert_null(build(RULES({ CORDON_RULE_UNPROTECT, "/etc", "--unprotect" }), 1));
	assert_non_null(strstr(faults, "--unprotect: protected path /etc is absolute"));
}

static void every_list_of_patterns_is_a_fence(void **state)
{
	struct cordon_policy *policy;

	(void)state;
	unit_mkdir("lib");
	policy = build(RULES({ CORDON_RULE_FOLDERS, "lib", "--workspace" },
			     { CORDON_RULE_WITHIN, "lib/**/*.{ts,js}, docs", "--within" },
			     { CORDON_RULE_WITHIN, "**/a*", "--within" }),
		       3);
	assert_non_null(policy);
	assert_int_equal(policy->n_fences, 2);
	assert_int_equal(policy->fences[0]->n_grants, 2);
	assert_string_equal(policy->fences[0]->name, "--within lib/**/*.{ts,js}, docs");
	assert_int_equal(access_to(policy, "lib/x/a.ts"), CORDON_ACCESS_WRITE);
	assert_int_equal(access_to(policy, "lib/x/a.js"), CORDON_ACCESS_WRITE);
	assert_int_equal(access_to(policy, "lib/x/b.js"), CORDON_ACCESS_NONE);
	assert_int_equal(access_to(policy, "lib/x/a.c"), CORDON_ACCESS_NONE);
	assert_int_equal(access_to(policy, "docs/a"), CORDON_ACCESS_NONE);
	cordon_policy_free(policy);
	assert_null(
		build(RULES({ CORDON_RULE_WITHIN, "lib,,src", "--within" }, { CORDON_RULE_WRITE, "a**", "--rw" }), 2));
	assert_non_null(strstr(faults, "--within: bad pattern"));
	assert_non_null(strstr(faults, "--rw: bad pattern"));
}

static struct cordon_policy_file *parse(const char *text)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy_file *file = NULL;

	if (cordon_policy_file_parse("p.yaml", CORDON_FORMAT_YAML, text, strlen(text), &file, &errors) < 0)
		fail_msg("%s", errors.items[0].message);
	return file;
}

static void a_file_says_the_same(void **state)
{
	struct cordon_policy_file *file = parse("rw: [lib]\nwithin: ['lib/*.ts', 'docs']\nunprotect: [.vscode]\n");
	struct cordon_policy_spec spec = { .file = file, .mode = CORDON_MODE_PERMISSIVE };
	struct cordon_policy *policy = build_spec(&spec);
	struct cordon_decision d;

	(void)state;
	assert_non_null(policy);
	assert_null(find(policy, ".vscode/tasks.json"));
	assert_int_equal(policy->n_fences, 1);
	cordon_policy_decide(policy, "lib/a.c", CORDON_OP_READ, &d);
	assert_int_equal(d.verdict, CORDON_WARN);
	assert_string_equal(d.fence, "within (p.yaml:2:10)");
	cordon_policy_free(policy);
	cordon_policy_file_free(file);
	file = parse("unprotect: [.vscode, src]\n");
	spec.file = file;
	assert_null(build_spec(&spec));
	assert_non_null(strstr(faults, "p.yaml:1:22: src is not protected by default"));
	cordon_policy_file_free(file);
}

static void protects(const char *given, const char *const *paths)
{
	char path[2 * UNIT_PATH];
	struct cordon_policy_spec spec = { .no_default_protection = true, .file_path = path };
	struct cordon_policy *policy;
	size_t n = 0;

	snprintf(path, sizeof(path), "%s%s%s", *given == '/' ? "" : unit_dir, *given == '/' ? "" : "/", given);
	policy = build_spec(&spec);
	for (; paths[n]; n++) {
		struct cordon_decision d;

		cordon_policy_decide(policy, paths[n], CORDON_OP_WRITE, &d);
		if (d.reason != CORDON_REASON_PROTECTED)
			fail_msg("%s: %s is not protected", given, paths[n]);
	}
	assert_int_equal(access_to(policy, "free"), CORDON_ACCESS_WRITE);
	assert_int_equal(access_to(policy, "conf/free"), CORDON_ACCESS_WRITE);
	assert_int_equal(n ? policy->n_protected > 0 : policy->n_protected, n ? 1 : 0);
	cordon_policy_free(policy);
}

static void a_policy_file_is_protected_under_every_name(void **state)
{
	char outside[2 * UNIT_PATH], target[3 * UNIT_PATH];

	(void)state;
	unit_mkdir("conf");
	unit_write("conf/real.yaml", "");
	unit_link("conf/second.yaml", "first.yaml");
	unit_link("real.yaml", "conf/second.yaml");
	unit_link("conf", "cfg");
	unit_link("/etc/hostname", "out.yaml");
	unit_link("loop", "loop");
	snprintf(outside, sizeof(outside), "%s-outside", unit_dir);
	snprintf(target, sizeof(target), "%s/cfg/real.yaml", unit_dir);
	unit_link(target, outside);
	protects("conf/real.yaml", (const char *const[]){ "conf/real.yaml", NULL });
	protects("first.yaml", (const char *const[]){ "first.yaml", "conf/second.yaml", "conf/real.yaml", NULL });
	protects("cfg/./real.yaml", (const char *const[]){ "cfg/real.yaml", "conf/real.yaml", NULL });
	protects("out.yaml", (const char *const[]){ "out.yaml", NULL });
	protects("loop", (const char *const[]){ "loop", NULL });
	protects("missing.yaml", (const char *const[]){ "missing.yaml", NULL });
	protects(outside, (const char *const[]){ "cfg/real.yaml", "conf/real.yaml", NULL });
	protects("/etc/hostname", (const char *const[]){ NULL });
	assert_int_equal(unlink(outside), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(the_built_in_list_is_there_unless_it_is_switched_off),
		unit_test_in_dir(a_directory_below_has_a_list_of_its_own),
		unit_test_in_dir(one_default_is_lifted_and_nothing_else),
		unit_test_in_dir(every_list_of_patterns_is_a_fence),
		unit_test_in_dir(a_file_says_the_same),
		unit_test_in_dir(a_policy_file_is_protected_under_every_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
