/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - a binary heap, ordered by time, then by insertion. */
#include "platform/event.h"

#include "base/heap.h"

void platform_events_fini(struct platform_events *e)
{
	base_free(e->heap);
	*e = (struct platform_events){0};
}

static inline bool event_is_before(const struct platform_event *a, const struct platform_event *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

enum base_status platform_events_push(struct platform_events *e, struct platform_event event)
{
	enum base_status s = base_grow(&e->heap, &e->capacity, e->nr + 1, sizeof *e->heap);
	if (s != BASE_OK)
		return s;
	event.order = e->nr_pushed++;
	BASE_HEAP_PUT(e->heap, e->nr, event, event_is_before);
	return BASE_OK;
}

bool platform_events_pop(struct platform_events *e, struct platform_event *ret)
{
	if (!e->nr)
		return false;
	*ret = e->heap[0];
	BASE_HEAP_DROP(e->heap, e->nr, event_is_before);
	return true;
}
