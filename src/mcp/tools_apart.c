/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of tools that may take long. A child process (apart.c) looks at what the call would do and, when no person has to approve
 * that, does it. Else the server gets the question and puts it, and a second child does what was approved.
 */
#include <stdio.h>

#include "base/time.h"
#include "mcp/internal.h"

struct state {
	json_t *args;
	char approval[CORDON_ID_SIZE];	     /* that was asked for already, or "" */
	struct cordon_mcp_question question; /* what was approved */
	bool may;			     /* a person has approved it */
};

static void drop(struct cordon_mcp_call *call)
{
	struct state *state = call->state;

	json_decref(state->args);
	cordon_mcp_question_done(&state->question);
	free(state);
}

/* ---- what goes from the child to the server ---- */

json_t *cordon_mcp_error_json(const struct cordon_error *err)
{
	return json_pack("{s:{s:i, s:s, s:s, s:s, s:s}}", "error", "code", err->code, "kind",
			 cordon_kind_name(err->kind), "message", err->message, "where", err->where, "hint", err->hint);
}

int cordon_mcp_error_read(const json_t *value, struct cordon_error *ret_err)
{
	const json_t *error = json_object_get(value, "error");
	const char *where = cordon_json_string(error, "where"), *hint = cordon_json_string(error, "hint");
	const char *message = cordon_json_string(error, "message");

	if (!error)
		return 0;
	cordon_fail(ret_err, (int)cordon_json_integer(error, "code"),
		    cordon_kind_parse(cordon_json_string(error, "kind")), "%s", message ? message : "");
	snprintf(ret_err->where, sizeof(ret_err->where), "%s", where ? where : "");
	snprintf(ret_err->hint, sizeof(ret_err->hint), "%s", hint ? hint : "");
	return ret_err->code;
}

static json_t *question_json(const struct cordon_mcp_question *question)
{
	return json_pack("{s:{s:s, s:s, s:s, s:O*, s:O*}}", "asks", "text", question->text.data, "widens",
			 question->widens.data ? question->widens.data : "", "project", question->project, "grant",
			 question->grant, "means", question->means);
}

static int read_question(const json_t *value, struct cordon_mcp_question *ret_question)
{
	const char *project = cordon_json_string(value, "project");
	int r = cordon_buf_adds(&ret_question->text, cordon_json_string(value, "text"));

	if (r == 0)
		r = cordon_buf_adds(&ret_question->widens, cordon_json_string(value, "widens"));
	if (r == 0)
		r = cordon_copy(ret_question->project, sizeof(ret_question->project), project, strlen(project));
	ret_question->grant = json_incref(json_object_get(value, "grant"));
	ret_question->means = json_incref(json_object_get(value, "means"));
	return r;
}

/* ---- in the child ---- */

static json_t *work(struct cordon_mcp_call *call, int *ret_fd)
{
	autoquestion struct cordon_mcp_question question = CORDON_MCP_QUESTION;
	const struct state *state = call->state;
	struct cordon_error err = { 0 };
	autofree char *text = NULL;
	json_t *result = NULL;
	bool asks = false;
	int r = state->may ? 0 : cordon_mcp_look(&call->request, call->tool, state->args, &question, &asks, &err);

	(void)ret_fd;
	if (r < 0)
		return cordon_mcp_error_json(&err);
	if (asks)
		return question_json(&question);
	if (*state->approval && !state->may) /* What was asked about is no question any more. */
		return json_pack("{s:n}", "asks");
	r = cordon_mcp_tool_call(&call->request, call->tool, state->args, state->may ? &state->question : &question,
				 &result, &text, &err);
	if (r < 0)
		return cordon_mcp_error_json(&err);
	return json_pack("{s:o*, s:s*, s:b}", "result", result, "text", text, "later", r == CORDON_MCP_LATER);
}

/* The client has gone. What was done is recorded all the same. */
static void left(struct cordon_mcp_call *call, const json_t *value, bool cancelled)
{
	const struct cordon_audit_ids nobody = { 0 };
	struct cordon_mcp *mcp = call->request.mcp;
	struct cordon_error err = { 0 };
	int r = cordon_mcp_error_read(value, &err);

	if (cancelled && call->tool->undo && cordon_json_true(value, "later"))
		call->tool->undo(&call->request, json_object_get(value, "result"));
	if (!value || json_object_get(value, "asks") ||
	    cordon_audit_open(&mcp->store->home, &nobody, &mcp->audit, NULL) < 0)
		return;
	cordon_mcp_tool_record(&call->request, call->tool->name, r < 0 ? &err : NULL);
	cordon_audit_close(mcp->audit);
}

/* ---- in the server ---- */

static bool done(struct cordon_mcp_call *call, json_t *value, int *fd, int64_t now);

static const struct cordon_mcp_work acts = { .work = work, .left = left, .done = done };
static const struct cordon_mcp_work reads = { .work = work, .done = done, .reads = true };

static int begin(struct cordon_mcp_call *call)
{
	return cordon_mcp_apart(call, call->tool->read_only ? &reads : &acts);
}

static void answer_error(struct cordon_mcp_call *call, const struct cordon_error *err)
{
	cordon_mcp_tool_answer(&call->request, call->tool->name, NULL, NULL, err);
}

/* A person has to be asked, or was. */
static bool ask(struct cordon_mcp_call *call, const json_t *asks)
{
	struct state *state = call->state;
	struct cordon_mcp_question *question = &state->question;
	struct cordon_mcp_fault fault = { 0 };
	struct cordon_error err = { 0 };
	json_t *result = NULL;
	int r = json_is_null(asks) ? 0 : read_question(asks, question);

	if (r < 0)
		cordon_fail(&err, r, CORDON_KIND_LIMIT, "out of memory");
	else if (*state->approval)
		r = cordon_mcp_approval_use(&call->request, call->tool, state->args,
					    json_is_null(asks) ? NULL : question, state->approval, &err);
	else
		r = cordon_mcp_approve(&call->request, call->tool, state->args, question, &result, &fault);
	if (r == CORDON_MCP_APPROVED) {
		state->may = true;
		if (begin(call) == 0)
			return false;
		cordon_fail(&err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	}
	if (r < 0 && r != -EPROTO && !err.code)
		cordon_fail(&err, r, CORDON_KIND_CONFLICT, "the approval can't be used now; call again");
	if (r == 0)
		cordon_mcp_send_result(&call->request, result);
	else if (r == -EPROTO)
		cordon_mcp_send_fault(call->request.channel, call->request.id, &fault);
	else if (r != CORDON_MCP_LATER)
		answer_error(call, &err);
	return true;
}

static bool done(struct cordon_mcp_call *call, json_t *value, int *fd, int64_t now)
{
	const struct state *state = call->state;
	const json_t *asks = json_object_get(value, "asks");
	json_t *result = json_object_get(value, "result");
	const char *text = cordon_json_string(value, "text");
	struct cordon_error err = { 0 };

	(void)fd, (void)now;
	if (asks)
		return ask(call, asks);
	if (!json_is_object(value)) {
		cordon_fail(&err, -EIO, CORDON_KIND_LIMIT, "the call took too much time or memory, or failed");
		cordon_error_hint(&err, "%s",
				  call->tool->read_only ? "ask for less"
							: "look at what it has changed before you repeat it");
	} else if (cordon_mcp_error_read(value, &err) == 0 && cordon_json_true(value, "later")) {
		if (call->tool->then(&call->request, state->args, result, &err) == CORDON_MCP_LATER)
			return true;
	} else if (!err.code && !call->tool->output) {
		cordon_mcp_tool_record(&call->request, call->tool->name, NULL);
		cordon_mcp_send_result(&call->request, json_incref(result));
		return true;
	}
	cordon_mcp_tool_answer(&call->request, call->tool->name, json_incref(result),
			       text && !err.code ? strdup(text) : NULL, err.code ? &err : NULL);
	return true;
}

int cordon_mcp_tool_apart(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
			  const char *approval, struct cordon_error *err)
{
	struct state *state = calloc(1, sizeof(*state));
	struct cordon_mcp_call *call = state ? cordon_mcp_call_begin(request) : NULL;

	if (!call) {
		free(state);
		return cordon_fail(err, -EAGAIN, CORDON_KIND_LIMIT, "too many calls are waiting; ask again later");
	}
	state->args = json_incref(args);
	state->question = (struct cordon_mcp_question)CORDON_MCP_QUESTION;
	if (approval)
		(void)cordon_copy(state->approval, sizeof(state->approval), approval, strlen(approval));
	call->tool = tool;
	call->about = tool->ordered_by ? cordon_json_string(args, tool->ordered_by) : NULL;
	call->state = state;
	call->drop = drop;
	if (begin(call) == 0)
		return CORDON_MCP_LATER;
	cordon_mcp_call_drop(call);
	return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
}
