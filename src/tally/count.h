/* SPDX-License-Identifier: Apache-2.0 */
/* count.h - counting, inside the program: what the wrappers of tally_*.c share. */
#ifndef LONGPOLE_TALLY_COUNT_H
#define LONGPOLE_TALLY_COUNT_H

#include "preload/preload.h"
#include "preload/real.h"
#include "ring/tally.h"

/* Not to be split: a signal handler comes before or after it. */
#define TALLY_ADD(counter, amount) PROCESSOR_ADD(counter, amount)
#define TALLY_INC(counter)         PROCESSOR_INC(counter)
#define TALLY_INC32(counter)       PROCESSOR_INC32(counter)
#define TALLY_INC8(counter)        PROCESSOR_INC8(counter)
#define TALLY_DEC8(counter)        PROCESSOR_DEC8(counter)
/* `now` in place of `was`, if that is still there; else `was` becomes what is. */
#define TALLY_REPLACE(counter, was, now) PROCESSOR_REPLACE(&(counter), &(was), (uint64_t)(now))

PRELOAD_INLINE void tally_max(uint64_t *counter, uint64_t value)
{
	if (value > *counter)
		*counter = value;
}

/* Of what is counted: an object's or a call's word without RING_OBJECT_SHARED, which for a lock is
 * read from its memory (its atomic operation waits for what is counted before it), and the caller's
 * address. Two have the same only if their words or their sites are 2^30 bytes apart (the shortest
 * solution modulo 2^64, by reduction of the two factors' lattice), and then by a chance of 2^-64.
 */
PRELOAD_INLINE uint64_t tally_tag_of(uint64_t name, uint64_t site)
{
	return name * 0x9e3779b97f4a7c15u + site * 0xc2b2ae3d27d4eb4fu;
}

/* The i-th place where that may be counted. Those of a lock are first in one line of the cache,
 * whose slots are its sites': a program with thousands of locks takes each at some, one soon after
 * the other. (A function is called at more sites than a line has room for.) */
PRELOAD_INLINE struct tally_tag *tally_place(uint64_t name, uint64_t tag, size_t i)
{
	enum { LINE = 64 / sizeof(struct tally_tag) };
	bool is_lock = name >> RING_OBJECT_TYPE_SHIFT != 0;
	size_t offset = (size_t)(tag >> 42) + i * sizeof(struct tally_tag);
	if (is_lock && i < LINE) {
		size_t line = (size_t)(name * 0x9e3779b97f4a7c15u >> 42) & ~(size_t)63;
		offset = line + offset % 64;
	}
	return (struct tally_tag *)(void *)((char *)preload_self->tally_tag +
					    (offset & preload_self->tally_span));
}

PRELOAD_INLINE struct tally_entry *tally_entry_of(const struct tally_tag *t)
{
	return (struct tally_entry *)((uintptr_t)t * 8 + preload_self->tally_entries);
}

/* With TALLY_ALL, what a lock was held: in the same line of the cache. */
PRELOAD_INLINE struct tally_held *tally_held_of(struct tally_tag *t)
{
	return (struct tally_held *)(void *)(t + 1);
}

/* By whoever counts: an entry for `key` is new. */
void tally_entered(uint64_t key, uint64_t site);
void tally_left(void); /* ... and: this thread, or process, ends */
struct tally_tag *tally_probe(uint64_t key, uint64_t site);

/* Where this thread counts that, if that is in the place where it should be. In a fork's child
 * preload_fresh is zero until it has attached, and then preload_self is: so nobody counts into a
 * parent's table. */
PRELOAD_INLINE struct tally_tag *tally_here(uint64_t name, uint64_t site)
{
	if (PRELOAD_RARE(!preload_self->tally_tag || !preload_fresh.head))
		return NULL;
	uint64_t tag = tally_tag_of(name, site);
	struct tally_tag *t = tally_place(name, tag, 0);
	return PRELOAD_LIKELY(t->tag == tag) ? t : NULL;
}

/* Where this thread counts that; NULL: nowhere. */
PRELOAD_INLINE struct tally_tag *tally_find(uint64_t key, uint64_t site)
{
	struct tally_tag *t = tally_here(key & ~RING_OBJECT_SHARED, site);
	return PRELOAD_LIKELY(t) ? t : tally_probe(key, site);
}

PRELOAD_INLINE struct tally_entry *tally_entry(uint64_t key, uint64_t site)
{
	struct tally_tag *t = tally_find(key, site);
	return PRELOAD_LIKELY(t) ? tally_entry_of(t) : NULL;
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
