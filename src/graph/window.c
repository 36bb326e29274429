/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - the analysis of a part of the run, [from, to] (seed 000, section 5.1.3: fast-forwarding).
 *
 * graph_restart() at `from`: all that is known stays as it is (states, waits, units in queues, who made
 * them and when), but every path is 0 long there and begins at a node of its own. From then on an
 * edge weighs what of it lies after `from` (since(), in priv.h). All lane 0 paths have lost the same
 * length, so which way is the longest does not change: the window's path is the whole run's, clipped.
 *
 * graph_cut() at `to`: who the run's end will have depended on, nobody knows yet. So each actor's path
 * up to here is kept as an anchor, and the run goes on with a restart whose first nodes carry the
 * actor's number instead of a time. At the end the path leads back to one of them, and that actor's
 * anchor is the end of the window's path. What was still under way between two actors (put before,
 * taken after the cut) counts for the one who put it.
 */
#include "graph/priv.h"

/* The weight of an actor's first node after the cut. No time is that late. */
static uint64_t label(uint32_t actor)
{
	return WEIGHT_MAX - actor;
}

/* ---- restarting ------------------------------------------------------------------------------- */

static void zero_lengths(const struct graph *g, double *length)
{
	for (unsigned l = 0; l < g->nr_lanes; l++) {
		if (length[l] != NO_PATH)
			length[l] = 0;
	}
	for (unsigned l = g->nr_lanes; l < g->nr_tracks; l++)
		length[l] = NO_PATH;
}

static void restart_actor(struct graph *g, struct actor *a, uint64_t t, bool labelled)
{
	uint32_t id = g->next++;

	if (g->extra)
		g->extra[id] = (struct node_extra){.time_ns = t, .queue = NONE, .actor = a->id};
	g->node[id] = (struct node){
		.prev = NONE,
		.dep = NONE,
		.slot = NONE,
		.dep_slot = NONE,
		.weight = node_weight(KIND_START, labelled ? label(a->id) : t),
	};
	a->tip = id;
	zero_lengths(g, actor_length(g, a));
}

/* Whoever made it has a path, since it had one when it made it. */
static void restart_item(const struct graph *g, struct item *it)
{
	if (it->actor == NONE || it->length[0] == NO_PATH)
		return;
	it->node = g->actor[it->actor].tip;
	zero_lengths(g, it->length);
}

static void restart_ring(const struct graph *g, const struct ring *r)
{
	for (uint32_t i = 0; i < r->nr_items; i++)
		restart_item(g, ring_item(g, r, i));
}

static enum base_status restart_paths(
	struct graph *g, uint64_t t, bool labelled, struct base_err *err)
{
	enum base_status s = graph_reserve_nodes(g, g->nr_actors, err);

	if (s)
		return s;
	for (size_t i = 0; i < g->nr_actors; i++) {
		struct actor *a = &g->actor[i];

		if (actor_length(g, a)[0] != NO_PATH)
			restart_actor(g, a, t, labelled);
	}
	for (size_t i = 0; i < g->nr_queues; i++) {
		struct queue *q = &g->queue[i];

		restart_ring(g, &q->data);
		restart_ring(g, &q->space);
		if (q->last_take)
			restart_item(g, q->last_take);
		if (q->past)
			restart_ring(g, &q->past->taken);
	}
	g->since_ns = t;
	return BASE_OK;
}

/* Both: what is pending belongs before t, and t is now. */
static enum base_status come_to(struct graph *g, uint64_t *t, struct base_err *err)
{
	BASE_ASSERT(!g->finished);
	if (g->failed)
		return base_fail(err, g->failed, "the graph failed before");
	enum base_status s = g->pending ? graph_flush(g, err) : BASE_OK;

	if (*t < g->now)
		*t = g->now;
	if (*t > WEIGHT_MAX)
		*t = WEIGHT_MAX;
	g->now = *t;
	return s;
}

static enum base_status done(struct graph *g, enum base_status s)
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
		struct graph_state_totals *tot = &g->slot[i].totals;

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
	for (size_t i = 0; i < g->nr_ends; i++)
		g->end[i].node = g->end[i].bound = NONE;
}

enum base_status graph_restart(struct graph *g, uint64_t time_ns, struct base_err *err)
{
	enum base_status s = come_to(g, &time_ns, err);

	BASE_ASSERT(!g->window.nr_anchors);
	if (!s)
		s = restart_paths(g, time_ns, false, err);
	if (s)
		return done(g, s);
	forget_statistics(g, time_ns);
	forget_ends(g);
	g->window.early = false;
	return done(g, graph_collect(g, false, err));
}

/* ---- cutting ---------------------------------------------------------------------------------- */

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

		struct graph_state_totals *tot = &g->slot[a->slot].totals;

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
		w->totals[i] = g->slot[i].totals;
	for (size_t i = 0; i < g->nr_queues; i++)
		w->stats[i] = g->queue[i].stats;
	w->nr_totals = g->nr_slots;
	w->nr_stats = g->nr_queues;
	return BASE_OK;
}

static enum base_status drop_anchors(struct graph *g, uint64_t t, struct base_err *err)
{
	struct window *w = &g->window;
	size_t nr = 2 * g->nr_actors;
	enum base_status s = graph_reserve_nodes(g, g->nr_actors, err);

	if (!s)
		s = graph_mem_need(
			g, &w->anchor, &w->anchor_capacity, nr, sizeof *w->anchor, err);
	if (!s)
		s = graph_mem_need(g, &w->anchor_length, &w->anchor_length_capacity,
			nr * g->stride, sizeof *w->anchor_length, err);
	for (size_t i = 0; i < g->nr_actors && !s; i++) {
		const struct actor *a = &g->actor[i];
		const double *length = actor_length(g, a);
		double *row = w->anchor_length + 2 * i * g->stride;
		bool has_path = length[0] != NO_PATH;

		w->anchor[2 * i] = (struct end){.node = NONE, .bound = NONE, .time_ns = t};
		w->anchor[2 * i + 1] =
			(struct end){.node = a->tip, .bound = NONE, .time_ns = a->t_last};
		memcpy(row + g->stride, length, g->stride * sizeof *row);
		if (has_path)
			w->anchor[2 * i].node = graph_path_now(g, a, t, row);
		w->nr_anchors = 2 * (i + 1);
	}
	return s;
}

enum base_status graph_cut(struct graph *g, uint64_t time_ns, struct base_err *err)
{
	enum base_status s = come_to(g, &time_ns, err);

	BASE_ASSERT(!g->window.cut && !g->window.early);
	if (s)
		return done(g, s);
	close_statistics(g, time_ns);
	s = keep_statistics(g, err);
	if (!s)
		s = drop_anchors(g, time_ns, err);
	if (!s)
		s = restart_paths(g, time_ns, true, err);
	g->window.cut = true;
	return done(g, s ? s : graph_collect(g, false, err));
}

/* ---- the end ---------------------------------------------------------------------------------- */

/* Where lane 0's path to this end comes from: a time, or a label. */
static uint64_t path_start(const struct graph *g, const struct end *e)
{
	uint32_t f = g->bound[(size_t)e->bound * g->nr_tracks];

	while (g->folds.fold[f].parent != NONE)
		f = g->folds.fold[f].parent;
	return g->folds.fold[f].start_ns;
}

static void move_end(struct graph *g, size_t end)
{
	const struct window *w = &g->window;
	struct end *e = &g->end[end];

	if (e->bound == NONE || g->bound[(size_t)e->bound * g->nr_tracks] == NONE)
		return;

	uint64_t start = path_start(g, e);
	uint64_t i = 2 * (label(0) - start); /* times give numbers beyond all actors */

	i += e->time_ns < g->since_ns; /* it did nothing after the cut */
	if (i < w->nr_anchors && w->anchor[i].node != NONE) {
		*e = w->anchor[i];
		memcpy(g->end_length + end * g->stride, w->anchor_length + i * g->stride,
			g->stride * sizeof *g->end_length);
	} else if (start >= g->since_ns) {
		e->node = e->bound = NONE; /* it started after the window */
	}
}

void graph_window_finish(struct graph *g)
{
	const struct window *w = &g->window;

	if (!w->cut)
		return;
	for (size_t i = 0; i < g->nr_ends; i++)
		move_end(g, i);
	for (size_t i = 0; i < g->nr_slots; i++) {
		struct graph_state_totals *tot = &g->slot[i].totals;

		if (i < w->nr_totals)
			*tot = w->totals[i];
		else
			tot->total_ns = tot->waiting_ns = tot->visits = 0;
	}
	for (size_t i = 0; i < g->nr_queues; i++)
		g->queue[i].stats =
			i < w->nr_stats ? w->stats[i] : (struct graph_queue_stats){0};
}

void graph_window_fini(struct graph *g)
{
	base_free(g->window.anchor);
	base_free(g->window.anchor_length);
	base_free(g->window.totals);
	base_free(g->window.stats);
}
