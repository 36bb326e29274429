/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_noc_gen.c - `longpole noc gen`: a graph whose dependencies are known. */
#include "cmd/noc/noc_graph.h"

#include "noc/pdg/gen.h"

static int cmd_noc_gen_list_parameters(struct cmd *c)
{
	size_t nr_patterns;
	const struct noc_gen_pattern *p = noc_gen_patterns(&nr_patterns);
	struct base_str text = {0};
	if (cmd_given(c, "json")) {
		json_t *patterns = json_array();
		for (size_t i = 0; i < nr_patterns; i++)
			json_array_append_new(patterns,
				json_pack("{s:s, s:s}", "name", p[i].name, "sentence", p[i].line));
		return cmd_write_parameters(c, noc_gen_parameters(), "patterns", patterns);
	}
	base_str_add(&text, "pattern = rand\n");
	for (size_t i = 0; i < nr_patterns; i++)
		base_str_addf(&text, "\t%-8s %s\n", p[i].name, p[i].line);
	cmd_add_parameters(&text, noc_gen_parameters(), NULL);
	return cmd_write(c, &text);
}

static int cmd_noc_gen_print(
	struct cmd *c, const struct noc_pdg *g, const char *pattern, const char *path)
{
	uint64_t end = 0, nr = noc_pdg_nr_dependencies(g), roots = 0;
	uint32_t copies = noc_pdg_nr_copies(g), transmits = g->nr_packets - copies;
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		end = g->receive_cycle[i] > end ? g->receive_cycle[i] : end;
		roots += g->first[i] == g->first[i + 1] && !noc_pdg_is_copy(g, i);
	}
	if (cmd_given(c, "json"))
		return cmd_write_result(c, "longpole/noc-gen/1",
			json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "pattern",
				pattern, "nodes", (json_int_t)g->nr_nodes, "packets",
				(json_int_t)g->nr_packets, "transmits", (json_int_t)transmits,
				"dependencies", (json_int_t)nr, "packets_without_dependency",
				(json_int_t)roots, "base_run_cycles", (json_int_t)end, "trace",
				path, "origin", g->origin));
	struct base_str text = {0};
	base_str_addf(&text, "%s: ", pattern);
	base_str_add_counted(&text, "%s {packet|packets}", g->nr_packets);
	base_str_addf(&text, " of %u {node|nodes} with ", g->nr_nodes);
	base_str_add_counted(&text, "%s {dependency|dependencies}", nr);
	base_str_addf(&text, ", %.2f a packet. They are known, since they were made up.\n",
		(double)nr / (double)g->nr_packets);
	base_str_add(&text, "  ");
	base_str_add_counted(&text, "%s {cycle|cycles}", end);
	base_str_addf(&text,
		" where every packet takes one cycle; %.1f %% of the packets are sent without "
		"waiting for another one\n",
		100.0 * (double)roots / (double)transmits);
	if (copies) {
		base_str_add(&text, "  ");
		base_str_add_counted(&text, "%s {transmit|transmits}", transmits);
		base_str_addf(&text,
			": %.1f %% of the packets are further receivers of a multicast\n",
			100.0 * (double)copies / (double)g->nr_packets);
	}
	base_str_addf(&text, "  wrote %s\nNEXT  longpole noc sample -o run %s\n", path, path);
	return cmd_write_prose(c, &text);
}

static const struct cmd_option gen_option[] = {
	NOC_OPTION_OUTPUT("GRAPH", "where the graph goes"), NOC_OPTION_LIST};

const struct cmd_details cmd_details_noc_gen = {
	.usage = "-o GRAPH [pattern=NAME] [KEY=VALUE...]",
	.about = "Makes a graph of packets whose dependencies are known: the reference "
		 "that inference is measured with.",
	.option = gen_option,
	.nr_options = BASE_COUNT(gen_option),
	.example = {"longpole noc gen -o ref.lpt pattern=ball nodes=16 packets=3000"},
};

int cmd_noc_gen(struct cmd *c)
{
	const char *path = cmd_value(c, "output");
	struct noc_gen_config config;
	struct noc_pdg *g;
	size_t nr;
	if (cmd_given(c, "list-parameters"))
		return cmd_noc_gen_list_parameters(c);
	noc_gen_config_init(&config);
	for (size_t k = 1; k < c->nr_operands; k++)
		if (noc_gen_config_set(&config, c->operand[k], &c->err) != BASE_OK)
			return cmd_fail(c, c->err.status);
	if (!path)
		return cmd_usage(c, "say where the graph goes: --output=TRACE");
	enum base_status s = noc_gen(&config, &g, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	s = noc_pdg_write(g, path, &c->err);
	int exit_status = s == BASE_OK ? cmd_noc_gen_print(c, g,
						 noc_gen_patterns(&nr)[config.pattern].name, path)
				       : cmd_fail(c, s);
	noc_pdg_free(g);
	return exit_status;
}
