/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - shared by the files of symbol/, not beyond. */
#ifndef LONGPOLE_SYMBOL_PRIVATE_H
#define LONGPOLE_SYMBOL_PRIVATE_H

#include "symbol/symbol.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>

/* symbol.c: the file itself, whose addresses are as linked; NULL: it cannot be read. */
Elf *symbol_elf(struct symbol_file *f);

/* table.c: the symbols of a file, sorted */
struct symbol_entry {
	uint64_t value, size;
	uint64_t reach; /* the largest end of this and all entries before */
	const char *name;
	int rank; /* of those at one address the largest is called first */
};
struct symbol_table {
	struct symbol_entry *entry;
	size_t nr, capacity;
};
struct symbol_tables {
	struct symbol_table code, data, sections;
	bool failed;
};
void symbol_tables_init(struct symbol_tables *t, Dwfl_Module *module, GElf_Addr bias);
void symbol_tables_fini(struct symbol_tables *t);
/* The innermost one that covers the address; else one without a size at `start`; else NULL. */
const struct symbol_entry *symbol_table_at(
	const struct symbol_table *t, uint64_t address, uint64_t start);

/* walk.c: the tree of a compile unit, as far as code and variables are in it; depth first. */
enum { SYMBOL_WALK_DEPTH_MAX = 256 };
struct symbol_walk {
	Dwarf_Die die[SYMBOL_WALK_DEPTH_MAX]; /* [depth]: where it is */
	bool is_in_function[SYMBOL_WALK_DEPTH_MAX];
	unsigned depth;
};
/* False: there is none, or no more. */
bool symbol_walk_begin(struct symbol_walk *w, Dwarf_Die *unit);
bool symbol_walk_next(struct symbol_walk *w);

/* field.c: variables that have an address, by DWARF */
struct symbol_static {
	uint64_t begin, end;
	uint64_t reach; /* the largest end of this and all before */
	Dwarf_Off die;
};
struct symbol_declared {  /* elsewhere: here it may be a copy of a library's variable */
	const char *name; /* as the linker has it */
	Dwarf_Off die;
};
struct symbol_statics {
	struct symbol_static *row; /* by begin */
	size_t nr, capacity;
	struct symbol_declared *declared; /* by name */
	size_t nr_declared, declared_capacity;
	bool read;
};
/* Adds what is `offset` bytes into the symbol (its value as linked): ".member[3]", "+0x4", "" when
 * it is all of it. False: its type is not known, nothing is added. */
bool symbol_field_add(struct base_str *out, struct symbol_statics *s, Dwfl_Module *module,
	GElf_Addr bias, const struct symbol_entry *symbol, uint64_t offset);
/* Of symbol_pointee() and symbol_type_member(): symbol.h. `unit`: of `code`, which is the file's.
 */
bool symbol_field_pointee(struct symbol_statics *s, Dwfl_Module *module, GElf_Addr bias,
	Dwarf_Die *unit, uint64_t code, const struct symbol_holder *h, struct symbol_type *ret);
void symbol_field_member(struct base_str *out, Dwfl_Module *module, uint64_t die, uint64_t offset);
void symbol_statics_fini(struct symbol_statics *s);

/* scope.c: functions of compile units and what is inlined in them */
struct symbol_scope {
	Dwarf_Off die;
	uint32_t parent; /* scope that it was inlined into; itself: none */
	uint32_t call_file, call_line;
	bool inlined;
};
struct symbol_segment {
	uint64_t begin; /* up to the next one's */
	uint32_t scope; /* innermost; NO_SCOPE: none */
};
enum { SYMBOL_NO_SCOPE = UINT32_MAX };
struct symbol_unit {
	Dwarf_Off die;
	struct symbol_scope *scope;
	struct symbol_segment *segment;
	size_t nr_scopes, scope_capacity, nr_segments, segment_capacity;
};
struct symbol_unit_range {
	uint64_t begin, end, reach;
	Dwarf_Off die;
};
struct symbol_units {
	struct base_map by_die; /* -> index + 1 of unit */
	struct symbol_unit *unit;
	size_t nr, capacity;
	struct symbol_unit_range *range; /* all units', when the file has no .debug_aranges */
	size_t nr_ranges, range_capacity;
	bool ranged;
};
/* The unit of a dwfl address, and what to subtract to get an address of its file. False: none. */
bool symbol_units_die(struct symbol_units *u, Dwfl_Module *module, GElf_Addr address,
	Dwarf_Die *ret_unit, Dwarf_Addr *ret_bias);
/* NULL: no memory, or a unit too deep. Valid until the next call. */
const struct symbol_unit *symbol_units_scopes(struct symbol_units *u, Dwarf_Die *unit);
uint32_t symbol_unit_at(const struct symbol_unit *u, uint64_t address);
void symbol_units_fini(struct symbol_units *u);

/* find.c */
/* NULL: none, or none that is whole: the common file of dwz that it refers to is not here. */
Dwarf *symbol_dwarf(Dwfl_Module *module, Dwarf_Addr *ret_bias);
extern const Dwfl_Callbacks symbol_callbacks, symbol_callbacks_fetch;
bool symbol_build_id_of(Elf *elf, char text[SYMBOL_BUILD_ID_TEXT]);
/* What a file without a build id is known by: the sum of its bytes (CRC-32; of a very large one of
 * both ends) and its size. False, and "": it is no regular file. */
bool symbol_sum_of(int fd, char text[SYMBOL_BUILD_ID_TEXT]);

#endif
