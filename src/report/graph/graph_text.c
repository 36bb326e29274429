/* SPDX-License-Identifier: Apache-2.0 */
/* graph_text.c - the compact graph as a table of its heaviest edges, and as JSON. */
#include "report/graph/graph_private.h"

#include <math.h>

const char *report_graph_title(const struct report_graph *g)
{
	return g->view == REPORT_GRAPH_interaction ? "Who waits on whom"
	       : g->view == REPORT_GRAPH_states    ? "States and transitions"
						   : "One state machine";
}

/* ---- what is not to be seen ------------------------------------------------------------------ */

static void add_share(struct base_str *out, double part, double all)
{
	base_str_add(out, " (");
	report_percent(out, all > 0 ? part / all : 0);
	base_str_add(out, ")");
}

static void pruned(struct base_str *out, const struct report_graph *g, const char *line_end)
{
	base_str_add_counted(
		out, "Left out (--max-nodes shows more): %s {node|nodes} and ", g->nr_pruned_nodes);
	base_str_add_counted(out,
		g->view == REPORT_GRAPH_interaction ? "%s {arrow|arrows}: " : "%s {line|lines}: ",
		g->nr_pruned_edges);
	if (g->view == REPORT_GRAPH_interaction) {
		base_str_add_ns(out, g->pruned_time_ns);
		base_str_add(out, " of waiting");
	} else {
		base_str_add_counted(out, "%s {visit|visits}", g->pruned_visits);
		add_share(out, (double)g->pruned_visits, (double)g->all_visits);
		base_str_add(out, ", ");
		base_str_add_ns(out, g->pruned_time_ns);
		add_share(out, (double)g->pruned_time_ns, (double)g->all_time_ns);
	}
	base_str_add(out, ", ");
	base_str_add_ns(out, g->pruned_path_ns);
	base_str_add(out, " of the critical path");
	add_share(out, (double)g->pruned_path_ns, g->elapsed_ns);
	base_str_addf(out, ".%s", line_end);
}

void report_graph_losses(struct base_str *out, const struct report_graph *g, const char *line_end)
{
	if (g->nr_folded_queues) {
		base_str_add_counted(out,
			"%s {pipe or socket is|pipes or sockets are} drawn with others of the same "
			"users (--each-actor draws each).",
			g->nr_folded_queues);
		base_str_add(out, line_end);
	}
	if (g->nr_folded_groups) {
		base_str_add_counted(
			out, "%s {thread is|threads are} drawn as ", g->nr_folded_actors);
		base_str_add_count(out, g->nr_folded_groups);
		base_str_addf(out, " (--each-actor draws each).%s", line_end);
	}
	if (g->nr_merged_nodes) {
		base_str_add_counted(out,
			"%s {transition on a straight way is inside a line|transitions on "
			"straight ways are inside lines} of several states.",
			g->nr_merged_nodes);
		base_str_add(out, line_end);
	}
	if (g->nr_pruned_nodes)
		pruned(out, g, line_end);
	if (g->nr_idle_queues) {
		base_str_add_counted(out,
			"%s {queue that nobody waited for is|queues that nobody waited for are} "
			"not drawn (--all draws {it|them}).",
			g->nr_idle_queues);
		base_str_add(out, line_end);
	}
	if (g->nr_idle_handovers) {
		base_str_add_counted(out,
			"%s dashed {line is|lines are} not drawn: processors handed on that nobody "
			"waited for.",
			g->nr_idle_handovers);
		base_str_add(out, line_end);
	}
	if (g->unplaced_ns) {
		base_str_add_ns(out, g->unplaced_ns);
		base_str_addf(
			out, " of the critical path belong to no line that was seen.%s", line_end);
	}
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *graph_text_arrow(const struct report_style *st, enum report_graph_edge_kind k)
{
	if (k == REPORT_EDGE_both)
		return st->utf8 ? " \xe2\x86\x94 " : " <-> ";
	return st->utf8 ? " \xe2\x86\x92 " : " -> ";
}

static void transition(
	struct base_str *out, const struct report_style *st, const struct report_graph_node *n)
{
	if (n->kind != REPORT_NODE_transition)
		return;
	base_str_add(out, *n->from ? n->from : "begins");
	base_str_add(out, graph_text_arrow(st, REPORT_EDGE_state));
	base_str_add(out, n->to);
}

/* The actors, and what the edge is. */
static void graph_text_describe(struct base_str *out, const struct report_style *st,
	const struct report_graph *g, const struct report_graph_edge *e)
{
	const struct report_graph_node *from = &g->node[e->from], *to = &g->node[e->to];
	if (e->kind >= REPORT_EDGE_cross) {
		base_str_addf(out, "%s%s%s", from->name, graph_text_arrow(st, e->kind), to->name);
		if (e->kind == REPORT_EDGE_cross)
			base_str_addf(out, "  [%s]", e->name);
		return;
	}
	base_str_addf(out, "%s: ", from->name);
	if (e->kind != REPORT_EDGE_run) {
		base_str_add(out, e->name);
		return;
	}
	base_str_addf(out, "%s from ", e->name);
	transition(out, st, from);
	base_str_add(out, " to ");
	transition(out, st, to);
}

static void graph_text_column_ns(struct base_str *out, uint64_t ns, size_t width)
{
	struct base_str s = {0};
	if (ns)
		base_str_add_ns(&s, ns);
	else
		base_str_add(&s, "-");
	report_right(out, base_str_text(&s), width);
	base_str_fini(&s);
}

static void edge_line(struct base_str *out, const struct report_style *st,
	const struct report_graph *g, const struct report_graph_edge *e)
{
	struct base_str s = {0};
	report_percent(&s, g->elapsed_ns > 0 ? (double)e->path_ns / g->elapsed_ns : 0);
	report_right(out, e->path_ns ? base_str_text(&s) : "-", 6);
	graph_text_column_ns(out, e->path_ns, 10);
	graph_text_column_ns(out, e->kind == REPORT_EDGE_cross ? e->latency_ns : e->time_ns, 10);
	base_str_reset(&s);
	base_str_add_count(&s, e->passes);
	report_right(out, base_str_text(&s), 11);
	base_str_reset(&s);
	graph_text_describe(&s, st, g, e);
	base_str_add(out, "  ");
	report_cell(out, st, base_str_text(&s), st->columns > 50 ? st->columns - 40 : 40, false);
	base_str_add(out, "\n");
	base_str_fini(&s);
}

void report_graph_text(struct base_str *out, const struct report_graph *g, size_t limit,
	const struct report_style *style)
{
	size_t nr = limit && limit < g->nr_edges ? limit : g->nr_edges;
	base_str_addf(out, "%s: ", report_graph_title(g));
	base_str_add_counted(out, "%s {node|nodes}, ", g->nr_nodes);
	base_str_add_counted(out,
		g->view == REPORT_GRAPH_interaction ? "%s {arrow|arrows}" : "%s {line|lines}",
		g->nr_edges);
	base_str_add(out, ", of a critical path of ");
	report_ns(out, g->elapsed_ns);
	base_str_add(out, "\n");
	report_color_begin(out, style, REPORT_DIM);
	base_str_add(
		out, g->view == REPORT_GRAPH_interaction
			     ? " share   on path    waited      times  who, through what"
			     : " share   on path      time      times  who, in which state; or "
			       "from whom to whom [through]");
	report_color_end(out, style);
	base_str_add(out, "\n");
	for (size_t i = 0; i < nr; i++)
		edge_line(out, style, g, &g->edge[i]);
	if (nr < g->nr_edges)
		base_str_addf(out, "... %zu more (--all shows them)\n", g->nr_edges - nr);
	report_graph_losses(out, g, "\n");
	report_trace_text_caveats(out, &g->trace, style);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

#include "report/graph/graph.def"

json_t *report_graph_json(const struct report_graph *g)
{
	return report_envelope(report_graph_document.name, &g->trace,
		base_table_json(&report_graph_document, g, g, 0));
}
