/* SPDX-License-Identifier: Apache-2.0 */
/* Events per interval as a picture: bars of equal time, and in each of them what was refused. The width of a bar
 * follows from what is added. */
#ifndef CORDON_PAGE_TIMELINE_H
#define CORDON_PAGE_TIMELINE_H

#include "page/internal.h"

#define CORDON_TIMELINE_BARS 60

struct cordon_timeline {
	size_t width;	/* of a bar: a place in the table of widths */
	int64_t newest; /* the number of the last bar, counted from 1970 in widths */
	int64_t oldest; /* of the first bar with something in it, or that somebody asked for */
	uint64_t all[CORDON_TIMELINE_BARS], refused[CORDON_TIMELINE_BARS]; /* the newest bar comes first */
};

/* A time line that ends at this time (milliseconds since 1970). What is added later than that counts in its last
 * bar. */
void cordon_timeline_init(struct cordon_timeline *line, int64_t end);
/* Shows this time too; a bar becomes wider if need be. */
void cordon_timeline_reach(struct cordon_timeline *line, int64_t time);
void cordon_timeline_add(struct cordon_timeline *line, int64_t time, bool refused);

/* The number of bars that are shown; and the beginning of one of them, of which 0 is the oldest. */
size_t cordon_timeline_bars(const struct cordon_timeline *line);
int64_t cordon_timeline_time(const struct cordon_timeline *line, size_t bar);
/* The width of a bar in words: "5 minutes". */
const char *cordon_timeline_width(const struct cordon_timeline *line);
uint64_t cordon_timeline_all(const struct cordon_timeline *line, size_t bar);
uint64_t cordon_timeline_refused(const struct cordon_timeline *line, size_t bar);

/* Writes the picture; a table or list with the same numbers must stand beside it. */
void cordon_timeline_svg(struct cordon_page *page, const struct cordon_timeline *line, const char *title);

#endif
