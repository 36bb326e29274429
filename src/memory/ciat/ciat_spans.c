/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ciat_spans.c - what the same loops do again and again to the same places.
 *
 * The accesses of one item of a loop are a span: so many places, one stride apart. A nest of loops
 * goes over the same spans many times. So how often is counted at the span, and its places get
 * their counts when somebody asks for them, or another span needs its entry; and a span of loads
 * that were all found in pages where the thread has settled need not be looked at again until some
 * page loses that (ciat_runs.c).
 */
#include "memory/ciat/ciat_private.h"

enum { SPANS_BITS = 14 };

static bool ciat_spans_is_same(const struct ciat_span *a, const struct ciat_span *b)
{
	return a->address == b->address && a->stride_bytes == b->stride_bytes && a->nr == b->nr &&
	       a->thread == b->thread && a->size_bytes == b->size_bytes;
}

static uint32_t ciat_spans_slot_of(const struct ciat_span *s)
{
	uint64_t h = s->address * UINT64_C(0x9e3779b97f4a7c15);
	h ^= (s->stride_bytes << 32 ^ s->nr << 8 ^ s->thread) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(h >> (64 - SPANS_BITS));
}

enum base_status memory_ciat_count_span(
	struct memory_ciat *c, const struct ciat_span *s, uint64_t times)
{
	uint64_t address = s->address, number = UINT64_MAX;
	struct ciat_page *p = NULL;
	for (uint64_t i = 0; i < s->nr; i++, address += s->stride_bytes) {
		if (address >> PAGE_SHIFT != number) {
			number = address >> PAGE_SHIFT;
			p = ciat_known_page(c, number);
		}
		BASE_ASSERT(p);
		unsigned at = (unsigned)(address & (PAGE_BYTES - 1)) >> c->shape.location_shift;
		uint16_t *count = ciat_count(&c->shape, p, at);
		uint64_t sum = *count + times;
		*count = (uint16_t)sum;
		if (BASE_LIKELY(sum <= UINT16_MAX))
			continue;
		enum base_status status = memory_ciat_wrap(c, p, at, sum >> COUNT_BITS);
		if (status != BASE_OK)
			return status;
	}
	return BASE_OK;
}

static enum base_status ciat_spans_give(struct memory_ciat *c, struct ciat_span *s)
{
	uint64_t times = s->times;
	s->times = 0;
	return times ? memory_ciat_count_span(c, s, times) : BASE_OK;
}

enum base_status memory_ciat_span(
	struct memory_ciat *c, const struct ciat_span *key, struct ciat_span **ret)
{
	if (!c->spans.due) {
		c->spans.due = base_alloc(sizeof *c->spans.due << SPANS_BITS);
		if (!c->spans.due)
			return BASE_ERR_NOMEM;
	}
	if (!c->spans.span) {
		c->spans.span = base_alloc(sizeof *c->spans.span << SPANS_BITS);
		if (!c->spans.span)
			return BASE_ERR_NOMEM;
	}
	struct ciat_span *s = &c->spans.span[ciat_spans_slot_of(key)];
	*ret = s;
	if (BASE_LIKELY(ciat_spans_is_same(s, key)))
		return BASE_OK;
	enum base_status status = ciat_spans_give(c, s);
	bool is_due = s->is_due;
	*s = *key;
	s->is_due = is_due;
	return status;
}

void memory_ciat_span_add(struct memory_ciat *c, struct ciat_span *s, uint64_t times)
{
	s->times += times;
	if (s->is_due)
		return;
	s->is_due = true;
	c->spans.due[c->spans.nr_due++] = (uint32_t)(s - c->spans.span);
}

enum base_status memory_ciat_spans_give(struct memory_ciat *c)
{
	enum base_status s = BASE_OK;
	while (c->spans.nr_due && s == BASE_OK) {
		struct ciat_span *span = &c->spans.span[c->spans.due[--c->spans.nr_due]];
		span->is_due = false;
		s = ciat_spans_give(c, span);
	}
	return s;
}

void memory_ciat_spans_fini(struct memory_ciat *c)
{
	base_free(c->spans.span);
	base_free(c->spans.due);
}
