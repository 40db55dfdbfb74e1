/* SPDX-License-Identifier: Apache-2.0 */
/* One declaration per tool, and what lists have in common. */
#ifndef CORDON_MCP_TOOLS_H
#define CORDON_MCP_TOOLS_H

#include "mcp/internal.h"
#include "mcp/schemas.h"

extern const struct cordon_mcp_tool cordon_mcp_project_create, cordon_mcp_project_list, cordon_mcp_project_get,
	cordon_mcp_project_update, cordon_mcp_project_delete, cordon_mcp_workspace_create, cordon_mcp_workspace_list,
	cordon_mcp_workspace_get, cordon_mcp_workspace_delete, cordon_mcp_session_start, cordon_mcp_session_send,
	cordon_mcp_session_output, cordon_mcp_session_get, cordon_mcp_session_list, cordon_mcp_session_stop,
	cordon_mcp_session_exec, cordon_mcp_policy_check, cordon_mcp_agent_list, cordon_mcp_agent_execute,
	cordon_mcp_agent_status, cordon_mcp_agent_cancel, cordon_mcp_orchestrator_list, cordon_mcp_orchestrator_add,
	cordon_mcp_orchestrator_remove, cordon_mcp_shared_add, cordon_mcp_shared_remove, cordon_mcp_shared_grant,
	cordon_mcp_shared_revoke, cordon_mcp_workflow_list, cordon_mcp_workflow_run, cordon_mcp_workflow_status,
	cordon_mcp_workflow_logs, cordon_mcp_workflow_cancel, cordon_mcp_workflow_resume, cordon_mcp_workflow_answer,
	cordon_mcp_changes_list, cordon_mcp_changes_diff, cordon_mcp_changes_apply, cordon_mcp_changes_discard,
	cordon_mcp_loop_start, cordon_mcp_loop_status, cordon_mcp_loop_stop, cordon_mcp_grant_request, cordon_mcp_run;

void cordon_mcp_list_query(const json_t *args, struct cordon_list_query *query);
/* Returns {"<key>": records, "total": n}; takes records. */
json_t *cordon_mcp_list_result(const char *key, json_t *records, size_t total);

#endif
