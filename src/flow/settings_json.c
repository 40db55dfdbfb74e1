/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as JSON. */
#include "flow/settings_json.h"
#include "base/json.h"
#include "base/path.h"
#include "config/edit_yaml.h"

static void set_text(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, json_string(text));
}

static json_t *grants_json(const struct cordon_orchestrator *orchestrator)
{
	json_t *list = json_array();

	for (size_t i = 0; i < orchestrator->n_grants; i++) {
		const struct cordon_area_grant *grant = &orchestrator->grants[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}", "name", grant->area->key, "path",
						      grant->area->path, "access",
						      grant->read_only ? "read-only" : "read-write", "cross_domain",
						      grant->cross_domain));
	}
	return list;
}

json_t *cordon_orchestrator_json(const struct cordon_orchestrator *orchestrator)
{
	char config[CORDON_PATH_MAX] = "";

	(void)cordon_path_join(orchestrator->private_workspace, CORDON_ORCHESTRATOR_FILE, config, sizeof(config));
	return json_pack("{s:s, s:s, s:s, s:o}", "id", orchestrator->id, "private_workspace",
			 orchestrator->private_workspace, "config", config, "shared_access", grants_json(orchestrator));
}

json_t *cordon_area_json(const struct cordon_settings_file *settings, const struct cordon_shared_area *area)
{
	json_t *object = json_pack("{s:s, s:s, s:s}", "key", area->key, "path", area->path, "description",
				   area->description);
	json_t *holders = json_array();

	set_text(object, "domain", area->domain);
	for (size_t i = 0; i < settings->n_orchestrators; i++)
		if (cordon_orchestrator_grant(&settings->orchestrators[i], area->key))
			json_array_append_new(holders, json_string(settings->orchestrators[i].id));
	json_object_set_new(object, "granted_to", holders);
	return object;
}

json_t *cordon_channel_profile_json(const struct cordon_channel_profile *profile)
{
	json_t *object = json_pack("{s:s, s:s, s:s}", "id", profile->id, "channel", profile->channel, "orchestrator_id",
				   profile->orchestrator->id);

	set_text(object, "domain", profile->domain);
	set_text(object, "default_workflow", profile->default_workflow);
	for (const struct cordon_node *node = profile->node->first; node; node = node->next)
		if (!json_object_get(object, node->key->text) && !cordon_streq(node->key->text, "workflow"))
			json_object_set_new(object, node->key->text, cordon_node_json(node));
	return object;
}

json_t *cordon_flow_agent_json(const struct cordon_orchestrator_file *file, const struct cordon_flow_agent *agent)
{
	return json_pack("{s:s, s:s, s:s, s:s*, s:b, s:b}", "id", agent->id, "orchestrator_id", file->id, "provider",
			 agent->provider, "model", agent->model, "can_orchestrate_workflows",
			 agent->can_orchestrate_workflows, "selector", cordon_streq(agent->id, file->selector_agent));
}

static json_t *provider_json(const struct cordon_provider *provider)
{
	json_t *object = json_object(), *command = json_array(), *env = json_object(), *pass = json_array();

	for (size_t i = 0; provider->command[i]; i++)
		json_array_append_new(command, json_string(provider->command[i]));
	/* Values may be secrets. */
	for (size_t i = 0; i < provider->n_env; i++)
		json_object_set_new(env, provider->env[i].name, json_string("..."));
	for (size_t i = 0; i < provider->env_pass.n; i++)
		json_array_append_new(pass, json_string(provider->env_pass.items[i].text));
	json_object_set_new(object, "command", command);
	json_object_set_new(object, "env", env);
	json_object_set_new(object, "env_pass", pass);
	set_text(object, "profile", provider->profile);
	return object;
}

/* Moves the id of a record to its key in a mapping. */
static void add_by_id(json_t *mapping, json_t *record, const char *id)
{
	const char *key = cordon_json_string(record, id);

	if (key)
		json_object_set(mapping, key, record);
	json_object_del(record, id);
	json_decref(record);
}

json_t *cordon_settings_json(const struct cordon_settings_file *settings)
{
	json_t *areas = json_object(), *orchestrators = json_object(), *profiles = json_object();
	json_t *providers = json_object();

	for (size_t i = 0; i < settings->n_areas; i++)
		add_by_id(areas, cordon_area_json(settings, &settings->areas[i]), "key");
	for (size_t i = 0; i < settings->n_orchestrators; i++)
		add_by_id(orchestrators, cordon_orchestrator_json(&settings->orchestrators[i]), "id");
	for (size_t i = 0; i < settings->n_profiles; i++)
		add_by_id(profiles, cordon_channel_profile_json(&settings->profiles[i]), "id");
	for (size_t i = 0; i < settings->n_providers; i++)
		json_object_set_new(providers, settings->providers[i].name, provider_json(&settings->providers[i]));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:{s:o}}", "file", settings->path, "workspaces_path",
			 settings->workspaces_path, "shared_workspaces", areas, "orchestrators", orchestrators,
			 "channel_profiles", profiles, "defaults", "providers", providers);
}

/* ---- access ---- */

static json_t *crossing_json(const struct cordon_settings_file *settings,
			     const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area)
{
	json_t *domains = json_array();

	for (size_t i = 0; i < settings->n_profiles; i++) {
		const struct cordon_channel_profile *profile = &settings->profiles[i];

		if (profile->orchestrator == orchestrator && profile->domain &&
		    !cordon_streq(profile->domain, area->domain))
			json_array_append_new(domains, json_string(profile->domain));
	}
	return json_pack("{s:s, s:s, s:s, s:o}", "orchestrator", orchestrator->id, "area", area->key, "area_domain",
			 area->domain, "profile_domains", domains);
}

json_t *cordon_access_json(const struct cordon_settings_file *settings)
{
	json_t *access = json_object(), *crossings = json_array();

	for (size_t i = 0; i < settings->n_orchestrators; i++) {
		const struct cordon_orchestrator *orchestrator = &settings->orchestrators[i];
		json_t *row = json_object();

		for (size_t k = 0; k < settings->n_areas; k++) {
			const struct cordon_shared_area *area = &settings->areas[k];
			const struct cordon_area_grant *grant = cordon_orchestrator_grant(orchestrator, area->key);

			json_object_set_new(row, area->key,
					    json_string(!grant		   ? "none"
							: grant->read_only ? "ro"
									   : "rw"));
			if (grant && cordon_settings_crosses(settings, orchestrator, area))
				json_array_append_new(crossings, crossing_json(settings, orchestrator, area));
		}
		json_object_set_new(access, orchestrator->id, row);
	}
	return json_pack("{s:o, s:o}", "access", access, "crossings", crossings);
}
