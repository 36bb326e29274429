/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/priv.h"

#include <stdlib.h>

enum { DEFAULT_MAX_QUEUED = 1 << 20, LARGEST_MAX_QUEUED = 1 << 30 };
#define DEFAULT_MAX_MEMORY ((size_t)2 << 30)
#define MAX_FACTOR         1e12 /* lengths stay finite */

/* ---- memory ---------------------------------------------------------------------------------- */

enum base_status graph_mem_resize(struct graph *g, void *data, size_t *capacity, size_t want,
	size_t elem_size_bytes, struct base_err *err)
{
	size_t old_bytes = *capacity * elem_size_bytes, bytes;
	void *p;

	if (__builtin_mul_overflow(want, elem_size_bytes, &bytes) ||
		(bytes > old_bytes &&
			bytes - old_bytes > g->limit.max_memory_bytes - g->limit.memory_bytes))
		return base_fail(err, BASE_ERR_LIMIT,
			"the graph needs more than %zu MiB: analyse a window of "
			"the trace, fewer "
			"scenarios%s, or raise the memory limit",
			g->limit.max_memory_bytes >> 20,
			g->keep_path ? ", or sums without the path" : "");
	memcpy(&p, data, sizeof p);
	p = base_realloc(p, old_bytes, bytes);
	if (!p)
		return base_fail(
			err, BASE_ERR_NOMEM, "no memory for the graph (%zu {byte|bytes})", bytes);
	memcpy(data, &p, sizeof p);
	g->limit.memory_bytes = g->limit.memory_bytes - old_bytes + bytes;
	*capacity = want;
	return BASE_OK;
}

enum base_status graph_mem_need(struct graph *g, void *data, size_t *capacity, size_t need,
	size_t elem_size_bytes, struct base_err *err)
{
	size_t want = *capacity ? *capacity : 8;

	if (BASE_LIKELY(need <= *capacity))
		return BASE_OK;
	while (want < need)
		want *= 2;
	/* Doubling must not be what hits the limit. */
	if ((want - *capacity) * elem_size_bytes >
		g->limit.max_memory_bytes - g->limit.memory_bytes)
		want = need;
	return graph_mem_resize(g, data, capacity, want, elem_size_bytes, err);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

/* Products of factors do not depend on the order but for rounding: so that the order is one. */
static int graph_by_id(const void *pa, const void *pb)
{
	const struct lane_edit *a = pa, *b = pb;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->factor > b->factor) - (a->factor < b->factor);
}

static enum base_status copy_edits(
	struct graph *g, const struct graph_options *o, struct base_err *err)
{
	size_t edit_capacity = 0, nr = 0;
	enum base_status s;

	for (unsigned i = 0; i < o->nr_scenarios; i++)
		nr += o->scenario[i].nr_edits;
	if (!nr)
		return BASE_OK;
	s = graph_mem_resize(g, &g->lanes.edit, &edit_capacity, nr, sizeof *g->lanes.edit, err);
	if (s)
		return s;
	for (unsigned i = 0; i < o->nr_scenarios; i++) {
		for (size_t k = 0; k < o->scenario[i].nr_edits; k++) {
			const struct graph_edit *e = &o->scenario[i].edit[k];

			if (e->kind == GRAPH_EDIT_SCALE_STATE &&
				!(e->factor >= 0 && e->factor <= MAX_FACTOR))
				return base_fail(err, BASE_ERR_USAGE,
					"scenario %u: a factor must lie between 0 and %g", i + 1,
					MAX_FACTOR);
			if (e->kind == GRAPH_EDIT_RESIZE_QUEUE && o->runner_up)
				return base_fail(err, BASE_ERR_USAGE,
					"scenario %u: no runner-up beside queues of another size",
					i + 1);
			if (e->kind == GRAPH_EDIT_PROCESSORS)
				return base_fail(err, BASE_ERR_USAGE,
					"scenario %u: the path method cannot add processors; "
					"replay can",
					i + 1);
			g->has_elisions |= e->kind == GRAPH_EDIT_ELIDE_STATE;
			g->lanes.edit[g->lanes.nr_edits++] = (struct lane_edit){.id = e->id,
				.lane = i + 1,
				.kind = e->kind,
				.factor = e->factor,
				.units = e->units};
		}
	}
	qsort(g->lanes.edit, g->lanes.nr_edits, sizeof *g->lanes.edit, graph_by_id);
	return BASE_OK;
}

const struct lane_edit *graph_edits_of(const struct graph *g, uint32_t id, size_t *ret_nr)
{
	size_t low = BASE_PARTITION(i, g->lanes.nr_edits, g->lanes.edit[i].id < id);

	*ret_nr = BASE_PARTITION(i, g->lanes.nr_edits, g->lanes.edit[i].id <= id) - low;
	return g->lanes.edit ? g->lanes.edit + low : NULL;
}

static enum base_status init_rows(struct graph *g, struct base_err *err)
{
	size_t capacity = 0;
	enum base_status s = graph_mem_resize(
		g, &g->lanes.ones, &capacity, 4 * g->lanes.stride, sizeof *g->lanes.ones, err);

	if (s)
		return s;
	g->lanes.scratch = g->lanes.ones + g->lanes.stride;
	for (unsigned l = 0; l < g->lanes.stride; l++)
		g->lanes.ones[l] = 1;
	return BASE_OK;
}

enum base_status graph_new(
	const struct graph_options *opts, struct graph **ret, struct base_err *err)
{
	struct graph_options o = {0};
	enum base_status s;
	struct graph *g;

	*ret = NULL;
	if (opts)
		memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	if (o.nr_scenarios + 1 + (o.runner_up ? 2 : 0) > GRAPH_LANES_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "at most %d scenarios in one pass%s",
			GRAPH_LANES_MAX - 1 - (o.runner_up ? 2 : 0),
			o.runner_up ? " with the runner-up" : "");
	g = base_alloc(sizeof *g);
	if (!g)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a graph");
	g->limit.memory_bytes = sizeof *g;
	g->limit.max_memory_bytes = o.max_memory_bytes ? o.max_memory_bytes : DEFAULT_MAX_MEMORY;
	if (g->limit.max_memory_bytes < g->limit.memory_bytes)
		g->limit.max_memory_bytes = g->limit.memory_bytes;
	g->limit.max_queued = o.max_queued ? o.max_queued : DEFAULT_MAX_QUEUED;
	if (g->limit.max_queued > LARGEST_MAX_QUEUED)
		g->limit.max_queued = LARGEST_MAX_QUEUED;
	if (g->limit.max_queued < 2)
		g->limit.max_queued = 2;
	g->watch = o.watch;
	g->keep_path = o.keep_path;
	g->crossings = o.crossings;
	g->listening.listener = o.listener;
	g->window.early = o.restarts;
	g->runner_up = o.runner_up;
	g->lanes.nr_lanes = 1 + o.nr_scenarios;
	g->lanes.nr_tracks = g->lanes.nr_lanes + (o.runner_up ? 1 : 0);
	g->lanes.rank_bit = o.runner_up ? UINT32_C(1) << g->lanes.nr_tracks : 0;
	g->lanes.lane_bits = (uint32_t)((UINT64_C(1) << g->lanes.nr_tracks) - 1);
	g->lanes.stride = g->lanes.nr_tracks == 1
				  ? 1
				  : (g->lanes.nr_tracks + LANE_STEP - 1) / LANE_STEP * LANE_STEP;
	g->one_lane = g->lanes.stride == 1 && !g->listening.listener;
	g->pairs = g->one_lane && !g->keep_path;
	g->item_size = sizeof(struct item) + g->lanes.stride * sizeof(double);
	g->collector.min_nodes = ARENA_NODES;
	graph_lanes_choose(g, true);
	s = copy_edits(g, &o, err);
	if (!s)
		s = init_rows(g, err);
	if (s) {
		graph_free(g);
		return s;
	}
	*ret = g;
	return BASE_OK;
}

static void free_actor(struct actor *a)
{
	for (size_t i = 0; i < a->nr_pages; i++)
		base_free(a->page[i]);
	base_free(a->page);
	base_free(a->awake);
}

static void free_end(const struct graph *g, struct end *e)
{
	for (unsigned l = 0; e->lane && l < g->lanes.nr_tracks; l++) {
		base_free((void *)(uintptr_t)e->lane[l].result.state);
		base_free(e->lane[l].crossing);
	}
	base_free(e->lane);
}

struct graph *graph_free(struct graph *g)
{
	if (!g)
		return NULL;
	for (size_t i = 0; i < g->nr_actors; i++)
		free_actor(&g->actor[i]);
	for (size_t i = 0; i < g->nr_queues; i++)
		graph_queue_fini(g, &g->queue[i]);
	for (size_t i = 0; i < g->result.nr_ends; i++)
		free_end(g, &g->result.end[i]);
	graph_window_fini(g);
	base_free(g->result.end);
	base_free(g->result.end_length);
	base_free(g->actor);
	base_free(g->length);
	base_free(g->node);
	base_free(g->extra);
	base_free(g->scale);
	base_free(g->elides);
	base_free(g->queue);
	base_free(g->slot);
	base_free(g->slot_totals);
	base_free(g->moment.dep);
	base_free(g->moment.put);
	base_free(g->moment.link_length);
	base_free(g->lanes.ones);
	base_free(g->collector.mark);
	base_free(g->collector.folds.fold);
	base_free(g->collector.folds.sum);
	base_free(g->collector.next_folds.fold);
	base_free(g->collector.next_folds.sum);
	base_free(g->collector.bound);
	base_free(g->collector.next_bound);
	base_free(g->collector.tip);
	base_free(g->collector.ends);
	base_free(g->collector.segment);
	base_free(g->collector.segment_sum);
	base_free(g->collector.end_fold);
	base_free(g->collector.dense);
	base_free(g->collector.touched);
	base_free(g->collector.step);
	base_free(g->collector.bound_step);
	base_free(g->collector.next_bound_step);
	base_free(g->lanes.edit);
	base_free(g->result.path);
	base_free(g->result.totals);
	base_map_fini(&g->collector.crossing_slots);
	base_free(g->listening.told);
	base_free(g);
	return NULL;
}

void graph_set_arena_nodes(struct graph *g, uint32_t nr_nodes)
{
	g->collector.min_nodes = nr_nodes;
	if (g->collect_at > g->collector.nr_bounds + nr_nodes)
		g->collect_at = g->collector.nr_bounds + nr_nodes;
}

/* ---- declarations ---------------------------------------------------------------------------- */

static enum base_status id_left(size_t nr, const char *what, struct base_err *err)
{
	if (nr < NONE - 1)
		return BASE_OK;
	return base_fail(err, BASE_ERR_LIMIT, "more than %zu %s", nr, what);
}

enum base_status graph_add_actor(struct graph *g, uint32_t *ret_actor, struct base_err *err)
{
	enum base_status s = id_left(g->nr_actors, "actors", err);

	if (!s)
		s = graph_mem_need(g, &g->actor, &g->capacity.actor_capacity, g->nr_actors + 1,
			sizeof *g->actor, err);
	if (!s)
		s = graph_mem_need(g, &g->length, &g->capacity.length_capacity,
			(g->nr_actors + 1) * g->lanes.stride, sizeof *g->length, err);
	if (s)
		return s;

	struct actor *a = &g->actor[g->nr_actors];

	*a = (struct actor){.id = (uint32_t)g->nr_actors,
		.tip = NONE,
		.open = NONE,
		.slot = NONE,
		.wait_queue = NONE,
		.needless_queue = NONE};
	for (unsigned l = 0; l < g->lanes.stride; l++)
		g->length[g->nr_actors * g->lanes.stride + l] = NO_PATH;
	*ret_actor = (uint32_t)g->nr_actors++;
	return BASE_OK;
}

enum base_status graph_add_state(struct graph *g, uint32_t *ret_state, struct base_err *err)
{
	enum base_status s = id_left(g->nr_states, "states", err);

	if (!s)
		s = graph_mem_need(g, &g->scale, &g->capacity.scale_capacity,
			(g->nr_states + 1) * g->lanes.stride, sizeof *g->scale, err);
	if (!s && g->has_elisions)
		s = graph_mem_need(g, &g->elides, &g->capacity.elides_capacity, g->nr_states + 1,
			sizeof *g->elides, err);
	if (s)
		return s;
	if (g->elides)
		g->elides[g->nr_states] = 0;

	double *row = g->scale + g->nr_states * g->lanes.stride;

	for (unsigned l = 0; l < g->lanes.stride; l++)
		row[l] = 1;
	size_t nr;
	const struct lane_edit *edit = graph_edits_of(g, (uint32_t)g->nr_states, &nr);

	for (size_t i = 0; i < nr; i++) {
		if (edit[i].kind == GRAPH_EDIT_SCALE_STATE)
			row[edit[i].lane] *= edit[i].factor;
		if (edit[i].kind == GRAPH_EDIT_ELIDE_STATE && g->elides) {
			row[edit[i].lane] = 0;
			g->elides[g->nr_states] |= UINT32_C(1) << edit[i].lane;
		}
	}
	*ret_state = (uint32_t)g->nr_states++;
	return BASE_OK;
}

static void drop_lanes(const struct graph *g, struct queue *q, uint32_t id)
{
	size_t nr;
	const struct lane_edit *edit = graph_edits_of(g, id, &nr);

	for (size_t i = 0; i < nr; i++) {
		uint32_t bit = UINT32_C(1) << edit[i].lane;

		if (edit[i].kind == GRAPH_EDIT_IGNORE_QUEUE)
			q->drop_data |= bit;
		if (edit[i].kind == GRAPH_EDIT_IGNORE_QUEUE ||
			edit[i].kind == GRAPH_EDIT_UNBOUND_QUEUE)
			q->drop_space |= bit;
	}
}

enum base_status graph_add_queue(struct graph *g, const struct graph_queue_options *o,
	uint32_t *ret_queue, struct base_err *err)
{
	enum base_status s = id_left(g->nr_queues, "queues", err);

	BASE_ASSERT(o->latency_state < g->nr_states);
	if (!s)
		s = graph_mem_need(g, &g->queue, &g->capacity.queue_capacity, g->nr_queues + 1,
			sizeof *g->queue, err);
	if (s)
		return s;

	uint32_t id = (uint32_t)g->nr_queues;
	struct queue *q = &g->queue[id];
	uint64_t initial = o->initial == GRAPH_UNLIMITED ? 0 : o->initial;

	*q = (struct queue){
		.capacity = o->capacity,
		.latency_state = o->latency_state,
		.discipline = o->discipline,
		.exchangeable = o->exchangeable || o->discipline == GRAPH_POOL,
		.processor = o->processor,
		.unlimited = o->initial == GRAPH_UNLIMITED,
		.t_units = g->now,
	};
	drop_lanes(g, q, id);
	s = graph_past_init(g, id, err);
	if (initial && !s) {
		s = graph_ring_push(g, &q->data, g->now, initial, NULL, err);
		q->stats.max_units = initial;
	}
	if (!s && q->capacity > initial)
		s = graph_ring_push(g, &q->space, g->now, q->capacity - initial, NULL, err);
	else if (!s && q->capacity)
		q->space_debt = initial - q->capacity;
	if (s) {
		graph_queue_fini(g, q);
		return s;
	}
	if (g->watch)
		q->watch = graph_watch_queue(g->watch, id, o);
	g->nr_queues++;
	*ret_queue = id;
	return BASE_OK;
}

static void put_page(struct slot_page **table, size_t size, struct slot_page *page)
{
	size_t at = page->number & (size - 1);

	while (table[at])
		at = (at + 1) & (size - 1);
	table[at] = page;
}

/* Room for one more page, and an empty place behind the last. */
static enum base_status grow_pages(struct graph *g, struct actor *a, struct base_err *err)
{
	size_t size = a->nr_pages ? 2 * a->nr_pages : 4, none = 0;
	struct slot_page **table = NULL;
	enum base_status s;

	if ((a->nr_pages_used + 1) * 4 <= a->nr_pages * 3)
		return BASE_OK;
	s = graph_mem_resize(g, &table, &none, size, sizeof(struct slot_page *), err);
	if (s)
		return s;
	for (size_t i = 0; i < a->nr_pages; i++) {
		if (a->page[i])
			put_page(table, size, a->page[i]);
	}
	g->limit.memory_bytes -= a->nr_pages * sizeof(struct slot_page *);
	base_free(a->page);
	a->page = table;
	a->nr_pages = size;
	return BASE_OK;
}

static enum base_status graph_add_page(struct graph *g, struct actor *a, size_t number,
	struct slot_page **ret, struct base_err *err)
{
	size_t nr = 0;
	enum base_status s = grow_pages(g, a, err);

	if (!s)
		s = graph_mem_resize(g, ret, &nr, 1, sizeof(struct slot_page), err);
	if (s)
		return s;
	BASE_ASSUME(*ret);
	(*ret)->number = number;
	put_page(a->page, a->nr_pages, *ret);
	a->nr_pages_used++;
	return BASE_OK;
}

enum base_status graph_slot_append(struct graph *g, const struct actor *a, uint32_t state,
	const struct slot *slot, uint32_t *ret_slot, struct base_err *err)
{
	enum base_status s = graph_mem_need(
		g, &g->slot, &g->capacity.slot_capacity, g->nr_slots + 1, sizeof *g->slot, err);

	if (!s)
		s = graph_mem_need(g, &g->slot_totals, &g->capacity.slot_totals_capacity,
			g->nr_slots + 1, sizeof *g->slot_totals, err);
	if (s)
		return s;
	g->slot[g->nr_slots] = *slot;
	g->slot_totals[g->nr_slots] = (struct graph_state_totals){.actor = a->id, .state = state};
	*ret_slot = (uint32_t)g->nr_slots++;
	return BASE_OK;
}

/* An (actor, state) that is seen for the first time. */
enum base_status graph_slot_add(
	struct graph *g, struct actor *a, uint32_t state, uint32_t *ret_slot, struct base_err *err)
{
	struct slot_page *page = actor_page(a, state / SLOT_PAGE);
	enum base_status s = BASE_OK;

	BASE_ASSERT(state < g->nr_states);
	if (!page)
		s = graph_add_page(g, a, state / SLOT_PAGE, &page, err);
	if (!s)
		s = graph_slot_append(
			g, a, state, &(struct slot){.base = (uint32_t)g->nr_slots}, ret_slot, err);
	if (s)
		return s;
	page->slot[state % SLOT_PAGE] = *ret_slot + 1;
	return BASE_OK;
}

/* ---- small questions ------------------------------------------------------------------------- */

uint32_t graph_nr_actors(const struct graph *g)
{
	return (uint32_t)g->nr_actors;
}

uint32_t graph_nr_states(const struct graph *g)
{
	return (uint32_t)g->nr_states;
}

uint32_t graph_nr_queues(const struct graph *g)
{
	return (uint32_t)g->nr_queues;
}

size_t graph_memory_bytes(const struct graph *g)
{
	return g->limit.memory_bytes;
}
