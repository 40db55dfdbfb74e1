/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a session: a command that runs in a workspace, kept by a process of its own (cordon-job).
 *
 *     state/sessions/<uuid>/record.json   the record; only the session's process writes it while there is one
 *     state/sessions/<uuid>/alive         locked by that process; the kernel releases the lock when the process ends
 *     state/sessions/<uuid>/events, .old  what the agent wrote and what happened, bounded (job/log.h)
 *     state/sessions/<uuid>/control       its socket (job/control.h)
 *
 * store/store.h has the records themselves.
 */
#ifndef CORDON_JOB_SESSION_H
#define CORDON_JOB_SESSION_H

#include "approval/allowance.h"
#include "approval/approval.h"
#include "store/store.h"

#define CORDON_MESSAGE_MAX ((size_t)1 << 20)
#define CORDON_TURNS_MAX 100	  /* kept in a record, the newest */
#define CORDON_TURN_TEXT_MAX 1000 /* bytes of a message kept there */
#define CORDON_START_TIMEOUT_MS 60000

struct cordon_session_request {
	const char *project;
	struct cordon_workspace_request workspace;
	bool create_workspace;
	bool new_session;	/* start a new session even when one could be resumed */
	json_t *command;	/* array of strings; NULL: the resumed session's, or else the project's */
	const char *message;	/* sent to its standard input; or NULL */
	bool end_input;		/* close its standard input after the message */
	json_t *context;	/* object that the agent gets as CORDON_CONTEXT; or NULL */
	json_t *attachments;	/* [{filename, content_type, data (base64)}], put into the workspace; or NULL */
	const char *parent;	/* id of the session that starts this one; or NULL */
	json_t *net;		/* as the setting of a project, which it narrows; or NULL */
	uint64_t timeout_ms;	/* 0: the project's */
	bool terminal;		/* give it a terminal, for attach */
	bool fail_on_violation; /* an access that was refused, or warned of, makes the session fail */
};

struct cordon_session_answer {
	char session_id[CORDON_ID_SIZE], workspace_id[CORDON_ID_SIZE];
	bool spawned; /* the session was started; false: it ran already */
	bool workspace_created;
	int64_t last_event_index; /* the last event before the program's output, or before its answer to the message */
	cordon_session_status status;
};

/* Returns {session_id, workspace_id, spawned, workspace_created, last_event_index, status}; NULL when there is no
 * memory. */
json_t *cordon_session_answer_json(const struct cordon_session_answer *answer);

/*
 * Starts a session, or uses the latest session of its workspace. If that session runs, it gets the message; if it has
 * ended, it is resumed under its id with all layers. A new session is started when there is none, when new_session or
 * parent or net is set, or when another command is given. When this returns 0, the program has been started.
 */
int cordon_session_start(const struct cordon_store *store, const struct cordon_session_request *request,
			 struct cordon_session_answer *ret_answer, struct cordon_error *err);

/*
 * The same in steps, for a caller that must not block:
 *
 *     cordon_session_start_begin()    -EAGAIN while another start in the workspace is under way: begin again later
 *     poll cordon_session_start_fd()  until it is readable, or _due() is reached
 *     cordon_session_start_finish()   -EAGAIN: poll on; else the start is over, with its answer or its error
 *     cordon_session_start_free()     in any case; closes the descriptor
 *
 * Between begin and finish the caller holds no lock. A start that is freed before it is over continues without the
 * caller.
 */
struct cordon_session_start;

/* Returns NULL when there is no memory. */
struct cordon_session_start *cordon_session_start_new(void);
int cordon_session_start_begin(const struct cordon_store *store, const struct cordon_session_request *request,
			       struct cordon_session_start *start, struct cordon_error *err);
/* Fills in the error of a caller that got -EAGAIN for CORDON_START_TIMEOUT_MS, and returns its code. */
int cordon_session_start_busy(struct cordon_error *err);
/* A start that one process has begun and another one goes on with: what it is besides its descriptor (new
 * reference), and back. Takes the descriptor, which may be -1. */
json_t *cordon_session_start_json(const struct cordon_session_start *start);
void cordon_session_start_take(struct cordon_session_start *start, const json_t *value, int fd);
/* Returns -1 when there is nothing to wait for. */
int cordon_session_start_fd(const struct cordon_session_start *start);
/* The time at which the start has taken too long, in monotonic milliseconds; 0 when there is nothing to wait for. */
int64_t cordon_session_start_due(const struct cordon_session_start *start);
int cordon_session_start_finish(const struct cordon_store *store, struct cordon_session_start *start,
				struct cordon_session_answer *ret_answer, struct cordon_error *err);
/* Cancels a start that is not over: the session ends as soon as it can, before its program runs or right after. Has no
 * effect on a session that ran already and only got the message. */
void cordon_session_start_cancel(struct cordon_session_start *start);
struct cordon_session_start *cordon_session_start_free(struct cordon_session_start *start);

/* Sends a message and a newline to its standard input. kind conflict when the session has ended. *ret_index is the
 * index of the last event after the message was accepted. */
int cordon_session_send(const struct cordon_store *store, const char *id, const char *message, bool end_input,
			int64_t *ret_index, struct cordon_error *err);

/* Returns {session_id, status, last_index, events, completed, failed, error, dropped_events} with the events after
 * index `since` (-1: all that are kept), at most `max` (0: all); if there are more than that, `more` is true, and
 * last_index is that of the last one which is there. */
int cordon_session_output(const struct cordon_store *store, const char *id, int64_t since, size_t max,
			  json_t **ret_output, struct cordon_error *err);

/* Sends SIGTERM to everything inside, and SIGKILL after the grace time. Returns at once. Returns 0 when the session has
 * ended already. */
int cordon_session_stop(const struct cordon_store *store, const char *id, uint64_t grace_ms, struct cordon_error *err);

/* Changes the list of hosts of a session that runs: `allow` and `revoke` are arrays of rules, or NULL. Connections
 * to hosts that are revoked end. *ret_net is the list afterwards, as a setting. Kind conflict when the session has
 * ended or has no list. */
int cordon_session_net(const struct cordon_store *store, const char *id, json_t *allow, json_t *revoke,
		       json_t **ret_net, struct cordon_error *err);

/* What everybody is told about an allowance that is not for now. */
#define CORDON_SESSION_ALLOWED_LATER                                                                                   \
	"it counts from the next start of the session; what runs now can't be widened, it has to end first"

/* What became of an allowance. */
struct cordon_session_allowed {
	bool now;			/* the session has it now; else it counts from its next start */
	bool already;			/* nothing had to be changed */
	char text[CORDON_PATH_MAX + 8]; /* as settings write it: "example.org:443", "/data:ro" */
};

/*
 * Allows a session a host or a path, for its present run, also when it is resumed, or for all sessions of its project.
 * A host is allowed at once if the session runs and has a list of hosts. A running sandbox can't be widened by paths,
 * so a path counts from the session's next start, and so does everything for a session that does not run; what is for
 * one run is then for the next one. `run` (may be NULL) is the run that an allowance `once` was approved for: -ESTALE
 * with kind conflict when it is over. What is protected in the workspace and cordon's own records can't be had this
 * way (kind policy_denied).
 */
int cordon_session_allow(const struct cordon_store *store, const char *id, const struct cordon_allowance *allowance,
			 cordon_approval_span span, const char *run, struct cordon_session_allowed *ret_allowed,
			 struct cordon_error *err);
/* The same without a change: whether it could be allowed, and with `already` whether the session has it, or has it
 * from its next start on. With only_words, nothing depends on what the host has, so that an agent can't find out what
 * exists there. ret_session (may be NULL) is its record. */
int cordon_session_may_allow(const struct cordon_store *store, const char *id, const struct cordon_allowance *allowance,
			     bool only_words, struct cordon_session_record *ret_session,
			     struct cordon_session_allowed *ret_allowed, struct cordon_error *err);

/*
 * Answers an approval as cordon_approval_answer() does, and puts what it grants a session into effect. The page and the
 * terminal call this one. *ret_allowed is about the grant, if the record has one and it was approved. On failure with
 * -EREMOTEIO the answer was given, but the grant could not be put into effect.
 */
int cordon_session_decide(const struct cordon_store *store, const char *id, const struct cordon_approval_answer *answer,
			  struct cordon_approval_record *ret_record, struct cordon_session_allowed *ret_allowed,
			  struct cordon_error *err);

/* Waits until the session has ended; -ETIMEDOUT after timeout_ms (UINT64_MAX: no time limit). */
int cordon_session_wait(const struct cordon_store *store, const char *id, uint64_t timeout_ms, struct cordon_error *err);

/* A further command that runs in a session, with all its layers. */
struct cordon_session_exec {
	int control;   /* readable when the command has ended; the session kills the command when it is closed before */
	int input;     /* our end of its standard input; this and the next do not block */
	int output[2]; /* our ends of its standard output and error */
};

/* clang-format off */
#define CORDON_SESSION_EXEC_NONE { .control = -1, .input = -1, .output = { -1, -1 } }
/* clang-format on */

/* Begins it. The caller closes what it has with cordon_session_exec_done(), and may close a single descriptor
 * before. */
int cordon_session_exec_begin(const struct cordon_store *store, const char *id, json_t *command,
			      struct cordon_session_exec *ret_exec, struct cordon_error *err);
/* Waits for its end. *ret_answer has exit_code or signal, and `why` with exit_code when it could not be run. */
int cordon_session_exec_answer(const struct cordon_session_exec *exec, json_t **ret_answer, struct cordon_error *err);
void cordon_session_exec_done(struct cordon_session_exec *exec);

#endif
