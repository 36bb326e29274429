/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - table chunks into blocks. Everything comes from a file: every length and offset is
 * checked. */
#include "memory/stream/tables.h"

#include <stdlib.h>
#include <string.h>

enum {
	MODULES_MAX = 16384, /* (new code of a file, met later, is one more) */
	SECTION_MAX_BYTES = 1 << 29,
	ALIGN_BYTES = 16,
	PAGE_BYTES = 4096,
	DISP_BYTES = 4,
	CALL_LOOK_BACK_BLOCKS = 64, /* some are empty, some overlap */
	INSTRUCTION_MAX_BYTES = 15,
	BLOCK_MAX_BYTES = MEMORY_BLOCK_INSTRUCTIONS_MAX * INSTRUCTION_MAX_BYTES,
};

struct section {
	uint8_t *bytes;
	size_t capacity, size; /* of the whole; filled up in parts */
	uint64_t address, got;
};
struct module {
	struct section section[MEMORY_TABLE_SECTIONS];
	uint64_t load_bias;
	uint32_t first_index;
	bool seen, in_place, made;
};
struct memory_tables_builder {
	uint32_t image;
	struct module *module;
	size_t nr_modules, capacity;
};

/* ---- collecting ------------------------------------------------------------------------------ */

struct memory_tables_builder *memory_tables_begin(uint32_t image)
{
	struct memory_tables_builder *b = base_alloc(sizeof *b);
	if (b)
		b->image = image;
	return b;
}

void memory_tables_free(struct memory_tables_builder *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->nr_modules; i++)
		for (unsigned k = 0; k < MEMORY_TABLE_SECTIONS; k++)
			base_free(b->module[i].section[k].bytes);
	base_free(b->module);
	base_free(b);
}

static enum base_status nonsense(struct base_err *err, const char *what)
{
	return base_fail(err, BASE_ERR_CORRUPT, "the tables of the recorded program: %s", what);
}

static enum base_status tables_no_memory(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOMEM, "no memory for the tables of the recorded program");
}

enum base_status memory_tables_add(struct memory_tables_builder *b, const uint8_t *chunk,
	size_t size_bytes, struct base_err *err)
{
	struct memory_chunk_head head;
	struct memory_table_head table;
	size_t heads = sizeof head + sizeof table;
	if (size_bytes < heads)
		return nonsense(err, "a chunk is too short");
	memcpy(&head, chunk, sizeof head);
	memcpy(&table, chunk + sizeof head, sizeof table);
	uint64_t part = size_bytes - heads;
	if (head.bytes != size_bytes || table.module >= MODULES_MAX ||
		table.section >= MEMORY_TABLE_SECTIONS || table.bytes > SECTION_MAX_BYTES ||
		table.offset > table.bytes || part > table.bytes - table.offset ||
		table.first_index >= MEMORY_BLOCKS_MAX)
		return nonsense(err, "numbers that cannot be");
	if (base_grow(&b->module, &b->capacity, (size_t)table.module + 1, sizeof *b->module) !=
		BASE_OK)
		return tables_no_memory(err);
	if (table.module >= b->nr_modules)
		b->nr_modules = (size_t)table.module + 1;
	struct module *m = &b->module[table.module];
	struct section *s = &m->section[table.section];
	/* Room only for what is there: a forged length costs nothing. */
	if (base_grow(&s->bytes, &s->capacity, (size_t)(table.offset + part) + 1, 1) != BASE_OK)
		return tables_no_memory(err);
	memcpy(s->bytes + table.offset, chunk + heads, (size_t)part);
	s->got += part;
	s->size = (size_t)table.bytes;
	s->address = table.address;
	m->load_bias = table.load_bias;
	m->first_index = table.first_index;
	m->in_place = table.flags & MEMORY_TABLE_IN_PLACE;
	m->seen = true;
	return BASE_OK;
}

static bool tables_is_whole(const struct section *s)
{
	return s->bytes && s->got == s->size && s->size < s->capacity;
}

/* ---- one block's description ----------------------------------------------------------------- */

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static uint8_t tables_take(struct cursor *c)
{
	if (c->p >= c->end) {
		c->bad = true;
		return 0;
	}
	return *c->p++;
}

static uint32_t tables_take_u32(struct cursor *c)
{
	uint32_t v = 0;
	if (c->end - c->p < DISP_BYTES) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, sizeof v);
	c->p += sizeof v;
	return v;
}

struct maker {
	struct memory_tables *t;
	const struct module *m;
	unsigned level;
};

static bool slot_ok(const struct memory_table_block *b, unsigned slot, unsigned count)
{
	return slot + count <= b->nr_slots;
}

/* Every slot that the decoder will read is one of the block's. */
static bool access_ok(const struct memory_table_block *b, const struct memory_table_access *a)
{
	bool sized = a->size > 0 && a->size <= MEMORY_ACCESS_MAX_BYTES;
	if (a->instruction >= b->nr_instructions || a->direction >= MEMORY_ACCESS_DIRECTIONS ||
		a->reg >= MEMORY_REG_KINDS || a->form >= MEMORY_FORMS)
		return false;
	if (memory_access_stamped(a) &&
		(!slot_ok(b, a->after, 1) ||
			(a->before != MEMORY_NO_SLOT && !slot_ok(b, a->before, 1))))
		return false;
	switch ((enum memory_access_form)a->form) {
	case MEMORY_FORM_STATIC:
	case MEMORY_FORM_FS:
	case MEMORY_FORM_ABSOLUTE:
		return sized;
	case MEMORY_FORM_NEVER:
	case MEMORY_FORM_RANGE_STATIC:
		return true;
	case MEMORY_FORM_SLOT:
	case MEMORY_FORM_FS_SLOT:
		return sized && slot_ok(b, a->slot, 1);
	case MEMORY_FORM_SILENT:
		return a->slot == MEMORY_NO_SLOT || slot_ok(b, a->slot, 1);
	case MEMORY_FORM_RANGE:
		return slot_ok(b, a->slot, 1);
	case MEMORY_FORM_STRING:
		return sized && slot_ok(b, a->slot, 1) && slot_ok(b, a->slot2, 1);
	case MEMORY_FORM_STRING_LEFT:
		return sized && slot_ok(b, a->slot, 1) && slot_ok(b, a->slot2, 1) &&
		       slot_ok(b, a->slot3, 1);
	case MEMORY_FORM_MASKED:
	case MEMORY_FORM_PACKED:
		return sized && slot_ok(b, a->slot, 1) && slot_ok(b, a->slot2, 1) &&
		       a->elements <= 64;
	case MEMORY_FORM_VECTOR:
		return sized && slot_ok(b, a->slot, 1) && slot_ok(b, a->slot2, 1) &&
		       (a->index_bytes == 4 || a->index_bytes == 8) && a->elements <= 16 &&
		       slot_ok(b, a->slot3, (a->elements * (unsigned)a->index_bytes + 7) / 8);
	default:
		return false;
	}
}

static bool read_access(struct maker *k, struct cursor *c, const struct memory_table_block *b,
	struct memory_table_access *a)
{
	const struct section *info = &k->m->section[MEMORY_TABLE_INFO];
	*a = (struct memory_table_access){.instruction = tables_take(c)};
	unsigned what = tables_take(c);
	a->direction = what & 3;
	a->reg = what >> 2 & 3;
	a->form = (uint8_t)(what >> 4);
	a->size = tables_take(c);
	a->slot = tables_take(c);
	uint64_t at = info->address + (uint64_t)(c->p - info->bytes);
	int32_t disp = (int32_t)tables_take_u32(c);
	a->disp = disp;
	if (a->form == MEMORY_FORM_STATIC || a->form == MEMORY_FORM_RANGE_STATIC)
		a->disp = (int64_t)(at + (uint64_t)(int64_t)disp);
	if (a->form == MEMORY_FORM_ABSOLUTE)
		a->disp = (int64_t)(uint32_t)disp;
	if (a->direction == MEMORY_ACCESS_BOTH) {
		a->before = tables_take(c);
		a->after = tables_take(c);
	}
	switch ((enum memory_access_form)a->form) {
	case MEMORY_FORM_STRING:
		a->slot2 = tables_take(c);
		break;
	case MEMORY_FORM_STRING_LEFT:
		a->slot2 = tables_take(c);
		a->slot3 = tables_take(c);
		break;
	case MEMORY_FORM_RANGE:
	case MEMORY_FORM_RANGE_STATIC:
		a->bytes = tables_take_u32(c);
		break;
	case MEMORY_FORM_MASKED:
	case MEMORY_FORM_PACKED:
		a->slot2 = tables_take(c);
		a->elements = tables_take(c);
		break;
	case MEMORY_FORM_VECTOR:
		a->slot3 = tables_take(c);
		a->index_bytes = tables_take(c);
		a->scale = tables_take(c);
		a->elements = tables_take(c);
		a->slot2 = tables_take(c);
		break;
	default:
		break;
	}
	return !c->bad && access_ok(b, a);
}

static void reach_stack(struct memory_table_block *b, const struct memory_table_access *a)
{
	const int64_t to = a->disp + a->size;
	if (b->nr_stack && !a->slot && a->form == MEMORY_FORM_SLOT && to > b->stack_bytes)
		b->stack_bytes = (uint16_t)(to < UINT16_MAX ? to : UINT16_MAX);
}

static bool tables_is_mark(const struct memory_block_head *h)
{
	return h->flags & MEMORY_BLOCK_MARK;
}

static enum base_status tables_read_info(struct maker *k, const struct memory_block_head *h,
	uint64_t head_address, struct memory_table_block *b, struct base_err *err)
{
	struct memory_tables *t = k->t;
	const struct section *info = &k->m->section[MEMORY_TABLE_INFO];
	uint64_t at = head_address + offsetof(struct memory_block_head, info) +
		      (uint64_t)(int64_t)h->info - info->address;
	if (at >= info->size)
		return nonsense(err, "a block without a description");
	struct cursor c = {.p = info->bytes + at, .end = info->bytes + info->size};
	b->nr_instructions = tables_take(&c);
	unsigned nr_accesses = tables_take(&c);
	b->first_access = (uint32_t)t->nr_accesses;
	b->first_instruction = (uint32_t)t->nr_instructions;
	if (base_grow(&t->access, &t->accesses_capacity, t->nr_accesses + nr_accesses,
		    sizeof *t->access) != BASE_OK ||
		base_grow(&t->instruction, &t->instructions_capacity,
			t->nr_instructions + b->nr_instructions,
			sizeof *t->instruction) != BASE_OK ||
		base_grow(&t->linked, &t->linked_capacity, t->nr_instructions + b->nr_instructions,
			sizeof *t->linked) != BASE_OK)
		return tables_no_memory(err);
	uint32_t offset = 0, last = 0, linked = 0;
	for (unsigned i = 0; i < b->nr_instructions; i++) {
		uint8_t length = tables_take(&c);
		if (!length || length > INSTRUCTION_MAX_BYTES)
			return nonsense(err, "an instruction that cannot be");
		/* Addresses are given without the gap; the file has it. */
		t->linked[t->nr_instructions] = linked;
		t->instruction[t->nr_instructions++] = last = offset;
		linked += (uint32_t)length + tables_take(&c);
		offset += length;
	}
	b->end = offset; /* made addresses by lay_out() */
	b->last = last;
	unsigned elements = 0;
	for (unsigned i = 0; i < nr_accesses; i++) {
		const struct memory_table_access *a = &t->access[t->nr_accesses];
		if (!read_access(k, &c, b, &t->access[t->nr_accesses]))
			return nonsense(err, "an access that cannot be");
		if (a->form == MEMORY_FORM_SILENT) {
			b->silent = a->slot == MEMORY_NO_SLOT ? MEMORY_HEAD_SLOT : a->slot;
			t->has_silent = true;
			continue;
		}
		reach_stack(b, a);
		elements += a->elements;
		t->nr_accesses++;
		b->nr_accesses++;
	}
	if (elements > MEMORY_BLOCK_ELEMENTS_MAX)
		return nonsense(err, "too many elements in a block");
	return c.bad ? nonsense(err, "a description that is cut") : BASE_OK;
}

static enum base_status make_block(
	struct maker *k, uint32_t module, uint32_t i, struct base_err *err)
{
	const struct section *heads = &k->m->section[MEMORY_TABLE_BLOCKS];
	struct memory_block_head h;
	uint32_t index = k->m->first_index + i;
	struct memory_table_block *b = &k->t->block[index];
	uint64_t head_address = heads->address + (uint64_t)i * sizeof h;
	memcpy(&h, heads->bytes + (size_t)i * sizeof h, sizeof h);
	unsigned ticks = h.flags >> MEMORY_BLOCK_TICKS_SHIFT;
	if (b->exists || h.nr_slots > MEMORY_BLOCK_SLOTS_MAX || h.nr_stack + ticks > h.nr_slots ||
		h.terminator >= MEMORY_TERMINATORS)
		return nonsense(err, "a block that cannot be");
	*b = (struct memory_table_block){
		.linked = head_address + (uint64_t)(int64_t)h.code - k->m->load_bias,
		.module = (uint16_t)module,
		.nr_slots = h.nr_slots,
		.nr_stack = h.nr_stack,
		.nr_ticks = ticks & 15u,
		.flags = h.flags & ((1u << MEMORY_BLOCK_TICKS_SHIFT) - 1),
		.terminator = h.terminator & 15u,
		.silent = MEMORY_NO_SLOT,
		.exists = true,
		.in_place = k->m->in_place};
	if (!tables_is_mark(&h))
		return tables_read_info(k, &h, head_address, b, err);
	static const uint8_t slots[] = {
#define MARK(name, nr, nr_ticks) nr,
		MEMORY_MARKS(MARK)
#undef MARK
	};
	if (h.info < 0 || h.info >= MEMORY_MARK_NR || slots[h.info] != h.nr_slots)
		return nonsense(err, "a mark that cannot be");
	b->first_access = (uint32_t)h.info;
	return BASE_OK;
}

/* ---- addresses ------------------------------------------------------------------------------- */

struct place {
	uint64_t linked;
	uint32_t index;
};

static int by_linked(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->linked != y->linked)
		return x->linked < y->linked ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int tables_by_address(const void *a, const void *b, void *ctx)
{
	const struct memory_tables *t = ctx;
	uint64_t x = t->block[*(const uint32_t *)a].address;
	uint64_t y = t->block[*(const uint32_t *)b].address;
	return x < y ? -1 : x > y;
}

/* Where they are. */
static enum base_status leave_in_place(
	struct memory_tables *t, const struct memory_table_module *m, struct base_err *err)
{
	for (uint32_t i = m->first_index; i < m->first_index + m->nr_blocks; i++) {
		struct memory_table_block *b = &t->block[i];
		if (!b->exists || b->flags & MEMORY_BLOCK_MARK)
			continue;
		b->address = b->linked + m->load_bias;
		if (b->address > MEMORY_ADDRESS_LIMIT - BLOCK_MAX_BYTES)
			return nonsense(err, "code beyond the address space");
		b->last += b->address;
		b->end += b->address;
		t->by_address[t->nr_by_address++] = i;
	}
	return BASE_OK;
}

/* The blocks of a module one behind the other, as without recording code. */
static enum base_status lay_out(
	struct memory_tables *t, const struct memory_table_module *m, struct base_err *err)
{
	struct place *place = base_alloc(((size_t)m->nr_blocks + 1) * sizeof *place);
	size_t nr = 0;
	if (!place)
		return tables_no_memory(err);
	for (uint32_t i = m->first_index; i < m->first_index + m->nr_blocks; i++)
		if (t->block[i].exists && !(t->block[i].flags & MEMORY_BLOCK_MARK))
			place[nr++] = (struct place){t->block[i].linked, i};
	qsort(place, nr, sizeof *place, by_linked);
	uint64_t at = nr ? (place[0].linked + m->load_bias) & ~(uint64_t)(PAGE_BYTES - 1) : 0;
	for (size_t i = 0; i < nr; i++) {
		struct memory_table_block *b = &t->block[place[i].index];
		if (b->flags & MEMORY_BLOCK_ENTRY)
			at = (at + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
		if (at + b->end > MEMORY_ADDRESS_LIMIT) {
			base_free(place);
			return nonsense(err, "code beyond the address space");
		}
		b->address = at;
		b->last += at;
		b->end += at;
		at = b->end;
		t->by_address[t->nr_by_address++] = place[i].index;
	}
	base_free(place);
	return BASE_OK;
}

/* The block whose code contains the address; NULL: none. */
static const struct memory_table_block *tables_find_block(
	const struct memory_tables *t, uint64_t address)
{
	size_t low =
		BASE_PARTITION(i, t->nr_by_address, t->block[t->by_address[i]].address <= address);
	/* Blocks may be empty, and may overlap. */
	while (low-- > 0) {
		const struct memory_table_block *b = &t->block[t->by_address[low]];
		if (address < b->end)
			return b;
		if (address - b->address >= BLOCK_MAX_BYTES)
			return NULL;
	}
	return NULL;
}

/* Modules do not overlap, so blocks are in the same order where they really are. */
uint64_t memory_tables_call(const struct memory_tables *t, uint64_t returns_to)
{
	size_t low = BASE_PARTITION(i, t->nr_by_address,
		t->block[t->by_address[i]].linked +
				t->module[t->block[t->by_address[i]].module].load_bias <
			returns_to);
	for (unsigned tries = CALL_LOOK_BACK_BLOCKS; low-- > 0 && tries; tries--) {
		const struct memory_table_block *b = &t->block[t->by_address[low]];
		bool calls = b->terminator == MEMORY_TERM_CALL ||
			     b->terminator == MEMORY_TERM_CALL_INDIRECT;
		if (!b->nr_instructions || !calls)
			continue;
		uint64_t last = b->linked + t->module[b->module].load_bias +
				t->linked[b->first_instruction + b->nr_instructions - 1u];
		if (returns_to - last - 1 < INSTRUCTION_MAX_BYTES)
			return b->last;
	}
	return 0;
}

/* Where that instruction is in its module's file. */
static uint64_t linked_address(
	const struct memory_tables *t, const struct memory_table_block *b, uint64_t address)
{
	uint64_t linked = b->linked;
	for (uint32_t i = b->first_instruction; i < b->first_instruction + b->nr_instructions; i++)
		if (b->address + t->instruction[i] <= address)
			linked = b->linked + t->linked[i];
	return linked;
}

bool memory_tables_place(const struct memory_tables *t, uint64_t address, bool code,
	size_t candidate, struct memory_linked *ret)
{
	const struct memory_table_block *b = code ? tables_find_block(t, address) : NULL;
	if (candidate >= (code ? 1u : t->nr_modules) ||
		(code && (!b || b->module >= t->nr_modules)))
		return false;
	const struct memory_table_module *m = &t->module[code ? b->module : candidate];
	ret->path = m->path ? m->path : "";
	ret->address = code ? linked_address(t, b, address) : address - m->load_bias;
	return true;
}

/* ---- templates ------------------------------------------------------------------------------- */

static bool is_simple(const struct memory_table_access *a)
{
	return !memory_access_stamped(a) &&
	       (a->form == MEMORY_FORM_SLOT || a->form == MEMORY_FORM_STATIC ||
		       a->form == MEMORY_FORM_ABSOLUTE || a->form == MEMORY_FORM_NEVER);
}

static bool block_is_simple(const struct memory_tables *t, const struct memory_table_block *b)
{
	if (b->flags & (MEMORY_BLOCK_MARK | MEMORY_BLOCK_OPAQUE))
		return false;
	for (uint32_t i = 0; i < b->nr_accesses; i++) {
		const struct memory_table_access *a = &t->access[b->first_access + i];
		if (!is_simple(a))
			return false;
		bool fixed = a->form == MEMORY_FORM_STATIC || a->form == MEMORY_FORM_ABSOLUTE;
		if (fixed && (uint64_t)a->disp > MEMORY_ADDRESS_LIMIT - a->size)
			return false;
	}
	return true;
}

static void template(struct memory_tables *t, struct memory_table_block *b, unsigned level)
{
	b->first_item = (uint32_t)t->nr_items;
	uint32_t counted = 0;
	bool blocks = level != 2 && b->nr_instructions;
	size_t first = t->nr_items;
	t->nr_items += blocks;
	for (uint32_t i = 0; i < b->nr_accesses; i++) {
		const struct memory_table_access *a = &t->access[b->first_access + i];
		uint32_t upto = a->instruction + 1u;
		if (a->form == MEMORY_FORM_NEVER)
			continue;
		t->item_slot[t->nr_items] = a->form == MEMORY_FORM_SLOT ? a->slot : MEMORY_NO_SLOT;
		t->item[t->nr_items++] = (struct memory_item){
			.kind = memory_item_kind_of(a->direction),
			.reg = a->reg & 15u,
			.size_bytes = a->size,
			.address = (uint64_t)a->disp,
			.code = b->address + t->instruction[b->first_instruction + a->instruction],
			.instructions = level == 2       ? 1
					: upto > counted ? upto - counted
							 : 0};
		counted = upto > counted ? upto : counted;
	}
	if (blocks) {
		t->item_slot[first] = MEMORY_NO_SLOT;
		t->item[first] = (struct memory_item){.kind = MEMORY_BLOCK,
			.address = b->address,
			.size_bytes = (uint16_t)(b->end - b->address),
			.count = b->nr_instructions,
			.instructions = b->nr_instructions - counted};
	}
	b->nr_items = (uint32_t)(t->nr_items - first);
}

static enum base_status make_templates(struct memory_tables *t, const struct memory_table_module *m,
	unsigned level, struct base_err *err)
{
	uint32_t end = m->first_index + m->nr_blocks;
	size_t most = t->nr_items + m->nr_blocks;
	for (uint32_t i = m->first_index; i < end; i++)
		most += t->block[i].flags & MEMORY_BLOCK_MARK ? 0 : t->block[i].nr_accesses;
	if (base_grow(&t->item, &t->items_capacity, most, sizeof *t->item) != BASE_OK ||
		base_grow(&t->item_slot, &t->item_slots_capacity, most, 1) != BASE_OK)
		return tables_no_memory(err);
	for (uint32_t i = m->first_index; i < end; i++)
		if (i && t->block[i].exists && block_is_simple(t, &t->block[i]))
			template(t, &t->block[i], level);
	return BASE_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool is_ready(const struct module *m)
{
	const struct section *info = &m->section[MEMORY_TABLE_INFO];
	return m->seen && !m->made && tables_is_whole(&m->section[MEMORY_TABLE_BLOCKS]) &&
	       (!info->bytes || tables_is_whole(info));
}

static enum base_status size_up(
	const struct memory_tables_builder *b, struct memory_tables *t, struct base_err *err)
{
	uint64_t nr = t->nr_blocks > 1 ? t->nr_blocks : 1;
	for (size_t i = 0; i < b->nr_modules; i++) {
		const struct module *m = &b->module[i];
		const struct section *heads = &m->section[MEMORY_TABLE_BLOCKS];
		if (!is_ready(m))
			continue;
		uint64_t end = m->first_index + heads->size / sizeof(struct memory_block_head);
		nr = end > nr ? end : nr;
	}
	if (nr > MEMORY_BLOCKS_MAX)
		return nonsense(err, "too many blocks");
	/* (base_grow() gives zeroes) */
	if (base_grow(&t->block, &t->blocks_capacity, nr, sizeof *t->block) != BASE_OK ||
		base_grow(&t->slot_base, &t->slot_bases_capacity, nr + 1, sizeof *t->slot_base) !=
			BASE_OK ||
		base_grow(&t->by_address, &t->by_address_capacity, nr, sizeof *t->by_address) !=
			BASE_OK ||
		base_grow(&t->module, &t->modules_capacity, b->nr_modules + 1, sizeof *t->module) !=
			BASE_OK)
		return tables_no_memory(err);
	t->nr_blocks = (uint32_t)nr;
	t->nr_modules = b->nr_modules;
	return BASE_OK;
}

static enum base_status make_module(struct memory_tables_builder *b, size_t i,
	struct memory_tables *t, unsigned level, struct base_err *err)
{
	struct module *m = &b->module[i];
	struct section *heads = &m->section[MEMORY_TABLE_BLOCKS];
	struct section *path = &m->section[MEMORY_TABLE_PATH];
	struct maker k = {.t = t, .m = m, .level = level};
	struct memory_table_module *to = &t->module[i];
	m->made = true;
	to->load_bias = m->load_bias;
	to->first_index = m->first_index;
	to->nr_blocks = (uint32_t)(heads->size / sizeof(struct memory_block_head));
	if (tables_is_whole(path) && path->size && !path->bytes[path->size - 1]) {
		to->path = (char *)path->bytes;
		path->bytes = NULL;
	}
	for (uint32_t n = 0; n < to->nr_blocks; n++) {
		enum base_status status = make_block(&k, (uint32_t)i, n, err);
		if (status != BASE_OK)
			return status;
	}
	enum base_status status = m->in_place ? leave_in_place(t, to, err) : lay_out(t, to, err);
	for (uint32_t n = to->first_index; n < to->first_index + to->nr_blocks; n++) {
		t->slot_base[n] = (uint32_t)t->nr_slots;
		t->nr_slots += t->block[n].nr_slots;
	}
	return status == BASE_OK ? make_templates(t, to, level, err) : status;
}

enum base_status memory_tables_extend(struct memory_tables_builder *b, unsigned level,
	struct memory_tables *ret, struct base_err *err)
{
	ret->image = b->image;
	enum base_status status = size_up(b, ret, err);
	for (size_t i = 0; status == BASE_OK && i < b->nr_modules; i++)
		if (is_ready(&b->module[i]))
			status = make_module(b, i, ret, level, err);
	if (status == BASE_OK)
		qsort_r(ret->by_address, ret->nr_by_address, sizeof *ret->by_address,
			tables_by_address, ret);
	if (status != BASE_OK)
		memory_tables_fini(ret);
	return status;
}

enum base_status memory_tables_end(struct memory_tables_builder *b, unsigned level,
	struct memory_tables *ret, struct base_err *err)
{
	*ret = (struct memory_tables){0};
	enum base_status status = memory_tables_extend(b, level, ret, err);
	memory_tables_free(b);
	return status;
}

void memory_tables_fini(struct memory_tables *t)
{
	for (size_t i = 0; t->module && i < t->nr_modules; i++)
		base_free(t->module[i].path);
	base_free(t->block);
	base_free(t->slot_base);
	base_free(t->access);
	base_free(t->instruction);
	base_free(t->linked);
	base_free(t->item);
	base_free(t->item_slot);
	base_free(t->module);
	base_free(t->by_address);
	*t = (struct memory_tables){0};
}
