/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows a loop that works: on a terminal a table of stories and workers below scrolling lines, else plain lines, and with
 * --json one object per line on standard output. What agents write is untrusted and is escaped.
 */
#ifndef CORDON_CLI_LOOP_VIEW_H
#define CORDON_CLI_LOOP_VIEW_H

#include "cli/cli.h"
#include "loop/loop.h"

struct cordon_loop_view {
	const struct cordon_cli *cli;
	bool verbose;
	bool table; /* on a terminal */
	bool colour;
	size_t drawn;	  /* lines of the table that are on the screen */
	int64_t drawn_at; /* monotonic ms */
};

void cordon_loop_view_init(struct cordon_loop_view *view, const struct cordon_cli *cli, bool verbose);
void cordon_loop_view_done(struct cordon_loop_view *view);

/* The functions of a loop's observer; `data` is the view. */
void cordon_loop_view_event(void *data, const struct cordon_loop *loop, const json_t *event);
void cordon_loop_view_violation(void *data, const struct cordon_loop *loop, size_t story,
				const struct cordon_event *event);
void cordon_loop_view_output(void *data, const struct cordon_loop *loop, size_t story, int stream, const char *bytes,
			     size_t n);
int cordon_loop_view_confirm(void *data, const struct cordon_loop *loop, size_t story, const json_t *changes);
bool cordon_loop_view_tick(void *data, const struct cordon_loop *loop);

/* Prints the summary on standard error, and the stories on standard output. */
void cordon_loop_view_end(struct cordon_loop_view *view, const struct cordon_loop *loop,
			  const struct cordon_loop_summary *summary);
/* The summary as an object. */
json_t *cordon_loop_view_json(const struct cordon_loop *loop, const struct cordon_loop_summary *summary);

#endif
