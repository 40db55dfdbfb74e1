/* SPDX-License-Identifier: Apache-2.0 */
/* One declaration per command; each is defined in cmd_<verb>.c. */
#ifndef CORDON_CLI_COMMANDS_H
#define CORDON_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cordon_command cordon_cmd_audit;
extern const struct cordon_command cordon_cmd_audit_verify;

#endif
