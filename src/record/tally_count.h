/* SPDX-License-Identifier: Apache-2.0 */
/* tally_count.h - counting, inside the program: what the wrappers of tally_*.c share. */
#ifndef LONGPOLE_RECORD_TALLY_COUNT_H
#define LONGPOLE_RECORD_TALLY_COUNT_H

#include "record/preload.h"
#include "record/preload_real.h"
#include "record/tally.h"

/* One instruction: a signal handler comes before or after it. */
#define TALLY_ADD(counter, amount)                                                                 \
	__asm__ volatile("addq %1, %0" : "+m"(counter) : "er"((uint64_t)(amount)) : "cc")
#define TALLY_INC(counter) __asm__ volatile("incq %0" : "+m"(counter) : : "cc")

PRELOAD_INLINE void tally_max(uint64_t *counter, uint64_t value)
{
	if (value > *counter)
		*counter = value;
}

/* The i-th place where that may be counted, from the first entry in bytes. Of a key only the
 * address counts: the rest, as whether a lock is shared, is read from memory, and the lock's atomic
 * operation waits for what is counted before. */
PRELOAD_INLINE struct tally_entry *tally_place(uint64_t address, uint64_t site, size_t i)
{
	uint64_t hash = ((address >> 3) + site) * 0x9e3779b97f4a7c15u;
	size_t offset = (size_t)(hash >> 39) + i * sizeof(struct tally_entry);
	return (struct tally_entry *)(void *)((char *)preload_self.tally_entry +
					      (offset & preload_self.tally_span));
}

/* By whoever counts: an entry for `key` is new. */
void tally_entered(uint64_t key, uint64_t site);
void tally_left(void); /* ... and: this thread, or process, ends */
struct tally_entry *tally_find_slow(uint64_t key, uint64_t site);
struct tally_entry *tally_probe(uint64_t key, uint64_t site);

/* Where this thread counts that, if that is in the place where it should be; address: the key's. In
 * a fork's child preload_fresh is zero until it has attached, and then preload_self is: so nobody
 * counts into a parent's table. */
PRELOAD_INLINE struct tally_entry *tally_here(uint64_t key, uint64_t address, uint64_t site)
{
	if (PRELOAD_RARE(!preload_self.tally_entry || !preload_fresh.head))
		return NULL;
	struct tally_entry *e = tally_place(address, site, 0);
	return PRELOAD_LIKELY(e->key == key && e->site == site) ? e : NULL;
}

/* Where this thread counts that; NULL: nowhere. */
PRELOAD_INLINE struct tally_entry *tally_find(uint64_t key, uint64_t site)
{
	struct tally_entry *e = tally_here(key, key & RING_OBJECT_ADDRESS, site);
	return PRELOAD_LIKELY(e) ? e : tally_probe(key, site);
}

/* Of a duration between two stamps, less what those take themselves: a stamp may take longer than
 * what lies between them. */
PRELOAD_INLINE uint64_t tally_ns(uint64_t ticks)
{
	const struct ring_head *head = preload_fresh.head;
	if (PRELOAD_RARE(!head) || ticks <= head->stamp_ticks)
		return 0;
	return (uint64_t)((unsigned __int128)(ticks - head->stamp_ticks) * head->ns_per_tick_32 >>
			  32);
}

PRELOAD_INLINE unsigned tally_bin(uint64_t ns)
{
	unsigned bin = ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
	return bin < TALLY_BINS ? bin : TALLY_BINS - 1;
}

#endif
