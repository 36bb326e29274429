/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_calls.c - longpole calls on a hand-made trace: what a sample says of all, and whose a
 * call is. */
#include "report_fixture.h"

#include "report/calls.h"

static const struct report_call_function *function_of(
	const struct report_calls *c, const char *name)
{
	for (size_t i = 0; i < c->nr_functions; i++)
		if (!strcmp(c->function[i].name, name))
			return &c->function[i];
	fail_msg("no function %s", name);
	return NULL;
}

/* memcpy: 640 calls in two threads, 20 of them timed, 4 large ones besides; qsort once, and strcmp
 * in it; read: 80 calls, all timed, the processor time of 10 measured; a mutex, taken 2 of 64
 * times. */
static void library_calls(struct bench *b)
{
	start(b);
	uint32_t p = process(b, "prog"), at = site(b, "work"), in = site(b, "compare");
	uint32_t copy = string(b, "memcpy"), sort = string(b, "qsort"), cmp = string(b, "strcmp");
	uint32_t rd = string(b, "read"), lock = string(b, "pthread_mutex_lock");
	stream(b, p);
	stream(b, p);
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	PUT(b, 0, 2, thread_begin, .token = 0, .handle = 1001);
	for (unsigned i = 1; i <= 2; i++) {
		PUT(b, 900, i, call_count, .function = copy, .site = at,
			.category = TRACE_CALL_memory, .calls = 320, .bytes = 1000);
		PUT(b, 900, i, call_time, .function = copy, .nr = 10, .total_ns = 1000,
			.max_ns = 200);
		PUT(b, 900, i, call_special, .function = copy, .nr = 2, .total_ns = 50000,
			.waits = 0);
	}
	PUT(b, 900, 1, call_count, .function = sort, .site = at, .category = TRACE_CALL_other,
		.calls = 1);
	PUT(b, 900, 1, call_time, .function = sort, .nr = 1, .total_ns = 7000, .max_ns = 7000);
	PUT(b, 900, 1, call_count, .function = cmp, .inside = sort, .site = in,
		.category = TRACE_CALL_string, .calls = 32);
	PUT(b, 900, 1, call_time, .function = cmp, .nr = 1, .total_ns = 20, .max_ns = 20);
	PUT(b, 900, 2, call_count, .function = rd, .site = at, .category = TRACE_CALL_io,
		.calls = 80, .bytes = 4096);
	PUT(b, 900, 2, call_time, .function = rd, .nr = 80, .total_ns = 800000, .max_ns = 30000,
		.cpu_nr = 10, .cpu_ns = 5000);
	PUT(b, 900, 2, call_kernel, .function = rd, .nr = 80, .kernel_ns = 30000);
	PUT(b, 900, 2, call_count, .function = lock, .site = at, .category = TRACE_CALL_pthreads,
		.calls = 64);
	PUT(b, 900, 2, call_time, .function = lock, .nr = 2, .total_ns = 40, .max_ns = 9000);
	PUT(b, 900, 2, call_special, .function = lock, .nr = 2, .total_ns = 15000, .waits = 1);
	PUT(b, 900, 2, call_kernel, .function = lock, .nr = 2, .kernel_ns = 0, .special_nr = 2,
		.special_kernel_ns = 700);
	end(b, 1000);
}

static void estimates(void **state)
{
	(void)state;
	struct bench b;
	library_calls(&b);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	struct report_calls *c = NULL;
	assert_int_equal(report_calls_build(&run, &c, &b.err), BASE_OK);
	const struct report_call_function *f = function_of(c, "memcpy");
	assert_int_equal(f->use.calls, 640);
	assert_int_equal(f->use.bytes, 2000);
	assert_near(
		f->use.ns, 636 * 100 + 100000, 1); /* the large ones speak for themselves only */
	assert_near(f->use.cpu_ns, 636 * 100 + 100000, 1);
	f = function_of(c, "read");
	assert_near(f->use.ns, 800000, 1);
	assert_near(f->use.cpu_ns, 80 * 500, 1);
	assert_near(f->use.kernel_ns, 30000, 1);
	f = function_of(c, "pthread_mutex_lock");
	assert_near(f->use.ns, 62 * 20 + 15000, 1);
	assert_near(f->use.kernel_ns, 700, 1);
	/* who waits is not on a processor, but where it is measured to be */
	assert_near(f->use.cpu_ns, 62 * 20 + 700, 1);
	f = function_of(c, "strcmp");
	assert_int_equal(f->use.calls, 32);
	assert_int_equal(f->inside.calls, 32);
	assert_string_equal(f->place[0].inside, "qsort");
	assert_int_equal(c->category[TRACE_CALL_string].calls, 0); /* it is qsort's */
	assert_int_equal(c->category[TRACE_CALL_other].calls, 1);
	assert_int_equal(c->all.calls, 640 + 1 + 80 + 64);
	report_calls_free(c);
	finish(&b);
}

/* A sum that cannot be is not the first thing that is said. */
static void more_than_there_was(void **state)
{
	(void)state;
	struct bench b;
	library_calls(&b);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	struct report_calls *c = NULL;
	struct base_str text = {0};
	assert_int_equal(report_calls_build(&run, &c, &b.err), BASE_OK);
	const uint64_t sum_ns = (uint64_t)c->all.cpu_ns;
	for (unsigned i = 0; i < 2; i++) {
		c->cpu_ns = i ? sum_ns / 2 : sum_ns * 2;
		base_str_reset(&text);
		report_calls_text(&text, c, &(struct report_calls_view){0},
			&(struct report_style){.columns = 100});
		const char *said = base_str_text(&text);
		assert_int_equal(
			strncmp(said, i ? "all of the processor time" : "50 % of the", 11), 0);
		assert_int_equal(strstr(said, "CAUTION") != NULL, i == 1);
	}
	base_str_fini(&text);
	report_calls_free(c);
	finish(&b);
}

static void none_counted(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	struct report_calls *c = NULL;
	assert_int_equal(report_calls_build(&run, &c, &b.err), BASE_ERR_LACKS);
	finish(&b);
}

static void out_of_memory(void **state)
{
	(void)state;
	struct bench b;
	library_calls(&b);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	unsigned refused = 0;
	for (uint64_t n = 1; n < 120; n++) {
		struct report_calls *c = NULL;
		base_alloc_fail_nth(n);
		enum base_status s = report_calls_build(&run, &c, &b.err);
		base_alloc_fail_nth(0);
		refused += s == BASE_ERR_NOMEM;
		assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
		if (s == BASE_OK)
			assert_int_equal(c->all.calls, 785);
		report_calls_free(c);
	}
	assert_true(refused > 20);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimates),
		cmocka_unit_test(more_than_there_was),
		cmocka_unit_test(none_counted),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
