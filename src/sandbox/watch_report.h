/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the accesses that the watch sees are told, and how often: each distinct one once, when it happens; what was
 * repeated again at the end, with its count; and how many there were beyond the bound, in one number. What an agent
 * does in any number costs memory and lines of a fixed size.
 */
#ifndef CORDON_SANDBOX_WATCH_REPORT_H
#define CORDON_SANDBOX_WATCH_REPORT_H

#include "sandbox/launch.h"
#include "sandbox/watch_where.h"

#define CORDON_WATCH_REPORTS 512 /* distinct reports, told and remembered for folding */

struct cordon_reports;

/* NULL without memory. Both are borrowed. */
struct cordon_reports *cordon_reports_new(const struct cordon_child *child, const struct cordon_observer *observer);
/* Tells what is still to be told. Accepts NULL; always returns NULL. */
struct cordon_reports *cordon_reports_free(struct cordon_reports *reports);

/* Whether it is plain that nobody is told of this one: quick, before or after the fact, and from any thread. */
bool cordon_reports_pass(const struct cordon_reports *reports, const struct cordon_places *places,
			 const struct cordon_touch *touch);
/* Judges the `i`th path of a call, before the call goes on: what is named by what a process has open can only be seen as long
 * as it stands still. `made` says that nothing stands there. */
void cordon_reports_look(struct cordon_reports *reports, size_t i, const struct cordon_places *places, pid_t pid,
			 const struct cordon_touch *touch, bool made);
/* Tells it if it lies outside the scope, once it is sure that the process was there. */
void cordon_reports_tell(struct cordon_reports *reports, size_t i);
/* Tells the refusal of a guarded name. */
void cordon_reports_refused(struct cordon_reports *reports, const struct cordon_guard *guard);
/* Violations so far, told or not. */
unsigned int cordon_reports_count(const struct cordon_reports *reports);

#endif
