/* SPDX-License-Identifier: Apache-2.0 */
/* compact_shape.c - makes a compact graph smaller: classes, chosen actors, straight runs, pruning
 * (seed 000, sections 5.9.2 and 5.9.3). */
#include "graph/compact_priv.h"

#include <stdlib.h>
#include <string.h>

#define NONE GRAPH_COMPACT_NONE

static uint32_t class_of(const uint32_t *classes, uint32_t id)
{
	return classes && id != NONE ? classes[id] : id;
}

/* ---- sums of equal rows ---------------------------------------------------------------------- */

static void sum_edge(struct graph_compact_edge *to, const struct graph_compact_edge *from)
{
	to->passes += from->passes;
	to->visits += from->visits;
	to->time_ns += from->time_ns;
	to->waiting_ns += from->waiting_ns;
	to->path_ns += from->path_ns;
	to->path_visits += from->path_visits;
}

static void sum_cross(struct graph_compact_cross *to, const struct graph_compact_cross *from)
{
	to->uses += from->uses;
	to->nr_waited += from->nr_waited;
	to->latency_ns += from->latency_ns;
	to->path_ns += from->path_ns;
	to->path_uses += from->path_uses;
}

static void sum_use(struct graph_compact_use *to, const struct graph_compact_use *from)
{
	to->nr_puts += from->nr_puts;
	to->put_units += from->put_units;
	to->nr_takes += from->nr_takes;
	to->taken_units += from->taken_units;
	to->nr_waits_data += from->nr_waits_data;
	to->wait_data_ns += from->wait_data_ns;
	to->nr_waits_space += from->nr_waits_space;
	to->wait_space_ns += from->wait_space_ns;
}

/* ---- folding --------------------------------------------------------------------------------- */

static enum base_status compact_shape_fold_nodes(const struct graph_compact *c,
	const struct graph_compact_classes *k, struct compact_tables *t, uint32_t *new_node,
	struct base_err *err)
{
	enum base_status s = BASE_OK;

	for (size_t i = 0; i < c->nr_nodes && !s; i++) {
		const struct graph_compact_node *n = &c->node[i];

		s = graph_compact_put_node(t, class_of(k->actor, n->actor),
			class_of(k->state, n->from), class_of(k->state, n->to), &new_node[i], err);
		if (!s) {
			t->c.node[new_node[i]].passes += n->passes;
			t->c.node[new_node[i]].stub = n->stub;
		}
	}
	return s;
}

static enum base_status fold_rest(const struct graph_compact *c,
	const struct graph_compact_classes *k, struct compact_tables *t, const uint32_t *new_node,
	struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint32_t id;

	for (size_t i = 0; i < c->nr_edges && !s; i++) {
		const struct graph_compact_edge *e = &c->edge[i];

		s = graph_compact_put_edge(t, new_node[e->from],
			e->to == NONE ? NONE : new_node[e->to], class_of(k->state, e->state), &id,
			err);
		if (!s) {
			t->c.edge[id].nr_states = e->nr_states;
			sum_edge(&t->c.edge[id], e);
		}
	}
	for (size_t i = 0; i < c->nr_crosses && !s; i++) {
		const struct graph_compact_cross *x = &c->cross[i];

		s = graph_compact_put_cross(t, new_node[x->from], new_node[x->to],
			class_of(k->queue, x->queue), x->space, &id, err);
		if (!s)
			sum_cross(&t->c.cross[id], x);
	}
	for (size_t i = 0; i < c->nr_uses && !s; i++) {
		const struct graph_compact_use *u = &c->use[i];

		s = graph_compact_put_use(
			t, class_of(k->actor, u->actor), class_of(k->queue, u->queue), &id, err);
		if (!s)
			sum_use(&t->c.use[id], u);
	}
	return s;
}

/* Hands over the tables' graph, with what the old one had lost. */
static enum base_status compact_shape_take_tables(struct compact_tables *t,
	const struct graph_compact *old, enum base_status s, struct graph_compact *ret)
{
	*ret = (struct graph_compact){0};
	if (!s) {
		*ret = t->c;
		ret->loss = old->loss;
		ret->unplaced_ns = old->unplaced_ns;
		t->c = (struct graph_compact){0};
	}
	graph_compact_tables_fini(t);
	return s;
}

enum base_status graph_compact_fold(const struct graph_compact *c,
	const struct graph_compact_classes *classes, struct graph_compact *ret,
	struct base_err *err)
{
	struct compact_tables t = {.limit = SIZE_MAX};
	uint32_t *new_node = base_alloc((c->nr_nodes + 1) * sizeof *new_node);
	enum base_status s = new_node ? compact_shape_fold_nodes(c, classes, &t, new_node, err)
				      : compact_no_memory(err);

	if (!s)
		s = fold_rest(c, classes, &t, new_node, err);
	base_free(new_node);
	return compact_shape_take_tables(&t, c, s, ret);
}

/* ---- selecting ------------------------------------------------------------------------------- */

/* A node of another actor becomes its actor's stub: NONE -> NONE is no transition. */
static enum base_status stub_of(const struct graph_compact *c, const bool *keep, uint32_t node,
	struct compact_tables *t, uint32_t *ret, struct base_err *err)
{
	const struct graph_compact_node *n = &c->node[node];
	bool kept = keep[n->actor];
	enum base_status s = graph_compact_put_node(
		t, n->actor, kept ? n->from : NONE, kept ? n->to : NONE, ret, err);

	if (!s)
		t->c.node[*ret].stub = !kept;
	return s;
}

static enum base_status select_edges(const struct graph_compact *c, const bool *keep,
	struct compact_tables *t, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint32_t from, to, id;

	for (size_t i = 0; i < c->nr_edges && !s; i++) {
		const struct graph_compact_edge *e = &c->edge[i];

		if (!keep[c->node[e->from].actor])
			continue;
		to = NONE;
		s = stub_of(c, keep, e->from, t, &from, err);
		if (!s && e->to != NONE)
			s = stub_of(c, keep, e->to, t, &to, err);
		if (!s)
			s = graph_compact_put_edge(t, from, to, e->state, &id, err);
		if (!s) {
			t->c.edge[id].nr_states = e->nr_states;
			sum_edge(&t->c.edge[id], e);
		}
	}
	return s;
}

static enum base_status select_crosses(const struct graph_compact *c, const bool *keep,
	struct compact_tables *t, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint32_t from, to, id;

	for (size_t i = 0; i < c->nr_crosses && !s; i++) {
		const struct graph_compact_cross *x = &c->cross[i];

		if (!keep[c->node[x->from].actor] && !keep[c->node[x->to].actor])
			continue;
		s = stub_of(c, keep, x->from, t, &from, err);
		if (!s)
			s = stub_of(c, keep, x->to, t, &to, err);
		if (!s)
			s = graph_compact_put_cross(t, from, to, x->queue, x->space, &id, err);
		if (!s)
			sum_cross(&t->c.cross[id], x);
	}
	return s;
}

enum base_status graph_compact_select(const struct graph_compact *c, const bool *keep,
	struct graph_compact *ret, struct base_err *err)
{
	struct compact_tables t = {.limit = SIZE_MAX};
	enum base_status s = BASE_OK;
	uint32_t id;

	for (size_t i = 0; i < c->nr_nodes && !s; i++) {
		if (!keep[c->node[i].actor])
			continue;
		s = stub_of(c, keep, (uint32_t)i, &t, &id, err);
		if (!s)
			t.c.node[id].passes += c->node[i].passes;
	}
	if (!s)
		s = select_edges(c, keep, &t, err);
	if (!s)
		s = select_crosses(c, keep, &t, err);
	for (size_t i = 0; i < c->nr_uses && !s; i++) {
		if (!keep[c->use[i].actor])
			continue;
		s = graph_compact_put_use(&t, c->use[i].actor, c->use[i].queue, &id, err);
		if (!s)
			sum_use(&t.c.use[id], &c->use[i]);
	}
	return compact_shape_take_tables(&t, c, s, ret);
}

/* ---- taking rows out ------------------------------------------------------------------------- */

struct doomed {
	bool *node, *edge, *cross;
};

static void doomed_fini(struct doomed *d)
{
	base_free(d->node);
	base_free(d->edge);
	base_free(d->cross);
}

static enum base_status doomed_init(
	struct doomed *d, const struct graph_compact *c, struct base_err *err)
{
	*d = (struct doomed){
		.node = base_alloc(c->nr_nodes + 1),
		.edge = base_alloc(c->nr_edges + 1),
		.cross = base_alloc(c->nr_crosses + 1),
	};
	if (d->node && d->edge && d->cross)
		return BASE_OK;
	doomed_fini(d);
	return compact_no_memory(err);
}

static enum base_status remove_doomed(
	struct graph_compact *c, const struct doomed *d, struct base_err *err)
{
	uint32_t *new_node = base_alloc((c->nr_nodes + 1) * sizeof *new_node);
	size_t nr = 0;

	if (!new_node)
		return compact_no_memory(err);
	for (size_t i = 0; i < c->nr_nodes; i++) {
		new_node[i] = (uint32_t)nr;
		if (!d->node[i])
			c->node[nr++] = c->node[i];
	}
	c->nr_nodes = nr;
	nr = 0;
	for (size_t i = 0; i < c->nr_edges; i++) {
		struct graph_compact_edge e = c->edge[i];

		e.from = new_node[e.from];
		e.to = e.to == NONE ? NONE : new_node[e.to];
		if (!d->edge[i])
			c->edge[nr++] = e;
	}
	c->nr_edges = nr;
	nr = 0;
	for (size_t i = 0; i < c->nr_crosses; i++) {
		struct graph_compact_cross x = c->cross[i];

		x.from = new_node[x.from];
		x.to = new_node[x.to];
		if (!d->cross[i])
			c->cross[nr++] = x;
	}
	c->nr_crosses = nr;
	base_free(new_node);
	return BASE_OK;
}

/* ---- straight runs --------------------------------------------------------------------------- */

struct ways {             /* of a node */
	uint32_t in, out; /* the last edge of each kind */
	uint32_t nr_in, nr_out;
	bool crossed, straight;
};

static struct ways *compact_shape_find_ways(const struct graph_compact *c)
{
	struct ways *w = base_alloc((c->nr_nodes + 1) * sizeof *w);

	if (!w)
		return NULL;
	for (size_t i = 0; i < c->nr_edges; i++) {
		const struct graph_compact_edge *e = &c->edge[i];

		w[e->from].out = (uint32_t)i;
		w[e->from].nr_out++;
		if (e->to == NONE)
			continue;
		w[e->to].in = (uint32_t)i;
		w[e->to].nr_in++;
	}
	for (size_t i = 0; i < c->nr_crosses; i++)
		w[c->cross[i].from].crossed = w[c->cross[i].to].crossed = true;
	for (size_t i = 0; i < c->nr_nodes; i++) {
		struct ways *n = &w[i];

		n->straight = n->nr_in == 1 && n->nr_out == 1 && n->in != n->out && !n->crossed &&
			      c->edge[n->out].to != NONE &&
			      c->edge[n->in].passes == c->edge[n->out].passes;
	}
	return w;
}

/* The run that begins with this edge, into it. */
static void compact_shape_merge_run(
	struct graph_compact *c, const struct ways *w, uint32_t first, struct doomed *d)
{
	struct graph_compact_edge *e = &c->edge[first];

	while (e->to != NONE && w[e->to].straight) {
		uint32_t node = e->to;
		const struct graph_compact_edge *next = &c->edge[w[node].out];
		uint64_t passes = e->passes;

		c->loss.nr_merged_edges += (uint64_t)(e->state != NONE) + (next->state != NONE);
		c->loss.nr_merged_nodes++;
		d->node[node] = d->edge[w[node].out] = true;
		sum_edge(e, next);
		e->passes = passes;
		e->nr_states += next->nr_states;
		e->state = NONE;
		e->to = next->to;
	}
}

enum base_status graph_compact_merge(struct graph_compact *c, struct base_err *err)
{
	struct ways *w = compact_shape_find_ways(c);
	struct doomed d = {0};
	enum base_status s = w ? doomed_init(&d, c, err) : compact_no_memory(err);

	if (!s) {
		for (size_t i = 0; i < c->nr_edges; i++)
			if (!d.edge[i] && !w[c->edge[i].from].straight)
				compact_shape_merge_run(c, w, (uint32_t)i, &d);
		s = remove_doomed(c, &d, err);
		doomed_fini(&d);
	}
	base_free(w);
	return s;
}

/* ---- pruning --------------------------------------------------------------------------------- */

struct weighed {
	double path, passes; /* shares of the largest */
	uint32_t node;
};

static int compact_shape_lightest_first(const void *pa, const void *pb)
{
	const struct weighed *a = pa, *b = pb;
	double x = a->path > a->passes ? a->path : a->passes;
	double y = b->path > b->passes ? b->path : b->passes;

	if (x < y || x > y)
		return x < y ? -1 : 1;
	if (a->passes < b->passes || a->passes > b->passes)
		return a->passes < b->passes ? -1 : 1;
	return a->node > b->node ? -1 : a->node < b->node; /* of equals the later goes first */
}

/* What a node carries: of the path, of its edges and crossings; of traversals, its own. */
static struct weighed *weigh_nodes(const struct graph_compact *c)
{
	struct weighed *w = base_alloc((c->nr_nodes + 1) * sizeof *w);
	double most_path = 1, most_passes = 1;

	if (!w)
		return NULL;
	for (size_t i = 0; i < c->nr_edges; i++) {
		const struct graph_compact_edge *e = &c->edge[i];

		w[e->from].path += (double)e->path_ns;
		if (e->to != NONE)
			w[e->to].path += (double)e->path_ns;
	}
	for (size_t i = 0; i < c->nr_crosses; i++) {
		w[c->cross[i].from].path += (double)c->cross[i].path_ns;
		w[c->cross[i].to].path += (double)c->cross[i].path_ns;
	}
	for (size_t i = 0; i < c->nr_nodes; i++) {
		w[i].node = (uint32_t)i;
		w[i].passes = (double)c->node[i].passes;
		most_path = w[i].path > most_path ? w[i].path : most_path;
		most_passes = w[i].passes > most_passes ? w[i].passes : most_passes;
	}
	for (size_t i = 0; i < c->nr_nodes; i++) {
		w[i].path /= most_path;
		w[i].passes /= most_passes;
	}
	return w;
}

static void prune_edges(struct graph_compact *c, struct doomed *d)
{
	struct graph_compact_loss *l = &c->loss;

	for (size_t i = 0; i < c->nr_edges; i++) {
		const struct graph_compact_edge *e = &c->edge[i];

		if (!d->node[e->from] && (e->to == NONE || !d->node[e->to]))
			continue;
		d->edge[i] = true;
		l->nr_pruned_edges++;
		l->visits += e->visits;
		l->time_ns += e->time_ns;
		l->path_ns += e->path_ns;
	}
	for (size_t i = 0; i < c->nr_crosses; i++) {
		const struct graph_compact_cross *x = &c->cross[i];

		if (!d->node[x->from] && !d->node[x->to])
			continue;
		d->cross[i] = true;
		l->nr_pruned_crosses++;
		l->uses += x->uses;
		l->latency_ns += x->latency_ns;
		l->path_ns += x->path_ns;
	}
}

enum base_status graph_compact_prune(
	struct graph_compact *c, size_t max_nodes, struct base_err *err)
{
	size_t excess = c->nr_nodes > max_nodes ? c->nr_nodes - max_nodes : 0;
	struct doomed d = {0};
	struct weighed *w;
	enum base_status s;

	if (!excess)
		return BASE_OK;
	w = weigh_nodes(c);
	s = w ? doomed_init(&d, c, err) : compact_no_memory(err);
	if (!s) {
		qsort(w, c->nr_nodes, sizeof *w, compact_shape_lightest_first);
		for (size_t i = 0; i < excess; i++)
			d.node[w[i].node] = true;
		c->loss.nr_pruned_nodes += excess;
		prune_edges(c, &d);
		s = remove_doomed(c, &d, err);
		doomed_fini(&d);
	}
	base_free(w);
	return s;
}
