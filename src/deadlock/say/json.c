/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - the same answer for programs: our schema, and SARIF 2.1.0 for those that show findings.
 */
#include "deadlock/private.h"
#include "base/column.h"
#include "base/json.h"

#include "deadlock/say/say.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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

struct json_event {
	const char *text;
	uint64_t times;
};

static size_t wait_index(const struct deadlock_answer *a, const struct deadlock_wait *w)
{
	return (size_t)(w - a->wait);
}

static json_t *run_events_json(const struct deadlock_answer *a, const struct deadlock_run *r,
	const struct base_table *table)
{
	json_t *events = json_array();
	for (size_t e = 0; e < r->nr_events; e++) {
		struct base_str s = {0};
		base_str_add(&s, r->event[e].is_share ? "its share of " : "");
		deadlock_say_key(&s, a, (size_t)(r - a->run), &r->event[e].key);
		struct json_event event = {base_str_text(&s), r->event[e].count};
		json_array_append_new(events, base_table_json(table, &event, a, 0));
		base_str_fini(&s);
	}
	return events;
}

/* NULL: it was not run ahead. */
static json_t *run_json(const struct deadlock_answer *a, const struct deadlock_wait *w,
	const struct base_table *table)
{
	const struct deadlock_run *r = a->run ? &a->run[wait_index(a, w)] : NULL;
	return r && r->end != DEADLOCK_END_NONE ? base_table_json(table, r, a, 0) : NULL;
}

static json_t *object_json(const struct deadlock_answer *a, size_t wait, size_t key)
{
	struct base_str s = {0};
	deadlock_say_object(&s, a, wait, key);
	return json_text_of(&s);
}

static json_t *keys_json(const struct deadlock_answer *a, const struct deadlock_wait *w)
{
	json_t *keys = json_array();
	for (size_t k = 0; k < w->nr_keys; k++)
		json_array_append_new(keys, object_json(a, wait_index(a, w), k));
	return keys;
}

static json_t *sentence_json(const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	struct base_str s = {0};
	deadlock_say_finding(&s, a, f);
	return json_text_of(&s);
}

static double left_ns(const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	uint64_t left = UINT64_MAX;
	return deadlock_finding_left_ns(a, f, &left) && left != UINT64_MAX ? (double)left : NAN;
}

static json_t *breakers_json(const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	json_t *tids = json_array();
	for (uint32_t i = 0; i < f->nr_breakers; i++)
		json_array_append_new(tids, json_integer(a->wait[f->breaker[i]].thread.tid));
	return tids;
}

static json_t *members_json(const struct deadlock_answer *a, const struct deadlock_finding *f,
	const struct base_table *table)
{
	json_t *threads = json_array();
	for (uint32_t m = 0; m < f->nr_members; m++)
		json_array_append_new(
			threads, base_table_json(table, &a->wait[f->member[m]], a, 0));
	return threads;
}

static json_t *edges_json(const struct deadlock_answer *a, const struct deadlock_finding *f,
	const struct base_table *table)
{
	json_t *edges = json_array();
	for (uint32_t i = 0; i < f->nr_edges; i++)
		json_array_append_new(edges, base_table_json(table, &a->edge[f->edge[i]], a, 0));
	return edges;
}

static json_t *headline_json(const struct deadlock_answer *a)
{
	struct base_str s = {0};
	deadlock_say_headline(&s, a);
	return json_text_of(&s);
}

/* Where those of threads that were run ahead come from. */
static const char *registers_text(const struct deadlock_answer *a)
{
	if (a->without_bpf)
		return a->stopped_ns ? "ptrace" : "unknown";
	return a->stopped_ns ? "BPF; of threads that spin by ptrace" : "BPF, no thread was stopped";
}

#include "deadlock/say/deadlock.def"

json_t *deadlock_json(const struct deadlock_answer *a, const char *tool)
{
	return json_pack("{s:s, s:s, s:o}", "schema", deadlock_document.name, "tool", tool,
		"result", base_table_json(&deadlock_document, a, a, 0));
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

/* The same circle in two processes has one print: the n-th gets its number, since readers take
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
