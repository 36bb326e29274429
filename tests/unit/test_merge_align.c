/* SPDX-License-Identifier: Apache-2.0 */
/* test_merge_align.c - clocks from pairs: the truth is within the bounds, and they are no miracle.
 */
#include "merge/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { CASES = 1000, PACKETS_MAX = 600, SMALL = 5 };

static uint64_t random_state;

static uint64_t random_u64(void)
{
	random_state += 0x9e3779b97f4a7c15u;
	return base_hash_u64(random_state);
}

static long double uniform(long double low, long double high)
{
	return low + (high - low) * ((long double)(random_u64() >> 11) / 9007199254740992.0L);
}

/* Two clocks, of which B runs `drift` faster, is `offset` ahead, and may swing. */
struct world {
	long double length_ns, offset_ns, drift, swing_ns, swings;
	long double delay_ns[2], jitter_ns[2], least_ns[2]; /* there, back; least that happened */
};

static long double by_b(const struct world *w, long double a)
{
	return a + w->offset_ns + w->drift * a +
	       w->swing_ns * sinl(w->swings * 6.2831853L * a / w->length_ns);
}

static struct world random_world(void)
{
	struct world w = {.length_ns = powl(10, uniform(6, 11)),
		.drift = uniform(-100e-6L, 100e-6L),
		.least_ns = {INFINITY, INFINITY}};
	w.offset_ns = uniform(-1e9L, 1e9L) + 2e9L; /* traces begin at different times */
	for (int i = 0; i < 2; i++) {
		w.delay_ns[i] = powl(10, uniform(2, 7));
		w.jitter_ns[i] = w.delay_ns[i] * powl(10, uniform(-3, 1));
	}
	return w;
}

static void send_one(struct world *w, struct merge_pair_set *s, bool back)
{
	long double sent = uniform(0, w->length_ns),
		    delay = w->delay_ns[back] - w->jitter_ns[back] * logl(uniform(1e-9L, 1)),
		    arrives = sent + delay;
	if (arrives > w->length_ns)
		return; /* lost: the recording has ended */
	if (delay < w->least_ns[back])
		w->least_ns[back] = delay;
	uint64_t from = (uint64_t)(back ? by_b(w, sent) : sent),
		 to = (uint64_t)(back ? arrives : by_b(w, arrives));
	assert_int_equal(merge_pair_add(s, back, from, to), BASE_OK);
}

static void check_bounds(const struct world *w, const struct merge_clock *c, bool inverse)
{
	long double end = w->length_ns;
	for (int i = 0; i <= 20; i++) {
		long double a = i == 20 ? end : i ? uniform(0, end) : 0, b = by_b(w, a);
		long double mapped = (long double)merge_clock_map(c, (int64_t)(inverse ? b : a));
		assert_true(fabsl(mapped - (inverse ? a : b)) <= (long double)c->error_ns + 1);
	}
}

static void test_truth_is_within_the_bounds(void **state)
{
	unsigned nr_fitted = 0, nr_one_sided = 0;
	(void)state;
	random_state = 1;
	for (unsigned n = 0; n < CASES; n++) {
		struct merge_pair_set s = {0};
		struct world w = random_world();
		struct merge_clock c, back, more;
		enum merge_fit fit;
		unsigned nr = (unsigned)powl(10, uniform(0, 2.7L)), extra = 50;
		for (unsigned i = 0; i < 2 * nr; i++)
			send_one(&w, &s, random_u64() & 1);
		int64_t end_a = (int64_t)w.length_ns, end_b = (int64_t)by_b(&w, w.length_ns);
		assert_int_equal(merge_clock_fit(&s, false, 0, end_a, &c, &fit), BASE_OK);
		if (fit != MERGE_FIT_ok) { /* too few came through: what is said is still true */
			assert_true(!s.sent_there || !s.sent_back);
			assert_int_equal(fit, s.sent_there  ? MERGE_FIT_there_only
					      : s.sent_back ? MERGE_FIT_back_only
							    : MERGE_FIT_none);
			if (fit != MERGE_FIT_none)
				assert_true((long double)c.offset_low_ns <= w.offset_ns &&
					    (long double)c.offset_high_ns >= w.offset_ns);
			nr_one_sided++;
			merge_pair_set_fini(&s);
			continue;
		}
		nr_fitted++;
		assert_false(c.bends);
		check_bounds(&w, &c, false);
		assert_true((long double)c.offset_low_ns <= w.offset_ns &&
			    (long double)c.offset_high_ns >= w.offset_ns);
		assert_true((long double)c.drift_low_ppb <= w.drift * 1e9L &&
			    (long double)c.drift_high_ppb >= w.drift * 1e9L);
		/* nobody can know better than the quickest there and back */
		assert_true((long double)(c.offset_high_ns - c.offset_low_ns) >=
			    w.least_ns[0] + w.least_ns[1] - 1);
		assert_true(2 * (long double)c.error_ns >= w.least_ns[0] + w.least_ns[1] - 1);

		assert_int_equal(merge_clock_fit(&s, true, 0, end_b, &back, &fit), BASE_OK);
		assert_int_equal(fit, MERGE_FIT_ok);
		check_bounds(&w, &back, true);

		/* more packets, closer bounds */
		for (unsigned i = 0; i < extra; i++)
			send_one(&w, &s, i & 1);
		assert_int_equal(merge_clock_fit(&s, false, 0, end_a, &more, &fit), BASE_OK);
		assert_int_equal(fit, MERGE_FIT_ok);
		assert_true(more.offset_low_ns >= c.offset_low_ns - 1 &&
			    more.offset_high_ns <= c.offset_high_ns + 1);
		assert_true(more.drift_low_ppb >= c.drift_low_ppb - 1 &&
			    more.drift_high_ppb <= c.drift_high_ppb + 1);
		check_bounds(&w, &more, false);
		merge_clock_fini(&c);
		merge_clock_fini(&back);
		merge_clock_fini(&more);
		merge_pair_set_fini(&s);
	}
	assert_true(nr_fitted > CASES * 3 / 4 && nr_one_sided > CASES / 100);
}

static void test_clocks_that_bend(void **state)
{
	unsigned nr_bent = 0;
	(void)state;
	random_state = 2;
	for (unsigned n = 0; n < CASES / 4; n++) {
		struct merge_pair_set s = {0};
		struct world w = random_world();
		struct merge_clock c;
		enum merge_fit fit;
		w.length_ns = powl(10, uniform(9, 11));
		for (int i = 0; i < 2; i++) {
			w.delay_ns[i] = powl(10, uniform(3, 5));
			w.jitter_ns[i] = w.delay_ns[i] * uniform(0, 1);
		}
		w.swings = uniform(0.5L, 3);
		/* rates differ by at most 100 + 350 ppm */
		w.swing_ns = uniform(0, 350e-6L) * w.length_ns / 6.2831853L / w.swings;
		for (unsigned i = 0; i < PACKETS_MAX; i++)
			send_one(&w, &s, random_u64() & 1);
		if (!s.sent_there || !s.sent_back) {
			merge_pair_set_fini(&s);
			continue;
		}
		assert_int_equal(
			merge_clock_fit(&s, false, 0, (int64_t)w.length_ns, &c, &fit), BASE_OK);
		assert_int_equal(fit, MERGE_FIT_ok);
		nr_bent += c.bends;
		if (c.bends) { /* else one line is as good as the truth, for all that one can see */
			check_bounds(&w, &c, false);
			assert_true((long double)c.offset_low_ns <= w.offset_ns &&
				    (long double)c.offset_high_ns >= w.offset_ns);
			int64_t before = INT64_MIN;
			for (unsigned i = 0; i <= 1000; i++) {
				int64_t now =
					merge_clock_map(&c, (int64_t)(w.length_ns * i / 1000.0L));
				assert_true(now >= before);
				before = now;
			}
		}
		merge_clock_fini(&c);
		merge_pair_set_fini(&s);
	}
	assert_true(nr_bent > CASES / 8);
}

/* ---- an independent answer: every crossing of two limits, and is it within all others? ------- */

struct row {
	long double share, limit, sign; /* sign * (p + (q - p) * share) <= sign * limit */
};

static void brute_force(const struct row *row, size_t nr, long double *low, long double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (size_t i = 0; i < nr; i++)
		for (size_t j = 0; j < i; j++) {
			long double a = 1 - row[i].share, b = row[i].share, c = 1 - row[j].share,
				    d = row[j].share, det = a * d - b * c;
			if (fabsl(det) < 1e-12L)
				continue;
			long double p = (row[i].limit * d - b * row[j].limit) / det,
				    q = (a * row[j].limit - row[i].limit * c) / det;
			bool good = true;
			for (size_t k = 0; good && k < nr; k++)
				good = row[k].sign * (p + (q - p) * row[k].share - row[k].limit) <=
				       1e-3L;
			if (good && p < *low)
				*low = p;
			if (good && p > *high)
				*high = p;
		}
}

static void test_bounds_are_those_of_all_lines(void **state)
{
	enum { LENGTH = 1000000000, LIMITS = 2 * SMALL + 2 };
	(void)state;
	random_state = 3;
	unsigned nr_exact = 0;
	for (unsigned n = 0; n < CASES; n++) {
		struct merge_pair_set s = {0};
		struct row row[LIMITS + 2];
		size_t nr = 0;
		struct merge_clock c;
		enum merge_fit fit;
		long double offset = floorl(uniform(1e6L, 2e6L)), drift = uniform(-9e-5L, 9e-5L),
			    low, high;
		for (int i = 0; i < 2 * SMALL; i++) {
			bool back = i & 1;
			uint64_t a = random_u64() % LENGTH;
			int64_t ahead = (int64_t)(offset + drift * (long double)a) +
					(back ? -1 : 1) * (int64_t)uniform(1000, 50000);
			uint64_t b = a + (uint64_t)ahead;
			assert_int_equal(
				merge_pair_add(&s, back, back ? b : a, back ? a : b), BASE_OK);
			row[nr++] = (struct row){(long double)a / LENGTH,
				(long double)ahead + (back ? -1 : 1), back ? -1 : 1};
		}
		assert_int_equal(merge_clock_fit(&s, false, 0, LENGTH, &c, &fit), BASE_OK);
		assert_int_equal(fit, MERGE_FIT_ok);
		/* not where the greatest believable drift is what limits */
		brute_force(row, nr, &low, &high);
		if (c.drift_low_ppb > -MERGE_DRIFT_MAX_PPB &&
			c.drift_high_ppb < MERGE_DRIFT_MAX_PPB) {
			assert_true(fabsl((long double)c.offset_low_ns - low) <= 2);
			assert_true(fabsl((long double)c.offset_high_ns - high) <= 2);
			nr_exact++;
		}
		merge_clock_fini(&c);
		merge_pair_set_fini(&s);
	}
	assert_true(nr_exact > CASES / 2);
}

/* ---- known answers --------------------------------------------------------------------------- */

static void test_known_offset(void **state)
{
	struct merge_pair_set s = {0};
	struct merge_clock c;
	enum merge_fit fit;
	(void)state;
	/* B is 1000000 ahead, runs alike; 300 ns there, 100 back */
	for (uint64_t t = 0; t <= 1000000000; t += 1000000) {
		assert_int_equal(merge_pair_add(&s, false, t, t + 1000300), BASE_OK);
		assert_int_equal(merge_pair_add(&s, true, t + 1000000, t + 100), BASE_OK);
	}
	assert_int_equal(merge_clock_fit(&s, false, 0, 1000000000, &c, &fit), BASE_OK);
	assert_int_equal(fit, MERGE_FIT_ok);
	assert_in_range(c.offset_low_ns, 999898, 999900);
	assert_in_range(c.offset_high_ns, 1000300, 1000302);
	assert_in_range(c.offset_ns, 1000099, 1000101);
	assert_int_equal(c.drift_ppb, 0);
	assert_in_range(c.error_ns, 200, 206);
	assert_int_equal(merge_clock_map(&c, 500), 1000500 + (c.offset_ns - 1000000));
	merge_clock_fini(&c);
	merge_pair_set_fini(&s);
}

static void test_what_cannot_be(void **state)
{
	struct merge_pair_set s = {0};
	struct merge_clock c;
	enum merge_fit fit;
	(void)state;
	assert_int_equal(merge_clock_fit(&s, false, 0, 100, &c, &fit), BASE_OK);
	assert_int_equal(fit, MERGE_FIT_none);
	assert_true(c.error_ns == UINT64_MAX);
	/* received 1 ms before it was sent, whatever the offset: 10 ahead there, 1000000 back */
	assert_int_equal(merge_pair_add(&s, false, 1000, 1010), BASE_OK);
	assert_int_equal(merge_pair_add(&s, true, 1001000, 1000), BASE_OK);
	assert_int_equal(merge_clock_fit(&s, false, 0, 10000, &c, &fit), BASE_OK);
	assert_int_equal(fit, MERGE_FIT_contradiction);
	merge_clock_fini(&c);
	/* damaged times are no pairs */
	struct merge_pair_set wild = {0};
	assert_int_equal(merge_pair_add(&wild, false, UINT64_MAX, 3), BASE_OK);
	assert_int_equal(
		merge_pair_add(&wild, true, MERGE_TIME_MAX_NS, MERGE_TIME_MAX_NS), BASE_OK);
	assert_int_equal(wild.sent_there, 0);
	assert_int_equal(wild.sent_back, 1);
	merge_pair_set_fini(&wild);
	merge_pair_set_fini(&s);
}

static void test_memory_failures(void **state)
{
	(void)state;
	for (int bent = 0; bent < 2; bent++) {
		enum base_status status = BASE_ERR_NOMEM;
		for (uint64_t n = 1; status == BASE_ERR_NOMEM; n++) {
			struct merge_pair_set s = {0};
			struct merge_clock c = {0};
			enum merge_fit fit;
			base_alloc_fail_nth(n);
			status = BASE_OK;
			for (uint64_t t = 0; status == BASE_OK && t < 300; t++) {
				uint64_t a = t * 1000000,
					 extra = bent && t > 150 ? (t - 150) * 300 : 0;
				status = merge_pair_add(&s, t & 1, a + (t & 1 ? 500 + extra : 0),
					a + (t & 1 ? 0 : 500 + extra) + 90);
			}
			if (status == BASE_OK)
				status = merge_clock_fit(&s, false, 0, 300000000, &c, &fit);
			base_alloc_fail_nth(0);
			if (status == BASE_OK)
				assert_true(fit == MERGE_FIT_ok && c.bends == bent);
			else
				assert_int_equal(status, BASE_ERR_NOMEM);
			merge_clock_fini(&c);
			merge_pair_set_fini(&s);
			assert_true(n < 1000);
		}
		assert_int_equal(status, BASE_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truth_is_within_the_bounds),
		cmocka_unit_test(test_clocks_that_bend),
		cmocka_unit_test(test_bounds_are_those_of_all_lines),
		cmocka_unit_test(test_known_offset),
		cmocka_unit_test(test_what_cannot_be),
		cmocka_unit_test(test_memory_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
