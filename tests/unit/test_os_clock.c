/* SPDX-License-Identifier: Apache-2.0 */
/* test_os_clock.c - ticks and the kernel's raw clock come out on one time line. */
#include "os/clock.h"
#include "test.h"

enum { NS_PER_S = 1000000000 };

/* 2.5 ticks a ns, origin at tick 1000 and raw 7 s. */
static void make(struct os_clock *c)
{
	*c = (struct os_clock){.tsc_origin = 1000, .raw_origin_ns = 7ull * NS_PER_S};
	struct os_clock_pair a = {1000, 7ull * NS_PER_S},
			     b = {1000 + 2500000000ull, 8ull * NS_PER_S};
	assert_true(os_clock_fix(c, a, b));
	os_clock_add_pair(c, a);
	os_clock_add_pair(c, b);
}

static void test_factor(void **state)
{
	struct os_clock c;
	(void)state;
	make(&c);
	assert_int_equal(c.tick_hz, 2500000000u);
	assert_int_equal(os_clock_ns(&c, 0), 0);
	/* a day later the fixed-point factor is off by less than 100 ns */
	uint64_t day_ns = 86400ull * NS_PER_S, ns = os_clock_ns(&c, day_ns / 2 * 5);
	assert_true(ns <= day_ns && day_ns - ns < 100);
	assert_false(os_clock_fix(&c, (struct os_clock_pair){5, 5}, (struct os_clock_pair){5, 9}));
	assert_false(os_clock_fix(&c, (struct os_clock_pair){5, 5}, (struct os_clock_pair){9, 5}));
}

/* Law: at each pair, the raw clock's way gives what the ticks' way gives; between two, a straight
 * line. */
static void test_piecewise(void **state)
{
	struct os_clock c;
	(void)state;
	make(&c);
	/* the raw clock now runs 1 % slow, then 3 % fast */
	struct os_clock_pair kinks[] = {{1000 + 5000000000ull, 8ull * NS_PER_S + 990000000},
		{1000 + 7500000000ull, 8ull * NS_PER_S + 990000000 + 1030000000}};
	for (size_t i = 0; i < BASE_COUNT(kinks); i++)
		os_clock_add_pair(&c, kinks[i]);
	assert_int_equal(c.nr_pairs, 4);
	for (unsigned i = 0; i < c.nr_pairs; i++)
		assert_int_equal(os_clock_from_raw(&c, c.pair[i].raw_ns),
			os_clock_ns(&c, c.pair[i].tsc - c.tsc_origin));
	for (unsigned i = 1; i < c.nr_pairs; i++) {
		struct os_clock_pair a = c.pair[i - 1], b = c.pair[i];
		uint64_t before = 0;
		for (unsigned k = 0; k <= 100; k++) {
			uint64_t raw = a.raw_ns + (b.raw_ns - a.raw_ns) / 100 * k;
			uint64_t expect =
				os_clock_ns(&c, a.tsc + (b.tsc - a.tsc) / 100 * k - c.tsc_origin);
			uint64_t got = os_clock_from_raw(&c, raw);
			assert_true(got >= before);
			assert_true((got > expect ? got - expect : expect - got) <= 2);
			before = got;
		}
	}
	/* beyond the ends the nearest piece goes on; before the origin there is nothing */
	assert_int_equal(os_clock_from_raw(&c, kinks[1].raw_ns + 103),
		os_clock_ns(&c, kinks[1].tsc + 250 - c.tsc_origin));
	assert_int_equal(os_clock_from_raw(&c, 6ull * NS_PER_S), 0);
}

static void test_pairs_are_limited(void **state)
{
	struct os_clock c;
	(void)state;
	make(&c);
	for (uint64_t i = 1; i < 1000; i++)
		os_clock_add_pair(&c, (struct os_clock_pair){1000 + 2500000000ull + i * 2500000,
					      8ull * NS_PER_S + i * 1000000});
	assert_int_equal(c.nr_pairs, OS_CLOCK_PAIRS_MAX);
	os_clock_add_pair(&c, (struct os_clock_pair){5, 5}); /* goes back: ignored */
	assert_int_equal(c.pair[c.nr_pairs - 1].raw_ns, 8ull * NS_PER_S + 999000000);
	/* a time before the oldest pair is still on the line */
	assert_in_range(os_clock_from_raw(&c, 8ull * NS_PER_S), NS_PER_S - 2, NS_PER_S);
}

/* On this machine: both ways agree to the width of the bracket, which has to be below 100 ns only
 * when nobody disturbs. */
static void test_this_machine(void **state)
{
	struct os_clock c;
	const char *why;
	(void)state;
	if (!os_clock_usable(&why))
		skip();
	os_clock_start(&c);
	assert_int_equal(os_clock_finish(&c, 5000000, NULL), BASE_OK);
	/* what a stamp takes is part of a reading of both clocks */
	struct os_clock_pair first;
	uint64_t width_ticks = os_clock_read_pair(20, &first);
	/* (where a tick is longer than a stamp, that takes none) */
	assert_in_range(os_clock_stamp_ticks(), c.tick_hz > NS_PER_S, width_ticks);
	for (int i = 0; i < 50; i++) {
		struct os_clock_pair pair;
		uint64_t width = os_clock_read_pair(20, &pair);
		os_clock_add_pair(&c, pair);
		os_clock_read_pair(20, &pair);
		uint64_t by_ticks = os_clock_ns(&c, pair.tsc - c.tsc_origin),
			 by_raw = os_clock_from_raw(&c, pair.raw_ns),
			 apart = by_ticks > by_raw ? by_ticks - by_raw : by_raw - by_ticks;
		assert_true(apart <= 4 * os_clock_ns(&c, width) + 1000);
	}
}

static void test_stolen(void **state)
{
	(void)state;
	assert_int_equal(os_clock_parse_stolen(
				 "cpu  8582191 314561 1289019 4065184 21843 0 44924 1151090 7 6\n"),
		1151090);
	assert_int_equal(os_clock_parse_stolen("cpu  1 2 3 4 5 6 7\n"), 0); /* an old kernel */
	assert_int_equal(os_clock_parse_stolen(""), 0);
	assert_false(os_clock_much_stolen(0, 1000000));
	assert_true(os_clock_much_stolen(UINT32_MAX, 1000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_factor),
		cmocka_unit_test(test_piecewise),
		cmocka_unit_test(test_pairs_are_limited),
		cmocka_unit_test(test_stolen),
		cmocka_unit_test(test_this_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
