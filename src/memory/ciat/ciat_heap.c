/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ciat_heap.c - allocated memory: what was done to the blocks that a call asked for.
 *
 * Accesses are counted by place (ciat_private.h), and places are used again. So a block knows what
 * its places had when it began, and what they got since is its site's when it ends. Sharing is
 * attributed when it happens, by asking whose block an address is in.
 *
 * Small blocks hang on the page that they begin in; large ones stand in a sorted array. A mapping
 * may have blocks of a heap in it: the inner one counts. Pages that are mapped anew have nobody's
 * data: they are not shared with threads that had their addresses before.
 */
#include "memory/ciat/ciat_private.h"

#include <string.h>

enum {
	SMALL_BYTES = 32 << 10, /* blocks below it hang on pages */
	SMALL_PAGES = SMALL_BYTES >> PAGE_SHIFT,
	LOOK_BACK = 64,       /* large blocks before an address that are tried */
	BLOCKS_MAX = 1 << 24, /* alive; more are left out */
	PAGES_MAX = 1 << 20,  /* of a range that is searched for small blocks */
	FOUND = 256,
	MALLOC_MAPS_BYTES = 128 << 10, /* M_MMAP_THRESHOLD, at first */
	MALLOC_HEAD_BYTES = 16,
};

struct block {
	uint64_t address, size_bytes, begin_ns;
	uint64_t before; /* accesses to its places until it began */
	uint32_t site;
	uint32_t next; /* on its page, or free; + 1 */
	bool mapping;
};

struct ciat_heap {
	struct block *block;
	size_t nr_blocks, capacity;
	uint32_t free;           /* + 1 */
	struct base_map on_page; /* page -> first block + 1 */
	uint64_t reach_pages;    /* that blocks on a page reach behind it: at most SMALL_PAGES */
	uint32_t *large;         /* by address */
	size_t nr_large, large_capacity;
	struct base_map site_of; /* (mapping, code) -> index */
	struct memory_ciat_heap *site;
	size_t nr_sites, sites_capacity;
	uint64_t epoch; /* of `found` */
	struct {
		uint64_t address, epoch;
		uint32_t block; /* + 1 */
	} found[FOUND];
};

/* ---- what places had ------------------------------------------------------------------------- */

uint64_t memory_ciat_accesses(const struct memory_ciat *c, uint64_t from, uint64_t to)
{
	uint64_t sum = 0;
	uint64_t first = from >> c->shape.location_shift,
		 end = (to + (1u << c->shape.location_shift) - 1) >> c->shape.location_shift;
	unsigned per_page = PAGE_SHIFT - c->shape.location_shift;
	while (first < end) {
		uint64_t number = first >> per_page;
		if (number >> DIRECTORY_BITS >= (uint64_t)1 << TOP_BITS)
			break;
		uint64_t next = (number + 1) << per_page;
		if (!c->top[number >> DIRECTORY_BITS]) {
			first = ((number >> DIRECTORY_BITS) + 1) << (DIRECTORY_BITS + per_page);
			continue;
		}
		struct ciat_page *p = ciat_known_page(c, number);
		next = next < end ? next : end;
		for (uint64_t g = first; p && g < next; g++) {
			sum += ciat_accesses(c, p, (unsigned)g & ((1u << per_page) - 1));
		}
		first = next;
	}
	return sum;
}

/* ---- finding a block ------------------------------------------------------------------------- */

static bool contains(const struct block *b, uint64_t address)
{
	return address - b->address < b->size_bytes;
}

/* + 1; 0: none */
static uint32_t small_at(const struct ciat_heap *h, uint64_t address)
{
	uint64_t page = address >> PAGE_SHIFT;
	for (uint64_t i = 0; i <= h->reach_pages && i <= page; i++) {
		uint64_t b = 0;
		(void)base_map_get(&h->on_page, 0, page - i, &b);
		for (; b; b = h->block[b - 1].next)
			if (contains(&h->block[b - 1], address))
				return (uint32_t)b;
	}
	return 0;
}

/* How many large blocks begin at or before an address. */
static size_t large_up_to(const struct ciat_heap *h, uint64_t address)
{
	return BASE_PARTITION(i, h->nr_large, h->block[h->large[i]].address <= address);
}

static uint32_t large_at(const struct ciat_heap *h, uint64_t address, bool mappings_only)
{
	size_t at = large_up_to(h, address);
	for (unsigned tries = LOOK_BACK; at-- > 0 && tries; tries--) {
		const struct block *b = &h->block[h->large[at]];
		if (contains(b, address) && (b->mapping || !mappings_only))
			return h->large[at] + 1;
	}
	return 0;
}

uint32_t memory_ciat_heap_at(struct memory_ciat *c, uint64_t address, uint64_t *ret_offset)
{
	struct ciat_heap *h = c->heap;
	*ret_offset = 0;
	if (!h)
		return 0;
	size_t slot = address / 8 % FOUND;
	if (h->found[slot].epoch != h->epoch || h->found[slot].address != address) {
		uint32_t b = small_at(h, address);
		h->found[slot].block = b ? b : large_at(h, address, false);
		h->found[slot].epoch = h->epoch;
		h->found[slot].address = address;
	}
	uint32_t b = h->found[slot].block;
	if (!b)
		return 0;
	*ret_offset = address - h->block[b - 1].address;
	return h->block[b - 1].site + 1;
}

/* ---- a block ends ---------------------------------------------------------------------------- */

static void ciat_heap_settle(struct memory_ciat *c, const struct block *b)
{
	struct ciat_heap *h = c->heap;
	uint64_t sum = memory_ciat_accesses(c, b->address, b->address + b->size_bytes) - b->before;
	uint32_t around = b->mapping ? 0 : large_at(h, b->address, true);
	h->site[b->site].accesses += sum;
	if (around) /* its places are counted again when the mapping ends */
		h->site[h->block[around - 1].site].accesses -= sum;
}

static void unlink_small(struct memory_ciat *c, uint32_t index)
{
	struct ciat_heap *h = c->heap;
	uint64_t page = h->block[index].address >> PAGE_SHIFT, at = 0;
	(void)base_map_get(&h->on_page, 0, page, &at);
	if (at == index + 1u) {
		(void)base_map_remove(&h->on_page, 0, page);
		/* There is room: one was taken out. */
		if (h->block[index].next &&
			base_map_put(&h->on_page, 0, page, h->block[index].next) != BASE_OK)
			c->result.blocks_left_out++;
		return;
	}
	for (; at; at = h->block[at - 1].next)
		if (h->block[at - 1].next == index + 1u)
			h->block[at - 1].next = h->block[index].next;
}

static void ciat_heap_end_block(struct memory_ciat *c, uint32_t index)
{
	struct ciat_heap *h = c->heap;
	struct block *b = &h->block[index];
	ciat_heap_settle(c, b);
	if (b->size_bytes < SMALL_BYTES) {
		unlink_small(c, index);
	} else {
		size_t at = large_up_to(h, b->address);
		while (at-- > 0 && h->large[at] != index)
			;
		memmove(h->large + at, h->large + at + 1,
			(h->nr_large - at - 1) * sizeof *h->large);
		h->nr_large--;
	}
	*b = (struct block){.next = h->free};
	h->free = index + 1;
	h->epoch++;
}

/* ---- a block begins -------------------------------------------------------------------------- */

/* Blocks of a heap, or mappings, that have a part of [from, end) end. */
static void end_within(struct memory_ciat *c, uint64_t from, uint64_t end, bool mappings)
{
	struct ciat_heap *h = c->heap;
	uint64_t first = from >> PAGE_SHIFT, last = (end - 1) >> PAGE_SHIFT;
	first = first > h->reach_pages ? first - h->reach_pages : 0;
	bool small = !mappings && h->on_page.nr_used && last - first <= PAGES_MAX;
	for (uint64_t page = first; small && page <= last; page++) {
		uint64_t b = 0, next;
		(void)base_map_get(&h->on_page, 0, page, &b);
		for (; b; b = next) {
			const struct block *old = &h->block[b - 1];
			next = old->next;
			if (old->address < end && from < old->address + old->size_bytes)
				ciat_heap_end_block(c, (uint32_t)(b - 1));
		}
	}
	size_t at = large_up_to(h, end - 1);
	for (unsigned tries = LOOK_BACK; at-- > 0 && tries; tries--) {
		const struct block *old = &h->block[h->large[at]];
		if (old->mapping == mappings && from < old->address + old->size_bytes)
			ciat_heap_end_block(c, h->large[at]);
	}
}

static enum base_status ciat_heap_site_at(
	struct ciat_heap *h, uint64_t code, bool mapping, uint32_t *ret)
{
	uint64_t index;
	if (!base_map_get(&h->site_of, mapping, code, &index)) {
		if (h->nr_sites ==
			MEMORY_CIAT_HEAP_SITES_MAX) { /* the last one stands for all others */
			*ret = MEMORY_CIAT_HEAP_SITES_MAX - 1;
			return BASE_OK;
		}
		enum base_status s =
			base_grow(&h->site, &h->sites_capacity, h->nr_sites + 1, sizeof *h->site);
		if (s == BASE_OK)
			s = base_map_put(&h->site_of, mapping, code, h->nr_sites);
		if (s != BASE_OK)
			return s;
		index = h->nr_sites++;
		h->site[index] = (struct memory_ciat_heap){.code = code, .mapping = mapping};
	}
	*ret = (uint32_t)index;
	return BASE_OK;
}

static enum base_status link_block(struct ciat_heap *h, uint32_t index)
{
	struct block *b = &h->block[index];
	if (b->size_bytes < SMALL_BYTES) {
		uint64_t first = 0, page = b->address >> PAGE_SHIFT;
		uint64_t reach = ((b->address + b->size_bytes - 1) >> PAGE_SHIFT) - page;
		h->reach_pages = reach > h->reach_pages ? reach : h->reach_pages;
		(void)base_map_get(&h->on_page, 0, page, &first);
		b->next = (uint32_t)first;
		return base_map_put(&h->on_page, 0, page, index + 1u);
	}
	enum base_status s =
		base_grow(&h->large, &h->large_capacity, h->nr_large + 1, sizeof *h->large);
	if (s != BASE_OK)
		return s;
	size_t at = large_up_to(h, b->address);
	memmove(h->large + at + 1, h->large + at, (h->nr_large - at) * sizeof *h->large);
	h->large[at] = index;
	h->nr_large++;
	return BASE_OK;
}

static enum base_status ciat_heap_begin_block(struct memory_ciat *c, struct block b, uint64_t code)
{
	struct ciat_heap *h = c->heap;
	/* What is alive there has ended, though its end was not seen yet, or never. */
	end_within(c, b.address, b.address + b.size_bytes, b.mapping);
	enum base_status s = ciat_heap_site_at(h, code, b.mapping, &b.site);
	if (s != BASE_OK)
		return s;
	h->site[b.site].blocks++;
	h->site[b.site].bytes += b.size_bytes;
	if (!h->free && h->nr_blocks == BLOCKS_MAX) {
		c->result.blocks_left_out++;
		return BASE_OK;
	}
	if (!h->free) {
		s = base_grow(&h->block, &h->capacity, h->nr_blocks + 1, sizeof *h->block);
		if (s != BASE_OK)
			return s;
		h->block[h->nr_blocks] = (struct block){0};
		h->free = (uint32_t)++h->nr_blocks;
	}
	uint32_t index = h->free - 1;
	h->free = h->block[index].next;
	b.before = memory_ciat_accesses(c, b.address, b.address + b.size_bytes);
	h->block[index] = b;
	h->epoch++;
	s = link_block(h, index);
	if (s != BASE_OK)
		h->block[index].size_bytes = 0; /* in no list: nothing is its */
	return s;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The page is new: whoever had something of the one that was there has nothing of it. What was
 * touched stays so. */
static void ciat_heap_renew(struct memory_ciat *c, struct ciat_page *p)
{
	if (p->settled)
		memory_ciat_settle(c, p, 0);
	for (unsigned i = 0; i < (unsigned)PAGE_BYTES >> c->shape.location_shift; i++)
		ciat_state(p)[i] &= ~VALUE_MASK;
	for (unsigned i = 0; i < (unsigned)PAGE_BYTES >> c->shape.line_shift; i++) {
		struct ciat_line *l = ciat_line(&c->shape, p, i);
		l->holders = l->seen = 0;
	}
}

/* Does the kernel give new pages for it? For a mapping of the program's own; and for a large block
 * of glibc's malloc, which then is two words behind the beginning of a page. */
static bool is_mapped_anew(const struct block *b)
{
	return b->mapping || (b->size_bytes >= MALLOC_MAPS_BYTES &&
				     (b->address & (PAGE_BYTES - 1)) == MALLOC_HEAD_BYTES);
}

static void renew_pages(struct memory_ciat *c, const struct block *b)
{
	uint64_t first = (b->address - (b->mapping ? 0 : MALLOC_HEAD_BYTES)) >> PAGE_SHIFT;
	uint64_t end = (b->address + b->size_bytes + PAGE_BYTES - 1) >> PAGE_SHIFT;
	while (first < end) {
		struct ciat_page *p = ciat_known_page(c, first);
		if (p)
			ciat_heap_renew(c, p);
		first = c->top[first >> DIRECTORY_BITS]
				? first + 1
				: ((first >> DIRECTORY_BITS) + 1) << DIRECTORY_BITS;
	}
}

static enum base_status allocate(struct memory_ciat *c, const struct memory_call *call)
{
	struct block b = {.address = call->argument[0],
		.size_bytes = call->argument[1],
		.begin_ns = call->start_ns,
		.mapping = call->argument[3] == MEMORY_ALLOCATION_MAPPING};
	if (!b.size_bytes || b.size_bytes > MEMORY_ADDRESS_LIMIT ||
		b.address > MEMORY_ADDRESS_LIMIT - b.size_bytes)
		return BASE_OK;
	if (!c->heap) {
		c->heap = base_alloc(sizeof *c->heap);
		if (!c->heap)
			return BASE_ERR_NOMEM;
		c->heap->epoch = 1;
	}
	if (is_mapped_anew(&b))
		renew_pages(c, &b);
	return ciat_heap_begin_block(c, b, call->argument[2]);
}

/* Times tell a release that the order of threads brings too late: the memory is another's already.
 */
static bool is_older(const struct block *b, const struct memory_call *call)
{
	return !call->start_ns || b->begin_ns <= call->start_ns;
}

static void ciat_heap_release(struct memory_ciat *c, const struct memory_call *call)
{
	struct ciat_heap *h = c->heap;
	uint64_t address = call->argument[0], end = address + call->argument[1], first = 0;
	if (!h)
		return;
	if (!call->argument[1]) {
		(void)base_map_get(&h->on_page, 0, address >> PAGE_SHIFT, &first);
		while (first && h->block[first - 1].address != address)
			first = h->block[first - 1].next;
	}
	if (first) {
		if (is_older(&h->block[first - 1], call))
			ciat_heap_end_block(c, (uint32_t)(first - 1));
		return;
	}
	if (call->argument[1] && end > address) /* with what is in the mapping */
		end_within(c, address, end, false);
	size_t at = large_up_to(h, call->argument[1] ? end - 1 : address);
	for (unsigned tries = LOOK_BACK; at-- > 0 && tries; tries--) {
		const struct block *b = &h->block[h->large[at]];
		bool meant = call->argument[1] ? b->mapping && b->address >= address &&
							 b->address + b->size_bytes <= end
					       : b->address == address && !b->mapping;
		if (meant && is_older(b, call))
			ciat_heap_end_block(c, h->large[at]);
	}
}

enum base_status memory_ciat_heap_call(struct memory_ciat *c, const struct memory_call *call)
{
	enum base_status s = BASE_OK;
	if (call->kind == MEMORY_CALL_allocate || call->kind == MEMORY_CALL_release)
		s = memory_ciat_spans_give(c);
	if (call->kind == MEMORY_CALL_allocate && s == BASE_OK)
		return allocate(c, call);
	if (call->kind == MEMORY_CALL_release && s == BASE_OK)
		ciat_heap_release(c, call);
	return s;
}

/* ---- the end --------------------------------------------------------------------------------- */

void memory_ciat_heap_finish(struct memory_ciat *c)
{
	struct ciat_heap *h = c->heap;
	if (!h)
		return;
	for (size_t i = 0; i < h->nr_blocks; i++)
		if (h->block[i].size_bytes)
			ciat_heap_settle(c, &h->block[i]);
	c->result.heap = h->site;
	c->result.nr_heap = h->nr_sites;
	c->result.memory_bytes +=
		h->capacity * sizeof *h->block + h->on_page.capacity * sizeof(struct base_map_slot);
}

void memory_ciat_heap_free(struct memory_ciat *c)
{
	if (!c->heap)
		return;
	base_free(c->heap->block);
	base_free(c->heap->large);
	base_free(c->heap->site);
	base_map_fini(&c->heap->on_page);
	base_map_fini(&c->heap->site_of);
	base_free(c->heap);
}
