/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_reference.h - the graph, really built: every node, every edge, every unit of every queue by
 * itself. Written from the contract in graph.h and the invariants in src/graph/README.md, sharing
 * no code with the engine. Slow and small; for test_graph_law.c.
 */
#ifndef LONGPOLE_TESTS_GRAPH_REFERENCE_H
#define LONGPOLE_TESTS_GRAPH_REFERENCE_H

#include "graph/graph.h"

#include <math.h>
#include <string.h>

enum {
	REF_ACTORS = 6,
	REF_STATES = 10,
	REF_QUEUES = 5,
	REF_LANES = GRAPH_LANES_MAX,
	REF_NODES = 6000,
	REF_EDGES = 24000,
	REF_UNITS = 1200,
	REF_DEPS = 600,
};

struct ref_edge {
	int from, to;
	uint64_t w;       /* raw */
	int actor, state; /* charged; -1: nobody */
	bool unexplained, latency, own, link;
	int queue;              /* of a dependence; -1 */
	uint32_t zero, dropped; /* lanes in which w is 0; in which the edge is not there */
	int after; /* a wait for a processor, after the one that ended at this node; -1 */
	uint64_t available;
	int order;
};

struct ref_node {
	int first_edge, nr_edges; /* incoming */
	bool is_start, dep_wins_ties;
	int forced; /* edge that the path must follow; -1 */
	int cap;    /* edge that is the path in an edited lane where it would be longer; -1 */
	uint64_t time;
	int actor;
};

struct ref_unit {
	uint64_t time;
	int node, actor, epoch; /* actor -1: nobody; node -1: no path */
	int item;               /* units that were put together */
};

struct ref_fifo {
	struct ref_unit unit[REF_UNITS];
	int nr;
};

struct ref_queue {
	struct graph_queue_options o;
	struct ref_fifo data, space;
	uint64_t debt;
	bool tracks_space, took;
	struct ref_unit last_take;
	uint32_t drop_data, drop_space;
	struct graph_queue_stats st;
	uint64_t t_units;
};

struct ref_actor {
	uint64_t t_last;
	int state, tip, epoch;
	int wait; /* 0 no, 1 data, 2 space, 3 unknown */
	int wait_queue;
	int woken_now;
	int woken;         /* the node at which it last woke; it ran in none since; -1 */
	uint32_t passed;   /* lanes that elide its last wait; it ran in none since */
	uint32_t needless; /* lanes in which it takes without need what it waited for then */
	int needless_queue;
	bool needless_space;
	bool started;
	/* In a row of waits (of that kind, on that queue or place) that time limits ended: the end
	 * of its path without them; -1: in none. taken: now the row is over, and this its own path
	 * in edited lanes. */
	int row, row_queue, row_wait, taken;
	bool joins; /* that path takes what this moment takes */
	/* Of the row: when it last woke by a limit, how often it did, in how many of these somebody
	 * waited for what it gave. */
	uint64_t tick, served_tick;
	unsigned nr_ticks, nr_served;
};

struct ref_dep {
	uint64_t available;
	int node, actor, epoch, queue, order;
	bool space, optional, link;
};

struct ref_put {
	int queue;
	bool space;
	uint64_t n;
};

struct ref {
	struct ref_actor actor[REF_ACTORS];
	struct ref_queue queue[REF_QUEUES];
	struct ref_node node[REF_NODES];
	struct ref_edge edge[REF_EDGES];
	int nr_nodes, nr_edges, nr_queues, next_item;
	const struct graph_options *o;
	double scale[REF_STATES][REF_LANES];
	uint32_t elides[REF_STATES]; /* lanes */
	uint64_t now;
	uint32_t max_queued;
	bool merge_producers; /* of one producer and epoch only the newest unit counts */

	struct ref_dep dep[REF_DEPS];
	int nr_deps, nr_orders;
	struct ref_put put[REF_DEPS];
	int nr_puts;
	bool pending, overflow; /* overflow: the sequence is too long for the arrays */
	int pending_actor, pending_state;
	uint32_t pending_flags;

	/* solution of one lane */
	double length[REF_NODES];
	int best[REF_NODES];
};

struct ref_sum {
	double path, unexplained, latency;
	uint64_t visits;
};

/* ---- building -------------------------------------------------------------------------------- */

static inline void ref_init(struct ref *r, const struct graph_options *o, bool merge_producers)
{
	memset(r, 0, sizeof *r);
	r->o = o;
	r->merge_producers = merge_producers;
	r->max_queued = o->max_queued ? o->max_queued : 1 << 20;
	for (int a = 0; a < REF_ACTORS; a++)
		r->actor[a].tip = r->actor[a].woken = r->actor[a].row = r->actor[a].taken = -1;
	for (int s = 0; s < REF_STATES; s++) {
		for (int l = 0; l < REF_LANES; l++)
			r->scale[s][l] = 1;
	}
	for (unsigned i = 0; i < o->nr_scenarios; i++) {
		for (size_t k = 0; k < o->scenario[i].nr_edits; k++) {
			const struct graph_edit *e = &o->scenario[i].edit[k];

			if (e->kind == GRAPH_EDIT_SCALE_STATE) {
				if (e->id < REF_STATES)
					r->scale[e->id][i + 1] *= e->factor;
			} else if (e->kind == GRAPH_EDIT_ELIDE_STATE) {
				if (e->id < REF_STATES) {
					r->scale[e->id][i + 1] = 0;
					r->elides[e->id] |= 1u << (i + 1);
				}
			} else if (e->id < REF_QUEUES) {
				r->queue[e->id].drop_space |= 1u << (i + 1);
				if (e->kind == GRAPH_EDIT_IGNORE_QUEUE)
					r->queue[e->id].drop_data |= 1u << (i + 1);
			}
		}
	}
}

static inline void ref_push(struct ref *r, struct ref_fifo *f, struct ref_unit u, uint64_t n)
{
	if (n > (uint64_t)(REF_UNITS - f->nr)) {
		r->overflow = true;
		return;
	}
	u.item = r->next_item++;
	for (uint64_t i = 0; i < n; i++)
		f->unit[f->nr++] = u;
}

static inline void ref_remove(struct ref_fifo *f, int at)
{
	memmove(&f->unit[at], &f->unit[at + 1], sizeof f->unit[0] * (size_t)(f->nr - at - 1));
	f->nr--;
}

static inline int ref_nr_items(const struct ref_fifo *f)
{
	int nr = 0;

	for (int i = 0; i < f->nr; i++)
		nr += !i || f->unit[i].item != f->unit[i - 1].item;
	return nr;
}

static inline void ref_add_queue(struct ref *r, const struct graph_queue_options *o)
{
	struct ref_queue *q = &r->queue[r->nr_queues++];
	struct ref_unit nobody = {.actor = -1, .node = -1};
	uint64_t initial = o->initial == GRAPH_UNLIMITED ? 0 : o->initial;

	q->o = *o;
	ref_push(r, &q->data, nobody, initial);
	q->st.max_units = initial;
	if (o->capacity > initial)
		ref_push(r, &q->space, nobody, o->capacity - initial);
	else if (o->capacity)
		q->debt = initial - o->capacity;
}

static inline int ref_new_node(struct ref *r, uint64_t t, int actor)
{
	if (r->nr_nodes == REF_NODES) {
		r->overflow = true;
		return REF_NODES - 1;
	}
	r->node[r->nr_nodes] = (struct ref_node){
		.first_edge = r->nr_edges, .forced = -1, .cap = -1, .time = t, .actor = actor};
	return r->nr_nodes++;
}

static inline void ref_new_edge(struct ref *r, int to, struct ref_edge e)
{
	if (r->nr_edges == REF_EDGES) {
		r->overflow = true;
		return;
	}
	e.to = to;
	r->edge[r->nr_edges++] = e;
	r->node[to].nr_edges++;
}

static inline uint32_t ref_dropped(const struct ref *r, int queue, bool space)
{
	return space ? r->queue[queue].drop_space : r->queue[queue].drop_data;
}

/* It waits for a processor since it woke there; -1: it does not. */
static inline int ref_after(const struct ref *r, const struct ref_actor *p)
{
	bool processor = p->wait == 1 && r->queue[p->wait_queue].o.processor;

	return processor && p->tip >= 0 ? p->woken : -1;
}

/* Lanes in which the actor does not wait. */
static inline uint32_t ref_elided(const struct ref *r, const struct ref_actor *p)
{
	if (!p->wait || p->tip < 0)
		return 0;
	if (p->wait == 1 && r->queue[p->wait_queue].o.processor)
		return r->elides[p->state] | p->passed;
	return r->elides[p->state];
}

/* The actor's own edge when nothing but time leads to the new node. */
static inline void ref_own_edge(struct ref *r, int a, uint64_t t, int to, bool explained)
{
	const struct ref_actor *p = &r->actor[a];

	ref_new_edge(r, to,
		(struct ref_edge){.from = p->tip,
			.w = t - p->t_last,
			.actor = a,
			.state = p->state,
			.unexplained = p->wait != 0 && !explained,
			.own = true,
			.queue = -1,
			.after = ref_after(r, p),
			.zero = ref_elided(r, p) |
				(p->wait == 1 || p->wait == 2
						? ref_dropped(r, p->wait_queue, p->wait == 2)
						: 0)});
}

static inline void ref_add_dep(struct ref *r, struct ref_dep d)
{
	if (r->nr_deps == REF_DEPS) {
		r->overflow = true;
		return;
	}
	if (d.node < 0)
		return;
	d.order = r->nr_orders++;
	r->dep[r->nr_deps++] = d;
}

/* ---- queues ---------------------------------------------------------------------------------- */

static inline void ref_occupancy(struct ref *r, struct ref_queue *q)
{
	q->st.units_time += (uint64_t)q->data.nr * (r->now - q->t_units);
	q->t_units = r->now;
}

/* Units [from, to) of the walk become dependences: identical ones once. */
static inline void ref_units_to_deps(struct ref *r, int queue, bool space, bool optional,
	const struct ref_unit *u, int nr, bool newest_first)
{
	for (int i = 0; i < nr; i++) {
		bool covered = false;

		if (u[i].actor < 0)
			continue;
		for (int k = 0; k < nr; k++) {
			bool newer = newest_first ? k < i : k > i;

			if (u[k].actor != u[i].actor || u[k].epoch != u[i].epoch)
				continue;
			if (u[k].item == u[i].item)
				covered |= k > i;
			else if (r->merge_producers)
				covered |= newer;
		}
		if (!covered)
			ref_add_dep(r, (struct ref_dep){.available = u[i].time,
					       .node = u[i].node,
					       .actor = u[i].actor,
					       .epoch = u[i].epoch,
					       .queue = queue,
					       .space = space,
					       .optional = optional});
	}
}

static inline void ref_take(
	struct ref *r, int queue, bool space, uint64_t n, uint32_t flags, bool keep)
{
	static struct ref_unit walked[REF_UNITS];
	struct ref_queue *q = &r->queue[queue];
	struct ref_fifo *f = space ? &q->space : &q->data;
	bool back = !space && (q->o.discipline == GRAPH_LIFO);
	bool all = n == UINT64_MAX;
	int nr = 0, nr_walked = 0, nr_deps = r->nr_deps;

	if (!space)
		ref_occupancy(r, q);
	if (n > (uint64_t)f->nr) {
		if (!space && !all && q->o.initial != GRAPH_UNLIMITED)
			q->st.underflows += n - (uint64_t)f->nr;
		if (space && !keep)
			q->debt += n - (uint64_t)f->nr;
		n = (uint64_t)f->nr;
	}
	nr = (int)n;
	for (int i = 0; i < nr; i++)
		walked[nr_walked++] = f->unit[back ? f->nr - 1 - i : i];
	if (flags & GRAPH_LAST && nr) {
		struct ref_unit newest = walked[back ? 0 : nr - 1];

		ref_units_to_deps(r, queue, space, flags & GRAPH_OPTIONAL, &newest, 1, back);
		if (keep && !(back && nr_deps)) {
			/* The older ones of the n are forgotten. */
			for (int left = nr, at = back ? f->nr - nr : 0; left; left--) {
				if (f->unit[at].item == newest.item) {
					at++;
					continue;
				}
				q->st.dequeued++;
				q->st.residence_ns += r->now - f->unit[at].time;
				ref_remove(f, at);
			}
		}
	} else {
		ref_units_to_deps(r, queue, space, flags & GRAPH_OPTIONAL, walked, nr_walked, back);
	}
	if (keep)
		return;
	for (int i = 0; i < nr; i++) {
		int at = back ? f->nr - 1 : 0;

		if (!space) {
			q->st.dequeued++;
			q->st.residence_ns += r->now - f->unit[at].time;
		}
		ref_remove(f, at);
	}
}

static inline void ref_take_back(struct ref *r, struct ref_queue *q, uint64_t n)
{
	ref_occupancy(r, q);
	if (n > (uint64_t)q->data.nr) {
		if (n != UINT64_MAX && q->o.initial != GRAPH_UNLIMITED)
			q->st.underflows += n - (uint64_t)q->data.nr;
		n = (uint64_t)q->data.nr;
	}
	for (; n; n--) {
		q->st.dequeued++;
		q->st.residence_ns += r->now - q->data.unit[--q->data.nr].time;
	}
}

static inline void ref_put_space(struct ref *r, struct ref_queue *q, struct ref_unit u, uint64_t n)
{
	if (!q->o.capacity) {
		if (q->tracks_space) {
			q->took = true;
			q->last_take = u;
		}
		return;
	}
	for (; n && q->debt; n--)
		q->debt--;
	if (!n)
		return;
	if (ref_nr_items(&q->space) >= (int)r->max_queued) {
		int oldest = q->space.unit[0].item, i = 0, k;

		while (q->space.unit[i].item == oldest)
			i++;
		for (k = 0; k < i; k++)
			q->space.unit[k] = q->space.unit[i];
	}
	ref_push(r, &q->space, u, n);
}

static inline void ref_do_put(struct ref *r, const struct ref_put *p, int a, uint64_t t)
{
	struct ref_queue *q = &r->queue[p->queue];
	struct ref_unit u = {
		.time = t, .node = r->actor[a].tip, .actor = a, .epoch = r->actor[a].epoch};
	struct ref_unit nobody = {.time = r->now, .node = -1, .actor = -1};

	if (!p->n)
		return;
	if (p->space) {
		ref_put_space(r, q, u, p->n);
		return;
	}
	ref_occupancy(r, q);
	if (ref_nr_items(&q->data) >= (int)r->max_queued) {
		int oldest = q->data.unit[0].item;
		uint64_t lost = 0;

		while (q->data.nr && q->data.unit[0].item == oldest) {
			ref_remove(&q->data, 0);
			lost++;
		}
		q->st.overflows += lost;
		ref_put_space(r, q, nobody, lost);
	}
	ref_push(r, &q->data, u, p->n);
	q->st.enqueued += p->n;
	if ((uint64_t)q->data.nr > q->st.max_units)
		q->st.max_units = (uint64_t)q->data.nr;
}

/* ---- a moment -------------------------------------------------------------------------------- */

static inline int ref_latest(const struct ref *r, bool optional)
{
	int best = -1;

	for (int i = 0; i < r->nr_deps; i++) {
		if (r->dep[i].optional == optional &&
			(best < 0 || r->dep[i].available >= r->dep[best].available))
			best = i;
	}
	return best;
}

static inline void ref_filter_optional(struct ref *r)
{
	int must = ref_latest(r, false), may = ref_latest(r, true), nr = 0;

	if (may >= 0 && must >= 0 && r->dep[may].available <= r->dep[must].available)
		may = -1;
	for (int i = 0; i < r->nr_deps; i++) {
		if (r->dep[i].optional && i != may)
			continue;
		r->dep[nr] = r->dep[i];
		r->dep[nr++].optional = false;
	}
	r->nr_deps = nr;
}

static inline void ref_count_wait(struct ref_queue *q, bool space, uint64_t w)
{
	if (space)
		q->st.wait_space_ns += w;
	else
		q->st.wait_data_ns += w;
}

/* What the edges of a moment have in common. */
struct ref_join {
	const struct ref_actor *p;
	int a;
	bool explained, needless;
	uint64_t w, latency;
	uint32_t zero, elided;
};

/* true: there is a link among them. */
static inline bool ref_dep_edges(struct ref *r, const struct ref_join *j, int n)
{
	bool linked = false;

	for (int i = 0; i < r->nr_deps; i++) {
		const struct ref_dep *d = &r->dep[i];
		struct ref_node *node = &r->node[n];

		if (d->link) {
			linked = true;
			if (node->forced < 0 || d->order > r->edge[node->forced].order)
				node->forced = r->nr_edges;
		}
		ref_new_edge(r, n,
			(struct ref_edge){.from = d->node,
				.w = d->link        ? 0
				     : j->explained ? j->latency
				     : j->needless  ? j->w
						    : 0,
				.actor = d->link ? -1 : j->a,
				.state = j->needless ? j->p->state
					 : d->link   ? -1
						     : (int)r->queue[d->queue].o.latency_state,
				.latency = j->needless || j->explained,
				.link = d->link,
				.queue = d->queue,
				.after = ref_after(r, j->p),
				.zero = j->zero,
				.dropped =
					j->elided |
					(d->link ? 0
						 : ref_dropped(r, d->queue, d->space) |
								(!j->p->wait && d->queue == j->p->needless_queue &&
											d->space ==
												j->p->needless_space
										? j->p->needless
										: 0)),
				.available = d->available,
				.order = d->order});
	}
	return linked;
}

/* All that ended the wait was given by an actor that was awake already when it began, in a tick,
 * most of which serve nobody; or takers may change places for it. */
static inline bool ref_all_by_chance(struct ref *r, const struct ref_actor *p)
{
	bool all = true;

	for (int i = 0; i < r->nr_deps; i++) {
		const struct ref_dep *d = &r->dep[i];
		struct ref_actor *by = &r->actor[d->actor];
		bool met = false;

		if (!d->link && by->row >= 0) {
			by->nr_served += by->served_tick != by->tick;
			by->served_tick = by->tick;
			met = by->tick <= p->t_last && by->nr_served * 2 < by->nr_ticks;
		}
		all &= met || (!d->link && !d->space && r->queue[d->queue].o.exchangeable);
	}
	return all;
}

static inline void ref_join(struct ref *r, int a, uint64_t t)
{
	struct ref_actor *p = &r->actor[a];
	const struct ref_dep *latest = &r->dep[ref_latest(r, false)];
	uint64_t w = t - p->t_last, latency = t - latest->available;
	bool pathless = p->tip < 0, explained = p->wait && latest->available > p->t_last;
	bool linked = false, needless;
	uint32_t zero = 0, elided = ref_elided(r, p);
	int n;

	if (p->wait == 1 || p->wait == 2) {
		zero = ref_dropped(r, p->wait_queue, p->wait == 2);
		ref_count_wait(&r->queue[p->wait_queue], p->wait == 2, w);
	} else if (p->wait == 3 && !latest->link) {
		zero = ref_dropped(r, latest->queue, latest->space);
		ref_count_wait(&r->queue[latest->queue], latest->space, w);
		if (latest->space)
			r->queue[latest->queue].st.nr_waits_space++;
		else
			r->queue[latest->queue].st.nr_waits_data++;
	}
	if (explained && !latest->link) {
		r->queue[latest->queue].st.nr_waits_room += latest->space;
		r->queue[latest->queue].st.nr_latencies++;
		r->queue[latest->queue].st.latency_ns += latency;
	}
	zero |= elided;
	explained |= pathless;
	needless = p->wait && !explained;
	n = ref_new_node(r, t, a);
	const struct ref_join join = {p, a, explained, needless, w, latency, zero, elided};
	struct ref_edge own = {.from = p->tip,
		.w = explained ? 0 : w,
		.actor = a,
		.state = p->state,
		.latency = needless,
		.own = true,
		.queue = -1,
		.after = ref_after(r, p),
		.zero = zero,
		.dropped = p->taken >= 0 ? ~1u : 0,
		.order = -1};
	if (!pathless)
		ref_new_edge(r, n, own);
	if (p->taken >= 0) {
		own.from = p->taken;
		own.dropped = 1;
		ref_new_edge(r, n, own);
		p->epoch++;
	}
	linked = ref_dep_edges(r, &join, n);
	if (!pathless && explained && ref_all_by_chance(r, p)) {
		own = (struct ref_edge){.from = p->tip,
			.w = w,
			.actor = a,
			.state = p->state,
			.latency = true,
			.own = true,
			.queue = -1,
			.after = ref_after(r, p),
			.zero = zero,
			.order = -1};
		r->node[n].cap = r->nr_edges;
		ref_new_edge(r, n, own);
		r->node[n].nr_edges--; /* none that the longest path may choose */
	}
	if (p->joins) {
		int beside = ref_new_node(r, t, a);

		own = (struct ref_edge){.from = p->row,
			.actor = a,
			.state = p->state,
			.own = true,
			.queue = -1,
			.after = -1,
			.order = -1};
		ref_new_edge(r, beside, own);
		ref_dep_edges(r, &join, beside);
		r->node[beside].dep_wins_ties = true;
		p->row = beside;
	}
	r->node[n].dep_wins_ties = explained && !linked;
	p->woken_now = explained && !pathless ? n : -1;
	p->tip = n;
	if (linked)
		p->epoch++;
}

/* Waits with a time limit, before the moment is closed. */
static inline void ref_row(struct ref *r, int a, uint64_t t, uint32_t flags)
{
	struct ref_actor *p = &r->actor[a];
	bool came = false, linked = false, token = false, own = false;

	p->taken = -1;
	p->joins = false;
	if (p->tip < 0)
		return;
	if (p->wait == 1 || (p->wait == 3 && p->wait_queue)) { /* (3: that is the place) */
		token = p->wait == 1 && (r->queue[p->wait_queue].o.processor ||
						r->queue[p->wait_queue].o.exchangeable);
		own = p->row >= 0 && p->row_wait == p->wait && p->row_queue == p->wait_queue;
		if (flags & GRAPH_TIMED_OUT && !r->nr_deps) {
			p->nr_ticks = own ? p->nr_ticks + 1 : 1;
			p->nr_served = own ? p->nr_served : 0;
			p->served_tick = own ? p->served_tick : 0;
			p->tick = t;
			p->row = own ? p->row : p->tip;
			p->row_queue = p->wait_queue;
			p->row_wait = p->wait;
			return;
		}
	}
	for (int i = 0; i < r->nr_deps; i++) {
		came |= p->wait && r->dep[i].available > p->t_last;
		linked |= r->dep[i].link;
	}
	if (p->row >= 0 && own && came && !linked)
		p->taken = p->row;
	if (linked || (came && own && !token)) {
		p->row = -1;
	} else if (p->row >= 0 && came && !token) {
		p->joins = true;
	} else if (p->row >= 0 && (!p->wait || (!r->nr_deps && !own))) {
		int n = ref_new_node(r, t, a), tip = p->tip;

		p->tip = p->row;
		ref_own_edge(r, a, t, n, flags & GRAPH_EXPLAINED);
		p->tip = tip;
		p->row = n;
	}
}

static inline void ref_close(struct ref *r, int a, uint64_t t, int state, uint32_t flags)
{
	struct ref_actor *p = &r->actor[a], was = *p;
	bool first = !p->started;

	if (first) {
		p->started = true;
		p->t_last = t;
		p->state = state;
		if (flags & GRAPH_START) {
			p->tip = ref_new_node(r, t, a);
			r->node[p->tip].is_start = true;
			r->nr_deps = 0;
		}
	}
	ref_filter_optional(r);
	if (!first)
		ref_row(r, a, t, flags);
	p->woken_now = -1;
	if (r->nr_deps) {
		ref_join(r, a, t);
	} else if (!first) {
		if (p->wait == 1 || p->wait == 2)
			ref_count_wait(&r->queue[p->wait_queue], p->wait == 2, t - p->t_last);
		if (p->tip >= 0) {
			int n = ref_new_node(r, t, a);

			ref_own_edge(r, a, t, n, flags & GRAPH_EXPLAINED);
			p->tip = n;
		}
	}
	if (!first && flags & GRAPH_START && p->tip < 0) {
		p->tip = ref_new_node(r, t, a);
		r->node[p->tip].is_start = true;
	}
	if (!first && (p->wait == 1 || p->wait == 2) && r->elides[was.state]) {
		p->needless = ref_elided(r, &was) & r->elides[was.state];
		p->needless_queue = p->wait_queue;
		p->needless_space = p->wait == 2;
	}
	if (!first && (p->wait || t > p->t_last)) {
		p->passed = ref_elided(r, &was);
		p->woken = p->woken_now >= 0 ? p->woken_now : ref_after(r, &was);
	}
	p->t_last = t;
	p->wait = 0;
	p->state = state;
	r->nr_deps = r->nr_orders = 0;
	for (int i = 0; i < r->nr_puts; i++)
		ref_do_put(r, &r->put[i], a, r->now);
	r->nr_puts = 0;
}

static inline void ref_flush(struct ref *r)
{
	if (r->pending)
		ref_close(r, r->pending_actor, r->now, r->pending_state, r->pending_flags);
	r->pending = false;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

enum ref_verb {
	REF_STATE,
	REF_ENQUEUE,
	REF_DEQUEUE,
	REF_PEEK,
	REF_RESERVE,
	REF_RESIZE,
	REF_WAIT_EMPTY,
	REF_WAIT_FULL,
	REF_WAIT,
	REF_LINK,
	REF_RENAME,
	REF_FORGET,
	REF_VERBS
};

static inline void ref_will_put(struct ref *r, const struct graph_verb *v, bool space, uint64_t n)
{
	const struct ref_queue *q = &r->queue[v->queue];

	if (n && (!space || q->o.capacity || q->tracks_space))
		r->put[r->nr_puts++] = (struct ref_put){(int)v->queue, space, n};
}

static inline void ref_take_space(struct ref *r, const struct graph_verb *v, uint64_t n, bool keep)
{
	struct ref_queue *q = &r->queue[v->queue];
	const struct ref_actor *p = &r->actor[v->actor];

	if (q->o.capacity)
		ref_take(r, (int)v->queue, true, n, v->flags & ~(uint32_t)GRAPH_LAST, keep);
	else if (q->took && q->last_take.time > p->t_last &&
		 (p->wait == 3 || (p->wait == 2 && p->wait_queue == (int)v->queue)))
		ref_add_dep(r, (struct ref_dep){.available = q->last_take.time,
				       .node = q->last_take.node,
				       .actor = q->last_take.actor,
				       .epoch = q->last_take.epoch,
				       .queue = (int)v->queue,
				       .space = true,
				       .optional = v->flags & GRAPH_OPTIONAL});
}

static inline void ref_link(struct ref *r, const struct graph_verb *v, int from)
{
	struct ref_actor *f = &r->actor[from];
	int n = f->tip;

	if (from == (int)v->actor || n < 0)
		return;
	if (r->now > f->t_last) {
		n = ref_new_node(r, r->now, from);
		ref_own_edge(r, from, r->now, n, false);
	}
	ref_add_dep(r,
		(struct ref_dep){
			.available = r->now, .node = n, .actor = from, .queue = -1, .link = true});
}

static inline void ref_resize(struct ref *r, const struct graph_verb *v, uint64_t n)
{
	struct ref_queue *q = &r->queue[v->queue];
	uint64_t now = (uint64_t)q->data.nr;

	if (n < now) {
		ref_take_back(r, q, now - n);
		ref_will_put(r, v, true, now - n);
	} else if (n > now) {
		int nr_deps = r->nr_deps;

		if (q->o.capacity)
			ref_take(r, (int)v->queue, true, n - now, 0, false);
		r->nr_deps = nr_deps;
		ref_will_put(r, v, false, n - now);
	}
}

/* Puts with the path that the actor would have if it had run until now. */
static inline void ref_aside(struct ref *r, const struct ref_put *p, int a)
{
	struct ref_actor kept = r->actor[a];

	r->actor[a].wait = 0;
	if (kept.tip >= 0 && r->now > kept.t_last) {
		int n = ref_new_node(r, r->now, a);

		ref_own_edge(r, a, r->now, n, true);
		r->actor[a].tip = n;
	}
	ref_do_put(r, p, a, r->now);
	r->actor[a] = kept;
}

static inline void ref_play_aside(
	struct ref *r, enum ref_verb verb, const struct graph_verb *v, uint64_t n)
{
	struct ref_queue *q = &r->queue[v->queue];
	struct ref_put put = {(int)v->queue, verb == REF_DEQUEUE, n};
	int nr_deps = r->nr_deps, before = q->data.nr;

	if (verb == REF_ENQUEUE) {
		q->st.nr_enqueues++;
		if (q->o.capacity)
			ref_take(r, (int)v->queue, true, n, 0, false);
		r->nr_deps = nr_deps;
	} else {
		q->st.nr_dequeues++;
		ref_take_back(r, q, n);
		put.n = (uint64_t)(before - q->data.nr);
	}
	ref_aside(r, &put, (int)v->actor);
}

/* The actor's moment lies in the past, between its last one and now; its units wait since then. */
static inline void ref_dated(struct ref *r, const struct graph_verb *v, uint64_t n)
{
	struct ref_actor *p = &r->actor[v->actor];
	struct ref_queue *q = &r->queue[v->queue];
	uint64_t t = v->time_ns;

	ref_flush(r);
	if (t > r->now)
		r->now = t;
	if (!p->started)
		t = r->now;
	else if (t < p->t_last)
		t = p->t_last;
	q->st.nr_enqueues++;
	ref_close(r, (int)v->actor, t, (int)v->state, 0);
	ref_do_put(r, &(struct ref_put){(int)v->queue, false, n}, (int)v->actor, t);
	q->st.units_time += n * (r->now - t);
}

/* The open edge is another state's; an actor that has done nothing yet begins in it. */
static inline void ref_rename(struct ref *r, const struct graph_verb *v)
{
	ref_flush(r);
	if (r->actor[v->actor].started)
		r->actor[v->actor].state = (int)v->state;
	else
		ref_close(r, (int)v->actor, r->now, (int)v->state, 0);
}

static inline void ref_play(struct ref *r, enum ref_verb verb, const struct graph_verb *v, int from)
{
	struct ref_queue *q = &r->queue[v->queue];
	uint64_t t = v->time_ns, n = v->n < 0 ? 0 : (uint64_t)v->n;
	uint64_t n_or_all = v->n == GRAPH_ALL ? UINT64_MAX : n;
	uint32_t flags = v->flags;
	int before = q->data.nr;
	bool is_wait = verb == REF_WAIT || verb == REF_WAIT_EMPTY || verb == REF_WAIT_FULL;

	if (verb == REF_ENQUEUE && flags & GRAPH_DATED) {
		ref_dated(r, v, n);
		return;
	}
	if (t < r->now)
		t = r->now;
	bool aside = flags & GRAPH_ASIDE && (verb == REF_ENQUEUE || verb == REF_DEQUEUE);

	if (r->pending &&
		(r->pending_actor != (int)v->actor || t > r->now || flags & GRAPH_ASIDE)) {
		ref_flush(r);
		before = q->data.nr;
	}
	r->now = t;
	if (aside) {
		ref_play_aside(r, verb, v, verb == REF_ENQUEUE ? n : n_or_all);
		return;
	}
	if (verb == REF_RENAME) {
		ref_rename(r, v);
		return;
	}
	if (verb == REF_FORGET)
		flags &= ~(uint32_t)(GRAPH_MORE | GRAPH_START);
	if (verb == REF_ENQUEUE) {
		q->st.nr_enqueues++;
		if (n)
			ref_take_space(r, v, n, false);
		ref_will_put(r, v, false, n);
	} else if (verb == REF_DEQUEUE) {
		q->st.nr_dequeues++;
		if (flags & GRAPH_BACK)
			ref_take_back(r, q, n_or_all);
		else
			ref_take(r, (int)v->queue, false, n_or_all, flags, false);
		ref_will_put(r, v, true, (uint64_t)(before - q->data.nr));
	} else if (verb == REF_PEEK) {
		ref_take(r, (int)v->queue, false, n_or_all, flags, true);
		ref_will_put(r, v, true, (uint64_t)(before - q->data.nr));
	} else if (verb == REF_RESERVE) {
		ref_take_space(r, v, n_or_all, true);
	} else if (verb == REF_RESIZE) {
		ref_resize(r, v, n);
	} else if (verb == REF_LINK) {
		ref_link(r, v, from);
	}
	if (r->pending)
		flags |= r->pending_flags & (GRAPH_START | GRAPH_EXPLAINED | GRAPH_TIMED_OUT);
	r->pending = flags & GRAPH_MORE && !is_wait;
	if (r->pending) {
		r->pending_actor = (int)v->actor;
		r->pending_state = (int)v->state;
		r->pending_flags = flags;
		return;
	}
	ref_close(r, (int)v->actor, t, (int)v->state, flags);
	if (verb == REF_FORGET) {
		r->actor[v->actor].tip = r->actor[v->actor].row = -1;
		r->actor[v->actor].epoch++;
	}
	if (!is_wait)
		return;
	r->actor[v->actor].wait = verb == REF_WAIT_EMPTY ? 1 : verb == REF_WAIT_FULL ? 2 : 3;
	r->actor[v->actor].wait_queue = (int)v->queue;
	if (verb == REF_WAIT_EMPTY)
		q->st.nr_waits_data++;
	if (verb == REF_WAIT_FULL) {
		q->st.nr_waits_space++;
		q->tracks_space = true;
	}
}

#endif
