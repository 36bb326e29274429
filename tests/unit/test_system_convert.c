/* SPDX-License-Identifier: Apache-2.0 */
/* test_system_convert.c - the kernel's events to records: whose they are, and what is
 * missing. */
#include "record_fixture.h"
#include "session/ring.h"
#include "system/convert.h"

enum {
	CPUS = 2,
	RECORDS_MAX = 200,
	TID = 4190000,
	OTHER = TID + 1,
	CHILD = TID + 2,
	MAIN = TID + 10
};

static const struct fake_event {
	unsigned cpu;
	struct kernel_slot slot[2];
} * script;
static size_t script_length;

static void fake_start(struct system_source *src)
{
	(void)src;
}

static enum base_status fake_read(struct system_source *src, uint64_t now_ns)
{
	enum base_status status = BASE_OK;
	(void)now_ns;
	for (size_t i = 0; i < script_length && status == BASE_OK; i++) {
		unsigned nr = script[i].slot[0].shape >> 4;
		status = system_order_push(&src->order, script[i].cpu, script[i].slot, nr ? nr : 1);
	}
	script_length = 0;
	return status;
}

static void fake_close(struct system_source *src)
{
	(void)src;
}

static const struct system_backend fake = {
	.name = "fake", .start = fake_start, .read = fake_read, .close = fake_close};

/* Times of events are those of the trace. */
static enum base_status run_script(
	struct fixture *f, struct system_kernel *k, const struct fake_event *events, size_t nr)
{
	struct system_options o = {
		.level = SYSTEM_LEVEL_sched, .backend = &fake, .nr_processors = CPUS};
	enum base_status status = system_kernel_open(k, &o, NULL);
	if (status != BASE_OK)
		return status;
	system_kernel_start(k, &f->converter);
	k->line_mono_ns = k->line_time_ns = 1ull << 62;
	k->from_mono_ns = 0;
	script = events;
	script_length = nr;
	system_kernel_read(k, true);
	system_kernel_finish(k);
	return f->converter.sink.status;
}

static struct trace_record record[RECORDS_MAX];

static size_t read_back(struct fixture *f)
{
	struct trace_batch batch;
	size_t nr = 0;
	record_converter_finish(&f->converter, -1, 0, fixture_nobody_lives);
	assert_int_equal(trace_writer_close(f->writer, NULL), BASE_OK);
	assert_int_equal(trace_reader_open(f->path, NULL, &f->reader, NULL), BASE_OK);
	while (trace_reader_next(f->reader, &batch, NULL) == BASE_OK)
		for (size_t i = 0; i < batch.nr && nr < RECORDS_MAX; i++)
			record[nr++] = batch.record[i];
	return nr;
}

/* ---- notation: the times ascend by 100 in the order of the script ---------------------------- */

#define SWITCH(t, cpu_, from, to, runnable)                                                        \
	{                                                                                          \
		.cpu = (cpu_),                                                                     \
		.slot = {{.time_ns = (t),                                                          \
			.tid = (from),                                                             \
			.type = KERNEL_switch,                                                     \
			.a = (to),                                                                 \
			.b = (uint64_t)(runnable) << 32}},                                         \
	}
#define WAKE(t, cpu_, by, context, vector_, woken)                                                 \
	{                                                                                          \
		.cpu = (cpu_),                                                                     \
		.slot = {{.time_ns = (t),                                                          \
			.tid = (by),                                                               \
			.type = KERNEL_wake,                                                       \
			.shape = 1 << 4 | (context),                                               \
			.vector = (vector_),                                                       \
			.a = (woken)}},                                                            \
	}

static uint64_t tid_of(struct fixture *f, uint32_t stream)
{
	return trace_def_stream(fixture_defs(f), stream)->tid;
}

static const char *context_of(struct fixture *f, uint32_t stream)
{
	const struct trace_defs *d = fixture_defs(f);
	return trace_text_of(d, trace_def_context(d, stream)->name);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_wakers(void **state)
{
	static const struct fake_event events[] = {
		SWITCH(100, 0, 0, TID, 0), WAKE(200, 0, TID, KERNEL_IN_TASK, 0, OTHER),
		WAKE(300, 0, TID, KERNEL_IN_SOFTIRQ, 3, OTHER), /* interrupts TID */
		WAKE(400, 0, TID, KERNEL_IN_TIMER, 0, OTHER),
		WAKE(500, 1, 0, KERNEL_IN_TASK, 0, OTHER),   /* the idle processor */
		WAKE(600, 0, OTHER, KERNEL_IN_TASK, 0, TID), /* still on its processor ... */
		SWITCH(700, 0, TID, 0, 0),                   /* ... and goes to sleep */
	};
	static const char *const by[] = {"", "NET_RX", "local timer", "idle", ""};
	struct fixture f;
	struct system_kernel k;
	size_t at = 0;
	(void)state;
	fixture_open(&f);
	assert_int_equal(run_script(&f, &k, events, BASE_COUNT(events)), BASE_OK);
	assert_int_equal(k.nr_switches_lost, 0);
	assert_int_equal(k.nr_wakes_early, 1);
	system_kernel_close(&k);
	size_t nr = read_back(&f);
	for (size_t i = 0; i < nr; i++) {
		if (record[i].kind != TRACE_wake)
			continue;
		assert_string_equal(context_of(&f, record[i].stream), by[at]);
		if (!*by[at])
			assert_int_equal(tid_of(&f, record[i].stream), at ? OTHER : TID);
		else
			assert_int_equal(tid_of(&f, record[i].stream), 0);
		assert_int_equal(tid_of(&f, record[i].u.wake.woken), at == 4 ? TID : OTHER);
		at++;
	}
	assert_int_equal(at, BASE_COUNT(by));
	fixture_close(&f);
}

/* The switch from OTHER to TID was not shown: both are put right when it is noticed. */
static void test_lost_switch(void **state)
{
	static const struct fake_event events[] = {
		SWITCH(100, 0, 0, OTHER, 0),
		SWITCH(300, 0, TID, 0, 1),
	};
	static const struct {
		uint64_t time_ns, tid;
		uint16_t kind;
	} expected[] = {{100, OTHER, TRACE_cpu_in}, {300, OTHER, TRACE_cpu_out},
		{300, TID, TRACE_cpu_in}, {300, TID, TRACE_cpu_out}};
	struct fixture f;
	struct system_kernel k;
	(void)state;
	fixture_open(&f);
	assert_int_equal(run_script(&f, &k, events, BASE_COUNT(events)), BASE_OK);
	assert_int_equal(k.nr_switches_lost, 1);
	system_kernel_close(&k);
	assert_int_equal(read_back(&f), BASE_COUNT(expected));
	for (size_t i = 0; i < BASE_COUNT(expected); i++) {
		assert_int_equal(record[i].time_ns, expected[i].time_ns);
		assert_int_equal(record[i].kind, expected[i].kind);
		assert_int_equal(tid_of(&f, record[i].stream), expected[i].tid);
	}
	fixture_close(&f);
}

/* A child is born, becomes another program, exits, wakes its parent, and only then has ended. */
static void test_life(void **state)
{
	struct fake_event events[] = {
		{.cpu = 0,
			.slot = {{.time_ns = 100,
					 .tid = TID,
					 .type = KERNEL_fork,
					 .shape = 2 << 4,
					 .a = CHILD | (uint64_t)CHILD << 32,
					 .b = TID},
				{0}}},
		SWITCH(200, 1, 0, CHILD, 0),
		{.cpu = 1,
			.slot = {{.time_ns = 300,
					 .tid = CHILD,
					 .type = KERNEL_exec,
					 .shape = 2 << 4,
					 .a = CHILD,
					 .b = CHILD},
				{0}}},
		{.cpu = 1,
			.slot = {{.time_ns = 400,
				.tid = CHILD,
				.type = KERNEL_exit,
				.a = 3 << 8,
				.b = CHILD}}},
		WAKE(500, 1, CHILD, KERNEL_IN_TASK, 0, TID),
		SWITCH(600, 1, CHILD, 0, 0),
	};
	static const struct {
		uint16_t kind;
		uint64_t time_ns;
		const char *program;
	} expected[] = {{TRACE_process_fork, 100, NULL}, {TRACE_process_begin, 100, "first"},
		{TRACE_cpu_in, 200, "first"}, {TRACE_process_exec, 300, "first"},
		{TRACE_process_begin, 300, "second"}, {TRACE_wake, 500, "second"},
		{TRACE_cpu_out, 600, "second"}, {TRACE_process_end, 600, "second"}};
	struct fixture f;
	struct system_kernel k;
	(void)state;
	memcpy(&events[0].slot[1], "first", 6);
	memcpy(&events[2].slot[1], "second", 7);
	fixture_open(&f);
	assert_int_equal(run_script(&f, &k, events, BASE_COUNT(events)), BASE_OK);
	system_kernel_close(&k);
	assert_int_equal(read_back(&f), BASE_COUNT(expected));
	const struct trace_defs *d = fixture_defs(&f);
	for (size_t i = 0; i < BASE_COUNT(expected); i++) {
		assert_int_equal(record[i].kind, expected[i].kind);
		assert_int_equal(record[i].time_ns, expected[i].time_ns);
		const struct trace_stream *s = trace_def_stream(d, record[i].stream);
		if (expected[i].program)
			assert_string_equal(
				trace_text_of(d, trace_def_process(d, s->process)->name),
				expected[i].program);
	}
	assert_true(record[0].u.process_fork.token == record[1].u.process_begin.token);
	assert_int_equal(record[7].u.process_end.status, 3 << 8);
	fixture_close(&f);
}

/* A thread of the recorded program: woken before it has attached, into the stream that it then
 * gets. It is gone when its command would be read: as what it was started is known. */
static void test_own(void **state)
{
	static const struct fake_event events[] = {
		WAKE(100, 0, OTHER, KERNEL_IN_TASK, 0, MAIN),
		SWITCH(200, 1, 0, MAIN, 0),
		SWITCH(300, 1, MAIN, 0, 0),
	};
	struct fixture f;
	struct system_kernel k;
	(void)state;
	fixture_open(&f);
	struct record_task *task = record_converter_task(&f.converter, MAIN, MAIN);
	assert_non_null(task);
	memcpy(task->comm, "short", sizeof "short");
	f.converter.main_pid = MAIN;
	f.converter.main_argv = (char *[]){"./short", "a b", NULL};
	assert_int_equal(run_script(&f, &k, events, BASE_COUNT(events)), BASE_OK);
	system_kernel_close(&k);
	size_t nr = read_back(&f);
	uint32_t woken = 0;
	unsigned nr_switches = 0;
	for (size_t i = 0; i < nr; i++) {
		if (record[i].kind == TRACE_wake)
			woken = record[i].u.wake.woken;
		if (record[i].kind == TRACE_cpu_in || record[i].kind == TRACE_cpu_out) {
			assert_int_equal(record[i].stream, woken);
			nr_switches++;
		}
	}
	assert_int_equal(nr_switches, 2);
	assert_int_equal(tid_of(&f, woken), MAIN);
	const struct trace_defs *d = fixture_defs(&f);
	uint32_t process = trace_def_stream(d, woken)->process;
	assert_true(process);
	assert_string_equal(
		trace_text_of(d, trace_def_process(d, process)->command), "./short 'a b'");
	fixture_close(&f);
}

#define CALL(t, type_, number, a_, op, n)                                                          \
	{                                                                                          \
		.slot = {{.time_ns = (t),                                                          \
			.tid = TID,                                                                \
			.type = (type_),                                                           \
			.shape = 1 << 4,                                                           \
			.vector = (number),                                                        \
			.a = (a_),                                                                 \
			.b = (n) | (uint64_t)(op) << 48}},                                         \
	}
#define TIMER(t, context, delay_ns)                                                                \
	{                                                                                          \
		.slot = {{.time_ns = (t),                                                          \
				 .tid = TID,                                                       \
				 .type = KERNEL_timer_start,                                       \
				 .shape = 2 << 4 | (context),                                      \
				 .a = 0x1000,                                                      \
				 .b = 0x2000},                                                     \
			{.time_ns = (uint64_t)(delay_ns)}},                                        \
	}

/* Deadlines are what a call's own timer is set to, the first that it starts: of a sleep until then,
 * not of one for a time; of a timerfd, that is stopped when none is started. */
static void test_deadlines(void **state)
{
	enum { SLEEP = 230, SET = 286, TIMERFD = 1, PERIOD_NS = 5000 };
	static const struct fake_event events[] = {
		SWITCH(100, 0, 0, TID, 0),
		CALL(1000, KERNEL_call_begin, SLEEP, 0, 1, 99),
		TIMER(1100, KERNEL_IN_TIMER, 77), /* an interrupt's */
		TIMER(1200, KERNEL_IN_TASK, -300),
		TIMER(1300, KERNEL_IN_TASK, 88),
		CALL(1400, KERNEL_call_end, SLEEP, 0, 0, 0),
		TIMER(1500, KERNEL_IN_TASK, 99), /* in no call */
		CALL(2000, KERNEL_call_begin, SLEEP, 0, 0, 500),
		TIMER(2100, KERNEL_IN_TASK, 500),
		CALL(2700, KERNEL_call_end, SLEEP, 0, 0, 0),
		CALL(3000, KERNEL_call_begin, SET, KERNEL_FILE(TIMERFD, 0, 0, 3), 0, PERIOD_NS),
		TIMER(3100, KERNEL_IN_TASK, 700),
		CALL(3200, KERNEL_call_end, SET, 0, 0, 0),
		CALL(4000, KERNEL_call_begin, SET, KERNEL_FILE(TIMERFD, 0, 0, 3), 0, 0),
		CALL(4100, KERNEL_call_end, SET, 0, 0, 0),
	};
	struct fixture f;
	struct system_kernel k;
	unsigned nr_sleeps = 0, nr_sets = 0;
	(void)state;
	fixture_open(&f);
	assert_int_equal(run_script(&f, &k, events, BASE_COUNT(events)), BASE_OK);
	system_kernel_close(&k);
	size_t nr = read_back(&f);
	for (size_t i = 0; i < nr; i++) {
		const struct trace_timer_set *s = &record[i].u.timer_set;
		if (record[i].kind == TRACE_sleep_until) {
			assert_int_equal(record[i].time_ns, 1200);
			assert_int_equal(record[i].u.sleep_until.remaining_ns, -300);
			assert_int_equal(record[i].u.sleep_until.deadline_ns, 1200 - 300);
			nr_sleeps++;
		} else if (record[i].kind == TRACE_timer_set) {
			assert_int_equal(s->armed, !nr_sets);
			assert_int_equal(s->first_ns, nr_sets ? 0 : 700);
			assert_int_equal(s->period_ns, nr_sets ? 0 : PERIOD_NS);
			assert_true(s->object);
			nr_sets++;
		}
	}
	assert_int_equal(nr_sleeps, 1);
	assert_int_equal(nr_sets, 2);
	fixture_close(&f);
}

static void test_no_memory(void **state)
{
	static const struct fake_event events[] = {
		SWITCH(100, 0, 0, TID, 0),
		WAKE(200, 0, TID, KERNEL_IN_SOFTIRQ, 3, OTHER),
		SWITCH(300, 0, TID, OTHER, 0),
	};
	(void)state;
	for (uint64_t nth = 1; nth < 60; nth++) {
		struct fixture f;
		struct system_kernel k = {0};
		fixture_open(&f);
		base_alloc_fail_nth(nth);
		enum base_status status = run_script(&f, &k, events, BASE_COUNT(events));
		base_alloc_fail_nth(0);
		assert_true(
			status == BASE_OK || status == BASE_ERR_NOMEM || status == BASE_ERR_LIMIT);
		system_kernel_close(&k);
		(void)!trace_writer_close(f.writer, NULL);
		fixture_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wakers),
		cmocka_unit_test(test_lost_switch),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_deadlines),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
