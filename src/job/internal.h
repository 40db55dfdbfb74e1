/* SPDX-License-Identifier: Apache-2.0 */
/* What the process that starts a session and the process of the session share. */
#ifndef CORDON_JOB_INTERNAL_H
#define CORDON_JOB_INTERNAL_H

#include "job/session.h"
#include "store/held.h"

/* attachments.c: puts attachments into the workspace; *ret_names is an array of their paths relative to it. */
int cordon_session_attach_files(const struct cordon_store *store, const struct cordon_project *project,
				const char *workspace, const json_t *attachments, json_t **ret_names,
				struct cordon_error *err);

/* The first input of a session: a file that the session's process reads and removes when it starts. */
#define CORDON_SESSION_INPUT "input.json"

struct cordon_session_input {
	char *message; /* or NULL */
	bool end_input;
	json_t *other;
};

extern const struct cordon_record_kind cordon_session_input_kind;

/*
 * The numbers of the descriptors that the process of a session gets: its `alive` lock, its end of a socket, and the
 * lock of the workspace. On the socket it sends one line. When the program runs, the line is {last_event_index}, the
 * index of the last event before anything that the program wrote. When it cannot run, the line is {kind, message,
 * hint, no_exec}. A byte that the starter sends cancels the start.
 */
enum { CORDON_SESSION_FD_ALIVE = 3, CORDON_SESSION_FD_START, CORDON_SESSION_FD_LOCK, CORDON_SESSION_FD__MAX };

#endif
