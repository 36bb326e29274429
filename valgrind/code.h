/* SPDX-License-Identifier: GPL-2.0-or-later */
/* code.h - what the modes' code for the program is made of: VEX expressions, each in a temporary of
 * the superblock `out`; and whether a store changes what is there. */
#ifndef LONGPOLE_VALGRIND_CODE_H
#define LONGPOLE_VALGRIND_CODE_H

#include "pub_tool_basics.h"

#include "pub_tool_machine.h"
#include "pub_tool_tooliface.h"

static inline IRExpr *code_u64(ULong v)
{
	return IRExpr_Const(IRConst_U64(v));
}

static inline IRExpr *code_assign(IRSB *out, IRType type, IRExpr *e)
{
	IRTemp t = newIRTemp(out->tyenv, type);
	addStmtToIRSB(out, IRStmt_WrTmp(t, e));
	return IRExpr_RdTmp(t);
}

static inline IRExpr *code_unary(IRSB *out, IRType type, IROp op, IRExpr *a)
{
	return code_assign(out, type, IRExpr_Unop(op, a));
}

static inline IRExpr *code_binary(IRSB *out, IRType type, IROp op, IRExpr *a, IRExpr *b)
{
	return code_assign(out, type, IRExpr_Binop(op, a, b));
}

static inline IRExpr *code_load_global(IRSB *out, const void *global)
{
	return code_assign(out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, code_u64((Addr)global)));
}

static inline void code_store_global(IRSB *out, void *global, IRExpr *value)
{
	addStmtToIRSB(out, IRStmt_Store(Iend_LE, code_u64((Addr)global), value));
}

/* I1 from two of them; NULL: true. */
IRExpr *code_both(IRSB *out, IRExpr *a, IRExpr *b);
/* a != b; I1; NULL: of a type that is not compared (integers are). */
IRExpr *code_differ(IRSB *out, IRType type, IRExpr *a, IRExpr *b);
/* Would storing `data` change what is at `address`? I1; NULL: it cannot be said. Before the store;
 * reads what is there. */
IRExpr *code_store_changes(IRSB *out, IRExpr *address, IRExpr *data);
/* The same where the guard says so; what is not stored is not read either, and does not change. */
IRExpr *code_guarded_store_changes(IRSB *out, const IRStoreG *s);
/* Did it store another value? After the statement. I1; NULL: it cannot be said. */
IRExpr *code_cas_changes(IRSB *out, const IRCAS *cas);

#endif
