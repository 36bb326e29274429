/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - the second method of `longpole whatif`: the run is simulated again with the edits.
 *
 * What is compared is replay with replay: the simulation of the run as it was tells how far the
 * method itself is off, and that error is not counted as gain.
 */
#include "report/private.h"

#include <math.h>
#include <string.h>

/* Verbs a record, about; for a guess before the first pass. */
enum { VERBS_A_RECORD = 2, BYTES_A_VERB = 32 };
#define UNASKED_MAX ((uint64_t)512 << 20) /* bytes that nobody asked us to take */

bool report_replay_fits(const struct report_run *run)
{
	uint64_t limit = run->max_memory_bytes ? run->max_memory_bytes : UNASKED_MAX;
	uint64_t records = trace_reader_record_count(run->reader);
	return records <= limit / (VERBS_A_RECORD * BYTES_A_VERB);
}

enum base_status report_replay_new(
	const struct report_run *run, struct graph_replay **ret, struct base_err *err)
{
	const struct trace_info *info = trace_reader_info(run->reader);
	struct graph_replay_options o = {
		.size = sizeof o,
		.max_memory_bytes = run->max_memory_bytes,
		.nr_processors = (uint32_t)info->nr_processors,
	};
	return graph_replay_new(&o, ret, err);
}

/*
 * What replay assumes and the run does not say, the other way: each answer's interval is what comes
 * out of these. The most telling ones first, since a long log is simulated less often.
 */
static const struct graph_replay_assumed variant[REPORT_VARIANTS] = {
	{.unrecorded = true, .preempts = true},
	{.unrecorded = true, .wake_more = -0.5, .jitter = 1},
	{.unrecorded = true, .wake_more = 0.5, .jitter = 2},
	{.unrecorded = true, .as_recorded = true, .jitter = 3},
	{.unrecorded = true, .preempts = true, .jitter = 4},
	{.wake_more = -1, .as_recorded = true}, /* and nothing taken off for recording */
};
enum { VERBS_MAX = 40000000 }; /* simulated again for the intervals of all answers */

static enum base_status simulate(const struct graph_replay *log, const struct graph_scenario *edits,
	const struct graph_replay_assumed *assumed, struct graph_replay_result *ret,
	struct base_err *err)
{
	enum base_status s = graph_replay_run_as(log, edits, assumed, NULL, ret, err);
	return s == BASE_OK ? s : base_cause(err, s, "while simulating the run again");
}

static double length_of(const struct graph_replay_result *r)
{
	return r->end_ns > r->start_ns ? (double)(r->end_ns - r->start_ns) : 0;
}

static uint64_t measured_ns(const struct trace_defs *d, const char *name)
{
	for (uint32_t i = 1; i < d->nr_costs; i++) {
		const struct trace_cost *c = &d->costs[i];
		if (c->name && c->n && !strcmp(trace_text_of(d, c->name), name))
			return c->total_ns / c->n;
	}
	return 0;
}

/* What the recorder measured. */
static struct graph_replay_measured measured(const struct trace_defs *d)
{
	return (struct graph_replay_measured){.wake_ns = measured_ns(d, TRACE_COST_WAKING),
		.wake_busy_ns = measured_ns(d, TRACE_COST_WAKING_BUSY),
		.record_ns = measured_ns(d, TRACE_COST_SWITCHES)};
}

/* The recorded program's, as far as it is known; without samples, which slow down whatever runs,
 * before a change and after it. */
static double cost_share(const struct trace_defs *d)
{
	uint64_t cost_ns = 0, target_ns = 0;
	for (uint32_t i = 1; i < d->nr_costs; i++) {
		const struct trace_cost *c = &d->costs[i];
		bool alike = c->name && !strcmp(trace_text_of(d, c->name), TRACE_COST_SAMPLES);
		cost_ns +=
			c->beside || alike || c->total_ns > UINT64_MAX - cost_ns ? 0 : c->total_ns;
		target_ns = c->target_cpu_ns ? c->target_cpu_ns : target_ns;
	}
	return target_ns && cost_ns < target_ns ? (double)cost_ns / (double)target_ns : 0;
}

static const struct graph_replay_assumed as_it_was = {0}, usual = {.unrecorded = true};
/* What is recorded and not decided anew may be stuck when the order of things changes: tried when
 * it is, since the order changes less so. */
static const struct graph_replay_assumed others_stay = {.unrecorded = true, .others_stay = true};

/* Waits whose end is not in the trace: whether a change makes them shorter, nobody knows. */
static const struct graph_replay_assumed given_at_once = {
	.unrecorded = true, .given_at_once = true};

static enum base_status base_of_variants(struct report_replay_run *ret,
	const struct graph_replay *log, size_t nr_answers, struct base_err *err)
{
	uint64_t verbs = graph_replay_nr_verbs(log) * nr_answers;
	uint64_t nr = verbs ? VERBS_MAX / verbs : 0;
	enum base_status s = BASE_OK;
	ret->nr_variants = nr < REPORT_VARIANTS ? (unsigned)nr : REPORT_VARIANTS;
	for (unsigned i = 0; s == BASE_OK && i < ret->nr_variants; i++) {
		struct graph_replay_result r;
		struct graph_replay_assumed as = variant[i];
		as.any_processor = ret->plain_share > 0.5;
		s = simulate(log, NULL, &as, &r, err);
		if (s == BASE_OK)
			ret->variant_ns[i] = length_of(&r);
	}
	return s;
}

/* The weighted middle of two lengths or speed-ups. */
static double middle(double a, double b, double share_of_b)
{
	return a > 0 && b > 0 ? exp(log(a) * (1 - share_of_b) + log(b) * share_of_b) : a;
}

/* Of a model that repeats the run so well: the inverse of its variance, if it errs by that and two
 * runs differ anyway. */
static double weight_of(double own_error)
{
	return 1 / (own_error * own_error + REPORT_RUNS_DIFFER * REPORT_RUNS_DIFFER);
}

/*
 * Two models of how threads come to processors: like a kernel, as the run taught it, and any that
 * is free. Neither is right for every machine (the first sees no other programs); each weighs as
 * much as it repeats the run.
 */
static enum base_status add_plain(
	struct report_replay_run *ret, const struct graph_replay *log, struct base_err *err)
{
	struct graph_replay_assumed plain = as_it_was;
	struct graph_replay_result r;
	plain.any_processor = true;
	enum base_status s = simulate(log, NULL, &plain, &r, err);
	if (s != BASE_OK || r.nr_stuck > ret->nr_stuck || ret->recorded_ns <= 0)
		return s;
	double placed = weight_of(ret->replayed_ns / ret->recorded_ns - 1);
	double any = weight_of(length_of(&r) / ret->recorded_ns - 1);
	ret->plain_share = any / (any + placed);
	ret->replayed_ns = middle(ret->replayed_ns, length_of(&r), ret->plain_share);
	plain.unrecorded = true;
	s = simulate(log, NULL, &plain, &r, err);
	ret->plain_ns = length_of(&r);
	return s;
}

enum base_status report_replay_base(struct report_replay_run *ret, const struct report_run *run,
	struct graph_replay *log, size_t nr_answers, struct base_err *err)
{
	struct graph_replay_result r;
	struct graph_replay_measured m = measured(trace_reader_defs(run->reader));
	enum base_status s = graph_replay_learn(log, &m, err);
	struct graph_replay_result bare, at_once = {0};
	if (s == BASE_OK)
		s = graph_replay_mend(log, err);
	if (s == BASE_OK)
		s = simulate(log, NULL, &as_it_was, &r, err);
	if (s == BASE_OK)
		s = simulate(log, NULL, &usual, &bare, err);
	if (s == BASE_OK && graph_replay_nr_given(log))
		s = simulate(log, NULL, &given_at_once, &at_once, err);
	if (s != BASE_OK)
		return s;
	double recorded_ns = (double)(r.recorded_end_ns - r.start_ns);
	*ret = (struct report_replay_run){
		.recorded_ns = recorded_ns,
		.replayed_ns = length_of(&r),
		.bare_ns = length_of(&bare),
		.nr_stuck = r.nr_stuck,
		.nr_given = graph_replay_nr_given(log),
		.given_ns = graph_replay_given_ns(log),
		.at_once_ns = length_of(&at_once),
		.nr_processors = r.nr_processors,
		.wake_ns = graph_replay_wake_ns(log),
		.learned = r.nr_processors != 0,
		.cost_share = cost_share(trace_reader_defs(run->reader)),
	};
	if (ret->learned)
		s = add_plain(ret, log, err);
	if (s != BASE_OK)
		return s;
	ret->own_error = recorded_ns > 0 ? ret->replayed_ns / recorded_ns - 1 : 0;
	return base_of_variants(ret, log, nr_answers, err);
}

static void widen(struct report_replay_prediction *p, double speedup)
{
	p->low = speedup < p->low ? speedup : p->low;
	p->high = speedup > p->high ? speedup : p->high;
}

/* One lane under each other assumption, compared with the run under the same. */
static enum base_status try_variants(struct report_replay_prediction *ret,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, struct base_err *err)
{
	for (unsigned i = 0; i < base->nr_variants; i++) {
		struct graph_replay_assumed as = variant[i];
		struct graph_replay_result r;
		as.others_stay = ret->others_stay;
		as.any_processor = base->plain_share > 0.5;
		enum base_status s = simulate(log, lane, &as, &r, err);
		if (s != BASE_OK)
			return s;
		if (r.nr_stuck <= base->nr_stuck && length_of(&r) > 0 && base->variant_ns[i] > 0)
			widen(ret, base->variant_ns[i] / length_of(&r));
	}
	return BASE_OK;
}

/* The same when the waits whose end is not in the trace take no time, in the run and after. */
static enum base_status try_at_once(struct report_replay_prediction *ret,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, struct base_err *err)
{
	struct graph_replay_assumed as = given_at_once;
	struct graph_replay_result r;
	as.others_stay = ret->others_stay;
	enum base_status s = simulate(log, lane, &as, &r, err);
	if (s == BASE_OK && length_of(&r) > 0 && base->at_once_ns > 0)
		widen(ret, base->at_once_ns / length_of(&r));
	return s;
}

/* In a trace that lacks records nobody waits for ever: who is given something more often than the
 * run was stands still as well. */
static uint64_t stuck(const struct graph_replay_result *r, const struct report_replay_run *base)
{
	return r->nr_stuck + (r->nr_given > base->nr_given ? r->nr_given - base->nr_given : 0);
}

/*
 * What no simulation varies: how far the method itself is off, two runs of one program, and what
 * recording took: all of it may be in the part that goes, which then is shorter without it, or all
 * in the part that stays.
 */
static void widen_all(struct report_replay_prediction *p, const struct report_replay_run *base)
{
	double own = base->own_error < 0 ? -base->own_error : base->own_error;
	double by = 1 + own + REPORT_RUNS_DIFFER;
	double cost = base->cost_share;
	double most = p->high > 1 ? 0.5 / p->high : 0.5;
	cost = cost < most ? cost : most;
	double gone = 1 - cost, stays = (1 - cost) / (1 - cost * p->high);
	p->low = p->low * (gone < stays ? gone : stays) / by;
	p->high = p->high * (gone > stays ? gone : stays) * by;
}

/* The other model's answer; the interval contains each that has a quarter of the weight. */
static enum base_status mix_plain(struct report_replay_prediction *ret, double *speedup,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, struct base_err *err)
{
	struct graph_replay_assumed plain = usual;
	struct graph_replay_result r;
	if (base->plain_share <= 0)
		return BASE_OK;
	plain.any_processor = true;
	plain.others_stay = ret->others_stay;
	enum base_status s = simulate(log, lane, &plain, &r, err);
	if (s != BASE_OK || r.nr_stuck > base->nr_stuck || length_of(&r) <= 0)
		return s;
	double other = base->plain_ns / length_of(&r), share = base->plain_share;
	double mixed = middle(*speedup, other, share);
	ret->apart[0] = middle(mixed, *speedup, fmin(1, 4 * (1 - share)));
	ret->apart[1] = middle(mixed, other, fmin(1, 4 * share));
	*speedup = mixed;
	return BASE_OK;
}

/* lane: the estimate, and when it is one the ends of its interval. */
enum base_status report_replay_predict(struct report_replay_prediction *ret,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, unsigned nr_lanes, struct base_err *err)
{
	*ret = (struct report_replay_prediction){0};
	for (unsigned k = 0; k < nr_lanes; k++) {
		struct graph_replay_result r;
		enum base_status s = simulate(log, &lane[k], &usual, &r, err);
		if (s != BASE_OK)
			return s;
		if (stuck(&r, base) > base->nr_stuck) {
			ret->others_stay = true;
			s = simulate(log, &lane[k], &others_stay, &r, err);
		}
		if (s != BASE_OK)
			return s;
		double speedup = length_of(&r) > 0 ? base->bare_ns / length_of(&r) : 1;
		if (r.nr_stuck <= base->nr_stuck)
			s = mix_plain(ret, &speedup, base, log, &lane[k], err);
		if (s != BASE_OK)
			return s;
		if (!k) {
			ret->speedup = ret->low = ret->high = speedup;
			ret->length_ns = speedup > 0 ? base->recorded_ns / speedup : 0;
			ret->nr_stuck = stuck(&r, base);
			ret->stuck_actor = r.first_stuck;
			ret->stuck_queue = r.first_stuck_queue;
			ret->stuck_ns = r.first_stuck_ns;
			ret->stuck_anew = r.first_stuck_anew;
		}
		widen(ret, speedup);
	}
	if (base->nr_given) {
		enum base_status s = try_at_once(ret, base, log, lane, err);
		if (s != BASE_OK)
			return s;
	}
	if (base->nr_variants) {
		enum base_status s = try_variants(ret, base, log, lane, err);
		if (s != BASE_OK)
			return s;
		for (unsigned i = 0; i < BASE_COUNT(ret->apart) && ret->apart[i] > 0; i++)
			widen(ret, ret->apart[i]);
		widen_all(ret, base);
	}
	/* what stood still in the run itself is no news */
	ret->nr_stuck = ret->nr_stuck > base->nr_stuck ? ret->nr_stuck - base->nr_stuck : 0;
	ret->made = true;
	ret->next = "";
	return BASE_OK;
}

/* ---- the critical path of what was simulated --------------------------------------------------
 */

static enum base_status feed_state(void *ctx, uint32_t state, bool executes, struct base_err *err)
{
	struct graph *g = ctx;
	uint32_t id;
	(void)executes;
	while (graph_nr_states(g) <= state) {
		enum base_status s = graph_add_state(g, &id, err);
		if (s != BASE_OK)
			return s;
	}
	return BASE_OK;
}

static enum base_status feed_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	uint32_t id;
	(void)queue;
	return graph_add_queue(ctx, o, &id, err);
}

static enum base_status feed_verb(void *ctx, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from_actor, struct base_err *err)
{
	struct graph *g = ctx;
	uint32_t id, last = v->actor;
	if (kind == GRAPH_VERB_link && from_actor > last)
		last = from_actor;
	while (graph_nr_actors(g) <= last) {
		enum base_status s = graph_add_actor(g, &id, err);
		if (s != BASE_OK)
			return s;
	}
	return graph_apply(g, kind, v, from_actor, err);
}

static enum base_status longest_topic(struct report_replay_prediction *ret, struct graph *g,
	struct model *m, const struct report_index *ix, struct base_arena *arena,
	struct base_err *err)
{
	double *topic_ns = report_array(arena, ix->nr_topics, sizeof *topic_ns), length_ns;
	enum base_status s = topic_ns
				     ? report_lane_topics(g, ix, 0, topic_ns, NULL, &length_ns, err)
				     : report_no_memory(err);
	if (s != BASE_OK)
		return s;
	uint32_t topic = report_largest_topic(topic_ns, ix, REPORT_NONE);
	if (topic == REPORT_NONE || length_ns <= 0)
		return BASE_OK;
	ret->next = report_clean(arena, model_state(m, ix->first_state[topic])->name);
	ret->next_share = topic_ns[topic] / length_ns;
	return ret->next ? BASE_OK : report_no_memory(err);
}

enum base_status report_replay_next(struct report_replay_prediction *ret,
	const struct graph_replay *log, const struct graph_scenario *lane, struct model *m,
	const struct report_index *ix, struct base_arena *arena, struct base_err *err)
{
	struct graph *g;
	enum base_status s = graph_new(NULL, &g, err);
	if (s != BASE_OK)
		return s;
	struct graph_sink sink = {
		.ctx = g, .state = feed_state, .queue = feed_queue, .verb = feed_verb};
	struct graph_replay_result r;
	s = graph_replay_run_as(
		log, lane, ret->others_stay ? &others_stay : &usual, &sink, &r, err);
	if (s == BASE_OK)
		s = graph_finish(g, graph_replay_end_actor(log), err);
	if (s == BASE_OK)
		s = longest_topic(ret, g, m, ix, arena, err);
	graph_free(g);
	return s == BASE_OK ? s
			    : base_cause(err, s, "while looking for the path of the replayed run");
}
