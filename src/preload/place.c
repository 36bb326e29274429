/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - the numbers of places and states that a runtime names, and the records that name them.
 */
#include "preload/place.h"

#include <string.h>

static uint32_t place_nr;

uint32_t preload_place_name(
	const char *text, size_t function_bytes, size_t file_bytes, uint64_t line)
{
	uint32_t number = __atomic_add_fetch(&place_nr, 1, __ATOMIC_RELAXED);
	if (number > PLACE_NUMBER)
		return 0;
	preload_record_text(RING_place,
		(const uint64_t[]){
			ring_place(number), line, (uint64_t)function_bytes << 32 | file_bytes},
		3, text, function_bytes + file_bytes);
	return number;
}

/* Introduced once in an image; two threads may do it at the same time. */
uint64_t preload_state_named(uint64_t *known, const char *name)
{
	uint64_t id = __atomic_load_n(known, __ATOMIC_ACQUIRE);
	if (id >> 32 == preload_fresh.image)
		return id & UINT32_MAX;
	const uint64_t number = __atomic_add_fetch(&preload_fresh.next_name, 1, __ATOMIC_RELAXED);
	const size_t nr = strlen(name);
	preload_record_text(
		RING_name, (const uint64_t[]){number, RING_NAME_state, 0, nr}, 4, name, nr);
	__atomic_store_n(known, (uint64_t)preload_fresh.image << 32 | number, __ATOMIC_RELEASE);
	return number;
}

void preload_keep_to_state(uint64_t number)
{
	preload_record_at(
		preload_now(), RING_state, PRELOAD_WORDS(number | (uint64_t)TRACE_NOTE_KEPT << 32));
}
