/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - the accesses of one basic block, and the slots from which their addresses follow. */
#include "rewrite/private.h"

#include <string.h>

enum { NO_SLOT = 255, SLOTS_OF_INSTRUCTION = 14 };
enum { CLASS_PLAIN, CLASS_STACK, CLASS_TICKS };

void rewrite_block_reset(struct rewrite_block *b, bool has_frame)
{
	b->nr_steps = b->nr_accesses = b->nr_fills = b->nr_slots = b->nr_stack = b->nr_ticks = 0;
	b->nr_elements = 0;
	b->mentioned = 0;
	b->has_frame = has_frame;
	for (size_t i = 0; i < KEYS_MAX; i++)
		b->key[i].used = false;
}

static uint8_t new_slot(struct rewrite_block *b, uint8_t class)
{
	b->slot_class[b->nr_slots] = class;
	b->nr_stack += class == CLASS_STACK;
	b->nr_ticks += class == CLASS_TICKS;
	return (uint8_t)b->nr_slots++;
}

static uint8_t block_fill(struct rewrite_block *b, uint8_t class, struct rewrite_fill f)
{
	f.slot = new_slot(b, class);
	b->fill[b->nr_fills++] = f;
	b->step[b->nr_steps].nr_fills++;
	return (uint8_t)f.slot;
}

/* ---- keys: registers whose sum a slot holds -------------------------------------------------- */

static bool same_text(struct att_text a, struct att_text b)
{
	return a.length == b.length && (!a.length || !memcmp(a.at, b.at, a.length));
}

static struct rewrite_key *find_key(
	struct rewrite_block *b, const struct machine_access *m, struct att_text symbol)
{
	for (size_t i = 0; i < KEYS_MAX; i++) {
		struct rewrite_key *k = &b->key[i];
		if (k->used && k->base == m->base && k->index == m->index &&
			(m->index == MACHINE_NONE || k->scale == m->scale) &&
			same_text(k->symbol, symbol))
			return k;
	}
	return NULL;
}

static void block_add_key(struct rewrite_block *b, const struct machine_access *m,
	struct att_text symbol, uint8_t slot)
{
	for (size_t i = 0; i < KEYS_MAX; i++) {
		if (b->key[i].used)
			continue;
		b->key[i] = (struct rewrite_key){.base = m->base,
			.index = m->index,
			.scale = m->scale,
			.symbol = symbol,
			.slot = slot,
			.used = true};
		return;
	}
}

/* The instruction has run: which sums still follow from their slots? */
static void update_keys(struct rewrite_block *b, const struct machine_instruction *m)
{
	for (size_t i = 0; i < KEYS_MAX; i++) {
		struct rewrite_key *k = &b->key[i];
		unsigned uses = (k->base != MACHINE_NONE ? 1u << k->base : 0) |
				(k->index != MACHINE_NONE ? 1u << k->index : 0);
		unsigned lost = m->written & uses;
		if (!k->used || !lost)
			continue;
		if (m->flags & MACHINE_ADJUSTS && lost == 1u << m->adjusted) {
			if (k->base == m->adjusted)
				k->shift += m->adjustment;
			if (k->index == m->adjusted)
				k->shift += (int64_t)m->adjustment * k->scale;
			if (k->shift < INT32_MIN / 2 || k->shift > INT32_MAX / 2)
				k->used = false;
			continue;
		}
		k->used = false;
	}
	/* mov %rsp, %rbp */
	bool frame = m->length == 3 &&
		     (!memcmp(m->bytes, "\x48\x89\xe5", 3) || !memcmp(m->bytes, "\x48\x8b\xec", 3));
	if (!frame)
		return;
	struct machine_access rsp = {.base = MACHINE_RSP, .index = MACHINE_NONE};
	struct rewrite_key *from = find_key(b, &rsp, (struct att_text){0});
	if (!from)
		return;
	int64_t shift = from->shift;
	uint8_t slot = from->slot;
	struct machine_access rbp = {.base = MACHINE_RBP, .index = MACHINE_NONE};
	block_add_key(b, &rbp, (struct att_text){0}, slot);
	struct rewrite_key *to = find_key(b, &rbp, (struct att_text){0});
	if (to)
		to->shift = shift;
}

/* ---- accesses -------------------------------------------------------------------------------- */

static bool is_stack(const struct rewrite_block *b, const struct machine_access *m)
{
	return m->index == MACHINE_NONE &&
	       (m->base == MACHINE_RSP || (m->base == MACHINE_RBP && b->has_frame));
}

/* base + index * scale + symbol in a slot, the rest in disp. */
static void address_slot(struct rewrite_block *b, struct rewrite_block_access *a)
{
	const struct machine_access *m = &a->machine;
	struct machine_access sum = *m;
	if (m->form == MEMORY_FORM_VECTOR)
		sum.index = MACHINE_NONE;
	int64_t disp = m->from_text ? a->memory.number : m->disp;
	struct rewrite_key *k = find_key(b, &sum, a->memory.symbol);
	if (k && disp + k->shift >= INT32_MIN && disp + k->shift <= INT32_MAX) {
		a->slot = k->slot;
		a->disp = (int32_t)(disp + k->shift);
		return;
	}
	struct rewrite_fill f = {.kind = FILL_REGISTER, .reg = m->base, .memory = a->memory};
	bool plain =
		sum.index == MACHINE_NONE && m->base != MACHINE_NONE && !a->memory.symbol.length;
	if (!plain)
		f.kind = FILL_LEA;
	f.inside_only = m->form != MEMORY_FORM_VECTOR;
	if (m->form == MEMORY_FORM_VECTOR && !plain)
		f.inside_only = false, f.reg = m->base;
	a->slot = block_fill(b, is_stack(b, &sum) ? CLASS_STACK : CLASS_PLAIN, f);
	a->disp = (int32_t)disp;
	if (k)
		k->used = false;
	if (m->form != MEMORY_FORM_VECTOR || plain)
		block_add_key(b, &sum, a->memory.symbol, a->slot);
}

static void string_slots(struct rewrite_block *b, struct rewrite_block_access *a)
{
	a->slot = block_fill(b, CLASS_PLAIN,
		(struct rewrite_fill){.kind = FILL_REGISTER, .reg = a->machine.base});
	a->disp = 0;
	if (a->machine.form == MEMORY_FORM_SLOT)
		return;
	a->slot2 = block_fill(
		b, CLASS_PLAIN, (struct rewrite_fill){.kind = FILL_REGISTER, .reg = MACHINE_RCX});
	if (a->machine.form == MEMORY_FORM_STRING_LEFT)
		a->slot3 = block_fill(b, CLASS_PLAIN,
			(struct rewrite_fill){.kind = FILL_REGISTER_AFTER, .reg = MACHINE_RCX});
}

static void mask_slots(struct rewrite_block *b, struct rewrite_block_access *a)
{
	const struct machine_access *m = &a->machine;
	if (m->form == MEMORY_FORM_VECTOR) {
		a->slot3 = block_fill(b, CLASS_PLAIN,
			(struct rewrite_fill){.kind = FILL_VECTOR,
				.reg = m->index,
				.vector_bytes = m->vector_bytes});
		for (unsigned i = 1; i < m->vector_bytes / 8u; i++)
			(void)new_slot(b, CLASS_PLAIN);
	}
	a->slot2 = block_fill(b, CLASS_PLAIN,
		(struct rewrite_fill){
			.kind = FILL_MASK, .reg = m->mask, .mask_kind = m->mask_kind});
}

static bool through_got(struct att_text symbol)
{
	return rewrite_att_contains(symbol, "@GOT") || rewrite_att_contains(symbol, "@got");
}

/* false: cannot be said. */
static bool place_access(struct rewrite_block *b, struct rewrite_block_access *a)
{
	const struct machine_access *m = &a->machine;
	bool range = m->form == MEMORY_FORM_RANGE,
	     masked = m->form == MEMORY_FORM_MASKED || m->form == MEMORY_FORM_PACKED;
	a->form = m->form;
	if (m->form == MEMORY_FORM_STRING || m->form == MEMORY_FORM_STRING_LEFT ||
		(!m->from_text && m->form == MEMORY_FORM_SLOT && m->base != MACHINE_RSP &&
			m->base != MACHINE_RBP)) {
		string_slots(b, a);
		return true;
	}
	bool registers = m->base != MACHINE_NONE || m->index != MACHINE_NONE;
	if (m->rip || (!registers && !m->fs && a->memory.symbol.length)) {
		if (!a->memory.symbol.length)
			return false;
		if (masked) { /* (without a static form) */
			address_slot(b, a);
			mask_slots(b, a);
			return true;
		}
		if (m->form != MEMORY_FORM_SLOT && !range)
			return false;
		a->maybe = through_got(a->memory.symbol);
		a->form = range ? MEMORY_FORM_RANGE_STATIC : MEMORY_FORM_STATIC;
		return true;
	}
	if (!registers) {
		if (m->form != MEMORY_FORM_SLOT)
			return false;
		a->form = m->fs ? MEMORY_FORM_FS : MEMORY_FORM_ABSOLUTE;
		a->disp = m->disp;
		return true;
	}
	if (m->fs) {
		if (m->form != MEMORY_FORM_SLOT)
			return false;
		a->form = MEMORY_FORM_FS_SLOT;
	}
	address_slot(b, a);
	if (masked || m->form == MEMORY_FORM_VECTOR)
		mask_slots(b, a);
	return true;
}

/* The memory operand of a statement: there is one at most, but for string instructions. */
static bool operand_of(const struct att_statement *st, struct rewrite_att_memory *ret)
{
	struct att_text part[8];
	size_t nr = rewrite_att_parts(rewrite_att_rest(st), part, BASE_COUNT(part));
	for (size_t i = 0; i < nr && i < BASE_COUNT(part); i++)
		if (rewrite_att_memory(part[i], ret))
			return true;
	return false;
}

static void block_add_access(struct rewrite_block *b, const struct rewrite *w, uint32_t statement,
	const struct machine_instruction *m, const struct machine_access *machine,
	uint64_t *unknown)
{
	struct rewrite_block_access a = {.instruction = (uint8_t)b->nr_steps,
		.machine = *machine,
		.slot = NO_SLOT,
		.slot2 = NO_SLOT,
		.slot3 = NO_SLOT,
		.ticks = NO_SLOT};
	/* A prefix may stand in a statement of its own. */
	while (w->file.statement[statement].flags & ATT_PREFIX_ONLY && statement + 1 < w->file.nr)
		statement++;
	if (machine->from_text && !operand_of(&w->file.statement[statement], &a.memory)) {
		++*unknown;
		return;
	}
	if (m->flags & MACHINE_POP_MEMORY && machine->base == MACHINE_RSP && machine->from_text)
		a.memory.number += 8;
	uint32_t nr_fills = b->nr_fills, nr_of_step = b->step[b->nr_steps].nr_fills;
	if (!place_access(b, &a)) {
		b->nr_fills = nr_fills;
		b->step[b->nr_steps].nr_fills = nr_of_step;
		++*unknown;
		return;
	}
	if (machine->direction == MEMORY_ACCESS_BOTH)
		a.ticks =
			block_fill(b, CLASS_TICKS, (struct rewrite_fill){.kind = FILL_TICKS_AFTER});
	b->access[b->nr_accesses++] = a;
}

bool rewrite_block_add(struct rewrite_block *b, const struct rewrite *w, uint32_t statement,
	uint32_t instruction, uint64_t *unknown)
{
	const struct machine_instruction *m = &w->instruction[instruction];
	if (b->nr_steps == MEMORY_BLOCK_INSTRUCTIONS_MAX ||
		b->nr_accesses + MACHINE_ACCESSES_MAX > MEMORY_BLOCK_ACCESSES_MAX ||
		b->nr_slots + SLOTS_OF_INSTRUCTION * 2 > MEMORY_BLOCK_SLOTS_MAX ||
		b->nr_ticks == MEMORY_BLOCK_TICKS_MAX)
		return false;
	unsigned elements = 0;
	for (unsigned i = 0; i < m->nr_accesses; i++)
		elements += m->access[i].elements;
	if (b->nr_elements + elements > MEMORY_BLOCK_ELEMENTS_MAX)
		return false;
	b->nr_elements += elements;
	b->step[b->nr_steps] = (struct rewrite_step){
		.statement = statement, .instruction = instruction, .first_fill = b->nr_fills};
	if (m->flags & MACHINE_UNKNOWN)
		++*unknown;
	for (unsigned i = 0; i < m->nr_accesses; i++)
		block_add_access(b, w, statement, m, &m->access[i], unknown);
	b->nr_steps++;
	b->mentioned |= m->mentioned;
	update_keys(b, m);
	return true;
}

void rewrite_block_finish(struct rewrite_block *b)
{
	static const uint8_t order[] = {CLASS_STACK, CLASS_PLAIN, CLASS_TICKS};
	uint8_t next = 0;
	for (size_t n = 0; n < BASE_COUNT(order); n++)
		for (uint32_t i = 0; i < b->nr_slots; i++)
			if (b->slot_class[i] == order[n])
				b->slot_number[i] = next++;
}
