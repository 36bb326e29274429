/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory_code.c - a superblock's blocks, and the code that records them.
 *
 * A block ends where the superblock may be left: at each exit, at its end. First all blocks are
 * planned, with the words that each statement has to write before it; then the code is made. An
 * address that differs by a constant from one that has a slot (VEX's temporaries are assigned once)
 * needs none.
 */
#include "code.h"
#include "lean.h"
#include "memory.h"

#include "libvex_guest_amd64.h"
#include "libvex_guest_offsets.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"

enum {
	BLOCKS_MAX = 256, /* of a superblock */
	WORDS_MAX = MEMORY_SUPERBLOCK_WORDS - BLOCKS_MAX,
	SLOTS_CLOSE = 100, /* a block with so many is closed at the next instruction */
	ACCESSES_CLOSE = 160,
	STORES_CLOSE = 56,
	COMPUTED_MAX = 256, /* values of a superblock that are told apart */
	NO_SLOT = 255,
	WORD = 8,
	DISP_MAX = 0x7fffffff - 16,
	HALF = 16, /* bytes of a vector register of 32 */
};

struct origin { /* of a temporary: another one and a constant */
	IRTemp base;
	Long disp;
	Bool stack; /* base is the stack pointer */
};
struct computed { /* a value, by what it is computed from: a constant has no base */
	IROp op;
	struct origin of[2];
	IRTemp first; /* that has it */
};
struct access {
	UChar instruction, direction, form, size, slot, slot2, reg;
	Int disp;
	UInt bytes;
};
struct word { /* to be written before a statement */
	Int statement;
	UInt block;
	UChar slot;
	IRExpr *value; /* I64; I1 when narrow */
	Bool narrow;
	Bool silent, after; /* of the statement, a store: does it leave what is there? `after` it */
	UInt store;         /* its number in the block */
	Int get; /* offset of a register in the guest's state, instead of a value; 0: none */
	UInt plus;
};
struct planned {
	Int statement; /* before which it begins */
	struct memory_block *block;
	Bool string;
};

/* The superblock in the making. */
static struct {
	IRSB *in;
	struct origin *origin;
	UInt origins;
	struct computed computed[COMPUTED_MAX];
	UInt nr_computed;
	struct planned block[BLOCKS_MAX];
	UInt nr_blocks;
	struct word word[WORDS_MAX];
	UInt nr_words;
	/* the instruction */
	Addr pc;
	UInt length;
	struct memory_opcode op;
	Bool in_block, string_done;
	/* the block that is open */
	Bool open;
	Int begins;
	Addr code, end;
	UInt nr_instructions, nr_accesses, nr_stores, nr_slots, first_word;
	UChar length_of[MEMORY_BLOCK_INSTRUCTIONS_MAX];
	struct access access[MEMORY_BLOCK_ACCESSES_MAX];
	struct {
		IRTemp base;
		Long disp;
		UChar slot;
	} known[MEMORY_BLOCK_SLOTS_MAX];
	UInt nr_known;
	Int stack_slot;    /* -1: none */
	Bool compares;     /* some stores with what they change */
	UChar silent_slot; /* for more than the head's word has bits for */
} s;

/* ---- one block ------------------------------------------------------------------------------- */

static UInt put_u32(UChar *p, UInt v)
{
	VG_(memcpy)(p, &v, sizeof v);
	return sizeof v;
}

static UInt put_access(UChar *p, const struct access *a)
{
	UInt n = 0;
	p[n++] = a->instruction;
	p[n++] = (UChar)(a->direction | a->reg << 2 | a->form << 4);
	p[n++] = a->size;
	p[n++] = a->slot;
	n += put_u32(p + n, (UInt)a->disp);
	if (a->direction == MEMORY_ACCESS_BOTH) {
		p[n++] = NO_SLOT; /* no time stamps: pieces are in order */
		p[n++] = NO_SLOT;
	}
	if (a->form == MEMORY_FORM_STRING || a->form == MEMORY_FORM_MASKED)
		p[n++] = a->slot2;
	if (a->form == MEMORY_FORM_MASKED)
		p[n++] = 1;
	if (a->form == MEMORY_FORM_RANGE)
		n += put_u32(p + n, a->bytes);
	return n;
}

/* Slots of stack addresses come first. */
static void stack_first(void)
{
	UChar from = (UChar)s.stack_slot;
	if (s.stack_slot <= 0)
		return;
	for (UInt i = 0; i < s.nr_accesses; i++) {
		struct access *a = &s.access[i];
		a->slot = a->slot == from ? 0 : a->slot == 0 ? from : a->slot;
		a->slot2 = a->slot2 == from ? 0 : a->slot2 == 0 ? from : a->slot2;
	}
	for (UInt i = s.first_word; i < s.nr_words; i++) {
		struct word *w = &s.word[i];
		w->slot = w->slot == from ? 0 : w->slot == 0 ? from : w->slot;
	}
	s.silent_slot = s.silent_slot == from ? 0 : s.silent_slot == 0 ? from : s.silent_slot;
}

/* All bits of a block are in one place. (A head's word has them beside slots only.) */
static void silent_together(void)
{
	if (s.compares && !s.nr_slots)
		s.silent_slot = (UChar)s.nr_slots++;
	for (UInt i = s.first_word; i < s.nr_words; i++)
		if (s.word[i].silent)
			s.word[i].slot = s.silent_slot;
}

static Bool is_entry(Addr code)
{
	const HChar *name;
	return VG_(get_fnname_if_entry)(VG_(current_DiEpoch)(), code, &name);
}

static void close_block(void)
{
	static UChar info[MEMORY_INFO_MAX_BYTES];
	UInt n = 0;
	if (!s.open)
		return;
	s.open = False;
	stack_first();
	silent_together();
	info[n++] = (UChar)s.nr_instructions;
	info[n++] = (UChar)(s.nr_accesses + s.compares);
	for (UInt i = 0; i < s.nr_instructions; i++) {
		info[n++] = s.length_of[i];
		info[n++] = 0;
	}
	if (s.compares)
		n += put_access(info + n,
			&(struct access){.form = MEMORY_FORM_SILENT, .slot = s.silent_slot});
	for (UInt i = 0; i < s.nr_accesses; i++)
		n += put_access(info + n, &s.access[i]);
	tl_assert(n <= sizeof info && s.nr_blocks < BLOCKS_MAX);
	struct memory_block_head head = {.nr_slots = (UChar)s.nr_slots,
		.nr_stack = s.stack_slot >= 0,
		.flags = is_entry(s.code) ? MEMORY_BLOCK_ENTRY : 0,
		.terminator = s.op.terminator};
	s.block[s.nr_blocks++] = (struct planned){.statement = s.begins,
		.block = memory_block_of(s.code, &head, info, n),
		.string = s.op.string};
}

static void add_instruction(void)
{
	if (s.length)
		s.length_of[s.nr_instructions++] = (UChar)s.length;
	s.end = s.pc + s.length;
	s.in_block = True;
}

static void open_block(Int statement)
{
	s.open = True;
	s.begins = statement;
	s.code = s.pc;
	s.nr_instructions = s.nr_accesses = s.nr_stores = s.nr_slots = s.nr_known = 0;
	s.compares = False;
	s.silent_slot = NO_SLOT;
	s.first_word = s.nr_words;
	s.stack_slot = -1;
	add_instruction();
}

static struct word *new_slot(Int statement, UChar *ret)
{
	tl_assert(s.nr_slots < MEMORY_BLOCK_SLOTS_MAX && s.nr_words < WORDS_MAX);
	*ret = (UChar)s.nr_slots++;
	s.word[s.nr_words] =
		(struct word){.statement = statement, .block = s.nr_blocks, .slot = *ret};
	return &s.word[s.nr_words++];
}

static struct access *new_access(UInt direction)
{
	tl_assert(s.nr_accesses < MEMORY_BLOCK_ACCESSES_MAX);
	struct access *a = &s.access[s.nr_accesses++];
	*a = (struct access){.instruction = (UChar)(s.nr_instructions - 1),
		.direction = (UChar)direction,
		.slot = NO_SLOT,
		.slot2 = NO_SLOT,
		.reg = s.op.reg};
	return a;
}

/* ---- accesses -------------------------------------------------------------------------------- */

/* Where the address is, in the access; a new slot when it follows from none. */
static void locate(struct access *a, Int statement, IRExpr *address)
{
	a->form = MEMORY_FORM_SLOT;
	if (address->tag == Iex_Const) {
		ULong v = address->Iex.Const.con->Ico.U64;
		if (v >> 32) {
			new_slot(statement, &a->slot)->value = address;
			return;
		}
		a->form = MEMORY_FORM_ABSOLUTE;
		a->disp = (Int)(UInt)v;
		return;
	}
	struct origin o = s.origin[address->Iex.RdTmp.tmp];
	for (UInt i = 0; i < s.nr_known; i++) {
		Long disp = o.disp - s.known[i].disp;
		if (s.known[i].base != o.base || disp > DISP_MAX || disp < -(Long)DISP_MAX)
			continue;
		a->slot = s.known[i].slot;
		a->disp = (Int)disp;
		return;
	}
	new_slot(statement, &a->slot)->value = address;
	s.known[s.nr_known].base = o.base;
	s.known[s.nr_known].disp = o.disp;
	s.known[s.nr_known++].slot = a->slot;
	if (o.stack && s.stack_slot < 0)
		s.stack_slot = a->slot;
}

static void add_string_access(UInt direction, Int statement, Int reg, UInt done)
{
	struct access *a = new_access(direction);
	a->form = MEMORY_FORM_STRING;
	a->size = s.op.element;
	new_slot(statement, &a->slot)->get = reg;
	struct word *count = new_slot(statement, &a->slot2);
	count->get = OFFSET_amd64_RCX;
	count->plus = done;
}

/* A repeated string instruction: all of it where it begins, or goes on; see make_block(). `done`:
 * how many of its elements rcx does not have any more. */
static void add_string(Int statement, UInt done)
{
	open_block(statement);
	if (s.op.loads_rsi)
		add_string_access(MEMORY_ACCESS_LOAD, statement, OFFSET_amd64_RSI, done);
	if (s.op.stores_rdi)
		add_string_access(MEMORY_ACCESS_STORE, statement, OFFSET_amd64_RDI, done);
	close_block();
	s.string_done = True;
}

/* Indivisible instructions load before they compare and exchange: one access. */
static Bool becomes_both(const struct access *both)
{
	for (UInt i = s.nr_accesses - 1; i-- > 0;) {
		struct access *a = &s.access[i];
		if (a->instruction != both->instruction || a->direction != MEMORY_ACCESS_LOAD)
			continue;
		if (a->form == both->form && a->slot == both->slot && a->disp == both->disp) {
			a->direction = MEMORY_ACCESS_BOTH;
			a->size = both->size;
			return True;
		}
	}
	return False;
}

/* VEX loads a fused multiplication's operand element by element: one access. */
static Bool widens_last(const struct access *a)
{
	if (s.nr_accesses < 2 || a->direction != MEMORY_ACCESS_LOAD)
		return False;
	struct access *last = &s.access[s.nr_accesses - 2];
	if (last->instruction != a->instruction || last->direction != MEMORY_ACCESS_LOAD ||
		last->form != a->form || last->slot != a->slot ||
		(Long)last->disp + last->size != a->disp ||
		last->size + a->size > MEMORY_ACCESS_MAX_BYTES)
		return False;
	last->size = (UChar)(last->size + a->size);
	return True;
}

/* A store that can be told from its old value; of others the bit stays 0. */
static void add_silent(Int statement, UInt store)
{
	IRStmtTag tag = s.in->stmts[statement]->tag;
	if (store >= 64 || (tag != Ist_Store && tag != Ist_StoreG && tag != Ist_CAS))
		return;
	s.compares = True;
	if (store >= MEMORY_WORD_BITS && s.silent_slot == NO_SLOT) {
		if (s.nr_slots == MEMORY_BLOCK_SLOTS_MAX)
			return;
		s.silent_slot = (UChar)s.nr_slots++;
	}
	tl_assert(s.nr_words < WORDS_MAX);
	s.word[s.nr_words++] = (struct word){.statement = statement,
		.block = s.nr_blocks,
		.slot = NO_SLOT, /* silent_together() */
		.silent = True,
		.after = tag == Ist_CAS,
		.store = store};
}

static void add_access(UInt direction, Int statement, IRExpr *address, UInt size, IRExpr *guard)
{
	if (s.op.string && !s.string_done) /* (VEX knows the count, so there was no exit) */
		add_string(statement, 1);
	if (s.op.string || s.op.of_register || !s.pc)
		return;
	if (!s.open)
		open_block(statement);
	if (!s.nr_instructions)
		return;
	struct access *a = new_access(direction);
	a->size = (UChar)size;
	if (s.op.reg == MEMORY_REG_VECTOR && size < 4)
		a->reg = MEMORY_REG_INTEGER;
	locate(a, statement, address);
	if (s.op.half != MEMORY_HALF_NONE && size == HALF) {
		a->size = 2 * HALF;
		a->disp -= s.op.half == MEMORY_HALF_HIGH ? HALF : 0;
	}
	if (direction != MEMORY_ACCESS_LOAD)
		add_silent(statement, s.nr_stores++);
	if ((direction == MEMORY_ACCESS_BOTH && becomes_both(a)) || (!guard && widens_last(a))) {
		s.nr_accesses--;
		return;
	}
	if (size > MEMORY_ACCESS_MAX_BYTES || (guard && guard->tag != Iex_Const)) {
		if (a->form == MEMORY_FORM_ABSOLUTE) { /* these forms have a slot */
			new_slot(statement, &a->slot)->value = address;
			a->disp = 0;
		}
		a->form = size > MEMORY_ACCESS_MAX_BYTES ? MEMORY_FORM_RANGE : MEMORY_FORM_MASKED;
		a->bytes = size;
		a->size = size > MEMORY_ACCESS_MAX_BYTES ? 0 : a->size;
	}
	if (a->form == MEMORY_FORM_MASKED) {
		struct word *w = new_slot(statement, &a->slot2);
		w->value = guard;
		w->narrow = True;
	}
}

/* ---- planning -------------------------------------------------------------------------------- */

static void on_instruction(Int statement, const IRStmt *st)
{
	if (st->Ist.IMark.addr != s.end || s.nr_slots > SLOTS_CLOSE ||
		s.nr_accesses > ACCESSES_CLOSE || s.nr_stores > STORES_CLOSE ||
		s.nr_instructions == MEMORY_BLOCK_INSTRUCTIONS_MAX)
		close_block();
	struct memory_opcode op;
	memory_opcode((const UChar *)st->Ist.IMark.addr, st->Ist.IMark.len, &op);
	if (op.string || op.compares)
		close_block();
	/* (VEX unrolls loops, of string instructions, too: the same one again goes on) */
	s.string_done = op.string && st->Ist.IMark.addr == s.pc;
	s.op = op;
	s.pc = st->Ist.IMark.addr;
	s.length = st->Ist.IMark.len;
	s.in_block = False;
	if (op.string || op.compares)
		return;
	if (s.open)
		add_instruction();
	else
		open_block(statement);
}

/* Where an instruction itself fails, it is a signal that ends the block: memory_signalled(). */
static Bool is_fault(const IRStmt *st)
{
	switch (st->Ist.Exit.jk) {
	case Ijk_SigILL:
	case Ijk_SigTRAP:
	case Ijk_SigSEGV:
	case Ijk_SigBUS:
	case Ijk_SigFPE:
	case Ijk_SigFPE_IntDiv:
	case Ijk_SigFPE_IntOvf:
		return True;
	default:
		return False;
	}
}

static struct origin origin_of(const IRExpr *e)
{
	if (e->tag == Iex_RdTmp)
		return s.origin[e->Iex.RdTmp.tmp];
	const IRConst *c = e->Iex.Const.con;
	return (struct origin){
		.base = IRTemp_INVALID, .disp = (Long)(c->tag == Ico_U64 ? c->Ico.U64 : c->Ico.U8)};
}

static Bool is_atom(const IRExpr *e)
{
	return e->tag == Iex_RdTmp ||
	       (e->tag == Iex_Const &&
		       (e->Iex.Const.con->tag == Ico_U64 || e->Iex.Const.con->tag == Ico_U8));
}

static Bool same_origin(const struct origin *a, const struct origin *b)
{
	return a->base == b->base && a->disp == b->disp;
}

/* The first temporary of the superblock that was computed so; `t` when none was. */
static IRTemp first_computed(IRTemp t, IROp op, struct origin a, struct origin b)
{
	for (UInt i = 0; i < s.nr_computed; i++) {
		const struct computed *c = &s.computed[i];
		if (c->op == op && same_origin(&c->of[0], &a) && same_origin(&c->of[1], &b))
			return c->first;
	}
	if (s.nr_computed < COMPUTED_MAX)
		s.computed[s.nr_computed++] = (struct computed){op, {a, b}, t};
	return t;
}

/* What addresses are made of: two instructions that compute the same are seen to. */
static struct origin computed(IRTemp t, const IRExpr *e)
{
	const struct origin none = {.base = IRTemp_INVALID};
	if (e->tag == Iex_Unop && is_atom(e->Iex.Unop.arg) &&
		(e->Iex.Unop.op == Iop_64to32 || e->Iex.Unop.op == Iop_32Uto64 ||
			e->Iex.Unop.op == Iop_32Sto64))
		return (struct origin){.base = first_computed(t, e->Iex.Unop.op,
					       origin_of(e->Iex.Unop.arg), none)};
	if (e->tag != Iex_Binop || !is_atom(e->Iex.Binop.arg1) || !is_atom(e->Iex.Binop.arg2))
		return (struct origin){.base = t};
	struct origin a = origin_of(e->Iex.Binop.arg1), b = origin_of(e->Iex.Binop.arg2);
	IROp op = e->Iex.Binop.op;
	if (op == Iop_Shl64 || op == Iop_Mul64)
		return (struct origin){.base = first_computed(t, op, a, b)};
	if (op != Iop_Add64 && op != Iop_Sub64)
		return (struct origin){.base = t};
	if (op == Iop_Add64 && a.base > b.base) { /* (so constants come last) */
		struct origin swap = a;
		a = b;
		b = swap;
	}
	ULong disp =
		op == Iop_Add64 ? (ULong)a.disp + (ULong)b.disp : (ULong)a.disp - (ULong)b.disp;
	if (b.base == IRTemp_INVALID) {
		a.disp = (Long)disp;
		return a;
	}
	a.disp = b.disp = 0;
	a.stack = b.stack = False;
	/* Here the first temporary stands for the sum without constants. */
	return (struct origin){.base = first_computed(t, op, a, b), .disp = (Long)disp};
}

static void on_value(const IRStmt *st)
{
	IRTemp t = st->Ist.WrTmp.tmp;
	const IRExpr *e = st->Ist.WrTmp.data;
	if (e->tag == Iex_RdTmp)
		s.origin[t] = s.origin[e->Iex.RdTmp.tmp];
	else if (e->tag == Iex_Get)
		s.origin[t] = (struct origin){.base = t,
			.stack = e->Iex.Get.offset == OFFSET_amd64_RSP && e->Iex.Get.ty == Ity_I64};
	else
		s.origin[t] = computed(t, e);
}

static void on_exit(Int statement, const IRStmt *st)
{
	if (is_fault(st))
		return;
	if (s.op.string && !s.string_done)
		add_string(statement, 0);
	close_block();
}

static void on_helper(Int statement, const IRDirty *d)
{
	UInt size = (UInt)d->mSize;
	if (d->mFx == Ifx_Read || d->mFx == Ifx_Modify)
		add_access(MEMORY_ACCESS_LOAD, statement, d->mAddr, size, d->guard);
	if (d->mFx == Ifx_Write || d->mFx == Ifx_Modify)
		add_access(MEMORY_ACCESS_STORE, statement, d->mAddr, size, d->guard);
}

static void on_cas(Int statement, const IRCAS *cas)
{
	UInt size = (UInt)sizeofIRType(typeOfIRExpr(s.in->tyenv, cas->dataLo));
	add_access(MEMORY_ACCESS_BOTH, statement, cas->addr, size * (cas->dataHi ? 2 : 1), NULL);
}

static void plan_statement(Int i, const IRStmt *st)
{
	IRType to, from;
	switch (st->tag) {
	case Ist_IMark:
		on_instruction(i, st);
		break;
	case Ist_WrTmp:
		on_value(st);
		if (st->Ist.WrTmp.data->tag == Iex_Load)
			add_access(MEMORY_ACCESS_LOAD, i, st->Ist.WrTmp.data->Iex.Load.addr,
				(UInt)sizeofIRType(st->Ist.WrTmp.data->Iex.Load.ty), NULL);
		break;
	case Ist_LoadG:
		typeOfIRLoadGOp(st->Ist.LoadG.details->cvt, &to, &from);
		s.origin[st->Ist.LoadG.details->dst] =
			(struct origin){.base = st->Ist.LoadG.details->dst};
		add_access(MEMORY_ACCESS_LOAD, i, st->Ist.LoadG.details->addr,
			(UInt)sizeofIRType(from), st->Ist.LoadG.details->guard);
		break;
	case Ist_Store:
		add_access(MEMORY_ACCESS_STORE, i, st->Ist.Store.addr,
			(UInt)sizeofIRType(typeOfIRExpr(s.in->tyenv, st->Ist.Store.data)), NULL);
		break;
	case Ist_StoreG:
		add_access(MEMORY_ACCESS_STORE, i, st->Ist.StoreG.details->addr,
			(UInt)sizeofIRType(typeOfIRExpr(s.in->tyenv, st->Ist.StoreG.details->data)),
			st->Ist.StoreG.details->guard);
		break;
	case Ist_CAS:
		on_cas(i, st->Ist.CAS.details);
		break;
	case Ist_Dirty:
		on_helper(i, st->Ist.Dirty.details);
		break;
	case Ist_Exit:
		on_exit(i, st);
		break;
	default:
		break;
	}
}

static void plan(IRSB *in)
{
	UInt nr = (UInt)in->tyenv->types_used;
	if (nr > s.origins) {
		VG_(free)(s.origin);
		s.origin = VG_(malloc)("longpole.origins", nr * sizeof *s.origin);
		s.origins = nr;
	}
	for (UInt i = 0; i < nr; i++)
		s.origin[i] = (struct origin){.base = i};
	s.in = in;
	s.nr_blocks = s.nr_words = s.nr_computed = 0;
	s.pc = s.end = 0;
	s.open = s.string_done = False;
	VG_(memset)(&s.op, 0, sizeof s.op);
	for (Int i = 0; i < in->stmts_used; i++)
		if (in->stmts[i])
			plan_statement(i, in->stmts[i]);
	close_block();
}

/* ---- making it ------------------------------------------------------------------------------- */

struct code {
	IRSB *out;
	IRExpr *next; /* the buffer's next word, as of `used` words ago */
	UInt used;
	UInt block, word; /* planned, not made yet */
	UInt base;        /* of the last block's words, from `next` */
	IRExpr *silent;   /* I64: of the last block's stores so far; NULL: of none */
};

static IRExpr *word_at(struct code *c, UInt n)
{
	return n ? code_assign(c->out, Ity_I64,
			   IRExpr_Binop(Iop_Add64, c->next, code_u64((ULong)n * WORD)))
		 : c->next;
}

static void make_block(struct code *c, const struct planned *p)
{
	if (!p->block)
		return;
	UInt words = 1u + p->block->head->nr_slots;
	c->base = c->used;
	c->silent = NULL;
	addStmtToIRSB(
		c->out, IRStmt_Store(Iend_LE, word_at(c, c->used), code_u64((Addr)p->block->head)));
	c->used += words;
	if (!p->string) {
		code_store_global(c->out, &memory_hot.next, word_at(c, c->used));
		return;
	}
	/* Each of its iterations comes here; only the first counts. */
	IRExpr *goes_on = code_assign(c->out, Ity_I1,
		IRExpr_Binop(Iop_CmpEQ64, code_load_global(c->out, &memory_hot.string),
			code_u64(p->block->code)));
	IRExpr *after = code_assign(
		c->out, Ity_I64, IRExpr_ITE(goes_on, word_at(c, c->base), word_at(c, c->used)));
	code_store_global(c->out, &memory_hot.next, after);
	code_store_global(c->out, &memory_hot.string, code_u64(0));
}

/* The block's bits with those of one store more. */
static IRExpr *make_silent(struct code *c, const struct word *w)
{
	const IRStmt *st = s.in->stmts[w->statement];
	IRExpr *changes =
		st->tag == Ist_CAS ? code_cas_changes(c->out, st->Ist.CAS.details)
		: st->tag == Ist_StoreG
			? code_guarded_store_changes(c->out, st->Ist.StoreG.details)
			: code_store_changes(c->out, st->Ist.Store.addr, st->Ist.Store.data);
	if (!changes)
		return c->silent ? c->silent : code_u64(0);
	IRExpr *bit = code_unary(
		c->out, Ity_I64, Iop_1Uto64, code_unary(c->out, Ity_I1, Iop_Not1, changes));
	if (w->store)
		bit = code_binary(
			c->out, Ity_I64, Iop_Shl64, bit, IRExpr_Const(IRConst_U8((UChar)w->store)));
	return c->silent ? code_binary(c->out, Ity_I64, Iop_Or64, c->silent, bit) : bit;
}

/* In the head's word. */
static void make_bits(struct code *c)
{
	IRExpr *at = code_binary(c->out, Ity_I64, Iop_Add64, c->next,
		code_u64((ULong)c->base * WORD + MEMORY_WORD_SHIFT / 8));
	addStmtToIRSB(c->out,
		IRStmt_Store(Iend_LE, at, code_unary(c->out, Ity_I16, Iop_64to16, c->silent)));
}

static void make_word(struct code *c, const struct word *w)
{
	IRExpr *value = w->value;
	if (!s.block[w->block].block)
		return;
	if (w->silent)
		value = c->silent = make_silent(c, w);
	if (w->silent && w->slot == NO_SLOT) {
		make_bits(c);
		return;
	}
	if (w->get)
		value = code_assign(c->out, Ity_I64, IRExpr_Get(w->get, Ity_I64));
	if (w->plus)
		value = code_assign(
			c->out, Ity_I64, IRExpr_Binop(Iop_Add64, value, code_u64(w->plus)));
	if (w->narrow)
		value = code_assign(c->out, Ity_I64, IRExpr_Unop(Iop_1Uto64, value));
	addStmtToIRSB(c->out, IRStmt_Store(Iend_LE, word_at(c, c->base + 1 + w->slot), value));
}

static void make_before(struct code *c, Int statement)
{
	const struct planned *string = NULL;
	while (c->block < s.nr_blocks && s.block[c->block].statement <= statement) {
		string = s.block[c->block].string ? &s.block[c->block] : NULL;
		make_block(c, &s.block[c->block++]);
	}
	while (c->word < s.nr_words && s.word[c->word].statement <= statement &&
		!s.word[c->word].after)
		make_word(c, &s.word[c->word++]);
	if (string && string->block) { /* its words may stay or not */
		c->next = code_load_global(c->out, &memory_hot.next);
		c->used = 0;
	}
}

static void check_room(struct code *c)
{
	IRExpr *full = code_assign(c->out, Ity_I1,
		IRExpr_Binop(Iop_CmpLT64U, code_load_global(c->out, &memory_hot.limit),
			code_load_global(c->out, &memory_hot.next)));
	IRDirty *d = unsafeIRDirty_0_N(0, "memory_on_full",
		VG_(fnptr_to_fnentry)((void *)memory_on_full), mkIRExprVec_0());
	d->guard = full;
	addStmtToIRSB(c->out, IRStmt_Dirty(d));
	c->next = code_load_global(c->out, &memory_hot.next);
}

static Bool is_of_files(const VexGuestExtents *extents)
{
	for (UInt i = 0; i < extents->n_used; i++) {
		const NSegment *from = VG_(am_find_nsegment)(extents->base[i]);
		if (!from || from->kind != SkFileC)
			return False;
	}
	return True;
}

/* Does the program see all registers where an access fails? As VEX decides it by the recorder's
 * options: of code that is of no file, and of all since it has a handler. */
static Bool is_exact(const VexGuestExtents *extents)
{
	return VG_(clo_px_file_backed) != VexRegUpdUnwindregsAtMemAccess || !is_of_files(extents);
}

/* ---- loads that VEX drops -------------------------------------------------------------------- */

/* VEX drops a load whose value nobody uses (a "pop" that only moves the stack pointer), unless it
 * keeps what each instruction writes to a register, which costs time. So only what lacks a load is
 * translated like that: instead of it comes code that has itself discarded and translated again.
 * (Of code that is of no file VEX cannot be told.) */
/* INVALID: the superblock that comes was translated as usual */
static VexRegisterUpdates usually_kept = VexRegUpd_INVALID;

static Bool may_access(const IRStmt *st)
{
	switch (st->tag) {
	case Ist_WrTmp:
		return st->Ist.WrTmp.data->tag == Iex_Load;
	case Ist_LoadG:
	case Ist_Store:
	case Ist_StoreG:
	case Ist_CAS:
	case Ist_LLSC:
	case Ist_Dirty:
		return True;
	default:
		return False;
	}
}

static Bool lacks_load(const IRSB *in)
{
	struct memory_opcode op = {0};
	for (Int i = 0; i < in->stmts_used; i++) {
		const IRStmt *st = in->stmts[i];
		if (st->tag != Ist_IMark) {
			op.accesses = op.accesses && !may_access(st);
			continue;
		}
		if (op.accesses)
			break;
		memory_opcode((const UChar *)st->Ist.IMark.addr, st->Ist.IMark.len, &op);
	}
	return op.accesses;
}

/* The next translation is of what this code goes on with: itself. */
static IRSB *again(const IRSB *in, Addr code)
{
	IRSB *out = deepCopyIRSBExceptStmts(in);
	addStmtToIRSB(out, IRStmt_Put(offsetof(VexGuestAMD64State, guest_CMSTART), code_u64(code)));
	addStmtToIRSB(out, IRStmt_Put(offsetof(VexGuestAMD64State, guest_CMLEN), code_u64(1)));
	out->next = code_u64(code);
	out->jumpkind = Ijk_InvalICache;
	usually_kept = VG_(clo_px_file_backed);
	VG_(clo_px_file_backed) = VexRegUpdAllregsAtEachInsn;
	return out;
}

IRSB *memory_instrument(IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents)
{
	(void)layout;
	if (usually_kept != VexRegUpd_INVALID) {
		VG_(clo_px_file_backed) = usually_kept;
		usually_kept = VexRegUpd_INVALID;
	} else if (is_of_files(extents) && lacks_load(in)) {
		return again(in, extents->base[0]);
	}
	in = lean(in, is_exact(extents));
	plan(in);
	struct code c = {.out = deepCopyIRSBExceptStmts(in)};
	Int i = 0;
	/* (what comes before the first instruction is Valgrind's own) */
	while (i < in->stmts_used && in->stmts[i]->tag != Ist_IMark)
		addStmtToIRSB(c.out, in->stmts[i++]);
	if (i < in->stmts_used)
		memory_heap_begin_code(c.out, in->stmts[i]->Ist.IMark.addr);
	if (s.nr_blocks)
		check_room(&c);
	for (; i < in->stmts_used; i++) {
		if (!in->stmts[i])
			continue;
		make_before(&c, i);
		addStmtToIRSB(c.out, in->stmts[i]);
		while (c.word < s.nr_words && s.word[c.word].statement == i)
			make_word(&c, &s.word[c.word++]);
	}
	const IRExpr *next = in->next;
	if (s.op.string && next->tag == Iex_Const && next->Iex.Const.con->Ico.U64 == s.pc)
		code_store_global(c.out, &memory_hot.string, code_u64(s.pc));
	memory_heap_end_code(c.out);
	return c.out;
}

/* ---- a block that was left halfway ----------------------------------------------------------- */

struct memory_block *memory_block_before(const struct memory_block *b, Addr address)
{
	static UChar info[MEMORY_INFO_MAX_BYTES];
	UInt nr = b->info[0], keep = 0, n, to;
	Addr at = b->code;
	while (keep < nr && at < address)
		at += b->info[2 + 2 * keep++];
	if (!keep)
		return NULL;
	if (keep == nr)
		return (struct memory_block *)(UWord)b;
	info[0] = (UChar)keep;
	info[1] = 0;
	VG_(memcpy)(info + 2, b->info + 2, 2 * keep);
	to = 2 + 2 * keep;
	n = 2 + 2 * nr;
	while (n < b->info_bytes && b->info[n] < keep) {
		UInt form = b->info[n + 1] >> 4, size = 8;
		size += (b->info[n + 1] & 3) == MEMORY_ACCESS_BOTH ? 2 : 0;
		size += form == MEMORY_FORM_MASKED   ? 2
			: form == MEMORY_FORM_STRING ? 1
			: form == MEMORY_FORM_RANGE  ? 4
						     : 0;
		VG_(memcpy)(info + to, b->info + n, size);
		to += size;
		n += size;
		info[1]++;
	}
	struct memory_block_head head = *b->head;
	head.index = 0;
	head.terminator = MEMORY_TERM_NONE;
	return memory_block_of(b->code, &head, info, to);
}

/* ---- the mode -------------------------------------------------------------------------------- */

static Bool option(const HChar *arg)
{
	const HChar *ring = NULL;
	if (VG_STR_CLO(arg, "--ring", ring))
		return memory_set_ring(ring);
	return False;
}

static void usage(void)
{
	VG_(printf)
	("      --ring=FILE             the recorder's shared memory (`longpole record`)\n");
}

const struct mode mode_memory = {
	.name = "memory",
	.about = "every instruction and access, for `longpole record --recorder=valgrind`",
	.no_lines = True,
	.option = option,
	.usage = usage,
	.begin = memory_begin,
	.instrument = memory_instrument,
	.switched_to = memory_switched_to,
	.created = memory_created,
	.exits = memory_exits,
	.accessed = memory_accessed,
	.calls_kernel = memory_calls_kernel,
	.called_kernel = memory_called_kernel,
	.signalled = memory_signalled,
	.end = memory_end,
};
