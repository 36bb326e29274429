/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - the text again, with recording code and tables. */
#include "rewrite/calls.h"
#include "rewrite/private.h"

#include <string.h>

/* The thread's variables: struct of target/target.h. */
#define TLS_NAME "longpole_memory"
enum { TLS_POINTER = 0, TLS_SAVE_POINTER = 8, TLS_SAVE_SCRATCH = 16, RED_ZONE = 128 };
enum { NO_SLOT = 255, BORROWED = 2 };

struct emit {
	struct rewrite *w;
	struct base_str *out, tables;
	struct rewrite_block block;
	bool open;       /* a block is being collected */
	bool fresh;      /* the next block must load the pointer */
	bool entry, pad; /* the next block is a procedure's first; a landing pad */
	uint32_t nr_blocks;
	uint32_t section;     /* of the open block */
	uint32_t table_group; /* section whose group the tables are in; UINT32_MAX: none yet */
	const char *pointer, *scratch; /* registers of the block being written */
	bool borrows;
};

static bool records_blocks(const struct emit *e)
{
	return e->w->options.level >= 2 && !e->w->options.accesses_are_calls;
}

static const struct rewrite_function *emit_function_of(const struct emit *e, size_t emit_statement)
{
	return &e->w->function[e->w->place[emit_statement].function];
}

/* ---- thread-local storage -------------------------------------------------------------------- */

/* pointer = the thread's, by a register that may be lost: the pointer's own. */
static void load_pointer(struct emit *e, const char *reg)
{
	if (e->w->options.pic)
		base_str_addf(e->out,
			"\tmovq\t" TLS_NAME "@gottpoff(%%rip), %%%s\n\tmovq\t%%fs:(%%%s), %%%s\n",
			reg, reg, reg);
	else
		base_str_addf(e->out, "\tmovq\t%%fs:" TLS_NAME "@tpoff, %%%s\n", reg);
}

static void store_pointer(struct emit *e, const char *reg, const char *scratch)
{
	if (e->w->options.pic)
		base_str_addf(e->out,
			"\tmovq\t" TLS_NAME "@gottpoff(%%rip), %%%s\n\tmovq\t%%%s, %%fs:(%%%s)\n",
			scratch, reg, scratch);
	else
		base_str_addf(e->out, "\tmovq\t%%%s, %%fs:" TLS_NAME "@tpoff\n", reg);
}

/* Two registers into thread-local storage; without a free register that takes the stack below the
 * red zone for a moment. */
static void borrow(struct emit *e)
{
	if (!e->w->options.pic) {
		base_str_addf(e->out,
			"\tmovq\t%%%s, %%fs:" TLS_NAME "@tpoff+%d\n\tmovq\t%%%s, %%fs:" TLS_NAME
			"@tpoff+%d\n",
			e->pointer, TLS_SAVE_POINTER, e->scratch, TLS_SAVE_SCRATCH);
		load_pointer(e, e->pointer);
		return;
	}
	base_str_addf(e->out,
		"\tleaq\t-%d(%%rsp), %%rsp\n\tpushq\t%%%s\n\tpushq\t%%%s\n\tmovq\t" TLS_NAME
		"@gottpoff(%%rip), "
		"%%%s\n\tpopq\t%%fs:%d(%%%s)\n\tpopq\t%%fs:%d(%%%s)\n\tleaq\t%d(%%"
		"rsp), "
		"%%rsp\n\tmovq\t%%fs:(%%%s), %%%s\n",
		RED_ZONE, e->pointer, e->scratch, e->scratch, TLS_SAVE_SCRATCH, e->scratch,
		TLS_SAVE_POINTER, e->scratch, RED_ZONE, e->scratch, e->pointer);
}

static void emit_give_back(struct emit *e)
{
	if (!e->w->options.pic) {
		store_pointer(e, e->pointer, e->scratch);
		base_str_addf(e->out,
			"\tmovq\t%%fs:" TLS_NAME "@tpoff+%d, %%%s\n\tmovq\t%%fs:" TLS_NAME
			"@tpoff+%d, %%%s\n",
			TLS_SAVE_POINTER, e->pointer, TLS_SAVE_SCRATCH, e->scratch);
		return;
	}
	base_str_addf(e->out,
		"\tmovq\t" TLS_NAME "@gottpoff(%%rip), %%%s\n\tmovq\t%%%s, "
		"%%fs:(%%%s)\n\tmovq\t%%fs:%d(%%%s), %%%s\n\tmovq\t%%fs:%d(%%%s), %%%s\n",
		e->scratch, e->pointer, e->scratch, TLS_SAVE_POINTER, e->scratch, e->pointer,
		TLS_SAVE_SCRATCH, e->scratch, e->scratch);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void emit_statement(struct emit *e, size_t i)
{
	const struct att_statement *st = &e->w->file.statement[i];
	if (st->kind != ATT_LABEL)
		base_str_add(e->out, "\t");
	base_str_add_bytes(e->out, st->text.at, st->text.length);
	base_str_add(e->out, st->kind == ATT_LABEL ? ":\n" : "\n");
}

static bool emit_is_defined(const struct emit *e, struct att_text name)
{
	uint32_t id;
	return rewrite_find_label(e->w, name, &id) && id < e->w->flags_capacity &&
	       e->w->label_flags[id] & LABEL_DEFINED;
}

/* A call of a function that the runtime library stands before. The function stays a symbol of the
 * file: of some the runtime library has weak references only, by which no linker takes a library.
 */
static bool replaced_call(struct emit *e, size_t i)
{
	const struct att_statement *st = &e->w->file.statement[i];
	struct att_text word = rewrite_att_word(st), rest = rewrite_att_rest(st), name = rest;
	if (!rewrite_att_begins(word, "call") && !rewrite_att_begins(word, "jmp"))
		return false;
	if (name.length && *name.at == '*')
		name = (struct att_text){name.at + 1, name.length - 1};
	size_t n = 0;
	while (n < name.length && name.at[n] != '@' && name.at[n] != '(' && name.at[n] != '+')
		n++;
	name.length = n;
	if (!n || !rewrite_call_is_replaced(name) || emit_is_defined(e, name))
		return false;
	base_str_add(e->out, "\t.globl\t");
	base_str_add_bytes(e->out, name.at, name.length);
	base_str_add(e->out, "\n\t");
	base_str_add_bytes(e->out, st->text.at, (size_t)(name.at - st->text.at));
	base_str_add(e->out, REWRITE_CALL_PREFIX);
	const char *end = st->text.at + st->text.length;
	base_str_add_bytes(e->out, name.at, (size_t)(end - name.at));
	base_str_add(e->out, "\n");
	e->w->counts.calls++;
	return true;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static unsigned emit_at(const struct emit *e, uint32_t slot)
{
	return 8u * (1u + e->block.slot_number[slot]);
}

static void emit_lea(struct emit *e, const struct rewrite_fill *f)
{
	base_str_add(e->out, "\tleaq\t");
	base_str_add_bytes(e->out, f->memory.symbol.at, f->memory.symbol.length);
	if (f->inside_only)
		base_str_add_bytes(e->out, f->memory.inside.at, f->memory.inside.length);
	else if (f->reg != MACHINE_NONE)
		base_str_addf(e->out, "(%%%s)", rewrite_register_name[f->reg]);
	else if (!f->memory.symbol.length) /* a vector's elements are whole addresses */
		base_str_add(e->out, "0");
	base_str_addf(e->out, ", %%%s\n\tmovq\t%%%s, %u(%%%s)\n", e->scratch, e->scratch,
		emit_at(e, f->slot), e->pointer);
}

/* Needs rax and rdx: one waits in the scratch register, one in a word of the record. */
static void emit_ticks(struct emit *e, const struct rewrite_fill *f, unsigned wait)
{
	base_str_addf(e->out,
		"\tlfence\n\tmovq\t%%rax, %%%s\n\tmovq\t%%rdx, %u(%%%s)\n\trdtsc\n\tmovl\t%%eax, "
		"%u(%%%s)\n\tmovl\t%%edx, %u(%%%s)\n\tmovq\t%u(%%%s), %%rdx\n\tmovq\t%%%s, "
		"%%rax\n",
		e->scratch, wait, e->pointer, emit_at(e, f->slot), e->pointer,
		emit_at(e, f->slot) + 4, e->pointer, wait, e->pointer, e->scratch);
}

static void emit_mask(struct emit *e, const struct rewrite_fill *f)
{
	static const char *const from[] = {[MACHINE_MASK_PS] = "vmovmskps\t%xmm",
		[MACHINE_MASK_PD] = "vmovmskpd\t%xmm",
		[MACHINE_MASK_PS_Y] = "vmovmskps\t%ymm",
		[MACHINE_MASK_PD_Y] = "vmovmskpd\t%ymm"};
	if (f->mask_kind == MACHINE_MASK_K)
		base_str_addf(e->out, "\tkmovq\t%%k%u, %%%s\n", f->reg, e->scratch);
	else if (f->mask_kind == MACHINE_MASK_NONE)
		base_str_addf(e->out, "\tmovq\t$-1, %%%s\n", e->scratch);
	else
		base_str_addf(e->out, "\t%s%u, %%%s\n", from[f->mask_kind], f->reg, e->scratch);
	base_str_addf(
		e->out, "\tmovq\t%%%s, %u(%%%s)\n", e->scratch, emit_at(e, f->slot), e->pointer);
}

static void emit_vector(struct emit *e, const struct rewrite_fill *f)
{
	char letter = f->vector_bytes == 64 ? 'z' : f->vector_bytes == 32 ? 'y' : 'x';
	bool evex = f->vector_bytes == 64 || f->reg >= 16;
	base_str_addf(e->out, "\t%s\t%%%cmm%u, %u(%%%s)\n", evex ? "vmovdqu64" : "vmovdqu", letter,
		f->reg, emit_at(e, f->slot), e->pointer);
}

static bool is_behind(const struct rewrite_fill *f)
{
	return f->kind == FILL_TICKS_AFTER || f->kind == FILL_REGISTER_AFTER;
}

static bool emit_fills(struct emit *e, const struct rewrite_step *s, bool behind)
{
	const struct rewrite_block *b = &e->block;
	bool any = false;
	for (uint32_t i = s->first_fill; i < s->first_fill + s->nr_fills; i++) {
		const struct rewrite_fill *f = &b->fill[i];
		if (is_behind(f) != behind)
			continue;
		any = true;
		switch ((enum rewrite_fill_kind)f->kind) {
		case FILL_REGISTER:
		case FILL_REGISTER_AFTER:
			base_str_addf(e->out, "\tmovq\t%%%s, %u(%%%s)\n",
				rewrite_register_name[f->reg], emit_at(e, f->slot), e->pointer);
			break;
		case FILL_LEA:
			emit_lea(e, f);
			break;
		case FILL_MASK:
			emit_mask(e, f);
			break;
		case FILL_VECTOR:
			emit_vector(e, f);
			break;
		case FILL_TICKS_AFTER:
			emit_ticks(e, f, 8 * (1 + b->nr_slots));
			break;
		}
	}
	return any;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void table_section(struct emit *e, const char *name, const char *flags)
{
	struct att_text group = e->w->section[e->section].group;
	if (!group.length) {
		base_str_addf(&e->tables, "\t.section\t%s,\"%s\",@progbits\n", name, flags);
		return;
	}
	base_str_addf(&e->tables, "\t.section\t%s,\"%sG\",@progbits,", name, flags);
	base_str_add_bytes(&e->tables, group.at, group.length);
	base_str_add(&e->tables, ",comdat\n");
}

/* Calls, jumps: the assembler chooses their length. */
static bool length_varies(const struct machine_instruction *m)
{
	return m->terminator == MEMORY_TERM_JUMP || m->terminator == MEMORY_TERM_BRANCH ||
	       m->terminator == MEMORY_TERM_TAIL;
}

/* The k-th instruction's gap: from its end to the next one's label. `base`: the last label before,
 * `since`: bytes of instructions from there on. */
static void table_instructions(struct emit *e, const uint8_t *labelled)
{
	const struct rewrite_block *b = &e->block;
	struct base_str *t = &e->tables;
	BASE_ASSUME(labelled);
	uint32_t base = b->step[0].instruction, since = 0;
	for (uint32_t k = 0; k < b->nr_steps; k++) {
		const struct machine_instruction *m = &e->w->instruction[b->step[k].instruction];
		since += m->length;
		if (length_varies(m))
			base_str_addf(t, "\t.byte\t.Llpe%u-.Llpi%u-%u,0\n", e->nr_blocks, base,
				since - m->length);
		else if (k + 1 < b->nr_steps && labelled[k + 1])
			base_str_addf(t, "\t.byte\t%u,.Llpi%u-.Llpi%u-%u\n", m->length,
				b->step[k + 1].instruction, base, since);
		else
			base_str_addf(t, "\t.byte\t%u,0\n", m->length);
		if (k + 1 < b->nr_steps && labelled[k + 1]) {
			base = b->step[k + 1].instruction;
			since = 0;
		}
	}
}

static uint8_t emit_slot_of(const struct emit *e, uint8_t slot)
{
	return slot == NO_SLOT ? NO_SLOT : e->block.slot_number[slot];
}

static void table_static(struct emit *e, const struct rewrite_block_access *a)
{
	struct base_str *t = &e->tables;
	if (a->maybe) {
		base_str_add(t, "\t.long\t0\n");
		return;
	}
	base_str_add(t, "\t.long\t");
	base_str_add_bytes(t, a->memory.symbol.at, a->memory.symbol.length);
	base_str_addf(t, "%+lld-.\n", (long long)a->memory.number);
}

static void table_maybe(struct emit *e, const struct rewrite_block_access *a)
{
	uint32_t n = e->block.step[a->instruction].instruction;
	const struct machine_instruction *m = &e->w->instruction[n];
	struct base_str *t = &e->tables;
	table_section(e, MEMORY_SECTION_MAYBE, "a");
	base_str_addf(t, "\t.long\t.Llpw%u_%td-.,.Llpi%u-.\n\t.byte\t%u,%u", e->nr_blocks,
		a - e->block.access, n, m->length, m->disp_at);
	for (unsigned i = 0; i < sizeof((struct memory_maybe *)0)->bytes; i++) {
		bool disp = i >= m->disp_at && i < m->disp_at + 4u;
		base_str_addf(t, ",%u", i < m->length && !disp ? m->bytes[i] : 0);
	}
	base_str_add(t, "\n");
	table_section(e, MEMORY_SECTION_INFO, "aw");
}

static void table_access(struct emit *e, const struct rewrite_block_access *a)
{
	const struct machine_access *m = &a->machine;
	struct base_str *t = &e->tables;
	unsigned size =
		a->form == MEMORY_FORM_RANGE || a->form == MEMORY_FORM_RANGE_STATIC ? 1 : m->size;
	if (a->maybe)
		base_str_addf(t, ".Llpw%u_%td:", e->nr_blocks, a - e->block.access);
	base_str_addf(t, "\t.byte\t%u,%u,%u,%u\n", a->instruction,
		m->direction | m->reg << 2 | a->form << 4, size, emit_slot_of(e, a->slot));
	if (a->form == MEMORY_FORM_STATIC || a->form == MEMORY_FORM_RANGE_STATIC)
		table_static(e, a);
	else if (a->form == MEMORY_FORM_FS && a->memory.symbol.length)
		base_str_addf(t, "\t.long\t%.*s%+lld\n", (int)a->memory.symbol.length,
			a->memory.symbol.at, (long long)a->memory.number);
	else
		base_str_addf(t, "\t.long\t%d\n", a->disp);
	if (m->direction == MEMORY_ACCESS_BOTH)
		base_str_addf(t, "\t.byte\t%u,%u\n", NO_SLOT, emit_slot_of(e, a->ticks));
	switch (a->form) {
	case MEMORY_FORM_STRING:
		base_str_addf(t, "\t.byte\t%u\n", emit_slot_of(e, a->slot2));
		break;
	case MEMORY_FORM_STRING_LEFT:
		base_str_addf(t, "\t.byte\t%u,%u\n", emit_slot_of(e, a->slot2),
			emit_slot_of(e, a->slot3));
		break;
	case MEMORY_FORM_RANGE:
	case MEMORY_FORM_RANGE_STATIC:
		base_str_addf(t, "\t.long\t%u\n", m->size);
		break;
	case MEMORY_FORM_MASKED:
	case MEMORY_FORM_PACKED:
		base_str_addf(t, "\t.byte\t%u,%u\n", emit_slot_of(e, a->slot2), m->elements);
		break;
	case MEMORY_FORM_VECTOR:
		base_str_addf(t, "\t.byte\t%u,%u,%u,%u,%u\n", emit_slot_of(e, a->slot3),
			m->index_bytes, m->scale, m->elements, emit_slot_of(e, a->slot2));
		break;
	default:
		break;
	}
}

static void table_block(struct emit *e, unsigned flags, unsigned terminator, uint32_t code_label,
	const uint8_t *labelled)
{
	const struct rewrite_block *b = &e->block;
	struct base_str *t = &e->tables;
	table_section(e, MEMORY_SECTION_BLOCKS, "aw");
	if (code_label)
		base_str_addf(t, "\t.long\t.Llpi%u-.", code_label);
	else
		base_str_addf(t, "\t.long\t.Llpo%u-.", e->nr_blocks);
	base_str_addf(t, ",.Llpn%u-.\n\t.byte\t%u,%u,%u,%u\n\t.long\t0\n", e->nr_blocks,
		b->nr_slots, b->nr_stack, flags | b->nr_ticks << MEMORY_BLOCK_TICKS_SHIFT,
		terminator);
	table_section(e, MEMORY_SECTION_INFO, "aw");
	base_str_addf(t, ".Llpn%u:\t.byte\t%u,%u\n", e->nr_blocks, b->nr_steps, b->nr_accesses);
	if (b->nr_steps)
		table_instructions(e, labelled);
	for (uint32_t i = 0; i < b->nr_accesses; i++)
		table_access(e, &b->access[i]);
	for (uint32_t i = 0; i < b->nr_accesses; i++)
		if (b->access[i].maybe)
			table_maybe(e, &b->access[i]);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The two highest registers that the block leaves alone: those that need a longer encoding are
 * least often the compiler's. */
static void choose_registers(struct emit *e, bool borrows)
{
	const char *found[BORROWED];
	unsigned nr = 0;
	e->borrows = borrows;
	e->pointer = "r10";
	e->scratch = "r11";
	for (unsigned r = MACHINE_GPRS; borrows && r-- > 0 && nr < BORROWED;)
		if (r != MACHINE_RSP && !(e->block.mentioned & 1u << r))
			found[nr++] = rewrite_register_name[r];
	if (borrows && nr == BORROWED) {
		e->pointer = found[0];
		e->scratch = found[1];
	}
}

static unsigned nr_free(unsigned mentioned)
{
	return 15 - (unsigned)__builtin_popcount(mentioned & ~(1u << MACHINE_RSP) & 0xffff);
}

static bool leaves_function(const struct emit *e, size_t i)
{
	struct att_text target = rewrite_att_rest(&e->w->file.statement[i]);
	uint32_t id;
	if (!rewrite_find_label(e->w, target, &id) || id >= e->w->functions_of_capacity)
		return true;
	return e->w->label_flags[id] & LABEL_FUNCTION ||
	       e->w->label_function[id] != e->w->place[i].function;
}

static unsigned terminator_of(const struct emit *e, const struct rewrite_step *s)
{
	unsigned t = e->w->instruction[s->instruction].terminator;
	size_t i = s->statement;
	while (e->w->file.statement[i].flags & ATT_PREFIX_ONLY && i + 1 < e->w->file.nr)
		i++;
	if (t == MEMORY_TERM_JUMP && leaves_function(e, i))
		return MEMORY_TERM_TAIL;
	return t;
}

/* Must others find the pointer in thread-local storage, once this block has ended? */
static bool publishes(const struct emit *e, const struct rewrite_step *last, unsigned terminator)
{
	switch (terminator) {
	case MEMORY_TERM_CALL:
	case MEMORY_TERM_CALL_INDIRECT:
	case MEMORY_TERM_RETURN:
	case MEMORY_TERM_TAIL:
	case MEMORY_TERM_STOP:
		return true;
	case MEMORY_TERM_INDIRECT: /* a jump table, or a tail call */
		return true;
	case MEMORY_TERM_BRANCH:
		return leaves_function(e, last->statement);
	default:
		return false;
	}
}

static void finish_record(struct emit *e, bool publish)
{
	base_str_addf(e->out, "\tleaq\t%u(%%%s), %%%s\n", 8 * (1 + e->block.nr_slots), e->pointer,
		e->pointer);
	if (e->borrows)
		emit_give_back(e);
	else if (publish)
		store_pointer(e, e->pointer, e->scratch);
}

static void start_record(struct emit *e)
{
	if (e->borrows)
		borrow(e);
	else if (e->fresh)
		load_pointer(e, e->pointer);
	base_str_addf(e->out, "\tleaq\t.Llph%u(%%rip), %%%s\n\tmovq\t%%%s, (%%%s)\n", e->nr_blocks,
		e->scratch, e->scratch, e->pointer);
}

static void instruction_statements(struct emit *e, size_t first)
{
	size_t i = first;
	for (; e->w->file.statement[i].flags & ATT_PREFIX_ONLY && i + 1 < e->w->file.nr; i++)
		emit_statement(e, i);
	if (!replaced_call(e, i))
		emit_statement(e, i);
}

/* Statements between two instructions (.loc, labels that nobody jumps to) stay between them. */
static void emit_between(struct emit *e, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		emit_statement(e, i);
}

static size_t behind_statement(const struct emit *e, size_t i)
{
	while (e->w->file.statement[i].flags & ATT_PREFIX_ONLY && i + 1 < e->w->file.nr)
		i++;
	return i + 1;
}

static void label_instruction(struct emit *e, const struct rewrite_step *s)
{
	base_str_addf(e->out, ".Llpi%u:\n", s->instruction);
}

static void plain_block(struct emit *e)
{
	const struct rewrite_block *b = &e->block;
	for (uint32_t k = 0; k < b->nr_steps; k++) {
		instruction_statements(e, b->step[k].statement);
		if (k + 1 < b->nr_steps)
			emit_between(e, behind_statement(e, b->step[k].statement),
				b->step[k + 1].statement);
	}
	e->open = false;
}

/* Level 2 leaves out blocks that access nothing; but the pointer must be loaded and stored where a
 * block would have done so. */
static bool must_record(const struct emit *e)
{
	return e->w->options.level >= 3 || e->block.nr_accesses || e->entry;
}

/* The block's instructions from `first` on, with what records its accesses before and behind them. */
static void emit_steps(struct emit *e, uint32_t first, unsigned terminator, bool record,
	bool publish, uint8_t *labelled)
{
	const struct rewrite_block *b = &e->block;
	bool inserted = false;
	for (uint32_t k = first; k < b->nr_steps; k++) {
		const struct rewrite_step *s = &b->step[k];
		if (record && emit_fills(e, s, false))
			inserted = true;
		if (k + 1 == b->nr_steps && terminator != MEMORY_TERM_NONE) {
			if (record)
				finish_record(e, publish);
			else if (publish && !e->borrows)
				store_pointer(e, e->pointer, e->scratch);
			inserted = true;
		}
		labelled[k] |= inserted || k == first;
		if (labelled[k])
			label_instruction(e, s);
		instruction_statements(e, s->statement);
		if (k + 1 == b->nr_steps)
			base_str_addf(e->out, ".Llpe%u:\n", e->nr_blocks);
		inserted = record && emit_fills(e, s, true);
		if (k + 1 < b->nr_steps)
			emit_between(
				e, behind_statement(e, s->statement), b->step[k + 1].statement);
	}
}

/* The block's row in the tables. Where endbr64 stood before the recording code, the block's code
 * begins with it all the same. */
static void close_block_table(struct emit *e, unsigned terminator, const uint8_t *labelled)
{
	const struct rewrite_block *b = &e->block;
	unsigned flags = (e->entry ? MEMORY_BLOCK_ENTRY : 0) | (e->pad ? MEMORY_BLOCK_PAD : 0);
	table_section(e, MEMORY_SECTION_BLOCKS, "aw");
	base_str_addf(&e->tables, ".Llph%u:\n", e->nr_blocks);
	table_block(e, flags, terminator, b->step[0].instruction, labelled);
	e->w->counts.blocks++;
	e->w->counts.instructions += b->nr_steps;
	e->w->counts.accesses += b->nr_accesses;
	e->w->counts.slots += b->nr_slots;
	e->entry = e->pad = false;
}

static void close_block(struct emit *e)
{
	struct rewrite_block *b = &e->block;
	if (!e->open || !b->nr_steps) {
		e->open = false;
		return;
	}
	const struct rewrite_function *f = emit_function_of(e, b->step[0].statement);
	if (f->skipped || !records_blocks(e)) {
		plain_block(e);
		return;
	}
	struct rewrite_step *last = &b->step[b->nr_steps - 1];
	unsigned terminator = terminator_of(e, last);
	bool record = must_record(e);
	uint8_t labelled[MEMORY_BLOCK_INSTRUCTIONS_MAX] = {1};
	uint32_t first = 0;
	for (uint32_t i = 0; i < b->nr_accesses; i++)
		labelled[b->access[i].instruction] |= b->access[i].maybe; /* the table names it */
	rewrite_block_finish(b);
	choose_registers(e, f->borrows);
	bool publish = publishes(e, last, terminator);
	if (e->w->instruction[b->step[0].instruction].flags & MACHINE_ENDBR) {
		label_instruction(e, &b->step[0]);
		instruction_statements(e, b->step[0].statement);
		first = 1;
		if (b->nr_steps > 1) {
			emit_between(
				e, behind_statement(e, b->step[0].statement), b->step[1].statement);
			labelled[1] = 1;
		}
	}
	if (record)
		start_record(e);
	else if (e->fresh && !e->borrows)
		load_pointer(e, e->pointer);
	emit_steps(e, first, terminator, record, publish, labelled);
	if (terminator == MEMORY_TERM_NONE && record)
		finish_record(e, false);
	if (record)
		close_block_table(e, terminator, labelled);
	e->nr_blocks++;
	e->fresh = terminator == MEMORY_TERM_CALL || terminator == MEMORY_TERM_CALL_INDIRECT;
	e->open = false;
}

/* Code that we do not look into: a block without instructions says that it ran. */
static void opaque(struct emit *e, size_t from, size_t to)
{
	close_block(e);
	const struct rewrite_function *f = emit_function_of(e, from);
	bool record = from < to && e->w->place[from].flags & STATEMENT_CODE && !f->skipped &&
		      records_blocks(e);
	if (record) {
		rewrite_block_reset(&e->block, false);
		choose_registers(e, f->borrows);
		start_record(e);
		finish_record(e, true);
		base_str_addf(e->out, ".Llpo%u:\n", e->nr_blocks);
		table_section(e, MEMORY_SECTION_BLOCKS, "aw");
		base_str_addf(&e->tables, ".Llph%u:\n", e->nr_blocks);
		table_block(e,
			MEMORY_BLOCK_OPAQUE | (e->entry ? MEMORY_BLOCK_ENTRY : 0) |
				(e->pad ? MEMORY_BLOCK_PAD : 0),
			MEMORY_TERM_NONE, 0, NULL);
		e->entry = e->pad = false;
		e->nr_blocks++;
		e->w->counts.opaque++;
		e->w->counts.blocks++;
	}
	for (size_t i = from; i < to; i++)
		emit_statement(e, i);
	e->fresh = true;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool starts_block(const struct emit *e, size_t i)
{
	const struct rewrite_place *place = &e->w->place[i];
	return e->w->file.statement[i].kind == ATT_LABEL && place->label &&
	       place->flags & STATEMENT_CODE &&
	       e->w->label_flags[place->label] & (LABEL_REFERENCED | LABEL_PAD | LABEL_FUNCTION);
}

/* Whoever jumps to the label that follows has the pointer in its register; so must who falls into
 * it. */
static void reload(struct emit *e, size_t i)
{
	const struct rewrite_function *f = emit_function_of(e, i);
	if (e->fresh && records_blocks(e) && !f->borrows && !f->skipped)
		load_pointer(e, "r10");
	e->fresh = false;
}

static void at_label(struct emit *e, size_t i)
{
	unsigned flags = e->w->label_flags[e->w->place[i].label];
	close_block(e);
	if (!(flags & LABEL_FUNCTION))
		reload(e, i);
	emit_statement(e, i);
	e->fresh = (flags & (LABEL_FUNCTION | LABEL_PAD)) != 0;
	if (flags & LABEL_FUNCTION) {
		e->entry = true;
		e->w->counts.functions += !emit_function_of(e, i)->skipped;
		e->w->counts.borrowing += emit_function_of(e, i)->borrows;
	}
	e->pad = flags & LABEL_PAD && !(flags & LABEL_FUNCTION);
}

static void emit_add_instruction(struct emit *e, size_t i)
{
	const struct rewrite *w = e->w;
	uint32_t n = w->place[i].instruction;
	const struct machine_instruction *m = &w->instruction[n];
	const struct rewrite_function *f = emit_function_of(e, i);
	size_t behind =
		e->open ? behind_statement(e, e->block.step[e->block.nr_steps - 1].statement) : i;
	bool full = e->open && f->borrows && !f->skipped &&
		    nr_free((unsigned)e->block.mentioned | m->mentioned) < BORROWED;
	if (full) {
		close_block(e);
		emit_between(e, behind, i);
	}
	if (!e->open) {
		rewrite_block_reset(&e->block, f->has_frame);
		e->open = true;
		e->section = w->place[i].section;
	}
	if (!rewrite_block_add(&e->block, w, (uint32_t)i, n, &e->w->counts.unknown)) {
		close_block(e);
		emit_between(e, behind, i);
		rewrite_block_reset(&e->block, f->has_frame);
		e->open = true;
		(void)rewrite_block_add(&e->block, w, (uint32_t)i, n, &e->w->counts.unknown);
	}
	if (m->terminator != MEMORY_TERM_NONE)
		close_block(e);
}

/* Inside a block these stay where they are, between two instructions. */
static bool may_stay(const struct emit *e, size_t i)
{
	struct att_text word = rewrite_att_word(&e->w->file.statement[i]);
	return e->w->file.statement[i].kind == ATT_LABEL || rewrite_att_begins(word, ".loc") ||
	       rewrite_att_begins(word, ".cfi_") || rewrite_att_is(word, ".p2align") ||
	       rewrite_att_is(word, ".align");
}

static void emit_walk(struct emit *e)
{
	const struct rewrite *w = e->w;
	size_t i = 0;
	while (i < w->file.nr) {
		const struct rewrite_place *place = &w->place[i];
		if (place->flags & STATEMENT_OPAQUE) {
			size_t to = i;
			while (to < w->file.nr && w->place[to].flags & STATEMENT_OPAQUE)
				to++;
			e->section = place->section;
			opaque(e, i, to);
			i = to;
		} else if (place->instruction) {
			emit_add_instruction(e, i);
			i = behind_statement(e, i);
		} else if (starts_block(e, i)) {
			at_label(e, i++);
		} else if (e->open && may_stay(e, i)) {
			i++; /* written with the block, or behind it */
			size_t next = i;
			while (next < w->file.nr && !w->place[next].instruction &&
				!(w->place[next].flags & STATEMENT_OPAQUE) &&
				!starts_block(e, next) && may_stay(e, next))
				next++;
			if (next < w->file.nr && w->place[next].instruction &&
				w->place[next].section == e->section) {
				i = next;
				continue;
			}
			close_block(e);
			emit_between(e, i - 1, next);
			i = next;
		} else {
			close_block(e);
			emit_statement(e, i++);
		}
	}
	close_block(e);
}

enum base_status rewrite_emit(struct rewrite *w, struct base_str *ret, struct base_err *err)
{
	struct emit *e = base_alloc(sizeof *e);
	if (!e || !w->instruction) {
		base_free(e);
		return base_fail(err, e ? BASE_ERR_USAGE : BASE_ERR_NOMEM, "nothing to rewrite");
	}
	e->w = w;
	e->out = ret;
	e->nr_blocks = 1;
	memset(&w->counts, 0, sizeof w->counts);
	emit_walk(e);
	base_str_addf(&e->tables,
		"\t.section\t" MEMORY_NOTE_SECTION
		",\"a\",@note\n\t.balign\t4\n\t.long\t%zu,8,%d\n\t.asciz\t\"" MEMORY_NOTE_NAME
		"\"\n\t.balign\t4\n\t.long\t%d,%u\n",
		sizeof MEMORY_NOTE_NAME, MEMORY_NOTE_TYPE, MEMORY_STREAM_VERSION, w->options.level);
	base_str_add_bytes(ret, base_str_text(&e->tables), e->tables.length);
	bool failed = ret->failed || e->tables.failed;
	base_str_fini(&e->tables);
	base_free(e);
	return failed ? base_fail(err, BASE_ERR_NOMEM, "no memory for the rewritten assembly")
		      : BASE_OK;
}
