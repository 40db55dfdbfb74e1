/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its answer. The dispatcher sends messages to the exchange: when the first is the answer, it is sent
 * as JSON; when something comes before it (progress, a question, an acknowledgement), or nothing comes for a while, the
 * answer is a stream of events. While there is nothing to send, libmicrohttpd does not look at the connection.
 *
 * The second half is the side of libmicrohttpd: the checks before a body is read, and the routes.
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

static struct cordon_exchange *exchange_new(struct cordon_server *server, struct cordon_connection *connection,
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

/* A stream that nobody reads ends; what it would have sent is lost. */
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

/* Answers with a status and a JSON-RPC error without id, before or instead of the dispatcher. */
static void exchange_refuse(struct cordon_exchange *exchange, int status, const char *why)
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

/* Takes a part of the body. */
static void exchange_read(struct cordon_exchange *exchange, const char *bytes, size_t n)
{
	if (exchange->state != CORDON_EXCHANGE_READING || exchange->too_long || exchange->crowded)
		return;
	exchange->crowded = is_crowded(exchange);
	exchange->too_long = !exchange->crowded && cordon_buf_add(&exchange->body, bytes, n) < 0;
	if (exchange->too_long || exchange->crowded)
		cordon_buf_done(&exchange->body);
	hold(exchange, exchange->body.len);
}

/* Handles a whole body of a POST. Afterwards the exchange is in another state than READING. */
static void exchange_take(struct cordon_exchange *exchange)
{
	const struct cordon_mcp_headers headers = {
		.version = header(exchange, "MCP-Protocol-Version"),
		.method = header(exchange, "Mcp-Method"),
		.name = header(exchange, "Mcp-Name"),
	};
	json_error_t where;
	json_auto_t *message = exchange->too_long || exchange->crowded
				       ? NULL
				       : cordon_mcp_parse(exchange->body.data ? exchange->body.data : "",
							  exchange->body.len, &where);

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
		exchange_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "a body has at most 4 MiB");
	else if (exchange->crowded)
		exchange_refuse(exchange, MHD_HTTP_TOO_MANY_REQUESTS, CORDON_SERVE_CROWDED);
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

/* Begins the stream of a GET; takes the reference to the session. */
static void exchange_listen(struct cordon_exchange *exchange, struct cordon_http_session *session)
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
					exchange->metrics ? CORDON_SERVE_METRICS_TYPE
					: json		  ? "application/json"
							  : "text/plain; charset=utf-8");
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

/* Queues the response when there is one, or suspends the connection until there is. */
static enum MHD_Result exchange_proceed(struct cordon_exchange *exchange)
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

/* libmicrohttpd has forgotten the request. */
static void exchange_completed(struct cordon_exchange *exchange)
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

/* ---- requests ---- */

#define SMALL_POOL 2560 /* memory of a connection; an idle stream keeps it */
#define LARGE_POOL 49152
#define SMALL_BODY 4096
#define HEADER_SIZE 64	   /* what libmicrohttpd takes for each header beside its text */
#define RESPONSE_SIZE 1024 /* is left for the head of the answer */
#define IDLE_SECONDS 30	   /* of a client that does not read its answer */

/* Which methods a path has. */
static const struct route {
	const char *path, *method;
	bool needs_token;
} routes[] = {
	{ "/mcp", "POST", true }, /* page.c has those of the page */
	{ "/mcp", "GET", true },  { "/mcp", "DELETE", true }, { "/metrics", "GET", true }, { "/health", "GET", false },
};

static const char *header_of(struct MHD_Connection *http, const char *name)
{
	return MHD_lookup_connection_value(http, MHD_HEADER_KIND, name);
}

/* Returns 0, or a status. A path that is none of these is one of the page. */
static int find_route(const char *path, const char *method, const struct route **ret_route)
{
	int status = cordon_page_status(path, method);

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(routes); i++) {
		if (!cordon_streq(routes[i].path, path))
			continue;
		status = MHD_HTTP_METHOD_NOT_ALLOWED;
		if (cordon_streq(routes[i].method, method)) {
			*ret_route = &routes[i];
			return 0;
		}
	}
	return status == MHD_HTTP_OK ? 0 : status;
}

/* Names of hosts have no case. */
static bool is_host(const struct cordon_server *server, const struct cordon_listener *listener, const char *host)
{
	for (size_t i = 0; i < listener->n_hosts; i++)
		if (strcasecmp(listener->hosts[i], host) == 0)
			return true;
	for (size_t i = 0; i < server->options->n_hosts; i++)
		if (strcasecmp(server->options->hosts[i], host) == 0)
			return true;
	return false;
}

/* Programs send no Origin; a browser sends one, and only a page of this server itself is welcome. */
static bool is_origin(const struct cordon_server *server, const struct cordon_listener *listener, const char *origin)
{
	static const char plain[] = "http://", secure[] = "https://";

	if (!origin)
		return true;
	if (strncasecmp(origin, plain, sizeof(plain) - 1) == 0)
		return is_host(server, listener, origin + sizeof(plain) - 1);
	if (strncasecmp(origin, secure, sizeof(secure) - 1) != 0)
		return false;
	/* A front ends TLS for a name that the operator gave. */
	for (size_t i = 0; i < server->options->n_hosts; i++)
		if (strcasecmp(server->options->hosts[i], origin + sizeof(secure) - 1) == 0)
			return true;
	return false;
}

static struct cordon_client *authenticate(struct cordon_server *server, const struct cordon_connection *connection,
					  struct MHD_Connection *http)
{
	static const char scheme[] = "Bearer ";
	const char *given = header_of(http, MHD_HTTP_HEADER_AUTHORIZATION);

	if (connection->listener->local || server->options->open)
		return cordon_client_by_uid(server, geteuid());
	if (!given || strncasecmp(given, scheme, sizeof(scheme) - 1) != 0)
		return NULL;
	given += sizeof(scheme) - 1;
	while (*given == ' ')
		given++;
	return cordon_client_by_token(server, given);
}

/* "application/json; charset=utf-8" is JSON too. */
static bool is_json(const char *type)
{
	static const char json[] = "application/json";
	size_t n = type ? strcspn(type, " ;\t") : 0;

	return n == sizeof(json) - 1 && strncasecmp(type, json, n) == 0;
}

static int check_body(struct MHD_Connection *http, const char **ret_why)
{
	const char *length = header_of(http, MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *accept = header_of(http, MHD_HTTP_HEADER_ACCEPT);
	uint64_t n;

	*ret_why = "the content type must be application/json";
	if (!is_json(header_of(http, MHD_HTTP_HEADER_CONTENT_TYPE)))
		return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
	*ret_why = "accept application/json and text/event-stream";
	if (accept && !strstr(accept, "application/json") && !strstr(accept, "text/event-stream") &&
	    !strstr(accept, "*/*") && !strstr(accept, "application/*"))
		return MHD_HTTP_NOT_ACCEPTABLE;
	*ret_why = "a body has at most 4 MiB";
	if (length && (cordon_parse_u64(length, 0, UINT64_MAX, &n) < 0 || n > CORDON_MCP_MESSAGE_MAX))
		return MHD_HTTP_CONTENT_TOO_LARGE;
	return 0;
}

/* The checks, in their order. Returns 0 or a status with *ret_why. */
static int check(struct cordon_server *server, const struct cordon_connection *connection, struct MHD_Connection *http,
		 const char *path, const char *method, struct cordon_client **ret_client, bool *ret_is_page,
		 const char **ret_why)
{
	const char *host = header_of(http, MHD_HTTP_HEADER_HOST);
	const struct route *route = NULL;
	int status = find_route(path, method, &route);

	*ret_why = status == MHD_HTTP_NOT_FOUND ? "there is nothing here" : "not with this method";
	if (status)
		return status;
	*ret_why = "Host is not an address of this server";
	if (!host || !is_host(server, connection->listener, host))
		return MHD_HTTP_FORBIDDEN;
	*ret_why = "requests of other sites are refused";
	if (!is_origin(server, connection->listener, header_of(http, MHD_HTTP_HEADER_ORIGIN)))
		return MHD_HTTP_FORBIDDEN;
	*ret_is_page = !route || connection->listener->control;
	if (*ret_is_page)
		*ret_client = cordon_client_by_uid(server, geteuid());
	if (*ret_is_page || !route->needs_token)
		return 0;
	*ret_client = authenticate(server, connection, http);
	*ret_why = "a valid token is needed: Authorization: Bearer TOKEN; see 'cordon token create'";
	if (!*ret_client)
		return MHD_HTTP_UNAUTHORIZED;
	*ret_why = "too many calls in a second";
	if (!cordon_client_may_call(*ret_client, cordon_time_monotonic()))
		return MHD_HTTP_TOO_MANY_REQUESTS;
	*ret_why = CORDON_SERVE_CROWDED;
	if ((*ret_client)->held > CORDON_SERVE_HELD_MAX)
		return MHD_HTTP_TOO_MANY_REQUESTS;
	return cordon_streq(method, "POST") ? check_body(http, ret_why) : 0;
}

/* GET and DELETE belong to the legacy era. */
static void serve_session(struct cordon_exchange *exchange, const char *method)
{
	const char *version = header_of(exchange->http, "MCP-Protocol-Version");
	const char *id = header_of(exchange->http, CORDON_SESSION_HEADER);
	struct cordon_http_session *session;
	struct cordon_error err = { 0 };

	if (version && strcmp(version, CORDON_MCP_MODERN) >= 0) {
		exchange_refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, "this protocol version has only POST");
	} else if (!id || (version && !cordon_mcp_speaks(version))) {
		exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
				id ? "MCP-Protocol-Version is not supported" : CORDON_SESSION_HEADER " is missing");
	} else if (cordon_http_session_find(exchange->server, exchange->client, id, &exchange->channel, &session) < 0) {
		exchange_refuse(exchange, MHD_HTTP_NOT_FOUND, "there is no such session; initialize again");
	} else if (cordon_streq(method, "GET") && !exchange->takes_events) {
		cordon_http_session_drop(session);
		exchange_refuse(exchange, MHD_HTTP_NOT_ACCEPTABLE, "accept text/event-stream");
	} else if (cordon_streq(method, "GET") && exchange->client->streams >= CORDON_SERVE_STREAMS_MAX) {
		cordon_http_session_drop(session);
		exchange_refuse(exchange, MHD_HTTP_TOO_MANY_REQUESTS, "too many streams; close one first");
	} else if (cordon_streq(method, "GET")) {
		exchange_listen(exchange, session);
	} else {
		int r = cordon_http_session_end(session, &err);

		if (r == 0 && session->stream)
			cordon_exchange_finish(session->stream);
		cordon_http_session_drop(session);
		exchange_refuse(exchange, r == 0 ? MHD_HTTP_OK : MHD_HTTP_TOO_MANY_REQUESTS,
				r == 0 ? "the session has ended" : err.message);
	}
}

/* The numbers are about all projects, so a token of some of them is not enough. */
static void serve_metrics(struct cordon_exchange *exchange)
{
	struct cordon_server *server = exchange->server;
	struct cordon_error err = { 0 };

	if (json_array_size(exchange->client->projects)) {
		exchange_refuse(exchange, MHD_HTTP_FORBIDDEN, "this token is for some projects only");
		return;
	}
	exchange_refuse(exchange, MHD_HTTP_OK, "");
	cordon_buf_reset(&exchange->out);
	if (cordon_serve_metrics(&server->counts, server->store, server->options->metrics_labels, &exchange->out,
				 &err) < 0)
		exchange_refuse(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, err.message);
	else
		exchange->metrics = true;
	hold(exchange, exchange->out.len);
}

static enum MHD_Result begin(struct cordon_server *server, struct MHD_Connection *http, const char *path,
			     const char *method, void **ret_exchange)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct cordon_connection *connection = info ? cordon_connection_by_fd(server, info->connect_fd) : NULL;
	const char *accept = header_of(http, MHD_HTTP_HEADER_ACCEPT);
	struct cordon_client *client = NULL;
	struct cordon_exchange *exchange;
	const char *why = NULL;
	bool is_page = false, reads;
	int status;

	if (!connection)
		return MHD_NO;
	status = check(server, connection, http, path, method, &client, &is_page, &why);
	exchange = exchange_new(server, connection, http, client);
	if (!exchange) {
		cordon_client_drop(server, client);
		return MHD_NO;
	}
	*ret_exchange = exchange;
	if (is_page) {
		if (cordon_exchange_page(exchange) < 0)
			return MHD_NO;
		cordon_exchange_page_route(exchange, path, method, &reads);
		connection->complete = !reads;
		return reads ? MHD_YES : exchange_proceed(exchange);
	}
	exchange->takes_events = accept && (strstr(accept, "text/event-stream") || strstr(accept, "*/*"));
	if (!status && cordon_streq(method, "POST"))
		return MHD_YES;
	connection->complete = true;
	if (status)
		exchange_refuse(exchange, status, why);
	else if (client && cordon_streq(path, "/metrics"))
		serve_metrics(exchange);
	else if (client)
		serve_session(exchange, method);
	else
		exchange_refuse(exchange, MHD_HTTP_OK, "ok");
	return exchange_proceed(exchange);
}

static enum MHD_Result handle(void *data, struct MHD_Connection *http, const char *path, const char *method,
			      const char *version, const char *bytes, size_t *n, void **state)
{
	struct cordon_exchange *exchange = *state;

	(void)version;
	if (!exchange)
		return begin(data, http, path, method, state);
	if (*n) {
		exchange_read(exchange, bytes, *n);
		*n = 0;
		return MHD_YES;
	}
	if (exchange->state == CORDON_EXCHANGE_READING && exchange->page)
		cordon_exchange_page_form(exchange, path);
	else if (exchange->state == CORDON_EXCHANGE_READING)
		exchange_take(exchange);
	return exchange_proceed(exchange);
}

static void completed(void *data, struct MHD_Connection *http, void **state, enum MHD_RequestTerminationCode code)
{
	(void)data, (void)http, (void)code;
	if (*state)
		exchange_completed(*state);
	*state = NULL;
}

static void notify(void *data, struct MHD_Connection *http, void **state, enum MHD_ConnectionNotificationCode code)
{
	struct cordon_server *server = data;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct cordon_connection *connection = info ? cordon_connection_by_fd(server, info->connect_fd) : NULL;

	(void)state;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED && connection)
		cordon_connection_closed(server, connection);
}

static struct MHD_Daemon *start(struct cordon_server *server, size_t pool)
{
	/* Turbo: it reads and writes before it waits, and most requests are there when it gets their connection. */
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0,
				NULL, NULL, handle, server, MHD_OPTION_NOTIFY_COMPLETED, completed, server,
				MHD_OPTION_NOTIFY_CONNECTION, notify, server, MHD_OPTION_CONNECTION_MEMORY_LIMIT, pool,
				MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)1024, MHD_OPTION_CONNECTION_LIMIT,
				(unsigned int)server->max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
				(unsigned int)IDLE_SECONDS, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

int cordon_http_start(struct cordon_server *server, struct cordon_error *err)
{
	static const size_t pools[] = { [CORDON_HTTP_SMALL] = SMALL_POOL, [CORDON_HTTP_LARGE] = LARGE_POOL };

	for (size_t i = 0; i < CORDON_HTTP__MAX; i++) {
		server->http[i] = start(server, pools[i]);
		if (!server->http[i])
			return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "libmicrohttpd can't be used");
	}
	return 0;
}

void cordon_http_stop(struct cordon_server *server)
{
	for (size_t i = 0; i < CORDON_HTTP__MAX; i++)
		if (server->http[i])
			MHD_stop_daemon(server->http[i]);
}

/* Head and body of most requests are small. */
static bool is_small(const struct cordon_head *head)
{
	/* The page has a cookie, and its first requests have a query. Its answers have long heads. */
	return !head->query && head->size + HEADER_SIZE * head->lines <= SMALL_POOL - RESPONSE_SIZE &&
	       head->body <= SMALL_BODY && !head->cookie;
}

int cordon_http_hand_over(struct cordon_server *server, struct cordon_connection *connection,
			  const struct cordon_head *head)
{
	struct MHD_Daemon *daemon = server->http[is_small(head) ? CORDON_HTTP_SMALL : CORDON_HTTP_LARGE];
	struct sockaddr_storage nobody = { .ss_family = AF_UNIX };

	connection->handed = true;
	/* On failure it closes the descriptor. */
	return MHD_add_connection(daemon, connection->fd, (struct sockaddr *)&nobody, sizeof(sa_family_t)) == MHD_YES
		       ? 0
		       : -EIO;
}

void cordon_http_run(struct cordon_server *server)
{
	for (size_t i = 0; i < CORDON_HTTP__MAX; i++) {
		const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->http[i],
								       MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

		if (!info || info->num_connections)
			MHD_run(server->http[i]);
	}
}

int cordon_http_timeout(const struct cordon_server *server)
{
	int least = -1;

	for (size_t i = 0; i < CORDON_HTTP__MAX; i++) {
		MHD_UNSIGNED_LONG_LONG ms;

		if (MHD_get_timeout(server->http[i], &ms) == MHD_YES && (least < 0 || ms < (MHD_UNSIGNED_LONG_LONG)least))
			least = ms > 60000 ? 60000 : (int)ms;
	}
	return least;
}
