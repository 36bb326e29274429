/* SPDX-License-Identifier: Apache-2.0 */
/* dot.c - the general resource graph in the DOT language: boxes are threads, ellipses are events,
 * as in the source's figures 4-4 to 4-10. Request edges leave boxes, producer edges leave ellipses.
 */
#include "deadlock/private.h"

#include "deadlock/say/say.h"

#include <inttypes.h>

static void dot_add_quoted(struct base_str *out, const char *text)
{
	base_str_add(out, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			base_str_addf(out, "\\%c", *text);
		else if (*text == '\n')
			base_str_add(out, "\\n");
		else
			base_str_add_bytes(out, text, 1);
	}
	base_str_add(out, "\"");
}

static void dot_add_label(struct base_str *out, struct base_str *label)
{
	dot_add_quoted(out, base_str_text(label));
	out->failed |= label->failed;
	base_str_fini(label);
}

static void dot_add_thread(struct base_str *out, const struct deadlock_answer *a, uint32_t i)
{
	const struct deadlock_wait *w = &a->wait[i];
	struct base_str label = {0};
	char who[64];
	deadlock_say_tid(who, sizeof who, a, i);
	base_str_addf(&label, "%s\n%s", who, w->thread.name);
	for (size_t f = 0; f < w->nr_frames; f++) {
		if (w->frame[f].is_runtime)
			continue;
		base_str_add(&label, "\n");
		deadlock_say_frame(&label, &w->frame[f]);
		break;
	}
	base_str_addf(out, "\tt%d [shape=box, label=", (int)w->thread.tid);
	dot_add_label(out, &label);
	base_str_add(out, "];\n");
}

/* Events with the same key are one node. */
static uint32_t node_of_event(
	const struct deadlock_answer *a, const struct deadlock_finding *f, uint32_t edge)
{
	const struct deadlock_edge *e = &a->edge[f->edge[edge]];
	for (uint32_t i = 0; i < edge; i++) {
		const struct deadlock_edge *b = &a->edge[f->edge[i]];
		if (deadlock_key_equal(
			    &a->wait[b->waiter].key[b->key], &a->wait[e->waiter].key[e->key]))
			return i;
	}
	return edge;
}

static void dot_add_edge(struct base_str *out, const struct deadlock_answer *a,
	const struct deadlock_finding *f, size_t finding, uint32_t edge)
{
	const struct deadlock_edge *e = &a->edge[f->edge[edge]];
	uint32_t event = node_of_event(a, f, edge);
	bool is_request_new = true;
	if (event == edge) {
		struct base_str label = {0};
		deadlock_say_object(&label, a, e->waiter, e->key);
		base_str_addf(out, "\te%zu_%" PRIu32 " [label=", finding, event);
		dot_add_label(out, &label);
		base_str_add(out, "];\n");
	}
	for (uint32_t i = 0; i < edge && is_request_new; i++) {
		const struct deadlock_edge *b = &a->edge[f->edge[i]];
		is_request_new = b->waiter != e->waiter || node_of_event(a, f, i) != event;
	}
	if (is_request_new)
		base_str_addf(out, "\tt%d -> e%zu_%" PRIu32 ";\n",
			(int)a->wait[e->waiter].thread.tid, finding, event);
	base_str_addf(out, "\te%zu_%" PRIu32 " -> t%d [label=\"%s\"%s];\n", finding, event,
		(int)a->wait[e->producer].thread.tid, deadlock_edge_name(e->why),
		e->why == DEADLOCK_EDGE_MAY ? ", style=dashed" : "");
}

void deadlock_dot(struct base_str *out, const struct deadlock_answer *a)
{
	base_str_add(out, "digraph deadlock {\n\tnode [fontname=\"sans-serif\"];\n"
			  "\tedge [fontname=\"sans-serif\", fontsize=10];\n");
	for (size_t i = 0; i < a->nr_findings; i++) {
		const struct deadlock_finding *f = &a->finding[i];
		struct base_str title = {0};
		deadlock_say_finding(&title, a, f);
		base_str_addf(out, "\tsubgraph cluster_%zu {\n\tlabel=", i + 1);
		dot_add_label(out, &title);
		base_str_add(out, ";\n");
		for (uint32_t m = 0; m < f->nr_members; m++)
			dot_add_thread(out, a, f->member[m]);
		for (uint32_t e = 0; e < f->nr_edges; e++)
			dot_add_edge(out, a, f, i, e);
		base_str_add(out, "\t}\n");
	}
	base_str_add(out, "}\n");
}
