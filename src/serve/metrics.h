/* SPDX-License-Identifier: Apache-2.0 */
/* What /metrics counts. */
#ifndef CORDON_SERVE_METRICS_H
#define CORDON_SERVE_METRICS_H

#include "audit/query.h"
#include "store/store.h"

#define CORDON_SERVE_BUCKETS 11
#define CORDON_SERVE_METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

typedef enum cordon_serve_refused {
	CORDON_REFUSED_RULE,	/* by a rule of a policy, or a protected path */
	CORDON_REFUSED_OUTSIDE, /* no rule gives it */
	CORDON_REFUSED_NETWORK,
	CORDON_REFUSED_COMMIT, /* commits that are not taken over */
	CORDON_REFUSED_RUN,    /* runs and changes that did not begin */
	CORDON_REFUSED__MAX
} cordon_serve_refused;

struct cordon_serve_times {
	uint64_t n, below[CORDON_SERVE_BUCKETS];
	double sum; /* seconds */
};

/* Needs cordon_serve_counts_done(). */
struct cordon_serve_counts {
	int64_t since; /* when the server started */
	struct cordon_audit_reader *reader;
	uint64_t started, ended[5], refused[CORDON_REFUSED__MAX], warned, calls;
	struct cordon_serve_times duration, startup;
	bool behind;
	json_t *sessions; /* as they were `counted`, by a monotonic clock */
	int64_t counted;
};

/* Appends the text. With `labels` sessions are counted by project. */
int cordon_serve_metrics(struct cordon_serve_counts *counts, const struct cordon_store *store, bool labels,
			 struct cordon_buf *ret_text, struct cordon_error *err);
void cordon_serve_counts_done(struct cordon_serve_counts *counts);

#endif
