/* SPDX-License-Identifier: Apache-2.0 */
/* slack_text.c - the answer of `longpole slack` as text. */
#include "cmd/memory/slack.h"

#include <inttypes.h>
#include <math.h>

static void add_cycles(struct base_str *out, const struct cmd_slack_view *v, uint64_t cycles)
{
	base_str_add_counted(out, "%s {cycle|cycles} (", cycles);
	base_str_add_ns(out, (uint64_t)((double)cycles * 1e3 / (double)v->config->clock_mhz));
	base_str_add(out, ")");
}

static uint64_t slack_text_length_of(const struct slack_result *r)
{
	return r->end - r->origin;
}

static void slack_text_finding(struct base_str *out, const struct cmd_slack_view *v,
	const struct cmd_slack_named *function, size_t nr)
{
	const struct slack_result *r = v->result;
	uint64_t low, high, zero = base_histogram_bucket(&r->global, 0, &low, &high);
	if (nr && slack_text_length_of(r)) {
		base_str_addf(out, "%.0f%% of the critical path is in ",
			base_percent(function[0].critical_cycles, slack_text_length_of(r)));
		report_name_add(out, function[0].name);
		base_str_add(out, "; ");
	}
	base_str_addf(out, "%.1f%% of ", base_percent(zero, r->global.count));
	base_str_add_counted(out, "%s {instruction|instructions} are critical", r->global.count);
	uint64_t median = base_histogram_quantile(&r->global, 0.5);
	if (median)
		base_str_addf(out,
			", half of all could each wait %" PRIu64 " {cycle|cycles} or more", median);
	base_str_addf(out, " (modelled: %u {processor|processors}, %s).\n",
		r->machine.nr_processors, v->config->cdat->protocol->name);
	base_str_add(out, "The critical path is ");
	add_cycles(out, v, slack_text_length_of(r));
	base_str_addf(out,
		" long and ends on processor %u; %.2f%% of it is named, it changes processors "
		"%" PRIu64 " {time|times}.\n",
		r->endpoint, base_percent(r->critical_cycles, slack_text_length_of(r)),
		r->critical_hops);
	if (r->machine.nr_processors == 1)
		base_str_add(out, "On one processor that executes in order every instruction is "
				  "critical: --out-of-order says more.\n");
}

static void slack_text_processor_rows(struct base_str *out, const struct cmd_slack_view *v)
{
	const struct slack_result *r = v->result;
	bool spins = r->machine.spinning != 0;
	base_str_addf(out,
		"\n  processor  of critical path  instructions       cycles    IPC%s   waits  "
		"misses  contention  missed lines\n",
		spins ? "  useful" : "");
	for (uint32_t i = 0; i < r->machine.nr_processors; i++) {
		const struct slack_processor_result *p = &r->machine.processor[i];
		uint64_t cycles = p->end - p->begin;
		base_str_addf(out, "  %9u %16.1f%% %13" PRIu64 " %12" PRIu64 " %6.3f", i,
			base_percent(r->processor[i].critical_cycles, slack_text_length_of(r)),
			p->instructions, cycles, base_percent(p->instructions, cycles) / 100);
		if (spins)
			base_str_addf(out, " %7.3f",
				base_percent(p->instructions - p->spinning, cycles) / 100);
		base_str_addf(out, " %6.1f%% %6.1f%% %10.1f%% %13" PRIu64 "\n",
			base_percent(p->waited_cycles, cycles),
			base_percent(p->miss_cycles + p->fetch_cycles, cycles),
			base_percent(p->contention_cycles, cycles), p->misses);
	}
}

/* Octaves of slack + 1, so that zero has a place of its own on the log axis. */
static void distribution_rows(struct base_str *out, const struct cmd_slack_view *v)
{
	const struct base_histogram *g = &v->result->global, *l = &v->result->local;
	uint64_t sum = 0, local_sum = 0;
	base_str_add(out, "\n  slack + 1, cycles           global      PDF      CDF        local   "
			  "   PDF      CDF\n");
	for (unsigned octave = 0; octave < 63; octave++) {
		uint64_t from = UINT64_C(1) << octave, to = from * 2 - 1, low, high, n = 0, m = 0;
		for (unsigned i = base_histogram_index(from - 1); i <= base_histogram_index(to - 1);
			i++) {
			uint64_t here = base_histogram_bucket(g, i, &low, &high);
			uint64_t there = base_histogram_bucket(l, i, &low, &high);
			if (low >= from - 1 && low < to) {
				n += here;
				m += there;
			}
		}
		sum += n;
		local_sum += m;
		if (!n && !m)
			continue;
		base_str_addf(out,
			"  %9" PRIu64 " .. %-9" PRIu64 " %11" PRIu64 " %7.2f%% %7.2f%% %12" PRIu64
			" %7.2f%% %7.2f%%\n",
			from, to, n, base_percent(n, g->count), base_percent(sum, g->count), m,
			base_percent(m, l->count), base_percent(local_sum, l->count));
	}
}

static void group_rows(struct base_str *out, const struct cmd_slack_view *v, const char *title,
	const struct cmd_slack_named *g, size_t nr, bool code)
{
	uint64_t length = slack_text_length_of(v->result);
	size_t shown = 0;
	for (size_t i = 0; i < nr && shown < v->rows; i++) {
		const struct cmd_slack_named *n = &g[i];
		if (!n->critical_cycles)
			break;
		if (!shown++)
			base_str_addf(out, "\n  of critical path       cycles %s  %s\n",
				code ? "    executed   mean slack" : "       times", title);
		base_str_addf(out, "  %15.1f%% %12" PRIu64 " %12" PRIu64 " ",
			base_percent(n->critical_cycles, length), n->critical_cycles, n->executed);
		if (code && n->executed)
			base_str_addf(out, "%12.0f ", n->sum / (double)n->executed);
		else if (code)
			base_str_add(out, "           - ");
		base_str_add(out, " ");
		report_clean_add(out, n->name);
		base_str_add(out, "\n");
	}
}

static void slack_text_instruction_rows(struct base_str *out, const struct cmd_slack_view *v)
{
	const struct slack_result *r = v->result;
	size_t shown = 0;
	base_str_add(out,
		"\n  of critical path     executed  critical  slack: least         mean    "
		"deviation  alike  taut  instruction\n");
	for (size_t i = 0; i < r->nr_code && shown < v->rows; i++) {
		const struct slack_static *c = &r->code[i];
		uint64_t inside = c->executed - c->outside;
		if (!inside || !c->critical_cycles)
			continue;
		shown++;
		double mean = c->sum / (double)inside;
		double variance = c->squares / (double)inside - mean * mean;
		struct base_str name = {0};
		cmd_slack_name(v->names, CMD_SLACK_INSTRUCTION, c->code, &name);
		base_str_addf(out,
			"  %15.1f%% %12" PRIu64 " %8.1f%% %13" PRIu64
			" %12.0f %12.0f %5.0f%% %5" PRIu64 "  ",
			base_percent(c->critical_cycles, slack_text_length_of(r)), inside,
			base_percent(c->critical, inside), c->least, mean,
			variance > 0 ? sqrt(variance) : 0,
			inside > 1 ? base_percent(c->alike, inside - 1) : 100, c->taut_cycles);
		report_name_add(out, base_str_text(&name));
		base_str_addf(out, " (%s)\n", slack_kind_name(c->kind));
		base_str_fini(&name);
	}
}

static double slack_text_ratio(uint64_t all, uint64_t kept)
{
	return (double)all / (double)(kept ? kept : 1);
}

static void compression_rows(struct base_str *out, const struct slack_result *r)
{
	const struct slack_counts *k = &r->counts;
	uint64_t nodes = k->kept_nodes + r->machine.nr_processors;
	base_str_addf(out,
		"\nThe graph: %" PRIu64 " {node|nodes} and %" PRIu64 " RAW edges (%.0f%% within a "
		"processor, %" PRIu64 " late); kept %" PRIu64
		" {node|nodes} (%.0f to 1) and %" PRIu64 " {edge|edges} (%.0f to 1).\n",
		k->nodes, k->raw_edges, base_percent(k->raw_within, k->raw_edges), k->raw_late,
		nodes, slack_text_ratio(k->nodes, nodes), k->kept_edges,
		slack_text_ratio(k->raw_edges, k->kept_edges));
	base_str_addf(out,
		"Removed:\n  %" PRIu64
		" {node|nodes} without a kept RAW edge (theorem 2-1)\n  %" PRIu64
		" {edge|edges} from a store that the processor had loaded before (2-2)\n  %" PRIu64
		" {edge|edges} within a processor that were in time (2-3)\n  %" PRIu64
		" {edge|edges} beside which another path leads from store to load (theorems alone: "
		"%.0f to 1)\n",
		k->nodes - (nodes < k->nodes ? nodes : k->nodes), k->removed_same_store,
		k->removed_in_time, k->removed_beyond,
		slack_text_ratio(k->raw_edges, k->kept_edges + k->removed_beyond));
	if (k->spilled_bytes) {
		base_str_add(out, "Beyond the memory allowed, ");
		base_str_add_size(out, k->spilled_bytes);
		base_str_add(out, " of edges went through a temporary file.\n");
	}
}

static void caution(struct base_str *out, uint64_t n, const char *what)
{
	if (n)
		base_str_addf(out, "Caution: %" PRIu64 " %s\n", n, what);
}

static void slack_text_caveats(struct base_str *out, const struct cmd_slack_view *v)
{
	const struct slack_result *r = v->result;
	struct cmd_streams s = {
		.source = (struct memory_source *)(uintptr_t)v->source, .name = v->trace};
	base_str_addf(out,
		"\nHow it knows: the recorded instructions ran through a simulated machine (%s; an "
		"instruction is a cycle, in order, requests block, sequentially consistent). "
		"Recorded times play no part; the paths that the threads took are the recorded "
		"ones%s.\n",
		v->config->cdat->protocol->line,
		v->waits ? ", but for rounds of loops that waited anew"
			 : ", so a loop that spins in the program's own code has its recorded "
			   "length (--spins finds such loops, and lets them wait anew)");
	base_str_add(out, "Registers are not recorded: in an in-order machine program order covers "
			  "what depends on them. A location has 4 bytes.\n");
	if (v->options->continuous)
		base_str_addf(out,
			"Only what leads to the end of processor %u is in the graph: %" PRIu64
			" {instruction does|instructions do} not.\n",
			r->endpoint, r->outside);
	cmd_streams_source_caveats(&s, out);
	caution(out, r->machine.forced,
		"waits were ended because all threads waited (a semaphore that began above zero, "
		"or a record that is missing).");
	caution(out, r->machine.bad_calls, "records of synchronisation made no sense here.");
	caution(out, r->machine.omp_regions,
		"OpenMP regions end without a record of their workers: nobody waited there.");
	base_str_addf(out, "NEXT  longpole slack --set=protocol=%s %s\n",
		v->config->cdat->protocol->network == MEMORY_CDAT_SNOOPING ? "dirmosi" : "mosi",
		v->trace);
}

void cmd_slack_text(struct base_str *out, const struct cmd_slack_view *v)
{
	struct cmd_slack_named *g[3];
	size_t nr[3];
	static const enum cmd_slack_by by[] = {CMD_SLACK_FUNCTION, CMD_SLACK_LINE, CMD_SLACK_DATA};
	static const char *const title[] = {"function", "line", "data that were waited for"};
	for (unsigned i = 0; i < 3; i++)
		g[i] = cmd_slack_group(v->names, v->result, by[i], &nr[i]);
	slack_text_finding(out, v, g[0], nr[0]);
	slack_text_processor_rows(out, v);
	distribution_rows(out, v);
	for (unsigned i = 0; i < 3; i++) {
		group_rows(out, v, title[i], g[i], nr[i], i < 2);
		cmd_slack_group_free(g[i], nr[i]);
	}
	slack_text_instruction_rows(out, v);
	compression_rows(out, v->result);
	cmd_slack_spins_text(out, v);
	slack_text_caveats(out, v);
}
