/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor of a job reports to the owner of its crew, over a SOCK_SEQPACKET socket: one packet per report.
 * Both ends are the same program. Only cordon_relay_finish() waits; otherwise packets that the socket does not take
 * stay in a buffer.
 */
#ifndef CORDON_JOB_RELAY_H
#define CORDON_JOB_RELAY_H

#include "base/buf.h"
#include "job/crew.h"

#define CORDON_RELAY_QUEUE_MAX ((size_t)4 << 20)    /* more than the two pipes of a program can hold */
#define CORDON_RELAY_QUEUE_HIGH ((size_t)256 << 10) /* with so much in the queue the sender reads no more output */

struct cordon_relay {
	int fd; /* -1 when the owner has ended; then every packet is dropped */
	struct cordon_buf queue;
	unsigned int untold; /* how many events were dropped because there was no room */
};

/* clang-format off */
#define CORDON_RELAY(descriptor)                                                                                       \
	{                                                                                                              \
		.fd = (descriptor), .queue = CORDON_BUF(CORDON_RELAY_QUEUE_MAX)                                        \
	}
/* clang-format on */

void cordon_relay_running(struct cordon_relay *relay, const char *run_id);
void cordon_relay_output(struct cordon_relay *relay, int stream, const char *bytes, size_t n);
void cordon_relay_event(struct cordon_relay *relay, const struct cordon_event *event);
/* Sends as much as the socket takes now. */
void cordon_relay_flush(struct cordon_relay *relay);
/* Sends everything, and waits for the owner as long as it lives. */
void cordon_relay_finish(struct cordon_relay *relay);

/* One packet, as the owner gets it. Its pointers lead into the buffer into which it was received. */
struct cordon_relayed {
	enum cordon_relayed_kind { CORDON_RELAYED_RUNNING = 1, CORDON_RELAYED_OUTPUT, CORDON_RELAYED_EVENT } kind;
	const char *run_id;
	int stream;
	const char *bytes;
	size_t n;
	struct cordon_event event;
};

/* The largest packet. */
#define CORDON_RELAY_PACKET_MAX 65536

/* Returns 1 for a packet, 0 at the end, -EAGAIN when there is no packet now, -EPROTO for one that is malformed. Never
 * waits. */
int cordon_relay_receive(int fd, char buffer[static CORDON_RELAY_PACKET_MAX], struct cordon_relayed *ret);

#endif
