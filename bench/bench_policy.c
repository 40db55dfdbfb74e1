/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how fast the policy engine is: decisions per second with 1, 10 and 100 patterns, and the slowest match of
 * a pattern of 4 KiB with a path of 4 KiB; and how long it takes to compare two versions of a policy, 200 of them. Prints "name value unit", and fails when a result misses its bar. It
 * measures processor time, so that a busy machine does not change the result.
 */
#include <stdio.h>
#include <time.h>

#include "policy/compare.h"

#define RATE_BAR 1e6   /* decisions per second with 100 patterns */
#define WORST_BAR 50.0 /* milliseconds */
#define DIFF_BAR 100.0 /* milliseconds */
#define DIFFS 200
#define ROUND_SECONDS 0.25
#define ROUNDS 5

struct rule {
	cordon_access access;
	const char *pattern;
};

#define NONE CORDON_ACCESS_NONE
#define READ CORDON_ACCESS_READ
#define WRITE CORDON_ACCESS_WRITE

/* What a team with a monorepo might write; the first rule and the first 10 rules are policies, too. */
static const struct rule rules[] = {
	{ WRITE, "src/**" },
	{ READ, "src/**/*.ts" },
	{ WRITE, "tests/**" },
	{ NONE, "**/.env" },
	{ READ, "docs/**/*.md" },
	{ WRITE, "packages/*/src" },
	{ READ, "package.json" },
	{ NONE, "**/*.{pem,key,p12,pfx}" },
	{ READ, "vendor" },
	{ NONE, "**/node_modules/**" },
	{ NONE, "**/.env.*" },
	{ NONE, "**/secrets/**" },
	{ NONE, "**/.ssh/**" },
	{ NONE, "**/id_{rsa,dsa,ecdsa,ed25519}*" },
	{ NONE, "deploy/production/**" },
	{ NONE, "**/*.sqlite" },
	{ READ, "yarn.lock" },
	{ READ, "pnpm-lock.yaml" },
	{ READ, "tsconfig*.json" },
	{ READ, "*.config.{js,cjs,mjs,ts}" },
	{ READ, "README*" },
	{ READ, "LICENSE" },
	{ READ, "docs" },
	{ WRITE, "docs/generated/**" },
	{ READ, "src/vendor/**" },
	{ READ, "src/**/*.d.ts" },
	{ READ, "src/**/*.snap" },
	{ WRITE, "src/**/__snapshots__/**" },
	{ WRITE, "src/components/**/*.tsx" },
	{ WRITE, "src/components/**/*.css" },
	{ WRITE, "src/hooks/use[A-Z]*.ts" },
	{ READ, "src/generated" },
	{ READ, "src/legacy/**" },
	{ WRITE, "src/legacy/**/*.test.ts" },
	{ WRITE, "src/pages/{index,about,contact}.tsx" },
	{ WRITE, "src/api/v[0-9]/**" },
	{ READ, "src/api/v1/**" },
	{ WRITE, "packages/ui/src/**" },
	{ WRITE, "packages/core/src/**" },
	{ READ, "packages/*/package.json" },
	{ READ, "packages/*/README.md" },
	{ READ, "packages/*/dist/**" },
	{ WRITE, "packages/*/tests/**" },
	{ WRITE, "packages/*/src/**/*.test.{ts,tsx}" },
	{ READ, "packages/internal/**" },
	{ WRITE, "apps/web/src/**" },
	{ WRITE, "apps/web/public/**" },
	{ READ, "apps/web/next.config.js" },
	{ WRITE, "apps/api/src/**" },
	{ READ, "apps/api/prisma/**" },
	{ WRITE, "apps/api/prisma/migrations/*/migration.sql" },
	{ WRITE, "apps/mobile/{ios,android}/**" },
	{ READ, "apps/*/package.json" },
	{ READ, "infra/**" },
	{ WRITE, "infra/modules/*/main.tf" },
	{ NONE, "infra/**/*.tfstate" },
	{ NONE, "infra/**/*.tfvars" },
	{ READ, ".github/workflows/*.yml" },
	{ READ, ".github/CODEOWNERS" },
	{ READ, ".gitignore" },
	{ READ, ".editorconfig" },
	{ READ, ".vscode/*.json" },
	{ NONE, ".git/config" },
	{ NONE, ".git/hooks/**" },
	{ READ, "scripts/**" },
	{ WRITE, "scripts/dev/**/*.sh" },
	{ WRITE, "tools/*.py" },
	{ READ, "tools/**/*.py" },
	{ WRITE, "lib" },
	{ READ, "lib/third_party" },
	{ WRITE, "lib/**/*_test.go" },
	{ WRITE, "cmd/*/main.go" },
	{ WRITE, "internal/**/*.go" },
	{ READ, "go.{mod,sum}" },
	{ WRITE, "python/**/*.py" },
	{ READ, "python/**/*.pyi" },
	{ NONE, "**/__pycache__/**" },
	{ NONE, "**/*.pyc" },
	{ READ, "requirements*.txt" },
	{ READ, "pyproject.toml" },
	{ WRITE, "notebooks/*.ipynb" },
	{ READ, "data/**/*.{csv,json,parquet}" },
	{ NONE, "data/private/**" },
	{ WRITE, "data/scratch/**" },
	{ WRITE, "e2e/**/*.spec.ts" },
	{ READ, "e2e/fixtures/**" },
	{ WRITE, "cypress/**" },
	{ WRITE, "stories/**/*.stories.{js,jsx,ts,tsx,mdx}" },
	{ READ, "public/fonts/**" },
	{ WRITE, "public/images/**/*.{png,svg,webp}" },
	{ WRITE, "i18n/{en,de,fr,es,ja}/*.json" },
	{ READ, "i18n/**" },
	{ READ, "CHANGELOG.md" },
	{ WRITE, "changes/*.md" },
	{ READ, "Makefile" },
	{ READ, "Dockerfile*" },
	{ READ, "docker-compose*.y{a,}ml" },
	{ READ, "charts/*/templates/**/*.yaml" },
	{ NONE, "charts/*/secrets.yaml" },
	{ READ, "third_party" },
};

static const char *const paths[] = {
	"src/components/button/Button.tsx",
	"src/components/button/Button.test.tsx",
	"src/hooks/useDebounce.ts",
	"src/api/v2/users/handlers/create.ts",
	"src/legacy/jquery/plugins/carousel.js",
	"src/index.ts",
	"tests/unit/policy/decide.test.ts",
	"docs/guides/getting-started.md",
	"docs/generated/api/reference.html",
	"packages/ui/src/theme/colors.ts",
	"packages/core/src/store/reducers/session.ts",
	"packages/core/package.json",
	"packages/internal/keys.ts",
	"apps/web/src/app/dashboard/page.tsx",
	"apps/web/public/favicon.ico",
	"apps/api/prisma/schema.prisma",
	"apps/api/prisma/migrations/20240101_init/migration.sql",
	"node_modules/react/index.js",
	"packages/ui/node_modules/.bin/tsc",
	"infra/modules/network/main.tf",
	"infra/prod.tfstate",
	".github/workflows/ci.yml",
	".git/hooks/pre-commit",
	".env",
	"apps/web/.env.local",
	"scripts/dev/reset/db.sh",
	"lib/parser/lexer_test.go",
	"cmd/server/main.go",
	"internal/auth/token/token.go",
	"python/train/model.py",
	"data/private/users.csv",
	"data/public/cities.csv",
	"public/images/logo/dark.svg",
	"i18n/de/common.json",
	"README.md",
	"package.json",
	"certs/server.pem",
	"some/other/place/entirely/file.bin",
	"docker-compose.override.yml",
	"charts/web/templates/ingress.yaml",
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct cordon_policy *make_policy(size_t n)
{
	struct cordon_policy *policy = NULL;
	struct cordon_error err = { 0 };

	if (cordon_policy_new("/", &policy, &err) < 0)
		goto failed;
	for (size_t i = 0; i < n; i++)
		if (cordon_policy_grant(policy, rules[i].pattern, rules[i].access, &err) < 0)
			goto failed;
	return policy;
failed:
	fprintf(stderr, "bench_policy: %s\n", err.message);
	exit(1);
}

/* The best of some rounds: noise can only make a round slower. */
static double decisions_per_second(size_t n_patterns, size_t *ret_allowed)
{
	struct cordon_policy *policy = make_policy(n_patterns);
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct cordon_decision decision;
		size_t count = 0;
		double start = now(), end;

		*ret_allowed = 0;
		do {
			for (size_t k = 0; k < 25; k++)
				for (size_t i = 0; i < CORDON_ARRAY_SIZE(paths); i++) {
					cordon_policy_decide(policy, paths[i], i % 2 ? CORDON_OP_WRITE : CORDON_OP_READ,
							     &decision);
					*ret_allowed += k == 0 && decision.verdict == CORDON_ALLOW;
				}
			count += 25 * CORDON_ARRAY_SIZE(paths);
			end = now();
		} while (end - start < ROUND_SECONDS);
		*ret_allowed /= count / (25 * CORDON_ARRAY_SIZE(paths));
		if ((double)count / (end - start) > best)
			best = (double)count / (end - start);
	}
	cordon_policy_free(policy);
	return best;
}

/* A slow kind of pattern: `front` once, `again` as often as it fits, `back` once; and a path of the same kind. */
struct family {
	const char *name;
	const char *front, *again, *back;
	const char *path_front, *path_again, *path_back;
};

#define TEN_BRACES "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"
#define TEN_MIXED "{a,*}{a,?}{a,b}{a,[ab]}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"

/* The patterns end with [b] and [b]*, because a plain last letter would be compared with the end of the path first. */
static const struct family families[] = {
	{ "stars", "", "*a", "[b]", "", "a", "" },
	{ "star_and_run", "*", "a", "[b]", "", "a", "" },
	{ "star_and_questions", "*", "?a", "[b]", "", "a", "" },
	{ "star_and_classes", "*", "[a-b]", "[c]", "", "a", "" },
	{ "stars_utf8", "", "*\xc3\xa9?", "[b]", "", "\xc3\xa9", "" },
	{ "dstars", "", "**/a/", "[b]*", "", "a/", "a" },
	{ "dstars_of_stars", "", "**/*a*/", "[b]*", "", "a/", "a" },
	{ "dstar_and_names", "**/", "a/", "[b]*", "", "a/", "a" },
	{ "dstar_and_stars", "**/", "*/", "[b]*", "", "a/", "a" },
	{ "braces_and_stars", TEN_BRACES, "*a", "[b]", "", "a", "" },
	{ "stars_and_braces", "", "*a", TEN_BRACES "[c]", "", "a", "" },
	{ "star_braces_stars", "*" TEN_MIXED, "*a", "[b]", "", "a", "" },
	{ "braces_and_dstars", "**/" TEN_MIXED "/", "**/a/", "[b]*", "", "aaaaaaaaaa/a/", "a" },
	{ "dstars_and_braces", "", "**/a/", TEN_MIXED "[b]*", "", "a/", "a" },
	{ "braces_and_questions", "*" TEN_MIXED, "?a", "[b]", "", "a", "" },
	{ "braces_and_classes", "*" TEN_MIXED, "[!b]", "[b]", "", "a", "" },
	{ "matching_braces", "*" TEN_MIXED, "*a", "*", "", "a", "" },
	{ "matching_questions", "*" TEN_MIXED, "?a", "*", "", "a", "" },
	{ "many_alternatives", "*{b", ",*a", "}[b]", "", "a", "" },
	{ "many_questions", "*{b", ",*?", "}*[b]", "", "a", "" },
	{ "empty_alternatives", "**/*{{,a}", ",{,a}", ",b}[b]", "", "a", "" },
	{ "dots_and_slashes", "**/{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}/{.,}", "/./", "a*", "", "aaaaaaaa/", "a" },
};

static size_t append(char *out, size_t at, const char *s)
{
	for (; *s; s++)
		out[at++] = *s;
	out[at] = '\0';
	return at;
}

/* Writes `front`, then `again` as often as it fits into `size` bytes, then `back`. */
static void fill(char *out, size_t size, const char *front, const char *again, const char *back)
{
	size_t at = append(out, 0, front);

	while (at + strlen(again) + strlen(back) <= size)
		at = append(out, at, again);
	append(out, at, back);
}

static double milliseconds(bool (*ask)(const struct cordon_pattern *, const char *),
			   const struct cordon_pattern *pattern, const char *path)
{
	double best = 1e9;

	for (int round = 0; round < 5; round++) {
		double start = now(), took;

		ask(pattern, path);
		took = (now() - start) * 1e3;
		best = took < best ? took : best;
	}
	return best;
}

static bool ask_match(const struct cordon_pattern *pattern, const char *path)
{
	struct cordon_specificity specificity;

	return cordon_pattern_match(pattern, path, &specificity);
}

/* Measures the longest pattern of the family that compiles, and one half as long: some are slow only when the path
 * is longer than the pattern. */
static double worst_ms(const struct family *family)
{
	char text[CORDON_PATTERN_MAX + 1], path[CORDON_PATH_MAX];
	double worst = 0;
	int compiled = 0;

	fill(path, sizeof(path) - 1, family->path_front, family->path_again, family->path_back);
	for (size_t size = CORDON_PATTERN_MAX; size > 64 && compiled < 2; size = compiled ? size / 2 : size * 15 / 16) {
		struct cordon_pattern *pattern = NULL;
		double match, leads;

		fill(text, size, family->front, family->again, family->back);
		if (cordon_pattern_compile(text, &pattern, NULL) < 0)
			continue;
		compiled++;
		match = milliseconds(ask_match, pattern, path);
		leads = milliseconds(cordon_pattern_leads, pattern, path);
		worst = match > worst ? match : worst;
		worst = leads > worst ? leads : worst;
		cordon_pattern_free(pattern);
	}
	if (!compiled) {
		fprintf(stderr, "bench_policy: %s does not compile\n", family->name);
		exit(1);
	}
	return worst;
}

/* The rules of the team, some of them: another choice for each number. */
static struct cordon_policy *choose(unsigned int number, unsigned int without)
{
	struct cordon_policy *policy = make_policy(0);
	struct cordon_error err = { 0 };
	unsigned int seed = number * 2654435761u + 1, n = 0;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rules); i++) {
		seed = seed * 1664525u + 1013904223u;
		/* About 10, 20, 30 or 40 of them. */
		if (seed >> 24 > 25 + number % 4 * 25 || n++ == without)
			continue;
		if (cordon_policy_grant(policy, rules[i].pattern, rules[i].access, &err) < 0) {
			fprintf(stderr, "bench_policy: %s\n", err.message);
			exit(1);
		}
	}
	return policy;
}

/* Compares each of the policies with itself without one rule, and with the next one. */
static double worst_diff_ms(size_t *ret_states)
{
	unsigned int differ = 0;
	double worst = 0;

	*ret_states = 0;
	for (unsigned int i = 0; i < DIFFS; i++) {
		struct cordon_policy *before = choose(i, UINT32_MAX),
				     *after = i % 2 ? choose(i, i % 11) : choose(i + 1, UINT32_MAX);
		struct cordon_policy_differences found = { 0 };
		struct cordon_error err = { 0 };
		double start = now();

		if (cordon_policy_compare(before, after, &found, &err) < 0) {
			fprintf(stderr, "bench_policy: pair %u: %s\n", i, err.message);
			exit(1);
		}
		differ += found.n > 0; /* a rule that goes may have said nothing that others do not say */
		if ((now() - start) * 1e3 > worst)
			worst = (now() - start) * 1e3;
		if (found.n_states > *ret_states)
			*ret_states = found.n_states;
		cordon_policy_differences_done(&found);
		cordon_policy_free(before);
		cordon_policy_free(after);
	}
	if (differ < DIFFS / 2) {
		fprintf(stderr, "bench_policy: only %u of %d pairs differ\n", differ, DIFFS);
		exit(1);
	}
	return worst;
}

int main(void)
{
	static const size_t sizes[] = { 1, 10, 100 };
	double rate = 0, worst = 0, diff;
	size_t states;

	_Static_assert(CORDON_ARRAY_SIZE(rules) == 100, "the policy has 100 patterns");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(sizes); i++) {
		size_t allowed;

		rate = decisions_per_second(sizes[i], &allowed);
		printf("decisions_%zu %.0f /s\n", sizes[i], rate);
		if (allowed == 0 || allowed == CORDON_ARRAY_SIZE(paths)) {
			fprintf(stderr, "bench_policy: %zu of %zu paths were allowed\n", allowed,
				CORDON_ARRAY_SIZE(paths));
			return 1;
		}
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(families); i++) {
		double ms = worst_ms(&families[i]);

		printf("worst_%s %.3f ms\n", families[i].name, ms);
		if (ms > worst)
			worst = ms;
	}
	printf("worst %.3f ms\n", worst);
	diff = worst_diff_ms(&states);
	printf("diff_states %zu states\n", states);
	printf("diff %.3f ms\n", diff);
	return rate >= RATE_BAR && worst < WORST_BAR && diff < DIFF_BAR ? 0 : 1;
}
