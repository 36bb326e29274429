/* SPDX-License-Identifier: Apache-2.0 */
/* slack_json.c - the answer of `longpole slack` as JSON: counts and cycles, longpole/slack/1. */
#include "cmd/memory/slack.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>

static json_t *slack_json_histogram(const struct base_histogram *h)
{
	json_t *list = json_array();
	for (unsigned i = 0; h->count && i < BASE_HISTOGRAM_BUCKETS; i++) {
		uint64_t low, high, n = base_histogram_bucket(h, i, &low, &high);
		if (n)
			json_array_append_new(
				list, json_pack("{s:o, s:o, s:o}", "from_cycles",
					      base_json_u64(low), "to_cycles", base_json_u64(high),
					      "instructions", base_json_u64(n)));
	}
	return list;
}

static json_t *slack_json_processors(const struct slack_result *r)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < r->machine.nr_processors; i++) {
		const struct slack_processor_result *p = &r->machine.processor[i];
		json_array_append_new(list,
			json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
				  "s:o, s:o, s:o, s:o, "
				  "s:o, s:o}",
				"processor", (int)i, "critical_cycles",
				base_json_u64(r->processor[i].critical_cycles), "begin_cycle",
				base_json_u64(p->begin), "end_cycle", base_json_u64(p->end),
				"instructions", base_json_u64(p->instructions),
				"spinning_instructions", base_json_u64(p->spinning), "spun_cycles",
				base_json_u64(p->spun_cycles), "low_power_cycles",
				base_json_u64(p->low_power_cycles), "low_power_ends",
				base_json_u64(p->low_power_ends), "low_power_false_ends",
				base_json_u64(p->low_power_false), "waited_cycles",
				base_json_u64(p->waited_cycles), "waits", base_json_u64(p->waits),
				"miss_cycles", base_json_u64(p->miss_cycles), "fetch_cycles",
				base_json_u64(p->fetch_cycles), "contention_cycles",
				base_json_u64(p->contention_cycles), "line_accesses",
				base_json_u64(p->accesses), "line_misses", base_json_u64(p->misses),
				"nodes", base_json_u64(p->nodes)));
	}
	return list;
}

static json_t *group(const struct cmd_slack_view *v, enum cmd_slack_by by)
{
	json_t *list = json_array();
	size_t nr;
	struct cmd_slack_named *g = cmd_slack_group(v->names, v->result, by, &nr);
	for (size_t i = 0; i < nr; i++) {
		const struct cmd_slack_named *n = &g[i];
		if (by == CMD_SLACK_DATA)
			json_array_append_new(
				list, json_pack("{s:s, s:o, s:o}", "name", n->name,
					      "critical_cycles", base_json_u64(n->critical_cycles),
					      "times", base_json_u64(n->executed)));
		else
			json_array_append_new(
				list, json_pack("{s:s, s:o, s:o, s:f}", "name", n->name,
					      "critical_cycles", base_json_u64(n->critical_cycles),
					      "instructions", base_json_u64(n->executed),
					      "mean_slack_cycles",
					      n->executed ? n->sum / (double)n->executed : 0.0));
	}
	cmd_slack_group_free(g, nr);
	return list;
}

static json_t *instructions(const struct cmd_slack_view *v)
{
	const struct slack_result *r = v->result;
	json_t *list = json_array();
	for (size_t i = 0; i < r->nr_code; i++) {
		const struct slack_static *c = &r->code[i];
		uint64_t inside = c->executed - c->outside;
		struct base_str name = {0}, code = {0};
		if (!c->executed)
			continue;
		double mean = inside ? c->sum / (double)inside : 0;
		double variance = inside ? c->squares / (double)inside - mean * mean : 0;
		cmd_slack_name(v->names, CMD_SLACK_INSTRUCTION, c->code, &name);
		base_str_addf(&code, "0x%" PRIx64, c->code);
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o}",
				"code", base_str_text(&code), "name", base_str_text(&name), "kind",
				slack_kind_name(c->kind), "executed", base_json_u64(c->executed),
				"outside", base_json_u64(c->outside), "critical",
				base_json_u64(c->critical), "least_slack_cycles",
				base_json_u64(inside ? c->least : 0), "greatest_slack_cycles",
				base_json_u64(c->greatest), "mean_slack_cycles", mean,
				"deviation_cycles", variance > 0 ? sqrt(variance) : 0.0, "alike",
				base_json_u64(c->alike), "greatest_tautness_cycles",
				base_json_u64(c->taut_cycles)));
		json_object_set_new(json_array_get(list, json_array_size(list) - 1),
			"critical_cycles", base_json_u64(c->critical_cycles));
		base_str_fini(&name);
		base_str_fini(&code);
	}
	return list;
}

static json_t *graph(const struct slack_result *r)
{
	const struct slack_counts *k = &r->counts;
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "instructions",
		base_json_u64(k->instructions), "nodes", base_json_u64(k->nodes), "raw_edges",
		base_json_u64(k->raw_edges), "raw_edges_within_a_processor",
		base_json_u64(k->raw_within), "late_raw_edges", base_json_u64(k->raw_late),
		"kept_nodes", base_json_u64(k->kept_nodes + r->machine.nr_processors),
		"kept_raw_edges", base_json_u64(k->kept_edges), "removed_same_store",
		base_json_u64(k->removed_same_store), "removed_in_time",
		base_json_u64(k->removed_in_time), "removed_beyond",
		base_json_u64(k->removed_beyond), "spilled_bytes", base_json_u64(k->spilled_bytes));
}

static json_t *slack_json_diagnostics(const struct memory_source *s)
{
	json_t *list = json_array();
	for (unsigned d = 0; d < MEMORY_DIAG_NR; d++)
		if (s->diags.count[d])
			json_array_append_new(
				list, json_pack("{s:s, s:o}", "name", memory_diag_name(d), "count",
					      base_json_u64(s->diags.count[d])));
	return list;
}

json_t *cmd_slack_json(const struct cmd_slack_view *v)
{
	const struct slack_result *r = v->result;
	const struct slack_machine_result *m = &r->machine;
	json_t *all = json_pack("{s:s, s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o}", "trace",
		v->trace, "protocol", v->config->cdat->protocol->name, "clock_mhz",
		base_json_u64(v->config->clock_mhz), "origin_cycle", base_json_u64(r->origin),
		"end_cycle", base_json_u64(r->end), "endpoint_processor", (int)r->endpoint,
		"critical_cycles", base_json_u64(r->critical_cycles), "critical_hops",
		base_json_u64(r->critical_hops), "outside_instructions", base_json_u64(r->outside),
		"machine_cycles", base_json_u64(m->cycles));
	json_t *more = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "processors",
		slack_json_processors(r), "global_slack", slack_json_histogram(&r->global),
		"local_slack", slack_json_histogram(&r->local), "functions",
		group(v, CMD_SLACK_FUNCTION), "lines", group(v, CMD_SLACK_LINE), "data",
		group(v, CMD_SLACK_DATA), "static_instructions", instructions(v), "graph", graph(r),
		"diagnostics", slack_json_diagnostics(v->source));
	json_t *lost = json_pack("{s:o, s:o, s:o, s:s}", "forced_waits", base_json_u64(m->forced),
		"bad_calls", base_json_u64(m->bad_calls), "omp_regions_without_end",
		base_json_u64(m->omp_regions), "not_seen", v->source->info.unseen);
	json_object_update(all, more);
	json_object_update(all, lost);
	json_object_set_new(all, "spins", cmd_slack_spins_json(v));
	json_decref(more);
	json_decref(lost);
	return all;
}
