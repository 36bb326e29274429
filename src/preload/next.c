/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next.c - the function of a name in the libraries that come after ours.
 *
 * dlsym() takes the loader's lock, which a thread may hold while it waits for another one (in a
 * library's constructor): so all that we wrap was looked up at the start of each program, which
 * took longer than all else that we do there. This looks at the libraries' own tables, when a
 * function is called for the first time. They are those that the program was started with: they
 * stay.
 */
#include "preload/next.h"
#include "preload/object.h"
#include "preload/preload.h"

#ifndef PRELOAD_STATIC

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

enum { NEXT_HIDDEN = 0x8000 };

struct next_hash { /* DT_GNU_HASH */
	uint32_t nr_buckets, first_symbol, nr_filter, shift;
	uint64_t filter[]; /* then buckets, then chains */
};

struct next_library {
	uintptr_t bias;
	const struct next_hash *hash;
	const ElfW(Sym) * symbol;
	const char *text;
	const ElfW(Half) * version; /* NULL: its symbols have none */
};

static bool next_is_libc(const struct link_map *map)
{
	const char *slash = map->l_name ? strrchr(map->l_name, '/') : NULL;
	return slash && strcmp(slash + 1, "libc.so.6") == 0;
}

/* In the loader's list, which libraries that come later are added to. */
static const struct link_map *next_first PRELOAD_EARLY, *next_last PRELOAD_EARLY;
enum next_state { NEXT_UNKNOWN, NEXT_KNOWN, NEXT_FOREIGN /* not all can be read */ };
static uint32_t next_state PRELOAD_EARLY;
static enum { NEXT_PLACE_UNKNOWN, NEXT_PLACE_EARLY, NEXT_PLACE_LATE } next_place PRELOAD_EARLY;

static bool next_describe(const struct link_map *map, struct next_library *ret)
{
	*ret = (struct next_library){.bias = map->l_addr};
	for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
		/* the loader has made addresses of them, where it may write there */
		uintptr_t at =
			d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr : d->d_un.d_ptr;
		if (d->d_tag == DT_GNU_HASH)
			ret->hash = (const void *)at;
		if (d->d_tag == DT_SYMTAB)
			ret->symbol = (const void *)at;
		if (d->d_tag == DT_STRTAB)
			ret->text = (const void *)at;
		if (d->d_tag == DT_VERSYM)
			ret->version = (const void *)at;
	}
	return ret->hash && ret->symbol && ret->text && ret->hash->nr_buckets &&
	       ret->hash->nr_filter;
}

static const struct link_map *next_ours(void)
{
	struct dl_find_object ours;
	return preload_find_object((void *)(uintptr_t)next_ours, &ours) ? NULL : ours.dlfo_link_map;
}

/* A preloaded library stands before libc, one that comes late behind it. Asked first by our
 * constructor, when no other thread changes the list. */
bool preload_next_is_late(void)
{
	if (next_place == NEXT_PLACE_UNKNOWN) {
		const struct link_map *map = next_ours();
		map = map ? map->l_prev : NULL;
		while (map && !next_is_libc(map))
			map = map->l_prev;
		next_place = map ? NEXT_PLACE_LATE : NEXT_PLACE_EARLY;
	}
	return next_place == NEXT_PLACE_LATE;
}

const struct link_map *preload_next_libc(void)
{
	const struct link_map *map = next_ours();
	while (map && map->l_prev)
		map = map->l_prev;
	while (map && !next_is_libc(map))
		map = map->l_next;
	return map;
}

/* Two threads that do it at once write the same. */
static enum next_state next_look(void)
{
	struct next_library library;
	enum next_state state = NEXT_KNOWN;
	const struct link_map *ours = next_ours();
	if (!ours)
		return NEXT_FOREIGN;
	if (preload_next_is_late()) {
		next_first = next_last = preload_next_libc();
		state = next_first && next_describe(next_first, &library) ? NEXT_KNOWN
									  : NEXT_FOREIGN;
		__atomic_store_n(&next_state, state, __ATOMIC_RELEASE);
		return state;
	}
	next_first = ours->l_next;
	for (const struct link_map *map = next_first; map; map = map->l_next) {
		if (!next_describe(map, &library))
			state = NEXT_FOREIGN;
		next_last = map;
	}
	__atomic_store_n(&next_state, state, __ATOMIC_RELEASE);
	return state;
}

static bool next_is_function(const struct next_library *l, uint32_t index, const char *name)
{
	const ElfW(Sym) *s = &l->symbol[index];
	unsigned type = ELF64_ST_TYPE(s->st_info);
	return s->st_shndx != SHN_UNDEF && s->st_value &&
	       (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC) &&
	       !(l->version && l->version[index] & NEXT_HIDDEN) &&
	       strcmp(l->text + s->st_name, name) == 0;
}

/* 0: it has none. */
static uint32_t next_symbol(const struct next_library *l, const char *name, uint32_t hash)
{
	const struct next_hash *h = l->hash;
	const uint32_t *bucket = (const uint32_t *)(h->filter + h->nr_filter);
	const uint32_t *chain = bucket + h->nr_buckets;
	uint64_t both = UINT64_C(1) << hash % 64 | UINT64_C(1) << (hash >> h->shift) % 64;
	if ((h->filter[hash / 64 % h->nr_filter] & both) != both)
		return 0;
	uint32_t index = bucket[hash % h->nr_buckets];
	for (; index >= h->first_symbol && index; index++) {
		uint32_t its = chain[index - h->first_symbol];
		if ((its | 1) == (hash | 1) && next_is_function(l, index, name))
			return index;
		if (its & 1)
			return 0;
	}
	return 0;
}

static void *next_address(const struct next_library *l, uint32_t index)
{
	const ElfW(Sym) *s = &l->symbol[index];
	union {
		uintptr_t address;
		void *pointer;
		uintptr_t (*choose)(void);
	} f = {.address = l->bias + s->st_value};
	if (ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC)
		f.address = f.choose();
	return f.pointer;
}

void *preload_next_function(const char *name)
{
	enum next_state state = __atomic_load_n(&next_state, __ATOMIC_ACQUIRE);
	struct next_library library;
	uint32_t hash = 5381, index;
	if (state == NEXT_UNKNOWN)
		state = next_look();
	if (state == NEXT_FOREIGN)
		return dlsym(RTLD_NEXT, name);
	for (const char *p = name; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	for (const struct link_map *map = next_first; map; map = map->l_next) {
		if (next_describe(map, &library) && (index = next_symbol(&library, name, hash)))
			return next_address(&library, index);
		if (map == next_last)
			break;
	}
	return NULL;
}

#else

bool preload_next_is_late(void)
{
	return false;
}

const struct link_map *preload_next_libc(void)
{
	return NULL;
}

#endif
