/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd: the checks before a body is read, and the routes. */
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/time.h"
#include "serve/internal.h"

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
	{ "/mcp", "GET", true },
	{ "/mcp", "DELETE", true },
	{ "/health", "GET", false },
};

static const char *header(struct MHD_Connection *http, const char *name)
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
	const char *given = header(http, MHD_HTTP_HEADER_AUTHORIZATION);

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
	const char *length = header(http, MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *accept = header(http, MHD_HTTP_HEADER_ACCEPT);
	uint64_t n;

	*ret_why = "the content type must be application/json";
	if (!is_json(header(http, MHD_HTTP_HEADER_CONTENT_TYPE)))
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
	const char *host = header(http, MHD_HTTP_HEADER_HOST);
	const struct route *route = NULL;
	int status = find_route(path, method, &route);

	*ret_why = status == MHD_HTTP_NOT_FOUND ? "there is nothing here" : "not with this method";
	if (status)
		return status;
	*ret_why = "Host is not an address of this server";
	if (!host || !is_host(server, connection->listener, host))
		return MHD_HTTP_FORBIDDEN;
	*ret_why = "requests of other sites are refused";
	if (!is_origin(server, connection->listener, header(http, MHD_HTTP_HEADER_ORIGIN)))
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
	const char *version = header(exchange->http, "MCP-Protocol-Version");
	const char *id = header(exchange->http, CORDON_SESSION_HEADER);
	struct cordon_http_session *session;
	struct cordon_error err = { 0 };

	if (version && strcmp(version, CORDON_MCP_MODERN) >= 0) {
		cordon_exchange_refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, "this protocol version has only POST");
	} else if (!id || (version && !cordon_mcp_speaks(version))) {
		cordon_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
				       id ? "MCP-Protocol-Version is not supported"
					  : CORDON_SESSION_HEADER " is missing");
	} else if (cordon_http_session_find(exchange->server, exchange->client, id, &exchange->channel, &session) < 0) {
		cordon_exchange_refuse(exchange, MHD_HTTP_NOT_FOUND, "there is no such session; initialize again");
	} else if (cordon_streq(method, "GET") && !exchange->takes_events) {
		cordon_http_session_drop(session);
		cordon_exchange_refuse(exchange, MHD_HTTP_NOT_ACCEPTABLE, "accept text/event-stream");
	} else if (cordon_streq(method, "GET") && exchange->client->streams >= CORDON_SERVE_STREAMS_MAX) {
		cordon_http_session_drop(session);
		cordon_exchange_refuse(exchange, MHD_HTTP_TOO_MANY_REQUESTS, "too many streams; close one first");
	} else if (cordon_streq(method, "GET")) {
		cordon_exchange_listen(exchange, session);
	} else {
		int r = cordon_http_session_end(session, &err);

		if (r == 0 && session->stream)
			cordon_exchange_finish(session->stream);
		cordon_http_session_drop(session);
		cordon_exchange_refuse(exchange, r == 0 ? MHD_HTTP_OK : MHD_HTTP_TOO_MANY_REQUESTS,
				       r == 0 ? "the session has ended" : err.message);
	}
}

static enum MHD_Result begin(struct cordon_server *server, struct MHD_Connection *http, const char *path,
			     const char *method, void **ret_exchange)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct cordon_connection *connection = info ? cordon_connection_by_fd(server, info->connect_fd) : NULL;
	const char *accept = header(http, MHD_HTTP_HEADER_ACCEPT);
	struct cordon_client *client = NULL;
	struct cordon_exchange *exchange;
	const char *why = NULL;
	bool is_page = false, reads;
	int status;

	if (!connection)
		return MHD_NO;
	status = check(server, connection, http, path, method, &client, &is_page, &why);
	exchange = cordon_exchange_new(server, connection, http, client);
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
		return reads ? MHD_YES : cordon_exchange_proceed(exchange);
	}
	exchange->takes_events = accept && (strstr(accept, "text/event-stream") || strstr(accept, "*/*"));
	if (!status && cordon_streq(method, "POST"))
		return MHD_YES;
	connection->complete = true;
	if (status)
		cordon_exchange_refuse(exchange, status, why);
	else if (client)
		serve_session(exchange, method);
	else
		cordon_exchange_refuse(exchange, MHD_HTTP_OK, "ok");
	return cordon_exchange_proceed(exchange);
}

static enum MHD_Result handle(void *data, struct MHD_Connection *http, const char *path, const char *method,
			      const char *version, const char *bytes, size_t *n, void **state)
{
	struct cordon_exchange *exchange = *state;

	(void)version;
	if (!exchange)
		return begin(data, http, path, method, state);
	if (*n) {
		cordon_exchange_read(exchange, bytes, *n);
		*n = 0;
		return MHD_YES;
	}
	if (exchange->state == CORDON_EXCHANGE_READING && exchange->page)
		cordon_exchange_page_form(exchange, path);
	else if (exchange->state == CORDON_EXCHANGE_READING)
		cordon_exchange_take(exchange);
	return cordon_exchange_proceed(exchange);
}

static void completed(void *data, struct MHD_Connection *http, void **state, enum MHD_RequestTerminationCode code)
{
	(void)data, (void)http, (void)code;
	if (*state)
		cordon_exchange_completed(*state);
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
