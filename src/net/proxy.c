/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy of the host, where it has one: hosts are reached through it with CONNECT, by their names. */
#include <sodium.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#include "net/conn.h"

#define ANSWER_MAX 4096
#define ANSWER_MS 30000

/* The proxy itself, which may be in the host's own network. */
static struct name proxy_name = { .direct = true };

/* "[http://][user:password@]host[:port][/]". 0, or -EINVAL. */
int net_proxy_parse(const char *text)
{
	const char *host, *end, *at, *colon;
	char digits[8];
	uint64_t port = 3128;
	int r;

	if (!*text)
		return 0;
	host = strncasecmp(text, "http://", 7) == 0 ? text + 7 : text;
	if (strncasecmp(text, "https://", 8) == 0 || strncasecmp(text, "socks", 5) == 0)
		return -EINVAL; /* a proxy that itself speaks TLS or SOCKS */
	end = host + strcspn(host, "/");
	at = memrchr(host, '@', (size_t)(end - host));
	if (at) {
		size_t n = (size_t)(at - host);

		if (sodium_base64_encoded_len(n, sodium_base64_VARIANT_ORIGINAL) > sizeof(net.proxy.authorization))
			return -EINVAL;
		sodium_bin2base64(net.proxy.authorization, sizeof(net.proxy.authorization), (const uint8_t *)host, n,
				  sodium_base64_VARIANT_ORIGINAL);
		host = at + 1;
	}
	colon = memrchr(host, ':', (size_t)(end - host));
	if (colon && (*host != '[' || colon[-1] == ']')) {
		if (cordon_copy(digits, sizeof(digits), colon + 1, (size_t)(end - colon - 1)) < 0 ||
		    cordon_parse_u64(digits, 1, 65535, &port) < 0)
			return -EINVAL;
		end = colon;
	}
	net.proxy.port = (uint16_t)port;
	if (*host == '[' && end[-1] == ']')
		host++, end--;
	proxy_name.n = cordon_net_address_parse(host, (size_t)(end - host), &proxy_name.addresses[0]) == 0;
	if (proxy_name.n) {
		proxy_name.known = true;
		proxy_name.fresh = INT64_MAX;
		r = cordon_copy(proxy_name.text, sizeof(proxy_name.text), host, (size_t)(end - host));
	} else if (end - host == 9 && strncasecmp(host, "localhost", 9) == 0) {
		proxy_name.addresses[0] = (struct cordon_net_address){
			{ [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 }
		};
		proxy_name.addresses[1] = (struct cordon_net_address){ { [15] = 1 } };
		proxy_name.n = 2;
		proxy_name.known = true;
		proxy_name.fresh = INT64_MAX;
		r = cordon_copy(proxy_name.text, sizeof(proxy_name.text), "localhost", 9);
	} else {
		r = cordon_net_name_clean(host, (size_t)(end - host), proxy_name.text);
	}
	net.proxy.used = r == 0;
	return r;
}

static void on_resolved(struct waiter *waiter)
{
	struct conn *conn = (struct conn *)(void *)((char *)waiter - offsetof(struct conn, waiter));

	conn->state = CONN_DIAL;
	conn->n = proxy_name.n;
	memcpy(conn->addresses, proxy_name.addresses, proxy_name.n * sizeof(proxy_name.addresses[0]));
	net_conn_dial(conn);
}

void net_proxy_dial(struct conn *conn)
{
	conn->by_proxy = true;
	conn->dial_port = net.proxy.port;
	conn->state = CONN_RESOLVE;
	conn->waited = &proxy_name;
	conn->waiter.resolved = on_resolved;
	if (net_name_resolve(&proxy_name, &conn->waiter) < 0)
		net_conn_end(conn, true);
}

void net_proxy_begin(struct conn *conn)
{
	char request[2048];
	int n = snprintf(request, sizeof(request), "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n",
			 conn->name->text, conn->port, conn->name->text, conn->port,
			 net.proxy.authorization[0] ? "Proxy-Authorization: Basic " : "", net.proxy.authorization,
			 net.proxy.authorization[0] ? "\r\n" : "");

	/* It fits into the empty buffer of a new connection. */
	if (n < 0 || (size_t)n >= sizeof(request) ||
	    send(conn->out.fd, request, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) != n) {
		net_conn_end(conn, true);
		return;
	}
	conn->state = CONN_PROXY;
	conn->deadline = net.now + ANSWER_MS;
	net_change(&conn->out, EPOLLIN | EPOLLET);
}

/* Takes the head of the answer, and not a byte of what follows it. */
void net_proxy_serve(struct conn *conn)
{
	static const char end[] = "\r\n\r\n";
	char answer[ANSWER_MAX];
	ssize_t n = recv(conn->out.fd, answer, sizeof(answer), MSG_PEEK | MSG_DONTWAIT);
	const char *found;
	size_t head;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	found = n > 0 ? memmem(answer, (size_t)n, end, 4) : NULL;
	if (!found && n > 0 && n < ANSWER_MAX)
		return;
	if (!found || n < 12 || memcmp(answer, "HTTP/1.", 7) != 0 || memcmp(answer + 8, " 200", 4) != 0) {
		net_conn_end(conn, true);
		return;
	}
	head = (size_t)(found - answer) + 4;
	if (recv(conn->out.fd, answer, head, MSG_DONTWAIT) != (ssize_t)head) {
		net_conn_end(conn, true);
		return;
	}
	net_conn_dialled(conn);
}
