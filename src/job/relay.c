/* SPDX-License-Identifier: Apache-2.0 */
/* Packets from the supervisor of a job to the owner of its crew. */
#include <poll.h>
#include <sys/socket.h>

#include "job/relay.h"

/* The head of a packet. Then come the texts of an event, each with a NUL, or the bytes of the output, or the run id. */
struct head {
	uint32_t kind; /* enum cordon_relayed_kind */
	uint32_t stream;
	uint32_t event; /* cordon_event_kind */
	uint32_t verdict, reason;
	uint32_t held, denied;
	uint32_t count;
	uint32_t texts; /* a bit for each of op, path, rule, rule_where and fence that the event has */
};

_Static_assert(sizeof(struct head) + CORDON_CREW_PIECE_MAX <= CORDON_RELAY_PACKET_MAX,
	       "a piece of output fits into a packet");
_Static_assert(sizeof(struct head) + 2 * CORDON_PATH_MAX + 64 <= CORDON_RELAY_PACKET_MAX, "so does an event");

/* Puts a packet into the queue, with its length before it. */
static int add(struct cordon_relay *relay, const struct head *head, const void *bytes, size_t n)
{
	size_t size = sizeof(*head) + n;
	struct cordon_buf *queue = &relay->queue;

	if (relay->fd < 0)
		return 0;
	if (size > CORDON_RELAY_PACKET_MAX || sizeof(size) + size > queue->max - queue->len)
		return -E2BIG;
	if (!cordon_buf_room(queue, sizeof(size) + size))
		return -ENOMEM;
	/* There is room for all three, so none of these calls can fail. */
	(void)cordon_buf_add(queue, &size, sizeof(size));
	(void)cordon_buf_add(queue, head, sizeof(*head));
	return cordon_buf_add(queue, bytes, n);
}

void cordon_relay_running(struct cordon_relay *relay, const char *run_id)
{
	struct head head = { .kind = CORDON_RELAYED_RUNNING };

	add(relay, &head, run_id, strlen(run_id) + 1);
	cordon_relay_flush(relay);
}

void cordon_relay_output(struct cordon_relay *relay, int stream, const char *bytes, size_t n)
{
	struct head head = { .kind = CORDON_RELAYED_OUTPUT, .stream = (uint32_t)stream };

	add(relay, &head, bytes, n);
	cordon_relay_flush(relay);
}

static int add_event(struct cordon_relay *relay, const struct cordon_event *event)
{
	struct head head = { .kind = CORDON_RELAYED_EVENT,
			     .event = event->kind,
			     .verdict = event->verdict,
			     .reason = event->reason,
			     .held = event->held,
			     .denied = event->denied,
			     .count = event->count };
	const char *const texts[] = { event->op, event->path, event->rule, event->rule_where, event->fence };
	autobuf struct cordon_buf body = CORDON_BUF(CORDON_RELAY_PACKET_MAX - sizeof(head));
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(texts); i++) {
		if (!texts[i])
			continue;
		head.texts |= 1U << i;
		r = cordon_buf_add(&body, texts[i], strlen(texts[i]) + 1);
	}
	return r < 0 ? r : add(relay, &head, body.data ? body.data : "", body.len);
}

void cordon_relay_event(struct cordon_relay *relay, const struct cordon_event *event)
{
	struct cordon_event untold = { .kind = CORDON_EVENT_UNTOLD, .count = relay->untold };

	if (relay->untold && add_event(relay, &untold) == 0)
		relay->untold = 0;
	if (add_event(relay, event) < 0)
		relay->untold++;
	cordon_relay_flush(relay);
}

static void close_relay(struct cordon_relay *relay)
{
	cordon_closep(&relay->fd);
	cordon_buf_done(&relay->queue);
}

void cordon_relay_flush(struct cordon_relay *relay)
{
	size_t at = 0;

	while (at < relay->queue.len) {
		size_t size;
		ssize_t sent;

		memcpy(&size, relay->queue.data + at, sizeof(size));
		sent = send(relay->fd, relay->queue.data + at + sizeof(size), size, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
			break;
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
			close_relay(relay);
			return;
		}
		at += sizeof(size) + size; /* drops a packet that can't be sent at all, so that the others can be */
	}
	if (at) {
		memmove(relay->queue.data, relay->queue.data + at, relay->queue.len - at);
		relay->queue.len -= at;
	}
}

void cordon_relay_finish(struct cordon_relay *relay)
{
	cordon_relay_flush(relay);
	while (relay->fd >= 0 && relay->queue.len) {
		struct pollfd wait = { .fd = relay->fd, .events = POLLOUT };

		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
			return;
		cordon_relay_flush(relay);
	}
}

static int unpack_event(const struct head *head, const char *bytes, size_t n, struct cordon_relayed *ret)
{
	const char *texts[5] = { NULL };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(texts); i++) {
		const char *end = head->texts & 1U << i ? memchr(bytes, '\0', n) : NULL;

		if (!(head->texts & 1U << i))
			continue;
		if (!end)
			return -EPROTO;
		texts[i] = bytes;
		n -= (size_t)(end - bytes) + 1;
		bytes = end + 1;
	}
	ret->event = (struct cordon_event){ .kind = (cordon_event_kind)head->event,
					    .op = texts[0],
					    .path = texts[1],
					    .rule = texts[2],
					    .rule_where = texts[3],
					    .fence = texts[4],
					    .verdict = (cordon_verdict)head->verdict,
					    .reason = (cordon_reason)head->reason,
					    .held = head->held,
					    .denied = head->denied,
					    .count = head->count };
	return 1;
}

int cordon_relay_receive(int fd, char buffer[static CORDON_RELAY_PACKET_MAX], struct cordon_relayed *ret)
{
	struct head head;
	ssize_t n;

	do
		n = recv(fd, buffer, CORDON_RELAY_PACKET_MAX, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : errno == ECONNRESET ? 0 : -errno;
	if (n == 0)
		return 0;
	if ((size_t)n < sizeof(head))
		return -EPROTO;
	memcpy(&head, buffer, sizeof(head));
	*ret = (struct cordon_relayed){ .kind = (enum cordon_relayed_kind)head.kind,
					.stream = (int)head.stream,
					.bytes = buffer + sizeof(head),
					.n = (size_t)n - sizeof(head) };
	switch (ret->kind) {
	case CORDON_RELAYED_RUNNING:
		ret->run_id = ret->bytes;
		return ret->n && ret->bytes[ret->n - 1] == '\0' ? 1 : -EPROTO;
	case CORDON_RELAYED_OUTPUT:
		return 1;
	case CORDON_RELAYED_EVENT:
		return unpack_event(&head, ret->bytes, ret->n, ret);
	}
	return -EPROTO;
}
