/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - struct report for programs. Keys are only ever added within a schema version. */
#include "report/private.h"

static json_t *report_json_rows(const struct report *r)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->nr_rows; i++) {
		const struct report_row *row = &r->row[i];
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:o}",
				"state", row->state, "actor", row->actor, "group", row->group,
				"kind", model_state_kind_name(row->kind), "actors",
				(int)row->nr_actors, "path_ns", report_json_ns(row->path_ns),
				"unexplained_ns", report_json_ns(row->unexplained_ns), "visits",
				report_json_u64(row->visits), "share",
				report_json_share(row->share), "waiting_share",
				report_json_share(row->waiting_share), "where", row->where,
				"functions",
				report_functions_json(row->function, row->nr_functions)));
	}
	return list;
}

static json_t *json_opportunities(const struct report *r)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->nr_opportunities; i++) {
		const struct report_opportunity *o = &r->opportunity[i];
		for (unsigned k = 0; k < REPORT_LEVELS; k++)
			json_array_append_new(list,
				json_pack("{s:s, s:s, s:o, s:i, s:o, s:o, s:s, s:o, s:b, s:s, s:s}",
					"state", o->state, "kind", model_state_kind_name(o->kind),
					"share", report_json_share(o->share), "reduction_percent",
					(int)report_level_percent[k], "predicted_ns",
					report_json_ns(o->predicted_ns[k]), "predicted_speedup",
					report_json_share(o->speedup[k]), "longest_then",
					o->then[k], "helps_until_percent",
					report_json_share(o->useful_reduction * 100),
					"helps_until_exact", o->useful_exact, "next_bottleneck",
					o->next, "method", o->method[k]));
	}
	return list;
}

static json_t *json_gain(const struct report_best *b)
{
	return json_pack("{s:o, s:o, s:o, s:s}", "predicted_speedup", report_json_share(b->speedup),
		"predicted_speedup_low", report_json_share(b->low), "predicted_speedup_high",
		report_json_share(b->high), "method", report_method_of(b->replay_share));
}

/* As the screen shows them: those that somebody would change first. */
static json_t *json_parts(const struct report_parts *parts)
{
	json_t *list = json_array();
	for (size_t i = 0; i < parts->nr; i++) {
		const struct report_part *p = &parts->part[i];
		if (!p->predicted && i)
			break;
		json_t *details = json_array();
		for (size_t k = 0; k < p->nr_details; k++)
			json_array_append_new(
				details, json_pack("{s:s, s:o}", "what", p->detail[k].text,
						 "path_ns", report_json_ns(p->detail[k].path_ns)));
		json_t *x = json_pack("{s:i, s:s, s:b, s:s, s:s, s:s, s:o, s:o, s:o}", "number",
			(int)i + 1, "name", p->name, "is_lock", p->is_lock, "kind",
			model_state_kind_name(p->kind), "where", p->place, "text",
			p->text ? p->text : "", "path_ns", report_json_ns(p->path_ns), "share",
			report_json_share(p->share), "details", details);
		if (x && p->predicted) {
			json_object_set_new(x, "halved", json_gain(&p->gain[REPORT_PART_HALVED]));
			json_object_set_new(x, "gone", json_gain(&p->gain[REPORT_PART_GONE]));
			json_object_set_new(x, "then", json_string(p->then));
		}
		json_array_append_new(list, x);
	}
	return list;
}

static json_t *json_apart(const struct report_parts *p)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "processor_had_by_others_ns",
		report_json_ns(p->apart_ns[REPORT_APART_PROCESSOR]), "processor_idle_ns",
		report_json_ns(p->apart_ns[REPORT_APART_SCHEDULER]), "outside_ns",
		report_json_ns(p->apart_ns[REPORT_APART_OUTSIDE]), "recorder_ns",
		report_json_ns(p->apart_ns[REPORT_APART_RECORDER]), "not_recorded_ns",
		report_json_ns(p->apart_ns[REPORT_APART_IDLE]));
}

/* The first part that is a lock. */
static json_t *json_lock(const struct report_parts *parts, const struct report_part *p)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", p->name, "path_share",
		report_json_share(p->path_ns / parts->elapsed_ns), "waits",
		report_json_u64(p->nr_waits), "wait_ns", report_json_u64(p->wait_ns),
		"halved_hold_predicted_speedup",
		p->predicted ? report_json_share(p->gain[REPORT_PART_HALVED].speedup)
			     : json_null());
}

json_t *report_json(const struct report *r)
{
	json_t *runner_up = json_null();
	if (r->runner_up.found)
		runner_up = json_pack("{s:o, s:s, s:o}", "length_ns",
			report_json_ns(r->runner_up.length_ns), "state", r->runner_up.state,
			"more_ns", report_json_ns(r->runner_up.more_ns));
	json_t *result = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"finding", r->finding, "certainty", r->certainty, "start_ns",
		report_json_u64(r->start_ns), "end_ns", report_json_u64(r->end_ns), "elapsed_ns",
		report_json_ns(r->elapsed_ns), "unexplained_ns", report_json_ns(r->unexplained_ns),
		"explained_share", report_json_share(r->explained_share), "path",
		report_json_rows(r), "opportunities", json_opportunities(r), "runner_up", runner_up,
		"annotation_findings", report_json_u64(r->nr_annotation_findings));
	if (result)
		json_object_set_new(result, "spins", report_spins_json(&r->spins));
	if (result)
		json_object_set_new(result, "polled_share", report_json_share(r->polled_share));
	if (result)
		json_object_set_new(result, "box", report_box_json(&r->box));
	if (result && r->imbalance_part)
		json_object_set_new(result, "imbalance", report_imbalance_json(r));
	if (result) {
		json_object_set_new(result, "pole", json_string(r->pole));
		json_object_set_new(result, "parts", json_parts(&r->parts));
		json_object_set_new(result, "apart", json_apart(&r->parts));
	}
	for (size_t i = 0; result && i < r->parts.nr; i++) {
		if (!r->parts.part[i].is_lock)
			continue;
		json_object_set_new(result, "lock", json_lock(&r->parts, &r->parts.part[i]));
		break;
	}
	return report_envelope("longpole/report/1", &r->trace, result);
}
