/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration documents and the policy file: every error at its place, all of them at once, nothing half applied. */
#include "unit.h"

#include "base/io.h"
#include "config/policy_file.h"
#include "config/suggest.h"
#include "policy/policy.h"

#define autoerrors CORDON_CLEANUP(cordon_errors_done)
#define autofile CORDON_CLEANUP(cordon_policy_file_freep)

static void case_path(const char *name, char path[static UNIT_PATH * 2])
{
	const char *cases = getenv("CORDON_CASES");

	assert_non_null(cases);
	snprintf(path, (size_t)UNIT_PATH * 2, "%s/config/%s", cases, name);
}

static void print_errors(const struct cordon_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++)
		print_message("# %s: %s | %s\n", errors->items[i].where, errors->items[i].message,
			      errors->items[i].hint);
}

/* Compares ">>> LINE:COLUMN message | hint" with one error. */
static bool as_expected(const char *name, char *expected, const struct cordon_error *err)
{
	char *message = strchr(expected, ' '), *hint;
	char where[2 * UNIT_PATH];

	assert_non_null(message);
	*message++ = '\0';
	hint = strstr(message, " | ");
	if (hint) {
		*hint = '\0';
		hint += 3;
	}
	snprintf(where, sizeof(where), "%s:%s", name, expected);
	return cordon_streq(err->where, where) && strstr(err->message, message) && (!hint || strstr(err->hint, hint)) &&
	       err->code < 0 && (err->kind == CORDON_KIND_CONFIG || err->kind == CORDON_KIND_LIMIT);
}

static bool check_case(const char *name, const struct cordon_buf *text, char **expected, size_t n_expected)
{
	autoerrors struct cordon_errors errors = { 0 };
	autofile struct cordon_policy_file *file = NULL;
	size_t len = strlen(name);
	cordon_format format = cordon_streq(name + len - 5, ".json") ? CORDON_FORMAT_JSON : CORDON_FORMAT_YAML;
	int r = cordon_policy_file_parse(name, format, text->data ? text->data : "", text->len, &file, &errors);
	bool ok = r < 0 && !file && errors.n == n_expected;

	for (size_t i = 0; ok && i < n_expected; i++)
		ok = as_expected(name, expected[i], &errors.items[i]);
	if (!ok) {
		print_message("# %s\n", name);
		print_errors(&errors);
	}
	return ok;
}

static void every_error_is_reported_at_its_place(void **state)
{
	autobuf struct cordon_buf cases = CORDON_BUF(1 << 20), text = CORDON_BUF(1 << 20);
	char path[UNIT_PATH * 2], name[UNIT_PATH] = "", *expected[64];
	size_t n_expected = 0, n_cases = 0, bad = 0;
	struct cordon_error err;

	(void)state;
	case_path("policy_errors.txt", path);
	assert_int_equal(cordon_read_file(AT_FDCWD, path, 0, &cases, &err), 0);
	for (char *line = cases.data, *end; line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		if (strncmp(line, ">>> ", 4) == 0) {
			assert_true(n_expected < CORDON_ARRAY_SIZE(expected));
			expected[n_expected++] = line + 4;
			continue;
		}
		if (strncmp(line, "=== ", 4) == 0 || !end) {
			if (name[0]) {
				assert_true(n_expected > 0);
				bad += !check_case(name, &text, expected, n_expected);
				n_cases++;
			}
			snprintf(name, sizeof(name), "%s", end ? line + 4 : "");
			cordon_buf_reset(&text);
			n_expected = 0;
			continue;
		}
		if (name[0])
			assert_int_equal(cordon_buf_addf(&text, "%s\n", line), 0);
	}
	assert_true(n_cases >= 45);
	assert_int_equal(bad, 0);
}

static void check_list(const struct cordon_setting_list *list, const char *const *expected)
{
	size_t n = 0;

	for (; expected[n]; n++) {
		assert_true(n < list->n);
		assert_string_equal(list->items[n].text, expected[n]);
	}
	assert_int_equal(list->n, n);
}

static void check_full(const struct cordon_policy_file *file)
{
	assert_int_equal(cordon_recipe_value(&file->values, CORDON_RECIPE_MODE), CORDON_MODE_PERMISSIVE);
	check_list(&file->workspace, (const char *const[]){ "lib", "with, comma", NULL });
	check_list(&file->rw, (const char *const[]){ "src/**", "docs", NULL });
	check_list(&file->ro, (const char *const[]){ "vendor/**", "größe/*.md", NULL });
	check_list(&file->deny, (const char *const[]){ "**/.env", NULL });
	assert_true(cordon_recipe_value(&file->values, CORDON_RECIPE_READ_ONLY));
	check_list(&file->protect, (const char *const[]){ "AGENTS.md", ".factory/", NULL });
	assert_false(cordon_recipe_value(&file->values, CORDON_RECIPE_DEFAULT_PROTECT));
	assert_false(cordon_recipe_value(&file->values, CORDON_RECIPE_EDITOR_TEMPS));
	assert_int_equal(file->n_env, 4);
	assert_string_equal(file->env[0].name, "CI");
	assert_string_equal(file->env[0].value, "1");
	assert_string_equal(file->env[1].value, "no");
	assert_string_equal(file->env[2].value, "");
	assert_string_equal(file->env[3].value, "a \"quoted\" line\nand another");
	check_list(&file->keep_env, (const char *const[]){ "ANTHROPIC_API_KEY", NULL });
	assert_string_equal(file->home.text, "/srv/agent-home");
	assert_string_equal(file->at.text, "/workspace");
	assert_int_equal(file->n_shares, 3);
	assert_string_equal(file->shares[0].share.source, "/opt/data");
	assert_string_equal(file->shares[0].share.target, "/data");
	assert_true(file->shares[0].share.read_only);
	assert_string_equal(file->shares[1].share.source, "/opt/a:b");
	assert_null(file->shares[1].share.target);
	assert_false(file->shares[1].share.read_only);
	assert_string_equal(file->shares[2].share.source, "/opt/read");
	assert_null(file->shares[2].share.target);
	assert_true(file->shares[2].share.read_only);
	assert_string_equal(file->net.word, "none");
	assert_int_equal(cordon_recipe_value(&file->values, CORDON_RECIPE_LENS), CORDON_LENS_ALWAYS);
	assert_int_equal(cordon_recipe_value(&file->values, CORDON_RECIPE_TIMEOUT), 600000);
	assert_int_equal(cordon_recipe_value(&file->values, CORDON_RECIPE_MEMORY), 2147483648);
	assert_int_equal(cordon_recipe_value(&file->values, CORDON_RECIPE_PIDS), 500);
	assert_int_equal(cordon_recipe_value(&file->values, CORDON_RECIPE_CPUS), 1500);
	assert_int_equal(cordon_recipe_value(&file->values, CORDON_RECIPE_TMP_SIZE), 67108864);
	assert_true(cordon_recipe_value(&file->values, CORDON_RECIPE_BEST_EFFORT));
}

static void yaml_and_json_say_the_same(void **state)
{
	static const char *const names[] = { "full.yaml", "full.json" };
	static const char *const where[] = { ":6:5", ":5:10" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		autoerrors struct cordon_errors errors = { 0 };
		autofile struct cordon_policy_file *file = NULL;
		char path[UNIT_PATH * 2], expected[UNIT_PATH * 3];

		case_path(names[i], path);
		assert_int_equal(cordon_policy_file_load(path, NULL, &file, &errors), 0);
		assert_int_equal(errors.n, 0);
		check_full(file);
		snprintf(expected, sizeof(expected), "%s%s", path, where[i]);
		assert_string_equal(file->rw.items[0].where, expected);
		assert_non_null(file->values.where[CORDON_RECIPE_MODE]);
	}
}

static void what_a_file_does_not_say_has_the_default(void **state)
{
	autoerrors struct cordon_errors errors = { 0 };
	autofile struct cordon_policy_file *file = NULL;

	(void)state;
	assert_int_equal(cordon_policy_file_parse("a.yaml", CORDON_FORMAT_YAML, "{}", 2, &file, &errors), 0);
	assert_null(file->values.where[CORDON_RECIPE_MODE]);
	assert_null(file->net.where);
	assert_null(file->home.text);
	assert_false(cordon_recipe_value(&file->values, CORDON_RECIPE_READ_ONLY));
	assert_true(cordon_recipe_value(&file->values, CORDON_RECIPE_DEFAULT_PROTECT));
	assert_true(cordon_recipe_value(&file->values, CORDON_RECIPE_EDITOR_TEMPS));
	assert_null(file->net.word);
	assert_int_equal(file->rw.n + file->ro.n + file->deny.n + file->n_env + file->n_shares, 0);
	assert_int_equal(cordon_recipe_value(&file->values, CORDON_RECIPE_TIMEOUT), 0);
}

static void the_example_of_the_manual_is_valid(void **state)
{
	autobuf struct cordon_buf manual = CORDON_BUF(1 << 20), text = CORDON_BUF(1 << 16);
	autoerrors struct cordon_errors errors = { 0 };
	autofile struct cordon_policy_file *file = NULL;
	char path[UNIT_PATH * 2], *start, *end;
	struct cordon_error err;

	(void)state;
	case_path("../../../man/cordon.yaml.5", path);
	assert_int_equal(cordon_read_file(AT_FDCWD, path, 0, &manual, &err), 0);
	start = strstr(manual.data, ".Bd -literal");
	assert_non_null(start);
	start = strchr(start, '\n') + 1;
	end = strstr(start, ".Ed");
	assert_non_null(end);
	/* mdoc writes a backslash as \e; the example must not use other escapes. */
	*end = '\0';
	assert_null(strchr(start, '\\'));
	assert_int_equal(cordon_buf_adds(&text, start), 0);
	if (cordon_policy_file_parse("manual", CORDON_FORMAT_YAML, text.data, text.len, &file, &errors) < 0)
		print_errors(&errors);
	assert_non_null(file);
	assert_true(file->rw.n > 0 && file->protect.n > 0 &&
		    cordon_recipe_value(&file->values, CORDON_RECIPE_TIMEOUT) > 0);
}

static void the_extension_decides_and_only_regular_files_are_read(void **state)
{
	static const char *const bad[] = { "plain",	"x.yaml.bak", ".yaml",	  "missing.yaml",
					   "fifo.yaml", "dir.json",   "json.yaml" };
	char *big = malloc(CORDON_CONFIG_SIZE_MAX + 2);

	(void)state;
	unit_write("plain", "mode: strict\n");
	unit_write("x.yaml.bak", "mode: strict\n");
	unit_write(".yaml", "mode: strict\n");
	unit_write("good.yml", "mode: strict\n");
	unit_write("good.json", "{\"mode\": \"strict\"}");
	unit_write("yaml.json", "mode: strict\n");
	unit_write("json.yaml", "{\"mode\":\"strict\"");
	assert_int_equal(mkfifo("fifo.yaml", 0600), 0);
	unit_mkdir("dir.json");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(bad); i++) {
		autoerrors struct cordon_errors errors = { 0 };
		autofile struct cordon_policy_file *file = NULL;

		assert_true(cordon_policy_file_load(bad[i], NULL, &file, &errors) < 0);
		assert_int_equal(errors.n, 1);
		assert_null(file);
	}
	for (size_t i = 0; i < 2; i++) {
		autoerrors struct cordon_errors errors = { 0 };
		autofile struct cordon_policy_file *file = NULL;

		assert_int_equal(cordon_policy_file_load(i ? "good.json" : "good.yml", NULL, &file, &errors), 0);
		assert_int_equal(cordon_recipe_value(&file->values, CORDON_RECIPE_MODE), CORDON_MODE_STRICT);
	}
	assert_non_null(big);
	memset(big, '#', CORDON_CONFIG_SIZE_MAX + 1);
	big[CORDON_CONFIG_SIZE_MAX + 1] = '\0';
	unit_write("big.yaml", big);
	free(big);
	{
		autoerrors struct cordon_errors errors = { 0 };
		autofile struct cordon_policy_file *file = NULL;

		assert_int_equal(cordon_policy_file_load("big.yaml", NULL, &file, &errors), -E2BIG);
		assert_int_equal(errors.items[0].kind, CORDON_KIND_LIMIT);
	}
}

static void load_text(const char *text, struct cordon_policy_file **ret_file)
{
	autoerrors struct cordon_errors errors = { 0 };

	if (cordon_policy_file_parse("p.yaml", CORDON_FORMAT_YAML, text, strlen(text), ret_file, &errors) < 0)
		print_errors(&errors);
	assert_non_null(*ret_file);
}

static void a_policy_gets_all_rules_with_their_places(void **state)
{
	autoerrors struct cordon_errors errors = { 0 };
	autofile struct cordon_policy_file *file = NULL;
	struct cordon_policy *policy;
	struct cordon_decision decision;

	(void)state;
	unit_mkdir("lib");
	unit_mkdir("src");
	load_text("mode: permissive\nworkspace: [lib]\nrw: [\"src/*.c\"]\nro: [docs]\ndeny: ['**/.env']\nprotect: [lib/AGENTS.md]\n",
		  &file);
	assert_int_equal(cordon_policy_new(".", &policy, NULL), 0);
	assert_int_equal(cordon_policy_file_apply(file, policy, &errors), 0);
	assert_int_equal(policy->mode, CORDON_MODE_PERMISSIVE);
	assert_string_equal(policy->folders, "lib");
	assert_true(policy->reports_reads);
	assert_int_equal(cordon_policy_check(policy, "lib/new/file", CORDON_OP_WRITE, &decision, NULL), 0);
	assert_int_equal(decision.verdict, CORDON_ALLOW);
	assert_string_equal(decision.rule_where, "p.yaml:2:13");
	cordon_policy_check(policy, "src/a.c", CORDON_OP_WRITE, &decision, NULL);
	assert_int_equal(decision.verdict, CORDON_ALLOW);
	assert_string_equal(decision.rule_where, "p.yaml:3:6");
	cordon_policy_check(policy, "docs/a", CORDON_OP_WRITE, &decision, NULL);
	assert_int_equal(decision.verdict, CORDON_DENY);
	assert_string_equal(decision.rule_where, "p.yaml:4:6");
	cordon_policy_check(policy, "lib/.env", CORDON_OP_READ, &decision, NULL);
	assert_int_equal(decision.verdict, CORDON_DENY);
	assert_string_equal(decision.rule_where, "p.yaml:5:8");
	cordon_policy_check(policy, "lib/AGENTS.md", CORDON_OP_WRITE, &decision, NULL);
	assert_int_equal(decision.verdict, CORDON_DENY);
	assert_string_equal(decision.rule_where, "p.yaml:6:11");
	cordon_policy_free(policy);
}

static void a_folder_name_is_no_pattern_and_no_list(void **state)
{
	autoerrors struct cordon_errors errors = { 0 };
	autofile struct cordon_policy_file *file = NULL;
	struct cordon_policy *policy;
	struct cordon_decision decision;

	(void)state;
	unit_mkdir("a*, {b}");
	unit_mkdir("axx, b");
	load_text("mode: strict\nworkspace: ['a*, {b}']\n", &file);
	assert_int_equal(cordon_policy_new(".", &policy, NULL), 0);
	assert_int_equal(cordon_policy_file_apply(file, policy, &errors), 0);
	cordon_policy_check(policy, "a*, {b}/f", CORDON_OP_WRITE, &decision, NULL);
	assert_int_equal(decision.verdict, CORDON_ALLOW);
	cordon_policy_check(policy, "axx, b/f", CORDON_OP_WRITE, &decision, NULL);
	assert_int_equal(decision.verdict, CORDON_DENY);
	cordon_policy_free(policy);
}

static void a_failed_apply_changes_nothing_and_reports_all(void **state)
{
	autoerrors struct cordon_errors errors = { 0 };
	autofile struct cordon_policy_file *file = NULL;
	struct cordon_policy *policy;

	(void)state;
	unit_mkdir("lib");
	unit_link("/etc", "out");
	load_text("mode: permissive\nread_only: true\nworkspace: [lib, missing, out]\nrw: [src]\nprotect: [x]\n", &file);
	assert_int_equal(cordon_policy_new(".", &policy, NULL), 0);
	assert_int_equal(cordon_policy_grant(policy, "kept", CORDON_ACCESS_READ, NULL), 0);
	assert_true(cordon_policy_file_apply(file, policy, &errors) < 0);
	assert_int_equal(errors.n, 2);
	assert_string_equal(errors.items[0].where, "p.yaml:3:18");
	assert_non_null(strstr(errors.items[0].message, "Workspace folder does not exist: missing"));
	assert_string_equal(errors.items[1].where, "p.yaml:3:27");
	assert_non_null(strstr(errors.items[1].message, "Workspace folder is outside repository: out"));
	assert_int_equal(policy->n_grants, 1);
	assert_int_equal(policy->n_protected, 0);
	assert_int_equal(policy->mode, CORDON_MODE_STRICT);
	assert_false(policy->read_only);
	assert_null(policy->folders);
	cordon_policy_free(policy);
}

static void the_library_call_loads_or_reports_the_first_error(void **state)
{
	struct cordon_error err = { 0 };
	struct cordon_policy *policy;

	(void)state;
	unit_write("good.yaml", "rw: [src]\nmode: permissive\n");
	unit_write("bad.yaml", "rw: [src]\nmode: lax\nnet: wet\n");
	assert_int_equal(cordon_policy_new(".", &policy, NULL), 0);
	assert_true(cordon_policy_load(policy, "bad.yaml", &err) < 0);
	assert_string_equal(err.where, "bad.yaml:2:7");
	assert_int_equal(err.kind, CORDON_KIND_CONFIG);
	assert_int_equal(policy->n_grants, 0);
	assert_true(cordon_policy_load(policy, "missing.yaml", NULL) < 0);
	assert_int_equal(cordon_policy_load(policy, "good.yaml", &err), 0);
	assert_int_equal(policy->n_grants, 1);
	assert_int_equal(policy->mode, CORDON_MODE_PERMISSIVE);
	cordon_policy_free(policy);
}

static void too_many_errors_are_counted(void **state)
{
	autobuf struct cordon_buf text = CORDON_BUF(1 << 16);
	autoerrors struct cordon_errors errors = { 0 };
	autofile struct cordon_policy_file *file = NULL;

	(void)state;
	for (int i = 0; i < 100; i++)
		cordon_buf_addf(&text, "x%d: 1\n", i);
	assert_true(cordon_policy_file_parse("a.yaml", CORDON_FORMAT_YAML, text.data, text.len, &file, &errors) < 0);
	assert_int_equal(errors.n, CORDON_ERRORS_MAX);
	assert_int_equal(errors.dropped, 100 - CORDON_ERRORS_MAX);
	assert_string_equal(errors.items[0].where, "a.yaml:1:1");
}

/* A hundred thousand levels, directives, duplicates or errors get an answer, in bounded time (the time limit of the
 * test). */
static void a_megabyte_of_anything_is_answered(void **state)
{
	static const char *const units[] = {
		"[",  "{", "- ",    "? ",  "{a: ", "[\n", "%TAG !a! b\n", "- &a x\n",	  "- *a\n", "a: 1\n",
		"\"", "'", "---\n", "[],", "\xff", "\t",  "a,",		  "\xe2\x80\xa8", "!",	    "|\n"
	};

	(void)state;
	for (size_t i = 0; i < 2 * CORDON_ARRAY_SIZE(units); i++) {
		autobuf struct cordon_buf text = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
		autoerrors struct cordon_errors errors = { 0 };
		autofile struct cordon_policy_file *file = NULL;

		while (cordon_buf_adds(&text, units[i / 2]) == 0)
			;
		assert_true(cordon_policy_file_parse("x", i % 2 ? CORDON_FORMAT_JSON : CORDON_FORMAT_YAML, text.data,
						     text.len, &file, &errors) < 0);
		assert_true(errors.n > 0);
	}
}

static void places_and_offsets_are_those_of_the_text(void **state)
{
	static const char *const texts[] = { "\xef\xbb\xbfä: 'x'\r\nb: [ö, \"y\\n\"]\r\n",
					     "{\"ä\": \"x\",\r\n \"b\": [\"ö\", \"y\\n\"]}" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		autoerrors struct cordon_errors errors = { 0 };
		autodocument struct cordon_document *doc = NULL;
		const struct cordon_node *x, *o, *y;

		assert_int_equal(cordon_document_parse("t", (cordon_format)i, texts[i], strlen(texts[i]), 4, &doc,
						       &errors),
				 0);
		x = cordon_node_get(doc->root, "ä");
		o = cordon_node_get(doc->root, "b")->first;
		y = o->next;
		assert_memory_equal(texts[i] + x->start, i ? "\"x\"" : "'x'", 3);
		assert_int_equal(x->end - x->start, 3);
		assert_int_equal(x->style, i ? CORDON_STYLE_DOUBLE : CORDON_STYLE_SINGLE);
		assert_int_equal(x->column, i ? 7 : 4);
		assert_int_equal(o->line, 2);
		assert_int_equal(o->column, i ? 8 : 5);
		assert_memory_equal(texts[i] + o->start, i ? "\"ö\"" : "ö", o->end - o->start);
		assert_string_equal(o->text, "ö");
		assert_int_equal(y->column, i ? 13 : 8);
		assert_string_equal(y->text, "y\n");
		assert_int_equal(y->end - y->start, 5);
		assert_null(cordon_node_get(doc->root, "c"));
	}
}

static void aliases_are_copies_where_a_file_may_have_them(void **state)
{
	static const char text[] = "a: &x [one, &y two]\nb: *x\nc: {d: *y}\n";
	autoerrors struct cordon_errors errors = { 0 };
	autoerrors struct cordon_errors refused = { 0 };
	autodocument struct cordon_document *doc = NULL;
	autodocument struct cordon_document *strict = NULL;
	const struct cordon_node *b;

	(void)state;
	assert_int_equal(cordon_document_parse("t", CORDON_FORMAT_YAML_ALIASES, text, strlen(text), 4, &doc, &errors),
			 0);
	assert_int_equal(errors.n, 0);
	assert_int_equal(doc->format, CORDON_FORMAT_YAML);
	b = cordon_node_get(doc->root, "b");
	assert_int_equal(b->n, 2);
	assert_int_equal(b->line, 2);
	assert_int_equal(b->column, 4);
	assert_string_equal(b->first->text, "one");
	assert_string_equal(b->first->next->text, "two");
	assert_string_equal(cordon_node_get(cordon_node_get(doc->root, "c"), "d")->text, "two");
	assert_int_equal(cordon_document_parse("t", CORDON_FORMAT_YAML, text, strlen(text), 4, &strict, &refused), 0);
	assert_int_equal(refused.n, 4);
}

static void aliases_are_bounded(void **state)
{
	static const char laughs[] = "a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n"
				     "c: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\n"
				     "e: [*d, *d, *d, *d, *d, *d, *d, *d]\n";
	static const struct {
		const char *text, *message;
	} bad[] = {
		{ laughs, "stand for more than" },
		{ "a: &a [*a]\n", "inside the value that it means" },
		{ "a: *.md\n", "alias" },
		{ "a: *later\nb: &later x\n", "no anchor &later" },
		{ "a: &a [[x]]\nb: [[*a]]\n", "too deep" },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(bad); i++) {
		autoerrors struct cordon_errors errors = { 0 };
		autodocument struct cordon_document *doc = NULL;

		(void)cordon_document_parse("t", CORDON_FORMAT_YAML_ALIASES, bad[i].text, strlen(bad[i].text), 4, &doc,
					    &errors);
		assert_int_equal(errors.n, 1);
		assert_non_null(strstr(errors.items[0].message, bad[i].message));
	}
}

static void json_escapes_are_undone(void **state)
{
	static const char text[] = "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20ac\\ud83d\\ude00\", -1.5e3, true, null]";
	autoerrors struct cordon_errors errors = { 0 };
	autodocument struct cordon_document *doc = NULL;
	const struct cordon_node *node;

	(void)state;
	assert_int_equal(cordon_document_parse("t", CORDON_FORMAT_JSON, text, sizeof(text) - 1, 4, &doc, &errors), 0);
	node = doc->root->first;
	assert_string_equal(node->text, "\"\\/\b\f\n\r\té€😀");
	node = node->next;
	assert_string_equal(node->text, "-1.5e3");
	assert_int_equal(node->style, CORDON_STYLE_PLAIN);
	assert_int_equal(doc->root->n, 4);
}

static void a_near_word_is_suggested_a_far_one_is_not(void **state)
{
	size_t best = CORDON_SUGGEST_FAR;

	(void)state;
	assert_int_equal(cordon_suggest_distance("mode", "mode"), 0);
	assert_int_equal(cordon_suggest_distance("deyn", "deny"), 1);
	assert_int_equal(cordon_suggest_distance("Read-Only", "read_only"), 0);
	assert_int_equal(cordon_suggest_distance("", "abc"), 3);
	assert_int_equal(cordon_suggest_distance("abcd", "ad"), 2);
	assert_int_equal(cordon_suggest_distance("this_word_is_longer_than_thirty_two", "mode"), CORDON_SUGGEST_FAR);
	assert_false(cordon_suggest_closer("zzzz", "mode", &best));
	assert_true(cordon_suggest_closer("mods", "mode", &best));
	assert_false(cordon_suggest_closer("mods", "modes", &best));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_error_is_reported_at_its_place),
		cmocka_unit_test(yaml_and_json_say_the_same),
		cmocka_unit_test(what_a_file_does_not_say_has_the_default),
		cmocka_unit_test(the_example_of_the_manual_is_valid),
		unit_test_in_dir(the_extension_decides_and_only_regular_files_are_read),
		unit_test_in_dir(a_policy_gets_all_rules_with_their_places),
		unit_test_in_dir(a_folder_name_is_no_pattern_and_no_list),
		unit_test_in_dir(a_failed_apply_changes_nothing_and_reports_all),
		unit_test_in_dir(the_library_call_loads_or_reports_the_first_error),
		cmocka_unit_test(too_many_errors_are_counted),
		cmocka_unit_test(a_megabyte_of_anything_is_answered),
		cmocka_unit_test(places_and_offsets_are_those_of_the_text),
		cmocka_unit_test(aliases_are_copies_where_a_file_may_have_them),
		cmocka_unit_test(aliases_are_bounded),
		cmocka_unit_test(json_escapes_are_undone),
		cmocka_unit_test(a_near_word_is_suggested_a_far_one_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
