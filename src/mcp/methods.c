/* SPDX-License-Identifier: Apache-2.0 */
/* The table of methods, discovery and the legacy handshake. */
#include "mcp/methods.h"

#define DISCOVER_TTL_MS 3600000

static const char instructions[] =
	"cordon runs agents in workspaces whose boundaries the Linux kernel holds.\n"
	"A project has settings and workspaces; a session runs a command in one workspace. Ids are handles: keep them.\n"
	"With workspace_isolation an agent sees only its workspace, at /workspace, and protected_paths are read-only there.\n"
	"An error says what was refused, by which rule, and what to do; asking again without a change gives the same answer.\n"
	"Deleting, and settings that widen access, need a person's approval. policy_check answers what an agent may touch.";

/* The versions that a client may choose from: the modern one first, then the legacy ones. */
static const char *const versions[] = { CORDON_MCP_MODERN, CORDON_MCP_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05" };

json_t *cordon_mcp_server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "cordon", "title", "cordon", "version", cordon_version());
}

json_t *cordon_mcp_versions(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(versions); i++)
		json_array_append_new(list, json_string(versions[i]));
	return list;
}

bool cordon_mcp_speaks(const char *version)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(versions); i++)
		if (cordon_streq(version, versions[i]))
			return true;
	return false;
}

/* Names exactly what the table below has handlers for. Tools and prompts never change while the server runs. */
static json_t *capabilities(void)
{
	return json_pack("{s:{}, s:{s:b, s:b}, s:{}, s:{}}", "tools", "resources", "subscribe", 1, "listChanged", 1,
			 "prompts", "completions");
}

int cordon_mcp_cache(const struct cordon_mcp_request *request, json_t *result, int ttl_ms, const char *scope)
{
	if (!request->modern)
		return 0;
	return json_object_set_new(result, "ttlMs", json_integer(ttl_ms)) < 0 ||
			       json_object_set_new(result, "cacheScope", json_string(scope)) < 0
		       ? -ENOMEM
		       : 0;
}

json_t *cordon_mcp_discover(struct cordon_mcp *mcp)
{
	(void)mcp;
	return json_pack("{s:s, s:o, s:o, s:s, s:i, s:s, s:{s:o}}", "resultType", "complete", "supportedVersions",
			 cordon_mcp_versions(), "capabilities", capabilities(), "instructions", instructions, "ttlMs",
			 DISCOVER_TTL_MS, "cacheScope", "public", "_meta", CORDON_META_SERVER, cordon_mcp_server_info());
}

static int discover(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	(void)fault;
	*ret_result = cordon_mcp_discover(request->mcp);
	return 0;
}

static int initialize(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	struct cordon_mcp_channel *channel = request->channel;
	const char *wanted = cordon_json_string(request->params, "protocolVersion");
	json_t *theirs = json_object_get(request->params, "capabilities");
	json_t *client = json_object_get(request->params, "clientInfo");
	const char *agreed = CORDON_MCP_LEGACY;

	if (!wanted || !json_is_object(theirs) || !json_is_object(client))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS,
				       "initialize needs protocolVersion, capabilities and clientInfo");
	for (size_t i = 1; i < CORDON_ARRAY_SIZE(versions); i++)
		if (cordon_streq(wanted, versions[i]))
			agreed = versions[i];
	cordon_copy(channel->version, sizeof(channel->version), agreed, strlen(agreed));
	json_decref(channel->capabilities);
	channel->capabilities = json_incref(theirs);
	json_decref(channel->client);
	channel->client = json_incref(client);
	channel->initialized = true;
	*ret_result = json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", agreed, "capabilities", capabilities(),
				"serverInfo", cordon_mcp_server_info(), "instructions", instructions);
	return 0;
}

static int ping(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	(void)request, (void)fault;
	*ret_result = json_object();
	return 0;
}

const struct cordon_mcp_offer cordon_mcp_own_offer = {
	.tools = cordon_mcp_tools,
	.resources_list = cordon_mcp_resources_list,
	.templates_list = cordon_mcp_templates_list,
	.resources_read = cordon_mcp_resources_read,
	.prompts_list = cordon_mcp_prompts_list,
	.prompts_get = cordon_mcp_prompts_get,
	.complete = cordon_mcp_complete,
	.uri_parse = cordon_mcp_uri_parse,
	.uri_text = cordon_mcp_uri_text,
};

/* Methods that the offer answers. */
#define OFFERED(name)                                                                                                  \
	static int name(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)       \
	{                                                                                                              \
		return request->mcp->offer->name(request, ret_result, fault);                                          \
	}

OFFERED(resources_list)
OFFERED(templates_list)
OFFERED(resources_read)
OFFERED(prompts_list)
OFFERED(prompts_get)
OFFERED(complete)

static const struct cordon_mcp_method methods[] = {
	{ "server/discover", false, true, discover },
	{ "initialize", true, false, initialize },
	{ "ping", true, false, ping },
	{ "tools/list", true, true, cordon_mcp_tools_list },
	{ "tools/call", true, true, cordon_mcp_tools_call },
	{ "resources/list", true, true, resources_list },
	{ "resources/templates/list", true, true, templates_list },
	{ "resources/read", true, true, resources_read },
	{ "resources/subscribe", true, false, cordon_mcp_subscribe },
	{ "resources/unsubscribe", true, false, cordon_mcp_unsubscribe },
	{ "subscriptions/listen", false, true, cordon_mcp_listen },
	{ "prompts/list", true, true, prompts_list },
	{ "prompts/get", true, true, prompts_get },
	{ "completion/complete", true, true, complete },
};

const struct cordon_mcp_method *cordon_mcp_method_find(const char *name, bool modern)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(methods); i++)
		if (cordon_streq(methods[i].name, name) && (modern ? methods[i].modern : methods[i].legacy))
			return &methods[i];
	return NULL;
}
