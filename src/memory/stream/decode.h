/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - stream chunks (stream.h, 3) into words, and words into items (source.h).
 *
 * The words are those that the program wrote, but a block's head is its index, not its address;
 * above it are the word's bits all the same (memory_word_bits()).
 * Bounded memory: a piece's words, and a state for each block and slot of the program.
 */
#ifndef LONGPOLE_MEMORY_DECODE_H
#define LONGPOLE_MEMORY_DECODE_H

#include "memory/stream/tables.h"

struct memory_copy { /* words [at, at + words) continue [at - distance, at) linearly */
	uint32_t at, distance, words;
};

struct memory_words {
	uint64_t *word; /* MEMORY_PIECE_WORDS */
	uint32_t nr;
	struct memory_copy *copy; /* in order of place */
	uint32_t nr_copies;
	uint64_t begin_ticks, end_ticks;
	bool handler; /* of a signal handler */
};

struct memory_decoder;
/* Of one thread; the tables outlive it, and may grow between chunks. NULL: no memory. */
struct memory_decoder *memory_decoder_new(const struct memory_tables *t);
void memory_decoder_free(struct memory_decoder *d); /* NULL-safe */
/* Begins a stream chunk, which is borrowed until the next one: head and pieces. ERR_CORRUPT. */
enum base_status memory_decoder_chunk(struct memory_decoder *d, const uint8_t *chunk,
	size_t size_bytes, struct base_err *err) BASE_MUST_CHECK;
/* The chunk's next piece; the words are valid until the next call. BASE_END: there is none.
 * ERR_CORRUPT: the rest of the chunk makes no sense. */
enum base_status memory_decoder_piece(
	struct memory_decoder *d, struct memory_words *ret, struct base_err *err) BASE_MUST_CHECK;

/* ---- items ----------------------------------------------------------------------------------- */

struct memory_clock { /* ticks to ns: memory_stream's definition */
	uint64_t origin_ticks, factor;
};
static inline uint64_t memory_clock_ns(const struct memory_clock *c, uint64_t ticks)
{
	if (ticks < c->origin_ticks)
		return 0;
	return (uint64_t)(((unsigned __int128)(ticks - c->origin_ticks) * c->factor) >> 40);
}

/* What was met on the way; for `unseen` and the diags. */
struct memory_walk_counts {
	uint64_t blocks, opaque, unseen_calls, gaps, bad_addresses, bad_words;
	struct memory_silent silent;
};

/* Where accesses by the stack pointer were; what is far apart is of several stacks. */
enum { MEMORY_STACKS_MAX = 8 };
struct memory_stacks {
	struct {
		uint64_t from, to;
	} part[MEMORY_STACKS_MAX];
	unsigned nr, last;
};
bool memory_stacks_have(const struct memory_stacks *s, uint64_t address, uint64_t bytes);

struct memory_walk {
	const struct memory_tables *tables;
	struct memory_clock clock;
	uint64_t fs_base;
	unsigned level;
	struct memory_words words;
	uint32_t at, next_copy;
	uint32_t previous; /* index of the block before; 0: none */
	uint32_t loop_at;  /* where the loop that is written out ends; no other begins before */
	bool stamped;      /* the piece's STAMP is out */
	struct memory_walk_counts counts;
	struct memory_stacks stacks;
};

/* Items of the words so far: fills at most `room` items and `call_room` call records. Returns how
 * many items; 0: the piece is through. room >= MEMORY_WALK_ROOM_MIN. */
enum { MEMORY_WALK_ROOM_MIN = 2048, MEMORY_WALK_CALLS_MIN = 8 };
size_t memory_walk_items(struct memory_walk *w, struct memory_item *item, size_t room,
	struct memory_call *call, size_t call_room, size_t *ret_calls);
/* One sentence: what such a stream cannot have. */
const char *memory_stream_unseen(unsigned flags); /* of a chunk: enum memory_chunk_flag */
void memory_walk_begin(struct memory_walk *w, const struct memory_words *words);

#endif
