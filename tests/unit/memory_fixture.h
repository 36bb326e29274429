/* SPDX-License-Identifier: Apache-2.0 */
/* memory_fixture.h - memory streams made by hand, for the tests of src/memory. */
#ifndef LONGPOLE_TEST_MEMORY_FIXTURE_H
#define LONGPOLE_TEST_MEMORY_FIXTURE_H

#include "memory/order/order.h"

#include <stdlib.h>
#include <string.h>

enum { FIXTURE_THREADS = 64 };

struct fixture_thread {
	struct memory_item *item;
	size_t nr, capacity, at;
	struct memory_call call[64];
	size_t nr_calls;
	struct memory_life life; /* zeroes: not known */
};

/* A source of items that a test puts into its threads. */
struct fixture {
	struct memory_source source;
	struct fixture_thread thread[FIXTURE_THREADS];
	size_t batch_max;
};

static inline enum base_status fixture_next(
	struct memory_source *s, int thread, struct memory_batch *ret, struct base_err *err)
{
	struct fixture *f = (struct fixture *)s;
	struct fixture_thread *t = &f->thread[thread];
	(void)err;
	if (t->at == t->nr)
		return BASE_END;
	size_t nr = t->nr - t->at < f->batch_max ? t->nr - t->at : f->batch_max;
	*ret = (struct memory_batch){.item = t->item + t->at,
		.nr = nr,
		.call = t->call,
		.nr_calls = t->nr_calls,
		.thread = (uint32_t)thread};
	t->at += nr;
	return BASE_OK;
}

static inline enum base_status fixture_rewind(struct memory_source *s, struct base_err *err)
{
	struct fixture *f = (struct fixture *)s;
	(void)err;
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		f->thread[i].at = 0;
	return BASE_OK;
}

static inline bool fixture_life(
	const struct memory_source *s, uint32_t thread, struct memory_life *ret)
{
	*ret = ((const struct fixture *)s)->thread[thread].life;
	return ret->end_ns != 0;
}

static inline void fixture_close(struct memory_source *s)
{
	struct fixture *f = (struct fixture *)s;
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		free(f->thread[i].item);
	free(f);
}

static const struct memory_source_ops fixture_ops = {.next = fixture_next,
	.rewind = fixture_rewind,
	.life = fixture_life,
	.close = fixture_close};

static inline struct fixture *fixture_new(uint32_t nr_threads, uint32_t flags)
{
	struct fixture *f = calloc(1, sizeof *f);
	f->source.ops = &fixture_ops;
	f->source.info = (struct memory_source_info){
		.nr_threads = nr_threads, .flags = flags, .format = "fixture", .unseen = ""};
	f->batch_max = MEMORY_BATCH_MAX;
	return f;
}

static inline struct memory_item *fixture_put(
	struct fixture *f, uint32_t thread, struct memory_item item)
{
	struct fixture_thread *t = &f->thread[thread];
	if (t->nr == t->capacity) {
		t->capacity = t->capacity ? 2 * t->capacity : 64;
		t->item = realloc(t->item, t->capacity * sizeof *t->item);
	}
	t->item[t->nr] = item;
	return &t->item[t->nr++];
}

static inline void fixture_access(struct fixture *f, uint32_t thread, enum memory_item_kind kind,
	uint64_t address, uint16_t size_bytes)
{
	fixture_put(f, thread,
		(struct memory_item){.kind = (uint8_t)kind,
			.address = address,
			.size_bytes = size_bytes,
			.instructions = 1});
}

static inline void fixture_call(
	struct fixture *f, uint32_t thread, enum memory_call_kind kind, uint64_t a0, uint64_t a1)
{
	struct fixture_thread *t = &f->thread[thread];
	t->call[t->nr_calls] = (struct memory_call){.kind = (uint8_t)kind, .argument = {a0, a1}};
	fixture_put(f, thread, (struct memory_item){.kind = MEMORY_CALL, .address = t->nr_calls++});
}

static inline void fixture_call_at(struct fixture *f, uint32_t thread, enum memory_call_kind kind,
	uint64_t a0, uint64_t start_ns, uint64_t end_ns)
{
	fixture_call(f, thread, kind, a0, 0);
	struct memory_call *call = &f->thread[thread].call[f->thread[thread].nr_calls - 1];
	call->start_ns = start_ns;
	call->end_ns = end_ns;
}

static inline uint32_t fixture_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

#endif
