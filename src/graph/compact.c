/* SPDX-License-Identifier: Apache-2.0 */
/* compact.c - records the compact graph from what the graph tells, and lays the critical path over
 * it (seed 000, section 5.9.2). */
#include "graph/compact_priv.h"

#include <string.h>

#define NONE GRAPH_COMPACT_NONE
enum { LIMIT_DEFAULT = 4 << 20 };

/* ---- tables ---------------------------------------------------------------------------------- */

void graph_compact_fini(struct graph_compact *c)
{
	base_free(c->node);
	base_free(c->edge);
	base_free(c->cross);
	base_free(c->use);
	*c = (struct graph_compact){0};
}

void graph_compact_tables_fini(struct compact_tables *t)
{
	graph_compact_fini(&t->c);
	base_map_fini(&t->nodes);
	base_map_fini(&t->edges);
	base_map_fini(&t->crosses);
	base_map_fini(&t->uses);
}

/* Finds the row, or makes room for a new one at *nr. */
static enum base_status compact_find_row(struct compact_tables *t, struct base_map *m, uint64_t hi,
	uint64_t lo, void *data, size_t *nr, size_t *capacity, size_t elem_size_bytes,
	uint32_t *ret, bool *ret_new, struct base_err *err)
{
	uint64_t found;
	enum base_status s;

	*ret_new = false;
	if (BASE_LIKELY(base_map_get(m, hi, lo, &found))) {
		*ret = (uint32_t)found;
		return BASE_OK;
	}
	if (*nr >= t->limit) {
		base_fail(err, BASE_ERR_LIMIT,
			"the compact graph has more than %zu distinct transitions or dependences",
			t->limit);
		return BASE_ERR_LIMIT; /* (in sight of analysers: never BASE_OK) */
	}
	s = base_grow(data, capacity, *nr + 1, elem_size_bytes);
	if (!s)
		s = base_map_put(m, hi, lo, *nr);
	if (s)
		return compact_no_memory(err);
	*ret = (uint32_t)(*nr)++;
	*ret_new = true;
	return BASE_OK;
}

enum base_status graph_compact_put_node(struct compact_tables *t, uint32_t actor, uint32_t from,
	uint32_t to, uint32_t *ret, struct base_err *err)
{
	struct graph_compact *c = &t->c;
	bool is_new;
	enum base_status s = compact_find_row(t, &t->nodes, actor, (uint64_t)from << 32 | to,
		&c->node, &c->nr_nodes, &c->node_capacity, sizeof *c->node, ret, &is_new, err);

	if (is_new)
		c->node[*ret] = (struct graph_compact_node){.actor = actor, .from = from, .to = to};
	return s;
}

enum base_status graph_compact_put_edge(struct compact_tables *t, uint32_t from, uint32_t to,
	uint32_t state, uint32_t *ret, struct base_err *err)
{
	struct graph_compact *c = &t->c;
	bool is_new;
	enum base_status s = compact_find_row(t, &t->edges, from, (uint64_t)to << 32 | state,
		&c->edge, &c->nr_edges, &c->edge_capacity, sizeof *c->edge, ret, &is_new, err);

	if (is_new)
		c->edge[*ret] = (struct graph_compact_edge){
			.from = from, .to = to, .state = state, .nr_states = 1};
	return s;
}

enum base_status graph_compact_put_cross(struct compact_tables *t, uint32_t from, uint32_t to,
	uint32_t queue, bool space, uint32_t *ret, struct base_err *err)
{
	struct graph_compact *c = &t->c;
	bool is_new;
	enum base_status s = compact_find_row(t, &t->crosses, (uint64_t)from << 32 | to,
		(uint64_t)queue << 1 | space, &c->cross, &c->nr_crosses, &c->cross_capacity,
		sizeof *c->cross, ret, &is_new, err);

	if (is_new)
		c->cross[*ret] = (struct graph_compact_cross){
			.from = from, .to = to, .queue = queue, .space = space};
	return s;
}

enum base_status graph_compact_put_use(struct compact_tables *t, uint32_t actor, uint32_t queue,
	uint32_t *ret, struct base_err *err)
{
	struct graph_compact *c = &t->c;
	bool is_new;
	enum base_status s = compact_find_row(t, &t->uses, actor, queue, &c->use, &c->nr_uses,
		&c->use_capacity, sizeof *c->use, ret, &is_new, err);

	if (is_new)
		c->use[*ret] = (struct graph_compact_use){.actor = actor, .queue = queue};
	return s;
}

/* ---- the recorder ---------------------------------------------------------------------------- */

struct recorded_actor {
	uint32_t node; /* its last; NONE: not begun */
	uint32_t state;
	uint64_t last_ns;
};

struct own_path { /* the path's edges that end in one actor: order[at] .. order[end - 1] */
	size_t at, end;
};

struct graph_compact_recorder {
	struct compact_tables t;
	struct graph_listener listener;
	struct graph_sink sink;
	struct recorded_actor *actor;
	size_t nr_actors, actor_capacity;
	const struct graph_path_edge *path;
	size_t nr_path, *order;
	struct own_path *own_path; /* by actor */
	uint32_t nr_path_actors;
};

/* The path's edges, each actor's together and in the order of time. */
static enum base_status sort_path(struct graph_compact_recorder *r, struct base_err *err)
{
	size_t at = 0;

	for (size_t i = 0; i < r->nr_path; i++)
		if (r->path[i].actor >= r->nr_path_actors)
			r->nr_path_actors = r->path[i].actor + 1;
	r->order = base_alloc((r->nr_path + 1) * sizeof *r->order);
	r->own_path = base_alloc(((size_t)r->nr_path_actors + 1) * sizeof *r->own_path);
	if (!r->order || !r->own_path)
		return compact_no_memory(err);
	for (size_t i = 0; i < r->nr_path; i++)
		r->own_path[r->path[i].actor].end++;
	for (uint32_t a = 0; a < r->nr_path_actors; a++) {
		size_t nr = r->own_path[a].end;

		r->own_path[a] = (struct own_path){.at = at, .end = at};
		at += nr;
	}
	for (size_t i = 0; i < r->nr_path; i++)
		r->order[r->own_path[r->path[i].actor].end++] = i;
	return BASE_OK;
}

static enum base_status compact_actor_of(struct graph_compact_recorder *r, uint32_t id,
	struct recorded_actor **ret, struct base_err *err)
{
	if (BASE_UNLIKELY(id >= r->nr_actors)) {
		if (base_grow(&r->actor, &r->actor_capacity, (size_t)id + 1, sizeof *r->actor))
			return compact_no_memory(err);
		while (r->nr_actors <= id)
			r->actor[r->nr_actors++].node = NONE;
	}
	*ret = &r->actor[id];
	return BASE_OK;
}

/* ---- the path laid over it ------------------------------------------------------------------- */

static bool within_actor(const struct graph_path_edge *e)
{
	return e->queue == NONE && e->from_actor == e->actor;
}

static void compact_place(struct graph_compact_edge *edge, const struct graph_path_edge *e)
{
	edge->path_ns += (uint64_t)e->weight_ns;
	edge->path_visits++;
}

/* A piece of the path lies in the edge that closes: all of it, or up to where the path left. */
static bool place_own(struct graph_compact_recorder *r, const struct graph_moment *m, uint32_t edge,
	const struct graph_path_edge *e)
{
	if (edge == NONE || e->state != m->state || e->begin_ns < m->begin_ns)
		return false;
	compact_place(&r->t.c.edge[edge], e);
	return true;
}

/* The path came in over one of the moment's dependences. Where none of them ended a wait, time of
 * the path is the actor's own. */
static bool place_cross(struct graph_compact_recorder *r, const struct graph_moment *m,
	uint32_t edge, uint32_t node, const struct graph_path_edge *e)
{
	for (size_t i = 0; i < m->nr_deps; i++) {
		const struct graph_dependence *d = &m->dep[i];
		uint64_t found;

		if (d->queue != e->queue || d->from_actor != e->from_actor ||
			d->available_ns != e->begin_ns ||
			!base_map_get(&r->t.crosses, (uint64_t)d->mark << 32 | node,
				(uint64_t)d->queue << 1 | d->space, &found))
			continue;
		r->t.c.cross[found].path_uses++;
		if (m->explained || edge == NONE)
			r->t.c.cross[found].path_ns += (uint64_t)e->weight_ns;
		else
			r->t.c.edge[edge].path_ns += (uint64_t)e->weight_ns;
		return true;
	}
	return false;
}

/*
 * Moments of an actor come in the order of its path's edges; several may have one time. The path
 * goes along an edge once at most, and enters a node over one dependence at most.
 */
static void place_path(struct graph_compact_recorder *r, const struct graph_moment *m,
	uint32_t edge, uint32_t node)
{
	struct own_path *own;
	bool owned = false, crossed = false;

	if (m->actor >= r->nr_path_actors)
		return;
	for (own = &r->own_path[m->actor]; own->at < own->end; own->at++) {
		const struct graph_path_edge *e = &r->path[r->order[own->at]];
		bool placed, within = within_actor(e);

		if (e->end_ns > m->end_ns)
			return;
		if (within)
			placed = !owned && place_own(r, m, edge, e);
		else
			placed = !crossed && place_cross(r, m, edge, node, e);
		owned |= within && placed;
		crossed |= !within && placed;
		if (!placed && e->end_ns == m->end_ns)
			return; /* a later moment of the same time, then */
		if (!placed)
			r->t.c.unplaced_ns += (uint64_t)e->weight_ns;
	}
}

/* ---- what the graph tells -------------------------------------------------------------------- */

static enum base_status compact_add_crosses(struct graph_compact_recorder *r,
	const struct graph_moment *m, uint32_t node, struct base_err *err)
{
	for (size_t i = 0; i < m->nr_deps; i++) {
		const struct graph_dependence *d = &m->dep[i];
		struct graph_compact_cross *x;
		uint32_t id;
		enum base_status s =
			graph_compact_put_cross(&r->t, d->mark, node, d->queue, d->space, &id, err);

		if (s)
			return s;
		x = &r->t.c.cross[id];
		x->uses++;
		if (m->explained && i == m->last) {
			x->nr_waited++;
			x->latency_ns += m->latency_ns;
		}
	}
	return BASE_OK;
}

static enum base_status compact_add_wait(
	struct graph_compact_recorder *r, const struct graph_moment *m, struct base_err *err)
{
	struct graph_compact_use *u;
	uint32_t id;
	enum base_status s = graph_compact_put_use(&r->t, m->actor, m->wait_queue, &id, err);

	if (s)
		return s;
	u = &r->t.c.use[id];
	if (m->waited_for_space) {
		u->nr_waits_space++;
		u->wait_space_ns += m->end_ns - m->begin_ns;
	} else {
		u->nr_waits_data++;
		u->wait_data_ns += m->end_ns - m->begin_ns;
	}
	return BASE_OK;
}

static enum base_status compact_add_edge(struct graph_compact_recorder *r,
	const struct graph_moment *m, uint32_t from, uint32_t node, uint32_t *ret,
	struct base_err *err)
{
	struct graph_compact_edge *e;
	enum base_status s = graph_compact_put_edge(&r->t, from, node, m->state, ret, err);

	if (s)
		return s;
	e = &r->t.c.edge[*ret];
	e->passes++;
	e->visits++;
	e->time_ns += m->end_ns - m->begin_ns;
	if (m->waited)
		e->waiting_ns += m->end_ns - m->begin_ns;
	return BASE_OK;
}

/* It was renamed meanwhile: a transition that took no time and is no visit. (What a link took from
 * the actor before that has the old name: such a piece of a path has no place.) */
static enum base_status follow_rename(struct graph_compact_recorder *r, struct recorded_actor *a,
	uint32_t actor, uint32_t state, struct base_err *err)
{
	uint32_t node, edge;
	enum base_status s = graph_compact_put_node(&r->t, actor, a->state, state, &node, err);

	if (!s)
		s = graph_compact_put_edge(&r->t, a->node, node, a->state, &edge, err);
	if (s)
		return s;
	r->t.c.node[node].passes++;
	r->t.c.edge[edge].passes++;
	a->node = node;
	a->state = state;
	return BASE_OK;
}

static enum base_status compact_on_moment(
	void *ctx, const struct graph_moment *m, uint32_t *ret_mark, struct base_err *err)
{
	struct graph_compact_recorder *r = ctx;
	struct recorded_actor *a;
	uint32_t node, edge = NONE;
	enum base_status s = compact_actor_of(r, m->actor, &a, err);

	if (!s && a->node != NONE && a->state != m->state)
		s = follow_rename(r, a, m->actor, m->state, err);
	if (!s)
		s = graph_compact_put_node(&r->t, m->actor, m->state, m->next_state, &node, err);
	if (!s && a->node != NONE)
		s = compact_add_edge(r, m, a->node, node, &edge, err);
	if (!s)
		s = compact_add_crosses(r, m, node, err);
	if (!s && m->waited && m->wait_queue != NONE)
		s = compact_add_wait(r, m, err);
	if (s)
		return s;
	r->t.c.node[node].passes++;
	place_path(r, m, edge, node);
	*a = (struct recorded_actor){.node = node, .state = m->next_state, .last_ns = m->end_ns};
	*ret_mark = node;
	return BASE_OK;
}

static enum base_status compact_on_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	(void)ctx;
	(void)queue;
	(void)o;
	(void)err;
	return BASE_OK;
}

static enum base_status compact_on_verb(void *ctx, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	struct graph_compact_recorder *r = ctx;
	bool puts = kind == GRAPH_VERB_enqueue || (kind == GRAPH_VERB_resize && v->n > 0);
	bool takes = kind == GRAPH_VERB_dequeue || kind == GRAPH_VERB_peek;
	uint64_t n = v->n > 0 ? (uint64_t)v->n : 0;
	struct graph_compact_use *u;
	uint32_t id;
	enum base_status s;

	(void)from_actor;
	if (!(puts || takes) || (takes && v->flags & GRAPH_ASIDE)) /* aside: a stale token goes */
		return BASE_OK;
	s = graph_compact_put_use(&r->t, v->actor, v->queue, &id, err);
	if (s)
		return s;
	u = &r->t.c.use[id];
	if (takes && v->flags & GRAPH_EXPLAINED && v->flags & GRAPH_BACK) { /* what it put itself */
		u->put_units -= n < u->put_units ? n : u->put_units;
	} else if (takes) {
		u->nr_takes++;
		u->taken_units += n;
	} else {
		u->nr_puts++;
		u->put_units += n;
	}
	return BASE_OK;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

enum base_status graph_compact_new(const struct graph_compact_options *o,
	struct graph_compact_recorder **ret, struct base_err *err)
{
	struct graph_compact_recorder *r = base_alloc(sizeof *r);
	enum base_status s;

	*ret = NULL;
	if (!r)
		return compact_no_memory(err);
	r->t.limit = o->limit ? o->limit : LIMIT_DEFAULT;
	r->path = o->path;
	r->nr_path = o->nr_path;
	r->listener = (struct graph_listener){.ctx = r, .moment = compact_on_moment};
	r->sink = (struct graph_sink){.ctx = r, .queue = compact_on_queue, .verb = compact_on_verb};
	s = sort_path(r, err);
	if (s)
		graph_compact_free(r);
	else
		*ret = r;
	return s;
}

struct graph_compact_recorder *graph_compact_free(struct graph_compact_recorder *r)
{
	if (!r)
		return NULL;
	graph_compact_tables_fini(&r->t);
	base_free(r->actor);
	base_free(r->order);
	base_free(r->own_path);
	base_free(r);
	return NULL;
}

const struct graph_listener *graph_compact_listener(struct graph_compact_recorder *r)
{
	return &r->listener;
}

const struct graph_sink *graph_compact_sink(struct graph_compact_recorder *r)
{
	return &r->sink;
}

/* The path may have gone on from an actor that was never heard of again: an edge without an end. */
static enum base_status place_rest(
	struct graph_compact_recorder *r, uint32_t actor, struct base_err *err)
{
	struct recorded_actor *a = actor < r->nr_actors ? &r->actor[actor] : NULL;
	struct own_path *own = &r->own_path[actor];

	for (; own->at < own->end; own->at++) {
		const struct graph_path_edge *e = &r->path[r->order[own->at]];
		struct graph_compact_edge *edge;
		uint32_t id;
		enum base_status s;

		if (a && a->node != NONE && within_actor(e) && e->state != a->state &&
			e->begin_ns >= a->last_ns) { /* renamed, and never closed */
			s = follow_rename(r, a, actor, e->state, err);
			if (s)
				return s;
		}
		if (!a || a->node == NONE || !within_actor(e) || e->state != a->state ||
			e->begin_ns < a->last_ns) {
			r->t.c.unplaced_ns += (uint64_t)e->weight_ns;
			continue;
		}
		s = graph_compact_put_edge(&r->t, a->node, NONE, a->state, &id, err);
		if (s)
			return s;
		edge = &r->t.c.edge[id];
		edge->passes = edge->visits = 1;
		if (e->end_ns - a->last_ns > edge->time_ns)
			edge->time_ns = e->end_ns - a->last_ns;
		compact_place(edge, e);
	}
	return BASE_OK;
}

enum base_status graph_compact_finish(
	struct graph_compact_recorder *r, struct graph_compact *ret, struct base_err *err)
{
	enum base_status s = BASE_OK;

	for (uint32_t a = 0; a < r->nr_path_actors && !s; a++)
		s = place_rest(r, a, err);
	*ret = (struct graph_compact){0};
	if (s)
		return s;
	*ret = r->t.c;
	r->t.c = (struct graph_compact){0};
	return BASE_OK;
}
