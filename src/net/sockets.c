/* SPDX-License-Identifier: Apache-2.0 */
/* Receives the sockets of the run that are made inside, and asks PID 1 for more. */
#include <poll.h>
#include <sys/socket.h>

#include "net/helper.h"

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
		r = net_listen_fixed(fd);
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

int net_socket_take(int family)
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

int net_socket_bind(int fd, const struct cordon_net_address *address, uint16_t port)
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
