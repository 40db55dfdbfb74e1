/* SPDX-License-Identifier: Apache-2.0 */
/* Fences and the comparison of policies: by example, and with random policies that are compared with the decision
 * function. */
#include "unit.h"

#include <sys/mman.h>

#include "base/path.h"
#include "policy/compare.h"
#include "policy/handover.h"

#define ROUNDS 4000

static struct cordon_policy *make_policy(const char *place)
{
	struct cordon_policy *policy = NULL;
	char path[2 * UNIT_PATH];

	snprintf(path, sizeof(path), "%s/%s", unit_dir, place);
	assert_int_equal(cordon_policy_new(path, &policy, NULL), 0);
	return policy;
}

static void grant(struct cordon_policy *policy, const char *pattern, cordon_access access)
{
	assert_int_equal(cordon_policy_grant(policy, pattern, access, NULL), 0);
}

static void fence(struct cordon_policy *policy, const char *name, struct cordon_policy *outer)
{
	struct cordon_error err = { 0 };

	if (cordon_policy_fence(policy, name, outer, &err) < 0)
		fail_msg("%s", err.message);
}

static void expect(const struct cordon_policy *policy, const char *path, cordon_op op, cordon_verdict verdict,
		   const char *by)
{
	struct cordon_decision d;

	cordon_policy_decide(policy, path, op, &d);
	if (d.verdict != verdict || (by ? !d.fence || !cordon_streq(d.fence, by) : d.fence != NULL))
		fail_msg("%s is %s by %s", path, cordon_verdict_name(d.verdict), d.fence ? d.fence : "the policy");
}

static void folders_and_a_story_mean_both(void **state)
{
	struct cordon_policy *policy = make_policy(""), *story = make_policy("");
	autobuf struct cordon_buf text = CORDON_BUF(8192), remedy = CORDON_BUF(8192);
	struct cordon_decision d;

	(void)state;
	grant(policy, "lib", CORDON_ACCESS_WRITE);
	grant(story, "lib/**/*.ts", CORDON_ACCESS_WRITE);
	grant(story, "docs", CORDON_ACCESS_READ);
	grant(story, "**/key.ts", CORDON_ACCESS_NONE);
	assert_int_equal(cordon_policy_protect(story, "lib/held.ts", NULL), 0);
	fence(policy, "the story", story);
	expect(policy, "lib/a/b.ts", CORDON_OP_WRITE, CORDON_ALLOW, NULL);
	expect(policy, "lib/a/b.sh", CORDON_OP_WRITE, CORDON_DENY, "the story");
	expect(policy, "src/a.ts", CORDON_OP_READ, CORDON_DENY, NULL);
	expect(policy, "docs/a", CORDON_OP_READ, CORDON_DENY, NULL);
	/* From then on, what the fence denies or protects is a rule of the policy itself. */
	expect(policy, "lib/key.ts", CORDON_OP_READ, CORDON_DENY, NULL);
	expect(policy, "lib/held.ts", CORDON_OP_WRITE, CORDON_DENY, NULL);
	expect(policy, "lib/held.ts", CORDON_OP_READ, CORDON_ALLOW, NULL);
	assert_int_equal(policy->n_protected, 1);
	assert_int_equal(policy->fences[0]->n_grants, 2);
	assert_true(cordon_policy_leads(policy, "lib/deep"));
	assert_false(cordon_policy_leads(policy, "docs"));
	assert_true(cordon_policy_leads_write(policy, "lib/new"));
	assert_false(cordon_policy_leads_write(policy, "docs/new"));
	assert_int_equal(cordon_policy_access(policy, "lib/a.ts"), CORDON_ACCESS_WRITE);
	assert_int_equal(cordon_policy_access(policy, "lib/a"), CORDON_ACCESS_NONE);

	cordon_policy_decide(policy, "lib/a.sh", CORDON_OP_WRITE, &d);
	assert_int_equal(cordon_policy_explain(policy, &d, CORDON_OP_WRITE, &text, &remedy), 0);
	assert_string_equal(text.data, "lib/a.sh is not covered by any grant of the fence the story");
	assert_string_equal(remedy.data, "widen the fence the story, or leave it out");
	cordon_policy_free(policy);
}

static void the_strictest_mode_wins(void **state)
{
	struct cordon_policy *policy = make_policy(""), *open_fence = make_policy(""), *strict = make_policy("");

	(void)state;
	grant(policy, "lib", CORDON_ACCESS_WRITE);
	grant(open_fence, "lib/a", CORDON_ACCESS_WRITE);
	grant(strict, "lib", CORDON_ACCESS_WRITE);
	cordon_policy_set_mode(policy, CORDON_MODE_PERMISSIVE);
	cordon_policy_set_mode(open_fence, CORDON_MODE_PERMISSIVE);
	fence(policy, "open", open_fence);
	expect(policy, "lib/b", CORDON_OP_WRITE, CORDON_WARN, "open");
	expect(policy, "src", CORDON_OP_WRITE, CORDON_WARN, NULL);
	fence(policy, "strict", strict);
	assert_int_equal(policy->mode, CORDON_MODE_STRICT);
	expect(policy, "lib/b", CORDON_OP_WRITE, CORDON_DENY, "open");
	cordon_policy_set_mode(policy, CORDON_MODE_PERMISSIVE);
	assert_int_equal(policy->mode, CORDON_MODE_STRICT);
	expect(policy, "src", CORDON_OP_WRITE, CORDON_DENY, NULL);
	cordon_policy_free(policy);
}

static void a_fence_of_another_root_is_refused_and_one_that_says_nothing_is_dropped(void **state)
{
	struct cordon_policy *policy = make_policy(""), *other, *read_only = make_policy(""), *nested = make_policy("");
	struct cordon_error err = { 0 };

	(void)state;
	unit_mkdir("lib");
	other = make_policy("lib");
	grant(other, "**/x", CORDON_ACCESS_NONE);
	assert_int_equal(cordon_policy_fence(policy, "lib", other, &err), -EXDEV);
	assert_int_equal(policy->n_grants, 0);
	fence(policy, "empty", make_policy(""));
	assert_int_equal(policy->n_fences, 0);
	read_only->read_only = true;
	grant(nested, "lib", CORDON_ACCESS_WRITE);
	fence(nested, "read-only", read_only);
	fence(policy, "nested", nested);
	assert_int_equal(policy->n_fences, 2);
	expect(policy, "lib/a", CORDON_OP_WRITE, CORDON_DENY, "read-only");
	expect(policy, "lib/a", CORDON_OP_READ, CORDON_ALLOW, NULL);
	expect(policy, "src/a", CORDON_OP_READ, CORDON_DENY, "nested");
	assert_false(cordon_policy_has_write(policy));
	cordon_policy_free(policy);
}

/* ---- random policies ---- */

static unsigned int seed = 20261116;

static unsigned int below(unsigned int n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

static const char *const patterns[] = { "lib",	   "src",   "lib/a",	"lib/**",      "**",
					"**/*.ts", "lib/*", "lib/*.ts", "lib/**/*.ts", "src/a*",
					"**/key",  "a*",    "lib/?b",	"{lib,src}",   "{lib/a,src}/**",
					"lib/a/b", "*/a",   "src/**/b", ".",	       "lib/a*" };
static const char *const names[] = { "lib", "src", "a", "b", "ab", "x.ts", "key", "a.ts" };
static const char *const held[] = { "lib", "lib/a", "src/a", "key", "lib/a/b" };

static void random_path(char ret[static 64])
{
	unsigned int depth = below(5);

	ret[0] = '\0';
	for (unsigned int i = 0; i < depth; i++)
		snprintf(ret + strlen(ret), 64 - strlen(ret), "%s%s", i ? "/" : "",
			 names[below(CORDON_ARRAY_SIZE(names))]);
}

static struct cordon_policy *random_policy(const char *root, bool fences)
{
	struct cordon_policy *policy = make_policy(root);
	unsigned int n = below(4);

	for (unsigned int i = 0; i < n; i++)
		grant(policy, patterns[below(CORDON_ARRAY_SIZE(patterns))],
		      below(4) ? (cordon_access)(1 + below(2)) : CORDON_ACCESS_NONE);
	for (unsigned int i = below(3); i-- > 0;)
		assert_int_equal(cordon_policy_protect(policy, held[below(CORDON_ARRAY_SIZE(held))], NULL), 0);
	policy->read_only = below(6) == 0;
	cordon_policy_set_mode(policy, below(4) ? CORDON_MODE_STRICT : CORDON_MODE_PERMISSIVE);
	for (unsigned int i = fences ? below(3) : 0; i-- > 0;)
		fence(policy, "fence", random_policy(root, false));
	return policy;
}

static struct cordon_policy *copy_of(const struct cordon_policy *policy)
{
	struct cordon_policy *copy = NULL;
	autofd int fd = memfd_create("policy", MFD_CLOEXEC);
	bool temps;

	assert_int_equal(cordon_handover_write(policy, true, fd, NULL), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(cordon_handover_read(fd, policy->root.fd, &copy, &temps, NULL), 0);
	return copy;
}

static void random_fences_give_the_strictest_answer_here_and_handed_over(void **state)
{
	size_t fenced = 0;

	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct cordon_policy *parts[3], *policy, *copy;
		unsigned int n = 1 + below(3);
		bool strict = false;

		for (unsigned int i = 0; i < n; i++) {
			parts[i] = random_policy("", false);
			strict |= parts[i]->mode == CORDON_MODE_STRICT;
		}
		/* The same rules, copied one by one and put around each other. */
		policy = copy_of(parts[0]);
		for (unsigned int i = 1; i < n; i++)
			fence(policy, "fence", copy_of(parts[i]));
		copy = copy_of(policy);
		for (unsigned int i = 0; i < n; i++)
			cordon_policy_set_mode(parts[i], strict ? CORDON_MODE_STRICT : CORDON_MODE_PERMISSIVE);
		for (unsigned int i = 0; i < 20; i++) {
			cordon_op op = below(2) ? CORDON_OP_WRITE : CORDON_OP_READ;
			struct cordon_decision d, e, strictest;
			char path[64];

			random_path(path);
			cordon_policy_decide(policy, path, op, &d);
			cordon_policy_decide(copy, path, op, &e);
			cordon_policy_decide(parts[0], path, op, &strictest);
			for (unsigned int k = 1; k < n; k++) {
				struct cordon_decision part;

				cordon_policy_decide(parts[k], path, op, &part);
				strictest.verdict = part.verdict > strictest.verdict ? part.verdict : strictest.verdict;
				strictest.access = part.access < strictest.access ? part.access : strictest.access;
			}
			if (d.verdict != strictest.verdict || d.access != strictest.access || e.verdict != d.verdict ||
			    e.access != d.access)
				fail_msg("round %u: %s is %s and %s, not %s", round, path,
					 cordon_verdict_name(d.verdict), cordon_verdict_name(e.verdict),
					 cordon_verdict_name(strictest.verdict));
			/* If the path can be reached, every directory above it leads there. */
			while (d.verdict != CORDON_DENY) {
				char *slash = strrchr(path, '/');

				assert_true(cordon_policy_leads(policy, path));
				if (!*path)
					break;
				*(slash ? slash : path) = '\0';
			}
			fenced += d.fence != NULL;
		}
		for (unsigned int i = 0; i < n; i++)
			cordon_policy_free(parts[i]);
		cordon_policy_free(policy);
		cordon_policy_free(copy);
	}
	assert_true(fenced > ROUNDS);
}

static void what_holds_is_never_written(void **state)
{
	size_t holds = 0;

	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct cordon_policy *policy = random_policy("", true);
		char path[64], longer[256], tail[64];

		for (unsigned int i = 0; i < 10; i++) {
			random_path(path);
			if (!cordon_policy_holds(policy, path))
				continue;
			holds++;
			for (unsigned int k = 0; k < 10; k++) {
				random_path(tail);
				assert_int_equal(cordon_path_join(path, tail, longer, sizeof(longer)), 0);
				if (cordon_policy_access(policy, longer) == CORDON_ACCESS_WRITE)
					fail_msg("round %u: %s holds, and %s can be written", round, path, longer);
			}
		}
		cordon_policy_free(policy);
	}
	assert_true(holds > ROUNDS);
}

/* A refusal is as true as a permission: there is a path with more rights. */
static void check_witness(const struct cordon_policy *child, const struct cordon_policy *parent, const char *root, int r)
{
	struct cordon_policy_difference found = { 0 };
	char path[256];

	assert_int_equal(cordon_policy_find_freer(child, parent, root, &found, NULL), 0);
	assert_true(r == 0 ? !found.witness : found.witness != NULL);
	if (!found.witness)
		return;
	assert_int_equal(cordon_path_join(root, found.witness, path, sizeof(path)), 0);
	if (cordon_policy_access(child, found.witness) <= cordon_policy_access(parent, path))
		fail_msg("%s is not freer", path);
	free(found.witness);
}

static void a_policy_within_another_is_never_freer(void **state)
{
	size_t inside = 0, outside = 0;

	(void)state;
	unit_mkdir("lib");
	/* Each compares whole policies, which takes long with sanitizers. */
	for (unsigned int round = 0; round < ROUNDS / 4; round++) {
		const char *root = below(3) ? "" : "lib";
		struct cordon_policy *parent = random_policy("", true), *child = random_policy(root, true);
		struct cordon_error err = { 0 };
		int r;

		/* Sometimes the child is made from its parent. */
		if (!*root && below(4) == 0)
			fence(child, "parent", copy_of(parent));
		r = cordon_policy_within(child, parent, &err);
		assert_true(r == 0 || (r == -EPERM && strncmp(err.message, "it would ", 9) == 0));
		check_witness(child, parent, root, r);
		inside += r == 0;
		outside += r != 0;
		for (unsigned int i = 0; r == 0 && i < 60; i++) {
			char path[64], longer[256];

			random_path(path);
			assert_int_equal(cordon_path_join(root, path, longer, sizeof(longer)), 0);
			if (cordon_policy_access(child, path) > cordon_policy_access(parent, longer))
				fail_msg("round %u: %s is freer in the child", round, longer);
		}
		assert_int_equal(cordon_policy_within(parent, parent, NULL), 0);
		cordon_policy_free(parent);
		cordon_policy_free(child);
	}
	print_message("# %zu inside, %zu not\n", inside, outside);
	assert_true(inside > ROUNDS / 32 && outside > ROUNDS / 32);
}

static void a_fence_around_it_makes_any_policy_no_freer(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct cordon_policy *parent = random_policy("", true), *child = random_policy("", true);
		struct cordon_error err = { 0 };

		fence(child, "parent", copy_of(parent));
		if (cordon_policy_within(child, parent, &err) < 0)
			fail_msg("round %u: %s", round, err.message);
		cordon_policy_free(parent);
		cordon_policy_free(child);
	}
}

static void add_all(struct cordon_policy *policy, const char *grants)
{
	char text[256], *rest = text;

	snprintf(text, sizeof(text), "%s", grants);
	for (char *word; (word = strsep(&rest, " "));) {
		if (!*word)
			continue;
		if (word[0] == 'p')
			assert_int_equal(cordon_policy_protect(policy, word + 2, NULL), 0);
		else
			grant(policy, word + 2,
			      word[0] == 'w'   ? CORDON_ACCESS_WRITE
			      : word[0] == 'r' ? CORDON_ACCESS_READ
					       : CORDON_ACCESS_NONE);
	}
}

/* `why` is NULL when the child is no freer. */
static void within(const char *child_grants, const char *parent_grants, const char *why)
{
	struct cordon_policy *child = make_policy(""), *parent = make_policy("");
	struct cordon_error err = { 0 };
	int r;

	add_all(child, child_grants);
	add_all(parent, parent_grants);
	r = cordon_policy_within(child, parent, &err);
	if (why ? r != -EPERM || !cordon_streq(err.message, why) : r != 0)
		fail_msg("%s in %s: %s", child_grants, parent_grants, r ? err.message : "inside");
	cordon_policy_free(child);
	cordon_policy_free(parent);
}

static void what_is_freer_is_said_in_one_line(void **state)
{
	(void)state;
	within("", "", NULL);
	within("w:lib", "", NULL);
	within("", "w:lib", "it would read .: nothing limits it, and outside no rule gives it");
	within("w:lib/a", "w:lib", NULL);
	within("r:lib/a w:lib/a/b", "r:** w:lib", NULL);
	within("w:lib", "w:lib r:lib/vendor",
	       "it would write lib/vendor: `lib` allows it, and outside `lib/vendor` denies it");
	within("w:lib r:lib/vendor", "w:lib r:lib/vendor", NULL);
	within("w:lib", "r:lib", "it would write lib: `lib` allows it, and outside `lib` denies it");
	within("r:src", "r:lib", "it would read src: `src` allows it, and outside no rule gives it");
	within("w:lib/**/*.ts", "w:lib", NULL);
	within("w:lib/**/*.ts", "w:lib/**/*.ts", NULL);
	within("w:lib/x.ts", "w:lib/**/*.ts",
	       "it would read lib/x.ts/a: `lib/x.ts` allows it, and outside no rule gives it");
	within("w:lib/{a,b}.ts", "w:lib/[ab].ts w:lib/*.ts/**", NULL);
	within("w:lib/*/a?.ts", "w:lib/**/*.ts", NULL);
	within("w:lib/**/b?c.ts", "w:lib/**/b*.ts w:lib/**/?c.ts", NULL);
	within("w:a/[a-m]* w:a/[!a-m]*", "w:a/*", NULL);
	within("w:a/*", "w:a/[a-m]* w:a/[n-z]*", "it would read a/-: `a/*` allows it, and outside no rule gives it");
	within("w:lib", "w:lib d:**/.env", "it would read lib/.env: `lib` allows it, and outside `**/.env` denies it");
	within("w:lib d:**/.env", "w:lib d:**/.env", NULL);
	within("w:lib", "w:lib d:src/*.key", NULL);
	within("w:lib", "p:AGENTS.md", NULL);
	within("", "p:AGENTS.md", "it would write AGENTS.md: nothing limits it, and outside `AGENTS.md` denies it");
	within("p:AGENTS.md", "p:AGENTS.md", NULL);
	within("p:.git", "p:.git/config p:.git/hooks", NULL);
	within("w:. r:.git", "p:.git/config", NULL);
	within("p:.git/config", "p:.git", "it would write .git: nothing limits it, and outside `.git` denies it");
}

static void what_cannot_be_compared_is_refused(void **state)
{
	static const char large[] = "**/*a?????????????????????????????????????b";
	struct cordon_policy *child = make_policy(""), *parent = make_policy("");
	struct cordon_error err = { 0 };

	(void)state;
	grant(child, large, CORDON_ACCESS_WRITE);
	grant(child, "lib", CORDON_ACCESS_WRITE);
	grant(parent, "**/*b", CORDON_ACCESS_WRITE);
	grant(parent, "lib", CORDON_ACCESS_WRITE);
	assert_int_equal(cordon_policy_within(child, parent, &err), -E2BIG);
	assert_int_equal(err.kind, CORDON_KIND_LIMIT);
	cordon_policy_free(child);
	cordon_policy_free(parent);
	/* A name that is not UTF-8 may be one that an agent made. Where both protect it, it is no obstacle. */
	child = make_policy("");
	parent = make_policy("");
	assert_int_equal(cordon_policy_protect(parent, "x\xff/.git", NULL), 0);
	assert_int_equal(cordon_policy_within(child, parent, &err), -EILSEQ);
	assert_int_equal(cordon_policy_protect(child, "x\xff/.git", NULL), 0);
	assert_int_equal(cordon_policy_within(child, parent, &err), 0);
	grant(parent, "lib", CORDON_ACCESS_WRITE);
	assert_int_equal(cordon_policy_within(child, parent, &err), -EPERM);
	cordon_policy_free(child);
	cordon_policy_free(parent);
}

static void a_fence_narrows_the_list_of_hosts(void **state)
{
	struct cordon_policy *policy = make_policy(""), *outer = make_policy(""), *parent = make_policy("");
	struct cordon_decision d;
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_policy_check_host(policy, "other.example.com", &d, NULL), 0);
	assert_int_equal(d.verdict, CORDON_ALLOW);
	assert_null(d.rule);
	assert_int_equal(cordon_policy_allow_hosts(parent, "*.example.com", &err), 0);
	assert_int_equal(cordon_policy_within(policy, parent, &err), -EPERM);
	assert_string_equal(err.message, "it would reach more of the network");
	assert_int_equal(cordon_policy_allow_hosts(policy, "api.example.com,git.example.com:22/tcp", &err), 0);
	assert_int_equal(cordon_policy_within(policy, parent, &err), -EPERM);
	assert_string_equal(err.message, "it would reach more of the network: git.example.com:22/tcp");
	assert_int_equal(cordon_policy_allow_hosts(outer, "*.example.com,b.example.org", &err), 0);
	fence(policy, "the session", outer);
	assert_int_equal(cordon_policy_within(policy, parent, &err), 0);
	assert_int_equal(cordon_policy_check_host(policy, "API.example.com:443", &d, NULL), 0);
	assert_int_equal(d.verdict, CORDON_ALLOW);
	assert_string_equal(d.rule, "api.example.com:443");
	assert_string_equal(d.resolved, "api.example.com:443");
	assert_int_equal(cordon_policy_check_host(policy, "git.example.com:22", &d, NULL), 0);
	assert_int_equal(d.verdict, CORDON_DENY);
	assert_int_equal(d.reason, CORDON_REASON_NO_HOST);
	assert_int_equal(cordon_policy_check_host(policy, "b.example.org", &d, NULL), 0);
	assert_int_equal(d.verdict, CORDON_DENY);
	assert_int_equal(cordon_policy_allow_hosts(policy, "localhost:5432", &err), 0);
	for (size_t i = 0; i < 3; i++) {
		static const char *const same[] = { "localhost:5432", "127.0.0.1:5432", "[::1]:5432" };

		assert_int_equal(cordon_policy_check_host(policy, same[i], &d, NULL), 0);
		assert_int_equal(d.verdict, CORDON_ALLOW);
	}
	assert_int_equal(cordon_policy_check_host(policy, "127.0.0.2:5432", &d, NULL), 0);
	assert_int_equal(d.verdict, CORDON_DENY);
	cordon_policy_free(policy);
	cordon_policy_free(parent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(folders_and_a_story_mean_both),
		unit_test_in_dir(the_strictest_mode_wins),
		unit_test_in_dir(a_fence_of_another_root_is_refused_and_one_that_says_nothing_is_dropped),
		unit_test_in_dir(random_fences_give_the_strictest_answer_here_and_handed_over),
		unit_test_in_dir(what_holds_is_never_written),
		unit_test_in_dir(a_policy_within_another_is_never_freer),
		unit_test_in_dir(a_fence_around_it_makes_any_policy_no_freer),
		unit_test_in_dir(what_is_freer_is_said_in_one_line),
		unit_test_in_dir(what_cannot_be_compared_is_refused),
		unit_test_in_dir(a_fence_narrows_the_list_of_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
