/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the run: conn.c looks, dials and moves bytes, proxy.c asks the proxy of the host. */
#ifndef CORDON_NET_CONN_H
#define CORDON_NET_CONN_H

#include "net/helper.h"

enum conn_state {
	CONN_LOOK,    /* until the client has sent which host it wants */
	CONN_RESOLVE, /* until the addresses of the name are known */
	CONN_DIAL,
	CONN_PROXY, /* until the proxy has connected */
	CONN_RELAY,
	CONN_ENDED, /* its memory is freed at the end of the turn */
};

/* What a connection with TLS sends unencrypted. */
enum conn_hello {
	HELLO_NONE,  /* nothing is looked at, or not any more */
	HELLO_SENT,  /* the client's hello has been judged; the host's answer decides what follows */
	HELLO_AGAIN, /* the host wants another one, which is judged like the first */
};

/* Bytes in one direction; they go from socket to socket through a pipe. */
struct flow {
	int pipe[2];  /* -1: none, nothing is under way */
	size_t piped; /* bytes in it */
	bool end;     /* the source has sent its last byte */
	bool shut;    /* and its peer knows */
};

struct conn {
	struct source in; /* the run's side; first */
	struct source out;
	struct conn *next, *prev;
	struct name *name;		   /* or NULL for a fixed listener */
	struct cordon_net_address address; /* that the run connected to */
	uint16_t port;
	uint16_t dial_port; /* of the proxy, if there is one */
	enum conn_state state;
	bool is_http, by_proxy;
	bool granted; /* the host is reached by an address that is not public, or our own, and that a rule grants */
	enum conn_hello hello;
	struct cordon_net_address peer; /* that was dialled, if `granted` */
	struct cordon_http http;
	struct waiter waiter;
	struct name *waited;		      /* RESOLVE: the name, or the proxy */
	int64_t deadline;		      /* ms; 0: none */
	uint64_t begun;			      /* ns, of a run that is measured */
	struct cordon_net_address *addresses; /* to dial; until the relay begins */
	size_t n, at;
	/* Bytes of the client that are not sent yet; the first `cleared` of them may be. */
	char *bytes;
	size_t len, size, cleared;
	size_t need;	       /* LOOK: what was looked at, or must be there for another look */
	struct flow flows[2];  /* from the run, to the run */
	int credential;	       /* of an endpoint; -1: none */
	struct inject *inject; /* its TLS, since it was dialled */
};

/* `reset`: the run's side gets an error instead of an ordinary end. */
void net_conn_end(struct conn *conn, bool reset);
/* Dials conn->addresses from conn->at on. */
void net_conn_dial(struct conn *conn);
/* The host, or the proxy on its behalf, has answered. */
void net_conn_dialled(struct conn *conn);
/* Makes room for more bytes; false when that would be more than `most`, or too much for all connections together. */
bool net_conn_room(struct conn *conn, size_t most);
/* Counts memory that a connection holds; false when it is too much. */
bool net_conn_hold(size_t n);

void net_proxy_dial(struct conn *conn);
void net_proxy_begin(struct conn *conn);
void net_proxy_serve(struct conn *conn);

/* The name of a credential's host; no rule needs to allow it. */
struct name *net_inject_name(int number);
void net_inject_start(struct conn *conn);
void net_inject_relay(struct conn *conn);
/* Tells the run that no address of the host answered. */
void net_inject_unreachable(struct conn *conn);
void net_inject_done(struct conn *conn);

void net_relay_begin(struct conn *conn);

#endif
