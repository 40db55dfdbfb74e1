/* SPDX-License-Identifier: Apache-2.0 */
/* What session files and the supervisor share. */
#ifndef CORDON_STORE_SESSION_INTERNAL_H
#define CORDON_STORE_SESSION_INTERNAL_H

#include "store/internal.h"
#include "store/session.h"

/* The record of a session whose id was judged, as it stands; -ENOENT with kind not_found. */
int cordon_session_read(const struct cordon_store *store, const char *id, json_t **ret_record, struct cordon_error *err);
/* By way of a stage; only the supervisor, or whoever holds `alive`, may. */
int cordon_session_write(const struct cordon_store *store, const char *id, json_t *record, struct cordon_error *err);
/* The copy in the project's sessions/, for whoever looks there; it has no authority. The project must be held. */
int cordon_session_publish(const struct cordon_store *store, const struct cordon_project *project, const json_t *record,
			   struct cordon_error *err);
/* Writes last_session_at and last_session_id into the workspace's record. */
int cordon_session_stamp_workspace(const struct cordon_store *store, const struct cordon_project *project,
				   const char *workspace, const char *session, struct cordon_error *err);
/* Adds a turn to the record, in memory. */
int cordon_session_add_turn(json_t *record, const char *message);
json_t *cordon_session_public(const json_t *record);

/* session_files.c: attachments into the workspace; *ret_names is an array of the names below it. */
int cordon_session_attach_files(const struct cordon_store *store, const struct cordon_project *project,
				const char *workspace, const json_t *attachments, json_t **ret_names,
				struct cordon_error *err);

/* What a supervisor finds on its way up: {message, end_input}; removed by it. */
#define CORDON_SESSION_INPUT "input.json"

/* session_spawn.c: starts the supervisor of a session whose `alive` lock the caller holds, and waits until the program
 * runs or is refused. *ret_index is the index of the last event before anything that the program wrote. */
int cordon_session_spawn(const char *id, int alive_fd, int64_t *ret_index, struct cordon_error *err);
/* Numbers at which a supervisor finds what it inherits. */
enum { CORDON_SUPERVISOR_ALIVE = 3, CORDON_SUPERVISOR_READY = 4 };

#endif
