/* SPDX-License-Identifier: Apache-2.0 */
/* graph_private.h - shared by the files of report/graph/, not beyond. */
#ifndef LONGPOLE_REPORT_GRAPH_PRIVATE_H
#define LONGPOLE_REPORT_GRAPH_PRIVATE_H

#include "graph/compact.h"
#include "report/graph/graph.h"
#include "report/predict/predictor.h"

/* What ids stand for: several may have one name. Names are in the graph's arena. */
struct graph_names {
	struct base_arena *scratch;
	uint32_t nr_actors, nr_states, nr_queues;
	uint32_t *actor_class, *state_class, *queue_class;   /* by id */
	const char **actor_name, **state_name, **queue_name; /* by class */
	uint32_t nr_actor_classes, nr_queue_classes, nr_chosen;
	bool *chosen;         /* actor classes that were asked for */
	bool *state_idle;     /* not begun, or ended */
	bool *queue_is_token; /* thread and process starts and ends: drawn as arrows */
	enum trace_object_type *queue_type;
};

/* c is by classes; shaped further in place. */
enum base_status report_graph_fill_interaction(struct report_graph *g, const struct graph_names *n,
	const struct graph_compact *c, const struct report_graph_options *o,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status report_graph_fill_states(struct report_graph *g, const struct graph_names *n,
	struct graph_compact *c, size_t max_nodes, struct base_err *err) BASE_MUST_CHECK;

/* What was folded, merged and left out, a sentence a line; each line ends with `line_end`. */
void report_graph_losses(struct base_str *out, const struct report_graph *g, const char *line_end);
const char *report_graph_title(const struct report_graph *g);

enum { REPORT_GRAPH_HANDFUL = 5 }; /* more of a kind are drawn as one */
enum base_status report_graph_fold_queues(struct report_graph *g, const struct graph_names *n,
	struct graph_compact *c, struct base_err *err) BASE_MUST_CHECK;

static inline enum base_status report_graph_add_edge(
	struct report_graph *g, const struct report_graph_edge *e, struct base_err *err)
{
	if (base_grow(&g->edge, &g->edge_capacity, g->nr_edges + 1, sizeof *g->edge) != BASE_OK)
		return report_no_memory(err);
	g->edge[g->nr_edges++] = *e;
	return BASE_OK;
}

#endif
