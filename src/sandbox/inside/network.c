/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's process and PID 1 make the routes and sockets of a run that may reach a list of hosts. */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "sandbox/inside/network.h"
#include "sandbox/plan/plan.h"

#define BACKLOG 1024
#define DNS_PORT 53

/* Sockets that are not passed yet. */
struct batch {
	int socket;
	struct cordon_net_sockets sockets;
	int fds[CORDON_NET_SOCKETS_MAX];
};

int cordon_network_send(int socket, const struct cordon_net_sockets *sockets, const int *fds, int flags)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * CORDON_NET_SOCKETS_MAX)];
	} control = { 0 };
	struct cordon_net_sockets copy = *sockets;
	struct iovec iov = { &copy, sizeof(copy) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(sizeof(int) * sockets->n) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * sockets->n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * sockets->n);
	do
		n = sendmsg(socket, &msg, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int flush(struct batch *batch, int flags)
{
	int r = batch->sockets.n ? cordon_network_send(batch->socket, &batch->sockets, batch->fds, flags) : 0;

	for (uint32_t i = 0; i < batch->sockets.n; i++)
		close(batch->fds[i]);
	batch->sockets.n = 0;
	return r;
}

/* Takes the descriptor. */
static int add(struct batch *batch, enum cordon_net_socket kind, int fd)
{
	int r = batch->sockets.n == CORDON_NET_SOCKETS_MAX ? flush(batch, 0) : 0;

	if (r < 0) {
		close(fd);
		return r;
	}
	batch->sockets.kinds[batch->sockets.n] = (uint8_t)kind;
	batch->fds[batch->sockets.n++] = fd;
	return 0;
}

static int loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 || ioctl(fd, SIOCGIFINDEX, &request) < 0 ? -errno : 0;

	cordon_closep(&fd);
	return r < 0 ? r : request.ifr_ifindex;
}

/* Makes the route `local default dev lo` of this family. 0 or -errno. */
static int add_route(int netlink, int family, int loopback)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
		struct rtattr attribute;
		int index;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_NEWROUTE,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL },
		.route = { .rtm_family = (unsigned char)family,
			   .rtm_table = RT_TABLE_LOCAL,
			   .rtm_protocol = RTPROT_BOOT,
			   .rtm_scope = RT_SCOPE_HOST,
			   .rtm_type = RTN_LOCAL },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(int)), .rta_type = RTA_OIF },
		.index = loopback,
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512]; /* the request comes back behind an error */
	} answer;
	ssize_t n;

	if (send(netlink, &request, sizeof(request), 0) < 0)
		return -errno;
	do
		n = recv(netlink, &answer, sizeof(answer), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(answer.header) + sizeof(answer.error) || answer.header.nlmsg_type != NLMSG_ERROR)
		return -EBADMSG;
	return answer.error.error;
}

/* Clears *v6 when the kernel has no IPv6, or it is switched off. */
static int add_routes(int loopback, bool *v6)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int r = fd < 0 ? -errno : add_route(fd, AF_INET, loopback);

	*v6 = r == 0 && add_route(fd, AF_INET6, loopback) == 0;
	cordon_closep(&fd);
	return r;
}

/* A socket that is bound to an address (NULL: to every one) of the family. The descriptor or -errno. */
static int bound(int family, int type, const struct cordon_net_address *address, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const struct sockaddr *name = family == AF_INET ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;
	int r;

	if (fd < 0)
		return -errno;
	if (address && family == AF_INET)
		memcpy(&v4.sin_addr, address->bytes + 12, 4);
	else if (address)
		memcpy(&v6.sin6_addr, address->bytes, 16);
	if (family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	}
	/* An answer must come from the address that was asked. */
	if (type == SOCK_DGRAM)
		(void)setsockopt(fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
				 family == AF_INET ? IP_PKTINFO : IPV6_RECVPKTINFO, &on, sizeof(on));
	r = bind(fd, name, family == AF_INET ? sizeof(v4) : sizeof(v6)) < 0 ? -errno : 0;
	if (r == 0 && type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static int add_bound(struct batch *batch, int family, int type, const struct cordon_net_address *address, uint16_t port)
{
	int fd = bound(family, type, address, port);

	/* Two rules may ask for the same address and port. */
	if (fd < 0)
		return fd == -EADDRINUSE ? 0 : fd;
	return add(batch, type == SOCK_DGRAM ? CORDON_NET_SOCKET_DNS : CORDON_NET_SOCKET_LISTENER, fd);
}

/*
 * Sees only how the kernel refuses: the answer to the first packet of a connection (RST and ACK, with the number 0), and
 * "port unreachable" for a datagram. With these the refused attempts can be reported, although nobody hears them. A raw
 * socket of IPv4 shows a packet from its IP header on, one of IPv6 from what follows that. (To close packet sockets takes
 * the kernel longer than all else of a run.)
 */
static int refusals_socket(int family, int protocol)
{
	static const struct sock_filter tcp4[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), /* length of the IP header */
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 13), /* the flags */
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x14),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x14, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, 4), /* the number */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 128),
	};
	static const struct sock_filter icmp4[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0), /* type and code */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0303, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 128),
	};
	static const struct sock_filter tcp6[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x14),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x14, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 128),
	};
	static const struct sock_filter icmp6[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0104, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 128),
	};
	/* The kernel's structure wants a pointer to writable memory, which it only reads. */
	const struct sock_fprog filters[2][2] = {
		{ { CORDON_ARRAY_SIZE(tcp4), (struct sock_filter *)(uintptr_t)tcp4 },
		  { CORDON_ARRAY_SIZE(icmp4), (struct sock_filter *)(uintptr_t)icmp4 } },
		{ { CORDON_ARRAY_SIZE(tcp6), (struct sock_filter *)(uintptr_t)tcp6 },
		  { CORDON_ARRAY_SIZE(icmp6), (struct sock_filter *)(uintptr_t)icmp6 } },
	};
	const struct sock_fprog *filter = &filters[family == AF_INET6][protocol != IPPROTO_TCP];
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, filter, sizeof(*filter)) == 0)
		return fd;
	cordon_closep(&fd);
	return -errno;
}

/* The listeners that do not depend on a name: they are there before the agent is. */
static int add_fixed(struct batch *batch, const struct cordon_net_list *list, bool v6)
{
	static const struct cordon_net_address home4 = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	static const struct cordon_net_address home6 = { { [15] = 1 } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n_inject; i++)
		r = add_bound(batch, AF_INET, SOCK_STREAM, &home4, (uint16_t)(CORDON_NET_INJECT_PORT + i));
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		const struct cordon_net_rule *rule = &list->rules[i];

		if (rule->kind == CORDON_NET_KIND_LOCALHOST) {
			r = add_bound(batch, AF_INET, SOCK_STREAM, &home4, rule->port);
			if (r == 0 && v6)
				r = add_bound(batch, AF_INET6, SOCK_STREAM, &home6, rule->port);
		} else if (rule->kind == CORDON_NET_KIND_ADDRESS) {
			bool is_v4 = memcmp(rule->address.bytes, home4.bytes, 12) == 0;

			if (is_v4 || v6)
				r = add_bound(batch, is_v4 ? AF_INET : AF_INET6, SOCK_STREAM, &rule->address,
					      rule->port);
		}
	}
	return r;
}

static int add_sockets(struct batch *batch, const struct cordon_net_list *list, bool v6)
{
	int r = 0;

	for (int i = 0; r == 0 && i < (v6 ? 4 : 2); i++)
		r = add_bound(batch, i < 2 ? AF_INET : AF_INET6, i % 2 ? SOCK_STREAM : SOCK_DGRAM, NULL, DNS_PORT);
	if (r == 0)
		r = add_fixed(batch, list, v6);
	for (int i = 0; r == 0 && i < (v6 ? 4 : 2); i++) {
		int fd = refusals_socket(i < 2 ? AF_INET : AF_INET6, i % 2 == 0 ? IPPROTO_TCP
								     : i < 2	? IPPROTO_ICMP
										: IPPROTO_ICMPV6);

		r = fd < 0 ? fd : add(batch, CORDON_NET_SOCKET_REFUSALS, fd);
	}
	return r;
}

int cordon_network_open(const struct cordon_net_list *list, int socket, const char **ret_what)
{
	struct batch batch = { .socket = socket };
	int loopback = loopback_up();
	bool v6;
	int r;

	*ret_what = "the loopback interface";
	if (loopback < 0 || !list)
		return loopback < 0 ? loopback : 0;
	*ret_what = "the routes of the network";
	r = add_routes(loopback, &v6);
	if (r < 0)
		return r;
	*ret_what = "the sockets of the network";
	r = add_sockets(&batch, list, v6);
	return r < 0 ? r : flush(&batch, 0);
}

static int tcp_socket(int family)
{
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

bool cordon_network_serve(int socket)
{
	struct batch batch = { .socket = socket };
	struct cordon_net_request request;
	ssize_t n = recv(socket, &request, sizeof(request), MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	if (n != (ssize_t)sizeof(request) || (request.family != AF_INET && request.family != AF_INET6))
		return false;
	for (uint32_t i = 0; i < request.n && i < CORDON_NET_SOCKETS_MAX; i++) {
		int fd = tcp_socket((int)request.family);

		if (fd < 0)
			break;
		batch.sockets.kinds[i] = CORDON_NET_SOCKET_EMPTY;
		batch.fds[batch.sockets.n++] = fd;
	}
	/* cordon-net waits for an answer; an empty one can't bring descriptors, so that it waits in vain then. */
	return flush(&batch, MSG_DONTWAIT) != -EPIPE;
}
