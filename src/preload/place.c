/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - the numbers of places that a runtime names, and the records that name them.
 */
#include "preload/place.h"

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
