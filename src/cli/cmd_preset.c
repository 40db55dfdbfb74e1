/* SPDX-License-Identifier: Apache-2.0 */
/* cordon preset list, show: the presets of the settings, and where each value of one comes from. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/manager.h"
#include "config/settings_file.h"

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err; /* These commands have the common options only. */
	return 0;
}

static bool load(struct cordon_cli *cli, struct cordon_settings_file **ret_settings, int *ret_exit)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };

	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, ret_settings, &errors) == 0)
		return true;
	*ret_exit = cordon_cli_fail_all(cli, &errors);
	return false;
}

/* "lib,src"; the caller frees it. */
static char *join(const struct cordon_setting_list *list)
{
	autobuf struct cordon_buf text = CORDON_BUF(1u << 22);

	for (size_t i = 0; i < list->n; i++) {
		if (i)
			cordon_buf_addc(&text, ',');
		cordon_text_escape(&text, list->items[i].text, strlen(list->items[i].text));
	}
	return cordon_buf_steal(&text);
}

static json_t *texts(const struct cordon_setting_list *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(array, cordon_cli_json_text(list->items[i].text));
	return array;
}

static int list(struct cordon_cli *cli, int argc, char **argv)
{
	autosettings struct cordon_settings_file *settings = NULL;
	struct cordon_error err = { 0 };
	json_t *array;
	int first, code = 0, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	if (!load(cli, &settings, &code))
		return code;
	array = json_array();
	for (size_t i = 0; i < settings->n_presets; i++) {
		const struct cordon_preset *preset = &settings->presets[i], *from = cordon_preset_with_folders(preset);
		autofree char *folders = from ? join(&from->folders) : NULL;

		if (cli->json)
			json_array_append_new(array, json_pack("{s:s, s:s?, s:o}", "name", preset->name, "extends",
							       preset->parent ? preset->parent->name : NULL, "folders",
							       from ? texts(&from->folders) : json_array()));
		else if (cli->quiet)
			printf("%s\n", preset->name);
		else
			printf("%s  %s\n", preset->name, folders ? folders : "(the whole repository)");
	}
	if (cli->json)
		return cordon_cli_print_json(cli, array);
	json_decref(array);
	return CORDON_EXIT_OK;
}

/* ---- show ---- */

struct showing {
	const struct cordon_cli *cli;
	json_t *values; /* with --json */
};

/* One value, and which preset says it where. `value` is taken. */
static void show_value(struct showing *showing, const char *key, const char *text, json_t *value,
		       const struct cordon_preset *from, const char *where)
{
	if (showing->cli->json)
		json_array_append_new(showing->values, json_pack("{s:s, s:o, s:s?, s:o}", "key", key, "value", value,
								 "preset", from ? from->name : NULL, "where",
								 where ? cordon_cli_json_text(where) : json_null()));
	else
		json_decref(value);
	if (!showing->cli->json && from)
		printf("%s: %s  (%s, %s)\n", key, text, from->name, where);
	else if (!showing->cli->json)
		printf("%s: %s\n", key, text);
}

static void show_list(struct showing *showing, const char *key, const struct cordon_setting_list *list,
		      const struct cordon_preset *from, const char *otherwise)
{
	autofree char *text = from && list ? join(list) : NULL;

	show_value(showing, key, from ? (*text ? text : "-") : otherwise, from ? texts(list) : json_null(), from,
		   from && list->n ? list->items[0].where
		   : from	   ? "-"
				   : NULL);
}

static void show_all(struct showing *showing, const struct cordon_preset *preset)
{
	const struct cordon_preset *folders = cordon_preset_with_folders(preset),
				   *mode = cordon_preset_with_mode(preset);
	const struct cordon_preset *env = cordon_preset_with_env_pass(preset);

	show_list(showing, "folders", folders ? &folders->folders : NULL, folders, "the whole repository");
	if (mode)
		show_value(showing, "mode", cordon_mode_name(mode->mode), json_string(cordon_mode_name(mode->mode)),
			   mode, mode->mode_where);
	else
		show_value(showing, "mode", "not set", json_null(), NULL, NULL);
	for (const struct cordon_preset *at = preset; at; at = at->parent)
		if (at->protected_paths.n)
			show_list(showing, "protected_paths", &at->protected_paths, at, "");
	show_list(showing, "env_pass", env ? &env->env_pass : NULL, env, "none");
}

static int show(struct cordon_cli *cli, int argc, char **argv)
{
	autosettings struct cordon_settings_file *settings = NULL;
	struct showing showing = { .cli = cli };
	const struct cordon_preset *preset = NULL;
	struct cordon_error err = { 0 };
	json_t *chain;
	int first, code = 0, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first != 1)
		return cordon_cli_usage(cli, "one preset is expected, not %d", argc - first);
	if (!load(cli, &settings, &code))
		return code;
	if (cordon_settings_preset(settings, argv[first], &preset, &err) < 0)
		return cordon_cli_fail(cli, &err);
	showing.values = json_array();
	chain = json_array();
	if (!cli->json)
		printf("name: %s\n", preset->name);
	for (const struct cordon_preset *at = preset->parent; at; at = at->parent) {
		json_array_append_new(chain, json_string(at->name));
		if (!cli->json)
			printf("extends: %s\n", at->name);
	}
	show_all(&showing, preset);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:s, s:o, s:o}", "name", preset->name, "extends", chain,
							    "values", showing.values));
	json_decref(chain);
	json_decref(showing.values);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_preset_list = {
	.name = "preset list",
	.operands = "",
	.summary = "list the presets of the settings with their folders",
	.details = "A preset is a folder workspace with a name; use it with --preset NAME.\n",
	.options = NULL,
	.run = list,
};

const struct cordon_command cordon_cmd_preset_show = {
	.name = "preset show",
	.operands = "PRESET",
	.summary = "print each value of a preset, and from where it has it",
	.details = NULL,
	.options = NULL,
	.run = show,
};
