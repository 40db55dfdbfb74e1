/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows agents that run: their output line by line, each line with the agent's name before it, and on a terminal a table
 * of the agents below these lines. The lines scroll on as usual, so that nothing is lost above; the table is drawn again
 * after them. What agents write is untrusted and is escaped, except where one agent's bytes pass through.
 */
#ifndef CORDON_CLI_AGENT_VIEW_H
#define CORDON_CLI_AGENT_VIEW_H

#include "agent/job.h"
#include "cli/cli.h"

typedef enum cordon_agent_show {
	CORDON_SHOW_NOTHING, /* --json prints results in the end */
	CORDON_SHOW_BYTES,   /* one agent: its bytes as they are */
	CORDON_SHOW_LINES,
	CORDON_SHOW_TABLE,  /* lines, and the table below them */
	CORDON_SHOW_EVENTS, /* JSON Lines */
} cordon_agent_show;

struct cordon_agent_row;

struct cordon_agent_view {
	const struct cordon_cli *cli;
	cordon_agent_show show;
	const char *run; /* borrowed */
	struct cordon_home *home;
	struct cordon_agent_row *rows;
	size_t n;
	size_t width; /* of the longest name */
	bool colour;
	bool one_stream;	 /* both streams of an agent go to our standard output */
	bool closed;		 /* nobody reads our output any more */
	size_t drawn;		 /* lines of the table that are on the screen */
	int64_t drawn_at;	 /* monotonic ms */
	bool stale;		 /* the table has changed */
	bool mid_line;		 /* CORDON_SHOW_BYTES: the agent's last line on stderr has no end yet */
	struct cordon_buf lines; /* what is to be printed before the table is drawn again */
};

/* How agents are shown if no option says otherwise: on a terminal with a table. */
cordon_agent_show cordon_agent_view_choose(size_t agents);
int cordon_agent_view_init(struct cordon_agent_view *view, const struct cordon_cli *cli, cordon_agent_show show,
			   const char *run, struct cordon_home *home, const char *const *names, size_t n,
			   struct cordon_error *err);
void cordon_agent_view_done(struct cordon_agent_view *view);

/* The functions of a crew's observer; `data` is the view. */
void cordon_agent_view_state(void *data, const struct cordon_job *job);
void cordon_agent_view_event(void *data, size_t index, const struct cordon_event *event);
void cordon_agent_view_output(void *data, size_t index, int stream, const char *bytes, size_t n);
void cordon_agent_view_tick(void *data);
/* Prints a line about an agent that is not one of its own. */
void cordon_agent_view_note(struct cordon_agent_view *view, size_t index, const char *text);

/* Prints what is left. The table stays as it is in the end. */
void cordon_agent_view_end(struct cordon_agent_view *view);
/* The last state that was seen of an agent. */
const struct cordon_job *cordon_agent_view_job(const struct cordon_agent_view *view, size_t index);

/* "12.3s", "4m05s"; "-" for a time that has not begun. */
void cordon_agent_duration(const struct cordon_job *job, char *ret_text, size_t size);

#endif
