/* SPDX-License-Identifier: Apache-2.0 */
/* Turns what was measured in a run into JSON. */
#include "run/metrics.h"
#include "sandbox/plan/plan.h"

static uint64_t us_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
}

/* One division of a whole number of microseconds, so that it reads back as the same number wherever it was printed with
 * fewer digits. */
static double ms(uint64_t us)
{
	return (double)us / 1000.0;
}

static bool is_mount(cordon_step_kind kind)
{
	return kind >= CORDON_STEP_BIND && kind <= CORDON_STEP_VIEW;
}

static int count_mounts(const struct cordon_plan *plan)
{
	int n = 0;

	for (size_t i = 0; plan && plan->tier == CORDON_TIER_FULL && i < plan->n_steps; i++)
		n += is_mount(plan->steps[i].kind);
	return n;
}

static json_t *decide_json(const struct cordon_metrics *metrics)
{
	struct cordon_histogram all = metrics->meters[CORDON_METER_SUPERVISOR].decide;

	cordon_histogram_merge(&all, &metrics->meters[CORDON_METER_LENS].decide);
	return json_pack("{s:I, s:I, s:I}", "calls", (json_int_t)all.n, "ns_p50",
			 (json_int_t)cordon_histogram_percentile(&all, 50), "ns_p99",
			 (json_int_t)cordon_histogram_percentile(&all, 99));
}

static json_t *lens_json(const struct cordon_metrics *metrics)
{
	const struct cordon_meter *lens = &metrics->meters[CORDON_METER_LENS];

	return json_pack("{s:I, s:I, s:I, s:f, s:f}", "requests", (json_int_t)lens->lens_requests, "lookups",
			 (json_int_t)lens->lookup.n, "denied", (json_int_t)lens->lens_denied, "us_p50",
			 (double)cordon_histogram_percentile(&lens->lookup, 50) / 1000.0, "us_p99",
			 (double)cordon_histogram_percentile(&lens->lookup, 99) / 1000.0);
}

static json_t *net_json(const struct cordon_metrics *metrics)
{
	const struct cordon_meter *net = &metrics->meters[CORDON_METER_NET];

	return json_pack("{s:I, s:I, s:f, s:f, s:f}", "connections", (json_int_t)net->connect.n, "refused",
			 (json_int_t)net->net_refused, "us_p50",
			 (double)cordon_histogram_percentile(&net->connect, 50) / 1000.0, "us_p99",
			 (double)cordon_histogram_percentile(&net->connect, 99) / 1000.0, "cpu_ms",
			 ms(metrics->net_cpu_us));
}

/* The time before the program began and after it ended, and the processor time that cordon's processes used between. */
static double overhead_ms(const struct cordon_metrics *metrics)
{
	uint64_t between_us = metrics->helper_cpu_us;

	if (!metrics->started_ns || !metrics->exited_ns)
		return ms(us_between(metrics->begun_ns, metrics->ended_ns));
	if (metrics->cpu_exited_us > metrics->cpu_started_us)
		between_us += metrics->cpu_exited_us - metrics->cpu_started_us;
	return ms(us_between(metrics->begun_ns, metrics->started_ns) +
		  us_between(metrics->exited_ns, metrics->ended_ns) + between_us);
}

json_t *cordon_metrics_json(const struct cordon_result *result)
{
	const struct cordon_metrics *metrics = result->metrics;
	const struct cordon_meter *watch = &metrics->meters[CORDON_METER_SUPERVISOR];
	bool lens = result->launched && result->plan && result->plan->lens;
	bool net = result->launched && result->plan && result->plan->net;

	return json_pack("{s:o, s:i, s:i, s:o, s:o, s:{s:I, s:I}, s:o, s:f, s:I}", "startup_ms",
			 metrics->started_ns ? json_real(ms(us_between(metrics->begun_ns, metrics->started_ns)))
					     : json_null(),
			 "mounts", count_mounts(result->plan), "landlock_rules", (int)metrics->landlock_rules, "decide",
			 decide_json(metrics), "lens", lens ? lens_json(metrics) : json_null(), "watch", "events",
			 (json_int_t)watch->watch_events, "dropped", (json_int_t)watch->watch_dropped, "net",
			 net ? net_json(metrics) : json_null(), "overhead_ms", overhead_ms(metrics), "helper_rss_bytes",
			 (json_int_t)metrics->helper_rss_bytes);
}
