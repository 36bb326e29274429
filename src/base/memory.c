/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - the one gate to the heap, growable arrays, arenas. */
#include "base/base.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- the gate -------------------------------------------------------------------------------- */

/* The one mutable global of longpole: tests count down to the allocation that shall fail. */
static _Atomic uint64_t fail_countdown;

uint64_t base_alloc_fail_nth(uint64_t n)
{
	return atomic_exchange_explicit(&fail_countdown, n, memory_order_relaxed);
}

static bool must_fail(void)
{
	uint64_t n = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

	/* A loop, so that threads that allocate at once cannot count below zero. */
	while (BASE_UNLIKELY(n > 0)) {
		if (atomic_compare_exchange_weak_explicit(
			    &fail_countdown, &n, n - 1, memory_order_relaxed, memory_order_relaxed))
			return n == 1;
	}
	return false;
}

void *base_alloc(size_t size_bytes)
{
	if (must_fail() || size_bytes > PTRDIFF_MAX)
		return NULL;
	return calloc(1, size_bytes ? size_bytes : 1);
}

void *base_realloc(void *p, size_t old_size_bytes, size_t size_bytes)
{
	if (!p)
		return base_alloc(size_bytes); /* fresh pages are zero already */
	if (must_fail() || size_bytes > PTRDIFF_MAX)
		return NULL;
	char *grown = realloc(p, size_bytes ? size_bytes : 1);
	if (!grown)
		return NULL;
	if (size_bytes > old_size_bytes)
		memset(grown + old_size_bytes, 0, size_bytes - old_size_bytes);
	return grown;
}

void base_free(void *p)
{
	free(p);
}

/* ---- growable arrays ------------------------------------------------------------------------- */

enum { GROW_MIN_ELEMS = 16 };

enum base_status base_grow(void *data, size_t *capacity, size_t need, size_t elem_size_bytes)
{
	if (need <= *capacity)
		return BASE_OK;

	size_t grown = *capacity > SIZE_MAX / 2 ? SIZE_MAX : *capacity * 2;
	if (grown < GROW_MIN_ELEMS)
		grown = GROW_MIN_ELEMS;
	if (grown < need)
		grown = need;
	/* Doubling must not be what fails: near the end of memory's range take just the need. */
	if (elem_size_bytes && grown > PTRDIFF_MAX / elem_size_bytes)
		grown = need;
	if (elem_size_bytes && grown > PTRDIFF_MAX / elem_size_bytes)
		return BASE_ERR_NOMEM;

	/* `data` is really a T **: read and write the pointer by its bytes, whatever T is. */
	void *p;
	memcpy(&p, data, sizeof p);
	p = base_realloc(p, *capacity * elem_size_bytes, grown * elem_size_bytes);
	if (!p)
		return BASE_ERR_NOMEM;
	memcpy(data, &p, sizeof p);
	*capacity = grown;
	return BASE_OK;
}

/* ---- arenas ---------------------------------------------------------------------------------- */

enum {
	ARENA_ALIGN_BYTES = 16,
	ARENA_FIRST_BLOCK_BYTES = 4 << 10,
	ARENA_LAST_BLOCK_BYTES = 1 << 20,
};

struct arena_block {
	struct arena_block *next;
	size_t size_bytes, used_bytes; /* of data */
	_Alignas(ARENA_ALIGN_BYTES) unsigned char data[];
};

/*
 * Blocks double from ARENA_FIRST_BLOCK_BYTES to ARENA_LAST_BLOCK_BYTES. `current` is the one being
 * filled; a large request gets a block of its own behind it, so that the rest of `current`
 * is not lost. All bytes of a block beyond used_bytes are zero.
 */
struct base_arena {
	struct arena_block *first, *current;
	size_t limit_bytes, used_bytes, next_block_bytes;
};

struct base_arena *base_arena_new(size_t limit_bytes)
{
	struct base_arena *a = base_alloc(sizeof *a);

	if (!a)
		return NULL;
	a->limit_bytes = limit_bytes ? limit_bytes : SIZE_MAX;
	a->next_block_bytes = ARENA_FIRST_BLOCK_BYTES;
	return a;
}

static void free_blocks(struct arena_block *b)
{
	while (b) {
		struct arena_block *next = b->next;
		base_free(b);
		b = next;
	}
}

struct base_arena *base_arena_free(struct base_arena *a)
{
	if (a)
		free_blocks(a->first);
	base_free(a);
	return NULL;
}

static struct arena_block *new_block(size_t size_bytes)
{
	if (size_bytes > PTRDIFF_MAX - sizeof(struct arena_block))
		return NULL;
	struct arena_block *b = base_alloc(sizeof *b + size_bytes);
	if (b)
		b->size_bytes = size_bytes;
	return b;
}

/* Returns a block with room for size_bytes, chained in; NULL when out of memory. */
static struct arena_block *memory_add_block(struct base_arena *a, size_t size_bytes)
{
	bool own = a->current && size_bytes > ARENA_LAST_BLOCK_BYTES / 4;
	bool exact = own || size_bytes > a->next_block_bytes;
	struct arena_block *b = new_block(exact ? size_bytes : a->next_block_bytes);

	if (!b)
		return NULL;
	if (a->current) {
		b->next = a->current->next;
		a->current->next = b;
	} else {
		a->first = b;
	}
	if (own)
		return b;
	a->current = b;
	if (a->next_block_bytes < ARENA_LAST_BLOCK_BYTES)
		a->next_block_bytes *= 2;
	return b;
}

void *base_arena_alloc(struct base_arena *a, size_t size_bytes)
{
	if (size_bytes > PTRDIFF_MAX)
		return NULL;
	size_t rounded = (size_bytes + ARENA_ALIGN_BYTES - 1) & ~(size_t)(ARENA_ALIGN_BYTES - 1);
	if (!rounded)
		rounded = ARENA_ALIGN_BYTES; /* each allocation has an address of its own */
	if (rounded > a->limit_bytes - a->used_bytes)
		return NULL;

	struct arena_block *b = a->current;
	if (BASE_UNLIKELY(!b || rounded > b->size_bytes - b->used_bytes)) {
		b = memory_add_block(a, rounded);
		if (!b)
			return NULL;
	}
	void *p = b->data + b->used_bytes;
	b->used_bytes += rounded;
	a->used_bytes += rounded;
	return p;
}

char *base_arena_strndup(struct base_arena *a, const char *s, size_t length)
{
	if (length >= PTRDIFF_MAX)
		return NULL;
	char *copy = base_arena_alloc(a, length + 1);
	if (copy && length)
		memcpy(copy, s, length);
	return copy;
}

size_t base_arena_used_bytes(const struct base_arena *a)
{
	return a->used_bytes;
}
