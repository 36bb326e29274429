/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html_curves.c - what the page's sliders show, computed beforehand: for each of the path's longest
 * topics the curve of the run's length against less time in it (graph/whatif.h), by path; a second
 * opinion at some points, and more processors, by replay.
 */
#include "graph/whatif.h"
#include "report/html_private.h"

#include <stdlib.h>

enum { TOPICS_MAX = 10, A_ROUND = 3, ROUNDS = 4, LANES = GRAPH_LANES_MAX - 1, REPLAYED_MAX = 5 };
#define SHARE_MIN 0.005
static const unsigned replayed_percent[] = {25, 50, 75, 100};
static const unsigned more_processors[] = {1, 2, 4};

struct topic {
	uint32_t topic;
	double path_ns;
	struct graph_edit *edit;
	size_t nr_edits;
	struct graph_curve curve;
	struct report_replay_prediction replay[BASE_COUNT(replayed_percent)];
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
	struct report_replay_run base;
	struct report_replay_prediction processors[BASE_COUNT(more_processors)];
	bool replayed;
};
struct question {
	struct topic *topic;
	double reduction;
};

/* ---- by path ----------------------------------------------------------------------------------
 */

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

static enum base_status choose(struct curves *c, struct base_err *err)
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

static struct graph_scenario scenario_of(
	const struct topic *t, double reduction, struct graph_edit *edit)
{
	for (size_t i = 0; i < t->nr_edits; i++) {
		edit[i] = t->edit[i];
		edit[i].factor = 1 - reduction;
	}
	return (struct graph_scenario){.edit = edit, .nr_edits = t->nr_edits};
}

static enum base_status ask(
	struct curves *c, const struct question *q, size_t nr, struct base_err *err)
{
	struct graph_scenario lane[LANES];
	struct report_pass_options opts = {.scenario = lane, .nr_scenarios = (unsigned)nr};
	struct model *m = NULL;
	for (size_t i = 0; i < nr; i++) {
		struct graph_edit *edit =
			report_array(c->arena, q[i].topic->nr_edits, sizeof *edit);
		if (!edit)
			return report_no_memory(err);
		lane[i] = scenario_of(q[i].topic, q[i].reduction, edit);
	}
	enum base_status s = report_pass(c->run, "computing curves", &opts, &m, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		struct graph_curve_point p = {.reduction = q[i].reduction};
		s = report_lane_topics(model_graph(m), &c->ix, (unsigned)i + 1, c->topic_ns,
			c->observed_ns, &p.length_ns, err);
		p.state_ns = c->observed_ns[q[i].topic->topic];
		if (s == BASE_OK)
			s = graph_curve_add(&q[i].topic->curve, &p, err);
	}
	model_free(m);
	return s;
}

static enum base_status by_path(struct curves *c, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (unsigned round = 0; s == BASE_OK && round < ROUNDS; round++) {
		struct question q[LANES];
		size_t nr = 0;
		for (size_t i = 0; i < c->nr; i++) {
			double at[A_ROUND];
			unsigned n = graph_curve_next(&c->topic[i].curve, at, A_ROUND);
			for (unsigned k = 0; k < n && nr < LANES; k++)
				q[nr++] = (struct question){&c->topic[i], at[k]};
		}
		if (!nr)
			break;
		s = ask(c, q, nr, err);
	}
	return s;
}

/* ---- by replay --------------------------------------------------------------------------------
 */

static enum base_status replay_topics(
	struct curves *c, const struct graph_replay *log, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < c->nr && i < REPLAYED_MAX; i++) {
		struct topic *t = &c->topic[i];
		struct graph_edit *edit = report_array(c->arena, t->nr_edits, sizeof *edit);
		if (!edit)
			return report_no_memory(err);
		for (unsigned k = 0; s == BASE_OK && k < BASE_COUNT(replayed_percent); k++) {
			struct graph_scenario lane =
				scenario_of(t, replayed_percent[k] / 100.0, edit);
			s = report_replay_predict(
				&t->replay[k], &c->base, log, &lane, 1, NULL, err);
		}
	}
	return s;
}

static enum base_status replay_processors(
	struct curves *c, const struct graph_replay *log, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (unsigned k = 0; s == BASE_OK && k < BASE_COUNT(more_processors); k++) {
		struct graph_edit edit = {
			.kind = GRAPH_EDIT_PROCESSORS, .units = more_processors[k]};
		struct graph_scenario lane = {.edit = &edit, .nr_edits = 1};
		s = report_replay_predict(&c->processors[k], &c->base, log, &lane, 1, NULL, err);
	}
	return s;
}

static enum base_status by_replay(struct curves *c, struct base_err *err)
{
	struct graph_replay *log = NULL;
	struct model *m = NULL;
	if (!report_replay_fits(c->run))
		return BASE_OK;
	enum base_status s = report_replay_new(c->run, &log, err);
	if (s != BASE_OK)
		return s;
	struct report_pass_options opts = {.sink = graph_replay_sink(log)};
	s = report_pass(c->run, "recording for replay", &opts, &m, err);
	if (s == BASE_OK) {
		graph_replay_set_end(log, model_end_actor(m));
		s = report_replay_base(&c->base, c->run, log,
			c->nr * BASE_COUNT(replayed_percent) + BASE_COUNT(more_processors), err);
	}
	if (s == BASE_OK)
		s = replay_topics(c, log, err);
	if (s == BASE_OK)
		s = replay_processors(c, log, err);
	c->replayed = s == BASE_OK;
	model_free(m);
	graph_replay_free(log);
	/* A log that does not fit after all costs the page its second opinion, not the page. */
	return s == BASE_ERR_LIMIT ? BASE_OK : s;
}

/* ---- the document ------------------------------------------------------------------------------
 */

static json_t *replay_json(const struct report_replay_prediction *p, const char *key, unsigned n)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", key, (int)n, "speedup",
		report_json_share(p->speedup), "speedup_low", report_json_share(p->low),
		"speedup_high", report_json_share(p->high), "length_ns",
		report_json_ns(p->length_ns), "stuck", report_json_u64(p->nr_stuck));
}

static json_t *topic_json(const struct curves *c, const struct topic *t)
{
	struct graph_curve_piece piece[GRAPH_CURVE_POINTS_MAX];
	unsigned nr = graph_curve_pieces(&t->curve, piece);
	const struct model_state *st = model_state(c->m, c->ix.first_state[t->topic]);
	json_t *pieces = json_array(), *replays = json_array();
	for (unsigned i = 0; i < nr; i++)
		json_array_append_new(pieces,
			json_pack("{s:o, s:o, s:o, s:o, s:b}", "from",
				report_json_share(piece[i].begin), "to",
				report_json_share(piece[i].end), "from_ns",
				report_json_ns(piece[i].begin_ns), "to_ns",
				report_json_ns(piece[i].end_ns), "exact", (int)piece[i].exact));
	for (unsigned i = 0; i < BASE_COUNT(replayed_percent); i++)
		if (t->replay[i].made)
			json_array_append_new(
				replays, replay_json(&t->replay[i], "reduction_percent",
						 replayed_percent[i]));
	struct base_str name = {0};
	report_clean_add(&name, st->name);
	json_t *o = json_pack("{s:s, s:s, s:o, s:o, s:o}", "state", base_str_text(&name), "kind",
		model_state_kind_name(st->kind), "path_ns", report_json_ns(t->path_ns), "pieces",
		pieces, "replay", replays);
	base_str_fini(&name);
	return o;
}

static json_t *curves_json(const struct curves *c)
{
	json_t *topics = json_array(), *processors = json_array();
	for (size_t i = 0; i < c->nr; i++)
		json_array_append_new(topics, topic_json(c, &c->topic[i]));
	for (unsigned i = 0; c->replayed && i < BASE_COUNT(more_processors); i++)
		json_array_append_new(processors,
			replay_json(&c->processors[i], "more_processors", more_processors[i]));
	return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o}", "length_ns",
		report_json_ns(c->length_ns), "states", topics, "processors", processors,
		"replayed", (int)c->replayed, "replay_error", report_json_share(c->base.own_error),
		"nr_processors", report_json_u64(c->base.nr_processors));
}

enum base_status report_html_curves_json(
	const struct report_run *run, json_t **ret, struct base_err *err)
{
	struct curves *c = base_alloc(sizeof *c);
	struct report_pass_options plain = {0};
	if (!c)
		return report_no_memory(err);
	c->run = run;
	c->arena = base_arena_new(0);
	enum base_status s =
		c->arena ? report_pass(run, "finding what to change", &plain, &c->m, err)
			 : report_no_memory(err);
	if (s == BASE_OK)
		s = report_index_init(&c->ix, c->m, err);
	if (s == BASE_OK) {
		c->topic_ns = report_array(c->arena, c->ix.nr_topics, sizeof *c->topic_ns);
		c->observed_ns = report_array(c->arena, c->ix.nr_topics, sizeof *c->observed_ns);
		s = c->topic_ns && c->observed_ns ? choose(c, err) : report_no_memory(err);
	}
	if (s == BASE_OK)
		s = by_path(c, err);
	if (s == BASE_OK)
		s = by_replay(c, err);
	if (s == BASE_OK) {
		*ret = curves_json(c);
		s = *ret ? s : report_no_memory(err);
	}
	model_free(c->m);
	report_index_fini(&c->ix);
	base_arena_free(c->arena);
	base_free(c);
	return s;
}
