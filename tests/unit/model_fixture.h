/* SPDX-License-Identifier: Apache-2.0 */
/* model_fixture.h - traces by hand: objects, threads, and the end of the run. */
#ifndef LONGPOLE_TESTS_MODEL_FIXTURE_H
#define LONGPOLE_TESTS_MODEL_FIXTURE_H

#include "model/model.h"
#include "trace_bench.h"

static inline uint32_t object(
	struct bench *b, enum trace_object_type type, const char *name, uint64_t capacity)
{
	uint32_t id = ++b->nr_objects, text = *name ? string(b, name) : 0;
	PUT(b, 0, 0, object, .object = id, .process = 1, .type = type, .address = id * 64,
		.capacity = capacity, .name = text);
	return id;
}

static inline void start(struct bench *b)
{
	struct trace_info info = {.size = sizeof info, .host = "h", .command = "c", .tool = "t"};
	bench_open(b, 1, &info);
}

/* Main (stream 1) begins at 0 and creates `n` threads at 10, 20, ...; each begins 5 later.
 * Streams 2.. */
static inline void spawn(struct bench *b, unsigned n, uint32_t where)
{
	uint32_t p = process_of(b, "prog", 0, 100);
	for (unsigned i = 0; i <= n; i++)
		stream(b, p);
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	for (unsigned i = 0; i < n; i++) {
		PUT(b, 10 * (i + 1), 1, thread_create, .token = i + 1, .site = where);
		PUT(b, 10 * (i + 1) + 5, 2 + i, thread_begin, .token = i + 1, .handle = 2000 + i,
			.site = where);
	}
}

static inline void end(struct bench *b, uint64_t at)
{
	PUT(b, at, 1, thread_end);
	PUT(b, at, 1, process_end, .status = 0);
	analyse(b);
	conserved(b, (double)at);
	repeats(b);
}

#endif
