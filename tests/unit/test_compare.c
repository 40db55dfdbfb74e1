/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing policies: random pairs against every path up to a length over a small alphabet. */
#include "unit.h"

#include "base/path.h"
#include "oracle.h"
#include "policy/compare.h"

#define PAIRS 500   /* CORDON_COMPARE_PAIRS=5000 in test-long */
#define NAMES_MAX 3 /* names of a path */

static uint64_t random_state = 20261118u;

static unsigned int below(unsigned int n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned int)(random_state >> 33) % n;
}

/* Every name of one to three of these characters; `z` stands for all that no rule has. */
static char names[80][4];
static size_t n_names;

static void make_names(void)
{
	static const char letters[] = "ab.z";

	n_names = 0;
	for (unsigned int n = 1; n <= 3; n++)
		for (unsigned int code = 0; code < (1u << 2 * n); code++) {
			char name[4] = "";

			for (unsigned int i = 0; i < n; i++)
				name[i] = letters[code >> 2 * i & 3];
			if (!cordon_streq(name, ".") && !cordon_streq(name, "..") && n_names < CORDON_ARRAY_SIZE(names))
				memcpy(names[n_names++], name, sizeof(name));
		}
}

static const char *piece(void)
{
	static const char *const pieces[] = { "a",    "b",    "a",     "b",	  ".a", "*",  "?",
					      "[ab]", "[!a]", "{a,b}", "{a,b/a}", "a*", "*b", "?a" };

	return below(4) ? pieces[below(CORDON_ARRAY_SIZE(pieces))] : "**";
}

static void make_pattern(char *text, size_t size)
{
	unsigned int n = 1 + below(3);

	snprintf(text, size, "%s%s%s%s%s", piece(), n > 1 ? "/" : "", n > 1 ? piece() : "", n > 2 ? "/" : "",
		 n > 2 ? piece() : "");
}

static struct cordon_policy *make_policy(bool may_fence)
{
	struct cordon_policy *policy = NULL;
	unsigned int n = below(4);
	char text[64];

	assert_int_equal(cordon_policy_new(unit_dir, &policy, NULL), 0);
	for (unsigned int i = 0; i < n; i++) {
		make_pattern(text, sizeof(text));
		assert_int_equal(cordon_policy_grant(policy, text, (cordon_access)below(3), NULL), 0);
	}
	if (below(3) == 0)
		assert_int_equal(cordon_policy_protect(policy, below(2) ? "a/b" : "b", NULL), 0);
	if (below(4) == 0)
		policy->read_only = true;
	cordon_policy_set_mode(policy, below(3) ? CORDON_MODE_STRICT : CORDON_MODE_PERMISSIVE);
	if (may_fence && below(3) == 0)
		assert_int_equal(cordon_policy_fence(policy, "fence", make_policy(false), NULL), 0);
	return policy;
}

/* What a brute-force search found, by verdicts: [op][before][after]. */
struct seen {
	bool verdicts[2][3][3];
	size_t least[2][3][3]; /* length of the shortest such path */
};

static void look_at(const struct cordon_policy *a, const struct cordon_policy *b, const char *path, struct seen *seen)
{
	for (cordon_op op = CORDON_OP_READ; op <= CORDON_OP_WRITE; op++) {
		struct cordon_decision x, y;
		size_t len = strlen(path);

		cordon_policy_decide(a, path, op, &x);
		cordon_policy_decide(b, path, op, &y);
		if (x.verdict == y.verdict)
			continue;
		if (!seen->verdicts[op][x.verdict][y.verdict] || len < seen->least[op][x.verdict][y.verdict])
			seen->least[op][x.verdict][y.verdict] = len;
		seen->verdicts[op][x.verdict][y.verdict] = true;
	}
}

static void look_below(const struct cordon_policy *a, const struct cordon_policy *b, const char *dir,
		       unsigned int depth, struct seen *seen)
{
	for (size_t i = 0; i < n_names; i++) {
		char path[64];

		/* Deeper levels take shorter names, so that a pair is asked about 20,000 paths and not a million. */
		if (depth > 0 && strlen(names[i]) > 3 - depth)
			continue;
		snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", names[i]);
		look_at(a, b, path, seen);
		if (depth + 1 < NAMES_MAX)
			look_below(a, b, path, depth + 1, seen);
	}
}

/* A difference is true: the policies themselves say so about its witness. */
static void assert_witness(const struct cordon_policy *a, const struct cordon_policy *b,
			   const struct cordon_policy_difference *d)
{
	struct cordon_decision x, y;
	cordon_op op = d->op == CORDON_COMPARED_WRITE ? CORDON_OP_WRITE : CORDON_OP_READ;

	cordon_policy_decide(a, d->witness, op, &x);
	cordon_policy_decide(b, d->witness, op, &y);
	assert_int_equal(x.verdict, d->before.verdict);
	assert_int_equal(y.verdict, d->after.verdict);
	assert_int_not_equal(x.verdict, y.verdict);
	assert_ptr_equal(x.rule, d->before.rule);
	assert_ptr_equal(y.rule, d->after.rule);
}

/* The question of narrowing, for the same pair: is there a path that the second lets through and the first denies? */
static void narrow_pair(const struct cordon_policy *a, const struct cordon_policy *b, const struct seen *seen,
			unsigned int round)
{
	struct cordon_policy_difference found = { 0 };
	size_t least = SIZE_MAX;

	for (int op = 0; op < 2; op++)
		for (int y = CORDON_ALLOW; y < CORDON_DENY; y++)
			if (seen->verdicts[op][CORDON_DENY][y] && seen->least[op][CORDON_DENY][y] < least)
				least = seen->least[op][CORDON_DENY][y];
	assert_int_equal(cordon_policy_find_freer(b, a, "", &found, NULL), 0);
	if (least != SIZE_MAX && (!found.witness || strlen(found.witness) > least))
		fail_msg("round %u: freer by a path of %zu bytes", round, least);
	if (found.witness)
		assert_true(cordon_policy_access(b, found.witness) > cordon_policy_access(a, found.witness));
	free(found.witness);
}

static void compare_pair(unsigned int round)
{
	struct cordon_policy *a = make_policy(true), *b = make_policy(true);
	struct cordon_policy_differences found = { 0 };
	struct seen seen = { 0 }, told = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_policy_compare(a, b, &found, &err) < 0)
		fail_msg("round %u: %s", round, err.message);
	look_at(a, b, "", &seen);
	look_below(a, b, "", 0, &seen);
	narrow_pair(a, b, &seen, round);
	for (size_t i = 0; i < found.n; i++) {
		const struct cordon_policy_difference *d = &found.items[i];
		size_t len = strlen(d->witness);

		assert_witness(a, b, d);
		if (!told.verdicts[d->op][d->before.verdict][d->after.verdict] ||
		    len < told.least[d->op][d->before.verdict][d->after.verdict])
			told.least[d->op][d->before.verdict][d->after.verdict] = len;
		told.verdicts[d->op][d->before.verdict][d->after.verdict] = true;
	}
	for (int op = 0; op < 2; op++)
		for (int x = 0; x < 3; x++)
			for (int y = 0; y < 3; y++) {
				if (!seen.verdicts[op][x][y])
					continue;
				if (!told.verdicts[op][x][y] || told.least[op][x][y] > seen.least[op][x][y])
					fail_msg("round %u: %s %d to %d was missed, or its witness is not the shortest",
						 round, op ? "write" : "read", x, y);
			}
	cordon_policy_differences_done(&found);
	cordon_policy_free(a);
	cordon_policy_free(b);
}

static void no_difference_is_missed_or_invented(void **state)
{
	const char *wanted = getenv("CORDON_COMPARE_PAIRS");
	uint64_t pairs = PAIRS;

	(void)state;
	if (wanted)
		assert_int_equal(cordon_parse_u64(wanted, 1, 1000000, &pairs), 0);
	make_names();
	for (unsigned int round = 0; round < pairs; round++)
		compare_pair(round);
}

/* ---- decide() itself, against the rules as policy.h words them and a matcher that is right by being obvious ---- */

/* Whether a denial covers a path: it matches that, or something above it. */
static bool is_denied(const struct cordon_policy *part, const char *path)
{
	char above[64];

	for (size_t i = 0; i < part->n_grants; i++) {
		if (part->grants[i].access != CORDON_ACCESS_NONE)
			continue;
		snprintf(above, sizeof(above), "%s", path);
		for (char *slash = above; slash; slash = strrchr(above, '/')) {
			if (slash != above)
				*slash = '\0';
			if (oracle_match(cordon_pattern_text(part->grants[i].pattern), above).matches)
				return true;
		}
	}
	return false;
}

static bool is_protected(const struct cordon_policy *part, const char *path)
{
	for (size_t i = 0; i < part->n_protected; i++)
		if (cordon_path_within(path, part->protected_paths[i].path))
			return true;
	return false;
}

static cordon_verdict by_the_rules(const struct cordon_policy *part, const char *path, cordon_op op)
{
	struct cordon_specificity best = { 0 };
	bool scope = false, found = false;
	cordon_access access = CORDON_ACCESS_WRITE;

	if (is_denied(part, path) || (op == CORDON_OP_WRITE && is_protected(part, path)))
		return CORDON_DENY;
	for (size_t i = 0; i < part->n_grants; i++) {
		struct oracle_answer answer;
		const struct cordon_specificity *s = &answer.specificity;
		bool more, same;

		if (part->grants[i].access == CORDON_ACCESS_NONE)
			continue;
		scope = true;
		answer = oracle_match(cordon_pattern_text(part->grants[i].pattern), path);
		if (!answer.matches)
			continue;
		same = found && s->literal_components == best.literal_components &&
		       s->literal_prefix == best.literal_prefix;
		more = !found || s->literal_components > best.literal_components ||
		       (s->literal_components == best.literal_components && s->literal_prefix > best.literal_prefix);
		if (more || (same && part->grants[i].access < access))
			access = part->grants[i].access;
		if (more)
			best = *s;
		found = true;
	}
	if (scope && !found)
		return part->mode == CORDON_MODE_PERMISSIVE ? CORDON_WARN : CORDON_DENY;
	if (part->read_only && access == CORDON_ACCESS_WRITE)
		access = CORDON_ACCESS_READ;
	return op == CORDON_OP_READ || access == CORDON_ACCESS_WRITE ? CORDON_ALLOW : CORDON_DENY;
}

static void check_path(const struct cordon_policy *policy, const char *path)
{
	for (cordon_op op = CORDON_OP_READ; op <= CORDON_OP_WRITE; op++) {
		cordon_verdict strictest = CORDON_ALLOW, one;
		const struct cordon_policy *part;
		struct cordon_decision d;

		for (size_t i = 0; (part = cordon_policy_part(policy, i)); i++)
			if ((one = by_the_rules(part, path, op)) > strictest)
				strictest = one;
		cordon_policy_decide(policy, path, op, &d);
		if (d.verdict != strictest)
			fail_msg("%s %s is %s, and by the rules %s", cordon_op_name(op), path,
				 cordon_verdict_name(d.verdict), cordon_verdict_name(strictest));
	}
}

static void check_below(const struct cordon_policy *policy, const char *dir, unsigned int depth)
{
	for (size_t i = 0; i < n_names; i++) {
		char path[64];

		if (strlen(names[i]) > 2 - (depth > 0))
			continue;
		snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", names[i]);
		check_path(policy, path);
		if (depth + 1 < NAMES_MAX)
			check_below(policy, path, depth + 1);
	}
}

static void every_short_path_is_decided_as_the_rules_say(void **state)
{
	const char *wanted = getenv("CORDON_COMPARE_PAIRS");
	uint64_t pairs = PAIRS;

	(void)state;
	if (wanted)
		assert_int_equal(cordon_parse_u64(wanted, 1, 1000000, &pairs), 0);
	make_names();
	for (uint64_t round = 0; round < pairs / 10; round++) {
		struct cordon_policy *policy = make_policy(true);

		check_path(policy, "");
		check_below(policy, "", 0);
		cordon_policy_free(policy);
	}
}

static struct cordon_policy *policy_of(const char *write, const char *hosts)
{
	struct cordon_policy *policy = NULL;

	assert_int_equal(cordon_policy_new(unit_dir, &policy, NULL), 0);
	if (write)
		assert_int_equal(cordon_policy_grant(policy, write, CORDON_ACCESS_WRITE, NULL), 0);
	if (hosts)
		assert_int_equal(cordon_policy_allow_hosts(policy, hosts, NULL), 0);
	return policy;
}

static void compare_two(struct cordon_policy *a, struct cordon_policy *b, struct cordon_policy_differences *ret)
{
	struct cordon_error err = { 0 };

	if (cordon_policy_compare(a, b, ret, &err) < 0)
		fail_msg("%s", err.message);
	cordon_policy_free(a);
	cordon_policy_free(b);
}

static void patterns_that_look_different_may_be_the_same(void **state)
{
	static const char *const pairs[][2] = {
		{ "src", "src/**" }, { "{a,b}/*.ts", "[ab]/*.ts" }, { "a/**/**/b", "a/**/b" }, { "x?*", "x*?" }
	};
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(pairs); i++) {
		struct cordon_policy_differences found = { 0 };

		compare_two(policy_of(pairs[i][0], NULL), policy_of(pairs[i][1], NULL), &found);
		for (size_t j = 0; j < found.n; j++)
			fail_msg("%s and %s differ about %s", pairs[i][0], pairs[i][1], found.items[j].witness);
		cordon_policy_differences_done(&found);
	}
}

static void hosts_are_compared(void **state)
{
	struct cordon_policy_differences found = { 0 };

	(void)state;
	compare_two(policy_of(NULL, "example.com,*.example.org"), policy_of(NULL, "example.com:444,www.example.org"),
		    &found);
	assert_int_equal(found.n, 3);
	for (size_t i = 0; i < found.n; i++)
		assert_int_equal(found.items[i].op, CORDON_COMPARED_CONNECT);
	assert_string_equal(found.items[0].witness, "example.com:443");
	assert_string_equal(found.items[1].witness, "example.com:444");
	assert_true(!cordon_policy_difference_adds(&found.items[0]) && cordon_policy_difference_adds(&found.items[1]));
	assert_string_equal(found.items[2].witness, "a.example.org:443");
	cordon_policy_differences_done(&found);
	compare_two(policy_of(NULL, NULL), policy_of(NULL, ""), &found);
	assert_true(found.n > 0 && !cordon_policy_difference_adds(&found.items[0]));
	cordon_policy_differences_done(&found);
}

static void what_is_too_large_is_refused(void **state)
{
	struct cordon_policy *a = policy_of("**/*a?????????????????????????????????????b", NULL),
			     *b = policy_of("x", NULL);
	struct cordon_policy_differences found = { 0 };
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_policy_compare(a, b, &found, &err), -E2BIG);
	assert_int_equal(err.kind, CORDON_KIND_LIMIT);
	assert_int_equal(found.n, 0);
	cordon_policy_free(a);
	cordon_policy_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(no_difference_is_missed_or_invented),
		unit_test_in_dir(every_short_path_is_decided_as_the_rules_say),
		unit_test_in_dir(patterns_that_look_different_may_be_the_same),
		unit_test_in_dir(hosts_are_compared),
		unit_test_in_dir(what_is_too_large_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
