/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes between the run and its host: through a pipe, without a copy, but for HTTP requests, which are looked at.
 * A pipe is held only while bytes are in it. What one side does not read, the other can't send: nothing is stored. */
#include <fcntl.h>
#include <sys/socket.h>

#include "net/conn.h"

#define PIPES_KEPT 32
#define PIPE_SIZE (256 << 10)
#define TURN_BYTES (1 << 20) /* then other connections have their turn */
#define HTTP_SIZE (2 * CORDON_HTTP_HEAD_MAX)

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
	if (!conn->len) {
		free(conn->bytes);
		conn->bytes = NULL;
		conn->size = 0;
	}
	return MOVED;
}

/* After a request for a WebSocket the client's bytes mean what the server's answer says. Nothing is sent until that is
 * there. 1: it is one now; 0: it is not; -EAGAIN. */
static int websocket_began(const struct conn *conn)
{
	static const char yes[] = "HTTP/1.1 101 ";
	char head[sizeof(yes) - 1];
	ssize_t n = recv(conn->out.fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return -EAGAIN;
	if (n > 0 && memcmp(head, yes, (size_t)n) == 0)
		return n == (ssize_t)sizeof(head) ? 1 : -EAGAIN;
	return 0;
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

static enum moved move_out(struct conn *conn, size_t *left)
{
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
	enum moved out, in = BROKEN;

	if (conn->inject) {
		net_inject_relay(conn);
		return;
	}
	out = conn->flows[0].shut ? ENDED : move_out(conn, &left[0]);
	if (out != BROKEN)
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
