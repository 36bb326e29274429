/* SPDX-License-Identifier: GPL-2.0-or-later */
/* memory_opcode.c - what VEX's code does not say any more: how a block ends, string instructions,
 * which registers an access is for. */
#include "memory.h"

#include "pub_tool_libcbase.h"

struct bytes {
	const UChar *b;
	UInt at, length;
	Bool size16, rep, repne, wide;
	Bool vex;
	UChar map; /* 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a */
};

static Bool is_prefix(UChar b)
{
	return b == 0x66 || b == 0x67 || b == 0xf2 || b == 0xf3 || b == 0xf0 || b == 0x2e ||
	       b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65;
}

static UChar next(struct bytes *z)
{
	return z->at < z->length ? z->b[z->at++] : 0;
}

static void skip_vex(struct bytes *z, Bool three)
{
	UChar payload = next(z);
	z->map = 1;
	if (three) {
		z->map = payload & 3;
		payload = next(z);
		z->wide = payload >> 7;
	}
	z->size16 = (payload & 3) == 1;
	z->rep = (payload & 3) == 2;
	z->repne = (payload & 3) == 3;
	z->vex = True;
}

/* Up to the opcode, which is returned. */
static UChar skip_prefixes(struct bytes *z)
{
	for (; z->at < z->length && is_prefix(z->b[z->at]); z->at++) {
		z->size16 |= z->b[z->at] == 0x66;
		z->rep |= z->b[z->at] == 0xf3;
		z->repne |= z->b[z->at] == 0xf2;
	}
	if (z->at < z->length && (z->b[z->at] & 0xf0) == 0x40)
		z->wide = next(z) >> 3 & 1;
	UChar op = next(z);
	if (op == 0xc5 || op == 0xc4) {
		skip_vex(z, op == 0xc4);
		return next(z);
	}
	if (op != 0x0f)
		return op;
	op = next(z);
	z->map = op == 0x38 ? 2 : op == 0x3a ? 3 : 1;
	return z->map == 1 ? op : next(z);
}

/* ---- how it goes on -------------------------------------------------------------------------- */

static UChar terminator_of(const struct bytes *z, UChar op)
{
	UChar reg = z->at < z->length ? z->b[z->at] >> 3 & 7 : 0;
	if (z->vex)
		return MEMORY_TERM_NONE;
	if (z->map == 1)
		return (op & 0xf0) == 0x80 ? MEMORY_TERM_BRANCH
		       : op == 0x0b        ? MEMORY_TERM_STOP
					   : MEMORY_TERM_NONE;
	if (z->map)
		return MEMORY_TERM_NONE;
	if ((op & 0xf0) == 0x70 || (op >= 0xe0 && op <= 0xe3))
		return MEMORY_TERM_BRANCH;
	switch (op) {
	case 0xe8:
		return MEMORY_TERM_CALL;
	case 0xe9:
	case 0xeb:
		return MEMORY_TERM_JUMP;
	case 0xc2:
	case 0xc3:
		return MEMORY_TERM_RETURN;
	case 0xf4:
		return MEMORY_TERM_STOP;
	case 0xff:
		return reg == 2 || reg == 3   ? MEMORY_TERM_CALL_INDIRECT
		       : reg == 4 || reg == 5 ? MEMORY_TERM_INDIRECT
					      : MEMORY_TERM_NONE;
	default:
		return MEMORY_TERM_NONE;
	}
}

/* ---- strings --------------------------------------------------------------------------------- */

static void string_of(const struct bytes *z, UChar op, struct memory_opcode *ret)
{
	Bool moves = (op & 0xfe) == 0xa4, stores = (op & 0xfe) == 0xaa, loads = (op & 0xfe) == 0xac;
	Bool compares = (op & 0xfe) == 0xa6 || (op & 0xfe) == 0xae;
	if (z->map || z->vex || !(z->rep || z->repne) || !(moves || stores || loads || compares))
		return;
	ret->string = !compares;
	ret->compares = compares;
	ret->loads_rsi = moves || loads;
	ret->stores_rdi = moves || stores;
	ret->element = !(op & 1) ? 1 : z->wide ? 8 : z->size16 ? 2 : 4;
}

/* ---- registers ------------------------------------------------------------------------------- */

static Bool is_vector_map(const struct bytes *z, UChar op)
{
	switch (z->map) {
	case 1:
		return (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2f) ||
		       (op >= 0x50 && op <= 0x7f) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6) ||
		       op >= 0xd0;
	case 2:
		return op < 0xf0;
	case 3:
		return op != 0xf0;
	default:
		return False;
	}
}

/* A scalar: of the instructions with rep and repne prefixes, but those that move vectors. */
static Bool is_scalar(const struct bytes *z, UChar op)
{
	if (z->map != 1)
		return False;
	if (op == 0x2e || op == 0x2f) /* (v)ucomis, (v)comis */
		return True;
	return (z->rep || z->repne) && op != 0x6f && op != 0x7f && op != 0x70 && op != 0xf0 &&
	       op != 0xe6 && op != 0x16 && op != 0x7e;
}

static UChar reg_of(const struct bytes *z, UChar op)
{
	if (!z->map && !z->vex && op >= 0xd8 && op <= 0xdf)
		return MEMORY_REG_FLOAT;
	if (!is_vector_map(z, op))
		return MEMORY_REG_INTEGER;
	return is_scalar(z, op) ? MEMORY_REG_FLOAT : MEMORY_REG_VECTOR;
}

/* bt, bts, btr, btc of a bit that a register names, in a register. */
static Bool is_bit_of_register(const struct bytes *z, UChar op)
{
	return z->map == 1 && !z->vex && (op & 0xe7) == 0xa3 && z->at < z->length &&
	       z->b[z->at] >= 0xc0;
}

/* What no byte of operands says: pop, popf, leave. */
static Bool takes_from_stack(UChar op)
{
	return (op & 0xf8) == 0x58 || op == 0x9d || op == 0xc9;
}

/* Of the opcodes of one byte: is the next byte ModRM? (lea is not among them.) */
static Bool has_operand(UChar op)
{
	if (op < 0x40)
		return (op & 7) < 4;
	switch (op) {
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xf6:
	case 0xf7:
	case 0xfe:
	case 0xff:
		return True;
	default:
		return ((op & 0xf0) == 0x80 && op != 0x8d) || (op & 0xfc) == 0xd0 ||
		       (op & 0xf8) == 0xd8;
	}
}

static Bool is_hint(UChar op)
{
	return op == 0x0d || (op >= 0x18 && op <= 0x1f);
}

static Bool accesses(const struct bytes *z, UChar op)
{
	Bool memory = z->at < z->length && z->b[z->at] < 0xc0;
	if (z->vex || z->map > 1)
		return memory;
	if (z->map)
		return memory && (op & 0xf0) != 0x80 && !is_hint(op);
	return takes_from_stack(op) || (memory && has_operand(op));
}

/* vperm2f128 and vperm2i128 of one half of their operand in memory. */
static UChar half_of(const struct bytes *z, UChar op)
{
	if (!z->vex || z->map != 3 || (op != 0x06 && op != 0x46) || !accesses(z, op))
		return MEMORY_HALF_NONE;
	UChar how = z->b[z->length - 1];
	UInt first = how & 8 ? 0 : how & 3, second = how & 0x80 ? 0 : how >> 4 & 3;
	Bool low = first == 2 || second == 2, high = first == 3 || second == 3;
	return low == high ? MEMORY_HALF_NONE : low ? MEMORY_HALF_LOW : MEMORY_HALF_HIGH;
}

void memory_opcode(const UChar *bytes, UInt length, struct memory_opcode *ret)
{
	struct bytes z = {.b = bytes, .length = length};
	UChar op = skip_prefixes(&z);
	*ret = (struct memory_opcode){.terminator = terminator_of(&z, op), .reg = reg_of(&z, op)};
	string_of(&z, op, ret);
	ret->accesses = accesses(&z, op);
	ret->half = half_of(&z, op);
	ret->of_register = is_bit_of_register(&z, op);
}
