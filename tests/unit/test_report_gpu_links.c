/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_gpu_links.c - cost of collectives, by hand. */
#include "report/gpu_links.h"
#include "test.h"

#include <math.h>

#define assert_near(a, b)                                                                          \
	assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))

/* Among 4, a ring's all-reduce takes 6 steps and moves 1.5 S: with 10 ns a step and 2 ns a byte that is 60 + 3 S. */
static const struct report_transfer measured[] = {
	{"allreduce", 100, 4, 60 + 300, 5},
	{"ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1000, 4, 60 + 3000, 1},
	/* 3 steps, 0.75 S */
	{"_allgather_base", 400, 4, 30 + 600, 2},
	{"reduce_scatter", 800, 4, 30 + 1200, 3},
};

static void steps_and_bytes_are_found(void **state)
{
	struct report_links l = report_links_fit(measured, BASE_COUNT(measured));
	(void)state;
	assert_true(l.is_fitted);
	assert_near(l.step_ns, 10);
	assert_near(l.byte_ns, 2);
	assert_near(report_links_share(&l, &measured[0]), 300.0 / 360);
	assert_near(report_links_share(&l, &measured[3]), 1200.0 / 1230);
}

/* From 4 to 8: a ring takes 14 steps and moves 1.75 S. On trees it was 2 log 4 = 4 steps, and becomes 6. */
static void more_ranks(void **state)
{
	struct report_links l = report_links_fit(measured, BASE_COUNT(measured));
	(void)state;
	assert_near(report_links_ranks(&l, &measured[0], 8, false) * 360, 140 + 350);
	assert_near(report_links_ranks(&l, &measured[0], 8, true) * 360, 60 * 6 / 4.0 + 350);
	assert_near(report_links_ranks(&l, &measured[0], 4, false), 1);
	assert_near(report_links_ranks(&l, &measured[2], 2, false) * 630, 10 + 2 * 200);
}

/* One size says nothing of steps, nor do sizes whose times contradict: all is bytes then. */
static void nothing_to_fit(void **state)
{
	static const struct report_transfer falls[] = {
		{"allreduce", 100, 4, 400, 1}, {"allreduce", 1000, 4, 100, 1}};
	struct report_links l = report_links_fit(measured, 1);
	(void)state;
	assert_false(l.is_fitted);
	assert_near(report_links_share(&l, &measured[0]), 1);
	l = report_links_fit(falls, 2);
	assert_false(l.is_fitted);
	assert_true(l.step_ns == 0 && l.byte_ns > 0);
	l = report_links_fit(NULL, 0);
	assert_near(report_links_share(&l, &measured[0]), 0);
}

/* A message, a broadcast: one step of all bytes; who takes part is not known: as one. */
static void other_operations(void **state)
{
	static const struct report_transfer message = {"send", 1000, 2, 1, 1},
					    unknown = {"allreduce", 1000, 0, 1, 1};
	struct report_links l = {.step_ns = 10, .byte_ns = 2};
	(void)state;
	assert_near(report_links_share(&l, &message), 2000.0 / 2010);
	assert_near(report_links_ranks(&l, &message, 64, false), 1);
	assert_near(report_links_share(&l, &unknown), 4000.0 / 4010);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_and_bytes_are_found),
		cmocka_unit_test(more_ranks),
		cmocka_unit_test(nothing_to_fit),
		cmocka_unit_test(other_operations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
