/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - one instruction of a copy, at its registers: where it may jump, what it touches. */
#ifndef LONGPOLE_DEADLOCK_DECODE_H
#define LONGPOLE_DEADLOCK_DECODE_H

#include "deadlock/ahead/ghost.h"

enum { DEADLOCK_OPERANDS_MAX = 4, DEADLOCK_INSTRUCTION_MAX_BYTES = 15 };

struct deadlock_operand { /* in memory */
	uint64_t address;
	unsigned size_bytes; /* 1, 2, 4 or 8; 0: more */
	bool is_read, is_written;
};

struct deadlock_instruction {
	unsigned length;
	bool is_jump; /* conditional or not; no call, no return */
	bool is_conditional_jump;
	bool is_opaque;  /* it touches memory in a way that is not described here */
	uint64_t target; /* of a conditional jump */
	struct deadlock_operand operand[DEADLOCK_OPERANDS_MAX];
	unsigned nr_operands;
};

/* Of `size` bytes of code at r->rip. False: not an instruction. */
bool deadlock_decode(const uint8_t *code, size_t size, const struct user_regs_struct *r,
	struct deadlock_instruction *ret);
/* The one that the copy is about to execute. */
bool deadlock_decode_next(struct deadlock_ghost *g, struct deadlock_instruction *ret);

#endif
