/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ciat.h - configuration independent analysis of memory streams (seed 004, section 4), and beyond
 * it: true and false sharing, who feeds whom, reuse distances, instructions and data objects.
 *
 * A *location* is an aligned piece of memory of `location_bytes` (4 unless said otherwise: the
 * seed's word). For each location the analysis knows who stored it last (the writer) and which
 * other threads have loaded it since (the readers; before the first store: all who loaded it).
 *
 *	RAW  a load by a thread that is neither the writer nor a reader yet
 *	WAR  a store while there is a reader other than the storing thread
 *	WAW  a store by another than the writer, and no WAR
 *	RAR  a load, new to this thread, of a location never stored, that another thread has loaded
 *
 * Each access counts once for a kind, however many of its locations show it. The sharing degree
 * S[k] is the number of values of a location that had k readers; the invalidation degree I[k] the
 * number of stores to a location with k readers other than the storing thread. A phase has the
 * change of S during it, which is negative for values that found more readers in a later phase.
 */
#ifndef LONGPOLE_MEMORY_CIAT_H
#define LONGPOLE_MEMORY_CIAT_H

#include "memory/order/order.h"

#include <jansson.h>

enum memory_ciat_event {
	MEMORY_CIAT_RAW,
	MEMORY_CIAT_WAR,
	MEMORY_CIAT_WAW,
	MEMORY_CIAT_RAR,
	MEMORY_CIAT_EVENTS
};

enum memory_ciat_size { /* classes of access sizes */
#define SIZE(name, bytes, line) MEMORY_CIAT_SIZE_##name,
#include "memory/ciat/ciat_sizes.def"
	MEMORY_CIAT_SIZES
};

enum {
	MEMORY_CIAT_STRING_EXACT = 64, /* lengths up to this have their own bucket; then octaves */
	MEMORY_CIAT_STRINGS = MEMORY_CIAT_STRING_EXACT + 1 + 40,
	MEMORY_CIAT_CALLS = 0x40, /* call kinds are below this */
	MEMORY_CIAT_PHASES_MAX = 4096,
	MEMORY_CIAT_PAGE_BYTES = 4096,
	MEMORY_CIAT_LINE_BYTES_MAX = 1024,
};

struct memory_ciat_call_sum {
	uint64_t count, time_ns, amount;
};

struct memory_ciat_counts { /* of one thread, or all, in one phase, or all */
	uint64_t access[2][MEMORY_CIAT_SIZES][MEMORY_REG_KINDS]; /* loads, stores */
	uint64_t access_bytes[2];
	uint64_t atomics; /* counted among both */
	uint64_t string[2][MEMORY_CIAT_STRINGS];
	uint64_t instructions; /* the pseudo clock's */
	uint64_t fetched;      /* described by BLOCK items */
	uint64_t branches, procedure_calls, procedure_starts, returns;
	uint64_t event[MEMORY_CIAT_EVENTS];
	uint64_t range_loads, range_stores, range_load_bytes, range_store_bytes;
	uint64_t cold_misses, true_misses, false_misses, upgrades; /* of lines, infinite caches */
	struct memory_ciat_call_sum call[MEMORY_CIAT_CALLS];
};

struct memory_ciat_phase {
	enum memory_phase_kind kind;
	uint64_t number; /* of the region or marker */
	uint64_t begin_clock, end_clock;
	struct memory_ciat_counts *thread; /* nr_threads */
	struct memory_ciat_counts all;
	int64_t *sharing;       /* S[k], k = 0 .. nr_threads (0 unused) */
	uint64_t *invalidation; /* I[k] */
};

struct memory_ciat_usage { /* the twenty figures of section 4.5, in its order */
#define FIGURE(number, name, line) uint64_t name;
#include "memory/ciat/ciat_usage.def"
	double data_locality, code_locality; /* 19, 20 */
};

struct memory_ciat_page { /* a record of the memory usage file */
	uint64_t page, touched_bytes, code_bytes, shared_bytes, data_accesses, code_accesses,
		shared_data_accesses, shared_code_accesses;
	int32_t owner; /* -1: shared */
};

struct memory_ciat_line { /* a cache line that moved between threads */
	uint64_t address, true_misses, false_misses, upgrades;
	uint32_t writers; /* threads that stored it last somewhere in it */
};

/* An instruction that met a line others had changed, or invalidated it; a line that was used for
 * blocks from several sites is so many lines here. */
struct memory_ciat_site {
	uint64_t line, code;
	uint64_t true_misses, false_misses, upgrades;
	uint64_t offsets;     /* bit i: byte i*line/64 of the line was accessed */
	uint64_t heap_offset; /* in the block, of the first access */
	uint32_t heap;        /* index + 1 of what allocated it; 0: not allocated memory */
	uint32_t thread;      /* the first that did */
	bool several;         /* other threads did, too */
	bool stores;
};

/* Memory that one call instruction allocated (calls `allocate` and `release`, source.h). */
struct memory_ciat_heap {
	uint64_t code; /* that call; 0: not seen */
	uint64_t blocks, bytes;
	uint64_t accesses; /* that begin in the blocks while they were; without ranges */
	bool mapping;      /* by mmap */
};
enum { MEMORY_CIAT_HEAP_SITES_MAX = 100000 }; /* the last one stands for all beyond */

struct memory_ciat_function { /* accesses by the code that makes them */
	uint64_t code;        /* instruction; summed by function in reports when names are known */
	uint64_t loads, stores, raw, misses;
};

enum { MEMORY_REUSE_BUCKETS = 64 };
struct memory_reuse_curve { /* distances in distinct lines since the last access to the line */
	uint64_t accesses, cold;
	double count[MEMORY_REUSE_BUCKETS]; /* [0]: 0; [i]: 2^(i-1) .. 2^i - 1 */
	double sampled_share;               /* 1: exact */
	uint64_t sampled_lines;             /* that were followed */
};

struct memory_ciat_options {
	uint32_t location_bytes; /* 1, 2, 4, 8; 0: 4 */
	uint32_t line_bytes;     /* power of two, 8 .. 1024; 0: 64 */
	bool without_lines;      /* no true and false sharing */
	bool with_functions;     /* count by instruction */
	bool with_reuse;         /* reuse distances, exact */
	double reuse_share;      /* > 0 and < 1: sampled by SHARDS with this share of the lines */
	bool hpux;               /* 0x40000000 .. 0x7fffffff are private addresses */
	uint64_t shared_from, shared_to; /* reserved for shared pages (range sharing); 0, 0: none */
	uint64_t memory_limit_bytes;     /* 0: 4 GiB */
	/* Each communication event, in order; may be NULL. degree: WAW 1, WAR its invalidation
	 * degree, else 0 (undefined). */
	void (*event)(void *ctx, uint64_t clock, enum memory_ciat_event kind, uint32_t thread,
		uint32_t degree);
	void *event_ctx;
};

struct memory_ciat_result {
	uint32_t nr_threads, location_bytes, line_bytes;
	struct memory_ciat_phase *phase;
	size_t nr_phases;
	uint64_t phases_left_out; /* beyond the limit; they are in `total` */
	struct memory_ciat_phase total;
	struct memory_ciat_usage usage;
	const struct memory_ciat_page *page; /* by number */
	size_t nr_pages;
	const struct memory_ciat_line *line; /* most false misses first */
	size_t nr_lines;
	const struct memory_ciat_site *site; /* by line, then most misses */
	size_t nr_sites;
	uint64_t sites_left_out;
	const struct memory_ciat_function *function; /* by code address */
	size_t nr_functions;
	const struct memory_ciat_heap *heap; /* in the order of their first call */
	size_t nr_heap;
	uint64_t blocks_left_out; /* too many at a time */
	const uint64_t *matrix;   /* [writer * nr_threads + reader]: RAW accesses */
	bool has_reuse;
	struct memory_reuse_curve shared_curve;  /* one cache for all threads */
	struct memory_reuse_curve private_curve; /* each its own; summed */
	uint64_t memory_bytes;                   /* that the analysis used for its state */
	bool lines_known;                        /* lines were analysed */
};

const char *memory_ciat_event_name(enum memory_ciat_event e); /* "RAW" */
const char *memory_phase_name(enum memory_phase_kind kind);   /* "serial" */

struct memory_ciat;
enum base_status memory_ciat_new(uint32_t nr_threads, const struct memory_ciat_options *options,
	struct memory_ciat **ret, struct base_err *err) BASE_MUST_CHECK;
struct memory_ciat *memory_ciat_free(struct memory_ciat *c);
/* Steps in the order of memory_order_next(). ERR_LIMIT: the touched footprint needs more memory
 * than allowed. */
enum base_status memory_ciat_add(struct memory_ciat *c, const struct memory_steps *steps,
	struct base_err *err) BASE_MUST_CHECK;
/* Of all threads that there could have been, only the first nr_threads have come; before the end.
 */
void memory_ciat_set_threads(struct memory_ciat *c, uint32_t nr_threads);
/* After the last step; the result lives as long as c. */
enum base_status memory_ciat_finish(struct memory_ciat *c, uint32_t instruction_bytes,
	const struct memory_ciat_result **ret, struct base_err *err) BASE_MUST_CHECK;

/* After finish: accesses that begin in [from, to). */
uint64_t memory_ciat_accesses(const struct memory_ciat *c, uint64_t from, uint64_t to);
/* The first place at `from` or behind that an access touched; UINT64_MAX: none. */
uint64_t memory_ciat_touched(const struct memory_ciat *c, uint64_t from);

/* ---- ciat_text.c, ciat_json.c ---------------------------------------------------------------- */

/* The report file: one figure a line, tag first: RrTtLll: (phase, thread, kind of line; x: all). */
void memory_ciat_tags(struct base_str *out, const struct memory_ciat_result *r);
/* The memory usage file: a header that says what its columns are, then a record a page. */
void memory_ciat_usage_file(struct base_str *out, const struct memory_ciat_result *r);
/* Header of the event trace; one line an event. */
void memory_ciat_event_header(struct base_str *out, uint32_t nr_threads);
void memory_ciat_event_line(struct base_str *out, uint64_t clock, enum memory_ciat_event kind,
	uint32_t thread, uint32_t degree);
/* What knows names; place as in memory_source_ops. */
struct memory_names {
	void *ctx;
	bool (*place)(void *ctx, uint64_t address, bool code, struct memory_place *ret);
	/* Adds what a site's access was to: "stats.hits". */
	bool (*field)(void *ctx, const struct memory_ciat_result *r,
		const struct memory_ciat_site *site, struct base_str *out);
};
/* What is in it. */
extern const struct base_table memory_ciat_table;
/* names: NULL: only those that the source has. */
json_t *memory_ciat_json(const struct memory_ciat_result *r, const struct memory_source *s,
	const struct memory_names *names);
/* Misses of a fully associative LRU cache with that many lines, as a share of accesses. */
double memory_reuse_miss_ratio(const struct memory_reuse_curve *c, unsigned log2_lines);
/* The smallest such cache of which sampling can tell: a sampled line stands for 1 / share lines. */
unsigned memory_reuse_least(const struct memory_reuse_curve *c);

/* Reads a memory usage file, of ours or the seed's; for cdat. base_free() *ret. */
enum base_status memory_ciat_usage_read(const char *text, const char *path,
	struct memory_ciat_page **ret, size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;

#endif
