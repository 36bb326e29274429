/* SPDX-License-Identifier: GPL-2.0-or-later */
/* isa.h - what is told from an instruction's bits, and the system calls, of each processor. */
#ifndef LONGPOLE_QEMU_ISA_H
#define LONGPOLE_QEMU_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum isa_trait {
	ISA_BOTH = 1, /* loads and stores, indivisibly */
	ISA_WIDE = 2, /* QEMU's two accesses of 8 bytes are one of 16 */
};
/* The first row whose mask and value an instruction of that size has. */
struct isa_row {
	uint8_t bytes;
	uint32_t mask, value;
	uint8_t terminator; /* enum memory_terminator */
	uint8_t reg;        /* enum memory_register; UNKNOWN: integer */
	uint8_t traits;
};

enum isa_call_kind {
	ISA_CALL_STORES, /* the kernel writes result bytes to `buffer` */
	ISA_CALL_LOADS,  /* the kernel reads result bytes from `buffer` */
	ISA_CALL_MAP,    /* result: address; argument 1: bytes */
	ISA_CALL_UNMAP,  /* argument 0: address; argument 1: bytes */
	ISA_CALL_CLONE,  /* argument 0: flags; result: the thread */
	ISA_CALL_EXIT,   /* of the thread */
	ISA_CALL_EXEC,   /* of another program: nothing of us is left */
};
struct isa_call {
	int64_t number;
	enum isa_call_kind kind;
	uint8_t buffer; /* argument */
};

struct isa {
	const char *name; /* QEMU's */
	const struct isa_row *row;
	size_t nr_rows;
	const struct isa_call *call;
	size_t nr_calls;
};
const struct isa *isa_find(const char *name); /* NULL: none */
/* Never NULL: of others nothing is known. */
const struct isa_row *isa_row_of(const struct isa *isa, const void *bytes, size_t size_bytes);
const struct isa_call *isa_call_of(const struct isa *isa, int64_t number); /* NULL: no matter */

#endif
