/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_system.c - the first sentence about recordings of a whole system, made by hand. */
#include "kernel_fixture.h"
#include "report/report.h"

#include <string.h>

static struct report *build(struct bench *b)
{
	struct report_run run = {.reader = b->reader, .trace_path = "s.lpt", .process = "program"};
	struct report_options opts = {.nr_opportunities_max = 0};
	struct report *r = NULL;
	assert_int_equal(report_build(&run, &opts, &r, &b->err), BASE_OK);
	return r;
}

/* The waker of the program had slept since before the recording: it is named. */
static void slept_since_before(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	uint32_t program = thread(&b, "program"), keeper = thread(&b, "keeper");
	IN(&b, 0, program, 0);
	SLEEPS(&b, 100, program, 0);
	IN(&b, 8990, keeper, 1);
	WAKES(&b, 9000, keeper, program);
	IN(&b, 9010, program, 0);
	SLEEPS(&b, 9020, keeper, 1);
	SLEEPS(&b, 9100, program, 0);
	bench_read(&b);
	struct report *r = build(&b);
	assert_non_null(strstr(r->finding, "in keeper, of which nothing was recorded before"));
	report_free(r);
	finish(&b);
}

/* A timer wakes the program, and each time another one has its processor for longer than it runs:
 * what they have in common is the finding, and who they are. */
static void processors_that_others_had(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	uint32_t program = thread(&b, "program"), cc1 = thread(&b, "cc1"), ld = thread(&b, "ld");
	uint32_t timer = context(&b, TRACE_CONTEXT_timer, 0, "local timer");
	IN(&b, 0, program, 0);
	for (unsigned i = 0; i < 3; i++) {
		uint32_t other = i == 1 ? ld : cc1;
		uint64_t at = 1000 * i;
		SLEEPS(&b, at + 100, program, 0);
		IN(&b, at + 100, other, 0);
		WAKES(&b, at + 200, timer, program);
		YIELDS(&b, at + 1000, other, 0);
		IN(&b, at + 1000, program, 0);
	}
	SLEEPS(&b, 3100, program, 0);
	bench_read(&b);
	struct report *r = build(&b);
	assert_non_null(strstr(r->finding, "waiting for a processor"));
	assert_non_null(strstr(r->finding, "cc1 had it for 52 %, ld for 26 %"));
	report_free(r);
	finish(&b);
}

/* Switches alone do not show who sent; a full recording in which nobody is seen says that. */
static void nobody_at_the_other_end(void **state)
{
	(void)state;
	for (int full = 0; full < 2; full++) {
		struct bench b;
		struct trace_info info = {.size = sizeof info,
			.host = "h",
			.command = "",
			.tool = "t",
			.nr_processors = 2,
			.flags = TRACE_INFO_SYSTEM | (full ? TRACE_INFO_KERNEL : 0)};
		bench_open(&b, 1, &info);
		uint32_t program = thread(&b, "program");
		uint32_t net = context(&b, TRACE_CONTEXT_softirq, 1, "NET_RX");
		IN(&b, 0, program, 0);
		SLEEPS(&b, 100, program, 0);
		WAKES(&b, 9000, net, program);
		IN(&b, 9010, program, 0);
		SLEEPS(&b, 9100, program, 0);
		bench_read(&b);
		struct report *r = build(&b);
		assert_non_null(strstr(r->finding, "the network"));
		assert_non_null(strstr(r->finding,
			full ? "nobody who was recorded is seen" : "(record with --full)"));
		report_free(r);
		finish(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slept_since_before),
		cmocka_unit_test(processors_that_others_had),
		cmocka_unit_test(nobody_at_the_other_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
