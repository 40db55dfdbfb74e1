/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a policy: which policy decides for which path, what is protected in them, and which shares cannot be
 * combined. */
#include "unit.h"

#include "policy/shares.h"
#include "protect/shares.h"

static char root[2 * UNIT_PATH];

/* A path in the directory of the test; only the last eight results are valid. */
static const char *at(const char *name)
{
	static char paths[8][2 * UNIT_PATH];
	static size_t next;
	char *path = paths[next++ % CORDON_ARRAY_SIZE(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", unit_dir, name);
	return path;
}

static struct cordon_policy *make_policy(void)
{
	struct cordon_policy *policy = NULL;

	unit_mkdir("root");
	snprintf(root, sizeof(root), "%s/root", unit_dir);
	assert_int_equal(cordon_policy_new(root, &policy, NULL), 0);
	return policy;
}

static void make_file(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
}

static void expect(const struct cordon_policy *policy, const char *path, cordon_op op, cordon_verdict verdict,
		   cordon_reason reason)
{
	struct cordon_decision d;

	assert_int_equal(cordon_policy_check(policy, path, op, &d, NULL), 0);
	if (d.verdict != verdict || d.reason != reason)
		fail_msg("%s %s is %s (%s)", op == CORDON_OP_WRITE ? "writing" : "reading", path,
			 cordon_verdict_name(d.verdict), cordon_reason_name(d.reason));
}

static int add(struct cordon_policy *policy, const char *source, const char *target, bool read_only,
	       struct cordon_error *err)
{
	struct cordon_share share = { .source = source, .target = target, .read_only = read_only };

	return cordon_shares_add(policy, &share, 1, NULL, NULL, true, err);
}

static void a_share_answers_for_its_source_and_for_its_place_in_the_root(void **state)
{
	struct cordon_policy *policy = make_policy();
	struct cordon_share seen_elsewhere = { .target = "/ws/a/b" };

	(void)state;
	unit_mkdir("data");
	unit_mkdir("more");
	make_file("more/file");
	unit_mkdir("root/out");
	assert_int_equal(cordon_policy_grant(policy, "**", CORDON_ACCESS_READ, NULL), 0);
	expect(policy, at("data/x"), CORDON_OP_READ, CORDON_DENY, CORDON_REASON_OUTSIDE_ROOT);
	assert_int_equal(add(policy, at("data"), at("root/out"), false, NULL), 0);
	assert_int_equal(add(policy, at("more/file"), "/elsewhere", true, NULL), 0);
	assert_int_equal(policy->n_shares, 2);
	assert_string_equal(policy->shares[0].in_root, "out");
	assert_null(policy->shares[1].in_root);
	expect(policy, at("data/x"), CORDON_OP_WRITE, CORDON_ALLOW, CORDON_REASON_GRANT);
	expect(policy, "out/x", CORDON_OP_WRITE, CORDON_ALLOW, CORDON_REASON_GRANT);
	expect(policy, "out/.git/../.envrc", CORDON_OP_WRITE, CORDON_DENY, CORDON_REASON_PROTECTED);
	expect(policy, "output", CORDON_OP_WRITE, CORDON_DENY, CORDON_REASON_GRANT);
	expect(policy, at("database"), CORDON_OP_READ, CORDON_DENY, CORDON_REASON_OUTSIDE_ROOT);
	expect(policy, at("more/file"), CORDON_OP_READ, CORDON_ALLOW, CORDON_REASON_GRANT);
	expect(policy, at("more/file"), CORDON_OP_WRITE, CORDON_DENY, CORDON_REASON_GRANT);
	expect(policy, at("more"), CORDON_OP_READ, CORDON_DENY, CORDON_REASON_OUTSIDE_ROOT);
	/* The rules of the root do not apply in a share, in either mode. */
	cordon_policy_set_mode(policy, CORDON_MODE_PERMISSIVE);
	assert_int_equal(cordon_policy_grant(policy, "out/deep", CORDON_ACCESS_NONE, NULL), 0);
	expect(policy, "out/deep", CORDON_OP_READ, CORDON_ALLOW, CORDON_REASON_GRANT);
	assert_true(cordon_policy_leads(policy, "out"));
	/* If the agent sees the root at another path, a target in it is relative to that path. */
	cordon_policy_drop_shares(policy, 0);
	seen_elsewhere.source = at("data");
	assert_int_equal(cordon_shares_add(policy, &seen_elsewhere, 1, NULL, "/ws/", true, NULL), 0);
	assert_string_equal(policy->shares[0].in_root, "a/b");
	cordon_policy_free(policy);
}

static void what_is_asked_for_must_be_there(void **state)
{
	struct cordon_policy *policy = make_policy();
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(add(policy, at("missing"), NULL, false, &err), -ENOENT);
	assert_int_equal(err.kind, CORDON_KIND_NOT_FOUND);
	assert_int_equal(add(policy, "relative", NULL, false, &err), -EINVAL);
	make_file("file");
	assert_int_equal(add(policy, at("file"), "relative", false, &err), -EINVAL);
	assert_int_equal(cordon_shares_add(policy, NULL, 0, &(struct cordon_share){ .source = at("file") }, NULL, true,
					   &err),
			 -ENOENT);
	assert_int_equal(policy->n_shares, 0);
	cordon_policy_free(policy);
}

static bool is_protected(const struct cordon_policy_share *share, const char *path)
{
	for (size_t i = 0; i < share->policy->n_protected; i++)
		if (cordon_streq(share->policy->protected_paths[i].path, path))
			return true;
	return false;
}

static void where_a_share_lies_says_what_is_protected_in_it(void **state)
{
	struct cordon_policy *policy = make_policy();
	struct cordon_error err = { 0 };

	(void)state;
	unit_mkdir("home");
	unit_mkdir("home/bin");
	unit_mkdir("home/.claude");
	unit_mkdir("home/.claude/hooks");
	unit_mkdir("home/.config");
	unit_mkdir("home/.config/opencode");
	unit_mkdir("home/.cargo");
	assert_int_equal(setenv("HOME", at("home"), 1), 0);
	assert_int_equal(add(policy, at("home/.claude"), NULL, false, NULL), 0);
	assert_true(is_protected(&policy->shares[0], "settings.json"));
	assert_true(is_protected(&policy->shares[0], "hooks"));
	assert_false(is_protected(&policy->shares[0], "projects"));
	assert_int_equal(add(policy, at("home/.config"), NULL, false, NULL), 0);
	assert_true(is_protected(&policy->shares[1], "autostart"));
	assert_true(is_protected(&policy->shares[1], "opencode/opencode.json"));
	assert_int_equal(add(policy, at("home/.cargo"), NULL, false, NULL), 0);
	assert_true(is_protected(&policy->shares[2], "config.toml"));
	assert_int_equal(add(policy, at("home/bin"), NULL, false, &err), -EACCES);
	assert_int_equal(err.kind, CORDON_KIND_POLICY_DENIED);
	cordon_policy_drop_shares(policy, 0);
	assert_int_equal(add(policy, at("home/.claude/hooks"), NULL, false, NULL), -EACCES);
	cordon_policy_drop_shares(policy, 0);
	assert_int_equal(add(policy, at("home/bin"), NULL, true, NULL), 0);
	cordon_policy_drop_shares(policy, 0);
	/* The user's own home as a whole, and a home that only runs use. */
	assert_int_equal(cordon_shares_add(policy, NULL, 0, &(struct cordon_share){ .source = at("home") }, NULL, true,
					   NULL),
			 0);
	assert_true(is_protected(&policy->shares[0], ".bashrc") && is_protected(&policy->shares[0], ".claude"));
	cordon_policy_drop_shares(policy, 0);
	assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
	assert_int_equal(cordon_shares_add(policy, NULL, 0, &(struct cordon_share){ .source = at("home") }, NULL, true,
					   NULL),
			 0);
	assert_true(is_protected(&policy->shares[0], ".claude/hooks"));
	assert_false(is_protected(&policy->shares[0], ".claude") || is_protected(&policy->shares[0], ".bashrc") ||
		     is_protected(&policy->shares[0], ".cargo/config"));
	cordon_policy_free(policy);
}

static void shares_that_show_the_same_files_agree(void **state)
{
	struct cordon_policy *policy = make_policy();
	struct cordon_share pair[2] = { { .source = at("data"), .target = "/a" },
					{ .source = at("data/sub"), .target = "/b" } };

	(void)state;
	unit_mkdir("data");
	unit_mkdir("data/sub");
	for (int i = 0; i < 2; i++) {
		pair[i].read_only = true;
		assert_int_equal(cordon_shares_add(policy, pair, 2, NULL, NULL, true, NULL), -EINVAL);
		cordon_policy_drop_shares(policy, 0);
		pair[i].read_only = false;
	}
	assert_int_equal(cordon_shares_add(policy, pair, 2, NULL, NULL, true, NULL), 0);
	assert_true(is_protected(&policy->shares[0], "sub/.envrc") && is_protected(&policy->shares[1], ".envrc"));
	cordon_policy_drop_shares(policy, 0);
	pair[1].target = "/a/sub";
	assert_int_equal(cordon_shares_add(policy, pair, 2, NULL, NULL, true, NULL), -EINVAL);
	cordon_policy_free(policy);
}

static void a_policy_that_shows_more_of_the_host_is_freer(void **state)
{
	struct cordon_policy *parent = make_policy(), *child = NULL;
	struct cordon_error err = { 0 };

	(void)state;
	unit_mkdir("data");
	unit_mkdir("data/part");
	unit_mkdir("other");
	assert_int_equal(cordon_policy_new(root, &child, NULL), 0);
	assert_int_equal(cordon_policy_within(child, parent, NULL), 0);
	assert_int_equal(add(child, at("data/part"), NULL, true, NULL), 0);
	assert_true(cordon_policy_within(child, parent, &err) < 0);
	assert_non_null(strstr(err.message, "show more of the host"));
	assert_int_equal(add(parent, at("data"), NULL, true, NULL), 0);
	assert_int_equal(cordon_policy_within(child, parent, NULL), 0);
	assert_int_equal(add(child, at("other"), NULL, false, NULL), 0);
	assert_true(cordon_policy_within(child, parent, NULL) < 0);
	assert_int_equal(add(parent, at("other"), NULL, false, NULL), 0);
	assert_int_equal(cordon_policy_within(child, parent, NULL), 0);
	/* The parent protects something there, and the child does not. */
	assert_int_equal(cordon_policy_add_protected(parent->shares[1].policy, "held", NULL, false, NULL), 0);
	assert_true(cordon_policy_within(child, parent, NULL) < 0);
	cordon_policy_free(child);
	cordon_policy_free(parent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(a_share_answers_for_its_source_and_for_its_place_in_the_root),
		unit_test_in_dir(what_is_asked_for_must_be_there),
		unit_test_in_dir(where_a_share_lies_says_what_is_protected_in_it),
		unit_test_in_dir(shares_that_show_the_same_files_agree),
		unit_test_in_dir(a_policy_that_shows_more_of_the_host_is_freer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
