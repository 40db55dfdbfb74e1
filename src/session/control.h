/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a session: 0600 in its directory below state/, so only its owner outside every sandbox reaches
 * it, and which session a connection belongs to is said by where it was made, never by when.
 *
 * A request is one line of JSON with an `op`, the answer one line with `ok` or `error`. With `exec` come three descriptors, the
 * standard streams of a further program; its answer comes when the program has ended. After a successful `attach` the
 * connection carries frames: a letter, the length in four bytes (big endian), the bytes. 'd' is data of the
 * terminal both ways, 'w' a window size "COLUMNS ROWS" inwards.
 */
#ifndef CORDON_STORE_SESSION_CONTROL_H
#define CORDON_STORE_SESSION_CONTROL_H

#include <jansson.h>
#include <poll.h>

#include "base/buf.h"
#include "base/error.h"

#define CORDON_CONTROL_CLIENTS 16
#define CORDON_CONTROL_REQUEST_MAX ((size_t)8 << 20)
#define CORDON_FRAME_MAX 65536
#define CORDON_CONTROL_FDS 3

/* Client side. */
int cordon_control_connect(int session_dir_fd, int *ret_fd, struct cordon_error *err);
/* Sends a request and waits for its answer (30 s); an `error` in it becomes err. Takes the request. */
int cordon_control_ask(int fd, json_t *request, json_t **ret_answer, struct cordon_error *err);
/* The same with descriptors, which are borrowed, and without an end of the patience. */
int cordon_control_ask_with(int fd, json_t *request, const int fds[static CORDON_CONTROL_FDS], struct cordon_error *err);
/* Reads the answer to that. */
int cordon_control_answer(int fd, json_t **ret_answer, struct cordon_error *err);
int cordon_frame_send(int fd, char type, const void *bytes, size_t n);
/* Takes one whole frame off the front of `buf`: 1 with type and payload (valid until the buffer changes; drop it with
 * cordon_frame_drop), 0 when more must be read, -EPROTO. */
int cordon_frame_next(const struct cordon_buf *buf, char *ret_type, const char **ret_bytes, size_t *ret_n);
void cordon_frame_drop(struct cordon_buf *buf, size_t n);

/* Server side: the supervisor's. */
struct cordon_control_client {
	int fd;
	bool attached;
	uint32_t number;	     /* of the further program whose end is the answer; else 0 */
	int fds[CORDON_CONTROL_FDS]; /* what came along, -1 each; ours until the handler takes them */
	struct cordon_buf in;
	struct cordon_buf out;
};

struct cordon_control {
	int listen_fd;
	struct cordon_control_client clients[CORDON_CONTROL_CLIENTS];
	/* Answers a request (new reference). It may set client->attached, so that the connection carries frames; or client->number,
	 * and give NULL: cordon_control_tell() gives the answer later. */
	json_t *(*handle)(void *data, struct cordon_control_client *client, const char *op, const json_t *request);
	/* Whoever waited for that answer is gone. */
	void (*gone)(void *data, uint32_t number);
	/* Input and window size of an attached client. */
	void (*frame)(void *data, char type, const char *bytes, size_t n);
	void *data;
	const struct cordon_buf *recent; /* what was shown last, for who attaches now */
};

int cordon_control_open(struct cordon_control *control, int session_dir_fd, struct cordon_error *err);
void cordon_control_done(struct cordon_control *control, int session_dir_fd);
/* At most 1 + CORDON_CONTROL_CLIENTS descriptors. */
size_t cordon_control_fds(const struct cordon_control *control, struct pollfd *ret_fds);
void cordon_control_serve(struct cordon_control *control, const struct pollfd *fds, size_t n);
/* The answer (taken) to whoever waits for this program, if anybody does. */
void cordon_control_tell(struct cordon_control *control, uint32_t number, json_t *reply);
/* Output of the terminal, to everybody who is attached; who does not keep up is cut off. */
void cordon_control_show(struct cordon_control *control, const char *bytes, size_t n);

#endif
