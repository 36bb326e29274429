/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.c - _dl_find_object() for us and for the unwinder that is linked into us (the linker's --wrap), where we are built for a glibc
 * older than 2.35. Running on a newer one, its own is found by the weak name and is taken. Otherwise
 * dl_iterate_phdr() says it, which takes a lock of the loader: not the one that is held while a library's constructors run, but
 * the one around a change of its list, which is short.
 */
#include "preload/object.h"

#ifndef DLFO_STRUCT_HAS_EH_DBASE

#include <stdbool.h>
#include <stdint.h>

int __real__dl_find_object(void *address, struct dl_find_object *ret) __attribute__((weak));

struct object_search {
	uintptr_t address;
	struct dl_find_object *ret;
};

static struct link_map *object_map_of(const void *dynamic)
{
	struct link_map *map = _r_debug.r_map;
	while (map && (const void *)map->l_ld != dynamic)
		map = map->l_next;
	return map;
}

static int object_visit(struct dl_phdr_info *info, size_t size, void *argument)
{
	const struct object_search *search = argument;
	uintptr_t start = UINTPTR_MAX, end = 0, dynamic = 0, frames = 0;
	bool has = false;
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD) {
			has |= search->address - at < p->p_memsz;
			start = at < start ? at : start;
			end = at + p->p_memsz > end ? at + p->p_memsz : end;
		} else if (p->p_type == PT_DYNAMIC) {
			dynamic = at;
		} else if (p->p_type == PT_GNU_EH_FRAME) {
			frames = at;
		}
	}
	if (has)
		*search->ret = (struct dl_find_object){.dlfo_map_start = (void *)start,
			.dlfo_map_end = (void *)end,
			.dlfo_link_map = object_map_of((const void *)dynamic),
			.dlfo_eh_frame = (void *)frames};
	return has;
}

int preload_find_object(void *address, struct dl_find_object *ret)
{
	struct object_search search = {(uintptr_t)address, ret};
	if (__real__dl_find_object)
		return __real__dl_find_object(address, ret);
	return dl_iterate_phdr(object_visit, &search) ? 0 : -1;
}

#ifndef PRELOAD_STATIC
int __wrap__dl_find_object(void *address, struct dl_find_object *ret);
int __wrap__dl_find_object(void *address, struct dl_find_object *ret)
{
	return preload_find_object(address, ret);
}
#endif

#endif
