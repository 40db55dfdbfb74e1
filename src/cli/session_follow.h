/* SPDX-License-Identifier: Apache-2.0 */
/* A session as a person follows it: its output as it comes, its terminal, and the exit status it leads to. */
#ifndef CORDON_CLI_SESSION_FOLLOW_H
#define CORDON_CLI_SESSION_FOLLOW_H

#include "cli/cli.h"
#include "store/session.h"

/* Prints the output of an event: the agent's on stdout or stderr as it is (made safe on a terminal), with `all` also
 * what else happened, on stderr. */
void cordon_cli_print_event(const json_t *event, bool all);

/* Keeps SIGINT, SIGTERM, SIGHUP and SIGWINCH for the descriptor that follow and attach look at. */
void cordon_cli_hold_signals(void);
/* That descriptor. */
int cordon_cli_open_signals(void);

/*
 * Prints events after `since` until the session ends; a SIGINT or SIGTERM meanwhile stops the session when `ours`, else
 * only the following. *ret_session is the record then.
 */
int cordon_cli_follow(const struct cordon_cli *cli, const struct cordon_store *store, const char *id, int64_t since,
		      bool ours, json_t **ret_session, struct cordon_error *err);

/* Connects this terminal with the session's until it ends or Ctrl-] is typed. 1 when it was left so. */
int cordon_cli_attach(const struct cordon_store *store, const char *id, struct cordon_error *err);

/* What `cordon run` would exit with. */
int cordon_cli_session_exit(const json_t *session);

#endif
