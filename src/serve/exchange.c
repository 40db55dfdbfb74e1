/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its answer. The dispatcher sends messages to the exchange: when the first is the answer, it is sent as
 * JSON; when something comes before it (progress, a question, an acknowledgement), or nothing comes for a while, the answer
 * is a stream of events. While there is nothing to send, libmicrohttpd does not look at the connection.
 */
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "mcp/internal.h"
#include "serve/internal.h"

#define BLOCK                                                                                                          \
	64 /* what libmicrohttpd takes from a stream at once, for a client without chunks; each stream has the memory */
#define PAGE_BLOCK 16384

struct cordon_exchange *cordon_exchange_new(struct cordon_server *server, struct cordon_connection *connection,
					    struct MHD_Connection *http, struct cordon_client *client)
{
	struct cordon_exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return NULL;
	exchange->server = server;
	exchange->connection = connection;
	exchange->http = http;
	exchange->client = client;
	exchange->status = MHD_HTTP_OK;
	exchange->body = (struct cordon_buf)CORDON_BUF(CORDON_MCP_MESSAGE_MAX);
	exchange->out = (struct cordon_buf)CORDON_BUF(CORDON_SERVE_OUT_MAX);
	connection->exchange = exchange;
	exchange->next = server->exchanges;
	if (exchange->next)
		exchange->next->previous = exchange;
	server->exchanges = exchange;
	return exchange;
}

/* Counts what the exchange has in memory now. */
static void hold(struct cordon_exchange *exchange, size_t bytes)
{
	if (exchange->client)
		exchange->client->held += bytes - exchange->held;
	exchange->held = bytes;
}

static bool is_crowded(const struct cordon_exchange *exchange)
{
	return exchange->client && exchange->client->held > CORDON_SERVE_HELD_MAX;
}

static void free_exchange(struct cordon_exchange *exchange)
{
	hold(exchange, 0);
	if (exchange->previous)
		exchange->previous->next = exchange->next;
	else
		exchange->server->exchanges = exchange->next;
	if (exchange->next)
		exchange->next->previous = exchange->previous;
	if (exchange->counted_stream)
		exchange->client->streams--;
	if (exchange->counted_waiting)
		exchange->client->waiting--;
	cordon_mcp_close_channel(exchange->server->mcp, &exchange->channel, false);
	cordon_http_session_drop(exchange->session);
	cordon_client_drop(exchange->server, exchange->client);
	cordon_buf_done(&exchange->body);
	cordon_buf_done(&exchange->out);
	free(exchange->session_id);
	if (exchange->page)
		cordon_exchange_page_done(exchange);
	free(exchange);
}

static void suspend(struct cordon_exchange *exchange)
{
	exchange->suspended = true;
	MHD_suspend_connection(exchange->http);
	cordon_connection_watch(exchange->server, exchange->connection);
}

void cordon_exchange_resume(struct cordon_exchange *exchange)
{
	if (!exchange->suspended || !exchange->http)
		return;
	exchange->suspended = false;
	MHD_resume_connection(exchange->http);
	/* libmicrohttpd forgets to wake us for one that is resumed while it runs. */
	exchange->server->resumed = true;
}

void cordon_exchange_finish(struct cordon_exchange *exchange)
{
	exchange->finished = true;
	cordon_exchange_resume(exchange);
}

/* A stream that nobody reads ends; what it would have said is lost. */
static void add_event(struct cordon_exchange *exchange, const char *begin, const char *text, const char *end)
{
	size_t before = exchange->out.len;

	if (!is_crowded(exchange) && cordon_buf_adds(&exchange->out, begin) == 0 &&
	    cordon_buf_adds(&exchange->out, text) == 0 && cordon_buf_adds(&exchange->out, end) == 0) {
		hold(exchange, exchange->out.len);
		return;
	}
	exchange->out.len = before;
	exchange->finished = true;
}

void cordon_exchange_event(struct cordon_exchange *exchange, const char *text)
{
	if (exchange->finished || exchange->gone)
		return;
	add_event(exchange, text, "", "");
	cordon_exchange_resume(exchange);
}

void cordon_exchange_stream(struct cordon_exchange *exchange)
{
	if (exchange->state == CORDON_EXCHANGE_STREAM)
		return;
	exchange->state = CORDON_EXCHANGE_STREAM;
	exchange->comment_due = cordon_time_monotonic() + CORDON_SERVE_COMMENT_MS;
	cordon_server_sweep_by(exchange->server, exchange->comment_due);
}

/* What mcp.md calls the order of rejection: a request that is wrong itself has a status of its own; one that fails has
 * not. */
static int status_of(const struct cordon_exchange *exchange, const json_t *message)
{
	const json_t *error = json_object_get(message, "error");

	if (!error)
		return MHD_HTTP_OK;
	switch (cordon_json_integer(error, "code")) {
	case CORDON_MCP_METHOD_NOT_FOUND:
		return exchange->modern ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK;
	case CORDON_MCP_PARSE_ERROR:
	case CORDON_MCP_INVALID_REQUEST:
	case CORDON_MCP_HEADER_MISMATCH:
	case CORDON_MCP_MISSING_CAPABILITY:
	case CORDON_MCP_UNSUPPORTED_VERSION:
		return MHD_HTTP_BAD_REQUEST;
	default:
		return exchange->channel.malformed ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_OK;
	}
}

static void send_message(struct cordon_mcp_channel *channel, const json_t *message)
{
	struct cordon_exchange *exchange = channel->data;
	bool final = !exchange->is_stream || exchange->modern ? !json_object_get(message, "method") : false;
	autofree char *text = NULL;

	if (exchange->finished)
		return;
	text = exchange->gone ? NULL : json_dumps(message, JSON_COMPACT);
	if (text && final && exchange->state != CORDON_EXCHANGE_STREAM) {
		exchange->status = status_of(exchange, message);
		if (cordon_buf_adds(&exchange->out, text) < 0)
			exchange->status = MHD_HTTP_INSUFFICIENT_STORAGE;
		hold(exchange, exchange->out.len);
		exchange->state = CORDON_EXCHANGE_ANSWER;
	} else if (text && exchange->takes_events) {
		cordon_exchange_stream(exchange);
		add_event(exchange, "event: message\ndata: ", text, "\n\n");
	}
	if (final) {
		exchange->finished = true;
		cordon_server_sweep_by(exchange->server, cordon_time_monotonic());
	}
	cordon_exchange_resume(exchange);
}

void cordon_exchange_refuse(struct cordon_exchange *exchange, int status, const char *why)
{
	exchange->state = CORDON_EXCHANGE_ANSWER;
	exchange->status = status;
	exchange->finished = true;
	cordon_buf_reset(&exchange->out);
	cordon_buf_addf(&exchange->out, "%s\n", why);
}

/* The same for a message that was read: the error has its id. */
static void refuse_message(struct cordon_exchange *exchange, int status, json_t *message, const char *why)
{
	struct cordon_mcp_fault fault = { 0 };

	cordon_mcp_fail(&fault, CORDON_MCP_INVALID_REQUEST, "%s", why);
	cordon_mcp_send_fault(&exchange->channel, json_object_get(message, "id"), &fault);
	exchange->status = status;
}

static const char *header(const struct cordon_exchange *exchange, const char *name)
{
	return MHD_lookup_connection_value(exchange->http, MHD_HEADER_KIND, name);
}

/* A request of the legacy era belongs to a session, which initialize begins. */
static int join_session(struct cordon_exchange *exchange, json_t *message)
{
	const char *version = exchange->channel.headers->version;
	const char *id = header(exchange, CORDON_SESSION_HEADER);

	if (version && !cordon_mcp_speaks(version)) {
		refuse_message(exchange, MHD_HTTP_BAD_REQUEST, message, "MCP-Protocol-Version is not supported");
		return -EINVAL;
	}
	if (cordon_json_is(message, "method", "initialize"))
		return 0;
	if (!id) {
		refuse_message(exchange, MHD_HTTP_BAD_REQUEST, message,
			       "neither a request of protocol " CORDON_MCP_MODERN
			       " nor of a session: " CORDON_SESSION_HEADER " is missing");
		return -EINVAL;
	}
	if (cordon_http_session_find(exchange->server, exchange->client, id, &exchange->channel, &exchange->session) <
	    0) {
		refuse_message(exchange, MHD_HTTP_NOT_FOUND, message, "there is no such session; initialize again");
		return -EINVAL;
	}
	/* A question needs a stream. A client that takes none can't be asked. */
	if (!exchange->takes_events) {
		json_decref(exchange->channel.capabilities);
		exchange->channel.capabilities = json_object();
	}
	return 0;
}

/* A call that the client cancelled gets no answer, so its response ends without one. */
static void end_cancelled(const struct cordon_exchange *by)
{
	for (struct cordon_exchange *other = by->server->exchanges; other; other = other->next) {
		if (other == by || !other->session || other->session != by->session || other->finished ||
		    other->is_stream || other->state == CORDON_EXCHANGE_READING ||
		    cordon_mcp_is_calling(by->server->mcp, &other->channel))
			continue;
		cordon_exchange_stream(other);
		cordon_exchange_finish(other);
	}
}

static void dispatch(struct cordon_exchange *exchange, json_t *message, const char *why)
{
	const char *method = cordon_json_string(message, "method");
	autobuf struct cordon_buf id = CORDON_BUF(CORDON_SESSION_TEXT_MAX);
	bool initializes = method && cordon_streq(method, "initialize") && !exchange->modern;

	exchange->asks = json_object_get(message, "id") && method;
	exchange->is_stream = exchange->modern && exchange->asks && cordon_streq(method, "subscriptions/listen");
	if (exchange->asks && exchange->is_stream && exchange->client->streams >= CORDON_SERVE_STREAMS_MAX) {
		refuse_message(exchange, MHD_HTTP_TOO_MANY_REQUESTS, message, "too many streams; close one first");
		return;
	}
	if (exchange->asks && exchange->client->waiting >= CORDON_SERVE_STREAMS_MAX &&
	    cordon_streq(method, "tools/call")) {
		refuse_message(exchange, MHD_HTTP_TOO_MANY_REQUESTS, message, "too many calls are waiting");
		return;
	}
	if (exchange->is_stream && !exchange->takes_events) {
		refuse_message(exchange, MHD_HTTP_NOT_ACCEPTABLE, message,
			       "a subscription is a stream: accept text/event-stream");
		return;
	}
	if (exchange->asks && exchange->session && cordon_streq(method, "resources/subscribe") &&
	    !cordon_http_session_may_subscribe(exchange->session)) {
		refuse_message(exchange, MHD_HTTP_TOO_MANY_REQUESTS, message,
			       "too many sessions have subscriptions; end some first");
		return;
	}
	cordon_mcp_take(exchange->server->mcp, &exchange->channel, message, why);
	if (exchange->session)
		cordon_http_session_subscribed(exchange->session);
	if (initializes && exchange->channel.initialized &&
	    cordon_session_id_make(exchange->server, &exchange->channel, &id) == 0)
		exchange->session_id = cordon_buf_steal(&id);
	if (!exchange->asks && exchange->session)
		end_cancelled(exchange);
}

void cordon_exchange_read(struct cordon_exchange *exchange, const char *bytes, size_t n)
{
	if (exchange->state != CORDON_EXCHANGE_READING || exchange->too_long || exchange->crowded)
		return;
	exchange->crowded = is_crowded(exchange);
	exchange->too_long = !exchange->crowded && cordon_buf_add(&exchange->body, bytes, n) < 0;
	if (exchange->too_long || exchange->crowded)
		cordon_buf_done(&exchange->body);
	hold(exchange, exchange->body.len);
}

void cordon_exchange_take(struct cordon_exchange *exchange)
{
	const struct cordon_mcp_headers headers = {
		.version = header(exchange, "MCP-Protocol-Version"),
		.method = header(exchange, "Mcp-Method"),
		.name = header(exchange, "Mcp-Name"),
	};
	json_error_t where;
	json_auto_t *message = exchange->too_long || exchange->crowded
				       ? NULL
				       : json_loadb(exchange->body.data ? exchange->body.data : "", exchange->body.len,
						    JSON_REJECT_DUPLICATES, &where);

	cordon_buf_done(&exchange->body);
	hold(exchange, 0);
	exchange->state = CORDON_EXCHANGE_WAITING;
	exchange->connection->complete = true;
	exchange->channel = (struct cordon_mcp_channel){
		.send = send_message,
		.data = exchange,
		.principal = exchange->client->name,
		.headers = &headers,
		.grant = *exchange->client->token_id ? &exchange->client->grant : NULL,
	};
	exchange->modern = cordon_mcp_is_modern(message, &headers);
	if (exchange->too_long)
		cordon_exchange_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "a body has at most 4 MiB");
	else if (exchange->crowded)
		cordon_exchange_refuse(exchange, MHD_HTTP_TOO_MANY_REQUESTS, CORDON_SERVE_CROWDED);
	else if (!json_is_object(message) || exchange->modern || join_session(exchange, message) == 0)
		dispatch(exchange, message, where.text);
	exchange->channel.headers = NULL;
	/* A notification, or the answer to a question of ours. */
	if (exchange->state == CORDON_EXCHANGE_WAITING && !exchange->asks) {
		exchange->state = CORDON_EXCHANGE_ANSWER;
		exchange->status = MHD_HTTP_ACCEPTED;
		exchange->finished = true;
	}
	if (!exchange->finished && exchange->is_stream) {
		exchange->counted_stream = true;
		exchange->client->streams++;
	} else if (!exchange->finished) {
		exchange->counted_waiting = true;
		exchange->client->waiting++;
		exchange->comment_due = cordon_time_monotonic() + CORDON_SERVE_COMMENT_MS;
		cordon_server_sweep_by(exchange->server, exchange->comment_due);
	}
}

void cordon_exchange_listen(struct cordon_exchange *exchange, struct cordon_http_session *session)
{
	exchange->session = session;
	exchange->connection->complete = true;
	exchange->channel.send = send_message;
	exchange->channel.data = exchange;
	exchange->channel.session = NULL;
	exchange->is_stream = true;
	exchange->takes_events = true;
	exchange->counted_stream = true;
	exchange->client->streams++;
	/* A client that lost its stream opens another one before we notice: the new one counts. */
	if (session->stream)
		cordon_exchange_finish(session->stream);
	session->stream = exchange;
	cordon_exchange_stream(exchange);
	add_event(exchange, ": ", "listening", "\n\n");
	cordon_mcp_listen_lists(exchange->server->mcp, &session->channel);
}

static ssize_t read_stream(void *data, uint64_t position, char *bytes, size_t max)
{
	struct cordon_exchange *exchange = data;
	size_t n = exchange->out.len - exchange->sent;

	(void)position;
	if (exchange->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n == 0 && exchange->finished)
		return exchange->page && exchange->page->broken ? MHD_CONTENT_READER_END_WITH_ERROR
								: MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0) {
		if (exchange->page && exchange->page->worker)
			cordon_worker_more(exchange->page->worker);
		suspend(exchange);
		return 0;
	}
	if (n > max)
		n = max;
	memcpy(bytes, exchange->out.data + exchange->sent, n);
	exchange->sent += n;
	if (exchange->sent == exchange->out.len) {
		cordon_buf_done(&exchange->out); /* an idle stream has no memory of its own */
		exchange->out.max = CORDON_SERVE_OUT_MAX;
		exchange->sent = 0;
		hold(exchange, 0);
	}
	return (ssize_t)n;
}

static struct MHD_Response *make_response(struct cordon_exchange *exchange)
{
	bool json = exchange->out.len && *exchange->out.data == '{';
	size_t n = exchange->out.len;
	struct MHD_Response *response;
	char *text;

	if (exchange->page && exchange->page->asset)
		return MHD_create_response_from_buffer(exchange->page->asset_size,
						       (void *)(uintptr_t)exchange->page->asset, MHD_RESPMEM_PERSISTENT);
	if (exchange->state == CORDON_EXCHANGE_STREAM) {
		bool page = exchange->page && !exchange->page->live;

		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, page ? PAGE_BLOCK : BLOCK, read_stream,
							     exchange, NULL);
		if (response && !page) {
			MHD_add_response_header(response, "Content-Type", "text/event-stream");
			MHD_add_response_header(response, "X-Accel-Buffering", "no");
		}
		return response;
	}
	text = cordon_buf_steal(&exchange->out);
	response = text ? MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE) : NULL;
	if (response && n && !exchange->page)
		MHD_add_response_header(response, "Content-Type",
					json ? "application/json" : "text/plain; charset=utf-8");
	return response;
}

static enum MHD_Result queue(struct cordon_exchange *exchange)
{
	struct MHD_Response *response = make_response(exchange);
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	/* One request for each connection, so that every head is seen by head.c. */
	MHD_add_response_header(response, "Connection", "close");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (exchange->page)
		cordon_exchange_page_headers(exchange, response);
	if (!exchange->page || !exchange->page->asset)
		MHD_add_response_header(response, "Cache-Control", "no-store");
	if (exchange->session_id)
		MHD_add_response_header(response, CORDON_SESSION_HEADER, exchange->session_id);
	if (exchange->status == MHD_HTTP_UNAUTHORIZED && !exchange->page)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (exchange->status == MHD_HTTP_TOO_MANY_REQUESTS)
		MHD_add_response_header(response, "Retry-After", "1");
	if (exchange->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, POST, DELETE");
	exchange->queued = true;
	r = MHD_queue_response(exchange->http, (unsigned int)exchange->status, response);
	MHD_destroy_response(response);
	return r;
}

enum MHD_Result cordon_exchange_proceed(struct cordon_exchange *exchange)
{
	if (exchange->gone)
		return MHD_NO;
	if (exchange->queued)
		return MHD_YES;
	if (exchange->state == CORDON_EXCHANGE_WAITING) {
		if (exchange->connection->gone) {
			cordon_exchange_leave(exchange);
			return MHD_NO;
		}
		suspend(exchange);
		return MHD_YES;
	}
	return queue(exchange);
}

void cordon_exchange_leave(struct cordon_exchange *exchange)
{
	if (exchange->gone)
		return;
	exchange->gone = true;
	if (exchange->page && exchange->page->worker)
		cordon_worker_leave(exchange->page->worker);
	if (exchange->session && exchange->session->stream == exchange)
		exchange->session->stream = NULL;
	if (exchange->modern || exchange->is_stream || exchange->state == CORDON_EXCHANGE_READING ||
	    !cordon_mcp_is_calling(exchange->server->mcp, &exchange->channel)) {
		exchange->finished = true;
		cordon_mcp_close_channel(exchange->server->mcp, &exchange->channel, exchange->modern);
	}
	cordon_exchange_resume(exchange);
	cordon_server_sweep_by(exchange->server, cordon_time_monotonic());
}

void cordon_exchange_completed(struct cordon_exchange *exchange)
{
	exchange->suspended = false;
	if (exchange->connection)
		exchange->connection->exchange = NULL;
	exchange->connection = NULL;
	exchange->http = NULL;
	cordon_exchange_leave(exchange);
	if (exchange->finished)
		free_exchange(exchange);
}

int64_t cordon_exchanges_sweep(struct cordon_server *server, int64_t now)
{
	struct cordon_exchange *next;
	int64_t due = INT64_MAX;

	for (struct cordon_exchange *exchange = server->exchanges; exchange; exchange = next) {
		next = exchange->next;
		if (exchange->finished && !exchange->http) {
			free_exchange(exchange);
			continue;
		}
		if (exchange->finished || exchange->gone || exchange->state == CORDON_EXCHANGE_READING ||
		    exchange->state == CORDON_EXCHANGE_ANSWER)
			continue;
		if (exchange->page && exchange->page->live && cordon_exchange_page_expired(exchange)) {
			cordon_exchange_finish(exchange);
			continue;
		}
		if (exchange->comment_due <= now) {
			exchange->comment_due = now + CORDON_SERVE_COMMENT_MS;
			/* A client that does not read gets no more of them. */
			if (exchange->takes_events && exchange->out.len == 0) {
				exchange->state = CORDON_EXCHANGE_STREAM;
				add_event(exchange, ":", "", "\n\n");
				cordon_exchange_resume(exchange);
			}
		}
		if (exchange->comment_due < due)
			due = exchange->comment_due;
	}
	return due;
}

void cordon_exchanges_end(struct cordon_server *server, bool all)
{
	for (struct cordon_exchange *exchange = server->exchanges; exchange; exchange = exchange->next) {
		if (!all && (!exchange->client || !exchange->client->revoked))
			continue;
		/* INVARIANT: what a revoked client began does not go on, also when the client has gone. */
		if (!all) {
			cordon_mcp_close_channel(server->mcp, &exchange->channel, true);
			exchange->finished = true;
		}
		if (all && exchange->modern && exchange->is_stream && !exchange->finished) {
			cordon_mcp_close_channel(server->mcp, &exchange->channel, false); /* answers a listen */
			continue;
		}
		if (all && exchange->state == CORDON_EXCHANGE_STREAM && exchange->is_stream) {
			cordon_exchange_finish(exchange);
		} else if (!exchange->finished || !all) {
			/* When the server stops, the work goes on without its client. */
			exchange->modern = exchange->modern && !all;
			cordon_exchange_leave(exchange);
		}
	}
}
