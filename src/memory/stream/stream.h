/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - the stream format: what rewritten code writes, what the trace keeps.
 *
 * Three forms of the same thing:
 *
 * 1. Tables, made by the rewriter, in two sections of the program. A basic block has one struct
 *    memory_block_head in `longpole_blocks` and its description in `longpole_info`: instructions,
 *    terminator, accesses. An access whose address follows from the program (pc-relative) or from
 *    another access of the block (same registers) needs no slot.
 * 2. Raw words, made by the rewritten code: for each execution of a block the address of its head,
 *    then its slots. What the runtime library adds (calls, ranges, marks) are blocks, too. A head's
 *    word has MEMORY_WORD_BITS bits above the address: MEMORY_FORM_SILENT.
 * 3. Chunks, made by the encoder in the runtime library: the words of one thread against predictors
 *    (successor of a block; last value and stride of a slot), with copies by linear extrapolation
 *    for loops. A chunk decodes alone, with the tables. It travels through shared memory
 *    (ring/memory_ring.h) and is stored, compressed or not, as one chunk of a .lpt file.
 *
 * All numbers little endian. Nothing here is trusted by the decoder.
 */
#ifndef LONGPOLE_MEMORY_STREAM_H
#define LONGPOLE_MEMORY_STREAM_H

#include <stdint.h>

/* ---- 1. tables ------------------------------------------------------------------------------- */

#define MEMORY_SECTION_BLOCKS "longpole_blocks"
#define MEMORY_SECTION_INFO   "longpole_info"
#define MEMORY_SECTION_MAYBE  "longpole_maybe"

/* struct memory_block_head - 16 bytes. Relative fields: target minus the field's own address. */
struct memory_block_head {
	int32_t code;       /* first instruction */
	int32_t info;       /* in longpole_info */
	uint8_t nr_slots;   /* words after the head's address */
	uint8_t nr_stack;   /* the first of them are stack addresses; the last may be ticks */
	uint8_t flags;      /* MEMORY_BLOCK_* | number of tick slots << MEMORY_BLOCK_TICKS_SHIFT */
	uint8_t terminator; /* enum memory_terminator */
	uint32_t index;     /* the runtime library numbers blocks from 1; in a table 0, or
			       MEMORY_TABLE_PLACED */
};
enum {
	MEMORY_BLOCK_ENTRY = 1,  /* first of a procedure */
	MEMORY_BLOCK_OPAQUE = 2, /* followed by code that is not seen: inline assembly */
	MEMORY_BLOCK_MARK = 4,   /* made by the runtime library: info is an enum memory_mark */
	MEMORY_BLOCK_PAD = 8,    /* entered by the unwinder */
	MEMORY_BLOCK_TICKS_SHIFT = 4,
	MEMORY_BLOCK_TICKS_MAX = 15,
};
enum memory_terminator {
	MEMORY_TERM_NONE, /* goes on in the next block of the table */
	MEMORY_TERM_JUMP,
	MEMORY_TERM_BRANCH,   /* conditional: the next block of the table when not taken */
	MEMORY_TERM_INDIRECT, /* jump through a register or memory */
	MEMORY_TERM_CALL,
	MEMORY_TERM_CALL_INDIRECT,
	MEMORY_TERM_RETURN,
	MEMORY_TERM_TAIL, /* jump to another procedure */
	MEMORY_TERM_STOP, /* ud2, hlt */
	MEMORY_TERMINATORS
};
enum {
	MEMORY_BLOCK_SLOTS_MAX = 120,
	MEMORY_BLOCK_INSTRUCTIONS_MAX = 200,
	MEMORY_BLOCK_ACCESSES_MAX = 200,
	MEMORY_BLOCK_ELEMENTS_MAX = 256, /* of its masked, gathering and scattering accesses */
};

/*
 * A block's info: u8 instructions, u8 accesses; for each instruction u8 length, u8 gap (bytes of
 * recording code between it and the next); then the accesses in program order, each
 *	u8 instruction, u8 what, u8 size, u8 slot, then by form:
 * what = direction (bits 0-1: 0 load, 1 store, 2 both indivisibly) | register (bits 2-3: enum
 * memory_register) | form (bits 4-7). When both: u8 slot of the ticks before, u8 slot of those
 * after (255: not taken; after alone says when it was). Slots count from 0; a form without one has
 * 255.
 */
enum memory_access_form {
	MEMORY_FORM_SLOT,         /* s32 disp: slot + disp */
	MEMORY_FORM_STATIC,       /* s32: relative to this field */
	MEMORY_FORM_FS,           /* s32 disp: fs base + disp */
	MEMORY_FORM_FS_SLOT,      /* s32 disp: fs base + slot + disp */
	MEMORY_FORM_ABSOLUTE,     /* u32 address */
	MEMORY_FORM_STRING,       /* s32 0, u8 slot of the count: count elements of `size` */
	MEMORY_FORM_STRING_LEFT,  /* s32 0, u8 slot of the count, u8 slot of what was left of it */
	MEMORY_FORM_RANGE,        /* s32 disp, u32 bytes: slot + disp */
	MEMORY_FORM_RANGE_STATIC, /* s32 relative, u32 bytes */
	MEMORY_FORM_MASKED, /* s32 disp, u8 slot of the mask (a bit an element), u8 elements; size =
			       of one; gaps are skipped */
	MEMORY_FORM_PACKED, /* the same, but as many elements as bits, without gaps */
	MEMORY_FORM_VECTOR, /* s32 disp, u8 first slot of the indices, u8 bytes of an index, u8
			       scale, u8 elements, u8 slot of the mask: gather, scatter */
	MEMORY_FORM_NEVER,  /* s32: the linker has made the access away */
	MEMORY_FORM_SILENT, /* s32 0: no access; bit i of the slot is set when store i of the block
			       (from 0; also when both; beyond 63: none is) left what was there;
			       slot 255: of the bits in the head's word */
	MEMORY_FORMS
};
enum memory_direction {
	MEMORY_ACCESS_LOAD,
	MEMORY_ACCESS_STORE,
	MEMORY_ACCESS_BOTH,
	MEMORY_ACCESS_DIRECTIONS
};

/* struct memory_maybe - an access through the global offset table that the linker may have relaxed:
 * when the instruction's bytes are no longer these, it makes none. */
struct memory_maybe {
	int32_t access;          /* the access's `what` byte */
	int32_t instruction;     /* relative */
	uint8_t length, disp_at; /* where the displacement is in the instruction */
	uint8_t bytes[14];       /* of the instruction as it was assembled; displacement zero */
};

/* What says that a program has rewritten code: an ELF note in each object. Its description is u32
 * version, u32 level. */
#define MEMORY_NOTE_SECTION ".note.longpole"
#define MEMORY_NOTE_NAME    "longpole"
enum { MEMORY_NOTE_TYPE = 1 };

/* ---- 2. words -------------------------------------------------------------------------------- */

/* The word of a head: an address of user space, of which the processor leaves the highest bits to
 * us (or, in decoded words, the block's index). */
enum { MEMORY_WORD_SHIFT = 48, MEMORY_WORD_BITS = 16 };
static inline uint64_t memory_word_head(uint64_t word)
{
	return word & ((UINT64_C(1) << MEMORY_WORD_SHIFT) - 1);
}
static inline uint64_t memory_word_bits(uint64_t word)
{
	return word >> MEMORY_WORD_SHIFT;
}

/* Marks: words of the runtime library. */

/* Each is a block with MEMORY_BLOCK_MARK and this many slots; time stamps are TSC ticks. */
#define MEMORY_MARKS(MARK)                                                                         \
	MARK(call, 7, 2)  /* enum memory_call_kind, four arguments, ticks before, ticks after */   \
	MARK(load, 2, 0)  /* address, bytes: unseen code reads a range */                          \
	MARK(store, 2, 0) /* address, bytes */                                                     \
	MARK(gap, 2, 1)   /* enum memory_gap, ticks: something is missing here */                  \
	MARK(stamp, 1, 1) /* ticks: what follows began then */                                     \
	MARK(take, 2, 1)  /* object, ticks: a lock that was free is taken (a call "lock") */       \
	MARK(give, 2, 1)  /* object, ticks: a lock is given up (a call "unlock") */
enum memory_mark {
#define MARK(name, slots, ticks) MEMORY_MARK_##name,
	MEMORY_MARKS(MARK)
#undef MARK
		MEMORY_MARK_NR
};
enum memory_gap {
	MEMORY_GAP_MARKER, /* detail was switched off by a marker */
	MEMORY_GAP_LOST,   /* the recorder was too slow, or out of memory */
	MEMORY_GAPS
};

/* Objects of call records that have no address. */
#define MEMORY_OBJECT_CHANNEL(number) ((UINT64_C(1) << 56) + (number))
#define MEMORY_OBJECT_SYSTEM_V(id, number)                                                         \
	((UINT64_C(1) << 57) + ((uint64_t)(id) << 16) + (uint64_t)(number))
/* (Messages of a type, in a queue of System V: there are none before one is sent.) */
#define MEMORY_OBJECT_MESSAGES(id, type)                                                           \
	((UINT64_C(1) << 58) + ((uint64_t)(uint32_t)(id) << 24) + ((uint64_t)(type)&0xffffff))
static inline int memory_object_is_messages(uint64_t object)
{
	return object >> 58 == 1;
}

/* ---- 3. chunks ------------------------------------------------------------------------------- */

/* Version 1 had no marks take and give, a block's first plain slot had a stack address for a
 * neighbour, and contexts learnt from near values, too. Up to version 2 a block's successor was the
 * last one, a slot never followed the word before it, and of that only coded words counted. Up to
 * version 3 a piece's bytes were in one plane, in the order of decoding, END was the end only, and
 * no slot had a recent value. Up to version 4 an access that is both had ticks before, too, or
 * none. Up to version 5 a head's word had no bits. Up to version 6 a block had one
 * successor, the last one, whatever path led to it. All are still read. */
enum { MEMORY_STREAM_VERSION = 7, MEMORY_CHUNK_MAX_BYTES = 1 << 20 };
static inline int memory_stream_known(unsigned version)
{
	return version - 1u < MEMORY_STREAM_VERSION;
}
#define MEMORY_CHUNK_MAGIC 0x534d504cu /* "LPMS" */

enum memory_chunk_type {
	MEMORY_CHUNK_TABLE = 1, /* a part of one module's tables */
	MEMORY_CHUNK_STREAM,    /* a thread's words */
	MEMORY_CHUNK_TYPES
};

/* Every chunk begins so; `bytes` counts all of it. */
struct memory_chunk_head {
	uint32_t magic;
	uint16_t version, type;
	uint32_t bytes;
	uint32_t image; /* number of the program image, from 1 */
	uint32_t pid, tid;
	uint64_t thread;   /* number in the image, from 1; table chunks: 0 */
	uint64_t sequence; /* among the chunks of this thread, from 0 */
	uint64_t first_ticks, last_ticks;
	uint64_t fs_base; /* of the thread */
	uint64_t lost;    /* words that were dropped before this chunk */
	uint32_t tables;  /* image whose tables count: an image made by fork has its parent's */
	uint32_t flags;   /* enum memory_chunk_flag */
};
enum memory_chunk_flag {
	MEMORY_CHUNK_SERIAL = 1, /* one thread ran at a time: pieces do not overlap, and their order
				    is that of all accesses */
	MEMORY_CHUNK_WAITS = 2,  /* then the thread waits for others, or ends: do not wait for it.
				    Only while somebody reads along (memory_ring_head.live) */
	MEMORY_CHUNK_INTERFACE = 4, /* the compiler's own calls said what is accessed (record/
				       target/tsan.c): not all of it, and not in which register */
	MEMORY_CHUNK_EMULATED = 8,  /* a program for another processor, under QEMU (qemu/) */
};

/* A table chunk goes on: struct memory_table_head, then bytes of the section. Sections larger than
 * a chunk come in parts, in order. */
struct memory_table_head {
	uint32_t module;      /* number in the image, from 0: the runtime library's own */
	uint32_t section;     /* enum memory_table_section */
	uint64_t address;     /* where the section is in memory */
	uint64_t bytes;       /* of the whole section */
	uint64_t offset;      /* of this part */
	uint64_t load_bias;   /* mapped minus linked addresses */
	uint32_t first_index; /* of the module's blocks */
	uint32_t flags;       /* enum memory_table_flag */
};
enum memory_table_flag {
	MEMORY_TABLE_IN_PLACE = 1, /* there is no recording code in the code; blocks may overlap */
	MEMORY_TABLE_PLACED = 2,   /* a head's index is its place where raw words point to: from
				      module 0's address on */
};
/* A module is known when its blocks have come: recorders send them last. */
enum memory_table_section {
	MEMORY_TABLE_BLOCKS,
	MEMORY_TABLE_INFO,
	MEMORY_TABLE_PATH, /* of the module's file; address: 0 */
	MEMORY_TABLE_SECTIONS
};

/* A chunk with the next part of a section, of at most `room` bytes. `of` says image, pid, tables,
 * flags, first_ticks; `t` all, its offset being where the part begins, and then where the next one
 * does. For recorders: no libc. */
static inline void memory_table_chunk(uint8_t *chunk, uint64_t room,
	const struct memory_chunk_head *of, struct memory_table_head *t, const void *section)
{
	uint64_t heads = sizeof *of + sizeof *t, part = t->bytes - t->offset;
	part = part < room - heads ? part : room - heads;
	struct memory_chunk_head head = *of;
	head.magic = MEMORY_CHUNK_MAGIC;
	head.version = MEMORY_STREAM_VERSION;
	head.type = MEMORY_CHUNK_TABLE;
	head.bytes = (uint32_t)(heads + part);
	head.sequence = t->module;
	head.last_ticks = head.first_ticks;
	__builtin_memcpy(chunk, &head, sizeof head);
	__builtin_memcpy(chunk + sizeof head, t, sizeof *t);
	__builtin_memcpy(chunk + heads, (const uint8_t *)section + t->offset, part);
	t->offset += part;
}

/*
 * A stream chunk goes on with pieces, each the words of one buffer:
 *	uvarint words, uvarint flags (1: of a signal handler), uvarint begin (ticks since the
 *	chunk's first), uvarint ticks it lasted, uvarint bytes of each plane, then the planes:
 *	like beside like, for zstd's sake.
 * Predictors start afresh with each chunk, the words that copies refer to with each piece. A token:
 * uvarint run << 2 | how; `run` blocks as predicted, then by `how`:
 */
enum memory_plane {
	MEMORY_PLANE_TOKENS,
	MEMORY_PLANE_HOW,   /* of slots: the first bytes */
	MEMORY_PLANE_SLOTS, /* what follows them */
	MEMORY_PLANE_TICKS,
	MEMORY_PLANES
};
enum memory_token {
	MEMORY_TOKEN_SLOTS, /* the predicted block, with slots coded */
	MEMORY_TOKEN_BLOCK, /* uvarint index, then slots coded */
	MEMORY_TOKEN_COPY,  /* uvarint L, uvarint m: m words, each w[i-L] + (w[i-L] - w[i-2L]); m >=
			       2L; whole  blocks */
	MEMORY_TOKEN_END,   /* of the piece; if words are to come, the predicted block, as
			       predicted but for its tick slots */
};
/* Which block is predicted, and what a slot's prediction is, says predict.h. A slot: one byte, how
 * many bytes follow (0-8) | what they are the zigzag difference to << 4. A tick slot is kept to
 * multiples of 2^MEMORY_TICK_SHIFT (reading the clock takes as long; order is kept): uvarint zigzag
 * of the difference to the thread's tick slot before (in the chunk; at first to first_ticks), both
 * shifted. */
enum memory_slot_base {
	MEMORY_SLOT_PREDICTED, /* last + stride, or the neighbour + offset: predict.h; a stack slot:
				  the last stack address + offset */
	MEMORY_SLOT_LAST,      /* of this slot */
	MEMORY_SLOT_NEIGHBOUR, /* the word before of its class: a stack slot's, or a plain one's */
	MEMORY_SLOT_CONTEXT,   /* what is likely after the coded word before: context.h */
	MEMORY_SLOT_RECENT,    /* no difference: a byte that names a recent value (context.h) */
	MEMORY_SLOT_HEAD,      /* no slot: the bits of the head's word, exclusive or the last ones
				  (at first 0), before the slots if they differ. Blocks without
				  slots but for ticks have none. */
	MEMORY_SLOT_BASES
};
enum {
	MEMORY_TICK_SHIFT = 6,
	MEMORY_PIECE_HANDLER = 1,
	MEMORY_PIECE_WORDS = 16 * 1024, /* of a buffer */
	MEMORY_COPY_DISTANCE_MAX = 2048,
	MEMORY_BLOCKS_MAX = 1 << 22, /* of an image */
};

#endif
