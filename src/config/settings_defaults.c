/* SPDX-License-Identifier: Apache-2.0 */
/* Reads `defaults` of config.yaml: how providers are started, the limits of steps, and what presets and hooks are made of. */
#include <stdio.h>

#include "base/path.h"
#include "config/profile.h"
#include "config/settings_reader.h"

#define COMMAND_MAX 256 /* words */

#define FAIL(reader, node, hint, ...) cordon_node_fail((reader)->in.doc, node, (reader)->in.errors, hint, __VA_ARGS__)

/* Clients that ask nobody anything: the kernel holds what they may do. {model} stands for the agent's model. */
static char claude[] = "claude", print_option[] = "-p", skip_option[] = "--dangerously-skip-permissions",
	    model_option[] = "--model", model_word[] = "{model}";
static char codex[] = "codex", exec_word[] = "exec", sandbox_option[] = "-s", full_word[] = "danger-full-access",
	    no_git_option[] = "--skip-git-repo-check", json_option[] = "--json", stdin_word[] = "-";
static char *claude_command[] = { claude, print_option, skip_option, model_option, model_word, NULL };
static char *codex_command[] = { codex,	      exec_word,    sandbox_option, full_word,	no_git_option,
				 json_option, model_option, model_word,	    stdin_word, NULL };

static const struct cordon_provider built_in[] = {
	{ .name = "anthropic", .command = claude_command, .profile = claude },
	{ .name = "openai", .command = codex_command, .profile = codex },
};

static const struct cordon_provider *find_built_in(const char *name)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(built_in); i++)
		if (cordon_streq(built_in[i].name, name))
			return &built_in[i];
	return NULL;
}

int cordon_settings_read_command(struct cordon_settings_reader *reader, const struct cordon_node *list,
				 const char *what, const char *example, char ***ret_command)
{
	char **command, word[64];
	size_t n = 0;

	if (!cordon_reader_collection(&reader->in, list, CORDON_NODE_SEQUENCE, what))
		return 0;
	if (!list->n || list->n > COMMAND_MAX || (list->first->type == CORDON_NODE_SCALAR && !list->first->len)) {
		FAIL(reader, list, example, "%s must have 1 to %d words", what, COMMAND_MAX);
		return 0;
	}
	command = cordon_document_alloc(reader->in.doc, ((size_t)list->n + 1) * sizeof(*command));
	if (!command)
		return -ENOMEM;
	snprintf(word, sizeof(word), "a word of %s", what);
	for (const struct cordon_node *node = list->first; node; node = node->next) {
		if (!cordon_reader_text(&reader->in, node, word))
			return 0;
		command[n] = cordon_document_alloc(reader->in.doc, (size_t)node->len + 1);
		if (!command[n])
			return -ENOMEM;
		memcpy(command[n++], node->text, (size_t)node->len + 1);
	}
	command[n] = NULL;
	*ret_command = command;
	return 0;
}

static int read_command(struct cordon_settings_reader *reader, const struct cordon_node *list, void *data)
{
	struct cordon_provider *provider = data;

	return cordon_settings_read_command(reader, list, "command", "write [claude, -p]", &provider->command);
}

static int read_env(struct cordon_settings_reader *reader, const struct cordon_node *mapping, void *data)
{
	struct cordon_provider *provider = data;

	if (cordon_settings_is_none(mapping) ||
	    !cordon_reader_collection(&reader->in, mapping, CORDON_NODE_MAPPING, "env"))
		return 0;
	provider->env = cordon_document_alloc(reader->in.doc, (mapping->n + 1) * sizeof(*provider->env));
	if (!provider->env)
		return -ENOMEM;
	for (const struct cordon_node *node = mapping->first; node; node = node->next) {
		struct cordon_error err = { 0 };
		struct cordon_env_setting env = { .name = node->key->text, .value = node->text };

		if (cordon_env_name_check(node->key->text, node->key->len, &err) < 0)
			cordon_reader_refuse(&reader->in, node->key, &err, CORDON_READER_WHOLE);
		else if (node->type != CORDON_NODE_SCALAR)
			FAIL(reader, node, NULL, "%s must be text", env.name);
		else if (cordon_reader_where(&reader->in, node->key, &env.where) < 0)
			return -ENOMEM;
		else
			provider->env[provider->n_env++] = env;
	}
	return 0;
}

int cordon_settings_read_list(struct cordon_settings_reader *reader, const struct cordon_node *list, const char *what,
			      struct cordon_setting_list *ret_list)
{
	struct cordon_setting_list all = { 0 };

	if (cordon_settings_is_none(list) || !cordon_reader_collection(&reader->in, list, CORDON_NODE_SEQUENCE, what))
		return 0;
	all.items = cordon_document_alloc(reader->in.doc, ((size_t)list->n + 1) * sizeof(*all.items));
	if (!all.items)
		return -ENOMEM;
	for (const struct cordon_node *node = list->first; node; node = node->next) {
		struct cordon_setting setting = { .text = node->text, .line = node->line, .column = node->column };

		if (!cordon_reader_text(&reader->in, node, what))
			continue;
		if (cordon_reader_where(&reader->in, node, &setting.where) < 0)
			return -ENOMEM;
		all.items[all.n++] = setting;
	}
	*ret_list = all;
	return 0;
}

int cordon_settings_read_env_pass(struct cordon_settings_reader *reader, const struct cordon_node *list,
				  struct cordon_setting_list *ret_list)
{
	struct cordon_setting_list all = { 0 };
	int r = cordon_settings_read_list(reader, list, "env_pass", &all);

	for (const struct cordon_node *node = all.n ? list->first : NULL; node; node = node->next) {
		struct cordon_error err = { 0 };

		if (node->type == CORDON_NODE_SCALAR && cordon_env_pattern_check(node->text, &err) < 0)
			cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	}
	*ret_list = all;
	return r;
}

static int read_env_pass(struct cordon_settings_reader *reader, const struct cordon_node *list, void *data)
{
	return cordon_settings_read_env_pass(reader, list, &((struct cordon_provider *)data)->env_pass);
}

static int read_provider_profile(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_provider *provider = data;
	struct cordon_error err = { 0 };

	if (!cordon_reader_text(&reader->in, node, "profile"))
		return 0;
	if (cordon_profile_name_check(node->text, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	provider->profile = node->text;
	return 0;
}

static int read_provider(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	static const struct cordon_settings_key keys[] = {
		{ "command", read_command },
		{ "env", read_env },
		{ "env_pass", read_env_pass },
		{ "profile", read_provider_profile },
		{ 0 },
	};
	const struct cordon_provider *known = find_built_in(node->key->text);
	struct cordon_provider *provider = data;
	int r;

	*provider = (struct cordon_provider){ .name = node->key->text, .node = node };
	r = cordon_settings_read_keys(reader, node, "a provider", keys, provider);
	if (r < 0)
		return r;
	if (!provider->command && known)
		provider->command = known->command;
	if (!provider->command && (node->type != CORDON_NODE_MAPPING || !cordon_node_get(node, "command")))
		FAIL(reader, node->key, "add command: [PROGRAM, ...]", "the provider %s has no command", provider->name);
	/* Another program than the built-in one does not get the state of that one. */
	if (!provider->profile && known && provider->command &&
	    cordon_streq(cordon_path_base(provider->command[0]), known->command[0]))
		provider->profile = known->profile;
	return 0;
}

/* The file's own providers, then those built-in ones that it does not name. */
static int read_providers(struct cordon_settings_reader *reader, const struct cordon_node *node)
{
	struct cordon_settings_file *settings = reader->settings;
	struct cordon_provider *all;
	void *items = NULL;
	size_t n = 0;
	int r = node ? cordon_settings_read_each(reader, node, "providers", "the name of a provider", sizeof(*all),
						 read_provider, &items, &n)
		     : 0;

	if (r < 0)
		return r;
	all = cordon_document_alloc(reader->in.doc, (n + CORDON_ARRAY_SIZE(built_in)) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	if (n)
		memcpy(all, items, n * sizeof(*all));
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(built_in); i++) {
		size_t k = 0;

		while (k < n && !cordon_streq(all[k].name, built_in[i].name))
			k++;
		if (k == n)
			all[n++] = built_in[i];
	}
	settings->providers = all;
	settings->n_providers = n;
	return 0;
}

static int read_limit(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	if (node->type != CORDON_NODE_SCALAR)
		FAIL(reader, node, NULL, "%s must be a number", node->key->text);
	for (cordon_recipe_id id = 0; node->type == CORDON_NODE_SCALAR && id < CORDON_RECIPE__MAX; id++)
		if (cordon_recipe_rows[id].limit && cordon_streq(cordon_recipe_rows[id].key, node->key->text))
			return cordon_recipe_read(&reader->in, node, node->key->text, id, NULL, data);
	return 0;
}

/* The limits that a policy file may have. */
static int read_limits(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_settings_key keys[CORDON_RECIPE__MAX + 1] = { 0 };
	size_t n = 0;

	(void)data;
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++)
		if (cordon_recipe_rows[id].limit)
			keys[n++] = (struct cordon_settings_key){ cordon_recipe_rows[id].key, read_limit };
	return cordon_settings_read_keys(reader, node, "limits", keys, &reader->settings->limits);
}

static int read_mode(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_error err = { 0 };
	cordon_mode mode;

	(void)data;
	if (cordon_reader_text(&reader->in, node, "mode") && cordon_mode_parse(node->text, &mode, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return 0;
}

static int read_step_views(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	(void)data;
	cordon_reader_bool(&reader->in, node, "step_views", &reader->settings->step_views);
	return 0;
}

int cordon_settings_read_defaults(struct cordon_settings_reader *reader, const struct cordon_node *node)
{
	static const struct cordon_settings_key keys[] = {
		{ "mode", read_mode },
		{ "limits", read_limits },
		{ "step_views", read_step_views },
		{ "providers", NULL },
		{ "presets", NULL },
		{ "loop", NULL },
		{ "validation_hooks", NULL },
		{ 0 },
	};
	int r;

	reader->settings->step_views = true;
	r = node ? cordon_settings_read_keys(reader, node, "defaults", keys, NULL) : 0;
	reader->settings->defaults = node && node->type == CORDON_NODE_MAPPING ? node : NULL;
	if (r == 0 && reader->settings->defaults)
		r = cordon_settings_read_presets(reader, cordon_node_get(node, "presets"));
	if (r == 0 && reader->settings->defaults)
		r = cordon_settings_read_hooks(reader, cordon_node_get(node, "validation_hooks"));
	if (r == 0 && reader->settings->defaults && cordon_node_get(node, "loop")) {
		reader->settings->loop = cordon_arena_alloc(reader->in.doc->arena, sizeof(*reader->settings->loop));
		r = reader->settings->loop ? read_provider(reader, cordon_node_get(node, "loop"), reader->settings->loop)
					   : -ENOMEM;
	}
	if (r < 0)
		return r;
	return read_providers(reader, reader->settings->defaults ? cordon_node_get(node, "providers") : NULL);
}
