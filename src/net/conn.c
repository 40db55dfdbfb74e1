/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the run until its bytes are relayed: which host it is for, whether what it sends names the same
 * host, and the connection to that host. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "net/conn.h"
#include "net/hello.h"

/* ---- relaying ---- */

#define PIPES_KEPT 32
#define PIPE_SIZE (256 << 10)
#define TURN_BYTES (1 << 20) /* then other connections have their turn */
#define HTTP_SIZE (2 * CORDON_HTTP_HEAD_MAX)
#define RECORDS_SIZE (4 * CORDON_HELLO_MAX)
#define RECORD_HEADER 5

static int kept[PIPES_KEPT][2];
static size_t n_kept;

enum moved { MOVED, WAITS, ENDED, BROKEN };

static void conn_drop(struct conn *conn);

static bool take_pipe(struct flow *flow)
{
	if (flow->pipe[0] >= 0)
		return true;
	if (n_kept) {
		memcpy(flow->pipe, kept[--n_kept], sizeof(flow->pipe));
		return true;
	}
	if (pipe2(flow->pipe, O_NONBLOCK | O_CLOEXEC) < 0) {
		flow->pipe[0] = flow->pipe[1] = -1;
		return false;
	}
	(void)fcntl(flow->pipe[1], F_SETPIPE_SZ, PIPE_SIZE);
	return true;
}

static void give_pipe(struct flow *flow)
{
	if (flow->pipe[0] < 0)
		return;
	/* A pipe that is not empty must not be used by another connection. */
	if (!flow->piped && n_kept < PIPES_KEPT) {
		memcpy(kept[n_kept++], flow->pipe, sizeof(flow->pipe));
	} else {
		close(flow->pipe[0]);
		close(flow->pipe[1]);
	}
	flow->pipe[0] = flow->pipe[1] = -1;
	flow->piped = 0;
}

static void relay_done(struct conn *conn)
{
	give_pipe(&conn->flows[0]);
	give_pipe(&conn->flows[1]);
}

static enum moved result_of(ssize_t n)
{
	return n > 0 ? MOVED : n == 0 ? ENDED : errno == EAGAIN || errno == EINTR ? WAITS : BROKEN;
}

/* Moves bytes of one direction until one side is not ready or the turn is over. */
static enum moved move(struct flow *flow, int from, int to, size_t *left)
{
	enum moved r = MOVED;

	while (*left && r == MOVED) {
		ssize_t n;

		if (!flow->piped && !flow->end) {
			if (!take_pipe(flow))
				return BROKEN;
			n = splice(from, NULL, flow->pipe[1], NULL, PIPE_SIZE, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
			r = result_of(n);
			if (r == ENDED)
				flow->end = true;
			if (r != MOVED)
				break;
			flow->piped = (size_t)n;
			*left -= (size_t)n < *left ? (size_t)n : *left;
		}
		if (!flow->piped)
			break;
		n = splice(flow->pipe[0], NULL, to, NULL, flow->piped, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		r = result_of(n);
		if (r == MOVED)
			flow->piped -= (size_t)n;
	}
	if (!flow->piped)
		give_pipe(flow);
	return flow->end && !flow->piped ? ENDED : r;
}

/* Sends what was cleared. */
static enum moved send_cleared(struct conn *conn)
{
	while (conn->cleared) {
		ssize_t n = send(conn->out.fd, conn->bytes, conn->cleared, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n <= 0)
			return result_of(n);
		conn->len -= (size_t)n;
		conn->cleared -= (size_t)n;
		memmove(conn->bytes, conn->bytes + n, conn->len);
	}
	if (!conn->len)
		conn_drop(conn);
	return MOVED;
}

/* Looks at the first bytes of the host's answer without taking them. Returns how many of `n` are there; -EAGAIN when
 * none are there yet. *ret_all: more will not come. */
static ssize_t peek(const struct conn *conn, void *ret, size_t n, bool *ret_all)
{
	struct pollfd end = { .fd = conn->out.fd, .events = POLLRDHUP };
	ssize_t got = recv(conn->out.fd, ret, n, MSG_PEEK | MSG_DONTWAIT);

	*ret_all = got == (ssize_t)n || poll(&end, 1, 0) == 1;
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : 0;
	return got;
}

/* After a request for a WebSocket the client's bytes mean what the server's answer says. Nothing is sent until that is
 * there. 1: it is one now; 0: it is not; -EAGAIN. */
static int websocket_began(const struct conn *conn)
{
	static const char yes[] = "HTTP/1.1 101 ";
	char head[sizeof(yes) - 1];
	bool all;
	ssize_t n = peek(conn, head, sizeof(head), &all);

	if (n <= 0 || memcmp(head, yes, (size_t)n) != 0)
		return n == -EAGAIN ? -EAGAIN : 0;
	return n == (ssize_t)sizeof(head) ? 1 : all ? 0 : -EAGAIN;
}

/* A server may answer a ClientHello by asking for another one, which it then goes by. 1: it does; 0: it does not;
 * -EAGAIN. */
static int wants_another_hello(const struct conn *conn)
{
	/* The random bytes of a ServerHello that is such a request (RFC 8446, 4.1.3). */
	static const uint8_t again[32] = { 0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
					   0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
					   0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c };
	uint8_t head[RECORD_HEADER + 4 + 2 + sizeof(again)];
	bool all;
	ssize_t n = peek(conn, head, sizeof(head), &all);

	if (n <= 0 || head[0] != CORDON_TLS_HANDSHAKE)
		return n == -EAGAIN ? -EAGAIN : 0;
	if (n < (ssize_t)sizeof(head))
		return all ? 0 : -EAGAIN;
	return memcmp(head + sizeof(head) - sizeof(again), again, sizeof(again)) == 0;
}

/* Whether the host's answer must stay where it is, because it has not been looked at. */
static bool holds_answer(const struct conn *conn)
{
	return conn->hello == HELLO_SENT || (conn->is_http && conn->http.websocket && conn->http.requests == 1);
}

static enum moved look_at_request(struct conn *conn)
{
	ssize_t n;

	if (conn->http.websocket) {
		int r = conn->http.requests == 1 ? websocket_began(conn) : 0;

		if (r == -EAGAIN)
			return WAITS;
		conn->http.websocket = false;
		if (r == 1) {
			conn->is_http = false;
			conn->cleared = conn->len;
			return MOVED;
		}
	}
	n = conn->len ? cordon_http_look(&conn->http, conn->bytes, conn->len) : 0;
	if (n < 0) {
		net_report(CORDON_REASON_OTHER_HOST, conn->name->text, conn->port, NULL);
		return BROKEN;
	}
	conn->cleared = (size_t)n;
	return MOVED;
}

/* The direction from the run, request by request. */
static enum moved move_http(struct conn *conn, size_t *left)
{
	struct flow *flow = &conn->flows[0];

	while (*left) {
		enum moved r = send_cleared(conn);
		ssize_t n;

		if (r != MOVED)
			return r;
		r = look_at_request(conn);
		if (r != MOVED || !conn->is_http)
			return r;
		if (conn->cleared)
			continue;
		if (flow->end)
			return ENDED;
		if (!net_conn_room(conn, HTTP_SIZE))
			return BROKEN;
		n = recv(conn->in.fd, conn->bytes + conn->len, conn->size - conn->len, MSG_DONTWAIT);
		if (n < 0)
			return result_of(n);
		flow->end = n == 0;
		conn->len += (size_t)n;
		*left -= (size_t)n < *left ? (size_t)n : *left;
	}
	return MOVED;
}

/* Clears the next record of the client; its second hello is judged. */
static enum moved look_record(struct conn *conn)
{
	char name[CORDON_NET_NAME_SIZE];
	const uint8_t *bytes = (const uint8_t *)conn->bytes;
	size_t record;
	ssize_t n;

	if (conn->len < RECORD_HEADER)
		return MOVED;
	if (bytes[0] != CORDON_TLS_HANDSHAKE) {
		/* Early data, and a message that only older programs on the way want to see. */
		record = RECORD_HEADER + ((size_t)bytes[3] << 8 | bytes[4]);
		conn->cleared = conn->len >= record ? record : 0;
		return MOVED;
	}
	n = cordon_hello_name(bytes, conn->len, name);
	if (n == 0)
		return MOVED;
	if (n < 0 || !cordon_streq(name, conn->name->text)) {
		net_report(CORDON_REASON_OTHER_HOST, conn->name->text, conn->port, NULL);
		return BROKEN;
	}
	conn->hello = HELLO_NONE;
	conn->cleared = conn->len;
	return MOVED;
}

/* The direction from the run, record by record, until the second hello was there. */
static enum moved move_records(struct conn *conn, size_t *left)
{
	struct flow *flow = &conn->flows[0];

	while (*left) {
		enum moved r = send_cleared(conn);
		ssize_t n;

		if (r == MOVED)
			r = look_record(conn);
		if (r != MOVED || conn->hello == HELLO_NONE)
			return r;
		if (conn->cleared)
			continue;
		if (flow->end)
			return ENDED;
		if (!net_conn_room(conn, RECORDS_SIZE))
			return BROKEN;
		n = recv(conn->in.fd, conn->bytes + conn->len, conn->size - conn->len, MSG_DONTWAIT);
		if (n < 0)
			return result_of(n);
		flow->end = n == 0;
		conn->len += (size_t)n;
		*left -= (size_t)n < *left ? (size_t)n : *left;
	}
	return MOVED;
}

/* Sends the hello, and finds out by the answer whether there is more to look at. */
static enum moved await_answer(struct conn *conn)
{
	enum moved r = send_cleared(conn);
	int again;

	if (r != MOVED)
		return r;
	again = wants_another_hello(conn);
	if (again == -EAGAIN)
		return WAITS;
	conn->hello = again ? HELLO_AGAIN : HELLO_NONE;
	conn->cleared = again ? 0 : conn->len;
	return MOVED;
}

static enum moved move_out(struct conn *conn, size_t *left)
{
	enum moved hello = conn->hello == HELLO_SENT ? await_answer(conn) : MOVED;

	if (hello == MOVED && conn->hello == HELLO_AGAIN)
		hello = move_records(conn, left);
	if (hello != MOVED || conn->hello != HELLO_NONE)
		return hello;
	if (conn->is_http) {
		enum moved r = move_http(conn, left);

		if (r != MOVED || conn->is_http)
			return r;
	}
	if (conn->len) {
		enum moved r = send_cleared(conn);

		if (r != MOVED)
			return r;
	}
	return move(&conn->flows[0], conn->in.fd, conn->out.fd, left);
}

/* Passes on the end of one direction. */
static void pass_end(struct flow *flow, int to, enum moved moved)
{
	if (moved == ENDED && !flow->shut) {
		flow->shut = true;
		(void)shutdown(to, SHUT_WR);
	}
}

static void relay(struct conn *conn)
{
	size_t left[2] = { TURN_BYTES, TURN_BYTES };
	struct pollfd gone = { .fd = conn->in.fd, .events = POLLRDHUP };
	enum moved out, in = BROKEN;

	if (conn->inject) {
		net_inject_relay(conn);
		return;
	}
	out = conn->flows[0].shut ? ENDED : move_out(conn, &left[0]);
	/* A client that is gone waits for no answer. */
	if (out == WAITS && holds_answer(conn) && poll(&gone, 1, 0) == 1)
		out = BROKEN;
	else if (out != BROKEN && holds_answer(conn))
		in = WAITS;
	else if (out != BROKEN)
		in = conn->flows[1].shut ? ENDED : move(&conn->flows[1], conn->out.fd, conn->in.fd, &left[1]);
	if (out == BROKEN || in == BROKEN) {
		net_conn_end(conn, true);
		return;
	}
	pass_end(&conn->flows[0], conn->out.fd, out);
	pass_end(&conn->flows[1], conn->in.fd, in);
	if (conn->flows[0].shut && conn->flows[1].shut)
		net_conn_end(conn, false);
	else if (!left[0] || !left[1])
		net_again(&conn->in);
}

void net_relay_begin(struct conn *conn)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

	free(conn->addresses);
	conn->addresses = NULL;
	conn->state = CONN_RELAY;
	conn->deadline = conn->inject ? net.now + NET_LOOK_MS : 0; /* TLS must begin within this time */
	net_change(&conn->in, events);
	net_change(&conn->out, events);
	relay(conn);
}

/* ---- connections ---- */

#define HTTP_PORT 80
#define LOOK_MAX (CORDON_HELLO_MAX + 4096) /* a ClientHello, or the head of a request */

static struct conn *conns;

void net_conn_end(struct conn *conn, bool reset)
{
	const struct linger now = { .l_onoff = 1 };

	if (conn->state == CONN_RESOLVE)
		net_name_forget(conn->waited, &conn->waiter);
	/* The run's side sees that it was no ordinary end. */
	if (reset && conn->in.fd >= 0)
		(void)setsockopt(conn->in.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	if (reset && conn->out.fd >= 0)
		(void)setsockopt(conn->out.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	relay_done(conn);
	net_inject_done(conn);
	net_unwatch(&conn->in);
	net_unwatch(&conn->out);
	conn_drop(conn);
	free(conn->addresses);
	conn->addresses = NULL;
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		conns = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	net.n_conns--;
	conn->state = CONN_ENDED;
	net_free_later(conn);
}

static void refuse(struct conn *conn, cordon_reason reason, const char *suffix)
{
	char rule[CORDON_NET_RULE_SIZE], text[CORDON_NET_RULE_SIZE + 4];

	net_host_port(conn->name->text, conn->port, rule);
	snprintf(text, sizeof(text), "%s%s", rule, suffix ? suffix : "");
	net_report(reason, conn->name->text, conn->port, suffix ? text : NULL);
	net_conn_end(conn, true);
}

/* Whether the name's own rules still let this connection be. */
static const struct cordon_net_rule *rule_of(const struct conn *conn)
{
	if (conn->name)
		return cordon_net_list_find(&net.list, conn->name->text, conn->port);
	if (net_address_is_loopback(&conn->address)) {
		const struct cordon_net_rule *rule = cordon_net_list_find(&net.list, "localhost", conn->port);

		if (rule)
			return rule;
	}
	return cordon_net_list_find_address(&net.list, &conn->address, conn->port);
}

/* Whether the host that was reached is this machine, by an address of its own that looks public. */
static bool reached_ourselves(int fd)
{
	struct sockaddr_storage here = { 0 }, there = { 0 };
	struct cordon_net_address a, b;
	socklen_t n = sizeof(here), m = sizeof(there);
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&here, &n) < 0 || getpeername(fd, (struct sockaddr *)&there, &m) < 0)
		return false;
	net_address_from(&here, &a, &port);
	net_address_from(&there, &b, &port);
	return net_address_equal(&a, &b);
}

/* Tries the next address; ends the connection when none is left. */
static void dial(struct conn *conn)
{
	const int on = 1;

	net_unwatch(&conn->out);
	while (conn->at < conn->n) {
		struct sockaddr_storage to;
		socklen_t n = net_address_to(&conn->addresses[conn->at], conn->dial_port, &to);

		conn->at++;
		conn->out.fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (conn->out.fd < 0)
			continue;
		(void)setsockopt(conn->out.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		(void)setsockopt(conn->out.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
		if ((connect(conn->out.fd, (const struct sockaddr *)&to, n) == 0 || errno == EINPROGRESS) &&
		    net_watch(&conn->out, EPOLLOUT) == 0) {
			conn->state = CONN_DIAL;
			conn->deadline = net.now + NET_DIAL_MS;
			return;
		}
		cordon_closep(&conn->out.fd);
	}
	if (conn->credential >= 0)
		net_inject_unreachable(conn);
	net_conn_end(conn, conn->credential < 0);
}

/* The address that is dialled was judged here: nothing is looked up again. */
static void on_resolved(struct waiter *waiter)
{
	struct conn *conn = (struct conn *)(void *)((char *)waiter - offsetof(struct conn, waiter));

	conn->state = CONN_DIAL;
	conn->n = net_name_dialable(conn->name, conn->port, conn->addresses);
	if (!conn->n && conn->name->n) {
		char text[CORDON_NET_ADDRESS_SIZE], rule[CORDON_NET_RULE_SIZE];

		cordon_net_address_text(&conn->name->addresses[0], text);
		net_host_port(text, conn->port, rule);
		net_report(CORDON_REASON_NOT_PUBLIC, conn->name->text, conn->port, rule);
	}
	dial(conn);
}

/* Tells which rule was of use. */
static void report_use(const struct conn *conn)
{
	char text[CORDON_NET_ADDRESS_SIZE];
	const char *host = conn->name ? conn->name->text : text;

	if (conn->credential >= 0)
		return;
	cordon_net_address_text(&conn->address, text);
	if (!conn->name && !cordon_net_list_find_address(&net.list, &conn->address, conn->port))
		host = "localhost";
	net_report_reached(host, conn->port);
}

static void begin_dial(struct conn *conn)
{
	static const struct cordon_net_address home4 = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	static const struct cordon_net_address home6 = { { [15] = 1 } };

	report_use(conn);
	conn->addresses = calloc(NET_ADDRESSES_MAX, sizeof(*conn->addresses));
	if (!conn->addresses) {
		net_conn_end(conn, true);
		return;
	}
	/* Until the relay begins, only the end of the run's side matters. */
	net_change(&conn->in, 0);
	conn->deadline = 0;
	conn->dial_port = conn->port;
	if (conn->name && net_name_by_proxy(conn->name)) {
		net_proxy_dial(conn);
	} else if (conn->name) {
		conn->state = CONN_RESOLVE;
		conn->waited = conn->name;
		conn->waiter.resolved = on_resolved;
		if (net_name_resolve(conn->name, &conn->waiter) < 0)
			net_conn_end(conn, true);
	} else {
		bool home = net_address_is_loopback(&conn->address) &&
			    !cordon_net_list_find_address(&net.list, &conn->address, conn->port);

		/* The host's service may listen on either loopback. */
		conn->addresses[0] = home ? home4 : conn->address;
		conn->addresses[1] = home6;
		conn->n = home ? 2 : 1;
		dial(conn);
	}
}

void net_conn_dial(struct conn *conn)
{
	dial(conn);
}

/* How many bytes there must be before another look at a ClientHello is worth it: the end of a record. */
static size_t hello_needs(const uint8_t *bytes, size_t n)
{
	size_t at = 0;

	while (at + 5 <= n)
		at += 5 + ((size_t)bytes[at + 3] << 8 | bytes[at + 4]);
	return at > n ? at : at + 5;
}

static void look_hello(struct conn *conn)
{
	char name[CORDON_NET_NAME_SIZE];
	ssize_t r;

	if (conn->len < conn->need)
		return;
	r = cordon_hello_name((const uint8_t *)conn->bytes, conn->len, name);
	if (r == 0) {
		conn->need = hello_needs((const uint8_t *)conn->bytes, conn->len);
		return;
	}
	if (r == -EPROTONOSUPPORT) {
		refuse(conn, CORDON_REASON_HIDDEN_HOST, "/tcp");
		return;
	}
	if (r < 0 || !cordon_streq(name, conn->name->text)) {
		refuse(conn, CORDON_REASON_OTHER_HOST, NULL);
		return;
	}
	/* What the client has sent behind it waits for the host's answer. */
	conn->cleared = (size_t)r;
	conn->hello = HELLO_SENT;
	begin_dial(conn);
}

static void look_http(struct conn *conn)
{
	ssize_t n;

	/* A head ends with the end of a line. */
	if (!memchr(conn->bytes + conn->need, '\n', conn->len - conn->need) && conn->len < CORDON_HTTP_HEAD_MAX) {
		conn->need = conn->len;
		return;
	}
	conn->need = conn->len;
	n = cordon_http_look(&conn->http, conn->bytes, conn->len);
	if (n < 0) {
		refuse(conn, CORDON_REASON_OTHER_HOST, NULL);
		return;
	}
	if (n == 0)
		return;
	conn->cleared = (size_t)n;
	begin_dial(conn);
}

bool net_conn_hold(size_t n)
{
	if (n > NET_BUFFERS_MAX - net.buffered) {
		net_report_limit("net_buffers", NET_BUFFERS_MAX);
		return false;
	}
	net.buffered += n;
	return true;
}

/* Releases them. */
static void conn_drop(struct conn *conn)
{
	free(conn->bytes);
	net.buffered -= conn->size;
	conn->bytes = NULL;
	conn->size = conn->len = conn->cleared = 0;
}

bool net_conn_room(struct conn *conn, size_t most)
{
	size_t size = conn->size ? conn->size * 2 : 2048;
	char *more;

	if (conn->len < conn->size)
		return true;
	if (size > most || !net_conn_hold(size - conn->size))
		return false;
	more = realloc(conn->bytes, size);
	if (!more) {
		net.buffered -= size - conn->size;
		return false;
	}
	conn->bytes = more;
	conn->size = size;
	return true;
}

static void look(struct conn *conn)
{
	ssize_t n;

	if (!net_conn_room(conn, 2 * LOOK_MAX)) {
		if (conn->size * 2 > 2 * LOOK_MAX)
			refuse(conn, CORDON_REASON_OTHER_HOST, NULL);
		else
			net_conn_end(conn, true);
		return;
	}
	n = recv(conn->in.fd, conn->bytes + conn->len, conn->size - conn->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		net_conn_end(conn, true);
		return;
	}
	conn->len += (size_t)n;
	/* On port 80 servers take everything for HTTP, so nothing else is let through. */
	if (conn->bytes[0] == CORDON_TLS_HANDSHAKE && conn->port != HTTP_PORT) {
		look_hello(conn);
	} else if (conn->bytes[0] >= 'A' && conn->bytes[0] <= 'Z') {
		conn->is_http = true;
		look_http(conn);
	} else {
		refuse(conn, CORDON_REASON_NO_HOST, "/tcp");
	}
}

static void on_in(struct source *source, uint32_t events)
{
	struct conn *conn = (struct conn *)source;

	if (conn->state == CONN_LOOK)
		look(conn);
	else if (conn->state == CONN_RELAY)
		relay(conn);
	else if (events & (EPOLLERR | EPOLLHUP))
		net_conn_end(conn, true);
}

static bool is_granted_still(const struct conn *conn)
{
	return !conn->granted || net_address_granted(&net.list, &conn->peer, conn->port);
}

static void on_dialled(struct conn *conn)
{
	socklen_t n = sizeof(int);
	int error = 0;

	if (getsockopt(conn->out.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 || error) {
		dial(conn);
		return;
	}
	conn->peer = conn->addresses[conn->at - 1];
	conn->granted = conn->name && !conn->by_proxy &&
			(!net_address_is_public(&conn->peer) || reached_ourselves(conn->out.fd));
	/* The rules may have changed since it was dialled. */
	if (!is_granted_still(conn)) {
		char text[CORDON_NET_ADDRESS_SIZE], rule[CORDON_NET_RULE_SIZE];

		cordon_net_address_text(&conn->peer, text);
		net_host_port(text, conn->port, rule);
		net_report(CORDON_REASON_NOT_PUBLIC, conn->name->text, conn->port, rule);
		net_conn_end(conn, true);
		return;
	}
	conn->deadline = 0;
	if (conn->by_proxy)
		net_proxy_begin(conn);
	else
		net_conn_dialled(conn);
}

void net_conn_dialled(struct conn *conn)
{
	if (net.meter)
		cordon_histogram_add(&net.meter->connect, cordon_meter_now() - conn->begun);
	if (conn->credential >= 0)
		net_inject_start(conn);
	else
		net_relay_begin(conn);
}

static void on_out(struct source *source, uint32_t events)
{
	struct conn *conn = (struct conn *)(void *)((char *)source - offsetof(struct conn, out));

	(void)events;
	if (conn->state == CONN_DIAL)
		on_dialled(conn);
	else if (conn->state == CONN_PROXY)
		net_proxy_serve(conn);
	else if (conn->state == CONN_RELAY)
		relay(conn);
}

void net_conn_accept(const struct listener *listener, int fd)
{
	const struct linger now = { .l_onoff = 1 };
	const struct cordon_net_rule *rule;
	struct conn *conn = NULL;
	const int on = 1;

	if (net.n_conns >= net.max_conns)
		net_report_limit("net_connections", net.max_conns);
	else
		conn = calloc(1, sizeof(*conn));
	if (!conn) {
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(fd);
		return;
	}
	*conn = (struct conn){ .in = { .on = on_in, .fd = fd },
			       .out = { .on = on_out, .fd = -1 },
			       .next = conns,
			       .name = listener->name,
			       .address = listener->address,
			       .port = listener->port,
			       .credential = listener->inject,
			       .deadline = net.now + NET_LOOK_MS,
			       .begun = net.meter ? cordon_meter_now() : 0,
			       .flows = { { .pipe = { -1, -1 } }, { .pipe = { -1, -1 } } } };
	if (conns)
		conns->prev = conn;
	conns = conn;
	net.n_conns++;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (conn->credential >= 0) {
		conn->name = net_inject_name(conn->credential);
		conn->port = net.credentials[conn->credential].port;
	}
	rule = rule_of(conn);
	if ((!rule && conn->credential < 0) || net_watch(&conn->in, EPOLLIN) < 0) {
		net_conn_end(conn, true);
		return;
	}
	if (conn->name && conn->credential < 0)
		conn->http = (struct cordon_http){ .name = conn->name->text, .port = conn->port };
	if (!conn->name || conn->credential >= 0 || !rule || rule->tcp)
		begin_dial(conn);
}

void net_conns_tick(void)
{
	for (struct conn *conn = conns, *next; conn; conn = next) {
		next = conn->next;
		if (!conn->deadline || net.now < conn->deadline)
			continue;
		if (conn->state == CONN_DIAL)
			dial(conn);
		else if (conn->state == CONN_LOOK && !conn->len)
			refuse(conn, CORDON_REASON_NO_HOST, "/tcp"); /* it waits for the server to speak */
		else
			net_conn_end(conn, true);
	}
}

void net_conns_apply(void)
{
	for (struct conn *conn = conns, *next; conn; conn = next) {
		next = conn->next;
		if ((conn->credential < 0 && !rule_of(conn)) || !is_granted_still(conn))
			net_conn_end(conn, true);
	}
}
