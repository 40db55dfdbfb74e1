/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of each era, and the server's description of itself. */
#ifndef CORDON_MCP_METHODS_H
#define CORDON_MCP_METHODS_H

#include "mcp/internal.h"

struct cordon_mcp_method {
	const char *name;
	bool legacy, modern;
	cordon_mcp_serve *serve;
};

const struct cordon_mcp_method *cordon_mcp_method_find(const char *name, bool modern);

/* New references. */
json_t *cordon_mcp_server_info(void);
json_t *cordon_mcp_versions(void);
/* Adds the caching hints that the modern era demands; `scope` is "public" or "private". */
int cordon_mcp_cache(const struct cordon_mcp_request *request, json_t *result, int ttl_ms, const char *scope);

#endif
