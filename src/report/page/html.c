/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - the page's document: every answer that the other commands give, and the timeline. */
#include "report/annotate.h"
#include "report/graph/graph.h"
#include "report/page/html_private.h"

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	QUEUES_MAX = 12,
	LOCK_GAINS = 5,
	GRAPH_NODES_MAX = 160,
	SOURCE_FUNCTIONS = 24,
	CAVEAT_COLUMNS = 60000
};

struct making {
	struct report_run with; /* what its parts learn together */
	const struct report_run *run;
	const struct report_html_options *opts;
	struct report_html *h;
	struct base_err *err;
};

/* A part that the trace has nothing for is absent, with the reason in its place. */
static enum base_status set_part(
	struct making *w, const char *key, enum base_status s, json_t *part)
{
	json_t *absent = json_object_get(w->h->document, "absent");
	if (s == BASE_ERR_NOTFOUND) {
		json_object_set_new(absent, key, json_string(w->err->cause[0]));
		*w->err = (struct base_err){0};
		return BASE_OK;
	}
	if (s == BASE_OK && json_object_set_new(w->h->document, key, part))
		return report_no_memory(w->err);
	return s;
}

/* "result" of a command's own document. */
static json_t *result_of(json_t *document)
{
	json_t *result = json_incref(json_object_get(document, "result"));
	json_decref(document);
	return result;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static json_t *caveat_json(const char *text, size_t length)
{
	struct base_str s = {0};
	report_html_units(&s, text, length);
	json_t *caveat = json_stringn(base_str_text(&s), s.length);
	base_str_fini(&s);
	return caveat;
}

static json_t *caveats_json(const struct report *r)
{
	struct report_style st = {.utf8 = true, .columns = CAVEAT_COLUMNS};
	struct base_str text = {0};
	json_t *list = json_array();
	report_text_caveats(&text, r, &st);
	for (const char *p = base_str_text(&text); *p;) {
		size_t length = strcspn(p, "\n"), skip = strncmp(p, "CAVEATS", 7) ? 0 : 7;
		while (p[skip] == ' ')
			skip++;
		if (length > skip)
			json_array_append_new(list, caveat_json(p + skip, length - skip));
		p += length + (p[length] == '\n');
	}
	base_str_fini(&text);
	return list;
}

static enum base_status add_answer(struct making *w)
{
	struct report_options opts = {.nr_opportunities_max = REPORT_OPPORTUNITIES_MAX,
		.nr_parts_max = REPORT_PARTS_DEFAULT};
	enum base_status s = report_build(w->run, &opts, &w->h->report, w->err);
	if (s != BASE_OK) {
		if (s == BASE_ERR_NOTFOUND)
			w->h->reason = report_clean(w->h->arena, w->err->cause[0]);
		return w->h->reason ? set_part(w, "answer", s, NULL) : report_no_memory(w->err);
	}
	json_t *document = report_json(w->h->report);
	json_object_set(w->h->document, "trace", json_object_get(document, "trace"));
	json_object_set(w->h->document, "diagnostics", json_object_get(document, "diagnostics"));
	json_t *answer = result_of(document);
	json_object_set_new(answer, "caveats", caveats_json(w->h->report));
	return set_part(w, "answer", s, answer);
}

static enum base_status add_curves(struct making *w)
{
	json_t *part = NULL;
	enum base_status s = report_html_curves_json(w->run, &part, w->err);
	return set_part(w, "whatif", s, part);
}

static enum base_status add_loops(struct making *w)
{
	struct report_loops *l = NULL;
	enum base_status s = report_loops_build(w->run, 0, &l, w->err);
	s = set_part(w, "loops", s, s == BASE_OK ? result_of(report_loops_json(l)) : NULL);
	report_loops_free(l);
	return s;
}

/* ---- who waits on what ----------------------------------------------------------------------- */

static enum base_status add_locks(struct making *w)
{
	struct report_locks_options opts = {
		.size = sizeof opts, .sort = REPORT_LOCK_SORT_path, .nr_gains_max = LOCK_GAINS};
	enum base_status s = report_locks_build(w->run, &opts, &w->h->locks, w->err);
	report_learned_fini(w->run->learned); /* nobody predicts any more */
	report_shared_lanes_fini(w->run->shared);
	return set_part(
		w, "locks", s, s == BASE_OK ? result_of(report_locks_json(w->h->locks)) : NULL);
}

static enum base_status add_queues(struct making *w)
{
	struct report_histograms *h = NULL;
	enum base_status s = report_queues_build(w->run, NULL, &w->h->queues, w->err);
	s = set_part(
		w, "queues", s, s == BASE_OK ? result_of(report_queues_json(w->h->queues)) : NULL);
	if (s == BASE_OK) {
		s = report_histograms_build(w->run, NULL, QUEUES_MAX, &h, w->err);
		s = set_part(w, "histograms", s,
			s == BASE_OK ? result_of(report_histograms_json(h)) : NULL);
	}
	report_histograms_free(h);
	return s;
}

static enum base_status add_graphs(struct making *w)
{
	static const char *const key[] = {"graph", "states_graph"};
	const struct report_graph_options opts[] = {
		{.view = REPORT_GRAPH_interaction, .max_nodes = GRAPH_NODES_MAX},
		{.view = REPORT_GRAPH_states, .max_nodes = GRAPH_NODES_MAX}};
	struct report_graph *g[BASE_COUNT(key)] = {NULL};
	enum base_status built = report_graph_build_views(w->run, opts, BASE_COUNT(key), g, w->err);
	enum base_status s = BASE_OK;
	const struct base_err why = *w->err; /* both lack it for one reason */
	for (size_t i = 0; i < BASE_COUNT(key) && s == BASE_OK; i++) {
		*w->err = why;
		s = set_part(w, key[i], built,
			built == BASE_OK ? result_of(report_graph_json(g[i])) : NULL);
	}
	for (size_t i = 0; i < BASE_COUNT(key); i++)
		report_graph_free(g[i]);
	return s;
}

static enum base_status html_add_connections(struct making *w)
{
	struct report_connections *c = NULL;
	if (w->run->connection || w->run->from_ns || w->run->to_ns)
		return BASE_OK; /* it is one already; in a window none has a beginning and an end */
	enum base_status s = report_connections_build(w->run, &c, w->err);
	s = set_part(
		w, "connections", s, s == BASE_OK ? result_of(report_connections_json(c)) : NULL);
	report_connections_free(c);
	return s;
}

static enum base_status add_flame(struct making *w)
{
	json_t *part = NULL;
	enum base_status s = report_html_flame_json(w->run, w->opts, &part, w->err);
	return set_part(w, "flame", s, part);
}

/* Source lines of the functions that have most samples. */
static enum base_status html_add_source(struct making *w)
{
	struct report_annotate_options opts = {.nr_functions = SOURCE_FUNCTIONS};
	struct report_annotation *a = NULL;
	enum base_status s = report_annotate_build(w->run, &opts, &a, w->err);
	s = set_part(w, "source", s, s == BASE_OK ? report_annotate_result(a) : NULL);
	report_annotation_free(a);
	return s;
}

/* ---- what other commands said ---------------------------------------------------------------- */

bool report_html_attachable(const json_t *document, const char **ret_name)
{
	static const char *const name[] = {"ciat", "deadlock", "noc-sim"};
	const char *schema = json_string_value(json_object_get(document, "schema"));
	char want[64];
	for (size_t i = 0; schema && i < BASE_COUNT(name); i++) {
		snprintf(want, sizeof want, "longpole/%s/1", name[i]);
		*ret_name = name[i];
		if (!strcmp(schema, want) && json_is_object(json_object_get(document, "result")))
			return true;
	}
	return false;
}

static enum base_status add_attached(struct making *w)
{
	json_t *attached = json_object();
	for (size_t i = 0; i < w->opts->nr_attached; i++) {
		const char *name;
		if (report_html_attachable(w->opts->attached[i], &name))
			json_object_set(
				attached, name, json_object_get(w->opts->attached[i], "result"));
	}
	if (json_object_set_new(w->h->document, "attached", attached))
		return report_no_memory(w->err);
	return BASE_OK;
}

/* ---- the timeline gets what room the others leave -------------------------------------------- */

static enum base_status add_timeline(struct making *w)
{
	size_t max = w->opts->max_data_bytes ? w->opts->max_data_bytes : REPORT_HTML_DATA_MAX;
	size_t others = json_dumpb(w->h->document, NULL, 0, JSON_COMPACT);
	json_t *part = NULL;
	enum base_status s = report_html_timeline_build(&w->h->timeline, w->run, w->err);
	w->h->has_timeline = s == BASE_OK;
	size_t rest = max - max / 50; /* for escapes, and for what is counted roughly */
	if (s == BASE_OK)
		s = report_html_timeline_json(
			&w->h->timeline, rest > others ? rest - others : 0, &part, w->err);
	return set_part(w, "timeline", s, part);
}

static enum base_status html_fill(struct making *w)
{
	static enum base_status (*const add[])(struct making * w) = {add_answer, add_curves,
		add_loops, add_locks, add_queues, add_graphs, html_add_connections, add_flame,
		html_add_source, add_attached, add_timeline};
	struct report_html *h = w->h;
	const char *slash = strrchr(w->run->trace_path, '/');
	h->arena = base_arena_new(0);
	h->document = json_pack("{s:s, s:s, s:{}}", "schema", "longpole/page/1", "tool",
		"longpole " LONGPOLE_VERSION, "absent");
	if (!h->arena || !h->document)
		return report_no_memory(w->err);
	h->reason = "";
	h->name = report_clean(h->arena, slash ? slash + 1 : w->run->trace_path);
	if (!h->name)
		return report_no_memory(w->err);
	json_object_set_new(h->document, "name", json_string(h->name));
	for (size_t i = 0; i < BASE_COUNT(add); i++) {
		enum base_status s = add[i](w);
		if (s != BASE_OK)
			return s;
	}
	h->text = json_dumps(h->document, JSON_COMPACT);
	if (!h->text)
		return report_no_memory(w->err);
	h->length = strlen(h->text);
	return BASE_OK;
}

enum base_status report_html_build(const struct report_run *run,
	const struct report_html_options *opts, struct report_html **ret, struct base_err *err)
{
	struct base_err own; /* reasons are kept also for callers that do not ask */
	struct report_learned learned = {0};
	struct report_shared_pass shared = {.has_all = true};
	struct making w = {.with = *run,
		.run = &w.with,
		.opts = opts,
		.h = base_alloc(sizeof *w.h),
		.err = err ? err : &own};
	if (!w.h)
		return report_no_memory(err);
	w.with.learned = &learned;
	w.with.shared = &shared;
	enum base_status s = html_fill(&w);
	report_learned_fini(&learned);
	report_shared_pass_fini(&shared);
	if (s != BASE_OK)
		report_html_free(w.h);
	else
		*ret = w.h;
	return s;
}

struct report_html *report_html_free(struct report_html *h)
{
	if (!h)
		return NULL;
	json_decref(h->document);
	free(h->text); /* allowed: jansson's */
	report_free(h->report);
	report_locks_free(h->locks);
	report_queues_free(h->queues);
	if (h->has_timeline)
		report_html_timeline_fini(&h->timeline);
	base_arena_free(h->arena);
	base_free(h);
	return NULL;
}

const json_t *report_html_json(const struct report_html *h)
{
	return h->document;
}
