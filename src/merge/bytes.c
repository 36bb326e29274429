/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.c - pairs from TCP connections of which both programs were recorded: a byte was written
 * before it was read. Needs no privilege on either machine.
 *
 * One pair a read, of its last byte: sent when the write began that brought it. Of writes that
 * overlap nobody knows which bytes are whose: all of them count from the beginning of the first.
 */
#include "merge/private.h"

enum { QUICK_NS = 1000 }; /* no write to a socket is: recorded after the call (splice) */

struct caller {                         /* a stream */
	uint64_t begin_ns, previous_ns; /* of the call under way, and of the one before */
};
struct merge_bytes {
	struct merge *m;
	struct caller **caller; /* [input][stream] */
};

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
		return n ? merge_flow_received(b->m, &l->flow[!side], n, r->time_ns) : BASE_OK;
	struct merge_flow *f = &l->flow[side];
	uint64_t began_ns = f->nr_open ? f->open_ns : c->begin_ns;
	if (r->time_ns - c->begin_ns < QUICK_NS && c->previous_ns < began_ns)
		began_ns = c->previous_ns;
	f->nr_open -= f->nr_open > 0;
	return n ? merge_flow_sent(b->m, f, n, began_ns) : BASE_OK;
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
		for (int from = 0; from < 2; from++)
			merge_flow_fini(&b->m->link[i].flow[from]);
	if (b)
		base_free(b->caller);
	base_free(b);
	return NULL;
}
