/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif.c - what scenarios would do to the path's length.
 *
 * A first pass finds what the patterns mean; a second one carries every scenario as a lane. A
 * pattern that names a function (known from samples) scales each state by the function's share of
 * it: the share is an estimate, so that scenario gets two more lanes for the ends of its interval.
 */
#include "report/private.h"

#include <string.h>

enum { LANES_A_PASS = GRAPH_LANES_MAX - 1, ENDS = 3 /* estimate, low, high share */ };

struct resolver {
	struct model *m;
	struct base_arena *arena;
	const struct report_scenarios *scenarios;
	uint32_t nr_states, nr_queues;
	double *path_ns; /* lane 0, by state */
	double elapsed_ns;
	double *factor[ENDS]; /* by state, of the scenario at hand */
	struct graph_scenario *lane;
	size_t nr_lanes;
};

/* ---- patterns -> states
 * ----------------------------------------------------------------------------- */

/* How much of a state an edit is about. */
struct part {
	double share[ENDS];
	bool estimated;
};

static struct part whole(void)
{
	return (struct part){.share = {1, 1, 1}};
}

/* By function: only states that were sampled; their own name is not looked at when it is just one
 * of those functions. */
static bool match_functions(
	const struct resolver *w, uint32_t state, const char *pattern, struct part *ret)
{
	size_t nr;
	const struct model_function_share *f = model_functions(w->m, state, &nr);
	struct part p = {.estimated = true};
	bool found = false;
	for (size_t i = 0; i < nr; i++) {
		if (!*f[i].function || !report_pattern_matches(pattern, f[i].function))
			continue;
		found = true;
		p.share[0] += f[i].share;
		p.share[1] += f[i].share_low;
		p.share[2] += f[i].share_high;
	}
	for (unsigned k = 0; k < ENDS; k++)
		p.share[k] = p.share[k] > 1 ? 1 : p.share[k];
	*ret = p;
	return found;
}

static bool match_state(const struct resolver *w, uint32_t state, const char *pattern,
	bool by_place, struct part *ret)
{
	const struct model_state *st = model_state(w->m, state);
	if (by_place) {
		*ret = whole();
		return report_pattern_matches(pattern, st->where);
	}
	if (!strcmp(pattern, st->name)) {
		*ret = whole();
		return true;
	}
	if (match_functions(w, state, pattern, ret))
		return true;
	*ret = whole();
	return report_pattern_matches(pattern, st->name);
}

/* Names and functions first; the places where states began only when these have nothing of the
 * kind. */
static enum base_status apply_to_states(struct resolver *w, const struct report_edit *e,
	struct report_match *match, struct base_err *err)
{
	double most_ns = -1;
	for (int by_place = 0; by_place < 2 && !match->nr_states; by_place++) {
		for (uint32_t s = 0; s < w->nr_states; s++) {
			struct part p;
			if (!match_state(w, s, e->pattern, by_place, &p))
				continue;
			match->nr_states++;
			match->estimated |= p.estimated;
			match->path_share += w->path_ns[s] * p.share[0] / w->elapsed_ns;
			for (unsigned k = 0; k < ENDS; k++)
				w->factor[k][s] *= 1 - (1 - e->factor) * p.share[k];
			if (w->path_ns[s] > most_ns) {
				most_ns = w->path_ns[s];
				match->example = model_state(w->m, s)->name;
			}
		}
	}
	if (match->nr_states) {
		match->example = report_clean(w->arena, match->example);
		return match->example ? BASE_OK : report_no_memory(err);
	}
	struct base_str near = {0};
	struct graph_lane_result lane;
	enum base_status s = graph_lane(model_graph(w->m), 0, &lane, err);
	for (size_t i = 0, nr = 0; s == BASE_OK && i < lane.nr_states && nr < 3; i++, nr++)
		base_str_addf(&near, "%s'%s'", nr ? ", " : "",
			model_state(w->m, lane.state[i].state)->name);
	if (s == BASE_OK)
		s = base_fail(err, BASE_ERR_NOTFOUND,
			"%s: no state, place or sampled function matches; the path's longest "
			"states are %s",
			e->text, base_str_text(&near));
	base_str_fini(&near);
	return s;
}

static enum base_status apply_to_queues(struct resolver *w, const struct report_edit *e,
	struct report_match *match, struct graph_edit *edit, size_t *nr_edits, struct base_err *err)
{
	for (uint32_t q = 0; q < w->nr_queues; q++) {
		const char *name = model_queue(w->m, q)->name;
		if (!report_pattern_matches(e->pattern, name))
			continue;
		if (!match->nr_queues++)
			match->example = report_clean(w->arena, name);
		edit[(*nr_edits)++] = (struct graph_edit){
			.kind = e->verb == REPORT_EDIT_ignore_queue ? GRAPH_EDIT_IGNORE_QUEUE
								    : GRAPH_EDIT_UNBOUND_QUEUE,
			.id = q,
			.factor = 1,
		};
	}
	if (!match->nr_queues)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"%s: no queue of this trace matches; 'longpole queues' lists them",
			e->text);
	return match->example ? BASE_OK : report_no_memory(err);
}

/* ---- scenarios -> lanes
 * ------------------------------------------------------------------------------ */

static enum base_status add_lane(struct resolver *w, unsigned end,
	const struct graph_edit *queue_edit, size_t nr_queue_edits, struct base_err *err)
{
	size_t nr = nr_queue_edits;
	for (uint32_t s = 0; s < w->nr_states; s++)
		nr += w->factor[end][s] != 1;
	struct graph_edit *edit = report_array(w->arena, nr, sizeof *edit);
	if (!edit)
		return report_no_memory(err);
	size_t at = 0;
	for (uint32_t s = 0; s < w->nr_states; s++)
		if (w->factor[end][s] != 1)
			edit[at++] = (struct graph_edit){.kind = GRAPH_EDIT_SCALE_STATE,
				.id = s,
				.factor = w->factor[end][s]};
	if (nr_queue_edits)
		memcpy(edit + at, queue_edit, nr_queue_edits * sizeof *edit);
	w->lane[w->nr_lanes++] = (struct graph_scenario){.edit = edit, .nr_edits = nr};
	return BASE_OK;
}

static enum base_status resolve(struct resolver *w, const struct report_scenario *sc,
	struct report_prediction *p, struct base_err *err)
{
	struct graph_edit *queue_edit =
		report_array(w->arena, (size_t)w->nr_queues * sc->nr_edits, sizeof *queue_edit);
	p->match = report_array(w->arena, sc->nr_edits, sizeof *p->match);
	if (!queue_edit || !p->match)
		return report_no_memory(err);
	for (unsigned k = 0; k < ENDS; k++)
		for (uint32_t s = 0; s < w->nr_states; s++)
			w->factor[k][s] = 1;
	size_t nr_queue_edits = 0;
	for (size_t i = 0; i < sc->nr_edits; i++) {
		const struct report_edit *e = &sc->edit[i];
		struct report_match *match = &p->match[p->nr_matches++];
		match->edit = report_clean(w->arena, e->text);
		if (!match->edit)
			return report_no_memory(err);
		enum base_status s =
			e->verb == REPORT_EDIT_scale
				? apply_to_states(w, e, match, err)
				: apply_to_queues(w, e, match, queue_edit, &nr_queue_edits, err);
		if (s != BASE_OK)
			return s;
		p->estimated |= match->estimated;
	}
	enum base_status s = BASE_OK;
	for (unsigned k = 0; s == BASE_OK && k < (p->estimated ? ENDS : 1); k++)
		s = add_lane(w, k, queue_edit, nr_queue_edits, err);
	return s;
}

/* ---- lanes -> predictions
 * ----------------------------------------------------------------------------- */

struct lane_answer {
	double length_ns, largest_ns;
	uint32_t largest;
};

static enum base_status ask(const struct report_run *run, const struct resolver *w,
	const struct report_index *ix, struct lane_answer *answer, struct base_err *err)
{
	double *topic_ns = report_array(w->arena, ix->nr_topics, sizeof *topic_ns);
	enum base_status s = topic_ns ? BASE_OK : report_no_memory(err);
	for (size_t at = 0; s == BASE_OK && at < w->nr_lanes; at += LANES_A_PASS) {
		size_t nr = w->nr_lanes - at < LANES_A_PASS ? w->nr_lanes - at : LANES_A_PASS;
		struct report_pass_options opts = {
			.scenario = w->lane + at, .nr_scenarios = (unsigned)nr};
		struct model *m = NULL;
		s = report_pass(run, "predicting the scenarios", &opts, &m, err);
		for (size_t i = 0; s == BASE_OK && i < nr; i++) {
			struct lane_answer *a = &answer[at + i];
			s = report_lane_topics(
				m, ix, (unsigned)i + 1, topic_ns, NULL, &a->length_ns, err);
			a->largest = report_largest_topic(topic_ns, ix, REPORT_NONE);
			a->largest_ns = a->largest == REPORT_NONE ? 0 : topic_ns[a->largest];
		}
		model_free(m);
	}
	return s;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 1;
}

static enum base_status predict(struct report_prediction *p, const struct lane_answer *a,
	double elapsed_ns, struct model *m, const struct report_index *ix, struct base_arena *arena,
	struct base_err *err)
{
	p->length_ns = p->low_ns = p->high_ns = a[0].length_ns;
	for (unsigned k = 1; p->estimated && k < ENDS; k++) {
		p->low_ns = a[k].length_ns < p->low_ns ? a[k].length_ns : p->low_ns;
		p->high_ns = a[k].length_ns > p->high_ns ? a[k].length_ns : p->high_ns;
	}
	p->speedup = ratio(elapsed_ns, p->length_ns);
	p->speedup_low = ratio(elapsed_ns, p->high_ns);
	p->speedup_high = ratio(elapsed_ns, p->low_ns);
	p->next =
		a[0].largest == REPORT_NONE
			? ""
			: report_clean(arena, model_state(m, ix->first_state[a[0].largest])->name);
	p->next_share = p->length_ns > 0 ? a[0].largest_ns / p->length_ns : 0;
	return p->next ? BASE_OK : report_no_memory(err);
}

static enum base_status init_resolver(struct resolver *w, struct base_err *err)
{
	struct graph *g = model_graph(w->m);
	struct graph_lane_result lane;
	enum base_status s = graph_lane(g, 0, &lane, err);
	if (s != BASE_OK)
		return s;
	if (!lane.found || lane.length_ns <= 0)
		return report_no_path(err);
	w->elapsed_ns = lane.length_ns;
	w->nr_states = graph_nr_states(g);
	w->nr_queues = graph_nr_queues(g);
	w->path_ns = report_array(w->arena, w->nr_states, sizeof *w->path_ns);
	w->lane = report_array(w->arena, w->scenarios->nr * ENDS, sizeof *w->lane);
	for (unsigned k = 0; k < ENDS; k++)
		w->factor[k] = report_array(w->arena, w->nr_states, sizeof *w->factor[k]);
	if (!w->path_ns || !w->lane || !w->factor[0] || !w->factor[1] || !w->factor[2])
		return report_no_memory(err);
	for (size_t i = 0; i < lane.nr_states; i++)
		if (lane.state[i].state < w->nr_states)
			w->path_ns[lane.state[i].state] += lane.state[i].path_ns;
	return BASE_OK;
}

static enum base_status fill(struct report_whatif *out, const struct report_run *run,
	struct resolver *w, const struct report_index *ix, struct base_err *err)
{
	enum base_status s = BASE_OK;
	size_t nr = w->scenarios->nr;
	out->prediction = report_array(out->arena, nr, sizeof *out->prediction);
	if (!out->prediction)
		return report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		s = resolve(w, &w->scenarios->scenario[i], &out->prediction[i], err);
	if (s != BASE_OK)
		return s;
	struct lane_answer *answer = report_array(w->arena, w->nr_lanes, sizeof *answer);
	if (!answer)
		return report_no_memory(err);
	s = ask(run, w, ix, answer, err);
	for (size_t i = 0, lane = 0; s == BASE_OK && i < nr; i++) {
		struct report_prediction *p = &out->prediction[i];
		s = predict(p, answer + lane, w->elapsed_ns, w->m, ix, out->arena, err);
		lane += p->estimated ? ENDS : 1;
	}
	out->nr_predictions = nr;
	return s;
}

enum base_status report_whatif_build(const struct report_run *run, const struct report_scenarios *s,
	struct report_whatif **ret, struct base_err *err)
{
	struct report_pass_options plain = {0};
	struct report_index ix = {0};
	struct resolver w = {.scenarios = s};
	struct report_whatif *out = base_alloc(sizeof *out);
	enum base_status st = BASE_OK;
	if (!out)
		return report_no_memory(err);
	out->arena = base_arena_new(0);
	if (!out->arena)
		st = report_no_memory(err);
	if (st == BASE_OK)
		st = report_pass(run, "finding the critical path", &plain, &w.m, err);
	if (st == BASE_OK) {
		w.arena = out->arena;
		st = init_resolver(&w, err);
	}
	if (st == BASE_OK)
		st = report_index_init(&ix, w.m, err);
	if (st == BASE_OK)
		st = report_fill_trace(&out->trace, out->arena, run, w.m, err);
	if (st == BASE_OK)
		st = fill(out, run, &w, &ix, err);
	if (st == BASE_OK)
		out->elapsed_ns = w.elapsed_ns;
	report_index_fini(&ix);
	model_free(w.m);
	if (st != BASE_OK)
		report_whatif_free(out);
	else
		*ret = out;
	return st;
}

struct report_whatif *report_whatif_free(struct report_whatif *w)
{
	if (w)
		base_arena_free(w->arena);
	base_free(w);
	return NULL;
}

/* ---- rendering
 * ------------------------------------------------------------------------------------------ */

static void match_line(struct base_str *out, const struct report_match *m)
{
	base_str_add(out, "    matches ");
	if (m->nr_queues)
		base_str_addf(out, "%llu queue%s", (unsigned long long)m->nr_queues,
			m->nr_queues == 1 ? "" : "s");
	else {
		base_str_addf(out, "%llu state%s, ", (unsigned long long)m->nr_states,
			m->nr_states == 1 ? "" : "s");
		report_percent(out, m->path_share);
		base_str_add(out, " of the path");
	}
	base_str_addf(out, ": %s%s\n", m->example, m->nr_states + m->nr_queues > 1 ? ", ..." : "");
}

static void prediction_lines(struct base_str *out, const struct report_style *st, size_t number,
	const struct report_prediction *p)
{
	base_str_addf(out, "%zu. ", number);
	for (size_t i = 0; i < p->nr_matches; i++)
		base_str_addf(out, "%s%s", i ? ", " : "", p->match[i].edit);
	base_str_add(out, "\n    ");
	report_color_begin(out, st, REPORT_BOLD);
	report_ns(out, p->length_ns);
	base_str_addf(out, ", %.2f%s", p->speedup, report_times(st));
	report_color_end(out, st);
	if (p->estimated) {
		base_str_addf(out, " (estimated from samples: %.2f to %.2f%s)", p->speedup_low,
			p->speedup_high, report_times(st));
	}
	if (*p->next) {
		base_str_addf(out, "; then the longest is %s, ", p->next);
		report_percent(out, p->next_share);
	}
	base_str_add(out, "\n");
	for (size_t i = 0; i < p->nr_matches; i++)
		match_line(out, &p->match[i]);
}

void report_whatif_text(
	struct base_str *out, const struct report_whatif *w, const struct report_style *style)
{
	base_str_add(out, "The critical path is ");
	report_ns(out, w->elapsed_ns);
	base_str_addf(out, " long. Predicted for %zu scenario%s (method: path):\n",
		w->nr_predictions, w->nr_predictions == 1 ? "" : "s");
	for (size_t i = 0; i < w->nr_predictions; i++)
		prediction_lines(out, style, i + 1, &w->prediction[i]);
	report_trace_text_caveats(out, &w->trace, style);
}

json_t *report_whatif_json(const struct report_whatif *w)
{
	json_t *list = json_array();
	for (size_t i = 0; i < w->nr_predictions; i++) {
		const struct report_prediction *p = &w->prediction[i];
		json_t *edits = json_array();
		for (size_t k = 0; k < p->nr_matches; k++) {
			const struct report_match *m = &p->match[k];
			json_array_append_new(
				edits, json_pack("{s:s, s:o, s:o, s:o, s:s, s:b}", "edit", m->edit,
					       "states", report_json_u64(m->nr_states), "queues",
					       report_json_u64(m->nr_queues), "path_share",
					       report_json_share(m->path_share), "example",
					       m->example, "estimated", m->estimated));
		}
		json_array_append_new(
			list, json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:s, s:o}",
				      "edits", edits, "method", "path", "predicted_ns",
				      report_json_ns(p->length_ns), "predicted_low_ns",
				      report_json_ns(p->low_ns), "predicted_high_ns",
				      report_json_ns(p->high_ns), "predicted_speedup",
				      report_json_share(p->speedup), "predicted_speedup_low",
				      report_json_share(p->speedup_low), "predicted_speedup_high",
				      report_json_share(p->speedup_high), "estimated", p->estimated,
				      "next_bottleneck", p->next, "next_bottleneck_share",
				      report_json_share(p->next_share)));
	}
	json_t *result = json_pack(
		"{s:o, s:o}", "elapsed_ns", report_json_ns(w->elapsed_ns), "scenarios", list);
	return report_envelope("longpole/whatif/1", &w->trace, result);
}
