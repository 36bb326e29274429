/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.c - which functions cover an address of a compile unit: the innermost inlined one and those
 * that it was inlined into.
 *
 * dwarf_getscopes() walks a unit's tree for each question; here it is walked once, and becomes a
 * row of segments that do not overlap, each with its innermost scope.
 */
#include "symbol/private.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { RANGES_MAX = 1 << 20, SCOPES_MAX = 1 << 24 };

struct covered { /* a range of a scope */
	uint64_t begin, end;
	uint32_t scope, depth;
};
struct walk {
	struct symbol_unit *unit;
	struct covered *covered;
	size_t nr, capacity;
	bool failed;
};

/* ---- the tree -------------------------------------------------------------------------------- */

static uint32_t scope_number(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute found;
	Dwarf_Word value = 0;
	if (!dwarf_attr(die, attribute, &found) || dwarf_formudata(&found, &value) ||
		value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* The scope of a function's DIE with its ranges; `parent` when it has no code of its own. */
static uint32_t add_scope(struct walk *w, Dwarf_Die *die, int tag, uint32_t parent, unsigned depth)
{
	struct symbol_unit *u = w->unit;
	Dwarf_Addr base = 0, begin, end;
	ptrdiff_t at = 0;
	bool any = false;
	for (int i = 0; i < RANGES_MAX && (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0;
		i++) {
		if (begin >= end)
			continue;
		if (base_grow(&w->covered, &w->capacity, w->nr + 1, sizeof *w->covered) !=
			BASE_OK) {
			w->failed = true;
			return parent;
		}
		w->covered[w->nr++] = (struct covered){.begin = begin,
			.end = end,
			.scope = (uint32_t)u->nr_scopes,
			.depth = depth};
		any = true;
	}
	if (!any)
		return parent;
	if (u->nr_scopes >= SCOPES_MAX || base_grow(&u->scope, &u->scope_capacity, u->nr_scopes + 1,
						  sizeof *u->scope) != BASE_OK) {
		w->failed = true;
		return parent;
	}
	bool inlined = tag == DW_TAG_inlined_subroutine;
	uint32_t own = (uint32_t)u->nr_scopes++;
	u->scope[own] = (struct symbol_scope){.die = dwarf_dieoffset(die),
		.inlined = inlined,
		.parent = inlined && parent != SYMBOL_NO_SCOPE ? parent : own,
		.call_file = inlined ? scope_number(die, DW_AT_call_file) : 0,
		.call_line = inlined ? scope_number(die, DW_AT_call_line) : 0};
	return own;
}

static void scope_walk(struct walk *w, Dwarf_Die *unit)
{
	struct symbol_walk at;
	uint32_t scope[SYMBOL_WALK_DEPTH_MAX + 1] = {SYMBOL_NO_SCOPE}; /* around each depth */
	for (bool more = symbol_walk_begin(&at, unit); more; more = symbol_walk_next(&at)) {
		Dwarf_Die *die = &at.die[at.depth];
		int tag = dwarf_tag(die);
		uint32_t own = scope[at.depth];
		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
			own = add_scope(w, die, tag, own, at.depth);
		if (w->failed)
			return;
		scope[at.depth + 1] = own;
	}
}

/* ---- segments -------------------------------------------------------------------------------- */

static int scope_by_begin(const void *a, const void *b)
{
	const struct covered *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

static void scope_add_segment(struct walk *w, uint64_t begin, uint32_t scope)
{
	struct symbol_unit *u = w->unit;
	if (u->nr_segments && u->segment[u->nr_segments - 1].begin == begin) {
		u->segment[u->nr_segments - 1].scope = scope;
		return;
	}
	if (base_grow(&u->segment, &u->segment_capacity, u->nr_segments + 1, sizeof *u->segment) !=
		BASE_OK) {
		w->failed = true;
		return;
	}
	u->segment[u->nr_segments++] = (struct symbol_segment){.begin = begin, .scope = scope};
}

/* Ranges nest, as functions do; of a damaged file whose ranges do not, the later one wins. */
static void flatten(struct walk *w)
{
	const struct covered *open[SYMBOL_WALK_DEPTH_MAX];
	unsigned nr_open = 0;
	if (w->nr)
		qsort(w->covered, w->nr, sizeof *w->covered, scope_by_begin);
	for (size_t i = 0; i <= w->nr && !w->failed; i++) {
		uint64_t now = i < w->nr ? w->covered[i].begin : UINT64_MAX;
		while (nr_open && open[nr_open - 1]->end <= now) {
			uint64_t end = open[--nr_open]->end;
			while (nr_open && open[nr_open - 1]->end <= end)
				nr_open--;
			scope_add_segment(
				w, end, nr_open ? open[nr_open - 1]->scope : SYMBOL_NO_SCOPE);
		}
		if (i == w->nr || nr_open == SYMBOL_WALK_DEPTH_MAX)
			continue;
		open[nr_open++] = &w->covered[i];
		scope_add_segment(w, now, w->covered[i].scope);
	}
}

static void unit_fini(struct symbol_unit *u)
{
	base_free(u->scope);
	base_free(u->segment);
}

const struct symbol_unit *symbol_units_scopes(struct symbol_units *u, Dwarf_Die *unit)
{
	uint64_t known;
	Dwarf_Off key = dwarf_dieoffset(unit);
	if (base_map_get(&u->by_die, 0, key, &known))
		return &u->unit[known - 1];
	struct symbol_unit made = {.die = key};
	struct walk w = {.unit = &made};
	scope_walk(&w, unit);
	flatten(&w);
	base_free(w.covered);
	if (w.failed || base_grow(&u->unit, &u->capacity, u->nr + 1, sizeof *u->unit) != BASE_OK ||
		base_map_put(&u->by_die, 0, key, u->nr + 1) != BASE_OK) {
		unit_fini(&made);
		return NULL;
	}
	u->unit[u->nr++] = made;
	return &u->unit[u->nr - 1];
}

uint32_t symbol_unit_at(const struct symbol_unit *u, uint64_t address)
{
	size_t low = BASE_PARTITION(i, u->nr_segments, u->segment[i].begin <= address);
	return low ? u->segment[low - 1].scope : SYMBOL_NO_SCOPE;
}

void symbol_units_fini(struct symbol_units *u)
{
	for (size_t i = 0; i < u->nr; i++)
		unit_fini(&u->unit[i]);
	base_free(u->unit);
	base_free(u->range);
	base_map_fini(&u->by_die);
	*u = (struct symbol_units){0};
}

/* ---- units ----------------------------------------------------------------------------------- */

static int range_order(const void *a, const void *b)
{
	const struct symbol_unit_range *x = a, *y = b;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* clang writes no .debug_aranges, by which libdw finds an address's unit. */
static void find_ranges(struct symbol_units *u, Dwfl_Module *module)
{
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;
	u->ranged = true;
	while ((unit = dwfl_module_nextcu(module, unit, &bias))) {
		Dwarf_Addr base = 0, begin, end;
		ptrdiff_t at = 0;
		for (int i = 0;
			i < RANGES_MAX && (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0;
			i++) {
			if (begin >= end)
				continue;
			if (base_grow(&u->range, &u->range_capacity, u->nr_ranges + 1,
				    sizeof *u->range) != BASE_OK)
				return;
			u->range[u->nr_ranges++] = (struct symbol_unit_range){
				.begin = begin, .end = end, .die = dwarf_dieoffset(unit)};
		}
	}
	if (u->nr_ranges)
		qsort(u->range, u->nr_ranges, sizeof *u->range, range_order);
	for (size_t i = 0; i < u->nr_ranges; i++) {
		uint64_t before = i ? u->range[i - 1].reach : 0;
		u->range[i].reach = u->range[i].end > before ? u->range[i].end : before;
	}
}

static const struct symbol_unit_range *range_at(const struct symbol_units *u, uint64_t address)
{
	size_t low = BASE_PARTITION(i, u->nr_ranges, u->range[i].begin <= address);
	while (low-- > 0 && u->range[low].reach > address)
		if (address < u->range[low].end)
			return &u->range[low];
	return NULL;
}

bool symbol_units_die(struct symbol_units *u, Dwfl_Module *module, GElf_Addr address,
	Dwarf_Die *ret_unit, Dwarf_Addr *ret_bias)
{
	Dwarf *dwarf = symbol_dwarf(module, ret_bias);
	if (!dwarf)
		return false;
	/* (dwfl_module_addrdie() takes what no unit says is its own for the unit before.) */
	if (!u->nr_ranges && dwarf_addrdie(dwarf, address - *ret_bias, ret_unit))
		return true;
	if (!u->ranged)
		find_ranges(u, module);
	const struct symbol_unit_range *r = range_at(u, address - *ret_bias);
	return r && dwarf_offdie(dwarf, r->die, ret_unit);
}
