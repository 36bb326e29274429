/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moment.c - closes an actor's edge at a moment: which dependences count, what
 * the wait weighs, and which way the longest path comes in every lane (seed
 * 000, section 5.1.4).
 */
#include "graph/priv.h"

#include <stdlib.h>

/* What this moment's edges weigh. */
struct weighing {
	enum kind kind;
	uint64_t own_ns, dep_ns;
	bool dep_wins_ties;
	uint32_t zero;   /* lanes in which neither weighs anything */
	uint32_t elided; /* ... and in which there is no dependence */
	uint32_t slept;  /* found by moment_merge(): lanes that took some dependence */
};

/* ---- edges without a dependence -------------------------------------------------------------- */

/* The factors of a state, with zeros in the lanes in which the wait did not
 * happen. */
static const double *scale_row(struct graph *g, uint32_t state, uint32_t zero)
{
	const double *row = g->scale + (size_t)state * g->lanes.stride;

	if (BASE_LIKELY(!zero))
		return row;
	for (unsigned l = 0; l < g->lanes.stride; l++)
		g->lanes.scratch[l] = l < g->lanes.nr_tracks && (zero >> l & 1) ? 0 : row[l];
	return g->lanes.scratch;
}

static inline void lengthen(
	struct graph *g, double *length, uint32_t state, uint64_t w, uint32_t zero)
{
	if (g->lanes.stride == 1)
		length[0] += (double)w;
	else
		g->lanes.lane_add(length, scale_row(g, state, zero), (double)w, g->lanes.stride);
}

/* Lanes in which a wait of that kind on that queue does not happen. */
static inline uint32_t dropped(const struct graph *g, uint32_t queue, bool space)
{
	return space ? g->queue[queue].drop_space : g->queue[queue].drop_data;
}

/*
 * Lanes without the actor's present wait. An actor that never slept needed no other processor after
 * it. (An actor without a path does not wait: it has nothing to do.)
 */
static uint32_t elided(struct graph *g, const struct actor *a)
{
	uint32_t lanes = 0;

	if (BASE_LIKELY(g->lanes.stride == 1) || !a->wait || actor_length(g, a)[0] == NO_PATH)
		return 0;
	if (g->elides)
		lanes = g->elides[a->state];
	if (a->wait == WAIT_DATA && g->queue[a->wait_queue].processor)
		lanes |= a->elided;
	return lanes;
}

/* The moment at t has come, `lanes` without the wait before it. */
static void moment_end_elision(struct graph *g, struct actor *a, uint32_t lanes, uint64_t t)
{
	if ((a->wait == WAIT_DATA || a->wait == WAIT_SPACE) && g->elides && g->elides[a->state]) {
		a->needless = lanes & g->elides[a->state];
		a->needless_queue = a->wait_queue;
		a->needless_space = a->wait == WAIT_SPACE;
	}
	if (a->wait || t > a->t_last)
		a->elided = lanes;
}

/* An edge without dependence, from the actor's tip. `explained`: needs none,
 * wait or not. */
static BASE_INLINE void own_edge(struct graph *g, const struct actor *a, uint64_t t, bool explained,
	double *length, uint32_t *tip)
{
	uint64_t w = since(g, t, a->t_last);
	uint32_t prev = *tip, zero = 0;
	struct node *n = add_node(g, a, t, NONE, tip);

	if (a->wait == WAIT_DATA || a->wait == WAIT_SPACE)
		zero = dropped(g, a->wait_queue, a->wait == WAIT_SPACE);
	zero |= elided(g, a);
	lengthen(g, length, a->state, w, zero);
	n->prev = prev;
	n->dep = NONE;
	n->took_dep = 0;
	n->zero = zero;
	n->slot = a->slot;
	n->dep_slot = NONE;
	n->weight = node_weight(a->wait && !explained ? KIND_UNEXPLAINED : KIND_RUN, w);
}

void graph_own_edge(struct graph *g, const struct actor *a, uint64_t t, bool explained,
	double *length, uint32_t *tip)
{
	own_edge(g, a, t, explained, length, tip);
}

/* ---- links ----------------------------------------------------------------------------------- */

uint32_t graph_path_now(struct graph *g, struct actor *a, uint64_t t, double *row)
{
	uint32_t tip = a->tip;

	a->open = NONE;
	memcpy(row, actor_length(g, a), g->lanes.stride * sizeof *row);
	if (t > a->t_last) /* a node that the actor itself does not pass */
		own_edge(g, a, t, false, row, &tip);
	return tip;
}

enum base_status graph_link_dep(
	struct graph *g, struct actor *from, uint64_t t, struct base_err *err)
{
	enum base_status s;
	uint32_t tip;

	if (actor_length(g, from)[0] == NO_PATH)
		return BASE_OK;
	s = graph_mem_need(g, &g->moment.dep, &g->moment.dep_capacity, g->moment.nr_deps + 1,
		sizeof *g->moment.dep, err);
	if (!s)
		s = graph_mem_need(g, &g->moment.link_length, &g->moment.link_capacity,
			(g->moment.nr_links + 1) * g->lanes.stride, sizeof *g->moment.link_length,
			err);
	if (!s)
		s = graph_reserve_nodes(g, 1, err);
	if (s)
		return s;
	tip = graph_path_now(
		g, from, t, g->moment.link_length + g->moment.nr_links * g->lanes.stride);
	g->moment.dep[g->moment.nr_deps] = (struct dep){
		.available_ns = t,
		.link_row = (uint32_t)g->moment.nr_links++,
		.node = tip,
		.queue = NONE,
		.actor = from->id,
		.order = g->moment.dep_order++,
		.mark = from->mark,
		.link = true,
	};
	g->moment.nr_deps++;
	return BASE_OK;
}

/* ---- which dependences count ----------------------------------------------------------------- */

/* Later available; at the same time, later given. */
static bool is_later(const struct dep *a, const struct dep *b)
{
	if (a->available_ns != b->available_ns)
		return a->available_ns > b->available_ns;
	return a->order > b->order;
}

/* An optional one counts only when it became available later than all others.
 */
static size_t drop_optional(struct dep *dep, size_t nr_deps)
{
	size_t best = SIZE_MAX, nr = 0;
	uint64_t latest = 0;
	bool any = false;

	for (size_t i = 0; i < nr_deps; i++) {
		const struct dep *d = &dep[i];

		if (!d->optional) {
			any = true;
			latest = d->available_ns > latest ? d->available_ns : latest;
		} else if (best == SIZE_MAX || is_later(d, &dep[best])) {
			best = i;
		}
	}
	if (best != SIZE_MAX && any && dep[best].available_ns <= latest)
		best = SIZE_MAX;
	for (size_t i = 0; i < nr_deps; i++) {
		if (!dep[i].optional || i == best)
			dep[nr++] = dep[i];
	}
	return nr;
}

static int earlier_first(const void *pa, const void *pb)
{
	return is_later(pa, pb) ? 1 : -1;
}

static int later_first(const void *pa, const void *pb)
{
	const struct dep *a = pa, *b = pb;

	if (a->link != b->link)
		return a->link ? -1 : 1;
	return is_later(a, b) ? -1 : 1;
}

/* The one that became available last, of those that there were in the run itself. */
static inline const struct dep *latest_dep(const struct dep *dep, size_t nr_deps)
{
	const struct dep *latest = &dep[0];

	for (size_t i = 1; i < nr_deps; i++) {
		if (dep[i].drop & 1)
			continue;
		if (latest->drop & 1 || is_later(&dep[i], latest))
			latest = &dep[i];
	}
	return latest;
}

static bool has_link(const struct dep *dep, size_t nr_deps)
{
	for (size_t i = 0; i < nr_deps; i++) {
		if (dep[i].link)
			return true;
	}
	return false;
}

/* ---- what they weigh ------------------------------------------------------------------------- */

static inline void count_wait(struct graph *g, uint32_t queue, bool space, uint64_t w, bool count)
{
	struct graph_queue_stats *st = &g->queue[queue].stats;

	if (BASE_UNLIKELY(g->queue[queue].watch != NULL))
		graph_watch_waited(g->queue[queue].watch, space, w);
	if (space) {
		st->wait_space_ns += w;
		st->nr_waits_space += count;
	} else {
		st->wait_data_ns += w;
		st->nr_waits_data += count;
	}
}

/* A wait on no known queue was on the one that ended it. */
static uint32_t wait_ended(
	struct graph *g, const struct actor *a, uint64_t w, const struct dep *latest)
{
	if (a->wait == WAIT_UNKNOWN) {
		if (!latest || latest->link)
			return 0;
		count_wait(g, latest->queue, latest->space, w, true);
		return dropped(g, latest->queue, latest->space);
	}
	count_wait(g, a->wait_queue, a->wait == WAIT_SPACE, w, false);
	return dropped(g, a->wait_queue, a->wait == WAIT_SPACE);
}

static inline struct weighing moment_weigh(
	struct graph *g, const struct actor *a, uint64_t t, const struct dep *latest, bool pathless)
{
	uint64_t w = since(g, t, a->t_last), latency = since(g, t, latest->available_ns);
	bool explained = a->wait && latest->available_ns > a->t_last;
	uint32_t none = elided(g, a);
	uint32_t zero = none | (a->wait ? wait_ended(g, a, w, latest) : 0);

	if (explained && !latest->link) {
		struct queue *q = &g->queue[latest->queue];

		q->stats.nr_waits_room += latest->space;
		q->stats.nr_latencies++;
		q->stats.latency_ns += latency;
		if (BASE_UNLIKELY(q->watch != NULL))
			graph_watch_late(q->watch, latency);
	}
	/* An actor without a path has been waiting for one since ever. */
	if (explained || pathless)
		return (struct weighing){
			.kind = KIND_EXPLAINED,
			.dep_ns = latency,
			.dep_wins_ties = true,
			.zero = zero,
			.elided = none,
		};
	if (a->wait)
		return (struct weighing){.kind = KIND_NEEDLESS,
			.own_ns = w,
			.dep_ns = w,
			.zero = zero,
			.elided = none};
	return (struct weighing){.kind = KIND_RUN, .own_ns = w};
}

/* ---- the longest path ------------------------------------------------------------------------ */

/* The lanes in which something is dropped or forced: one by one. */
static uint32_t merge_with_drops(const struct graph *g, double *length, const double *scale,
	double w, const double *dep, const double *dep_scale, double dep_w,
	const struct weighing *wg, uint32_t drop, bool forced)
{
	uint32_t took = 0;

	for (unsigned l = 0; l < g->lanes.nr_tracks; l++) {
		bool zero = wg->zero >> l & 1;
		double own = zero ? length[l] : length[l] + w * scale[l];
		double other = zero ? dep[l] : dep[l] + dep_w * dep_scale[l];
		bool dep_wins = other > own || (wg->dep_wins_ties && other == own);

		if (forced)
			dep_wins = other != NO_PATH;
		if (drop >> l & 1)
			dep_wins = false;
		took |= (uint32_t)dep_wins << l;
		length[l] = dep_wins ? other : own;
	}
	return took;
}

/* The second longest of lane 0: the better of the other way's best and this
 * way's second. */
static uint32_t moment_runner_up(const struct graph *g, double *length, double own1, double own2,
	const double *dep, double dep_w, uint32_t took)
{
	unsigned r = g->lanes.nr_lanes;
	uint32_t bit = UINT32_C(1) << r;
	double dep1 = dep[0] + dep_w, dep2 = dep[r] + dep_w;

	took &= ~(bit | g->lanes.rank_bit);
	if (took & 1) {
		length[r] = own1 >= dep2 ? own1 : dep2;
		return took | (own1 >= dep2 ? g->lanes.rank_bit : bit);
	}
	length[r] = dep1 >= own2 ? dep1 : own2;
	return took | (dep1 >= own2 ? bit | g->lanes.rank_bit : 0);
}

/* What the time from the dependence to now is charged to. */
static inline uint32_t moment_latency_state(
	const struct graph *g, const struct actor *a, const struct dep *d, uint64_t t)
{
	if (BASE_UNLIKELY(graph_came_late(a->came_ns, d->available_ns, t)))
		return a->came_state;
	return g->queue[d->queue].latency_state;
}

/* One dependence against what the path is so far; `tip` moves on to the new
 * node. */
static inline enum base_status moment_merge(struct graph *g, struct actor *a, uint64_t t,
	const struct dep *d, struct weighing *wg, bool first, struct base_err *err)
{
	double *length = actor_length(g, a);
	const double *dep = dep_length(g, d);
	uint32_t dep_state =
		d->link || wg->kind == KIND_NEEDLESS ? a->state : moment_latency_state(g, a, d, t);
	bool forced = d->link && first; /* the own edge does not count */
	double own_w = first ? (double)wg->own_ns : 0, dep_w = (double)wg->dep_ns;
	uint32_t took, prev, dep_slot = NONE;
	struct node *n;
	enum base_status s = BASE_OK;

	if (g->lanes.stride == 1) {
		double own = length[0] + own_w, other = dep[0] + dep_w;

		took = forced || other > own || (wg->dep_wins_ties && other == own);
		length[0] = took ? other : own;
	} else {
		const double *scale =
			first ? g->scale + (size_t)a->state * g->lanes.stride : g->lanes.ones;
		const double *dep_scale = g->scale + (size_t)dep_state * g->lanes.stride;
		uint32_t drop =
			wg->elided | (d->link ? 0 : d->drop | dropped(g, d->queue, d->space));
		double own1 = forced ? NO_PATH : length[0] + own_w;
		double own2 = forced ? NO_PATH : length[g->lanes.nr_tracks - 1] + own_w;

		if (BASE_UNLIKELY(a->needless && !a->wait) && d->queue == a->needless_queue &&
			d->space == a->needless_space)
			drop |= a->needless;

		if (BASE_LIKELY(!(wg->zero | drop) && !forced))
			took = g->lanes.lane_merge(length, scale, own_w, dep, dep_scale, dep_w,
				g->lanes.stride, wg->dep_wins_ties);
		else
			took = merge_with_drops(
				g, length, scale, own_w, dep, dep_scale, dep_w, wg, drop, forced);
		if (g->runner_up)
			took = moment_runner_up(g, length, own1, own2, dep, dep_w, took);
	}
	took &= g->lanes.lane_bits | g->lanes.rank_bit;
	wg->slept |= took;
	if (!(took & g->lanes.lane_bits) && !first && !(g->lanes.rank_bit & took))
		return BASE_OK;
	if (g->crossings && took & g->lanes.lane_bits)
		s = graph_crossing_slot(g, a, dep_state, d, &dep_slot, err);
	else if (d->link)
		dep_slot = NONE;
	else if (wg->kind == KIND_NEEDLESS)
		dep_slot = a->slot;
	else if (took & g->lanes.lane_bits)
		s = actor_slot(g, a, dep_state, &dep_slot, err);
	if (s)
		return s;
	prev = a->tip;
	n = add_node(g, a, t, d->queue, &a->tip);
	n->prev = (took & g->lanes.lane_bits) == g->lanes.lane_bits ? NONE : prev;
	n->dep = took & g->lanes.lane_bits ? d->node : NONE;
	n->took_dep = took;
	n->zero = wg->zero;
	n->slot = a->slot;
	n->dep_slot = dep_slot;
	n->weight = node_weight(first ? wg->kind : KIND_CHAIN,
		first && wg->kind == KIND_RUN ? wg->own_ns : wg->dep_ns);
	return BASE_OK;
}

/* merge_all() for the usual case: one lane, one dependence, no link. */
static inline enum base_status merge_single(struct graph *g, struct actor *a, uint64_t t,
	const struct dep *d, double *length, struct base_err *err)
{
	struct weighing wg = moment_weigh(g, a, t, d, *length == NO_PATH);
	double own = *length + (double)wg.own_ns, other = *dep_length(g, d) + (double)wg.dep_ns;
	bool took = other > own || (wg.dep_wins_ties && other == own);
	uint32_t dep_slot = wg.kind == KIND_NEEDLESS ? a->slot : NONE, prev = a->tip;
	enum base_status s = BASE_OK;
	struct node *n;

	if (took && g->crossings)
		s = graph_crossing_slot(g, a,
			wg.kind == KIND_NEEDLESS ? a->state : moment_latency_state(g, a, d, t), d,
			&dep_slot, err);
	else if (took && wg.kind != KIND_NEEDLESS)
		s = actor_slot(g, a, moment_latency_state(g, a, d, t), &dep_slot, err);
	n = add_node(g, a, t, d->queue, &a->tip);
	n->prev = took ? NONE : prev;
	n->dep = took ? d->node : NONE;
	n->took_dep = took;
	n->zero = 0;
	n->slot = a->slot;
	n->dep_slot = dep_slot;
	n->weight = node_weight(wg.kind, wg.kind == KIND_RUN ? wg.own_ns : wg.dep_ns);
	*length = took ? other : own;
	return s;
}

/* Whatever ended the wait would have been there sooner had the actor come sooner. */
static bool all_by_chance(
	struct graph *g, const struct actor *a, const struct dep *dep, size_t nr_deps)
{
	bool all = true;

	for (size_t i = 0; i < nr_deps; i++) {
		bool token = !dep[i].link && !dep[i].space && g->queue[dep[i].queue].exchangeable;

		all &= graph_awake_met_tick(g, a, &dep[i]) || token;
	}
	return all;
}

/*
 * The lanes in which the wait would be longer than it was: they go on from `tip` and wait for w, in
 * the state of the wait. (Lane 0 is as long as both ways.)
 */
static void cap_wait(struct graph *g, struct actor *a, uint64_t t, uint64_t w, uint32_t tip,
	const double *before, uint32_t queue, uint32_t zero)
{
	double *length = actor_length(g, a);
	const double *scale = g->scale + (size_t)a->state * g->lanes.stride;
	uint32_t capped = 0;

	for (unsigned l = 1; l < g->lanes.nr_lanes; l++) {
		double most = before[l] + (double)w * scale[l];

		if (length[l] <= most || before[l] == NO_PATH || zero >> l & 1)
			continue;
		length[l] = most;
		capped |= UINT32_C(1) << l;
	}
	if (!capped)
		return;

	uint32_t prev = a->tip;
	struct node *n = add_node(g, a, t, queue, &a->tip);

	*n = (struct node){
		.prev = prev,
		.dep = tip,
		.took_dep = capped,
		.slot = a->slot,
		.dep_slot = a->slot,
		.weight = node_weight(KIND_CHAIN, w),
	};
}

/* Lanes in which the actor has a path and took no dependence: nothing came later than itself. */
static uint32_t stayed_awake(struct graph *g, const struct actor *a, uint32_t slept)
{
	uint32_t lanes = ~slept & ((UINT32_C(2) << (g->lanes.nr_lanes - 1)) -
					  2); /* (the runner-up is lane 0's) */
	const double *length = actor_length(g, a);

	for (uint32_t left = lanes; left; left &= left - 1) {
		if (length[__builtin_ctz(left)] == NO_PATH)
			lanes &= ~(left & -left);
	}
	return lanes;
}

/* The same dependences for the path beside the actor's own (awake.c). */
static enum base_status merge_beside(struct graph *g, struct actor *a, uint64_t t,
	const struct dep *dep, size_t nr_deps, const struct weighing *wg, struct base_err *err)
{
	double *length = actor_length(g, a), *kept = g->lanes.scratch + g->lanes.stride;
	struct item *beside = &a->awake->path;
	struct weighing same = *wg;
	uint32_t tip = a->tip;
	enum base_status s = BASE_OK;

	memcpy(kept, length, g->lanes.stride * sizeof *kept);
	memcpy(length, beside->length, g->lanes.stride * sizeof *length);
	a->tip = beside->node;
	for (size_t i = 0; i < nr_deps && !s; i++)
		s = moment_merge(g, a, t, &dep[i], &same, i == 0, err);
	beside->node = a->tip;
	memcpy(beside->length, length, g->lanes.stride * sizeof *length);
	memcpy(length, kept, g->lanes.stride * sizeof *kept);
	a->tip = tip;
	return s;
}

/* *awake: more lanes in which the wait did not happen. */
static enum base_status merge_all(struct graph *g, struct actor *a, uint64_t t, bool pathless,
	struct dep *dep, size_t nr_deps, uint32_t *awake, struct base_err *err)
{
	struct weighing wg = moment_weigh(g, a, t, latest_dep(dep, nr_deps), pathless);
	bool linked = has_link(dep, nr_deps);
	enum base_status s = BASE_OK;

	/*
	 * The path must follow a link: it comes first and takes the own edge's place.
	 * Of the others the one that wins ties comes where it does.
	 */
	if (linked) {
		wg.dep_wins_ties = false;
		a->epoch++;
	}
	if (nr_deps > 1)
		qsort(dep, nr_deps, sizeof *dep, wg.dep_wins_ties ? earlier_first : later_first);
	bool capped = g->lanes.nr_lanes > 1 && !pathless && wg.kind == KIND_EXPLAINED &&
		      all_by_chance(g, a, dep, nr_deps);
	double *before = g->lanes.scratch + 2 * g->lanes.stride;
	uint32_t tip = a->tip;

	if (a->awake && a->awake->takes && !pathless)
		s = merge_beside(g, a, t, dep, nr_deps, &wg, err);
	if (capped)
		memcpy(before, actor_length(g, a), g->lanes.stride * sizeof *before);
	for (size_t i = 0; i < nr_deps && !s; i++)
		s = moment_merge(g, a, t, &dep[i], &wg, i == 0, err);
	if (capped && !s)
		cap_wait(g, a, t, since(g, t, a->t_last), tip, before, dep[0].queue, wg.zero);
	if (wg.kind == KIND_EXPLAINED && !pathless)
		*awake |= stayed_awake(g, a, wg.slept);
	return s;
}

/* ---- closing --------------------------------------------------------------------------------- */

static void start_path(struct graph *g, struct actor *a, uint64_t t)
{
	double *length = actor_length(g, a);
	struct node *n = add_node(g, a, t, NONE, &a->tip);

	for (unsigned l = 0; l < g->lanes.nr_lanes; l++)
		length[l] = 0;
	*n = (struct node){
		.prev = NONE,
		.dep = NONE,
		.slot = NONE,
		.dep_slot = NONE,
		.weight = node_weight(KIND_START, t),
	};
}

/* An actor's edges begin here; what it waited for until now, nobody saw. */
static enum base_status first_moment(struct graph *g, struct actor *a, uint64_t t,
	const struct graph_verb *v, struct dep *dep, size_t nr_deps, struct base_err *err)
{
	uint32_t state = v->state;
	enum base_status s = actor_slot(g, a, state, &a->slot, err);

	nr_deps = v->flags & GRAPH_START ? 0 : drop_optional(dep, nr_deps);
	if (!s && g->listening.listener)
		s = graph_tell(g, a, v, t, true, dep, nr_deps, err);
	if (s)
		return s;
	a->started = true;
	a->t_last = t;
	a->state = state;
	if (v->flags & GRAPH_START) {
		start_path(g, a, t);
		return BASE_OK;
	}
	return nr_deps ? merge_all(g, a, t, true, dep, nr_deps, &(uint32_t){0}, err) : BASE_OK;
}

enum base_status graph_close(struct graph *g, const struct graph_verb *v, uint64_t t,
	struct dep *dep, size_t nr_deps, struct base_err *err)
{
	struct actor *a = &g->actor[v->actor];
	double *length = actor_length(g, a);
	enum base_status s = BASE_OK;
	uint32_t none;

	if (BASE_UNLIKELY(g->next + 2 * nr_deps + 4 > g->capacity.node_capacity))
		s = graph_reserve_nodes(g, 2 * nr_deps + 4, err);
	if (BASE_UNLIKELY(s || !a->started))
		return s ? s : first_moment(g, a, t, v, dep, nr_deps, err);
	count_totals(g, a, since(g, t, a->t_last));
	none = elided(g, a);
	if (BASE_UNLIKELY(nr_deps > 1))
		nr_deps = drop_optional(dep, nr_deps);
	if (BASE_UNLIKELY(g->listening.listener != NULL)) {
		s = graph_tell(g, a, v, t, length[0] == NO_PATH, dep, nr_deps, err);
		if (s)
			return s;
	}
	if (g->lanes.nr_lanes > 1 && BASE_UNLIKELY(a->awake || v->flags & GRAPH_TIMED_OUT))
		s = graph_awake(g, a, v, t, dep, nr_deps, err);
	if (s)
		return s;
	if (nr_deps == 1 && g->lanes.stride == 1 && !dep->link) {
		s = merge_single(g, a, t, dep, length, err);
	} else if (nr_deps) {
		s = merge_all(g, a, t, length[0] == NO_PATH, dep, nr_deps, &none, err);
	} else {
		if (a->wait)
			wait_ended(g, a, since(g, t, a->t_last), NULL);
		if (length[0] != NO_PATH)
			own_edge(g, a, t, v->flags & GRAPH_EXPLAINED, length, &a->tip);
	}
	if (g->lanes.stride > 1)
		moment_end_elision(g, a, none, t);
	a->t_last = t;
	a->wait = WAIT_NO;
	a->came_ns = 0;
	if (v->state != a->state) {
		a->state = v->state;
		if (!s)
			s = actor_slot(g, a, v->state, &a->slot, err);
	}
	if (BASE_UNLIKELY(v->flags & GRAPH_START) && !s && length[0] == NO_PATH)
		start_path(g, a, t);
	return s;
}

enum base_status graph_put_aside(
	struct graph *g, const struct put *put, uint64_t t, struct actor *a, struct base_err *err)
{
	double *length = actor_length(g, a), *kept = g->lanes.scratch + g->lanes.stride;
	uint32_t tip = a->tip;
	uint8_t wait = a->wait;
	enum base_status s = graph_reserve_nodes(g, 1, err);

	if (s)
		return s;
	memcpy(kept, length, g->lanes.stride * sizeof *kept);
	a->open = NONE;
	a->wait = WAIT_NO;
	if (length[0] != NO_PATH && t > a->t_last)
		own_edge(g, a, t, true, length, &a->tip);
	s = graph_put(g, put, t, a, err);
	memcpy(length, kept, g->lanes.stride * sizeof *kept);
	a->wait = wait;
	a->tip = tip;
	return s;
}
