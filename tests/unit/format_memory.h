/* SPDX-License-Identifier: Apache-2.0 */
/* format_memory.h - bytes in memory as an import's source. For tests and fuzzers. */
#ifndef LONGPOLE_TESTS_FORMAT_MEMORY_H
#define LONGPOLE_TESTS_FORMAT_MEMORY_H

#include "format/format.h"

#include <string.h>

struct memory {
	const uint8_t *bytes;
	size_t nr;
};

static inline enum base_status read_memory(
	void *ctx, uint64_t offset, void *to, size_t length, struct base_err *err)
{
	const struct memory *m = ctx;
	(void)err;
	BASE_ASSERT(offset <= m->nr && length <= m->nr - offset);
	if (length)
		memcpy(to, m->bytes + offset, length);
	return BASE_OK;
}

static inline struct format_source memory_source(struct memory *m, const char *name)
{
	return (struct format_source){
		.read = read_memory, .ctx = m, .size_bytes = m->nr, .name = name};
}

#endif
