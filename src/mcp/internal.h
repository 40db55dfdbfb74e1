/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the MCP server share: requests, faults, tools, and calls that are not answered at once. */
#ifndef CORDON_MCP_INTERNAL_H
#define CORDON_MCP_INTERNAL_H

#include "approval/notice.h"
#include "audit/audit.h"
#include "base/buf.h"
#include "base/json.h"
#include "mcp/mcp.h"
#include "mcp/uri.h"

/* Codes of JSON-RPC and of the specification. */
enum {
	CORDON_MCP_PARSE_ERROR = -32700,
	CORDON_MCP_INVALID_REQUEST = -32600,
	CORDON_MCP_METHOD_NOT_FOUND = -32601,
	CORDON_MCP_INVALID_PARAMS = -32602,
	CORDON_MCP_INTERNAL_ERROR = -32603,
	CORDON_MCP_OLD_NOT_FOUND = -32002, /* legacy only: resource not found */
	CORDON_MCP_HEADER_MISMATCH = -32020,
	CORDON_MCP_MISSING_CAPABILITY = -32021,
	CORDON_MCP_UNSUPPORTED_VERSION = -32022,
};

#define CORDON_META_VERSION "io.modelcontextprotocol/protocolVersion"
#define CORDON_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define CORDON_META_CLIENT "io.modelcontextprotocol/clientInfo"
#define CORDON_META_SERVER "io.modelcontextprotocol/serverInfo"
#define CORDON_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"
#define CORDON_META_LOG_LEVEL "io.modelcontextprotocol/logLevel"

/* A protocol error: what goes into `error` of the answer. */
struct cordon_mcp_fault {
	int code;
	char message[512];
	json_t *data; /* owned, or NULL */
};

/* Fills the fault and returns -EPROTO. Control characters in the text are escaped. */
int cordon_mcp_fail(struct cordon_mcp_fault *fault, int code, const char *fmt, ...) CORDON_PRINTF(3, 4);

/* One request while it is served. Strings and objects are borrowed from the message unless it becomes a call. */
struct cordon_mcp_request {
	struct cordon_mcp *mcp;
	struct cordon_mcp_channel *channel;
	json_t *id;
	const char *method;
	json_t *params; /* an object, maybe empty */
	json_t *meta;	/* params._meta, an object, maybe empty */
	bool modern;
	int64_t began;		   /* monotonic milliseconds */
	bool approved;		   /* a person approved this call */
	cordon_approval_span span; /* and for how long */
	/* While a tool with `ask` is called: the look at the world with which it was decided that the call may be made. */
	const struct cordon_mcp_question *question;
};

/* Returns the channel that all requests of a client have in common. */
static inline struct cordon_mcp_channel *cordon_mcp_session(const struct cordon_mcp_channel *channel)
{
	return channel->session ? channel->session : (struct cordon_mcp_channel *)(uintptr_t)channel;
}

/* Returns the client's capabilities as this request or the handshake declared them, or NULL if it declared none. */
json_t *cordon_mcp_client_capability(const struct cordon_mcp_request *request, const char *name);

/* What a handler returns besides 0 and -EPROTO. */
enum { CORDON_MCP_LATER = 1 }; /* a call that was begun will answer */

/* protocol.c: sends messages. Results get the envelope of the era. All functions take the reference to result or
 * params. */
void cordon_mcp_send_result(const struct cordon_mcp_request *request, json_t *result);
void cordon_mcp_send_fault(struct cordon_mcp_channel *channel, json_t *id, struct cordon_mcp_fault *fault);
void cordon_mcp_notify(struct cordon_mcp_channel *channel, const char *method, json_t *params);

/* The server. */
#define CORDON_MCP_KEY_SIZE 32
struct cordon_mcp {
	const struct cordon_store *store;
	const struct cordon_mcp_offer *offer;
	struct cordon_mcp_options options;
	struct cordon_audit *audit;
	int epoll_fd;
	unsigned char *key; /* authenticates requestState; in secret memory */
	struct cordon_mcp_call *calls;
	size_t n_calls;
	struct cordon_mcp_listen *listens;
	size_t n_listens;
	struct cordon_mcp_watcher *watcher;
	int64_t notice_due; /* when a notice about several approvals is to be sent, monotonic; INT64_MAX: never */
	struct cordon_mcp_child *children;
	json_t *schemas; /* parsed tool schemas by name, made at first use */
};

/* call.c: a request that is answered later. `step` is called when `due` is reached and when the descriptor that the
 * call waits for is readable. It answers and returns true when the call has ended. */
struct cordon_mcp_call {
	struct cordon_mcp_call *next;
	struct cordon_mcp_request request; /* owns id, params, meta */
	const struct cordon_mcp_tool *tool;
	int64_t due;	  /* monotonic milliseconds; INT64_MAX for never */
	int fd;		  /* borrowed, or -1: the call also goes on when it is readable (cordon_mcp_call_wait()) */
	bool ready;	  /* the descriptor is readable */
	bool kept;	  /* the end of the input does not end the call: it is answered first */
	int64_t progress; /* last value that was sent */
	int64_t progress_at;
	bool (*step)(struct cordon_mcp_call *call, int64_t now);
	void (*cancel)(struct cordon_mcp_call *call); /* may be NULL */
	void (*drop)(struct cordon_mcp_call *call);   /* frees `state`; may be NULL */
	void *state;
	const char *about;		/* of a call that changes something: what, or NULL; `state` owns it */
	struct cordon_mcp_child *child; /* that works for the call, which goes on when it has ended (apart.c); or NULL */
	json_t *asked;			/* legacy: id of our request to the client that has not been answered */
	void (*answered)(struct cordon_mcp_call *call,
			 const json_t *result); /* a NULL result means that the client refused or failed */
};

/* Begins a call that waits for the client's answer to a request of ours, which only the legacy era has. Takes
 * params. */
struct cordon_mcp_call *cordon_mcp_call_ask(const struct cordon_mcp_request *request, const char *method,
					    json_t *params);
/* Begins a call and keeps what the request refers to. Returns NULL without memory, or when there are
 * CORDON_MCP_CALLS_MAX, or CORDON_MCP_CALLS_OF_ONE of this client. */
struct cordon_mcp_call *cordon_mcp_call_begin(const struct cordon_mcp_request *request);
/* Ends a call that can't go on, without an answer. */
void cordon_mcp_call_drop(struct cordon_mcp_call *call);
/* Waits for this descriptor from now on, or for none if it is -1, which must be said before it is closed. Returns 0 or -errno. */
int cordon_mcp_call_wait(struct cordon_mcp_call *call, int fd);
/* Sends progress if the client asked for it. The value grows by one each time; at most four are sent per second. */
void cordon_mcp_call_progress(struct cordon_mcp_call *call, int64_t now, const char *message);
/* Whether it would be sent now; one who looks for news does so only then, or the last news would be lost. */
bool cordon_mcp_call_may_progress(const struct cordon_mcp_call *call, int64_t now);
void cordon_mcp_call_cancel(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, const json_t *id);
struct cordon_mcp_call *cordon_mcp_call_find(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel,
					     const json_t *id);
void cordon_mcp_calls_work(struct cordon_mcp *mcp, int64_t now);
void cordon_mcp_calls_close_channel(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, bool cancel);
/* Handles the client's answer to a request of ours. Returns false when no call waits for it. */
bool cordon_mcp_calls_answered(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, const json_t *id,
			       const json_t *result);

/* apart.c: work in a child process. */
struct cordon_mcp_work {
	/* In the child: returns a value (new reference), and maybe a descriptor that goes with it. */
	json_t *(*work)(struct cordon_mcp_call *call, int *ret_fd);
	/* In the child, when nobody waits for the value any more, because the client has gone or has cancelled the call; may be NULL. */
	void (*left)(struct cordon_mcp_call *call, const json_t *value, bool cancelled);
	/* In the server: the value, or NULL if the child has failed; *fd may be stolen. Returns true when the call has ended. */
	bool (*done)(struct cordon_mcp_call *call, json_t *value, int *fd, int64_t now);
	bool reads; /* it changes nothing: it has bounds, and is ended with its call */
};

/* Begins work for a call; the call's step is not called before it is done. -ENOMEM. */
int cordon_mcp_apart(struct cordon_mcp_call *call, const struct cordon_mcp_work *work);
/* In the child: whether nobody waits for the value any more. */
bool cordon_mcp_apart_left(void);
/* Does something in a child for which nobody waits. */
void cordon_mcp_aside(struct cordon_mcp *mcp, void (*work)(const struct cordon_store *store, const char *id),
		      const char *id);
/* For call.c and server.c. */
bool cordon_mcp_apart_step(struct cordon_mcp_call *call, int64_t now);
void cordon_mcp_apart_leave(struct cordon_mcp_call *call, bool cancel);
void cordon_mcp_apart_reap(struct cordon_mcp *mcp);
int64_t cordon_mcp_apart_due(const struct cordon_mcp *mcp, int64_t now);
void cordon_mcp_apart_free(struct cordon_mcp *mcp);

/* tools.c */
struct cordon_mcp_tool {
	const char *name;
	const char *title;
	const char *description;
	const char *input;  /* JSON Schema of the arguments */
	const char *output; /* properties of the result, as JSON; NULL: none, and `call` returns the whole answer */
	const char *always; /* JSON array of the properties that a success always has */
	bool read_only, destructive, idempotent, open_world;
	bool extra; /* offered only by a server whose toolset names it */
	/* `call`, and the question before it, may take long, so they are made in a child process (apart.c). There it may return
	 * CORDON_MCP_LATER with a result: then `then` goes on with it in the server, and returns what `call` returns. */
	bool apart;
	/* With `apart`: the argument that names what is changed. Calls of one client about the same thing keep their order. Or NULL. */
	const char *ordered_by;
	int (*then)(struct cordon_mcp_request *request, json_t *args, const json_t *result, struct cordon_error *err);
	/* In the child: the call was cancelled before `then`; ends what was started. May be NULL. */
	void (*undo)(const struct cordon_mcp_request *request, const json_t *result);
	/* Returns 0 and a structured result (new reference), CORDON_MCP_LATER, or a negative errno with err for an
	 * isError result. The arguments fit the schema. *ret_text may be set to a text; otherwise the JSON is the
	 * text. */
	int (*call)(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		    struct cordon_error *err);
	/*
	 * Looks at what a call with these arguments would do now, and fills the question; its text stays empty when no person need
	 * approve the call. Returns 0, or a negative errno with err: the call is refused with it, and `call` is not called.
	 * INVARIANT: one who can't tell fails. `call` does what request->question says and nothing else: the world may have
	 * changed since, so it does what the look found, or what it finds under its lock must be the same. NULL: nobody is asked.
	 */
	int (*ask)(const struct cordon_mcp_request *request, const json_t *args, struct cordon_mcp_question *question,
		   struct cordon_error *err);
};

extern const struct cordon_mcp_tool *const cordon_mcp_tools[]; /* cordon's own */

/* Answers a method: returns 0 and a result (new reference), CORDON_MCP_LATER, or -EPROTO with the fault. */
typedef int cordon_mcp_serve(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);

/* What a server offers; the protocol around it is the same for all. cordon's own offer is cordon_mcp_own_offer; the
 * program for the conformance tests has another. */
struct cordon_mcp_offer {
	const struct cordon_mcp_tool *const *tools; /* ends with NULL; the order in which they are listed */
	cordon_mcp_serve *resources_list, *templates_list, *resources_read, *prompts_list, *prompts_get, *complete;
	/* Resources that can be listened to, as places of the store. */
	int (*uri_parse)(const char *text, struct cordon_mcp_uri *ret_uri);
	int (*uri_text)(const struct cordon_mcp_uri *uri, char *ret_text, size_t size);
};

extern const struct cordon_mcp_offer cordon_mcp_own_offer;

int cordon_mcp_tools_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
int cordon_mcp_tools_call(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
/* Sends the answer of a tool, now or later; it is a success if err is NULL. Takes result and text. */
void cordon_mcp_tool_answer(const struct cordon_mcp_request *request, const char *name, json_t *result, char *text,
			    const struct cordon_error *err);
json_t *cordon_mcp_tool_result(json_t *result, char *text, const struct cordon_error *err);

/* schema.c: checks a value with the part of JSON Schema that our own schemas use. Errors are of kind usage; `at` names
 * the value. */
int cordon_mcp_schema_check(const json_t *schema, json_t *value, const char *at, struct cordon_error *err);

/* The only way to `call` of a tool: with the question that `ask` filled, and that a person has approved if there was one. INVARIANT:
 * a tool that has `ask` is not called without. */
struct cordon_mcp_question;
int cordon_mcp_tool_call(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
			 const struct cordon_mcp_question *question, json_t **ret_result, char **ret_text,
			 struct cordon_error *err);
/* Calls a tool whose arguments were checked and approved, and answers. */
void cordon_mcp_tool_run(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
			 const struct cordon_mcp_question *question);
/* tools_apart.c: begins the call of a tool that works apart. With `approval`, the id of one that was asked for, it looks again at what
 * the call would do, and asks cordon_mcp_approval_use(). Returns CORDON_MCP_LATER, or a negative errno with err. */
int cordon_mcp_tool_apart(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
			  const char *approval, struct cordon_error *err);
/* An error as the value of a child, {"error": ...}, and back: returns its code, or 0 if the value is none. */
json_t *cordon_mcp_error_json(const struct cordon_error *err);
int cordon_mcp_error_read(const json_t *value, struct cordon_error *ret_err);
/* Writes the audit record of a call. */
void cordon_mcp_tool_record(const struct cordon_mcp_request *request, const char *name, const struct cordon_error *err);

/* What a person is asked about a call. Everything in it is escaped. */
#define CORDON_MCP_QUESTION_MAX ((size_t)1 << 20) /* more than the settings of a project can fill */
struct cordon_mcp_question {
	struct cordon_buf text;
	struct cordon_buf widens;     /* what agents could do then that they can't do now; may be empty */
	char project[CORDON_ID_SIZE]; /* which the call is about, if its arguments do not say; or "" */
	json_t *grant;		      /* owned; of approval/approval.h */
	json_t *means; /* owned; what the arguments mean now, for the tool: an approval counts only for this; or NULL */
};
/* clang-format off */
#define CORDON_MCP_QUESTION { .text = CORDON_BUF(2 * CORDON_MCP_QUESTION_MAX), .widens = CORDON_BUF(CORDON_MCP_QUESTION_MAX) }
/* clang-format on */
void cordon_mcp_question_done(struct cordon_mcp_question *question);
#define autoquestion CORDON_CLEANUP(cordon_mcp_question_done)

/* question.c: calls `ask` of the tool, if it has one. *ret_asks is whether a person must approve the call. */
int cordon_mcp_look(const struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, const json_t *args,
		    struct cordon_mcp_question *question, bool *ret_asks, struct cordon_error *err);
/* approval.c: who makes the call. */
#define CORDON_MCP_PRINCIPAL_SIZE (CORDON_ID_SIZE + 16)
const char *cordon_mcp_principal(const struct cordon_mcp_request *request,
				 char ret_text[static CORDON_MCP_PRINCIPAL_SIZE]);
/* Whether the call may do what needs an approval: a person has approved it, or the operator has consented in advance. */
bool cordon_mcp_may(const struct cordon_mcp_request *request);
/* For the tools about projects: `ask`, and what cordon_project_update() calls under the lock of the project. */
int cordon_mcp_ask_settings(const struct cordon_mcp_request *request, const json_t *args,
			    struct cordon_mcp_question *question, struct cordon_error *err);
int cordon_mcp_ask_delete(const struct cordon_mcp_request *request, const json_t *args,
			  struct cordon_mcp_question *question, struct cordon_error *err);
int cordon_mcp_judge_settings(const void *data, const struct cordon_project_record *before,
			      const struct cordon_project_record *after, struct cordon_error *err);
/* Adds to the question which settings it is about, and to `means` their digest, under "settings". */
int cordon_mcp_question_settings(struct cordon_mcp_question *question, const char *digest, struct cordon_error *err);

/*
 * tools/project.c: a project's record for whoever asks. The agent of a session learns what is published, and a token that may not change
 * settings learns no values of variables, which may be secrets: only their names.
 */
json_t *cordon_mcp_project_json(const struct cordon_mcp_request *request, const struct cordon_project_record *project);
/* The same for a list of records, which are changed; it may be NULL. */
void cordon_mcp_hide_values(const struct cordon_mcp_request *request, json_t *projects);

/* approval.c: puts the question. Returns CORDON_MCP_APPROVED when a person has said yes, and sets request->approved and span; 0 with
 * a result to send (the question, or the refusal); CORDON_MCP_LATER when a call waits for the answer; -EPROTO with the fault. */
enum { CORDON_MCP_APPROVED = 2 };
int cordon_mcp_approve(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
		       const struct cordon_mcp_question *question, json_t **ret_result, struct cordon_mcp_fault *fault);
/* Uses the approval with this id for a call that is about what the question says now; NULL: about nothing that needs one. Returns
 * CORDON_MCP_APPROVED, -EAGAIN while it waits, or another negative errno with err. */
int cordon_mcp_approval_use(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, const json_t *args,
			    const struct cordon_mcp_question *question, const char *id, struct cordon_error *err);
/* The watcher calls it for each record of an approval that changed; NULL: for all. */
void cordon_mcp_approval_changed(struct cordon_mcp *mcp, const char *id);

/* The state of an approval that the client keeps between two requests: valid for this call, these arguments and ten
 * minutes. */
#define CORDON_MCP_STATE_SIZE 128
int cordon_mcp_state_make(const struct cordon_mcp_request *request, const char *tool, const json_t *about,
			  char ret_state[static CORDON_MCP_STATE_SIZE]);
bool cordon_mcp_state_holds(const struct cordon_mcp_request *request, const char *tool, const json_t *about,
			    const char *state);

/* resources.c */
int cordon_mcp_resources_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
int cordon_mcp_templates_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
int cordon_mcp_resources_read(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);

/* bound.c: a server for one session. bound_tool() returns -EPERM with err; bound_resource() returns whether the client
 * may see it. */
int cordon_mcp_bound_tool(const struct cordon_mcp *mcp, const char *tool, const json_t *args, struct cordon_error *err);
bool cordon_mcp_bound_resource(const struct cordon_mcp *mcp, const struct cordon_mcp_uri *uri);

/* scope.c: what a token allows. INVARIANT: every tool has a line in the table of scope.c, and one without it is for nobody
 * but a caller who may do everything. tool() returns -EPERM or -ENOENT with err; what belongs to another's project looks as
 * if it did not exist. */
int cordon_mcp_scope_tool(const struct cordon_mcp_request *request, const char *tool, const json_t *args,
			  struct cordon_error *err);
bool cordon_mcp_scope_shows(const struct cordon_mcp_channel *channel, const char *tool);
bool cordon_mcp_scope_resource(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel,
			       const struct cordon_mcp_uri *uri);
/* Whether the client may neither see the host nor change settings, or speaks for an agent: it can't speak for a person. */
bool cordon_mcp_is_strange(const struct cordon_mcp_request *request);
/* The projects of the client, or NULL for all. */
const json_t *cordon_mcp_scope_projects(const struct cordon_mcp_channel *channel);
/* Whether these projects, or all if it is NULL, include one. */
bool cordon_mcp_scope_has(const json_t *projects, const char *id);
/* The scope that a tool needs; -ENOENT when it has no line in the table. */
int cordon_mcp_scope_of(const char *tool, cordon_token_scope *ret_scope);
int cordon_mcp_toolset_check(const struct cordon_mcp *mcp, struct cordon_error *err);

/* mcp/tools/session.c: returns a session's output as text. */
char *cordon_mcp_transcript(const json_t *output);

/* prompts.c, completion.c */
int cordon_mcp_prompts_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
int cordon_mcp_prompts_get(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
int cordon_mcp_complete(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
/* Returns whether a prompt has that argument. */
bool cordon_mcp_prompt_has(const char *prompt, const char *argument);

/* listen.c: subscriptions of both eras. */
int cordon_mcp_listen(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
int cordon_mcp_subscribe(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
int cordon_mcp_unsubscribe(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault);
void cordon_mcp_listen_cancel(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, const json_t *id);
void cordon_mcp_listens_close_channel(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel);
bool cordon_mcp_listen_has(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, const json_t *id);

/* watcher.c: reports what changed on disk. */
int cordon_mcp_watcher_new(struct cordon_mcp *mcp);
void cordon_mcp_watcher_free(struct cordon_mcp *mcp);
/* Watches are counted: each watch needs one unwatch. */
int cordon_mcp_watch(struct cordon_mcp *mcp, const struct cordon_mcp_uri *uri);
void cordon_mcp_unwatch(struct cordon_mcp *mcp, const struct cordon_mcp_uri *uri);
/* Watches the records of approvals; counted likewise. */
int cordon_mcp_approvals_watch(struct cordon_mcp *mcp);
void cordon_mcp_approvals_unwatch(struct cordon_mcp *mcp);
int64_t cordon_mcp_watcher_due(const struct cordon_mcp *mcp);
void cordon_mcp_watcher_work(struct cordon_mcp *mcp, int64_t now);
/* The watcher calls it for each place that changed, at most four times a second for one place. */
void cordon_mcp_listens_changed(struct cordon_mcp *mcp, const struct cordon_mcp_uri *uri);

#endif
