/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a session for a person: its output as it comes, its terminal, and the exit status that follows from its end.
 */
#ifndef CORDON_CLI_SESSION_FOLLOW_H
#define CORDON_CLI_SESSION_FOLLOW_H

#include "cli/cli.h"
#include "job/session.h"

/* Prints the agent's output on stdout and stderr, and other events on stderr. Where the agent's lines share a stream
 * with ours they are marked; a stdout that leads elsewhere gets the agent's bytes as they are. */
void cordon_cli_print_output(const json_t *output);

/* Blocks SIGINT, SIGTERM, SIGHUP and SIGWINCH, so that the descriptor below receives them. */
void cordon_cli_hold_signals(void);
/* Opens that descriptor. */
int cordon_cli_open_signals(void);

/* Prints events after `since` until the session ends. A SIGINT or SIGTERM meanwhile stops the session if `ours`, else
 * it only ends the following. *ret_session is then the record. */
int cordon_cli_follow(const struct cordon_cli *cli, const struct cordon_store *store, const char *id, int64_t since,
		      bool ours, struct cordon_session_record *ret_session, struct cordon_error *err);

/* Connects this terminal with the session's until the session ends or the user types Ctrl-]. Returns 1 in the latter
 * case. */
int cordon_cli_attach(const struct cordon_store *store, const char *id, struct cordon_error *err);

/* Returns the status with which `cordon run` would exit. */
int cordon_cli_session_exit(const struct cordon_session_record *session);

#endif
