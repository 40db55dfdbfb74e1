/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what cordon itself costs in a run. */
#include <sys/mman.h>

#include "sandbox/host/metrics.h"

#define SIZE (CORDON_METER__MAX * sizeof(struct cordon_meter))

struct cordon_metrics *cordon_metrics_new(uint64_t begun_ns)
{
	struct cordon_metrics *metrics = calloc(1, sizeof(*metrics));
	void *memory = MAP_FAILED;

	if (!metrics)
		return NULL;
	metrics->begun_ns = begun_ns;
	metrics->fd = memfd_create("cordon-meter", MFD_CLOEXEC);
	if (metrics->fd >= 0 && ftruncate(metrics->fd, (off_t)SIZE) == 0)
		memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, metrics->fd, 0);
	if (memory == MAP_FAILED)
		return cordon_metrics_free(metrics);
	metrics->meters = memory;
	return metrics;
}

struct cordon_metrics *cordon_metrics_free(struct cordon_metrics *metrics)
{
	if (!metrics)
		return NULL;
	if (metrics->meters)
		munmap(metrics->meters, SIZE);
	cordon_closep(&metrics->fd);
	free(metrics);
	return NULL;
}

static uint64_t cpu_us(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000U +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

static uint64_t own_cpu_us(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_SELF, &usage);
	return cpu_us(&usage);
}

void cordon_metrics_started(struct cordon_metrics *metrics)
{
	if (!metrics)
		return;
	metrics->started_ns = cordon_meter_now();
	metrics->cpu_started_us = own_cpu_us();
}

void cordon_metrics_exited(struct cordon_metrics *metrics)
{
	if (!metrics)
		return;
	metrics->exited_ns = cordon_meter_now();
	metrics->cpu_exited_us = own_cpu_us();
}

static void add_helper(struct cordon_metrics *metrics, const struct rusage *usage)
{
	metrics->helper_cpu_us += cpu_us(usage);
	metrics->helper_rss_bytes += (uint64_t)usage->ru_maxrss * 1024;
}

void cordon_metrics_lens(struct cordon_metrics *metrics, const struct rusage *usage)
{
	if (metrics)
		add_helper(metrics, usage);
}

void cordon_metrics_net(struct cordon_metrics *metrics, const struct rusage *usage)
{
	if (!metrics)
		return;
	add_helper(metrics, usage);
	metrics->net_cpu_us = cpu_us(usage);
}

void cordon_metrics_ended(struct cordon_metrics *metrics)
{
	struct rusage usage = { 0 };

	if (!metrics)
		return;
	getrusage(RUSAGE_SELF, &usage);
	metrics->helper_rss_bytes += (uint64_t)usage.ru_maxrss * 1024;
	metrics->ended_ns = cordon_meter_now();
}
