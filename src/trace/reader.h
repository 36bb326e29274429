/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - what reader.c (open, index, recovery), chunk.c (fetching one chunk), defs.c (tables)
 * and merge.c (the order of records) share. Private to trace.
 */
#ifndef LONGPOLE_TRACE_READER_H
#define LONGPOLE_TRACE_READER_H

#include "trace/codec.h"
#include "trace/layout.h"

#include <pthread.h>

struct ZSTD_DCtx_s;
struct trace_ahead;
struct trace_columns;

enum {
	TRACE_NO_CHUNK = UINT32_MAX, /* end of a list of chunks */
	TRACE_CHUNKS_MAX = 1 << 30,
	/* Raw chunks held at one time. What our writer makes needs 64 MiB; a file can be made to
	   need more. */
	TRACE_READER_BUFFERS_MAX = 1 << 30,
	TRACE_SPARE_BUFFERS = 16,
	TRACE_STAGE_RECORDS = 128,
	TRACE_FEW_LEAVES = 16,
	TRACE_AHEAD_BATCHES = 8, /* of TRACE_BATCH_MAX records */
};

/* A file, or bytes in memory. */
struct trace_source {
	int fd; /* -1: memory */
	const uint8_t *memory;
	uint64_t size_bytes;
	const char *name; /* for messages */
};

struct trace_chunk {
	struct trace_index_entry entry;
	uint32_t next; /* of the same stream */
	bool damaged;  /* found out already, and counted at open */
};

/* Room for a decompressed chunk and TRACE_PAD_BYTES zeros. */
struct trace_buffer {
	uint8_t *bytes;
	size_t capacity;
};

/* struct trace_cursor - where one stream's reading stands. Between chunks it holds no buffer, and
 * time_ns is the next chunk's first time; inside a chunk some records ahead are decoded into
 * `staged`, and time_ns is the last of them. */
struct trace_cursor {
	struct trace_record *staged; /* TRACE_STAGE_RECORDS + 1; made when first needed */
	const struct trace_record *head, *head_end; /* what is left of it */
	const uint8_t *p, *end;                     /* not yet decoded; NULL: between chunks */
	uint64_t time_ns;
	uint64_t last_ns; /* of the chunk */
	uint32_t nr_left; /* records of the chunk at p */
	uint32_t stream;
	uint32_t first_chunk, chunk; /* TRACE_NO_CHUNK: at the end */
	struct trace_buffer buffer;
	bool in_columns; /* the chunk at p: then p is at its next record's kind, and in here is */
	struct trace_columns *columns; /* the rest; made when first needed */
};

/* A node of the loser tree: the loser of a match. Order: (time_ns, cursor); `cursor` of a finished
 * stream has bit 32 set, so that it loses against a head at the end of time. */
struct trace_match {
	uint64_t time_ns, cursor;
};

/* Of few streams: the head; and the key of the record after it, when that is staged. NULL: the
 * stream is before a chunk, or at its end. */
struct trace_few_leaf {
	const struct trace_record *head;
	uint64_t next_key;
};

struct trace_defs_builder {
	struct trace_defs defs;
	size_t texts_capacity;
	uint64_t nr_texts_seen;
#define DEF_TABLE(kind, plural)                                                                    \
	size_t plural##_capacity;                                                                  \
	uint64_t nr_##plural##_seen;
#include "trace/defs.def"
#undef DEF_TABLE
};

struct trace_reader {
	struct trace_source source;
	struct trace_reader_options options;
	struct base_arena *arena; /* header texts, schema, name */
	struct trace_info info;
	struct trace_schema schema;
	struct trace_health health, health_at_open; /* so far */
	struct trace_health health_told;            /* as of the batch that the caller has */
	struct trace_defs_builder builder;
	uint64_t nr_records, last_ns;

	struct trace_chunk *chunk; /* in file order */
	size_t chunks_capacity;
	uint32_t nr_chunks;

	struct trace_cursor *cursor; /* by stream; cursor[0] is stream 0, whether read or not */
	size_t cursors_capacity;
	uint32_t nr_cursors;
	struct trace_match *tree; /* [1, nr_leaves): losers */
	uint32_t nr_leaves;       /* data streams */
	struct trace_match winner;
	uint64_t few_tree[TRACE_FEW_LEAVES], few_winner; /* instead, when there are few */
	struct trace_few_leaf few_leaf[TRACE_FEW_LEAVES];
	uint32_t few_leaves; /* a power of two; 0: many */

	struct ZSTD_DCtx_s *zstd;   /* while chunks are compressed, until the last one; else NULL */
	struct trace_buffer stored; /* a chunk as the file has it */
	struct trace_buffer spare[TRACE_SPARE_BUFFERS];
	unsigned nr_spare;
	size_t buffers_bytes; /* in cursors and spares */

	struct trace_record *batch;

	bool reads_ahead;
	pthread_mutex_t decoding;  /* held by the one thread that uses zstd and buffers */
	struct trace_ahead *ahead; /* while it does */
};

/* ---- chunk.c --------------------------------------------------------------------------------- */

/* Reads [offset, offset + nr). ERR_TRUNCATED when the source has no such bytes. */
enum base_status trace_source_read(const struct trace_source *s, uint64_t offset, void *to,
	size_t nr, struct base_err *err) BASE_MUST_CHECK;

/* Fetches a chunk's raw bytes into *ret and its header. BASE_OK; ERR_CORRUPT: this chunk is
 * damaged, go on without it; everything else ends the reading. */
enum base_status trace_chunk_fetch(struct trace_reader *r, uint32_t chunk, struct trace_buffer *ret,
	struct trace_chunk_header *ret_header, struct base_err *err) BASE_MUST_CHECK;
void trace_buffer_release(struct trace_reader *r, struct trace_buffer *b);
void trace_buffers_fini(struct trace_reader *r);

/* trace_chunk_damaged() - count it, once; its bytes are not readable ones. */
void trace_chunk_damaged(struct trace_reader *r, uint32_t chunk);

/* Skips the fields of a record that only the file's schema knows. NULL: damaged. */
const uint8_t *trace_skip_fields(
	const struct trace_schema_kind *k, const uint8_t *p, const uint8_t *end);

/* ---- defs.c ---------------------------------------------------------------------------------- */

enum base_status trace_defs_init(struct trace_defs_builder *b) BASE_MUST_CHECK;
void trace_defs_fini(struct trace_defs_builder *b);
/* Reads every chunk of stream 0. */
enum base_status trace_defs_load(struct trace_reader *r, struct base_err *err) BASE_MUST_CHECK;

/* ---- merge.c --------------------------------------------------------------------------------- */

enum base_status trace_merge_init(struct trace_reader *r, struct base_err *err) BASE_MUST_CHECK;
/* To the beginning (of the options' window). */
void trace_merge_start(struct trace_reader *r);
void trace_merge_fini(struct trace_reader *r);
/* The next at most TRACE_BATCH_MAX records of data. BASE_END: none. */
enum base_status trace_merge_next(struct trace_reader *r, struct trace_record *batch,
	size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;

/* ---- ahead.c --------------------------------------------------------------------------------- */

bool trace_ahead_wanted(const struct trace_reader *r);
/* OK without r->ahead: the machine has no more threads. */
enum base_status trace_ahead_start(struct trace_reader *r, struct base_err *err) BASE_MUST_CHECK;
enum base_status trace_ahead_next(
	struct trace_reader *r, struct trace_batch *ret, struct base_err *err) BASE_MUST_CHECK;
void trace_ahead_stop(struct trace_reader *r);

#endif
