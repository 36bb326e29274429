/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory.h - the memory mode's parts: what an instruction is (memory_opcode.c), blocks and the code
 * that records them (memory_code.c), calls that allocate (memory_heap.c), words into the recorder's
 * shared memory (memory_stream.c).
 *
 * The words are those of memory/stream/stream.h: for each execution of a block the address of its head,
 * then its slots. They go into one piece, of the thread that runs, until it is full or another
 * thread runs. So pieces never overlap in time, and their order is the order of all accesses.
 */
#ifndef LONGPOLE_VALGRIND_MEMORY_H
#define LONGPOLE_VALGRIND_MEMORY_H

#include "mode.h"

#include "memory/stream/stream.h"
#include "memory/stream/source.h"

enum {
	MEMORY_SUPERBLOCK_WORDS = 2048, /* that one execution of a superblock may write */
	MEMORY_INFO_MAX_BYTES = 4096,   /* of one block */
};

/* What translated code reads and writes itself. */
struct memory_hot {
	ULong *next;  /* word */
	ULong *limit; /* beyond it there may be too little room for a superblock's */
	ULong string; /* address of the repeated string instruction that goes on; 0: none does */
	ULong returns_at; /* stack address that a call of memory_heap.c returns at; 0: none */
};
extern struct memory_hot memory_hot;

enum memory_half { MEMORY_HALF_NONE, MEMORY_HALF_LOW, MEMORY_HALF_HIGH };

/* What follows from an instruction's bytes; everything else is VEX's knowledge. */
struct memory_opcode {
	UChar terminator; /* enum memory_terminator */
	Bool string;      /* rep movs, stos, lods: as often as rcx says */
	Bool compares;    /* repe, repne cmps, scas: it may end before */
	UChar element;    /* bytes of a string instruction's element */
	Bool loads_rsi, stores_rdi;
	Bool accesses;    /* has an operand in memory, which is not only a hint */
	UChar half;       /* enum memory_half, which VEX loads of what is 32 bytes */
	Bool of_register; /* bt and its kin: VEX puts the register below the stack, and loads */
	UChar reg;        /* enum memory_register, of its accesses (a vector's: by size) */
};
void memory_opcode(const UChar *bytes, UInt length, struct memory_opcode *ret);

/* A block. Never freed; the same code and description give the same block. */
struct memory_block {
	struct memory_block *next_same; /* of the hash table */
	UWord code;                     /* its key */
	struct memory_block_head *head; /* what words point to: one of memory_heads */
	struct memory_block *next_new;
	UInt info_bytes, nr_instructions;
	UChar info[]; /* as in stream.h */
};
/* NULL: there are too many. */
struct memory_block *memory_block_of(
	Addr code, const struct memory_block_head *head, const UChar *info, UInt info_bytes);
/* All heads, in the order in which they were made, the marks' first: whoever reads raw words knows
 * them by their places. (Not of the heap: addresses of 32 bits make shorter code.) */
extern struct memory_block_head memory_heads[MEMORY_BLOCKS_MAX];

/* Allocation (memory_heap.c): where a superblock begins, where it ends; when a thread goes on. */
void memory_heap_begin_code(IRSB *out, Addr code);
void memory_heap_end_code(IRSB *out);
void memory_heap_switched(ThreadId tid);
void memory_heap_exits(ThreadId tid);
/* A call record, of the thread that runs; it ends now. */
void memory_mark_call(enum memory_call_kind kind, ULong began_ticks, const ULong argument[4]);
ULong memory_now_ticks(void);

IRSB *memory_instrument(IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents);
/* Of the instructions before `address`; NULL: there are none. */
struct memory_block *memory_block_before(const struct memory_block *b, Addr address);

Bool memory_set_ring(const HChar *path);
void memory_begin(void);
void memory_switched_to(ThreadId tid);
void memory_created(ThreadId parent, ThreadId child);
void memory_exits(ThreadId tid);
void memory_accessed(ThreadId tid, Bool store, Addr address, SizeT bytes); /* by the kernel */
void memory_signalled(ThreadId tid, Int signal);
void memory_calls_kernel(ThreadId tid, UInt number);
void memory_called_kernel(
	ThreadId tid, UInt number, const UWord *args, UInt nr_args, SysRes result);
void memory_end(const HChar *path);
/* Called by translated code: the piece is almost full. */
void memory_on_full(void);

#endif
