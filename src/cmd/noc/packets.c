/* SPDX-License-Identifier: Apache-2.0 */
/* packets.c - `longpole report` of a trace of an on-chip network's packets: what they waited for.
 */
#include "cmd/cmd.h"
#include "cmd/noc/noc_graph.h"

#include "noc/pdg/path.h"

enum { NODES_SHOWN = 3, PERCENT_SHOWN = 5 };

/* A part of the path: as text, its key in JSON. */
static const struct {
	const char *text, *key;
} part[NOC_PATH_PARTS] = {
	[NOC_PATH_NETWORK] = {"under way in the network, or queued at its source",
		"network_cycles"},
	[NOC_PATH_NODE] = {"in nodes, from what they receive to what they send (delay D)",
		"node_cycles"},
	[NOC_PATH_TURN] = {"ready, but behind the packet that its node sent before", "turn_cycles"},
	[NOC_PATH_STAMP] = {"ready, but not before its time stamp", "time_stamp_cycles"},
	[NOC_PATH_REST] = {"for what the graph does not say", "rest_cycles"},
};

static double packets_ratio(uint64_t n, uint64_t of)
{
	return of ? (double)n / (double)of : 0;
}

static uint32_t largest(const uint64_t *of_node, uint32_t nr)
{
	uint32_t most = 0;
	for (uint32_t n = 1; n < nr; n++)
		if (of_node[n] > of_node[most])
			most = n;
	return most;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void packets_add_finding(struct base_str *out, const struct noc_path *p)
{
	enum noc_path_part most = NOC_PATH_NETWORK;
	for (unsigned i = 1; i < NOC_PATH_PARTS; i++)
		if (p->part_cycles[i] > p->part_cycles[most])
			most = (enum noc_path_part)i;
	base_str_addf(out, "%.0f %% of ", base_percent(p->part_cycles[most], p->execution_cycles));
	base_str_add_counted(out, "%s {cycle|cycles}", p->execution_cycles);
	base_str_addf(out,
		" the critical path is %s. The graph says which packet waited for which.\n",
		part[most].text);
	base_str_add(out, "THE PATH, ");
	base_str_add_counted(out, "%s {packet|packets}, each of which waited for the one before\n",
		p->nr_packets);
	for (unsigned i = 0; i < NOC_PATH_PARTS; i++)
		if (p->part_cycles[i])
			base_str_addf(out, "  %5.1f %%  %s\n",
				base_percent(p->part_cycles[i], p->execution_cycles), part[i].text);
}

/* What holds the path up, and what a faster network could bring. */
static void add_limits(struct base_str *out, const struct noc_path *p, uint32_t nr_nodes)
{
	uint64_t elsewhere = p->execution_cycles - p->part_cycles[NOC_PATH_NETWORK];
	uint32_t shown = 0;
	for (; shown < NODES_SHOWN; shown++) {
		uint32_t n = largest(p->node_cycles, nr_nodes);
		double share = base_percent(p->node_cycles[n], p->execution_cycles);
		if (share < PERCENT_SHOWN)
			break;
		base_str_addf(out, "%s node %u (%.1f %%)", shown ? "," : "  held up in", n, share);
		p->node_cycles[n] = 0;
	}
	base_str_add(out, shown ? "\n" : "");
	base_str_add(out, "  no network makes the run shorter than ");
	base_str_add_counted(out, "%s {cycle|cycles}", elsewhere);
	base_str_addf(out, " (%.2f times as fast): nodes take that long\n",
		elsewhere ? packets_ratio(p->execution_cycles, elsewhere) : 0);
}

static void add_load(struct base_str *out, const struct noc_load *l, const struct noc_pdg *g)
{
	uint32_t from = largest(l->sent_flits, g->nr_nodes),
		 to = largest(l->received_flits, g->nr_nodes),
		 jam = largest(l->excess_at_cycles, g->nr_nodes);
	base_str_add(out, "THE PACKETS\n  ");
	base_str_add_count(out, l->packets);
	base_str_add(out, " of ");
	base_str_add_counted(out, "%s {flit|flits}", l->flits);
	base_str_addf(out, " among %u {node|nodes}: %.4f flits a node and cycle\n", g->nr_nodes,
		packets_ratio(l->flits, l->execution_cycles * g->nr_nodes));
	if (!l->packets) {
		base_str_add(out, "  mean latency -: no packet arrived\n");
		return;
	}
	base_str_addf(out,
		"  mean latency %.2f cycles, most %llu; %.2f of it is contention (what exceeds the "
		"shortest between the same nodes)",
		packets_ratio(l->latency_cycles, l->packets),
		(unsigned long long)l->latency_max_cycles,
		packets_ratio(l->excess_cycles, l->packets));
	if (l->excess_cycles)
		base_str_addf(out, ", %.0f %% on the way to node %u",
			base_percent(l->excess_at_cycles[jam], l->excess_cycles), jam);
	base_str_addf(out,
		"\n  node %u sends most, %.3f flits a cycle; node %u receives most, %.3f\n", from,
		packets_ratio(l->sent_flits[from], l->execution_cycles), to,
		packets_ratio(l->received_flits[to], l->execution_cycles));
}

static void packets_add_text(struct base_str *out, const struct noc_pdg *g,
	const struct noc_load *l, const struct noc_path *p, const char *path)
{
	if (g->has_graph) {
		packets_add_finding(out, p);
		add_limits(out, p, g->nr_nodes);
	} else {
		base_str_add_counted(out, "%s {packet|packets} in ", l->packets);
		base_str_add_counted(out,
			"%s {cycle|cycles}: times only, so which packet waited for which is not "
			"known.\n",
			l->execution_cycles);
	}
	add_load(out, l, g);
	if (p->nr_late) {
		base_str_add(out, "CAVEATS    ");
		base_str_add_counted(out, "%s {input|inputs}", p->nr_late);
		base_str_add(out, " of packets on the path came after them in this run: the "
				  "graph is not of it\n");
	}
	if (g->has_graph)
		base_str_addf(out,
			"NEXT       longpole noc compare %s         (mesh, torus, ring, fat tree)\n"
			"           longpole noc replay %s KEY=VALUE... (one network; "
			"--list-parameters)\n",
			path, path);
	else
		base_str_addf(out,
			"NEXT       longpole noc infer %s RUN...   (the same packets where others "
			"were "
			"slow)\n",
			path);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *nodes_json(
	const struct noc_pdg *g, const struct noc_load *l, const struct noc_path *p)
{
	json_t *rows = json_array();
	for (uint32_t n = 0; n < g->nr_nodes; n++) {
		json_t *row = json_pack("{s:I, s:I, s:I, s:I}", "node", (json_int_t)n, "sent_flits",
			(json_int_t)l->sent_flits[n], "received_flits",
			(json_int_t)l->received_flits[n], "excess_cycles",
			(json_int_t)l->excess_at_cycles[n]);
		json_object_set_new(row, "path_cycles",
			g->has_graph ? json_integer((json_int_t)p->node_cycles[n]) : json_null());
		json_array_append_new(rows, row);
	}
	return rows;
}

/* null: of no packet. */
static json_t *packets_mean_json(uint64_t sum, uint64_t nr)
{
	return nr ? json_real(packets_ratio(sum, nr)) : json_null();
}

static json_t *to_json(const struct noc_pdg *g, const struct noc_load *l, const struct noc_path *p)
{
	json_t *path = g->has_graph ? json_object() : json_null();
	for (unsigned i = 0; i < NOC_PATH_PARTS && g->has_graph; i++)
		json_object_set_new(path, part[i].key, json_integer((json_int_t)p->part_cycles[i]));
	if (g->has_graph) {
		json_object_set_new(path, "packets", json_integer((json_int_t)p->nr_packets));
		json_object_set_new(path, "late_inputs", json_integer((json_int_t)p->nr_late));
	}
	return cmd_result_json("longpole/packets/1",
		json_pack("{s:I, s:I, s:I, s:o, s:I, s:o, s:o, s:o}", "packets",
			(json_int_t)l->packets, "flits", (json_int_t)l->flits, "execution_cycles",
			(json_int_t)l->execution_cycles, "mean_latency_cycles",
			packets_mean_json(l->latency_cycles, l->packets), "most_latency_cycles",
			(json_int_t)l->latency_max_cycles, "mean_excess_cycles",
			packets_mean_json(l->excess_cycles, l->packets), "path", path, "nodes",
			nodes_json(g, l, p)));
}

int cmd_report_packets(struct cmd *c, const char *path)
{
	struct noc_path p = {0};
	struct noc_load l = {0};
	struct noc_pdg *g = cmd_noc_read(c, path);
	if (!g)
		return cmd_exit_of(c->err.status);
	enum base_status s = noc_load_count(g, &l, &c->err);
	if (s == BASE_OK && g->has_graph)
		s = noc_path_find(g, &p, &c->err);
	int exit_status;
	if (s != BASE_OK) {
		exit_status = cmd_fail(c, base_cause(&c->err, s, "while analysing %s", path));
	} else if (cmd_given(c, "json")) {
		exit_status = cmd_write_json(c, to_json(g, &l, &p));
	} else {
		struct base_str text = {0};
		packets_add_text(&text, g, &l, &p, path);
		exit_status = cmd_write_prose(c, &text);
	}
	noc_path_fini(&p);
	noc_load_fini(&l);
	noc_pdg_free(g);
	return exit_status;
}
