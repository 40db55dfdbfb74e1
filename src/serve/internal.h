/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP server share. */
#ifndef CORDON_SERVE_INTERNAL_H
#define CORDON_SERVE_INTERNAL_H

#include <microhttpd.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "page/page.h"
#include "serve/head.h"
#include "serve/metrics.h"
#include "serve/serve.h"
#include "serve/worker.h"

#define CORDON_SERVE_HOST_SIZE 256
#define CORDON_SERVE_OUT_MAX ((size_t)64 << 20) /* what one client has not read yet; more ends its stream */
#define CORDON_SERVE_CROWDED "too much is under way; read the answers first"

/* address.c: a socket that listens, and the values of Host under which it may be addressed. */
struct cordon_listener {
	int fd;
	bool local;			   /* a Unix socket: who the peer is suffices */
	bool control;			   /* the socket of `cordon open`, which serves nothing else */
	unsigned int port;		   /* 0 for a Unix socket */
	bool page;			   /* the port of the page */
	char path[CORDON_PATH_MAX];	   /* of a socket that we made, or "" */
	char text[CORDON_SERVE_HOST_SIZE]; /* what people call it: "http://127.0.0.1:8080/mcp" */
	char hosts[4][CORDON_SERVE_HOST_SIZE];
	size_t n_hosts;
};

/* Opens all listeners of the options. On failure those that were opened are closed. */
int cordon_listeners_open(const struct cordon_serve_options *options,
			  struct cordon_listener ret_listeners[static CORDON_SERVE_LISTENERS_MAX], size_t *ret_n,
			  struct cordon_error *err);
void cordon_listeners_close(struct cordon_listener *listeners, size_t n);
/* Opens the socket at which `cordon open` finds the server of this home: state/serve/control. -EADDRINUSE when another
 * server has it. */
int cordon_listener_control(int serve_fd, struct cordon_listener *ret_listener, struct cordon_error *err);
/* Opens the port of the page, at an address of the loopback that no other server of this machine has. It is the one of
 * the last time (state/serve/page), unless somebody else has that now: then *ret_moved is set. With `again`, -ENOENT if
 * there was none. */
int cordon_listener_page(int serve_fd, bool again, struct cordon_listener *ret_listener, bool *ret_moved,
			 struct cordon_error *err);

/* peer.c: the user whose process has the other end of a TCP connection of this machine, and the inode of its socket.
 * -ENOENT when that process has closed it, or is not of this machine. */
int cordon_peer_uid(int fd, uid_t *ret_uid, uint32_t *ret_inode);
/* Whether a process has this socket that is in the server's user namespace, so in no sandbox; false also when that
 * can't be found out. It checks all processes, after the one of *hint, which is set to the one that was found. */
bool cordon_peer_outside(uint32_t inode, pid_t *hint);
/* Whether the peer of a Unix socket may be served: the process that connected is of the user who runs the server (else
 * -EPERM), and in the server's user and mount namespaces, so in no sandbox (else -EACCES, also when that can't be found
 * out). */
int cordon_peer_local(int fd);

/* login.c: links that work once, and cookies. */
#define CORDON_LOGINS_MAX 16
#define CORDON_LOGIN_HASH_SIZE 32
struct cordon_login {
	unsigned char hash[CORDON_LOGIN_HASH_SIZE];
	int64_t expiry; /* monotonic; 0: none */
};

#define CORDON_LOGIN_NONCE_SIZE 33

/* Somebody who is logged in. */
struct cordon_page_login {
	char nonce[CORDON_LOGIN_NONCE_SIZE];
	char token[CORDON_PAGE_TOKEN_SIZE]; /* of all forms */
	int64_t expiry;
	bool outside; /* of a browser that is in no sandbox */
};

struct cordon_server;
struct cordon_live;

/* Makes a link to this place ("http://127.0.0.1:8080"). It works once, within a minute. */
int cordon_login_link(struct cordon_server *server, const char *place, char *ret_url, size_t size);
/* Uses the code of a link up. *ret_cookie is the value of Set-Cookie for this place; a place of a `front` has one for
 * TLS alone. -EPERM for a code that is not valid any more. `inode` is that of the browser's socket, or 0. */
int cordon_login_use(struct cordon_server *server, const struct cordon_listener *listener, const char *front,
		     const char *code, uint32_t inode, char *ret_cookie, size_t size);
/* Finds the login in the header Cookie (may be NULL); -EPERM when there is none that is valid for this place. */
int cordon_login_check(const struct cordon_server *server, const struct cordon_listener *listener, const char *front,
		       const char *header, struct cordon_page_login *ret_login);

/* client.c: an authenticated client, with what it uses. Requests and streams hold a reference. */
struct cordon_client {
	struct cordon_client *next;
	unsigned int users;
	char name[CORDON_ID_SIZE + 8]; /* "token:ID" or "uid:N": the principal of approvals and audit */
	char token_id[CORDON_ID_SIZE]; /* "" for a Unix peer */
	char expires_at[CORDON_TIME_SIZE];
	struct cordon_mcp_grant grant;
	json_t *projects;
	bool revoked;
	unsigned int streams, waiting;
	unsigned int kept; /* sessions of the legacy era with subscriptions, which need no stream */
	size_t held;	   /* bytes of all its exchanges */
	int64_t filled;	   /* the bucket of calls: when it was filled last, and what is left */
	double left;
};

struct cordon_server;

/* Returns a new reference to the client with this token, or NULL. */
struct cordon_client *cordon_client_by_token(struct cordon_server *server, const char *token);
struct cordon_client *cordon_client_by_uid(struct cordon_server *server, uid_t uid);
void cordon_client_drop(struct cordon_server *server, struct cordon_client *client);
/* Counts one call; false when there were too many in the last second. */
bool cordon_client_may_call(struct cordon_client *client, int64_t now);
/* Reads the tokens again, and marks clients whose token is gone. */
int cordon_clients_load(struct cordon_server *server, struct cordon_error *err);
/* Marks clients whose token has expired. Returns when the next one does, in wall-clock milliseconds. */
void cordon_clients_expire(struct cordon_server *server);

/* session.c: sessions and logins that are not valid any more although they have not expired. */
typedef enum cordon_ended { CORDON_ENDED_SESSIONS, CORDON_ENDED_LOGINS, CORDON_ENDED__MAX } cordon_ended;

/* Returns 0 once it is on the disk. */
int cordon_ended_add(struct cordon_server *server, cordon_ended which, const char *nonce, int64_t expiry,
		     struct cordon_error *err);
bool cordon_ended_has(const struct cordon_server *server, cordon_ended which, const char *nonce);

/* session.c: sessions of the legacy era. The id has everything that a request needs; the object exists only while
 * something of the session is in memory. */
#define CORDON_SESSION_HEADER "Mcp-Session-Id"
#define CORDON_SESSION_TEXT_MAX 2048
#define CORDON_SESSION_LIFE_MS ((int64_t)7 * 86400000)
#define CORDON_SESSION_NONCE_SIZE CORDON_LOGIN_NONCE_SIZE

struct cordon_exchange;

struct cordon_http_session {
	struct cordon_http_session *next;
	unsigned int users;
	struct cordon_mcp_channel channel; /* subscriptions, and what all requests of the session share */
	struct cordon_server *server;
	struct cordon_client *client;
	char nonce[CORDON_SESSION_NONCE_SIZE];
	int64_t expiry;
	int64_t left; /* when the last stream was closed, monotonic; subscriptions are kept for a while */
	bool kept;    /* counted by the client, because it has some */
	struct cordon_exchange *stream; /* that of GET, or NULL */
};

/* Makes the id of a session whose handshake was made on this channel. */
int cordon_session_id_make(struct cordon_server *server, const struct cordon_mcp_channel *channel,
			   struct cordon_buf *ret_text);
/* Finds the session of an id for this client and puts its handshake into the channel. Returns -ENOENT for an id that is
 * not ours, not this client's, expired or ended. The caller drops the session. */
int cordon_http_session_find(struct cordon_server *server, struct cordon_client *client, const char *text,
			     struct cordon_mcp_channel *channel, struct cordon_http_session **ret_session);
void cordon_http_session_drop(struct cordon_http_session *session);
/* Whether its client may subscribe to something; call the other one afterwards, when it did or ended that. */
bool cordon_http_session_may_subscribe(const struct cordon_http_session *session);
void cordon_http_session_subscribed(struct cordon_http_session *session);
/* Ends a session for good; it is remembered across restarts until its id would have expired. */
int cordon_http_session_end(struct cordon_http_session *session, struct cordon_error *err);
int cordon_http_sessions_load(struct cordon_server *server, struct cordon_error *err);
/* Frees what nobody listens to any more. */
void cordon_http_sessions_sweep(struct cordon_server *server, int64_t now);
void cordon_http_sessions_free(struct cordon_server *server);

/* loop.c: one connection, from accept to close. */
struct cordon_connection {
	struct cordon_connection *next, *previous;
	int fd;
	uint32_t number; /* tells it from another one that had the same descriptor */
	const struct cordon_listener *listener;
	char *query; /* of the target, as it was written; or NULL */
	int64_t accepted;
	bool watched;  /* by our epoll */
	bool handed;   /* libmicrohttpd has it */
	bool complete; /* the whole request has arrived */
	bool gone;     /* the client has closed its side */
	struct cordon_exchange *exchange;
};

/* exchange.c: one request and its answer. */
enum cordon_exchange_state {
	CORDON_EXCHANGE_READING, /* the body arrives */
	CORDON_EXCHANGE_WAITING, /* nothing has been sent yet */
	CORDON_EXCHANGE_ANSWER,	 /* one JSON answer is ready */
	CORDON_EXCHANGE_STREAM,	 /* answered by a stream of events */
};

/* What an exchange about the page has besides. */
struct cordon_exchange_page {
	struct cordon_page_login login;
	struct cordon_worker *worker; /* that makes the answer, or NULL */
	struct cordon_live *live;     /* a stream of changes, or NULL */
	struct cordon_worker_head head;
	const char *asset; /* borrowed bytes of a file of the page */
	size_t asset_size;
	char cookie[320]; /* Set-Cookie, or "" */
	uint32_t inode;	  /* of the client's socket, if it is a process of ours; or 0 */
	bool broken;	  /* the child ended before its answer was whole */
};

struct cordon_exchange {
	struct cordon_mcp_channel channel; /* its data is the exchange */
	struct cordon_exchange *next, *previous;
	struct cordon_server *server;
	struct cordon_client *client;
	struct cordon_http_session *session;
	struct cordon_connection *connection; /* NULL when it is closed */
	struct MHD_Connection *http;	      /* likewise */
	enum cordon_exchange_state state;
	struct cordon_buf body;
	struct cordon_buf out; /* the answer, or events */
	size_t sent;
	int status;
	int64_t comment_due;		   /* monotonic */
	char *session_id;		   /* the header of an answer to initialize */
	struct cordon_exchange_page *page; /* NULL: it is about MCP */
	size_t held;			   /* bytes of the body or the answer that the client has to answer for */
	bool too_long;
	bool crowded; /* the client holds too much already */
	bool modern;
	bool takes_events; /* the client accepts a stream */
	bool is_stream;	   /* GET, or a listen: silent for long by its nature */
	bool asks;	   /* a request, which is answered by a message */
	bool counted_stream, counted_waiting;
	bool queued;	/* libmicrohttpd has the response */
	bool suspended; /* libmicrohttpd does not look at the connection */
	bool finished;	/* nothing more will be sent */
	bool gone;	/* nobody reads it any more */
	bool metrics;	/* the answer is that of /metrics */
};

/* From now on the answer is a stream. */
void cordon_exchange_stream(struct cordon_exchange *exchange);
/* Goes on with a connection that waits. */
void cordon_exchange_resume(struct cordon_exchange *exchange);
/* Adds an event to a stream. */
void cordon_exchange_event(struct cordon_exchange *exchange, const char *text);

/* page.c: an exchange about the page. */
/* Makes it one about the page; -ENOMEM. */
int cordon_exchange_page(struct cordon_exchange *exchange);
/* Answers with a page about a refusal. */
void cordon_exchange_page_refuse(struct cordon_exchange *exchange, int status, const char *why);
/* worker.c reports: the head is known; more of the body; the end, whole or not. */
void cordon_exchange_page_begin(struct cordon_exchange *exchange, const struct cordon_worker_head *head);
void cordon_exchange_page_add(struct cordon_exchange *exchange, const char *bytes, size_t n);
void cordon_exchange_page_end(struct cordon_exchange *exchange, bool headed, bool whole);
/* The headers of every answer about the page. */
void cordon_exchange_page_headers(const struct cordon_exchange *exchange, struct MHD_Response *response);
/* Whether the login of a stream has ended. */
bool cordon_exchange_page_expired(const struct cordon_exchange *exchange);
void cordon_exchange_page_done(struct cordon_exchange *exchange);
/* The client has gone, or may not go on: a modern request is cancelled, a legacy one goes on without a reader. */
void cordon_exchange_leave(struct cordon_exchange *exchange);
/* Ends a stream after what it still has to send. */
void cordon_exchange_finish(struct cordon_exchange *exchange);
/* Sends comments that are due and frees what has ended. Returns when it must be called again, monotonic. */
int64_t cordon_exchanges_sweep(struct cordon_server *server, int64_t now);
/* Ends the requests of revoked clients; with `all` those of everybody, because the server stops. */
void cordon_exchanges_end(struct cordon_server *server, bool all);

/* exchange.c: the daemons of libmicrohttpd, the checks and the routes. */
int cordon_http_start(struct cordon_server *server, struct cordon_error *err);
void cordon_http_stop(struct cordon_server *server);
/* Hands over a connection whose head was judged. */
int cordon_http_hand_over(struct cordon_server *server, struct cordon_connection *connection,
			  const struct cordon_head *head);
void cordon_http_run(struct cordon_server *server);
/* Milliseconds until cordon_http_run() must be called, or -1. */
int cordon_http_timeout(const struct cordon_server *server);

/* Whether the page has this path for this method: 200, 404 or 405. */
int cordon_page_status(const char *path, const char *method);
/* The whole head of a request about the page has passed the checks that all have in common. A form is read first:
 * *ret_reads. */
void cordon_exchange_page_route(struct cordon_exchange *exchange, const char *path, const char *method, bool *ret_reads);
/* The body of a form has arrived. */
void cordon_exchange_page_form(struct cordon_exchange *exchange, const char *path);

/* live.c */
struct cordon_live *cordon_live_new(struct cordon_server *server, const char *text);
void cordon_live_free(struct cordon_server *server, struct cordon_live *live);
/* Reads what inotify reports, and marks the streams with that topic. */
void cordon_live_read(struct cordon_server *server);
void cordon_live_tell(struct cordon_server *server, int64_t now);

/* loop.c */
/* Starts or stops polling the pipe of a worker. */
void cordon_server_watch_worker(struct cordon_server *server, int fd, bool on);
/* Serves one more listener; takes it. */
int cordon_server_listen(struct cordon_server *server, const struct cordon_listener *listener, struct cordon_error *err);
/* Prints a line for whoever runs the server. */
void cordon_server_say(const struct cordon_server *server, const char *fmt, ...) CORDON_PRINTF(2, 3);
struct cordon_connection *cordon_connection_by_fd(const struct cordon_server *server, int fd);
/* The request waits, so the end of its client must be noticed. */
void cordon_connection_watch(struct cordon_server *server, struct cordon_connection *connection);
/* libmicrohttpd closes it now. */
void cordon_connection_closed(struct cordon_server *server, struct cordon_connection *connection);
/* Makes the loop sweep at this time at the latest. */
void cordon_server_sweep_by(struct cordon_server *server, int64_t when);

enum { CORDON_HTTP_SMALL, CORDON_HTTP_LARGE, CORDON_HTTP__MAX };

struct cordon_server {
	struct cordon_mcp *mcp;
	const struct cordon_store *store;
	const struct cordon_serve_options *options;
	struct MHD_Daemon *http[CORDON_HTTP__MAX];
	struct cordon_listener listeners[CORDON_SERVE_LISTENERS_MAX + 2]; /* with that of control, and a port for the page */
	size_t n_listeners;
	int epoll_fd, signals_fd, tokens_fd, live_fd;
	struct cordon_worker *workers;
	struct cordon_live_topic *topics;
	struct cordon_login logins[CORDON_LOGINS_MAX];
	struct cordon_connection *connections;
	struct cordon_connection **by_fd;
	size_t by_fd_size;
	size_t n_connections, max_connections;
	uint32_t counter;
	struct cordon_exchange *exchanges;
	struct cordon_http_session *sessions;
	json_t *ended[CORDON_ENDED__MAX]; /* nonce: expiry */
	int serve_fd;			  /* state/serve */
	struct cordon_client *clients;
	struct cordon_tokens tokens;
	unsigned char *key; /* CORDON_SERVE_KEY_SIZE bytes, in secret memory */
	int64_t sweep;	    /* monotonic */
	bool resumed;	    /* libmicrohttpd must run once more before the loop waits */
	bool paused;	    /* nothing is accepted for a moment */
	pid_t browser;	    /* that had the page last, or 0 */
	bool moved;	    /* the page could not have the address that it had */
	bool stopping;
	struct cordon_serve_counts counts; /* of /metrics */
};

#endif
