/* SPDX-License-Identifier: Apache-2.0 */
/* cdat_private.h - caches, directory and pages of the simulated machine. Private to the layer. */
#ifndef LONGPOLE_MEMORY_CDAT_PRIVATE_H
#define LONGPOLE_MEMORY_CDAT_PRIVATE_H

#include "memory/cdat/cdat.h"
#include "memory/sets.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
	CHUNK_SHIFT = 12, /* the directory is kept in pieces of 4 KiB of addresses */
	CHUNK_BYTES = 1 << CHUNK_SHIFT,
	CHUNK_MIDDLE_BITS = 17,
	CHUNK_TOP_BITS = 47 - CHUNK_SHIFT - CHUNK_MIDDLE_BITS,
};

/* Tags only; what a copy is worth, the directory knows. A way is cdat_tag(line) and what is known
 * of the copy besides. The first way of a set was used (FIFO: filled) last; free ways, 0, are the
 * last ones. */
enum {
	CDAT_MAY_STORE = 1, /* without asking: the copy is dirty */
	CDAT_SILENT = 2,    /* the processor does not own it: it may go without a word */
	CDAT_KNOWN = 3,
};
struct cdat_cache {
	/* A line of the machine is 1 << part_shift of its own, the parts; by their numbers it has
	 * them. is_last: parts of a line come and go together. */
	uint8_t part_shift;
	bool is_last;
	uint32_t sets, ways;
	uint32_t set_mask; /* sets - 1, when that is a power of two; else 0 */
	uint64_t *way;
	uint32_t *version; /* of the data, when the monitor is on */
};

struct cdat_processor {
	struct cdat_cache data, code, second; /* its own */
	uint32_t node, unit;
	uint64_t time_ps;
};

/* A processor, or several with a last level in common: what the directory and the bus know. Inside
 * of one, that level knows who has what: the others are told of a store at no cost. */
struct cdat_unit {
	struct cdat_cache third;
	uint32_t node, first, nr; /* processors */
};

struct cdat_line {        /* the directory's entry, and the truth */
	uint32_t sharers; /* units that may have a copy (struct memory_sets); silent drops stay */
	uint32_t interconnect; /* nodes whose interconnect cache has it */
	uint16_t owner;        /* + 1: the unit that has it exclusive, dirty or owned; 0: nobody */
	uint8_t state;         /* MEMORY_CDAT_IDLE (or 0), _SHARED, _EXCLUSIVE: private at owner */
	bool dirty;            /* the owner's copy is newer than memory */
	uint32_t version, memory_version; /* stores so far; those that memory has seen */
};

struct cdat_home { /* a page */
	uint32_t node;
	bool replicated;
	bool copied;    /* ... since it ran: its copies have data, and it goes back to its node */
	uint16_t rival; /* migration: node with most misses, and by how many */
	uint32_t lead;
	uint32_t loads;  /* that missed from other nodes since the last store */
	uint32_t copies; /* times that it was copied */
};

struct cdat_chunk {
	uint32_t home;   /* index of its page */
	uint32_t copies; /* of a replica: the page's when it was filled */
	uint16_t node;   /* where its page was at first: always, when the machine is `plain` */
	bool has_code;   /* something here was fetched: instruction caches may have it */
	struct cdat_line line[];
};

struct cdat_run {                  /* where a thread is in its piece of a loop (cdat_runs.c) */
	struct cdat_part *part;    /* of the body */
	uint32_t nr, at, end_part; /* parts; the next; the first that the iteration `end` has not */
	uint32_t processor, nr_code;
	uint64_t iteration, end, clock, per_iteration; /* clock: at the iteration's beginning */
	int64_t due;                                   /* the turn that it waits for */
	uint64_t plain_code;                           /* fetches in a row that changed nothing */
	uint64_t hits;                                 /* accesses that are nothing else */
	uint64_t code_hits;
	bool in_order; /* accesses alone, and each is due no sooner than the one before it */
};

struct memory_cdat {
	struct memory_cdat_config config;
	struct memory_cdat_options options;
	struct memory_cdat_result result;
	const struct memory_cdat_protocol *protocol;
	struct memory_sets sets;
	unsigned line_shift, page_shift, chunk_mask; /* lines of a chunk - 1 */
	uint32_t nr_processors;
	uint16_t *processor_of; /* thread -> processor */
	uint32_t nr_threads;
	struct cdat_processor *processor;
	struct cdat_unit *unit;
	uint32_t nr_units;
	uint32_t units_of[MEMORY_CDAT_NODES_MAX]; /* as a set of `sets`; not when that is wide */
	bool plain;     /* nothing but one level of caches and a directory, and nobody watches */
	bool one_level; /* each processor has a data and an instruction cache, and no more */
	bool has_parts; /* caches whose lines are parts of the machine's */
	uint64_t at;    /* with parts: the address that is accessed */
	struct cdat_cache *interconnect; /* per node; NULL: none */
	struct cdat_chunk ***top;
	struct cdat_chunk ***row; /* those of top[] that are there */
	size_t nr_rows, row_capacity;
	struct base_arena *chunks;
	struct {
		struct base_map of; /* (node + 1, chunk) -> index */
		struct cdat_chunk **chunk;
		size_t nr, capacity;
	} replicas;
	struct {
		struct cdat_home *home;
		size_t nr, capacity;
		struct base_map of; /* page -> index */
	} homes;
	struct {
		struct memory_ciat_page *page; /* of the memory usage file, by what is placed as a
						  whole */
		size_t nr, capacity;
		struct base_map of; /* page -> index */
	} usage;
	uint64_t next_node; /* round robin of shared pages */
	uint64_t used_bytes, random;
	struct memory_cdat_phase *open, spilled;
	size_t phases_capacity;
	uint64_t clock;                      /* of the step */
	struct memory_cdat_outcome *outcome; /* being filled */
	uint64_t *bits;                      /* scratch: a sharing list */
	struct {                             /* cdat_runs.c */
		struct cdat_run *run;        /* by thread */
		struct cdat_part *part;      /* of all pieces at hand */
		size_t parts_capacity;
		uint64_t *turn; /* keys of those that run: a heap */
	} runs;
	struct base_err *err;
};

/* ---- caches (inline: the hot path) */
static inline uint64_t *cdat_set(const struct cdat_cache *k, uint64_t line)
{
	size_t set = k->set_mask || k->sets == 1 ? line & k->set_mask : line % k->sets;
	return k->way + set * k->ways;
}

static inline uint64_t cdat_tag(uint64_t line)
{
	return (line + 1) << 2;
}

static inline uint64_t cdat_line_of(uint64_t way)
{
	return (way >> 2) - 1;
}

/* May one of the ways have the line? Eight are looked at together: false is certain. */
static inline bool cdat_may_have(const uint64_t *set, uint32_t ways, uint64_t tag)
{
#ifdef __SSE2__
	if (ways == 8) {
		const __m128i *w = (const __m128i *)set;
		__m128 a = _mm_castsi128_ps(_mm_loadu_si128(w)),
		       b = _mm_castsi128_ps(_mm_loadu_si128(w + 1)),
		       c = _mm_castsi128_ps(_mm_loadu_si128(w + 2)),
		       d = _mm_castsi128_ps(_mm_loadu_si128(w + 3));
		/* The lower halves, without what is known besides. */
		__m128i low = _mm_srli_epi32(_mm_castps_si128(_mm_shuffle_ps(a, b, 0x88)), 2),
			high = _mm_srli_epi32(_mm_castps_si128(_mm_shuffle_ps(c, d, 0x88)), 2),
			line = _mm_set1_epi32((int)((uint32_t)tag >> 2));
		return 0 != _mm_movemask_epi8(_mm_or_si128(
				    _mm_cmpeq_epi32(low, line), _mm_cmpeq_epi32(high, line)));
	}
#endif
	(void)set;
	(void)tag;
	return ways != 0;
}

/* Which way has the line; ways: none. */
static inline uint32_t cdat_find(const struct cdat_cache *k, uint64_t line)
{
	if (!k->ways)
		return 0;
	const uint64_t *w = cdat_set(k, line), tag = cdat_tag(line);
	uint32_t ways = k->ways;
#pragma GCC unroll 8
	for (uint32_t i = 0; i < ways; i++)
		if ((w[i] ^ tag) <= CDAT_KNOWN)
			return i;
	return ways;
}

typedef uint64_t cdat_pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Puts a line that the processor does not own into its set, without versions, and not by RANDOM;
 * returns the way that had to go, or 0. */
static inline uint64_t cdat_push(uint64_t *set, uint32_t ways, uint64_t line)
{
	uint64_t last = set[ways - 1];
	if (ways == 8) { /* (memmove() would be called) */
		cdat_pair *from = (cdat_pair *)set, *to = (cdat_pair *)(set + 1);
		cdat_pair first = from[0], second = from[1], third = from[2];
		set[7] = set[6];
		to[0] = first;
		to[1] = second;
		to[2] = third;
	} else {
		for (uint32_t i = ways - 1; i > 0; i--)
			set[i] = set[i - 1];
	}
	*set = cdat_tag(line) | CDAT_SILENT;
	return last;
}

/* The part of a line that is accessed, by the number that the cache knows. */
static inline uint64_t cdat_part(
	const struct memory_cdat *c, const struct cdat_cache *k, uint64_t line)
{
	uint64_t offset = c->at & (c->config.line_bytes - 1);
	return line << k->part_shift | offset >> (c->line_shift - k->part_shift);
}

static inline uint64_t cdat_nr_parts(const struct cdat_cache *k)
{
	return UINT64_C(1) << k->part_shift;
}

static inline bool cdat_has(const struct cdat_cache *k, uint64_t line)
{
	return k->ways && cdat_find(k, line) < k->ways;
}

/* The directory's piece of its home; NULL: nobody has touched it. */
static inline struct cdat_chunk *cdat_chunk_at(const struct memory_cdat *c, uint64_t address)
{
	uint64_t number = address >> CHUNK_SHIFT;
	struct cdat_chunk **middle = c->top[number >> CHUNK_MIDDLE_BITS];
	return middle ? middle[number & ((1u << CHUNK_MIDDLE_BITS) - 1)] : NULL;
}

static inline size_t cdat_line_index(const struct memory_cdat *c, uint64_t line)
{
	return line & c->chunk_mask;
}

/* May an instruction cache have it? */
static inline bool cdat_is_code(const struct memory_cdat *c, uint64_t line)
{
	const struct cdat_chunk *k = cdat_chunk_at(c, line << c->line_shift);
	return k && k->has_code;
}

/* Is this the way of a line that may be used so, without asking? */
static inline bool cdat_is_first(uint64_t way, uint64_t line, bool store)
{
	return (way | CDAT_SILENT | !store) == (cdat_tag(line) | CDAT_KNOWN);
}

/* What was used last in its set is used again, and nothing changes by it. */
static inline bool cdat_is_plain_hit(
	const struct memory_cdat *c, const struct cdat_cache *k, uint64_t line, bool store)
{
	uint64_t way = k->ways ? *cdat_set(k, line) : 0;
	return cdat_is_first(way, line, store) && !c->options.check;
}

/* The directory's entry of what comes a few steps later. (Inlined by force: gcc 12 takes a function
 * that only prefetches for one without effect.) */
static inline __attribute__((always_inline)) void cdat_prefetch(
	const struct memory_cdat *c, uint64_t address)
{
	const struct cdat_chunk *k = cdat_chunk_at(c, address);
	if (k)
		__builtin_prefetch(&k->line[cdat_line_index(c, address >> c->line_shift)], 1);
}

/* What cache functions call a line is one of the cache's own: a part, where it has those. */
enum base_status memory_cdat_cache_init(struct cdat_cache *k, uint64_t size_bytes, uint64_t ways,
	uint64_t line_bytes, bool versions);
void memory_cdat_cache_fini(struct cdat_cache *k);
/* A hit: the way becomes the first. */
void memory_cdat_cache_use(const struct cdat_cache *k, uint64_t line, uint32_t way);
/* Puts a line in; *ret_victim is the line that had to go, UINT64_MAX: none. */
void memory_cdat_cache_put(struct memory_cdat *c, struct cdat_cache *k, uint64_t line,
	uint32_t version, uint64_t *ret_victim, uint32_t *ret_version);
/* Takes it out, if it is there; true: it was, *ret_version its data. */
bool memory_cdat_cache_drop(struct cdat_cache *k, uint64_t line, uint32_t *ret_version);
/* A line of the machine: any part of it; its first part's, else the next one's version. */
bool memory_cdat_cache_has(const struct cdat_cache *k, uint64_t line, uint32_t *ret_version);
void memory_cdat_cache_drop_parts(struct cdat_cache *k, uint64_t line);

/* ---- hierarchy of one processor, and of its unit */
/* In a level of its own; *ret_version: of the first of them. */
bool memory_cdat_holds_alone(const struct cdat_processor *p, uint64_t line, uint32_t *ret_version);
bool memory_cdat_holds(
	const struct memory_cdat *c, uint32_t unit, uint64_t line, uint32_t *ret_version);
void memory_cdat_invalidate(struct memory_cdat *c, uint32_t unit, uint64_t line);
/* The unit's processors must look before they store. */
void memory_cdat_clean(struct memory_cdat *c, uint32_t unit, uint64_t line);
/* The processor is about to store: nobody else in its unit keeps a copy. */
void memory_cdat_alone(struct memory_cdat *c, uint32_t processor, uint64_t line);
/* A line has left one level; when it is in no other, it has left the unit. UINT64_MAX: none. */
enum base_status memory_cdat_left(struct memory_cdat *c, uint32_t unit, uint64_t line);
enum base_status memory_cdat_fill(
	struct memory_cdat *c, uint32_t processor, uint64_t line, bool code, uint32_t version);

/* ---- cdat_home.c */
/* The directory's entry for a processor's access; *ret_home: the line's home node. NULL: no
 * memory. */
struct cdat_line *memory_cdat_line(
	struct memory_cdat *c, uint32_t node, uint64_t line, bool store, uint32_t *ret_home);
enum base_status memory_cdat_homes_init(struct memory_cdat *c, struct base_err *err);
void memory_cdat_homes_fini(struct memory_cdat *c);
bool memory_cdat_is_replicated(const struct memory_cdat *c, uint64_t line);
void memory_cdat_count_miss(struct memory_cdat *c, uint32_t node, uint64_t line);
/* A load missed, and its home is another node. */
void memory_cdat_count_remote_load(struct memory_cdat *c, uint32_t node, uint64_t line);

/* ---- cdat.c */
enum base_status memory_cdat_touch(struct memory_cdat *c, uint32_t processor, uint64_t address,
	uint64_t size_bytes, enum memory_item_kind kind);
/* Instructions that share a line with the one before are hits. */
enum base_status memory_cdat_fetch(struct memory_cdat *c, uint32_t processor, uint64_t address,
	uint64_t size_bytes, uint64_t instructions);

/* ---- cdat_runs.c */
enum base_status memory_cdat_pieces(struct memory_cdat *c, const struct memory_steps *steps);

/* ---- cdat_protocol.c: a request from its beginning to its end; c->outcome is filled */
enum base_status memory_cdat_load_miss(
	struct memory_cdat *c, uint32_t processor, uint64_t line, bool code);
enum base_status memory_cdat_store(
	struct memory_cdat *c, uint32_t processor, uint64_t line, bool hit);
/* A data load that missed, where the machine and the line are such that memory answers and no other
 * cache is asked: most are. All of it is done, and counted; *ret is how it went. False: nothing is.
 */
bool memory_cdat_load_plainly(
	struct memory_cdat *c, uint32_t processor, uint64_t line, enum base_status *ret);
/* Of those, so many in a row, by one processor and of lines with the same sharers and home: only
 * the counts. */
void memory_cdat_count_plainly(
	struct memory_cdat *c, uint32_t processor, uint32_t sharers, uint32_t home, uint64_t nr);
enum base_status memory_cdat_replaced(struct memory_cdat *c, uint32_t unit, uint64_t line);
enum base_status memory_cdat_dma(struct memory_cdat *c, uint32_t node, uint64_t line, bool in);
/* No cache has the line any more, and memory has its data. */
void memory_cdat_flush(struct memory_cdat *c, struct cdat_line *l, uint64_t line, uint32_t home);

#endif
