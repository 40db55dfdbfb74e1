/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of a run for a person on stderr: their texts (reports_text.c), and when and where they are printed
 * (--reports, reports.c).
 */
#ifndef CORDON_CLI_REPORTS_H
#define CORDON_CLI_REPORTS_H

#include "cli/report_queue.h"
#include "sandbox/host/launch.h"

typedef enum cordon_reports_when {
	CORDON_REPORTS_DEFAULT, /* at the end if the agent shares the user's terminal, else at once */
	CORDON_REPORTS_NOW,
	CORDON_REPORTS_END,
	CORDON_REPORTS_FILE,
} cordon_reports_when;

/* Parses "now", "end" or "file:PATH"; *ret_path points into the text. Errors name the option. */
int cordon_reports_parse(const char *s, cordon_reports_when *ret_when, const char **ret_path, struct cordon_error *err);

#define CORDON_REPORTS_OPTION(key)                                                                                     \
	{                                                                                                              \
		"reports", 0, CORDON_ARG_TEXT, "now|end|file:PATH",                                                    \
			"when or where reports are printed (default: end on a terminal, else now)", key                \
	}

struct cordon_reporter {
	struct cordon_report_queue queue;
	const struct cordon_policy *policy;
	bool omit_warnings; /* do not report accesses that are only warned of */
};

void cordon_reporter_init(struct cordon_reporter *reporter, struct cordon_cli *cli, const struct cordon_policy *policy);
/* Prints what stderr has not taken yet. */
void cordon_reporter_done(struct cordon_reporter *reporter);

/* Before the start: reports which layers are missing in a best-effort run. */
void cordon_reporter_plan(struct cordon_reporter *reporter, const struct cordon_plan *plan);
/* After the launch: the child's output shares stderr with the reports. */
void cordon_reporter_launched(struct cordon_reporter *reporter, const struct cordon_child *child);
void cordon_reporter_event(struct cordon_reporter *reporter, const struct cordon_event *event);
/* At the end: reports what git would execute of what the run left, and what is missing in the audit log. */
void cordon_reporter_result(struct cordon_reporter *reporter, const struct cordon_result *result);

/* Prepares the queue of a run. A file is opened here, before the agent starts, so that the agent cannot put a link in
 * its place. The file is made with mode 0600 or appended to; it is refused when it is no regular file, has another
 * name, or lies where the agent can write. With `dry` nothing is made. */
int cordon_reports_begin(struct cordon_report_queue *queue, cordon_reports_when when, const char *path,
			 const struct cordon_policy *policy, const struct cordon_plan *plan, bool dry,
			 struct cordon_error *err);

#endif
