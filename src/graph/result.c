/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - the end of the path, its sums in each lane, its edges, and the
 * totals. */
#include "graph/priv.h"

#include <stdlib.h>

/* ---- the end --------------------------------------------------------------------------------- */

static bool has_path(const struct graph *g, uint32_t actor)
{
	return g->length[(size_t)actor * g->lanes.stride] != NO_PATH;
}

static uint32_t result_latest_actor(const struct graph *g)
{
	uint32_t best = GRAPH_ANY_ACTOR;

	for (uint32_t i = 0; i < g->nr_actors; i++) {
		if (!has_path(g, i))
			continue;
		if (best == GRAPH_ANY_ACTOR || g->actor[i].t_last > g->actor[best].t_last ||
			(g->actor[i].t_last == g->actor[best].t_last &&
				g->length[(size_t)i * g->lanes.stride] >
					g->length[(size_t)best * g->lanes.stride]))
			best = i;
	}
	return best;
}

enum base_status graph_end(
	struct graph *g, uint32_t end, uint32_t actor, uint64_t time_ns, struct base_err *err)
{
	struct actor *a = &g->actor[actor];
	size_t nr = (size_t)end + 1;
	enum base_status s = BASE_OK;

	BASE_ASSERT(actor < g->nr_actors && !g->finished);
	if (g->failed)
		return base_fail(err, g->failed, "the graph failed before");
	if (g->moment.pending)
		s = graph_flush(g, err);
	if (!s)
		s = graph_mem_need(g, &g->result.end, &g->result.ends_capacity, nr,
			sizeof *g->result.end, err);
	if (!s)
		s = graph_mem_need(g, &g->result.end_length, &g->result.end_length_capacity,
			nr * g->lanes.stride, sizeof *g->result.end_length, err);
	if (!s)
		s = graph_reserve_nodes(g, 1, err);
	if (s) {
		g->attention = true;
		return g->failed = s;
	}
	for (; g->result.nr_ends < nr; g->result.nr_ends++) {
		g->result.end[g->result.nr_ends] = (struct end){.node = NONE, .bound = NONE};
		for (unsigned l = 0; l < g->lanes.stride; l++)
			g->result.end_length[g->result.nr_ends * g->lanes.stride + l] = NO_PATH;
	}
	if (!has_path(g, actor))
		return BASE_OK;
	if (time_ns < a->t_last)
		time_ns = a->t_last;
	g->result.end[end].node =
		graph_path_now(g, a, time_ns, g->result.end_length + end * g->lanes.stride);
	g->result.end[end].time_ns = time_ns;
	return BASE_OK;
}

static enum base_status end_at_last_verb(struct graph *g, uint32_t actor, struct base_err *err)
{
	if (actor == GRAPH_ANY_ACTOR)
		actor = result_latest_actor(g);
	if (actor >= g->nr_actors || !has_path(g, actor))
		return BASE_OK;
	return graph_end(g, 0, actor, g->actor[actor].t_last, err);
}

enum base_status graph_finish(struct graph *g, uint32_t end_actor, struct base_err *err)
{
	enum base_status s = BASE_OK;

	BASE_ASSERT(!g->finished && !g->window.early);
	if (g->failed)
		return base_fail(err, g->failed, "the graph failed before");
	if (g->moment.pending)
		s = graph_flush(g, err);
	if (!s && end_actor != GRAPH_ENDS)
		s = end_at_last_verb(g, end_actor, err);
	g->finished = g->attention = true;
	/* Of all tips only the ends are of interest now: what remains is their paths. */
	if (!s && g->result.nr_ends)
		s = graph_collect(g, true, err);
	if (!s)
		graph_window_finish(g);
	return g->failed = s;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static int result_longest_first(const void *pa, const void *pb)
{
	const struct graph_path_state *a = pa, *b = pb;

	if (a->path_ns != b->path_ns)
		return a->path_ns > b->path_ns ? -1 : 1;
	if (a->actor != b->actor)
		return a->actor < b->actor ? -1 : 1;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return 0;
}

/* The end's folds, from last to first, summed by slot in g->collector.dense. */
static uint64_t sum_folds(struct graph *g, uint32_t f)
{
	const struct fold *fold;

	do {
		fold = &g->collector.folds.fold[f];
		for (uint32_t i = 0; i < fold->nr_sums; i++) {
			const struct sum *from = &g->collector.folds.sum[fold->first_sum + i];
			struct sum *to = &g->collector.dense[from->slot];

			to->path_ns += from->path_ns;
			to->unexplained_ns += from->unexplained_ns;
			to->latency_ns += from->latency_ns;
			to->visits += from->visits;
		}
		f = fold->parent;
	} while (f != NONE);
	return fold->start_ns;
}

/* Crossings are parts of their (actor, state); a link is charged to nobody. */
static void fold_crossings(struct graph *g)
{
	for (size_t i = 0; i < g->nr_slots; i++) {
		struct sum *from = &g->collector.dense[i],
			   *to = &g->collector.dense[g->slot[i].base];

		if (!g->slot[i].is_crossing)
			continue;
		if (!g->slot[i].link) {
			to->path_ns += from->path_ns;
			to->unexplained_ns += from->unexplained_ns;
			to->latency_ns += from->latency_ns;
			to->visits += from->visits;
		}
		*from = (struct sum){0};
	}
}

static enum base_status list_states(
	struct graph *g, unsigned track, struct graph_lane_result *r, struct base_err *err)
{
	struct graph_path_state *list = NULL;
	size_t nr = 0, capacity = 0;
	enum base_status s;

	for (size_t i = 0; i < g->nr_slots; i++)
		nr += g->collector.dense[i].visits != 0;
	s = graph_mem_resize(g, &list, &capacity, nr, sizeof *list, err);
	nr = 0;
	for (size_t i = 0; i < g->nr_slots; i++) {
		const struct graph_state_totals *t = &g->slot_totals[i];
		const struct sum *sum = &g->collector.dense[i];
		double factor = g->scale[(size_t)t->state * g->lanes.stride + track];

		if (sum->visits && !s)
			list[nr++] = (struct graph_path_state){
				.actor = t->actor,
				.state = t->state,
				.path_ns = (double)sum->path_ns * factor,
				.unexplained_ns = (double)sum->unexplained_ns * factor,
				.latency_ns = (double)sum->latency_ns * factor,
				.visits = sum->visits,
				.observed_ns = (double)sum->path_ns,
			};
		g->collector.dense[i] = (struct sum){0};
	}
	if (nr > 1)
		qsort(list, nr, sizeof *list, result_longest_first);
	r->state = list;
	r->nr_states = nr;
	return s;
}

static enum base_status make_lane(
	struct graph *g, uint32_t end, unsigned track, struct base_err *err)
{
	struct lane_cache *c = &g->result.end[end].lane[track];
	enum base_status s;

	c->result.length_ns = g->result.end_length[(size_t)end * g->lanes.stride + track];
	c->result.start_ns = sum_folds(g,
		g->collector.bound[(size_t)g->result.end[end].bound * g->lanes.nr_tracks + track]);
	c->result.end_ns = g->result.end[end].time_ns;
	c->result.found = true;
	if (g->crossings)
		fold_crossings(g);
	s = list_states(g, track, &c->result, err);
	c->ready = !s;
	return s;
}

enum base_status graph_lane_of(struct graph *g, uint32_t end, unsigned lane,
	struct graph_lane_result *ret, struct base_err *err)
{
	unsigned track = lane;
	enum base_status s = BASE_OK;
	struct end *e;

	BASE_ASSERT(g->finished);
	*ret = (struct graph_lane_result){0};
	if (lane == GRAPH_RUNNER_UP && g->runner_up)
		track = g->lanes.nr_lanes;
	else if (lane >= g->lanes.nr_lanes)
		return base_fail(err, BASE_ERR_NOTFOUND, "there is no scenario %u", lane);
	if (g->failed)
		return base_fail(err, g->failed, "the graph failed before");
	if (end >= g->result.nr_ends || g->result.end[end].bound == NONE ||
		g->collector.bound[(size_t)g->result.end[end].bound * g->lanes.nr_tracks + track] ==
			NONE)
		return BASE_OK;
	e = &g->result.end[end];
	if (!e->lane) {
		size_t capacity = 0;

		s = graph_mem_resize(
			g, &e->lane, &capacity, g->lanes.nr_tracks, sizeof *e->lane, err);
	}
	if (!s && !e->lane[track].ready)
		s = make_lane(g, end, track, err);
	if (!s)
		*ret = e->lane[track].result;
	return s;
}

enum base_status graph_lane(
	struct graph *g, unsigned lane, struct graph_lane_result *ret, struct base_err *err)
{
	return graph_lane_of(g, 0, lane, ret, err);
}

/* ---- crossings ------------------------------------------------------------------------------- */

static int most_visits_first(const void *pa, const void *pb)
{
	const struct graph_crossing *a = pa, *b = pb;

	if (a->visits != b->visits)
		return a->visits > b->visits ? -1 : 1;
	if (a->from_actor != b->from_actor)
		return a->from_actor < b->from_actor ? -1 : 1;
	if (a->to_actor != b->to_actor)
		return a->to_actor < b->to_actor ? -1 : 1;
	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	return a->space - b->space;
}

/* The sums in g->collector.dense, of crossings; their states do not matter here. */
static size_t list_crossings(struct graph *g, unsigned track, struct graph_crossing *list)
{
	size_t nr = 0;

	for (size_t i = 0; i < g->nr_slots; i++) {
		const struct slot *slot = &g->slot[i];
		struct sum *sum = &g->collector.dense[i];
		const struct graph_state_totals *to = &g->slot_totals[i];
		double factor = g->scale[(size_t)to->state * g->lanes.stride + track];

		if (slot->is_crossing && sum->visits)
			list[nr++] = (struct graph_crossing){
				.from_actor = slot->from_actor,
				.to_actor = to->actor,
				.queue = slot->queue,
				.space = slot->space,
				.visits = sum->visits,
				.latency_ns = (double)sum->path_ns * factor,
			};
		*sum = (struct sum){0};
	}
	return nr;
}

enum base_status graph_crossings_of(struct graph *g, uint32_t end, unsigned lane,
	const struct graph_crossing **ret, size_t *ret_nr, struct base_err *err)
{
	enum base_status s;
	struct lane_cache *c;
	struct graph_lane_result r;
	struct graph_crossing *list = NULL;
	size_t capacity = 0;

	*ret = NULL;
	*ret_nr = 0;
	if (!g->crossings)
		return base_fail(err, BASE_ERR_NOTFOUND, "crossings were not kept");
	s = graph_lane_of(g, end, lane, &r, err);
	if (s || !r.found)
		return s;
	c = &g->result.end[end].lane[lane];
	if (!c->crossing) {
		s = graph_mem_resize(g, &list, &capacity, g->nr_slots + 1, sizeof *list, err);
		if (s)
			return s;
		sum_folds(g,
			g->collector.bound[(size_t)g->result.end[end].bound * g->lanes.nr_tracks +
					   lane]);
		c->nr_crossings = list_crossings(g, lane, list);
		qsort(list, c->nr_crossings, sizeof *list, most_visits_first);
		c->crossing = list;
	}
	*ret = c->crossing;
	*ret_nr = c->nr_crossings;
	return BASE_OK;
}

/* ---- the path -------------------------------------------------------------------------------- */

static size_t count_steps(const struct graph *g, uint32_t last)
{
	size_t nr = 0;

	for (uint32_t i = last; i != NONE; i = g->collector.step[i].prev)
		nr += !g->collector.step[i].chain;
	return nr;
}

static void result_fill_path(struct graph *g, uint32_t last)
{
	size_t k = g->result.nr_path;

	for (uint32_t i = last; i != NONE; i = g->collector.step[i].prev) {
		const struct step *st = &g->collector.step[i];
		const struct step *from;

		if (st->chain)
			continue;
		from = &g->collector.step[st->prev];
		g->result.path[--k] = (struct graph_path_edge){
			.begin_ns = from->end_ns,
			.end_ns = st->end_ns,
			.actor = st->actor,
			.state = g->slot_totals[st->slot].state,
			.queue = st->queue,
			.from_actor = from->actor,
			.weight_ns = (double)st->weight,
		};
	}
}

enum base_status graph_path_of(struct graph *g, uint32_t end, const struct graph_path_edge **ret,
	size_t *ret_nr, struct base_err *err)
{
	enum base_status s;
	uint32_t last;
	size_t nr;

	BASE_ASSERT(g->finished);
	*ret = NULL;
	*ret_nr = 0;
	if (!g->keep_path)
		return base_fail(err, BASE_ERR_NOTFOUND, "the path was not kept (keep_path)");
	if (g->failed)
		return base_fail(err, g->failed, "the graph failed before");
	if (end >= g->result.nr_ends || g->result.end[end].bound == NONE)
		return BASE_OK;
	if (!g->result.path || g->result.path_end != end) {
		last = g->collector.bound_step[g->result.end[end].bound];
		nr = count_steps(g, last);
		s = graph_mem_need(g, &g->result.path, &g->result.path_capacity, nr,
			sizeof *g->result.path, err);
		if (s)
			return s;
		g->result.nr_path = nr;
		g->result.path_end = end;
		result_fill_path(g, last);
	}
	*ret = g->result.path;
	*ret_nr = g->result.nr_path;
	return BASE_OK;
}

enum base_status graph_path(
	struct graph *g, const struct graph_path_edge **ret, size_t *ret_nr, struct base_err *err)
{
	return graph_path_of(g, 0, ret, ret_nr, err);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static int by_ids(const void *pa, const void *pb)
{
	const struct graph_state_totals *a = pa, *b = pb;

	if (a->actor != b->actor)
		return a->actor < b->actor ? -1 : 1;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return 0;
}

enum base_status graph_totals(struct graph *g, const struct graph_state_totals **ret,
	size_t *ret_nr, struct base_err *err)
{
	BASE_ASSERT(g->finished);
	if (!g->result.totals && g->nr_slots) {
		enum base_status s = graph_mem_resize(g, &g->result.totals,
			&g->result.totals_capacity, g->nr_slots, sizeof *g->result.totals, err);

		if (s)
			return s;
		for (size_t i = 0; i < g->nr_slots; i++) {
			if (g->slot_totals[i].visits)
				g->result.totals[g->result.nr_totals++] = g->slot_totals[i];
		}
		qsort(g->result.totals, g->result.nr_totals, sizeof *g->result.totals, by_ids);
	}
	*ret = g->result.totals;
	*ret_nr = g->result.nr_totals;
	return BASE_OK;
}
