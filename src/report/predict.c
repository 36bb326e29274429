/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - one answer to "how long with these edits", whichever command asks: the longest path
 * with its weights edited, no shorter than what pools of tokens allow, and the run simulated again,
 * each as far as it is believed (whatif_best.c).
 */
#include "report/private.h"

#include "graph/tokens.h"

#include <math.h>

/* Simulated for all answers of a command that is not asked for predictions alone; a longer trace's
 * are the path's. */
#define VERBS_MAX ((uint64_t)100000000)
enum { SIMULATIONS_AN_ANSWER = 2 };

double report_most_speedup(double elapsed_ns, double held_ns, double reduction)
{
	double saved_ns = held_ns * reduction;
	return saved_ns < elapsed_ns ? elapsed_ns / (elapsed_ns - saved_ns) : INFINITY;
}

enum base_status report_shorter(struct base_arena *a, const struct report_state_share *state,
	size_t nr, double reduction, struct graph_scenario *ret, struct base_err *err)
{
	struct graph_edit *edit = report_array(a, nr, sizeof *edit);
	if (!edit)
		return report_no_memory(err);
	*ret = (struct graph_scenario){.edit = edit};
	for (size_t i = 0; i < nr; i++)
		if ((!state[i].follows || reduction >= 1) && state[i].share > 0)
			edit[ret->nr_edits++] = (struct graph_edit){.kind = GRAPH_EDIT_SCALE_STATE,
				.id = state[i].state,
				.factor = 1 - reduction * state[i].share};
	return BASE_OK;
}

double report_path_floor(const double *path_ns, uint32_t nr_states, double elapsed_ns,
	const struct graph_scenario *lane)
{
	double floor_ns = elapsed_ns;
	for (size_t i = 0; i < lane->nr_edits; i++) {
		const struct graph_edit *e = &lane->edit[i];
		if (e->kind != GRAPH_EDIT_SCALE_STATE)
			return 0;
		if (e->id < nr_states && e->factor < 1)
			floor_ns -= path_ns[e->id] * (1 - e->factor);
	}
	return floor_ns > 0 ? floor_ns : 0;
}

double report_token_bound(
	const struct graph_tokens *tokens, const struct graph_scenario *lane, double elapsed_ns)
{
	if (!tokens || graph_tokens_bound(tokens, NULL).length_ns > elapsed_ns)
		return 0; /* of a part; or the trace is longer than the path */
	return graph_tokens_bound(tokens, lane).length_ns;
}

/* The path has the room of each unit only where the size was known from the start. */
bool report_path_can(const struct model *m, const struct graph_edit *e)
{
	if (e->kind == GRAPH_EDIT_RESIZE_QUEUE)
		return model_queue(m, e->id)->capacity || model_queue(m, e->id)->tokens;
	return e->kind != GRAPH_EDIT_PROCESSORS;
}

enum base_status report_predictor_begin(
	struct report_predictor *p, const struct report_run *run, struct base_err *err)
{
	*p = (struct report_predictor){.run = run};
	if (run->start || run->end || run->connection || !report_replay_fits(run))
		return BASE_OK;
	enum base_status s = report_replay_new(run, &p->log, err);
	return s == BASE_OK ? graph_tokens_new(graph_replay_sink(p->log), &p->tokens, err) : s;
}

const struct graph_sink *report_predictor_sink(const struct report_predictor *p)
{
	return p->tokens ? graph_tokens_sink(p->tokens) : NULL;
}

/* How long the run is, and in which states its path. */
static enum base_status predictor_learn_path(
	struct report_predictor *p, struct model *m, struct base_err *err)
{
	struct graph *g = model_graph(m);
	struct graph_lane_result lane;
	enum base_status s = graph_lane(g, 0, &lane, err);
	if (s != BASE_OK)
		return s;
	p->nr_states = graph_nr_states(g);
	p->path_ns = base_alloc(((size_t)p->nr_states + 1) * sizeof *p->path_ns);
	if (!p->path_ns)
		return report_no_memory(err);
	for (size_t i = 0; i < lane.nr_states; i++)
		if (lane.state[i].state < p->nr_states)
			p->path_ns[lane.state[i].state] += lane.state[i].path_ns;
	p->elapsed_ns = lane.length_ns;
	p->nr_queues = graph_nr_queues(g);
	p->is_sized = base_alloc(((size_t)p->nr_queues + 1) * sizeof *p->is_sized);
	if (!p->is_sized)
		return report_no_memory(err);
	for (uint32_t i = 0; i < p->nr_queues; i++)
		p->is_sized[i] = report_path_can(
			m, &(struct graph_edit){.kind = GRAPH_EDIT_RESIZE_QUEUE, .id = i});
	return BASE_OK;
}

/* Without a log: by the path alone. */
static void predictor_drop_log(struct report_predictor *p)
{
	p->tokens = graph_tokens_free(p->tokens);
	p->log = graph_replay_free(p->log);
}

enum base_status report_predictor_ready(
	struct report_predictor *p, struct model *m, size_t nr_answers, struct base_err *err)
{
	enum base_status s = predictor_learn_path(p, m, err);
	if (s != BASE_OK || !p->log)
		return s;
	if (graph_replay_nr_verbs(p->log) >
		VERBS_MAX / SIMULATIONS_AN_ANSWER / (nr_answers ? nr_answers : 1)) {
		p->log = graph_replay_free(p->log);
		return BASE_OK;
	}
	graph_replay_set_end(p->log, model_end_actor(m));
	s = report_replay_base(&p->base, p->run, p->log, nr_answers, err);
	if (s == BASE_OK)
		s = report_replay_spins(&p->base, m, err);
	if (s != BASE_ERR_LIMIT)
		return s;
	predictor_drop_log(p); /* it does not fit after all */
	return BASE_OK;
}

enum base_status report_predictor_pass(struct report_predictor *p, const struct report_run *run,
	const char *what, struct report_pass_options *opts, struct model **ret,
	struct base_err *err)
{
	enum base_status s = report_predictor_begin(p, run, err);
	opts->sink = report_predictor_sink(p);
	if (s == BASE_OK)
		s = report_pass(run, what, opts, ret, err);
	if (s != BASE_ERR_LIMIT)
		return s;
	report_predictor_fini(p);
	opts->sink = NULL;
	return report_pass(run, what, opts, ret, err);
}

enum base_status report_predictor_init(struct report_predictor *p, const struct report_run *run,
	size_t nr_answers, struct base_err *err)
{
	struct report_pass_options plain = {0};
	struct model *m = NULL;
	enum base_status s = report_predictor_pass(p, run, "recording for replay", &plain, &m, err);
	if (s == BASE_OK)
		s = report_predictor_ready(p, m, nr_answers, err);
	model_free(m);
	return s;
}

bool report_is_less_work(const struct graph_scenario *lane)
{
	for (size_t i = 0; i < lane->nr_edits; i++)
		if (lane->edit[i].kind != GRAPH_EDIT_SCALE_STATE || lane->edit[i].factor > 1)
			return false;
	return true;
}

static bool predictor_path_can(const struct report_predictor *p, const struct graph_scenario *lane)
{
	for (size_t i = 0; i < lane->nr_edits; i++) {
		const struct graph_edit *e = &lane->edit[i];
		if (e->kind == GRAPH_EDIT_PROCESSORS ||
			(e->kind == GRAPH_EDIT_RESIZE_QUEUE &&
				(e->id >= p->nr_queues || !p->is_sized[e->id])))
			return false;
	}
	return true;
}

static double predictor_path_length(
	const struct report_predictor *p, const struct graph_scenario *lane, double path_ns)
{
	double floor_ns = report_path_floor(p->path_ns, p->nr_states, p->elapsed_ns, lane);
	double bound_ns = report_token_bound(p->tokens, lane, p->elapsed_ns);
	return fmax(path_ns, fmax(floor_ns, bound_ns));
}

enum base_status report_predictor_ask(struct report_predictor *p, const struct graph_scenario *lane,
	double path_ns, struct report_answer *ret, struct base_err *err)
{
	double length_ns = predictor_path_length(p, lane, path_ns);
	double speedup = p->elapsed_ns / fmax(length_ns, 1); /* all of it may go */
	struct report_whatif w = {.base = p->base, .elapsed_ns = p->elapsed_ns};
	struct report_prediction x = {.by_path = predictor_path_can(p, lane),
		.less_work = report_is_less_work(lane),
		.speedup = speedup,
		.speedup_low = speedup,
		.speedup_high = speedup,
		.length_ns = length_ns};
	enum base_status s = BASE_OK;
	if (p->log)
		s = report_replay_predict(&x.replay, &p->base, p->log, lane, 1, &p->ray, NULL, err);
	if (s == BASE_OK)
		*ret = (struct report_answer){.best = report_best_of(&w, &x),
			.path_speedup = speedup,
			.replayed = x.replay.made && !x.replay.nr_stuck,
			.replay_speedup = x.replay.speedup,
			.nr_stuck = x.replay.nr_stuck};
	return s;
}

void report_predictor_fini(struct report_predictor *p)
{
	predictor_drop_log(p);
	report_ray_fini(&p->ray);
	base_free(p->path_ns);
	base_free(p->is_sized);
	p->path_ns = NULL;
	p->is_sized = NULL;
}
