/* SPDX-License-Identifier: Apache-2.0 */
/* part.c - what a turn leaves of a window: its anchors and folds, with no reference to the graph.
 */
#include "graph/part.h"
#include "graph/priv.h"

#include <stdlib.h>

struct part_sum {
	uint32_t actor, state;
	uint64_t path_ns, unexplained_ns, latency_ns, visits;
};

struct part_fold {
	uint32_t parent; /* NONE: from the start */
	uint32_t first_sum, nr_sums;
	uint64_t start_ns;
};

struct part_anchor {
	uint32_t fold; /* NONE: no path */
	uint64_t time_ns;
	double length_ns;
};

struct graph_part {
	uint64_t from_ns, to_ns;
	uint32_t nr_actors;
	size_t nr_before; /* anchors of the part before */
	struct part_anchor *anchor;
	size_t nr_anchors, anchor_capacity;
	struct part_fold *fold;
	size_t nr_folds, fold_capacity;
	struct part_sum *sum;
	size_t nr_sums, sum_capacity;
};

struct graph_part *graph_part_free(struct graph_part *p)
{
	if (!p)
		return NULL;
	base_free(p->anchor);
	base_free(p->fold);
	base_free(p->sum);
	base_free(p);
	return NULL;
}

/* ---- making one ------------------------------------------------------------------------------ */

static enum base_status copy_folds(struct graph_part *p, const struct graph *g)
{
	const struct folds *f = &g->collector.folds;
	enum base_status s = base_grow(&p->fold, &p->fold_capacity, f->nr_folds, sizeof *p->fold);

	if (!s)
		s = base_grow(&p->sum, &p->sum_capacity, f->nr_sums, sizeof *p->sum);
	if (s)
		return s;
	for (size_t i = 0; i < f->nr_folds; i++)
		p->fold[i] = (struct part_fold){
			.parent = f->fold[i].parent,
			.first_sum = f->fold[i].first_sum,
			.nr_sums = f->fold[i].nr_sums,
			.start_ns = f->fold[i].start_ns,
		};
	for (size_t i = 0; i < f->nr_sums; i++) {
		const struct graph_state_totals *of = &g->slot_totals[g->slot[f->sum[i].slot].base];

		p->sum[i] = (struct part_sum){
			.actor = of->actor,
			.state = of->state,
			.path_ns = f->sum[i].path_ns,
			.unexplained_ns = f->sum[i].unexplained_ns,
			.latency_ns = f->sum[i].latency_ns,
			.visits = f->sum[i].visits,
		};
	}
	p->nr_folds = f->nr_folds;
	p->nr_sums = f->nr_sums;
	return BASE_OK;
}

static enum base_status copy_anchors(struct graph_part *p, const struct graph *g)
{
	const struct window *w = &g->window;
	enum base_status s =
		base_grow(&p->anchor, &p->anchor_capacity, w->nr_anchors, sizeof *p->anchor);

	for (size_t i = 0; i < w->nr_anchors && !s; i++) {
		const struct end *e = &w->anchor[i];

		p->anchor[i] = (struct part_anchor){
			.fold = e->bound == NONE
					? NONE
					: g->collector.bound[(size_t)e->bound * g->lanes.nr_tracks],
			.time_ns = e->time_ns,
			.length_ns = w->anchor_length[i * g->lanes.stride],
		};
	}
	p->nr_anchors = w->nr_anchors;
	return s;
}

enum base_status graph_part_make(struct graph *g, uint64_t from_ns, size_t nr_before,
	struct graph_part **ret, struct base_err *err)
{
	struct graph_part *p = base_alloc(sizeof *p);
	enum base_status s = p ? BASE_OK : BASE_ERR_NOMEM;

	*ret = NULL;
	if (!s)
		s = copy_folds(p, g);
	if (!s)
		s = copy_anchors(p, g);
	if (s) {
		graph_part_free(p);
		return base_fail(err, s, "no memory for one more window");
	}
	p->from_ns = from_ns;
	p->to_ns = g->now;
	p->nr_actors = (uint32_t)(g->window.nr_actor_anchors / 2);
	p->nr_before = nr_before;
	*ret = p;
	return BASE_OK;
}

/* ---- queries --------------------------------------------------------------------------------- */

uint64_t graph_part_from_ns(const struct graph_part *p)
{
	return p->from_ns;
}

uint64_t graph_part_to_ns(const struct graph_part *p)
{
	return p->to_ns;
}

uint32_t graph_part_nr_actors(const struct graph_part *p)
{
	return p->nr_actors;
}

size_t graph_part_memory_bytes(const struct graph_part *p)
{
	return sizeof *p + p->anchor_capacity * sizeof *p->anchor +
	       p->fold_capacity * sizeof *p->fold + p->sum_capacity * sizeof *p->sum;
}

static uint32_t anchor_or_none(const struct graph_part *p, size_t i)
{
	return i < p->nr_anchors && p->anchor[i].fold != NONE ? (uint32_t)i : GRAPH_PART_NONE;
}

uint32_t graph_part_last(const struct graph_part *p, uint32_t actor, uint64_t *ret_time_ns)
{
	*ret_time_ns = 0;
	if (actor >= p->nr_actors)
		return GRAPH_PART_NONE;
	*ret_time_ns = p->anchor[2 * (size_t)actor + 1].time_ns;
	return anchor_or_none(p, 2 * (size_t)actor + 1);
}

uint32_t graph_part_before(const struct graph_part *p, uint32_t anchor)
{
	BASE_ASSERT(anchor < p->nr_anchors && p->anchor[anchor].fold != NONE);

	uint32_t f = p->anchor[anchor].fold;

	while (p->fold[f].parent != NONE)
		f = p->fold[f].parent;

	uint64_t i = WEIGHT_MAX - p->fold[f].start_ns; /* times give numbers beyond all anchors */

	return i < p->nr_before ? (uint32_t)i : GRAPH_PART_NONE;
}

static int part_longest_first(const void *pa, const void *pb)
{
	const struct graph_path_state *a = pa, *b = pb;

	if (a->path_ns != b->path_ns)
		return a->path_ns > b->path_ns ? -1 : 1;
	if (a->actor != b->actor)
		return a->actor < b->actor ? -1 : 1;
	return a->state < b->state ? -1 : a->state > b->state;
}

static int path_by_ids(const void *pa, const void *pb)
{
	const struct graph_path_state *a = pa, *b = pb;

	if (a->actor != b->actor)
		return a->actor < b->actor ? -1 : 1;
	return a->state < b->state ? -1 : a->state > b->state;
}

/* Neighbours of the same (actor, state) become one. */
static size_t merge_same(struct graph_path_state *list, size_t nr)
{
	size_t to = 0;

	for (size_t i = 0; i < nr; i++) {
		struct graph_path_state *last = to ? &list[to - 1] : NULL;

		if (!last || last->actor != list[i].actor || last->state != list[i].state) {
			list[to++] = list[i];
			continue;
		}
		last->path_ns += list[i].path_ns;
		last->observed_ns += list[i].observed_ns;
		last->unexplained_ns += list[i].unexplained_ns;
		last->latency_ns += list[i].latency_ns;
		last->visits += list[i].visits;
	}
	return to;
}

/* Its share of a run, of which `ours` is after the time asked for. */
static struct graph_path_state clipped(const struct part_sum *sum, double ours)
{
	double path_ns = (double)sum->path_ns * ours;

	return (struct graph_path_state){
		.actor = sum->actor,
		.state = sum->state,
		.path_ns = path_ns,
		.unexplained_ns = (double)sum->unexplained_ns * ours,
		.latency_ns = (double)sum->latency_ns * ours,
		.visits = ours < 1 ? (uint64_t)((double)sum->visits * ours) : sum->visits,
		.observed_ns = path_ns,
	};
}

static double run_length_ns(const struct graph_part *p, uint32_t fold)
{
	double length_ns = 0;

	for (uint32_t i = 0; i < p->fold[fold].nr_sums; i++)
		length_ns += (double)p->sum[p->fold[fold].first_sum + i].path_ns;
	return length_ns;
}

/* A path is as long as the time that it takes (conservation), so its last `left_ns` nanoseconds
 * are what comes after a time. */
static enum base_status collect_runs(const struct graph_part *p, uint32_t fold, double left_ns,
	struct graph_path_state **list, size_t *nr)
{
	enum base_status s = BASE_OK;
	size_t capacity = 0;

	for (uint32_t f = fold; f != NONE && left_ns > 0 && !s; f = p->fold[f].parent) {
		double run_ns = run_length_ns(p, f), ours = run_ns > left_ns ? left_ns / run_ns : 1;

		s = base_grow(list, &capacity, *nr + p->fold[f].nr_sums, sizeof **list);
		for (uint32_t i = 0; i < p->fold[f].nr_sums && !s; i++)
			(*list)[(*nr)++] = clipped(&p->sum[p->fold[f].first_sum + i], ours);
		left_ns -= run_ns;
	}
	return s;
}

enum base_status graph_part_path(const struct graph_part *p, uint32_t anchor, uint64_t since_ns,
	struct graph_path_state **ret, size_t *ret_nr, double *ret_length_ns, struct base_err *err)
{
	BASE_ASSERT(anchor < p->nr_anchors && p->anchor[anchor].fold != NONE);

	const struct part_anchor *to = &p->anchor[anchor];
	double length_ns = to->length_ns;
	double left_ns = to->time_ns > since_ns ? (double)(to->time_ns - since_ns) : 0;
	struct graph_path_state *list = NULL;
	size_t nr = 0;

	if (left_ns < length_ns)
		length_ns = left_ns;
	*ret = NULL;
	*ret_nr = 0;
	*ret_length_ns = length_ns;
	enum base_status s = collect_runs(
		p, to->fold, length_ns < to->length_ns ? length_ns : INFINITY, &list, &nr);

	if (s) {
		base_free(list);
		return base_fail(err, s, "no memory for a window's path");
	}
	if (nr) {
		qsort(list, nr, sizeof *list, path_by_ids);
		nr = merge_same(list, nr);
		qsort(list, nr, sizeof *list, part_longest_first);
	}
	*ret = list;
	*ret_nr = nr;
	return BASE_OK;
}
