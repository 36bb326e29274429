/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_future.h - makes of a trace's bytes what a later longpole may write: a kind that we do not
 * know, described in the schema block, and records of it. Our writer cannot do that.
 */
#ifndef LONGPOLE_TESTS_TRACE_FUTURE_H
#define LONGPOLE_TESTS_TRACE_FUTURE_H

#include "trace/layout.h"

#include <stdlib.h>
#include <xxhash.h>

enum { FUTURE_KIND = 1000, FUTURE_STREAM = 1 };

/* FUTURE_KIND with a TEXT, an ID and an S64; two records of it around a lock_acquire, at the end of
 * stream 1. Returns malloc'd bytes without a footer. The input may have one. */
static inline uint8_t *add_future_kind(
	const uint8_t *bytes, size_t nr, uint64_t footer_offset, uint64_t time_ns, size_t *ret_nr)
{
	static const uint8_t row[] = {0xe8, 0x07, 6, 'f', 'u', 't', 'u', 'r', 'e',
		3, /* kind 1000 */
		TRACE_FIELD_TEXT, 4, 't', 'e', 'x', 't', 0, TRACE_FIELD_ID, 2, 'i', 'd', 2, 'i',
		'd', TRACE_FIELD_S64, 1, 'n', 0};
	static const uint8_t records[] = {0xe8, 0x07, 0, 2, 'h', 'i', 5, 1, /* "hi", 5, -1 */
		TRACE_lock_acquire, 10, 1, 2, 0xe8, 0x07, 1, 0, 0, 0};
	uint32_t header_bytes = trace_get_u32(bytes + 12), schema_at = 64;
	uint8_t *out = calloc(1, nr + sizeof row + sizeof records + 64);
	struct trace_chunk_header h = {
		.stream = FUTURE_STREAM,
		.nr_records = 3,
		.codec = TRACE_CODEC_RAW,
		.first_ns = time_ns,
		.last_ns = time_ns + 11,
		.raw_bytes = sizeof records,
		.stored_bytes = sizeof records,
		.payload_hash = XXH64(records, sizeof records, 0),
	};

	if (!out)
		abort();
	for (int i = 0; i < 3; i++)
		schema_at += trace_get_u32(bytes + 48 + 4 * i);
	memcpy(out, bytes, header_bytes - 8);
	out[schema_at]++; /* the number of kinds: one byte while there are fewer than 127 */
	memcpy(out + header_bytes - 8, row, sizeof row);
	uint32_t longer = header_bytes + (uint32_t)sizeof row;
	trace_put_u32(out + 12, longer);
	trace_put_u32(out + 60, trace_get_u32(bytes + 60) + (uint32_t)sizeof row);
	trace_put_u64(out + longer - 8, XXH64(out, longer - 8, 0));

	uint8_t *p = out + longer;
	memcpy(p, bytes + header_bytes, footer_offset - header_bytes);
	p += footer_offset - header_bytes;
	trace_chunk_header_encode(p, &h);
	memcpy(p + TRACE_CHUNK_HEADER_BYTES, records, sizeof records);
	*ret_nr = (size_t)(p + TRACE_CHUNK_HEADER_BYTES + sizeof records - out);
	return out;
}

static inline uint64_t footer_offset_of(const uint8_t *bytes, size_t nr)
{
	return trace_get_u64(bytes + nr - TRACE_TAIL_BYTES);
}

#endif
