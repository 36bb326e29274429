/* SPDX-License-Identifier: Apache-2.0 */
/* machine_places.c - who wrote each location last, and when each line was there. */
#include "slack/machine_private.h"

enum base_status slack_places_init(struct places *p, uint64_t line_bytes, uint64_t limit_bytes)
{
	p->page_bytes = sizeof(struct place_page) + (1u << PAGE_SHIFT) / line_bytes * 8;
	p->top = base_alloc((1u << PAGE_TOP_BITS) * sizeof *p->top);
	p->pages = base_arena_new(limit_bytes);
	p->middles = base_arena_new(0);
	return p->top && p->pages && p->middles ? BASE_OK : BASE_ERR_NOMEM;
}

void slack_places_fini(struct places *p)
{
	base_free(p->top);
	base_arena_free(p->pages);
	base_arena_free(p->middles);
	*p = (struct places){0};
}

struct place_page *slack_places_make(struct places *p, uint64_t number)
{
	struct place_page ***middle = &p->top[number >> PAGE_MIDDLE_BITS];
	if (!*middle)
		*middle = base_arena_alloc(
			p->middles, (UINT64_C(1) << PAGE_MIDDLE_BITS) * sizeof **middle);
	if (!*middle)
		return NULL;
	struct place_page *page = base_arena_alloc(p->pages, p->page_bytes);
	(*middle)[number & ((1u << PAGE_MIDDLE_BITS) - 1)] = page;
	p->nr_pages += page != NULL;
	return page;
}
