/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - a file's symbols sorted by address: libdwfl's own search looks at each, every time. */
#include "symbol/private.h"

#include <stdlib.h>
#include <string.h>

static int rank_of(const GElf_Sym *sym)
{
	int binding = GELF_ST_BIND(sym->st_info), type = GELF_ST_TYPE(sym->st_info);
	int rank = binding == STB_GLOBAL ? 6 : binding == STB_WEAK ? 4 : 2;
	return rank + (type != STT_NOTYPE);
}

static void table_add(
	struct symbol_tables *t, struct symbol_table *to, const struct symbol_entry *e)
{
	if (base_grow(&to->entry, &to->capacity, to->nr + 1, sizeof *to->entry) != BASE_OK) {
		t->failed = true;
		return;
	}
	to->entry[to->nr++] = *e;
}

/* Of those at one address the one that covers most comes first, the best name last. */
static int table_by_address(const void *a, const void *b)
{
	const struct symbol_entry *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return -strcmp(x->name, y->name);
}

static void table_sort(struct symbol_table *t)
{
	uint64_t reach = 0;
	if (t->nr)
		qsort(t->entry, t->nr, sizeof *t->entry, table_by_address);
	for (size_t i = 0; i < t->nr; i++) {
		struct symbol_entry *e = &t->entry[i];
		uint64_t end = e->size > UINT64_MAX - e->value ? UINT64_MAX : e->value + e->size;
		reach = end > reach ? end : reach;
		e->reach = reach;
	}
}

static void add_sections(struct symbol_tables *t, Dwfl_Module *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	size_t names;
	if (!elf || elf_getshdrstrndx(elf, &names))
		return;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s)) && !t->failed;) {
		GElf_Shdr header;
		if (!gelf_getshdr(s, &header) || !(header.sh_flags & SHF_ALLOC) ||
			header.sh_flags & SHF_TLS)
			continue;
		struct symbol_entry e = {.value = header.sh_addr,
			.size = header.sh_size,
			.name = elf_strptr(elf, names, header.sh_name)};
		if (e.name && *e.name)
			table_add(t, &t->sections, &e);
	}
}

/* (Others are the linker's: warnings, texts for it.) */
static bool is_in_memory(const struct symbol_tables *t, uint64_t value)
{
	const struct symbol_table *s = &t->sections;
	size_t i = BASE_PARTITION(k, s->nr, s->entry[k].reach <= value);
	return !s->nr || (i < s->nr && s->entry[i].value <= value);
}

void symbol_tables_init(struct symbol_tables *t, Dwfl_Module *module, GElf_Addr bias)
{
	int nr = dwfl_module_getsymtab(module);
	*t = (struct symbol_tables){0};
	add_sections(t, module);
	table_sort(&t->sections);
	for (int i = 1; i < nr && !t->failed; i++) {
		GElf_Sym sym;
		GElf_Addr address;
		GElf_Word section;
		const char *name =
			dwfl_module_getsym_info(module, i, &sym, &address, &section, NULL, NULL);
		/* (Of those that have no place: names of versions, and numbers.) */
		if (!name || !*name || section == SHN_UNDEF || section == SHN_ABS)
			continue;
		struct symbol_entry e = {.value = address - bias,
			.size = sym.st_size,
			.name = name,
			.rank = rank_of(&sym)};
		int type = GELF_ST_TYPE(sym.st_info);
		if (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE)
			table_add(t, &t->code, &e);
		else if (type == STT_OBJECT && is_in_memory(t, e.value))
			table_add(t, &t->data, &e);
	}
	table_sort(&t->code);
	table_sort(&t->data);
}

void symbol_tables_fini(struct symbol_tables *t)
{
	base_free(t->code.entry);
	base_free(t->data.entry);
	base_free(t->sections.entry);
	*t = (struct symbol_tables){0};
}

/* How many entries begin at the address or before. */
static size_t table_up_to(const struct symbol_table *t, uint64_t address)
{
	return BASE_PARTITION(i, t->nr, t->entry[i].value <= address);
}

const struct symbol_entry *symbol_table_at(
	const struct symbol_table *t, uint64_t address, uint64_t start)
{
	for (size_t i = table_up_to(t, address); i-- > 0 && t->entry[i].reach > address;)
		if (address - t->entry[i].value < t->entry[i].size)
			return &t->entry[i];
	for (size_t i = table_up_to(t, start); i-- > 0 && t->entry[i].value == start;)
		if (!t->entry[i].size)
			return &t->entry[i];
	return NULL;
}
