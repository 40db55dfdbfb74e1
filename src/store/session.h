/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: a command that runs in a workspace, looked after by a supervisor of its own.
 *
 *     state/sessions/<uuid>/record.json   the record; written by the supervisor while there is one
 *     state/sessions/<uuid>/alive         locked by the supervisor for its life: the kernel says when it is gone
 *     state/sessions/<uuid>/events, .old  what the agent wrote and what happened, bounded (session_log.h)
 *     state/sessions/<uuid>/control       its socket (session_control.h)
 *
 * A session whose record says active and whose lock nobody holds was lost: its supervisor was killed, or the machine
 * went down. Whoever looks first writes that into the record.
 */
#ifndef CORDON_STORE_SESSION_H
#define CORDON_STORE_SESSION_H

#include "store/store.h"

#define CORDON_MESSAGE_MAX ((size_t)1 << 20)
#define CORDON_TURNS_MAX 100	  /* kept in a record, the newest */
#define CORDON_TURN_TEXT_MAX 1000 /* bytes of a message kept there */
#define CORDON_START_TIMEOUT_MS 60000

struct cordon_session_request {
	const char *project;
	struct cordon_workspace_request workspace;
	bool create_workspace;
	bool new_session;    /* never resume */
	json_t *command;     /* array of strings; NULL: the project's, or the resumed session's */
	const char *message; /* goes to its standard input; or NULL */
	bool end_input;	     /* and nothing more will follow */
	json_t *context;     /* object, handed to the agent as CORDON_CONTEXT; or NULL */
	json_t *attachments; /* [{filename, content_type, data (base64)}], put into the workspace; or NULL */
	const char *parent;  /* id of the session that asks; or NULL */
	uint64_t timeout_ms; /* 0: the project's */
	bool terminal;	     /* give it a terminal, for attach */
};

/*
 * Starts a session, or reaches the latest one of its workspace: when that runs it gets the message, when it has ended it
 * is resumed under its id with all layers, unless new_session is set or another command is given. *ret_answer is
 * {session_id, workspace_id, spawned, workspace_created, last_event_index, status}. When this returns, the program runs.
 */
int cordon_session_start(const struct cordon_store *store, const struct cordon_session_request *request,
			 json_t **ret_answer, struct cordon_error *err);

int cordon_session_get(const struct cordon_store *store, const char *id, json_t **ret_session, struct cordon_error *err);

struct cordon_session_query {
	const char *project;   /* NULL: all */
	const char *workspace; /* likewise */
	const char *status;    /* active, completed, failed; likewise */
	size_t limit, offset;
};

/* Oldest first. */
int cordon_session_list(const struct cordon_store *store, const struct cordon_session_query *query,
			json_t **ret_sessions, size_t *ret_total, struct cordon_error *err);

/* To its standard input, with a newline. conflict when it has ended. *ret_index is the last event's index then. */
int cordon_session_send(const struct cordon_store *store, const char *id, const char *message, bool end_input,
			int64_t *ret_index, struct cordon_error *err);

/* {session_id, status, last_index, events, completed, failed, error, dropped_events}: events after index `since` (-1:
 * all that are kept), at most `max` (0: all). */
int cordon_session_output(const struct cordon_store *store, const char *id, int64_t since, size_t max,
			  json_t **ret_output, struct cordon_error *err);

/* SIGTERM to everything inside, SIGKILL after the grace time; returns at once. Fine when it has ended already. */
int cordon_session_stop(const struct cordon_store *store, const char *id, uint64_t grace_ms, struct cordon_error *err);

/* Until it has ended; -ETIMEDOUT after timeout_ms (UINT64_MAX: never). */
int cordon_session_wait(const struct cordon_store *store, const char *id, uint64_t timeout_ms, struct cordon_error *err);

/* Removes the records and logs of sessions that ended more than max_age_ms ago. */
int cordon_session_cleanup(const struct cordon_store *store, uint64_t max_age_ms, size_t *ret_removed,
			   struct cordon_error *err);

/* Opens its directory for watching; kind not_found. */
int cordon_session_open(const struct cordon_store *store, const char *id, int *ret_dir_fd, struct cordon_error *err);

#endif
