/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_event.c - the kernel's records: parsed, and put in order with the ring's. */
#include "record_fixture.h"
#include "session/ring.h"
#include "system/perf.h"
#include "system/perf_own.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/mman.h>

enum { CODE = 0x400000, RECORDS_MAX = 1000, PID = FIXTURE_GONE_PID };

static struct trace_record record[RECORDS_MAX];

/* ---- parsing --------------------------------------------------------------------------------- */

struct bytes {
	_Alignas(8) uint8_t at[4096];
	size_t size;
};

static void add(struct bytes *b, const void *p, size_t size)
{
	memcpy(b->at + b->size, p, size);
	b->size += size;
}

static void add_u64(struct bytes *b, uint64_t v)
{
	add(b, &v, sizeof v);
}

static void add_pair(struct bytes *b, uint32_t x, uint32_t y)
{
	add(b, &x, sizeof x);
	add(b, &y, sizeof y);
}

static void header(struct bytes *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = {.type = type, .misc = misc};
	b->size = 0;
	add(b, &h, sizeof h);
}

static void sample_id(struct bytes *b, uint32_t pid, uint32_t tid, uint64_t time, uint32_t cpu)
{
	add_pair(b, pid, tid);
	add_u64(b, time);
	add_pair(b, cpu, 0);
}

static size_t parse(struct bytes *b, struct system_perf_record *r)
{
	((struct perf_event_header *)(void *)b->at)->size = (uint16_t)b->size;
	/* whatever is cut off, nothing is read beyond it */
	for (size_t size = 0; size < b->size; size++) {
		uint8_t *cut = malloc(size ? size : 1);
		memcpy(cut, b->at, size);
		if (size >= sizeof(struct perf_event_header))
			((struct perf_event_header *)(void *)cut)->size = (uint16_t)size;
		(void)system_perf_parse(cut, size, r);
		free(cut);
	}
	return system_perf_parse(b->at, b->size, r);
}

static void test_parse_sample(void **state)
{
	struct bytes b;
	struct system_perf_record r;
	(void)state;
	header(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	add_u64(&b, 0x401000);
	add_pair(&b, 7, 8);
	add_u64(&b, 12345);
	add_pair(&b, 1, 0);
	const uint64_t chain[] = {(uint64_t)PERF_CONTEXT_USER, 0x401000, 0x402000, 0x403000};
	add_u64(&b, BASE_COUNT(chain));
	add(&b, chain, sizeof chain);
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_sample);
	assert_int_equal(r.event.pid, 7);
	assert_int_equal(r.event.tid, 8);
	assert_int_equal(r.event.cpu, 1);
	assert_int_equal(r.event.time_ns, 12345);
	assert_int_equal(r.event.ip, 0x401000);
	assert_int_equal(r.event.nr_frames, 2); /* the instruction itself is no caller */
	assert_int_equal(r.event.frame[0], 0x402000);
	assert_int_equal(r.event.frame[1], 0x403000);
	assert_int_equal(r.user.stack_bytes, 0);
	/* registers and a piece of the stack */
	size_t without = b.size;
	add_u64(&b, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t i = 0; i < 9; i++)
		add_u64(&b, 100 + i);
	add_u64(&b, 16);
	add_u64(&b, 0xaaaa);
	add_u64(&b, 0xbbbb);
	add_u64(&b, 8); /* of which so many were there */
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.nr_frames, 2);
	assert_int_equal(r.user.rbx, 100);
	assert_int_equal(r.user.rsp, 102);
	assert_int_equal(r.user.rip, 103);
	assert_int_equal(r.user.r15, 108);
	assert_int_equal(r.user.stack_bytes, 8);
	assert_memory_equal(r.user.stack, b.at + b.size - 24, 8);
	uint64_t too_many = 24; /* bytes that are not there */
	memcpy(b.at + without + 80, &too_many, sizeof too_many);
	assert_int_equal(system_perf_parse(b.at, b.size, &r), b.size);
	assert_int_equal(r.event.nr_frames, 2);
	assert_int_equal(r.user.stack_bytes, 0);
	/* a number of frames that is not there */
	uint64_t lie = 1ull << 61;
	memcpy(b.at + sizeof(struct perf_event_header) + 32, &lie, sizeof lie);
	assert_int_equal(system_perf_parse(b.at, b.size, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_none);
}

static void test_parse_others(void **state)
{
	struct bytes b;
	struct system_perf_record r;
	(void)state;
	header(&b, PERF_RECORD_SWITCH,
		PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	sample_id(&b, 7, 8, 99, 3);
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_preempted);
	assert_int_equal(r.event.cpu, 3);
	header(&b, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
	sample_id(&b, 7, 8, 99, 3);
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_out);
	header(&b, PERF_RECORD_SWITCH, 0);
	sample_id(&b, 7, 8, 99, 3);
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_in);
	header(&b, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT);
	add_pair(&b, 1, 2); /* who is next */
	sample_id(&b, 7, 8, 99, 3);
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_out);
	assert_int_equal(r.event.tid, 8);

	header(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	add_pair(&b, 7, 8);
	add(&b, "new\0\0\0\0\0", 8);
	sample_id(&b, 7, 8, 99, 3);
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_exec);
	assert_string_equal(r.comm, "new");

	header(&b, PERF_RECORD_FORK, 0);
	add_pair(&b, 20, 7); /* pid, ppid */
	add_pair(&b, 21, 8); /* tid, ptid */
	add_u64(&b, 555);
	sample_id(&b, 7, 8, 99, 3); /* the parent's */
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_fork);
	assert_int_equal(r.event.pid, 20);
	assert_int_equal(r.event.tid, 21);
	assert_int_equal(r.event.other, 7);
	assert_int_equal(r.event.time_ns, 555);

	header(&b, PERF_RECORD_MMAP2, 0);
	add_pair(&b, 7, 8);
	add_u64(&b, 0x1000);
	add_u64(&b, 0x2000);
	add_u64(&b, 0x3000);
	for (int i = 0; i < 3; i++)
		add_u64(&b, 0);
	add_pair(&b, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	add(&b, "/lib/a\0", 8);
	sample_id(&b, 7, 8, 99, 3);
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_map);
	assert_int_equal(r.map.start, 0x1000);
	assert_int_equal(r.map.end, 0x3000);
	assert_int_equal(r.map.file_offset, 0x3000);
	assert_int_equal(r.map.path_bytes, 6);

	header(&b, PERF_RECORD_LOST, 0);
	add_u64(&b, 1);
	add_u64(&b, 17);
	sample_id(&b, 7, 8, 99, 3);
	assert_int_equal(parse(&b, &r), b.size);
	assert_int_equal(r.event.kind, RECORD_EVENT_lost);
	assert_int_equal(r.event.ip, 17);
}

/* ---- order ----------------------------------------------------------------------------------- */

static void event(struct fixture *f, uint64_t time, enum record_event_kind kind, uint32_t tid)
{
	struct record_event e = {
		.time_ns = time, .kind = kind, .pid = PID, .tid = tid, .cpu = 1, .ip = CODE + 8};
	record_converter_event(&f->converter, &e, NULL, "name");
}

static struct fake_thread begin(
	struct fixture *f, uint32_t image, uint64_t number, uint32_t block, uint64_t time)
{
	struct fake_thread t = {.f = f,
		.image = image,
		.parent = image - 1,
		.pid = PID,
		.tid = PID + (uint32_t)number - 1,
		.number = number};
	fake_take_block(&t, block);
	fake_module(&t, time, CODE, CODE + 0x1000, 0, "/bin/prog");
	return t;
}

static void expect(size_t i, uint64_t time, unsigned kind, uint32_t stream)
{
	assert_int_equal(record[i].time_ns, time);
	assert_int_equal(record[i].kind, kind);
	assert_int_equal(record[i].stream, stream);
}

static void test_merges_by_time(void **state)
{
	struct fixture f;
	(void)state;
	fixture_open(&f);
	event(&f, 150, RECORD_EVENT_sample, PID);
	event(&f, 250, RECORD_EVENT_out, PID); /* of another processor's buffer, read first */
	event(&f, 200, RECORD_EVENT_sample, PID);
	event(&f, 400, RECORD_EVENT_in, PID);
	struct fake_thread t = begin(&f, 1, 1, 0, 100);
	FAKE(&t, 160, TRACE_sleep_begin, 5, CODE);
	FAKE(&t, 500, TRACE_sleep_end, 0);
	t.block->word[t.used - 1] = 0;
	t.used--; /* sleep_end has no words */
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 6);
	uint32_t s = record[0].stream;
	expect(0, 150, TRACE_sample, s);
	expect(1, 160, TRACE_sleep_begin, s);
	expect(2, 200, TRACE_sample, s);
	expect(3, 250, TRACE_cpu_out, s);
	expect(4, 400, TRACE_cpu_in, s);
	expect(5, 500, TRACE_sleep_end, s);
	assert_int_equal(f.converter.nr_late, 0);
	const struct trace_defs *d = fixture_defs(&f);
	assert_int_equal(d->sites[record[0].u.sample.site].offset, CODE + 8);
	fixture_close(&f);
}

/* The kernel tells of a fault at its end: the sleeps just before it were in it, those before a
 * sample or a run of the program's were not. Before a program's first record exec and the dynamic
 * loader were at work. */
static void test_what_sleeps_without_a_call_were(void **state)
{
	static const unsigned left[] = {5, 0, 0, 4, 1, 4};
	struct fixture f;
	const uint64_t us = 1000;
	(void)state;
	fixture_open(&f);
	event(&f, 10, RECORD_EVENT_exec, PID);
	event(&f, 20, RECORD_EVENT_out, PID);
	event(&f, 80, RECORD_EVENT_in, PID);
	(void)begin(&f, 1, 1, 0, 100);
	event(&f, 100 * us, RECORD_EVENT_out, PID);
	event(&f, 200 * us, RECORD_EVENT_in, PID);
	event(&f, 210 * us, RECORD_EVENT_sample, PID);
	event(&f, 220 * us, RECORD_EVENT_out, PID);
	event(&f, 300 * us, RECORD_EVENT_in, PID); /* ... then runs for long */
	event(&f, 600 * us, RECORD_EVENT_out, PID);
	event(&f, 700 * us, RECORD_EVENT_in, PID);
	event(&f, 710 * us, RECORD_EVENT_preempted, PID);
	event(&f, 720 * us, RECORD_EVENT_in, PID);
	event(&f, 730 * us, RECORD_EVENT_out, PID);
	event(&f, 900 * us, RECORD_EVENT_in, PID);
	event(&f, 905 * us, RECORD_EVENT_fault, PID);
	fixture_finish(&f);
	size_t nr = fixture_records(&f, record, RECORDS_MAX), nr_left = 0;
	for (size_t i = 0; i < nr; i++)
		if (record[i].kind == TRACE_cpu_out)
			assert_int_equal(record[i].u.cpu_out.preempted, left[nr_left++]);
	assert_int_equal(nr_left, sizeof left / sizeof *left);
	fixture_close(&f);
}

/* stdio: begin and end are in the ring only when the call returns, behind what the descriptor is;
 * the thread slept in between. */
static void test_waits_for_late_beginnings(void **state)
{
	struct fixture f;
	const uint64_t s = 1000000000;
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 1, 0, 100);
	FAKE(&t, 110, TRACE_sleep_begin, 5, CODE);
	event(&f, 200, RECORD_EVENT_out, PID);
	fixture_drain(&f, 30 * s);
	event(&f, 31 * s, RECORD_EVENT_in, PID);
	fixture_drain(&f, 32 * s);
	fake_descriptor(&t, 32 * s, 1, TRACE_OBJECT_pipe, 77, 0, "");
	FAKE(&t, 150, TRACE_io_begin, fake_object(TRACE_OBJECT_pipe, 1), 0, 10, CODE);
	FAKE(&t, 32 * s, TRACE_io_end, fake_object(TRACE_OBJECT_pipe, 1), 0, 10, 0);
	fixture_drain(&f, 33 * s);
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 5);
	expect(1, 150, TRACE_io_begin, 1);
	expect(2, 200, TRACE_cpu_out, 1);
	expect(3, 31 * s, TRACE_cpu_in, 1);
	expect(4, 32 * s, TRACE_io_end, 1);
	fixture_close(&f);
}

/* A thread that never called a wrapper has a stream all the same; one that calls late goes on in
 * it. */
static void test_streams_without_ring(void **state)
{
	struct fixture f;
	const uint64_t ms = 1000000;
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 1, 0, 100);
	FAKE(&t, 110, TRACE_process_begin, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		event(&f, (i + 1) * ms, RECORD_EVENT_sample, PID + 5);
		event(&f, (i + 1) * ms, RECORD_EVENT_sample, PID + 6);
	}
	fixture_drain(&f, 1000 * ms);
	struct fake_thread late = begin(&f, 1, 6, 1, 1100 * ms);
	FAKE(&late, 1100 * ms, TRACE_sleep_begin, 5, CODE);
	event(&f, 1200 * ms, RECORD_EVENT_sample, PID + 5);
	fixture_finish(&f);
	size_t nr = fixture_records(&f, record, RECORDS_MAX);
	const struct trace_defs *d = fixture_defs(&f);
	assert_int_equal(nr, RECORDS_MAX);
	assert_int_equal(d->nr_streams, 4); /* 0 and three */
	for (uint32_t i = 1; i < d->nr_streams; i++)
		assert_int_equal(d->streams[i].process, 1);
	fixture_close(&f);
}

/* fork, exec, tid used again: each life gets its own stream. */
static void test_lives_of_a_tid(void **state)
{
	struct fixture f;
	const uint64_t s = 1000000000;
	(void)state;
	fixture_open(&f);
	struct fake_thread first = begin(&f, 1, 1, 0, 100);
	FAKE(&first, 110, TRACE_process_begin, 0);
	event(&f, 150, RECORD_EVENT_sample, PID);
	event(&f, 200, RECORD_EVENT_exec, PID);
	event(&f, 250, RECORD_EVENT_sample, PID); /* the new image has not attached yet */
	struct fake_thread second = begin(&f, 2, 1, 1, 300);
	FAKE(&second, 310, TRACE_process_begin, 0);
	event(&f, 350, RECORD_EVENT_sample, PID);
	event(&f, 400, RECORD_EVENT_exec,
		PID); /* into one that never attaches, and works for a second */
	event(&f, s, RECORD_EVENT_sample, PID);
	event(&f, s + 10, RECORD_EVENT_exit, PID);
	event(&f, 2 * s, RECORD_EVENT_fork, PID); /* another process, short */
	event(&f, 2 * s + 10, RECORD_EVENT_sample, PID);
	event(&f, 2 * s + 20, RECORD_EVENT_exit, PID);
	fixture_drain(&f, 3 * s);
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 4);
	const struct trace_defs *d = fixture_defs(&f);
	expect(0, 150, TRACE_sample, 1);
	expect(1, 250, TRACE_sample, 2);
	expect(2, 350, TRACE_sample, 2);
	expect(3, s, TRACE_sample, 3);
	assert_int_equal(d->nr_processes, 4);
	assert_int_equal(d->processes[3].parent, 2);
	assert_string_equal(trace_text_of(d, d->processes[3].name), "name");
	assert_int_equal(f.converter.nr_unattached, 1);
	fixture_close(&f);
}

/* On a busy machine an image may need longer than we wait. */
static void test_attaches_late(void **state)
{
	struct fixture f;
	const uint64_t s = 1000000000;
	(void)state;
	fixture_open(&f);
	event(&f, 200, RECORD_EVENT_exec, PID);
	event(&f, s, RECORD_EVENT_in, PID);
	fixture_drain(&f, 4 * s);
	assert_int_equal(f.converter.nr_unattached, 1);
	struct fake_thread late = begin(&f, 1, 1, 0, 5 * s);
	FAKE(&late, 5 * s, TRACE_process_begin, 0);
	event(&f, 6 * s, RECORD_EVENT_sample, PID);
	fixture_finish(&f);
	assert_int_equal(f.converter.nr_unattached, 0);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 2);
	assert_int_equal(record[0].stream, record[1].stream);
	fixture_close(&f);
}

/* A vfork's child wakes its parent at its exec, and the image after that attaches at once: the life
 * between has a stream, or nobody would have woken the parent. One that wakes nobody has none. */
static void test_short_life_that_wakes(void **state)
{
	struct fixture f;
	(void)state;
	for (int wakes = 0; wakes < 2; wakes++) {
		fixture_open(&f);
		event(&f, 100, RECORD_EVENT_fork, PID);
		event(&f, 110, RECORD_EVENT_in, PID);
		struct trace_record r = {.time_ns = 150,
			.kind = wakes ? TRACE_wake : TRACE_context_raise,
			.u.wake.woken = 7};
		record_converter_kernel(&f.converter, PID, &r);
		event(&f, 200, RECORD_EVENT_exec, PID);
		event(&f, 210, RECORD_EVENT_sample, PID);
		struct fake_thread t = begin(&f, 1, 1, 0, 300);
		FAKE(&t, 310, TRACE_process_begin, 0);
		fixture_drain(&f, 1000);
		fixture_finish(&f);
		size_t nr = fixture_records(&f, record, RECORDS_MAX);
		const struct trace_defs *d = fixture_defs(&f);
		bool woke = false;
		for (size_t i = 0; i < nr; i++) {
			woke |= record[i].kind == TRACE_wake;
			if (record[i].time_ns >= 210) /* the new image is another stream */
				assert_int_equal(record[i].stream, d->nr_streams - 1);
			else
				assert_true(record[i].stream < d->nr_streams - 1);
		}
		assert_int_equal(woke, wakes);
		assert_int_equal(d->nr_streams, 2 + wakes); /* 0 and those */
		fixture_close(&f);
	}
}

/* A child is called as its parent until an exec; then not, though its parent is the same. */
static void test_names_of_lives(void **state)
{
	struct fixture f;
	const uint64_t s = 1000000000;
	const uint32_t child = PID - 50;
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 1, 0, 100);
	FAKE(&t, 110, TRACE_process_begin, 0);
	fixture_drain(&f, 150);
	record_image_rename(
		&f.converter.world, record_world_find(&f.converter.world, 1), "parent", 6);
	struct record_event e = {.time_ns = 200,
		.kind = RECORD_EVENT_fork,
		.pid = child,
		.tid = child,
		.other = PID};
	record_converter_event(&f.converter, &e, NULL, "");
	struct trace_record r = {.time_ns = 250, .kind = TRACE_wake, .u.wake.woken = 1};
	record_converter_kernel(&f.converter, child, &r);
	e.time_ns = 300;
	e.kind = RECORD_EVENT_exec;
	record_converter_event(&f.converter, &e, NULL, "another");
	for (e.time_ns = 400; e.time_ns < s; e.time_ns += s / 4) {
		e.kind = RECORD_EVENT_sample;
		record_converter_event(&f.converter, &e, NULL, "");
	}
	fixture_drain(&f, 2 * s);
	fixture_finish(&f);
	assert_true(fixture_records(&f, record, RECORDS_MAX) > 4);
	const struct trace_defs *d = fixture_defs(&f);
	assert_int_equal(d->nr_processes, 4);
	assert_string_equal(trace_text_of(d, d->processes[2].name), "parent");
	assert_string_equal(trace_text_of(d, d->processes[3].name), "another");
	fixture_close(&f);
}

/* ---- whose, of everybody's ------------------------------------------------------------------- */

/* Process 10 is the child that we started; it has a thread 11 and a child 20. 90 is a stranger. */
static void test_own_of_everybody(void **state)
{
	(void)state;
	static const struct {
		enum record_event_kind kind;
		uint32_t pid, tid, other;
		bool takes;
	} event[] = {
		{RECORD_EVENT_in, 10, 10, 0, false}, /* still we, in the child */
		{RECORD_EVENT_exec, 90, 90, 0, false},
		{RECORD_EVENT_exec, 10, 10, 0, true},
		{RECORD_EVENT_in, 10, 10, 0, true},
		{RECORD_EVENT_fork, 91, 91, 90, false},
		{RECORD_EVENT_in, 91, 91, 0, false},
		{RECORD_EVENT_fork, 10, 11, 10, true},
		{RECORD_EVENT_fork, 20, 20, 10, true},
		{RECORD_EVENT_sample, 20, 20, 0, true},
		{RECORD_EVENT_lost, 90, 90, 0, true},
		{RECORD_EVENT_exit, 10, 11, 10, true},
		{RECORD_EVENT_preempted, 10, 11, 0, false}, /* dead, and still there */
		{RECORD_EVENT_out, 10, 11, 0, false},
		{RECORD_EVENT_fork, 10, 11, 10, true}, /* another one of that number */
		{RECORD_EVENT_in, 10, 11, 0, true},
		{RECORD_EVENT_exit, 10, 10, 10, true},
		{RECORD_EVENT_out, 10, 10, 0, false},
		{RECORD_EVENT_exec, 10, 10, 0, true}, /* by thread 11 */
		{RECORD_EVENT_in, 10, 10, 0, true},
		{RECORD_EVENT_exit, 10, 10, 1, true},
		{RECORD_EVENT_out, 10, 10, 0, false},
		{RECORD_EVENT_exit, 90, 90, 1, false},
		{RECORD_EVENT_fork, 10, 10, 90, false}, /* a stranger gets the number */
		{RECORD_EVENT_in, 10, 10, 0, false},
		{RECORD_EVENT_out, 20, 20, 0, true},
	};
	struct system_perf_own own;
	system_perf_own_init(&own, 10);
	for (size_t i = 0; i < sizeof event / sizeof *event; i++) {
		struct system_perf_record r = {.event = {.kind = event[i].kind,
						       .pid = event[i].pid,
						       .tid = event[i].tid,
						       .other = event[i].other}};
		if (system_perf_own_takes(&own, &r) != event[i].takes)
			fail_msg("event %zu", i);
		assert_int_equal(r.event.kind, event[i].kind);
	}
	system_perf_own_fini(&own);
}

/* An exec that changes privileges ends what watched the task, which is told as its end. */
static void test_own_outlives_exec(void **state)
{
	(void)state;
	static const struct {
		enum record_event_kind kind;
		uint32_t tid;
		bool goes_on;
	} event[] = {
		{RECORD_EVENT_exit, 10, false},
		{RECORD_EVENT_exec, 10, false},
		{RECORD_EVENT_out, 11, false},
		{RECORD_EVENT_exit, 10, true},
		{RECORD_EVENT_exit, 10, false},
		{RECORD_EVENT_exec, 10, false},
		{RECORD_EVENT_map, 10, false}, /* lived */
		{RECORD_EVENT_exit, 10, false},
		{RECORD_EVENT_exec, 10, false},
		{RECORD_EVENT_exit, 12, false},
	};
	struct system_perf_own own;
	system_perf_own_init(&own, 10);
	for (size_t i = 0; i < sizeof event / sizeof *event; i++) {
		struct system_perf_record r = {
			.event = {.kind = event[i].kind, .pid = 10, .tid = event[i].tid}};
		if (system_perf_own_outlives(&own, &r) != event[i].goes_on)
			fail_msg("event %zu", i);
	}
	system_perf_own_fini(&own);
}

static void test_own_without_memory(void **state)
{
	(void)state;
	struct system_perf_own own;
	system_perf_own_init(&own, 10);
	struct system_perf_record r = {.event = {.kind = RECORD_EVENT_exec, .pid = 10, .tid = 10}};
	base_alloc_fail_nth(1);
	assert_true(system_perf_own_takes(&own, &r));
	base_alloc_fail_nth(0);
	assert_int_equal(r.event.kind, RECORD_EVENT_lost);
	assert_int_equal(r.event.ip, 1);
	system_perf_own_fini(&own);
}

/* Threads that live one after the other: a look goes through those of the last seconds alone. What
 * the kernel tells just after an end, and a number that is used again, are still theirs. */
static void test_forgets_who_ended(void **state)
{
	enum { LIVES = 400, APART_NS = 20000000, TIDS = 250, KEPT = 2000000000 / APART_NS + 5 };
	struct fixture f;
	(void)state;
	fixture_open(&f);
	uint64_t now = 1000;
	struct fake_thread first = begin(&f, 1, 1, 0, now);
	FAKE(&first, now + 1, TRACE_lock_acquire, fake_object(TRACE_OBJECT_mutex, 8), CODE);
	for (uint64_t i = 0; i < LIVES; i++, now += APART_NS) {
		struct fake_thread t = {.f = &f, .image = 1, .pid = PID, .number = 2 + i};
		t.tid = PID + 1 + (uint32_t)(i % TIDS);
		event(&f, now + 10, RECORD_EVENT_fork, t.tid);
		fake_take_block(&t, 1);
		FAKE(&t, now + 20, TRACE_lock_release, fake_object(TRACE_OBJECT_mutex, 8), CODE);
		fake_done(&t);
		event(&f, now + 30, RECORD_EVENT_exit, t.tid);
		fixture_drain(&f, now + 40);
		event(&f, now + 50, RECORD_EVENT_out, t.tid);
		fixture_drain(&f, now + 60);
		assert_true(f.converter.nr_tasks <= KEPT);
	}
	fixture_finish(&f);
	size_t nr = fixture_records(&f, record, BASE_COUNT(record)), nr_left = 0;
	assert_int_equal(nr, 1 + 2 * LIVES);
	for (size_t i = 1; i < nr; i++) {
		bool leaves = record[i].kind == TRACE_cpu_out;
		nr_left += leaves;
		assert_int_equal(record[i].stream, 2 + (i - 1) / 2);
		assert_int_equal(record[i].kind, leaves ? TRACE_cpu_out : TRACE_lock_release);
	}
	assert_int_equal(nr_left, LIVES);
	fixture_close(&f);
}

/* Many threads that have ended: their blocks do not wait, however few of all that is. */
static void test_ended_threads_do_not_wait(void **state)
{
	enum { ENDED = 257 };
	struct fixture f;
	(void)state;
	fixture_open(&f);
	session_ring_destroy(&f.ring);
	assert_int_equal(session_ring_create(&f.ring, 64 << 20, 16, 5000, NULL), BASE_OK);
	for (uint32_t i = 0; i <= ENDED; i++) {
		struct fake_thread t = {.f = &f, .image = 1, .pid = PID, .tid = PID + i};
		t.number = 1 + i;
		assert_true(session_ring_can_wait(&f.ring, &f.converter));
		fake_take_block(&t, i);
		FAKE(&t, 100 + i, TRACE_lock_release, fake_object(TRACE_OBJECT_mutex, 8), CODE);
		if (i > 0) /* the first one lives */
			fake_done(&t);
	}
	assert_false(session_ring_can_wait(&f.ring, &f.converter));
	fixture_drain(&f, 1000);
	assert_true(session_ring_can_wait(&f.ring, &f.converter));
	fixture_finish(&f);
	fixture_close(&f);
}

/* ---- callers of samples ---------------------------------------------------------------------- */

enum { STACK = 0x7000 };

static uint32_t unwound(struct fixture *f, uint64_t rip, const uint64_t *stack, size_t nr_words,
	uint64_t frame[static RECORD_FRAMES_MAX], uint32_t nr)
{
	struct record_user_state u = {.rip = rip,
		.rsp = STACK,
		.rbp = STACK + 8,
		.stack = (const uint8_t *)stack,
		.stack_bytes = nr_words * sizeof *stack};
	return record_converter_unwind(&f->converter, PID, &u, frame, nr);
}

/* Of code that is not described: by its frame pointers, then as the kernel goes on. */
static void test_callers_by_frame_pointer(void **state)
{
	struct fixture f;
	uint64_t frame[RECORD_FRAMES_MAX];
	const uint64_t stack[] = {0, STACK + 24, 0x401000, STACK + 5000, 0x402000},
		       whole[] = {0, STACK + 24, 0x401000, STACK + 40, 0, 0, 0},
		       kernels[] = {0x401000, 0x402000, 0x403000, 0x404000};
	(void)state;
	fixture_open(&f);
	memcpy(frame, kernels, sizeof kernels);
	assert_int_equal(unwound(&f, CODE, stack, BASE_COUNT(stack), frame, 4), 4);
	assert_memory_equal(frame, kernels, sizeof kernels);
	/* all of it was found here: what else the kernel found is not of it */
	memcpy(frame, kernels, sizeof kernels);
	assert_int_equal(unwound(&f, CODE, whole, BASE_COUNT(whole), frame, 4), 1);
	assert_int_equal(frame[0], 0x401000);
	/* it found others: ours count */
	memcpy(frame, kernels + 2, 2 * sizeof *kernels);
	assert_int_equal(unwound(&f, CODE, stack, BASE_COUNT(stack), frame, 2), 2);
	assert_int_equal(frame[0], 0x401000);
	assert_int_equal(frame[1], 0x402000);
	/* nothing was found, or kept */
	memcpy(frame, kernels, sizeof kernels);
	assert_int_equal(unwound(&f, CODE, stack, 1, frame, 3), 3);
	assert_int_equal(unwound(&f, CODE, stack, 0, frame, 3), 3);
	assert_memory_equal(frame, kernels, 3 * sizeof *kernels);
	fixture_finish(&f);
	fixture_close(&f);
}

/* Behind a frame that may be V8's interpreter's is its bytecode, as it lies there. */
static void test_callers_with_bytecode(void **state)
{
	enum { FRAME = STACK + 40, CONTEXT = 0x1001, FUNCTION = 0x1009, BYTECODE = 0x2001 };
	const uint64_t stack[] = {0, BYTECODE, 3, FUNCTION, CONTEXT, STACK + 88, 0x401000,
		BYTECODE + 8, 3, FUNCTION + 1, CONTEXT, 0, 0x402000};
	static const struct {
		size_t word;
		uint64_t value; /* that makes it none */
	} no[] = {{1, 0x2000}, {3, 0x1008}, {4, 0x1000}, {1, 1ull << 47 | 1}};
	uint64_t frame[RECORD_FRAMES_MAX];
	struct record_user_state u = {.rip = CODE, .rsp = STACK, .rbp = FRAME};
	struct fixture f;
	(void)state;
	fixture_open(&f);
	u.stack = (const uint8_t *)stack;
	u.stack_bytes = sizeof stack;
	assert_int_equal(record_converter_unwind(&f.converter, PID, &u, frame, 0), 3);
	assert_int_equal(frame[0], 1ull << 62 | BYTECODE);
	assert_int_equal(frame[1], 0x401000);
	assert_int_equal(frame[2], 0x402000); /* its function is no object */
	for (size_t i = 0; i < BASE_COUNT(no); i++) {
		uint64_t changed[BASE_COUNT(stack)];
		memcpy(changed, stack, sizeof stack);
		changed[no[i].word] = no[i].value;
		u.stack = (const uint8_t *)changed;
		assert_int_equal(record_converter_unwind(&f.converter, PID, &u, frame, 0), 2);
		assert_int_equal(frame[0], 0x401000);
	}
	fixture_finish(&f);
	fixture_close(&f);
}

/* A return address in no mapping ends the callers, where all code is known: since the exec, and
 * without code that the program made itself. */
static void test_callers_end_where_no_code_is(void **state)
{
	struct fixture f;
	uint64_t frame[RECORD_FRAMES_MAX];
	const uint64_t stack[] = {
		0, STACK + 24, 0x401000, STACK + 40, 0x777000, STACK + 56, 0x402000};
	const struct record_map_event file = {.start = 0x400000,
					      .end = 0x500000,
					      .path = "/no/such/file",
					      .path_bytes = 13},
				      made = {.start = 0x700000, .end = 0x701000, .path = ""};
	const struct record_event
		exec = {.time_ns = 1, .kind = RECORD_EVENT_exec, .pid = PID, .tid = PID},
		mapped = {.time_ns = 2, .kind = RECORD_EVENT_map, .pid = PID, .tid = PID};
	(void)state;
	fixture_open(&f);
	record_converter_event(&f.converter, &mapped, &file, NULL); /* others may be mapped, too */
	assert_int_equal(unwound(&f, CODE, stack, BASE_COUNT(stack), frame, 0), 3);
	record_converter_event(&f.converter, &exec, NULL, "program");
	record_converter_event(&f.converter, &mapped, &file, NULL);
	assert_int_equal(unwound(&f, CODE, stack, BASE_COUNT(stack), frame, 0), 1);
	assert_int_equal(frame[0], 0x401000);
	record_converter_event(&f.converter, &mapped, &made, NULL);
	assert_int_equal(unwound(&f, CODE, stack, BASE_COUNT(stack), frame, 0), 3);
	fixture_finish(&f);
	fixture_close(&f);
}

/* The mapping that this program's own code is in; its path is kept in `line`. */
static struct record_map_event own_map(uint64_t address, char line[static 4096])
{
	struct record_map_event m = {0};
	FILE *maps = fopen("/proc/self/maps", "r");
	assert_non_null(maps);
	while (fgets(line, 4096, maps) &&
		(sscanf(line, "%lx-%lx %*s %lx", &m.start, &m.end, &m.file_offset) != 3 ||
			address < m.start || address >= m.end))
		continue;
	fclose(maps);
	m.path = strchr(line, '/');
	assert_non_null(m.path);
	m.path_bytes = strcspn(m.path, "\n");
	return m;
}

/* At the first instruction of a function, whose caller is on top, whatever the frame pointer is.
 * Returns how many callers are found, the second time. */
static uint32_t callers_by_description(uint64_t fail_at)
{
	struct fixture f;
	uint64_t frame[RECORD_FRAMES_MAX] = {0};
	uint64_t here = (uintptr_t)test_callers_by_frame_pointer;
	const uint64_t stack[] = {0x401000, 0, 0};
	char line[4096];
	uint32_t nr = 0;
	fixture_open(&f);
	const struct record_map_event map = own_map(here, line);
	const struct record_event mapped = {
		.time_ns = 1, .kind = RECORD_EVENT_map, .pid = PID, .tid = PID};
	record_converter_event(&f.converter, &mapped, &map, NULL);
	for (int i = 0; i < 2; i++) { /* it remembers the rule, and that there is none */
		base_alloc_fail_nth(i ? 0 : fail_at);
		nr = unwound(&f, here, stack, BASE_COUNT(stack), frame, 0);
	}
	base_alloc_fail_nth(0);
	assert_true(!nr || frame[0] == 0x401000);
	fixture_finish(&f);
	fixture_close(&f);
	return nr;
}

static void test_callers_by_description(void **state)
{
	uint64_t n = 1;
	(void)state;
#ifdef __x86_64__
	assert_int_equal(callers_by_description(0), 1);
	while (!callers_by_description(n)) /* without memory: none, and no harm */
		n++;
	assert_true(n > 1);
#else
	assert_int_equal(callers_by_description(n), 0);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers_by_frame_pointer),
		cmocka_unit_test(test_callers_with_bytecode),
		cmocka_unit_test(test_callers_end_where_no_code_is),
		cmocka_unit_test(test_callers_by_description),
		cmocka_unit_test(test_parse_sample),
		cmocka_unit_test(test_parse_others),
		cmocka_unit_test(test_merges_by_time),
		cmocka_unit_test(test_what_sleeps_without_a_call_were),
		cmocka_unit_test(test_waits_for_late_beginnings),
		cmocka_unit_test(test_streams_without_ring),
		cmocka_unit_test(test_lives_of_a_tid),
		cmocka_unit_test(test_attaches_late),
		cmocka_unit_test(test_short_life_that_wakes),
		cmocka_unit_test(test_names_of_lives),
		cmocka_unit_test(test_own_of_everybody),
		cmocka_unit_test(test_own_outlives_exec),
		cmocka_unit_test(test_own_without_memory),
		cmocka_unit_test(test_forgets_who_ended),
		cmocka_unit_test(test_ended_threads_do_not_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
