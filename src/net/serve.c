/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the DNS queries of the run, over UDP and TCP, whichever address it sends them to. A name that no rule allows
 * is answered here, and no packet leaves the machine for it. */
#include <stdio.h>
#include <sys/socket.h>

#include "net/dns.h"
#include "net/helper.h"

#define QUERY_MAX 4096
#define QUESTION_MAX (CORDON_DNS_HEADER + 255 + 4)
#define TCP_IDLE_MS 10000
#define TURN 32 /* datagrams in one turn */

struct stream;

/* A query, and where its answer goes to. */
struct query {
	struct waiter waiter; /* first */
	struct cordon_dns_query parsed;
	uint8_t message[QUESTION_MAX]; /* header and question */
	struct name *name;
	/* UDP: */
	int fd;
	struct sockaddr_storage from;
	struct in_pktinfo to4;
	struct in6_pktinfo to6;
	/* TCP: */
	struct stream *stream;
};

/* A TCP connection; it has one query at a time. */
struct stream {
	struct source source; /* first */
	struct stream *next;
	struct query *query;
	int64_t deadline;
	size_t len;
	uint8_t bytes[2 + QUERY_MAX];
};
static struct stream *streams;
static size_t n_streams;

static void read_stream(struct stream *stream);

static void end_stream(struct stream *stream)
{
	struct stream **at = &streams;

	while (*at && *at != stream)
		at = &(*at)->next;
	if (*at)
		*at = stream->next;
	n_streams--;
	if (stream->query) {
		/* It waits for a name, unless it was none that could be answered. */
		if (stream->query->name)
			net_name_forget(stream->query->name, &stream->query->waiter);
		net_free_later(stream->query);
	}
	net_unwatch(&stream->source);
	net_free_later(stream);
}

/* Answers from the address that was asked, which the client compares. */
static void send_datagram(const struct query *query, const uint8_t *answer, size_t n)
{
	bool v4 = query->from.ss_family == AF_INET;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = { 0 };
	struct sockaddr_storage to = query->from;
	struct iovec iov = { (void *)(uintptr_t)answer, n };
	struct msghdr msg = { .msg_name = &to,
			      .msg_namelen = v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(v4 ? sizeof(query->to4) : sizeof(query->to6)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	c->cmsg_type = v4 ? IP_PKTINFO : IPV6_PKTINFO;
	c->cmsg_len = CMSG_LEN(v4 ? sizeof(query->to4) : sizeof(query->to6));
	memcpy(CMSG_DATA(c), v4 ? (const void *)&query->to4 : (const void *)&query->to6,
	       v4 ? sizeof(query->to4) : sizeof(query->to6));
	(void)sendmsg(query->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void answer(struct query *query, enum cordon_dns_rcode rcode, const struct cordon_net_address *address)
{
	uint8_t bytes[2 + CORDON_DNS_ANSWER_MAX];
	size_t n = cordon_dns_answer(query->message, &query->parsed, rcode, address, bytes + 2);
	struct stream *stream = query->stream;

	if (!stream) {
		send_datagram(query, bytes + 2, n);
	} else {
		bytes[0] = (uint8_t)(n >> 8);
		bytes[1] = (uint8_t)n;
		stream->query = NULL;
		stream->deadline = net.now + TCP_IDLE_MS;
		/* An answer fits into the buffer of any socket that is read; one that is not read is not worth more. */
		if (send(stream->source.fd, bytes, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n + 2)
			end_stream(stream);
		else
			net_again(&stream->source); /* the next query may be there already */
	}
	net_free_later(query);
}

/* The name has addresses, but none that may be dialled. */
static void report_not_public(const struct name *name)
{
	char text[CORDON_NET_ADDRESS_SIZE], rule[CORDON_NET_RULE_SIZE];
	uint16_t port = CORDON_NET_PORT;

	for (size_t i = 0; i < net.list.n; i++)
		if (cordon_net_rule_covers(&net.list.rules[i], name->text))
			port = net.list.rules[i].port;
	cordon_net_address_text(&name->addresses[0], text);
	net_host_port(net_address_is_loopback(&name->addresses[0]) ? "localhost" : text, port, rule);
	net_report(CORDON_REASON_NOT_PUBLIC, name->text, port, rule);
}

static void on_resolved(struct waiter *waiter)
{
	struct query *query = (struct query *)waiter;
	struct name *name = query->name;
	const struct cordon_net_address *labels[2] = { net_name_label(name, 0), net_name_label(name, 1) };

	if (!labels[0] && !labels[1]) {
		if (name->n)
			report_not_public(name);
		answer(query, name->failed ? CORDON_DNS_FAILED : CORDON_DNS_NO_NAME, NULL);
		return;
	}
	net_listen_name(name);
	answer(query, CORDON_DNS_OK, labels[query->parsed.type == CORDON_DNS_AAAA]);
}

static bool is_localhost(const char *name)
{
	size_t n = strlen(name);

	return cordon_streq(name, "localhost") || (n > 10 && cordon_streq(name + n - 10, ".localhost"));
}

static void refuse(struct query *query)
{
	char rule[CORDON_NET_RULE_SIZE];

	/* Other types are asked for on the way to an address, or by tools that go on without an answer. */
	if (query->parsed.type == CORDON_DNS_A || query->parsed.type == CORDON_DNS_AAAA) {
		net_host_port(query->parsed.name, CORDON_NET_PORT, rule);
		net_report(CORDON_REASON_NO_HOST, query->parsed.name, 0, rule);
	}
	answer(query, CORDON_DNS_NO_NAME, NULL);
}

static void serve_name(struct query *query)
{
	static const struct cordon_net_address home4 = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	static const struct cordon_net_address home6 = { { [15] = 1 } };
	const char *text = query->parsed.name;
	uint16_t type = query->parsed.type;
	bool limited;

	if (is_localhost(text)) {
		answer(query, CORDON_DNS_OK, type == CORDON_DNS_A ? &home4 : type == CORDON_DNS_AAAA ? &home6 : NULL);
		return;
	}
	query->name = *text ? net_name_find(text, &limited) : NULL;
	if (!*text) {
		answer(query, CORDON_DNS_NO_NAME, NULL);
	} else if (!query->name && limited) {
		net_report_limit("net_names", NET_NAMES_MAX);
		answer(query, CORDON_DNS_FAILED, NULL);
	} else if (!query->name) {
		refuse(query);
	} else if (type != CORDON_DNS_A && type != CORDON_DNS_AAAA) {
		answer(query, CORDON_DNS_OK, NULL); /* also HTTPS and SVCB, which could bring a key that hides the name */
	} else {
		query->waiter.resolved = on_resolved;
		if (net_name_resolve(query->name, &query->waiter) < 0)
			answer(query, CORDON_DNS_FAILED, NULL);
	}
}

/* Takes the query. The message must be `n` bytes. */
static void serve(struct query *query, const uint8_t *message, size_t n)
{
	int r = cordon_dns_parse(message, n, &query->parsed);

	if (r == -EBADMSG) {
		if (query->stream)
			end_stream(query->stream); /* frees the query, too */
		else
			net_free_later(query);
		return;
	}
	memcpy(query->message, message, CORDON_DNS_HEADER + query->parsed.question_len);
	if (r < 0)
		answer(query, r == -EOPNOTSUPP ? CORDON_DNS_NOT_IMPLEMENTED : CORDON_DNS_FORMAT_ERROR, NULL);
	else
		serve_name(query);
}

/* False when there is no datagram. */
static bool receive(int fd)
{
	static uint8_t message[QUERY_MAX];
	union {
		struct cmsghdr header;
		char space[256];
	} control = { 0 };
	struct query *query = calloc(1, sizeof(*query));
	struct iovec iov = { message, sizeof(message) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t n;

	if (!query)
		return false;
	msg.msg_name = &query->from;
	msg.msg_namelen = sizeof(query->from);
	query->fd = fd;
	n = recvmsg(fd, &msg, MSG_DONTWAIT);
	if (n < 0 || (msg.msg_flags & MSG_TRUNC)) {
		free(query);
		return n >= 0;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
			memcpy(&query->to4, CMSG_DATA(c), sizeof(query->to4));
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO)
			memcpy(&query->to6, CMSG_DATA(c), sizeof(query->to6));
	}
	/* The address that was asked becomes the source of the answer. */
	query->to4.ipi_spec_dst = query->to4.ipi_addr;
	query->to4.ipi_ifindex = 0;
	serve(query, message, (size_t)n);
	return true;
}

static void on_datagrams(struct source *source, uint32_t events)
{
	(void)events;
	for (int i = 0; i < TURN && receive(source->fd); i++)
		;
}

int net_dns_begin_udp(int fd)
{
	socklen_t n = sizeof(int);
	int family = 0;

	/* One for each family comes first of all, if the run has it. */
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n) == 0 && family == AF_INET6)
		net.v6 = true;
	return net_watch_new(fd, on_datagrams);
}

/* Serves the message at the front, when it is there and no other is being served. */
static void read_stream(struct stream *stream)
{
	static uint8_t message[QUERY_MAX];
	size_t n = stream->len >= 2 ? (size_t)stream->bytes[0] << 8 | stream->bytes[1] : 0;
	struct query *query;

	if (stream->query || stream->len < 2)
		return;
	if (n < CORDON_DNS_HEADER || n > QUERY_MAX) {
		end_stream(stream);
		return;
	}
	if (stream->len < 2 + n)
		return;
	query = calloc(1, sizeof(*query));
	if (!query) {
		end_stream(stream);
		return;
	}
	query->stream = stream;
	stream->query = query;
	memcpy(message, stream->bytes + 2, n);
	stream->len -= 2 + n;
	memmove(stream->bytes, stream->bytes + 2 + n, stream->len);
	serve(query, message, n);
}

static void on_stream(struct source *source, uint32_t events)
{
	struct stream *stream = (struct stream *)source;

	if (events & (EPOLLERR | EPOLLHUP)) {
		end_stream(stream);
		return;
	}
	if ((events & EPOLLIN) && stream->len < sizeof(stream->bytes)) {
		ssize_t n = recv(source->fd, stream->bytes + stream->len, sizeof(stream->bytes) - stream->len,
				 MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			end_stream(stream);
			return;
		}
		stream->len += n > 0 ? (size_t)n : 0;
	} else if (events & EPOLLIN) {
		end_stream(stream); /* it sends more before it has its answer than any client does */
		return;
	}
	read_stream(stream);
}

static void on_streams(struct source *source, uint32_t events)
{
	int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct stream *stream = fd >= 0 && n_streams < NET_DNS_CONNS_MAX ? calloc(1, sizeof(*stream)) : NULL;

	(void)events;
	if (!stream) {
		cordon_closep(&fd);
		return;
	}
	*stream = (struct stream){ .source = { .on = on_stream, .fd = fd },
				   .next = streams,
				   .deadline = net.now + TCP_IDLE_MS };
	if (net_watch(&stream->source, EPOLLIN) < 0) {
		close(fd);
		free(stream);
		return;
	}
	streams = stream;
	n_streams++;
}

int net_dns_begin_tcp(int fd)
{
	return net_watch_new(fd, on_streams);
}

bool net_dns_tick(void)
{
	for (struct stream *stream = streams, *next; stream; stream = next) {
		next = stream->next;
		if (net.now > stream->deadline)
			end_stream(stream);
	}
	return n_streams > 0;
}
