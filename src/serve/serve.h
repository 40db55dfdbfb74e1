/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP transport of the MCP server: one endpoint, /mcp, for both protocol eras, /health, and the page for people
 * (page.c). One thread serves all connections with libmicrohttpd; the dispatcher, tools and approvals are those of
 * mcp/mcp.h.
 *
 * Each request passes the same checks in this order before a byte of its body is parsed: head (head.h), path and
 * method, Host, Origin, token, rate, content type, length.
 */
#ifndef CORDON_SERVE_SERVE_H
#define CORDON_SERVE_SERVE_H

#include "mcp/mcp.h"

#define CORDON_SERVE_CONNECTIONS_MAX 10000
#define CORDON_SERVE_STREAMS_MAX 200 /* of one token: streams, and as many calls that wait */
#define CORDON_SERVE_CALLS_MAX 1000  /* of one token, in a second */
#define CORDON_SERVE_HELD_MAX                                                                                          \
	((size_t)64 << 20)	      /* of one token: bodies that arrive, and answers that it does not read */
#define CORDON_SERVE_HEAD_MS 10000    /* for a whole head */
#define CORDON_SERVE_REQUEST_MS 30000 /* for a whole request, however it drips */
#define CORDON_SERVE_COMMENT_MS 15000 /* a silent stream gets a comment */
#define CORDON_SERVE_LISTENERS_MAX 8
#define CORDON_SERVE_HOSTS_MAX 16
#define CORDON_SERVE_CONTROL "control" /* the socket in state/serve at which `cordon open` finds the server */

struct cordon_serve_options {
	const char *listen[CORDON_SERVE_LISTENERS_MAX]; /* "unix:PATH", "127.0.0.1:PORT", "[::1]:PORT" */
	size_t n_listen; /* 0: what systemd passed, else a Unix socket below $XDG_RUNTIME_DIR */
	const char *any[CORDON_SERVE_LISTENERS_MAX]; /* "ADDRESS:PORT" that others can reach */
	size_t n_any;
	const char *hosts[CORDON_SERVE_HOSTS_MAX]; /* further values of Host, for a front */
	size_t n_hosts;
	bool open;	     /* for tests of the protocol: nobody needs a token */
	bool metrics_labels; /* /metrics has names of projects */
	bool page;	     /* started by `cordon open`: it goes on where there is no place for the default socket */
	/* Called for each address once the server listens there. */
	void (*listening)(void *data, const char *address, bool anybody);
	/* Called with a sentence for whoever runs the server. */
	void (*say)(void *data, const char *text);
	void *data;
};

/* The key that authenticates ids of sessions and approvals; state/serve/key, made at first use. */
#define CORDON_SERVE_KEY_SIZE 32
int cordon_serve_key(const struct cordon_store *store, unsigned char ret_key[static CORDON_SERVE_KEY_SIZE],
		     struct cordon_error *err);

/* Serves until SIGTERM, SIGINT or SIGHUP. Sessions go on without it. */
int cordon_serve(struct cordon_mcp *mcp, const struct cordon_store *store, const struct cordon_serve_options *options,
		 struct cordon_error *err);

#endif
