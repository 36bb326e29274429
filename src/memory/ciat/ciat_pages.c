/* SPDX-License-Identifier: Apache-2.0 */
/* ciat_pages.c - where the states of touched locations live. */
#include "memory/ciat/ciat_private.h"

#include <sys/mman.h>

enum { HUGE_BYTES = 2 << 20, SLAB_FIRST_BYTES = 1 << 20, SLAB_MAX_BYTES = 64 << 20 };

/* Slabs are large so that the kernel may back them with huge pages: with irregular accesses half
 * of the time went into page walks otherwise. */
static enum base_status new_slab(struct memory_ciat *c)
{
	enum base_status s = base_grow(&c->room.slabs, &c->room.slabs_capacity,
		c->room.nr_slabs + 1, sizeof *c->room.slabs);
	if (s != BASE_OK)
		return s;
	c->room.slab_bytes = c->room.slab_bytes ? c->room.slab_bytes * 2 : SLAB_FIRST_BYTES;
	if (c->room.slab_bytes > SLAB_MAX_BYTES)
		c->room.slab_bytes = SLAB_MAX_BYTES;
	char *bytes = base_alloc(c->room.slab_bytes);
	if (!bytes)
		return BASE_ERR_NOMEM;
	uintptr_t begin = ((uintptr_t)bytes + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1);
	uintptr_t end = ((uintptr_t)bytes + c->room.slab_bytes) & ~(uintptr_t)(HUGE_BYTES - 1);
	if (begin < end) /* a wish; without it all is as right and slower */
		(void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	c->room.slabs[c->room.nr_slabs++] = bytes;
	c->room.slab = bytes + (-(uintptr_t)bytes & (CACHE_LINE_BYTES - 1));
	c->room.slab_left_bytes = (size_t)(bytes + c->room.slab_bytes - c->room.slab);
	return BASE_OK;
}

static struct ciat_page *new_page(struct memory_ciat *c, uint64_t number)
{
	if (c->used_bytes + c->page_bytes > c->options.memory_limit_bytes ||
		base_grow(&c->page, &c->pages_capacity, c->nr_pages + 1,
			sizeof(struct ciat_page *)) != BASE_OK)
		return NULL;
	if (c->room.slab_left_bytes < c->page_bytes && new_slab(c) != BASE_OK)
		return NULL;
	struct ciat_page *p = (struct ciat_page *)(void *)c->room.slab;
	c->room.slab += c->page_bytes;
	c->room.slab_left_bytes -= c->page_bytes;
	c->used_bytes += c->page_bytes;
	p->number = number;
	c->page[c->nr_pages++] = p;
	return p;
}

struct ciat_page *memory_ciat_page(struct memory_ciat *c, uint64_t number)
{
	struct ciat_page ***middle = &c->top[number >> DIRECTORY_BITS];
	if (!*middle) {
		if (base_grow(&c->row, &c->row_capacity, c->nr_rows + 1, sizeof *c->row) != BASE_OK)
			return NULL;
		*middle = base_alloc(sizeof(**middle) << DIRECTORY_BITS);
		if (!*middle)
			return NULL;
		c->row[c->nr_rows++] = *middle;
		c->used_bytes += MEMORY_CIAT_PAGE_BYTES; /* zero pages take no memory yet */
	}
	struct ciat_page **p = &(*middle)[number & ((1u << DIRECTORY_BITS) - 1)];
	if (!*p)
		*p = new_page(c, number);
	return *p;
}

void memory_ciat_pages_free(struct memory_ciat *c)
{
	for (size_t i = 0; i < c->nr_pages; i++) {
		base_free(c->page[i]->code);
		base_free(c->page[i]->wraps);
	}
	base_free(c->page);
	for (size_t i = 0; i < c->room.nr_slabs; i++)
		base_free(c->room.slabs[i]);
	base_free(c->room.slabs);
	for (size_t i = 0; i < c->nr_rows; i++)
		base_free(c->row[i]);
	base_free(c->row);
	base_free(c->top);
}
