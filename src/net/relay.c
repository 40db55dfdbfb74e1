/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes between the run and its host: through a pipe, without a copy, but for HTTP requests, which are looked at.
 * A pipe is held only while bytes are in it. What one side does not read, the other can't send: nothing is stored. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "net/conn.h"
#include "net/hello.h"

#define PIPES_KEPT 32
#define PIPE_SIZE (256 << 10)
#define TURN_BYTES (1 << 20) /* then other connections have their turn */
#define HTTP_SIZE (2 * CORDON_HTTP_HEAD_MAX)
#define RECORDS_SIZE (4 * CORDON_HELLO_MAX)
#define RECORD_HEADER 5

static int kept[PIPES_KEPT][2];
static size_t n_kept;

enum moved { MOVED, WAITS, ENDED, BROKEN };

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

void net_relay_done(struct conn *conn)
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
		net_conn_drop(conn);
	return MOVED;
}

/* Looks at the first bytes of the host's answer without taking them. Returns how many of `n` are there; -EAGAIN when none
 * are there yet. *ret_all: more will not come. */
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

static enum moved look(struct conn *conn)
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
		r = look(conn);
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

void net_relay(struct conn *conn)
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
	net_relay(conn);
}
