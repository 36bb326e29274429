/* SPDX-License-Identifier: Apache-2.0 */
/* graph_dot.c - the compact graph in graphviz's DOT language: colours, widths, legend. */
#include "report/graph/graph_private.h"

#include <math.h>

enum {
	NAME_WIDTH = 34,
	STATE_WIDTH = 30,
	CROWDED = 60,      /* edges: beyond it only the weighty ones have their text beside them */
	WEIGHTY_PART = 50, /* of the largest */
	MANY = 400,        /* nodes and edges: dot must not try as hard */
	VERY_MANY = 1500,
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* In a quoted string a backslash begins an escape, and an ampersand may begin an entity. */
static void graph_dot_add_escaped(struct base_str *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			base_str_addf(out, "\\%c", *text);
		else if (*text == '&')
			base_str_add(out, "&amp;");
		else if (*text == '\n')
			base_str_add(out, "\\n");
		else
			base_str_add_bytes(out, text, 1);
	}
}

void report_dot_quote(struct base_str *out, const char *text)
{
	struct base_str clean = {0};
	report_clean_add(&clean, text);
	base_str_add(out, "\"");
	graph_dot_add_escaped(out, base_str_text(&clean));
	base_str_add(out, "\"");
	out->failed |= clean.failed;
	base_str_fini(&clean);
}

static void add_short(struct base_str *out, const char *text, size_t width)
{
	static const struct report_style style = {.utf8 = true};
	struct base_str s = {0};
	report_cell(&s, &style, text, width, false);
	graph_dot_add_escaped(out, base_str_text(&s));
	out->failed |= s.failed;
	base_str_fini(&s);
}

static void graph_dot_add_times(struct base_str *out, uint64_t n)
{
	base_str_add_count(out, n);
	base_str_add(out, "\xc3\x97");
}

/* ", on the path 1.2 ms (30 %)" */
static void graph_dot_add_path(struct base_str *out, const struct report_graph *g, uint64_t path_ns)
{
	if (!path_ns)
		return;
	base_str_add(out, "\\npath ");
	base_str_add_ns(out, path_ns);
	base_str_add(out, ", ");
	report_percent(out, g->elapsed_ns > 0 ? (double)path_ns / g->elapsed_ns : 0);
}

/* ---- colours --------------------------------------------------------------------------------- */

struct scale { /* what shares are of */
	double path_ns, path_visits, passes, waiting_ns, time_ns, node_path_ns;
};

static struct scale scale_of(const struct report_graph *g)
{
	struct scale s = {1, 1, 1, 1, 1, 1};
	for (size_t i = 0; i < g->nr_edges; i++) {
		const struct report_graph_edge *e = &g->edge[i];
		s.path_ns = fmax(s.path_ns, (double)e->path_ns);
		s.path_visits = fmax(s.path_visits, (double)e->path_visits);
		s.passes = fmax(s.passes, (double)e->passes);
		s.time_ns = fmax(s.time_ns, (double)e->time_ns);
		s.waiting_ns = fmax(s.waiting_ns, (double)e->waiting_ns);
	}
	for (size_t i = 0; i < g->nr_nodes; i++)
		s.node_path_ns = fmax(s.node_path_ns, (double)g->node[i].path_ns);
	return s;
}

static unsigned byte_of(double share)
{
	return (unsigned)lround(255 * fmin(fmax(share, 0), 1));
}

/* Red: how much of the path an edge is; where the path only passes by, how often it does. Width:
 * the same, but between actors and queues how long they were waited for. */
static void add_edge_look(struct base_str *out, const struct report_graph *g,
	const struct report_graph_edge *e, const struct scale *sc)
{
	bool interaction = g->view == REPORT_GRAPH_interaction;
	double red = interaction ? (double)e->path_visits / sc->path_visits
				 : (double)e->path_ns / sc->path_ns;
	double blue = (double)e->passes / sc->passes;
	double width = interaction ? (double)e->waiting_ns / sc->waiting_ns : red;
	double opacity = 0.4 + 0.6 * fmax(fmax(red, blue), width);
	base_str_addf(out, ", color=\"#%02x00%02x%02x\", penwidth=%.2f", byte_of(red),
		byte_of(blue), byte_of(opacity), 0.8 + 4 * width);
	if (fmax(red, width) > 0.05)
		base_str_addf(out, ", fontcolor=\"#%02x0000\"", byte_of(0.75 * red));
}

/* White to red in the interaction view; else one pale colour an actor. */
static void add_fill(struct base_str *out, const struct report_graph *g,
	const struct report_graph_node *node, const struct scale *sc)
{
	double share = (double)node->path_ns / sc->node_path_ns;
	if (g->view == REPORT_GRAPH_interaction)
		base_str_addf(out, ", fillcolor=\"#ff%02x%02x\"", byte_of(1 - 0.7 * share),
			byte_of(1 - 0.7 * share));
	else if (node->kind == REPORT_NODE_stub)
		base_str_add(out, ", fillcolor=\"#eeeeee\", style=\"filled,dashed\"");
	else /* hues a golden angle apart never repeat soon */
		base_str_addf(out, ", fillcolor=\"%.3f 0.18 0.97\"",
			fmod(0.11 + 0.618034 * node->cluster, 1));
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void transition_label(struct base_str *out, const struct report_graph_node *node)
{
	add_short(out, node->name, NAME_WIDTH);
	base_str_add(out, "\\n");
	if (*node->from) {
		add_short(out, node->from, STATE_WIDTH);
		base_str_add(out, "\\n");
	}
	base_str_add(out, *node->from ? "\xe2\x86\x92 " : "begins: ");
	add_short(out, node->to, STATE_WIDTH);
}

static void actor_label(
	struct base_str *out, const struct report_graph *g, const struct report_graph_node *node)
{
	add_short(out, node->name, NAME_WIDTH);
	base_str_add(out, "\\n");
	base_str_add_ns(out, node->time_ns);
	base_str_add(out, ", waits ");
	report_percent(out, node->time_ns ? (double)node->waiting_ns / (double)node->time_ns : 0);
	graph_dot_add_path(out, g, node->path_ns);
}

static void queue_label(
	struct base_str *out, const struct report_graph *g, const struct report_graph_node *node)
{
	add_short(out, node->name, NAME_WIDTH);
	if (node->waiting_ns) {
		base_str_add(out, "\\nwaited for ");
		base_str_add_ns(out, node->waiting_ns);
	}
	graph_dot_add_path(out, g, node->path_ns);
}

static void graph_dot_add_node(
	struct base_str *out, const struct report_graph *g, size_t i, const struct scale *sc)
{
	const struct report_graph_node *node = &g->node[i];
	base_str_addf(out, "\tn%zu [label=\"", i);
	if (node->kind == REPORT_NODE_transition)
		transition_label(out, node);
	else if (node->kind == REPORT_NODE_actor)
		actor_label(out, g, node);
	else if (node->kind == REPORT_NODE_queue)
		queue_label(out, g, node);
	else
		add_short(out, node->name, NAME_WIDTH);
	base_str_add(out, "\", tooltip=\"");
	graph_dot_add_escaped(out, node->name);
	if (node->kind == REPORT_NODE_transition) {
		base_str_add(out, ": ");
		graph_dot_add_escaped(out, node->from);
		base_str_add(out, " \xe2\x86\x92 ");
		graph_dot_add_escaped(out, node->to);
		base_str_add(out, ", ");
		graph_dot_add_times(out, node->passes);
	}
	base_str_addf(out, "\", shape=%s", node->kind == REPORT_NODE_actor ? "ellipse" : "box");
	add_fill(out, g, node, sc);
	base_str_add(out, "];\n");
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void graph_dot_add_counts(struct base_str *out, const char *verb, uint64_t n, bool comma)
{
	if (comma)
		base_str_add(out, ", ");
	base_str_addf(out, "%s ", verb);
	graph_dot_add_times(out, n);
}

static void arrow_label(struct base_str *out, const struct report_graph_edge *e)
{
	bool same = e->kind == REPORT_EDGE_both && e->puts == e->takes;
	if (same)
		graph_dot_add_counts(out, "takes and puts", e->takes, false);
	else if (e->takes)
		graph_dot_add_counts(out, "takes", e->takes, false);
	if (e->puts && !same)
		graph_dot_add_counts(out, "puts", e->puts, e->takes != 0);
	if (e->bytes) {
		base_str_add(out, ", ");
		base_str_add_size(out, e->bytes);
	}
	if (e->waits) {
		base_str_add(out, "\\nwaits ");
		base_str_add_ns(out, e->waiting_ns);
		base_str_add(out, ", ");
		graph_dot_add_times(out, e->waits);
	}
	if (e->path_visits) {
		base_str_add(out, "\\non the path ");
		graph_dot_add_times(out, e->path_visits);
	}
}

/* Texts beside everything would hide what matters: the others are there when pointed at. */
static bool graph_dot_has_text(
	const struct report_graph *g, const struct report_graph_edge *e, const struct scale *sc)
{
	if (g->nr_edges <= CROWDED)
		return e->kind != REPORT_EDGE_cross || e->waits || e->path_visits;
	return (double)e->path_ns * WEIGHTY_PART >= sc->path_ns ||
	       (double)e->time_ns * WEIGHTY_PART >= sc->time_ns ||
	       (double)e->latency_ns * WEIGHTY_PART >= sc->time_ns ||
	       (g->view == REPORT_GRAPH_interaction &&
		       (double)e->path_visits * WEIGHTY_PART >= sc->path_visits);
}

static void edge_label(
	struct base_str *out, const struct report_graph *g, const struct report_graph_edge *e)
{
	if (e->kind >= REPORT_EDGE_put) {
		arrow_label(out, e);
		return;
	}
	add_short(out, e->name, STATE_WIDTH);
	base_str_add(out, "\\n");
	graph_dot_add_times(out, e->passes);
	if (e->kind != REPORT_EDGE_cross) {
		base_str_add(out, ", ");
		base_str_add_ns(out, e->time_ns);
	} else if (e->path_visits) {
		base_str_add(out, ", on the path ");
		graph_dot_add_times(out, e->path_visits);
	}
	graph_dot_add_path(out, g, e->path_ns);
}

static void graph_dot_add_edge(
	struct base_str *out, const struct report_graph *g, size_t i, const struct scale *sc)
{
	const struct report_graph_edge *e = &g->edge[i];
	bool dashed = e->kind == REPORT_EDGE_cross;
	if (e->kind == REPORT_EDGE_open)
		base_str_addf(out,
			"\to%zu [label=\"end of the trace\", shape=plaintext, "
			"fillcolor=white];\n\tn%u -> o%zu [label=\"",
			i, e->from, i);
	else
		base_str_addf(out, "\tn%u -> n%u [label=\"", e->from, e->to);
	if (graph_dot_has_text(g, e, sc))
		edge_label(out, g, e);
	base_str_add(out, "\", tooltip=\"");
	graph_dot_add_escaped(out, e->name);
	base_str_add(out, "\\n");
	edge_label(out, g, e);
	base_str_add(out, "\"");
	add_edge_look(out, g, e, sc);
	if (dashed)
		base_str_add(out, ", style=dashed");
	if (dashed && g->view != REPORT_GRAPH_interaction)
		base_str_add(out, ", constraint=false");
	if (e->kind == REPORT_EDGE_both)
		base_str_add(out, ", dir=both");
	base_str_add(out, "];\n");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void add_legend(struct base_str *out, const struct report_graph *g)
{
	struct base_str s = {0};
	graph_dot_add_escaped(out, report_graph_title(g));
	base_str_add(out, ": ");
	add_short(out, *g->trace.command ? g->trace.command : g->trace.path, 80);
	base_str_add(out, ", ");
	report_ns(out, g->elapsed_ns);
	base_str_add(out, "\\l");
	base_str_add(out,
		g->view == REPORT_GRAPH_interaction
			? "Ellipse: thread or state machine. Box: queue. Arrows: who puts and who "
			  "takes, how often, and how long they waited.\\lDashed: who starts whom, "
			  "and whose end somebody waits for.\\lWider: waited for longer. Redder: "
			  "more of the critical path passes here; bluer: more often used.\\l"
			: "Box: a transition, once however often it occurred; one colour an actor. "
			  "Line: a state, with visits, time, and time on the critical path."
			  "\\lDashed: from who made "
			  "something available to who used it. Redder: more of the critical path; "
			  "bluer: more often gone along.\\l");
	if (g->nr_edges > CROWDED)
		base_str_addf(&s,
			"Lines without text carry less than %d %% of the heaviest: in svg, point "
			"at them.\n",
			100 / WEIGHTY_PART);
	report_graph_losses(&s, g, "\n");
	for (const char *p = base_str_text(&s); *p; p++) {
		if (*p == '\n')
			base_str_add(out, "\\l");
		else
			base_str_add_bytes(out, p, 1);
	}
	base_str_fini(&s);
}

void report_graph_dot(struct base_str *out, const struct report_graph *g)
{
	struct scale sc = scale_of(g);
	base_str_add(out, "digraph longpole {\ngraph [rankdir=LR, fontname=\"Helvetica\", "
			  "fontsize=11, nodesep=0.3, ranksep=0.6, labelloc=b, labeljust=l");
	if (g->nr_nodes + g->nr_edges > VERY_MANY) /* half a minute instead of many */
		base_str_add(out, ", nslimit=0.1, nslimit1=0.1, mclimit=0.1, splines=line");
	else if (g->nr_nodes + g->nr_edges > MANY)
		base_str_add(out, ", nslimit=1, nslimit1=1, mclimit=0.3");
	base_str_add(out, "];\nlabel=\"");
	add_legend(out, g);
	base_str_add(out, "\";\nnode [fontname=\"Helvetica\", fontsize=10, style=filled, "
			  "color=\"#888888\", margin=\"0.08,0.04\"];\n"
			  "edge [fontname=\"Helvetica\", fontsize=9, fontcolor=\"#555555\", "
			  "arrowsize=0.7];\n");
	for (size_t i = 0; i < g->nr_nodes; i++)
		graph_dot_add_node(out, g, i, &sc);
	for (size_t i = 0; i < g->nr_edges; i++)
		graph_dot_add_edge(out, g, i, &sc);
	base_str_add(out, "}\n");
}
