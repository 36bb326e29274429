/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - "k units more" in a lane (seed 000 section 5.4, figure 5.4): with k more buffers the
 * n-th put needs the space of the (n-k)-th take; with k more tokens the n-th take gets the token of
 * the (n-k)-th release; the first k need nobody. Marked graphs have the same shift: a place with k
 * more tokens (Commoner, Holt, Even, Pnueli, "Marked directed graphs", J. Comput. Syst. Sci. 5,
 * 1971).
 */
#include "graph/priv.h"

static enum base_status add_more(
	struct graph *g, struct past *p, size_t *capacity, struct more more, struct base_err *err)
{
	enum base_status s;
	size_t i = 0;

	p->lanes |= more.lanes;
	p->most = more.units > p->most ? more.units : p->most;
	for (; i < p->nr_more && p->more[i].units < more.units; i++)
		;
	if (i < p->nr_more && p->more[i].units == more.units) {
		p->more[i].lanes |= more.lanes;
		return BASE_OK;
	}
	s = graph_mem_need(g, &p->more, capacity, p->nr_more + 1, sizeof *p->more, err);
	if (s)
		return s;
	memmove(&p->more[i + 1], &p->more[i], (p->nr_more - i) * sizeof *p->more);
	p->more[i] = more;
	p->nr_more++;
	return BASE_OK;
}

enum base_status graph_past_init(struct graph *g, uint32_t queue, struct base_err *err)
{
	uint64_t units[GRAPH_LANES_MAX] = {0};
	size_t capacity = 0, none = 0, nr;
	const struct lane_edit *edit = graph_edits_of(g, queue, &nr);
	struct queue *q = &g->queue[queue];
	enum base_status s = BASE_OK;
	bool any = false;

	for (size_t i = 0; i < nr; i++) {
		if (edit[i].kind != GRAPH_EDIT_RESIZE_QUEUE)
			continue;
		units[edit[i].lane] += edit[i].units;
		any |= edit[i].units != 0;
	}
	if (!any)
		return BASE_OK;
	s = graph_mem_resize(g, &q->past, &none, 1, sizeof *q->past, err);
	for (unsigned l = 0; l < g->lanes.nr_lanes && !s; l++) {
		if (units[l])
			s = add_more(g, q->past, &capacity,
				(struct more){.lanes = UINT32_C(1) << l, .units = units[l]}, err);
	}
	return s;
}

void graph_past_fini(struct past *p)
{
	if (!p)
		return;
	base_free(p->taken.buf);
	base_free(p->more);
	base_free(p);
}

enum base_status graph_past_add(
	struct graph *g, struct past *p, const struct item *it, uint64_t k, struct base_err *err)
{
	struct ring *r = &p->taken;
	enum base_status s = graph_ring_push(g, r, it->time_ns, k, NULL, err);
	struct item *copy;

	if (s)
		return s;
	copy = ring_item(g, r, r->nr_items - 1);
	memcpy(copy, it, g->item_size);
	copy->nr_units = k;
	/* Units beyond what the largest shift can reach, behind the ones of this take: a take may
	 * be of many units, so as many as it are kept on top. */
	while (r->nr_items > 1 && r->nr_units - ring_item(g, r, 0)->nr_units >= p->most + k) {
		r->nr_units -= ring_item(g, r, 0)->nr_units;
		ring_pop_front(r);
	}
	return BASE_OK;
}

static enum base_status resize_add_dep(struct graph *g, const struct take *take,
	const struct item *it, uint32_t lanes, struct base_err *err)
{
	enum base_status s;

	if (it->actor == NONE || it->length[0] == NO_PATH)
		return BASE_OK;
	s = graph_mem_need(g, &g->moment.dep, &g->moment.dep_capacity, g->moment.nr_deps + 1,
		sizeof *g->moment.dep, err);
	if (s)
		return s;
	g->moment.dep[g->moment.nr_deps++] = (struct dep){
		.available_ns = it->time_ns,
		.length = it->length,
		.node = it->node,
		.queue = take->queue,
		.actor = it->actor,
		.order = g->moment.dep_order++,
		.drop = ~lanes,
		.space = take->space,
	};
	return BASE_OK;
}

/* The items of the n units that lie `back` units before the last one taken. */
static enum base_status add_deps(struct graph *g, const struct take *take, const struct past *p,
	const struct more *more, uint64_t n, struct base_err *err)
{
	uint64_t skip = more->units;
	enum base_status s = BASE_OK;

	for (uint32_t i = p->taken.nr_items; i-- > 0 && n && !s;) {
		const struct item *it = ring_item(g, &p->taken, i);
		uint64_t left = it->nr_units;

		if (skip >= left) {
			skip -= left;
			continue;
		}
		left -= skip;
		skip = 0;
		s = resize_add_dep(g, take, it, more->lanes, err);
		n -= left < n ? left : n;
	}
	return s;
}

enum base_status graph_past_deps(
	struct graph *g, const struct take *take, uint64_t n, struct base_err *err)
{
	const struct past *p = g->queue[take->queue].past;
	enum base_status s = BASE_OK;

	for (size_t i = 0; i < p->nr_more && !s; i++)
		s = add_deps(g, take, p, &p->more[i], n, err);
	return s;
}
