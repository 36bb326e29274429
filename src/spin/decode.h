/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - what an instruction would do to memory and control, given the registers; for
 * bursts of single steps (spin/burst.h). By Zydis. */
#ifndef LONGPOLE_SPIN_DECODE_H
#define LONGPOLE_SPIN_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

enum {
	SPIN_ACCESSES = 4,
	SPIN_CODE_MAX = 15,   /* bytes of an instruction */
	SPIN_ACCESS_MAX = 64, /* bytes; what stores more counts as a change */
	SPIN_NONE = 0xff,
};

struct spin_access {
	bool reads, writes;
	bool push;           /* below the stack pointer */
	uint8_t base, index; /* general registers by number (rax, rcx, rdx, rbx, rsp, ...);
				SPIN_NONE */
	uint8_t scale;
	uint8_t segment; /* 0; 4: fs; 5: gs */
	bool relative;   /* to the next instruction */
	bool narrow;     /* the address has 32 bits */
	uint16_t size_bytes;
	int64_t displacement;
};
struct spin_instruction {
	uint8_t length;
	bool jump; /* a jump or conditional branch; no call, no return */
	bool calls_kernel;
	/* Stepping it would be seen or could harm: it reads or writes the trap flag, enters the
	 * kernel in another way, or traps by itself. */
	bool unfit;
	bool opaque; /* it stores in a way that is not described here */
	uint8_t nr_accesses;
	struct spin_access access[SPIN_ACCESSES];
};

/* False: not an instruction (or cut short). */
bool spin_decode(const uint8_t *code, size_t size_bytes, struct spin_instruction *ret);
/* Where the access goes, if the instruction at regs->rip is about to run. */
uint64_t spin_address(const struct spin_instruction *i, const struct spin_access *a,
	const struct user_regs_struct *regs);
/* The general register of a number. */
uint64_t spin_decoded_register(const struct user_regs_struct *regs, unsigned number);

#endif
