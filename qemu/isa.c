/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * isa.c - tables. Sources: Arm Architecture Reference Manual for A-profile (DDI 0487), C4.1;
 * RISC-V Instruction Set Manual, volume I, chapters "RV32/64G Instruction Set Listings" and "C";
 * Linux, include/uapi/asm-generic/unistd.h.
 */
#include "isa.h"

#include "memory/stream/stream.h"
#include "memory/stream/source.h"

#include <string.h>

#define NR(table) (sizeof(table) / sizeof *(table))

#define END(bytes, mask, value, terminator)                                                        \
	{                                                                                          \
		bytes, mask, value, MEMORY_TERM_##terminator, 0, 0                                 \
	}
#define REG(bytes, mask, value, reg, traits)                                                       \
	{                                                                                          \
		bytes, mask, value, 0, MEMORY_REG_##reg, traits                                    \
	}

static const struct isa_row aarch64_rows[] = {
	END(4, 0xfc000000, 0x14000000, JUMP),              /* b */
	END(4, 0xfc000000, 0x94000000, CALL),              /* bl */
	END(4, 0xff000000, 0x54000000, BRANCH),            /* b.cond, bc.cond */
	END(4, 0x7e000000, 0x34000000, BRANCH),            /* cbz, cbnz */
	END(4, 0x7e000000, 0x36000000, BRANCH),            /* tbz, tbnz */
	END(4, 0xfffffc1f, 0xd61f0000, INDIRECT),          /* br */
	END(4, 0xfefff800, 0xd61f0800, INDIRECT),          /* braa, ... */
	END(4, 0xfffffc1f, 0xd63f0000, CALL_INDIRECT),     /* blr */
	END(4, 0xfefff800, 0xd63f0800, CALL_INDIRECT),     /* blraa, ... */
	END(4, 0xfffffc1f, 0xd65f0000, RETURN),            /* ret */
	END(4, 0xfffff800, 0xd65f0800, RETURN),            /* retaa, retab */
	END(4, 0xffe0001f, 0xd4200000, STOP),              /* brk */
	END(4, 0xffff0000, 0x00000000, STOP),              /* udf */
	REG(4, 0x3ffffc00, 0x38bfc000, INTEGER, 0),        /* ldapr */
	REG(4, 0x3f200c00, 0x38200000, INTEGER, ISA_BOTH), /* ldadd, swp, ... */
	REG(4, 0x3fa07c00, 0x08a07c00, INTEGER, ISA_BOTH), /* cas */
	REG(4, 0xbfa07c00, 0x08207c00, INTEGER, ISA_BOTH), /* casp */
	REG(4, 0xff000000, 0x9c000000, VECTOR, ISA_WIDE),  /* ldr q, literal */
	REG(4, 0xff800000, 0x3c800000, VECTOR, ISA_WIDE),  /* ldr, str q */
	REG(4, 0xff800000, 0x3d800000, VECTOR, ISA_WIDE),
	REG(4, 0xfe000000, 0xac000000, VECTOR, ISA_WIDE), /* ldp, stp q */
	REG(4, 0xbe000000, 0x0c000000, VECTOR, 0),        /* ld1 .. st4 */
	REG(4, 0x0e000000, 0x0c000000, FLOAT, 0),
	REG(4, 0xfe000000, 0x84000000, VECTOR, 0), /* SVE's loads and stores */
	REG(4, 0xfe000000, 0xa4000000, VECTOR, 0),
	REG(4, 0xfe000000, 0xc4000000, VECTOR, 0),
	REG(4, 0xfe000000, 0xe4000000, VECTOR, 0),
};

static const struct isa_row riscv64_rows[] = {
	END(4, 0x00000fff, 0x0000006f, JUMP),              /* j: jal x0 */
	END(4, 0x0000007f, 0x0000006f, CALL),              /* jal */
	END(4, 0x000fffff, 0x00008067, RETURN),            /* ret: jalr x0, ra */
	END(4, 0x000fffff, 0x00028067, RETURN),            /* jalr x0, t0 */
	END(4, 0x00000fff, 0x00000067, INDIRECT),          /* jr */
	END(4, 0x0000007f, 0x00000067, CALL_INDIRECT),     /* jalr */
	END(4, 0x0000007f, 0x00000063, BRANCH),            /* beq, ... */
	END(4, 0xffffffff, 0x00100073, STOP),              /* ebreak */
	END(2, 0xe003, 0xa001, JUMP),                      /* c.j */
	END(2, 0xc003, 0xc001, BRANCH),                    /* c.beqz, c.bnez */
	END(2, 0xffff, 0x8082, RETURN),                    /* c.jr ra */
	END(2, 0xffff, 0x8282, RETURN),                    /* c.jr t0 */
	END(2, 0xffff, 0x9002, STOP),                      /* c.ebreak */
	END(2, 0xf07f, 0x8002, INDIRECT),                  /* c.jr */
	END(2, 0xf07f, 0x9002, CALL_INDIRECT),             /* c.jalr */
	REG(4, 0xf800007f, 0x1000002f, INTEGER, 0),        /* lr */
	REG(4, 0xf800007f, 0x1800002f, INTEGER, 0),        /* sc */
	REG(4, 0x0000007f, 0x0000002f, INTEGER, ISA_BOTH), /* amoadd, ... */
	REG(4, 0x0000705f, 0x00001007, FLOAT, 0),          /* flh, fsh */
	REG(4, 0x0000705f, 0x00002007, FLOAT, 0),          /* flw, fsw */
	REG(4, 0x0000705f, 0x00003007, FLOAT, 0),          /* fld, fsd */
	REG(4, 0x0000705f, 0x00004007, FLOAT, 0),          /* flq, fsq */
	REG(4, 0x0000005f, 0x00000007, VECTOR, 0),         /* vle8.v, ... */
	REG(2, 0xe003, 0x2000, FLOAT, 0),                  /* c.fld */
	REG(2, 0xe003, 0xa000, FLOAT, 0),                  /* c.fsd */
	REG(2, 0xe003, 0x2002, FLOAT, 0),                  /* c.fldsp */
	REG(2, 0xe003, 0xa002, FLOAT, 0),                  /* c.fsdsp */
};

/* Both have Linux's generic numbers. */
static const struct isa_call generic_calls[] = {
	{61, ISA_CALL_STORES, 1},  /* getdents64 */
	{63, ISA_CALL_STORES, 1},  /* read */
	{64, ISA_CALL_LOADS, 1},   /* write */
	{67, ISA_CALL_STORES, 1},  /* pread64 */
	{68, ISA_CALL_LOADS, 1},   /* pwrite64 */
	{93, ISA_CALL_EXIT, 0},    /* exit */
	{206, ISA_CALL_LOADS, 1},  /* sendto */
	{207, ISA_CALL_STORES, 1}, /* recvfrom */
	{215, ISA_CALL_UNMAP, 0},  /* munmap */
	{220, ISA_CALL_CLONE, 0},  /* clone */
	{221, ISA_CALL_EXEC, 0},   /* execve */
	{222, ISA_CALL_MAP, 0},    /* mmap */
	{278, ISA_CALL_STORES, 0}, /* getrandom */
	{281, ISA_CALL_EXEC, 0},   /* execveat */
};

static const struct isa isas[] = {
	{"aarch64", aarch64_rows, NR(aarch64_rows), generic_calls, NR(generic_calls)},
	{"riscv64", riscv64_rows, NR(riscv64_rows), generic_calls, NR(generic_calls)},
};

const struct isa *isa_find(const char *name)
{
	for (size_t i = 0; i < NR(isas); i++)
		if (!strcmp(isas[i].name, name))
			return &isas[i];
	return NULL;
}

const struct isa_row *isa_row_of(const struct isa *isa, const void *bytes, size_t size_bytes)
{
	static const struct isa_row none;
	uint32_t word = 0;
	if (size_bytes > sizeof word)
		return &none;
	memcpy(&word, bytes, size_bytes);
	for (size_t i = 0; i < isa->nr_rows; i++)
		if (isa->row[i].bytes == size_bytes &&
			(word & isa->row[i].mask) == isa->row[i].value)
			return &isa->row[i];
	return &none;
}

const struct isa_call *isa_call_of(const struct isa *isa, int64_t number)
{
	for (size_t i = 0; i < isa->nr_calls; i++)
		if (isa->call[i].number == number)
			return &isa->call[i];
	return NULL;
}
