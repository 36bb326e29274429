/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - what a loaded module defines, by its own hash table: without the loader's lock. */
#ifndef LONGPOLE_PRELOAD_TABLE_H
#define LONGPOLE_PRELOAD_TABLE_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct preload_hash { /* DT_GNU_HASH */
	uint32_t nr_buckets, first_symbol, nr_filter, shift;
	uint64_t filter[]; /* then buckets, then chains */
};

struct preload_table {
	uintptr_t bias;
	const struct preload_hash *hash; /* NULL: it has none, and defines nothing that is found */
	const ElfW(Sym) * symbol;
	const char *text;
};

/* False: the module has no symbols. */
bool preload_table_of(const struct dl_phdr_info *info, struct preload_table *ret);
/* Its symbol of that name, defined there; NULL: it has none. */
const ElfW(Sym) * preload_symbol(const struct preload_table *table, const char *name);
/* Its definition of that name, a function's or a variable's; NULL: it has none. */
void *preload_definition(const struct preload_table *table, const char *name);

/* Where its segments begin and end; begin > end: it has none. */
static inline void preload_module_range(
	const struct dl_phdr_info *info, uintptr_t *ret_begin, uintptr_t *ret_end)
{
	*ret_begin = UINTPTR_MAX;
	*ret_end = 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const uintptr_t at = info->dlpi_addr + segment->p_vaddr;
		if (segment->p_type != PT_LOAD)
			continue;
		*ret_begin = at < *ret_begin ? at : *ret_begin;
		*ret_end = at + segment->p_memsz > *ret_end ? at + segment->p_memsz : *ret_end;
	}
}

#endif
