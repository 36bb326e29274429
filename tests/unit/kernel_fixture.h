/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_fixture.h - traces of a whole system, by hand, and what the model makes of them. */
#ifndef LONGPOLE_TESTS_KERNEL_FIXTURE_H
#define LONGPOLE_TESTS_KERNEL_FIXTURE_H

#include "trace_bench.h"

/* Switches: a thread that comes in, one that sleeps, one that is preempted. */
#define IN(b, at, by, cpu)          PUT(b, at, by, cpu_in, .processor = (cpu))
#define SLEEPS(b, at, by, cpu)      PUT(b, at, by, cpu_out, .processor = (cpu))
#define YIELDS(b, at, by, cpu)      PUT(b, at, by, cpu_out, .processor = (cpu), .preempted = 1)
#define WAKES(b, at, by, whom)      PUT(b, at, by, wake, .woken = (whom))
#define CALLS(b, at, by, nr, ...)   PUT(b, at, by, call_begin, .number = (nr), __VA_ARGS__)
#define RETURNS(b, at, by, nr, ...) PUT(b, at, by, call_end, .number = (nr), __VA_ARGS__)

static inline uint32_t process(struct bench *b, const char *name, uint64_t pid)
{
	return process_of(b, name, 0, pid);
}

/* A program with one thread. */
static inline uint32_t thread(struct bench *b, const char *name)
{
	return stream(b, process(b, name, 1000 + b->nr_processes));
}

static inline uint32_t context(
	struct bench *b, enum trace_context_type type, uint64_t cpu, const char *name)
{
	uint32_t id = stream(b, 0), text = *name ? string(b, name) : 0;
	PUT(b, 0, 0, context, .stream = id, .type = type, .processor = cpu, .name = text);
	return id;
}

static inline uint32_t object_of(struct bench *b, enum trace_object_type type, const char *name,
	uint64_t capacity, uint32_t pair, uint64_t side)
{
	uint32_t id = ++b->nr_objects, text = *name ? string(b, name) : 0;
	PUT(b, 0, 0, object, .object = id, .type = type, .address = id * 64, .capacity = capacity,
		.name = text, .pair = pair, .side = side);
	return id;
}

static inline uint32_t object(
	struct bench *b, enum trace_object_type type, const char *name, uint64_t capacity)
{
	return object_of(b, type, name, capacity, 0, 0);
}

static inline void start(struct bench *b, const char *command)
{
	struct trace_info info = {.size = sizeof info,
		.host = "h",
		.command = command,
		.tool = "t",
		.nr_processors = 2,
		.flags = TRACE_INFO_SYSTEM | TRACE_INFO_KERNEL};
	bench_open(b, 1, &info);
}

#endif
