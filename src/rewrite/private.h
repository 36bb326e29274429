/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - what scan.c (sections, labels, functions), object.c (instructions), block.c (slots of
 * one block) and emit.c (the result) share. */
#ifndef LONGPOLE_REWRITE_PRIVATE_H
#define LONGPOLE_REWRITE_PRIVATE_H

#include "rewrite/att.h"
#include "rewrite/machine.h"
#include "rewrite/rewrite.h"

enum rewrite_label_flag {
	LABEL_REFERENCED = 1, /* a jump, a table or an address mentions it */
	LABEL_PAD = 2,        /* the unwinder enters there */
	LABEL_FUNCTION = 4,
	LABEL_DEFINED = 8,
	LABEL_RESOLVER = 16, /* of an ifunc: runs before anything is set up */
};

enum rewrite_statement_flag {
	STATEMENT_CODE = 1,   /* in a function of a text section */
	STATEMENT_OPAQUE = 2, /* must stay as it is, with its neighbours */
	STATEMENT_TABLE = 4,  /* of a call-site table: its symbol is a landing pad */
};

struct rewrite_place {        /* of a statement */
	uint32_t instruction; /* number, from 1; 0: none */
	uint32_t label;       /* of a label: id */
	uint32_t section;     /* number */
	uint32_t function;    /* 0: none */
	uint8_t flags;        /* enum rewrite_statement_flag */
};

struct rewrite_section {
	struct att_text name, group; /* group: of a COMDAT section; empty: none */
	bool text, debug, table;     /* code; nobody jumps by it; exception tables */
};

struct rewrite_function {
	uint32_t name;  /* label */
	bool borrows;   /* r10 or r11 are the compiler's */
	bool skipped;   /* not to be recorded: an instruction did not decode, a resolver */
	bool has_frame; /* rbp points into it */
};

struct rewrite {
	struct rewrite_options options;
	struct att_file file;
	struct rewrite_place *place; /* by statement */
	struct base_strtab *labels;
	uint8_t *label_flags;     /* by id */
	uint32_t *label_function; /* of a FUNCTION or the label's own; by id */
	size_t flags_capacity, functions_of_capacity;
	struct rewrite_section *section;
	size_t nr_sections, sections_capacity;
	struct rewrite_function *function; /* [0] is none */
	size_t nr_functions, functions_capacity;
	struct machine_instruction *instruction; /* by number; [0] is none */
	uint32_t nr_instructions;
	struct rewrite_counts counts;
};

enum base_status rewrite_scan(struct rewrite *w, struct base_err *err) BASE_MUST_CHECK;
/* false: no such label. */
bool rewrite_find_label(const struct rewrite *w, struct att_text name, uint32_t *ret);

/* ---- one block (block.c) --------------------------------------------------------------------- */

enum { KEYS_MAX = 32 };

/* What a slot is filled with, before which instruction. */
struct rewrite_fill {
	uint32_t slot; /* in order of need; rewrite_block_finish() gives the final number */
	uint8_t kind;  /* enum rewrite_fill_kind */
	uint8_t reg;   /* FILL_REGISTER, FILL_MASK, FILL_VECTOR: which */
	uint8_t mask_kind, vector_bytes;
	struct rewrite_att_memory memory; /* FILL_LEA */
	bool inside_only;                 /* FILL_LEA without the displacement's number */
};
enum rewrite_fill_kind {
	FILL_REGISTER,
	FILL_LEA,
	FILL_MASK,
	FILL_VECTOR,
	/* behind the instruction: */
	FILL_TICKS_AFTER,
	FILL_REGISTER_AFTER
};

struct rewrite_block_access {
	uint8_t instruction;
	struct machine_access machine;
	struct rewrite_att_memory memory;  /* when from_text */
	uint8_t slot, slot2, slot3, ticks; /* in order of need; 255: none */
	int32_t disp;
	bool maybe; /* through the global offset table */
	uint8_t form;
};

struct rewrite_step { /* an instruction of the block */
	uint32_t statement, instruction;
	uint32_t first_fill, nr_fills; /* before and after */
};

struct rewrite_key {
	uint8_t base, index, scale;
	struct att_text symbol;
	int64_t shift; /* what the registers have gained since the slot was filled */
	uint8_t slot;
	bool used;
};

struct rewrite_block {
	struct rewrite_step step[MEMORY_BLOCK_INSTRUCTIONS_MAX];
	struct rewrite_block_access access[MEMORY_BLOCK_ACCESSES_MAX];
	struct rewrite_fill fill[MEMORY_BLOCK_SLOTS_MAX * 2];
	struct rewrite_key key[KEYS_MAX];
	uint8_t slot_class[MEMORY_BLOCK_SLOTS_MAX];  /* 0 plain, 1 stack, 2 ticks */
	uint8_t slot_number[MEMORY_BLOCK_SLOTS_MAX]; /* after rewrite_block_finish() */
	uint32_t nr_steps, nr_accesses, nr_fills, nr_slots, nr_stack, nr_ticks, nr_elements;
	uint16_t mentioned;
	bool has_frame;
};

void rewrite_block_reset(struct rewrite_block *b, bool has_frame);
/* Adds an instruction. false: there is no room; end the block before it. */
bool rewrite_block_add(struct rewrite_block *b, const struct rewrite *w, uint32_t statement,
	uint32_t instruction, uint64_t *unknown);
/* Numbers the slots: stack first, ticks last. */
void rewrite_block_finish(struct rewrite_block *b);

#endif
