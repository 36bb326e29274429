/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poles.c - which poles hold the tent up one after another, and how much room the others have.
 *
 * The poles: the state that the critical path is in for longest; then, with that at no cost, the
 * longest of the path that is left; and so on. These are the best paths of which none has the
 * longest state of one before it.
 *
 * How fast the run is without them is the answer of predict.c, as for `whatif`; which pole is the
 * next, the longest path says.
 *
 * Drag of a state: how much shorter the run is when it takes no time (Devaux 1999), by predict.c
 * where it is on the path. Slack: the
 * factor by which each of its visits may take longer until the run is longer by the tolerance. The
 * path's length L(f), all visits scaled by f, is convex and piecewise linear: a lane at f gives its
 * value there and a line that L lies above. Where that line meets the length that is allowed is an
 * upper bound of the slack, and the next f to ask for; when L is no longer than that there, it is
 * the slack, exactly.
 */
#include "report/private.h"

#include <stdlib.h>
#include <string.h>

enum { LANES_A_PASS = GRAPH_LANES_MAX - 1, ROUNDS_MAX = 8 };
#define FACTOR_MAX 16.0

struct subject { /* a topic that is asked about */
	struct report_slack row;
	uint32_t topic;
	double factor; /* to ask for */
	bool done;
};
struct poles {
	struct report_poles *out;
	const struct report_run *run;
	struct model *m;
	struct report_index ix;
	struct report_predictor predictor;
	double *topic_ns, *observed_ns;
	double allowed_ns; /* how long the run may get */
	struct subject *subject;
	size_t nr_subjects;
};

/* ---- scenarios ------------------------------------------------------------------------------- */

/* All states of those topics, scaled. */
static enum base_status scale_topics(struct poles *p, const uint32_t *topic, size_t nr,
	double factor, struct graph_scenario *ret, struct base_err *err)
{
	struct graph_edit *edit = report_array(p->out->arena, p->ix.nr_states, sizeof *edit);
	size_t nr_edits = 0;
	if (!edit)
		return report_no_memory(err);
	for (uint32_t s = 0; s < p->ix.nr_states; s++)
		for (size_t i = 0; i < nr; i++)
			if (p->ix.topic_of[s] == topic[i])
				edit[nr_edits++] = (struct graph_edit){
					.kind = GRAPH_EDIT_SCALE_STATE, .id = s, .factor = factor};
	*ret = (struct graph_scenario){.edit = edit, .nr_edits = nr_edits};
	return BASE_OK;
}

static enum base_status poles_text_of(struct poles *p, uint32_t topic, const char **ret_name,
	const char **ret_where, struct base_err *err)
{
	const struct model_state *s = model_state(p->m, p->ix.first_state[topic]);
	*ret_name = report_clean(p->out->arena, s->name);
	*ret_where = report_clean(p->out->arena, s->where);
	return *ret_name && *ret_where ? BASE_OK : report_no_memory(err);
}

/* ---- one pole after another ------------------------------------------------------------------ */

/* gone: the edits of that lane. */
static enum base_status next_pole(struct poles *p, const struct report_lane *lane,
	const struct graph_scenario *gone, uint32_t *ret_topic, struct base_err *err)
{
	struct report_pole *pole = &p->out->pole[p->out->nr_poles];
	enum base_status s = BASE_OK;
	report_lane_sums(lane, &p->ix, p->topic_ns, p->observed_ns);
	pole->length_ns = lane->length_ns;
	*ret_topic = REPORT_NONE;
	if (pole->length_ns <= 0)
		return s;
	struct report_own own;
	report_own_begin(&own, lane->length_ns);
	for (size_t i = 0; i < lane->nr_states; i++)
		(void)report_own_add(&own, p->m, lane->state[i].state, lane->state[i].path_ns);
	for (uint32_t t = 0; t < p->ix.nr_topics; t++) /* no pole of the program's */
		if (report_why_apart(p->m, p->ix.first_state[t]) != REPORT_APART_NR)
			p->topic_ns[t] = 0;
	*ret_topic = report_largest_topic(p->topic_ns, &p->ix, REPORT_NONE);
	if (*ret_topic == REPORT_NONE)
		return BASE_OK;
	if (!p->out->nr_poles)
		p->out->own = own;
	pole->share = report_own_share(&own, p->topic_ns[*ret_topic]);
	pole->then.best.speedup = 1;
	p->out->nr_poles++;
	if (gone->nr_edits)
		s = report_predictor_ask(&p->predictor, gone, pole->length_ns, &pole->then, err);
	return s != BASE_OK ? s : poles_text_of(p, *ret_topic, &pole->state, &pole->where, err);
}

static enum base_status find_poles(struct poles *p, size_t nr_max, struct base_err *err)
{
	uint32_t *topic = report_array(p->out->arena, nr_max, sizeof *topic);
	p->out->pole = report_array(p->out->arena, nr_max, sizeof *p->out->pole);
	if (!topic || !p->out->pole)
		return report_no_memory(err);
	static const struct graph_scenario nothing = {0};
	struct graph_scenario gone = nothing;
	enum base_status s = BASE_OK;
	for (size_t i = 0; s == BASE_OK && i < nr_max && (!i || topic[i - 1] != REPORT_NONE); i++) {
		struct report_lane lane;
		if (i)
			s = scale_topics(p, topic, i, 0, &gone, err);
		if (s == BASE_OK)
			s = report_lanes(p->run, "looking for the next pole", &gone, 1, &lane,
				p->out->arena, err);
		if (s == BASE_OK)
			s = next_pole(p, &lane, &gone, &topic[i], err);
	}
	return s;
}

/* ---- drag and slack -------------------------------------------------------------------------- */

/* Work, not waiting: what somebody could make longer or shorter. */
static bool can_be_scaled(enum model_state_kind k)
{
	return !model_state_kind_waits(k) || k == MODEL_STATE_sleep || k == MODEL_STATE_external;
}

static int poles_by_time(const void *pa, const void *pb)
{
	const struct subject *a = pa, *b = pb;
	if (a->row.total_ns != b->row.total_ns)
		return a->row.total_ns > b->row.total_ns ? -1 : 1;
	return a->topic < b->topic ? -1 : a->topic > b->topic;
}

static enum base_status choose_subjects(struct poles *p, size_t nr_max, struct base_err *err)
{
	struct graph *g = model_graph(p->m);
	const struct graph_state_totals *totals;
	size_t nr_totals;
	double length_ns;
	enum base_status s = graph_totals(g, &totals, &nr_totals, err);
	if (s == BASE_OK)
		s = report_lane_topics(g, &p->ix, 0, p->topic_ns, NULL, &length_ns, err);
	if (s != BASE_OK)
		return s;
	p->subject = report_array(p->out->arena, p->ix.nr_topics, sizeof *p->subject);
	if (!p->subject)
		return report_no_memory(err);
	for (uint32_t t = 0; t < p->ix.nr_topics; t++)
		p->subject[t] = (struct subject){.topic = t, .row.path_ns = p->topic_ns[t]};
	for (size_t i = 0; i < nr_totals; i++) {
		struct report_slack *row = &p->subject[p->ix.topic_of[totals[i].state]].row;
		if (can_be_scaled(model_state(p->m, totals[i].state)->kind)) {
			row->total_ns += (double)(totals[i].total_ns - totals[i].waiting_ns);
			row->visits += totals[i].visits;
		}
	}
	qsort(p->subject, p->ix.nr_topics, sizeof *p->subject, poles_by_time);
	while (p->nr_subjects < p->ix.nr_topics && p->nr_subjects < nr_max &&
		p->subject[p->nr_subjects].row.total_ns > 0)
		p->nr_subjects++;
	return BASE_OK;
}

static void take_length(
	const struct poles *p, struct subject *q, double length_ns, double on_path_ns)
{
	double longer_ns = length_ns - p->allowed_ns;
	if (longer_ns <= 1e-9 * p->allowed_ns + 1) {
		q->row.slack_factor = q->factor;
		q->row.slack_is_exact = q->factor < FACTOR_MAX;
		q->row.slack_is_beyond = q->factor >= FACTOR_MAX;
		q->done = true;
	} else {
		double f = on_path_ns > 0 ? q->factor - longer_ns / on_path_ns : 1;
		q->factor = f > 1 ? f : 1;
		q->row.slack_factor = q->factor;
		q->done = f <= 1;
	}
}

/* Without the state: the drag. */
static enum base_status take_drag(struct poles *p, struct subject *q,
	const struct graph_scenario *gone, double length_ns, struct base_err *err)
{
	struct report_answer a;
	enum base_status s = report_predictor_ask(&p->predictor, gone, length_ns, &a, err);
	if (s != BASE_OK)
		return s;
	q->row.drag_ns = p->out->elapsed_ns - p->out->elapsed_ns / a.best.speedup;
	q->row.drag_method = report_method_of(a.best.replay_share);
	q->factor = FACTOR_MAX;
	return BASE_OK;
}

static enum base_status poles_ask(
	struct poles *p, struct subject **question, size_t nr, struct base_err *err)
{
	struct graph_scenario lane[LANES_A_PASS];
	struct report_lane answer[LANES_A_PASS];
	enum base_status s = BASE_OK;
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		s = scale_topics(p, &question[i]->topic, 1, question[i]->factor, &lane[i], err);
	if (s == BASE_OK)
		s = report_lanes(
			p->run, "looking for drag and slack", lane, nr, answer, p->out->arena, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		double length_ns = answer[i].length_ns;
		report_lane_sums(&answer[i], &p->ix, p->topic_ns, p->observed_ns);
		if (question[i]->factor < 1) /* it is on the path */
			s = take_drag(p, question[i], &lane[i], length_ns, err);
		else
			take_length(p, question[i], length_ns, p->observed_ns[question[i]->topic]);
	}
	return s;
}

static enum base_status find_slacks(struct poles *p, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < p->nr_subjects; i++)
		p->subject[i].factor = p->subject[i].row.path_ns > 0 ? 0 : FACTOR_MAX;
	for (unsigned round = 0; s == BASE_OK && round < ROUNDS_MAX; round++) {
		for (size_t i = 0; s == BASE_OK && i < p->nr_subjects;) {
			struct subject *question[LANES_A_PASS];
			size_t nr = 0;
			for (; i < p->nr_subjects && nr < LANES_A_PASS; i++)
				if (!p->subject[i].done)
					question[nr++] = &p->subject[i];
			if (nr)
				s = poles_ask(p, question, nr, err);
		}
	}
	p->out->slack = report_array(p->out->arena, p->nr_subjects, sizeof *p->out->slack);
	if (s == BASE_OK && !p->out->slack)
		s = report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < p->nr_subjects; i++) {
		p->out->slack[i] = p->subject[i].row;
		s = poles_text_of(p, p->subject[i].topic, &p->out->slack[i].state,
			&p->out->slack[i].where, err);
	}
	p->out->nr_slacks = p->nr_subjects;
	return s;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum base_status poles_fill(
	struct poles *p, const struct report_poles_options *opts, struct base_err *err)
{
	struct graph_lane_result lane = {0};
	struct report_pass_options plain = {0};
	enum base_status s = report_predictor_pass(
		&p->predictor, p->run, "looking for the poles", &plain, &p->m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&p->out->trace, p->out->arena, p->run, p->m, err);
	if (s == BASE_OK)
		s = graph_lane(model_graph(p->m), 0, &lane, err);
	if (s == BASE_OK && !lane.found)
		s = report_no_path(err);
	if (s == BASE_OK)
		s = report_index_init(&p->ix, p->m, err);
	if (s != BASE_OK)
		return s;
	p->out->elapsed_ns = lane.length_ns;
	p->out->tolerance = opts->tolerance;
	p->allowed_ns = lane.length_ns * (1 + opts->tolerance);
	p->topic_ns = report_array(p->out->arena, p->ix.nr_topics, sizeof *p->topic_ns);
	p->observed_ns = report_array(p->out->arena, p->ix.nr_topics, sizeof *p->observed_ns);
	if (!p->topic_ns || !p->observed_ns)
		return report_no_memory(err);
	s = report_predictor_ready(&p->predictor, p->m, opts->nr_poles + opts->nr_states, err);
	report_predictor_leave_intervals(&p->predictor);
	if (s == BASE_OK)
		s = find_poles(p, opts->nr_poles ? opts->nr_poles : 1, err);
	if (s == BASE_OK)
		s = choose_subjects(p, opts->nr_states, err);
	return s == BASE_OK ? find_slacks(p, err) : s;
}

enum base_status report_poles_build(const struct report_run *run,
	const struct report_poles_options *opts, struct report_poles **ret, struct base_err *err)
{
	struct report_shared_pass shared = {0};
	struct report_run with = report_sharing(run, &shared);
	struct poles p = {.run = &with, .out = report_answer_new(sizeof *p.out)};
	if (!p.out)
		return report_no_memory(err);
	enum base_status s = poles_fill(&p, opts, err);
	report_predictor_fini(&p.predictor);
	report_index_fini(&p.ix);
	model_free(p.m);
	report_shared_pass_fini(&shared);
	if (s != BASE_OK)
		report_poles_free(p.out);
	else
		*ret = p.out;
	return s;
}

struct report_poles *report_poles_free(struct report_poles *p)
{
	return report_answer_free(p);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void poles_finding(
	struct base_str *out, const struct report_poles *p, const struct report_style *st)
{
	const struct report_pole *first = &p->pole[0], *last = &p->pole[p->nr_poles - 1];
	base_str_addf(out, "The long pole is %s, ", first->state);
	report_percent(out, first->share);
	base_str_add(out, " of the critical path (observed)");
	if (p->nr_poles > 1)
		base_str_addf(out,
			"; without it the next is %s, and without the first %zu a run would be "
			"%.2f%s as fast (predicted, method: %s)",
			p->pole[1].state, p->nr_poles - 1, last->then.best.speedup,
			report_times(st), report_method_of(last->then.best.replay_share));
	base_str_add(out, ".");
	if (report_own_tells(&p->own)) {
		base_str_add(out, " The ");
		report_own_words(out, &p->own);
		base_str_add(out, ".");
	}
	base_str_add(out, "\n\n");
}

static void poles_pole_state(struct base_str *out, const void *row, const struct base_layout *l)
{
	const struct report_pole *p = row;
	(void)l;
	base_str_addf(out, "%s%s%s", p->state, *p->where ? "  " : "", p->where);
}

static void poles_slack_state(struct base_str *out, const void *row, const struct base_layout *l)
{
	const struct report_slack *p = row;
	(void)l;
	base_str_addf(out, "%s%s%s", p->state, *p->where ? "  " : "", p->where);
}

static void slack_cell(struct base_str *out, const void *row, const struct base_layout *l)
{
	const struct report_slack *p = row;
	const char *times = l->utf8 ? "\xc3\x97" : "x";
	if (p->slack_is_beyond)
		base_str_addf(out, "over %.0f%s", FACTOR_MAX, times);
	else
		base_str_addf(
			out, "%s%.3g%s", p->slack_is_exact ? "" : "under ", p->slack_factor, times);
}

#include "report/poles.def"

static void pole_lines(
	struct base_str *out, const struct report_poles *p, const struct report_style *st)
{
	struct base_layout l = {.table = &poles_pole, .utf8 = st->utf8};
	base_str_add(out, "ONE AFTER ANOTHER, each without those above\n    ");
	base_layout_titles(out, &l);
	for (size_t i = 0; i < p->nr_poles; i++) {
		base_str_addf(out, "\n%2zu. ", i + 1);
		base_layout_cells(out, &l, &p->pole[i]);
	}
	base_str_add(out, "\n");
}

static void slack_lines(
	struct base_str *out, const struct report_poles *p, const struct report_style *st)
{
	struct base_layout l = {.table = &poles_slack, .utf8 = st->utf8};
	base_str_add(out, "\nDRAG AND SLACK of the states with the most time\n");
	base_layout_titles(out, &l);
	base_str_add(out, "\n");
	for (size_t i = 0; i < p->nr_slacks; i++) {
		base_layout_cells(out, &l, &p->slack[i]);
		base_str_add(out, "\n");
	}
	struct base_str note = {0};
	base_str_add(&note, "drag: how much shorter the run is without the state. slack: so many "
			    "times as long may each visit take before the run is ");
	if (p->tolerance > 0)
		report_percent(&note, p->tolerance);
	base_str_add(&note, p->tolerance > 0 ? " longer" : "longer at all");
	base_str_add(&note,
		"; where others want the same locks meanwhile it is an upper bound. Both "
		"predicted, slack by the longest path, speed-up and drag as by whatif");
	base_str_add(&note, ".");
	report_wrap(out, st, "", 0, base_str_text(&note));
	base_str_fini(&note);
}

void report_poles_text(
	struct base_str *out, const struct report_poles *p, const struct report_style *style)
{
	if (!p->nr_poles) {
		base_str_add(out, "The critical path has no state with a length (observed).\n");
	} else {
		poles_finding(out, p, style);
		pole_lines(out, p, style);
		slack_lines(out, p, style);
	}
	report_trace_text_caveats(out, &p->trace, style);
}

json_t *report_poles_json(const struct report_poles *p)
{
	return report_envelope(report_poles_document.name, &p->trace,
		base_table_json(&report_poles_document, p, p, 0));
}
