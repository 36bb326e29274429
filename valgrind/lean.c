/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lean.c - the program's vector registers in a superblock, written and read as a whole.
 *
 * VEX keeps them in memory, and writes what an instruction says: a scalar double's load is 16 zero
 * bytes, then the low 8. A read of all 16 then waits until both stores have left the processor, as
 * no single one has what is read (a store is forwarded to a load that it contains only). So here a
 * narrow write becomes a whole one, of what the register has then, made in registers; what is
 * known is not read again; and what is written over before anybody looks is not written.
 *
 * Each write that somebody sees stays where it was: at each exit, helper and access that may fail
 * the state is what VEX made it.
 */
#include "lean.h"

#include "code.h"

#include "libvex_guest_amd64.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_mallocfree.h"

enum {
	PART = 16, /* bytes that the host reads at once */
	BEGIN = offsetof(VexGuestAMD64State, guest_YMM0),
	END = offsetof(VexGuestAMD64State, guest_YMM16) + 2 * PART,
	PARTS = (END - BEGIN) / PART,
};

struct lean {
	IRSB *out;
	IRExpr *whole[PARTS]; /* what is there: an atom, V128; NULL: unknown */
	IRExpr **low_of;      /* of a temporary: the V128 whose lower half it is, or NULL */
	UInt nr_temporaries;
};

/* The parts that these bytes of the state are in, from *first on; 0: none. */
static UInt parts_at(Int offset, UInt bytes, UInt *first)
{
	Int from = offset < BEGIN ? BEGIN : offset;
	Int to = offset + (Int)bytes > END ? END : offset + (Int)bytes;
	if (from >= to)
		return 0;
	*first = (UInt)(from - BEGIN) / PART;
	return (UInt)(to - 1 - BEGIN) / PART - *first + 1;
}

static UInt bytes_of(const IRSB *sb, const IRExpr *e)
{
	return (UInt)sizeofIRType(typeOfIRExpr(sb->tyenv, e));
}

static UInt bytes_of_array(const IRRegArray *a)
{
	return (UInt)a->nElems * (UInt)sizeofIRType(a->elemTy);
}

/* ---- forwards: whole writes ------------------------------------------------------------------ */

static void forget(struct lean *l, Int offset, UInt bytes)
{
	UInt first = 0, nr = parts_at(offset, bytes, &first);
	for (UInt i = first; i < first + nr; i++)
		l->whole[i] = NULL;
}

static IRExpr *interleave(struct lean *l, IROp op, IRExpr *high, IRExpr *low)
{
	return code_binary(l->out, Ity_V128, op, high, low);
}

static Bool is_zero(const IRExpr *whole)
{
	return whole->tag == Iex_Const && whole->Iex.Const.con->Ico.V128 == 0;
}

static IRExpr *integer(struct lean *l, IRExpr *value, IRType type)
{
	return type == Ity_F64   ? code_unary(l->out, Ity_I64, Iop_ReinterpF64asI64, value)
	       : type == Ity_F32 ? code_unary(l->out, Ity_I32, Iop_ReinterpF32asI32, value)
				 : value;
}

/* A V128 whose lower half is that of `value`, of 8 bytes. The upper one is 0 when it was made here.
 */
static IRExpr *widened(struct lean *l, IRExpr *value, IRType type, Bool *made)
{
	IRExpr *has = value->tag == Iex_RdTmp && value->Iex.RdTmp.tmp < l->nr_temporaries
			      ? l->low_of[value->Iex.RdTmp.tmp]
			      : NULL;
	*made = !has;
	return has ? has : code_unary(l->out, Ity_V128, Iop_64UtoV128, integer(l, value, type));
}

/* What a part, which was `before`, is after `value` was written to it; NULL: that takes more than
 * the write. */
static IRExpr *after_write(struct lean *l, IRExpr *before, Int offset, IRExpr *value, IRType type)
{
	Bool upper = (offset - BEGIN) % PART != 0, made;
	if (upper && (offset - BEGIN) % PART != PART / 2)
		return NULL;
	if (type == Ity_I32 || type == Ity_F32)
		return upper || !before || !is_zero(before)
			       ? NULL
			       : code_unary(
					 l->out, Ity_V128, Iop_32UtoV128, integer(l, value, type));
	if (type != Ity_I64 && type != Ity_F64)
		return NULL;
	if (!before)
		before = code_assign(
			l->out, Ity_V128, IRExpr_Get(offset - upper * PART / 2, Ity_V128));
	IRExpr *wide = widened(l, value, type, &made);
	if (upper)
		return interleave(l, Iop_InterleaveLO64x2, wide, before);
	if (is_zero(before))
		return made ? wide : interleave(l, Iop_InterleaveLO64x2, before, wide);
	return interleave(
		l, Iop_InterleaveLO64x2, interleave(l, Iop_InterleaveHI64x2, before, before), wide);
}

static void on_put(struct lean *l, IRStmt *st)
{
	Int offset = st->Ist.Put.offset;
	IRExpr *value = st->Ist.Put.data, *whole;
	IRType type = typeOfIRExpr(l->out->tyenv, value);
	UInt bytes = (UInt)sizeofIRType(type), first = 0;
	UInt nr = parts_at(offset, bytes, &first);
	IRExpr **of_part = &l->whole[first];
	Bool is_whole = type == Ity_V128 && (offset - BEGIN) % PART == 0;
	whole = nr != 1 ? NULL : is_whole ? value : after_write(l, *of_part, offset, value, type);
	if (!whole) {
		addStmtToIRSB(l->out, st);
		forget(l, offset, bytes);
		return;
	}
	addStmtToIRSB(l->out, IRStmt_Put(offset - (offset - BEGIN) % PART, whole));
	*of_part = whole;
}

static void on_get(struct lean *l, IRStmt *st)
{
	IRTemp t = st->Ist.WrTmp.tmp;
	Int offset = st->Ist.WrTmp.data->Iex.Get.offset;
	IRType type = st->Ist.WrTmp.data->Iex.Get.ty;
	UInt first = 0, nr = parts_at(offset, (UInt)sizeofIRType(type), &first);
	IRExpr **of_part = &l->whole[first];
	Bool begins = nr == 1 && (offset - BEGIN) % PART == 0;
	if (begins && type == Ity_V128 && *of_part) {
		addStmtToIRSB(l->out, IRStmt_WrTmp(t, *of_part));
		return;
	}
	addStmtToIRSB(l->out, st);
	if (begins && type == Ity_V128)
		*of_part = IRExpr_RdTmp(t);
	else if (begins && (type == Ity_I64 || type == Ity_F64))
		l->low_of[t] = *of_part;
}

static void write_whole(struct lean *l, IRStmt *st)
{
	switch (st->tag) {
	case Ist_Put:
		on_put(l, st);
		return;
	case Ist_WrTmp:
		if (st->Ist.WrTmp.data->tag == Iex_Get) {
			on_get(l, st);
			return;
		}
		break;
	case Ist_PutI: {
		const IRRegArray *to = st->Ist.PutI.details->descr;
		forget(l, to->base, bytes_of_array(to));
		break;
	}
	case Ist_Dirty:
		if (st->Ist.Dirty.details->nFxState)
			forget(l, BEGIN, END - BEGIN);
		break;
	default:
		break;
	}
	addStmtToIRSB(l->out, st);
}

/* ---- backwards: writes that nobody sees ------------------------------------------------------ */

struct unseen {
	Bool part[PARTS]; /* is written before it is looked at */
};

static void seen(struct unseen *u, Int offset, UInt bytes)
{
	UInt first = 0, nr = parts_at(offset, bytes, &first);
	VG_(memset)(&u->part[first], False, nr * sizeof u->part[0]);
}

/* As the program's own instruction does, of which the processor traps. */
static Bool divides(const IRExpr *e)
{
	if (e->tag != Iex_Binop)
		return False;
	switch (e->Iex.Binop.op) {
	case Iop_DivModU64to32:
	case Iop_DivModS64to32:
	case Iop_DivModU128to64:
	case Iop_DivModS128to64:
		return True;
	default:
		return False;
	}
}

static Bool may_fail(const IRStmt *st)
{
	switch (st->tag) {
	case Ist_WrTmp:
		return st->Ist.WrTmp.data->tag == Iex_Load || divides(st->Ist.WrTmp.data);
	case Ist_Store:
	case Ist_StoreG:
	case Ist_LoadG:
	case Ist_CAS:
	case Ist_LLSC:
		return True;
	default:
		return False;
	}
}

/* Is it a write that nobody sees? */
static Bool is_unseen(struct unseen *u, const IRSB *sb, const IRStmt *st)
{
	Int offset = st->Ist.Put.offset;
	UInt bytes = bytes_of(sb, st->Ist.Put.data), first = 0;
	UInt nr = parts_at(offset, bytes, &first);
	Bool all = nr > 0 && offset >= BEGIN && offset + (Int)bytes <= END;
	for (UInt i = first; i < first + nr; i++)
		all &= u->part[i];
	if ((offset - BEGIN) % PART == 0 && bytes % PART == 0)
		VG_(memset)(&u->part[first], True, nr * sizeof u->part[0]);
	return all;
}

static void drop_unseen(IRSB *sb, Bool exact)
{
	struct unseen u = {{False}};
	for (Int i = sb->stmts_used - 1; i >= 0; i--) {
		const IRStmt *st = sb->stmts[i];
		const IRExpr *value = st->tag == Ist_WrTmp ? st->Ist.WrTmp.data : NULL;
		if (st->tag == Ist_Put) {
			if (is_unseen(&u, sb, st))
				sb->stmts[i] = IRStmt_NoOp();
		} else if (value && value->tag == Iex_Get)
			seen(&u, value->Iex.Get.offset, (UInt)sizeofIRType(value->Iex.Get.ty));
		else if (value && value->tag == Iex_GetI)
			seen(&u, value->Iex.GetI.descr->base,
				bytes_of_array(value->Iex.GetI.descr));
		else if (st->tag == Ist_Exit || st->tag == Ist_Dirty || (exact && may_fail(st)))
			seen(&u, BEGIN, END - BEGIN);
	}
}

IRSB *lean(IRSB *in, Bool exact)
{
	struct lean l = {
		.out = deepCopyIRSBExceptStmts(in), .nr_temporaries = (UInt)in->tyenv->types_used};
	l.low_of = VG_(calloc)("longpole.lean", l.nr_temporaries + 1, sizeof(IRExpr *));
	forget(&l, BEGIN, END - BEGIN);
	for (Int i = 0; i < in->stmts_used; i++)
		write_whole(&l, in->stmts[i]);
	VG_(free)(l.low_of);
	drop_unseen(l.out, exact);
	return l.out;
}
