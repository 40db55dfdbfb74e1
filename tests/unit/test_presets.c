/* SPDX-License-Identifier: Apache-2.0 */
/* Presets may only narrow what they extend; a workspace of several sources is what all of them allow; validation hooks. */
#include "unit.h"

#include "config/extent.h"

#define autoerrors CORDON_CLEANUP(cordon_errors_done)
#define autoextent CORDON_CLEANUP(cordon_extent_done)

static int setup(void **state)
{
	int r = unit_setup(state);

	if (r == 0) {
		setenv("CORDON_HOME", unit_dir, 1);
		unit_mkdir("repo");
		unit_mkdir("repo/lib");
		unit_mkdir("repo/lib/sub");
		unit_mkdir("repo/libsecret");
		unit_mkdir("repo/src");
		unit_mkdir("outside");
		unit_link("../src", "repo/lib/link");
		unit_link("../../outside", "repo/src/out");
	}
	return r;
}

#define in_dir(name) cmocka_unit_test_setup_teardown(name, setup, unit_teardown)

static int parse(const char *presets, struct cordon_settings_file **ret, struct cordon_errors *errors)
{
	autobuf struct cordon_buf text = CORDON_BUF(1 << 16);
	char path[UNIT_PATH + 32];
	int r;

	snprintf(path, sizeof(path), "%s/config.yaml", unit_dir);
	cordon_buf_addf(&text, "defaults:\n%s", presets);
	r = cordon_settings_parse(path, text.data, text.len, ret, errors);
	return r;
}

static const char chain[] =
	"  presets:\n"
	"    base: {folders: [lib, src], protected_paths: [lib/keep], env_pass: ['NPM_*', KEY]}\n"
	"    strict: {extends: base, mode: strict}\n"
	"    sub: {extends: strict, folders: [lib/sub], protected_paths: [lib/sub/x], env_pass: [NPM_TOKEN]}\n"
	"    lead: {extends: base, folders: [lib/link]}\n"
	"    every: {mode: strict}\n";

static void a_preset_has_what_it_says_and_the_rest_from_what_it_extends(void **state)
{
	autoerrors struct cordon_errors errors = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	const struct cordon_preset *sub;

	(void)state;
	assert_int_equal(parse(chain, &settings, &errors), 0);
	assert_int_equal(settings->n_presets, 5);
	assert_int_equal(cordon_settings_preset(settings, "sub", &sub, NULL), 0);
	assert_ptr_equal(cordon_preset_with_folders(sub), sub);
	assert_string_equal(cordon_preset_with_mode(sub)->name, "strict");
	assert_int_equal(cordon_preset_with_mode(sub)->mode, CORDON_MODE_STRICT);
	assert_ptr_equal(cordon_preset_with_env_pass(sub), sub);
	assert_string_equal(cordon_preset_with_folders(sub->parent)->name, "base");
	assert_string_equal(sub->protected_paths.items[0].text, "lib/sub/x");
	assert_string_equal(sub->parent->parent->protected_paths.items[0].text, "lib/keep");
}

static void check_errors(const char *text, const char *const *expected)
{
	autoerrors struct cordon_errors errors = { 0 };
	struct cordon_settings_file *settings = NULL;
	size_t n = 0;

	assert_true(parse(text, &settings, &errors) < 0);
	for (; expected[n]; n++) {
		char said[4096];

		if (n >= errors.n)
			fail_msg("no error like %s", expected[n]);
		snprintf(said, sizeof(said), "%s %s", strstr(errors.items[n].where, ".yaml:"), errors.items[n].message);
		if (strncmp(said, expected[n], strlen(expected[n])) != 0)
			fail_msg("%s, not %s", said, expected[n]);
	}
	assert_int_equal(errors.n, n);
}

static void widening_and_cycles_are_errors_with_a_place(void **state)
{
	static const struct {
		const char *text, *errors[8];
	} rows[] = {
		{ "  presets:\n    a: {folders: [lib], mode: strict, env_pass: [A]}\n"
		  "    b: {extends: a, folders: [lib/x, src, libsecret], mode: permissive, env_pass: [A, AB, 'A*']}\n",
		  { ".yaml:4:38 the folder 'src' is not in", ".yaml:4:43 the folder 'libsecret' is not in",
		    ".yaml:4:61 the preset a is strict", ".yaml:4:87 the variable 'AB'",
		    ".yaml:4:91 the variable 'A*'" } },
		/* what nobody passes, a preset of it can't pass */
		{ "  presets:\n    a: {folders: [lib]}\n    b: {extends: a, env_pass: [A]}\n",
		  { ".yaml:4:32 the variable 'A' is not in what the preset a has" } },
		/* through one that says nothing */
		{ "  presets:\n    a: {folders: [lib]}\n    b: {extends: a}\n    c: {extends: b, folders: [src]}\n",
		  { ".yaml:5:31 the folder 'src' is not in what the preset b has" } },
		{ "  presets:\n    a: {extends: c}\n    b: {extends: a}\n    c: {extends: b}\n    d: {extends: d}\n",
		  { ".yaml:3:18 the preset a extends itself, by way of c", ".yaml:6:18 the preset d extends itself" } },
		{ "  presets:\n    a: {extends: b}\n", { ".yaml:3:18 there is no preset 'b'" } },
		{ "  presets:\n    a: {folders: [], mode: lax, protected_paths: [/etc, ../x, .], env_pass: [1A], folder: [x]}\n",
		  { ".yaml:3:18 folders must not be empty", ".yaml:3:28 'lax' is not a mode",
		    ".yaml:3:51 a protected path must lie in the repository", ".yaml:3:57 a protected path",
		    ".yaml:3:63 a protected path", ".yaml:3:78 '1A' is not the name", ".yaml:3:83 unknown key" } },
		{ "  presets:\n    a: {folders: [../x, '']}\n",
		  { ".yaml:3:19 a folder must be a path without '..'", ".yaml:3:25 a folder must be a path" } },
		{ "  validation_hooks:\n    - {name: 'a b', run: [], on: never}\n    - {run: x, on: [start, x], timeout: -1}\n",
		  { ".yaml:3:14 ", ".yaml:3:26 run must have 1 to", ".yaml:3:34 on must be start, story or apply",
		    ".yaml:4:7 a validation hook has no name", ".yaml:4:13 run must be a list", ".yaml:4:28 on must be",
		    ".yaml:4:41 '-1' is no duration" } },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++)
		check_errors(rows[i].text, rows[i].errors);
}

static void check_list(const struct cordon_extent *extent, const char *expected)
{
	autofree char *list = cordon_extent_list(extent);

	assert_string_equal(list, expected);
}

static void folders_of_several_sources_intersect_by_component(void **state)
{
	static const struct {
		const char *first, *second, *both;
	} rows[] = {
		{ "lib,src", "lib", "lib" },
		{ "lib", "lib/sub,src", "lib/sub" },
		{ "lib/sub,src", "lib", "lib/sub" },
		{ "lib", "libsecret", NULL },
		{ "lib/link", "src", "lib/link" }, /* by where they lead */
		{ ".", "src", "src" },
		{ "src, lib", "./lib/, src", "src,lib" },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autoerrors struct cordon_errors errors = { 0 };
		autoextent struct cordon_extent extent = { 0 };
		struct cordon_root root;
		int r;

		assert_int_equal(cordon_root_open("repo", &root, NULL), 0);
		assert_int_equal(cordon_extent_narrow_list(&extent, &root, rows[i].first, &errors), 0);
		r = cordon_extent_narrow_list(&extent, &root, rows[i].second, &errors);
		if (rows[i].both)
			check_list(&extent, rows[i].both);
		else
			assert_non_null(
				strstr(errors.items[0].message, "no folder is left: libsecret and lib have nothing"));
		assert_int_equal(r == 0, rows[i].both != NULL);
		cordon_root_done(&root);
	}
}

static void a_folder_that_is_missing_or_leads_out_is_worded_as_everywhere(void **state)
{
	autoerrors struct cordon_errors errors = { 0 };
	autoextent struct cordon_extent extent = { 0 };
	struct cordon_root root;

	(void)state;
	assert_int_equal(cordon_root_open("repo", &root, NULL), 0);
	assert_true(cordon_extent_narrow_list(&extent, &root, "nope,lib,src/out", &errors) < 0);
	assert_int_equal(errors.n, 2);
	assert_string_equal(errors.items[0].message, "Workspace folder does not exist: nope");
	assert_string_equal(errors.items[1].message, "Workspace folder is outside repository: src/out");
	assert_false(extent.limited);
	cordon_root_done(&root);
}

static void the_stricter_mode_wins(void **state)
{
	struct cordon_extent extent = { 0 };

	(void)state;
	cordon_extent_narrow_mode(&extent, CORDON_MODE_PERMISSIVE);
	assert_true(extent.has_mode && extent.mode == CORDON_MODE_PERMISSIVE);
	cordon_extent_narrow_mode(&extent, CORDON_MODE_STRICT);
	cordon_extent_narrow_mode(&extent, CORDON_MODE_PERMISSIVE);
	assert_int_equal(extent.mode, CORDON_MODE_STRICT);
}

static int narrow_prd(const char *workspace, const struct cordon_settings_file *settings, const char *flags,
		      struct cordon_extent *extent, struct cordon_errors *errors)
{
	autobuf struct cordon_buf text = CORDON_BUF(4096);
	autoprd struct cordon_prd *prd = NULL;
	struct cordon_root root;
	int r;

	cordon_buf_addf(&text, "{\"project\":\"p\",\"userStories\":[],\"workspace\":%s}", workspace);
	assert_int_equal(cordon_prd_read("p", text.data, text.len, &prd, errors), 0);
	assert_int_equal(cordon_root_open("repo", &root, NULL), 0);
	if (flags)
		assert_int_equal(cordon_extent_narrow_list(extent, &root, flags, errors), 0);
	r = cordon_extent_narrow_prd(extent, &root, prd, settings, errors);
	cordon_root_done(&root);
	return r;
}

static void a_prd_can_only_narrow(void **state)
{
	static const struct {
		const char *workspace, *flags, *list, *error;
		bool strict;
	} rows[] = {
		{ "null", "lib", "lib", NULL, false },
		{ "{}", NULL, "", NULL, false },
		{ "{\"folders\":[\"lib\",\"src\"],\"mode\":\"strict\"}", NULL, "lib,src", NULL, true },
		{ "{\"folders\":[\"lib\",\"src\"]}", "lib/sub,libsecret", "lib/sub", NULL, false },
		{ "{\"folders\":[\"src\"]}", "lib", NULL,
		  "p:1:45 no folder is left: src and lib have nothing in common", false },
		{ "{\"folders\":[\"nope\"]}", NULL, NULL, "p:1:45 Workspace folder does not exist: nope", false },
		{ "{\"preset\":\"sub\"}", "lib", "lib/sub", NULL, true },
		{ "{\"preset\":\"base\",\"folders\":[\"src\",\"libsecret\"]}", NULL, "src", NULL, false },
		{ "{\"preset\":\"sup\"}", NULL, NULL, "p:1:45 there is no preset 'sup'", false },
		{ "{\"preset\":\"lead\"}", NULL, "lib/link", NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autoerrors struct cordon_errors errors = { 0 };
		autosettings struct cordon_settings_file *settings = NULL;
		autoextent struct cordon_extent extent = { 0 };
		char said[4096];
		int r;

		assert_int_equal(parse(chain, &settings, &errors), 0);
		r = narrow_prd(rows[i].workspace, settings, rows[i].flags, &extent, &errors);
		if (rows[i].error) {
			assert_true(r < 0);
			snprintf(said, sizeof(said), "%s %s", errors.items[0].where, errors.items[0].message);
			assert_string_equal(said, rows[i].error);
			continue;
		}
		assert_int_equal(r, 0);
		check_list(&extent, rows[i].list);
		assert_int_equal(extent.has_mode && extent.mode == CORDON_MODE_STRICT, rows[i].strict);
	}
}

/* The text says that lib/link lies in lib, but it leads to src. */
static void a_link_can_t_widen_a_preset(void **state)
{
	autoerrors struct cordon_errors errors = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	autoextent struct cordon_extent extent = { 0 };
	struct cordon_root root;

	(void)state;
	assert_int_equal(
		parse("  presets:\n    a: {folders: [lib]}\n    b: {extends: a}\n    c: {extends: b, folders: [lib/link]}\n",
		      &settings, &errors),
		0);
	assert_int_equal(cordon_root_open("repo", &root, NULL), 0);
	assert_true(cordon_extent_narrow_preset(&extent, &root, settings, "c", &errors) < 0);
	assert_non_null(strstr(errors.items[0].message, "leads to src, which is not in what the preset extends"));
	cordon_root_done(&root);
}

static void hooks_are_read(void **state)
{
	autoerrors struct cordon_errors errors = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;

	(void)state;
	assert_int_equal(parse("  validation_hooks:\n    - {name: one, run: [/bin/check, a b], on: start}\n"
			       "    - {name: two, run: [x], on: [story, apply], timeout: 1500ms}\n",
			       &settings, &errors),
			 0);
	assert_int_equal(settings->n_hooks, 2);
	assert_string_equal(settings->hooks[0].run[1], "a b");
	assert_null(settings->hooks[0].run[2]);
	assert_int_equal(settings->hooks[0].timeout_ms, 10000);
	assert_true(settings->hooks[0].on[CORDON_HOOK_START] && !settings->hooks[0].on[CORDON_HOOK_APPLY]);
	assert_true(settings->hooks[1].on[CORDON_HOOK_STORY] && settings->hooks[1].on[CORDON_HOOK_APPLY]);
	assert_int_equal(settings->hooks[1].timeout_ms, 1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_dir(a_preset_has_what_it_says_and_the_rest_from_what_it_extends),
		in_dir(widening_and_cycles_are_errors_with_a_place),
		in_dir(folders_of_several_sources_intersect_by_component),
		in_dir(a_folder_that_is_missing_or_leads_out_is_worded_as_everywhere),
		in_dir(the_stricter_mode_wins),
		in_dir(a_prd_can_only_narrow),
		in_dir(a_link_can_t_widen_a_preset),
		in_dir(hooks_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
