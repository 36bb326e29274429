/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.c - log-linear buckets: the five bits after a value's highest one say which. */
#include "base/histogram.h"

enum { SUB_BITS = 5 };

unsigned base_histogram_index(uint64_t value)
{
	if (value < BASE_HISTOGRAM_SUB)
		return (unsigned)value;
	unsigned shift = 63u - (unsigned)__builtin_clzll(value) - SUB_BITS;
	return (shift + 1) * BASE_HISTOGRAM_SUB +
	       (unsigned)(value >> shift & (BASE_HISTOGRAM_SUB - 1));
}

static uint64_t low_of(unsigned i)
{
	unsigned octave = i / BASE_HISTOGRAM_SUB, sub = i % BASE_HISTOGRAM_SUB;
	if (!octave)
		return sub;
	return (uint64_t)(BASE_HISTOGRAM_SUB + sub) << (octave - 1);
}

static uint64_t high_of(unsigned i)
{
	return i + 1 == BASE_HISTOGRAM_BUCKETS ? UINT64_MAX : low_of(i + 1) - 1;
}

enum base_status base_histogram_add(struct base_histogram *h, uint64_t value, uint64_t n)
{
	unsigned i = base_histogram_index(value);
	uint64_t **octave = &h->octave[i / BASE_HISTOGRAM_SUB];
	if (!n)
		return BASE_OK;
	if (!*octave) {
		*octave = base_alloc(BASE_HISTOGRAM_SUB * sizeof **octave);
		if (!*octave)
			return BASE_ERR_NOMEM;
	}
	(*octave)[i % BASE_HISTOGRAM_SUB] += n;
	if (!h->count || value < h->least)
		h->least = value;
	if (value > h->greatest)
		h->greatest = value;
	h->count += n;
	h->sum += (double)value * (double)n;
	return BASE_OK;
}

enum base_status base_histogram_merge(struct base_histogram *h, const struct base_histogram *other)
{
	double sum = h->sum + other->sum;
	bool empty = !h->count;
	uint64_t least =
		empty || (other->count && other->least < h->least) ? other->least : h->least;
	uint64_t greatest = other->greatest > h->greatest ? other->greatest : h->greatest;
	for (unsigned i = 0; i < BASE_HISTOGRAM_BUCKETS; i++) {
		uint64_t low, high, n = base_histogram_bucket(other, i, &low, &high);
		enum base_status s = base_histogram_add(h, low, n);
		if (s != BASE_OK)
			return s;
	}
	h->sum = sum;
	h->least = least;
	h->greatest = greatest;
	return BASE_OK;
}

void base_histogram_fini(struct base_histogram *h)
{
	for (unsigned i = 0; i < BASE_HISTOGRAM_OCTAVES; i++)
		base_free(h->octave[i]);
	*h = (struct base_histogram){0};
}

uint64_t base_histogram_bucket(
	const struct base_histogram *h, unsigned i, uint64_t *ret_low, uint64_t *ret_high)
{
	const uint64_t *octave = h->octave[i / BASE_HISTOGRAM_SUB];
	*ret_low = low_of(i);
	*ret_high = high_of(i);
	return octave ? octave[i % BASE_HISTOGRAM_SUB] : 0;
}

uint64_t base_histogram_quantile(const struct base_histogram *h, double share)
{
	uint64_t seen = 0, low, high;
	if (!h->count)
		return 0;
	if (share <= 0)
		return h->least;
	for (unsigned i = 0; i < BASE_HISTOGRAM_BUCKETS; i++) {
		uint64_t n = base_histogram_bucket(h, i, &low, &high);
		seen += n;
		if (!n || (double)seen < share * (double)h->count)
			continue;
		uint64_t middle = low + (high - low) / 2;
		middle = middle < h->least ? h->least : middle;
		return middle > h->greatest ? h->greatest : middle;
	}
	return h->greatest;
}

double base_histogram_mean(const struct base_histogram *h)
{
	return h->count ? h->sum / (double)h->count : 0;
}
