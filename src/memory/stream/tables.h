/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - the tables of a recorded program (stream.h, 1): its basic blocks, from table chunks.
 *
 * Code addresses are those that the code would have without recording code: the blocks of a module
 * in their order, without what was put between them, procedures aligned to 16 bytes. Where there is
 * none (MEMORY_TABLE_IN_PLACE), they are what they are.
 */
#ifndef LONGPOLE_MEMORY_TABLES_H
#define LONGPOLE_MEMORY_TABLES_H

#include "memory/stream/stream.h"
#include "memory/stream/source.h"

enum { MEMORY_NO_SLOT = 255, MEMORY_HEAD_SLOT = 254 /* bits in the head's word */ };

struct memory_table_access {
	uint8_t instruction; /* in the block */
	uint8_t direction, reg, form, size;
	uint8_t slot, slot2, slot3, before, after;
	uint8_t elements, index_bytes, scale;
	uint32_t bytes; /* RANGE */
	int64_t disp;   /* STATIC and ABSOLUTE: the address itself */
};

/* Was the clock read at it? */
static inline bool memory_access_stamped(const struct memory_table_access *a)
{
	return a->direction == MEMORY_ACCESS_BOTH && a->after != MEMORY_NO_SLOT;
}

static inline uint8_t memory_item_kind_of(unsigned direction)
{
	return direction == MEMORY_ACCESS_BOTH    ? MEMORY_ATOMIC
	       : direction == MEMORY_ACCESS_STORE ? MEMORY_STORE
						  : MEMORY_LOAD;
}

struct memory_table_block {
	uint64_t address, end; /* code, as said above */
	uint64_t linked;       /* of the first instruction, in the module's file */
	uint64_t last;         /* of the last instruction, like address */
	uint32_t first_access, nr_accesses;
	uint32_t first_instruction;    /* into instruction[]: offset of each from address */
	uint32_t first_item, nr_items; /* the template of its items; nr_items 0: not simple */
	uint16_t nr_instructions;
	uint16_t module;
	uint16_t stack_bytes; /* that accesses by its first slot touch, if that is a stack address:
				 from there on */
	uint8_t nr_slots, nr_stack, flags;
	uint8_t nr_ticks : 4, terminator : 4;
	uint8_t silent; /* slot that says which stores were; MEMORY_HEAD_SLOT: its head's bits;
			   MEMORY_NO_SLOT: none does */
	uint8_t exists : 1;
	uint8_t in_place : 1; /* the index after its own is not of the code after its own */
};
_Static_assert(sizeof(struct memory_table_block) == 64, "a line of a cache: most come at random");
_Static_assert(MEMORY_TERMINATORS <= 16, "four bits");

struct memory_table_module {
	char *path; /* NULL: not known */
	uint64_t load_bias;
	uint32_t first_index, nr_blocks;
};

struct memory_tables {
	uint32_t image;
	struct memory_table_block *block; /* by index; [0] is none */
	uint32_t nr_blocks;
	uint32_t *slot_base; /* by index */
	uint64_t nr_slots;
	struct memory_table_access *access;
	size_t nr_accesses, accesses_capacity;
	uint32_t *instruction; /* offsets from the block's address */
	size_t nr_instructions, instructions_capacity;
	uint32_t *linked; /* of the same instructions: offsets from the block's linked address */
	size_t linked_capacity;
	struct memory_item *item; /* templates: BLOCK, then its accesses */
	uint8_t *item_slot;       /* of each: which slot its address is relative to; 255: none */
	size_t nr_items, items_capacity, item_slots_capacity;
	struct memory_table_module *module;
	size_t nr_modules;
	bool has_silent;      /* some block says which stores were */
	uint32_t *by_address; /* indices of blocks in the order of address */
	size_t nr_by_address;
	size_t blocks_capacity, slot_bases_capacity, by_address_capacity, modules_capacity;
};

/* Collects table chunks, in any order, then makes the tables. */
struct memory_tables_builder;
struct memory_tables_builder *memory_tables_begin(uint32_t image); /* NULL: no memory */
/* A whole table chunk, head and all. ERR_CORRUPT: makes no sense. */
enum base_status memory_tables_add(struct memory_tables_builder *b, const uint8_t *chunk,
	size_t size_bytes, struct base_err *err) BASE_MUST_CHECK;
/* What has come since the last time and is whole becomes blocks; for tables that grow while they
 * are used (live.c). *ret is empty at first. Not with ERR statuses: then *ret is empty again. */
enum base_status memory_tables_extend(struct memory_tables_builder *b, unsigned level,
	struct memory_tables *ret, struct base_err *err) BASE_MUST_CHECK;
/* Extends, and always frees b. level: of the recording; below 3 the templates have no BLOCKs. */
enum base_status memory_tables_end(struct memory_tables_builder *b, unsigned level,
	struct memory_tables *ret, struct base_err *err) BASE_MUST_CHECK;
void memory_tables_free(struct memory_tables_builder *b); /* NULL-safe */
void memory_tables_fini(struct memory_tables *t);

/* The call instruction behind which the program really goes on at `returns_to`, as code addresses
 * are here; 0: not of a block. */
uint64_t memory_tables_call(const struct memory_tables *t, uint64_t returns_to);
/* Where an address is in a module's file: struct memory_source_ops.linked. */
bool memory_tables_place(const struct memory_tables *t, uint64_t address, bool code,
	size_t candidate, struct memory_linked *ret);

#endif
