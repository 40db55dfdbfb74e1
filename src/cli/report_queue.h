/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of reports for stderr. The agent writes to the same stderr and may have filled a pipe that nobody reads. A
 * report stays in one piece, and adding one never blocks the supervisor: what stderr does not take waits in the queue,
 * up to a bound. On the agent's own terminal the queue can hold reports back until a full-screen program leaves the
 * alternate screen, or write them to a file instead.
 */
#ifndef CORDON_CLI_REPORT_QUEUE_H
#define CORDON_CLI_REPORT_QUEUE_H

#include "cli/cli.h"
#include "sandbox/host/output.h"

#define CORDON_REPORT_QUEUE_MAX (1u << 20)

struct cordon_report_queue {
	const struct cordon_cli *cli; /* NULL, or with --json: reports nothing */
	struct cordon_buf report;     /* the report that is being put together */
	struct cordon_buf held;	      /* until the program has ended or leaves the alternate screen */
	struct cordon_buf waiting;    /* for stderr to take it */
	unsigned int left_out;	      /* reports for which there was no room */
	int terminal;		      /* stderr opened again, if it is a terminal; else -1 */
	int file;		      /* where everything goes instead of stderr, or -1 */
	bool holds_back;	      /* nothing is printed before cordon_report_queue_release() */
	bool mid_line;	     /* the agent has ended in the middle of a line; for cordon_report_queue_next_line() */
	bool partly_written; /* a part of `waiting` has been written */
	struct cordon_output *output; /* the agent's output, which shares stderr, while the agent runs; else NULL. Borrowed */
};

void cordon_report_queue_init(struct cordon_report_queue *queue, const struct cordon_cli *cli);
/* Writes what still waits, and blocks until stderr takes it. */
void cordon_report_queue_done(struct cordon_report_queue *queue);

/* Adds one line to the report: "[TAG] ...", control characters escaped. */
void cordon_report_queue_line(struct cordon_report_queue *queue, const char *tag, const char *fmt, ...)
	CORDON_PRINTF(3, 4);
/* Writes what was held back; later reports are held back again. */
void cordon_report_queue_release(struct cordon_report_queue *queue);
/* Ends the report and writes it, on a line of its own if the agent's last line has no end. */
void cordon_report_queue_end(struct cordon_report_queue *queue);
/* Blocks until stderr has taken everything. Call it when nothing else is left to do. */
void cordon_report_queue_flush(struct cordon_report_queue *queue);
/* Call it after that and before anything else is written on stderr, which then begins on a line of its own. */
void cordon_report_queue_next_line(struct cordon_report_queue *queue);

#endif
