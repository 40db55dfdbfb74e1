/* SPDX-License-Identifier: Apache-2.0 */
/* What cordon itself cost in a run that asked for it (`measure` of its specification). */
#ifndef CORDON_SANDBOX_HOST_METRICS_H
#define CORDON_SANDBOX_HOST_METRICS_H

#include <sys/resource.h>

#include "base/meter.h"
#include "cordon.h"

enum { CORDON_METER_SUPERVISOR, CORDON_METER_LENS, CORDON_METER_NET, CORDON_METER__MAX };

struct cordon_metrics {
	struct cordon_meter *meters; /* CORDON_METER__MAX of them, in shared memory */
	int fd;			     /* that memory, for cordon-lens and cordon-net */
	uint64_t begun_ns;	     /* CLOCK_MONOTONIC: the run was asked for */
	uint64_t started_ns;	     /* its program was executed; 0: it was not */
	uint64_t exited_ns;	     /* its program had ended */
	uint64_t ended_ns;	     /* all was cleaned up */
	uint64_t cpu_started_us;     /* processor time of the supervisor until then */
	uint64_t cpu_exited_us;
	uint64_t helper_cpu_us; /* of cordon-lens and cordon-net */
	uint64_t net_cpu_us;	/* of cordon-net alone */
	uint64_t helper_rss_bytes;
	unsigned int landlock_rules;
};

/* NULL without memory. `begun_ns` is when it was asked for. */
struct cordon_metrics *cordon_metrics_new(uint64_t begun_ns);
struct cordon_metrics *cordon_metrics_free(struct cordon_metrics *metrics);
/* Each accepts NULL: then nothing is measured. */
void cordon_metrics_started(struct cordon_metrics *metrics);
void cordon_metrics_exited(struct cordon_metrics *metrics);
void cordon_metrics_lens(struct cordon_metrics *metrics, const struct rusage *usage);
void cordon_metrics_net(struct cordon_metrics *metrics, const struct rusage *usage);
void cordon_metrics_ended(struct cordon_metrics *metrics);

#endif
