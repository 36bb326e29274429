/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opportunities.c - what would a fix of each state buy, and until when.
 *
 * The path's length L(f), with a topic's weights multiplied by f, is the maximum over all paths of
 * (fixed part + f x scaled part): convex, piecewise linear, not decreasing. A lane at f gives L(f)
 * and, as the scaled states' time on its path before the edit, a slope of L there: a supporting
 * line. Each percent of reduction buys the slope; it falls at each kink. The
 * first one means little: real programs have many tiny ones before anything changes that matters.
 * We look for the kink at which the slope falls below half of what the first percent bought: from
 * there on something else is what the program waits for.
 *
 * The kink is bracketed between a line that is steep enough and one that is not. Where the two
 * lines meet is the next point to look at: when L lies on the lines there, it is the kink itself,
 * exactly; else it replaces one of the two. Every topic needs one lane a round, so all of them
 * share a few passes.
 */
#include "report/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 4 };
#define TOPIC_SHARE_MIN 0.01

struct line { /* L near f: value + slope (x - f) */
	double f, value, slope;
};
struct candidate {
	uint32_t topic;
	uint32_t *state; /* all of the topic */
	size_t nr_states;
	double path_ns;
	struct line steep, flat; /* steep.f > flat.f */
	bool done, exact;
	struct report_best best[REPORT_LEVELS];
	uint32_t then[REPORT_LEVELS], next;
};
struct question { /* one lane */
	struct candidate *c;
	double factor;
	struct line answer;
	uint32_t largest, next;
};
struct search {
	const struct report_run *run;
	const struct report_index *ix;
	struct report_predictor *predictor;
	struct base_arena *arena;
	struct candidate *candidate;
	size_t nr;
	struct question *question;
	size_t nr_questions;
	double elapsed_ns;
	double *topic_ns, *observed_ns;
};

static void opportunities_read_answer(
	struct search *w, const struct report_lane *lane, struct question *q)
{
	uint32_t topic = q->c->topic;
	report_lane_sums(lane, w->ix, w->topic_ns, w->observed_ns);
	q->answer = (struct line){
		.f = q->factor,
		.value = lane->length_ns,
		.slope = w->observed_ns[topic],
	};
	q->largest = report_largest_topic(w->topic_ns, w->ix, REPORT_NONE);
	q->next = report_largest_topic(w->topic_ns, w->ix, topic);
}

static enum base_status opportunities_scenario_of(const struct search *w, const struct question *q,
	struct graph_scenario *ret, struct base_err *err)
{
	const struct candidate *c = q->c;
	struct graph_edit *edit = report_array(w->arena, c->nr_states, sizeof *edit);
	if (!edit)
		return report_no_memory(err);
	for (size_t k = 0; k < c->nr_states; k++)
		edit[k] = (struct graph_edit){
			.kind = GRAPH_EDIT_SCALE_STATE, .id = c->state[k], .factor = q->factor};
	*ret = (struct graph_scenario){.edit = edit, .nr_edits = c->nr_states};
	return BASE_OK;
}

static enum base_status ask_all(struct search *w, struct base_err *err)
{
	size_t nr = w->nr_questions;
	struct graph_scenario *scenario = report_array(w->arena, nr, sizeof *scenario);
	struct report_lane *lane = report_array(w->arena, nr, sizeof *lane);
	enum base_status s = scenario && lane ? BASE_OK : report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		s = opportunities_scenario_of(w, &w->question[i], &scenario[i], err);
	if (s == BASE_OK)
		s = report_lanes(w->run, "predicting what a fix would buy", scenario, nr, lane,
			w->arena, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		opportunities_read_answer(w, &lane[i], &w->question[i]);
	return s;
}

/* ---- the kink -------------------------------------------------------------------------------- */

static bool is_steep(const struct candidate *c, const struct line *l)
{
	return l->slope > c->path_ns / 2;
}

static void narrow(struct candidate *c, const struct line *l)
{
	if (is_steep(c, l)) {
		if (l->f < c->steep.f)
			c->steep = *l;
	} else if (l->f > c->flat.f) {
		c->flat = *l;
	}
}

static double meeting_point(const struct candidate *c)
{
	const struct line *a = &c->steep, *b = &c->flat;
	double at_zero_a = a->value - a->slope * a->f, at_zero_b = b->value - b->slope * b->f;
	double f =
		(at_zero_b - at_zero_a) / (a->slope - b->slope); /* slopes differ: see is_steep() */
	return f < b->f ? b->f : f > a->f ? a->f : f;
}

static bool lies_on(const struct line *l, const struct line *point)
{
	double expected = l->value + l->slope * (point->f - l->f);
	return fabs(point->value - expected) <= 1 + 1e-9 * point->value;
}

static void opportunities_settle(struct candidate *c, const struct line *answer)
{
	if (lies_on(&c->steep, answer)) {
		c->done = c->exact = true;
		c->steep.f = answer->f;
		return;
	}
	narrow(c, answer);
}

static enum base_status find_kinks(struct search *w, struct base_err *err)
{
	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		w->nr_questions = 0;
		for (size_t i = 0; i < w->nr; i++) {
			struct candidate *c = &w->candidate[i];
			if (c->done)
				continue;
			double f = meeting_point(c);
			if (f >= c->steep.f || f <= c->flat.f) { /* known already */
				c->done = c->exact = true;
				c->steep.f = f;
				continue;
			}
			w->question[w->nr_questions++] = (struct question){.c = c, .factor = f};
		}
		if (!w->nr_questions)
			return BASE_OK;
		enum base_status s = ask_all(w, err);
		if (s != BASE_OK)
			return s;
		for (size_t i = 0; i < w->nr_questions; i++)
			opportunities_settle(w->question[i].c, &w->question[i].answer);
	}
	return BASE_OK;
}

/* What `whatif` says to the same edit. */
static enum base_status opportunities_predict(
	struct search *w, const struct question *q, struct report_best *ret, struct base_err *err)
{
	struct graph_scenario lane;
	struct report_answer answer;
	enum base_status s = opportunities_scenario_of(w, q, &lane, err);
	if (s == BASE_OK)
		s = report_predictor_ask(w->predictor, &lane, q->answer.value, &answer, err);
	if (s == BASE_OK)
		*ret = answer.best;
	return s;
}

static enum base_status look_at_levels(struct search *w, struct model *m, struct base_err *err)
{
	w->nr_questions = 0;
	for (size_t i = 0; i < w->nr; i++)
		for (unsigned k = 0; k < REPORT_LEVELS; k++) {
			unsigned percent = report_level_percent[k];
			w->question[w->nr_questions++] = (struct question){
				.c = &w->candidate[i],
				.factor = (100 - percent) / 100.0,
			};
		}
	enum base_status s = ask_all(w, err);
	if (s == BASE_OK)
		s = report_predictor_ready(w->predictor, m, w->nr_questions, err);
	report_predictor_leave_intervals(w->predictor); /* the table has none */
	for (size_t i = 0; s == BASE_OK && i < w->nr_questions; i++) {
		const struct question *q = &w->question[i];
		struct candidate *c = q->c;
		unsigned level = (unsigned)(i % REPORT_LEVELS);
		s = opportunities_predict(w, q, &c->best[level], err);
		c->then[level] = q->largest;
		c->next = q->next; /* the last level stays: all gone */
		narrow(c, &q->answer);
		if (level == REPORT_LEVELS - 1 && c->flat.f < 0) { /* steep to the end */
			c->done = c->exact = true;
			c->steep.f = 0;
		}
	}
	return s;
}

/* ---- candidates ------------------------------------------------------------------------------ */

struct size_of_topic {
	double path_ns;
	uint32_t topic;
};

static int by_size(const void *a, const void *b)
{
	const struct size_of_topic *x = a, *y = b;
	if (x->path_ns != y->path_ns)
		return x->path_ns < y->path_ns ? 1 : -1;
	return x->topic < y->topic ? -1 : x->topic > y->topic;
}

static enum base_status collect_states(struct search *w, struct candidate *c, struct base_err *err)
{
	for (uint32_t i = 0; i < w->ix->nr_states; i++)
		c->nr_states += w->ix->topic_of[i] == c->topic;
	c->state = report_array(w->arena, c->nr_states, sizeof *c->state);
	if (!c->state)
		return report_no_memory(err);
	size_t at = 0;
	for (uint32_t i = 0; i < w->ix->nr_states; i++)
		if (w->ix->topic_of[i] == c->topic)
			c->state[at++] = i;
	return BASE_OK;
}

static enum base_status opportunities_choose(
	struct search *w, struct report *r, struct model *m, unsigned max, struct base_err *err)
{
	size_t nr = w->ix->nr_topics;
	struct size_of_topic *size = report_array(w->arena, nr, sizeof *size);
	if (!size)
		return report_no_memory(err);
	for (uint32_t t = 0; t < nr; t++)
		size[t] = (struct size_of_topic){.topic = t, .path_ns = w->topic_ns[t]};
	if (nr)
		qsort(size, nr, sizeof *size, by_size);
	w->candidate = report_array(w->arena, max, sizeof *w->candidate);
	if (!w->candidate)
		return report_no_memory(err);
	for (size_t i = 0; i < nr && size[i].path_ns >= TOPIC_SHARE_MIN * w->elapsed_ns; i++) {
		if (size[i].path_ns <= 0 || w->ix->is_recorders[size[i].topic] ||
			model_state(m, w->ix->first_state[size[i].topic])->kind == MODEL_STATE_idle)
			continue; /* nobody can shorten what is not there */
		if (w->nr == max) {
			r->opportunities_cut = true;
			break;
		}
		struct candidate *c = &w->candidate[w->nr++];
		*c = (struct candidate){
			.topic = size[i].topic,
			.path_ns = size[i].path_ns,
			.steep = {.f = 1, .value = w->elapsed_ns, .slope = size[i].path_ns},
			.flat = {.f = -1},
		};
		enum base_status s = collect_states(w, c, err);
		if (s != BASE_OK)
			return s;
	}
	return BASE_OK;
}

static int by_gain(const void *a, const void *b)
{
	const struct report_opportunity *x = a, *y = b;
	if (x->speedup[2] != y->speedup[2]) /* at 50 %: what people manage */
		return x->speedup[2] < y->speedup[2] ? 1 : -1;
	if (x->path_ns != y->path_ns)
		return x->path_ns < y->path_ns ? 1 : -1;
	return strcmp(x->state, y->state);
}

/* (To make waits for a processor shorter is to make all of them shorter, those for threads of the
 * program itself, too: on the path itself only the others have this state.) */
static const char *topic_name(
	struct base_arena *a, const struct search *w, struct model *m, uint32_t topic)
{
	if (topic == REPORT_NONE)
		return "";
	const struct model_state *st = model_state(m, w->ix->first_state[topic]);
	return st->kind == MODEL_STATE_runnable && !model_is_system(m) ? "waiting for a processor"
								       : report_clean(a, st->name);
}

static enum base_status opportunities_fill(
	struct report *r, const struct search *w, struct model *m, struct base_err *err)
{
	r->opportunity = report_array(r->arena, w->nr, sizeof *r->opportunity);
	if (!r->opportunity)
		return report_no_memory(err);
	for (size_t i = 0; i < w->nr; i++) {
		const struct candidate *c = &w->candidate[i];
		struct report_opportunity *o = &r->opportunity[i];
		*o = (struct report_opportunity){
			.kind = model_state(m, w->ix->first_state[c->topic])->kind,
			.state = topic_name(r->arena, w, m, c->topic),
			.topic = c->topic,
			.path_ns = c->path_ns,
			.share = c->path_ns / w->elapsed_ns,
			.useful_reduction = 1 - c->steep.f,
			.useful_exact = c->exact,
			.next = topic_name(r->arena, w, m, c->next),
		};
		bool failed = !o->state || !o->next;
		for (unsigned k = 0; k < REPORT_LEVELS; k++) {
			o->speedup[k] = c->best[k].speedup;
			o->predicted_ns[k] = w->elapsed_ns / o->speedup[k];
			o->method[k] = report_method_of(c->best[k].replay_share);
			o->then[k] = topic_name(r->arena, w, m, c->then[k]);
			failed |= !o->then[k];
		}
		if (failed)
			return report_no_memory(err);
	}
	r->nr_opportunities = w->nr;
	if (w->nr)
		qsort(r->opportunity, w->nr, sizeof *r->opportunity, by_gain);
	return BASE_OK;
}

enum base_status report_fill_opportunities(struct report *r, struct report_predictor *predictor,
	struct model *m, const struct report_index *ix, unsigned max, struct base_err *err)
{
	if (!max || r->elapsed_ns <= 0)
		return BASE_OK;
	struct search w = {.run = predictor->run,
		.predictor = predictor,
		.ix = ix,
		.arena = base_arena_new(0),
		.elapsed_ns = r->elapsed_ns};
	enum base_status s = BASE_OK;
	double unused;
	if (w.arena) {
		w.topic_ns = report_array(w.arena, ix->nr_topics, sizeof *w.topic_ns);
		w.observed_ns = report_array(w.arena, ix->nr_topics, sizeof *w.observed_ns);
		w.question = report_array(w.arena, (size_t)max * REPORT_LEVELS, sizeof *w.question);
	}
	if (!w.topic_ns || !w.observed_ns || !w.question)
		s = report_no_memory(err);
	if (s == BASE_OK)
		s = report_lane_topics(model_graph(m), ix, 0, w.topic_ns, NULL, &unused, err);
	if (s == BASE_OK)
		s = opportunities_choose(&w, r, m, max, err);
	if (s == BASE_OK && w.nr)
		s = look_at_levels(&w, m, err);
	if (s == BASE_OK && w.nr)
		s = find_kinks(&w, err);
	if (s == BASE_OK)
		s = opportunities_fill(r, &w, m, err);
	base_arena_free(w.arena);
	return s;
}
