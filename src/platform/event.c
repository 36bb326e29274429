/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - a binary heap, ordered by time, then by insertion. */
#include "platform/event.h"

void platform_events_fini(struct platform_events *e)
{
	base_free(e->heap);
	*e = (struct platform_events){0};
}

static inline bool is_before(const struct platform_event *a, const struct platform_event *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

enum base_status platform_events_push(struct platform_events *e, struct platform_event event)
{
	enum base_status s = base_grow(&e->heap, &e->capacity, e->nr + 1, sizeof *e->heap);
	if (s != BASE_OK)
		return s;
	event.order = e->nr_pushed++;
	size_t i = e->nr++;
	for (; i && is_before(&event, &e->heap[(i - 1) / 2]); i = (i - 1) / 2)
		e->heap[i] = e->heap[(i - 1) / 2];
	e->heap[i] = event;
	return BASE_OK;
}

bool platform_events_pop(struct platform_events *e, struct platform_event *ret)
{
	if (!e->nr)
		return false;
	*ret = e->heap[0];
	struct platform_event last = e->heap[--e->nr];
	size_t i = 0;
	for (size_t child; (child = 2 * i + 1) < e->nr; i = child) {
		if (child + 1 < e->nr && is_before(&e->heap[child + 1], &e->heap[child]))
			child++;
		if (!is_before(&e->heap[child], &last))
			break;
		e->heap[i] = e->heap[child];
	}
	if (e->nr)
		e->heap[i] = last;
	return true;
}
