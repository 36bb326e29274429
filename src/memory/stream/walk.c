/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - a piece's words into items: what each block executed, branches between blocks, loops. */
#include "memory/stream/decode.h"

#include <string.h>

enum {
	BLOCK_ITEMS_MAX = 1024, /* room that a block may need: ranges and masks count */
	EXTRA_ITEMS = 8,        /* branch, start of a procedure, stamps */
};

const char *memory_stream_unseen(unsigned flags)
{
	if (flags & MEMORY_CHUNK_INTERFACE)
		return "instructions and registers (the program was built for accesses only), and "
		       "code that `longpole cc` did not build. Of accesses those that the compiler "
		       "took for constant, for covered by another one, or for private to a thread "
		       "(locals whose address stays in their function, spilled registers)";
	if (flags & MEMORY_CHUNK_EMULATED)
		return "what the kernel does but for the memory that reading and writing calls "
		       "access; which blocks malloc gave; the processor's own times: QEMU ran the "
		       "program";
	return flags & MEMORY_CHUNK_SERIAL
		       ? "what the kernel does but for the memory that system calls read and "
			 "write; "
			 "threads that really ran at the same time: Valgrind runs one at a time"
		       : "code that `longpole cc` did not build (libraries, hand-written "
			 "assembly, "
			 "the kernel) is not in the stream";
}

void memory_walk_begin(struct memory_walk *w, const struct memory_words *words)
{
	w->words = *words;
	w->at = w->next_copy = w->loop_at = 0;
	w->stamped = false;
}

/* ---- from one block to the next -------------------------------------------------------------- */

static struct memory_item *branch(const struct memory_table_block *from, enum memory_item_kind kind,
	uint64_t to, struct memory_item *out)
{
	*out = (struct memory_item){.kind = (uint8_t)kind, .code = from->last, .address = to};
	return out + 1;
}

/* What the end of the block before did, now that it is known where it led. */
static struct memory_item *walk_leave(struct memory_walk *w, uint32_t index,
	const struct memory_table_block *to, struct memory_item *out)
{
	if (!w->previous)
		return out;
	const struct memory_table_block *from = &w->tables->block[w->previous];
	bool entry = to->flags & MEMORY_BLOCK_ENTRY;
	switch ((enum memory_terminator)from->terminator) {
	case MEMORY_TERM_BRANCH:
		if ((index == w->previous + 1 && !to->in_place) || to->address == from->end)
			return out;
		return branch(from, MEMORY_BRANCH, to->address, out);
	case MEMORY_TERM_JUMP:
	case MEMORY_TERM_INDIRECT:
	case MEMORY_TERM_TAIL:
		return branch(from, MEMORY_BRANCH, to->address, out);
	case MEMORY_TERM_CALL:
	case MEMORY_TERM_CALL_INDIRECT:
		w->counts.unseen_calls += !entry;
		return branch(from, MEMORY_PROC_CALL, entry ? to->address : 0, out);
	case MEMORY_TERM_RETURN:
		return branch(from, MEMORY_PROC_RETURN, entry ? 0 : to->address, out);
	default:
		return out;
	}
}

static struct memory_item *walk_enter(struct memory_walk *w, uint32_t index,
	const struct memory_table_block *b, struct memory_item *out)
{
	if (w->level == 2)
		return out;
	unsigned by = w->previous ? w->tables->block[w->previous].terminator : MEMORY_TERM_NONE;
	out = walk_leave(w, index, b, out);
	BASE_ASSUME(out);
	/* A loop may begin with the procedure: it is not called again by going round. */
	if (b->flags & MEMORY_BLOCK_ENTRY && by != MEMORY_TERM_BRANCH && by != MEMORY_TERM_JUMP) {
		*out++ = (struct memory_item){
			.kind = MEMORY_PROC_START, .code = b->address, .address = b->address};
	}
	return out;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

bool memory_stacks_have(const struct memory_stacks *s, uint64_t address, uint64_t bytes)
{
	for (unsigned i = 0; i < s->nr; i++)
		if (address < s->part[i].to && s->part[i].from < address + bytes)
			return true;
	return false;
}

/* One grows by what is not far from it: a frame may have large arrays. */
static void note_elsewhere(struct memory_stacks *s, uint64_t from, uint64_t to)
{
	enum { APART = 1 << 20 };
	for (unsigned i = 0; i < s->nr; i++) {
		if (from > s->part[i].to + APART || to + APART < s->part[i].from)
			continue;
		s->part[i].from = from < s->part[i].from ? from : s->part[i].from;
		s->part[i].to = to > s->part[i].to ? to : s->part[i].to;
		s->last = i;
		return;
	}
	if (s->nr == MEMORY_STACKS_MAX)
		return; /* programs that switch stacks themselves have any number */
	s->last = s->nr++;
	s->part[s->last].from = from;
	s->part[s->last].to = to;
}

static inline void note_stack(
	struct memory_stacks *s, const struct memory_table_block *b, uint64_t address)
{
	const uint64_t to = address + b->stack_bytes;
	if (BASE_UNLIKELY(address < s->part[s->last].from || to > s->part[s->last].to) &&
		address < to && to <= MEMORY_ADDRESS_LIMIT)
		note_elsewhere(s, address, to);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool stores(const struct memory_item *t)
{
	return t->kind == MEMORY_STORE || t->kind == MEMORY_ATOMIC;
}

/* Of a block's stores, when it says so; its slots are behind its head. */
static uint64_t silent_bits(const struct memory_table_block *b, const uint64_t *slot)
{
	return b->silent == MEMORY_HEAD_SLOT ? memory_word_bits(slot[-1])
	       : b->silent != MEMORY_NO_SLOT ? slot[b->silent]
					     : 0;
}

/* Of the next store of a block, whose bits are *silent. */
static unsigned next_flags(uint64_t *silent)
{
	unsigned flags = *silent & 1 ? MEMORY_ITEM_SILENT : 0;
	*silent >>= 1;
	return flags;
}

static void count_store(struct memory_silent *s, const struct memory_item *t, uint64_t times)
{
	unsigned kind = t->kind == MEMORY_ATOMIC ? (unsigned)MEMORY_SILENT_ATOMIC : t->reg;
	s->stores[kind] += times;
	s->silent[kind] += t->flags & MEMORY_ITEM_SILENT ? times : 0;
}

static inline __attribute__((always_inline)) struct memory_item *simple_items(struct memory_walk *w,
	const struct memory_table_block *b, const uint64_t *slot, bool with_silent,
	struct memory_item *out)
{
	const struct memory_item *item = &w->tables->item[b->first_item];
	const uint8_t *from = &w->tables->item_slot[b->first_item];
	uint64_t silent = with_silent ? silent_bits(b, slot) : 0;
	for (uint32_t i = 0; i < b->nr_items; i++) {
		*out = item[i];
		if (with_silent && stores(&item[i]))
			out->flags = next_flags(&silent) & 15u;
		if (from[i] != MEMORY_NO_SLOT) {
			out->address += slot[from[i]];
			if (BASE_UNLIKELY(out->address > MEMORY_ADDRESS_LIMIT - out->size_bytes)) {
				w->counts.bad_addresses++;
				continue;
			}
		}
		if (with_silent && stores(out))
			count_store(&w->counts.silent, out, 1);
		out++;
	}
	return out;
}

static struct memory_item *walk_simple(struct memory_walk *w, const struct memory_table_block *b,
	const uint64_t *slot, struct memory_item *out)
{
	if (BASE_UNLIKELY(b->silent != MEMORY_NO_SLOT))
		return simple_items(w, b, slot, true, out);
	return simple_items(w, b, slot, false, out);
}

static struct memory_item *walk_put(
	struct memory_walk *w, struct memory_item item, struct memory_item *out)
{
	bool range = item.kind == MEMORY_RANGE_LOAD || item.kind == MEMORY_RANGE_STORE;
	uint64_t size = range ? item.count : item.size_bytes;
	if (size > MEMORY_ADDRESS_LIMIT || item.address > MEMORY_ADDRESS_LIMIT - size) {
		w->counts.bad_addresses++;
		return out;
	}
	*out = item;
	return out + 1;
}

static struct memory_item stamp(const struct memory_walk *w, uint64_t ticks)
{
	return (struct memory_item){
		.kind = MEMORY_STAMP, .address = memory_clock_ns(&w->clock, ticks)};
}

static uint64_t index_at(const uint64_t *slot, const struct memory_table_access *a, unsigned n)
{
	if (a->index_bytes == 8)
		return slot[a->slot3 + n];
	uint64_t pair = slot[a->slot3 + n / 2];
	return (uint64_t)(int64_t)(int32_t)(uint32_t)(n % 2 ? pair >> 32 : pair);
}

/* `item` has kind, register, code, instructions. */
static struct memory_item *elements(struct memory_walk *w, const struct memory_table_access *a,
	const uint64_t *slot, struct memory_item item, struct memory_item *out)
{
	uint64_t mask = slot[a->slot2], base = slot[a->slot] + (uint64_t)a->disp;
	mask &= a->elements < 64 ? (UINT64_C(1) << a->elements) - 1 : ~UINT64_C(0);
	unsigned most = MEMORY_ACCESS_MAX_BYTES / a->size,
		 packed = (unsigned)__builtin_popcountll(mask);
	if (a->form == MEMORY_FORM_PACKED)
		mask = packed < 64 ? (UINT64_C(1) << packed) - 1 : ~UINT64_C(0);
	for (unsigned n = 0; n < a->elements;) {
		unsigned run = 1;
		if (!(mask >> n & 1)) {
			n++;
			continue;
		}
		if (a->form == MEMORY_FORM_VECTOR) {
			item.address = base + index_at(slot, a, n) * a->scale;
		} else { /* neighbours are one access */
			item.address = base + n * (uint64_t)a->size;
			while (n + run < a->elements && run < most && mask >> (n + run) & 1)
				run++;
		}
		item.size_bytes = (uint16_t)(run * a->size);
		out = walk_put(w, item, out);
		item.instructions = 0;
		n += run;
	}
	return out;
}

static struct memory_item *access_items(struct memory_walk *w, const struct memory_table_block *b,
	const struct memory_table_access *a, const uint64_t *slot, uint32_t instructions,
	unsigned flags, struct memory_item *out)
{
	bool store = a->direction == MEMORY_ACCESS_STORE;
	bool stamped = memory_access_stamped(a), twice = stamped && a->before != MEMORY_NO_SLOT;
	struct memory_item item = {.kind = memory_item_kind_of(a->direction),
		.reg = a->reg & 15u,
		.flags = flags & 15u,
		.size_bytes = a->size,
		.code = b->address + w->tables->instruction[b->first_instruction + a->instruction],
		.instructions = instructions};
	uint8_t range = store ? MEMORY_RANGE_STORE : MEMORY_RANGE_LOAD;
	if (stamped)
		*out++ = stamp(w, slot[twice ? a->before : a->after]);
	switch ((enum memory_access_form)a->form) {
	case MEMORY_FORM_SLOT:
		item.address = slot[a->slot] + (uint64_t)a->disp;
		break;
	case MEMORY_FORM_STATIC:
	case MEMORY_FORM_ABSOLUTE:
		item.address = (uint64_t)a->disp;
		break;
	case MEMORY_FORM_FS:
		item.address = w->fs_base + (uint64_t)a->disp;
		break;
	case MEMORY_FORM_FS_SLOT:
		item.address = w->fs_base + slot[a->slot] + (uint64_t)a->disp;
		break;
	case MEMORY_FORM_STRING:
	case MEMORY_FORM_STRING_LEFT:
		item.kind = range;
		item.address = slot[a->slot];
		item.count = slot[a->slot2];
		item.count -= a->form == MEMORY_FORM_STRING_LEFT ? slot[a->slot3] : 0;
		if (item.count > MEMORY_ADDRESS_LIMIT / MEMORY_ACCESS_MAX_BYTES) {
			w->counts.bad_addresses++;
			return out;
		}
		item.count *= a->size;
		item.size_bytes = 0;
		break;
	case MEMORY_FORM_RANGE:
	case MEMORY_FORM_RANGE_STATIC:
		item.kind = range;
		item.address =
			(uint64_t)a->disp + (a->form == MEMORY_FORM_RANGE ? slot[a->slot] : 0);
		item.count = a->bytes;
		item.size_bytes = 0;
		break;
	case MEMORY_FORM_MASKED:
	case MEMORY_FORM_PACKED:
	case MEMORY_FORM_VECTOR:
		return elements(w, a, slot, item, out);
	default:
		return out;
	}
	out = walk_put(w, item, out);
	if (twice)
		*out++ = stamp(w, slot[a->after]);
	return out;
}

static struct memory_item *complex(struct memory_walk *w, const struct memory_table_block *b,
	const uint64_t *slot, struct memory_item *out)
{
	uint32_t counted = 0;
	uint64_t silent = silent_bits(b, slot);
	struct memory_item *block = NULL;
	if (b->flags & MEMORY_BLOCK_OPAQUE)
		w->counts.opaque++;
	if (w->level != 2 && b->nr_instructions) {
		block = out;
		*out++ = (struct memory_item){.kind = MEMORY_BLOCK,
			.address = b->address,
			.size_bytes = (uint16_t)(b->end - b->address),
			.count = b->nr_instructions};
	}
	for (uint32_t i = 0; i < b->nr_accesses; i++) {
		const struct memory_table_access *a = &w->tables->access[b->first_access + i];
		uint32_t upto = a->instruction + 1u;
		uint32_t instructions = w->level == 2 ? 1 : upto > counted ? upto - counted : 0;
		struct memory_item *before = out;
		unsigned flags = a->direction != MEMORY_ACCESS_LOAD ? next_flags(&silent) : 0;
		out = access_items(w, b, a, slot, instructions, flags, out);
		if (b->silent != MEMORY_NO_SLOT && out != before && stores(before))
			count_store(&w->counts.silent, before, 1);
		if (out != before)
			counted = upto > counted ? upto : counted;
	}
	if (block)
		block->instructions = b->nr_instructions - counted;
	return out;
}

static struct memory_item *walk_mark(struct memory_walk *w, const struct memory_table_block *b,
	const uint64_t *slot, struct memory_item *out, struct memory_call *call, size_t *nr_calls)
{
	BASE_ASSUME(out);
	switch ((enum memory_mark)b->first_access) {
	case MEMORY_MARK_call:
		if (slot[0] > UINT8_MAX || !memory_call_find((unsigned)slot[0])) {
			w->counts.bad_words++;
			return out;
		}
		call[*nr_calls] = (struct memory_call){.kind = (uint8_t)slot[0],
			.argument = {slot[1], slot[2], slot[3], slot[4]},
			.start_ns = memory_clock_ns(&w->clock, slot[5]),
			.end_ns = memory_clock_ns(&w->clock, slot[6])};
		if (slot[0] == MEMORY_CALL_allocate)
			call[*nr_calls].argument[2] = memory_tables_call(w->tables, slot[3]);
		*out++ = (struct memory_item){.kind = MEMORY_CALL, .address = (*nr_calls)++};
		return out;
	case MEMORY_MARK_take:
	case MEMORY_MARK_give:
		call[*nr_calls] = (struct memory_call){.kind = b->first_access == MEMORY_MARK_take
								       ? MEMORY_CALL_lock
								       : MEMORY_CALL_unlock,
			.argument = {slot[0]},
			.start_ns = memory_clock_ns(&w->clock, slot[1]),
			.end_ns = memory_clock_ns(&w->clock, slot[1])};
		*out++ = (struct memory_item){.kind = MEMORY_CALL, .address = (*nr_calls)++};
		return out;
	case MEMORY_MARK_load:
	case MEMORY_MARK_store:
		return walk_put(w,
			(struct memory_item){.kind = b->first_access == MEMORY_MARK_load
							     ? MEMORY_RANGE_LOAD
							     : MEMORY_RANGE_STORE,
				.address = slot[0],
				.count = slot[1]},
			out);
	case MEMORY_MARK_gap:
		w->counts.gaps++;
		w->previous = 0;
		*out++ = stamp(w, slot[1]);
		return out;
	case MEMORY_MARK_stamp:
		*out++ = stamp(w, slot[0]);
		return out;
	default:
		return out;
	}
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Sets the strides of a body that is written at `out`, whose slots' differences are at hand.
 * Returns the end of the body, NULL: it is no loop of simple blocks, or leaves the address space.
 */
static struct memory_item *body(struct memory_walk *w, uint32_t at, uint32_t distance,
	uint64_t count, struct memory_item *out)
{
	const uint64_t *word = w->words.word;
	uint32_t end = at + distance, previous = w->previous;
	struct memory_item *first = out;
	const struct memory_walk_counts before = w->counts;
	while (at < end) {
		uint64_t index = memory_word_head(word[at]);
		if (index >= w->tables->nr_blocks)
			goto no_loop;
		const struct memory_table_block *b = &w->tables->block[index];
		bool accesses_nothing = !b->nr_items && !b->nr_accesses && b->exists &&
					!(b->flags & (MEMORY_BLOCK_MARK | MEMORY_BLOCK_OPAQUE));
		if ((!b->nr_items && !accesses_nothing) || at + 1 + b->nr_slots > end ||
			(size_t)(out - first) + b->nr_items + EXTRA_ITEMS > MEMORY_REPEAT_BODY_MAX)
			goto no_loop;
		out = walk_enter(w, (uint32_t)index, b, out);
		if (b->nr_stack)
			note_stack(&w->stacks, b, word[at + 1]);
		w->previous = (uint32_t)index;
		const struct memory_item *item = &w->tables->item[b->first_item];
		const uint8_t *from = &w->tables->item_slot[b->first_item];
		uint64_t silent = 0;
		if (b->silent != MEMORY_NO_SLOT) {
			silent = silent_bits(b, &word[at + 1]);
			if (silent != silent_bits(b, &word[at + 1 - distance]))
				goto no_loop; /* other stores are silent each time */
		}
		for (uint32_t i = 0; i < b->nr_items; i++) {
			*out = item[i];
			if (b->silent != MEMORY_NO_SLOT && stores(out)) {
				out->flags = next_flags(&silent) & 15u;
				count_store(&w->counts.silent, out, count);
			}
			if (from[i] != MEMORY_NO_SLOT) {
				const uint64_t *slot = &word[at + 1 + from[i]];
				int64_t stride = (int64_t)(*slot - *(slot - distance)), span, last;
				out->address += *slot;
				out->stride_bytes = stride;
				if (__builtin_mul_overflow(stride, (int64_t)(count - 1), &span) ||
					__builtin_add_overflow(
						(int64_t)out->address, span, &last) ||
					last < 0 ||
					(uint64_t)last > MEMORY_ADDRESS_LIMIT - out->size_bytes ||
					out->address > MEMORY_ADDRESS_LIMIT - out->size_bytes)
					goto no_loop;
			}
			out++;
		}
		at += 1u + b->nr_slots;
	}
	w->counts.unseen_calls += (w->counts.unseen_calls - before.unseen_calls) * (count - 1);
	return out;
no_loop:
	w->previous = previous;
	w->counts = before;
	return NULL;
}

/* The whole iterations of a copy as a REPEAT. NULL: not possible. */
static struct memory_item *walk_loop(
	struct memory_walk *w, const struct memory_copy *c, struct memory_item *out)
{
	uint64_t count = c->words / c->distance;
	struct memory_item *end = body(w, c->at, c->distance, count, out + 1);
	if (!end || end == out + 1)
		return NULL;
	*out = (struct memory_item){
		.kind = MEMORY_REPEAT, .address = (uint64_t)(end - out - 1), .count = count};
	w->at = c->at + (uint32_t)count * c->distance;
	return end;
}

/* ---- all ------------------------------------------------------------------------------------- */

size_t memory_walk_items(struct memory_walk *w, struct memory_item *item, size_t room,
	struct memory_call *call, size_t call_room, size_t *ret_calls)
{
	const struct memory_tables *t = w->tables;
	struct memory_item *out = item, *limit = item + room - BLOCK_ITEMS_MAX - EXTRA_ITEMS - 1;
	*ret_calls = 0;
	if (!w->stamped) {
		*out++ = stamp(w, w->words.begin_ticks);
		w->stamped = true;
	}
	while (w->at < w->words.nr && out < limit && *ret_calls < call_room) {
		const uint64_t *word = &w->words.word[w->at];
		while (w->next_copy < w->words.nr_copies && w->words.copy[w->next_copy].at < w->at)
			w->next_copy++;
		if (w->next_copy < w->words.nr_copies && w->words.copy[w->next_copy].at == w->at) {
			struct memory_item *end = walk_loop(w, &w->words.copy[w->next_copy++], out);
			if (end) {
				out = end;
				continue;
			}
		}
		uint64_t index = memory_word_head(*word);
		if (BASE_UNLIKELY(index >= t->nr_blocks || !t->block[index].exists ||
				  w->words.nr - w->at < 1u + t->block[index].nr_slots)) {
			w->counts.bad_words += w->words.nr - w->at; /* a forged copy */
			w->at = w->words.nr;
			break;
		}
		const struct memory_table_block *b = &t->block[index];
		w->at += 1u + b->nr_slots;
		if (BASE_UNLIKELY(b->flags & MEMORY_BLOCK_MARK)) {
			out = walk_mark(w, b, word + 1, out, call, ret_calls);
			continue;
		}
		w->counts.blocks++;
		out = walk_enter(w, (uint32_t)index, b, out);
		if (b->nr_stack)
			note_stack(&w->stacks, b, word[1]);
		out = BASE_LIKELY(b->nr_items) ? walk_simple(w, b, word + 1, out)
					       : complex(w, b, word + 1, out);
		w->previous = (uint32_t)index;
	}
	return (size_t)(out - item);
}
