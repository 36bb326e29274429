/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect.c - keeps of the nodes what a live tip can still reach, and that as
 * sums.
 *
 * A tip is a node that an actor, a queued item or free space refers to. Per
 * lane the ways back from the tips form a tree. A backward sweep over the nodes
 * marks, for all lanes at once (one bit each), what is reached and where ways
 * meet; every run between such places then becomes one `fold`: sums per (actor,
 * state). The folds of the last collection are folded on in the same way, so
 * their number stays below twice the tips, whatever the number of records.
 * Lanes that go the same way share folds. Most go the same way for a while, then not: such a
 * stretch (a `segment`) is summed once, and runs add sums instead of nodes. Tips get new ids from 0
 * ("bounds"); the other nodes are gone. Of a single lane the ways themselves are followed, without
 * a look at nodes that nothing reaches.
 */
#include "graph/priv.h"

/* A run being followed backwards, in `lane`, for the set of lanes that go the
 * same way. */
struct run {
	unsigned lane;
	uint32_t lanes;
	uint32_t parent; /* index in next_folds; NONE: the start */
	uint64_t start_ns;
};

/* One lane, of which sums are all that is kept: the marks of a node are in itself, but for those of
 * tips and ends. Between collections there are none. */
static inline bool is_single(const struct graph *g)
{
	return g->lanes.nr_tracks == 1 && !g->keep_path;
}

enum { NODE_LIVE = 2, NODE_END = 4 }; /* in node.zero, which has no other lane's bit then */

/* ---- room ------------------------------------------------------------------------------------ */

static enum base_status resize_nodes(struct graph *g, size_t want, struct base_err *err)
{
	enum base_status s = graph_mem_need(g, &g->collector.mark, &g->collector.mark_capacity,
		want, sizeof *g->collector.mark, err);

	if (!s && g->keep_path)
		s = graph_mem_need(
			g, &g->extra, &g->capacity.extra_capacity, want, sizeof *g->extra, err);
	if (!s)
		s = graph_mem_need(
			g, &g->node, &g->capacity.node_capacity, want, sizeof *g->node, err);
	if (!s && is_single(g))
		s = graph_mem_need(g, &g->collector.ends, &g->collector.ends_words,
			g->capacity.node_capacity / 64 + 1, sizeof *g->collector.ends, err);
	return s;
}

enum base_status graph_reserve_nodes(struct graph *g, size_t nr, struct base_err *err)
{
	if (BASE_LIKELY(g->next + nr <= g->capacity.node_capacity))
		return BASE_OK;
	if (g->next + nr + g->collector.min_nodes >= NONE)
		return base_fail(err, BASE_ERR_LIMIT, "more than 4 thousand million nodes at once");
	return resize_nodes(g, g->next + nr, err);
}

/* ---- marking --------------------------------------------------------------------------------- */

static inline void collect_reach(struct mark *m, uint32_t lanes)
{
	m->ends |= m->live & lanes;
	m->live |= lanes;
}

static uint32_t lanes_with_path(const struct graph *g, const double *length)
{
	uint32_t lanes = 0;

	for (unsigned l = 0; l < g->lanes.nr_tracks; l++)
		lanes |= (uint32_t)(length[l] != NO_PATH) << l;
	return lanes;
}

static enum base_status mark_lanes(
	struct graph *g, uint32_t id, uint32_t lanes, struct base_err *err)
{
	enum base_status s;

	g->collector.mark[id].live |= lanes;
	g->collector.mark[id].ends |= lanes;
	if (g->collector.mark[id].new_id)
		return BASE_OK;
	s = graph_mem_need(g, &g->collector.tip, &g->collector.tip_capacity,
		g->collector.nr_tips + 1, sizeof *g->collector.tip, err);
	if (s)
		return s;
	g->collector.tip[g->collector.nr_tips++] = id;
	g->collector.mark[id].new_id = (uint32_t)g->collector.nr_tips;
	return BASE_OK;
}

static enum base_status mark_tip(
	struct graph *g, uint32_t id, const double *length, struct base_err *err)
{
	return id == NONE ? BASE_OK : mark_lanes(g, id, lanes_with_path(g, length), err);
}

static enum base_status mark_ring(struct graph *g, const struct ring *r, struct base_err *err)
{
	enum base_status s = BASE_OK;

	for (uint32_t i = 0; i < r->nr_items && !s; i++) {
		const struct item *it = ring_item(g, r, i);

		if (it->actor != NONE)
			s = mark_tip(g, it->node, it->length, err);
	}
	return s;
}

static enum base_status mark_tips(struct graph *g, bool only_ends, struct base_err *err)
{
	enum base_status s = BASE_OK;

	g->collector.nr_tips = 0;
	for (size_t i = 0; i < g->result.nr_ends && !s; i++)
		s = mark_tip(
			g, g->result.end[i].node, g->result.end_length + i * g->lanes.stride, err);
	for (size_t i = 0; i < g->window.nr_anchors && !s; i++)
		s = mark_tip(g, g->window.anchor[i].node,
			g->window.anchor_length + i * g->lanes.stride, err);
	if (only_ends)
		return s;
	for (size_t i = 0; i < g->window.nr_births && !s; i++)
		s = mark_lanes(g, g->window.birth[i], 1, err); /* of lane 0, as parts are */
	for (size_t i = 0; i < g->nr_actors && !s; i++) {
		const struct actor *a = &g->actor[i];

		s = mark_tip(g, a->tip, actor_length(g, a), err);
		if (!s && a->awake)
			s = mark_tip(g, a->awake->path.node, a->awake->path.length, err);
	}
	for (size_t i = 0; i < g->nr_queues && !s; i++) {
		const struct queue *q = &g->queue[i];

		s = mark_ring(g, &q->data, err);
		if (!s)
			s = mark_ring(g, &q->space, err);
		if (!s && q->last_take)
			s = mark_tip(g, q->last_take->node, q->last_take->length, err);
		if (!s && q->past)
			s = mark_ring(g, &q->past->taken, err);
	}
	return s;
}

static enum base_status begin_segment(
	struct graph *g, uint32_t id, uint32_t lanes, struct base_err *err)
{
	enum base_status s =
		graph_mem_need(g, &g->collector.segment, &g->collector.segment_capacity,
			g->collector.nr_segments + 1, sizeof *g->collector.segment, err);

	if (s)
		return s;
	g->collector.segment[g->collector.nr_segments++] =
		(struct segment){.first = id, .last = id, .lanes = lanes};
	g->collector.mark[id].segment = (uint32_t)g->collector.nr_segments;
	return BASE_OK;
}

/* Backwards over the nodes: which lanes pass them, and the segments. Runs will end only where
 * segments do. */
static enum base_status mark_nodes(struct graph *g, struct base_err *err)
{
	uint32_t runner = g->runner_up ? UINT32_C(1) << g->lanes.nr_lanes : 0;
	struct mark *const mark = g->collector.mark;

	g->collector.nr_segments = 0;
	for (uint32_t id = g->next; id-- > g->collector.nr_bounds;) {
		uint32_t live = mark[id].live, lanes = live & ~runner, at = mark[id].segment;

		if (!live)
			continue;

		const struct node *n = &g->node[id];
		uint32_t over_dep = lanes & n->took_dep, over_prev = lanes & ~n->took_dep;
		uint32_t zero = lanes & n->zero;
		bool together = !(over_dep && over_prev) && (!zero || zero == lanes);

		if (at && together && !mark[id].ends &&
			g->collector.segment[at - 1].lanes == lanes) {
			g->collector.segment[at - 1].last = id;
		} else {
			enum base_status s = begin_segment(g, id, lanes, err);

			if (s)
				return s;
			at = together ? (uint32_t)g->collector.nr_segments : 0;
		}
		if (over_dep) {
			collect_reach(&mark[n->dep], over_dep);
			mark[n->dep].segment = at;
		}
		if (over_prev && n->prev != NONE) {
			collect_reach(&mark[n->prev], over_prev);
			mark[n->prev].segment = at;
		}
		if (live & runner)
			collect_reach(&mark[n->took_dep & runner ? n->dep : n->prev],
				n->took_dep & g->lanes.rank_bit ? 1 : runner);
	}
	return BASE_OK;
}

static void set_end(struct graph *g, uint32_t id)
{
	g->node[id].zero |= NODE_LIVE | NODE_END;
	g->collector.ends[id / 64] |= UINT64_C(1) << id % 64;
}

/* Ways go back through nodes that lie below one another: those further down are fetched meanwhile.
 */
static inline const struct node *fetch_below(const struct graph *g, uint32_t id)
{
	enum { AHEAD = 16 };

	__builtin_prefetch(&g->node[id > AHEAD ? id - AHEAD : 0]);
	return &g->node[id];
}

static inline uint32_t collect_before(const struct node *n)
{
	return n->took_dep & 1 ? n->dep : n->prev;
}

/* The same for a single lane: the way back from each tip, as far as no other has come. */
static void mark_ways(struct graph *g)
{
	for (size_t i = 0; i < g->collector.nr_tips; i++) {
		if (g->collector.tip[i] >= g->collector.nr_bounds &&
			g->collector.mark[g->collector.tip[i]].live)
			set_end(g, g->collector.tip[i]);
	}
	for (size_t i = 0; i < g->collector.nr_tips; i++) {
		uint32_t id = g->collector.tip[i];

		if (!g->collector.mark[id].live)
			continue;
		while (id >= g->collector.nr_bounds && node_kind(&g->node[id]) != KIND_START) {
			id = collect_before(fetch_below(g, id));
			if (id < g->collector.nr_bounds) {
				collect_reach(&g->collector.mark[id], 1);
			} else if (g->node[id].zero & NODE_LIVE) {
				set_end(g, id);
				break;
			} else {
				g->node[id].zero |= NODE_LIVE;
			}
		}
	}
}

/* From the bounds on into the folds of the last collection. */
static void mark_folds(struct graph *g)
{
	struct fold *fold = g->collector.folds.fold;

	for (size_t i = 0; i < g->collector.folds.nr_folds; i++)
		fold[i].live = fold[i].end = false;
	for (uint32_t b = 0; b < g->collector.nr_bounds; b++) {
		for (uint32_t left = g->collector.mark[b].live; left; left &= left - 1) {
			unsigned l = (unsigned)__builtin_ctz(left);
			struct fold *f =
				&fold[g->collector.bound[(size_t)b * g->lanes.nr_tracks + l]];

			f->end |= f->live || g->collector.mark[b].ends >> l & 1;
			f->live = true;
		}
	}
	for (size_t i = g->collector.folds.nr_folds; i-- > 0;) {
		if (!fold[i].live || fold[i].parent == NONE)
			continue;
		fold[fold[i].parent].end |= fold[fold[i].parent].live;
		fold[fold[i].parent].live = true;
	}
}

/* ---- sums ------------------------------------------------------------------------------------ */

static struct sum *collect_sum_of(struct graph *g, uint32_t slot)
{
	struct sum *s = &g->collector.dense[slot];

	if (!s->visits) {
		s->slot = slot;
		g->collector.touched[g->collector.nr_touched++] = slot;
	}
	return s;
}

/* One edge, as lane `l` passes it. Every edge is a visit, so `visits` tells
 * what was touched. */
static inline void collect_add_edge(struct graph *g, const struct node *n, bool over_dep, bool zero)
{
	uint64_t w = zero ? 0 : n->weight & WEIGHT_MAX;
	uint32_t slot = over_dep ? n->dep_slot : n->slot;
	enum kind kind = node_kind(n);
	struct sum *s;

	if (slot == NONE || kind == KIND_START || (kind == KIND_CHAIN && !over_dep))
		return;
	s = collect_sum_of(g, slot);
	s->visits++;
	if (over_dep ? kind == KIND_RUN : kind == KIND_EXPLAINED)
		return;
	s->path_ns += w;
	if (kind == KIND_UNEXPLAINED)
		s->unexplained_ns += w;
	else if (kind != KIND_RUN && kind != KIND_PAIR)
		s->latency_ns += w;
}

/* The edges from node `id` back to `last` and the one before it, as lane `l` passes them. */
static void collect_add_nodes(struct graph *g, uint32_t id, uint32_t last, unsigned l)
{
	for (;;) {
		const struct node *n = &g->node[id];
		bool over_dep = n->took_dep >> l & 1;

		collect_add_edge(g, n, over_dep, n->zero >> l & 1);
		if (id == last)
			return;
		id = over_dep ? n->dep : n->prev;
	}
}

static void add_sums(struct graph *g, const struct sum *from, uint32_t nr)
{
	for (; nr; nr--, from++) {
		struct sum *to = collect_sum_of(g, from->slot);

		to->path_ns += from->path_ns;
		to->unexplained_ns += from->unexplained_ns;
		to->latency_ns += from->latency_ns;
		to->visits += from->visits;
	}
}

static void add_fold(struct graph *g, const struct fold *f)
{
	if (f->nr_sums) /* (else there may be no list) */
		add_sums(g, g->collector.folds.sum + f->first_sum, f->nr_sums);
}

/* Moves the sums gathered so far to the end of a list in which there is room. */
static uint32_t move_sums(struct graph *g, struct sum *list, size_t *nr)
{
	uint32_t first = (uint32_t)*nr;

	for (size_t i = 0; i < g->collector.nr_touched; i++) {
		list[(*nr)++] = g->collector.dense[g->collector.touched[i]];
		g->collector.dense[g->collector.touched[i]] = (struct sum){0};
	}
	g->collector.nr_touched = 0;
	return first;
}

/* What several lanes pass is summed for all of them. */
static enum base_status sum_segments(struct graph *g, struct base_err *err)
{
	enum base_status s = BASE_OK;

	g->collector.nr_segment_sums = 0;
	for (size_t i = 0; i < g->collector.nr_segments && !s; i++) {
		struct segment *seg = &g->collector.segment[i];

		if (seg->first == seg->last || !(seg->lanes & (seg->lanes - 1)))
			continue;
		collect_add_nodes(g, seg->first, seg->last, (unsigned)__builtin_ctz(seg->lanes));
		seg->nr_sums = (uint32_t)g->collector.nr_touched;
		s = graph_mem_need(g, &g->collector.segment_sum, &g->collector.segment_sum_capacity,
			g->collector.nr_segment_sums + g->collector.nr_touched,
			sizeof *g->collector.segment_sum, err);
		if (!s)
			seg->first_sum = move_sums(
				g, g->collector.segment_sum, &g->collector.nr_segment_sums);
	}
	return s;
}

/* The sums gathered so far become a new fold. */
static enum base_status emit_fold(
	struct graph *g, const struct run *run, uint32_t *ret, struct base_err *err)
{
	struct folds *f = &g->collector.next_folds;
	enum base_status s = graph_mem_need(
		g, &f->fold, &f->fold_capacity, f->nr_folds + 1, sizeof *f->fold, err);

	if (!s)
		s = graph_mem_need(g, &f->sum, &f->sum_capacity,
			f->nr_sums + g->collector.nr_touched, sizeof *f->sum, err);
	if (s)
		return s;
	*ret = (uint32_t)f->nr_folds;
	f->fold[f->nr_folds] = (struct fold){
		.parent = run->parent,
		.start_ns = run->start_ns,
		.nr_sums = (uint32_t)g->collector.nr_touched,
	};
	f->fold[f->nr_folds++].first_sum = move_sums(g, f->sum, &f->nr_sums);
	return BASE_OK;
}

/* ---- folding --------------------------------------------------------------------------------- */

/* That of which `id` is the first node. */
static struct segment *segment_at(const struct graph *g, uint32_t id)
{
	return &g->collector.segment[g->collector.mark[id].segment - 1];
}

/* Where the fold that ends at node `id` in lane `l` is noted. */
static uint32_t *end_fold(struct graph *g, uint32_t id, unsigned l)
{
	uint32_t below = g->collector.mark[id].ends & ((UINT32_C(1) << l) - 1);

	return &g->collector
			.end_fold[segment_at(g, id)->base + (uint32_t)__builtin_popcount(below)];
}

/* Only lanes that come to the same fold stay in the run. */
static void keep_if_bound(const struct graph *g, struct run *run, uint32_t bound, uint32_t fold)
{
	for (uint32_t left = run->lanes; left; left &= left - 1) {
		unsigned l = (unsigned)__builtin_ctz(left);

		if (g->collector.bound[(size_t)bound * g->lanes.nr_tracks + l] != fold)
			run->lanes &= ~(UINT32_C(1) << l);
	}
}

static void keep_if_end(struct graph *g, struct run *run, uint32_t id)
{
	run->lanes &= g->collector.mark[id].ends;
	for (uint32_t left = run->lanes; left; left &= left - 1) {
		unsigned l = (unsigned)__builtin_ctz(left);

		if (*end_fold(g, id, l) != run->parent)
			run->lanes &= ~(UINT32_C(1) << l);
	}
}

/* Follows folds of the last collection, from `f` on, which may be where the run
 * ends. */
static void follow_folds(struct graph *g, struct run *run, uint32_t f)
{
	const struct fold *fold = g->collector.folds.fold;

	while (!fold[f].end) {
		add_fold(g, &fold[f]);
		if (fold[f].parent == NONE) {
			run->parent = NONE;
			run->start_ns = fold[f].start_ns;
			return;
		}
		f = fold[f].parent;
	}
	run->parent = fold[f].new_index;
}

/*
 * Follows a run from its end (node `id`) back to where the next one ends, a segment at a time. The
 * runner-up goes alone, and node by node: from where it leaves lane 0's path it is found in lane 0.
 */
static void follow_nodes(struct graph *g, struct run *run, uint32_t id)
{
	uint32_t runner = g->runner_up ? UINT32_C(1) << g->lanes.nr_lanes : 0;
	unsigned l = run->lane;
	bool alone = runner >> l & 1;

	run->lanes = alone ? runner : run->lanes & ~runner;
	for (;;) {
		const struct segment *seg = alone ? NULL : segment_at(g, id);
		const struct node *n = &g->node[seg ? seg->last : id];
		bool over_dep = n->took_dep >> l & 1, zero = n->zero >> l & 1;

		if (seg && seg->nr_sums)
			add_sums(g, g->collector.segment_sum + seg->first_sum, seg->nr_sums);
		else
			collect_add_nodes(g, id, seg ? seg->last : id, l);
		if (seg)
			run->lanes &= (over_dep ? n->took_dep : ~n->took_dep) &
				      (zero ? n->zero : ~n->zero);
		else if (runner >> l & 1 && n->took_dep & g->lanes.rank_bit)
			l = 0;
		if (node_kind(n) == KIND_START) {
			run->parent = NONE;
			run->start_ns = n->weight & WEIGHT_MAX;
			return;
		}
		id = over_dep ? n->dep : n->prev;
		if (id < g->collector.nr_bounds) {
			uint32_t f = g->collector.bound[(size_t)id * g->lanes.nr_tracks + l];

			if (!alone)
				keep_if_bound(g, run, id, f);
			follow_folds(g, run, f);
			return;
		}
		if (g->collector.mark[id].ends >> l & 1) {
			run->parent = *end_fold(g, id, l);
			if (!alone)
				keep_if_end(g, run, id);
			return;
		}
		if (!alone)
			run->lanes &= ~g->collector.mark[id].ends;
	}
}

static enum base_status fold_folds(struct graph *g, struct base_err *err)
{
	struct fold *fold = g->collector.folds.fold;

	for (size_t i = 0; i < g->collector.folds.nr_folds; i++) {
		struct run run = {.parent = NONE, .start_ns = fold[i].start_ns};
		enum base_status s;

		if (!fold[i].live || !fold[i].end)
			continue;
		add_fold(g, &fold[i]);
		if (fold[i].parent != NONE)
			follow_folds(g, &run, fold[i].parent);
		s = emit_fold(g, &run, &fold[i].new_index, err);
		if (s)
			return s;
	}
	return BASE_OK;
}

static enum base_status fold_node(
	struct graph *g, uint32_t id, size_t *nr_ends, struct base_err *err)
{
	uint32_t ends = g->collector.mark[id].ends;
	enum base_status s;

	segment_at(g, id)->base = (uint32_t)*nr_ends;
	*nr_ends += (unsigned)__builtin_popcount(ends);
	s = graph_mem_need(g, &g->collector.end_fold, &g->collector.end_capacity, *nr_ends,
		sizeof *g->collector.end_fold, err);
	for (uint32_t left = ends; left && !s;) {
		struct run run = {.lane = (unsigned)__builtin_ctz(left), .lanes = left};
		uint32_t f;

		follow_nodes(g, &run, id);
		s = emit_fold(g, &run, &f, err);
		if (s)
			break;
		left &= ~run.lanes;
		for (; run.lanes; run.lanes &= run.lanes - 1)
			*end_fold(g, id, (unsigned)__builtin_ctz(run.lanes)) = f;
	}
	return s;
}

static enum base_status collect_fold_nodes(struct graph *g, struct base_err *err)
{
	size_t nr_ends = 0;
	enum base_status s = BASE_OK;

	for (size_t i = g->collector.nr_segments; i-- > 0 && !s;)
		s = fold_node(g, g->collector.segment[i].first, &nr_ends, err);
	return s;
}

/* The second edge of a pair, which comes after the first one. */
static inline void add_second(struct graph *g, const struct node *n)
{
	struct sum *s = collect_sum_of(g, n->dep_slot);

	s->visits++;
	s->path_ns += n->dep;
}

/* The run that ends at node `id` in a single lane. */
static void follow_way(struct graph *g, struct run *run, uint32_t id)
{
	const struct node *n = &g->node[id];

	do {
		collect_add_edge(g, n, n->took_dep & 1, n->zero & 1);
		if (node_kind(n) == KIND_PAIR)
			add_second(g, n);
		if (node_kind(n) == KIND_START) {
			run->start_ns = n->weight & WEIGHT_MAX;
			return;
		}
		id = collect_before(n);
		if (id < g->collector.nr_bounds) {
			follow_folds(g, run, g->collector.bound[id]);
			return;
		}
		n = fetch_below(g, id);
	} while (!(n->zero & NODE_END));
	run->parent = g->collector.mark[id].fold;
}

static enum base_status fold_ways(struct graph *g, struct base_err *err)
{
	enum base_status s = BASE_OK;

	for (uint32_t word = 0; 64 * word < g->next; word++) {
		for (uint64_t left = g->collector.ends[word]; left && !s; left &= left - 1) {
			uint32_t id = 64 * word + (uint32_t)__builtin_ctzll(left);
			struct run run = {.parent = NONE};

			follow_way(g, &run, id);
			s = emit_fold(g, &run, &g->collector.mark[id].fold, err);
		}
	}
	return s;
}

/* ---- the path of lane 0, edge by edge -------------------------------------------------------- */

static struct step collect_make_step(const struct graph *g, uint32_t id)
{
	const struct node *n = &g->node[id];
	enum kind kind = node_kind(n);
	bool over_dep = n->took_dep & 1;
	struct step st = {
		.prev = NONE,
		.slot = over_dep ? n->dep_slot : n->slot,
		.queue = over_dep ? g->extra[id].queue : NONE,
		.actor = g->extra[id].actor,
		.end_ns = g->extra[id].time_ns,
		.weight = n->weight & WEIGHT_MAX,
		.crosses = over_dep,
		.chain = kind == KIND_START || (kind == KIND_CHAIN && !over_dep),
	};

	if (st.chain || (over_dep ? kind == KIND_RUN : kind == KIND_EXPLAINED) || n->zero & 1)
		st.weight = 0;
	if (over_dep && n->dep_slot == NONE) { /* a link: charged to nobody */
		st.slot = n->slot;
		st.weight = 0;
	}
	return st;
}

/* What no tip reaches any more is dropped once it may be half of all. */
static enum base_status compact_steps(struct graph *g, size_t nr_bounds, struct base_err *err)
{
	uint32_t *moved = NULL;
	size_t capacity = 0, nr = 0;
	enum base_status s;

	if (g->collector.nr_steps < 2 * g->collector.nr_steps_kept + g->collector.min_nodes)
		return BASE_OK;
	s = graph_mem_resize(g, &moved, &capacity, g->collector.nr_steps, sizeof *moved, err);
	if (s)
		return s;
	for (size_t b = 0; b < nr_bounds; b++)
		moved[g->collector.next_bound_step[b]] = 1;
	for (size_t i = g->collector.nr_steps; i-- > 0;) {
		if (moved[i] && g->collector.step[i].prev != NONE)
			moved[g->collector.step[i].prev] = 1;
	}
	for (size_t i = 0; i < g->collector.nr_steps; i++) {
		struct step st = g->collector.step[i];

		if (!moved[i])
			continue;
		if (st.prev != NONE)
			st.prev = moved[st.prev];
		moved[i] = (uint32_t)nr;
		g->collector.step[nr++] = st;
	}
	for (size_t b = 0; b < nr_bounds; b++)
		g->collector.next_bound_step[b] = moved[g->collector.next_bound_step[b]];
	g->collector.nr_steps = g->collector.nr_steps_kept = nr;
	base_free(moved);
	g->limit.memory_bytes -= capacity * sizeof *moved;
	return BASE_OK;
}

/* The live bits of lane 0 are replaced by the steps' numbers: no mark is read
 * after this. */
static enum base_status keep_steps(struct graph *g, struct base_err *err)
{
	size_t nr_bounds = g->collector.nr_tips;
	enum base_status s = graph_mem_need(g, &g->collector.next_bound_step,
		&g->collector.next_bound_step_capacity, nr_bounds,
		sizeof *g->collector.next_bound_step, err);

	for (uint32_t id = 0; id < g->next && !s; id++) {
		struct mark *m = &g->collector.mark[id];
		uint32_t index;

		if (!(m->live & 1))
			continue;
		if (id < g->collector.nr_bounds) {
			index = g->collector.bound_step[id];
		} else {
			struct step st = collect_make_step(g, id);
			const struct node *n = &g->node[id];

			s = graph_mem_need(g, &g->collector.step, &g->collector.step_capacity,
				g->collector.nr_steps + 1, sizeof *g->collector.step, err);
			if (s)
				break;
			if (node_kind(n) != KIND_START)
				st.prev =
					g->collector.mark[n->took_dep & 1 ? n->dep : n->prev].live;
			index = (uint32_t)g->collector.nr_steps++;
			g->collector.step[index] = st;
		}
		m->live = index;
		if (m->new_id)
			g->collector.next_bound_step[m->new_id - 1] = index;
	}
	return s ? s : compact_steps(g, nr_bounds, err);
}

/* ---- tips ------------------------------------------------------------------------------------ */

/* Notes where the tips' folds are. */
static enum base_status make_bounds(struct graph *g, struct base_err *err)
{
	unsigned tracks = g->lanes.nr_tracks;
	enum base_status s =
		graph_mem_need(g, &g->collector.next_bound, &g->collector.next_bound_capacity,
			g->collector.nr_tips * tracks, sizeof *g->collector.next_bound, err);

	if (s)
		return s;
	for (size_t i = 0; i < g->collector.nr_tips; i++) {
		uint32_t id = g->collector.tip[i], *to = &g->collector.next_bound[i * tracks];

		for (unsigned l = 0; l < tracks; l++) {
			to[l] = NONE;
			if (!(g->collector.mark[id].live >> l & 1))
				continue;
			if (id < g->collector.nr_bounds)
				to[l] = g->collector.folds
						.fold[g->collector.bound[(size_t)id * tracks + l]]
						.new_index;
			else if (is_single(g))
				to[l] = g->collector.mark[id].fold;
			else
				to[l] = *end_fold(g, id, l);
		}
	}
	return BASE_OK;
}

static uint32_t collect_new_id(const struct graph *g, uint32_t id)
{
	return id == NONE ? NONE : g->collector.mark[id].new_id - 1;
}

static void renumber_ring(struct graph *g, const struct ring *r)
{
	for (uint32_t i = 0; i < r->nr_items; i++) {
		struct item *it = ring_item(g, r, i);

		it->node = collect_new_id(g, it->node);
	}
}

static void renumber_ends(struct graph *g)
{
	for (size_t i = 0; i < g->result.nr_ends; i++)
		g->result.end[i].node = g->result.end[i].bound =
			collect_new_id(g, g->result.end[i].node);
	for (size_t i = 0; i < g->window.nr_anchors; i++)
		g->window.anchor[i].node = g->window.anchor[i].bound =
			collect_new_id(g, g->window.anchor[i].node);
}

static void renumber_tips(struct graph *g)
{
	for (size_t i = 0; i < g->window.nr_births; i++)
		g->window.birth[i] = collect_new_id(g, g->window.birth[i]);
	for (size_t i = 0; i < g->nr_actors; i++) {
		struct actor *a = &g->actor[i];

		a->tip = collect_new_id(g, a->tip);
		a->open = NONE;
		if (a->awake)
			a->awake->path.node = collect_new_id(g, a->awake->path.node);
	}
	for (size_t i = 0; i < g->nr_queues; i++) {
		struct queue *q = &g->queue[i];

		renumber_ring(g, &q->data);
		renumber_ring(g, &q->space);
		if (q->last_take)
			q->last_take->node = collect_new_id(g, q->last_take->node);
		if (q->past)
			renumber_ring(g, &q->past->taken);
	}
}

/* ---- the collection -------------------------------------------------------------------------- */

#define SWAP(a, b)                                                                                 \
	do {                                                                                       \
		__typeof__(a) swapped = (a);                                                       \
		(a) = (b);                                                                         \
		(b) = swapped;                                                                     \
	} while (0)

static enum base_status fold_all(struct graph *g, struct base_err *err)
{
	enum base_status s = graph_mem_need(g, &g->collector.dense, &g->collector.dense_capacity,
		g->nr_slots, sizeof *g->collector.dense, err);

	if (!s)
		s = graph_mem_need(g, &g->collector.touched, &g->collector.touched_capacity,
			g->nr_slots, sizeof *g->collector.touched, err);
	g->collector.next_folds.nr_folds = g->collector.next_folds.nr_sums = 0;
	if (!s && !is_single(g))
		s = sum_segments(g, err);
	if (!s)
		s = fold_folds(g, err);
	if (!s)
		s = is_single(g) ? fold_ways(g, err) : collect_fold_nodes(g, err);
	if (!s)
		s = make_bounds(g, err);
	return s;
}

static enum base_status mark_all(struct graph *g, bool only_ends, struct base_err *err)
{
	enum base_status s;

	if (g->next && !is_single(g))
		memset(g->collector.mark, 0, g->next * sizeof *g->collector.mark);
	s = mark_tips(g, only_ends, err);
	if (s)
		return s;
	if (is_single(g))
		mark_ways(g);
	else
		s = mark_nodes(g, err);
	mark_folds(g);
	return s;
}

/* The marks of a single lane are gone. */
static void unmark(struct graph *g)
{
	if (g->collector.nr_bounds)
		memset(g->collector.mark, 0, g->collector.nr_bounds * sizeof *g->collector.mark);
	for (size_t i = 0; i < g->collector.nr_tips; i++)
		g->collector.mark[g->collector.tip[i]] = (struct mark){0};
	if (g->collector.ends)
		memset(g->collector.ends, 0, (g->next / 64 + 1) * sizeof *g->collector.ends);
}

enum base_status graph_collect(struct graph *g, bool only_ends, struct base_err *err)
{
	enum base_status s;
	size_t room;

	s = mark_all(g, only_ends, err);
	if (!s)
		s = fold_all(g, err);
	if (s)
		return s;
	renumber_ends(g);
	if (!only_ends)
		renumber_tips(g);
	if (g->keep_path && !g->window.early) {
		s = keep_steps(g, err);
		if (s)
			return s;
		SWAP(g->collector.bound_step, g->collector.next_bound_step);
		SWAP(g->collector.bound_step_capacity, g->collector.next_bound_step_capacity);
	}
	if (is_single(g))
		unmark(g);
	SWAP(g->collector.folds, g->collector.next_folds);
	SWAP(g->collector.bound, g->collector.next_bound);
	SWAP(g->collector.bound_capacity, g->collector.next_bound_capacity);
	g->collector.nr_bounds = g->next = (uint32_t)g->collector.nr_tips;
	g->collector.nr_collections++;

	/* Collecting costs tips + folds + sums: let twice as many nodes pass before
	 * the next. */
	room = 2 * (g->collector.nr_tips + g->collector.folds.nr_folds) +
	       g->collector.folds.nr_sums;
	if (room < g->collector.min_nodes)
		room = g->collector.min_nodes;
	g->collect_at = (uint32_t)(g->collector.nr_tips + room);
	return BASE_OK;
}
