/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html_curves.c - what the page's sliders show, computed beforehand: for each of the path's longest
 * topics the curve of the run's length against less time in it (graph/whatif.h), by path; at some
 * points, and for more processors, what is predicted (predict.c).
 */
#include "graph/whatif.h"
#include "report/page/html_private.h"

#include <math.h>

enum { TOPICS_MAX = 10, A_ROUND = 3, ROUNDS = 4, QUESTIONS_MAX = 4 * TOPICS_MAX };
#define SHARE_MIN 0.005
static const unsigned predicted_percent[] = {25, 50, 75, 100};
_Static_assert(TOPICS_MAX *BASE_COUNT(predicted_percent) <= QUESTIONS_MAX, "asked at once");
_Static_assert(TOPICS_MAX *A_ROUND <= QUESTIONS_MAX, "asked at once");
static const unsigned more_processors[] = {1, 2, 4};

struct topic {
	uint32_t topic;
	double path_ns;
	struct graph_edit *edit;
	size_t nr_edits;
	struct graph_curve curve;
	struct report_answer answer[BASE_COUNT(predicted_percent)];
};
struct curves {
	const struct report_run *run;
	struct base_arena *arena;
	struct report_index ix;
	struct model *m;
	struct topic topic[TOPICS_MAX];
	size_t nr;
	double *topic_ns, *observed_ns;
	double length_ns;
	struct report_predictor predictor;
	struct report_answer processors[BASE_COUNT(more_processors)];
};
struct question {
	struct topic *topic;
	double reduction;
};

/* ---- by path --------------------------------------------------------------------------------- */

static enum base_status set_edits(struct curves *c, struct topic *t, struct base_err *err)
{
	for (uint32_t i = 0; i < c->ix.nr_states; i++)
		t->nr_edits += c->ix.topic_of[i] == t->topic;
	t->edit = report_array(c->arena, t->nr_edits, sizeof *t->edit);
	if (!t->edit)
		return report_no_memory(err);
	size_t at = 0;
	for (uint32_t i = 0; i < c->ix.nr_states; i++)
		if (c->ix.topic_of[i] == t->topic)
			t->edit[at++] =
				(struct graph_edit){.kind = GRAPH_EDIT_SCALE_STATE, .id = i};
	return BASE_OK;
}

static enum base_status html_curves_choose(struct curves *c, struct base_err *err)
{
	enum base_status s = report_lane_topics(
		model_graph(c->m), &c->ix, 0, c->topic_ns, c->observed_ns, &c->length_ns, err);
	while (s == BASE_OK && c->nr < TOPICS_MAX) {
		uint32_t best = report_largest_topic(c->topic_ns, &c->ix, REPORT_NONE);
		if (best == REPORT_NONE || c->topic_ns[best] < SHARE_MIN * c->length_ns)
			break;
		struct topic *t = &c->topic[c->nr++];
		*t = (struct topic){.topic = best, .path_ns = c->topic_ns[best]};
		c->topic_ns[best] = 0;
		s = set_edits(c, t, err);
	}
	return s;
}

static struct graph_scenario html_curves_scenario_of(
	const struct topic *t, double reduction, struct graph_edit *edit)
{
	for (size_t i = 0; i < t->nr_edits; i++) {
		edit[i] = t->edit[i];
		edit[i].factor = 1 - reduction;
	}
	return (struct graph_scenario){.edit = edit, .nr_edits = t->nr_edits};
}

static enum base_status html_curves_ask(
	struct curves *c, const struct question *q, size_t nr, struct base_err *err)
{
	struct graph_scenario *lane = report_array(c->arena, nr, sizeof *lane);
	struct report_lane *answer = report_array(c->arena, nr, sizeof *answer);
	if (!lane || !answer)
		return report_no_memory(err);
	for (size_t i = 0; i < nr; i++) {
		struct graph_edit *edit =
			report_array(c->arena, q[i].topic->nr_edits, sizeof *edit);
		if (!edit)
			return report_no_memory(err);
		lane[i] = html_curves_scenario_of(q[i].topic, q[i].reduction, edit);
	}
	enum base_status s =
		report_lanes(c->run, "computing curves", lane, nr, answer, c->arena, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		struct graph_curve_point p = {
			.reduction = q[i].reduction, .length_ns = answer[i].length_ns};
		report_lane_sums(&answer[i], &c->ix, c->topic_ns, c->observed_ns);
		p.state_ns = c->observed_ns[q[i].topic->topic];
		s = graph_curve_add(&q[i].topic->curve, &p, err);
	}
	return s;
}

static enum base_status html_curves_by_path(struct curves *c, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (unsigned round = 0; s == BASE_OK && round < ROUNDS; round++) {
		struct question q[QUESTIONS_MAX];
		size_t nr = 0;
		for (size_t i = 0; i < c->nr; i++) {
			double at[A_ROUND];
			unsigned n = graph_curve_next(&c->topic[i].curve, at, A_ROUND);
			for (unsigned k = 0; k < n; k++)
				q[nr++] = (struct question){&c->topic[i], at[k]};
		}
		if (!nr)
			break;
		s = html_curves_ask(c, q, nr, err);
	}
	return s;
}

/* ---- what is predicted ----------------------------------------------------------------------- */

/* The points of the curve that predictions are made at: a topic's are together. */
static enum base_status ask_at_predicted(struct curves *c, struct base_err *err)
{
	struct question q[QUESTIONS_MAX];
	size_t nr = c->nr * BASE_COUNT(predicted_percent);
	for (size_t i = 0; i < nr; i++)
		q[i] = (struct question){&c->topic[i / BASE_COUNT(predicted_percent)],
			predicted_percent[i % BASE_COUNT(predicted_percent)] / 100.0};
	return html_curves_ask(c, q, nr, err);
}

static double length_at(const struct graph_curve *curve, double reduction)
{
	double length_ns = 0;
	for (unsigned i = 0; i < curve->nr_points; i++)
		if (curve->point[i].reduction <= reduction)
			length_ns = curve->point[i].length_ns;
	return length_ns;
}

static enum base_status predict_topic(struct curves *c, struct topic *t, struct base_err *err)
{
	struct graph_edit *edit = report_array(c->arena, t->nr_edits, sizeof *edit);
	enum base_status s = edit ? BASE_OK : report_no_memory(err);
	for (unsigned k = 0; s == BASE_OK && k < BASE_COUNT(predicted_percent); k++) {
		double reduction = predicted_percent[k] / 100.0;
		struct graph_scenario lane = html_curves_scenario_of(t, reduction, edit);
		s = report_predictor_ask(
			&c->predictor, &lane, length_at(&t->curve, reduction), &t->answer[k], err);
	}
	return s;
}

static enum base_status predict_processors(struct curves *c, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (unsigned k = 0; s == BASE_OK && k < BASE_COUNT(more_processors); k++) {
		struct graph_edit edit = {
			.kind = GRAPH_EDIT_PROCESSORS, .units = more_processors[k]};
		struct graph_scenario lane = {.edit = &edit, .nr_edits = 1};
		s = report_predictor_ask(
			&c->predictor, &lane, c->length_ns, &c->processors[k], err);
	}
	return s;
}

static enum base_status html_curves_predict(struct curves *c, struct base_err *err)
{
	enum base_status s = report_predictor_ready(&c->predictor, c->m,
		c->nr * BASE_COUNT(predicted_percent) + BASE_COUNT(more_processors), err);
	if (s == BASE_OK)
		s = ask_at_predicted(c, err);
	for (size_t i = 0; s == BASE_OK && i < c->nr; i++)
		s = predict_topic(c, &c->topic[i], err);
	return s == BASE_OK && c->predictor.log ? predict_processors(c, err) : s;
}

/* ---- the document ---------------------------------------------------------------------------- */

static json_t *html_curves_answer_json(
	const struct curves *c, const struct report_answer *a, const char *key, unsigned n)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:s, s:o}", key, (int)n, "speedup",
		report_json_share(a->best.speedup), "speedup_low", report_json_share(a->best.low),
		"speedup_high", report_json_share(a->best.high), "length_ns",
		report_json_ns(c->length_ns / fmax(a->best.speedup, 1e-9)), "method",
		report_method_of(a->best.replay_share), "stuck", base_json_u64(a->nr_stuck));
}

static json_t *topic_json(const struct curves *c, const struct topic *t)
{
	struct graph_curve_piece piece[GRAPH_CURVE_POINTS_MAX];
	unsigned nr = graph_curve_pieces(&t->curve, piece);
	const struct model_state *st = model_state(c->m, c->ix.first_state[t->topic]);
	json_t *pieces = json_array(), *predicted = json_array();
	for (unsigned i = 0; i < nr; i++)
		json_array_append_new(pieces,
			json_pack("{s:o, s:o, s:o, s:o, s:b}", "from",
				report_json_share(piece[i].begin), "to",
				report_json_share(piece[i].end), "from_ns",
				report_json_ns(piece[i].begin_ns), "to_ns",
				report_json_ns(piece[i].end_ns), "exact", (int)piece[i].exact));
	for (unsigned i = 0; i < BASE_COUNT(predicted_percent); i++)
		json_array_append_new(
			predicted, html_curves_answer_json(c, &t->answer[i], "reduction_percent",
					   predicted_percent[i]));
	struct base_str name = {0};
	report_clean_add(&name, st->name);
	json_t *o = json_pack("{s:s, s:s, s:o, s:o, s:o}", "state", base_str_text(&name), "kind",
		model_state_kind_name(st->kind), "path_ns", report_json_ns(t->path_ns), "pieces",
		pieces, "predicted", predicted);
	base_str_fini(&name);
	return o;
}

static json_t *curves_json(const struct curves *c)
{
	json_t *topics = json_array(), *processors = json_array();
	for (size_t i = 0; i < c->nr; i++)
		json_array_append_new(topics, topic_json(c, &c->topic[i]));
	bool replayed = c->predictor.log;
	for (unsigned i = 0; replayed && i < BASE_COUNT(more_processors); i++)
		json_array_append_new(processors, html_curves_answer_json(c, &c->processors[i],
							  "more_processors", more_processors[i]));
	return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o}", "length_ns",
		report_json_ns(c->length_ns), "states", topics, "processors", processors,
		"replayed", (int)replayed, "replay_error",
		report_json_share(c->predictor.base.own_error), "nr_processors",
		base_json_u64(c->predictor.base.nr_processors));
}

enum base_status report_html_curves_json(
	const struct report_run *run, json_t **ret, struct base_err *err)
{
	struct curves *c = base_alloc(sizeof *c);
	if (!c)
		return report_no_memory(err);
	c->run = run;
	c->arena = base_arena_new(0);
	struct report_pass_options plain = {0};
	enum base_status s = c->arena ? report_predictor_pass(&c->predictor, run,
						"finding what to change", &plain, &c->m, err)
				      : report_no_memory(err);
	if (s == BASE_OK)
		s = report_index_init(&c->ix, c->m, err);
	if (s == BASE_OK) {
		c->topic_ns = report_array(c->arena, c->ix.nr_topics, sizeof *c->topic_ns);
		c->observed_ns = report_array(c->arena, c->ix.nr_topics, sizeof *c->observed_ns);
		s = c->topic_ns && c->observed_ns ? html_curves_choose(c, err)
						  : report_no_memory(err);
	}
	if (s == BASE_OK)
		s = html_curves_by_path(c, err);
	if (s == BASE_OK)
		s = html_curves_predict(c, err);
	if (s == BASE_OK) {
		*ret = curves_json(c);
		s = *ret ? s : report_no_memory(err);
	}
	report_predictor_fini(&c->predictor);
	model_free(c->m);
	report_index_fini(&c->ix);
	base_arena_free(c->arena);
	base_free(c);
	return s;
}
