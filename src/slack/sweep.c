/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - the kept edges backward: global slack of kept nodes, critical path (seed 003, figure
 * 2-5).
 *
 * Names of nodes are in the order in which the machine executed them, so the reverse is a reverse
 * topological order. A store's slack is known when all loads of it have been met; until then it is
 * on a heap, the latest store first. The heap holds an entry for each edge that spans the place
 * that has been reached.
 */
#include "slack/private.h"

#include <string.h>

struct source { /* an edge whose target's slack is known */
	uint64_t name, target;
	uint64_t global, local;
};
struct sweep {
	struct slack_analysis *a;
	struct base_err *err;
	struct source *heap; /* latest order first */
	size_t nr, capacity;
	uint64_t *after; /* by processor: slack of the nodes before the last one met */
	/* the critical path, back-traced so far */
	uint32_t on;    /* processor */
	uint64_t until; /* cycle to which the stretch on it goes */
	uint64_t below; /* nodes up to this order count */
};

static bool later(const struct source *x, const struct source *y)
{
	return slack_order(x->name) > slack_order(y->name);
}

static enum base_status sweep_put(struct sweep *w, const struct source *x)
{
	if (base_grow(&w->heap, &w->capacity, w->nr + 1, sizeof *w->heap) != BASE_OK)
		return base_fail(w->err, BASE_ERR_NOMEM, "no memory for edges on their way");
	size_t at = w->nr++;
	for (; at && later(x, &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
		w->heap[at] = w->heap[(at - 1) / 2];
	w->heap[at] = *x;
	return BASE_OK;
}

static void sweep_take(struct sweep *w, struct source *ret)
{
	*ret = w->heap[0];
	struct source x = w->heap[--w->nr];
	size_t at = 0;
	for (size_t child; (child = 2 * at + 1) < w->nr; at = child) {
		child += child + 1 < w->nr && later(&w->heap[child + 1], &w->heap[child]);
		if (!later(&w->heap[child], &x))
			break;
		w->heap[at] = w->heap[child];
	}
	w->heap[at] = x;
}

/* All edges from a node are met: its slack. `late`: of the program order edge to it. */
static enum base_status sweep_settle(
	struct sweep *w, uint64_t name, uint64_t late, uint64_t *ret_global)
{
	uint32_t processor = slack_processor_of(name);
	struct known_node k = {.order = slack_order(name),
		.global = w->after[processor],
		.local = SLACK_NEVER,
		.late = late};
	enum base_status s = BASE_OK;
	while (w->nr && w->heap[0].name == name && s == BASE_OK) {
		struct source x;
		sweep_take(w, &x);
		k.global = x.global < k.global ? x.global : k.global;
		k.local = x.local < k.local ? x.local : k.local;
		if (x.global != SLACK_NEVER)
			s = slack_stack_push(&w->a->flights,
				&(struct flight){.source = slack_order(name),
					.target = slack_order(x.target),
					.slack = x.global},
				w->err);
	}
	k.before = slack_add(k.global, late);
	w->after[processor] = k.before;
	w->a->result.counts.kept_nodes++;
	*ret_global = k.global;
	return s == BASE_OK ? slack_stack_push(&w->a->known[processor], &k, w->err) : s;
}

static enum base_status settle_sources(struct sweep *w, uint64_t order)
{
	enum base_status s = BASE_OK;
	uint64_t global;
	while (w->nr && slack_order(w->heap[0].name) > order && s == BASE_OK)
		s = sweep_settle(w, w->heap[0].name, 0, &global);
	return s;
}

static enum base_status add_stretch(struct sweep *w, uint64_t from)
{
	struct stretch x = {.from = from, .to = w->until};
	return x.to > x.from ? slack_stack_push(&w->a->path[w->on], &x, w->err) : BASE_OK;
}

/* The path came to a target: does it go on along this edge? */
static enum base_status sweep_follow(struct sweep *w, const struct kept_edge *e)
{
	if (slack_processor_of(e->target) != w->on || slack_order(e->target) > w->below ||
		e->arrival != e->start || e->start <= e->issue || e->start > w->until)
		return BASE_OK;
	enum base_status s = add_stretch(w, e->start);
	w->a->result.critical_hops += slack_processor_of(e->source) != w->on;
	w->on = slack_processor_of(e->source);
	w->until = e->start;
	w->below = slack_order(e->source);
	return s;
}

enum { EDGES_OF_ONE_MAX = MEMORY_CDAT_PROCESSORS_MAX + ACCESS_PLACES_MAX + 1 };

/* The edges of the target that edge[0] has; *nr grows, the one after them stays in *next. */
static enum base_status read_target(
	struct sweep *w, struct kept_edge *edge, uint32_t *nr, struct kept_edge *next, bool *more)
{
	edge[0] = *next;
	*nr = 1;
	for (;;) {
		enum base_status s = slack_stack_pop(&w->a->edges, next, w->err);
		*more = s == BASE_OK;
		if (s != BASE_OK)
			return s == BASE_END ? BASE_OK : s;
		if (next->target != edge[0].target || *nr == EDGES_OF_ONE_MAX)
			return BASE_OK;
		edge[(*nr)++] = *next;
	}
}

static enum base_status meet_target(struct sweep *w, const struct kept_edge *edge, uint32_t nr)
{
	uint64_t global;
	enum base_status s = settle_sources(w, slack_order(edge->target));
	if (s == BASE_OK)
		s = sweep_settle(w, edge->target, edge->start - edge->issue, &global);
	bool followed = false;
	for (uint32_t i = 0; i < nr && s == BASE_OK; i++) {
		struct source x = {.name = edge[i].source,
			.target = edge[i].target,
			.local = edge[i].start - edge[i].arrival};
		x.global = slack_add(global, x.local);
		s = sweep_put(w, &x);
		uint64_t below = w->below;
		if (s == BASE_OK && !followed)
			s = sweep_follow(w, &edge[i]);
		followed |= below != w->below;
	}
	return s;
}

static void choose_endpoint(struct sweep *w)
{
	struct slack_result *r = &w->a->result;
	uint64_t most = 0;
	for (uint32_t i = 0; i < w->a->nr_processors; i++)
		if (r->machine.processor[i].end > most) {
			most = r->machine.processor[i].end;
			r->endpoint = i;
		}
	if (w->a->options.continuous)
		r->endpoint = w->a->options.endpoint;
	r->end = r->machine.processor[r->endpoint].end;
	for (uint32_t i = 0; i < w->a->nr_processors; i++) {
		uint64_t end = r->machine.processor[i].end;
		w->after[i] = r->end - end;
		if (w->a->options.continuous)
			w->after[i] = i == r->endpoint ? 0 : SLACK_NEVER;
		w->a->at_end[i] = w->after[i];
	}
	w->on = r->endpoint;
	w->until = r->end;
	w->below = UINT64_MAX;
}

static enum base_status sweep_edges(struct sweep *w, struct kept_edge *edge)
{
	struct kept_edge next;
	uint32_t nr;
	enum base_status s = slack_stack_pop(&w->a->edges, &next, w->err);
	bool more = s == BASE_OK;
	while (more && (s == BASE_OK)) {
		s = read_target(w, edge, &nr, &next, &more);
		if (s == BASE_OK)
			s = meet_target(w, edge, nr);
	}
	s = s == BASE_END ? BASE_OK : s;
	return s == BASE_OK ? settle_sources(w, 0) : s;
}

enum base_status slack_sweep(struct slack_analysis *a, struct base_err *err)
{
	struct sweep w = {.a = a, .err = err};
	uint32_t nr = a->nr_processors;
	struct kept_edge *edge = base_alloc(EDGES_OF_ONE_MAX * sizeof *edge);
	enum base_status s = BASE_OK;
	w.after = base_alloc((nr + 1) * sizeof *w.after);
	a->at_end = base_alloc((nr + 1) * sizeof *a->at_end);
	a->known = base_alloc((nr + 1) * sizeof *a->known);
	a->path = base_alloc((nr + 1) * sizeof *a->path);
	if (!edge || !w.after || !a->at_end || !a->known || !a->path)
		s = base_fail(err, BASE_ERR_NOMEM, "no memory for slack");
	slack_stack_init(&a->flights, sizeof(struct flight), &a->budget);
	for (uint32_t i = 0; i < nr && a->known && a->path; i++) {
		slack_stack_init(&a->known[i], sizeof(struct known_node), &a->budget);
		slack_stack_init(&a->path[i], sizeof(struct stretch), &a->budget);
	}
	if (s == BASE_OK) {
		choose_endpoint(&w);
		s = sweep_edges(&w, edge);
	}
	if (s == BASE_OK)
		s = add_stretch(&w, a->result.origin);
	base_free(w.heap);
	base_free(w.after);
	base_free(edge);
	return s;
}
