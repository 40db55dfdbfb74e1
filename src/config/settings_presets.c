/* SPDX-License-Identifier: Apache-2.0 */
/* Reads presets, which may only narrow what they extend, and validation hooks. */
#include <stdio.h>

#include "base/path.h"
#include "config/settings_reader.h"

#define FAIL(reader, node, hint, ...) cordon_node_fail((reader)->in.doc, node, (reader)->in.errors, hint, __VA_ARGS__)

#define HOOKS_MAX 64
#define HOOK_TIMEOUT_MS 10000

/* ---- one preset ---- */

static int read_folders(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_preset *preset = data;
	int r = cordon_settings_read_list(reader, node, "folders", &preset->folders);

	preset->has_folders = true;
	if (r == 0 && (cordon_settings_is_none(node) || (node->type == CORDON_NODE_SEQUENCE && node->n == 0)))
		FAIL(reader, node, "name folders, or leave it out for the whole repository",
		     "folders must not be empty");
	for (const struct cordon_node *item = preset->folders.n ? node->first : NULL; item; item = item->next) {
		char clean[CORDON_PATH_MAX];

		if (item->type == CORDON_NODE_SCALAR &&
		    (!item->len || cordon_path_clean(item->text, clean, sizeof(clean)) < 0))
			FAIL(reader, item, NULL, "a folder must be a path without '..', not '%.80s'", item->text);
	}
	return r;
}

static int read_preset_mode(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_preset *preset = data;
	struct cordon_error err = { 0 };

	if (!cordon_reader_text(&reader->in, node, "mode"))
		return 0;
	if (cordon_mode_parse(node->text, &preset->mode, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return cordon_reader_where(&reader->in, node, &preset->mode_where);
}

static int read_protected(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_preset *preset = data;
	int r = cordon_settings_read_list(reader, node, "protected_paths", &preset->protected_paths);

	for (const struct cordon_node *item = preset->protected_paths.n ? node->first : NULL; item; item = item->next) {
		char clean[CORDON_PATH_MAX];

		if (item->type == CORDON_NODE_SCALAR &&
		    (item->text[0] == '/' || cordon_path_clean(item->text, clean, sizeof(clean)) < 0 || !clean[0]))
			FAIL(reader, item, NULL, "a protected path must lie in the repository, not '%.80s'", item->text);
	}
	return r;
}

static int read_preset_env(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_preset *preset = data;

	preset->has_env_pass = true;
	return cordon_settings_read_env_pass(reader, node, &preset->env_pass);
}

static int read_preset(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	static const struct cordon_settings_key keys[] = {
		{ "extends", NULL }, /* read when all names are known */
		{ "folders", read_folders },
		{ "mode", read_preset_mode },
		{ "protected_paths", read_protected },
		{ "env_pass", read_preset_env },
		{ 0 },
	};
	struct cordon_preset *preset = data;

	*preset = (struct cordon_preset){ .name = node->key->text, .node = node };
	return cordon_settings_read_keys(reader, node, "a preset", keys, preset);
}

/* ---- inheritance ---- */

const struct cordon_preset *cordon_preset_with_folders(const struct cordon_preset *preset)
{
	while (preset && !preset->has_folders)
		preset = preset->parent;
	return preset;
}

const struct cordon_preset *cordon_preset_with_mode(const struct cordon_preset *preset)
{
	while (preset && !preset->mode_where)
		preset = preset->parent;
	return preset;
}

const struct cordon_preset *cordon_preset_with_env_pass(const struct cordon_preset *preset)
{
	while (preset && !preset->has_env_pass)
		preset = preset->parent;
	return preset;
}

static int link_parent(struct cordon_settings_reader *reader, struct cordon_preset *preset)
{
	const struct cordon_node *node = preset->node->type == CORDON_NODE_MAPPING
						 ? cordon_node_get(preset->node, "extends")
						 : NULL;
	struct cordon_error err = { 0 };

	if (!node || !cordon_reader_text(&reader->in, node, "extends"))
		return 0;
	if (cordon_settings_preset(reader->settings, node->text, &preset->parent, &err) < 0) {
		err.kind = CORDON_KIND_CONFIG;
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	}
	return 0;
}

/* Reports a chain that never ends, once for each preset in it, and cuts it. */
static void cut_cycles(struct cordon_settings_reader *reader)
{
	struct cordon_settings_file *settings = reader->settings;

	for (size_t i = 0; i < settings->n_presets; i++) {
		struct cordon_preset *preset = &settings->presets[i];
		const struct cordon_preset *at = preset->parent;

		for (size_t steps = 0; at && at != preset && steps < settings->n_presets; steps++)
			at = at->parent;
		if (at != preset)
			continue;
		FAIL(reader, cordon_node_get(preset->node, "extends"), "remove one of these extends",
		     "the preset %s extends itself, by way of %s", preset->name, preset->parent->name);
		preset->parent = NULL;
	}
}

static bool holds_folder(const struct cordon_setting_list *folders, const char *folder)
{
	char inner[CORDON_PATH_MAX], outer[CORDON_PATH_MAX];

	if (cordon_path_clean(folder, inner, sizeof(inner)) < 0)
		return true; /* reported before */
	for (size_t i = 0; i < folders->n; i++)
		if (cordon_path_clean(folders->items[i].text, outer, sizeof(outer)) == 0 &&
		    (inner[0] == '/') == (outer[0] == '/') && cordon_path_within(inner, outer))
			return true;
	return false;
}

/* Whether a name, or all names with this beginning, are passed anyway. */
static bool holds_name(const struct cordon_setting_list *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *known = names->items[i].text;
		size_t n = strlen(known);

		if (cordon_streq(known, name) || (n && known[n - 1] == '*' && strncmp(known, name, n - 1) == 0))
			return true;
	}
	return false;
}

static void widens(struct cordon_settings_reader *reader, const struct cordon_setting *setting, const char *hint,
		   const char *what, const struct cordon_preset *parent)
{
	struct cordon_error err;

	cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG,
		    "%s '%s' is not in what the preset %s has: a preset may only narrow", what, setting->text,
		    parent->name);
	cordon_error_hint(&err, "%s", hint);
	cordon_errors_add(reader->in.errors, &err, reader->in.doc->name, setting->line, setting->column);
}

/* INVARIANT: a preset gives nothing that the one it extends does not give. */
static void check_narrows(struct cordon_settings_reader *reader, const struct cordon_preset *preset)
{
	const struct cordon_preset *parent = preset->parent;
	const struct cordon_preset *folders = cordon_preset_with_folders(parent),
				   *mode = cordon_preset_with_mode(parent);
	const struct cordon_preset *env = cordon_preset_with_env_pass(parent);
	const struct cordon_setting_list none = { 0 };

	for (size_t i = 0; folders && i < preset->folders.n; i++)
		if (!holds_folder(&folders->folders, preset->folders.items[i].text))
			widens(reader, &preset->folders.items[i], "leave it out, or add it there", "the folder", parent);
	if (mode && preset->mode_where && mode->mode == CORDON_MODE_STRICT && preset->mode == CORDON_MODE_PERMISSIVE)
		FAIL(reader, cordon_node_get(preset->node, "mode"), "leave it out, or say permissive there",
		     "the preset %s is strict, and %s extends it: a preset may only narrow", parent->name, preset->name);
	for (size_t i = 0; i < preset->env_pass.n; i++)
		if (!holds_name(env ? &env->env_pass : &none, preset->env_pass.items[i].text))
			widens(reader, &preset->env_pass.items[i], "leave it out, or add it there", "the variable",
			       parent);
}

int cordon_settings_read_presets(struct cordon_settings_reader *reader, const struct cordon_node *node)
{
	struct cordon_settings_file *settings = reader->settings;
	void *items = NULL;
	int r;

	if (!node)
		return 0;
	r = cordon_settings_read_each(reader, node, "presets", "the name of a preset", sizeof(*settings->presets),
				      read_preset, &items, &settings->n_presets);
	settings->presets = items;
	for (size_t i = 0; r == 0 && i < settings->n_presets; i++)
		r = link_parent(reader, &settings->presets[i]);
	cut_cycles(reader);
	for (size_t i = 0; r == 0 && i < settings->n_presets; i++)
		if (settings->presets[i].parent)
			check_narrows(reader, &settings->presets[i]);
	return r;
}

/* ---- hooks ---- */

static const char *const events[CORDON_HOOK__MAX] = { "start", "story", "apply" };

const char *cordon_hook_event_name(cordon_hook_event event)
{
	return events[event];
}

static int read_hook_name(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_id(reader, node, "name", "the name of a validation hook",
				       &((struct cordon_hook *)data)->name);
}

static int read_hook_run(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_command(reader, node, "run", "write [/srv/hooks/check]",
					    &((struct cordon_hook *)data)->run);
}

/* One event, or a list of them. */
static int read_hook_on(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_hook *hook = data;
	bool list = node->type == CORDON_NODE_SEQUENCE;

	if (list && !node->n)
		FAIL(reader, node, NULL, "on must not be empty");
	for (const struct cordon_node *item = list ? node->first : node; item; item = list ? item->next : NULL) {
		size_t i = 0;

		if (!cordon_reader_text(&reader->in, item, "on"))
			continue;
		while (i < CORDON_HOOK__MAX && !cordon_streq(item->text, events[i]))
			i++;
		if (i < CORDON_HOOK__MAX)
			hook->on[i] = true;
		else
			FAIL(reader, item, NULL, "on must be start, story or apply, not '%.80s'", item->text);
	}
	return 0;
}

static int read_hook_timeout(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_error err = { 0 };

	if (node->type != CORDON_NODE_SCALAR)
		FAIL(reader, node, NULL, "timeout must be a number");
	else if (cordon_timeout_parse(node->text, &((struct cordon_hook *)data)->timeout_ms, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return 0;
}

static int read_hook(struct cordon_settings_reader *reader, const struct cordon_node *node, struct cordon_hook *hook)
{
	static const struct cordon_settings_key keys[] = {
		{ "name", read_hook_name },
		{ "run", read_hook_run },
		{ "on", read_hook_on },
		{ "timeout", read_hook_timeout },
		{ 0 },
	};
	static const char *const needed[] = { "name", "run", "on" };

	*hook = (struct cordon_hook){ .timeout_ms = HOOK_TIMEOUT_MS, .node = node };
	for (size_t i = 0; node->type == CORDON_NODE_MAPPING && i < CORDON_ARRAY_SIZE(needed); i++)
		if (!cordon_node_get(node, needed[i]))
			FAIL(reader, node, NULL, "a validation hook has no %s", needed[i]);
	return cordon_settings_read_keys(reader, node, "a validation hook", keys, hook);
}

int cordon_settings_read_hooks(struct cordon_settings_reader *reader, const struct cordon_node *node)
{
	struct cordon_settings_file *settings = reader->settings;
	int r = 0;

	if (!node || cordon_settings_is_none(node) ||
	    !cordon_reader_collection(&reader->in, node, CORDON_NODE_SEQUENCE, "validation_hooks"))
		return 0;
	if (node->n > HOOKS_MAX) {
		FAIL(reader, node, NULL, "there are more than %d validation hooks", HOOKS_MAX);
		return 0;
	}
	settings->hooks = cordon_document_alloc(reader->in.doc, ((size_t)node->n + 1) * sizeof(*settings->hooks));
	if (!settings->hooks)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; r == 0 && item; item = item->next)
		r = read_hook(reader, item, &settings->hooks[settings->n_hooks++]);
	return r;
}
