/* SPDX-License-Identifier: Apache-2.0 */
/* One declaration per command; each is defined in cmd_<verb>.c. */
#ifndef CORDON_CLI_COMMANDS_H
#define CORDON_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cordon_command cordon_cmd_agent_init;
extern const struct cordon_command cordon_cmd_agent_list;
extern const struct cordon_command cordon_cmd_agent_show;
extern const struct cordon_command cordon_cmd_agent_validate;
extern const struct cordon_command cordon_cmd_agent_trust;
extern const struct cordon_command cordon_cmd_agent_add;
extern const struct cordon_command cordon_cmd_agent_remove;
extern const struct cordon_command cordon_cmd_audit;
extern const struct cordon_command cordon_cmd_audit_verify;
extern const struct cordon_command cordon_cmd_changes_list;
extern const struct cordon_command cordon_cmd_changes_show;
extern const struct cordon_command cordon_cmd_changes_diff;
extern const struct cordon_command cordon_cmd_changes_apply;
extern const struct cordon_command cordon_cmd_changes_undo;
extern const struct cordon_command cordon_cmd_changes_discard;
extern const struct cordon_command cordon_cmd_check;
extern const struct cordon_command cordon_cmd_check_file;
extern const struct cordon_command cordon_cmd_completion;
extern const struct cordon_command cordon_cmd_doctor;
extern const struct cordon_command cordon_cmd_execute;
extern const struct cordon_command cordon_cmd_gc;
extern const struct cordon_command cordon_cmd_infer_scope;
extern const struct cordon_command cordon_cmd_learn;
extern const struct cordon_command cordon_cmd_logs;
extern const struct cordon_command cordon_cmd_mount;
extern const struct cordon_command cordon_cmd_profile_list;
extern const struct cordon_command cordon_cmd_profile_show;
extern const struct cordon_command cordon_cmd_prompt_section;
extern const struct cordon_command cordon_cmd_role_list;
extern const struct cordon_command cordon_cmd_run;
extern const struct cordon_command cordon_cmd_session_start;
extern const struct cordon_command cordon_cmd_session_list;
extern const struct cordon_command cordon_cmd_session_get;
extern const struct cordon_command cordon_cmd_session_send;
extern const struct cordon_command cordon_cmd_session_output;
extern const struct cordon_command cordon_cmd_session_attach;
extern const struct cordon_command cordon_cmd_session_exec;
extern const struct cordon_command cordon_cmd_session_wait;
extern const struct cordon_command cordon_cmd_session_stop;
extern const struct cordon_command cordon_cmd_session_cleanup;
extern const struct cordon_command cordon_cmd_status;
extern const struct cordon_command cordon_cmd_tree;
extern const struct cordon_command cordon_cmd_unmount;
extern const struct cordon_command cordon_cmd_update_prd;
extern const struct cordon_command cordon_cmd_validate;
extern const struct cordon_command cordon_cmd_version;
extern const struct cordon_command cordon_cmd_why;
extern const struct cordon_command cordon_cmd_mcp;
extern const struct cordon_command cordon_cmd_project_create;
extern const struct cordon_command cordon_cmd_project_import;
extern const struct cordon_command cordon_cmd_project_list;
extern const struct cordon_command cordon_cmd_project_get;
extern const struct cordon_command cordon_cmd_project_update;
extern const struct cordon_command cordon_cmd_project_delete;
extern const struct cordon_command cordon_cmd_workspace_create;
extern const struct cordon_command cordon_cmd_workspace_list;
extern const struct cordon_command cordon_cmd_workspace_get;
extern const struct cordon_command cordon_cmd_workspace_sync;
extern const struct cordon_command cordon_cmd_workspace_delete;
extern const struct cordon_command cordon_cmd_orchestrator_list;
extern const struct cordon_command cordon_cmd_orchestrator_add;
extern const struct cordon_command cordon_cmd_orchestrator_show;
extern const struct cordon_command cordon_cmd_orchestrator_remove;
extern const struct cordon_command cordon_cmd_orchestrator_set_private_workspace;
extern const struct cordon_command cordon_cmd_orchestrator_unset_private_workspace;
extern const struct cordon_command cordon_cmd_orchestrator_grant_shared_access;
extern const struct cordon_command cordon_cmd_orchestrator_revoke_shared_access;
extern const struct cordon_command cordon_cmd_orchestrator_set_selector_agent;
extern const struct cordon_command cordon_cmd_orchestrator_set_default_workflow;
extern const struct cordon_command cordon_cmd_orchestrator_set_selection_max_retries;
extern const struct cordon_command cordon_cmd_orchestrator_run;
extern const struct cordon_command cordon_cmd_orchestrator_agent_list;
extern const struct cordon_command cordon_cmd_orchestrator_agent_add;
extern const struct cordon_command cordon_cmd_orchestrator_agent_show;
extern const struct cordon_command cordon_cmd_orchestrator_agent_remove;
extern const struct cordon_command cordon_cmd_shared_list;
extern const struct cordon_command cordon_cmd_shared_add;
extern const struct cordon_command cordon_cmd_shared_show;
extern const struct cordon_command cordon_cmd_shared_remove;
extern const struct cordon_command cordon_cmd_channel_profile_list;
extern const struct cordon_command cordon_cmd_channel_profile_add;
extern const struct cordon_command cordon_cmd_channel_profile_show;
extern const struct cordon_command cordon_cmd_channel_profile_remove;
extern const struct cordon_command cordon_cmd_channel_profile_set_orchestrator;
extern const struct cordon_command cordon_cmd_access;
extern const struct cordon_command cordon_cmd_config_validate;
extern const struct cordon_command cordon_cmd_config_show;
extern const struct cordon_command cordon_cmd_config_path;
extern const struct cordon_command cordon_cmd_config_import;

#endif
