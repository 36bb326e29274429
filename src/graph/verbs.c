/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs.c - each verb: gather the dependences (taking units), close the actor's
 * edge, put units. With GRAPH_MORE closing and putting wait for the last verb
 * of the moment.
 */
#include "graph/priv.h"

static enum base_status verbs_fail(struct graph *g, enum base_status s)
{
	g->failed = s;
	g->attention = true;
	return s;
}

/* ---- the moment ------------------------------------------------------------------------------ */

static enum base_status put_all(
	struct graph *g, const struct actor *a, uint64_t t, struct base_err *err)
{
	enum base_status s = BASE_OK;

	for (size_t i = 0; i < g->moment.nr_puts && !s; i++)
		s = graph_put(g, &g->moment.put[i], t, a, err);
	g->moment.nr_puts = 0;
	return s;
}

/* Closes the actor's edge with what was gathered in g->moment.dep, then puts. */
static enum base_status close_gathered(
	struct graph *g, const struct graph_verb *v, uint64_t t, struct base_err *err)
{
	enum base_status s = graph_close(g, v, t, g->moment.dep, g->moment.nr_deps, err);

	g->moment.pending = g->attention = false;
	g->moment.nr_deps = g->moment.nr_links = 0;
	g->moment.dep_order = 0;
	return s ? s : put_all(g, &g->actor[v->actor], t, err);
}

enum base_status graph_flush(struct graph *g, struct base_err *err)
{
	return close_gathered(g, &g->moment.pending_verb, g->now, err);
}

/* Before a verb: time, what an earlier GRAPH_MORE left open, room for nodes. */
static enum base_status begin_slow(
	struct graph *g, const struct graph_verb *v, uint64_t t, struct base_err *err)
{
	enum base_status s = BASE_OK;

	if (g->failed)
		return base_fail(err, g->failed, "the graph failed before");
	BASE_ASSERT(v->actor < g->nr_actors && v->state < g->nr_states && !g->finished);
	if (g->moment.pending &&
		(g->moment.pending_verb.actor != v->actor || t > g->now || v->flags & GRAPH_ASIDE))
		s = graph_flush(g, err);
	if (!s && !g->moment.pending && g->next >= g->collect_at)
		s = graph_collect(g, false, err);
	return s ? verbs_fail(g, s) : BASE_OK;
}

static inline enum base_status verbs_begin(
	struct graph *g, const struct graph_verb *v, uint64_t *ret_t, struct base_err *err)
{
	uint64_t t = v->time_ns;

	if (BASE_UNLIKELY(t < g->now || t > WEIGHT_MAX))
		t = t < g->now ? g->now : WEIGHT_MAX;
	if (BASE_UNLIKELY(g->attention || g->next >= g->collect_at || v->actor >= g->nr_actors ||
			  v->state >= g->nr_states)) {
		enum base_status s = begin_slow(g, v, t, err);

		if (s)
			return s;
	}
	g->now = t;
	*ret_t = t;
	return BASE_OK;
}

/* What a verb puts: units, or the space that it freed. */
static inline struct put put_of(const struct graph_verb *v, bool space, uint64_t n)
{
	return (struct put){.queue = v->queue,
		.space = space,
		.nobody = v->flags & GRAPH_NOBODY,
		.nr_units = n,
		.tag = v->tag,
		.key = v->key};
}

static inline struct take take_of(const struct graph_verb *v, bool space, bool keep)
{
	return (struct take){
		.queue = v->queue, .flags = v->flags, .space = space, .keep = keep, .key = v->key};
}

static enum base_status will_put(
	struct graph *g, const struct graph_verb *v, bool space, uint64_t n, struct base_err *err)
{
	enum base_status s;

	if (!n)
		return BASE_OK;
	s = graph_mem_need(g, &g->moment.put, &g->moment.put_capacity, g->moment.nr_puts + 1,
		sizeof *g->moment.put, err);
	if (s)
		return s;
	g->moment.put[g->moment.nr_puts++] = put_of(v, space, n);
	return BASE_OK;
}

/* After gathering: now, or with the next verb of this moment. */
static enum base_status verbs_end(
	struct graph *g, const struct graph_verb *v, uint64_t t, struct base_err *err)
{
	struct graph_verb last = *v;
	enum base_status s;

	if (g->moment.pending)
		last.flags |= g->moment.pending_verb.flags &
			      (GRAPH_START | GRAPH_EXPLAINED | GRAPH_TIMED_OUT);
	if (v->flags & GRAPH_MORE) {
		g->moment.pending = g->attention = true;
		g->moment.pending_verb = last;
		return BASE_OK;
	}
	s = close_gathered(g, &last, t, err);
	return BASE_UNLIKELY(s) ? verbs_fail(g, s) : BASE_OK;
}

/* The usual case: the verb is a moment by itself, with one dependence or none.
 */
static inline bool verbs_is_alone(const struct graph *g, const struct graph_verb *v)
{
	return BASE_LIKELY(
		!(g->moment.pending | (v->flags & (GRAPH_MORE | GRAPH_ASIDE | GRAPH_BACK))));
}

static inline enum base_status end_alone(struct graph *g, const struct graph_verb *v, uint64_t t,
	struct dep *dep, size_t nr_deps, struct base_err *err)
{
	enum base_status s = graph_close(g, v, t, dep, nr_deps, err);

	return BASE_UNLIKELY(s) ? verbs_fail(g, s) : BASE_OK;
}

/* An edge of an actor that was running, as a node of its own. */
static inline void verbs_add_run(struct graph *g, struct actor *a, uint64_t t, uint64_t w)
{
	uint32_t prev = a->tip;

	*add_node(g, a, t, NONE, &a->tip) = (struct node){
		.prev = prev,
		.dep = NONE,
		.slot = a->slot,
		.dep_slot = NONE,
		.weight = node_weight(KIND_RUN, w),
	};
}

/* ... with the one before it. */
static inline void add_to_pair(struct graph *g, struct actor *a, uint64_t w)
{
	struct node *n = &g->node[a->tip];

	n->weight |= node_weight(KIND_PAIR, 0);
	n->dep = (uint32_t)w;
	n->dep_slot = a->slot;
	a->open = NONE;
}

/* The most usual of all: nor does it depend on anything. graph_close(), of which here is what is
 * left of it for one lane and an actor that was running. `puts`: what comes next refers to it. */
static inline enum base_status end_running(struct graph *g, struct actor *a,
	const struct graph_verb *v, uint64_t t, bool puts, struct base_err *err)
{
	double *length = &g->length[a->id]; /* if it is one lane */

	if (BASE_UNLIKELY(!g->one_lane || a->wait || !a->started || *length == NO_PATH ||
			  g->next >= g->capacity.node_capacity))
		return end_alone(g, v, t, NULL, 0, err);

	uint64_t w = since(g, t, a->t_last);

	count_totals(g, a, w);
	*length += (double)(int64_t)w;
	if (a->open == a->tip && w <= UINT32_MAX) {
		add_to_pair(g, a, w);
	} else {
		verbs_add_run(g, a, t, w);
		a->open = puts || !g->pairs ? NONE : a->tip;
	}
	a->t_last = t;
	if (v->state == a->state)
		return BASE_OK;
	a->state = v->state;

	enum base_status s = actor_slot(g, a, v->state, &a->slot, err);

	return BASE_UNLIKELY(s) ? verbs_fail(g, s) : BASE_OK;
}

/* n of a verb: GRAPH_ALL is all, other negative numbers are nothing. */
static inline uint64_t verbs_units(const struct graph_verb *v)
{
	if (v->n == GRAPH_ALL)
		return UINT64_MAX;
	return v->n < 0 ? 0 : (uint64_t)v->n;
}

static inline struct queue *verbs_queue_of(struct graph *g, const struct graph_verb *v)
{
	BASE_ASSERT(v->queue < g->nr_queues);
	return &g->queue[v->queue];
}

/* ---- verbs ----------------------------------------------------------------------------------- */

enum base_status graph_state(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	uint64_t t;
	enum base_status s = verbs_begin(g, v, &t, err);

	if (BASE_UNLIKELY(s))
		return s;
	return verbs_is_alone(g, v) ? end_running(g, &g->actor[v->actor], v, t, false, err)
				    : verbs_end(g, v, t, err);
}

/* Space whose capacity nobody told: what freed it since the actor began to
 * wait. */
static enum base_status verbs_last_take(
	struct graph *g, const struct graph_verb *v, const struct queue *q, struct base_err *err)
{
	const struct actor *a = &g->actor[v->actor];
	const struct item *it = q->last_take;
	bool on_this = a->wait == WAIT_SPACE && a->wait_queue == v->queue;
	enum base_status s;

	if (!it || !(on_this || a->wait == WAIT_UNKNOWN) || it->time_ns <= a->t_last ||
		it->actor == NONE || it->length[0] == NO_PATH)
		return BASE_OK;
	s = graph_mem_need(g, &g->moment.dep, &g->moment.dep_capacity, g->moment.nr_deps + 1,
		sizeof *g->moment.dep, err);
	if (s)
		return s;
	g->moment.dep[g->moment.nr_deps] = (struct dep){
		.available_ns = it->time_ns,
		.length = it->length,
		.node = it->node,
		.queue = v->queue,
		.actor = it->actor,
		.order = g->moment.dep_order++,
		.mark = it->mark,
		.space = true,
		.optional = v->flags & GRAPH_OPTIONAL,
	};
	g->moment.nr_deps++;
	return BASE_OK;
}

static enum base_status take_space(
	struct graph *g, const struct graph_verb *v, uint64_t t, bool keep, struct base_err *err)
{
	struct queue *q = &g->queue[v->queue];

	struct take take = {.queue = v->queue,
		.flags = v->flags & ~(uint32_t)(GRAPH_LAST | GRAPH_KEYED),
		.space = true,
		.keep = keep};

	if (q->capacity)
		return graph_take(g, &take, t, verbs_units(v), err);
	return q->tracks_space ? verbs_last_take(g, v, q, err) : BASE_OK;
}

/* The actor does not notice: the units carry its path as if it had run until
 * now. */
static enum base_status enqueue_aside(
	struct graph *g, const struct graph_verb *v, uint64_t t, uint64_t n, struct base_err *err)
{
	struct put put = put_of(v, false, n);
	size_t nr_deps = g->moment.nr_deps;
	enum base_status s = BASE_OK;

	if (g->queue[v->queue].capacity)
		s = graph_take(g, &(struct take){.queue = v->queue, .space = true}, t, n, err);
	g->moment.nr_deps = nr_deps;
	if (!s)
		s = graph_put_aside(g, &put, t, &g->actor[v->actor], err);
	return s ? verbs_fail(g, s) : BASE_OK;
}

/* Between the actor's last verb and now. */
static uint64_t date_of(const struct graph *g, const struct graph_verb *v)
{
	const struct actor *a = &g->actor[v->actor];
	uint64_t from = a->t_last > g->told_ns ? a->t_last : g->told_ns;

	if (!a->started)
		return g->now;
	return v->time_ns > from ? v->time_ns : from;
}

static enum base_status enqueue_dated(
	struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	struct graph_verb now = *v;
	struct queue *q = verbs_queue_of(g, v);
	uint64_t t, date, n = v->n < 0 ? 0 : (uint64_t)v->n;
	enum base_status s;

	now.time_ns = v->time_ns > g->now ? v->time_ns : g->now;
	now.flags = v->flags & GRAPH_NOBODY;
	s = verbs_begin(g, &now, &t, err);
	if (!s && g->moment.pending)
		s = graph_flush(g, err);
	if (s)
		return s;
	date = date_of(g, v);
	q->stats.nr_enqueues++;
	s = end_running(g, &g->actor[v->actor], &now, date, true, err);
	if (!s && n) {
		struct put put = put_of(&now, false, n);

		s = graph_put(g, &put, date, &g->actor[v->actor], err);
		q->stats.units_time = add_product(q->stats.units_time, n, t - date);
	}
	return s ? verbs_fail(g, s) : BASE_OK;
}

enum base_status graph_enqueue(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	struct queue *q = verbs_queue_of(g, v);
	uint64_t t, n = v->n < 0 ? 0 : (uint64_t)v->n;
	enum base_status s;

	if (BASE_UNLIKELY(v->flags & GRAPH_DATED))
		return enqueue_dated(g, v, err);
	s = verbs_begin(g, v, &t, err);
	if (BASE_UNLIKELY(s))
		return s;
	q->stats.nr_enqueues++;
	if (verbs_is_alone(g, v) && !q->capacity && !q->tracks_space) {
		struct put put = put_of(v, false, n);
		struct actor *a = &g->actor[v->actor];

		s = end_running(g, a, v, t, true, err);
		if (!s && n)
			s = graph_put(g, &put, t, a, err);
		return BASE_UNLIKELY(s) ? verbs_fail(g, s) : BASE_OK;
	}
	if (v->flags & GRAPH_ASIDE)
		return enqueue_aside(g, v, t, n, err);
	if (n && (q->capacity || q->tracks_space))
		s = take_space(g, v, t, false, err);
	if (!s)
		s = will_put(g, v, false, n, err);
	return s ? verbs_fail(g, s) : verbs_end(g, v, t, err);
}

/* The usual dequeue: the first item has the n units. */
static inline bool verbs_take_first(struct graph *g, const struct graph_verb *v, struct queue *q,
	uint64_t t, struct dep *dep, size_t *ret_nr_deps)
{
	struct item *it;
	uint64_t n = (uint64_t)v->n;

	if (v->n <= 0 || q->discipline != GRAPH_FIFO || q->past || v->flags & GRAPH_KEYED ||
		!q->data.nr_items)
		return false;
	it = ring_item(g, &q->data, 0);
	if (it->nr_units < n)
		return false;
	count_occupancy(q, t);
	count_taken(g, q, it, n, t);
	it->nr_units -= n;
	q->data.nr_units -= n;
	if (!it->nr_units)
		ring_pop_front(&q->data);
	*ret_nr_deps = it->actor != NONE && it->length[0] != NO_PATH;
	dep->available_ns = it->time_ns;
	dep->length = it->length;
	dep->node = it->node;
	dep->queue = v->queue;
	dep->actor = it->actor;
	dep->drop = 0;
	dep->order = 0;
	dep->mark = it->mark;
	dep->space = dep->optional = dep->link = false;
	return true;
}

/* The units' dependences. A pool's tokens bind only whoever waited for one. */
static enum base_status verbs_gather(
	struct graph *g, const struct graph_verb *v, uint64_t t, bool keep, struct base_err *err)
{
	struct take take = take_of(v, false, keep);
	size_t nr_deps = g->moment.nr_deps;
	enum base_status s = graph_take(g, &take, t, verbs_units(v), err);

	if (g->queue[v->queue].discipline == GRAPH_POOL && g->actor[v->actor].wait == WAIT_NO)
		g->moment.nr_deps = nr_deps;
	return s;
}

static enum base_status dequeue_aside(
	struct graph *g, const struct graph_verb *v, uint64_t t, struct base_err *err)
{
	struct queue *q = &g->queue[v->queue];
	uint64_t taken = graph_take_back(g, q, t, verbs_units(v));
	enum base_status s = BASE_OK;

	if (taken && (q->capacity || q->tracks_space))
		s = graph_put_aside(g,
			&(struct put){.queue = v->queue, .space = true, .nr_units = taken}, t,
			&g->actor[v->actor], err);
	return s ? verbs_fail(g, s) : BASE_OK;
}

/* A lock that was free: as usual as the rest. */
static inline bool takes_back_alone(
	const struct graph *g, const struct graph_verb *v, const struct queue *q)
{
	return v->flags & GRAPH_BACK && !(v->flags & (GRAPH_MORE | GRAPH_ASIDE)) &&
	       !g->moment.pending && !q->capacity && !q->tracks_space;
}

enum base_status graph_dequeue(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	struct queue *q = verbs_queue_of(g, v);
	enum base_status s;
	uint64_t t, before;
	size_t nr_deps;
	struct dep dep;

	s = verbs_begin(g, v, &t, err);
	if (BASE_UNLIKELY(s))
		return s;
	q->stats.nr_dequeues++;
	if (verbs_is_alone(g, v) && verbs_take_first(g, v, q, t, &dep, &nr_deps)) {
		s = end_alone(g, v, t, &dep, nr_deps, err);
		if (!s && (q->capacity || q->tracks_space))
			s = graph_put(g,
				&(struct put){.queue = v->queue,
					.space = true,
					.nr_units = (uint64_t)v->n},
				t, &g->actor[v->actor], err);
		return BASE_UNLIKELY(s) ? verbs_fail(g, s) : BASE_OK;
	}
	if (takes_back_alone(g, v, q)) {
		graph_take_back(g, q, t, verbs_units(v));
		return end_running(g, &g->actor[v->actor], v, t, false, err);
	}
	if (v->flags & GRAPH_ASIDE)
		return dequeue_aside(g, v, t, err);
	before = q->data.nr_units;
	if (v->flags & GRAPH_BACK)
		graph_take_back(g, q, t, verbs_units(v));
	else
		s = verbs_gather(g, v, t, false, err);
	if (!s && (q->capacity || q->tracks_space))
		s = will_put(g, v, true, before - q->data.nr_units, err);
	return s ? verbs_fail(g, s) : verbs_end(g, v, t, err);
}

enum base_status graph_peek(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	struct queue *q = verbs_queue_of(g, v);
	uint64_t t, before;
	enum base_status s = verbs_begin(g, v, &t, err);

	if (s)
		return s;
	before = q->data.nr_units;
	s = verbs_gather(g, v, t, true, err);
	if (!s && before != q->data.nr_units && (q->capacity || q->tracks_space))
		s = will_put(g, v, true, before - q->data.nr_units, err);
	return s ? verbs_fail(g, s) : verbs_end(g, v, t, err);
}

enum base_status graph_reserve(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	uint64_t t;
	enum base_status s = verbs_begin(g, v, &t, err);

	(void)verbs_queue_of(g, v);
	if (s)
		return s;
	s = take_space(g, v, t, true, err);
	return s ? verbs_fail(g, s) : verbs_end(g, v, t, err);
}

enum base_status graph_resize(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	struct queue *q = verbs_queue_of(g, v);
	uint64_t t, n = v->n < 0 ? 0 : (uint64_t)v->n, now;
	enum base_status s = verbs_begin(g, v, &t, err);

	if (s)
		return s;
	now = q->data.nr_units;
	if (n < now) {
		graph_take_back(g, q, t, now - n);
		if (q->capacity || q->tracks_space)
			s = will_put(g, v, true, now - n, err);
	} else if (n > now) {
		size_t nr_deps = g->moment.nr_deps;

		/* The space is used, but not waited for. */
		if (q->capacity)
			s = graph_take(g, &(struct take){.queue = v->queue, .space = true}, t,
				n - now, err);
		g->moment.nr_deps = nr_deps;
		if (!s)
			s = will_put(g, v, false, n - now, err);
	}
	return s ? verbs_fail(g, s) : verbs_end(g, v, t, err);
}

static enum base_status verbs_wait_on(
	struct graph *g, const struct graph_verb *v, enum wait wait, struct base_err *err)
{
	struct graph_verb now = *v;
	struct actor *a;
	uint64_t t;
	enum base_status s = verbs_begin(g, v, &t, err);

	if (s)
		return s;
	now.flags &= ~(uint32_t)(GRAPH_MORE | GRAPH_ASIDE | GRAPH_BACK);
	a = &g->actor[v->actor];
	s = g->moment.pending ? verbs_end(g, &now, t, err) : end_running(g, a, &now, t, false, err);
	if (s)
		return s;
	a->wait = (uint8_t)wait;
	a->wait_queue = wait == WAIT_UNKNOWN ? NONE : v->queue;
	a->wait_row = wait == WAIT_DATA                  ? v->queue
		      : wait == WAIT_UNKNOWN && v->queue ? v->queue | ROW_OF_PLACE
							 : NONE;
	return BASE_OK;
}

enum base_status graph_wait_empty(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	struct queue *q = verbs_queue_of(g, v);
	enum base_status s = verbs_wait_on(g, v, WAIT_DATA, err);

	if (!s)
		q->stats.nr_waits_data++;
	return s;
}

enum base_status graph_wait_full(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	struct queue *q = verbs_queue_of(g, v);
	enum base_status s = verbs_wait_on(g, v, WAIT_SPACE, err);

	if (s)
		return s;
	q->stats.nr_waits_space++;
	q->tracks_space = !q->capacity;
	return BASE_OK;
}

enum base_status graph_wait(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	return verbs_wait_on(g, v, WAIT_UNKNOWN, err);
}

enum base_status graph_link(
	struct graph *g, const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	uint64_t t;
	enum base_status s = verbs_begin(g, v, &t, err);

	BASE_ASSERT(from_actor < g->nr_actors);
	if (s)
		return s;
	if (from_actor != v->actor)
		s = graph_link_dep(g, &g->actor[from_actor], t, err);
	return s ? verbs_fail(g, s) : verbs_end(g, v, t, err);
}

enum base_status graph_rename(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	struct graph_verb now = *v;
	struct actor *a;
	uint64_t t;
	enum base_status s = verbs_begin(g, v, &t, err);

	if (!s && g->moment.pending)
		s = graph_flush(g, err);
	if (s)
		return s;
	a = &g->actor[v->actor];
	now.flags = 0;
	if (!a->started)
		return end_alone(g, &now, t, NULL, 0, err);
	a->state = v->state;
	s = actor_slot(g, a, v->state, &a->slot, err);
	return s ? verbs_fail(g, s) : BASE_OK;
}

enum base_status graph_forget(struct graph *g, const struct graph_verb *v, struct base_err *err)
{
	struct graph_verb now = *v;
	struct actor *a;
	uint64_t t;
	enum base_status s = verbs_begin(g, v, &t, err);

	if (s)
		return s;
	now.flags &= ~(uint32_t)(GRAPH_MORE | GRAPH_ASIDE | GRAPH_BACK | GRAPH_START);
	s = g->moment.pending ? verbs_end(g, &now, t, err) : end_alone(g, &now, t, NULL, 0, err);
	if (s)
		return s;
	a = &g->actor[v->actor];
	for (unsigned l = 0; l < g->lanes.stride; l++)
		actor_length(g, a)[l] = NO_PATH;
	a->tip = NONE;
	a->epoch++;
	a->forgets = true;
	graph_awake_end(a);
	return BASE_OK;
}

enum base_status graph_apply(struct graph *g, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from_actor, struct base_err *err)
{
	static enum base_status (*const verb[])(
		struct graph *, const struct graph_verb *, struct base_err *) = {
		[GRAPH_VERB_state] = graph_state,
		[GRAPH_VERB_enqueue] = graph_enqueue,
		[GRAPH_VERB_dequeue] = graph_dequeue,
		[GRAPH_VERB_peek] = graph_peek,
		[GRAPH_VERB_reserve] = graph_reserve,
		[GRAPH_VERB_resize] = graph_resize,
		[GRAPH_VERB_wait_empty] = graph_wait_empty,
		[GRAPH_VERB_wait_full] = graph_wait_full,
		[GRAPH_VERB_wait] = graph_wait,
		[GRAPH_VERB_rename] = graph_rename,
		[GRAPH_VERB_forget] = graph_forget,
	};

	if (BASE_UNLIKELY(v->came_ns) && v->actor < g->nr_actors) {
		g->actor[v->actor].came_ns = v->came_ns;
		g->actor[v->actor].came_state = v->came_state;
	}
	if (BASE_UNLIKELY(g->watch != NULL))
		graph_watch_verb(g->watch, kind, v, v->time_ns < g->now ? g->now : v->time_ns);
	if (kind == GRAPH_VERB_link)
		return graph_link(g, v, from_actor, err);
	return verb[kind](g, v, err);
}
