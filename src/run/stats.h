/* SPDX-License-Identifier: Apache-2.0 */
/* What cordon itself cost in runs that have ended and were measured (metrics.h): sessions, and runs that asked for it. The numbers come from the audit log. */
#ifndef CORDON_RUN_STATS_H
#define CORDON_RUN_STATS_H

#include "audit/query.h"

struct cordon_stats_ask {
	struct cordon_audit_filter filter; /* its `types` do not count */
	size_t max;			   /* runs */
	int64_t deadline;		   /* of cordon_time_monotonic(); 0: none */
};

/*
 * Returns an array with the newest that match, newest first: what cordon_metrics_json() says, and session_id, duration_ms and time, which is that
 * of the end. *ret_ended (may be NULL) is how many ends were found, also of runs that were not measured; *ret_more (may be NULL) whether there may be
 * more in an older part of the log.
 */
int cordon_stats_list(const struct cordon_home *home, const struct cordon_stats_ask *ask, json_t **ret_stats,
		      size_t *ret_ended, bool *ret_more, struct cordon_error *err);

#endif
