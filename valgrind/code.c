/* SPDX-License-Identifier: GPL-2.0-or-later */
/* code.c - does a store change memory? */
#include "code.h"

IRExpr *code_both(IRSB *out, IRExpr *a, IRExpr *b)
{
	if (!a || !b)
		return a ? a : b;
	IRExpr *wide = code_binary(out, Ity_I64, Iop_And64, code_unary(out, Ity_I64, Iop_1Uto64, a),
		code_unary(out, Ity_I64, Iop_1Uto64, b));
	return code_unary(out, Ity_I1, Iop_64to1, wide);
}

IRExpr *code_differ(IRSB *out, IRType type, IRExpr *a, IRExpr *b)
{
	static const struct {
		IRType type;
		IROp op;
	} plain[] = {{Ity_I64, Iop_CmpNE64}, {Ity_I32, Iop_CmpNE32}, {Ity_I16, Iop_CmpNE16},
		{Ity_I8, Iop_CmpNE8}};
	for (UInt i = 0; i < sizeof plain / sizeof *plain; i++)
		if (plain[i].type == type)
			return code_binary(out, Ity_I1, plain[i].op, a, b);
	return NULL;
}

/* The same type in memory, of parts that code_differ() knows; and the part i of a value. */
static UInt parts_of(IRType type, IRType *ret)
{
	*ret = type == Ity_F32 ? Ity_I32
	       : type == Ity_F64 || type == Ity_V128 || type == Ity_V256 || type == Ity_I128
		       ? Ity_I64
		       : type;
	return type == Ity_V256 ? 4 : type == Ity_V128 || type == Ity_I128 ? 2 : 1;
}

static IRExpr *part_of(IRSB *out, IRType type, IRExpr *value, UInt i)
{
	static const IROp of_v256[] = {
		Iop_V256to64_0, Iop_V256to64_1, Iop_V256to64_2, Iop_V256to64_3};
	switch (type) {
	case Ity_F32:
		return code_unary(out, Ity_I32, Iop_ReinterpF32asI32, value);
	case Ity_F64:
		return code_unary(out, Ity_I64, Iop_ReinterpF64asI64, value);
	case Ity_V128:
		return code_unary(out, Ity_I64, i ? Iop_V128HIto64 : Iop_V128to64, value);
	case Ity_I128:
		return code_unary(out, Ity_I64, i ? Iop_128HIto64 : Iop_128to64, value);
	case Ity_V256:
		return code_unary(out, Ity_I64, of_v256[i], value);
	default:
		return value;
	}
}

IRExpr *code_store_changes(IRSB *out, IRExpr *address, IRExpr *data)
{
	IRType part_type, type = typeOfIRExpr(out->tyenv, data);
	UInt nr = parts_of(type, &part_type);
	UInt size = (UInt)sizeofIRType(part_type);
	IRExpr *any = NULL;
	for (UInt i = 0; i < nr; i++) {
		IRExpr *at = i ? code_binary(out, Ity_I64, Iop_Add64, address, code_u64(i * size))
			       : address;
		IRExpr *old = code_assign(out, part_type, IRExpr_Load(Iend_LE, part_type, at));
		IRExpr *one = code_differ(out, part_type, old, part_of(out, type, data, i));
		if (!one)
			return NULL;
		one = code_unary(out, Ity_I64, Iop_1Uto64, one);
		any = any ? code_binary(out, Ity_I64, Iop_Or64, any, one) : one;
	}
	return code_unary(out, Ity_I1, Iop_64to1, any);
}

IRExpr *code_guarded_store_changes(IRSB *out, const IRStoreG *s)
{
	IRType type = typeOfIRExpr(out->tyenv, s->data);
	if (type != Ity_I32 && type != Ity_I64)
		return NULL;
	IRTemp old = newIRTemp(out->tyenv, type);
	addStmtToIRSB(out, IRStmt_LoadG(Iend_LE, type == Ity_I32 ? ILGop_Ident32 : ILGop_Ident64,
				   old, s->addr, s->data, s->guard));
	return code_differ(out, type, IRExpr_RdTmp(old), s->data);
}

IRExpr *code_cas_changes(IRSB *out, const IRCAS *cas)
{
	/* It stored if it found what it expected; that changed something if the new value is
	 * another. */
	IRType type = typeOfIRExpr(out->tyenv, cas->dataLo);
	IRExpr *found = code_differ(out, type, IRExpr_RdTmp(cas->oldLo), cas->expdLo);
	IRExpr *changes = code_differ(out, type, cas->dataLo, cas->expdLo);
	if (!found || !changes)
		return NULL;
	found = code_unary(out, Ity_I1, Iop_Not1, found);
	if (cas->dataHi) {
		IRExpr *high = code_differ(out, type, IRExpr_RdTmp(cas->oldHi), cas->expdHi);
		IRExpr *other = code_differ(out, type, cas->dataHi, cas->expdHi);
		found = code_both(out, found, code_unary(out, Ity_I1, Iop_Not1, high));
		other = code_binary(out, Ity_I64, Iop_Or64,
			code_unary(out, Ity_I64, Iop_1Uto64, other),
			code_unary(out, Ity_I64, Iop_1Uto64, changes));
		changes = code_unary(out, Ity_I1, Iop_64to1, other);
	}
	return code_both(out, found, changes);
}
