/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_jit.c - any bytes as a perf-PID.map and as a jitdump: a place has a name that lies in the
 * file, or none. */
#include "symbol/jit.h"

#include <string.h>

enum { PLACES = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void check(const struct symbol_jit_file *f, const char *text, size_t nr)
{
	const char *begin = (const char *)f->bytes;
	BASE_ASSERT(!text || (text >= begin && text + nr <= begin + f->nr_bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct symbol_jit_place place[PLACES] = {0};
	struct symbol_jit_file f = {(uint8_t *)(uintptr_t)data, size_bytes};
	/* around what the seeds speak of, and at both ends */
	for (size_t i = 0; i < PLACES; i++) {
		place[i].address = i < PLACES - 1 ? i * 0x80 : UINT64_MAX;
		place[i].seen_ns = i % 2 ? UINT64_MAX : 150;
	}
	bool is_dump = symbol_jit_read_dump(&f, place, PLACES);
	for (size_t i = 0; i < PLACES; i++) {
		BASE_ASSERT(is_dump || !place[i].function);
		check(&f, place[i].function, place[i].function_bytes);
		check(&f, place[i].file, place[i].file_bytes);
	}
	(void)symbol_jit_read_map(&f, place, PLACES);
	for (size_t i = 0; i < PLACES; i++)
		check(&f, place[i].function, place[i].function_bytes);
	return 0;
}
