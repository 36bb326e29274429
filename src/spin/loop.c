/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - what a round of a loop hands to the next one. */
#include "spin/loop.h"

#include <Zydis/Zydis.h>

enum { FRAME_SLOTS = 16, RSP = 4, RBP = 5 };

/* A variable in the stack frame: as good as a register. */
struct slot {
	int64_t displacement;
	uint8_t base;
	bool before, written, touched;
	bool loaded; /* what is in it is made of what was read elsewhere in this round */
};

struct walk {
	ZydisDecoder decoder;
	const uint8_t *code;
	size_t size_bytes;
	uint64_t from;
	/* of general registers and vectors, a bit each; and the flags' bits */
	uint64_t before, written; /* read before it was written; written in full */
	uint64_t touched;         /* written, if only in part or maybe */
	uint64_t loaded;          /* made of what was read from memory in this round */
	uint32_t flags_before, flags_written;
	unsigned nr_exchanges;
	bool stores, loads, lost_word;
	/* only where it guesses: calls is not NULL */
	const struct spin_loop_calls *calls;
	struct slot slot[FRAME_SLOTS];
	unsigned nr_slots;
	uint64_t maybe_until;        /* up to there it runs in some rounds only */
	uint64_t counted, otherwise; /* registers that a constant was added to; written else */
	uint64_t used;               /* read for more than to compare it, or to count on */
	bool pauses;
	struct spin_loop_code *ret;
};

/* What is certain to do nothing beside what its operands say. */
static bool loop_is_usual(ZydisMnemonic m)
{
	static const ZydisMnemonic usual[] = {ZYDIS_MNEMONIC_MOV, ZYDIS_MNEMONIC_MOVZX,
		ZYDIS_MNEMONIC_MOVSX, ZYDIS_MNEMONIC_MOVSXD, ZYDIS_MNEMONIC_LEA, ZYDIS_MNEMONIC_CMP,
		ZYDIS_MNEMONIC_TEST, ZYDIS_MNEMONIC_AND, ZYDIS_MNEMONIC_OR, ZYDIS_MNEMONIC_XOR,
		ZYDIS_MNEMONIC_ADD, ZYDIS_MNEMONIC_SUB, ZYDIS_MNEMONIC_INC, ZYDIS_MNEMONIC_DEC,
		ZYDIS_MNEMONIC_NOT, ZYDIS_MNEMONIC_NEG, ZYDIS_MNEMONIC_SHL, ZYDIS_MNEMONIC_SHR,
		ZYDIS_MNEMONIC_SAR, ZYDIS_MNEMONIC_BT, ZYDIS_MNEMONIC_NOP, ZYDIS_MNEMONIC_PAUSE,
		ZYDIS_MNEMONIC_LFENCE, ZYDIS_MNEMONIC_MFENCE, ZYDIS_MNEMONIC_ENDBR64,
		ZYDIS_MNEMONIC_XCHG, ZYDIS_MNEMONIC_CMPXCHG, ZYDIS_MNEMONIC_JMP,
		ZYDIS_MNEMONIC_CDQE};
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (usual[i] == m)
			return true;
	return false;
}

static bool loop_decode(const struct walk *w, uint64_t at, ZydisDecodedInstruction *i,
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT])
{
	uint64_t offset = at - w->from;
	return at >= w->from && offset < w->size_bytes &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(
		       &w->decoder, w->code + offset, w->size_bytes - offset, i, op)) &&
	       (loop_is_usual(i->mnemonic) || i->meta.category == ZYDIS_CATEGORY_COND_BR ||
		       (w->calls && i->mnemonic == ZYDIS_MNEMONIC_CALL)) &&
	       i->mnemonic != ZYDIS_MNEMONIC_XBEGIN;
}

static bool is_jump(const ZydisDecodedInstruction *i)
{
	return i->meta.category == ZYDIS_CATEGORY_COND_BR ||
	       i->meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

/* 0: it cannot be told. */
static uint64_t target_of(
	const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op, uint64_t at)
{
	ZyanU64 target = 0;
	if (op[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
		ZYAN_FAILED(ZydisCalcAbsoluteAddress(i, &op[0], at, &target)))
		return 0;
	return target;
}

/* The register's bit; 0: none that counts (rip, flags). 64 bits, so 16 general ones and no more. */
static uint64_t loop_bit_of(ZydisRegister r, bool *ret_other)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	ZydisRegisterClass class = ZydisRegisterGetClass(r);
	if (ZydisRegisterGetClass(wide) == ZYDIS_REGCLASS_GPR64)
		return UINT64_C(1) << ZydisRegisterGetId(wide);
	*ret_other |= r != ZYDIS_REGISTER_NONE && class != ZYDIS_REGCLASS_IP &&
		      class != ZYDIS_REGCLASS_FLAGS && class != ZYDIS_REGCLASS_SEGMENT;
	return 0;
}

/* A variable in the frame, by displacement from a register that stays; NULL: none. */
static struct slot *loop_slot_of(struct walk *w, const ZydisDecodedOperand *o)
{
	bool other = false;
	uint64_t base = loop_bit_of(o->mem.base, &other);
	if (!w->calls || (base != UINT64_C(1) << RSP && base != UINT64_C(1) << RBP) ||
		o->mem.index != ZYDIS_REGISTER_NONE)
		return NULL;
	struct slot wanted = {.displacement = o->mem.disp.has_displacement ? o->mem.disp.value : 0,
		.base = base == UINT64_C(1) << RSP ? RSP : RBP};
	for (unsigned i = 0; i < w->nr_slots; i++)
		if (w->slot[i].displacement == wanted.displacement &&
			w->slot[i].base == wanted.base)
			return &w->slot[i];
	if (w->nr_slots == FRAME_SLOTS)
		return NULL;
	w->slot[w->nr_slots] = wanted;
	return &w->slot[w->nr_slots++];
}

static void loop_take_slot(
	struct walk *w, struct slot *slot, ZydisOperandActions actions, uint64_t at)
{
	if (actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		slot->before |= !slot->written;
	if (!(actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	slot->touched = true;
	slot->written |= at >= w->maybe_until;
}

static void read_register(struct walk *w, ZydisRegister r, bool *ret_other)
{
	w->before |= loop_bit_of(r, ret_other) & ~w->written;
}

static uint8_t loop_number_of(uint64_t bit)
{
	return bit ? (uint8_t)__builtin_ctzll(bit) : SPIN_LOOP_NONE;
}

static bool loop_is_same(const struct spin_loop_word *a, const struct spin_loop_word *b)
{
	return a->displacement == b->displacement && a->base == b->base && a->index == b->index &&
	       a->scale == b->scale && a->size_bytes == b->size_bytes;
}

static void loop_add_word(
	struct walk *w, const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o, uint64_t at)
{
	bool other = false;
	struct spin_loop_word word = {
		.displacement = o->mem.disp.has_displacement ? (uint64_t)o->mem.disp.value : 0,
		.base = loop_number_of(loop_bit_of(o->mem.base, &other)),
		.index = loop_number_of(loop_bit_of(o->mem.index, &other)),
		.scale = o->mem.scale,
		.size_bytes = (uint8_t)(o->size / 8)};
	if (o->mem.base == ZYDIS_REGISTER_RIP)
		word.displacement += at + i->length;
	w->loads = true;
	for (uint32_t k = 0; k < w->ret->nr_words; k++)
		if (loop_is_same(&w->ret->word[k], &word))
			return;
	if (other || i->address_width != 64 || o->mem.segment == ZYDIS_REGISTER_FS ||
		o->mem.segment == ZYDIS_REGISTER_GS || !o->size || o->size > 64 ||
		w->ret->nr_words == SPIN_LOOP_WORDS)
		w->lost_word = true;
	else
		w->ret->word[w->ret->nr_words++] = word;
}

/* False: beyond what is told here. */
static bool take_memory(
	struct walk *w, const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o, uint64_t at)
{
	bool other = false;
	struct slot *slot = o->mem.type == ZYDIS_MEMOP_TYPE_MEM ? loop_slot_of(w, o) : NULL;
	read_register(w, o->mem.base, &other);
	read_register(w, o->mem.index, &other);
	w->used |= loop_bit_of(o->mem.base, &other) | loop_bit_of(o->mem.index, &other);
	if (slot && i->mnemonic != ZYDIS_MNEMONIC_NOP)
		loop_take_slot(w, slot, o->actions, at);
	if (slot && (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return true;
	if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN || i->mnemonic == ZYDIS_MNEMONIC_NOP)
		return !other;
	if (o->mem.type != ZYDIS_MEMOP_TYPE_MEM)
		return false;
	if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		loop_add_word(w, i, o, at);
	if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return !other;
	if (i->mnemonic == ZYDIS_MNEMONIC_XCHG || i->mnemonic == ZYDIS_MNEMONIC_CMPXCHG)
		w->nr_exchanges++;
	else
		w->stores = true;
	return !other;
}

/* xor eax, eax reads nothing. */
static bool zeroes(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op)
{
	return (i->mnemonic == ZYDIS_MNEMONIC_XOR || i->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && op[0].reg.value == op[1].reg.value &&
	       op[0].size >= 32;
}

/* inc, dec, add and sub of a number, lea of a register and a number. */
static bool adds_constant(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op)
{
	if (i->mnemonic == ZYDIS_MNEMONIC_INC || i->mnemonic == ZYDIS_MNEMONIC_DEC)
		return true;
	return (i->mnemonic == ZYDIS_MNEMONIC_ADD || i->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

static void take_flags(struct walk *w, const ZydisDecodedInstruction *i, uint64_t at)
{
	if (!i->cpu_flags)
		return;
	const ZydisAccessedFlags *f = i->cpu_flags;
	w->flags_before |= f->tested & ~w->flags_written;
	/* (a shift by a register may leave them as they were) */
	if (i->mnemonic == ZYDIS_MNEMONIC_SHL || i->mnemonic == ZYDIS_MNEMONIC_SHR ||
		i->mnemonic == ZYDIS_MNEMONIC_SAR)
		w->flags_before |= (f->modified | f->undefined) & ~w->flags_written;
	if (at >= w->maybe_until)
		w->flags_written |= f->modified | f->set_0 | f->set_1 | f->undefined;
}

/* What is stored must not be made of what was read: a word that is counted up is no wait. */
static void take_loaded(
	struct walk *w, const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op)
{
	bool other = false, loads = false, stores = false;
	uint64_t reads = 0, writes = 0;
	struct slot *slot = NULL, *target = NULL;
	for (unsigned k = 0; k < i->operand_count; k++) {
		bool is_read = op[k].actions & ZYDIS_OPERAND_ACTION_MASK_READ;
		bool is_written = op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		bool is_memory = op[k].type == ZYDIS_OPERAND_TYPE_MEMORY;
		if (is_memory && op[k].mem.type == ZYDIS_MEMOP_TYPE_MEM &&
			(slot = loop_slot_of(w, &op[k]))) {
			loads |= is_read && slot->loaded;
			target = is_written ? slot : target;
		} else if (is_memory) {
			loads |= is_read;
			stores |= is_written;
		} else if (op[k].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			uint64_t bit = loop_bit_of(op[k].reg.value, &other);
			reads |= is_read ? bit : 0;
			writes |= is_written ? bit : 0;
		}
	}
	/* (what cmpxchg compares with is not stored) */
	uint64_t stored = i->mnemonic == ZYDIS_MNEMONIC_CMPXCHG ? reads & ~UINT64_C(1) : reads;
	w->stores |= stores && (stored & w->loaded);
	bool loaded = !zeroes(i, op) && (loads || (reads & w->loaded));
	w->loaded = loaded ? w->loaded | writes : w->loaded & ~writes;
	if (target)
		target->loaded = loaded;
}

/* What a function may change of registers (System V ABI); it returns the same each time. */
static bool take_call(struct walk *w, uint64_t target)
{
	static const uint8_t scratch[] = {0, 1, 2, 6, 7, 8, 9, 10, 11};
	if (!target || !w->calls->yields(w->calls->ctx, target))
		return false;
	for (size_t i = 0; i < sizeof scratch; i++) {
		w->written |= UINT64_C(1) << scratch[i];
		w->touched |= UINT64_C(1) << scratch[i];
		w->loaded &= ~(UINT64_C(1) << scratch[i]);
	}
	w->flags_written = UINT32_MAX;
	return true;
}

static void use_operands(
	struct walk *w, const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op)
{
	bool other = false;
	for (unsigned k = 0; k < i->operand_count; k++)
		if (op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			op[k].actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			w->used |= loop_bit_of(op[k].reg.value, &other);
}

/* One instruction of a round, in its order: what it reads, then what it writes. */
static bool loop_take(struct walk *w, const ZydisDecodedInstruction *i,
	const ZydisDecodedOperand *op, uint64_t at)
{
	bool other = false, zero = zeroes(i, op);
	if (i->mnemonic == ZYDIS_MNEMONIC_CALL)
		return take_call(w, target_of(i, op, at));
	for (unsigned k = 0; k < i->operand_count; k++) {
		const ZydisDecodedOperand *o = &op[k];
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && !take_memory(w, i, o, at))
			return false;
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || zero)
			continue;
		/* a write of a part, or one that may not happen, keeps the rest */
		bool part = (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
			    (o->size < 32 || (o->actions & ZYDIS_OPERAND_ACTION_CONDWRITE));
		if ((o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) || part)
			read_register(w, o->reg.value, &other);
	}
	take_loaded(w, i, op);
	take_flags(w, i, at);
	w->pauses |= i->mnemonic == ZYDIS_MNEMONIC_PAUSE;
	bool counts = adds_constant(i, op);
	if (!counts && i->mnemonic != ZYDIS_MNEMONIC_CMP && i->mnemonic != ZYDIS_MNEMONIC_TEST)
		use_operands(w, i, op);
	for (unsigned k = 0; k < i->operand_count; k++) {
		const ZydisDecodedOperand *o = &op[k];
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER ||
			!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		uint64_t bit = loop_bit_of(o->reg.value, &other);
		w->touched |= bit;
		*(counts ? &w->counted : &w->otherwise) |= bit;
		if (o->size >= 32 && !(o->actions & ZYDIS_OPERAND_ACTION_CONDWRITE) &&
			at >= w->maybe_until)
			w->written |= bit;
	}
	return !other;
}

/* The first jump back over `pc`, on the straight way from there. */
static bool find_loop(const struct walk *w, uint64_t pc, struct spin_loop_code *ret)
{
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	for (uint64_t at = pc; loop_decode(w, at, &i, op); at += i.length) {
		uint64_t target = is_jump(&i) ? target_of(&i, op, at) : 0;
		if (is_jump(&i) && !target)
			return false;
		if (target && target <= pc) {
			ret->begins = target;
			ret->branch = at;
			ret->again = i.meta.category == ZYDIS_CATEGORY_UNCOND_BR ? at : target;
			return at - target < SPIN_LOOP_BYTES;
		}
		if (i.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
			return false;
	}
	return false;
}

/* A jump within the round: what it leaves out runs in some rounds only. */
static bool take_inner_jump(
	struct walk *w, const ZydisDecodedInstruction *i, uint64_t target, uint64_t at)
{
	const struct spin_loop_code *loop = w->ret;
	if (target && (target < loop->begins || target > loop->branch))
		return true; /* it leaves the loop */
	if (!w->calls || target < at + i->length)
		return false;
	w->maybe_until = target > w->maybe_until ? target : w->maybe_until;
	return true;
}

/* False: it has more than one path, or something that is beyond us. */
static bool walk_round(struct walk *w, uint64_t pc)
{
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	const struct spin_loop_code *loop = w->ret;
	bool met = false;
	for (uint64_t at = loop->begins; at <= loop->branch; at += i.length) {
		if (!loop_decode(w, at, &i, op))
			return false;
		met |= at == pc;
		uint64_t target = is_jump(&i) ? target_of(&i, op, at) : 0;
		if (is_jump(&i) && at != loop->branch && !take_inner_jump(w, &i, target, at))
			return false;
		if (!loop_take(w, &i, op, at))
			return false;
		if (at == loop->branch)
			return met;
	}
	return false;
}

struct spin_loop_code spin_loop_around(
	const uint8_t *code, size_t size_bytes, uint64_t from, uint64_t pc)
{
	return spin_loop_guess(code, size_bytes, from, pc, NULL);
}

struct spin_loop_code spin_loop_guess(const uint8_t *code, size_t size_bytes, uint64_t from,
	uint64_t pc, const struct spin_loop_calls *calls)
{
	struct spin_loop_code ret = {0};
	struct walk w = {
		.code = code, .size_bytes = size_bytes, .from = from, .calls = calls, .ret = &ret};
	if (ZYAN_FAILED(ZydisDecoderInit(
		    &w.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
		!find_loop(&w, pc, &ret) || !walk_round(&w, pc)) {
		ret.nr_words = 0;
		return ret;
	}
	w.stores |= w.nr_exchanges > 1;
	uint64_t carried = w.before & w.touched;
	if (calls) /* a mere count */
		carried &= ~(w.counted & ~w.otherwise & ~w.used);
	bool carries = carried || (w.flags_before & w.flags_written);
	for (unsigned i = 0; i < w.nr_slots; i++)
		carries |= w.slot[i].before && w.slot[i].touched;
	bool waits = w.loads && !carries && !w.stores;
	waits |= calls && w.pauses && !w.stores;
	ret.kind = waits ? SPIN_LOOP_WAITS : SPIN_LOOP_WORKS;
	for (uint32_t k = 0; k < ret.nr_words; k++) {
		const struct spin_loop_word *word = &ret.word[k];
		w.lost_word |= (word->base != SPIN_LOOP_NONE && w.touched >> word->base & 1) ||
			       (word->index != SPIN_LOOP_NONE && w.touched >> word->index & 1);
	}
	if (w.lost_word || ret.kind != SPIN_LOOP_WAITS)
		ret.nr_words = 0;
	return ret;
}
