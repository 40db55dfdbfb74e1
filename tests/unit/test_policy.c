/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: the table of decisions, which rules may be added, and how a decision is explained. */
#include "cases.h"

#include "base/setting.h"
#include "policy/policy.h"

static struct cordon_policy *make_policy(void)
{
	struct cordon_policy *policy = NULL;

	assert_int_equal(cordon_policy_new(unit_dir[0] ? unit_dir : "/", &policy, NULL), 0);
	return policy;
}

static void add_grants(struct cordon_policy *policy, char *grants, const char *where)
{
	struct cordon_error err = { 0 };

	for (char *end; grants && !cordon_streq(grants, "-"); grants = end ? end + 1 : NULL) {
		char *colon = strchr(grants, ':');
		cordon_access access;

		end = strchr(grants, ';');
		if (end)
			*end = '\0';
		assert_non_null(colon);
		*colon = '\0';
		access = cordon_streq(grants, "rw")   ? CORDON_ACCESS_WRITE
			 : cordon_streq(grants, "ro") ? CORDON_ACCESS_READ
						      : CORDON_ACCESS_NONE;
		assert_true(access != CORDON_ACCESS_NONE || cordon_streq(grants, "deny"));
		if (cordon_policy_grant(policy, colon + 1, access, &err) < 0)
			fail_msg("%s: %s", where, err.message);
	}
}

static void add_protected(struct cordon_policy *policy, char *paths)
{
	for (char *end; paths && !cordon_streq(paths, "-"); paths = end ? end + 1 : NULL) {
		end = strchr(paths, ';');
		if (end)
			*end = '\0';
		assert_int_equal(cordon_policy_protect(policy, paths, NULL), 0);
	}
}

static cordon_access least(const struct cordon_decision *d)
{
	return d->verdict == CORDON_ALLOW ? CORDON_ACCESS_READ : CORDON_ACCESS_NONE;
}

static void check_decision(char **field, const char *where)
{
	struct cordon_policy *policy = make_policy();
	cordon_op op = cordon_streq(field[3], "write") ? CORDON_OP_WRITE : CORDON_OP_READ;
	struct cordon_decision d;

	add_grants(policy, field[0], where);
	add_protected(policy, field[1]);
	assert_true(cordon_streq(field[2], "strict") || cordon_streq(field[2], "permissive"));
	assert_true(op == CORDON_OP_WRITE || cordon_streq(field[3], "read"));
	cordon_policy_set_mode(policy, cordon_streq(field[2], "strict") ? CORDON_MODE_STRICT : CORDON_MODE_PERMISSIVE);
	cordon_policy_decide(policy, field[4], op, &d);
	if (!cordon_streq(cordon_verdict_name(d.verdict), field[5]) ||
	    !cordon_streq(cordon_reason_name(d.reason), field[6]))
		fail_msg("%s: %s %s is %s (%s), not %s (%s)", where, field[3], field[4], cordon_verdict_name(d.verdict),
			 cordon_reason_name(d.reason), field[5], field[6]);
	assert_string_equal(d.resolved, field[4]);
	/* The rights agree with the verdict, and what is allowed can be reached. */
	assert_true(d.access >= least(&d));
	assert_int_equal(d.verdict == CORDON_ALLOW && op == CORDON_OP_WRITE,
			 d.access == CORDON_ACCESS_WRITE && op == CORDON_OP_WRITE);
	if (d.verdict != CORDON_DENY)
		assert_true(cordon_policy_leads(policy, ""));
	cordon_policy_free(policy);
}

static void the_table_of_decisions_holds(void **state)
{
	(void)state;
	assert_true(cases_each("policy.tsv", true, 7, check_decision) > 120);
}

static void paths_that_are_not_clean_are_refused(void **state)
{
	static const char *const paths[] = { "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/" };
	struct cordon_policy *policy = make_policy();
	char longest[CORDON_PATH_MAX + 10];
	struct cordon_decision d;

	(void)state;
	cordon_policy_set_mode(policy, CORDON_MODE_PERMISSIVE);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(paths); i++) {
		cordon_policy_decide(policy, paths[i], CORDON_OP_READ, &d);
		assert_int_equal(d.verdict, CORDON_DENY);
		assert_int_equal(d.reason, CORDON_REASON_UNRESOLVABLE);
		assert_string_equal(d.resolved, paths[i]);
		assert_false(cordon_policy_leads(policy, paths[i]));
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	cordon_policy_decide(policy, longest, CORDON_OP_READ, &d);
	assert_int_equal(d.verdict, CORDON_DENY);
	assert_string_equal(d.resolved, "");
	cordon_policy_free(policy);
}

static void the_rule_and_its_place_are_named_whatever_the_order(void **state)
{
	static const char *const patterns[] = { "src/b*", "src/*", "src/[a-c]x", "src/bx" };
	struct cordon_decision d;

	(void)state;
	for (size_t first = 0; first < CORDON_ARRAY_SIZE(patterns); first++) {
		struct cordon_policy *policy = make_policy();

		for (size_t i = 0; i < CORDON_ARRAY_SIZE(patterns); i++)
			assert_int_equal(cordon_policy_add_grant(policy,
								 patterns[(first + i) % CORDON_ARRAY_SIZE(patterns)],
								 CORDON_ACCESS_READ, "cordon.yaml:3:7", NULL),
					 0);
		cordon_policy_decide(policy, "src/bx", CORDON_OP_READ, &d);
		assert_string_equal(d.rule, "src/bx");
		assert_string_equal(d.rule_where, "cordon.yaml:3:7");
		cordon_policy_decide(policy, "src/ax", CORDON_OP_READ, &d);
		assert_string_equal(d.rule, "src/*");
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(cordon_policy_add_grant(policy, (first + i) % 2 ? "**/*x" : "**/bx",
								 CORDON_ACCESS_NONE, "--deny", NULL),
					 0);
		cordon_policy_decide(policy, "src/bx", CORDON_OP_READ, &d);
		assert_int_equal(d.reason, CORDON_REASON_DENY);
		assert_string_equal(d.rule, "**/bx");
		assert_string_equal(d.rule_where, "--deny");
		cordon_policy_free(policy);
	}
}

static void a_read_only_policy_lets_nothing_be_written(void **state)
{
	struct cordon_policy *policy = make_policy();
	struct cordon_decision d;

	(void)state;
	assert_true(cordon_policy_has_write(policy));
	assert_false(cordon_policy_has_scope(policy));
	policy->read_only = true;
	assert_false(cordon_policy_has_write(policy));
	cordon_policy_decide(policy, "a", CORDON_OP_WRITE, &d);
	assert_int_equal(d.verdict, CORDON_DENY);
	assert_int_equal(d.access, CORDON_ACCESS_READ);
	assert_int_equal(cordon_policy_grant(policy, "a", CORDON_ACCESS_WRITE, NULL), 0);
	assert_true(cordon_policy_has_scope(policy));
	cordon_policy_decide(policy, "a", CORDON_OP_WRITE, &d);
	assert_int_equal(d.verdict, CORDON_DENY);
	cordon_policy_decide(policy, "a", CORDON_OP_READ, &d);
	assert_int_equal(d.verdict, CORDON_ALLOW);
	policy->read_only = false;
	assert_true(cordon_policy_has_write(policy));
	cordon_policy_free(policy);
	policy = make_policy();
	assert_int_equal(cordon_policy_grant(policy, "a", CORDON_ACCESS_READ, NULL), 0);
	assert_false(cordon_policy_has_write(policy));
	cordon_policy_free(policy);
}

static void a_bad_rule_changes_nothing(void **state)
{
	struct cordon_policy *policy = make_policy();
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_policy_grant(policy, "src/**.ts", CORDON_ACCESS_WRITE, &err), -EINVAL);
	assert_int_equal(err.kind, CORDON_KIND_USAGE);
	assert_int_equal(cordon_policy_grant(policy, "src", (cordon_access)7, &err), -EINVAL);
	assert_int_equal(policy->n_grants, 0);
	assert_int_equal(cordon_policy_new("/nonexistent/place", &policy, &err), -ENOENT);
	for (size_t i = 0; i < CORDON_GRANTS_MAX; i++)
		assert_int_equal(cordon_policy_grant(policy, "src", CORDON_ACCESS_READ, NULL), 0);
	assert_int_equal(cordon_policy_grant(policy, "src", CORDON_ACCESS_READ, &err), -E2BIG);
	assert_int_equal(err.kind, CORDON_KIND_LIMIT);
	assert_null(cordon_policy_free(policy));
	assert_null(cordon_policy_free(NULL));
}

static void protected_paths_are_judged_when_they_are_set(void **state)
{
	static const char *const bad[] = { "", ".", "./", "/etc", "../x", "a/../b" };
	struct cordon_policy *policy = make_policy();
	struct cordon_error err = { 0 };
	struct cordon_decision d;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(bad); i++) {
		assert_int_equal(cordon_policy_protect(policy, bad[i], &err), -EINVAL);
		assert_int_equal(err.kind, CORDON_KIND_USAGE);
	}
	assert_int_equal(cordon_policy_add_protected(policy, "docs//a/", "x:1:1", true, &err), 0);
	assert_int_equal(cordon_policy_protect(policy, "docs/a", &err), 0);
	assert_int_equal(policy->n_protected, 1);
	assert_false(policy->protected_paths[0].by_default);
	assert_string_equal(policy->protected_paths[0].path, "docs/a");
	assert_string_equal(policy->protected_paths[0].where, "x:1:1");

	/* A protected link protects its target; a link that leads out is refused, and so is anything that is no file
	 * or directory. */
	unit_mkdir("real");
	unit_write("real/AGENTS.md", "");
	unit_link("real/AGENTS.md", "AGENTS.md");
	unit_link("/etc/passwd", "out");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(cordon_policy_protect(policy, "AGENTS.md", &err), 0);
	assert_int_equal(cordon_policy_protect(policy, "out", &err), -EXDEV);
	assert_int_equal(err.kind, CORDON_KIND_POLICY_DENIED);
	assert_int_equal(cordon_policy_add_protected(policy, "out", NULL, true, &err), 0);
	assert_int_equal(cordon_policy_protect(policy, "fifo", &err), -EINVAL);
	assert_int_equal(err.kind, CORDON_KIND_POLICY_DENIED);
	assert_int_equal(policy->n_protected, 3);
	cordon_policy_decide(policy, "AGENTS.md", CORDON_OP_WRITE, &d);
	assert_int_equal(d.reason, CORDON_REASON_PROTECTED);
	cordon_policy_decide(policy, "real/AGENTS.md", CORDON_OP_WRITE, &d);
	assert_int_equal(d.reason, CORDON_REASON_PROTECTED);
	assert_string_equal(d.rule, "AGENTS.md");
	cordon_policy_decide(policy, "real/other", CORDON_OP_WRITE, &d);
	assert_int_equal(d.verdict, CORDON_ALLOW);
	cordon_policy_free(policy);
}

static void check(const struct cordon_policy *policy, const char *path, cordon_verdict verdict, cordon_reason reason,
		  const char *resolved)
{
	struct cordon_decision d;

	assert_int_equal(cordon_policy_check(policy, path, CORDON_OP_WRITE, &d, NULL), 0);
	if (d.verdict != verdict || d.reason != reason || (resolved && !cordon_streq(d.resolved, resolved)))
		fail_msg("%s is %s (%s) at %s", path, cordon_verdict_name(d.verdict), cordon_reason_name(d.reason),
			 d.resolved);
}

static void paths_are_judged_where_they_lead(void **state)
{
	struct cordon_policy *policy = make_policy();
	char path[2 * UNIT_PATH];

	(void)state;
	unit_mkdir("lib");
	unit_mkdir("other");
	unit_link("/etc/passwd", "lib/pw");
	unit_link("../other", "lib/elsewhere");
	unit_link("lib", "alias");
	unit_link("loop", "loop");
	assert_int_equal(cordon_policy_grant(policy, "lib", CORDON_ACCESS_WRITE, NULL), 0);
	check(policy, "lib/newdir/new.ts", CORDON_ALLOW, CORDON_REASON_GRANT, "lib/newdir/new.ts");
	check(policy, "other/../lib/a", CORDON_ALLOW, CORDON_REASON_GRANT, "lib/a");
	check(policy, "alias/a", CORDON_ALLOW, CORDON_REASON_GRANT, "lib/a");
	check(policy, "lib/../other/a", CORDON_DENY, CORDON_REASON_NO_GRANT, "other/a");
	check(policy, "lib/elsewhere/a", CORDON_DENY, CORDON_REASON_NO_GRANT, "other/a");
	check(policy, "libsecret/key", CORDON_DENY, CORDON_REASON_NO_GRANT, "libsecret/key");
	check(policy, "lib/pw", CORDON_DENY, CORDON_REASON_OUTSIDE_ROOT, "/etc/passwd");
	check(policy, "../x", CORDON_DENY, CORDON_REASON_OUTSIDE_ROOT, NULL);
	check(policy, "loop", CORDON_DENY, CORDON_REASON_UNRESOLVABLE, NULL);
	snprintf(path, sizeof(path), "%s/lib/a", unit_dir);
	check(policy, path, CORDON_ALLOW, CORDON_REASON_GRANT, "lib/a");
	cordon_policy_set_mode(policy, CORDON_MODE_PERMISSIVE);
	check(policy, "lib/pw", CORDON_DENY, CORDON_REASON_OUTSIDE_ROOT, "/etc/passwd");
	check(policy, "libsecret/key", CORDON_WARN, CORDON_REASON_NO_GRANT, "libsecret/key");
	check(policy, "loop", CORDON_DENY, CORDON_REASON_UNRESOLVABLE, NULL);
	assert_int_equal(cordon_policy_check(policy, "", CORDON_OP_READ, NULL, NULL), -EINVAL);
	cordon_policy_free(policy);
}

static void what_is_denied_as_a_whole_leads_nowhere(void **state)
{
	struct cordon_policy *policy = make_policy();

	(void)state;
	assert_true(cordon_policy_leads(policy, "any/where"));
	assert_int_equal(cordon_policy_grant(policy, "src/*/app", CORDON_ACCESS_READ, NULL), 0);
	assert_int_equal(cordon_policy_grant(policy, "src/secret", CORDON_ACCESS_NONE, NULL), 0);
	assert_int_equal(cordon_policy_grant(policy, "src/half/*", CORDON_ACCESS_NONE, NULL), 0);
	assert_true(cordon_policy_leads(policy, ""));
	assert_true(cordon_policy_leads(policy, "src/x"));
	assert_true(cordon_policy_leads(policy, "src/x/app/deep"));
	assert_true(cordon_policy_leads(policy, "src/half"));
	assert_false(cordon_policy_leads(policy, "src/half/app"));
	assert_false(cordon_policy_leads(policy, "src/half/app/deep"));
	assert_false(cordon_policy_leads(policy, "src/x/lib"));
	assert_false(cordon_policy_leads(policy, "src/secret"));
	assert_false(cordon_policy_leads(policy, "src/secret/app"));
	cordon_policy_set_mode(policy, CORDON_MODE_PERMISSIVE);
	assert_true(cordon_policy_leads(policy, "src/x/lib"));
	assert_false(cordon_policy_leads(policy, "src/secret/app"));
	cordon_policy_free(policy);
}

static void explain(const struct cordon_policy *policy, const char *path, cordon_op op, const char *text,
		    const char *remedy)
{
	autobuf struct cordon_buf said = CORDON_BUF(8192), advice = CORDON_BUF(8192);
	struct cordon_decision d;

	assert_int_equal(cordon_policy_check(policy, path, op, &d, NULL), 0);
	assert_int_equal(cordon_policy_explain(policy, &d, op, &said, &advice), 0);
	if (!strstr(said.data, text) || !strstr(advice.data, remedy))
		fail_msg("%s: \"%s\", \"%s\"", path, said.data, advice.data);
}

static void every_decision_is_explained_with_a_remedy(void **state)
{
	struct cordon_policy *policy = make_policy();

	(void)state;
	unit_link("x", "x");
	explain(policy, "a", CORDON_OP_WRITE, "no scope was given", "refuse it with deny 'a'");
	explain(policy, ".", CORDON_OP_WRITE, ". may be written", "refuse it with deny '.'");
	assert_int_equal(cordon_policy_add_grant(policy, "src", CORDON_ACCESS_READ, "--ro", NULL), 0);
	assert_int_equal(cordon_policy_add_grant(policy, "lib", CORDON_ACCESS_WRITE, NULL, NULL), 0);
	assert_int_equal(cordon_policy_add_grant(policy, "**/.env", CORDON_ACCESS_NONE, "c.yaml:2:5", NULL), 0);
	assert_int_equal(cordon_policy_add_protected(policy, "lib/p", NULL, false, NULL), 0);
	assert_int_equal(cordon_policy_add_protected(policy, "lib/q", CORDON_PROTECTED_BY_DEFAULT, true, NULL), 0);
	assert_int_equal(cordon_policy_add_protected(policy, "lib/r", "another rule", true, NULL), 0);
	explain(policy, "lib/a", CORDON_OP_WRITE, "lib/a may be written: the most specific grant is `lib`",
		"refuse it with deny 'lib/a'");
	explain(policy, "src/a", CORDON_OP_WRITE, "for reading only, `src` (--ro)", "grant it with rw 'src/a'");
	explain(policy, "src", CORDON_OP_WRITE, "for reading only, `src` (--ro)", "(rw) in place of `src` (--ro)");
	explain(policy, "src/a", CORDON_OP_READ, "src/a may be read", "refuse it with deny 'src/a'");
	explain(policy, "lib/.env", CORDON_OP_READ, "denied by `**/.env` (c.yaml:2:5)",
		"narrow that deny, `**/.env` (c.yaml:2:5)");
	explain(policy, "lib/p/x", CORDON_OP_WRITE, "`lib/p` is protected against", "off the protected paths: `lib/p`");
	explain(policy, "lib/q", CORDON_OP_WRITE, "`lib/q` is protected by default", "lift it with unprotect 'lib/q'");
	explain(policy, "lib/r", CORDON_OP_WRITE, "`lib/r` (another rule) is protected", "from outside");
	explain(policy, "it's/[1]", CORDON_OP_READ, "it's/[1] is not covered by any grant",
		"grant it with ro 'it'\\''s/\\[1\\]'");
	explain(policy, "bad\nname\xff", CORDON_OP_READ, "bad\\nname\\xff is not", "'bad\\nname\\xff'");
	explain(policy, "../x", CORDON_OP_READ, "is outside the root", "root that holds it");
	explain(policy, "x", CORDON_OP_READ, "cannot be resolved", "links");
	cordon_policy_set_mode(policy, CORDON_MODE_PERMISSIVE);
	explain(policy, "other", CORDON_OP_WRITE, "lets it pass with a warning", "strict mode");
	explain(policy, "../x", CORDON_OP_READ, "is outside the root", "show it with share");
	policy->read_only = true;
	explain(policy, "lib/a", CORDON_OP_WRITE, "the policy is read-only", "not read-only");
	cordon_policy_free(policy);
}

static void a_remedy_is_worded_for_the_front_end(void **state)
{
	static const char *const options[CORDON_SETTING__MAX] = { [CORDON_SETTING_RW] = "--rw" };
	static const char *const none[CORDON_SETTING__MAX] = { 0 };
	struct cordon_policy *policy = make_policy();

	(void)state;
	assert_int_equal(cordon_policy_add_grant(policy, "lib", CORDON_ACCESS_WRITE, NULL, NULL), 0);
	cordon_setting_names(options);
	explain(policy, "src", CORDON_OP_WRITE, "not covered", "grant it with --rw 'src'");
	explain(policy, "src", CORDON_OP_READ, "not covered", "grant it with ro 'src'");
	cordon_setting_names(none);
	explain(policy, "src", CORDON_OP_WRITE, "not covered", "grant it with rw 'src'");
	cordon_policy_free(policy);
}

static void names_are_stable(void **state)
{
	(void)state;
	assert_string_equal(cordon_verdict_name(CORDON_ALLOW), "allow");
	assert_string_equal(cordon_verdict_name(CORDON_WARN), "warn");
	assert_string_equal(cordon_verdict_name(CORDON_DENY), "deny");
	assert_string_equal(cordon_verdict_name((cordon_verdict)99), "deny");
	assert_string_equal(cordon_reason_name(CORDON_REASON_OUTSIDE_ROOT), "outside_root");
	assert_string_equal(cordon_reason_name(CORDON_REASON__MAX), "unresolvable");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_of_decisions_holds),
		cmocka_unit_test(paths_that_are_not_clean_are_refused),
		cmocka_unit_test(the_rule_and_its_place_are_named_whatever_the_order),
		cmocka_unit_test(a_read_only_policy_lets_nothing_be_written),
		cmocka_unit_test(a_bad_rule_changes_nothing),
		cmocka_unit_test(what_is_denied_as_a_whole_leads_nowhere),
		cmocka_unit_test(names_are_stable),
		unit_test_in_dir(protected_paths_are_judged_when_they_are_set),
		unit_test_in_dir(paths_are_judged_where_they_lead),
		unit_test_in_dir(every_decision_is_explained_with_a_remedy),
		unit_test_in_dir(a_remedy_is_worded_for_the_front_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
