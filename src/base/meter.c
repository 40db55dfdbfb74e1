/* SPDX-License-Identifier: Apache-2.0 */
/* Counts times in buckets whose width grows with the value. */
#include "base/meter.h"

#define EXACT 16 /* values below it have buckets of their own */

static size_t bucket_of(uint64_t value)
{
	unsigned int exponent;
	size_t at;

	if (value < EXACT)
		return value;
	exponent = 63 - (unsigned int)__builtin_clzll(value); /* at least 4 */
	at = EXACT + (size_t)(exponent - 4) * 8 + (value >> (exponent - 3) & 7);
	return at < CORDON_HISTOGRAM_BUCKETS ? at : CORDON_HISTOGRAM_BUCKETS - 1;
}

/* The greatest value of a bucket. */
static uint64_t bucket_end(size_t at)
{
	unsigned int shift;

	if (at < EXACT)
		return at;
	shift = (unsigned int)((at - EXACT) / 8) + 1;
	return ((uint64_t)(8 + (at - EXACT) % 8 + 1) << shift) - 1;
}

void cordon_histogram_add(struct cordon_histogram *histogram, uint64_t value)
{
	__atomic_fetch_add(&histogram->n, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&histogram->buckets[bucket_of(value)], 1, __ATOMIC_RELAXED);
}

void cordon_histogram_merge(struct cordon_histogram *histogram, const struct cordon_histogram *other)
{
	histogram->n += other->n;
	for (size_t i = 0; i < CORDON_HISTOGRAM_BUCKETS; i++)
		histogram->buckets[i] += other->buckets[i];
}

uint64_t cordon_histogram_percentile(const struct cordon_histogram *histogram, unsigned int percent)
{
	uint64_t wanted = (histogram->n * percent + 99) / 100, seen = 0;

	for (size_t i = 0; histogram->n && i < CORDON_HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen >= wanted)
			return bucket_end(i);
	}
	return 0;
}
