/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process cordon-net: it serves the network of one run that may reach a list of hosts. It lives in the host's
 * network and holds sockets of the run's (sandbox/inside/network.h). It answers the run's DNS queries, gives each
 * allowed name an address of its own (its label), listens there, and relays what connects, to the host of that name.
 *
 *   main.c      descriptors, configuration, confinement, the loop
 *   confine.c   what the process gives up
 *   serve.c     DNS over UDP and TCP
 *   names.c     names, their addresses (c-ares, the host's /etc/hosts) and labels
 *   listen.c    sockets that come from inside, and listeners on labels
 *   conn.c      one connection: look, dial, relay
 *   proxy.c     the proxy of the host
 *   inject.c    endpoints that add a credential, and TLS
 *   reports.c   what was refused
 *   host.c      whether the host has a service on its loopback
 *   dns.c hello.c http.c address.c   pure: formats that the agent writes, addresses
 *
 * INVARIANT: which host is dialled follows from the label that was connected to, never from what the agent sends. What
 * it sends may only end the connection.
 */
#ifndef CORDON_NET_HELPER_H
#define CORDON_NET_HELPER_H

#include <netinet/in.h>
#include <sys/epoll.h>

#include "base/meter.h"
#include "net/http.h"
#include "policy/net.h"
#include "sandbox/host/net_record.h"
#include "sandbox/inside/network.h"
#include "sandbox/plan/plan.h"

#define NET_CONNS_MAX 4096  /* connections at a time, if the limit of descriptors allows that many */
#define NET_NAMES_MAX 4096  /* names that rules with a wildcard let through, in a run's life */
#define NET_NAMES_BURST 256 /* new ones of them at once, and then */
#define NET_NAMES_PER_SECOND 16
#define NET_RESOLVING_MAX 128 /* names that are being resolved at a time */
#define NET_WAITING_MAX 1024  /* queries that wait for them */
#define NET_ADDRESSES_MAX 16  /* of one name */
#define NET_DNS_CONNS_MAX 64
#define NET_BUFFERS_MAX ((size_t)32 << 20) /* of all connections together */
#define NET_LOOK_MS 30000		   /* a client must have sent which host it wants within this time */
#define NET_DIAL_MS 10000		   /* for each address */
#define NET_FRESH_MS 60000 /* addresses of a name are used for connections so long, if its TTL is not shorter */

/* Something that the loop waits for. Handlers may release other sources, so memory is freed at the end of a turn. */
struct source {
	void (*on)(struct source *source, uint32_t events);
	int fd;
};

/* Somebody who waits for the addresses of a name. */
struct waiter {
	struct waiter *next;
	void (*resolved)(struct waiter *waiter);
};

struct listener;

struct name {
	struct name *next; /* in its bucket */
	char text[CORDON_NET_NAME_SIZE];
	bool resolving;
	bool known;    /* was resolved; n may be 0 */
	bool failed;   /* the last time by no answer of the name's servers, which may pass */
	bool counted;  /* a wildcard let it through */
	bool direct;   /* it is the proxy of the host itself */
	int64_t fresh; /* when the addresses are too old for new connections */
	struct cordon_net_address addresses[NET_ADDRESSES_MAX];
	size_t n;
	bool has_label[2]; /* IPv4, IPv6 */
	struct cordon_net_address labels[2];
	struct waiter *waiters;
	struct listener *listeners;
};

/* A listening socket inside: on the label of a name, or fixed (a granted address, localhost, an endpoint). */
struct listener {
	struct source source;
	struct listener *next;
	struct name *name; /* or NULL */
	struct cordon_net_address address;
	uint16_t port;
	int inject; /* the number of the credential, or -1 */
};

struct credential {
	char *host, *header, *value; /* value has its prefix */
	uint16_t port;
};

struct net {
	int epoll;
	int ctl, sockets;
	bool v6;       /* the run has IPv6 */
	bool learning; /* what was reached is reported, too */
	struct cordon_net_list list;
	struct credential *credentials;
	size_t n_credentials;
	struct {
		bool used;
		uint16_t port;
		char authorization[512]; /* in base64, or "" */
		char *except;		 /* no_proxy, or NULL */
	} proxy;
	struct cordon_meter *meter; /* or NULL */
	size_t n_conns, max_conns;
	size_t buffered;  /* bytes of memory that connections hold, at most NET_BUFFERS_MAX */
	size_t n_counted; /* names that wildcards let through */
	int64_t now;	  /* ms; the loop sets it */
};
extern struct net net;

/* ---- main.c ---- */
int net_watch(struct source *source, uint32_t events);
/* The same with a source of its own, which lives as long as the process. */
int net_watch_new(int fd, void (*on)(struct source *source, uint32_t events));
void net_change(struct source *source, uint32_t events);
/* Closes the descriptor, which stops the watch. */
void net_unwatch(struct source *source);
/* Frees memory when the turn of the loop is over. */
void net_free_later(void *memory);
/* Calls the handler of a source in the next turn, without an event. */
void net_again(struct source *source);

/* ---- confine.c ---- */
int net_confine(pid_t parent, const char **ret_what);

/* ---- listen.c ---- */
int net_sockets_begin(void);
/* Takes what PID 1 has sent and nobody has received yet. */
void net_sockets_drain(void);
/* Listens on the labels of a name for every port that a rule allows; stops where none does any more. */
void net_listen_name(struct name *name);
/* The same for granted addresses and localhost. */
void net_listen_apply(void);

/* ---- serve.c ---- */
int net_dns_begin_udp(int fd);
int net_dns_begin_tcp(int fd);
/* Ends TCP connections that are idle; true when there are any. */
bool net_dns_tick(void);

/* ---- names.c ---- */
/* The name, if a rule allows it on some port; NULL when none does, or too many were asked for (*ret_limited). */
struct name *net_name_find(const char *text, bool *ret_limited);
/* Calls the waiter when the addresses are known: at once when they are fresh. -EAGAIN when too many are waited for. */
int net_name_resolve(struct name *name, struct waiter *waiter);
/* Takes the waiter out again. */
void net_name_forget(struct name *name, struct waiter *waiter);
/* The label of a family (0: IPv4, 1: IPv6), which is made if need be; NULL when the name has no address of it. */
const struct cordon_net_address *net_name_label(struct name *name, unsigned int family);
/* Whether its connections go through the proxy of the host; then nobody here resolves it. */
bool net_name_by_proxy(const struct name *name);
/* The name whose label this is, or NULL. */
struct name *net_name_of_label(const struct cordon_net_address *label);
/* The addresses that a connection to this port may use. */
size_t net_name_dialable(const struct name *name, uint16_t port,
			 struct cordon_net_address ret[static NET_ADDRESSES_MAX]);
/* After the rules have changed. */
void net_names_apply(void);

int net_resolve_begin(const char **ret_what);
/* How long the loop may wait for c-ares; -1: for ever. Then net_resolve_tick() lets it look at its time-outs. */
int net_resolve_wait(int most);
void net_resolve_tick(void);

/* ---- conn.c ---- */
/* Takes a connection that was accepted. */
void net_conn_accept(const struct listener *listener, int fd);
void net_conns_tick(void);
/* After the rules have changed: ends what none allows any more. */
void net_conns_apply(void);

/* ---- proxy.c ---- */
/* Reads the variable of the host that names its proxy; "": none. */
int net_proxy_parse(const char *text);

/* ---- inject.c ---- */
/* Reads certificates, if there are credentials. */
int net_inject_begin(const char **ret_what);

/* ---- reports.c ---- */
/* Reports once that an attempt was refused. `port` 0: a name was asked for. `rule` may be NULL. */
void net_report(cordon_reason reason, const char *host, uint16_t port, const char *rule);
void net_report_limit(const char *name, size_t limit);
void net_report_failed(const char *what, int code);
int net_reports_begin(int fd);
/* Reports, while the run is learned from, that a host was connected to. */
void net_report_reached(const char *host, uint16_t port);
/* The run is over: sends what was not reported yet. */
void net_reports_end(void);
/* Sends how many were not reported one by one, at most once a second. */
void net_reports_tick(void);

/* ---- host.c ---- */
/* Opens the socket by which net_host_has() asks, while that is allowed. */
void net_host_begin(void);
/* Whether the host has a service at this address of its loopback. False where the kernel can't be asked. */
bool net_host_has(const struct cordon_net_address *address, uint16_t port, bool udp);

/* ---- address.c; pure ---- */
bool net_address_is_public(const struct cordon_net_address *address);
bool net_address_is_loopback(const struct cordon_net_address *address);
/* Whether a rule grants an address that is not public, on this port. */
bool net_address_granted(const struct cordon_net_list *list, const struct cordon_net_address *address, uint16_t port);
bool net_address_equal(const struct cordon_net_address *a, const struct cordon_net_address *b);
void net_address_from(const struct sockaddr_storage *from, struct cordon_net_address *ret, uint16_t *ret_port);
socklen_t net_address_to(const struct cordon_net_address *address, uint16_t port, struct sockaddr_storage *ret);
/* "host:port", with brackets where an IPv6 address needs them. */
void net_host_port(const char *host, uint16_t port, char ret[static CORDON_NET_RULE_SIZE]);

#endif
