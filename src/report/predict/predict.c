/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - one answer to "how long with these edits", whichever command asks: the longest path
 * with its weights edited, no shorter than what pools of tokens allow, and the run simulated again,
 * each as far as it is believed (whatif_best.c).
 */
#include "report/predict/predictor.h"

#include "graph/tokens.h"

#include <math.h>

/* Simulated for all answers of a command that is not asked for predictions alone; a longer trace's
 * are the path's. */
#define VERBS_MAX ((uint64_t)100000000)
enum { SIMULATIONS_AN_ANSWER = 2, CROWD = 16 };

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

static enum base_status predictor_begin(
	struct report_predictor *p, const struct report_run *run, struct base_err *err)
{
	struct report_learned *l = p->learned = run->learned ? run->learned : &p->own;
	p->run = run;
	if (l->recorded || run->start || run->end || run->connection || !report_replay_fits(run))
		return BASE_OK;
	enum base_status s = report_replay_new(run, &l->log, err);
	return s == BASE_OK ? graph_tokens_new(graph_replay_sink(l->log), &l->tokens, err) : s;
}

/* How long the run is, and in which states its path. */
static enum base_status predictor_learn_path(
	struct report_learned *p, struct model *m, struct base_err *err)
{
	struct graph *g = model_graph(m);
	struct graph_lane_result lane;
	enum base_status s = p->read_path ? BASE_OK : graph_lane(g, 0, &lane, err);
	if (s != BASE_OK || p->read_path)
		return s;
	p->nr_states = graph_nr_states(g);
	p->path_ns = base_alloc(((size_t)p->nr_states + 1) * sizeof *p->path_ns);
	if (!p->path_ns)
		return report_no_memory(err);
	for (size_t i = 0; i < lane.nr_states; i++)
		if (lane.state[i].state < p->nr_states)
			p->path_ns[lane.state[i].state] += lane.state[i].path_ns;
	p->elapsed_ns = lane.length_ns;
	report_find_box(&p->box, m, &lane);
	p->nr_queues = graph_nr_queues(g);
	p->is_sized = base_alloc(((size_t)p->nr_queues + 1) * sizeof *p->is_sized);
	if (!p->is_sized)
		return report_no_memory(err);
	for (uint32_t i = 0; i < p->nr_queues; i++)
		p->is_sized[i] = report_path_can(
			m, &(struct graph_edit){.kind = GRAPH_EDIT_RESIZE_QUEUE, .id = i});
	p->read_path = true;
	return BASE_OK;
}

/* Without a log: by the path alone. */
static void learned_drop_log(struct report_learned *l)
{
	l->tokens = graph_tokens_free(l->tokens);
	l->log = graph_replay_free(l->log);
}

/* The run simulated as it was, and so often otherwise as each of the answers may be. */
static enum base_status predictor_learn_base(
	struct report_predictor *p, struct model *m, size_t nr_answers, struct base_err *err)
{
	struct report_learned *l = p->learned;
	enum base_status s = BASE_OK;
	if (!l->has_base) {
		graph_replay_set_end(l->log, model_end_actor(m));
		s = report_replay_base(&l->base, p->run, l->log, err);
		if (s == BASE_OK)
			s = report_replay_spins(&l->base, m, err);
		l->has_base = s == BASE_OK;
	}
	if (s == BASE_OK)
		s = report_replay_vary(&l->base, l->log, nr_answers, err);
	p->log = l->log;
	p->base = l->base;
	p->base.nr_variants = report_replay_nr_variants(l->log, nr_answers);
	return s;
}

enum base_status report_predictor_ready(
	struct report_predictor *p, struct model *m, size_t nr_answers, struct base_err *err)
{
	if (!p->learned)
		p->learned = &p->own;
	struct report_learned *l = p->learned;
	enum base_status s = predictor_learn_path(l, m, err);
	p->log = NULL;
	p->base = (struct report_replay_run){0};
	/* giving a lock up looks at all that wait */
	uint64_t crowd = 1 + graph_nr_actors(model_graph(m)) / CROWD;
	if (s != BASE_OK || !l->log ||
		graph_replay_nr_verbs(l->log) >
			VERBS_MAX / crowd / SIMULATIONS_AN_ANSWER / (nr_answers ? nr_answers : 1))
		return s;
	s = predictor_learn_base(p, m, nr_answers, err);
	if (s != BASE_ERR_LIMIT)
		return s;
	learned_drop_log(l); /* it does not fit after all */
	p->log = NULL;
	return BASE_OK;
}

enum base_status report_predictor_pass(struct report_predictor *p, const struct report_run *run,
	const char *what, struct report_pass_options *opts, struct model **ret,
	struct base_err *err)
{
	enum base_status s = predictor_begin(p, run, err);
	struct report_learned *l = p->learned;
	bool records = l->tokens && !l->recorded;
	opts->sink = records ? graph_tokens_sink(l->tokens) : NULL;
	if (s == BASE_OK)
		s = report_pass(run, what, opts, ret, err);
	l->recorded |= s == BASE_OK;
	if (s != BASE_OK && !l->recorded)
		learned_drop_log(l);
	if (s != BASE_ERR_LIMIT || l->recorded)
		return s;
	l->recorded = true;
	opts->sink = NULL;
	return report_pass(run, what, opts, ret, err);
}

bool report_is_less_work(const struct graph_scenario *lane)
{
	for (size_t i = 0; i < lane->nr_edits; i++)
		if (lane->edit[i].kind != GRAPH_EDIT_SCALE_STATE || lane->edit[i].factor > 1)
			return false;
	return true;
}

double report_most_factor(const struct graph_scenario *lane)
{
	double most = 1;
	for (size_t i = 0; i < lane->nr_edits; i++)
		if (lane->edit[i].kind == GRAPH_EDIT_SCALE_STATE)
			most = fmax(most, lane->edit[i].factor);
	return most;
}

/* (Where waits are given what they need, the interval says whether the answer is believed.) */
void report_predictor_leave_intervals(struct report_predictor *p)
{
	if (!p->base.nr_given)
		p->base.nr_variants = 0;
}

static bool predictor_path_can(const struct report_learned *p, const struct graph_scenario *lane)
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
	const struct report_learned *p, const struct graph_scenario *lane, double path_ns)
{
	double floor_ns = report_path_floor(p->path_ns, p->nr_states, p->elapsed_ns, lane);
	double bound_ns = report_token_bound(p->tokens, lane, p->elapsed_ns);
	return fmax(path_ns, fmax(floor_ns, bound_ns));
}

enum base_status report_predictor_ask(struct report_predictor *p, const struct graph_scenario *lane,
	double path_ns, struct report_answer *ret, struct base_err *err)
{
	struct report_learned *l = p->learned;
	double length_ns = predictor_path_length(l, lane, path_ns);
	double speedup = l->elapsed_ns / fmax(length_ns, 1); /* all of it may go */
	struct report_whatif w = {.base = p->base, .elapsed_ns = l->elapsed_ns, .box = l->box};
	struct report_prediction x = {.by_path = predictor_path_can(l, lane),
		.less_work = report_is_less_work(lane),
		.most_factor = report_most_factor(lane),
		.speedup = speedup,
		.speedup_low = speedup,
		.speedup_high = speedup,
		.length_ns = length_ns};
	enum base_status s = BASE_OK;
	if (p->log && !(x.by_path && report_replays_more(&w))) /* else it is not believed */
		s = report_replay_predict(&x.replay, &p->base, p->log, lane, 1, &l->ray, NULL, err);
	if (s == BASE_OK)
		*ret = (struct report_answer){.best = report_best_of(&w, &x),
			.path_speedup = speedup,
			.replayed = x.replay.made && !x.replay.nr_stuck,
			.replay_speedup = x.replay.speedup,
			.nr_stuck = x.replay.nr_stuck};
	return s;
}

void report_learned_fini(struct report_learned *l)
{
	learned_drop_log(l);
	report_ray_fini(&l->ray);
	base_free(l->path_ns);
	base_free(l->is_sized);
	*l = (struct report_learned){0};
}

void report_predictor_fini(struct report_predictor *p)
{
	report_learned_fini(&p->own);
}

#include "report/predict/predict.def"
