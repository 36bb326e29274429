/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - what target/call_heap.c and target/call_new.c say of blocks: memory/stream/source.h. */
#ifndef LONGPOLE_TARGET_HEAP_H
#define LONGPOLE_TARGET_HEAP_H

#include "target/target.h"

enum { /* memory/stream/calls.def, memory/stream/source.h */
	ALLOCATION_HEAP = 0,
	ALLOCATION_MAPPING = 1,
};

#define AT TARGET_STUB

/* After the call, unless it failed. */
static inline void target_allocated(
	const void *p, size_t bytes, uint64_t site, unsigned how, uint64_t before)
{
	if (!p)
		return;
	longpole_target_called(site);
	if (how == ALLOCATION_HEAP)
		longpole_target_tell_allocated(p, site);
	longpole_target_call(CALL_allocate, before, target_call_ticks(), (uint64_t)(uintptr_t)p,
		bytes, site, how);
}

/* Before the call: afterwards the memory may be another's. bytes 0: all of the block. */
static inline void target_released(const void *p, size_t bytes)
{
	uint64_t now = target_call_ticks();
	if (p)
		longpole_target_call(CALL_release, now, now, (uint64_t)(uintptr_t)p, bytes, 0, 0);
}

#endif
