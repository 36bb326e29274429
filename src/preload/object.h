/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - the library that has an address: glibc's _dl_find_object(), and what stands in its place before glibc 2.35. */
#ifndef LONGPOLE_PRELOAD_OBJECT_H
#define LONGPOLE_PRELOAD_OBJECT_H

#include <dlfcn.h>
#include <link.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE
#define preload_find_object _dl_find_object
#else
/* As glibc 2.35's dlfcn.h has it. */
struct dl_find_object {
	__extension__ unsigned long long dlfo_flags;
	void *dlfo_map_start, *dlfo_map_end;
	struct link_map *dlfo_link_map;
	void *dlfo_eh_frame;
	__extension__ unsigned long long dlfo_reserved[7];
};
/* 0, or -1: no library has it. */
int preload_find_object(void *address, struct dl_find_object *ret);
#endif

#endif
