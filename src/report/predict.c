/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - one answer to "how long with these edits", whichever command asks: the longest path
 * with its weights edited, no shorter than what pools of tokens allow, and the run simulated again,
 * each as far as it is believed (whatif_best.c).
 */
#include "report/private.h"

#include "graph/tokens.h"

/* Simulated for all answers of a command that is not asked for predictions alone; a longer trace's
 * are the path's. */
#define VERBS_MAX ((uint64_t)100000000)
enum { SIMULATIONS_AN_ANSWER = 2 };

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

static enum base_status read_log(
	struct report_predictor *p, size_t nr_answers, struct base_err *err)
{
	struct model *m = NULL;
	struct report_pass_options opts = {.sink = graph_tokens_sink(p->tokens)};
	enum base_status s = report_pass(p->run, "recording for replay", &opts, &m, err);
	if (s == BASE_OK && p->log &&
		graph_replay_nr_verbs(p->log) > VERBS_MAX / SIMULATIONS_AN_ANSWER / nr_answers)
		p->log = graph_replay_free(p->log);
	if (s == BASE_OK && p->log) {
		graph_replay_set_end(p->log, model_end_actor(m));
		s = report_replay_base(&p->base, p->run, p->log, 0, err);
	}
	if (s == BASE_OK && p->log)
		s = report_replay_spins(&p->base, m, err);
	model_free(m);
	return s;
}

enum base_status report_predictor_init(struct report_predictor *p, const struct report_run *run,
	double elapsed_ns, size_t nr_answers, struct base_err *err)
{
	bool part = run->start || run->end || run->connection;
	*p = (struct report_predictor){.run = run, .elapsed_ns = elapsed_ns};
	if (part || !nr_answers || !report_replay_fits(run))
		return BASE_OK;
	enum base_status s = report_replay_new(run, &p->log, err);
	if (s == BASE_OK)
		s = graph_tokens_new(graph_replay_sink(p->log), &p->tokens, err);
	if (s == BASE_OK)
		s = read_log(p, nr_answers, err);
	if (s == BASE_ERR_LIMIT) { /* a log that does not fit after all */
		report_predictor_fini(p);
		return BASE_OK;
	}
	return s;
}

bool report_is_less_work(const struct graph_scenario *lane)
{
	for (size_t i = 0; i < lane->nr_edits; i++)
		if (lane->edit[i].kind != GRAPH_EDIT_SCALE_STATE || lane->edit[i].factor > 1)
			return false;
	return true;
}

enum base_status report_predictor_ask(const struct report_predictor *p,
	const struct graph_scenario *lane, double path_ns, struct report_best *ret,
	struct base_err *err)
{
	double bound_ns = report_token_bound(p->tokens, lane, p->elapsed_ns);
	double length_ns = path_ns > bound_ns ? path_ns : bound_ns;
	double speedup = p->elapsed_ns / (length_ns > 1 ? length_ns : 1); /* all of it may go */
	struct report_whatif w = {.base = p->base, .elapsed_ns = p->elapsed_ns};
	struct report_prediction x = {.by_path = true,
		.less_work = report_is_less_work(lane),
		.speedup = speedup,
		.speedup_low = speedup,
		.speedup_high = speedup,
		.length_ns = length_ns};
	enum base_status s = BASE_OK;
	if (p->log)
		s = report_replay_predict(&x.replay, &p->base, p->log, lane, 1, NULL, err);
	if (s == BASE_OK)
		*ret = report_best_of(&w, &x);
	return s;
}

void report_predictor_fini(struct report_predictor *p)
{
	p->tokens = graph_tokens_free(p->tokens);
	p->log = graph_replay_free(p->log);
}
