/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that take longer than one turn: they are moved on when due, can be cancelled, and tell how far they are. */
#include "mcp/internal.h"

#define PROGRESS_INTERVAL_MS 250

static void drop(struct cordon_mcp *mcp, struct cordon_mcp_call *call)
{
	struct cordon_mcp_call **link = &mcp->calls;

	while (*link != call)
		link = &(*link)->next;
	*link = call->next;
	mcp->n_calls--;
	if (call->drop)
		call->drop(call);
	json_decref(call->request.id);
	json_decref(call->request.params);
	json_decref(call->asked);
	free(call);
}

struct cordon_mcp_call *cordon_mcp_call_begin(const struct cordon_mcp_request *request)
{
	struct cordon_mcp_call *call = request->mcp->n_calls < CORDON_MCP_CALLS_MAX ? calloc(1, sizeof(*call)) : NULL;

	if (!call)
		return NULL;
	call->request = *request;
	call->request.id = json_incref(request->id);
	call->request.params = json_incref(request->params);
	/* Borrowed from params, which the call owns; an absent one is an empty object that outlives nobody. */
	call->request.meta = json_object_get(request->params, "_meta");
	call->request.method = "tools/call";
	call->due = INT64_MAX;
	call->next = request->mcp->calls;
	request->mcp->calls = call;
	request->mcp->n_calls++;
	return call;
}

struct cordon_mcp_call *cordon_mcp_call_ask(const struct cordon_mcp_request *request, const char *method, json_t *params)
{
	struct cordon_mcp_call *call = cordon_mcp_call_begin(request);
	json_t *message;

	if (!call) {
		json_decref(params);
		return NULL;
	}
	call->asked = json_sprintf("cordon-%llu", (unsigned long long)++request->channel->next_request);
	message = json_pack("{s:s, s:O, s:s, s:o}", "jsonrpc", "2.0", "id", call->asked, "method", method, "params",
			    params);
	request->channel->send(request->channel, message);
	json_decref(message);
	return call;
}

void cordon_mcp_call_progress(struct cordon_mcp_call *call, int64_t now, const char *message)
{
	json_t *token = json_object_get(call->request.meta, "progressToken");

	if (!token || (call->progress && now - call->progress_at < PROGRESS_INTERVAL_MS))
		return;
	call->progress_at = now;
	call->progress++;
	cordon_mcp_notify(call->request.channel, "notifications/progress",
			  json_pack("{s:O, s:I, s:s*}", "progressToken", token, "progress", (json_int_t)call->progress,
				    "message", message));
}

struct cordon_mcp_call *cordon_mcp_call_find(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel,
					     const json_t *id)
{
	for (struct cordon_mcp_call *call = mcp->calls; call; call = call->next)
		if (call->request.channel == channel && json_equal(call->request.id, id))
			return call;
	return NULL;
}

void cordon_mcp_call_cancel(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, const json_t *id)
{
	struct cordon_mcp_call *call = cordon_mcp_call_find(mcp, channel, id);

	if (!call)
		return;
	if (call->cancel)
		call->cancel(call);
	drop(mcp, call); /* and not a word more about it */
}

void cordon_mcp_calls_work(struct cordon_mcp *mcp, int64_t now)
{
	struct cordon_mcp_call *next;

	for (struct cordon_mcp_call *call = mcp->calls; call; call = next) {
		next = call->next;
		if (call->due <= now && call->step && call->step(call, now))
			drop(mcp, call);
	}
}

void cordon_mcp_calls_hang_up(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, bool cancel)
{
	struct cordon_mcp_call *next;

	for (struct cordon_mcp_call *call = mcp->calls; call; call = next) {
		next = call->next;
		if (call->request.channel != channel)
			continue;
		if (cancel && call->cancel)
			call->cancel(call);
		drop(mcp, call);
	}
}

bool cordon_mcp_calls_answered(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, const json_t *id,
			       const json_t *result)
{
	for (struct cordon_mcp_call *call = mcp->calls; call; call = call->next) {
		if (call->request.channel != channel || !call->asked || !json_equal(call->asked, id))
			continue;
		call->answered(call, result);
		drop(mcp, call);
		return true;
	}
	return false;
}
