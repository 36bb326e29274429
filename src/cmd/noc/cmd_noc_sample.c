/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_noc_sample.c - `longpole noc sample`: the base run and skewed runs of a graph. */
#include "cmd/noc/noc_graph.h"

#include "noc/pdg/sample.h"

static const char *const design_words[] = {"nodes", "links", "packets", "adaptive"};
_Static_assert(BASE_COUNT(design_words) == NOC_DESIGNS, "as in enum noc_design");

static bool cmd_noc_sample_read_options(struct cmd *c, struct noc_sample_options *o)
{
	static const char *const key[] = {"design", "runs", "slow", "noise", "seed"};
	uint64_t runs = 4, slow = 0, noise = 0, seed = 1;
	unsigned design = NOC_ADAPTIVE;
	if (!cmd_noc_only(c, key, BASE_COUNT(key)) ||
		!cmd_noc_word(c, "design", design_words, NOC_DESIGNS, &design) ||
		!cmd_noc_number(c, "runs", 1, NOC_RUNS_MAX - 1, &runs) ||
		!cmd_noc_number(c, "slow", 0, 1000000000, &slow) ||
		!cmd_noc_number(c, "noise", 0, 1000000, &noise) ||
		!cmd_noc_number(c, "seed", 0, UINT64_MAX, &seed))
		return false;
	*o = (struct noc_sample_options){.design = (enum noc_design)design,
		.nr_skewed = (uint32_t)runs,
		.slow_cycles = (uint32_t)slow,
		.noise_cycles = (uint32_t)noise,
		.seed = seed};
	return true;
}

/* Writes run r of the packets to PREFIX-r.lpt. */
static enum base_status write_run(struct cmd *c, struct noc_pdg *packets,
	const struct noc_runs *runs, uint32_t r, const char *prefix, const char *how)
{
	struct base_str name = {0};
	BASE_ASSUME(packets);
	for (uint32_t i = 0; i < packets->nr_packets; i++) {
		packets->transmit_cycle[i] = runs->transmit_cycle[(size_t)i * runs->stride + r];
		packets->receive_cycle[i] = runs->receive_cycle[(size_t)i * runs->stride + r];
	}
	packets->run = r;
	snprintf(packets->origin, sizeof packets->origin, "%s run=%u", how, r);
	base_str_addf(&name, "%s-%u.lpt", prefix, r);
	enum base_status s =
		name.failed ? base_fail(&c->err, BASE_ERR_NOMEM, "no memory for a file's name")
			    : noc_pdg_write(packets, base_str_text(&name), &c->err);
	base_str_fini(&name);
	return s;
}

static int cmd_noc_sample_print(struct cmd *c, const struct noc_runs *runs,
	const struct noc_sample_options *o, const char *prefix)
{
	struct base_str text = {0};
	json_t *list = json_array();
	base_str_addf(&text, "%u {run|runs} of ", runs->nr_runs);
	base_str_add_counted(&text, "%s {packet|packets}", runs->nr_packets);
	base_str_addf(&text, ": the base run, and %u with some packets slow (%s).\n", o->nr_skewed,
		noc_design_name(o->design));
	for (uint32_t r = 0; r < runs->nr_runs; r++) {
		uint64_t end = noc_runs_end(runs, r);
		base_str_addf(&text, "  %s-%u.lpt  ", prefix, r);
		base_str_add_counted(&text, "%s {cycle|cycles}\n", end);
		json_array_append_new(list, json_pack("{s:I, s:I}", "run", (json_int_t)r,
						    "execution_cycles", (json_int_t)end));
	}
	if (o->noise_cycles)
		base_str_addf(&text, "  delays differ by up to %u {cycle|cycles} in every run\n",
			o->noise_cycles);
	base_str_addf(&text, "NEXT  longpole noc infer -o inferred.lpt");
	for (uint32_t r = 0; r < runs->nr_runs; r++)
		base_str_addf(&text, " %s-%u.lpt", prefix, r);
	base_str_add(&text, "\n");
	if (!cmd_given(c, "json")) {
		json_decref(list);
		return cmd_write_prose(c, &text);
	}
	base_str_fini(&text);
	return cmd_write_result(c, "longpole/noc-sample/1",
		json_pack("{s:s, s:I, s:I, s:s, s:o}", "design", noc_design_name(o->design),
			"packets", (json_int_t)runs->nr_packets, "noise_cycles",
			(json_int_t)o->noise_cycles, "prefix", prefix, "runs", list));
}

static int cmd_noc_sample_sample(struct cmd *c, const struct noc_pdg *g,
	const struct noc_sample_options *o, const char *prefix)
{
	struct noc_runs runs;
	char how[256];
	enum base_status s = noc_sample(g, o, &runs, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	snprintf(how, sizeof how, "sample design=%s runs=%u slow=%u noise=%u seed=%llu",
		noc_design_name(o->design), o->nr_skewed, o->slow_cycles, o->noise_cycles,
		(unsigned long long)o->seed);
	struct noc_pdg *packets = noc_pdg_copy(g);
	if (!packets)
		s = base_fail(&c->err, BASE_ERR_NOMEM, "no memory for the runs");
	for (uint32_t r = 0; r < runs.nr_runs && s == BASE_OK; r++)
		s = write_run(c, packets, &runs, r, prefix, how);
	int exit_status = s == BASE_OK ? cmd_noc_sample_print(c, &runs, o, prefix) : cmd_fail(c, s);
	noc_pdg_free(packets);
	noc_runs_fini(&runs);
	return exit_status;
}

static const struct cmd_option sample_option[] = {
	NOC_OPTION_OUTPUT("PREFIX", "where the traces go: PREFIX-0.lpt, PREFIX-1.lpt, ...")};

const struct cmd_details cmd_details_noc_sample = {
	.usage = "-o PREFIX GRAPH [KEY=VALUE...]",
	.about = "Runs a graph on the network in which every packet takes a cycle, and again with "
		 "some packets slow. PREFIX-0.lpt is the base run; the others are what 'longpole "
		 "noc infer' compares it with.",
	.option = sample_option,
	.nr_options = BASE_COUNT(sample_option),
	.example = {"longpole noc sample -o run ref.lpt",
		"longpole noc sample -o run ref.lpt runs=8 design=nodes"},
};

int cmd_noc_sample(struct cmd *c)
{
	const char *prefix = cmd_value(c, "output"), *path = cmd_noc_file(c, 0);
	struct noc_sample_options o;
	if (!path || cmd_noc_file(c, 1))
		return cmd_usage(
			c, "give one graph with dependencies, as 'longpole noc gen' writes");
	if (!prefix)
		return cmd_usage(c, "say where the runs go: --output=PREFIX, for PREFIX-0.lpt ...");
	if (!cmd_noc_sample_read_options(c, &o))
		return CMD_USAGE;
	struct noc_pdg *g = cmd_noc_read(c, path);
	if (!g)
		return cmd_exit_of(c->err.status);
	int exit_status =
		g->has_graph
			? cmd_noc_sample_sample(c, g, &o, prefix)
			: cmd_usage(c, "%s has times only: dependencies are needed to run it again",
				  path);
	noc_pdg_free(g);
	return exit_status;
}
