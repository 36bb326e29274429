/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.h - the compact graph: who goes from which state to which, and who waits for whom, summed
 * over a whole run.
 *
 * Saidi 2009 (seed 000) section 5.9. A node is a transition (actor, state A -> state B), one
 * however often it occurred. An edge from A -> B to B -> C is the state B, so that several edges
 * may carry one state. A crossing joins the transition that made units (or space) available to the
 * one that used them; it carries latency, never execution. Memory grows with distinct transitions,
 * edges and crossings, not with time. Numbers only, as in graph.h; needs base only.
 *
 * Laws, with X the value of an actor's first or last node only:
 *   per node, passes in == passes out (X: one less)       edge.path_ns <= edge.time_ns
 *   sum of edge.path_ns + sum of cross.path_ns + unplaced_ns == the path's length
 * Folding actors or states into classes keeps them. So does merging; pruning says what it took.
 */
#ifndef LONGPOLE_GRAPH_COMPACT_H
#define LONGPOLE_GRAPH_COMPACT_H

#include "graph/graph.h"

#define GRAPH_COMPACT_NONE UINT32_MAX

struct graph_compact_node {
	uint32_t actor, from, to; /* states; from NONE: the actor begins */
	bool stub;                /* stands for its whole actor (graph_compact_select) */
	uint64_t passes;          /* how often it was gone through */
};
struct graph_compact_edge {
	uint32_t from, to;  /* nodes; to NONE: it was in that state when the run ended */
	uint32_t state;     /* NONE: several, merged */
	uint64_t nr_states; /* merged into it, 1 if none */
	uint64_t passes;    /* times that it was gone along */
	uint64_t visits;    /* of states: passes x nr_states */
	uint64_t time_ns, waiting_ns;
	uint64_t path_ns, path_visits; /* on the critical path */
};
struct graph_compact_cross {
	uint32_t from, to; /* nodes */
	uint32_t queue;    /* NONE: a link */
	bool space;        /* room in it was waited for or used, not units */
	uint64_t uses;
	uint64_t nr_waited, latency_ns; /* of them: a wait ended; from available to used */
	uint64_t path_ns, path_uses;
};
struct graph_compact_use { /* what an actor did to a queue */
	uint32_t actor, queue;
	uint64_t nr_puts, put_units, nr_takes, taken_units;
	uint64_t nr_waits_data, wait_data_ns, nr_waits_space, wait_space_ns;
};
struct graph_compact_loss {                        /* what is no longer to be seen one by one */
	uint64_t nr_merged_nodes, nr_merged_edges; /* inside merged edges: sums are kept */
	uint64_t nr_pruned_nodes, nr_pruned_edges, nr_pruned_crosses; /* gone, with: */
	uint64_t visits, time_ns, path_ns, uses, latency_ns;
};
struct graph_compact {
	struct graph_compact_node *node;
	struct graph_compact_edge *edge;
	struct graph_compact_cross *cross;
	struct graph_compact_use *use;
	size_t nr_nodes, nr_edges, nr_crosses, nr_uses;
	size_t node_capacity, edge_capacity, cross_capacity, use_capacity;
	uint64_t unplaced_ns; /* of the path: belongs to no edge that was seen */
	struct graph_compact_loss loss;
};
/* Frees what it holds. `{0}` is an empty one. */
void graph_compact_fini(struct graph_compact *c);

/* ---- recording ------------------------------------------------------------------------------- */

struct graph_compact_options {
	size_t size;
	/* Lane 0's path, of an earlier pass over the same run (graph_path); borrowed. */
	const struct graph_path_edge *path;
	size_t nr_path;
	/* Nodes, edges, crossings and uses, each at most; 0: 4 million. Beyond: ERR_LIMIT. */
	size_t limit;
};
struct graph_compact_recorder;
enum base_status graph_compact_new(const struct graph_compact_options *o,
	struct graph_compact_recorder **ret, struct base_err *err) BASE_MUST_CHECK;
struct graph_compact_recorder *graph_compact_free(struct graph_compact_recorder *r);
/* Both are needed: transitions come from the listener, puts and takes from the sink. */
const struct graph_listener *graph_compact_listener(struct graph_compact_recorder *r);
const struct graph_sink *graph_compact_sink(struct graph_compact_recorder *r);
/* After the run: places what is left of the path, and hands over the graph (fini it). */
enum base_status graph_compact_finish(struct graph_compact_recorder *r, struct graph_compact *ret,
	struct base_err *err) BASE_MUST_CHECK;

/* ---- shaping: each makes a new graph of an old one ------------------------------------------- */

/* Ids become classes: actor_class[actor], ...; NULL leaves them. Equal nodes, edges, crossings and
 * uses are summed. */
struct graph_compact_classes {
	const uint32_t *actor, *state, *queue;
};
enum base_status graph_compact_fold(const struct graph_compact *c,
	const struct graph_compact_classes *classes, struct graph_compact *ret,
	struct base_err *err) BASE_MUST_CHECK;

/* Only actors with keep[actor]; of the others those that cross with them, a stub node each. The
 * rest is not counted as pruned: it was not asked for. */
enum base_status graph_compact_select(const struct graph_compact *c, const bool *keep,
	struct graph_compact *ret, struct base_err *err) BASE_MUST_CHECK;

/* Straight runs become one edge: nodes with one edge in, one out, no crossing. In place. */
enum base_status graph_compact_merge(struct graph_compact *c, struct base_err *err) BASE_MUST_CHECK;

/* At most max_nodes: those that carry least of the path and of the traversals go first, with their
 * edges. In place. */
enum base_status graph_compact_prune(
	struct graph_compact *c, size_t max_nodes, struct base_err *err) BASE_MUST_CHECK;

#endif
