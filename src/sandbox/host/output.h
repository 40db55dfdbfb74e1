/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor forwards what the agent writes to the caller's files.
 *
 * The agent does not get a standard output or error that is a regular file: it could truncate the file, or clear
 * O_APPEND and write over what others wrote, such as cordon's reports. It gets a pipe, and the supervisor copies what
 * comes to the caller's own open file, so that the caller's position in it stays right. When both streams are one file,
 * they go through one pipe, which keeps their order. A terminal is replaced by one of the agent's own (terminal.h); the
 * agent gets pipes and sockets as they are.
 *
 * All of it runs in the supervisor, under its lock, except cordon_output_install().
 */
#ifndef CORDON_SANDBOX_HOST_OUTPUT_H
#define CORDON_SANDBOX_HOST_OUTPUT_H

#include <poll.h>

#include "base/error.h"
#include "sandbox/host/screen.h"

struct cordon_terminal;

struct cordon_pump {
	int from;  /* our end of the agent's pipe, or -1 */
	int inner; /* the agent's end, until the agent is started; or -1 */
	int to;	   /* 1 or 2 */
};

struct cordon_output {
	struct cordon_screen screen;	  /* the state of what standard error goes to, if it goes through us */
	struct cordon_pump pumps[2];	  /* for standard output and standard error */
	bool one;			  /* both are one file: the second pump serves both */
	struct cordon_terminal *terminal; /* borrowed, or NULL */
};

/* Makes the pipes that are needed. */
int cordon_output_new(struct cordon_output **ret_output, struct cordon_error *err);
/* Accepts NULL; always returns NULL. */
struct cordon_output *cordon_output_free(struct cordon_output *output);
/* Runs in the child: makes the pipes its standard streams. Allocates nothing. 0 or -errno. */
int cordon_output_install(const struct cordon_output *output);
/* Runs in the supervisor after the child was made: closes the agent's ends of the pipes. */
void cordon_output_begin(struct cordon_output *output);

/* Fills two entries for poll(); fd is -1 in an entry that is not needed. */
void cordon_output_poll(const struct cordon_output *output, struct pollfd fds[static 2]);
/* Forwards what poll() has reported. */
void cordon_output_move(struct cordon_output *output, const struct pollfd fds[static 2]);
/* Forwards what the agent has written by now and does not wait for more. Call it before a report about a process that
 * is stopped, so that what the process wrote before comes before the report. */
void cordon_output_forward(struct cordon_output *output);
/* Forwards the rest, when no process inside writes any more. */
void cordon_output_end(struct cordon_output *output);

#endif
