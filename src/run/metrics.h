/* SPDX-License-Identifier: Apache-2.0 */
/* What cordon itself cost in a run, as JSON. */
#ifndef CORDON_RUN_METRICS_H
#define CORDON_RUN_METRICS_H

#include <jansson.h>

#include "sandbox/host/metrics.h"

/* {startup_ms, mounts, landlock_rules, decide{calls, ns_p50, ns_p99}, lens{requests, lookups, denied, us_p50, us_p99} or null, watch{events,
 * dropped}, net{connections, refused, us_p50, us_p99, cpu_ms} or null, overhead_ms, helper_rss_bytes} of a result with metrics. startup_ms is null when the program did not start. */
json_t *cordon_metrics_json(const struct cordon_result *result);

#endif
