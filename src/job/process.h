/* SPDX-License-Identifier: Apache-2.0 */
/* The process that keeps one session, called by main(): what process.c and serve.c share. */
#ifndef CORDON_JOB_PROCESS_H
#define CORDON_JOB_PROCESS_H

#include "audit/audit.h"
#include "job/control.h"
#include "job/internal.h"
#include "job/supervisor.h"
#include "recipe/recipe.h"
#include "sandbox/host/launch.h"

/* Runs the session whose record was prepared, to its end. Uses the descriptors that cordon_session_spawn() gives.
 * Reports an error to the process that waits for the start, and writes it into record, log and audit. Returns 0, or
 * -errno when the store could not be opened, so that there is no record to write. */
int cordon_session_process(const char *id);

struct session_process {
	struct cordon_store store;
	char id[CORDON_ID_SIZE];
	int dir_fd;
	struct cordon_session_record record; /* empty until it has been read */
	struct cordon_supervisor job;	     /* its program, log and streams */
	struct cordon_control control;
	struct cordon_recipe recipe;
	struct cordon_net_list net; /* the hosts in force: the policy's, then what `session net` made of them */
	struct cordon_audit *audit; /* for further programs, and for what happens before there is a run */
	int timer;		    /* expires at the end of the grace time that a stop request gave */
	bool stop;		    /* a stop was requested and on_serve() has not returned it yet */
	uint32_t entered;	    /* how many programs exec has started so far */
	bool start_reported;	    /* the starter has the outcome of the start */
	int start_fd;		    /* a byte from here cancels the start; -1 when the starter has closed its end */
};

/* serve.c: opens the control socket. The run's loop answers requests from now on. */
int cordon_session_serve(struct session_process *s, struct cordon_error *err);
/* Sends a message and a newline to the program's standard input, and puts the message into record and log. `message`
 * may be NULL. Returns what cordon_streams_send() returns, or -ENOMEM. */
int cordon_session_send_input(struct session_process *s, const char *message, bool end_input);
/* Asks the program to end now, and ends it by force after the grace time. */
void cordon_session_end_after(struct session_process *s, int64_t grace_ms);
/* A further program has ended: sends its exit status to the client that waits for it. */
void cordon_session_report_exit(struct session_process *s, const struct cordon_event *event);
/* Returns a list of pointers into the array's own strings, ended by NULL, which the caller frees; NULL when there is no
 * memory. */
char **cordon_session_strings(const json_t *array);

#endif
