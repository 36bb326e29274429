/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - event loops of runtimes: whoever has its turn on a loop's thread has the loop, which
 * nobody has while the thread waits for readiness. Told as a lock (TRACE_OBJECT_event_loop).
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
	preload_loop_take(0);
}

void preload_loop_take(uint64_t site)
{
	struct preload_thread *self = preload_own();
	if (!self->loop.object) /* (a fork's child, in the middle of a turn) */
		return;
	if (!self->loop.is_held)
		PRELOAD_RECORD(lock_acquire, self->loop.object, site);
	self->loop.is_held = 1;
}

void preload_loop_give(uint64_t site)
{
	struct preload_thread *self = preload_own();
	if (self->loop.is_held)
		PRELOAD_RECORD(lock_release, self->loop.object, site);
	self->loop.is_held = 0;
}

/* (What a task waits for in its turn holds the loop up.) */
void preload_loop_idles(void)
{
	const struct preload_thread *self = preload_own();
	if (self->loop.object && !self->loop.turn)
		preload_loop_give(0);
}

void preload_loop_goes_on(void)
{
	const struct preload_thread *self = preload_own();
	if (self->loop.object && !self->loop.turn)
		preload_loop_take(0);
}
