/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_histogram.c - laws of log-linear buckets, against exact answers from sorted values. */
#include "test.h"

#include <stdlib.h>

#include "base/histogram.h"

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static int ascending(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* Each value is in its bucket, buckets are adjacent, and none is wider than 1/32 of its low end. */
static void buckets_cover_all_values(void **state)
{
	struct base_histogram h = {0};
	uint64_t low, high, next = 0, x = 99;

	(void)state;
	for (unsigned i = 0; i < BASE_HISTOGRAM_BUCKETS; i++) {
		base_histogram_bucket(&h, i, &low, &high);
		assert_true(low == next && high >= low);
		assert_int_equal(base_histogram_index(low), i);
		assert_int_equal(base_histogram_index(high), i);
		assert_true(high == low || high - low + 1 <= low / 32);
		next = high + 1;
	}
	assert_true(next == 0); /* the last one ends at the last number there is */
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t v = next_random(&x) >> (x % 64);

		base_histogram_bucket(&h, base_histogram_index(v), &low, &high);
		assert_true(low <= v && v <= high);
	}
}

static void quantiles_are_near_the_exact_ones(void **state)
{
	enum { NR = 20000 };
	static uint64_t value[NR];
	static const double share[] = {0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1};
	uint64_t x = 7;

	(void)state;
	for (unsigned shape = 0; shape < 4; shape++) {
		struct base_histogram h = {0};
		double sum = 0;

		for (unsigned i = 0; i < NR; i++) {
			uint64_t r = next_random(&x);

			value[i] = shape == 0   ? r % 50
				   : shape == 1 ? r % 1000000
				   : shape == 2 ? r >> (r % 64)
						: 1000 + (r % 7) * (r % 7000);
			assert_int_equal(base_histogram_add(&h, value[i], 1), BASE_OK);
			sum += (double)value[i];
		}
		qsort(value, NR, sizeof *value, ascending);
		assert_true(h.least == value[0] && h.greatest == value[NR - 1] && h.count == NR);
		assert_true(base_histogram_mean(&h) >= sum / NR * 0.999999 &&
			    base_histogram_mean(&h) <= sum / NR * 1.000001);
		for (unsigned i = 0; i < BASE_COUNT(share); i++) {
			size_t rank = (size_t)(share[i] * NR);
			uint64_t exact = value[rank ? rank - 1 : 0];
			double is = (double)base_histogram_quantile(&h, share[i]);

			assert_true(is >= (double)exact * 0.97 && is <= (double)exact * 1.03);
		}
		base_histogram_fini(&h);
	}
}

static void weights_and_merging(void **state)
{
	struct base_histogram a = {0}, b = {0}, both = {0};
	uint64_t x = 3, low, high, low2, high2;

	(void)state;
	assert_int_equal(base_histogram_quantile(&a, 0.5), 0);
	assert_int_equal(base_histogram_add(&a, 5, 0), BASE_OK);
	assert_int_equal(a.count, 0);
	for (unsigned i = 0; i < 5000; i++) {
		uint64_t v = next_random(&x) % 100000, n = 1 + v % 5;

		assert_int_equal(base_histogram_add(i % 2 ? &a : &b, v, n), BASE_OK);
		for (uint64_t k = 0; k < n; k++)
			assert_int_equal(base_histogram_add(&both, v, 1), BASE_OK);
	}
	assert_int_equal(base_histogram_merge(&a, &b), BASE_OK);
	assert_true(a.count == both.count && a.least == both.least && a.greatest == both.greatest);
	assert_true(a.sum >= both.sum * 0.999999 && a.sum <= both.sum * 1.000001);
	for (unsigned i = 0; i < BASE_HISTOGRAM_BUCKETS; i++)
		assert_true(base_histogram_bucket(&a, i, &low, &high) ==
			    base_histogram_bucket(&both, i, &low2, &high2));
	base_histogram_fini(&a);
	base_histogram_fini(&b);
	base_histogram_fini(&both);
}

static void no_memory_changes_nothing(void **state)
{
	struct base_histogram h = {0};

	(void)state;
	assert_int_equal(base_histogram_add(&h, 10, 1), BASE_OK);
	base_alloc_fail_nth(1);
	assert_int_equal(base_histogram_add(&h, 1000, 1), BASE_ERR_NOMEM);
	base_alloc_fail_nth(0);
	assert_true(h.count == 1 && h.greatest == 10);
	assert_int_equal(base_histogram_add(&h, 1000, 1), BASE_OK);
	assert_true(h.count == 2 && h.greatest == 1000);
	base_histogram_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_cover_all_values),
		cmocka_unit_test(quantiles_are_near_the_exact_ones),
		cmocka_unit_test(weights_and_merging),
		cmocka_unit_test(no_memory_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
