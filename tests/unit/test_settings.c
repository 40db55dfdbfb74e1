/* SPDX-License-Identifier: Apache-2.0 */
/* config.yaml and orchestrator.yaml: what a changed byte does to them, every error at its place, and edits. */
#include <stdio.h>
#include <sys/stat.h>

#include "config/edit_yaml.h"
#include "config/settings_file.h"
#include "flow/orchestrator_file.h"
#include "unit.h"

static const char whole[] =
	"# top\nworkspaces_path: /nowhere/w\nshared_workspaces:\n  docs: {path: /nowhere/docs, description: \"D\", domain: a}\n"
	"  old: /nowhere/old   # only a path\norchestrators:\n  alpha:\n    private_workspace: /nowhere/p\n    shared_access:\n"
	"      - docs\n      - {name: old, access: read-only, cross_domain: true}\n  beta:\nchannel_profiles:\n"
	"  desk: {channel: slack, orchestrator_id: alpha, domain: a, workflow: w, slack_app_user_id: U1}\n"
	"defaults:\n  mode: strict\n  limits: {timeout: 10m, memory: 2G, pids: 50, cpus: 2, tmp_size: 1G}\n"
	"  providers:\n    mine: {command: [prog, -x], env: {A: \"1\"}, env_pass: [KEY, \"N_*\"]}\n"
	"monitoring: {heartbeat_interval: 3600}\n";

static int parse(const char *text, size_t len, struct cordon_settings_file **ret, struct cordon_errors *errors)
{
	int r = cordon_settings_parse("config.yaml", text, len, ret, errors);

	assert_true((r < 0) == (errors->n > 0));
	return r;
}

static void the_whole_file_is_read(void **state)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	const struct cordon_provider *provider = NULL;

	(void)state;
	assert_int_equal(parse(whole, strlen(whole), &settings, &errors), 0);
	assert_int_equal(settings->n_areas, 2);
	assert_string_equal(settings->areas[1].path, "/nowhere/old");
	assert_string_equal(settings->areas[1].description, "old");
	assert_int_equal(settings->n_orchestrators, 2);
	assert_string_equal(settings->orchestrators[0].private_workspace, "/nowhere/p");
	assert_string_equal(settings->orchestrators[1].private_workspace, "/nowhere/w/beta");
	assert_int_equal(settings->orchestrators[0].n_grants, 2);
	assert_false(settings->orchestrators[0].grants[0].read_only);
	assert_true(settings->orchestrators[0].grants[1].read_only && settings->orchestrators[0].grants[1].cross_domain);
	assert_string_equal(settings->profiles[0].default_workflow, "w");
	assert_int_equal(settings->limits.of[CORDON_RECIPE_TIMEOUT], 600000);
	assert_int_equal(cordon_settings_provider(settings, "mine", &provider, NULL), 0);
	assert_string_equal(provider->command[1], "-x");
	assert_int_equal(cordon_settings_provider(settings, "openai", &provider, NULL), 0);
	assert_string_equal(provider->profile, "codex");
}

static void a_changed_byte_is_a_setting_or_an_error(void **state)
{
	static const char bytes[] = "\0\n \"'{}[]:,#&*|-\\x\xff";
	char text[sizeof(whole)];

	(void)state;
	for (size_t i = 0; i < sizeof(whole) - 1; i++) {
		for (size_t k = 0; k < sizeof(bytes); k++) {
			struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
			autosettings struct cordon_settings_file *settings = NULL;

			memcpy(text, whole, sizeof(whole));
			text[i] = bytes[k];
			/* The last byte cuts the text off instead. */
			(void)parse(text, k + 1 < sizeof(bytes) ? strlen(whole) : i, &settings, &errors);
		}
	}
}

static void every_error_has_its_place(void **state)
{
	static const char text[] =
		"workspace_path: /x\nshared_workspaces:\n  a b: {path: /x, description: x}\n  c: {path: rel, description: ''}\n"
		"  d: {path: /x}\norchestrators:\n  o:\n    shared_access: [nope, {access: rw}, c, c]\n    extra: 1\n"
		"channel_profiles:\n  p: {channel: fax, orchestrator_id: q}\n";
	static const char *const expected[] = { ":1:1",	 ":3:3",  ":4:13", ":4:31",  ":5:3",  ":8:21",
						":8:27", ":8:44", ":9:5",  ":11:16", ":11:38" };
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;

	(void)state;
	assert_int_equal(parse(text, strlen(text), &settings, &errors), -EINVAL);
	for (size_t i = 0; i < errors.n && i < CORDON_ARRAY_SIZE(expected); i++) {
		char where[64];

		snprintf(where, sizeof(where), "config.yaml%s", expected[i]);
		assert_string_equal(errors.items[i].where, where);
	}
	assert_int_equal(errors.n, CORDON_ARRAY_SIZE(expected));
}

static void the_first_file_of_an_orchestrator_is_valid(void **state)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autoorchestratorfile struct cordon_orchestrator_file *file = NULL;
	struct cordon_buf text autobuf = CORDON_BUF(65536);

	(void)state;
	assert_int_equal(cordon_orchestrator_file_first("alpha", &text), 0);
	assert_int_equal(cordon_orchestrator_file_parse("o.yaml", "alpha", text.data, text.len, &file, &errors), 0);
	assert_string_equal(file->selector_agent, "router");
	assert_int_equal(file->n_agents, 2);
	assert_int_equal(file->orchestration.max_total_iterations, 12);
	file = cordon_orchestrator_file_free(file);
	assert_int_equal(cordon_orchestrator_file_parse("o.yaml", "beta", text.data, text.len, &file, &errors), -EINVAL);
	assert_string_equal(errors.items[0].where, "o.yaml:2:5");
}

/* ---- edits ---- */

/* Counts lines of `text` that are not in `other`. */
static size_t lines_missing(const char *text, const char *other)
{
	size_t missing = 0;

	while (*text) {
		size_t n = strcspn(text, "\n");
		char line[512];

		assert_int_equal(cordon_copy(line, sizeof(line), text, n), 0);
		missing += !strstr(other, line);
		text += n + (text[n] == '\n');
	}
	return missing;
}

static const char forms[][512] = {
	"",
	"# only a comment",
	"m:\n  a: 1\n  b: [x, y]\nl:\n  - one\n  - two\n",
	"m:   # nothing yet\nl: []   # empty\n",
	"m: {}\nl: [one, {k: v}]\nz: |\n  text\n   more\n",
	"{m: {a: b}, l: [one]}\n",
	"# top\nm:\n    # deep\n    a: 'q: \" x\"'   # tail\n\n    b:\n        c: d\n\n# end",
	"m: {a: 1,\n    b: 2}\nl:\n- one   # first\n- {k: v}\n",
	"---\nm:\n  a: \"1\"\nl: ~\n",
};

static void an_edit_and_its_reverse_give_the_text_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(forms); i++) {
		struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
		const char *keys[] = { "m", "new-key" }, *list[] = { "l" };
		struct cordon_yaml yaml autoyaml = { 0 };

		assert_int_equal(cordon_yaml_begin(&yaml, "t", forms[i], strlen(forms[i]), &errors), 0);
		assert_int_equal(cordon_yaml_put(&yaml, keys, 2,
						 json_pack("{s:s, s:[s,s]}", "p", "/a b", "q", "no", "x: #y"), &errors),
				 0);
		assert_string_equal(cordon_yaml_get(&yaml, keys, 2)->first->text, "/a b");
		if (cordon_yaml_get(&yaml, list, 1)) {
			assert_int_equal(cordon_yaml_append(&yaml, cordon_yaml_get(&yaml, list, 1), json_string("last"),
							    &errors),
					 0);
			const struct cordon_node *last = cordon_yaml_get(&yaml, list, 1)->first;

			while (last->next)
				last = last->next;
			assert_string_equal(last->text, "last");
			assert_int_equal(cordon_yaml_drop(&yaml, cordon_yaml_get(&yaml, list, 1), last, &errors), 0);
		}
		assert_int_equal(cordon_yaml_drop(&yaml, cordon_yaml_get(&yaml, keys, 1),
						  cordon_yaml_get(&yaml, keys, 2), &errors),
				 0);
		/* Every line is as it was, but for brackets of what was empty before. */
		assert_true(lines_missing(forms[i], yaml.text.data) <= 2);
		if (strstr(forms[i], "  a: 1\n  b: [x, y]"))
			assert_string_equal(yaml.text.data, forms[i]);
		assert_int_equal(errors.n, 0);
	}
}

static void an_edit_of_any_text_is_exact_or_refused(void **state)
{
	static const char bytes[] = "\n :#-[]{}'\"&*|>,x";

	(void)state;
	/* The editor itself compares the result with what it must be; here it must neither crash nor accept nonsense. */
	for (size_t i = 2; i < CORDON_ARRAY_SIZE(forms); i++)
		for (size_t at = 0; at < strlen(forms[i]); at++)
			for (size_t k = 0; k + 1 < sizeof(bytes); k++) {
				struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
				const char *keys[] = { "m", "new" }, *list[] = { "l" };
				struct cordon_yaml yaml autoyaml = { 0 };
				const struct cordon_node *node;
				char text[sizeof(forms[0])];

				memcpy(text, forms[i], sizeof(text));
				text[at] = bytes[k];
				if (cordon_yaml_begin(&yaml, "t", text, strlen(text), &errors) < 0)
					continue;
				if (cordon_yaml_put(&yaml, keys, 2, json_string("value"), &errors) == 0) {
					node = cordon_yaml_get(&yaml, keys, 2);
					assert_true(node && cordon_streq(node->text, "value"));
				}
				node = cordon_yaml_get(&yaml, list, 1);
				if (node && node->type == CORDON_NODE_SEQUENCE && node->first)
					(void)cordon_yaml_drop(&yaml, node, node->first, &errors);
				node = cordon_yaml_get(&yaml, keys, 1);
				if (node && node->first)
					(void)cordon_yaml_replace(&yaml, node->first, json_pack("[s]", "w"), &errors);
			}
}

static int set_up(void **state)
{
	static char home[] = "/tmp/cordon-test-settings-XXXXXX";

	(void)state;
	return mkdtemp(home) && setenv("CORDON_HOME", home, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/state", getenv("CORDON_HOME"));
	rmdir(path);
	return rmdir(getenv("CORDON_HOME"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_file_is_read),
		cmocka_unit_test(a_changed_byte_is_a_setting_or_an_error),
		cmocka_unit_test(every_error_has_its_place),
		cmocka_unit_test(the_first_file_of_an_orchestrator_is_valid),
		cmocka_unit_test(an_edit_and_its_reverse_give_the_text_back),
		cmocka_unit_test(an_edit_of_any_text_is_exact_or_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
