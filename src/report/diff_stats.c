/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_stats.c - medians and their percentile bootstrap (Efron and Tibshirani, An Introduction to
 * the Bootstrap, chapter 13): resample the runs with replacement, take the median, and its 2.5 and
 * 97.5 percentiles over 2,000 resamples. And the rank test: H. B. Mann and D. R. Whitney, "On a
 * test of whether one of two random variables is stochastically larger than the other" (1947),
 * exact also with ties.
 */
#include "report/diff.h"
#include "report/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESAMPLES = 2000 };

static int diff_stats_ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median_of(double *sorted, size_t nr)
{
	qsort(sorted, nr, sizeof *sorted, diff_stats_ascending);
	return nr % 2 ? sorted[nr / 2] : (sorted[nr / 2 - 1] + sorted[nr / 2]) / 2;
}

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators". */
static uint64_t diff_stats_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

static double resampled(const double *run, size_t nr, uint64_t *state, double *scratch)
{
	for (size_t i = 0; i < nr; i++)
		scratch[i] = run[(size_t)((diff_stats_next(state) >> 32) * nr >> 32)];
	return median_of(scratch, nr);
}

static double plain_median(const double *run, size_t nr, double *scratch)
{
	memcpy(scratch, run, nr * sizeof *run);
	return median_of(scratch, nr);
}

static void percentiles(double *of, struct report_diff_interval *ret)
{
	qsort(of, RESAMPLES, sizeof *of, diff_stats_ascending);
	ret->low = of[RESAMPLES * 25 / 1000];
	ret->high = of[RESAMPLES * 975 / 1000 - 1];
}

static uint64_t seeded(uint64_t seed)
{
	return base_hash_u64(seed + 0x6c6f6e67706f6c65u) | 1;
}

struct report_diff_interval report_bootstrap_median(
	const double *run, size_t nr, uint64_t seed, bool *ret_failed)
{
	struct report_diff_interval r = {0};
	uint64_t state = seeded(seed);
	double *scratch = base_alloc((nr + RESAMPLES) * sizeof *scratch);
	*ret_failed = !scratch;
	if (!scratch || !nr) {
		base_free(scratch);
		return r;
	}
	r.value = r.low = r.high = plain_median(run, nr, scratch);
	if (nr >= REPORT_DIFF_RUNS_SURE) {
		double *medians = scratch + nr;
		for (size_t i = 0; i < RESAMPLES; i++)
			medians[i] = resampled(run, nr, &state, scratch);
		percentiles(medians, &r);
	}
	base_free(scratch);
	return r;
}

struct report_diff_interval report_bootstrap_ratio(
	const double *a, size_t nr_a, const double *b, size_t nr_b, uint64_t seed, bool *ret_failed)
{
	struct report_diff_interval r = {1, 1, 1};
	uint64_t state = seeded(seed);
	size_t most = nr_a > nr_b ? nr_a : nr_b;
	double *scratch = base_alloc((most + RESAMPLES) * sizeof *scratch);
	*ret_failed = !scratch;
	if (!scratch || !nr_a || !nr_b) {
		base_free(scratch);
		return r;
	}
	double base = plain_median(a, nr_a, scratch);
	r.value = base != 0 ? plain_median(b, nr_b, scratch) / base : 1;
	r.low = r.high = r.value;
	if (nr_a >= REPORT_DIFF_RUNS_SURE && nr_b >= REPORT_DIFF_RUNS_SURE && base != 0) {
		double *ratios = scratch + most;
		for (size_t i = 0; i < RESAMPLES; i++) {
			double x = resampled(a, nr_a, &state, scratch);
			double y = resampled(b, nr_b, &state, scratch);
			ratios[i] = x != 0 ? y / x : r.value;
		}
		percentiles(ratios, &r);
	}
	base_free(scratch);
	return r;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

enum { EXACT_MAX = 64 };

/* Twice the ranks of all values, ties sharing theirs; returns twice the sum of those of a. */
static size_t ranks(const double *a, size_t nr_a, const double *b, size_t nr_b, double *sorted,
	uint32_t *twice, double *ret_ties)
{
	size_t nr = nr_a + nr_b, sum = 0;
	memcpy(sorted, a, nr_a * sizeof *a);
	memcpy(sorted + nr_a, b, nr_b * sizeof *b);
	qsort(sorted, nr, sizeof *sorted, diff_stats_ascending);
	*ret_ties = 0;
	for (size_t i = 0, end; i < nr; i = end) {
		for (end = i; end < nr && sorted[end] == sorted[i];)
			end++;
		double alike = (double)(end - i);
		*ret_ties += alike * alike * alike - alike;
		for (size_t k = i; k < end; k++)
			twice[k] = (uint32_t)(i + 1 + end);
		for (size_t k = 0; k < nr_a; k++)
			sum += a[k] == sorted[i] ? i + 1 + end : 0;
	}
	return sum;
}

/* ways[k][s]: how many sets of k of the values have ranks of sum s; as shares of all sets at the
 * end. */
static double exact(const uint32_t *twice, size_t nr, size_t nr_a, size_t sum, bool *ret_failed)
{
	size_t width = nr * (nr + 1) + 1;
	double all = 0, apart = 0, middle = (double)(nr_a * (nr + 1));
	double *ways = base_alloc((nr_a + 1) * width * sizeof *ways);
	*ret_failed = !ways;
	if (!ways)
		return 1;
	ways[0] = 1;
	for (size_t i = 0; i < nr; i++)
		for (size_t k = (i < nr_a ? i : nr_a - 1) + 1; k-- > 0;)
			for (size_t s = twice[i]; k < nr_a && s < width; s++)
				ways[(k + 1) * width + s] += ways[k * width + s - twice[i]];
	for (size_t s = 0; s < width; s++) {
		double w = ways[nr_a * width + s];
		all += w;
		apart += fabs((double)s - middle) >= fabs((double)sum - middle) ? w : 0;
	}
	base_free(ways);
	return apart / all;
}

double report_rank_test(
	const double *a, size_t nr_a, const double *b, size_t nr_b, bool *ret_failed)
{
	size_t nr = nr_a + nr_b;
	double *sorted = base_alloc((nr + 1) * sizeof *sorted), ties, p = 1;
	uint32_t *twice = base_alloc((nr + 1) * sizeof *twice);
	*ret_failed = !sorted || !twice;
	if (!*ret_failed && nr_a && nr_b) {
		size_t sum = ranks(a, nr_a, b, nr_b, sorted, twice, &ties);
		double n = (double)nr, both = (double)nr_a * (double)nr_b;
		double variance = both / 12 * (n + 1 - ties / (n * (n - 1)));
		double off = fabs((double)sum / 2 - (double)nr_a * (n + 1) / 2);
		if (nr <= EXACT_MAX)
			p = exact(twice, nr, nr_a, sum, ret_failed);
		else if (variance > 0)
			p = erfc(fmax(0, off - 0.5) / sqrt(2 * variance));
	}
	base_free(sorted);
	base_free(twice);
	return p;
}
