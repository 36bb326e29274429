/* SPDX-License-Identifier: Apache-2.0 */
/* slack_fields.c - the answer of `longpole slack --out-of-order`. */
#include "cmd/memory/slack.h"

#include <inttypes.h>
#include <math.h>

static enum slack_cause greatest(const struct slack_fields_result *r)
{
	enum slack_cause best = 0;
	for (unsigned i = 1; i < SLACK_CAUSES; i++)
		best = r->cause_cycles[i] > r->cause_cycles[best] ? (enum slack_cause)i : best;
	return best;
}

static void slack_fields_instruction_rows(struct base_str *out, const struct cmd_slack_view *v)
{
	const struct slack_fields_result *r = v->fields;
	size_t shown = 0;
	base_str_add(out,
		"\n  of critical path     executed  critical  slack: least         mean    "
		"deviation  instruction\n");
	for (size_t i = 0; i < r->nr_code && shown < v->rows; i++) {
		const struct slack_static *c = &r->code[i];
		struct base_str name = {0};
		if (!c->executed || !c->critical_cycles)
			continue;
		shown++;
		double mean = c->sum / (double)c->executed;
		double variance = c->squares / (double)c->executed - mean * mean;
		cmd_slack_name(v->names, CMD_SLACK_INSTRUCTION, c->code, &name);
		base_str_addf(out, "  %15.1f%% %12" PRIu64 " %8.1f%% %13" PRIu64 " %12.0f %12.0f  ",
			base_percent(c->critical_cycles, r->cycles), c->executed,
			base_percent(c->critical, c->executed), c->least, mean,
			variance > 0 ? sqrt(variance) : 0);
		report_name_add(out, base_str_text(&name));
		base_str_addf(out, " (%s)\n", slack_kind_name(c->kind));
		base_str_fini(&name);
	}
}

static void quantiles(struct base_str *out, const struct slack_fields_result *r)
{
	static const double share[] = {0.1, 0.25, 0.5, 0.75, 0.9};
	uint64_t low, high;
	base_str_addf(out, "\nSlack of executing: none for %.1f%% of instructions; ",
		base_percent(base_histogram_bucket(&r->slack, 0, &low, &high), r->slack.count));
	for (size_t i = 0; i < BASE_COUNT(share); i++)
		base_str_addf(out, "%s%.0f%% have at most %" PRIu64, i ? ", " : "", 100 * share[i],
			base_histogram_quantile(&r->slack, share[i]));
	base_str_add(out, " cycles.\n");
}

void cmd_slack_fields_text(struct base_str *out, const struct cmd_slack_view *v)
{
	const struct slack_fields_result *r = v->fields;
	enum slack_cause best = greatest(r);
	struct cmd_streams s = {
		.source = (struct memory_source *)(uintptr_t)v->source, .name = v->trace};
	base_str_addf(out,
		"%.0f%% of the out-of-order critical path is %s; out of order the same "
		"instructions take %.2f times as long as in order (modelled: window %u, width "
		"%u, %u {processor|processors}, %s).\n",
		base_percent(r->cause_cycles[best], r->cycles), slack_cause_line(best),
		r->in_order_cycles ? (double)r->cycles / (double)r->in_order_cycles : 0,
		v->core->window, v->core->width, v->source->info.nr_threads,
		v->config->cdat->protocol->name);
	base_str_addf(out,
		"%" PRIu64 " {instruction|instructions}, %" PRIu64
		" {cycle|cycles} (in order %" PRIu64 ").\n",
		r->instructions, r->cycles, r->in_order_cycles);
	base_str_add(out, "\n  of critical path       cycles  cause\n");
	for (unsigned i = 0; i < SLACK_CAUSES; i++)
		if (r->cause_cycles[i])
			base_str_addf(out, "  %15.1f%% %12" PRIu64 "  %s\n",
				base_percent(r->cause_cycles[i], r->cycles), r->cause_cycles[i],
				slack_cause_line((enum slack_cause)i));
	quantiles(out, r);
	slack_fields_instruction_rows(out, v);
	base_str_addf(out,
		"\nBranches: %" PRIu64
		" conditional or indirect, %.2f%% mispredicted (gshare, 4096 "
		"counters), %u {cycle|cycles} each.\n",
		r->branches, base_percent(r->mispredicted, r->branches), v->core->penalty_cycles);
	base_str_addf(out,
		"How it knows: dependences through registers were read from the program's code "
		"(of %" PRIu64 " of %" PRIu64
		" {instruction|instructions} they are not known).\n  Those through memory, and the "
		"latencies of accesses, come from the in-order machine's run.\n  Functional units "
		"and issue are unlimited; an instruction without an access takes a cycle.\n",
		r->unknown, r->instructions);
	if (r->cut)
		base_str_addf(out,
			"Caution: only the first %" PRIu64
			" {instruction|instructions}; --instructions=N takes more.\n",
			r->instructions);
	cmd_streams_source_caveats(&s, out);
	base_str_addf(out, "NEXT  longpole slack --out-of-order --window=%u %s\n",
		v->core->window * 2, v->trace);
}
