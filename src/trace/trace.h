/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - the .lpt format: write, read, merge, seek, recover. Knows nothing of recorders or
 * analyses.
 *
 * A trace = header, chunks, footer. A chunk belongs to one stream and decodes alone. Stream 0 holds
 * the definitions (strings, processes, streams, modules, sites, objects, ...): a definition
 * precedes, in file order, every chunk that mentions its id. records.def has one row a record kind;
 * from it come the structs below, the codec, the dump printer, the schema block in each file, the
 * JSON schema and doc/format.md.
 *
 * Units: time_ns = nanoseconds since the trace's origin (header: clock). Ids are dense from 1; 0 =
 * none.
 */
#ifndef LONGPOLE_TRACE_H
#define LONGPOLE_TRACE_H

#include "base/base.h"

enum trace_kind {
#define REC_FROM(id)                  TRACE_BEFORE_##id = (id)-1,
#define REC(kind, since, FIELDS, doc) TRACE_##kind,
#include "trace/records.def"
};

/* Field types in records.def: ID u32 table id | U64 | S64 | TEXT bytes (definitions only). */
struct trace_text {
	const char *bytes; /* borrowed: valid as long as the batch or table it came in; not
			      terminated */
	uint32_t length;
};
#define TRACE_TYPE_ID                             uint32_t
#define TRACE_TYPE_U64                            uint64_t
#define TRACE_TYPE_S64                            int64_t
#define TRACE_TYPE_TEXT                           struct trace_text
#define TRACE_MEMBER(kind, type, name, unit, doc) TRACE_TYPE_##type name;
#define REC(kind, since, FIELDS, doc)                                                              \
	struct trace_##kind {                                                                      \
		FIELDS(TRACE_MEMBER, kind)                                                         \
	};
#include "trace/records.def"

struct trace_record {
	uint64_t time_ns;
	uint32_t stream; /* who did it: index into trace_defs.stream; 0 for definitions */
	uint16_t kind;   /* enum trace_kind */
	union {
#define REC(kind, since, FIELDS, doc) struct trace_##kind kind;
#include "trace/records.def"
	} u;
};

/* ---- the record table (from records.def) ----------------------------------------------------- */

enum trace_field_type { TRACE_FIELD_ID, TRACE_FIELD_U64, TRACE_FIELD_S64, TRACE_FIELD_TEXT };
struct trace_field_desc {
	const char *name, *unit, *doc;
	enum trace_field_type type;
	uint16_t offset; /* in struct trace_record */
};
struct trace_kind_desc {
	uint16_t kind;
	uint16_t since; /* format version that added it */
	const char *name, *doc;
	const struct trace_field_desc *field;
	unsigned nr_fields;
};
const struct trace_kind_desc *trace_kind_find(unsigned kind); /* NULL: unknown */
const struct trace_kind_desc *trace_kind_table(unsigned *ret_nr);

/* ---- loss and repair counters (diag.def): every one that is not zero is printed in every report
 */

enum trace_diag {
#define DIAG(name, severity, extent, source, sentence) TRACE_DIAG_##name,
#include "trace/diag.def"
	TRACE_DIAG_NR
};
enum trace_severity { TRACE_SEVERITY_info, TRACE_SEVERITY_data_loss, TRACE_SEVERITY_error };
/* Partial: records that belong to the trace are missing. */
enum trace_extent { TRACE_EXTENT_whole, TRACE_EXTENT_partial };
struct trace_diag_desc {
	const char *name, *source, *sentence; /* for base_str_add_counted() */
	enum trace_severity severity;
	enum trace_extent extent;
};
const struct trace_diag_desc *trace_diag_describe(enum trace_diag d);
struct trace_health {
	uint64_t count[TRACE_DIAG_NR];
	uint64_t readable_bytes, file_bytes; /* of the file; equal when it is whole */
};

/* ---- writing --------------------------------------------------------------------------------- */

enum { TRACE_VERSION = 2, TRACE_CHUNK_RAW_MAX = 256 * 1024, TRACE_CONTENT_RAW_MAX = 1 << 20 };
enum { TRACE_FORM_BYTES = 16 };

/* What a chunk holds. Chunks of records are this layer's own; others are bytes in a stream of their
 * own, which those who read records pass over. Append only: the numbers are in files. */
enum trace_content {
	TRACE_CONTENT_RECORDS,
	TRACE_CONTENT_MEMORY,  /* memory/stream/stream.h */
	TRACE_CONTENT_COLUMNS, /* records, field by field (trace/columns.h); since version 2 */
};

struct trace_info {                        /* the header; texts are borrowed */
	size_t size;                       /* sizeof(struct trace_info) of the caller */
	const char *host, *command, *tool; /* who was recorded, by what */
	uint64_t origin_mono_ns;           /* CLOCK_MONOTONIC_RAW at time_ns 0 */
	uint64_t origin_unix_ns;           /* wall time then */
	uint64_t tick_hz;                  /* rate of the recorder's clock; 0: none */
	uint32_t nr_processors;
	uint32_t flags; /* TRACE_INFO_* */
};
enum {
	TRACE_INFO_SYNTHETIC = 1,
	TRACE_INFO_SYSTEM =
		2, /* every thread's switches and wakes are there, not one program's only */
	TRACE_INFO_KERNEL =
		4, /* and the kernel's doings: calls, contexts, sockets, packets, disks */
	TRACE_INFO_MERGED = 8, /* made of several recordings; the command is the first one's */
	TRACE_INFO_WAIT_ALL =
		16, /* the run is over when its last process is, not when its first one is */
};

struct trace_writer;
enum base_status trace_writer_open(const char *path, const struct trace_info *info,
	struct trace_writer **ret, struct base_err *err) BASE_MUST_CHECK;
/* Append r to its stream. Within one stream times must not decrease (a smaller one is raised to the
 * last and counted as TRACE_DIAG_time_raised). Buffers per stream; definitions (stream 0) are
 * flushed before any data chunk. The caller's mistakes (data in stream 0, no such kind: ERR_USAGE;
 * stream or text beyond its limit: ERR_LIMIT) refuse that record only. After an I/O error (ENOSPC)
 * every call returns the same error and the file stays readable. */
enum base_status trace_writer_put(
	struct trace_writer *w, const struct trace_record *r, struct base_err *err) BASE_MUST_CHECK;
/* A record but for its time and stream, encoded once to be put often. */
struct trace_form {
	uint8_t nr_kind_bytes, nr_bytes; /* of those before and after the time */
	uint8_t kind[2], fields[TRACE_FORM_BYTES];
};
/* False: a definition, or its fields need more than TRACE_FORM_BYTES. */
bool trace_form_make(struct trace_form *ret, const struct trace_record *r) BASE_MUST_CHECK;
/* As trace_writer_put() of the record that f was made of, in that stream (not 0), at that time. */
enum base_status trace_writer_put_form(struct trace_writer *w, uint32_t stream, uint64_t time_ns,
	const struct trace_form *f, struct base_err *err) BASE_MUST_CHECK;
/* Write a chunk of another content, at once: size_bytes of 1 to TRACE_CONTENT_RAW_MAX, of a stream
 * that has no records. first_ns <= last_ns; not before those of the stream's chunk before (raised
 * to it). */
enum base_status trace_writer_put_content(struct trace_writer *w, enum trace_content content,
	uint32_t stream, uint64_t first_ns, uint64_t last_ns, const void *bytes, size_t size_bytes,
	struct base_err *err) BASE_MUST_CHECK;
/* From now on chunks are not compressed: quicker to write, larger. */
void trace_writer_set_plain(struct trace_writer *w);
enum base_status trace_writer_flush(struct trace_writer *w, struct base_err *err) BASE_MUST_CHECK;
void trace_writer_count(
	struct trace_writer *w, enum trace_diag d, uint64_t n); /* into the footer */
uint64_t trace_writer_bytes(const struct trace_writer *w);
uint64_t trace_writer_records(const struct trace_writer *w);
/* Writes index, counters and footer; always frees w, also on error. */
enum base_status trace_writer_close(struct trace_writer *w, struct base_err *err) BASE_MUST_CHECK;

/* ---- reading --------------------------------------------------------------------------------- */

/* Definition tables: dense arrays indexed by id (entry 0 is all zero). Ids in records may be beyond
 * them: trace_def_site(d, id) and its kin give entry 0 then. */
struct trace_defs {
	struct base_strtab *strings; /* file's string id -> text: via trace_text_of() */
#define DEF_TABLE(kind, plural)                                                                    \
	struct trace_##kind *plural;                                                               \
	uint32_t nr_##plural; /* highest id + 1 */
#include "trace/defs.def"
#undef DEF_TABLE
	const char **text; /* string id -> NUL-terminated text */
	uint32_t nr_texts;
};
/* The part of what recording took (kind cost) that says what waking a sleeping thread costs. */
#define TRACE_COST_WAKING      "waking a sleeper, to know what that costs"
#define TRACE_COST_WAKING_BUSY "waking one whose processor is taken, to know what that costs"
/* What the kernel's events take when a thread sleeps and is woken; n: times it was. */
#define TRACE_COST_SWITCHES "processor switches"
#define TRACE_COST_STARTS   "starts of programs"
#define TRACE_COST_FORKS    "forks"
#define TRACE_COST_BEFORE   "getting ready, before the program's start"
#define TRACE_COST_BESIDE   "reading and writing the trace"
#define TRACE_COST_AFTER    "reading and writing the trace, after the program's end"
#define TRACE_COST_SYSTEM   "kernel events of all threads"
#define TRACE_COST_SAMPLES  "samples"
/* What the program writes itself: records of locks, of calls that go to the kernel, all others. */
#define TRACE_COST_LOCKS   "records of locks"
#define TRACE_COST_CALLS   "records of calls"
#define TRACE_COST_RECORDS "records"
#define TRACE_COST_LOST    "records that found no room"
/* Its method: how many a second were asked for, of each running thread. */
#define TRACE_COST_SAMPLES_METHOD "measured before the program ran; %llu a second"
/* Of these three the one that a kind's records are counted under; NULL: no thread writes them. */
const char *trace_cost_of_kind(unsigned kind);
/* What one of a part took; 0: the trace does not say, or there was none. */
uint64_t trace_cost_each_ns(const struct trace_defs *d, const char *name);
const char *trace_text_of(const struct trace_defs *d, uint32_t string_id); /* "" when unknown */
const char *trace_object_type_text(uint64_t type); /* "object" when unknown */
#define DEF_TABLE(kind, plural)                                                                    \
	static inline const struct trace_##kind *trace_def_##kind(                                 \
		const struct trace_defs *d, uint32_t id)                                           \
	{                                                                                          \
		return &d->plural[id < d->nr_##plural ? id : 0];                                   \
	}
#include "trace/defs.def"
#undef DEF_TABLE

struct trace_batch {
	const struct trace_record *record; /* in time order; borrowed until the next call */
	size_t nr;
};
enum { TRACE_BATCH_MAX = 4096 };

struct trace_reader;
/* May a thread decode ahead of the reader? It changes nothing but the time that takes, and memory:
 * a few batches more. Auto: in long traces, when the process may use more than one processor. */
enum trace_ahead_choice { TRACE_AHEAD_AUTO, TRACE_AHEAD_NEVER, TRACE_AHEAD_ALWAYS };
struct trace_reader_options {
	size_t size;
	uint64_t from_ns, to_ns; /* only records in [from, to); to 0 = end. Seeks by the index. */
	bool with_definitions;   /* batches contain stream 0 too (dump) */
	enum trace_ahead_choice ahead;
};
/* Opens and loads the definitions. A cut or damaged file opens as far as whole chunks go, and says
 * so in trace_reader_health(); ERR_FORMAT, ERR_VERSION, ERR_CORRUPT (header) refuse. opts may be
 * NULL. */
enum base_status trace_reader_open(const char *path, const struct trace_reader_options *opts,
	struct trace_reader **ret, struct base_err *err) BASE_MUST_CHECK;
enum base_status trace_reader_open_memory(const void *bytes, size_t size_bytes,
	const struct trace_reader_options *opts, struct trace_reader **ret,
	struct base_err *err) BASE_MUST_CHECK; /* bytes borrowed until close */
const struct trace_info *trace_reader_info(const struct trace_reader *r);
const struct trace_defs *trace_reader_defs(const struct trace_reader *r);
/* As of the last batch. */
const struct trace_health *trace_reader_health(const struct trace_reader *r);
/* Looks at every chunk of every content, so that what is damaged is known (in the health) before
 * the first record is asked for: checksums only, nothing is decompressed. Before the first pass. */
enum base_status trace_reader_verify(struct trace_reader *r, struct base_err *err) BASE_MUST_CHECK;
uint64_t trace_reader_record_count(const struct trace_reader *r); /* data records, from the index */
uint64_t trace_reader_last_ns(const struct trace_reader *r);
/* Next batch of all streams merged by (time, stream, order in stream). BASE_OK, BASE_END, or an
 * error with path, byte offset and record; damaged chunks are skipped, counted and do not end the
 * reading. */
enum base_status trace_reader_next(
	struct trace_reader *r, struct trace_batch *ret, struct base_err *err) BASE_MUST_CHECK;
/* The next batch without a copy of it: `visit` is shown record after record, each until it returns,
 * *ret_nr of them; it must not use the reader. Status and health as with trace_reader_next(); the
 * two may take turns. */
typedef void trace_visit_fn(void *ctx, const struct trace_record *r);
enum base_status trace_reader_visit(struct trace_reader *r, trace_visit_fn *visit, void *ctx,
	size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;
enum base_status trace_reader_rewind(struct trace_reader *r, struct base_err *err) BASE_MUST_CHECK;
void trace_reader_close(struct trace_reader *r); /* NULL-safe */

/* Chunks of other contents. They are numbered in file order; trace_reader_contents() finds those of
 * one content (which reads each chunk's header once) and gives their streams and lengths. */
struct trace_content_chunk {
	uint32_t chunk; /* number, for trace_reader_content() */
	uint32_t stream;
	uint64_t first_ns, last_ns;
	uint32_t size_bytes;
};
/* *ret: base_free() it. */
enum base_status trace_reader_contents(struct trace_reader *r, enum trace_content content,
	struct trace_content_chunk **ret, size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;
/* Its bytes into `to`, which has room for size_bytes and TRACE_CONTENT_PAD_BYTES more, which become
 * zero. ERR_CORRUPT: damaged. */
enum { TRACE_CONTENT_PAD_BYTES = 128 };
enum base_status trace_reader_content(struct trace_reader *r, const struct trace_content_chunk *c,
	void *to, struct base_err *err) BASE_MUST_CHECK;

/* Codec of one record, for tests, fuzzers and tools. Canonical: decode then encode gives the same
 * bytes. */
struct trace_codec_state {
	uint64_t last_ns;
};
uint8_t *trace_encode(uint8_t *p, uint8_t *end, struct trace_codec_state *s,
	const struct trace_record *r); /* NULL: no room, unknown kind, time before the last */
const uint8_t *trace_decode(const uint8_t *p, const uint8_t *end, struct trace_codec_state *s,
	struct trace_record *ret); /* NULL: damaged */

/* A field of a record; text: of TRACE_FIELD_TEXT, else its number. */
uint64_t trace_field_number(const struct trace_record *r, const struct trace_field_desc *f);
struct trace_text trace_field_text(const struct trace_record *r, const struct trace_field_desc *f);
/* What an id or an enumeration stands for, made in `name`, which is reset first. False: nothing. */
bool trace_field_name(struct base_str *name, const struct trace_defs *d,
	const struct trace_record *r, const struct trace_field_desc *f);
/* Likewise of a stream: its name, else its thread's number. */
void trace_stream_name(struct base_str *name, const struct trace_defs *d, uint32_t stream);

/* Printing one record (dump), without a newline: `TIME_NS STREAM:thread kind field=value(name)
 * ...`, or one JSON object whose "FIELD_text" keys hold the names of ids. Definitions have no time
 * and no stream. */
void trace_print_text(
	struct base_str *out, const struct trace_defs *d, const struct trace_record *r);
void trace_print_json(
	struct base_str *out, const struct trace_defs *d, const struct trace_record *r);

#endif
