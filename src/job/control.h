/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a session. It has mode 0600 and stands in the session's directory below state/, so only its
 * owner outside every sandbox reaches it. A connection belongs to the session in whose directory the socket stands.
 *
 * A request is one line of JSON with an `op`, the answer is one line with `ok` or `error`. A request `exec` carries
 * three descriptors, the standard streams of a further program; the answer comes when that program has ended. After a
 * successful `attach` the connection carries frames: a letter, the length in four bytes (big endian), the bytes. A
 * frame 'd' holds data of the terminal, in both directions; a frame 'w' holds a window size "COLUMNS ROWS" and goes to
 * the session only.
 */
#ifndef CORDON_JOB_CONTROL_H
#define CORDON_JOB_CONTROL_H

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
/* Sends a request and waits up to 30 s for the answer; an `error` in the answer becomes err. Takes ownership of the
 * request. */
int cordon_control_ask(int fd, json_t *request, json_t **ret_answer, struct cordon_error *err);
/* Sends a request (takes ownership of it) with descriptors, which stay the caller's. cordon_control_answer() then waits
 * for the answer without a time limit. */
int cordon_control_ask_with(int fd, json_t *request, const int fds[static CORDON_CONTROL_FDS], struct cordon_error *err);
int cordon_control_answer(int fd, json_t **ret_answer, struct cordon_error *err);
int cordon_frame_send(int fd, char type, const void *bytes, size_t n);
/* Finds the first whole frame of `buf`. Returns 1 with its type and payload, which are valid until the buffer changes,
 * 0 when more must be read, or -EPROTO. cordon_frame_drop() removes the frame from the buffer; `n` is the length of its
 * payload. */
int cordon_frame_next(const struct cordon_buf *buf, char *ret_type, const char **ret_bytes, size_t *ret_n);
void cordon_frame_drop(struct cordon_buf *buf, size_t n);

/* Server side: the session's process. */
struct cordon_control_client {
	int fd;
	bool attached;
	uint32_t number;	     /* the further program whose end the client waits for; 0 when there is none */
	int fds[CORDON_CONTROL_FDS]; /* descriptors that the client sent, else -1; ours until the handler takes them */
	struct cordon_buf in;
	struct cordon_buf out;
};

struct cordon_control {
	int listen_fd;
	struct cordon_control_client clients[CORDON_CONTROL_CLIENTS];
	/* Answers a request (new reference). It may set client->attached, and then the connection carries frames. Or it
	 * may set client->number and return NULL, and then cordon_control_reply() sends the answer later. */
	json_t *(*handle)(void *data, struct cordon_control_client *client, const char *op, const json_t *request);
	/* The client that waited for this program has closed its connection. */
	void (*disconnected)(void *data, uint32_t number);
	/* Input and window size of an attached client. */
	void (*frame)(void *data, char type, const char *bytes, size_t n);
	void *data;
	const struct cordon_buf *recent; /* the last output of the terminal, for a client that attaches now */
};

int cordon_control_open(struct cordon_control *control, int session_dir_fd, struct cordon_error *err);
void cordon_control_done(struct cordon_control *control, int session_dir_fd);
/* Fills in at most 1 + CORDON_CONTROL_CLIENTS descriptors and returns how many. */
size_t cordon_control_fds(const struct cordon_control *control, struct pollfd *ret_fds);
void cordon_control_serve(struct cordon_control *control, const struct pollfd *fds, size_t n);
/* Sends the answer to the client that waits for this program, if there is one. Takes ownership of the answer. */
void cordon_control_reply(struct cordon_control *control, uint32_t number, json_t *reply);
/* Sends output of the terminal to every attached client. Drops a client that does not read fast enough. */
void cordon_control_send_output(struct cordon_control *control, const char *bytes, size_t n);

#endif
