/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site.h - places in the program that say what they access, each a block of one access that
 * is made when it does so for the first time. Looking one up takes no lock; making one blocks
 * signals and takes the only one.
 */
#ifndef LONGPOLE_TARGET_SITE_H
#define LONGPOLE_TARGET_SITE_H

#include "target/target.h"

enum { TARGET_SITE_BITS = 18, TARGET_SITES_MAX = 1 << (TARGET_SITE_BITS - 1) };

struct target_site_entry { /* of a hash table with linear probing */
	uint64_t key;      /* atomic; 0: free */
	uint64_t head;     /* the word that recording code writes */
};
extern __attribute__((visibility("hidden"))) struct target_site_entry *longpole_target_site_table;

enum { TARGET_SITE_CALLS = 3 }; /* instead of a direction: an instruction that calls */

/* Of an access by what returns to `code`. */
static inline uint64_t target_site_key(uintptr_t code, unsigned direction, unsigned size_bytes)
{
	return (uint64_t)code << 8 | (uint64_t)direction << 5 | size_bytes;
}

static inline size_t target_site_hash(uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TARGET_SITE_BITS);
}

/* 0: there are too many. */
uint64_t longpole_target_make_site(uint64_t key);

/* NULL table: nothing is recorded; do not ask. */
static inline uint64_t target_site(const struct target_site_entry *table, uint64_t key)
{
	for (size_t i = target_site_hash(key);; i = (i + 1) % (1u << TARGET_SITE_BITS)) {
		uint64_t there = __atomic_load_n(&table[i].key, __ATOMIC_ACQUIRE);
		if (__builtin_expect(there == key, 1))
			return table[i].head;
		if (!there)
			return longpole_target_make_site(key);
	}
}

#endif
