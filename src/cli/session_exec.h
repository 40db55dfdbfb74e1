/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a further command in a session that is active. */
#ifndef CORDON_CLI_SESSION_EXEC_H
#define CORDON_CLI_SESSION_EXEC_H

#include "job/session.h"

/* Runs the command inside, with all layers and with our standard streams connected through pipes, and waits for its
 * end. *ret_answer has exit_code or signal, and `why` when the command could not be run. Returns 1 when we got a signal
 * meanwhile (*ret_signal); the session then kills the command. */
int cordon_cli_session_exec(const struct cordon_store *store, const char *id, json_t *command, json_t **ret_answer,
			    int *ret_signal, struct cordon_error *err);

#endif
