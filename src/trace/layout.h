/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - the bytes of a .lpt file around the records: header, chunk headers, footer. Private to
 * trace. doc/format.md is the normative text; its tables and these constants say the same.
 *
 *   | header | chunk | chunk | ... | footer: index, counters | tail |
 *
 * All numbers are little endian. Every byte lies under exactly one XXH64, so no flipped bit is
 * silent.
 */
#ifndef LONGPOLE_TRACE_LAYOUT_H
#define LONGPOLE_TRACE_LAYOUT_H

#include "trace/trace.h"

#include <string.h>

#define TRACE_MAGIC      "longpole" /* the file's first 8 bytes */
#define TRACE_TAIL_MAGIC "lpt-tail" /* the file's last 8 bytes */

enum {
	TRACE_HEADER_FIXED_BYTES = 64,
	TRACE_HEADER_MAX_BYTES = 16 << 20,
	TRACE_HEADER_TEXT_MAX = 4 << 20, /* of each of host, command, tool */
	TRACE_CHUNK_MAGIC = 0x4b43504c,  /* "LPCK" */
	TRACE_CHUNK_HEADER_BYTES = 56,
	TRACE_INDEX_MAGIC = 0x5849504c, /* "LPIX" */
	TRACE_INDEX_FIXED_BYTES = 16,
	TRACE_INDEX_ENTRY_BYTES = 32,
	TRACE_TAIL_BYTES = 32,
	TRACE_DEFS_CHUNK_RAW_MAX = 4 << 20, /* stream 0: one long command line must fit */
	TRACE_TEXT_MAX = TRACE_DEFS_CHUNK_RAW_MAX - 64,
	TRACE_STREAM_MAX = 1 << 20,
	TRACE_FIELDS_MAX = 64, /* of one kind in a schema block */
	TRACE_KINDS_MAX = 4096,
	TRACE_FIRST_DATA_KIND = 32, /* below: definitions, in stream 0, without time */
	TRACE_COUNTERS_MAX = 4096,
	TRACE_COLUMNS_RAW_MAX = TRACE_CHUNK_RAW_MAX + (16 << 10), /* with what columns add */
};

enum trace_codec { TRACE_CODEC_RAW, TRACE_CODEC_ZSTD, TRACE_CODEC_NR };
/* The codec's number in a chunk's header: enum trace_codec | enum trace_content << this. */
enum { TRACE_CONTENT_SHIFT = 1, TRACE_CONTENT_MAX = 127 };

static inline void trace_put_u32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static inline void trace_put_u64(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static inline uint32_t trace_get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t trace_get_u64(const uint8_t *p)
{
	return trace_get_u32(p) | (uint64_t)trace_get_u32(p + 4) << 32;
}

/* ---- header ---------------------------------------------------------------------------------- */

/* A kind as a file's schema block describes it. */
struct trace_schema_kind {
	uint32_t kind;
	uint32_t nr_fields;
	const char *name;
	uint8_t type[TRACE_FIELDS_MAX]; /* enum trace_field_type */
};
struct trace_schema {
	struct trace_schema_kind *kind; /* ascending; only kinds that this version does not know */
	size_t nr_kinds;
};

/* Appends the whole header. Check out->failed. ERR_LIMIT when a text is too long. */
enum base_status trace_header_encode(
	struct base_str *out, const struct trace_info *info, struct base_err *err) BASE_MUST_CHECK;

/* trace_header_probe() - of the first bytes of a file: is it ours, can we read it, how long is its
 * header? `nr` may be fewer than TRACE_HEADER_FIXED_BYTES only when the file is. */
enum base_status trace_header_probe(const uint8_t *bytes, size_t nr, uint32_t *ret_header_bytes,
	struct base_err *err) BASE_MUST_CHECK;
/* The whole header. Texts and schema are copied to the arena. */
enum base_status trace_header_decode(const uint8_t *bytes, size_t nr, struct base_arena *arena,
	struct trace_info *ret_info, struct trace_schema *ret_schema,
	struct base_err *err) BASE_MUST_CHECK;
const struct trace_schema_kind *trace_schema_find(const struct trace_schema *s, uint64_t kind);

/* ---- chunks ---------------------------------------------------------------------------------- */

struct trace_chunk_header {
	uint32_t stream, nr_records;
	enum trace_codec codec;
	uint32_t content; /* enum trace_content, or one that is not known */
	uint64_t first_ns, last_ns;
	uint32_t raw_bytes, stored_bytes;
	uint64_t payload_hash; /* XXH64 of the stored bytes */
};
static inline bool trace_content_is_records(uint32_t content)
{
	return content == TRACE_CONTENT_RECORDS || content == TRACE_CONTENT_COLUMNS;
}
void trace_chunk_header_encode(
	uint8_t out[TRACE_CHUNK_HEADER_BYTES], const struct trace_chunk_header *h);
/* false: not a chunk header, or one that no writer makes. */
bool trace_chunk_header_decode(
	const uint8_t in[TRACE_CHUNK_HEADER_BYTES], struct trace_chunk_header *ret);

/* ---- footer ---------------------------------------------------------------------------------- */

struct trace_index_entry {
	uint64_t offset, first_ns, last_ns;
	uint32_t stream, nr_records;
};
/* Appends index, counters and tail as they stand at file_offset. Check out->failed. */
void trace_footer_encode(struct base_str *out, uint64_t file_offset,
	const struct trace_index_entry *entry, size_t nr_entries,
	const uint64_t count[TRACE_DIAG_NR]);
/* From the file's last TRACE_TAIL_BYTES: where the footer is. false: there is none. */
bool trace_tail_decode(const uint8_t in[TRACE_TAIL_BYTES], uint64_t file_bytes,
	uint64_t *ret_offset, uint64_t *ret_bytes);
/* The footer's bytes without the tail, at file offset `offset`. Fills *ret_entry (base_alloc) and
 * adds to count. false: damaged, or no memory (then *ret_status says so). */
bool trace_footer_decode(const uint8_t *bytes, size_t nr, uint64_t offset,
	struct trace_index_entry **ret_entry, size_t *ret_nr_entries, uint64_t count[TRACE_DIAG_NR],
	enum base_status *ret_status);
/* The hash that the tail holds: of the footer's bytes, and of where it is. */
uint64_t trace_footer_hash(const uint8_t *bytes, size_t nr, uint64_t offset);
uint64_t trace_tail_hash(const uint8_t in[TRACE_TAIL_BYTES]);

#endif
