/* SPDX-License-Identifier: Apache-2.0 */
/* cordon:// URIs: which resources exist, and which one a URI names. */
#ifndef CORDON_MCP_URI_H
#define CORDON_MCP_URI_H

#include "store/store.h"

typedef enum cordon_mcp_place {
	CORDON_MCP_PROJECTS,
	CORDON_MCP_PROJECT,
	CORDON_MCP_WORKSPACES,
	CORDON_MCP_WORKSPACE,
	CORDON_MCP_SESSIONS,
	CORDON_MCP_SESSION,
	CORDON_MCP_SESSION_LOG,
	CORDON_MCP_AUDIT,
	CORDON_MCP_PLACE__MAX
} cordon_mcp_place;

struct cordon_mcp_uri {
	cordon_mcp_place place;
	char id[CORDON_ID_SIZE]; /* of the project or session, or the day */
	char workspace[CORDON_ID_SIZE];
};

#define CORDON_MCP_URI_SIZE 256

struct cordon_mcp_template {
	const char *path; /* after cordon://; {project_id}, {workspace_id}, {session_id} and {day} stand for values */
	const char *name;
	const char *description;
	const char *mime; /* NULL: application/json */
};

extern const struct cordon_mcp_template cordon_mcp_templates[CORDON_MCP_PLACE__MAX];

/* Returns -EINVAL for a URI that is not ours. Each resource has exactly one spelling. */
int cordon_mcp_uri_parse(const char *text, struct cordon_mcp_uri *ret_uri);
int cordon_mcp_uri_text(const struct cordon_mcp_uri *uri, char *ret_text, size_t size);
bool cordon_mcp_uri_same(const struct cordon_mcp_uri *a, const struct cordon_mcp_uri *b);
/* Finds the template with this text, for completion; -ENOENT. */
int cordon_mcp_template_find(const char *text, cordon_mcp_place *ret_place);

#endif
