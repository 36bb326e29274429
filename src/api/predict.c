/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - scenarios as text, and what is believed of them. */
#include "api/analysis.h"
#include "api/api.h"

struct longpole_predictions {
	struct report_whatif *whatif;
};

void longpole_predictions_free(struct longpole_predictions *p)
{
	if (p)
		report_whatif_free(p->whatif);
	base_free(p);
}

static enum base_status predict_build(struct longpole_predictions *p, const struct report_run *run,
	const char *text, const struct longpole_prediction_options *o, struct base_err *err)
{
	struct report_scenarios scenarios = {.self = o->is_self != 0};
	enum base_status s = report_scenarios_text(&scenarios, text, "scenarios", err);
	if (s == BASE_OK && !scenarios.nr)
		s = base_fail(err, BASE_ERR_USAGE, "the scenarios have no edit");
	if (s == BASE_OK)
		s = report_whatif_build(run, &scenarios, o->methods, &p->whatif, err);
	report_scenarios_fini(&scenarios);
	return s;
}

int longpole_predictions_new(struct longpole_analysis *a, const char *scenarios,
	const struct longpole_prediction_options *options, struct longpole_predictions **ret,
	struct longpole_error *error)
{
	struct longpole_prediction_options o;
	struct base_err err;
	if (!a || !scenarios || !ret)
		return api_refuse(error, "no analysis, no scenarios, or no place for the answer");
	*ret = NULL;
	if (!api_take(&o, sizeof o, options) ||
		o.methods & ~(unsigned)(REPORT_METHOD_path | REPORT_METHOD_replay))
		return api_refuse(error, "an option, or the options' size, is wrong");
	locale_t before = api_locale_begin();
	struct longpole_predictions *p = base_alloc(sizeof *p);
	enum base_status s = p ? predict_build(p, api_run(a), scenarios, &o, &err)
			       : base_fail(&err, BASE_ERR_NOMEM, "out of memory for predictions");
	api_locale_end(before);
	if (s == BASE_OK)
		*ret = p;
	else
		longpole_predictions_free(p);
	return api_finish(error, s, &err);
}

uint64_t longpole_predictions_nr(const struct longpole_predictions *p)
{
	return p ? p->whatif->nr_predictions : 0;
}

/* What the method says of the path then that the answer is of, for the most part. */
static bool predict_is_replays(const struct report_prediction *p, const struct report_best *b)
{
	return p->replay.made && !p->replay.nr_stuck && p->replay.next &&
	       (!p->by_path || b->replay_share >= 0.5);
}

int longpole_predictions_prediction(
	const struct longpole_predictions *predictions, uint64_t i, struct longpole_prediction *ret)
{
	static const struct longpole_gain none = {.method = "replay"};
	if (!predictions)
		return LONGPOLE_STATUS_USAGE;
	const struct report_whatif *w = predictions->whatif;
	if (i >= w->nr_predictions)
		return LONGPOLE_STATUS_END;
	const struct report_prediction *p = &w->prediction[i];
	const struct report_replay_prediction *r = &p->replay;
	struct report_best b = report_best_of(w, p);
	bool replays = predict_is_replays(p, &b), answers = !b.none && b.speedup > 0;
	const char *next = replays ? r->next : p->by_path ? p->next : NULL;
	return API_GIVE(ret, .gain = b.none ? none : api_gain(&b),
		.elapsed_ns = answers ? api_ns(w->elapsed_ns / b.speedup) : 0,
		.next = next ? next : "", .next_share = replays ? r->next_share : p->next_share,
		.throughput = b.throughput, .throughput_low = b.throughput_low,
		.throughput_high = b.throughput_high, .nr_stuck = r->nr_stuck,
		.stuck = r->stuck ? r->stuck : "", .path_speedup = p->by_path ? p->speedup : 0,
		.replay_speedup = r->made && !r->nr_stuck ? r->speedup : 0,
		.is_estimated = p->estimated, .nr_edits = (uint32_t)p->nr_matches);
}
