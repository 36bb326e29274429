/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_encode.h - raw words to tokens (memory/stream/stream.h): the encoder that runs inside
 * recorded programs, in a signal handler, and in who reads their raw words. Calls nothing,
 * allocates nothing, trusts no word to be a block's head.
 */
#ifndef LONGPOLE_RING_MEMORY_ENCODE_H
#define LONGPOLE_RING_MEMORY_ENCODE_H

#include "memory/stream/context.h"
#include "memory/stream/predict.h"
#include "memory/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 64 bytes; of its head, too: what comes next is known before the head is read. */
struct target_block_state {
	struct memory_successor successor;
	uint32_t slot;     /* its first, in slot[] */
	uint32_t piece;    /* in which it was reached backwards, or for the first time ... */
	uint32_t position; /* ... at this word last time. Of another chunk: none of this holds */
	uint16_t distance; /* ... that many words after the time before; 0: not known */
	uint16_t bits;     /* of its head's word, last time */
	uint8_t nr_slots, nr_stack, nr_plain; /* all; stack addresses; all but the ticks */
	uint8_t nr_followed;  /* nr_slots; more: it has ticks, or was not as predicted last time */
	uint8_t wait, waited; /* so often before a copy is tried again; this time */
};

/* What a piece becomes, before it is put together. */
enum { TARGET_PLANE_BYTES = MEMORY_PIECE_WORDS * 9 + 16 };
struct target_planes {
	uint8_t byte[MEMORY_PLANES][TARGET_PLANE_BYTES];
	size_t nr[MEMORY_PLANES];
};

/* Room that an encoder needs; not cleared by it. */
struct target_encoder_room {
	struct memory_contexts contexts;
	struct target_planes planes;
};

struct target_encoder {
	struct target_block_state *block; /* by index */
	struct memory_slot_state *slot;   /* by slot_base[index] */
	const uint32_t *slot_base;        /* by index, of the image */
	uint32_t nr_blocks;               /* room in block[] */
	uint32_t first_piece, piece;      /* numbers: of the chunk; current */
	uint32_t previous, path;          /* index of the last block; how it was reached */
	uint64_t stack, tick, word;       /* last values of those classes; of plain slots */
	struct target_encoder_room *room;
	bool avx2;
	/* Heads by the addresses that words have: nr_heads from `heads` on are at head[], of the
	 * module that is executed. Where another one is says find(), which may make its module that
	 * one; NULL: nowhere, the word is no head. */
	uintptr_t heads, nr_heads;
	const struct memory_block_head *head;
	const struct memory_block_head *(*find)(struct target_encoder *e, uintptr_t address);
};

/* Most of these words are of loops, which cost less to encode than to copy: a look at some places.
 */
bool longpole_target_loops(const uint64_t *words, size_t nr);

/* Bytes that `words` words can become. */
static inline size_t target_encode_bound(size_t words)
{
	return words * 10 + 64;
}

/* A new chunk: predictors start afresh. */
void longpole_target_encode_start(struct target_encoder *e, uint64_t first_ticks);
/* Encodes whole records of [words, words + nr), nr <= MEMORY_PIECE_WORDS, into the room's planes;
 * tick slots lose their low bits. Returns how many were encoded; fewer than nr when a word is no
 * head of a known block: the rest is lost. */
size_t longpole_target_encode(struct target_encoder *e, uint64_t *words, size_t nr);

/* The same as a piece of a chunk; times since the chunk's first_ticks. */
struct target_piece {
	uint64_t *words;
	size_t nr, done; /* done: as *ret_words */
	uint64_t begin_ticks, lasted_ticks;
	unsigned flags;
};
/* Bytes that may be written at `out` for a piece, of which it keeps fewer. */
static inline size_t target_piece_bound(size_t words)
{
	return target_encode_bound(words) + 128;
}
uint8_t *longpole_target_encode_piece(
	struct target_encoder *e, struct target_piece *piece, uint8_t *out);

#endif
