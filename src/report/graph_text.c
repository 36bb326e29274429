/* SPDX-License-Identifier: Apache-2.0 */
/* graph_text.c - the compact graph as a table of its heaviest edges, and as JSON. */
#include "report/graph_private.h"

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

/* Who, and what the edge is. */
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

static const char *node_kind(enum report_graph_node_kind k)
{
	static const char *const name[] = {"actor", "queue", "transition", "stub"};
	return name[k];
}

static const char *edge_kind(enum report_graph_edge_kind k)
{
	static const char *const name[] = {
		"state", "states", "open_state", "dependence", "put", "take", "put_and_take"};
	return name[k];
}

static json_t *nodes(const struct report_graph *g)
{
	json_t *list = json_array();
	for (size_t i = 0; i < g->nr_nodes; i++) {
		const struct report_graph_node *n = &g->node[i];
		json_t *row = json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:o}", "node",
			report_json_u64(i), "kind", node_kind(n->kind), "name", n->name, "times",
			report_json_u64(n->passes), "time_ns", report_json_u64(n->time_ns),
			"waiting_ns", report_json_u64(n->waiting_ns), "path_ns",
			report_json_u64(n->path_ns));
		if (n->kind == REPORT_NODE_transition) {
			json_object_set_new(row, "from_state", report_json_text(n->from));
			json_object_set_new(row, "to_state", report_json_text(n->to));
		}
		if (n->kind == REPORT_NODE_queue)
			json_object_set_new(row, "type", report_json_text(n->type));
		json_array_append_new(list, row);
	}
	return list;
}

static json_t *edges(const struct report_graph *g)
{
	json_t *list = json_array();
	for (size_t i = 0; i < g->nr_edges; i++) {
		const struct report_graph_edge *e = &g->edge[i];
		json_t *row = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			"kind", edge_kind(e->kind), "name", e->name, "from",
			report_json_u64(e->from), "to",
			e->kind == REPORT_EDGE_open ? json_null() : report_json_u64(e->to), "times",
			report_json_u64(e->passes), "waits", report_json_u64(e->waits), "time_ns",
			report_json_u64(e->time_ns), "waiting_ns", report_json_u64(e->waiting_ns),
			"latency_ns", report_json_u64(e->latency_ns), "path_ns",
			report_json_u64(e->path_ns), "path_times", report_json_u64(e->path_visits));
		if (e->kind < REPORT_EDGE_cross) {
			json_object_set_new(row, "states", report_json_u64(e->nr_states));
			json_object_set_new(row, "visits", report_json_u64(e->visits));
		}
		if (e->kind > REPORT_EDGE_cross) {
			json_object_set_new(row, "puts", report_json_u64(e->puts));
			json_object_set_new(row, "takes", report_json_u64(e->takes));
			json_object_set_new(row, "bytes", report_json_u64(e->bytes));
		}
		json_array_append_new(list, row);
	}
	return list;
}

json_t *report_graph_json(const struct report_graph *g)
{
	json_t *folded = json_pack("{s:o, s:o, s:o, s:o}", "queues",
		report_json_u64(g->nr_folded_queues), "actors",
		report_json_u64(g->nr_folded_actors), "into", report_json_u64(g->nr_folded_groups),
		"merged_transitions", report_json_u64(g->nr_merged_nodes));
	json_t *left_out = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "nodes",
		report_json_u64(g->nr_pruned_nodes), "edges", report_json_u64(g->nr_pruned_edges),
		"visits", report_json_u64(g->pruned_visits), "time_ns",
		report_json_u64(g->pruned_time_ns), "path_ns", report_json_u64(g->pruned_path_ns),
		"uses", report_json_u64(g->pruned_uses), "idle_processor_handovers",
		report_json_u64(g->nr_idle_handovers), "idle_queues",
		report_json_u64(g->nr_idle_queues));
	json_t *result = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "view",
		report_graph_view_name(g->view), "elapsed_ns", report_json_ns(g->elapsed_ns),
		"nodes", nodes(g), "edges", edges(g), "folded", folded, "left_out", left_out,
		"unplaced_path_ns", report_json_u64(g->unplaced_ns));
	return report_envelope("longpole/graph/1", &g->trace, result);
}
