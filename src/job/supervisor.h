/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of a job: it runs one program in its view and sandbox, keeps what the program writes and what happens
 * in a ring on disk (job/log.h), and goes on until the program and its output have ended. Input for the program is
 * kept until it is read. What only a session (session_job.c) or a job of a crew (crew_job.c) does is in functions that
 * it calls. It is a part of the process that supervises the run.
 */
#ifndef CORDON_JOB_SUPERVISOR_H
#define CORDON_JOB_SUPERVISOR_H

#include <poll.h>

#include "base/buf.h"
#include "base/home.h"
#include "config/values.h"
#include "job/log.h"
#include "view/view.h"

#define CORDON_RECENT_MAX ((size_t)128 << 10)
#define CORDON_INPUT_MAX ((size_t)4 << 20) /* bytes of input that a program has not read yet */
#define CORDON_STREAMS_PIECE_MAX 32768	   /* bytes of output in one call */

enum cordon_streams_kind {
	CORDON_STREAMS_PIPES,
	CORDON_STREAMS_TERMINAL,
	CORDON_STREAMS_OUTPUT, /* pipes for standard output and error; the program gets our standard input */
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
};

/* clang-format off */
#define CORDON_STREAMS_NONE { .out = { { .fd = -1 }, { .fd = -1 } }, .in_fd = -1, .inner = { -1, -1, -1 } }
/* clang-format on */

/* Each may be NULL but for the last two. */
struct cordon_supervisor_calls {
	/* The plan has been made, and the program's streams are ours; an error ends the run before it begins. */
	int (*planned)(void *data, const struct cordon_plan *plan, struct cordon_error *err);
	/* The sandbox is being built. */
	void (*launched)(void *data);
	/* Something happened; the log has it. */
	void (*event)(void *data, const struct cordon_event *event);
	/* The program wrote to its standard output (1) or error (2); the log has it. No UTF-8 character is split. */
	void (*output)(void *data, int stream, const char *bytes, size_t n);
	/* The same, byte by byte as it comes from a terminal. */
	void (*screen)(void *data, const char *bytes, size_t n);
	/* Whether so much output waits for a reader that the program has to wait too. */
	bool (*full)(void *data);
	/* As in struct cordon_observer. */
	size_t (*fds)(void *data, struct pollfd *ret_fds);
	bool (*serve)(void *data, const struct pollfd *fds, size_t n);
};

struct cordon_supervisor {
	const struct cordon_supervisor_calls *calls;
	void *data;
	int dir_fd;	  /* of the job, for its log; borrowed */
	const char *role; /* that events of the standard output get in the log; or NULL */
	struct cordon_job_log log;
	bool log_failed;
	struct cordon_streams streams;
	struct cordon_child *child; /* the sandbox while it runs, else NULL */
};

/* clang-format off */
#define CORDON_SUPERVISOR_NONE { .dir_fd = -1, .log = CORDON_JOB_LOG_NONE, .streams = CORDON_STREAMS_NONE }
/* clang-format on */

/* Makes the streams of the program. */
int cordon_supervisor_open(struct cordon_supervisor *supervisor, enum cordon_streams_kind kind,
			   struct cordon_error *err);
void cordon_supervisor_done(struct cordon_supervisor *supervisor);

/* Adds an event to the log. Makes the log before the first one, unless it is open, so that making it does not delay
 * a start. */
void cordon_supervisor_log(struct cordon_supervisor *supervisor, const char *type, const char *role, const char *text,
			   size_t n);
void cordon_supervisor_note(struct cordon_supervisor *supervisor, const char *type, const char *fmt, ...)
	CORDON_PRINTF(3, 4);

/* Queues a message for the program. Returns 0, -E2BIG when too much waits that the program has not read, -EPIPE
 * when its input is closed. */
int cordon_streams_send(struct cordon_streams *streams, const char *text, size_t n, bool end_input);
void cordon_streams_resize(const struct cordon_streams *streams, unsigned short columns, unsigned short rows);

/* Runs the program to its end, as cordon_view_run() does, and logs all of its output. */
int cordon_supervisor_run(struct cordon_supervisor *supervisor, const struct cordon_home *home,
			  const struct cordon_run_spec *spec, const struct cordon_view_work *work,
			  struct cordon_result *ret_result, struct cordon_error *err);
/* Logs what became of the commits, and returns it; NULL when there is nothing to tell. */
json_t *cordon_supervisor_note_git(struct cordon_supervisor *supervisor, const struct cordon_result *result);
/* Logs how the run ended. */
void cordon_supervisor_note_end(struct cordon_supervisor *supervisor, const struct cordon_result *result);

#endif
