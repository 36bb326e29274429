/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.c - what every answer in JSON has: rounded numbers, and an envelope that says which
 * trace it is about. */
#include "report/draw/draw.h"

#include "config.h"

#include <math.h>

json_t *report_json_text(const char *text)
{
	return json_string(text);
}

json_t *report_json_share(double share)
{
	return json_real(round(share * 1e6) / 1e6);
}

json_t *report_json_ns(double ns)
{
	return json_integer(ns > 0 ? (json_int_t)llround(ns) : 0);
}

json_t *report_json_u64(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *trace_json_diagnostics(const struct report_trace *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->nr_diags; i++) {
		const struct report_diag *d = &t->diag[i];
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:o, s:s}", "name", d->name, "severity",
				      d->severity, "source", d->source, "count",
				      report_json_u64(d->count), "text", d->text));
	}
	return list;
}

static json_t *trace_recording_cost(const struct report_trace *t)
{
	if (!t->nr_costs)
		return json_null();
	json_t *parts = json_array();
	for (size_t i = 0; i < t->nr_costs; i++) {
		const struct report_cost *c = &t->cost[i];
		json_array_append_new(parts,
			json_pack("{s:s, s:o, s:o, s:b, s:s}", "what", c->name, "times",
				report_json_u64(c->n), "total_ns", report_json_u64(c->total_ns),
				"beside_the_program", c->beside, "method", c->method));
	}
	bool known = t->target_cpu_ns != 0;
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "share",
		known ? report_json_share(t->cost_share) : json_null(), "share_low",
		known ? report_json_share(t->cost_share_low) : json_null(), "share_high",
		known ? report_json_share(t->cost_share_high) : json_null(), "target_cpu_ns",
		report_json_u64(t->target_cpu_ns), "own_cpu_ns", report_json_u64(t->own_cpu_ns),
		"parts", parts);
}

static json_t *trace_unseen_kinds(const struct report_trace *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->nr_unseen; i++) {
		const struct report_unseen *u = &t->unseen[i];
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:s}", "wait", u->wait,
				"place", u->place, "and_others", u->several, "count",
				report_json_u64(u->nr), "total_ns", report_json_u64(u->total_ns),
				"longest_ns", report_json_u64(u->longest_ns), "longest_begin_ns",
				report_json_u64(u->longest_begin_ns), "longest_actor",
				u->longest_actor));
	}
	return list;
}

static json_t *trace_json_ranks(const struct report_ranks *r)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->nr; i++) {
		const struct report_world *w = &r->world[i];
		json_array_append_new(list,
			json_pack("{s:o, s:o, s:s, s:s, s:o, s:s}", "ranks",
				report_json_u64(w->nr_ranks), "recorded",
				report_json_u64(w->nr_recorded), "missing", w->missing,
				"unfinished", w->unfinished, "first_ended",
				w->first_ended == REPORT_NONE ? json_null()
							      : report_json_u64(w->first_ended),
				"ended", w->ended));
	}
	return list;
}

json_t *report_envelope(const char *schema, const struct report_trace *t, json_t *result)
{
	json_t *trace = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "path",
		t->path, "host", t->host, "command", t->command, "recorded_by", t->tool,
		"file_bytes", report_json_u64(t->file_bytes), "readable_bytes",
		report_json_u64(t->readable_bytes), "records", report_json_u64(t->nr_records),
		"processors", report_json_u64(t->nr_processors), "threads",
		report_json_u64(t->nr_actors), "recording_cost", trace_recording_cost(t));
	if (t->quota_period_ns)
		json_object_set_new(trace, "quota",
			json_pack("{s:o, s:o}", "quota_ns", report_json_u64(t->quota_ns),
				"period_ns", report_json_u64(t->quota_period_ns)));
	if (t->process)
		json_object_set_new(trace, "system",
			json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "process", t->process, "pid",
				report_json_u64(t->pid), "waits", report_json_u64(t->waits.nr),
				"waits_unexplained", report_json_u64(t->waits.nr_unseen),
				"waits_not_shown", report_json_u64(t->waits.nr_hidden),
				"unexplained_kinds", trace_unseen_kinds(t)));
	if (t->ranks.nr)
		json_object_set_new(trace, "mpi", trace_json_ranks(&t->ranks));
	if (t->from_ns || t->to_ns)
		json_object_set_new(trace, "window",
			json_pack("{s:o, s:o}", "from_ns", report_json_u64(t->from_ns), "to_ns",
				report_json_u64(t->to_ns && t->to_ns < t->last_ns ? t->to_ns
										  : t->last_ns)));
	return json_pack("{s:s, s:s, s:o, s:o, s:o}", "schema", schema, "tool",
		"longpole " LONGPOLE_VERSION, "trace", trace, "diagnostics",
		trace_json_diagnostics(t), "result", result);
}
