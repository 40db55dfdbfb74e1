/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard streams of a detached session: pipes, or a terminal whose other end we hold. What the agent writes goes
 * to the session's log and to every attached client. Input for the agent is kept until the agent reads it.
 */
#ifndef CORDON_JOB_STREAMS_H
#define CORDON_JOB_STREAMS_H

#include <poll.h>

#include "job/control.h"
#include "job/log.h"

#define CORDON_RECENT_MAX ((size_t)128 << 10)
#define CORDON_INPUT_MAX ((size_t)4 << 20) /* bytes of input that an agent has not read yet */

struct cordon_stream {
	int fd;		  /* our end, or -1 */
	const char *type; /* of its events in the log */
	char rest[4];	  /* the beginning of a character that is not complete yet */
	size_t n_rest;
};

struct cordon_streams {
	struct cordon_stream out[2];
	int in_fd;    /* our end of the standard input, or of the terminal; -1 when it is closed */
	int inner[3]; /* the agent's ends, until the agent has its copies; then -1 */
	bool terminal;
	bool end_input; /* close the input when the agent has read all of it */
	struct cordon_buf input;
	struct cordon_buf recent; /* the latest output of a terminal */
	struct cordon_session_log *log;
	struct cordon_control *control;
};

int cordon_streams_open(struct cordon_streams *streams, bool terminal, struct cordon_error *err);
void cordon_streams_done(struct cordon_streams *streams);
/* The first makes the agent's ends our own standard streams, for the launch. The second closes them after it, except a
 * terminal, through which the run's loop copies bytes. */
int cordon_streams_make_standard(const struct cordon_streams *streams, struct cordon_error *err);
void cordon_streams_leave_standard(struct cordon_streams *streams);

/* Queues a message for the agent. Returns 0, -E2BIG when too much waits that the agent has not read, -EPIPE when its
 * input is closed. */
int cordon_streams_send(struct cordon_streams *streams, const char *text, size_t n, bool end_input);
void cordon_streams_resize(const struct cordon_streams *streams, unsigned short columns, unsigned short rows);

size_t cordon_streams_fds(const struct cordon_streams *streams, struct pollfd *ret_fds);
void cordon_streams_serve(struct cordon_streams *streams);
/* Reads what is left after the agent has ended. */
void cordon_streams_drain(struct cordon_streams *streams);

#endif
