/* SPDX-License-Identifier: GPL-2.0-or-later */
/* block.c - what accesses make a shape, and its description. */
#include "block.h"
#include "api.h"

#include "memory/stream/source.h"

#include <stdlib.h>
#include <string.h>

enum {
	NEAR = 256,     /* bytes from the instruction's first address that follow from it */
	SHAPES_MAX = 8, /* of a block, before nothing is taken to follow: a gathering load */
	INFO_MAX_BYTES = 2 + 2 * BLOCK_INSTRUCTIONS_MAX + 10 * BLOCK_ACCESSES_MAX,
};

/* One access of the description. */
struct access {
	unsigned first, last; /* of what was seen */
	unsigned direction, size;
};

static unsigned size_of(const struct block_seen *s)
{
	return 1u << qemu_plugin_mem_size_shift(s->key.info);
}

static const struct isa_row *row_of(const struct block *b, const struct block_seen *s)
{
	return b->row[s->key.instruction];
}

/* What was seen from `at` on that is one access. */
static struct access access_at(
	const struct block *b, const struct block_seen *seen, unsigned nr, unsigned at)
{
	const struct block_seen *s = &seen[at];
	unsigned traits = row_of(b, s)->traits;
	bool stores = qemu_plugin_mem_is_store(s->key.info);
	struct access a = {at, at, stores ? MEMORY_ACCESS_STORE : MEMORY_ACCESS_LOAD, size_of(s)};
	const struct block_seen *other =
		at + 1 < nr && s[1].key.instruction == s->key.instruction ? s + 1 : NULL;
	if (traits & ISA_BOTH) {
		a.direction = MEMORY_ACCESS_BOTH;
		/* As long as there is one thread, QEMU loads, then stores. */
		a.last += !stores && other && other->address == s->address &&
			  qemu_plugin_mem_is_store(other->key.info);
	} else if (traits & ISA_WIDE && a.size == 8 && other && size_of(other) == 8 &&
		   other->address == s->address + 8 &&
		   qemu_plugin_mem_is_store(other->key.info) == stores) {
		a.last++;
		a.size = 16;
	}
	return a;
}

/* Which addresses have slots, and how the others follow. */
static void expect(struct block_expected *to, const struct block_seen *seen, unsigned nr,
	bool follows, unsigned *slots)
{
	unsigned first = 0;
	for (unsigned i = 0; i < nr; i++) {
		if (!i || seen[i].key.instruction != seen[first].key.instruction)
			first = i;
		uint64_t disp = seen[i].address - seen[first].address;
		to[i] = (struct block_expected){.key = seen[i].key, .slot = BLOCK_NO_SLOT};
		if (i != first && follows && disp + NEAR < 2 * NEAR) {
			to[i].base = to[first].slot;
			to[i].disp = (int32_t)disp;
		} else {
			to[i].slot = to[i].base = (uint8_t)(*slots)++;
		}
	}
	to[nr] = (struct block_expected){.key = {.instruction = UINT32_MAX}};
}

static bool same_key(const struct block_key *a, const struct block_key *b)
{
	return a->info == b->info && a->instruction == b->instruction;
}

static bool fits(const struct block_shape *s, const struct block_seen *seen, unsigned nr)
{
	if (s->nr != nr)
		return false;
	unsigned first = 0;
	for (unsigned i = 0; i < nr; i++) {
		const struct block_expected *e = &s->expected[i];
		if (!same_key(&e->key, &seen[i].key))
			return false;
		if (!i || seen[i].key.instruction != seen[first].key.instruction)
			first = i;
		if (e->slot == BLOCK_NO_SLOT &&
			seen[i].address != seen[first].address + (uint64_t)(int64_t)e->disp)
			return false;
	}
	return true;
}

static uint8_t *put_access(uint8_t *p, const struct block *b, const struct block_expected *e,
	const struct access *a, unsigned ticks)
{
	const struct isa_row *row = b->row[e->key.instruction];
	unsigned reg = row->reg ? row->reg : MEMORY_REG_INTEGER;
	*p++ = (uint8_t)e->key.instruction;
	*p++ = (uint8_t)(a->direction | reg << 2 | MEMORY_FORM_SLOT << 4);
	*p++ = (uint8_t)a->size;
	*p++ = e->slot == BLOCK_NO_SLOT ? e->base : e->slot;
	memcpy(p, &e->disp, sizeof e->disp);
	p += sizeof e->disp;
	if (a->direction == MEMORY_ACCESS_BOTH) {
		*p++ = BLOCK_NO_SLOT; /* not before: QEMU tells afterwards */
		*p++ = ticks ? (uint8_t)ticks : BLOCK_NO_SLOT;
	}
	return p;
}

/* The description, and slots for time stamps, which come last. Returns how many those are. */
static unsigned describe(struct block_shape *s, uint8_t *info, const struct block_seen *seen)
{
	const struct block *b = s->block;
	uint8_t *p = info + 2;
	unsigned nr_accesses = 0, nr_ticks = 0, plain = s->nr_slots;
	for (unsigned i = 0; i < b->nr_instructions; i++) {
		*p++ = b->length[i];
		*p++ = 0;
	}
	for (unsigned i = 0; i < s->nr; nr_accesses++) {
		struct access a = access_at(b, seen, s->nr, i);
		unsigned ticks = 0;
		if (a.direction == MEMORY_ACCESS_BOTH && nr_ticks < MEMORY_BLOCK_TICKS_MAX &&
			plain + nr_ticks < MEMORY_BLOCK_SLOTS_MAX) {
			ticks = plain + nr_ticks++;
			s->expected[a.last].ticks = (uint8_t)ticks;
		}
		p = put_access(p, b, &s->expected[i], &a, ticks);
		i = a.last + 1;
	}
	info[0] = (uint8_t)b->nr_instructions;
	info[1] = (uint8_t)nr_accesses;
	s->nr_slots += nr_ticks;
	s->info_bytes = (unsigned)(p - info);
	return nr_ticks;
}

static struct block_shape *new_shape(
	struct block *b, const struct block_seen *seen, unsigned nr, struct memory_block_head *head)
{
	static uint8_t info[INFO_MAX_BYTES];
	struct block_shape *s = calloc(1, sizeof *s + (nr + 1) * sizeof *s->expected);
	if (!s)
		return NULL;
	s->block = b;
	s->nr = nr;
	expect(s->expected, seen, nr, b->nr_shapes < SHAPES_MAX, &s->nr_slots);
	unsigned ticks = describe(s, info, seen);
	*head = (struct memory_block_head){.nr_slots = (uint8_t)s->nr_slots,
		.flags = (uint8_t)((object_is_entry(b->object, b->code) ? MEMORY_BLOCK_ENTRY : 0) |
				   ticks << MEMORY_BLOCK_TICKS_SHIFT),
		.terminator = b->row[b->nr_instructions - 1]->terminator};
	s->head = head;
	s->info = malloc(s->info_bytes);
	if (!s->info) {
		free(s);
		return NULL;
	}
	memcpy(s->info, info, s->info_bytes);
	return s;
}

struct block_shape *block_shape_of(
	struct block *b, const struct block_seen *seen, unsigned nr, struct memory_block_head *head)
{
	for (struct block_shape *s = b->first; s; s = s->next)
		if (fits(s, seen, nr))
			return s;
	struct block_shape *s = new_shape(b, seen, nr, head);
	if (!s)
		return NULL;
	s->next = b->first;
	b->first = s;
	b->nr_shapes++;
	return s;
}
