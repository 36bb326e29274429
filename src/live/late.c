/* SPDX-License-Identifier: Apache-2.0 */
/* late.c - records of many streams, each in order, become one row in order of time: they wait in
 * spans of time until nothing earlier can come. */
#include "live/private.h"

#include <stdlib.h>

enum { SPANS = LIVE_BUCKETS - 2, SPAN_MIN_NS = 1000000, KEPT = 256 };

void live_late_init(struct late *q, uint64_t late_ns)
{
	q->span_ns = 2 * late_ns / SPANS + 1; /* twice: readers do not come on the dot */
	if (q->span_ns < SPAN_MIN_NS)
		q->span_ns = SPAN_MIN_NS;
}

void live_late_fini(struct late *q)
{
	for (size_t i = 0; i < LIVE_BUCKETS; i++)
		base_free(q->bucket[i].record);
}

bool live_late_is_full(const struct late *q, uint64_t time_ns)
{
	return q->nr_waiting >= LIVE_LATE_RECORDS_MAX ||
	       time_ns / q->span_ns >= q->first + LIVE_BUCKETS;
}

enum base_status live_late_put(struct late *q, const struct trace_record *r)
{
	uint64_t span = r->time_ns / q->span_ns;
	if (!q->order)
		q->first = span;
	if (span < q->first) {
		span = q->first;
		q->nr_late++;
	}
	BASE_ASSERT(span < q->first + LIVE_BUCKETS);
	struct bucket *b = &q->bucket[span % LIVE_BUCKETS];
	enum base_status s = base_grow(&b->record, &b->capacity, b->nr + 1, sizeof *b->record);
	if (s != BASE_OK)
		return s;
	b->record[b->nr++] = (struct late_record){.order = ++q->order, .r = *r};
	q->nr_waiting++;
	return BASE_OK;
}

static int late_by_time(const void *pa, const void *pb)
{
	const struct late_record *a = pa, *b = pb;
	if (a->r.time_ns != b->r.time_ns)
		return a->r.time_ns < b->r.time_ns ? -1 : 1;
	if (a->r.stream != b->r.stream)
		return a->r.stream < b->r.stream ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

struct late_record *live_late_take(struct late *q, uint64_t time_ns, size_t *ret_nr)
{
	uint64_t end = time_ns / q->span_ns;
	*ret_nr = 0;
	for (; q->order && q->nr_waiting && q->first < end; q->first++) {
		struct bucket *b = &q->bucket[q->first % LIVE_BUCKETS];
		if (!b->nr)
			continue;
		qsort(b->record, b->nr, sizeof *b->record, late_by_time);
		*ret_nr = b->nr;
		return b->record;
	}
	if (q->order && q->first < end)
		q->first = end;
	return NULL;
}

void live_late_drop(struct late *q)
{
	struct bucket *b = &q->bucket[q->first % LIVE_BUCKETS];
	q->nr_waiting -= b->nr;
	b->nr = 0;
	if (b->capacity > KEPT) { /* a burst's memory is not kept */
		base_free(b->record);
		b->record = NULL;
		b->capacity = 0;
	}
	q->first++;
}
