/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of the HTTP server: accepts connections, looks at their heads, and hands them to libmicrohttpd. It also
 * watches each connection for the end of its client, because libmicrohttpd does not look at one that waits.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "base/path.h"
#include "base/time.h"
#include "serve/internal.h"

#define EVENTS_MAX 256
#define ACCEPTS_MAX 128	     /* in one turn, so that those who are connected are served too */
#define DESCRIPTORS_KEPT 256 /* for everything else */
#define PLACES_KEPT 64	     /* for connections to the page, and as many for those to sockets */
#define STOP_MS 3000
#define SWEEP_MS 500

/* What an event is about: kind, number of the connection, descriptor. */
enum kind { LISTENER, CONNECTION, HTTP, WORK, SIGNALS, TOKENS, WORKER, LIVE };

static uint64_t mark(enum kind kind, uint32_t number, int fd)
{
	return (uint64_t)kind << 56 | (uint64_t)(number & 0xffffff) << 32 | (uint32_t)fd;
}

static int watch(const struct cordon_server *server, int operation, enum kind kind, uint32_t number, int fd,
		 uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = mark(kind, number, fd) };

	return epoll_ctl(server->epoll_fd, operation, fd, &event) < 0 ? -errno : 0;
}

void cordon_server_watch_worker(struct cordon_server *server, int fd, bool on)
{
	watch(server, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, WORKER, 0, fd, EPOLLIN);
}

int cordon_server_listen(struct cordon_server *server, const struct cordon_listener *listener, struct cordon_error *err)
{
	struct cordon_listener *kept = &server->listeners[server->n_listeners];
	int r = server->n_listeners < CORDON_ARRAY_SIZE(server->listeners) ? 0 : -E2BIG;

	if (r == 0)
		r = watch(server, EPOLL_CTL_ADD, LISTENER, 0, listener->fd, EPOLLIN);
	if (r < 0) {
		close(listener->fd);
		return cordon_fail_errno(err, r, "cannot listen");
	}
	*kept = *listener;
	server->n_listeners++;
	if (!kept->local && server->options->listening)
		server->options->listening(server->options->data, kept->text, false);
	return 0;
}

void cordon_server_say(const struct cordon_server *server, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (!server->options->say)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	server->options->say(server->options->data, text);
}

void cordon_server_sweep_by(struct cordon_server *server, int64_t when)
{
	if (when < server->sweep)
		server->sweep = when;
}

struct cordon_connection *cordon_connection_by_fd(const struct cordon_server *server, int fd)
{
	return fd >= 0 && (size_t)fd < server->by_fd_size ? server->by_fd[fd] : NULL;
}

/* A request that waits for nothing is answered without the cost of this. */
void cordon_connection_watch(struct cordon_server *server, struct cordon_connection *connection)
{
	uint32_t events = EPOLLRDHUP | EPOLLET | (connection->handed ? 0 : EPOLLIN);

	if (!connection->watched)
		connection->watched = watch(server, EPOLL_CTL_ADD, CONNECTION, connection->number, connection->fd,
					    events) == 0;
}

void cordon_connection_closed(struct cordon_server *server, struct cordon_connection *connection)
{
	/* Removed explicitly: a child that has not called exec yet has a copy of the descriptor. */
	if (connection->watched)
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
	server->by_fd[connection->fd] = NULL;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	if (connection->exchange)
		connection->exchange->connection = NULL;
	server->n_connections--;
	free(connection->query);
	free(connection);
}

/* Closes a connection that libmicrohttpd does not have. */
static void close_early(struct cordon_server *server, struct cordon_connection *connection)
{
	int fd = connection->fd;

	cordon_connection_closed(server, connection);
	close(fd);
}

/* Says why on the bare socket. What has arrived is read first, or the kernel would drop our words with it. */
static void refuse_fd(int fd, int status, const char *why)
{
	char text[512], rest[4096];
	const char *reason = MHD_get_reason_phrase_for((unsigned int)status);
	int n = snprintf(
		text, sizeof(text),
		"HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s\n",
		status, reason ? reason : "Refused", strlen(why) + 1, why);

	for (int i = 0; i < 16 && recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0; i++)
		;
	if (n > 0 && (size_t)n < sizeof(text))
		(void)!send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
}

/* The rest of the head is to come. */
static void await(struct cordon_server *server, struct cordon_connection *connection)
{
	cordon_connection_watch(server, connection);
	if (!connection->watched)
		close_early(server, connection);
}

/* Looks at the head, which stays in the socket for libmicrohttpd. */
static void look(struct cordon_server *server, struct cordon_connection *connection)
{
	CORDON_UNCLEARED char bytes[CORDON_HEAD_MAX + 1];
	ssize_t n = recv(connection->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	struct cordon_head head;
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		await(server, connection);
		return;
	}
	if (n <= 0) {
		close_early(server, connection);
		return;
	}
	r = cordon_head_check(bytes, (size_t)n, &head);
	if (r == -EAGAIN && !connection->gone) {
		await(server, connection);
		return;
	}
	if (r < 0) {
		if (r != -EAGAIN)
			refuse_fd(connection->fd, head.status, head.why);
		close_early(server, connection);
		return;
	}
	connection->query = head.query ? strndup(head.query, head.query_size) : NULL;
	/* From now on only the end of the client is of interest. */
	if (connection->watched)
		watch(server, EPOLL_CTL_MOD, CONNECTION, connection->number, connection->fd, EPOLLRDHUP | EPOLLET);
	if (cordon_http_hand_over(server, connection, &head) < 0)
		cordon_connection_closed(server, connection);
}

static void serve_event(struct cordon_server *server, struct cordon_connection *connection, uint32_t events)
{
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		connection->gone = true;
	if (!connection->handed)
		look(server, connection);
	else if (connection->gone && connection->exchange && connection->complete && !connection->exchange->finished)
		cordon_exchange_leave(connection->exchange);
}

static int grow(struct cordon_server *server, int fd)
{
	size_t size = server->by_fd_size ? server->by_fd_size : 64;
	struct cordon_connection **grown;

	while (size <= (size_t)fd)
		size *= 2;
	if (size == server->by_fd_size)
		return 0;
	grown = reallocarray(server->by_fd, size, sizeof(struct cordon_connection *));
	if (!grown)
		return -ENOMEM;
	for (size_t i = server->by_fd_size; i < size; i++)
		grown[i] = NULL;
	server->by_fd = grown;
	server->by_fd_size = size;
	return 0;
}

/* INVARIANT: who is not known yet does not keep others out. Everybody of the machine can connect to a port, so some
 * places are left for the page, and some for sockets, which only their user can use. */
static bool has_room(const struct cordon_server *server, const struct cordon_listener *listener)
{
	size_t kept = server->max_connections / 8 < PLACES_KEPT ? server->max_connections / 8 : PLACES_KEPT;
	size_t ports = 0, pages = 0;

	if (server->n_connections < server->max_connections - 2 * kept)
		return true;
	for (const struct cordon_connection *connection = server->connections; connection;
	     connection = connection->next) {
		ports += !connection->listener->local && !connection->listener->page;
		pages += connection->listener->page;
	}
	if (listener->local)
		return server->n_connections < server->max_connections;
	return listener->page ? ports + pages < server->max_connections - kept
			      : ports < server->max_connections - 2 * kept;
}

static void accept_one(struct cordon_server *server, const struct cordon_listener *listener, int fd)
{
	struct cordon_connection *connection = NULL;
	/* INVARIANT: over a Unix socket only the user who runs the server is served, and nobody in a sandbox, whatever
	 * the modes of its directory are and wherever that is. */
	int r = listener->local ? cordon_peer_local(fd) : 0;

	if (r < 0)
		refuse_fd(fd, MHD_HTTP_FORBIDDEN,
			  r == -EPERM ? "this socket is for another user"
				      : "this socket is for programs outside of sandboxes and containers");
	else if (!has_room(server, listener))
		refuse_fd(fd, MHD_HTTP_SERVICE_UNAVAILABLE, "too many connections");
	else if (grow(server, fd) == 0)
		connection = calloc(1, sizeof(*connection));
	if (!connection) {
		close(fd);
		return;
	}
	connection->fd = fd;
	connection->number = ++server->counter;
	connection->listener = listener;
	connection->accepted = cordon_time_monotonic();
	connection->next = server->connections;
	if (connection->next)
		connection->next->previous = connection;
	server->connections = connection;
	server->by_fd[fd] = connection;
	server->n_connections++;
	cordon_server_sweep_by(server, connection->accepted + SWEEP_MS);
	look(server, connection); /* most have sent their request already */
}

/* Without descriptors nothing can be accepted, and the listener would wake us for ever. */
static void pause_listeners(struct cordon_server *server, bool paused)
{
	for (size_t i = 0; i < server->n_listeners; i++)
		watch(server, EPOLL_CTL_MOD, LISTENER, 0, server->listeners[i].fd, paused ? 0 : EPOLLIN);
	server->paused = paused;
	if (paused)
		cordon_server_sweep_by(server, cordon_time_monotonic() + SWEEP_MS);
}

static void accept_some(struct cordon_server *server, const struct cordon_listener *listener)
{
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				pause_listeners(server, true);
			return;
		}
		accept_one(server, listener, fd);
	}
}

/* Ends connections whose request does not arrive in time, however it drips. */
static int64_t sweep_connections(struct cordon_server *server, int64_t now)
{
	struct cordon_connection *next;
	bool some = false;
	char byte;

	for (struct cordon_connection *connection = server->connections; connection; connection = next) {
		next = connection->next;
		if (connection->complete)
			continue;
		if (!connection->handed && now - connection->accepted >= CORDON_SERVE_HEAD_MS) {
			refuse_fd(connection->fd, MHD_HTTP_REQUEST_TIMEOUT, "the head did not arrive in time");
			close_early(server, connection);
			continue;
		}
		some = true;
		/* libmicrohttpd sees the end of the stream and closes it. It does not see that of the client's side
		 * alone, after which the rest of a body can't come. */
		if (now - connection->accepted >= CORDON_SERVE_REQUEST_MS ||
		    (connection->handed && recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0))
			shutdown(connection->fd, SHUT_RDWR);
	}
	return some ? now + SWEEP_MS : INT64_MAX;
}

static void sweep(struct cordon_server *server)
{
	int64_t now = cordon_time_monotonic();
	int64_t connections, exchanges;

	if (now < server->sweep)
		return;
	server->sweep = INT64_MAX;
	if (server->paused && !server->stopping)
		pause_listeners(server, false);
	cordon_clients_expire(server);
	cordon_exchanges_end(server, false);
	connections = sweep_connections(server, now);
	exchanges = cordon_exchanges_sweep(server, now);
	cordon_http_sessions_sweep(server, now);
	cordon_live_tell(server, now);
	cordon_server_sweep_by(server, connections);
	cordon_server_sweep_by(server, exchanges);
	/* Clients that expire, and sessions that nobody listens to. */
	if (server->clients || server->sessions)
		cordon_server_sweep_by(server, now + CORDON_SERVE_COMMENT_MS);
}

static void tokens_changed(struct cordon_server *server)
{
	CORDON_UNCLEARED char events[4096];
	struct cordon_error err = { 0 };

	while (read(server->tokens_fd, events, sizeof(events)) > 0)
		;
	if (cordon_clients_load(server, &err) < 0)
		cordon_server_say(server, "no token is valid, because they can't be read: %s%s%s", err.message,
				  *err.where ? ", " : "", err.where);
	cordon_exchanges_end(server, false);
}

static void serve_events(struct cordon_server *server, const struct epoll_event *events, int n)
{
	struct signalfd_siginfo signal;

	for (int i = 0; i < n; i++) {
		int fd = (int)(uint32_t)events[i].data.u64;
		uint32_t number = (uint32_t)(events[i].data.u64 >> 32) & 0xffffff;
		struct cordon_connection *connection;

		switch ((enum kind)(events[i].data.u64 >> 56)) {
		case LISTENER:
			for (size_t k = 0; k < server->n_listeners; k++)
				if (server->listeners[k].fd == fd)
					accept_some(server, &server->listeners[k]);
			break;
		case CONNECTION:
			connection = cordon_connection_by_fd(server, fd);
			if (connection && (connection->number & 0xffffff) == number)
				serve_event(server, connection, events[i].events);
			break;
		case SIGNALS:
			if (read(server->signals_fd, &signal, sizeof(signal)) > 0)
				server->stopping = true;
			break;
		case TOKENS:
			tokens_changed(server);
			break;
		case WORKER:
			cordon_worker_read(server, fd);
			break;
		case LIVE:
			cordon_live_read(server);
			break;
		case HTTP:
		case WORK:
		default:
			break; /* is called in each turn */
		}
	}
}

static int timeout(const struct cordon_server *server)
{
	int least = cordon_http_timeout(server), work = cordon_mcp_timeout(server->mcp);
	int64_t left = server->sweep == INT64_MAX ? -1 : server->sweep - cordon_time_monotonic();

	if (work >= 0 && (least < 0 || work < least))
		least = work;
	if (server->sweep != INT64_MAX && (least < 0 || left < least))
		least = left < 0 ? 0 : (int)left;
	return least;
}

static int turn(struct cordon_server *server, int wait_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int least = server->resumed ? 0 : timeout(server);
	int n = epoll_wait(server->epoll_fd, events, EVENTS_MAX,
			   wait_ms >= 0 && (least < 0 || wait_ms < least) ? wait_ms : least);

	if (n < 0 && errno != EINTR)
		return -errno;
	if (n > 0)
		serve_events(server, events, n);
	cordon_mcp_work(server->mcp);
	server->resumed = false;
	cordon_http_run(server);
	sweep(server);
	return 0;
}

/* Answers what can be answered in a bounded time. Sessions and runs go on without us. */
static void stop(struct cordon_server *server)
{
	int64_t until = cordon_time_monotonic() + STOP_MS;

	for (size_t i = 0; i < server->n_listeners; i++)
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->listeners[i].fd, NULL);
	while (cordon_mcp_must_answer(server->mcp) && cordon_time_monotonic() < until && turn(server, 100) == 0)
		;
	cordon_exchanges_end(server, true);
	while (server->n_connections && cordon_time_monotonic() < until && turn(server, 20) == 0) {
		struct cordon_connection *next;

		for (struct cordon_connection *connection = server->connections; connection; connection = next) {
			next = connection->next;
			if (!connection->handed)
				close_early(server, connection);
			else if (!connection->complete)
				shutdown(connection->fd, SHUT_RDWR);
		}
	}
	/* Those who do not read: libmicrohttpd must not be stopped while it has a connection that waits. */
	for (struct cordon_exchange *exchange = server->exchanges; exchange; exchange = exchange->next)
		cordon_exchange_leave(exchange);
	cordon_http_run(server);
}

static int watch_all(struct cordon_server *server, struct cordon_error *err)
{
	char path[CORDON_PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < server->n_listeners; i++)
		r = watch(server, EPOLL_CTL_ADD, LISTENER, 0, server->listeners[i].fd, EPOLLIN);
	for (size_t i = 0; r == 0 && i < CORDON_HTTP__MAX; i++)
		r = watch(server, EPOLL_CTL_ADD, HTTP, 0,
			  MHD_get_daemon_info(server->http[i], MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, EPOLLIN);
	if (r == 0)
		r = watch(server, EPOLL_CTL_ADD, WORK, 0, cordon_mcp_fd(server->mcp), EPOLLIN);
	if (r == 0)
		r = watch(server, EPOLL_CTL_ADD, SIGNALS, 0, server->signals_fd, EPOLLIN);
	if (r < 0)
		return cordon_fail_errno(err, r, "epoll");
	server->tokens_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (server->tokens_fd < 0 ||
	    cordon_path_join(server->store->home.path, "state/" CORDON_TOKENS_DIR, path, sizeof(path)) < 0 ||
	    inotify_add_watch(server->tokens_fd, path,
			      IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_ONLYDIR) < 0)
		return cordon_fail_errno(err, -errno, "cannot watch the tokens");
	r = watch(server, EPOLL_CTL_ADD, TOKENS, 0, server->tokens_fd, EPOLLIN);
	server->live_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (r == 0 && server->live_fd < 0)
		r = -errno;
	if (r == 0)
		r = watch(server, EPOLL_CTL_ADD, LIVE, 0, server->live_fd, EPOLLIN);
	return r < 0 ? cordon_fail_errno(err, r, "epoll") : 0;
}

/* As many connections as the system allows, up to our own bound. */
static void raise_limit(struct cordon_server *server)
{
	struct rlimit limit = { 1024, 1024 };
	/* Ports have the whole bound; the places that are kept for others come on top. */
	const rlim_t connections = CORDON_SERVE_CONNECTIONS_MAX + 2 * PLACES_KEPT,
		     wanted = connections + DESCRIPTORS_KEPT;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > wanted ? wanted : limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	server->max_connections = limit.rlim_cur >= wanted		  ? connections
				  : limit.rlim_cur > 2 * DESCRIPTORS_KEPT ? limit.rlim_cur - DESCRIPTORS_KEPT
									  : DESCRIPTORS_KEPT;
}

/* A home has one server that `cordon open` finds, and that has the page: the first. Where people are logged in, the
 * page comes back by itself. */
static int open_control(struct cordon_server *server, struct cordon_error *err)
{
	int r = server->options->open
			? -EADDRINUSE
			: cordon_listener_control(server->serve_fd, &server->listeners[server->n_listeners], err);

	if (r < 0)
		return r == -EADDRINUSE ? 0 : r;
	server->n_listeners++;
	if (cordon_listener_page(server->serve_fd, true, &server->listeners[server->n_listeners], &server->moved,
				 NULL) == 0)
		server->n_listeners++;
	return 0;
}

static int prepare(struct cordon_server *server, const sigset_t *signals, struct cordon_error *err)
{
	int r;

	raise_limit(server);
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->signals_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (server->epoll_fd < 0 || server->signals_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot start the server");
	r = cordon_http_sessions_load(server, err);
	if (r == 0)
		r = cordon_clients_load(server, err);
	if (r == 0)
		r = cordon_listeners_open(server->options, server->listeners, &server->n_listeners, err);
	if (r == 0)
		r = open_control(server, err);
	if (r == 0)
		r = cordon_http_start(server, err);
	return r < 0 ? r : watch_all(server, err);
}

int cordon_serve(struct cordon_mcp *mcp, const struct cordon_store *store, const struct cordon_serve_options *options,
		 struct cordon_error *err)
{
	struct cordon_server server = {
		.mcp = mcp,
		.store = store,
		.options = options,
		.epoll_fd = -1,
		.signals_fd = -1,
		.tokens_fd = -1,
		.live_fd = -1,
		.serve_fd = -1,
		.sweep = INT64_MAX,
		.counts = { .since = cordon_time_now() },
	};
	sigset_t signals, before;
	int r;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &before);
	r = prepare(&server, &signals, err);
	for (size_t i = 0; r == 0 && options->listening && i < server.n_listeners; i++)
		if (!server.listeners[i].control)
			options->listening(options->data, server.listeners[i].text,
					   options->n_any > 0 && !server.listeners[i].page);
	if (r == 0 && server.moved)
		cordon_server_say(&server,
				  "somebody else uses the address that the page had; earlier logins have ended");
	if (r == 0) {
		while (!server.stopping && r == 0)
			r = turn(&server, -1);
		if (r < 0)
			cordon_fail_errno(err, r, "epoll");
		stop(&server);
	}
	cordon_listeners_close(server.listeners, server.n_listeners);
	cordon_http_stop(&server);
	cordon_workers_free(&server);
	cordon_http_sessions_free(&server);
	while (server.clients) {
		struct cordon_client *client = server.clients;

		server.clients = client->next;
		json_decref(client->projects);
		free(client);
	}
	cordon_tokens_done(&server.tokens);
	cordon_serve_counts_done(&server.counts);
	free(server.by_fd);
	cordon_closep(&server.tokens_fd);
	cordon_closep(&server.live_fd);
	cordon_closep(&server.serve_fd);
	cordon_closep(&server.signals_fd);
	cordon_closep(&server.epoll_fd);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
