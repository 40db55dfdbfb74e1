/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the document of config.yaml into structs: areas, orchestrators with their grants, channel profiles. */
#include <stdio.h>

#include "base/path.h"
#include "config/settings_reader.h"

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
	return r < 0 ? r : cordon_settings_read_defaults(&reader, cordon_node_get(root, "defaults"));
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
