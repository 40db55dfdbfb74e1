/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts and times of what cordon does in a run, for `--metrics`. A meter is plain memory that the processes of lens and network can share.
 * Several threads may add to it. Times are counted in buckets of which each is at most an eighth wider than the one before, so that a
 * percentile is right within 13 percent, however many there were.
 */
#ifndef CORDON_BASE_METER_H
#define CORDON_BASE_METER_H

#include <time.h>

#include "base/util.h"

#define CORDON_HISTOGRAM_BUCKETS 272

struct cordon_histogram {
	uint64_t n;
	uint64_t buckets[CORDON_HISTOGRAM_BUCKETS];
};

/* Adds one; threads may add at the same time. */
static inline void cordon_meter_count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void cordon_histogram_add(struct cordon_histogram *histogram, uint64_t value);
void cordon_histogram_merge(struct cordon_histogram *histogram, const struct cordon_histogram *other);
/* The value that `percent` of all values do not exceed; 0 when there is none. */
uint64_t cordon_histogram_percentile(const struct cordon_histogram *histogram, unsigned int percent);

struct cordon_meter {
	struct cordon_histogram decide; /* ns of the decision function */
	struct cordon_histogram lookup; /* ns of look-ups of the lens */
	struct cordon_histogram connect; /* ns from a connection of the run to the answer of its host, through cordon-net */
	uint64_t lens_requests;		 /* what the kernel asked the lens */
	uint64_t lens_denied;		 /* requests that the lens refused */
	uint64_t net_refused;		 /* connections and names that cordon-net refused */
	uint64_t watch_events;		 /* calls that the watch received */
	uint64_t watch_dropped;		 /* reports that were only counted */
};

static inline uint64_t cordon_meter_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

#endif
