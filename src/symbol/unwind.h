/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind.h - who called whom, from registers and a piece of the stack, by what compilers write into
 * .eh_frame: no frame pointers are needed. x86-64 only: elsewhere nothing is known.
 *
 * What is read is the file's alone; a rule is worked out once an address. Nothing is trusted:
 * memory outside of the piece is unknown, and so is what depends on it.
 */
#ifndef LONGPOLE_SYMBOL_UNWIND_H
#define LONGPOLE_SYMBOL_UNWIND_H

#include "base/base.h"

enum { /* DWARF's numbers */
	SYMBOL_REGISTER_RBP = 6,
	SYMBOL_REGISTER_RSP = 7,
	SYMBOL_REGISTER_RIP = 16,
	SYMBOL_REGISTERS_NR = 17
};

struct symbol_frame_state {
	uint64_t value[SYMBOL_REGISTERS_NR];
	uint32_t known;       /* bits of those that have a value */
	bool is_return;       /* rip is where a call returns to */
	const uint8_t *stack; /* the piece: borrowed */
	uint64_t stack_begin; /* its first byte's address */
	size_t stack_bytes;
};

enum symbol_unwound {
	SYMBOL_UNWOUND_nothing,   /* the code is not described, or depends on what is not known */
	SYMBOL_UNWOUND_outermost, /* nobody called it */
	SYMBOL_UNWOUND_caller     /* the state is now the caller's */
};

struct symbol_unwinder; /* one ELF file */
/* NULL: it cannot be read, or has no .eh_frame. */
struct symbol_unwinder *symbol_unwinder_open(const char *path);
struct symbol_unwinder *symbol_unwinder_close(struct symbol_unwinder *u); /* NULL-safe */
/* From a frame to its caller's. bias: addresses less it are as linked. */
enum symbol_unwound symbol_unwinder_step(
	struct symbol_unwinder *u, uint64_t bias, struct symbol_frame_state *s);
/* The same by the frame pointer, where code is not described. */
enum symbol_unwound symbol_unwind_by_pointer(struct symbol_frame_state *s);

#endif
