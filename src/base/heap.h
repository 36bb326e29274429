/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - binary heaps in arrays of their owners: item 0 is before all others. What is before what
 * is told by is_before(a, b), of pointers to two items; it is expanded in place.
 */
#ifndef LONGPOLE_BASE_HEAP_H
#define LONGPOLE_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One more. There is room for it, and `nr` becomes one more. */
#define BASE_HEAP_PUT(heap, nr, item, is_before)                                                   \
	do {                                                                                       \
		const __typeof__(*(heap)) item_ = (item);                                          \
		size_t at_ = (nr)++;                                                               \
		for (; at_ && is_before(&item_, &(heap)[(at_ - 1) / 2]); at_ = (at_ - 1) / 2)      \
			(heap)[at_] = (heap)[(at_ - 1) / 2];                                       \
		(heap)[at_] = item_;                                                               \
	} while (0)

/* `item` takes the place of item 0. */
#define BASE_HEAP_REPLACE(heap, nr, item, is_before)                                               \
	do {                                                                                       \
		const __typeof__(*(heap)) item_ = (item);                                          \
		const size_t nr_ = (nr);                                                           \
		size_t at_ = 0;                                                                    \
		for (size_t child_; (child_ = 2 * at_ + 1) < nr_; at_ = child_) {                  \
			child_ += child_ + 1 < nr_ &&                                              \
				  is_before(&(heap)[child_ + 1], &(heap)[child_]);                 \
			if (!is_before(&(heap)[child_], &item_))                                   \
				break;                                                             \
			(heap)[at_] = (heap)[child_];                                              \
		}                                                                                  \
		(heap)[at_] = item_;                                                               \
	} while (0)

/* Without item 0. `nr` is not 0, and becomes one less. */
#define BASE_HEAP_DROP(heap, nr, is_before)                                                        \
	do {                                                                                       \
		(nr)--;                                                                            \
		if (nr)                                                                            \
			BASE_HEAP_REPLACE(heap, nr, (heap)[nr], is_before);                        \
	} while (0)

/* ---- heaps of keys: the least first ---------------------------------------------------------- */

static inline bool base_key_is_less(const uint64_t *a, const uint64_t *b)
{
	return *a < *b;
}

static inline void base_keys_put(uint64_t *heap, uint32_t *nr, uint64_t key)
{
	BASE_HEAP_PUT(heap, *nr, key, base_key_is_less);
}

static inline void base_keys_replace(uint64_t *heap, uint32_t nr, uint64_t key)
{
	BASE_HEAP_REPLACE(heap, nr, key, base_key_is_less);
}

static inline void base_keys_drop(uint64_t *heap, uint32_t *nr)
{
	BASE_HEAP_DROP(heap, *nr, base_key_is_less);
}

/* The least of the others than item 0. UINT64_MAX: there are none. */
static inline uint64_t base_keys_second(const uint64_t *heap, uint32_t nr)
{
	uint64_t best = UINT64_MAX;
	for (uint32_t i = 1; i < 3 && i < nr; i++)
		best = heap[i] < best ? heap[i] : best;
	return best;
}

/* ---- turns ------------------------------------------------------------------------------------
 * Keys that take turns, the least first. As long as each one comes back behind all others they wait
 * in a queue; one that comes back earlier than the last of it waits in a heap.
 */

struct base_turns {             /* zeroes but for the owner's arrays: none waits */
	uint64_t *queue, *heap; /* room for all; of the queue a power of two */
	uint32_t mask;          /* of the queue's indexes */
	uint32_t begin, end;    /* of the queue, modulo 2^32 */
	uint32_t nr_heap;
};

static inline uint32_t base_turns_nr(const struct base_turns *t)
{
	return t->end - t->begin + t->nr_heap;
}

/* In no order. */
static inline uint64_t base_turns_at(const struct base_turns *t, uint32_t i)
{
	return i < t->nr_heap ? t->heap[i] : t->queue[(t->begin + i - t->nr_heap) & t->mask];
}

static inline bool base_turns_heap_is_next(const struct base_turns *t)
{
	return t->nr_heap && (t->begin == t->end || t->heap[0] < t->queue[t->begin & t->mask]);
}

/* UINT64_MAX: none waits. */
static inline uint64_t base_turns_least(const struct base_turns *t)
{
	if (base_turns_heap_is_next(t))
		return t->heap[0];
	return t->begin != t->end ? t->queue[t->begin & t->mask] : UINT64_MAX;
}

/* The least one waits no more. */
static inline void base_turns_drop(struct base_turns *t)
{
	if (base_turns_heap_is_next(t))
		base_keys_drop(t->heap, &t->nr_heap);
	else
		t->begin++;
}

static inline void base_turns_put(struct base_turns *t, uint64_t key)
{
	if (t->begin == t->end || t->queue[(t->end - 1) & t->mask] <= key)
		t->queue[t->end++ & t->mask] = key;
	else
		base_keys_put(t->heap, &t->nr_heap, key);
}

/* All keys change: each becomes what `renew` says. */
static inline void base_turns_renew(
	struct base_turns *t, uint64_t (*renew)(void *ctx, uint64_t key), void *ctx)
{
	uint32_t nr = base_turns_nr(t), done = 0;
	while (done < nr) /* those of the heap come first, so none is overwritten before */
		base_keys_put(t->heap, &done, renew(ctx, base_turns_at(t, done)));
	t->nr_heap = nr;
	t->begin = t->end;
}

#endif
