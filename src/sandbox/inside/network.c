/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's process and PID 1 make the routes and sockets of a run that may reach a list of hosts. */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "sandbox/inside/network.h"
#include "sandbox/plan/plan.h"

#define BACKLOG 1024
#define DNS_PORT 53

/* Sockets that are not passed yet. */
struct batch {
	int socket;
	int wake; /* watches them; or -1 */
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
	struct epoll_event event = { .events = EPOLLIN };
	int r = batch->sockets.n == CORDON_NET_SOCKETS_MAX ? flush(batch, 0) : 0;

	if (r == 0 && epoll_ctl(batch->wake, EPOLL_CTL_ADD, fd, &event) < 0)
		r = -errno;
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

/* Requests to the kernel's routing socket, which are sent together. */
struct requests {
	union {
		struct nlmsghdr first;
		char bytes[512];
	};
	size_t len;
	unsigned int n;
};

/* Begins a request; its body and attributes follow. */
static void begin_request(struct requests *all, uint16_t type, const void *body, size_t size)
{
	struct nlmsghdr header = { .nlmsg_len = (uint32_t)NLMSG_LENGTH(size),
				   .nlmsg_type = type,
				   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
				   .nlmsg_seq = all->n++ };

	memcpy(all->bytes + all->len, &header, sizeof(header));
	memcpy(all->bytes + all->len + NLMSG_HDRLEN, body, size);
}

static void add_attribute(struct requests *all, uint16_t type, const void *value, size_t size)
{
	struct rtattr attribute = { .rta_len = (uint16_t)RTA_LENGTH(size), .rta_type = type };
	struct nlmsghdr header;
	char *at;

	memcpy(&header, all->bytes + all->len, sizeof(header));
	at = all->bytes + all->len + NLMSG_ALIGN(header.nlmsg_len);
	memcpy(at, &attribute, sizeof(attribute));
	memcpy(at + RTA_LENGTH(0), value, size);
	header.nlmsg_len = NLMSG_ALIGN(header.nlmsg_len) + (uint32_t)RTA_LENGTH(size);
	memcpy(all->bytes + all->len, &header, sizeof(header));
}

static void end_request(struct requests *all)
{
	struct nlmsghdr header;

	memcpy(&header, all->bytes + all->len, sizeof(header));
	all->len += NLMSG_ALIGN(header.nlmsg_len);
}

/* The route `local default dev lo` of this family. */
static void add_route(struct requests *all, int family, int loopback)
{
	struct rtmsg route = { .rtm_family = (unsigned char)family,
			       .rtm_table = RT_TABLE_LOCAL,
			       .rtm_protocol = RTPROT_BOOT,
			       .rtm_scope = RT_SCOPE_HOST,
			       .rtm_type = RTN_LOCAL };

	begin_request(all, RTM_NEWROUTE, &route, sizeof(route));
	add_attribute(all, RTA_OIF, &loopback, sizeof(loopback));
	end_request(all);
}

/* An address that is no loopback address: a resolver that is told to look only for families of which the machine has an
 * address (AI_ADDRCONFIG) does not count those. */
static void add_address(struct requests *all, int family, int loopback, const void *address, size_t size)
{
	struct ifaddrmsg message = { .ifa_family = (unsigned char)family,
				     .ifa_prefixlen = (unsigned char)(8 * size),
				     .ifa_scope = RT_SCOPE_UNIVERSE,
				     .ifa_index = (unsigned int)loopback };

	begin_request(all, RTM_NEWADDR, &message, sizeof(message));
	add_attribute(all, IFA_LOCAL, address, size);
	add_attribute(all, IFA_ADDRESS, address, size);
	end_request(all);
}

/* Waits for the answers, which come in order and may share a message. Sets the error code of each. */
static int read_answers(int netlink, int *ret_codes, unsigned int n)
{
	union {
		struct nlmsghdr header;
		char bytes[4096]; /* a request comes back behind its error */
	} answer;
	unsigned int seen = 0;

	while (seen < n) {
		ssize_t got = recv(netlink, &answer, sizeof(answer), 0);
		size_t at = 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EBADMSG;
		while (at + NLMSG_LENGTH(sizeof(struct nlmsgerr)) <= (size_t)got && seen < n) {
			struct nlmsghdr header;
			struct nlmsgerr error;

			memcpy(&header, answer.bytes + at, sizeof(header));
			memcpy(&error, answer.bytes + at + NLMSG_HDRLEN, sizeof(error));
			if (header.nlmsg_type != NLMSG_ERROR || header.nlmsg_seq != seen ||
			    header.nlmsg_len < NLMSG_LENGTH(sizeof(error)))
				return -EBADMSG;
			ret_codes[seen++] = error.error;
			at += NLMSG_ALIGN(header.nlmsg_len);
		}
	}
	return 0;
}

/* Makes routes and addresses. Clears *v6 when the kernel has no IPv6, or it is switched off. */
static int configure(int loopback, bool *v6)
{
	/* From the ranges for measurements, as the labels of names are (net/names.c), but never one of those. */
	static const uint8_t home4[4] = { 198, 19, 255, 254 };
	static const uint8_t home6[16] = { 0x20, 0x01, 0x00, 0x02, [15] = 1, [6] = 0xff };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct requests all = { .n = 0 };
	int codes[4] = { 0 };
	int r;

	if (fd < 0)
		return -errno;
	add_route(&all, AF_INET, loopback);
	add_address(&all, AF_INET, loopback, home4, sizeof(home4));
	add_route(&all, AF_INET6, loopback);
	add_address(&all, AF_INET6, loopback, home6, sizeof(home6));
	r = send(fd, all.bytes, all.len, 0) < 0 ? -errno : read_answers(fd, codes, all.n);
	close(fd);
	if (r < 0)
		return r;
	*v6 = codes[2] == 0 && codes[3] == 0;
	return codes[0] < 0 ? codes[0] : codes[1];
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

int cordon_network_open(const struct cordon_net_list *list, int socket, int wake, const char **ret_what)
{
	struct batch batch = { .socket = socket, .wake = wake };
	int loopback = loopback_up();
	bool v6 = false;
	int r;

	*ret_what = "the loopback interface";
	if (loopback < 0 || !list)
		return loopback < 0 ? loopback : 0;
	*ret_what = "the routes and addresses of the network";
	r = configure(loopback, &v6);
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
	struct batch batch = { .socket = socket, .wake = -1 };
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
