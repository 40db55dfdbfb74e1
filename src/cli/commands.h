/* SPDX-License-Identifier: Apache-2.0 */
/* One declaration per command; each is defined in cmd_<verb>.c. */
#ifndef CORDON_CLI_COMMANDS_H
#define CORDON_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cordon_command cordon_cmd_audit;
extern const struct cordon_command cordon_cmd_audit_verify;
extern const struct cordon_command cordon_cmd_project_create;
extern const struct cordon_command cordon_cmd_project_list;
extern const struct cordon_command cordon_cmd_project_get;
extern const struct cordon_command cordon_cmd_project_update;
extern const struct cordon_command cordon_cmd_project_delete;
extern const struct cordon_command cordon_cmd_workspace_create;
extern const struct cordon_command cordon_cmd_workspace_list;
extern const struct cordon_command cordon_cmd_workspace_get;
extern const struct cordon_command cordon_cmd_workspace_sync;
extern const struct cordon_command cordon_cmd_workspace_delete;

#endif
