/* SPDX-License-Identifier: Apache-2.0 */
/* ciat_private.h - the state of every touched location. Private to the layer. */
#ifndef LONGPOLE_MEMORY_CIAT_PRIVATE_H
#define LONGPOLE_MEMORY_CIAT_PRIVATE_H

#include "memory/ciat/ciat.h"
#include "memory/sets.h"

/*
 * A location's state, 64 bits:
 *	0 .. 31   readers (struct memory_sets)
 *	32 .. 42  writer + 1; 0: never stored
 *	43 .. 53  first thread that touched it + 1; 0: not touched
 *	54        touched by more than one thread
 *	55 .. 62  which of its bytes were touched
 */
enum {
	STATE_WRITER = 32,
	STATE_TOUCHER = 43,
	STATE_SHARED = 54,
	STATE_BYTES = 55,
	STATE_THREAD_MASK = 0x7ff,
	PAGE_SHIFT = 12,
	PAGE_BYTES = MEMORY_CIAT_PAGE_BYTES,
	DIRECTORY_BITS = 17, /* of a middle table; the top has the rest of 47 - 12 */
	TOP_BITS = 47 - PAGE_SHIFT - DIRECTORY_BITS,
	LOOKASIDE_BITS = 15,
	STATE_OFFSET = 64,
	COUNT_BITS = 16,
	CACHE_LINE_BYTES = 64,
};

/* The writer of the value, and its readers. */
#define VALUE_MASK ((UINT64_C(1) << STATE_TOUCHER) - 1)

struct ciat_line {
	uint32_t holders; /* threads whose copy is valid, with caches without end */
	uint32_t seen;    /* that ever had one */
	uint32_t true_misses, false_misses, upgrades;
	uint32_t site; /* + 1: that was met last; 0: none */
	bool settled;  /* the page's `settled` is not empty: a store need not look there */
	/* How many accesses begin in each of its locations; modulo 2^16: struct ciat_page.wraps. An
	 * irregular access waits for two lines of the cache: this, and its states. */
	uint16_t count[];
};

/* Of a page: how large what is, and where. */
struct ciat_shape {
	unsigned location_shift, line_shift;
	uint32_t line_offset, line_stride;
};

/* A page's head; behind it, at the offsets that struct memory_ciat has: the states of its
 * locations, and its lines. One allocation, found without a pointer more. */
struct ciat_page {
	uint64_t number;
	struct ciat_code *code; /* at the end; NULL: no code */
	uint32_t *wraps;        /* of counts, by location; NULL: none has */
	/* Of the pieces that were looked at last (ciat_runs.c): */
	uint64_t look;    /* the look's number */
	uint64_t changes; /* clock of the first access that changes a state; UINT64_MAX: none */
	uint16_t thread;
	bool several;     /* threads */
	uint16_t looks;   /* at single loads, since it was asked who has settled */
	uint32_t settled; /* threads whose every load here is steady; until a store */
};

struct ciat_code { /* code in a page, put together at the end */
	uint64_t count[PAGE_BYTES];
	uint16_t toucher[PAGE_BYTES]; /* + 1; 0: none; per byte */
	bool shared[PAGE_BYTES];
};

/* Straight-line code that a thread ran, and how often. */
struct ciat_block {
	uint64_t address, count, executed;
	uint32_t thread;
	uint16_t size_bytes;
};

struct ciat_thread {
	struct memory_ciat_counts *counts; /* of the open phase */
	uint64_t string_length;
	unsigned string_kind; /* 0 loads, 1 stores; 2: none */
	uint32_t alone;       /* the set of just this thread */
};

/* The places of one item of a loop (ciat_spans.c). The entry of none is zero. */
struct ciat_span {
	uint64_t address, stride_bytes, nr;
	uint64_t times;   /* that its places were touched, and are not told of yet */
	uint64_t settled; /* c->unsettled + 1, when each load was in a page where its thread has */
	uint16_t thread, size_bytes;
	bool is_due; /* listed: has perhaps something to tell */
};

struct memory_reuse;
struct ciat_heap;

struct memory_ciat {
	struct memory_ciat_options options;
	struct memory_ciat_result result;
	struct memory_sets sets;
	struct ciat_shape shape;
	uint32_t page_bytes;
	struct ciat_page ***top; /* [2^TOP_BITS] of [2^DIRECTORY_BITS] */
	struct ciat_page ***row; /* those of top[] that are there */
	size_t nr_rows, row_capacity;
	struct {
		char *slab; /* where the next pages come from */
		size_t slab_left_bytes, slab_bytes;
		char **slabs;
		size_t nr_slabs, slabs_capacity;
	} room;
	struct ciat_page **page; /* all of them, in the order of first touch */
	size_t nr_pages, pages_capacity;
	uint64_t used_bytes;
	struct ciat_thread *thread;
	struct memory_ciat_phase *open;   /* NULL between phases */
	struct memory_ciat_phase spilled; /* stands for phases beyond the limit */
	size_t phases_capacity;
	int64_t *sharing; /* S, as it is now */
	struct base_map block_of;
	struct ciat_block *block;
	size_t nr_blocks, blocks_capacity;
	uint32_t block_lookaside[1 << LOOKASIDE_BITS]; /* by hash; what is there says whose it is */
	struct base_map site_of;
	struct memory_ciat_site *site;
	size_t nr_sites, sites_capacity;
	struct {
		struct base_map of;
		struct memory_ciat_function *function;
		size_t nr, capacity;
		uint32_t lookaside[1 << LOOKASIDE_BITS];
	} functions;
	uint64_t *matrix;
	struct ciat_heap *heap; /* NULL: nothing was allocated yet */
	struct memory_reuse *shared_reuse, **private_reuse;
	struct memory_ciat_page *usage_page;
	struct memory_ciat_line *line;
	struct {
		uint64_t number; /* of the last look */
		struct ciat_page **several;
		size_t nr_several, several_capacity;
		uint8_t *changes; /* by piece and item */
		size_t changes_capacity;
		struct ciat_stores { /* of the pieces: where they may store */
			uint64_t first_page, last_page;
			uint32_t thread;
		} * stores;
		size_t nr_stores, stores_capacity;
	} look;
	uint64_t unsettled; /* times that a page lost its settled threads */
	struct {
		struct ciat_span *span; /* by hash; NULL: none yet */
		uint32_t *due;          /* which of them have something to tell */
		uint32_t nr_due;
	} spans;
};

static inline uint32_t ciat_writer(uint64_t state)
{
	return (uint32_t)(state >> STATE_WRITER) & STATE_THREAD_MASK;
}

static inline uint32_t ciat_toucher(uint64_t state)
{
	return (uint32_t)(state >> STATE_TOUCHER) & STATE_THREAD_MASK;
}

static inline uint64_t *ciat_state(struct ciat_page *p)
{
	return (uint64_t *)(void *)((char *)p + STATE_OFFSET);
}

static inline struct ciat_line *ciat_line(
	const struct ciat_shape *y, const struct ciat_page *p, unsigned line)
{
	return (struct ciat_line *)(void *)((char *)(uintptr_t)p + y->line_offset +
					    line * y->line_stride);
}

static inline uint16_t *ciat_count(
	const struct ciat_shape *y, const struct ciat_page *p, unsigned location)
{
	unsigned shift = y->line_shift - y->location_shift;
	return &ciat_line(y, p, location >> shift)->count[location & ((1u << shift) - 1)];
}

static inline uint64_t ciat_accesses(
	const struct memory_ciat *c, const struct ciat_page *p, unsigned location)
{
	return *ciat_count(&c->shape, p, location) +
	       (p->wraps ? (uint64_t)p->wraps[location] << COUNT_BITS : 0);
}

/* NULL: the page was not touched yet. */
static inline struct ciat_page *ciat_known_page(const struct memory_ciat *c, uint64_t number)
{
	struct ciat_page **middle = c->top[number >> DIRECTORY_BITS];
	return BASE_LIKELY(middle != NULL) ? middle[number & ((1u << DIRECTORY_BITS) - 1)] : NULL;
}

/* Makes it if need be. NULL: no memory, or its limit. */
struct ciat_page *memory_ciat_page(struct memory_ciat *c, uint64_t number);
void memory_ciat_pages_free(struct memory_ciat *c);
/* ciat.c: what an access does to the memory that it touches; s->size_bytes is not 0. */
enum base_status memory_ciat_touch(struct memory_ciat *c, const struct memory_step *s);
/* ---- ciat_spans.c: equal spans are one */
/* The entry of *key (whose times, settled are 0); another one's is given up for it. */
enum base_status memory_ciat_span(
	struct memory_ciat *c, const struct ciat_span *key, struct ciat_span **ret);
/* Its places, whose pages are there, were touched that often. */
void memory_ciat_span_add(struct memory_ciat *c, struct ciat_span *s, uint64_t times);
/* The same at once, for one that is not worth an entry. */
enum base_status memory_ciat_count_span(
	struct memory_ciat *c, const struct ciat_span *s, uint64_t times);
/* All places get their counts: before anybody reads them. */
enum base_status memory_ciat_spans_give(struct memory_ciat *c);
void memory_ciat_spans_fini(struct memory_ciat *c);
/* Threads whose every load in the page is steady, from now on. */
void memory_ciat_settle(struct memory_ciat *c, struct ciat_page *p, uint32_t threads);
unsigned memory_ciat_class(unsigned size_bytes);
unsigned memory_ciat_string(uint64_t length); /* its bucket */
enum base_status memory_ciat_block(
	struct memory_ciat *c, const struct memory_step *s, uint64_t times);
enum base_status memory_ciat_function_at(
	struct memory_ciat *c, uint64_t code, struct memory_ciat_function **ret);
/* A location's count has wrapped, so often. */
enum base_status memory_ciat_wrap(
	struct memory_ciat *c, struct ciat_page *p, unsigned location, uint64_t times);
/* ciat_runs.c: the pieces that are offered with these steps, as far as it does not matter who comes
 * first. */
enum base_status memory_ciat_pieces(struct memory_ciat *c, const struct memory_steps *steps);

/* ---- ciat_phases.c: steps of these kinds */
enum base_status memory_ciat_begin_phase(
	struct memory_ciat *c, const struct memory_step *s, struct base_err *err);
void memory_ciat_end_phase(struct memory_ciat *c, const struct memory_step *s);

/* ---- ciat_heap.c */
enum base_status memory_ciat_heap_call(struct memory_ciat *c, const struct memory_call *call);
/* Of the block that an address is in now: its site + 1, and where in it; 0: in none. */
uint32_t memory_ciat_heap_at(struct memory_ciat *c, uint64_t address, uint64_t *ret_offset);
void memory_ciat_heap_finish(struct memory_ciat *c);
void memory_ciat_heap_free(struct memory_ciat *c);

/* Sums of all phases and of memory usage into the result. */
enum base_status memory_ciat_summarize(
	struct memory_ciat *c, uint32_t instruction_bytes, struct base_err *err);
enum base_status memory_ciat_phase_init(
	struct memory_ciat_phase *p, uint32_t nr_threads, struct base_err *err);
void memory_ciat_phase_fini(struct memory_ciat_phase *p);
void memory_ciat_counts_add(struct memory_ciat_counts *to, const struct memory_ciat_counts *from);

/* ---- reuse.c: distances of one stream of lines. share < 1: sampled (SHARDS) */
struct memory_reuse *memory_reuse_new(double share);
struct memory_reuse *memory_reuse_free(struct memory_reuse *r);
enum base_status memory_reuse_access(struct memory_reuse *r, uint64_t line);
const struct memory_reuse_curve *memory_reuse_curve_of(struct memory_reuse *r);
uint64_t memory_reuse_bytes(const struct memory_reuse *r);

#endif
