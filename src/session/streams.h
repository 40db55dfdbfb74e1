/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard streams of a detached session: pipes, or a terminal whose other end we hold. What the agent writes goes to
 * the session's log and to whoever is attached; what is sent in waits until the agent reads it.
 */
#ifndef CORDON_CLI_SESSION_STREAMS_H
#define CORDON_CLI_SESSION_STREAMS_H

#include <poll.h>

#include "store/session_control.h"
#include "store/session_log.h"

#define CORDON_RECENT_MAX ((size_t)128 << 10)
#define CORDON_INPUT_MAX ((size_t)4 << 20) /* what an agent has not read yet */

struct cordon_stream {
	int fd;		  /* our end, or -1 */
	const char *type; /* of the events */
	char rest[4];	  /* the beginning of a character whose end has not come */
	size_t n_rest;
};

struct cordon_streams {
	struct cordon_stream out[2];
	int in_fd;    /* our end of the standard input, or of the terminal; -1 when it was closed */
	int inner[3]; /* the agent's ends, until it has them */
	bool terminal;
	bool end_input; /* close the input when all of it was taken */
	struct cordon_buf input;
	struct cordon_buf recent; /* the end of what a terminal showed */
	struct cordon_session_log *log;
	struct cordon_control *control;
};

int cordon_streams_open(struct cordon_streams *streams, bool terminal, struct cordon_error *err);
void cordon_streams_done(struct cordon_streams *streams);
/* Makes the agent's ends our own standard streams, for the launch; afterwards lets go of them, except of a terminal,
 * which the supervisor's loop moves bytes through. */
int cordon_streams_wear(const struct cordon_streams *streams, struct cordon_error *err);
void cordon_streams_take_off(struct cordon_streams *streams);

/* Queues a message for the agent: 0, -E2BIG when it does not read, -EPIPE when its input is closed. */
int cordon_streams_send(struct cordon_streams *streams, const char *text, size_t n, bool end_input);
void cordon_streams_resize(const struct cordon_streams *streams, unsigned short columns, unsigned short rows);

size_t cordon_streams_fds(const struct cordon_streams *streams, struct pollfd *ret_fds);
void cordon_streams_serve(struct cordon_streams *streams);
/* Takes what is left after the end. */
void cordon_streams_drain(struct cordon_streams *streams);

#endif
