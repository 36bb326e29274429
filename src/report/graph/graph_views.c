/* SPDX-License-Identifier: Apache-2.0 */
/* graph_views.c - what is drawn: actors and queues (seed 000, 5.9.1), or transitions and states
 * (5.9.2, 5.9.3). */
#include "report/graph/graph_private.h"

#include <stdlib.h>
#include <string.h>

#define NONE GRAPH_COMPACT_NONE

/* ---- transitions and states ------------------------------------------------------------------ */

static const char *state_text(const struct graph_names *n, uint32_t state)
{
	return state == NONE ? "" : n->state_name[state];
}

/* The actors that are left, numbered in their own order. */
static enum base_status number_clusters(struct report_graph *g, const struct graph_names *n,
	const struct graph_compact *c, uint32_t **ret, struct base_err *err)
{
	uint32_t *cluster = report_array(n->scratch, n->nr_actor_classes, sizeof *cluster);
	if (!cluster)
		return report_no_memory(err);
	for (size_t i = 0; i < c->nr_nodes; i++)
		cluster[c->node[i].actor] = 1;
	for (uint32_t a = 0; a < n->nr_actor_classes; a++)
		if (cluster[a])
			cluster[a] = g->nr_clusters++;
	*ret = cluster;
	return BASE_OK;
}

static enum base_status name_run(struct report_graph *g, const struct graph_compact_edge *e,
	const char **ret, struct base_err *err)
{
	struct base_str s = {0};
	base_str_add_counted(&s, "%s {state|states}", e->nr_states);
	*ret = report_keep(g->arena, &s);
	return *ret ? BASE_OK : report_no_memory(err);
}

static enum base_status add_states(struct report_graph *g, const struct graph_names *n,
	const struct graph_compact *c, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < c->nr_edges && s == BASE_OK; i++) {
		const struct graph_compact_edge *e = &c->edge[i];
		struct report_graph_edge out = {
			.kind = e->to == NONE      ? REPORT_EDGE_open
				: e->state == NONE ? REPORT_EDGE_run
						   : REPORT_EDGE_state,
			.from = e->from,
			.to = e->to == NONE ? e->from : e->to,
			.name = state_text(n, e->state),
			.nr_states = e->nr_states,
			.passes = e->passes,
			.visits = e->visits,
			.time_ns = e->time_ns,
			.waiting_ns = e->waiting_ns,
			.path_ns = e->path_ns,
			.path_visits = e->path_visits,
		};
		g->node[out.from].time_ns += e->time_ns;
		g->node[out.from].waiting_ns += e->waiting_ns;
		g->node[out.from].path_ns += e->path_ns;
		if (e->state == NONE)
			s = name_run(g, e, &out.name, err);
		if (s == BASE_OK)
			s = report_graph_add_edge(g, &out, err);
	}
	return s;
}

static const char *cross_name(const struct graph_names *n, const struct graph_compact_cross *x)
{
	return x->queue == NONE ? "hands on" : n->queue_name[x->queue];
}

/* Which actor left a processor before which: noise, unless one waited for it. */
static bool is_idle_handover(const struct graph_names *n, const struct graph_compact_cross *x)
{
	return x->queue != NONE && n->queue_type[x->queue] == TRACE_OBJECT_NR && !x->nr_waited &&
	       !x->path_uses;
}

static enum base_status graph_views_add_crosses(struct report_graph *g, const struct graph_names *n,
	const struct graph_compact *c, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < c->nr_crosses && s == BASE_OK; i++) {
		const struct graph_compact_cross *x = &c->cross[i];
		if (is_idle_handover(n, x)) {
			g->nr_idle_handovers++;
			continue;
		}
		struct report_graph_edge out = {
			.kind = REPORT_EDGE_cross,
			.from = x->from,
			.to = x->to,
			.name = cross_name(n, x),
			.passes = x->uses,
			.waits = x->nr_waited,
			.latency_ns = x->latency_ns,
			.path_ns = x->path_ns,
			.path_visits = x->path_uses,
		};
		s = report_graph_add_edge(g, &out, err);
	}
	return s;
}

static void take_losses(struct report_graph *g, const struct graph_compact_loss *l)
{
	g->nr_merged_nodes = l->nr_merged_nodes;
	g->nr_pruned_nodes = l->nr_pruned_nodes;
	g->nr_pruned_edges = l->nr_pruned_edges + l->nr_pruned_crosses;
	g->pruned_time_ns = l->time_ns;
	g->pruned_visits = l->visits;
	g->pruned_path_ns = l->path_ns;
	g->pruned_uses = l->uses;
}

enum base_status report_graph_fill_states(struct report_graph *g, const struct graph_names *n,
	struct graph_compact *c, size_t max_nodes, struct base_err *err)
{
	uint32_t *cluster = NULL;
	enum base_status s = graph_compact_merge(c, err);
	if (s == BASE_OK)
		s = graph_compact_prune(c, max_nodes, err);
	if (s == BASE_OK) /* what was pruned may have been a fork in a road */
		s = graph_compact_merge(c, err);
	if (s == BASE_OK)
		s = number_clusters(g, n, c, &cluster, err);
	if (s != BASE_OK)
		return s;
	take_losses(g, &c->loss);
	g->node = report_array(g->arena, c->nr_nodes, sizeof *g->node);
	if (!g->node)
		return report_no_memory(err);
	for (size_t i = 0; i < c->nr_nodes; i++) {
		const struct graph_compact_node *from = &c->node[i];
		g->node[g->nr_nodes++] = (struct report_graph_node){
			.kind = from->stub ? REPORT_NODE_stub : REPORT_NODE_transition,
			.name = n->actor_name[from->actor],
			.from = state_text(n, from->from),
			.to = state_text(n, from->to),
			.type = "",
			.cluster = cluster[from->actor],
			.passes = from->passes,
		};
	}
	s = add_states(g, n, c, err);
	return s == BASE_OK ? graph_views_add_crosses(g, n, c, err) : s;
}

/* ---- actors and queues ----------------------------------------------------------------------- */

struct on_path {
	uint64_t ns, times;
};

struct interaction {
	struct report_graph *g;
	const struct graph_names *n;
	const struct graph_compact *c;
	uint32_t *actor_node, *queue_node; /* by class; NONE: not drawn */
	struct base_map use_of;            /* (actor, queue) -> use */
	struct on_path *put, *take;        /* by use */
	struct base_map direct;            /* (from node, to node and queue) -> edge */
};

static bool is_direct(const struct interaction *x, uint32_t queue)
{
	return queue == NONE || x->n->queue_is_token[queue];
}

/* Actors first, then queues, each in the order of their ids. */
static enum base_status graph_views_add_nodes(struct interaction *x, struct base_err *err)
{
	struct report_graph *g = x->g;
	const struct graph_names *n = x->n;
	x->actor_node = report_array(n->scratch, n->nr_actor_classes, sizeof *x->actor_node);
	x->queue_node = report_array(n->scratch, n->nr_queue_classes, sizeof *x->queue_node);
	g->node = report_array(
		g->arena, (size_t)n->nr_actor_classes + n->nr_queue_classes, sizeof *g->node);
	if (!x->actor_node || !x->queue_node || !g->node)
		return report_no_memory(err);
	for (uint32_t a = 0; a < n->nr_actor_classes; a++) {
		x->actor_node[a] = (uint32_t)g->nr_nodes;
		g->node[g->nr_nodes++] = (struct report_graph_node){
			.kind = REPORT_NODE_actor,
			.name = n->actor_name[a],
			.from = "",
			.to = "",
			.type = "",
			.cluster = g->nr_clusters++,
		};
	}
	bool *used = report_array(n->scratch, n->nr_queue_classes, sizeof *used);
	if (!used)
		return report_no_memory(err);
	for (size_t i = 0; i < x->c->nr_uses; i++)
		used[x->c->use[i].queue] = true;
	for (size_t i = 0; i < x->c->nr_crosses; i++)
		if (x->c->cross[i].queue != NONE)
			used[x->c->cross[i].queue] = true;
	for (uint32_t q = 0; q < n->nr_queue_classes; q++) {
		x->queue_node[q] = NONE;
		if (is_direct(x, q) || !used[q])
			continue;
		x->queue_node[q] = (uint32_t)g->nr_nodes;
		g->node[g->nr_nodes++] = (struct report_graph_node){
			.kind = REPORT_NODE_queue,
			.name = n->queue_name[q],
			.from = "",
			.to = "",
			.type = n->queue_type[q] < TRACE_OBJECT_NR
					? trace_object_type_text(n->queue_type[q])
					: "processor",
		};
	}
	return BASE_OK;
}

static void graph_views_sum_actors(struct interaction *x)
{
	const struct graph_compact *c = x->c;
	for (size_t i = 0; i < c->nr_edges; i++) {
		const struct graph_compact_edge *e = &c->edge[i];
		struct report_graph_node *node = &x->g->node[x->actor_node[c->node[e->from].actor]];
		node->path_ns += e->path_ns;
		if (x->n->state_idle[e->state])
			continue;
		node->passes += e->visits;
		node->time_ns += e->time_ns;
		node->waiting_ns += e->waiting_ns;
	}
}

/* ---- who is on the path through which queue */

static void path_of_use(struct interaction *x, struct on_path *side, uint32_t actor, uint32_t queue,
	uint64_t ns, uint64_t times)
{
	uint64_t use;
	if (!base_map_get(&x->use_of, actor, queue, &use))
		return;
	side[use].ns += ns;
	side[use].times += times;
}

static enum base_status add_direct(
	struct interaction *x, const struct graph_compact_cross *cross, struct base_err *err)
{
	uint32_t from = x->actor_node[x->c->node[cross->from].actor];
	uint32_t to = x->actor_node[x->c->node[cross->to].actor];
	uint64_t key = (uint64_t)from << 32 | to, at;
	if (from == to && cross->queue != NONE)
		return BASE_OK;
	if (!base_map_get(&x->direct, key, cross->queue, &at)) {
		struct report_graph_edge e = {.kind = REPORT_EDGE_cross,
			.from = from,
			.to = to,
			.name = cross_name(x->n, cross)};
		at = x->g->nr_edges;
		enum base_status s = report_graph_add_edge(x->g, &e, err);
		if (s == BASE_OK && base_map_put(&x->direct, key, cross->queue, at) != BASE_OK)
			s = report_no_memory(err);
		if (s != BASE_OK)
			return s;
	}
	struct report_graph_edge *e = &x->g->edge[at];
	e->passes += cross->uses;
	e->waits += cross->nr_waited;
	e->latency_ns += cross->latency_ns;
	e->path_ns += cross->path_ns;
	e->path_visits += cross->path_uses;
	return BASE_OK;
}

/* Units go from their producer to their taker; room goes the other way round. */
static enum base_status follow_crosses(struct interaction *x, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < x->c->nr_crosses && s == BASE_OK; i++) {
		const struct graph_compact_cross *cross = &x->c->cross[i];
		uint32_t from = x->c->node[cross->from].actor, to = x->c->node[cross->to].actor;
		if (is_direct(x, cross->queue)) {
			s = add_direct(x, cross, err);
			continue;
		}
		x->g->node[x->queue_node[cross->queue]].path_ns += cross->path_ns;
		path_of_use(x, cross->space ? x->put : x->take, to, cross->queue, cross->path_ns,
			cross->path_uses);
		path_of_use(x, cross->space ? x->take : x->put, from, cross->queue, 0,
			cross->path_uses);
	}
	return s;
}

/* ---- arrows */

static enum base_status add_arrow(struct interaction *x, enum report_graph_edge_kind kind,
	const struct graph_compact_use *u, size_t use, struct base_err *err)
{
	bool puts = kind != REPORT_EDGE_take, takes = kind != REPORT_EDGE_put;
	uint32_t actor = x->actor_node[u->actor], queue = x->queue_node[u->queue];
	struct report_graph_edge e = {
		.kind = kind,
		.from = puts ? actor : queue,
		.to = puts ? queue : actor,
		.name = x->n->queue_name[u->queue],
	};
	/* What never does anything, such as a barrier's meeting point, does not wait either. */
	bool waits = x->g->node[actor].time_ns != 0;
	if (puts) {
		e.puts = u->nr_puts;
		e.waits += waits ? u->nr_waits_space : 0;
		e.waiting_ns += waits ? u->wait_space_ns : 0;
		e.path_ns += x->put[use].ns;
		e.path_visits += x->put[use].times;
	}
	if (takes) {
		e.takes = u->nr_takes;
		e.waits += waits ? u->nr_waits_data : 0;
		e.waiting_ns += waits ? u->wait_data_ns : 0;
		e.path_ns += x->take[use].ns;
		e.path_visits += x->take[use].times;
	}
	if (model_object_is(x->n->queue_type[u->queue], MODEL_TRAIT_bytes))
		e.bytes = (puts ? u->put_units : 0) + (takes ? u->taken_units : 0);
	e.passes = e.puts + e.takes;
	e.time_ns = e.waiting_ns;
	x->g->node[queue].waiting_ns += e.waiting_ns;
	x->g->node[queue].passes += e.passes;
	return report_graph_add_edge(x->g, &e, err);
}

/* An actor that puts and takes the same, as with a lock, gets one arrow with two heads. */
static enum base_status add_arrows(struct interaction *x, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < x->c->nr_uses && s == BASE_OK; i++) {
		const struct graph_compact_use *u = &x->c->use[i];
		if (is_direct(x, u->queue))
			continue;
		bool puts = u->nr_puts || u->nr_waits_space;
		bool takes = u->nr_takes || u->nr_waits_data;
		if (puts || takes)
			s = add_arrow(x,
				puts && takes ? REPORT_EDGE_both
				: puts        ? REPORT_EDGE_put
					      : REPORT_EDGE_take,
				u, i, err);
	}
	return s;
}

/* ---- the lightest go */

struct light {
	uint64_t path, waiting, passes;
	uint32_t node;
};

static int graph_views_lightest_first(const void *pa, const void *pb)
{
	const struct light *a = pa, *b = pb;
	if (a->path != b->path)
		return a->path < b->path ? -1 : 1;
	if (a->waiting != b->waiting)
		return a->waiting < b->waiting ? -1 : 1;
	if (a->passes != b->passes)
		return a->passes < b->passes ? -1 : 1;
	return a->node > b->node ? -1 : a->node < b->node;
}

static void drop_edges(struct report_graph *g, const uint32_t *new_node)
{
	size_t nr = 0;
	for (size_t i = 0; i < g->nr_edges; i++) {
		struct report_graph_edge e = g->edge[i];
		if (new_node[e.from] == NONE || new_node[e.to] == NONE) {
			g->nr_pruned_edges++;
			g->pruned_uses += e.passes;
			g->pruned_time_ns += e.waiting_ns;
			g->pruned_path_ns += e.path_ns;
			continue;
		}
		e.from = new_node[e.from];
		e.to = new_node[e.to];
		g->edge[nr++] = e;
	}
	g->nr_edges = nr;
}

static enum base_status keep_heaviest(struct interaction *x, size_t max, struct base_err *err)
{
	struct report_graph *g = x->g;
	size_t excess = g->nr_nodes > max ? g->nr_nodes - max : 0, nr = 0;
	struct light *light = report_array(x->n->scratch, g->nr_nodes, sizeof *light);
	uint32_t *new_node = report_array(x->n->scratch, g->nr_nodes, sizeof *new_node);
	if (!light || !new_node)
		return report_no_memory(err);
	if (!excess)
		return BASE_OK;
	for (size_t i = 0; i < g->nr_nodes; i++)
		light[i] = (struct light){.path = g->node[i].path_ns,
			.waiting = g->node[i].waiting_ns,
			.passes = g->node[i].passes,
			.node = (uint32_t)i};
	qsort(light, g->nr_nodes, sizeof *light, graph_views_lightest_first);
	for (size_t i = 0; i < excess; i++) {
		const struct report_graph_node *node = &g->node[light[i].node];
		new_node[light[i].node] = NONE;
		if (node->kind == REPORT_NODE_actor)
			g->pruned_path_ns += node->path_ns;
	}
	for (size_t i = 0; i < g->nr_nodes; i++) {
		if (new_node[i] == NONE)
			continue;
		new_node[i] = (uint32_t)nr;
		g->node[nr++] = g->node[i];
	}
	g->nr_nodes = nr;
	g->nr_pruned_nodes = excess;
	drop_edges(g, new_node);
	return BASE_OK;
}

/* Queues that nobody waited for say nothing about who waits on whom. */
static enum base_status graph_views_drop_idle(struct interaction *x, struct base_err *err)
{
	struct report_graph *g = x->g;
	uint32_t *new_node = report_array(x->n->scratch, g->nr_nodes, sizeof *new_node);
	size_t nr = 0, nr_edges = 0;
	if (!new_node)
		return report_no_memory(err);
	for (size_t i = 0; i < g->nr_nodes; i++) {
		const struct report_graph_node *node = &g->node[i];
		bool idle = node->kind == REPORT_NODE_queue && !node->waiting_ns && !node->path_ns;
		g->nr_idle_queues += idle;
		new_node[i] = idle ? NONE : (uint32_t)nr;
		if (!idle)
			g->node[nr++] = *node;
	}
	g->nr_nodes = nr;
	for (size_t i = 0; i < g->nr_edges; i++) {
		struct report_graph_edge e = g->edge[i];
		if (new_node[e.from] == NONE || new_node[e.to] == NONE)
			continue;
		e.from = new_node[e.from];
		e.to = new_node[e.to];
		g->edge[nr_edges++] = e;
	}
	g->nr_edges = nr_edges;
	return BASE_OK;
}

enum base_status report_graph_fill_interaction(struct report_graph *g, const struct graph_names *n,
	const struct graph_compact *c, const struct report_graph_options *o, struct base_err *err)
{
	struct interaction x = {.g = g, .n = n, .c = c};
	enum base_status s = graph_views_add_nodes(&x, err);
	x.put = report_array(n->scratch, c->nr_uses, sizeof *x.put);
	x.take = report_array(n->scratch, c->nr_uses, sizeof *x.take);
	if (s == BASE_OK && (!x.put || !x.take))
		s = report_no_memory(err);
	for (size_t i = 0; i < c->nr_uses && s == BASE_OK; i++)
		if (base_map_put(&x.use_of, c->use[i].actor, c->use[i].queue, i) != BASE_OK)
			s = report_no_memory(err);
	if (s == BASE_OK) {
		graph_views_sum_actors(&x);
		s = follow_crosses(&x, err);
	}
	if (s == BASE_OK)
		s = add_arrows(&x, err);
	if (s == BASE_OK && !o->idle_queues)
		s = graph_views_drop_idle(&x, err);
	if (s == BASE_OK)
		s = keep_heaviest(&x, o->max_nodes, err);
	base_map_fini(&x.use_of);
	base_map_fini(&x.direct);
	return s;
}
