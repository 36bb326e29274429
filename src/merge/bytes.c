/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.c - pairs from TCP connections of which both programs were recorded: a byte was written
 * before it was read. Needs no privilege on either machine.
 *
 * One pair a read, of its last byte: sent when the write began that brought it. Of writes that
 * overlap nobody knows which bytes are whose: all of them count from the beginning of the first.
 */
#include "merge/private.h"

enum {
	SPANS_MAX = 1 << 14, /* waiting in one direction */
	QUICK_NS = 1000,     /* no write to a socket is: recorded after the call (splice) */
};

struct caller {                         /* a stream */
	uint64_t begin_ns, previous_ns; /* of the call under way, and of the one before */
};
struct merge_bytes {
	struct merge *m;
	struct caller **caller; /* [input][stream] */
};

/* ---- queues of spans ------------------------------------------------------------------------- */

static struct merge_span *span_at(struct merge_fifo *q, size_t i)
{
	return &q->span[(q->first + i) % q->capacity];
}

static void bytes_pop(struct merge_fifo *q)
{
	q->first = (q->first + 1) % q->capacity;
	q->nr--;
}

static enum base_status bytes_push(struct merge_fifo *q, struct merge_span s)
{
	if (q->nr == q->capacity) {
		size_t capacity = q->capacity ? 2 * q->capacity : 16;
		struct merge_span *grown = base_alloc(capacity * sizeof *grown);
		if (!grown)
			return BASE_ERR_NOMEM;
		for (size_t i = 0; i < q->nr; i++)
			grown[i] = *span_at(q, i);
		base_free(q->span);
		q->span = grown;
		q->first = 0;
		q->capacity = capacity;
	}
	*span_at(q, q->nr++) = s;
	return BASE_OK;
}

/* ---- matching -------------------------------------------------------------------------------- */

static enum base_status bytes_match(struct merge_bytes *b, struct merge_link *l, unsigned from)
{
	struct merge_flow *f = &l->flow[from];
	while (f->read.nr && f->written.nr) {
		struct merge_span read = *span_at(&f->read, 0), written = *span_at(&f->written, 0);
		if (written.end_byte < read.end_byte) {
			bytes_pop(&f->written); /* the next will bring it, and what is read later */
			continue;
		}
		enum base_status status = merge_add_pair(
			b->m, l->end[from], written.at_ns, l->end[!from], read.at_ns, false);
		if (status != BASE_OK)
			return status;
		bytes_pop(&f->read);
	}
	return BASE_OK;
}

static enum base_status wrote(
	struct merge_bytes *b, struct merge_link *l, unsigned from, uint64_t n, uint64_t at_ns)
{
	struct merge_flow *f = &l->flow[from];
	f->written_bytes += n;
	if (f->written.nr >=
		SPANS_MAX) { /* as if it had been one write: earlier, hence still true */
		span_at(&f->written, f->written.nr - 1)->end_byte = f->written_bytes;
		return BASE_OK;
	}
	enum base_status status = bytes_push(
		&f->written, (struct merge_span){.end_byte = f->written_bytes, .at_ns = at_ns});
	return status == BASE_OK ? bytes_match(b, l, from) : status;
}

static enum base_status bytes_has_read(
	struct merge_bytes *b, struct merge_link *l, unsigned from, uint64_t n, uint64_t at_ns)
{
	struct merge_flow *f = &l->flow[from];
	f->read_bytes += n;
	if (f->read.nr >= SPANS_MAX)
		return BASE_OK; /* one pair less */
	enum base_status status = bytes_push(
		&f->read, (struct merge_span){.end_byte = f->read_bytes, .at_ns = at_ns});
	return status == BASE_OK ? bytes_match(b, l, from) : status;
}

/* ---- records --------------------------------------------------------------------------------- */

static struct merge_link *link_of(struct merge *m, uint32_t input, uint32_t object)
{
	const struct merge_input *in = &m->input[input];
	uint32_t link = object < in->defs->nr_objects ? in->object[object].link : 0;
	return link && m->link[link - 1].usable ? &m->link[link - 1] : NULL;
}

static void bytes_begin(struct merge_bytes *b, uint32_t input, const struct trace_record *r)
{
	struct caller *c = &b->caller[input][r->stream];
	struct merge_link *l = link_of(b->m, input, r->u.io_begin.object);
	c->previous_ns = c->begin_ns;
	c->begin_ns = r->time_ns;
	if (!l || r->u.io_begin.op != TRACE_IO_write)
		return;
	struct merge_flow *f = &l->flow[b->m->input[input].object[r->u.io_begin.object].side];
	if (!f->nr_open++)
		f->open_ns = r->time_ns;
}

static enum base_status bytes_end(
	struct merge_bytes *b, uint32_t input, const struct trace_record *r)
{
	const struct trace_io_end *e = &r->u.io_end;
	const struct caller *c = &b->caller[input][r->stream];
	struct merge_link *l = link_of(b->m, input, e->object);
	if (!l || (e->op != TRACE_IO_write && e->op != TRACE_IO_read))
		return BASE_OK;
	unsigned side = b->m->input[input].object[e->object].side;
	uint64_t n = e->result > 0 ? (uint64_t)e->result : 0;
	if (e->op == TRACE_IO_read)
		return n ? bytes_has_read(b, l, !side, n, r->time_ns) : BASE_OK;
	struct merge_flow *f = &l->flow[side];
	uint64_t began_ns = f->nr_open ? f->open_ns : c->begin_ns;
	if (r->time_ns - c->begin_ns < QUICK_NS && c->previous_ns < began_ns)
		began_ns = c->previous_ns;
	f->nr_open -= f->nr_open > 0;
	return n ? wrote(b, l, side, n, began_ns) : BASE_OK;
}

enum base_status merge_bytes_record(
	struct merge_bytes *b, uint32_t input, const struct trace_record *r)
{
	if (r->stream >= b->m->input[input].defs->nr_streams)
		return BASE_OK;
	if (r->kind == TRACE_io_begin)
		bytes_begin(b, input, r);
	return r->kind == TRACE_io_end ? bytes_end(b, input, r) : BASE_OK;
}

struct merge_bytes *merge_bytes_new(struct merge *m)
{
	struct merge_bytes *b = base_alloc(sizeof *b);
	if (!b)
		return NULL;
	b->m = m;
	b->caller = base_alloc(m->nr_inputs * sizeof *b->caller);
	for (uint32_t i = 0; b->caller && i < m->nr_inputs; i++) {
		b->caller[i] =
			base_alloc(((size_t)m->input[i].defs->nr_streams + 1) * sizeof **b->caller);
		if (!b->caller[i])
			return merge_bytes_free(b);
	}
	return b->caller ? b : merge_bytes_free(b);
}

struct merge_bytes *merge_bytes_free(struct merge_bytes *b)
{
	for (uint32_t i = 0; b && b->caller && i < b->m->nr_inputs; i++)
		base_free(b->caller[i]);
	for (size_t i = 0; b && i < b->m->nr_links; i++)
		for (int from = 0; from < 2; from++) {
			struct merge_flow *f = &b->m->link[i].flow[from];
			base_free(f->written.span);
			base_free(f->read.span);
			*f = (struct merge_flow){0};
		}
	if (b)
		base_free(b->caller);
	base_free(b);
	return NULL;
}
