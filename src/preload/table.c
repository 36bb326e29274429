/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - what a loaded module defines. */
#include "preload/table.h"

#include <elf.h>
#include <string.h>

bool preload_table_of(const struct dl_phdr_info *info, struct preload_table *ret)
{
	const ElfW(Dyn) *d = NULL;
	*ret = (struct preload_table){.bias = info->dlpi_addr};
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + p->p_vaddr);
	}
	for (; d && d->d_tag != DT_NULL; d++) {
		/* the loader has made addresses of them, where it may write there */
		uintptr_t at =
			d->d_un.d_ptr < ret->bias ? d->d_un.d_ptr + ret->bias : d->d_un.d_ptr;
		if (d->d_tag == DT_GNU_HASH)
			ret->hash = (const void *)at;
		if (d->d_tag == DT_SYMTAB)
			ret->symbol = (const void *)at;
		if (d->d_tag == DT_STRTAB)
			ret->text = (const void *)at;
	}
	return ret->symbol && ret->text;
}

const ElfW(Sym) * preload_symbol(const struct preload_table *table, const char *name)
{
	const struct preload_hash *h = table->hash;
	uint32_t hash = 5381;
	if (!h || !h->nr_buckets || !h->nr_filter)
		return NULL;
	for (const char *p = name; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	const uint32_t *bucket = (const uint32_t *)(h->filter + h->nr_filter);
	const uint32_t *chain = bucket + h->nr_buckets;
	uint64_t both = UINT64_C(1) << hash % 64 | UINT64_C(1) << (hash >> h->shift) % 64;
	if ((h->filter[hash / 64 % h->nr_filter] & both) != both)
		return NULL;
	for (uint32_t i = bucket[hash % h->nr_buckets]; i >= h->first_symbol && i; i++) {
		uint32_t its = chain[i - h->first_symbol];
		const ElfW(Sym) *s = &table->symbol[i];
		if ((its | 1) == (hash | 1) && s->st_shndx != SHN_UNDEF && s->st_value &&
			strcmp(table->text + s->st_name, name) == 0)
			return s;
		if (its & 1)
			break;
	}
	return NULL;
}

void *preload_definition(const struct preload_table *table, const char *name)
{
	const ElfW(Sym) *s = preload_symbol(table, name);
	return s ? (void *)(table->bias + s->st_value) : NULL;
}
