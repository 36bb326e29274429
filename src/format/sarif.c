/* SPDX-License-Identifier: Apache-2.0 */
/* sarif.c - SARIF 2.1.0; and the export: what is wrong with annotations, and where the path is
 * long. */
#include "format/sarif.h"
#include "format/private.h"

#include "model/findings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the writer ------------------------------------------------------------------------------ */

void format_sarif_begin(struct format_sarif *s, const char *version,
	const struct format_sarif_rule *rule, size_t nr_rules)
{
	struct base_str *o = &s->text;
	*s = (struct format_sarif){.rule = rule, .nr_rules = nr_rules};
	base_str_add(o, "{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\","
			"\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":"
			"\"longpole\",\"version\":");
	format_json_text(o, version);
	base_str_add(o, ",\"rules\":[");
	for (size_t i = 0; i < nr_rules; i++) {
		base_str_add(o, i ? ",\n{\"id\":" : "\n{\"id\":");
		format_json_text(o, rule[i].id);
		base_str_add(o, ",\"shortDescription\":{\"text\":");
		format_json_text(o, rule[i].text);
		base_str_add(o, "}");
		if (*rule[i].help) {
			base_str_add(o, ",\"help\":{\"text\":");
			format_json_text(o, rule[i].help);
			base_str_add(o, "}");
		}
		base_str_add(o, "}");
	}
	base_str_add(o, "]}},\"columnKind\":\"utf16CodeUnits\",\"results\":[");
}

/* Absolute paths are file URIs, others relative references; what a URI may not have is escaped. */
static void add_uri(struct base_str *o, const char *file)
{
	struct base_str uri = {0};
	base_str_add(&uri, *file == '/' ? "file://" : "");
	for (const unsigned char *p = (const unsigned char *)file; *p; p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			     (*p >= '0' && *p <= '9') || strchr("/._-+~@", *p);
		if (plain)
			base_str_add_bytes(&uri, p, 1);
		else
			base_str_addf(&uri, "%%%02X", *p);
	}
	format_json_text(o, base_str_text(&uri));
	o->failed |= uri.failed;
	base_str_fini(&uri);
}

/* A place that is not known is the program's first line: a location needs a file and a line. */
static void sarif_add_place(struct format_sarif *s, const struct format_sarif_place *p)
{
	struct base_str *o = &s->text;
	bool known = p->file && *p->file;
	base_str_add(o, "{\"physicalLocation\":{\"artifactLocation\":{\"uri\":");
	add_uri(o, known ? p->file : s->program ? s->program : "program");
	base_str_addf(
		o, "},\"region\":{\"startLine\":%" PRIu64 "}}", known && p->line ? p->line : 1);
	if (p->function && *p->function) {
		base_str_add(o, ",\"logicalLocations\":[{\"kind\":\"function\",\"name\":");
		format_json_text(o, p->function);
		base_str_add(o, "}]");
	}
	if (p->text) {
		base_str_add(o, ",\"message\":{\"text\":");
		format_json_text(o, p->text);
		base_str_add(o, "}");
	}
	base_str_add(o, "}");
}

/* The n-th result of one fingerprint has another: readers take equal ones for one. */
static uint64_t sarif_fingerprint(struct format_sarif *s, uint64_t fingerprint)
{
	uint64_t nr = 0;
	base_map_get(&s->seen, 0, fingerprint, &nr);
	if (base_map_put(&s->seen, 0, fingerprint, nr + 1) != BASE_OK)
		s->text.failed = true;
	return nr ? base_hash_u64(fingerprint + nr) : fingerprint;
}

static void sarif_add_flow(struct format_sarif *s, const struct format_sarif_flow *f)
{
	struct base_str *o = &s->text;
	base_str_add(o, "{\"id\":");
	format_json_text(o, f->thread);
	base_str_add(o, ",\"locations\":[");
	for (size_t i = 0; i < f->nr_steps && i < FORMAT_SARIF_STEPS_MAX; i++) {
		base_str_add(o, i ? ",{\"location\":" : "{\"location\":");
		sarif_add_place(s, &f->step[i]);
		base_str_add(o, "}");
	}
	base_str_add(o, "]}");
}

void format_sarif_result(struct format_sarif *s, const struct format_sarif_result *r)
{
	static const char *const level[] = {"note", "warning", "error"};
	struct base_str *o = &s->text;
	BASE_ASSERT(r->rule < s->nr_rules);
	if (s->nr_results >= FORMAT_SARIF_RESULTS_MAX) {
		s->nr_left_out++;
		return;
	}
	base_str_add(o, s->nr_results++ ? ",\n{\"ruleId\":" : "\n{\"ruleId\":");
	format_json_text(o, s->rule[r->rule].id);
	base_str_addf(o, ",\"ruleIndex\":%zu,\"level\":\"%s\",\"message\":{\"text\":", r->rule,
		level[r->level]);
	format_json_text(o, r->text);
	base_str_add(o, "},\"locations\":[");
	sarif_add_place(s, r->place ? r->place : &(struct format_sarif_place){0});
	base_str_add(o, "]");
	for (size_t i = 0; i < r->nr_flows; i++) {
		base_str_add(o, i ? "," : ",\"codeFlows\":[{\"threadFlows\":[");
		sarif_add_flow(s, &r->flow[i]);
	}
	base_str_add(o, r->nr_flows ? "]}]" : "");
	/* (the second key is the one that GitHub looks at) */
	uint64_t fingerprint = sarif_fingerprint(s, r->fingerprint);
	base_str_addf(o,
		",\"partialFingerprints\":{\"longpole/v1\":\"%016" PRIx64
		"\",\"primaryLocationLineHash\":\"%016" PRIx64 ":1\"}}",
		fingerprint, fingerprint);
}

void format_sarif_end(struct format_sarif *s)
{
	base_str_add(&s->text, "\n]");
	if (s->nr_left_out)
		base_str_addf(&s->text, ",\"properties\":{\"resultsLeftOut\":%zu}", s->nr_left_out);
	base_str_add(&s->text, "}]}\n");
}

void format_sarif_fini(struct format_sarif *s)
{
	base_str_fini(&s->text);
	base_map_fini(&s->seen);
}

bool format_sarif_parse_place(
	const char *where, struct base_str *buf, struct format_sarif_place *ret)
{
	const char *open = strrchr(where, '('), *colon = strrchr(where, ':');
	base_str_reset(buf);
	*ret = (struct format_sarif_place){0};
	if (!open || !colon || colon < open || where[strlen(where) - 1] != ')')
		return false;
	size_t nr_function = (size_t)(open - where), nr_file = (size_t)(colon - open - 1);
	while (nr_function && where[nr_function - 1] == ' ')
		nr_function--;
	base_str_add_bytes(buf, open + 1, nr_file);
	base_str_add_bytes(buf, "", 1);
	base_str_add_bytes(buf, where, nr_function);
	if (buf->failed || !nr_file)
		return false;
	ret->file = buf->buf;
	ret->function = buf->buf + nr_file + 1;
	ret->line = strtoull(colon + 1, NULL, 10);
	return true;
}

/* ---- the export ------------------------------------------------------------------------------ */

enum { POLES_MAX = 20 };
#define POLE_SHARE_MIN 0.01

static uint64_t sarif_hash_of(uint64_t hash, const char *text)
{
	for (const char *p = text; *p; p++)
		hash = base_hash_u64(hash ^ (unsigned char)*p);
	return base_hash_u64(hash + 1);
}

static const struct format_sarif_rule rules[] = {
#define FINDING(id, severity, sentence, advice) {"longpole/annotation/" #id, sentence, advice},
#include "model/findings.def"
	{"longpole/pole", "the critical path spends a large share of its time here",
		"longpole whatif says what a shorter one would buy"},
};
enum { RULE_POLE = BASE_COUNT(rules) - 1 };

/* Of what is at `where`; if that is no place in a file, the text says it where it is `told`. */
static void sarif_add_at(struct format_sarif *s, struct format_sarif_result r, const char *where,
	struct base_str *text, bool told)
{
	struct base_str buf = {0};
	struct format_sarif_place place;
	bool found = format_sarif_parse_place(where, &buf, &place);
	if (told && !found && *where)
		base_str_addf(text, ", at %s", where);
	r.text = base_str_text(text);
	r.place = found ? &place : NULL;
	format_sarif_result(s, &r);
	s->text.failed |= text->failed || buf.failed;
	base_str_fini(text);
	base_str_fini(&buf);
}

static void sarif_add_finding(struct format_sarif *s, const struct model_finding *f)
{
	static const enum format_sarif_level level[] = {[MODEL_SEVERITY_error] = FORMAT_SARIF_error,
		[MODEL_SEVERITY_warning] = FORMAT_SARIF_warning,
		[MODEL_SEVERITY_info] = FORMAT_SARIF_note};
	struct base_str text = {0};
	struct format_sarif_result r = {.rule = f->check,
		.level = level[f->severity],
		.fingerprint = sarif_hash_of(sarif_hash_of(f->check, f->where), f->queue)};
	base_str_addf(&text, "%s (%" PRIu64 " {time|times})", f->sentence, f->count);
	sarif_add_at(s, r, f->where, &text, true);
}

static void add_pole(struct format_sarif *s, const struct format_input *in,
	const struct graph_path_state *p, double length_ns)
{
	const struct model_state *st = model_state(in->model, p->state);
	const struct model_actor *a = model_actor(in->model, p->actor);
	struct base_str text = {0};
	uint64_t hash = sarif_hash_of(RULE_POLE, a->group);
	struct format_sarif_result r = {.rule = RULE_POLE,
		.level = FORMAT_SARIF_note,
		.fingerprint = sarif_hash_of(sarif_hash_of(hash, st->name), st->where)};
	base_str_addf(&text, "%.1f %% of the critical path: %s, %s", 100 * p->path_ns / length_ns,
		a->group, st->name);
	sarif_add_at(s, r, st->where, &text, false);
}

enum base_status format_export_sarif(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct format_sarif s;
	struct graph_lane_result lane;
	uint64_t more = 0;
	size_t nr = 0;
	const struct model_finding *finding = model_findings(in->model, &nr, &more);
	(void)opts;
	enum base_status st = graph_lane(model_graph(in->model), 0, &lane, err);
	if (st != BASE_OK)
		return st;
	format_sarif_begin(&s, in->tool, rules, BASE_COUNT(rules));
	s.program = in->name;
	for (size_t i = 0; i < nr; i++)
		sarif_add_finding(&s, &finding[i]);
	for (size_t i = 0; i < lane.nr_states && i < POLES_MAX && lane.length_ns > 0; i++)
		if (lane.state[i].path_ns >= POLE_SHARE_MIN * lane.length_ns)
			add_pole(&s, in, &lane.state[i], lane.length_ns);
	format_sarif_end(&s);
	format_note_count(in->notes, more, "%s more {finding is|findings are} left out");
	st = s.text.failed ? format_no_memory(err)
			   : sink->write(sink->ctx, base_str_text(&s.text), s.text.length, err);
	format_sarif_fini(&s);
	return st;
}
