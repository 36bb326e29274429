/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c - pairs from what goes one way in order: what was received as the n-th had been sent as the
 * n-th, or before, so the n-th was sent before the n-th was received. Bytes of a connection are so,
 * and messages between two ranks, in whatever order these are matched.
 *
 * One pair a receiving, of the last that it brought.
 */
#include "merge/private.h"

enum { FLOW_SPANS_MAX = 1 << 14 }; /* waiting in one direction */

/* ---- queues of spans ------------------------------------------------------------------------- */

static struct merge_span *flow_span_at(struct merge_fifo *q, size_t i)
{
	return &q->span[(q->first + i) % q->capacity];
}

static void flow_pop(struct merge_fifo *q)
{
	q->first = (q->first + 1) % q->capacity;
	q->nr--;
}

static enum base_status flow_push(struct merge_fifo *q, struct merge_span s)
{
	if (q->nr == q->capacity) {
		size_t capacity = q->capacity ? 2 * q->capacity : 16;
		struct merge_span *grown = base_alloc(capacity * sizeof *grown);
		if (!grown)
			return BASE_ERR_NOMEM;
		for (size_t i = 0; i < q->nr; i++)
			grown[i] = *flow_span_at(q, i);
		base_free(q->span);
		q->span = grown;
		q->first = 0;
		q->capacity = capacity;
	}
	*flow_span_at(q, q->nr++) = s;
	return BASE_OK;
}

/* ---- matching -------------------------------------------------------------------------------- */

static enum base_status flow_match(struct merge *m, struct merge_flow *f)
{
	while (f->received.nr && f->sent.nr) {
		struct merge_span received = *flow_span_at(&f->received, 0),
				  sent = *flow_span_at(&f->sent, 0);
		if (sent.end < received.end) {
			flow_pop(&f->sent); /* the next will bring it, and what is received later */
			continue;
		}
		enum base_status status =
			merge_add_pair(m, f->from, sent.at_ns, f->to, received.at_ns, f->source);
		if (status != BASE_OK)
			return status;
		flow_pop(&f->received);
	}
	return BASE_OK;
}

enum base_status merge_flow_sent(struct merge *m, struct merge_flow *f, uint64_t n, uint64_t at_ns)
{
	f->nr_sent += n;
	if (f->sent.nr >= FLOW_SPANS_MAX) {
		/* as if it had been sent with the one before: earlier, hence still true */
		flow_span_at(&f->sent, f->sent.nr - 1)->end = f->nr_sent;
		return BASE_OK;
	}
	enum base_status status =
		flow_push(&f->sent, (struct merge_span){.end = f->nr_sent, .at_ns = at_ns});
	return status == BASE_OK ? flow_match(m, f) : status;
}

enum base_status merge_flow_received(
	struct merge *m, struct merge_flow *f, uint64_t n, uint64_t at_ns)
{
	f->nr_received += n;
	if (f->received.nr >= FLOW_SPANS_MAX)
		return BASE_OK; /* one pair less */
	enum base_status status =
		flow_push(&f->received, (struct merge_span){.end = f->nr_received, .at_ns = at_ns});
	return status == BASE_OK ? flow_match(m, f) : status;
}

void merge_flow_fini(struct merge_flow *f)
{
	base_free(f->sent.span);
	base_free(f->received.span);
	*f = (struct merge_flow){0};
}
