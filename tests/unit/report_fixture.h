/* SPDX-License-Identifier: Apache-2.0 */
/* report_fixture.h - small hand-made traces with known answers, for tests of report and format.
 * Times in us. */
#ifndef LONGPOLE_TEST_REPORT_FIXTURE_H
#define LONGPOLE_TEST_REPORT_FIXTURE_H

#include "trace_bench.h"

#include <math.h>

/* cmocka's own compares floats, which cannot tell a million nanoseconds from one more. */
static inline void near_at(double is, double want, double within, const char *file, int line)
{
	if (!(fabs(is - want) <= within))
		print_message("%s:%d: %.9g instead of %.9g\n", file, line, is, want);
	_assert_true(fabs(is - want) <= within, "near", file, line);
}
#define assert_near(is, want, within) near_at(is, want, within, __FILE__, __LINE__)

static inline uint32_t process(struct bench *b, const char *name)
{
	return process_of(b, name, 0, 100);
}

static inline uint32_t object_of(struct bench *b, enum trace_object_type type, const char *name)
{
	uint32_t id = ++b->nr_objects, text = string(b, name);
	PUT(b, 0, 0, object, .object = id, .process = 1, .type = type, .address = id * 64,
		.name = text);
	return id;
}

static inline uint32_t mutex(struct bench *b, const char *name)
{
	return object_of(b, TRACE_OBJECT_mutex, name);
}

static inline void start(struct bench *b)
{
	struct trace_info info = {
		.size = sizeof info, .host = "h", .command = "c", .tool = "t", .nr_processors = 2};
	bench_open(b, 1000, &info);
}

static inline void end(struct bench *b, uint64_t at)
{
	PUT(b, at, 1, thread_end);
	PUT(b, at, 1, process_end, .status = 0);
	bench_read(b);
}

/*
 * Main creates `slow` (15 to 1000) and `fast` (25 to 600) and joins both. With slow's time
 * multiplied by f, the run takes max(16 + 985 f, 600): what slow has above 600 helps, and no more.
 */
static inline void slow_and_fast(struct bench *b)
{
	start(b);
	uint32_t p = process(b, "prog"), slow = site(b, "slow"), fast = site(b, "fast");
	uint32_t from = site(b, "main");
	begin_threads(b, p, 3);
	PUT(b, 10, 1, thread_create, .token = 1, .site = from);
	PUT(b, 15, 2, thread_begin, .token = 1, .handle = 2000, .site = slow);
	PUT(b, 20, 1, thread_create, .token = 2, .site = from);
	PUT(b, 25, 3, thread_begin, .token = 2, .handle = 2001, .site = fast);
	PUT(b, 30, 1, join_wait, .handle = 2000);
	PUT(b, 600, 3, thread_end);
	PUT(b, 1000, 2, thread_end);
	PUT(b, 1001, 1, join_done, .handle = 2000);
	PUT(b, 1001, 1, join_wait, .handle = 2001);
	PUT(b, 1001, 1, join_done, .handle = 2001);
	end(b, 1001);
}

/* Two workers take turns in mutex m, 100 us each, 8 times; hardly anything else happens. Samples
 * say f, 3 of 4. */
static inline void taking_turns(struct bench *b)
{
	start(b);
	uint32_t p = process(b, "prog"), work = site(b, "work"), f = site(b, "fill"),
		 g = site(b, "g");
	uint32_t m = mutex(b, "m"), from = site(b, "main");
	begin_threads(b, p, 3);
	for (unsigned i = 0; i < 2; i++) {
		PUT(b, 1 + i, 1, thread_create, .token = 1 + i, .site = from);
		PUT(b, 1 + i, 2 + i, thread_begin, .token = 1 + i, .handle = 2000 + i,
			.site = work);
	}
	PUT(b, 3, 1, join_wait, .handle = 2001);
	PUT(b, 3, 2, lock_acquire, .object = m, .site = work);
	PUT(b, 3, 3, lock_wait, .object = m, .site = work);
	uint64_t at = 3;
	for (unsigned i = 0; i < 8; i++, at += 101) {
		uint32_t owner = 2 + i % 2, other = 5 - owner;
		for (unsigned k = 0; k < 4; k++)
			PUT(b, at + 20 * (k + 1), owner, sample, .site = k < 3 ? f : g);
		PUT(b, at + 100, owner, lock_release, .object = m, .site = work);
		if (i >= 6)
			PUT(b, at + 100, owner, thread_end);
		else
			PUT(b, at + 100, owner, lock_wait, .object = m, .site = work);
		if (i < 7)
			PUT(b, at + 101, other, lock_acquire, .object = m, .site = work);
	}
	PUT(b, at, 1, join_done, .handle = 2001);
	PUT(b, at, 1, join_wait, .handle = 2000);
	PUT(b, at, 1, join_done, .handle = 2000);
	end(b, at);
}

#endif
