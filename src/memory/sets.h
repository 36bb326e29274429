/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sets.h - sets of threads or processors in 32 bits each. Up to 32 members a set is its own bit
 * mask. With more, a set of some of the first 31 still is, and any other one is the number of an
 * interned bit map, with the highest bit set: equal sets have equal numbers, and the memory grows
 * with the number of such sets met.
 */
#ifndef LONGPOLE_MEMORY_SETS_H
#define LONGPOLE_MEMORY_SETS_H

#include "base/base.h"

enum { MEMORY_SETS_MASK_MAX = 32, MEMORY_SETS_INTERNED_SHIFT = 31 };

struct memory_sets {
	uint32_t nr_members; /* members are below this */
	bool wide;
	uint32_t words; /* of a bit map */
	uint64_t *bits; /* of the interned sets, from 1 */
	size_t nr_sets, capacity, bits_capacity;
	uint32_t *size;
	struct base_map by_hash; /* of the contents -> first set with it */
	uint32_t *same_hash;     /* next set with the same hash; 0: none */
	size_t same_capacity;
	struct base_map with; /* (set, member) -> set */
	struct base_map without;
};

void memory_sets_init(struct memory_sets *s, uint32_t nr_members);
void memory_sets_fini(struct memory_sets *s);
/* Bytes of interned sets. */
uint64_t memory_sets_bytes(const struct memory_sets *s);

/* Of sets that are not masks. */
bool memory_sets_wide_has(const struct memory_sets *s, uint32_t set, uint32_t member);
enum base_status memory_sets_wide_change(
	struct memory_sets *s, uint32_t *set, uint32_t member, bool in) BASE_MUST_CHECK;
uint32_t memory_sets_wide_size(const struct memory_sets *s, uint32_t set);

/* Is this set a mask, and would it be one with this member? */
static inline bool memory_sets_masks(const struct memory_sets *s, uint32_t set, uint32_t member)
{
	return BASE_LIKELY(!s->wide) ||
	       (member < MEMORY_SETS_INTERNED_SHIFT && !(set >> MEMORY_SETS_INTERNED_SHIFT));
}

static inline bool memory_sets_has(const struct memory_sets *s, uint32_t set, uint32_t member)
{
	return BASE_LIKELY(memory_sets_masks(s, set, member))
		       ? set >> member & 1
		       : memory_sets_wide_has(s, set, member);
}

static inline enum base_status memory_sets_add(
	struct memory_sets *s, uint32_t *set, uint32_t member)
{
	if (BASE_LIKELY(memory_sets_masks(s, *set, member))) {
		BASE_ASSUME(member < 32);
		*set |= UINT32_C(1) << member;
		return BASE_OK;
	}
	return memory_sets_wide_change(s, set, member, true);
}

static inline enum base_status memory_sets_remove(
	struct memory_sets *s, uint32_t *set, uint32_t member)
{
	if (BASE_LIKELY(memory_sets_masks(s, *set, member))) {
		BASE_ASSUME(member < 32);
		*set &= ~(UINT32_C(1) << member);
		return BASE_OK;
	}
	return memory_sets_wide_change(s, set, member, false);
}

static inline uint32_t memory_sets_size(const struct memory_sets *s, uint32_t set)
{
	if (BASE_UNLIKELY(!memory_sets_masks(s, set, 0)))
		return memory_sets_wide_size(s, set);
	/* Bits in place: for the plainest x86-64, __builtin_popcount() is a call. */
	set -= set >> 1 & 0x55555555;
	set = (set & 0x33333333) + (set >> 2 & 0x33333333);
	return ((set + (set >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

#endif
