/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - places in a program that are no addresses of code, but that its runtime can name: a
 * line of Python, a bytecode of Java (RING_place). A place is named once, when it is met first; from
 * then on it is one word of its runtime's table. All runtimes of a process number their places in
 * one row, so that no two places have one number.
 */
#ifndef LONGPOLE_PRELOAD_PLACE_H
#define LONGPOLE_PRELOAD_PLACE_H

#include "preload/preload.h"

/* An entry of a table: 40 bits of the place's hash, and what is known of it: KNOWN, LIBRARY,
 * another bit whose meaning is the runtime's, and the place's number (0: it has no name). */
#define PLACE_KNOWN   ((uint64_t)1 << 23)
#define PLACE_LIBRARY ((uint64_t)1 << 22) /* of the runtime's own library */
#define PLACE_SPECIAL ((uint64_t)1 << 21)
#define PLACE_NUMBER  (PLACE_SPECIAL - 1)
#define PLACE_MASK    (((uint64_t)1 << 24) - 1)

/* Where the entry of a hash is: in one of two words. */
PRELOAD_INLINE uint64_t *preload_place_slot(uint64_t *table, unsigned slot_bits, uint64_t hash)
{
	return &table[hash >> (64 - slot_bits)];
}

PRELOAD_INLINE uint64_t *preload_place_other(uint64_t *table, unsigned slot_bits, uint64_t hash)
{
	return &table[hash >> (64 - slot_bits) ^ 1];
}

/* Of a place's three words, and of the image, for the names of another one are not ours. */
PRELOAD_INLINE uint64_t preload_place_hash(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t h = (a ^ (uint64_t)preload_fresh.image << 48) * 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 29 ^ b) * 0xbf58476d1ce4e5b9u;
	h = (h ^ h >> 32 ^ c) * 0x94d049bb133111ebu;
	return h ^ h >> 31;
}

/* What is known of the place with this hash, without the hash; 0: it was not met yet. */
PRELOAD_INLINE uint64_t preload_place_known(uint64_t *table, unsigned slot_bits, uint64_t hash)
{
	const uint64_t tag = hash << 24;
	uint64_t entry =
		__atomic_load_n(preload_place_slot(table, slot_bits, hash), __ATOMIC_ACQUIRE);
	if (PRELOAD_LIKELY((entry & ~PLACE_MASK) == tag && entry & PLACE_KNOWN))
		return entry & PLACE_MASK;
	entry = __atomic_load_n(preload_place_other(table, slot_bits, hash), __ATOMIC_ACQUIRE);
	if (PRELOAD_LIKELY((entry & ~PLACE_MASK) == tag && entry & PLACE_KNOWN))
		return entry & PLACE_MASK;
	return 0;
}

/* From now on `known` is known of it. */
PRELOAD_INLINE void preload_place_keep(
	uint64_t *table, unsigned slot_bits, uint64_t hash, uint64_t known)
{
	uint64_t *slot = preload_place_slot(table, slot_bits, hash);
	__atomic_store_n(preload_place_other(table, slot_bits, hash), *slot, __ATOMIC_RELAXED);
	__atomic_store_n(slot, hash << 24 | known, __ATOMIC_RELEASE);
}

/* Names a new place: writes its RING_place. The file's text lies behind the function's in `text`.
 * Returns its number; 0: all numbers are given. */
uint32_t preload_place_name(
	const char *text, size_t function_bytes, size_t file_bytes, uint64_t line);

/* The number of a state of that name. known: the caller's word, 0 before the first time. */
uint64_t preload_state_named(uint64_t *known, const char *name);
/* This thread does that until it says another, whatever it waits for meanwhile; 0: no more. */
void preload_keep_to_state(uint64_t number);

#endif
