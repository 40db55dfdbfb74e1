/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a question to a person and goes on with the answer. The question is a record (approval/approval.h), which decides: the
 * page and the terminal answer it there, and the client's answer is written into it like theirs.
 *
 *     modern   the client gets an input_required result and calls again; the record may have been answered by then
 *     legacy   the call waits for the client's answer to a request of ours, and for a change of the record
 *     neither  the client can't ask, or must not: the call is refused, and made again when a person has approved it
 *
 * INVARIANT: requestState comes back under the control of the caller. It is authenticated by a key over principal, expiry,
 * method, all arguments and the id of the record.
 *
 * INVARIANT: the client of a session acts for an agent inside a sandbox, so its word is no answer. Nor is the word of a
 * client that may not change settings.
 */
#include <sodium.h>
#include <stdio.h>

#include "base/time.h"
#include "mcp/tools.h"

#define STATE_LIFE_MS 600000
#define ANSWER_LIFE_MS 600000

/* Makes "<expiry>.<mac>"; the code covers everything that the approval is about. */
static int make_state(const struct cordon_mcp_request *request, const char *tool, const json_t *args, int64_t expiry,
		      char ret_state[static CORDON_MCP_STATE_SIZE])
{
	autofree char *text = json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS);
	autobuf struct cordon_buf about = CORDON_BUF(2 * CORDON_MCP_MESSAGE_MAX);
	unsigned char mac[crypto_auth_BYTES];
	char hex[2 * crypto_auth_BYTES + 1];
	const char *principal = request->channel->principal;

	if (!text || cordon_buf_addf(&about, "%lld\n%s\n%s\n%s\n%s", (long long)expiry, principal ? principal : "",
				     request->method, tool, text) < 0)
		return -ENOMEM;
	crypto_auth(mac, (const unsigned char *)about.data, about.len, request->mcp->key);
	sodium_bin2hex(hex, sizeof(hex), mac, sizeof(mac));
	snprintf(ret_state, CORDON_MCP_STATE_SIZE, "%lld.%s", (long long)expiry, hex);
	return 0;
}

int cordon_mcp_state_make(const struct cordon_mcp_request *request, const char *tool, const json_t *about,
			  char ret_state[static CORDON_MCP_STATE_SIZE])
{
	return make_state(request, tool, about, cordon_time_now() + STATE_LIFE_MS, ret_state);
}

bool cordon_mcp_state_holds(const struct cordon_mcp_request *request, const char *tool, const json_t *about,
			    const char *state)
{
	const char *dot = strchr(state, '.');
	char digits[24], want[CORDON_MCP_STATE_SIZE];
	uint64_t expiry;

	if (!dot || cordon_copy(digits, sizeof(digits), state, (size_t)(dot - state)) < 0 ||
	    cordon_parse_u64(digits, 0, INT64_MAX, &expiry) < 0 || (int64_t)expiry < cordon_time_now() ||
	    make_state(request, tool, about, (int64_t)expiry, want) < 0)
		return false;
	return strlen(state) == strlen(want) && sodium_memcmp(state, want, strlen(want)) == 0;
}

/* ---- the question ---- */

const char *cordon_mcp_principal(const struct cordon_mcp_request *request,
				 char ret_text[static CORDON_MCP_PRINCIPAL_SIZE])
{
	if (request->mcp->options.session)
		snprintf(ret_text, CORDON_MCP_PRINCIPAL_SIZE, "session:%s", request->mcp->options.session);
	else
		snprintf(ret_text, CORDON_MCP_PRINCIPAL_SIZE, "%s",
			 request->channel->principal ? request->channel->principal : "local");
	return ret_text;
}

static const char *client_of(const struct cordon_mcp_request *request)
{
	const json_t *client = request->modern ? json_object_get(request->meta, CORDON_META_CLIENT)
					       : request->channel->client;

	return cordon_json_string(client, "name");
}

/* What the client can do about a question. */
enum asks {
	ASKS,	 /* put it to its person */
	CANNOT,	 /* it lacks the capability */
	MUST_NOT /* it may have it, but its word is no answer */
};

static enum asks asks(const struct cordon_mcp_request *request)
{
	const json_t *elicitation = cordon_mcp_client_capability(request, "elicitation");

	if (cordon_mcp_is_strange(request))
		return MUST_NOT;
	/* The versions of the handshake are dates. Elicitation came with 2025-06-18. */
	if (!json_is_object(elicitation) || (!request->modern && strcmp(request->channel->version, "2025-06-18") < 0))
		return CANNOT;
	/* An empty object means that the client supports forms; {"url": {}} alone means that it does not. */
	return json_object_size(elicitation) == 0 || json_object_get(elicitation, "form") ||
			       !json_object_get(elicitation, "url")
		       ? ASKS
		       : CANNOT;
}

static struct cordon_approval_ask about(const struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool,
					const json_t *args, const struct cordon_mcp_question *question,
					const char *principal)
{
	const char *session = cordon_json_string(args, "session_id");

	return (struct cordon_approval_ask){
		.principal = principal,
		.client = client_of(request),
		.method = request->method,
		.tool = tool->name,
		.args = args,
		.question = question->text.data,
		.widens = question->widens.len ? question->widens.data : NULL,
		.project_id = *question->project ? question->project : cordon_json_string(args, "project_id"),
		.session_id = session ? session : request->mcp->options.session,
		.grant = question->grant,
		.means = question->means,
		.again = asks(request) == ASKS,
	};
}

static json_t *form(const struct cordon_mcp_question *question)
{
	json_t *params = json_pack("{s:s, s:{s:s, s:{s:{s:s, s:s, s:b}}, s:[s]}}", "message", question->text.data,
				   "requestedSchema", "type", "object", "properties", "approve", "type", "boolean",
				   "title", "Approve", "default", 0, "required", "approve");

	if (question->grant)
		json_object_set_new(json_object_get(json_object_get(params, "requestedSchema"), "properties"), "for",
				    json_pack("{s:s, s:s, s:[s, s, s], s:s}", "type", "string", "title",
					      "For this run, also when the session is resumed, or for the project",
					      "enum", "once", "session", "policy", "default", "once"));
	return params;
}

/* ---- the client's answer ---- */

/* Writes what the client's person said into the record. Another answer may have come first; then that one counts. A form
 * that was closed is no answer. */
static void take_answer(const struct cordon_mcp_request *request, const char *id, const json_t *given)
{
	const char *action = cordon_json_string(given, "action");
	const json_t *content = json_object_get(given, "content");
	const char *span = cordon_json_string(content, "for");
	char principal[CORDON_MCP_PRINCIPAL_SIZE];
	struct cordon_approval_answer answer = { .on = CORDON_APPROVAL_BY_CLIENT,
						 .by = cordon_mcp_principal(request, principal) };

	if (!action || (!cordon_streq(action, "accept") && !cordon_streq(action, "decline")))
		return;
	answer.approve = cordon_streq(action, "accept") && cordon_json_true(content, "approve");
	if (span && cordon_approval_span_parse(span, &answer.span, NULL) < 0)
		answer.approve = false;
	cordon_approval_answer(request->mcp->store, id, &answer, NULL, NULL);
}

static void fail_declined(struct cordon_error *err, const char *why)
{
	cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "%s; nothing was changed", why);
	cordon_error_hint(err, "a person must approve this, here or with the cordon command");
}

/* Says that a question still waits, and how it is answered. */
static void fail_waiting(struct cordon_error *err, const char *id, const char *why)
{
	fail_declined(err, why);
	cordon_error_hint(err,
			  "approval %.8s waits: a person answers it with 'cordon approvals approve %.8s' or on the page "
			  "('cordon open'), then make the same call again",
			  id, id);
}

/*
 * Uses the approval. Returns CORDON_MCP_APPROVED, and the call goes on; -EAGAIN while the question waits; -ESTALE when
 * another question must be put; else -EPERM with err.
 */
static int use(struct cordon_mcp_request *request, const char *id, const struct cordon_approval_ask *ask,
	       struct cordon_error *err)
{
	autoapproval struct cordon_approval_record record = { 0 };
	struct cordon_error why = { 0 };
	int r = cordon_approval_use(request->mcp->store, id, ask, &record, &why);

	if (r == 0) {
		request->approved = true;
		request->span = record.span;
		return CORDON_MCP_APPROVED;
	}
	if (r == -EAGAIN || r == -ESTALE || r == -ENOENT) /* It may have been removed. */
		return r == -EAGAIN ? r : -ESTALE;
	fail_declined(err, r == -EPERM ? why.message : "the approval can't be used");
	return -EPERM;
}

/* ---- modern ---- */

/* The state is "<id of the record>.<state>". */
static int make_request_state(const struct cordon_mcp_request *request, const char *tool, json_t *args, const char *id,
			      struct cordon_buf *ret_text)
{
	json_auto_t *covered = json_pack("[s, O]", id, args);
	char state[CORDON_MCP_STATE_SIZE];

	if (!covered || cordon_mcp_state_make(request, tool, covered, state) < 0)
		return -ENOMEM;
	return cordon_buf_addf(ret_text, "%s.%s", id, state);
}

static bool read_request_state(const struct cordon_mcp_request *request, const char *tool, json_t *args,
			       const json_t *given, char ret_id[static CORDON_ID_SIZE])
{
	const char *text = json_string_value(given);
	const char *dot = text ? strchr(text, '.') : NULL;
	json_auto_t *covered = NULL;

	if (!dot || cordon_copy(ret_id, CORDON_ID_SIZE, text, (size_t)(dot - text)) < 0)
		return false;
	covered = json_pack("[s, O]", ret_id, args);
	return covered && cordon_mcp_state_holds(request, tool, covered, dot + 1);
}

static int ask_modern(const struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
		      const struct cordon_mcp_question *question, const char *id, json_t **ret_result,
		      struct cordon_mcp_fault *fault)
{
	autobuf struct cordon_buf state = CORDON_BUF(CORDON_ID_SIZE + CORDON_MCP_STATE_SIZE);
	json_t *params = form(question);

	if (!params || make_request_state(request, tool->name, args, id, &state) < 0) {
		json_decref(params);
		return cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "out of memory");
	}
	json_object_set_new(params, "mode", json_string("form"));
	*ret_result = json_pack("{s:s, s:{s:{s:s, s:o}}, s:s}", "resultType", "input_required", "inputRequests",
				"approve", "method", "elicitation/create", "params", params, "requestState", state.data);
	return 0;
}

/* The client calls again with the state of a question. Returns 0 when the question must be put anew. */
static int resume_modern(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
			 const struct cordon_approval_ask *ask, struct cordon_error *err, struct cordon_mcp_fault *fault)
{
	const json_t *given = json_object_get(request->params, "requestState");
	const json_t *answer = json_object_get(json_object_get(request->params, "inputResponses"), "approve");
	char id[CORDON_ID_SIZE];
	int r;

	if (!given)
		return 0;
	if (!read_request_state(request, tool->name, args, given, id))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS,
				       "requestState is not valid for this call, or expired");
	if (answer)
		take_answer(request, id, answer);
	r = use(request, id, ask, err);
	if (r == -EAGAIN && answer) {
		fail_waiting(err, id, "the person who was asked gave no answer");
		return -EPERM;
	}
	return r == -EAGAIN || r == -ESTALE ? 0 : r;
}

/* ---- legacy ---- */

/* A call that waits for an answer. */
struct waiting {
	const struct cordon_mcp_tool *tool;
	json_t *args;
	char id[CORDON_ID_SIZE];
	int64_t until;
};

static void drop_waiting(struct cordon_mcp_call *call)
{
	struct waiting *waiting = call->state;

	cordon_mcp_approvals_unwatch(call->request.mcp);
	json_decref(waiting->args);
	free(waiting);
}

int cordon_mcp_approval_use(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, const json_t *args,
			    const struct cordon_mcp_question *question, const char *id, struct cordon_error *err)
{
	char principal[CORDON_MCP_PRINCIPAL_SIZE];
	struct cordon_approval_ask ask;
	/* What the call would do may have changed while it waited; then the person was asked about something else. Whoever
	 * approves a grant puts it into effect, and then the tool only has to say so. */
	int r = tool == &cordon_mcp_grant_request ? CORDON_MCP_APPROVED : -ESTALE;

	if (question) {
		ask = about(request, tool, args, question, cordon_mcp_principal(request, principal));
		r = use(request, id, &ask, err);
	}
	if (r == -ESTALE)
		fail_declined(err, "what this call would do has changed since the question was put; call again");
	return r;
}

/* Goes on with the call if the question was answered. Returns whether the call has ended. */
static bool decide(struct cordon_mcp_call *call)
{
	autoquestion struct cordon_mcp_question question = CORDON_MCP_QUESTION;
	autoapproval struct cordon_approval_record record = { 0 };
	const struct waiting *waiting = call->state;
	struct cordon_error err = { 0 };
	bool asks = false;
	int r;

	if (waiting->tool->apart && cordon_approval_get(call->request.mcp->store, waiting->id, &record, NULL) == 0 &&
	    record.state == CORDON_APPROVAL_WAITING)
		return false;
	if (waiting->tool->apart) {
		r = cordon_mcp_tool_apart(&call->request, waiting->tool, waiting->args, waiting->id, &err);
		if (r < 0)
			cordon_mcp_tool_answer(&call->request, waiting->tool->name, NULL, NULL, &err);
		return true;
	}
	r = cordon_mcp_look(&call->request, waiting->tool, waiting->args, &question, &asks, &err);
	if (r == 0)
		r = cordon_mcp_approval_use(&call->request, waiting->tool, waiting->args, asks ? &question : NULL,
					    waiting->id, &err);
	if (r == -EAGAIN && !err.code)
		return false;
	if (r == CORDON_MCP_APPROVED)
		cordon_mcp_tool_run(&call->request, waiting->tool, waiting->args, &question);
	else
		cordon_mcp_tool_answer(&call->request, waiting->tool->name, NULL, NULL, &err);
	return true;
}

static void give_up(struct cordon_mcp_call *call, const char *why)
{
	const struct waiting *waiting = call->state;
	struct cordon_error err = { 0 };

	fail_waiting(&err, waiting->id, why);
	cordon_mcp_tool_answer(&call->request, waiting->tool->name, NULL, NULL, &err);
}

static void answered(struct cordon_mcp_call *call, const json_t *result)
{
	const struct waiting *waiting = call->state;

	take_answer(&call->request, waiting->id, result);
	if (!decide(call))
		give_up(call, "the person who was asked gave no answer");
}

/* The record has changed, or the time is over. */
static bool look(struct cordon_mcp_call *call, int64_t now)
{
	const struct waiting *waiting = call->state;
	bool over = now >= waiting->until;

	call->due = waiting->until;
	if (!over) {
		autoapproval struct cordon_approval_record record = { 0 };

		if (cordon_approval_get(call->request.mcp->store, waiting->id, &record, NULL) == 0 &&
		    record.state == CORDON_APPROVAL_WAITING)
			return false;
	}
	/* The client need not ask any more. */
	cordon_mcp_notify(call->request.channel, "notifications/cancelled",
			  json_pack("{s:O, s:s}", "requestId", call->asked, "reason",
				    over ? "nobody answered" : "the question was answered elsewhere"));
	if (!decide(call))
		give_up(call, "nobody answered the question");
	return true;
}

void cordon_mcp_approval_changed(struct cordon_mcp *mcp, const char *id)
{
	for (struct cordon_mcp_call *call = mcp->calls; call; call = call->next)
		if (call->step == look && (!id || cordon_streq(((const struct waiting *)call->state)->id, id)))
			call->due = 0;
}

static int ask_legacy(const struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
		      const struct cordon_mcp_question *question, const char *id, struct cordon_mcp_fault *fault)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	bool watched = waiting && cordon_mcp_approvals_watch(request->mcp) == 0;
	struct cordon_mcp_call *call = watched ? cordon_mcp_call_ask(request, "elicitation/create", form(question))
					       : NULL;

	if (!call) {
		if (watched)
			cordon_mcp_approvals_unwatch(request->mcp);
		free(waiting);
		return cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "too many calls are waiting");
	}
	waiting->tool = tool;
	waiting->args = json_incref(args);
	waiting->until = cordon_time_monotonic() + ANSWER_LIFE_MS;
	memcpy(waiting->id, id, sizeof(waiting->id));
	call->state = waiting;
	call->drop = drop_waiting;
	call->answered = answered;
	call->step = look;
	call->due = 0; /* Look once, because an answer may have come before the watch. */
	return CORDON_MCP_LATER;
}

/* ---- both ---- */

/* The client can't ask its person, or must not: the question waits in the record. */
static int refuse(const struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, enum asks how,
		  const char *id, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	struct cordon_error err = { 0 };

	if (how == MUST_NOT)
		fail_waiting(&err, id, "this needs the approval of a person, whom this client can't speak for");
	else
		fail_waiting(&err, id, "this needs a person's approval, and the client can't ask for it (elicitation)");
	if (how == CANNOT && request->modern) {
		fault->data = json_pack("{s:{s:{}}}", "requiredCapabilities", "elicitation");
		return cordon_mcp_fail(fault, CORDON_MCP_MISSING_CAPABILITY,
				       "%s needs a person's approval, and this client can't ask for it (elicitation); %s",
				       tool->name, err.hint);
	}
	*ret_result = cordon_mcp_tool_result(NULL, NULL, &err);
	return 0;
}

int cordon_mcp_approve(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
		       const struct cordon_mcp_question *question, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	autoapproval struct cordon_approval_record record = { 0 };
	char principal[CORDON_MCP_PRINCIPAL_SIZE];
	struct cordon_approval_ask ask = about(request, tool, args, question, cordon_mcp_principal(request, principal));
	enum asks how = asks(request);
	struct cordon_error err = { 0 };
	bool fresh = false;
	int r = request->modern && how == ASKS ? resume_modern(request, tool, args, &ask, &err, fault) : 0;

	if (r == -EPROTO || r == CORDON_MCP_APPROVED)
		return r;
	if (r == 0)
		r = cordon_approval_ask(request->mcp->store, &ask, &record, &fresh, &err);
	if (r == 0 && record.state != CORDON_APPROVAL_WAITING)
		r = use(request, record.id, &ask, &err);
	if (r == CORDON_MCP_APPROVED)
		return r;
	if (r < 0) {
		*ret_result = cordon_mcp_tool_result(NULL, NULL, &err);
		return 0;
	}
	if (fresh)
		cordon_approval_notice(request->mcp->store, &record, &request->mcp->notice_due);
	if (how != ASKS)
		return refuse(request, tool, how, record.id, ret_result, fault);
	return request->modern ? ask_modern(request, tool, args, question, record.id, ret_result, fault)
			       : ask_legacy(request, tool, args, question, record.id, fault);
}
