/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_noc_sim.c - `longpole noc sim`: one network under synthetic traffic. */
#include "cmd/noc/noc.h"
#include "base/column.h"
#include "noc/network/sim.h"

#include <math.h>

enum { BARS = 20, BAR_COLUMNS = 50 };

static bool cmd_noc_sim_show(void *ctx, uint64_t done, uint64_t all)
{
	cmd_progress_show(ctx, "simulating", done, all, "cycles");
	return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void add_mean(struct base_str *out, const struct noc_mean *m)
{
	cmd_noc_add_number(out, m->mean, 0, 2);
	if (m->half >= 0)
		base_str_addf(out, " (95 %% interval +- %.2f)", m->half);
}

static void cmd_noc_sim_add_finding(struct base_str *out, const struct noc_result *r)
{
	const char *with_replies = r->config.reply ? " (requests and replies)" : "";
	if (r->saturated) {
		base_str_addf(out,
			"Saturated: of %.4g flits a node and cycle%s %.4f are accepted (worst node "
			"%.4f); ",
			r->offered_flits, with_replies, r->accepted_flits, r->least_accepted_flits);
		cmd_noc_describe(out, &r->config);
	} else if (!r->packets) {
		base_str_addf(out, "No packet was measured at %.4g flits a node and cycle%s; ",
			r->offered_flits, with_replies);
		cmd_noc_describe(out, &r->config);
	} else {
		base_str_add(out, "Mean packet latency ");
		add_mean(out, &r->latency_cycles);
		base_str_addf(out, " cycles at %.4g flits a node and cycle%s; ", r->offered_flits,
			with_replies);
		cmd_noc_describe(out, &r->config);
	}
	base_str_addf(out, ", %s routing, %s traffic.\n", noc_routing_words[r->config.routing].name,
		noc_pattern_words[r->config.traffic].name);
}

static void add_numbers(struct base_str *out, const struct noc_result *r)
{
	base_str_add(out, "  network latency     ");
	add_mean(out, &r->network_cycles);
	base_str_add(out, " cycles, from leaving the source's queue\n");
	if (r->zero_load_cycles >= 0)
		base_str_addf(out,
			"  without contention  %.2f cycles for the same packets (formula)\n",
			r->zero_load_cycles);
	const struct base_histogram *h = &r->latencies;
	if (!r->packets)
		base_str_add(out, "  quantiles           -\n");
	else
		base_str_addf(out,
			"  quantiles           50 %%: %llu, 90 %%: %llu, 99 %%: %llu, most %llu "
			"{cycle|cycles}\n",
			(unsigned long long)base_histogram_quantile(h, 0.5),
			(unsigned long long)base_histogram_quantile(h, 0.9),
			(unsigned long long)base_histogram_quantile(h, 0.99),
			(unsigned long long)h->greatest);
	for (unsigned c = 0; r->config.classes > 1 && c < r->config.classes; c++) {
		base_str_addf(out, "  class %u             ", c);
		add_mean(out, &r->class_cycles[c]);
		base_str_add(out, " cycles\n");
	}
	base_str_add(out, "  hops                ");
	cmd_noc_add_number(out, r->hops, 0, 3);
	base_str_add(out, " routers a packet\n");
	base_str_addf(out,
		"  throughput          %.4f flits a node and cycle accepted, worst node %.4f\n",
		r->accepted_flits, r->least_accepted_flits);
	base_str_addf(out,
		"  links               %.1f %% busy; busiest, router %u to %u: %.1f %%\n",
		100 * r->link_busy_mean, r->busiest_from, r->busiest_to, 100 * r->link_busy_most);
	base_str_add(out, "  energy              ");
	cmd_noc_add_number(out, r->energy_pj_flit, 0, 1);
	base_str_add(out, " pJ a delivered flit of 64 bits: estimate, dynamic only (Noxim's "
			  "table)\n");
	base_str_add(out, "  measured            ");
	base_str_add_counted(out, "%s {packet|packets}; simulated ", r->packets);
	base_str_add_counted(out, "%s {cycle|cycles}\n", r->cycles);
}

static void cmd_noc_sim_add_histogram(struct base_str *out, const struct base_histogram *h)
{
	uint64_t high = base_histogram_quantile(h, 0.999), width = (high - h->least) / BARS + 1;
	uint64_t bar[BARS + 1] = {0}, most = 1, low, up;
	for (unsigned i = 0; i < BASE_HISTOGRAM_BUCKETS; i++) {
		uint64_t nr = base_histogram_bucket(h, i, &low, &up);
		uint64_t at = nr ? (low < h->least ? 0 : low - h->least) / width : 0;
		at = at > BARS ? BARS : at;
		bar[at] += nr;
		most = bar[at] > most ? bar[at] : most;
	}
	base_str_add(out, "latency in cycles, packets\n");
	for (uint64_t i = 0; i <= BARS; i++) {
		if (!bar[i])
			continue;
		unsigned long long from = h->least + i * width, nr = bar[i];
		base_str_addf(out, "  %s%6llu %10llu ", i == BARS ? ">" : " ", from, nr);
		for (uint64_t x = 0; x < bar[i] * BAR_COLUMNS / most; x++)
			base_str_add(out, "#");
		base_str_add(out, "\n");
	}
}

static void cmd_noc_sim_add_links(struct base_str *out, const struct noc_result *r)
{
	base_str_add(out, "links: from router, to router, busy\n");
	for (size_t i = 0; i < r->nr_links; i++)
		base_str_addf(out, "  %6u %6u %6.2f %%\n", r->link[i].from_router,
			r->link[i].to_router, 100 * noc_link_busy(r, i));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct noc_sim_bucket {
	uint64_t from, to, packets;
};
static json_t *cmd_noc_sim_histogram_json(
	const struct base_histogram *h, const struct base_table *table)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < BASE_HISTOGRAM_BUCKETS; i++) {
		struct noc_sim_bucket b;
		b.packets = base_histogram_bucket(h, i, &b.from, &b.to);
		if (b.packets)
			json_array_append_new(list, base_table_json(table, &b, NULL, 0));
	}
	return list;
}

#include "cmd/noc/noc_sim.def"

static int write_result(struct cmd *c, const struct noc_result *r)
{
	if (cmd_given(c, "json"))
		return cmd_write_result(c, cmd_noc_sim_document.name,
			base_table_json(&cmd_noc_sim_document, r, r, 0));
	struct base_str text = {0};
	cmd_noc_sim_add_finding(&text, r);
	add_numbers(&text, r);
	if (r->saturated)
		base_str_add(&text, "  Latencies are of a queue that grows: they would be larger "
				    "in a longer run.\n");
	else if (!r->packets)
		base_str_add(&text, "  Nothing was made while it was measured: raise the load, or "
				    "measure longer (measure_cycles).\n");
	else if (r->latency_cycles.half > 0.05 * r->latency_cycles.mean)
		base_str_add(&text, "  The interval is wide: measure longer (measure_cycles), or "
				    "lower the load.\n");
	if (cmd_given(c, "histogram") && r->packets)
		cmd_noc_sim_add_histogram(&text, &r->latencies);
	if (cmd_given(c, "links"))
		cmd_noc_sim_add_links(&text, r);
	base_str_add(&text, r->saturated
				    ? "NEXT  the same with --saturation\n"
				    : "NEXT  the same with --saturation, --histogram or --links\n");
	return cmd_write_prose(c, &text);
}

/* ---- saturation ------------------------------------------------------------------------------ */

static int cmd_noc_sim_search(struct cmd *c, const struct noc_config *config)
{
	struct noc_saturation r;
	enum base_status s = noc_saturation(config, &r, cmd_noc_sim_show, c, &c->err);
	cmd_progress_clear(c);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	if (cmd_given(c, "json"))
		return cmd_write_result(c, cmd_noc_saturation_document.name,
			base_table_json(&cmd_noc_saturation_document, &r, config, 0));
	struct base_str text = {0};
	base_str_addf(&text, "Saturates at %.2f flits a node and cycle (steps of 0.01); ", r.load);
	cmd_noc_describe(&text, config);
	base_str_addf(&text, ", %s traffic.\n", noc_pattern_words[config->traffic].name);
	base_str_addf(&text,
		"  latency             %.2f cycles at a load of 0.005; %.2f there: at most three "
		"times as much\n"
		"  beyond it           %.4f flits a node and cycle accepted at full load; worst "
		"node %.4f\n"
		"  simulations         %u\n",
		r.zero_load_cycles, r.latency_cycles, r.accepted_flits, r.least_accepted_flits,
		r.simulations);
	return cmd_write_prose(c, &text);
}

static const struct cmd_option sim_option[] = {
	{"config", 'c', "FILE", "@file",
		"parameters of network and traffic, an INI file; operands come after it"},
	NOC_OPTION_LIST,
	{"saturation", 's', NULL, NULL,
		"search the load at which latency is three times that of an empty network"},
	{"links", 0, NULL, NULL, "how busy each link was"},
	{"histogram", 0, NULL, NULL, "how latencies are distributed"}};

const struct cmd_details cmd_details_noc_sim = {
	.usage = "[OPTION...] [KEY=VALUE...]",
	.about = "Simulates one network under synthetic traffic, flit by flit and cycle "
		 "by cycle: warms up, measures, and lets all measured packets arrive. "
		 "Parameters are operands KEY=VALUE, or in an INI file.",
	.option = sim_option,
	.nr_options = BASE_COUNT(sim_option),
	.example = {"longpole noc sim topology=torus k=8 load=0.2",
		"longpole noc sim --saturation traffic=transpose"},
};

int cmd_noc_sim(struct cmd *c)
{
	struct noc_config config;
	struct noc_result r;
	if (cmd_given(c, "list-parameters"))
		return cmd_noc_list_parameters(c);
	int status = cmd_noc_config(c, 1, &config);
	if (status != CMD_OK)
		return status;
	cmd_progress_reset(c);
	if (cmd_given(c, "saturation"))
		return cmd_noc_sim_search(c, &config);
	enum base_status s = noc_simulate(&config, &r, cmd_noc_sim_show, c, &c->err);
	cmd_progress_clear(c);
	status = s == BASE_OK ? write_result(c, &r) : cmd_fail(c, s);
	noc_result_fini(&r);
	return status;
}
