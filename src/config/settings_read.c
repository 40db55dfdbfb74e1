/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the document of config.yaml into structs: areas, orchestrators with their grants, channel profiles, providers. */
#include <stdio.h>

#include "base/path.h"
#include "config/profile.h"
#include "config/settings_reader.h"

#define COMMAND_MAX 256 /* words */

#define FAIL(reader, node, hint, ...) cordon_node_fail((reader)->in.doc, node, (reader)->in.errors, hint, __VA_ARGS__)

static const char *const channels[] = { "local", "slack", "discord", "telegram", "whatsapp" };

/* ---- shared areas ---- */

static int read_area_path(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_shared_area *area = data;

	return cordon_settings_read_path(reader, node, "path", &area->given, &area->path);
}

static int read_area_description(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_text(reader, node, "description", &((struct cordon_shared_area *)data)->description);
}

static int read_area_domain(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_text(reader, node, "domain", &((struct cordon_shared_area *)data)->domain);
}

static int read_area(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	static const struct cordon_settings_key keys[] = {
		{ "path", read_area_path },
		{ "description", read_area_description },
		{ "domain", read_area_domain },
		{ 0 },
	};
	struct cordon_shared_area *area = data;

	*area = (struct cordon_shared_area){ .key = node->key->text, .node = node };
	/* An older form of the file has only the path. */
	if (node->type == CORDON_NODE_SCALAR && !cordon_settings_is_none(node)) {
		area->description = area->key;
		return cordon_settings_read_path(reader, node, "the path of a shared area", &area->given, &area->path);
	}
	if (node->type == CORDON_NODE_MAPPING && !cordon_node_get(node, "path"))
		FAIL(reader, node->key, "add path: /...", "the shared area %s has no path", area->key);
	if (node->type == CORDON_NODE_MAPPING && !cordon_node_get(node, "description"))
		FAIL(reader, node->key, "add description: \"...\": agents are told what the area is for",
		     "the shared area %s has no description", area->key);
	if (cordon_settings_is_none(node))
		FAIL(reader, node->key, "write {path: /..., description: \"...\"}", "the shared area %s is empty",
		     area->key);
	return cordon_settings_read_keys(reader, node, "a shared area", keys, area);
}

/* ---- orchestrators ---- */

struct grant_reading {
	struct cordon_area_grant grant;
	const struct cordon_node *name;
};

static int read_grant_name(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct grant_reading *reading = data;

	if (cordon_reader_text(&reader->in, node, "name"))
		reading->name = node;
	return 0;
}

static int read_grant_access(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct grant_reading *reading = data;

	if (!cordon_reader_text(&reader->in, node, "access"))
		return 0;
	reading->grant.read_only = cordon_streq(node->text, "read-only");
	if (!reading->grant.read_only && !cordon_streq(node->text, "read-write"))
		FAIL(reader, node, "write read-only or read-write",
		     "access must be read-only or read-write, not '%.80s'", node->text);
	return 0;
}

static int read_grant_cross_domain(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct grant_reading *reading = data;

	cordon_reader_bool(&reader->in, node, "cross_domain", &reading->grant.cross_domain);
	return 0;
}

static int read_grant(struct cordon_settings_reader *reader, const struct cordon_node *node,
		      struct cordon_orchestrator *orchestrator)
{
	static const struct cordon_settings_key keys[] = {
		{ "name", read_grant_name },
		{ "access", read_grant_access },
		{ "cross_domain", read_grant_cross_domain },
		{ 0 },
	};
	struct grant_reading reading = { .grant = { .node = node } };
	struct cordon_error err = { 0 };
	int r = 0;

	if (node->type == CORDON_NODE_SCALAR && !cordon_settings_is_none(node))
		reading.name = node;
	else if (node->type == CORDON_NODE_MAPPING && !cordon_node_get(node, "name"))
		FAIL(reader, node, "write {name: KEY, access: read-only}", "a grant must name a shared area");
	else
		r = cordon_settings_read_keys(reader, node, "a grant", keys, &reading);
	if (r < 0 || !reading.name)
		return r;
	if (cordon_settings_area(reader->settings, reading.name->text, &reading.grant.area, &err) < 0) {
		err.kind = CORDON_KIND_CONFIG;
		return cordon_reader_refuse(&reader->in, reading.name, &err, CORDON_READER_WHOLE);
	}
	if (cordon_orchestrator_grant(orchestrator, reading.name->text)) {
		FAIL(reader, node, "leave one of them out", "%s is granted twice", reading.name->text);
		return 0;
	}
	orchestrator->grants[orchestrator->n_grants++] = reading.grant;
	return 0;
}

static int read_grants(struct cordon_settings_reader *reader, const struct cordon_node *list, void *data)
{
	struct cordon_orchestrator *orchestrator = data;
	int r = 0;

	if (cordon_settings_is_none(list) ||
	    !cordon_reader_collection(&reader->in, list, CORDON_NODE_SEQUENCE, "shared_access"))
		return 0;
	if (list->n > CORDON_SETTINGS_GRANTS_MAX) {
		FAIL(reader, list, NULL, "shared_access has more than %d areas", CORDON_SETTINGS_GRANTS_MAX);
		return 0;
	}
	orchestrator->grants = cordon_document_alloc(reader->in.doc, (list->n + 1) * sizeof(*orchestrator->grants));
	if (!orchestrator->grants)
		return -ENOMEM;
	for (const struct cordon_node *node = list->first; r == 0 && node; node = node->next)
		r = read_grant(reader, node, orchestrator);
	return r;
}

static int read_private(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_orchestrator *orchestrator = data;

	if (cordon_settings_is_none(node))
		return 0;
	return cordon_settings_read_path(reader, node, "private_workspace", &orchestrator->given,
					 &orchestrator->private_workspace);
}

static int read_orchestrator(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	static const struct cordon_settings_key keys[] = {
		{ "private_workspace", read_private },
		{ "shared_access", read_grants },
		{ 0 },
	};
	struct cordon_orchestrator *orchestrator = data;
	char path[CORDON_PATH_MAX], leads[CORDON_PATH_MAX];
	int r;

	*orchestrator = (struct cordon_orchestrator){ .id = node->key->text, .node = node };
	r = cordon_settings_read_keys(reader, node, "an orchestrator", keys, orchestrator);
	if (r < 0 || orchestrator->private_workspace)
		return r;
	if (cordon_path_join(reader->settings->workspaces_path, orchestrator->id, path, sizeof(path)) < 0 ||
	    cordon_settings_resolve(path, leads) < 0) {
		FAIL(reader, node->key, NULL, "the private workspace of %s can't be resolved", orchestrator->id);
		return 0;
	}
	orchestrator->private_workspace = cordon_settings_keep(reader, leads);
	return orchestrator->private_workspace ? 0 : -ENOMEM;
}

/* ---- channel profiles ---- */

static int read_channel(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_channel_profile *profile = data;

	if (!cordon_reader_text(&reader->in, node, "channel"))
		return 0;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(channels); i++)
		if (cordon_streq(channels[i], node->text))
			profile->channel = channels[i];
	if (!profile->channel)
		FAIL(reader, node, "write local, slack, discord, telegram or whatsapp", "unknown channel '%.80s'",
		     node->text);
	return 0;
}

static int read_profile_orchestrator(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_channel_profile *profile = data;
	struct cordon_error err = { 0 };

	if (!cordon_reader_text(&reader->in, node, "orchestrator_id") ||
	    cordon_settings_orchestrator(reader->settings, node->text, &profile->orchestrator, &err) == 0)
		return 0;
	err.kind = CORDON_KIND_CONFIG;
	return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
}

static int read_profile_domain(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_text(reader, node, "domain", &((struct cordon_channel_profile *)data)->domain);
}

static int read_profile_workflow(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_id(reader, node, node->key->text, "the id of a workflow",
				       &((struct cordon_channel_profile *)data)->default_workflow);
}

static int read_profile(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	static const struct cordon_settings_key keys[] = {
		{ "channel", read_channel },
		{ "orchestrator_id", read_profile_orchestrator },
		{ "domain", read_profile_domain },
		{ "default_workflow", read_profile_workflow },
		{ "workflow", read_profile_workflow },
		{ "slack_app_user_id", NULL },
		{ "require_mention_in_channels", NULL },
		{ "thread_response_mode", NULL },
		{ "identity", NULL },
		{ 0 },
	};
	static const char *const needed[] = { "channel", "orchestrator_id" };
	struct cordon_channel_profile *profile = data;

	*profile = (struct cordon_channel_profile){ .id = node->key->text, .node = node };
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(needed); i++)
		if (cordon_settings_is_none(node) ||
		    (node->type == CORDON_NODE_MAPPING && !cordon_node_get(node, needed[i])))
			FAIL(reader, node->key, NULL, "the channel profile %s has no %s", profile->id, needed[i]);
	if (node->type == CORDON_NODE_MAPPING && cordon_node_get(node, "default_workflow") &&
	    cordon_node_get(node, "workflow"))
		FAIL(reader, cordon_node_get(node, "workflow"), "leave it out",
		     "workflow means the same as default_workflow");
	return cordon_settings_read_keys(reader, node, "a channel profile", keys, profile);
}

/* ---- defaults ---- */

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

typedef int limit_fn(const char *text, uint64_t *ret_value, struct cordon_error *err);

static int read_limit(struct cordon_settings_reader *reader, const struct cordon_node *node, limit_fn *parse,
		      uint64_t *ret_value)
{
	struct cordon_error err = { 0 };

	if (node->type != CORDON_NODE_SCALAR)
		FAIL(reader, node, NULL, "%s must be a number", node->key->text);
	else if (parse(node->text, ret_value, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return 0;
}

#define LIMIT(name, parse, member)                                                                                     \
	static int read_##name(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)      \
	{                                                                                                              \
		return read_limit(reader, node, parse, &((struct cordon_run_limits *)data)->member);                   \
	}
LIMIT(timeout, cordon_timeout_parse, timeout_ms)
LIMIT(memory, cordon_memory_parse, memory_bytes)
LIMIT(pids, cordon_pids_parse, pids)
LIMIT(cpus, cordon_cpus_parse, cpu_millis)
LIMIT(tmp_size, cordon_memory_parse, tmp_bytes)

static int read_limits(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	static const struct cordon_settings_key keys[] = {
		{ "timeout", read_timeout }, { "memory", read_memory },	    { "pids", read_pids },
		{ "cpus", read_cpus },	     { "tmp_size", read_tmp_size }, { 0 },
	};

	(void)data;
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

static int read_defaults(struct cordon_settings_reader *reader, const struct cordon_node *node)
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

/* ---- the whole ---- */

static const struct cordon_settings_key top_keys[] = {
	{ "workspaces_path", NULL },
	{ "shared_workspaces", NULL },
	{ "orchestrators", NULL },
	{ "channel_profiles", NULL },
	{ "defaults", NULL },
	{ "monitoring", NULL },
	{ "channels", NULL },
	{ "auth_sync", NULL },
	{ "memory", NULL },
	{ "local_llm", NULL },
	{ 0 },
};

static int read_workspaces_path(struct cordon_settings_reader *reader, const struct cordon_node *node)
{
	struct cordon_settings_file *settings = reader->settings;
	char path[CORDON_PATH_MAX];
	int r = node && !cordon_settings_is_none(node)
			? cordon_settings_read_path(reader, node, "workspaces_path", &settings->workspaces_path_given,
						    &settings->workspaces_path)
			: 0;

	if (r < 0 || settings->workspaces_path)
		return r;
	/* After an error, too: the orchestrators need a place to be judged at. */
	if (cordon_path_join(settings->home, "workspaces", path, sizeof(path)) < 0)
		return -ENAMETOOLONG;
	settings->workspaces_path = cordon_settings_keep(reader, path);
	return settings->workspaces_path ? 0 : -ENOMEM;
}

int cordon_settings_read(struct cordon_settings_file *settings, struct cordon_errors *errors)
{
	struct cordon_settings_reader reader = { .in = { .doc = settings->doc, .errors = errors },
						 .settings = settings };
	const struct cordon_node *root = settings->doc->root, *node;
	void *items = NULL;
	int r = cordon_settings_read_keys(&reader, root, "the settings", top_keys, NULL);

	if (r == 0)
		r = read_workspaces_path(&reader, cordon_node_get(root, "workspaces_path"));
	if (r == 0 && (node = cordon_node_get(root, "shared_workspaces"))) {
		r = cordon_settings_read_each(&reader, node, "shared_workspaces", "the key of a shared area",
					      sizeof(*settings->areas), read_area, &items, &settings->n_areas);
		settings->areas = items;
		items = NULL;
	}
	if (r == 0 && (node = cordon_node_get(root, "orchestrators"))) {
		r = cordon_settings_read_each(&reader, node, "orchestrators", "the id of an orchestrator",
					      sizeof(*settings->orchestrators), read_orchestrator, &items,
					      &settings->n_orchestrators);
		settings->orchestrators = items;
		items = NULL;
	}
	if (r == 0 && (node = cordon_node_get(root, "channel_profiles"))) {
		r = cordon_settings_read_each(&reader, node, "channel_profiles", "the id of a channel profile",
					      sizeof(*settings->profiles), read_profile, &items, &settings->n_profiles);
		settings->profiles = items;
	}
	return r < 0 ? r : read_defaults(&reader, cordon_node_get(root, "defaults"));
}

/* ---- notices ---- */

struct notices {
	const struct cordon_settings_file *settings;
	void (*tell)(void *data, const char *where, const char *text);
	void *data;
};

static void tell(const struct notices *notices, const struct cordon_node *node, const char *text)
{
	notices->tell(notices->data, cordon_document_where(notices->settings->doc, node), text);
}

static void tell_path(const struct notices *notices, const struct cordon_node *node, const char *given, const char *path)
{
	char text[2 * CORDON_PATH_MAX + 64];

	if (!given || cordon_streq(given, path))
		return;
	snprintf(text, sizeof(text), "%s leads to %s", given, path);
	tell(notices, node, text);
}

void cordon_settings_notices(const struct cordon_settings_file *settings,
			     void (*fn)(void *data, const char *where, const char *text), void *data)
{
	static const char *const unused[] = { "monitoring", "channels", "auth_sync", "memory", "local_llm" };
	static const char *const unused_in_profiles[] = { "slack_app_user_id", "require_mention_in_channels",
							  "thread_response_mode", "identity" };
	const struct notices notices = { .settings = settings, .tell = fn, .data = data };
	const struct cordon_node *root = settings->doc->root, *node;
	char text[256];

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(unused); i++) {
		snprintf(text, sizeof(text), "%s is kept, and not used here", unused[i]);
		if ((node = cordon_node_get(root, unused[i])))
			tell(&notices, node->key, text);
	}
	/* One line for each key, however many profiles have it. */
	for (size_t k = 0; k < CORDON_ARRAY_SIZE(unused_in_profiles); k++) {
		node = NULL;
		for (size_t i = 0; !node && i < settings->n_profiles; i++)
			node = cordon_node_get(settings->profiles[i].node, unused_in_profiles[k]);
		snprintf(text, sizeof(text), "%s of channel profiles is kept, and not used here", unused_in_profiles[k]);
		if (node)
			tell(&notices, node->key, text);
	}
	if (settings->workspaces_path_given)
		tell_path(&notices, cordon_node_get(root, "workspaces_path"), settings->workspaces_path_given,
			  settings->workspaces_path);
	for (size_t i = 0; i < settings->n_areas; i++)
		tell_path(&notices, settings->areas[i].node, settings->areas[i].given, settings->areas[i].path);
	for (size_t i = 0; i < settings->n_orchestrators; i++)
		tell_path(&notices, settings->orchestrators[i].node, settings->orchestrators[i].given,
			  settings->orchestrators[i].private_workspace);
}
