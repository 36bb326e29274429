/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - the analysis of a part of the run, [from, to] (seed 000, section 5.1.3:
 * fast-forwarding).
 *
 * graph_restart() at `from`: all that is known stays as it is (states, waits, units in queues, who
 * made them and when), but every path is 0 long there and begins at a node of its own. From then on
 * an edge weighs what of it lies after `from` (since(), in priv.h). All lane 0 paths have lost the
 * same length, so which way is the longest does not change: the window's path is the whole run's,
 * clipped.
 *
 * graph_cut() at `to`: it is not known yet what the run's end will have depended on. So the path up
 * to here of each actor, and over each unit in a queue, is kept as an anchor, and the run goes on
 * with a restart whose first nodes carry the anchor's number instead of a time. At the end the path
 * leads back to one of them, and that anchor is the end of the window's path. The taker of a unit
 * that is under way is not known either: its hand-off so far is charged to its producer.
 */
#include "graph/part.h"
#include "graph/priv.h"

/* The weight of the first node of an anchor's path after the cut. No time is that late. */
static uint64_t window_label(size_t anchor)
{
	return WEIGHT_MAX - anchor;
}

/* An anchor for each actor where it is, one for its last verb, then one for each unit with a path.
 */
static size_t actor_anchor(uint32_t actor)
{
	return 2 * (size_t)actor;
}

/* ---- restarting ------------------------------------------------------------------------------ */

static void zero_lengths(const struct graph *g, double *length)
{
	for (unsigned l = 0; l < g->lanes.nr_lanes; l++) {
		if (length[l] != NO_PATH)
			length[l] = 0;
	}
	for (unsigned l = g->lanes.nr_lanes; l < g->lanes.nr_tracks; l++)
		length[l] = NO_PATH;
}

static uint32_t first_node(struct graph *g, uint32_t actor, uint64_t t, uint64_t weight)
{
	uint32_t id = g->next++;

	if (g->extra)
		g->extra[id] = (struct node_extra){.time_ns = t, .queue = NONE, .actor = actor};
	g->node[id] = (struct node){
		.prev = NONE,
		.dep = NONE,
		.slot = NONE,
		.dep_slot = NONE,
		.weight = node_weight(KIND_START, weight),
	};
	return id;
}

/* Calls visit for each unit that carries a path: in a queue, or as space in it. */
typedef enum base_status visit_item(
	struct graph *g, uint32_t queue, bool space, struct item *it, struct base_err *err);

static enum base_status each_in_ring(struct graph *g, uint32_t queue, bool space,
	const struct ring *r, visit_item *visit, struct base_err *err)
{
	enum base_status s = BASE_OK;

	for (uint32_t i = 0; i < r->nr_items && !s; i++) {
		struct item *it = ring_item(g, r, i);

		if (it->actor != NONE && it->length[0] != NO_PATH)
			s = visit(g, queue, space, it, err);
	}
	return s;
}

static enum base_status each_item(struct graph *g, visit_item *visit, struct base_err *err)
{
	enum base_status s = BASE_OK;

	for (uint32_t i = 0; i < g->nr_queues && !s; i++) {
		const struct queue *q = &g->queue[i];
		struct item *last = q->last_take;

		s = each_in_ring(g, i, false, &q->data, visit, err);
		if (!s)
			s = each_in_ring(g, i, true, &q->space, visit, err);
		if (!s && q->past) /* lanes may still take them */
			s = each_in_ring(g, i, past_is_of_space(q), &q->past->taken, visit, err);
		if (!s && last && last->actor != NONE && last->length[0] != NO_PATH)
			s = visit(g, i, true, last, err);
	}
	return s;
}

/* Whoever made it had a path then, and has one still unless it forgot it. */
static enum base_status restart_item(
	struct graph *g, uint32_t queue, bool space, struct item *it, struct base_err *err)
{
	enum base_status s = BASE_OK;

	(void)queue;
	(void)space;
	it->node = g->actor[it->actor].tip;
	if (it->node == NONE)
		s = graph_reserve_nodes(g, 1, err);
	if (!s && it->node == NONE)
		it->node = first_node(g, it->actor, g->now, g->now);
	zero_lengths(g, it->length);
	return s;
}

static enum base_status restart_actors(
	struct graph *g, uint64_t t, bool labelled, struct base_err *err)
{
	enum base_status s = graph_reserve_nodes(g, g->nr_actors, err);

	for (uint32_t i = 0; i < g->nr_actors && !s; i++) {
		struct actor *a = &g->actor[i];

		graph_awake_end(a);
		if (actor_length(g, a)[0] == NO_PATH)
			continue;
		a->tip = first_node(g, i, t, labelled ? window_label(actor_anchor(i)) : t);
		zero_lengths(g, actor_length(g, a));
	}
	return s;
}

/* Both: what is pending belongs before t, and t is now. */
static enum base_status come_to(struct graph *g, uint64_t *t, struct base_err *err)
{
	BASE_ASSERT(!g->finished);
	if (g->failed)
		return base_fail(err, g->failed, "the graph failed before");
	enum base_status s = g->moment.pending ? graph_flush(g, err) : BASE_OK;

	if (*t < g->now)
		*t = g->now;
	if (*t > WEIGHT_MAX)
		*t = WEIGHT_MAX;
	g->now = g->told_ns = *t;
	return s;
}

static enum base_status window_done(struct graph *g, enum base_status s)
{
	if (s) {
		g->failed = s;
		g->attention = true;
	}
	return s;
}

/* Statistics of the window alone. Waits that have begun are waits in it. */
static void forget_statistics(struct graph *g, uint64_t t)
{
	for (size_t i = 0; i < g->nr_slots; i++) {
		struct graph_state_totals *tot = &g->slot_totals[i];

		tot->total_ns = tot->waiting_ns = tot->visits = 0;
	}
	for (size_t i = 0; i < g->nr_queues; i++) {
		struct queue *q = &g->queue[i];

		q->stats = (struct graph_queue_stats){.max_units = q->data.nr_units};
		q->t_units = t;
	}
	for (size_t i = 0; i < g->nr_actors; i++) {
		const struct actor *a = &g->actor[i];

		if (a->wait == WAIT_DATA)
			g->queue[a->wait_queue].stats.nr_waits_data++;
		else if (a->wait == WAIT_SPACE)
			g->queue[a->wait_queue].stats.nr_waits_space++;
	}
}

/* Those that were reached before the window. */
static void forget_ends(struct graph *g)
{
	for (size_t i = 0; i < g->result.nr_ends; i++)
		g->result.end[i].node = g->result.end[i].bound = NONE;
}

enum base_status graph_restart(struct graph *g, uint64_t time_ns, struct base_err *err)
{
	enum base_status s = come_to(g, &time_ns, err);

	BASE_ASSERT(!g->window.nr_anchors);
	if (!s)
		s = restart_actors(g, time_ns, false, err);
	if (!s)
		s = each_item(g, restart_item, err);
	if (s)
		return window_done(g, s);
	g->since_ns = time_ns;
	forget_statistics(g, time_ns);
	forget_ends(g);
	g->window.early = false;
	return window_done(g, graph_collect(g, false, err));
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* Open edges, waits and occupancy count up to here. */
static void close_statistics(struct graph *g, uint64_t t)
{
	for (size_t i = 0; i < g->nr_queues; i++)
		count_occupancy(&g->queue[i], t);
	for (size_t i = 0; i < g->nr_actors; i++) {
		const struct actor *a = &g->actor[i];
		uint64_t w = since(g, t, a->t_last);

		if (!a->started || !w)
			continue;

		struct graph_state_totals *tot = &g->slot_totals[a->slot];

		tot->total_ns += w;
		tot->visits++;
		if (a->wait)
			tot->waiting_ns += w;
		if (a->wait == WAIT_DATA)
			g->queue[a->wait_queue].stats.wait_data_ns += w;
		else if (a->wait == WAIT_SPACE)
			g->queue[a->wait_queue].stats.wait_space_ns += w;
	}
}

static enum base_status keep_statistics(struct graph *g, struct base_err *err)
{
	struct window *w = &g->window;
	enum base_status s = graph_mem_need(
		g, &w->totals, &w->totals_capacity, g->nr_slots, sizeof *w->totals, err);

	if (!s)
		s = graph_mem_need(
			g, &w->stats, &w->stats_capacity, g->nr_queues, sizeof *w->stats, err);
	if (s)
		return s;
	for (size_t i = 0; i < g->nr_slots; i++)
		w->totals[i] = g->slot_totals[i];
	for (size_t i = 0; i < g->nr_queues; i++)
		w->stats[i] = g->queue[i].stats;
	w->nr_totals = g->nr_slots;
	w->nr_stats = g->nr_queues;
	return BASE_OK;
}

static enum base_status need_anchors(struct graph *g, size_t nr, struct base_err *err)
{
	struct window *w = &g->window;
	enum base_status s =
		graph_mem_need(g, &w->anchor, &w->anchor_capacity, nr, sizeof *w->anchor, err);

	if (!s)
		s = graph_mem_need(g, &w->anchor_length, &w->anchor_length_capacity,
			nr * g->lanes.stride, sizeof *w->anchor_length, err);
	return s;
}

/* The hand-off of a unit up to now, as if its producer took it. */
static enum base_status anchor_item(
	struct graph *g, uint32_t queue, bool space, struct item *it, struct base_err *err)
{
	struct window *w = &g->window;
	const struct queue *q = &g->queue[queue];
	uint64_t t = g->now, latency = since(g, t, it->time_ns);
	uint32_t slot, id, zero = space ? q->drop_space : q->drop_data;
	enum base_status s = need_anchors(g, w->nr_anchors + 1, err);

	if (!s)
		s = graph_reserve_nodes(g, 2, err);
	if (!s)
		s = actor_slot(g, &g->actor[it->actor], q->latency_state, &slot, err);
	if (s)
		return s;

	double *row = w->anchor_length + w->nr_anchors * g->lanes.stride;
	const double *scale = g->scale + (size_t)q->latency_state * g->lanes.stride;

	for (unsigned l = 0; l < g->lanes.stride; l++)
		row[l] = it->length[l] + (zero >> l & 1 ? 0 : (double)latency * scale[l]);
	id = g->next++;
	if (g->extra)
		g->extra[id] =
			(struct node_extra){.time_ns = t, .queue = queue, .actor = it->actor};
	g->node[id] = (struct node){
		.prev = NONE,
		.dep = it->node,
		.took_dep = g->lanes.lane_bits,
		.zero = zero,
		.slot = NONE,
		.dep_slot = slot,
		.weight = node_weight(KIND_EXPLAINED, latency),
	};
	w->anchor[w->nr_anchors] = (struct end){.node = id, .bound = NONE, .time_ns = t};
	it->node = first_node(g, it->actor, t, window_label(w->nr_anchors++));
	zero_lengths(g, it->length);
	return BASE_OK;
}

static enum base_status anchor_actors(struct graph *g, uint64_t t, struct base_err *err)
{
	struct window *w = &g->window;
	enum base_status s = graph_reserve_nodes(g, g->nr_actors, err);

	if (!s)
		s = need_anchors(g, 2 * g->nr_actors, err);
	for (size_t i = 0; i < g->nr_actors && !s; i++) {
		struct actor *a = &g->actor[i];
		const double *length = actor_length(g, a);
		double *row = w->anchor_length + 2 * i * g->lanes.stride;
		bool has_path = length[0] != NO_PATH;

		w->anchor[2 * i] = (struct end){.node = NONE, .bound = NONE, .time_ns = t};
		w->anchor[2 * i + 1] =
			(struct end){.node = a->tip, .bound = NONE, .time_ns = a->t_last};
		memcpy(row + g->lanes.stride, length, g->lanes.stride * sizeof *row);
		if (has_path)
			w->anchor[2 * i].node = graph_path_now(g, a, t, row);
		w->nr_anchors = w->nr_actor_anchors = 2 * (i + 1);
	}
	return s;
}

/* Every path up to here becomes an anchor, and goes on with its number. */
static enum base_status anchor_all(struct graph *g, uint64_t t, struct base_err *err)
{
	enum base_status s = anchor_actors(g, t, err);

	if (!s)
		s = each_item(g, anchor_item, err);
	if (!s)
		s = restart_actors(g, t, true, err);
	g->since_ns = t;
	return s ? s : graph_collect(g, false, err);
}

enum base_status graph_cut(struct graph *g, uint64_t time_ns, struct base_err *err)
{
	enum base_status s = come_to(g, &time_ns, err);

	BASE_ASSERT(!g->window.cut && !g->window.early);
	if (s)
		return window_done(g, s);
	close_statistics(g, time_ns);
	s = keep_statistics(g, err);
	if (!s)
		s = anchor_all(g, time_ns, err);
	g->window.cut = true;
	return window_done(g, s);
}

enum base_status graph_birth(struct graph *g, uint32_t actor, struct base_err *err)
{
	struct window *w = &g->window;
	enum base_status s = BASE_OK;

	BASE_ASSERT(actor < g->nr_actors && !g->finished);
	if (g->failed)
		return base_fail(err, g->failed, "the graph failed before");
	if (g->moment.pending)
		s = graph_flush(g, err);
	if (s || g->actor[actor].tip == NONE)
		return s;
	s = graph_mem_need(
		g, &w->birth, &w->birth_capacity, w->nr_births + 1, sizeof *w->birth, err);
	if (!s)
		w->birth[w->nr_births++] = g->actor[actor].tip;
	g->actor[actor].open = NONE;
	return window_done(g, s);
}

/* Whoever has no path yet begins one at t. */
static enum base_status start_actors(struct graph *g, uint64_t t, struct base_err *err)
{
	enum base_status s = graph_reserve_nodes(g, g->nr_actors, err);

	for (uint32_t i = 0; i < g->nr_actors && !s; i++) {
		struct actor *a = &g->actor[i];
		double *length = actor_length(g, a);

		if (!a->started || a->forgets || length[0] != NO_PATH)
			continue;
		a->tip = first_node(g, i, t, t);
		for (unsigned l = 0; l < g->lanes.nr_lanes; l++)
			length[l] = 0;
	}
	return s;
}

enum base_status graph_turn(struct graph *g, uint64_t time_ns, bool start_all,
	struct graph_part **ret, struct base_err *err)
{
	struct window *w = &g->window;
	uint64_t from_ns = g->since_ns;
	enum base_status s = come_to(g, &time_ns, err);

	*ret = NULL;
	BASE_ASSERT(!w->cut && !w->early);
	if (s)
		return window_done(g, s);
	close_statistics(g, time_ns);
	forget_ends(g);
	s = anchor_all(g, time_ns, err);
	if (!s)
		s = graph_part_make(g, from_ns, w->nr_before, ret, err);
	w->nr_before = w->nr_anchors;
	w->nr_anchors = w->nr_actor_anchors = w->nr_births = 0;
	if (!s && start_all)
		s = start_actors(g, time_ns, err);
	forget_statistics(g, time_ns);
	return window_done(g, s);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Where lane 0's path to this end comes from: a time, or a label. */
static uint64_t path_start(const struct graph *g, const struct end *e)
{
	uint32_t f = g->collector.bound[(size_t)e->bound * g->lanes.nr_tracks];

	while (g->collector.folds.fold[f].parent != NONE)
		f = g->collector.folds.fold[f].parent;
	return g->collector.folds.fold[f].start_ns;
}

static void move_end(struct graph *g, size_t end)
{
	const struct window *w = &g->window;
	struct end *e = &g->result.end[end];

	if (e->bound == NONE || g->collector.bound[(size_t)e->bound * g->lanes.nr_tracks] == NONE)
		return;

	uint64_t start = path_start(g, e);
	uint64_t i = window_label(0) - start; /* times give numbers beyond all anchors */

	if (i < w->nr_actor_anchors)
		i += e->time_ns < g->since_ns; /* it did nothing after the cut */
	if (i < w->nr_anchors && w->anchor[i].node != NONE) {
		*e = w->anchor[i];
		memcpy(g->result.end_length + end * g->lanes.stride,
			w->anchor_length + i * g->lanes.stride,
			g->lanes.stride * sizeof *g->result.end_length);
	} else if (start >= g->since_ns) {
		e->node = e->bound = NONE; /* it started after the window */
	}
}

void graph_window_finish(struct graph *g)
{
	const struct window *w = &g->window;

	if (!w->cut)
		return;
	for (size_t i = 0; i < g->result.nr_ends; i++)
		move_end(g, i);
	for (size_t i = 0; i < g->nr_slots; i++) {
		struct graph_state_totals *tot = &g->slot_totals[i];

		if (i < w->nr_totals)
			*tot = w->totals[i];
		else
			tot->total_ns = tot->waiting_ns = tot->visits = 0;
	}
	for (size_t i = 0; i < g->nr_queues; i++)
		g->queue[i].stats = i < w->nr_stats ? w->stats[i] : (struct graph_queue_stats){0};
}

void graph_window_fini(struct graph *g)
{
	base_free(g->window.anchor);
	base_free(g->window.anchor_length);
	base_free(g->window.birth);
	base_free(g->window.totals);
	base_free(g->window.stats);
}
