/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - the same answer for programs: our schema, and SARIF 2.1.0 for those that show findings.
 */
#include "deadlock/private.h"
#include "base/json.h"

#include "deadlock/say.h"

#include <inttypes.h>
#include <stdio.h>

/* 64-bit identities as text: JSON's numbers are not exact beyond 2^53. */
static json_t *json_hex(uint64_t n)
{
	char text[24];
	snprintf(text, sizeof text, "0x%" PRIx64, n);
	return json_string(text);
}

static json_t *json_text_of(struct base_str *s)
{
	json_t *j = s->failed ? NULL : json_string(base_str_text(s));
	base_str_fini(s);
	return j ? j : json_string(""); /* bytes that are no UTF-8 */
}

static json_t *safe(const char *text)
{
	json_t *j = json_string(text);
	return j ? j : json_string("?");
}

/* ---- our own --------------------------------------------------------------------------------- */

static json_t *frame_json(const struct deadlock_frame *f)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "function", safe(f->function),
		"offset_bytes", base_json_u64(f->offset), "module", safe(f->module), "file",
		safe(f->file), "line", base_json_u64(f->line), "pc", json_hex(f->pc));
}

static json_t *python_json(const struct deadlock_frame *f)
{
	return json_pack("{s:o, s:o, s:o}", "function", safe(f->function), "file", safe(f->file),
		"line", base_json_u64(f->line));
}

static json_t *run_json(const struct deadlock_answer *a, size_t i)
{
	const struct deadlock_run *r = a->run ? &a->run[i] : NULL;
	if (!r || r->end == DEADLOCK_END_NONE)
		return json_null();
	json_t *events = json_array();
	for (size_t e = 0; e < r->nr_events; e++) {
		struct base_str s = {0};
		base_str_add(&s, r->event[e].is_share ? "its share of " : "");
		deadlock_say_key(&s, a, i, &r->event[e].key);
		json_array_append_new(events, json_pack("{s:o, s:o}", "event", json_text_of(&s),
						      "times", base_json_u64(r->event[e].count)));
	}
	return json_pack("{s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "events", events, "end",
		deadlock_end_text(r->end), "proper", deadlock_end_is_proper(r->end), "why",
		safe(r->why), "calls", base_json_u64(r->nr_calls), "elapsed_ns",
		base_json_u64(r->elapsed_ns), "stopped_ns", base_json_u64(r->stopped_ns),
		"would_write", safe(r->would_write));
}

static json_t *json_thread_json(const struct deadlock_answer *a, uint32_t i)
{
	const struct deadlock_wait *w = &a->wait[i];
	json_t *frames = json_array(), *python = json_array(), *keys = json_array();
	for (size_t f = 0; f < w->nr_frames; f++)
		json_array_append_new(frames, frame_json(&w->frame[f]));
	for (size_t f = 0; f < w->nr_python; f++)
		json_array_append_new(python, python_json(&w->python[f]));
	for (size_t k = 0; k < w->nr_keys; k++) {
		struct base_str s = {0};
		deadlock_say_object(&s, a, i, k);
		json_array_append_new(keys, json_text_of(&s));
	}
	return json_pack("{s:i, s:i, s:o, s:s, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "pid",
		(int)w->thread.pid, "tid", (int)w->thread.tid, "name", safe(w->thread.name), "wait",
		deadlock_kind_text(w->kind), "waits_for", keys, "object", json_hex(w->object),
		"owner_tid", (int)w->owner, "syscall", json_integer(w->call), "asleep_at_least_ns",
		base_json_u64(
			a->now_ns > w->blocked_since_ns ? a->now_ns - w->blocked_since_ns : 0),
		"frames", frames, "python_frames", python, "without_python_frames",
		w->without_python ? safe(w->without_python) : json_null(), "run_ahead",
		run_json(a, i));
}

static json_t *finding_json(const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	json_t *threads = json_array(), *edges = json_array(), *breakers = json_array();
	struct base_str s = {0};
	uint64_t left_ns;
	const bool has_limit = deadlock_finding_left_ns(a, f, &left_ns);
	for (uint32_t m = 0; m < f->nr_members; m++)
		json_array_append_new(threads, json_thread_json(a, f->member[m]));
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		const struct deadlock_edge *e = &a->edge[f->edge[i]];
		struct base_str key = {0};
		deadlock_say_object(&key, a, e->waiter, e->key);
		json_array_append_new(
			edges, json_pack("{s:i, s:i, s:s, s:o}", "waiter_tid",
				       (int)a->wait[e->waiter].thread.tid, "producer_tid",
				       (int)a->wait[e->producer].thread.tid, "why",
				       deadlock_edge_name(e->why), "event", json_text_of(&key)));
	}
	for (uint32_t i = 0; i < f->nr_breakers; i++)
		json_array_append_new(breakers, json_integer(a->wait[f->breaker[i]].thread.tid));
	deadlock_say_finding(&s, a, f);
	return json_pack("{s:o, s:s, s:s, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "finding",
		json_text_of(&s), "kind", deadlock_finding_name(f->kind), "sure",
		deadlock_sure_name(f->sure), "knot", f->is_knot, "circle",
		f->is_simple && f->kind == DEADLOCK_FINDING_CYCLE, "lost_wakeup", f->is_lost_wakeup,
		"waiting_behind", base_json_u64(f->nr_behind), "ends_within_ns",
		has_limit && left_ns != UINT64_MAX ? base_json_u64(left_ns) : json_null(),
		"could_end_it_tids", breakers, "threads", threads, "edges", edges);
}

/* Where those of threads that were run ahead come from. */
static const char *registers_text(const struct deadlock_answer *a)
{
	if (a->without_bpf)
		return a->stopped_ns ? "ptrace" : "unknown";
	return a->stopped_ns ? "BPF; of threads that spin by ptrace" : "BPF, no thread was stopped";
}

json_t *deadlock_json(const struct deadlock_answer *a, const char *tool)
{
	json_t *findings = json_array();
	struct base_str s = {0};
	for (size_t i = 0; i < a->nr_findings; i++)
		json_array_append_new(findings, finding_json(a, &a->finding[i]));
	deadlock_say_headline(&s, a);
	return json_pack("{s:s, s:s, s:{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}}",
		"schema", "longpole/deadlock/1", "tool", tool, "result", "finding",
		json_text_of(&s), "deadlocks", findings, "processes",
		base_json_u64(a->nr_processes), "threads", base_json_u64(a->nr_waits),
		"threads_asleep", base_json_u64(a->nr_long), "processes_not_readable",
		base_json_u64(a->nr_blind), "threads_run_ahead", base_json_u64(a->nr_run),
		"threads_not_run_ahead", base_json_u64(a->nr_not_run), "look_ns",
		base_json_u64(a->elapsed_ns), "longest_stop_ns", base_json_u64(a->stopped_ns),
		"registers", json_string(registers_text(a)));
}

/* ---- SARIF ----------------------------------------------------------------------------------- */

static const struct deadlock_frame *json_place_of(const struct deadlock_wait *w)
{
	for (size_t i = 0; i < w->nr_python; i++) {
		if (!w->python[i].is_runtime)
			return &w->python[i];
	}
	for (size_t i = 0; i < w->nr_frames; i++) {
		if (!w->frame[i].is_runtime)
			return &w->frame[i];
	}
	return NULL;
}

/* A location needs a file and a line, or GitHub refuses the whole document: the module's first, where the source is not
 * known. */
static json_t *json_physical_location(const struct deadlock_frame *f)
{
	bool known = f && *f->file;
	const char *uri = known ? f->file : f && *f->module ? f->module : "program";
	return json_pack("{s:{s:o}, s:{s:o}}", "artifactLocation", "uri", safe(uri), "region",
		"startLine", base_json_u64(known && f->line ? f->line : 1));
}

static json_t *location(const struct deadlock_answer *a, uint32_t i)
{
	const struct deadlock_wait *w = &a->wait[i];
	const struct deadlock_frame *f = json_place_of(w);
	char who[64];
	struct base_str s = {0};
	deadlock_say_tid(who, sizeof who, a, i);
	base_str_addf(&s, "%s %s: ", who, deadlock_kind_text(w->kind));
	deadlock_say_object(&s, a, i, 0);
	json_t *l = json_pack("{s:{s:o}}", "message", "text", json_text_of(&s));
	json_object_set_new(l, "physicalLocation", json_physical_location(f));
	if (f && *f->function)
		json_object_set_new(l, "logicalLocations",
			json_pack("[{s:o}]", "fullyQualifiedName", safe(f->function)));
	return l;
}

/* Where each of them waits: the same in every run that hangs so. */
static json_t *json_print_of(const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	struct base_str print = {0};
	for (uint32_t m = 0; m < f->nr_members; m++) {
		const struct deadlock_frame *p = json_place_of(&a->wait[f->member[m]]);
		base_str_addf(&print, "%s%s+%" PRIu64, m ? "," : "", p ? p->function : "?",
			p ? p->offset : 0);
	}
	return json_text_of(&print);
}

/* The same circle in two processes has one print: the n-th gets its number, for who reads them takes
 * equal ones for one. GitHub looks at the second key alone. */
static json_t *json_fingerprints(
	json_t *seen, const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	json_t *print = json_print_of(a, f);
	struct base_str text = {0}, hashed = {0};
	unsigned nr = 1;
	uint64_t hash = 0;
	for (size_t i = 0; i < json_array_size(seen); i++)
		if (json_equal(json_array_get(seen, i), print))
			nr++;
	base_str_add(&text, json_string_value(print));
	if (nr > 1)
		base_str_addf(&text, "#%u", nr);
	for (const char *p = base_str_text(&text); *p; p++)
		hash = base_hash_u64(hash ^ (unsigned char)*p);
	base_str_addf(&hashed, "%016" PRIx64 ":1", base_hash_u64(hash));
	json_array_append_new(seen, print);
	return json_pack("{s:o, s:o}", "waitPlaces/v1", json_text_of(&text),
		"primaryLocationLineHash", json_text_of(&hashed));
}

static json_t *json_result_json(
	const struct deadlock_answer *a, const struct deadlock_finding *f, json_t *fingerprints)
{
	json_t *flows = json_array();
	struct base_str s = {0};
	for (uint32_t m = 0; m < f->nr_members; m++)
		json_array_append_new(flows, json_pack("{s:[{s:o}]}", "locations", "location",
						     location(a, f->member[m])));
	deadlock_say_finding(&s, a, f);
	return json_pack("{s:s, s:s, s:{s:o}, s:[o], s:[{s:o}], s:o}", "ruleId",
		deadlock_finding_name(f->kind), "level",
		f->sure == DEADLOCK_CERTAIN ? "error" : "warning", "message", "text",
		json_text_of(&s), "locations", location(a, f->member[0]), "codeFlows",
		"threadFlows", flows, "partialFingerprints", fingerprints);
}

json_t *deadlock_sarif(const struct deadlock_answer *a, const char *tool)
{
	json_t *results = json_array(), *rules = json_array(), *seen = json_array();
	for (size_t i = 0; i < a->nr_findings; i++)
		json_array_append_new(results, json_result_json(a, &a->finding[i],
						       json_fingerprints(seen, a, &a->finding[i])));
	json_decref(seen);
	for (unsigned k = 0; k <= DEADLOCK_FINDING_STUCK; k++)
		json_array_append_new(rules, json_pack("{s:s}", "id", deadlock_finding_name(k)));
	return json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:o}]}", "version", "2.1.0",
		"$schema", "https://json.schemastore.org/sarif-2.1.0.json", "runs", "tool",
		"driver", "name", "longpole deadlock", "version", tool, "rules", rules, "results",
		results);
}
