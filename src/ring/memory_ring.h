/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_ring.h - the contract between the runtime library of rewritten programs (target*.c) and
 * the readers of their memory streams (session/memory.c, or an analysis on the fly).
 *
 * One file in the session's directory (session/place.h), whose path is in LONGPOLE_MEMORY: a head,
 * then blocks of MEMORY_RING_BLOCK_BYTES, each one chunk of memory/stream/stream.h. A writer takes a FREE
 * block by compare-and-exchange, fills it with pieces, updating the chunk head's `bytes` after
 * each, and makes it DONE. The reader makes it FREE. The chunks of a thread are numbered; take them
 * in that order. A block that is ACTIVE when its process has ended is whole up to its `bytes`. With
 * no block free, writers wait: nothing is lost as long as the reader lives and `recording` is set.
 *
 * Encoding takes several times as long as copying. So in the first `raw` blocks (many if there is
 * room, fewer if the reader has a processor to itself) writers may leave it to the reader: such a
 * chunk has the type MEMORY_RING_RAW, and its pieces are a struct memory_ring_piece and the words
 * as recording code wrote them. It has no more of them than fit into one chunk however badly they
 * are encoded. Valgrind's tool, whose threads take turns, does so only while the reader keeps up,
 * which then encodes beside the program; it writes its words right into the block.
 */
#ifndef LONGPOLE_RING_MEMORY_RING_H
#define LONGPOLE_RING_MEMORY_RING_H

#include "memory/stream/stream.h"

#include <stdint.h>

enum {
	MEMORY_RING_VERSION = 3,
	MEMORY_RING_RAW = MEMORY_CHUNK_TYPES, /* a chunk's type */
	MEMORY_RING_BLOCK_BYTES = MEMORY_CHUNK_MAX_BYTES,
	MEMORY_RING_BLOCKS_MAX = 1024,
};
#define MEMORY_RING_MAGIC    0x474e49524d504c01u
#define MEMORY_RING_VARIABLE "LONGPOLE_MEMORY"

enum memory_ring_state { MEMORY_RING_FREE, MEMORY_RING_ACTIVE, MEMORY_RING_DONE };

struct memory_ring_head {
	uint64_t magic;
	uint32_t version, nr_blocks;
	uint32_t recording; /* 0: writers drop what they have */
	uint32_t reader_pid;
	uint32_t next_image;               /* atomic: images number themselves, from 1 */
	uint32_t freed;                    /* atomic, a futex: the reader has given blocks back */
	uint32_t waiters;                  /* atomic: writers that wait for it */
	uint32_t attached;                 /* atomic: images that have come */
	uint64_t lost_words;               /* atomic */
	uint64_t wait_ticks, encode_ticks; /* atomic: what recording cost the program */
	uint64_t words, pieces;            /* atomic: raw words encoded */
	uint32_t state[MEMORY_RING_BLOCKS_MAX];
	uint32_t live;   /* 1: the reader follows: chunks end where a thread waits for others */
	uint32_t raw;    /* in how many blocks, the first, the reader encodes what is not encoded */
	uint32_t active; /* atomic: blocks in that state, of programs that `longpole cc` built */
};
enum { MEMORY_RING_HEAD_BYTES = 8192 };

/* Before a piece's words. */
struct memory_ring_piece {
	uint64_t words, flags, begin_ticks, lasted_ticks; /* as in memory/stream/stream.h */
};

/* How many blocks may wait while the reader does something else, and while it encodes. */
static inline uint32_t memory_ring_waiting_max(uint32_t nr_blocks)
{
	return nr_blocks / 4 * 3;
}

static inline uint32_t memory_ring_beside_max(uint32_t nr_blocks)
{
	return memory_ring_waiting_max(nr_blocks) / 2;
}

static inline uint64_t memory_ring_bytes(uint32_t nr_blocks)
{
	return MEMORY_RING_HEAD_BYTES + (uint64_t)nr_blocks * MEMORY_RING_BLOCK_BYTES;
}

/* Is that the head of a file of so many bytes? To be asked of a copy: writers keep its nr_blocks
 * and look at the shared one no more. */
static inline int memory_ring_fits(const struct memory_ring_head *copy, uint64_t file_bytes)
{
	return copy->magic == MEMORY_RING_MAGIC && copy->version == MEMORY_RING_VERSION &&
	       copy->nr_blocks > 0 && copy->nr_blocks <= MEMORY_RING_BLOCKS_MAX &&
	       memory_ring_bytes(copy->nr_blocks) <= file_bytes;
}

#endif
