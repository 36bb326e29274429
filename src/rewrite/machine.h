/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - what an instruction does: accesses, registers, control. Knowledge is Zydis's, from
 * the bytes that the assembler made; nothing here reads text. Private to rewrite.
 */
#ifndef LONGPOLE_REWRITE_MACHINE_H
#define LONGPOLE_REWRITE_MACHINE_H

#include "base/base.h"
#include "memory/stream/stream.h"

enum {
	MACHINE_RAX,
	MACHINE_RCX,
	MACHINE_RDX,
	MACHINE_RBX,
	MACHINE_RSP,
	MACHINE_RBP,
	MACHINE_RSI,
	MACHINE_RDI,
	MACHINE_R8,
	MACHINE_R9,
	MACHINE_R10,
	MACHINE_R11,
	MACHINE_GPRS = 16,
	MACHINE_NONE = 255
};
enum { MACHINE_ACCESSES_MAX = 3, MACHINE_BYTES_MAX = 15 };

struct machine_access {
	uint8_t direction; /* enum memory_access_direction */
	uint8_t reg;       /* enum memory_register's numbers */
	uint8_t form;      /* SLOT, STRING, STRING_LEFT, RANGE, MASKED, PACKED, VECTOR */
	uint8_t base,
		index; /* general registers; MACHINE_NONE; index of VECTOR: the vector's number */
	uint8_t scale;
	uint8_t elements, index_bytes, vector_bytes; /* MASKED, PACKED, VECTOR */
	uint8_t mask;      /* number of the mask register, or of the vector that is the mask */
	uint8_t mask_kind; /* enum machine_mask */
	bool fs, rip;      /* relative to it */
	bool from_text;    /* an operand of the statement; else base + disp say it all */
	int32_t disp;
	uint32_t size; /* bytes of it, or of one element */
};
enum machine_mask {
	MACHINE_MASK_NONE,
	MACHINE_MASK_K,
	MACHINE_MASK_PS,
	MACHINE_MASK_PD,
	MACHINE_MASK_PS_Y,
	MACHINE_MASK_PD_Y
};

enum machine_flag {
	MACHINE_STAMP = 1, /* an indivisible access */
	MACHINE_ENDBR = 2,
	MACHINE_UNKNOWN = 4,    /* accesses memory in a way that is not understood */
	MACHINE_POP_MEMORY = 8, /* its operand's rsp is the one after the pop */
	MACHINE_ADJUSTS = 16,   /* adds a known number to a register */
};
struct machine_instruction {
	uint8_t length, terminator, flags;
	uint8_t nr_accesses;
	uint8_t adjusted;            /* register: written, but by + adjustment */
	uint8_t disp_at;             /* of a pc-relative operand */
	uint16_t mentioned, written; /* a bit a general register */
	int32_t adjustment;
	uint8_t bytes[MACHINE_BYTES_MAX];
	struct machine_access access[MACHINE_ACCESSES_MAX];
};

/* Decodes one instruction at p. false: no instruction. */
bool rewrite_decode(const uint8_t *p, size_t size_bytes, struct machine_instruction *ret);

extern const char *const rewrite_register_name[MACHINE_GPRS]; /* "rax" */

#endif
