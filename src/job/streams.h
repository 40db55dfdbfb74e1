/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard streams of a job: pipes, or a terminal whose other end we hold. What the program writes goes to a reader of ours.
 * Input for the program is kept until the program reads it.
 */
#ifndef CORDON_JOB_STREAMS_H
#define CORDON_JOB_STREAMS_H

#include <poll.h>

#include "base/buf.h"
#include "base/error.h"

#define CORDON_RECENT_MAX ((size_t)128 << 10)
#define CORDON_INPUT_MAX ((size_t)4 << 20) /* bytes of input that a program has not read yet */
#define CORDON_STREAMS_PIECE_MAX 32768	   /* bytes of output in one call */
#define CORDON_STREAMS_FDS 3

enum cordon_streams_kind {
	CORDON_STREAMS_PIPES,
	CORDON_STREAMS_TERMINAL,
	CORDON_STREAMS_OUTPUT, /* pipes for standard output and error; the program gets our standard input */
};

/* Who gets the output. */
struct cordon_streams_reader {
	void *data;
	/* What came from standard output (1), which a terminal has only, or error (2). No UTF-8 character is split. */
	void (*output)(void *data, int stream, const char *bytes, size_t n);
	/* The bytes of a terminal, as they come. */
	void (*screen)(void *data, const char *bytes, size_t n);
	/* True: read no more for now, which makes the program wait. */
	bool (*full)(void *data);
};

struct cordon_stream {
	int fd;	      /* our end, or -1 */
	char rest[4]; /* the beginning of a character that is not complete yet */
	size_t n_rest;
};

struct cordon_streams {
	struct cordon_stream out[2];
	int in_fd;    /* our end of the standard input, or of the terminal; -1 when there is none */
	int inner[3]; /* the program's ends, until the program has its copies; then -1 */
	bool terminal;
	bool end_input; /* close the input when the program has read all of it */
	struct cordon_buf input;
	struct cordon_buf recent; /* the latest output of a terminal */
	struct cordon_streams_reader reader;
};

/* clang-format off */
#define CORDON_STREAMS_NONE { .out = { { .fd = -1 }, { .fd = -1 } }, .in_fd = -1, .inner = { -1, -1, -1 } }
/* clang-format on */

int cordon_streams_open(struct cordon_streams *streams, enum cordon_streams_kind kind,
			const struct cordon_streams_reader *reader, struct cordon_error *err);
void cordon_streams_done(struct cordon_streams *streams);
/* The first makes the program's ends our own standard streams, for the launch. The second closes them after it, except a
 * terminal, through which the run's loop copies bytes. */
int cordon_streams_make_standard(const struct cordon_streams *streams, struct cordon_error *err);
void cordon_streams_leave_standard(struct cordon_streams *streams);

/* Queues a message for the program. Returns 0, -E2BIG when too much waits that the program has not read, -EPIPE when its
 * input is closed. */
int cordon_streams_send(struct cordon_streams *streams, const char *text, size_t n, bool end_input);
void cordon_streams_resize(const struct cordon_streams *streams, unsigned short columns, unsigned short rows);

/* Fills in CORDON_STREAMS_FDS descriptors, which cordon_streams_serve() gets back. */
void cordon_streams_fds(const struct cordon_streams *streams, struct pollfd *ret_fds);
void cordon_streams_serve(struct cordon_streams *streams, const struct pollfd *fds);
/* Reads what is left after the program has ended, whether the reader is full or not. */
void cordon_streams_drain(struct cordon_streams *streams);

#endif
