/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - `longpole graph`: who waits on whom, or the states and their transitions, drawn small
 * enough to be looked at; as a table, for Graphviz and in JSON.
 */
#ifndef LONGPOLE_REPORT_GRAPH_GRAPH_H
#define LONGPOLE_REPORT_GRAPH_GRAPH_H

#include "report/predict/predict.h"

enum report_graph_view {
	REPORT_GRAPH_interaction, /* actors and queues: who waits on whom */
	REPORT_GRAPH_states,      /* transitions and states of all actors */
	REPORT_GRAPH_machine      /* of the actors that match; stubs of the others */
};
const char *report_graph_view_name(enum report_graph_view v);

enum report_graph_node_kind {
	REPORT_NODE_actor,
	REPORT_NODE_queue,
	REPORT_NODE_transition,
	REPORT_NODE_stub /* an actor that was not asked for */
};
struct report_graph_node {
	enum report_graph_node_kind kind;
	const char *name;      /* of the actor or queue */
	const char *from, *to; /* transition: states; from "": the actor begins */
	const char *type;      /* queue */
	uint32_t cluster;      /* actor, dense from 0 */
	uint64_t passes, time_ns, waiting_ns, path_ns;
};
enum report_graph_edge_kind {
	REPORT_EDGE_state, /* between transitions: in one state */
	REPORT_EDGE_run,   /* several, merged */
	REPORT_EDGE_open,  /* until the end of the trace: no node follows */
	REPORT_EDGE_cross, /* from the producer of units to their taker */
	REPORT_EDGE_put,   /* actor -> queue */
	REPORT_EDGE_take,  /* queue -> actor */
	REPORT_EDGE_both   /* actor -> queue and back, such as a lock */
};
struct report_graph_edge {
	enum report_graph_edge_kind kind;
	uint32_t from, to; /* nodes; open: to == from */
	const char *name;  /* of the state or queue */
	uint64_t nr_states, passes, visits;
	uint64_t puts, takes;         /* put, take, both */
	uint64_t bytes;               /* of them, through a pipe or socket, as accounted; else 0 */
	uint64_t time_ns, waiting_ns; /* in states; of put and take: waited */
	uint64_t waits, latency_ns;   /* cross: that ended a wait, and from available to used */
	uint64_t path_ns, path_visits;
};
struct report_graph {
	struct base_arena *arena;
	struct report_trace trace;
	enum report_graph_view view;
	double elapsed_ns;
	uint64_t all_time_ns, all_visits, all_uses; /* before pruning: what shares are of */
	struct report_graph_node *node;
	struct report_graph_edge *edge; /* heaviest first */
	size_t nr_nodes, nr_edges;
	size_t edge_capacity;
	uint32_t nr_clusters;
	uint64_t nr_folded_actors, nr_folded_groups; /* threads drawn as one */
	uint64_t nr_folded_queues;                   /* pipes or sockets drawn together */
	uint64_t nr_merged_nodes;                    /* inside runs */
	uint64_t nr_pruned_nodes, nr_pruned_edges;   /* left out, with: */
	uint64_t pruned_time_ns, pruned_visits, pruned_path_ns, pruned_uses;
	uint64_t nr_idle_handovers; /* of processors that nobody waited for: not drawn */
	uint64_t nr_idle_queues;    /* that nobody waited for: not drawn */
	uint64_t unplaced_ns;       /* of the path: on no edge */
};
enum { REPORT_GRAPH_NODES_DEFAULT = 1500 };
struct report_graph_options {
	enum report_graph_view view;
	const char *actor; /* machine: pattern */
	bool each_actor;   /* do not fold groups of threads, and of pipes or sockets */
	bool idle_queues;  /* interaction: draw also those that nobody waited for */
	size_t max_nodes;  /* 0: the default */
};
/* Two passes. ERR_NOTFOUND when the pattern matches no actor. */
enum base_status report_graph_build(const struct report_run *run,
	const struct report_graph_options *opts, struct report_graph **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_graph *report_graph_free(struct report_graph *g);
void report_graph_dot(struct base_str *out, const struct report_graph *g);
void report_graph_text(struct base_str *out, const struct report_graph *g, size_t limit,
	const struct report_style *style);
json_t *report_graph_json(const struct report_graph *g);
/* A text as a quoted string of the DOT language, as it will be read: no escape of its own. */
void report_dot_quote(struct base_str *out, const char *text);
/* Several views of one recording of the graph; ret[nr]. As report_graph_build(). */
enum base_status report_graph_build_views(const struct report_run *run,
	const struct report_graph_options *opts, unsigned nr, struct report_graph **ret,
	struct base_err *err) BASE_MUST_CHECK;

#endif
