/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as JSON, for the command line and the MCP server. Each function returns a new reference, or NULL without
 * memory. */
#ifndef CORDON_FLOW_SETTINGS_JSON_H
#define CORDON_FLOW_SETTINGS_JSON_H

#include <jansson.h>

#include "config/settings_file.h"
#include "flow/orchestrator_file.h"

/* {"id","private_workspace","config","shared_access":[{"name","path","access","cross_domain"}]} */
json_t *cordon_orchestrator_json(const struct cordon_orchestrator *orchestrator);
/* {"key","path","description","domain","granted_to":[id]} */
json_t *cordon_area_json(const struct cordon_settings_file *settings, const struct cordon_shared_area *area);
/* {"id","channel","orchestrator_id","domain","default_workflow"}, and the keys that are only kept */
json_t *cordon_channel_profile_json(const struct cordon_channel_profile *profile);
/* {"id","orchestrator_id","provider","model","can_orchestrate_workflows","selector"} */
json_t *cordon_flow_agent_json(const struct cordon_orchestrator_file *file, const struct cordon_flow_agent *agent);
/* All of it, with the defaults filled in. */
json_t *cordon_settings_json(const struct cordon_settings_file *settings);

/*
 * Who may use what: {"access": {orchestrator: {area: "none"|"ro"|"rw"}},
 *                    "crossings": [{"orchestrator","area","area_domain","profile_domains":[]}]}
 */
json_t *cordon_access_json(const struct cordon_settings_file *settings);

#endif
