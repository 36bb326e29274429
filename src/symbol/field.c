/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c - which member of a static variable is at an address, by DWARF: "stats.hits".
 *
 * Units are walked once for variables that have a fixed address; then a question is a binary search
 * and a descent through the variable's type, a step a member or an array.
 */
#include "symbol/private.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	STATICS_MAX = 1 << 22,
	STEPS_MAX = 64, /* into a type */
	MEMBERS_MAX = 1 << 16,
	DIMENSIONS_MAX = 15, /* as Fortran has */
	SHARED_SHOWN = 4,    /* members of one byte */
};

/* ---- variables ------------------------------------------------------------------------------- */

static bool field_number(Dwarf_Die *die, unsigned name, uint64_t *ret)
{
	Dwarf_Attribute a;
	Dwarf_Word value;
	if (!dwarf_attr_integrate(die, name, &a) || dwarf_formudata(&a, &value))
		return false;
	*ret = value;
	return true;
}

/* Without typedefs and qualifiers. */
static bool field_type_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute a;
	Dwarf_Die type;
	return dwarf_attr_integrate(die, DW_AT_type, &a) && dwarf_formref_die(&a, &type) &&
	       !dwarf_peel_type(&type, ret);
}

static uint64_t field_bytes_of(Dwarf_Die *type)
{
	Dwarf_Word bytes;
	return dwarf_aggregate_size(type, &bytes) ? 0 : bytes;
}

static void add_declared(struct symbol_statics *s, Dwarf_Die *die)
{
	Dwarf_Attribute a;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &a));
	name = name ? name : dwarf_diename(die);
	if (name && s->nr_declared < STATICS_MAX &&
		base_grow(&s->declared, &s->declared_capacity, s->nr_declared + 1,
			sizeof *s->declared) == BASE_OK)
		s->declared[s->nr_declared++] =
			(struct symbol_declared){name, dwarf_dieoffset(die)};
}

/* The address that a variable always has; in DWARF 5 also by number (clang's way). */
static bool static_address(Dwarf_Die *die, Dwarf_Addr *ret)
{
	Dwarf_Attribute a, indexed;
	Dwarf_Op *op;
	size_t nr;
	if (!dwarf_attr(die, DW_AT_location, &a) || dwarf_getlocation(&a, &op, &nr) || nr != 1)
		return false;
	*ret = op->number;
	return op->atom == DW_OP_addr ||
	       (op->atom == DW_OP_addrx && !dwarf_getlocation_attr(&a, op, &indexed) &&
		       !dwarf_formaddr(&indexed, ret));
}

static void field_add_static(struct symbol_statics *s, Dwarf_Die *die, Dwarf_Addr bias)
{
	Dwarf_Addr address;
	Dwarf_Die type;
	if (dwarf_hasattr(die, DW_AT_declaration)) {
		add_declared(s, die);
		return;
	}
	if (!static_address(die, &address) || !field_type_of(die, &type) || s->nr == STATICS_MAX ||
		base_grow(&s->row, &s->capacity, s->nr + 1, sizeof *s->row) != BASE_OK)
		return;
	uint64_t bytes = field_bytes_of(&type), begin = address + bias;
	bytes = bytes && bytes <= UINT64_MAX - begin ? bytes : 1;
	s->row[s->nr++] = (struct symbol_static){
		.begin = begin, .end = begin + bytes, .die = dwarf_dieoffset(die)};
}

static int field_by_begin(const void *a, const void *b)
{
	const struct symbol_static *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

static int by_name(const void *a, const void *b)
{
	const struct symbol_declared *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : x->die < y->die ? -1 : x->die > y->die;
}

static void find_statics(struct symbol_statics *s, Dwfl_Module *module, GElf_Addr bias)
{
	Dwarf_Die *unit = NULL;
	Dwarf_Addr own;
	s->read = true;
	while ((unit = dwfl_module_nextcu(module, unit, &own))) {
		struct symbol_walk w;
		for (bool more = symbol_walk_begin(&w, unit); more; more = symbol_walk_next(&w))
			if (dwarf_tag(&w.die[w.depth]) == DW_TAG_variable)
				field_add_static(s, &w.die[w.depth], own - bias);
	}
	if (s->nr)
		qsort(s->row, s->nr, sizeof *s->row, field_by_begin);
	if (s->nr_declared)
		qsort(s->declared, s->nr_declared, sizeof *s->declared, by_name);
	for (size_t i = 0; i < s->nr; i++) {
		uint64_t before = i ? s->row[i - 1].reach : 0;
		s->row[i].reach = s->row[i].end > before ? s->row[i].end : before;
	}
}

static const struct symbol_static *static_at(const struct symbol_statics *s, uint64_t address)
{
	size_t i = BASE_PARTITION(k, s->nr, s->row[k].begin <= address);
	while (i-- > 0 && s->row[i].reach > address)
		if (address < s->row[i].end)
			return &s->row[i];
	return NULL;
}

static const struct symbol_declared *declared_as(const struct symbol_statics *s, const char *name)
{
	size_t i = BASE_PARTITION(k, s->nr_declared, strcmp(s->declared[k].name, name) < 0);
	return i < s->nr_declared && !strcmp(s->declared[i].name, name) ? &s->declared[i] : NULL;
}

void symbol_statics_fini(struct symbol_statics *s)
{
	base_free(s->declared);
	base_free(s->row);
	*s = (struct symbol_statics){0};
}

/* ---- members --------------------------------------------------------------------------------- */

struct member {
	Dwarf_Die die;
	const char *name; /* NULL: none, or one of what this is derived from */
	uint64_t begin, end;
	bool bits;
};

static bool is_reserved(const char *name)
{
	return name && name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
}

static bool member_of(Dwarf_Die *die, struct member *ret)
{
	uint64_t at = 0, bits, first, unit = 0;
	Dwarf_Die type;
	int tag = dwarf_tag(die);
	if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || !field_type_of(die, &type) ||
		dwarf_hasattr(die, DW_AT_external)) /* C++: static, elsewhere */
		return false;
	if (dwarf_hasattr(die, DW_AT_data_member_location) &&
		!field_number(die, DW_AT_data_member_location, &at))
		return false; /* of a virtual base: found at run time */
	uint64_t bytes = field_bytes_of(&type);
	*ret = (struct member){.die = *die,
		.name = tag == DW_TAG_member ? dwarf_diename(die) : NULL,
		.begin = at,
		.end = bytes <= UINT64_MAX - at ? at + bytes : at};
	if (!field_number(die, DW_AT_bit_size, &bits))
		return true;
	if (!field_number(
		    die, DW_AT_data_bit_offset, &first)) { /* before DWARF 4: from the other end */
		if (!field_number(die, DW_AT_bit_offset, &first))
			return true;
		unit = field_number(die, DW_AT_byte_size, &unit) ? unit : bytes;
		first = (at + unit) * 8 - first - bits;
	}
	ret->begin = first / 8;
	ret->end = (first + bits + 7) / 8;
	ret->bits = true;
	return true;
}

/* `char raw[64]`: another view of what has names, or room that is not used. */
static bool is_raw(struct member *m)
{
	Dwarf_Die type, element;
	return field_type_of(&m->die, &type) && dwarf_tag(&type) == DW_TAG_array_type &&
	       field_type_of(&type, &element) && field_bytes_of(&element) == 1;
}

/* The members that have the byte: up to `max`, and how many there are. */
static size_t members_at(Dwarf_Die *type, uint64_t offset, struct member *ret, size_t max)
{
	Dwarf_Die child;
	struct member m, raw;
	size_t nr = 0;
	bool any_raw = false;
	int more = dwarf_child(type, &child);
	for (unsigned i = 0; !more && i < MEMBERS_MAX;
		i++, more = dwarf_siblingof(&child, &child)) {
		if (!member_of(&child, &m) || offset < m.begin || offset >= m.end)
			continue;
		if (is_raw(&m)) {
			raw = m;
			any_raw = true;
			continue;
		}
		if (nr < max)
			ret[nr] = m;
		nr++;
	}
	if (!nr && any_raw)
		ret[nr++] = raw;
	return nr;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static bool is_fortran(Dwarf_Die *die)
{
	Dwarf_Die unit;
	switch (dwarf_diecu(die, &unit, NULL, NULL) ? dwarf_srclang(&unit) : -1) {
	case DW_LANG_Fortran77:
	case DW_LANG_Fortran90:
	case DW_LANG_Fortran95:
	case DW_LANG_Fortran03:
	case DW_LANG_Fortran08:
		return true;
	default:
		return false;
	}
}

struct dimension {
	int64_t lower;
	uint64_t nr; /* 0: not known */
};

static unsigned dimensions(Dwarf_Die *array, bool fortran, struct dimension *ret)
{
	Dwarf_Die child;
	unsigned nr = 0;
	for (int more = dwarf_child(array, &child); !more && nr < DIMENSIONS_MAX;
		more = dwarf_siblingof(&child, &child)) {
		Dwarf_Attribute a;
		Dwarf_Sword lower = fortran, upper;
		uint64_t count = 0;
		if (dwarf_tag(&child) != DW_TAG_subrange_type)
			continue;
		if (dwarf_attr(&child, DW_AT_lower_bound, &a) && dwarf_formsdata(&a, &lower))
			return 0;
		if (!field_number(&child, DW_AT_count, &count) &&
			dwarf_attr(&child, DW_AT_upper_bound, &a) && !dwarf_formsdata(&a, &upper))
			count = upper >= lower ? (uint64_t)upper - (uint64_t)lower + 1 : 0;
		ret[nr++] = (struct dimension){lower, count};
	}
	return nr;
}

/* "[2][3]", "(4,3)". False: not an array of things in a row. */
static bool field_add_index(
	struct base_str *out, Dwarf_Die *array, uint64_t *offset, Dwarf_Die *ret)
{
	struct dimension d[DIMENSIONS_MAX];
	uint64_t at[DIMENSIONS_MAX];
	bool fortran = is_fortran(array);
	unsigned nr = dimensions(array, fortran, d);
	if (!nr || dwarf_hasattr(array, DW_AT_data_location) || !field_type_of(array, ret))
		return false;
	uint64_t bytes = field_bytes_of(ret);
	if (!bytes || dwarf_hasattr(array, DW_AT_byte_stride))
		return false;
	uint64_t index = *offset / bytes;
	for (unsigned i = 0; i < nr; i++) { /* fastest first */
		unsigned k = fortran ? i : nr - 1 - i;
		if (i == nr - 1) { /* a flexible array has no end */
			if (d[k].nr && index >= d[k].nr)
				return false;
			at[k] = index;
			break;
		}
		if (!d[k].nr)
			return false;
		at[k] = index % d[k].nr;
		index /= d[k].nr;
	}
	*offset %= bytes;
	for (unsigned k = 0; k < nr; k++)
		base_str_addf(out, fortran ? "%s%" PRId64 : "%s[%" PRId64 "]",
			!fortran ? ""
			: k      ? ","
				 : "(",
			(int64_t)at[k] + d[k].lower);
	base_str_add(out, fortran ? ")" : "");
	return true;
}

/* ---- the way into a type --------------------------------------------------------------------- */

/* Of members that share the byte: "{whole|half}". */
static void add_shared(struct base_str *out, const struct member *m, size_t nr)
{
	for (size_t i = 0; i < nr && i < SHARED_SHOWN; i++)
		if (!m[i].name || is_reserved(m[i].name))
			return;
	for (size_t i = 0; i < nr && i < SHARED_SHOWN; i++)
		base_str_addf(out, "%s%s", i ? "|" : ".{", m[i].name);
	base_str_add(out, nr > SHARED_SHOWN ? "|...}" : "}");
}

/* One member further; false: no more, with what to add. */
static bool field_enter(struct base_str *out, Dwarf_Die *type, uint64_t *offset, Dwarf_Die *ret)
{
	struct member m[SHARED_SHOWN];
	size_t nr = members_at(type, *offset, m, SHARED_SHOWN);
	bool bits = true;
	if (nr == 1 && !is_reserved(m[0].name) && field_type_of(&m[0].die, ret)) {
		if (m[0].name)
			base_str_addf(out, "%s%s", is_fortran(type) ? "%" : ".", m[0].name);
		*offset -= m[0].begin;
		return !m[0].bits;
	}
	for (size_t i = 0; i < nr && i < SHARED_SHOWN; i++)
		bits = bits && m[i].bits;
	if (nr > 1)
		add_shared(out, m, nr);
	if (nr > 1 && bits)
		*offset = 0;
	return false;
}

static void field_add_path(struct base_str *out, Dwarf_Die *type, uint64_t offset)
{
	for (unsigned steps = 0; steps < STEPS_MAX; steps++) {
		Dwarf_Die inner;
		int tag = dwarf_tag(type);
		bool deeper = false;
		if (tag == DW_TAG_array_type)
			deeper = field_add_index(out, type, &offset, &inner);
		else if (tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
			 tag == DW_TAG_union_type)
			deeper = field_enter(out, type, &offset, &inner);
		if (!deeper)
			break;
		*type = inner;
	}
	if (offset)
		base_str_addf(out, "+0x%" PRIx64, offset);
}

bool symbol_field_add(struct base_str *out, struct symbol_statics *s, Dwfl_Module *module,
	GElf_Addr bias, const struct symbol_entry *symbol, uint64_t offset)
{
	Dwarf_Addr own;
	Dwarf_Die die, type;
	Dwarf *dwarf = symbol_dwarf(module, &own);
	if (!dwarf)
		return false;
	if (!s->read)
		find_statics(s, module, bias);
	const struct symbol_static *at = static_at(s, symbol->value + offset);
	at = at && at->begin >= symbol->value ? at : NULL;
	const struct symbol_declared *as = at ? NULL : declared_as(s, symbol->name);
	if ((!at && !as) || !dwarf_offdie(dwarf, at ? at->die : as->die, &die) ||
		!field_type_of(&die, &type))
		return false;
	const char *name = dwarf_diename(&die);
	if (at && at->begin != symbol->value) { /* of a Fortran common block */
		if (!name)
			return false;
		base_str_addf(out, "%%%s", name);
		offset -= at->begin - symbol->value;
	}
	field_add_path(out, &type, offset);
	return true;
}

/* ---- what pointers point to ------------------------------------------------------------------ */

/* Structures only: numbers and bytes say nothing that an offset does not. */
static bool pointee_of(Dwarf_Die *variable, struct symbol_type *ret)
{
	Dwarf_Attribute a;
	Dwarf_Die type, to, named;
	if (!field_type_of(variable, &type) || dwarf_tag(&type) != DW_TAG_pointer_type ||
		!field_type_of(&type, &to) || !dwarf_attr_integrate(&type, DW_AT_type, &a) ||
		!dwarf_formref_die(&a, &named))
		return false;
	int tag = dwarf_tag(&to);
	*ret = (struct symbol_type){.die = dwarf_dieoffset(&to),
		.size_bytes = field_bytes_of(&to),
		.name = dwarf_diename(&to)};
	ret->name = ret->name ? ret->name : dwarf_diename(&named); /* of a typedef */
	return (tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
		       tag == DW_TAG_union_type) &&
	       ret->size_bytes && ret->name;
}

static bool field_is_there(Dwarf_Die *variable, uint64_t code, const struct symbol_holder *h)
{
	Dwarf_Attribute a;
	Dwarf_Op *op;
	size_t nr;
	if (!dwarf_attr_integrate(variable, DW_AT_location, &a) ||
		dwarf_getlocation_addr(&a, code, &op, &nr, 1) != 1 || nr != 1)
		return false;
	if (h->kind == SYMBOL_IN_FRAME)
		return op->atom == DW_OP_fbreg && op->number == h->value;
	if (op->atom == DW_OP_regx)
		return op->number == h->value;
	return op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31 &&
	       op->atom - DW_OP_reg0 == (int)h->value;
}

/* Of the functions and blocks around the code. */
static bool local_pointee(
	Dwarf_Die *unit, uint64_t code, const struct symbol_holder *h, struct symbol_type *ret)
{
	Dwarf_Die *scope = NULL, child;
	bool found = false;
	int nr = dwarf_getscopes(unit, code, &scope);
	for (int i = 0; i + 1 < nr && !found; i++) { /* (the last is the unit) */
		int more = dwarf_child(&scope[i], &child);
		for (unsigned k = 0; !more && k < MEMBERS_MAX && !found;
			k++, more = dwarf_siblingof(&child, &child)) {
			int tag = dwarf_tag(&child);
			found = (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
				field_is_there(&child, code, h) && pointee_of(&child, ret);
		}
	}
	if (nr > 0)
		free(scope); /* allowed: of libdw */
	return found;
}

/* An element of an array of pointers is one, too. */
static bool static_pointee(struct symbol_statics *s, Dwfl_Module *module, GElf_Addr bias,
	uint64_t address, struct symbol_type *ret)
{
	Dwarf_Addr own;
	Dwarf_Die die, type;
	Dwarf *dwarf = symbol_dwarf(module, &own);
	if (dwarf && !s->read)
		find_statics(s, module, bias);
	const struct symbol_static *at = dwarf ? static_at(s, address) : NULL;
	if (!at || !dwarf_offdie(dwarf, at->die, &die) || !field_type_of(&die, &type))
		return false;
	while (dwarf_tag(&type) == DW_TAG_array_type) {
		die = type;
		if (!field_type_of(&die, &type))
			return false;
	}
	return pointee_of(&die, ret);
}

bool symbol_field_pointee(struct symbol_statics *s, Dwfl_Module *module, GElf_Addr bias,
	Dwarf_Die *unit, uint64_t code, const struct symbol_holder *h, struct symbol_type *ret)
{
	bool found = h->kind == SYMBOL_AT_ADDRESS ? static_pointee(s, module, bias, h->value, ret)
						  : local_pointee(unit, code, h, ret);
	if (!found)
		*ret = (struct symbol_type){0};
	return found;
}

void symbol_field_member(struct base_str *out, Dwfl_Module *module, uint64_t die, uint64_t offset)
{
	Dwarf_Addr own;
	Dwarf_Die type;
	Dwarf *dwarf = symbol_dwarf(module, &own);
	if (dwarf && dwarf_offdie(dwarf, die, &type))
		field_add_path(out, &type, offset);
	else if (offset)
		base_str_addf(out, "+0x%" PRIx64, offset);
}
