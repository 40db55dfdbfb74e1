/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of an HTTP/1 client, each of which must name the host of its connection. Pure; everything that is parsed
 * here was written by the agent. What two readers could understand in two ways is refused.
 */
#ifndef CORDON_NET_HTTP_H
#define CORDON_NET_HTTP_H

#include "policy/net.h"

#define CORDON_HTTP_HEAD_MAX 32768 /* request line and headers of one request */

enum cordon_http_state {
	CORDON_HTTP_HEAD,
	CORDON_HTTP_BODY,	/* `left` bytes follow */
	CORDON_HTTP_CHUNK_SIZE, /* the line with the size of a chunk */
	CORDON_HTTP_CHUNK,	/* `left` bytes, and the end of the line */
	CORDON_HTTP_CHUNK_END,	/* the end of that line */
	CORDON_HTTP_TRAILER,	/* lines behind the last chunk */
};

/* Zero-initialised, but for name and port. */
struct cordon_http {
	const char *name; /* the clean name that each request must have; NULL: any */
	uint16_t port;
	enum cordon_http_state state;
	uint64_t left;
	uint64_t requests; /* heads that were complete and right */
	bool websocket;	   /* the last head asks to go on as a WebSocket, which the server may accept */
};

/*
 * Looks at the next bytes of the stream. Returns how many of them are right and may be sent on, 0 when more are needed,
 * -EMSGSIZE for a head that is too long, -EXDEV for another host, and -EBADMSG for what is refused otherwise.
 */
ssize_t cordon_http_look(struct cordon_http *http, const char *bytes, size_t n);

/*
 * ---- what it is made of, for the endpoint that adds a header (inject.c) ----
 */

/* One step of cordon_http_look(): a head, a part of a body, or a line of the framing. */
ssize_t cordon_http_step(struct cordon_http *http, const char *bytes, size_t n);

/* One line of a head, without its end. */
struct cordon_http_field {
	const char *name;
	size_t name_len;
	const char *value; /* without the blanks around it */
	size_t value_len;
};

/* Reads the field at *at, which is set to the next one. 1, 0 at the end of the head, or -EBADMSG. */
int cordon_http_field_next(const char **at, const char *end, struct cordon_http_field *ret_field);
bool cordon_http_field_is(const struct cordon_http_field *field, const char *name);

#endif
