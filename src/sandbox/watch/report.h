/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which of the accesses that the hand tells of are reported to the observer, and how often: each distinct one
 * once, when it happens; a repeated one again at the end, with its count; and those beyond the bound as one number. So
 * an agent that repeats something without end costs a fixed amount of memory and lines.
 */
#ifndef CORDON_SANDBOX_WATCH_REPORT_H
#define CORDON_SANDBOX_WATCH_REPORT_H

#include "sandbox/watch/watched.h"

#define CORDON_WATCH_REPORTS 512 /* distinct reports that are sent, and remembered to count repetitions */

struct cordon_reports;

/* NULL when there is no memory. `watched` is borrowed. */
struct cordon_reports *cordon_reports_new(const struct cordon_watched *watched);
/* Reports the counts first. Accepts NULL; always returns NULL. */
struct cordon_reports *cordon_reports_free(struct cordon_reports *reports);

/* Takes a message of the hand, whose texts end within it. */
void cordon_reports_told(struct cordon_reports *reports, const struct cordon_hand_message *message);
/* Its parts. Judges path `i` of a call; `inside` is where it leads. */
void cordon_reports_judge(struct cordon_reports *reports, size_t i, const struct cordon_hand_touch *touch,
			  const char *inside);
/* Whether one of the judged paths is to be reported. */
bool cordon_reports_pending(const struct cordon_reports *reports);
/* Reports path `i` if it was judged as refused or warned of. `error` is what the call returned, 0 or -errno;
 * CORDON_ERROR_UNKNOWN when it continues and the kernel has yet to answer. */
void cordon_reports_report(struct cordon_reports *reports, size_t i, int error);
/* Reports that making, changing or moving `path` (inside) was refused for a boundary; NULL: because of `rule`. */
void cordon_reports_refused(struct cordon_reports *reports, const char *op, const struct cordon_guard *guard,
			    const char *rule, const char *path);
/* Adds what the lens has judged: reports it, or counts it as a repetition. `op` and the texts of the decision are
 * borrowed until cordon_reports_free(); `count` is how often it happened. */
void cordon_reports_add(struct cordon_reports *reports, const char *op, const char *path,
			const struct cordon_decision *decision, unsigned int count);
/* Adds `count` violations of which only the number is known. */
void cordon_reports_add_untold(struct cordon_reports *reports, unsigned int count);
/* Reports that the directory `path` of a view was not renamed, because too much is in it (base/move_dir.h): programs that copy
 * it instead need not be told, others fail. This is no violation. A directory is named once, and not more than
 * CORDON_WATCH_MOVES are. */
#define CORDON_WATCH_MOVES 16
void cordon_reports_too_large(struct cordon_reports *reports, const char *path);
/* The number of violations so far, reported or not. */
unsigned int cordon_reports_count(const struct cordon_reports *reports);

#endif
