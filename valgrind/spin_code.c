/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spin_code.c - what is put into the program's code: a count of instructions, a look at each store
 * whether it changes memory, a call at backward branches. */
#include "code.h"
#include "spin.h"

#include "libvex_guest_offsets.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"

struct code { /* a superblock in the making */
	IRSB *out;
	Addr pc;     /* of the instruction */
	UInt length; /* and its bytes */
	UInt nr;     /* instructions that were not counted yet */
	UInt marked; /* of them: in the range that is counted apart */
};

static IRExpr *stack_pointer(struct code *c)
{
	return code_assign(c->out, Ity_I64, IRExpr_Get(OFFSET_amd64_RSP, Ity_I64));
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void add_to(struct code *c, ULong *global, UInt *nr)
{
	if (!*nr)
		return;
	IRExpr *n = code_binary(
		c->out, Ity_I64, Iop_Add64, code_load_global(c->out, global), code_u64(*nr));
	addStmtToIRSB(c->out, IRStmt_Store(Iend_LE, code_u64((Addr)global), n));
	*nr = 0;
}

static void count(struct code *c)
{
	add_to(c, &spin_hot.instructions, &c->nr);
	add_to(c, &spin_hot.marked, &c->marked);
}

static Bool is_marked(Addr pc)
{
	return pc >= spin_run.marked_from && pc < spin_run.marked_to;
}

/* Is it a jump? VEX makes loops inside of other instructions, too: string instructions, atomic
 * ones. */
static Bool is_jump(Addr pc, UInt length)
{
	const UChar *b = (const UChar *)pc;
	UInt i = 0;
	while (i < length && (b[i] == 0x2e || b[i] == 0x3e || b[i] == 0xf2 || b[i] == 0xf3 ||
				     b[i] == 0x66 || b[i] == 0x67 || (b[i] & 0xf0) == 0x40))
		i++;
	if (i + 1 >= length)
		return False;
	if (b[i] == 0x0f)
		return (b[i + 1] & 0xf0) == 0x80;
	if (b[i] == 0xff) /* jmp by register or memory */
		return (b[i + 1] >> 3 & 7) == 4;
	return (b[i] & 0xf0) == 0x70 || (b[i] >= 0xe0 && b[i] <= 0xe3) || b[i] == 0xe9 ||
	       b[i] == 0xeb;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void call(struct code *c, const HChar *name, void *function, UInt nr_regs, IRExpr **args,
	IRExpr *guard)
{
	IRDirty *d = unsafeIRDirty_0_N((Int)nr_regs, name, VG_(fnptr_to_fnentry)(function), args);
	if (guard)
		d->guard = guard;
	addStmtToIRSB(c->out, IRStmt_Dirty(d));
}

static void on_load(struct code *c, IRExpr *address, UInt size, IRExpr *guard)
{
	IRExpr *tracking =
		code_unary(c->out, Ity_I1, Iop_64to1, code_load_global(c->out, &spin_hot.tracking));
	call(c, "spin_on_load", spin_on_load, 3,
		mkIRExprVec_3(address, stack_pointer(c), code_u64(size)),
		code_both(c->out, tracking, guard));
}

/* Memory changes if `differs` (I1; NULL: we cannot say, so yes). */
static void on_store(struct code *c, IRExpr *address, UInt size, IRExpr *differs)
{
	IRExpr *wide = differs ? code_unary(c->out, Ity_I64, Iop_1Uto64, differs) : code_u64(1);
	IRExpr *changed = code_load_global(c->out, &spin_hot.changed);
	changed = code_binary(c->out, Ity_I64, Iop_Or64, changed, wide);
	addStmtToIRSB(c->out, IRStmt_Store(Iend_LE, code_u64((Addr)&spin_hot.changed), changed));
	/* Is it one whose writers we want to know, or do we look at all? */
	IRExpr *at = code_binary(c->out, Ity_I64, Iop_And64,
		code_binary(c->out, Ity_I64, Iop_Shr64, address, IRExpr_Const(IRConst_U8(3))),
		code_u64(FILTER_BYTES - 1));
	at = code_binary(c->out, Ity_I64, Iop_Add64, at, code_u64((Addr)spin_filter));
	IRExpr *watched = code_assign(c->out, Ity_I8, IRExpr_Load(Iend_LE, Ity_I8, at));
	IRExpr *look = code_binary(c->out, Ity_I64, Iop_Or64,
		code_unary(c->out, Ity_I64, Iop_8Uto64, watched),
		code_load_global(c->out, &spin_hot.tracking));
	look = code_binary(c->out, Ity_I64, Iop_And64, look, wide);
	call(c, "spin_on_change", spin_on_change, 3,
		mkIRExprVec_3(
			address, stack_pointer(c), code_u64(c->pc | (ULong)size << SIZE_SHIFT)),
		code_unary(c->out, Ity_I1, Iop_64to1, look));
}

static void on_guarded_store(struct code *c, const IRStoreG *s)
{
	IRExpr *differs = code_guarded_store_changes(c->out, s);
	on_store(c, s->addr, (UInt)sizeofIRType(typeOfIRExpr(c->out->tyenv, s->data)),
		code_both(c->out, differs, s->guard));
}

static void on_guarded_load(struct code *c, const IRLoadG *l)
{
	IRType to, from;
	typeOfIRLoadGOp(l->cvt, &to, &from);
	on_load(c, l->addr, (UInt)sizeofIRType(from), l->guard);
}

static void on_cas(struct code *c, IRStmt *statement)
{
	const IRCAS *cas = statement->Ist.CAS.details;
	UInt size = (UInt)sizeofIRType(typeOfIRExpr(c->out->tyenv, cas->dataLo));
	size *= cas->dataHi ? 2 : 1;
	on_load(c, cas->addr, size, NULL);
	addStmtToIRSB(c->out, statement);
	on_store(c, cas->addr, size, code_cas_changes(c->out, cas));
}

static void on_helper(struct code *c, const IRDirty *d)
{
	if (d->mFx == Ifx_Read || d->mFx == Ifx_Modify)
		on_load(c, d->mAddr, (UInt)d->mSize, d->guard);
	if (d->mFx == Ifx_Write || d->mFx == Ifx_Modify)
		on_store(c, d->mAddr, (UInt)d->mSize, d->guard);
}

/* ---- backward branches ----------------------------------------------------------------------- */

static void on_branch(struct code *c, IRExpr *target, IRExpr *guard)
{
	IRExpr **args = mkIRExprVec_3(IRExpr_GSPTR(), code_u64(c->pc), target);
	IRDirty *d = unsafeIRDirty_0_N(
		3, "spin_on_branch", VG_(fnptr_to_fnentry)((void *)spin_on_branch), args);
	if (guard)
		d->guard = guard;
	/* All registers must be where the helper looks. */
	VG_(memset)(&d->fxState, 0, sizeof d->fxState);
	d->nFxState = 1;
	d->fxState[0].fx = Ifx_Read;
	d->fxState[0].offset = OFFSET_amd64_RAX;
	d->fxState[0].size =
		(UShort)(offsetof(VexGuestAMD64State, guest_IP_AT_SYSCALL) - OFFSET_amd64_RAX);
	addStmtToIRSB(c->out, IRStmt_Dirty(d));
}

static void on_exit(struct code *c, IRStmt *s)
{
	Addr target = s->Ist.Exit.dst->Ico.U64;
	Bool jump = is_jump(c->pc, c->length);
	Bool backward = s->Ist.Exit.jk == Ijk_Boring && target <= c->pc && jump;
	/* An instruction that is begun again, as VEX does with atomic and string ones, is one. */
	Bool again = target == c->pc && !jump;
	UInt marked = again && is_marked(c->pc);
	c->nr -= again;
	c->marked -= marked;
	count(c);
	c->nr += again;
	c->marked += marked;
	if (backward) {
		on_branch(c, code_u64(target), s->Ist.Exit.guard);
		IRExpr *yields = code_unary(
			c->out, Ity_I1, Iop_64to1, code_load_global(c->out, &spin_hot.yields));
		addStmtToIRSB(c->out, IRStmt_Exit(code_both(c->out, yields, s->Ist.Exit.guard),
					      Ijk_Yield, s->Ist.Exit.dst, s->Ist.Exit.offsIP));
	}
	addStmtToIRSB(c->out, s);
}

static void on_end(struct code *c)
{
	IRExpr *next = c->out->next;
	Bool jump = is_jump(c->pc, c->length);
	Bool constant = next->tag == Iex_Const;
	Addr target = constant ? next->Iex.Const.con->Ico.U64 : 0;
	if (constant && target == c->pc && !jump && c->nr) {
		c->nr--;
		c->marked -= is_marked(c->pc);
	}
	count(c);
	if (c->out->jumpkind != Ijk_Boring || !jump)
		return;
	if (constant && target <= c->pc) {
		on_branch(c, code_u64(target), NULL);
		addStmtToIRSB(
			c->out, IRStmt_Exit(code_unary(c->out, Ity_I1, Iop_64to1,
						    code_load_global(c->out, &spin_hot.yields)),
					Ijk_Yield, next->Iex.Const.con, c->out->offsIP));
	} else if (!constant) {
		IRExpr *back = code_binary(c->out, Ity_I1, Iop_CmpLE64U, next, code_u64(c->pc));
		on_branch(c, next, back);
	}
}

static void on_statement(struct code *c, IRStmt *s)
{
	switch (s->tag) {
	case Ist_IMark:
		c->pc = s->Ist.IMark.addr;
		c->length = s->Ist.IMark.len;
		c->nr++;
		c->marked += is_marked(c->pc);
		break;
	case Ist_WrTmp:
		if (s->Ist.WrTmp.data->tag == Iex_Load)
			on_load(c, s->Ist.WrTmp.data->Iex.Load.addr,
				(UInt)sizeofIRType(s->Ist.WrTmp.data->Iex.Load.ty), NULL);
		break;
	case Ist_LoadG:
		on_guarded_load(c, s->Ist.LoadG.details);
		break;
	case Ist_Store:
		on_store(c, s->Ist.Store.addr,
			(UInt)sizeofIRType(typeOfIRExpr(c->out->tyenv, s->Ist.Store.data)),
			code_store_changes(c->out, s->Ist.Store.addr, s->Ist.Store.data));
		break;
	case Ist_StoreG:
		on_guarded_store(c, s->Ist.StoreG.details);
		break;
	case Ist_CAS:
		on_cas(c, s);
		return;
	case Ist_Dirty:
		on_helper(c, s->Ist.Dirty.details);
		break;
	case Ist_Exit:
		on_exit(c, s);
		return;
	default:
		break;
	}
	addStmtToIRSB(c->out, s);
}

IRSB *spin_instrument(IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents)
{
	(void)extents;
	(void)layout;
	struct code c = {.out = deepCopyIRSBExceptStmts(in)};
	Int i = 0;
	/* (what comes before the first instruction is Valgrind's own) */
	while (i < in->stmts_used && in->stmts[i]->tag != Ist_IMark)
		addStmtToIRSB(c.out, in->stmts[i++]);
	for (; i < in->stmts_used; i++)
		if (in->stmts[i])
			on_statement(&c, in->stmts[i]);
	on_end(&c);
	return c.out;
}

/* ---- the mode -------------------------------------------------------------------------------- */

/* LO-HI, hexadecimal. */
static Bool set_marked(const HChar *range)
{
	HChar *end;
	spin_run.marked_from = VG_(strtoull16)(range, &end);
	if (*end == '-')
		spin_run.marked_to = VG_(strtoull16)(end + 1, &end);
	if (*end)
		VG_(fmsg_bad_option)(range, "--marked: not LO-HI\n");
	return True;
}

static Bool option(const HChar *arg)
{
	const HChar *range = NULL;
	if (VG_STR_CLO(arg, "--marked", range))
		return set_marked(range);
	return VG_BINT_CLO(arg, "--sdt", spin_run.nr_sdt, 1, SPIN_SDT_MAX) ||
	       VG_BINT_CLO(arg, "--rub", spin_run.nr_rub, 1, SPIN_RUB_MAX) ||
	       VG_BINT_CLO(arg, "--yield-after", spin_run.yield_after, 0, 1000000000);
}

static void usage(void)
{
	VG_(printf)
	("      --sdt=N                 entries of the spin detection table [16]\n"
	 "      --rub=N                 entries of the register update buffer [64]\n"
	 "      --yield-after=N         a loop that spun N times yields; 0: never [8]\n"
	 "      --marked=LO-HI          count the instructions at these addresses apart\n");
}

const struct mode mode_spin = {
	.name = "spin",
	.about = "which loops only wait",
	.option = option,
	.usage = usage,
	.begin = spin_begin,
	.instrument = spin_instrument,
	.switched_to = spin_switched_to,
	.created = spin_created,
	.called_kernel = spin_called_kernel,
	.signalled = spin_signalled,
	.end = spin_write,
};
