/* SPDX-License-Identifier: Apache-2.0 */
/* A further command in a session that runs, as whoever asks for it sees it. */
#ifndef CORDON_CLI_SESSION_EXEC_H
#define CORDON_CLI_SESSION_EXEC_H

#include "store/session.h"

/*
 * Runs the command inside, all layers on, with our standard streams passed on through pipes, and waits for its end. *ret_answer
 * has exit_code or signal, and `why` when it could not be run. 1 with the signal that we got meanwhile in *ret_signal:
 * then the command is killed.
 */
int cordon_cli_session_exec(const struct cordon_store *store, const char *id, json_t *command, json_t **ret_answer,
			    int *ret_signal, struct cordon_error *err);

#endif
