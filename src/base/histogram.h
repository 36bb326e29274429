/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.h - how values are distributed, in bounded memory: log-linear buckets (as HdrHistogram
 * has them). Values below 64 are kept exactly; above, a bucket is 1/32 of its lower bound wide or
 * less, so that no answer is off by more than 3.2 %. Sum, least and greatest are exact.
 */
#ifndef LONGPOLE_BASE_HISTOGRAM_H
#define LONGPOLE_BASE_HISTOGRAM_H

#include "base/base.h"

enum {
	BASE_HISTOGRAM_SUB = 32,     /* buckets an octave */
	BASE_HISTOGRAM_OCTAVES = 60, /* the first one is 0..31, the last ends at 2^64 */
	BASE_HISTOGRAM_BUCKETS = BASE_HISTOGRAM_SUB * BASE_HISTOGRAM_OCTAVES,
};

/* `{0}` is empty. An octave's buckets are allocated at its first value: at most 15 KiB. */
struct base_histogram {
	uint64_t *octave[BASE_HISTOGRAM_OCTAVES];
	uint64_t count, least, greatest;
	double sum; /* of value x count */
};

/* Adds `value` n times (a weight: ns for a distribution over time). */
enum base_status base_histogram_add(
	struct base_histogram *h, uint64_t value, uint64_t n) BASE_MUST_CHECK;
enum base_status base_histogram_merge(
	struct base_histogram *h, const struct base_histogram *other) BASE_MUST_CHECK;
void base_histogram_fini(struct base_histogram *h);

/* Bucket i has the values [low, high]; *ret_high may be UINT64_MAX. Returns its count. */
uint64_t base_histogram_bucket(
	const struct base_histogram *h, unsigned i, uint64_t *ret_low, uint64_t *ret_high);
unsigned base_histogram_index(uint64_t value);
/* The least value that at least `share` (0 to 1) of all are not greater than: within a bucket's
 * width of the exact one, never outside [least, greatest]. 0 when empty. */
uint64_t base_histogram_quantile(const struct base_histogram *h, double share);
double base_histogram_mean(const struct base_histogram *h); /* 0 when empty */

#endif
