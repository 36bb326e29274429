/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - rings of items; taking units out gathers the moment's dependences
 * in g->moment.dep. */
#include "graph/priv.h"

void graph_queue_fini(struct graph *g, struct queue *q)
{
	size_t size = g->item_size;

	g->limit.memory_bytes -=
		(q->data.capacity + q->space.capacity + (q->last_take ? 1u : 0)) * size;
	base_free(q->data.buf);
	base_free(q->space.buf);
	base_free(q->last_take);
	graph_past_fini(q->past);
	q->past = NULL;
}

/* ---- putting --------------------------------------------------------------------------------- */

static enum base_status ring_grow(struct graph *g, struct ring *r, struct base_err *err)
{
	size_t size = g->item_size, capacity = r->capacity;
	uint32_t old = r->capacity;
	enum base_status s =
		graph_mem_resize(g, &r->buf, &capacity, old ? 2 * (size_t)old : 1, size, err);

	if (s)
		return s;
	/* What had wrapped round now follows the old end. */
	if (r->head)
		memcpy(r->buf + old * size, r->buf, r->head * size);
	r->capacity = (uint32_t)capacity;
	return BASE_OK;
}

static BASE_INLINE void fill_item(struct graph *g, struct item *it, uint64_t t, uint64_t nr_units,
	uint32_t tag, uint64_t key, const struct actor *a)
{
	it->time_ns = t;
	it->nr_units = nr_units;
	it->node = a ? a->tip : NONE;
	it->actor = a ? a->id : NONE;
	it->epoch = a ? a->epoch : 0;
	it->tag = tag;
	it->mark = a ? a->mark : 0;
	it->key = key;
	if (!a)
		return;
	if (g->lanes.stride == 1)
		it->length[0] = *actor_length(g, a);
	else
		memcpy(it->length, actor_length(g, a), g->lanes.stride * sizeof(double));
}

enum base_status graph_ring_push(struct graph *g, struct ring *r, uint64_t t, uint64_t nr_units,
	const struct actor *a, struct base_err *err)
{
	if (BASE_UNLIKELY(r->nr_items == r->capacity)) {
		enum base_status s = ring_grow(g, r, err);

		if (s)
			return s;
	}
	r->nr_items++;
	r->nr_units += nr_units;
	fill_item(g, ring_item(g, r, r->nr_items - 1), t, nr_units, 0, 0, a);
	return BASE_OK;
}

/* Space that a dequeue frees, or that an undone enqueue gives back. */
static enum base_status put_space(struct graph *g, struct queue *q, uint64_t t, uint64_t n,
	const struct actor *a, struct base_err *err)
{
	if (!q->capacity) {
		if (!q->tracks_space)
			return BASE_OK;
		if (!q->last_take) {
			size_t capacity = 0;
			enum base_status s =
				graph_mem_resize(g, &q->last_take, &capacity, 1, g->item_size, err);

			if (s)
				return s;
		}
		fill_item(g, q->last_take, t, n, 0, 0, a);
		return BASE_OK;
	}

	uint64_t paid = n < q->space_debt ? n : q->space_debt;

	q->space_debt -= paid;
	n -= paid;
	if (!n)
		return BASE_OK;
	if (q->space.nr_items >= g->limit.max_queued) {
		/* No unit of space may be lost: the oldest is counted with its successor.
		 */
		ring_item(g, &q->space, 1)->nr_units += ring_item(g, &q->space, 0)->nr_units;
		ring_pop_front(&q->space);
	}
	return graph_ring_push(g, &q->space, t, n, a, err);
}

/* The queue is full to the limit: its oldest item is forgotten. */
static enum base_status forget_oldest(
	struct graph *g, struct queue *q, uint64_t t, struct base_err *err)
{
	uint64_t lost = ring_item(g, &q->data, 0)->nr_units;

	q->data.nr_units -= lost;
	q->stats.overflows += lost;
	ring_pop_front(&q->data);
	return put_space(g, q, t, lost, NULL, err);
}

enum base_status graph_put(struct graph *g, const struct put *put, uint64_t t,
	const struct actor *a, struct base_err *err)
{
	struct queue *q = &g->queue[put->queue];
	enum base_status s = BASE_OK;
	uint64_t n = put->nr_units;

	if (BASE_UNLIKELY(!n))
		return BASE_OK;
	if (BASE_UNLIKELY(put->space))
		return put_space(g, q, t, n, a, err);
	if (BASE_UNLIKELY(put->nobody))
		a = NULL;
	count_occupancy(q, g->now);
	if (BASE_UNLIKELY(q->data.nr_items >= g->limit.max_queued))
		s = forget_oldest(g, q, t, err);
	if (BASE_UNLIKELY(!s && q->data.nr_items == q->data.capacity))
		s = ring_grow(g, &q->data, err);
	if (BASE_UNLIKELY(s))
		return s;
	fill_item(g, ring_item(g, &q->data, q->data.nr_items), t, n, put->tag, put->key, a);
	q->data.nr_items++;
	q->data.nr_units += n;
	q->stats.enqueued += n;
	if (BASE_UNLIKELY(q->watch != NULL))
		graph_watch_put(q->watch, t, n);
	if (q->data.nr_units > q->stats.max_units)
		q->stats.max_units = q->data.nr_units;
	return BASE_OK;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* A row of its own for lengths that do not stay where they are. */
static enum base_status copy_length(
	struct graph *g, const struct item *it, uint32_t *ret_row, struct base_err *err)
{
	enum base_status s = graph_mem_need(g, &g->moment.link_length, &g->moment.link_capacity,
		(g->moment.nr_links + 1) * g->lanes.stride, sizeof *g->moment.link_length, err);

	if (s)
		return s;
	memcpy(g->moment.link_length + g->moment.nr_links * g->lanes.stride, it->length,
		g->lanes.stride * sizeof *g->moment.link_length);
	*ret_row = (uint32_t)g->moment.nr_links++;
	return BASE_OK;
}

/* What lanes take instead; NULL: the same. */
static struct past *past_of(const struct graph *g, const struct take *take)
{
	const struct queue *q = &g->queue[take->queue];

	return q->past && past_is_of_space(q) == take->space ? q->past : NULL;
}

static enum base_status queue_add_dep(struct graph *g, const struct take *take,
	const struct item *it, bool newest_first, bool moves, struct base_err *err)
{
	struct dep dep = {
		.available_ns = it->time_ns,
		.length = moves ? NULL : it->length,
		.node = it->node,
		.queue = take->queue,
		.actor = it->actor,
		.drop = past_of(g, take) ? past_of(g, take)->lanes : 0,
		.mark = it->mark,
		.space = take->space,
		.optional = take->flags & GRAPH_OPTIONAL,
	};
	struct actor *p;
	enum base_status s = BASE_OK;

	if (it->actor == NONE || it->length[0] == NO_PATH)
		return BASE_OK;
	p = &g->actor[it->actor];
	if (p->stamp == g->stamp && p->dep_epoch == it->epoch) {
		/* The same producer again: within an epoch its newest path is the longest. */
		if (newest_first || it->time_ns < g->moment.dep[p->dep_index].available_ns)
			return BASE_OK;
	} else {
		s = graph_mem_need(g, &g->moment.dep, &g->moment.dep_capacity,
			g->moment.nr_deps + 1, sizeof *g->moment.dep, err);
		if (s)
			return s;
		p->stamp = g->stamp;
		p->dep_epoch = it->epoch;
		p->dep_index = (uint32_t)g->moment.nr_deps++;
	}
	if (moves)
		s = copy_length(g, it, &dep.link_row, err);
	dep.order = g->moment.dep_order++;
	g->moment.dep[p->dep_index] = dep;
	return s;
}

static void remove_units(const struct graph *g, struct ring *r, struct queue *counted,
	struct item *it, uint64_t k, uint64_t t)
{
	it->nr_units -= k;
	r->nr_units -= k;
	if (counted)
		count_taken(g, counted, it, k, t);
}

/* Of the n units only the newest item stays. */
static void forget_older(struct graph *g, struct queue *q, uint64_t t, uint64_t n)
{
	struct ring *r = &q->data;

	if (q->discipline != GRAPH_LIFO) {
		while (r->nr_items > 1 && ring_item(g, r, 0)->nr_units < n) {
			struct item *it = ring_item(g, r, 0);

			n -= it->nr_units;
			remove_units(g, r, q, it, it->nr_units, t);
			ring_pop_front(r);
		}
		return;
	}

	struct item *newest = ring_item(g, r, r->nr_items - 1);
	uint32_t below = r->nr_items - 1;

	n -= n < newest->nr_units ? n : newest->nr_units;
	while (n && below) {
		struct item *it = ring_item(g, r, below - 1);
		uint64_t k = n < it->nr_units ? n : it->nr_units;

		remove_units(g, r, q, it, k, t);
		n -= k;
		if (!it->nr_units)
			below--;
	}
	if (below != r->nr_items - 1)
		memcpy(ring_item(g, r, below), newest, g->item_size);
	r->nr_items = below + 1;
}

/* ---- in which order: the next item to take, at or after index `from`; nr_items: none --------- */

static uint32_t next_by_key(
	const struct graph *g, const struct ring *r, uint32_t from, uint64_t key)
{
	while (from < r->nr_items && ring_item(g, r, from)->key != key)
		from++;
	return from;
}

static uint32_t next_by_priority(const struct graph *g, const struct ring *r, uint32_t from)
{
	uint32_t best = from;

	for (uint32_t i = from + 1; i < r->nr_items; i++) {
		if (ring_item(g, r, i)->key < ring_item(g, r, best)->key)
			best = i;
	}
	return best;
}

struct order {
	enum graph_discipline discipline;
	bool keyed;
	uint64_t key;
};

static struct order queue_order_of(const struct queue *q, bool space, const struct take *take)
{
	if (space)
		return (struct order){.discipline = GRAPH_FIFO};
	return (struct order){
		.discipline = q->discipline, .keyed = take->flags & GRAPH_KEYED, .key = take->key};
}

/* `seen` items were only looked at: they stay before the taking end. */
static inline uint32_t queue_next_item(
	const struct graph *g, const struct ring *r, const struct order *o, uint32_t seen)
{
	if (BASE_UNLIKELY(o->keyed))
		return next_by_key(g, r, seen, o->key);
	if (BASE_LIKELY(o->discipline == GRAPH_FIFO || o->discipline == GRAPH_POOL))
		return seen;
	if (o->discipline == GRAPH_LIFO)
		return r->nr_items - 1 - seen;
	return next_by_priority(g, r, seen);
}

/* Item i goes; those before it keep their order. */
static void ring_remove(const struct graph *g, struct ring *r, uint32_t i)
{
	if (i == r->nr_items - 1) {
		r->nr_items--;
		return;
	}
	for (; i; i--)
		memcpy(ring_item(g, r, i), ring_item(g, r, i - 1), g->item_size);
	ring_pop_front(r);
}

/*
 * Walks n units from the taking end; removes them unless they are only looked at. A dependence's
 * lengths borrow from its item's memory; a removal from the middle moves items, so it copies them.
 */
static enum base_status queue_walk(
	struct graph *g, const struct take *take, uint64_t t, uint64_t n, struct base_err *err)
{
	struct queue *q = &g->queue[take->queue];
	struct ring *r = take->space ? &q->space : &q->data;
	struct order order = queue_order_of(q, take->space, take);
	bool from_back = order.discipline == GRAPH_LIFO && !order.keyed;
	bool middle = order.keyed || order.discipline == GRAPH_PRIORITY;
	struct past *past = past_of(g, take);
	const struct item *newest = NULL;
	enum base_status s = BASE_OK;
	uint64_t wanted = n;
	uint32_t seen = 0, i;

	g->stamp++;
	while (n && seen < r->nr_items && !s) {
		i = queue_next_item(g, r, &order, seen);
		if (i >= r->nr_items)
			break;
		struct item *it = ring_item(g, r, i);
		uint64_t k = n < it->nr_units ? n : it->nr_units;

		n -= k;
		if (!(take->flags & GRAPH_LAST) || middle)
			s = queue_add_dep(g, take, it, from_back, middle, err);
		else if (!from_back || !newest)
			newest = it;
		if (past && !take->keep && !s)
			s = graph_past_add(g, past, it, k, err);
		if (take->keep) {
			if (order.discipline == GRAPH_PRIORITY && !order.keyed)
				break;
			seen = middle ? i + 1 : seen + 1;
			continue;
		}
		remove_units(g, r, take->space ? NULL : q, it, k, t);
		if (it->nr_units)
			break;
		if (from_back)
			r->nr_items--;
		else
			ring_remove(g, r, i);
	}
	if (newest && !s)
		s = queue_add_dep(g, take, newest, from_back, false, err);
	if (past && !s)
		s = graph_past_deps(g, take, wanted, err);
	return s;
}

enum base_status graph_take(
	struct graph *g, const struct take *take, uint64_t t, uint64_t n, struct base_err *err)
{
	struct queue *q = &g->queue[take->queue];
	struct ring *r = take->space ? &q->space : &q->data;
	bool keyed = take->flags & GRAPH_KEYED;

	if (!take->space)
		count_occupancy(q, t);
	if (keyed && next_by_key(g, r, 0, take->key) == r->nr_items) {
		q->stats.underflows += n == UINT64_MAX ? 1 : n;
		return BASE_OK;
	}
	if (n > r->nr_units) {
		if (!take->space && !q->unlimited && n != UINT64_MAX)
			q->stats.underflows += n - r->nr_units;
		if (take->space && !take->keep)
			q->space_debt += n - r->nr_units;
		n = r->nr_units;
	}
	if (!n)
		return BASE_OK;
	/* (Moving items must not pull the rug from under this moment's earlier
	 * dependences.) */
	if (take->keep && (take->flags & GRAPH_LAST) && !take->space && !keyed &&
		q->discipline != GRAPH_PRIORITY &&
		!(q->discipline == GRAPH_LIFO && g->moment.nr_deps)) {
		uint64_t before = r->nr_units;

		forget_older(g, q, t, n);
		n -= before - r->nr_units;
	}
	return queue_walk(g, take, t, n, err);
}

uint64_t graph_take_back(struct graph *g, struct queue *q, uint64_t t, uint64_t n)
{
	struct ring *r = &q->data;
	uint64_t taken = 0;

	count_occupancy(q, t);
	if (n > r->nr_units) {
		if (n != UINT64_MAX && !q->unlimited)
			q->stats.underflows += n - r->nr_units;
		n = r->nr_units;
	}
	if (BASE_LIKELY(r->nr_items == 1 && n == r->nr_units && !q->past)) { /* a lock */
		count_taken(g, q, ring_item(g, r, 0), n, t);
		r->nr_items = 0;
		r->nr_units = 0;
		return n;
	}
	while (taken < n) {
		struct item *it = ring_item(g, r, r->nr_items - 1);
		uint64_t k = n - taken < it->nr_units ? n - taken : it->nr_units;

		if (q->past && !past_is_of_space(q) && graph_past_add(g, q->past, it, k, NULL)) {
			g->failed = BASE_ERR_NOMEM;
			g->attention = true;
		}
		remove_units(g, r, q, it, k, t);
		taken += k;
		if (!it->nr_units)
			r->nr_items--;
	}
	return taken;
}

/* ---- small questions ------------------------------------------------------------------------- */

uint64_t graph_queue_units(const struct graph *g, uint32_t queue)
{
	BASE_ASSERT(queue < g->nr_queues);
	return g->queue[queue].data.nr_units;
}

const struct graph_queue_stats *graph_queue_stats(const struct graph *g, uint32_t queue)
{
	BASE_ASSERT(queue < g->nr_queues);
	return &g->queue[queue].stats;
}

bool graph_queue_has(const struct graph *g, uint32_t queue, uint64_t key)
{
	BASE_ASSERT(queue < g->nr_queues);
	const struct ring *r = &g->queue[queue].data;

	return next_by_key(g, r, 0, key) < r->nr_items;
}

bool graph_queue_next(
	const struct graph *g, const struct graph_verb *v, uint64_t *ret_key, uint64_t *ret_units)
{
	BASE_ASSERT(v->queue < g->nr_queues);
	const struct queue *q = &g->queue[v->queue];
	struct order order = queue_order_of(
		q, false, &(struct take){.queue = v->queue, .flags = v->flags, .key = v->key});

	if (!q->data.nr_items)
		return false;
	uint32_t i = queue_next_item(g, &q->data, &order, 0);
	if (i >= q->data.nr_items)
		return false;
	*ret_key = ring_item(g, &q->data, i)->key;
	*ret_units = ring_item(g, &q->data, i)->nr_units;
	return true;
}

uint32_t graph_queue_tag(const struct graph *g, const struct graph_verb *v)
{
	const struct queue *q = &g->queue[v->queue];
	const struct ring *r = &q->data;
	struct order order = queue_order_of(
		q, false, &(struct take){.queue = v->queue, .flags = v->flags, .key = v->key});
	uint64_t n = v->n == GRAPH_ALL ? UINT64_MAX : v->n < 0 ? 0 : (uint64_t)v->n;
	uint32_t tag = 0, seen = 0, i;

	BASE_ASSERT(v->queue < g->nr_queues);
	while (n && seen < r->nr_items && (i = queue_next_item(g, r, &order, seen)) < r->nr_items) {
		const struct item *it = ring_item(g, r, i);

		tag = it->tag;
		n -= n < it->nr_units ? n : it->nr_units;
		if (order.discipline == GRAPH_PRIORITY && !order.keyed)
			break;
		seen = order.keyed ? i + 1 : seen + 1;
	}
	return tag;
}
