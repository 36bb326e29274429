/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - the entries of a compile unit that may hold code or variables, one by one. */
#include "symbol/private.h"

#include <dwarf.h>

static bool is_entered(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_entry_point:
	case DW_TAG_common_block:
		return true;
	default:
		return false;
	}
}

/* A lambda's code, and that of a class within a function, lies in its type, and nowhere else. */
static bool is_local_type(struct symbol_walk *w)
{
	int tag = dwarf_tag(&w->die[w->depth]);
	bool is_type = tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
		       tag == DW_TAG_union_type;
	return is_type && w->is_in_function[w->depth];
}

static bool walk_is_function(int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

bool symbol_walk_begin(struct symbol_walk *w, Dwarf_Die *unit)
{
	w->depth = 0;
	w->is_in_function[0] = false;
	return !dwarf_child(unit, &w->die[0]);
}

/* Without recursion: the depth is the file's. */
bool symbol_walk_next(struct symbol_walk *w)
{
	Dwarf_Die *die = &w->die[w->depth];
	int tag = dwarf_tag(die);
	if ((is_entered(tag) || is_local_type(w)) && w->depth + 1 < SYMBOL_WALK_DEPTH_MAX &&
		!dwarf_child(die, &w->die[w->depth + 1])) {
		w->is_in_function[w->depth + 1] =
			w->is_in_function[w->depth] || walk_is_function(tag);
		w->depth++;
		return true;
	}
	while (dwarf_siblingof(&w->die[w->depth], &w->die[w->depth])) {
		if (!w->depth)
			return false;
		w->depth--;
	}
	return true;
}
