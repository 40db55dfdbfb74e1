/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the tools for sessions that wait: for the start of a session, for its end, or for its output. */
#ifndef CORDON_MCP_TOOLS_SESSION_WAIT_H
#define CORDON_MCP_TOOLS_SESSION_WAIT_H

#include "job/session.h"
#include "mcp/internal.h"
#include "mcp/tools.h"

#define CORDON_MCP_LOOK_MS 50 /* between two looks at a session that a call waits for */
#define CORDON_MCP_TRY_MS 10  /* between two tries to begin a start */
#define CORDON_MCP_GRACE_MS 5000

typedef enum cordon_mcp_session_wait_for {
	CORDON_MCP_WAIT_START,
	CORDON_MCP_WAIT_END,
	CORDON_MCP_WAIT_OUTPUT,
	CORDON_MCP_WAIT_STOP
} cordon_mcp_session_wait_for;

struct cordon_mcp_session_wait {
	cordon_mcp_session_wait_for what;
	json_t *args;			    /* CORDON_MCP_WAIT_START: arguments of the call */
	struct cordon_session_start *start; /* CORDON_MCP_WAIT_START */
	int64_t wait_ms; /* CORDON_MCP_WAIT_START: how long to wait for the end of the session afterwards */
	char id[CORDON_ID_SIZE];
	int64_t since;
	size_t max;
	int64_t until; /* monotonic */
	off_t size;    /* size of the log at the last look */
	ino_t inode;
	struct cordon_session_answer answer; /* CORDON_MCP_WAIT_END: the answer to the start */
	/* CORDON_MCP_WAIT_END: answers in another way than session_start does, once the session has ended or the time is over.
	 * Returns false to wait on. */
	bool (*over)(struct cordon_mcp_call *call, const struct cordon_session_record *session, int64_t now);
	bool timed_out; /* for `over` */
	bool last;	/* CORDON_MCP_WAIT_OUTPUT: it is answered also when there is nothing new */
	/* In a child: the answer (cordon_mcp_session_answer()). */
	json_t *(*make)(const struct cordon_mcp_call *call);
};

/*
 * Logs are as long as an agent likes, so they are read in a child (apart.c): `make` returns {"result": ..., "text": ...}, an error
 * (cordon_mcp_error_json()), or {} to wait on. Returns what a step returns.
 */
bool cordon_mcp_session_answer(struct cordon_mcp_call *call, json_t *(*make)(const struct cordon_mcp_call *call));

/* Begins a call that waits for a session. Returns NULL with err when there are too many. */
struct cordon_mcp_call *cordon_mcp_session_wait_begin(struct cordon_mcp_request *request,
						      const struct cordon_mcp_tool *tool,
						      const struct cordon_mcp_session_wait *waiting,
						      struct cordon_error *err);
/* The same for the end, the output or the stop of a session that runs. Returns CORDON_MCP_LATER or -errno. */
int cordon_mcp_session_wait(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool,
			    cordon_mcp_session_wait_for what, const char *id, int64_t since, size_t max,
			    int64_t wait_ms, struct cordon_error *err);
/* The step of such a call (struct cordon_mcp_call); a start gets it once the session runs. */
bool cordon_mcp_session_wait_step(struct cordon_mcp_call *call, int64_t now);

/* Begins the start of a session as session_start does, for any tool with some of its arguments, and then waits for the end
 * for wait_ms; `over` may be NULL. Returns CORDON_MCP_LATER or -errno. */
int cordon_mcp_session_start_call(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
				  int64_t wait_ms,
				  bool (*over)(struct cordon_mcp_call *, const struct cordon_session_record *, int64_t),
				  struct cordon_error *err);
/* Begins a command in a session that runs, as session_exec does. */
int cordon_mcp_session_exec_call(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
				 struct cordon_error *err);
/* Stops a session without waiting for its process, which may hang. */
void cordon_mcp_session_stop_aside(struct cordon_mcp *mcp, const char *id);
/* Adds how a session ended to an answer: status, and exit_code or signal if it has one. */
void cordon_mcp_session_put_result(const struct cordon_session_record *session, json_t *answer);

/* Cuts the events of an output to what fits into one result. */
void cordon_mcp_cut_events(json_t *output);

#endif
