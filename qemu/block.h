/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block.h - code that QEMU has translated, and the shapes in which it was executed (README.md).
 * Blocks and shapes are never freed, and a shape does not change: threads read them without a lock.
 */
#ifndef LONGPOLE_QEMU_BLOCK_H
#define LONGPOLE_QEMU_BLOCK_H

#include "isa.h"
#include "object.h"

#include "memory/stream/stream.h"

enum {
	BLOCK_INSTRUCTIONS_MAX = 24,
	BLOCK_ACCESSES_MAX = 110, /* of one execution; more are lost */
	BLOCK_NO_SLOT = 255,
};

/* What an access is, but for its address: what is compared. */
struct block_key {
	uint32_t info; /* QEMU's */
	uint32_t instruction;
};
struct block_seen {
	struct block_key key;
	uint64_t address;
};

struct block_expected {
	struct block_key key; /* of the end: an instruction that no block has */
	uint8_t slot;         /* BLOCK_NO_SLOT: its address follows from another one's */
	uint8_t base, ticks;  /* slots; ticks 0: not wanted */
	int32_t disp;
};

struct block_shape {
	struct block_shape *next, *next_new;
	struct block *block;
	struct memory_block_head *head; /* what words point to */
	unsigned nr, nr_slots;          /* accesses; words after the head's address */
	unsigned info_bytes;
	uint8_t *info;                    /* as in stream.h */
	struct block_expected expected[]; /* and the end */
};

struct block {
	struct block *next_same;    /* of the hash table */
	uint64_t code;              /* first instruction */
	struct block_shape *likely; /* atomic: the last one. Never NULL */
	struct block_shape *first;
	unsigned nr_shapes, nr_instructions;
	struct object *object;
	const struct isa_row *row[BLOCK_INSTRUCTIONS_MAX];
	uint8_t length[BLOCK_INSTRUCTIONS_MAX];
};

/* Of `b`, executed with these accesses; a new one's head is at `head`. Under the lock. NULL: no
 * memory. */
struct block_shape *block_shape_of(struct block *b, const struct block_seen *seen, unsigned nr,
	struct memory_block_head *head);

#endif
