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

#endif
