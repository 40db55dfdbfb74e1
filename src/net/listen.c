/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners inside: on the labels of names, and on what rules grant without a name. */
#include <poll.h>
#include <sys/socket.h>

#include "net/helper.h"

/* ---- sockets in the network of the run ---- */

#define POOL_LOW 4
#define POOL_ASK 16
#define POOL_MAX 64
#define WAIT_MS 2000

/* Sockets without an address, by family. */
struct pool {
	int fds[POOL_MAX];
	size_t n;
	bool asked;
};
static struct pool pools[2];

static int listen_fixed(int fd);

static struct pool *pool_of(int family)
{
	return &pools[family == AF_INET6];
}

static void ask(int family)
{
	struct cordon_net_request request = { .family = (uint32_t)family, .n = POOL_ASK };

	if (!pool_of(family)->asked &&
	    send(net.sockets, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(request))
		pool_of(family)->asked = true;
}

static void take(enum cordon_net_socket kind, int fd)
{
	socklen_t n = sizeof(int);
	int family = 0, r = 0;

	switch (kind) {
	case CORDON_NET_SOCKET_DNS:
		r = net_dns_begin_udp(fd);
		break;
	case CORDON_NET_SOCKET_LISTENER:
		r = listen_fixed(fd);
		break;
	case CORDON_NET_SOCKET_REFUSALS:
		r = net_reports_begin(fd);
		break;
	case CORDON_NET_SOCKET_EMPTY:
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n) < 0 || pool_of(family)->n == POOL_MAX) {
			close(fd);
			return;
		}
		pool_of(family)->asked = false;
		pool_of(family)->fds[pool_of(family)->n++] = fd;
		return;
	}
	if (r < 0)
		close(fd);
}

/* 1 when a message came, 0 when there is none, -EPIPE when PID 1 is gone. */
static int receive(void)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * CORDON_NET_SOCKETS_MAX)];
	} control = { 0 };
	struct cordon_net_sockets message = { 0 };
	struct iovec iov = { &message, sizeof(message) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t got = recvmsg(net.sockets, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t n = 0;
	int fds[CORDON_NET_SOCKETS_MAX];

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return -EPIPE;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	}
	for (size_t i = 0; i < n; i++)
		if (i < message.n && got == (ssize_t)sizeof(message))
			take((enum cordon_net_socket)message.kinds[i], fds[i]);
		else
			close(fds[i]);
	return 1;
}

static void on_sockets(struct source *source, uint32_t events)
{
	(void)events;
	/* Without PID 1 the run is at its end; the supervisor will end us. */
	if (receive() < 0)
		(void)epoll_ctl(net.epoll, EPOLL_CTL_DEL, source->fd, NULL);
}

void net_sockets_drain(void)
{
	while (receive() > 0)
		;
}

int net_sockets_begin(void)
{
	static struct source source = { .on = on_sockets };

	source.fd = net.sockets;
	ask(AF_INET);
	return net_watch(&source, EPOLLIN);
}

/* A TCP socket of the run without an address; the descriptor or -errno. Waits a moment where PID 1 has to make one. */
static int socket_take(int family)
{
	struct pool *pool = pool_of(family);
	struct pollfd ready = { .fd = net.sockets, .events = POLLIN };

	if (family == AF_INET6 && !net.v6)
		return -EAFNOSUPPORT;
	if (pool->n <= POOL_LOW)
		ask(family);
	while (!pool->n && pool->asked && poll(&ready, 1, WAIT_MS) > 0 && receive() >= 0)
		;
	if (!pool->n)
		pool->asked = false; /* the next one asks again */
	return pool->n ? pool->fds[--pool->n] : -EAGAIN;
}

static int socket_bind(int fd, const struct cordon_net_address *address, uint16_t port)
{
	struct sockaddr_storage name;
	socklen_t n = net_address_to(address, port, &name);
	const int on = 1;

	if (name.ss_family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	}
	if (bind(fd, (const struct sockaddr *)&name, n) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	return 0;
}

/* ---- listeners ---- */

#define ACCEPTS 64 /* in one turn */

static struct listener *fixed;

static void on_listener(struct source *source, uint32_t events)
{
	struct listener *listener = (struct listener *)source;

	(void)events;
	for (int i = 0; i < ACCEPTS && source->fd >= 0; i++) {
		int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
			return;
		if (fd >= 0)
			net_conn_accept(listener, fd);
	}
}

static void end_listener(struct listener *listener)
{
	net_unwatch(&listener->source);
	net_free_later(listener);
}

/* Takes the descriptor when it succeeds. */
static int add_listener(struct listener **list, int fd, struct name *name, const struct cordon_net_address *address,
			uint16_t port, int inject)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	int r;

	if (!listener)
		return -ENOMEM;
	*listener = (struct listener){ .source = { .on = on_listener, .fd = fd },
				       .next = *list,
				       .name = name,
				       .address = *address,
				       .port = port,
				       .inject = inject };
	r = net_watch(&listener->source, EPOLLIN);
	if (r < 0) {
		free(listener);
		return r;
	}
	*list = listener;
	return 0;
}

static bool has_listener(const struct listener *list, const struct cordon_net_address *address, uint16_t port)
{
	while (list && (list->port != port || !net_address_equal(&list->address, address)))
		list = list->next;
	return list != NULL;
}

/* Makes a listener with a new socket. When the agent has taken the address, it only keeps it from itself. */
static void make_listener(struct listener **list, struct name *name, const struct cordon_net_address *address,
			  uint16_t port)
{
	int fd;

	if (has_listener(*list, address, port))
		return;
	fd = socket_take(cordon_net_address_is_v4(address) ? AF_INET : AF_INET6);
	if (fd >= 0 && (socket_bind(fd, address, port) < 0 || add_listener(list, fd, name, address, port, -1) < 0))
		close(fd);
}

/* Takes a socket that came bound from inside. */
static int listen_fixed(int fd)
{
	struct sockaddr_storage bound = { 0 };
	struct cordon_net_address address, any = { 0 };
	socklen_t n = sizeof(bound);
	int inject = -1;
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&bound, &n) < 0)
		return -errno;
	net_address_from(&bound, &address, &port);
	if (cordon_net_address_is_v4(&address))
		any.bytes[10] = any.bytes[11] = 0xff;
	if (net_address_equal(&address, &any))
		return net_dns_begin_tcp(fd);
	if (net_address_is_loopback(&address) && cordon_net_address_is_v4(&address) && port >= CORDON_NET_INJECT_PORT &&
	    port < CORDON_NET_INJECT_PORT + net.n_credentials)
		inject = port - CORDON_NET_INJECT_PORT;
	return add_listener(&fixed, fd, NULL, &address, port, inject);
}

void net_listen_name(struct name *name)
{
	for (struct listener **at = &name->listeners; *at;) {
		struct listener *listener = *at;

		if (cordon_net_list_find(&net.list, name->text, listener->port)) {
			at = &listener->next;
			continue;
		}
		*at = listener->next;
		end_listener(listener);
	}
	for (size_t i = 0; i < net.list.n; i++)
		for (unsigned int family = 0; family < 2; family++)
			if (name->has_label[family] && cordon_net_rule_covers(&net.list.rules[i], name->text))
				make_listener(&name->listeners, name, &name->labels[family], net.list.rules[i].port);
}

static bool is_fixed_allowed(const struct listener *listener)
{
	return listener->inject >= 0 || net_address_granted(&net.list, &listener->address, listener->port);
}

void net_listen_apply(void)
{
	static const struct cordon_net_address home4 = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	static const struct cordon_net_address home6 = { { [15] = 1 } };

	for (struct listener **at = &fixed; *at;) {
		struct listener *listener = *at;

		if (is_fixed_allowed(listener)) {
			at = &listener->next;
			continue;
		}
		*at = listener->next;
		end_listener(listener);
	}
	for (size_t i = 0; i < net.list.n; i++) {
		const struct cordon_net_rule *rule = &net.list.rules[i];

		if (rule->kind == CORDON_NET_KIND_LOCALHOST) {
			make_listener(&fixed, NULL, &home4, rule->port);
			make_listener(&fixed, NULL, &home6, rule->port);
		} else if (rule->kind == CORDON_NET_KIND_ADDRESS) {
			make_listener(&fixed, NULL, &rule->address, rule->port);
		}
	}
}
