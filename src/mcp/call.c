/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are not answered at once: they go on when they are due, can be cancelled, and send progress. */
#include <sys/epoll.h>

#include "mcp/internal.h"

#define PROGRESS_INTERVAL_MS 250
#define EVENTS_MAX 64

static void drop(struct cordon_mcp *mcp, struct cordon_mcp_call *call, bool cancel)
{
	struct cordon_mcp_call **link = &mcp->calls;

	while (*link != call)
		link = &(*link)->next;
	*link = call->next;
	mcp->n_calls--;
	cordon_mcp_call_wait(call, -1);
	if (call->child)
		cordon_mcp_apart_leave(call, cancel);
	if (call->drop)
		call->drop(call);
	json_decref(call->request.id);
	json_decref(call->request.params);
	json_decref(call->asked);
	free(call);
}

void cordon_mcp_call_drop(struct cordon_mcp_call *call)
{
	drop(call->request.mcp, call, false);
}

/* One client must not take the places of all the others. */
static bool has_room(const struct cordon_mcp_request *request)
{
	const char *principal = request->channel->principal;
	size_t own = 0;

	if (request->mcp->n_calls >= CORDON_MCP_CALLS_MAX || !principal)
		return request->mcp->n_calls < CORDON_MCP_CALLS_MAX;
	for (const struct cordon_mcp_call *call = request->mcp->calls; call; call = call->next)
		own += call->request.channel->principal && cordon_streq(call->request.channel->principal, principal);
	return own < CORDON_MCP_CALLS_OF_ONE;
}

struct cordon_mcp_call *cordon_mcp_call_begin(const struct cordon_mcp_request *request)
{
	struct cordon_mcp_call *call = has_room(request) ? calloc(1, sizeof(*call)) : NULL;

	if (!call)
		return NULL;
	call->request = *request;
	call->request.id = json_incref(request->id);
	call->request.params = json_incref(request->params);
	/* _meta is borrowed from params, which the call owns. It is NULL if the request had none, because the empty
	 * object that stood for it is freed with the request. */
	call->request.meta = json_object_get(request->params, "_meta");
	call->request.method = "tools/call";
	call->request.question = NULL; /* whoever asked has it */
	call->due = INT64_MAX;
	call->fd = -1;
	call->next = request->mcp->calls;
	request->mcp->calls = call;
	request->mcp->n_calls++;
	return call;
}

int cordon_mcp_call_wait(struct cordon_mcp_call *call, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	/* The descriptor is removed explicitly: a child that has not called exec yet has a copy of it, and epoll would
	 * go on reporting it. */
	if (call->fd >= 0)
		epoll_ctl(call->request.mcp->epoll_fd, EPOLL_CTL_DEL, call->fd, NULL);
	call->fd = -1;
	call->ready = false;
	if (fd < 0)
		return 0;
	if (epoll_ctl(call->request.mcp->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	call->fd = fd;
	return 0;
}

struct cordon_mcp_call *cordon_mcp_call_ask(const struct cordon_mcp_request *request, const char *method, json_t *params)
{
	struct cordon_mcp_call *call = cordon_mcp_call_begin(request);
	json_t *message;

	if (!call) {
		json_decref(params);
		return NULL;
	}
	call->asked = json_sprintf("cordon-%llu",
				   (unsigned long long)++cordon_mcp_session(request->channel)->next_request);
	message = json_pack("{s:s, s:O, s:s, s:o}", "jsonrpc", "2.0", "id", call->asked, "method", method, "params",
			    params);
	request->channel->send(request->channel, message);
	json_decref(message);
	return call;
}

bool cordon_mcp_call_may_progress(const struct cordon_mcp_call *call, int64_t now)
{
	return json_object_get(call->request.meta, "progressToken") &&
	       (!call->progress || now - call->progress_at >= PROGRESS_INTERVAL_MS);
}

void cordon_mcp_call_progress(struct cordon_mcp_call *call, int64_t now, const char *message)
{
	json_t *token = json_object_get(call->request.meta, "progressToken");

	if (!cordon_mcp_call_may_progress(call, now))
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
		if (cordon_mcp_session(call->request.channel) == cordon_mcp_session(channel) &&
		    json_equal(call->request.id, id))
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
	drop(mcp, call, true); /* a cancelled request gets no answer */
}

/* Marks the calls whose descriptor is readable. epoll reports those that do not fit here the next time. */
static void mark_ready(struct cordon_mcp *mcp)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(mcp->epoll_fd, events, EVENTS_MAX, 0);

	for (int i = 0; i < n; i++)
		for (struct cordon_mcp_call *call = mcp->calls; call; call = call->next)
			call->ready |= call->fd == events[i].data.fd;
}

void cordon_mcp_calls_work(struct cordon_mcp *mcp, int64_t now)
{
	struct cordon_mcp_call *next;

	if (mcp->calls)
		mark_ready(mcp);

	for (struct cordon_mcp_call *call = mcp->calls; call; call = next) {
		next = call->next;
		if ((call->due > now && !call->ready) || (!call->step && !call->child))
			continue;
		call->ready = false;
		if (call->child ? cordon_mcp_apart_step(call, now) : call->step(call, now))
			drop(mcp, call, false);
	}
}

void cordon_mcp_calls_close_channel(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, bool cancel)
{
	struct cordon_mcp_call *next;

	for (struct cordon_mcp_call *call = mcp->calls; call; call = next) {
		next = call->next;
		if (call->request.channel != channel)
			continue;
		if (cancel && call->cancel)
			call->cancel(call);
		drop(mcp, call, cancel);
	}
}

bool cordon_mcp_is_calling(const struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel)
{
	for (const struct cordon_mcp_call *call = mcp->calls; call; call = call->next)
		if (call->request.channel == channel)
			return true;
	return false;
}

bool cordon_mcp_calls_answered(struct cordon_mcp *mcp, const struct cordon_mcp_channel *channel, const json_t *id,
			       const json_t *result)
{
	for (struct cordon_mcp_call *call = mcp->calls; call; call = call->next) {
		if (cordon_mcp_session(call->request.channel) != cordon_mcp_session(channel) || !call->asked ||
		    !json_equal(call->asked, id))
			continue;
		call->answered(call, result);
		drop(mcp, call, false);
		return true;
	}
	return false;
}
