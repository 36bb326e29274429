/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_ledger.c - what outcomes so far say of the next one. */
#include "test.h"

#include "report/ledger.h"

#include <math.h>

static void add_outcome(struct base_str *s, double predicted, double measured)
{
	base_str_addf(
		s, "{\"kind\":\"scale\",\"best\":%.17g,\"measured\":%.17g}\n", predicted, measured);
}

static double factor_after(const struct base_str *s)
{
	struct report_ledger l = {0};
	struct base_err err;
	assert_int_equal(report_ledger_read(&l, base_str_text(s), &err), BASE_OK);
	assert_int_equal(l.nr, 1);
	double factor = l.history[0].best_factor;
	report_ledger_fini(&l);
	return factor;
}

/* Nine in ten of ten are nine: of eight outcomes nothing follows, of nine their largest, of 19 the
 * second largest. Too much and too little are the same. */
static void too_few_say_nothing(void **state)
{
	struct base_str s = {0};
	(void)state;
	for (unsigned i = 1; i <= 19; i++) {
		double by = 1 + i / 100.0;
		add_outcome(&s, 2, i % 2 ? 2 * by : 2 / by);
		double factor = factor_after(&s), want = i < 9 ? 0 : i < 19 ? by : 1.18;
		assert_true(fabs(factor - want) < 1e-9);
	}
	base_str_fini(&s);
}

/* Whatever the errors' distribution is: nine in ten of the next ones are within. */
static void nine_in_ten_are_within(void **state)
{
	enum { TRIALS = 3000, OUTCOMES = 29 };
	uint64_t rng = 1;
	unsigned within = 0;
	(void)state;
	for (unsigned t = 0; t < TRIALS; t++) {
		struct base_str s = {0};
		double next = 0;
		for (unsigned i = 0; i <= OUTCOMES; i++) {
			rng = base_hash_u64(rng + i);
			double dice = (double)(rng >> 11) / 0x1p53;
			next = exp((dice < 0.5 ? -1 : 1) * dice * dice / 3);
			if (i < OUTCOMES)
				add_outcome(&s, 2, 2 * next);
		}
		within += fmax(next, 1 / next) <= factor_after(&s);
		base_str_fini(&s);
	}
	/* four standard deviations of TRIALS draws */
	assert_true(fabs((double)within / TRIALS - 0.9) < 4 * sqrt(0.9 * 0.1 / TRIALS));
}

/* Of what predicted nothing, or beyond all sense, there is no history: it would be one of nothing.
 */
static void lines_that_are_no_entries(void **state)
{
	static const char *const line[] = {"{\"kind\":\"scale\",\"measured\":1.1}",
		"{\"kind\":\"scale\",\"path\":0,\"measured\":1.1}",
		"{\"kind\":\"scale\",\"replay\":-2,\"measured\":1.1}",
		"{\"kind\":\"scale\",\"best\":1e308,\"measured\":1e-308}",
		"{\"kind\":\"scale\",\"path\":1,\"measured\":0}",
		"{\"kind\":\"\",\"path\":1,\"measured\":1}", "[]", "{"};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(line); i++) {
		struct report_ledger l = {0};
		struct base_err err;
		assert_int_equal(report_ledger_read(&l, line[i], &err), BASE_OK);
		assert_int_equal(l.nr, 0);
		assert_int_equal(l.nr_bad_lines, 1);
		report_ledger_fini(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_few_say_nothing),
		cmocka_unit_test(nine_in_ten_are_within),
		cmocka_unit_test(lines_that_are_no_entries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
