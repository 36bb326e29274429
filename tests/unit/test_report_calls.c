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
	begin_threads(b, p, 2);
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

static void put_events(struct bench *b, uint32_t stream, uint32_t function, uint64_t in_kernel,
	uint64_t nr, const uint64_t count[4], uint64_t special_nr, const uint64_t special[4])
{
	static const char *const name[] = {
		"cycles", "instructions", "cache-misses", "L1-icache-load-misses"};
	for (unsigned i = 0; i < 4; i++)
		PUT(b, 900, stream, call_event, .function = function, .event = string(b, name[i]),
			.in_kernel = in_kernel, .nr = nr, .count = count[i],
			.special_nr = special_nr, .special_count = special[i]);
}

static void put_totals(struct bench *b, uint32_t stream, uint64_t in_kernel,
	const uint64_t count[4], uint64_t running_ns)
{
	static const char *const name[] = {
		"cycles", "instructions", "cache-misses", "L1-icache-load-misses"};
	for (unsigned i = 0; i < 4; i++)
		PUT(b, 900, stream, thread_event, .event = string(b, name[i]),
			.in_kernel = in_kernel, .count = count[i], .enabled_ns = 1000,
			.running_ns = running_ns);
}

/* Of memcpy 640 calls, 4 of them large ones: 20 small ones took 100 cycles and 50 instructions
 * each, of the large ones two were measured. read: 80 calls, 10 measured. What the program has
 * besides is its own. The first thread's tables were two: the later one has what both had. */
static void event_calls(struct bench *b)
{
	static const uint64_t none[4] = {0};
	start(b);
	uint32_t p = process(b, "prog"), at = site(b, "work");
	uint32_t copy = string(b, "memcpy"), rd = string(b, "read");
	begin_threads(b, p, 2);
	PUT(b, 0, 2, thread_begin, .token = 0, .handle = 1001);
	for (unsigned i = 1; i <= 2; i++) {
		PUT(b, 900, i, call_count, .function = copy, .site = at,
			.category = TRACE_CALL_memory, .calls = 320);
		PUT(b, 900, i, call_time, .function = copy, .nr = 10, .total_ns = 1000);
		PUT(b, 900, i, call_special, .function = copy, .nr = 2, .total_ns = 50000);
		put_events(b, i, copy, 0, 10, (const uint64_t[]){1000, 500, 20, 5}, 1,
			(const uint64_t[]){9000, 3000, 600, 1});
	}
	PUT(b, 900, 2, call_count, .function = rd, .site = at, .category = TRACE_CALL_io,
		.calls = 80);
	PUT(b, 900, 2, call_time, .function = rd, .nr = 80, .total_ns = 800000);
	put_events(b, 2, rd, 0, 10, (const uint64_t[]){400, 100, 0, 10}, 0, none);
	put_events(b, 2, rd, 1, 10, (const uint64_t[]){6000, 1500, 30, 90}, 0, none);
	put_totals(b, 1, 0, (const uint64_t[]){20000, 10000, 700, 50}, 500);
	put_totals(b, 1, 0, (const uint64_t[]){100000, 70000, 1500, 300}, 1000);
	put_totals(b, 2, 0, (const uint64_t[]){100000, 70000, 1500, 300}, 500);
	put_totals(b, 2, 1, (const uint64_t[]){60000, 20000, 400, 900}, 1000);
	end(b, 1000);
}

static void events(void **state)
{
	(void)state;
	struct bench b;
	event_calls(&b);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	struct report_calls *c = NULL;
	assert_int_equal(report_calls_build(&run, &c, &b.err), BASE_OK);
	assert_int_equal(c->nr_events, 4);
	assert_string_equal(c->event_name[2], "cache-misses");
	const struct report_call_function *f = function_of(c, "memcpy");
	assert_near(f->use.event[REPORT_CALL_USER][0].all, 636 * 100 + 4 * 9000, 1);
	assert_near(f->use.event[REPORT_CALL_USER][2].all, 636 * 2 + 4 * 600, 1);
	assert_true(f->use.event[REPORT_CALL_KERNEL][0].all == 0);
	f = function_of(c, "read");
	assert_near(f->use.event[REPORT_CALL_USER][0].all, 80 * 40, 1);
	assert_near(f->use.event[REPORT_CALL_KERNEL][0].all, 80 * 600, 1);
	assert_near(f->use.event[REPORT_CALL_KERNEL][3].all, 80 * 9, 1);
	/* the second thread had the counters half of its time */
	assert_near(c->program_event[REPORT_CALL_USER][0], 100000 + 200000, 1);
	assert_near(c->program_event[REPORT_CALL_KERNEL][1], 20000, 1);
	assert_near(c->least_running_share, 0.5, 0.001);
	assert_int_equal(c->all.without_events, 0);

	struct base_str text = {0};
	report_calls_text(
		&text, c, &(struct report_calls_view){0}, &(struct report_style){.columns = 100});
	const char *said = base_str_text(&text), *user = strstr(said, "category, user space"),
		   *kernel = strstr(said, "category, kernel");
	assert_non_null(user);
	assert_non_null(kernel);
	/* 99,600 of 360,000 cycles, 31,800 + 12,000 instructions, 3,672 of 4,900 misses */
	assert_non_null(strstr(user, "640        28 %        2.27"));
	assert_non_null(strstr(kernel, " 80        13 %        4.00"));
	assert_non_null(strstr(said, "shared the processor's counters"));
	base_str_fini(&text);

	json_t *json = report_calls_json(c), *result = json_object_get(json, "result");
	const json_t *of = json_object_get(json_object_get(result, "categories"), "io");
	of = json_object_get(json_object_get(of, "events"), "kernel");
	assert_near(json_real_value(json_object_get(of, "cycles_per_instruction")), 4, 1e-6);
	assert_int_equal(json_integer_value(json_object_get(of, "measured_calls")), 10);
	of = json_object_get(json_object_get(result, "program_events"), "user");
	of = json_object_get(of, "own_code");
	of = json_object_get(of, "counts");
	assert_int_equal(json_integer_value(json_object_get(of, "cycles")), 300000 - 99600 - 3200);
	json_decref(json);
	report_calls_free(c);
	finish(&b);
}

static void out_of_memory(void **state)
{
	(void)state;
	struct bench b;
	event_calls(&b);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	unsigned refused = 0;
	for (uint64_t n = 1; n < 120; n++) {
		struct report_calls *c = NULL;
		enum base_status s = WITHOUT_NTH(n, report_calls_build(&run, &c, &b.err));
		refused += s == BASE_ERR_NOMEM;
		if (s == BASE_OK)
			assert_int_equal(c->all.calls, 720);
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
		cmocka_unit_test(events),
		cmocka_unit_test(none_counted),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
