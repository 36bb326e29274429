/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - a chunk's records field by field instead of one behind the other: like stands next to
 * like, so that a general compressor sees that a release is of the lock that was acquired. Private
 * to trace; doc/format.md has the bytes ("Records in columns").
 */
#ifndef LONGPOLE_TRACE_COLUMNS_H
#define LONGPOLE_TRACE_COLUMNS_H

#include "trace/codec.h"
#include "trace/layout.h"

struct trace_reader;
struct trace_cursor;

enum {
	TRACE_COLUMNS_KINDS_MAX = 255, /* of one chunk */
	/* Fewer bytes of records stay as they are: the head and the blocks cost more than they
	   give, and a reader has a table for each such chunk that is open. */
	TRACE_COLUMNS_MIN_BYTES = 4 << 10,
};

/* A field of a kind each, of all kinds that this version knows. */
enum trace_column {
#define COLUMN_OF(kind_, type_, name_, unit_, doc_) TRACE_COLUMN_##kind_##_##name_,
#define REC(kind_, since_, FIELDS, doc_)                                                           \
	TRACE_COLUMN_##kind_, /* its times */                                                      \
		FIELDS(COLUMN_OF, kind_)
#include "trace/records.def"
#undef COLUMN_OF
	TRACE_COLUMNS_NR
};

/* ---- writing --------------------------------------------------------------------------------- */

struct trace_column_part {
	const uint8_t *bytes;
	size_t nr;
};
struct trace_splitter; /* a splitter's buffers live on from chunk to chunk */
struct trace_splitter *trace_splitter_new(void);
void trace_splitter_free(struct trace_splitter *s); /* NULL-safe */
/* From records as trace_encode_roomy() makes them, none of them a definition, the parts of the same
 * in columns, one behind the other: the head, the kinds, the columns. They are the splitter's until
 * the next call. Returns their number; 0: no memory. */
size_t trace_columns_split(struct trace_splitter *s, const uint8_t *rows, size_t nr_bytes,
	const struct trace_column_part **ret);

/* ---- reading --------------------------------------------------------------------------------- */

struct trace_columns; /* where the reading of one such chunk stands */

/* Begins the chunk that c has entered: checks its columns, so that taking records out of them needs
 * no bounds. ERR_CORRUPT, ERR_NOMEM without details. */
enum base_status trace_columns_open(const struct trace_reader *r, struct trace_cursor *c,
	const struct trace_chunk_header *h) BASE_MUST_CHECK;
void trace_columns_free(struct trace_columns *columns); /* NULL-safe */
/* Takes records until `room` are at c->staged or the chunk has no more; moves c's time_ns, nr_left
 * and p along. Returns how many are; sets *ret_damaged when the chunk ends here for that reason. */
uint32_t trace_columns_stage(
	struct trace_reader *r, struct trace_cursor *c, uint32_t room, bool *ret_damaged);

#endif
