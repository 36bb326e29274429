/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - event loops of runtimes: whoever has its turn on a loop's thread has the loop, which
 * nobody has while the thread waits for readiness. Told as a lock (TRACE_OBJECT_event_loop).
 *
 * A program may have some 200,000 turns a second, and the clock costs 10 ns each time: records of
 * one moment have one stamp, and are written at once.
 */
#include "preload/preload.h"

#include <string.h>

void preload_loop_begin(const void *address, const char *name)
{
	struct preload_thread *self = preload_own();
	const size_t nr_bytes = strlen(name);
	self->loop.object = preload_object(address, TRACE_OBJECT_event_loop, false);
	preload_record_text(RING_name,
		(const uint64_t[]){self->loop.object, RING_NAME_object, 0, nr_bytes}, 4, name,
		nr_bytes);
	self->loop.is_held = 1;
	PRELOAD_RECORD(lock_acquire, self->loop.object, 0);
}

static void loop_put(uint64_t *record, unsigned kind, uint64_t tsc, uint64_t object, uint64_t site)
{
	record[1] = object;
	record[2] = site;
	preload_publish(record, kind, tsc);
}

/* (A fork's child in the middle of a turn has no loop.) */
void preload_loop_hand(
	unsigned kind, const uint64_t *words, size_t nr_words, const struct preload_loop_hand *hand)
{
	enum { LOCK_WORDS = 3 };
	struct preload_thread *self = preload_own();
	const struct preload_stack *stack = hand->stack;
	const uint64_t tsc = preload_now(), object = self->loop.object;
	const size_t nr_stack_words = stack && stack->nr_frames ? 2 + stack->nr_frames : 0;
	const size_t nr_before = self->loop.is_held ? LOCK_WORDS : 0;
	uint64_t *record =
		object ? preload_reserve(nr_before + nr_stack_words + 1 + nr_words + LOCK_WORDS)
		       : NULL;
	if (!record)
		return;
	if (nr_before)
		loop_put(record, PRELOAD_lock_release, tsc, object, hand->from);
	record += nr_before;
	self->loop.is_held = 1;
	if (nr_stack_words) {
		memcpy(record + 1, stack, (1 + stack->nr_frames) * sizeof *record);
		preload_publish(record, RING_stack, tsc);
		record += nr_stack_words;
	}
	for (size_t i = 0; i < nr_words; i++)
		record[1 + i] = words[i];
	if (nr_stack_words)
		record[nr_words] = 1;
	preload_publish(record, kind, tsc);
	record += 1 + nr_words;
	loop_put(record, PRELOAD_lock_acquire, tsc, object, hand->to);
}

/* (What a task waits for in its turn holds the loop up.) */
void preload_loop_idles(uint64_t tsc)
{
	struct preload_thread *self = preload_own();
	if (self->loop.turn || !self->loop.is_held)
		return;
	self->loop.is_held = 0;
	PRELOAD_RECORD_AT(tsc, lock_release, self->loop.object, 0);
}

void preload_loop_goes_on(uint64_t tsc)
{
	struct preload_thread *self = preload_own();
	if (self->loop.turn || self->loop.is_held || !self->loop.object)
		return;
	self->loop.is_held = 1;
	PRELOAD_RECORD_AT(tsc, lock_acquire, self->loop.object, 0);
}
