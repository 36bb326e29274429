/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - the second method of `longpole whatif`: the run is simulated again with the edits.
 *
 * What is compared is replay with replay: the simulation of the run as it was tells how far the
 * method itself is off, and that error is not counted as gain.
 */
#include "report/predict/predictor.h"

#include <math.h>
#include <string.h>

/* Verbs a record, about; for a guess before the first pass. */
enum { VERBS_A_RECORD = 2, BYTES_A_VERB = 32 };
/* It simulates time slice by slice; a wrong time of a record may be years away. */
#define SPAN_MAX_NS ((uint64_t)24 * 3600 * 1000000000u)
#define UNASKED_MAX ((uint64_t)512 << 20) /* bytes that nobody asked us to take */

bool report_replay_fits(const struct report_run *run)
{
	uint64_t limit = run->max_memory_bytes ? run->max_memory_bytes : UNASKED_MAX;
	uint64_t records = trace_reader_record_count(run->reader);
	return records <= limit / (VERBS_A_RECORD * BYTES_A_VERB) &&
	       trace_reader_last_ns(run->reader) <= SPAN_MAX_NS;
}

/* (In a recording of the system, or a merged one, it is not all threads'.) */
const struct trace_quota *report_quota(const struct trace_reader *reader)
{
	bool all = trace_reader_info(reader)->flags & (TRACE_INFO_SYSTEM | TRACE_INFO_MERGED);
	return trace_def_quota(trace_reader_defs(reader), all ? 0 : 1);
}

enum base_status report_replay_new(
	const struct report_run *run, struct graph_replay **ret, struct base_err *err)
{
	const struct trace_info *info = trace_reader_info(run->reader);
	const struct trace_quota *quota = report_quota(run->reader);
	struct graph_replay_options o = {
		.size = sizeof o,
		.max_memory_bytes = run->max_memory_bytes,
		.nr_processors = (uint32_t)info->nr_processors,
		.quota_ns = quota->quota_ns,
		.quota_period_ns = quota->period_ns,
	};
	return graph_replay_new(&o, ret, err);
}

/*
 * What replay assumes and the run does not say, the other way: each answer's interval is what comes
 * out of these. The most telling ones first, since a long log is simulated less often.
 *
 * What waking costs is the same in the recorded run and in the changed one: both are simulated with
 * it. How late sleepers come and whom the kernel lets run first differs from run to run of one and
 * the same program: the run after the change may meet it when the one before did not, or the other
 * way.
 */
#define LATE_DIFFERS                                                                               \
	0.15 /* measured: so much the medians of like hand-offs in five runs of one               \
	      * program (an eventfd, two threads) lie from their middle */
/* What writing a record took is an estimate: reality was in this on the programs tried. */
#define RECORDING_LOW  (2. / 3 - 1)
#define RECORDING_HIGH (3. / 2 - 1)
static const struct variant {
	bool by_run; /* what one run meets, and another need not */
	struct graph_replay_assumed assumed;
} variant[REPORT_VARIANTS] = {
	{true, {.unrecorded = true, .preempts = true}},
	{true, {.unrecorded = true, .late_more = -LATE_DIFFERS, .jitter = 1}},
	{true, {.unrecorded = true, .late_more = LATE_DIFFERS, .jitter = 2}},
	{false, {.unrecorded = true, .recording_more = RECORDING_LOW}},
	{false, {.unrecorded = true, .recording_more = RECORDING_HIGH}},
	{false, {.unrecorded = true, .wake_more = -0.5}},
	{false, {.unrecorded = true, .wake_more = 0.5}},
	{false, {.unrecorded = true, .as_recorded = true}},
	{false, {.unrecorded = true, .ticks_otherwise = true}},
	{true, {.unrecorded = true, .preempts = true, .jitter = 3}},
	{false, {.wake_more = -1, .as_recorded = true}}, /* and nothing taken off for recording */
};
_Static_assert(REPORT_LANES_MAX + 1 + REPORT_VARIANTS + 2 + 1 + 1 <= REPORT_SIMULATIONS_MAX,
	"all that an answer asks for at once");
enum { VERBS_MAX = 40000000 }; /* simulated again for the intervals of all answers */

static double replay_length_of(const struct graph_replay_result *r)
{
	return r->end_ns > r->start_ns ? (double)(r->end_ns - r->start_ns) : 0;
}

/* The recorded program's processor time; 0: it is not known. */
static uint64_t target_cpu_ns(const struct trace_defs *d)
{
	uint64_t ns = 0;
	for (uint32_t i = 1; i < d->nr_costs; i++)
		ns = d->costs[i].target_cpu_ns ? d->costs[i].target_cpu_ns : ns;
	return ns;
}

static double replay_share_of(uint64_t part_ns, double whole_ns)
{
	return part_ns && (double)part_ns < whole_ns ? (double)part_ns / whole_ns : 0;
}

/* What the recorder measured. */
static struct graph_replay_measured measured(const struct trace_defs *d)
{
	uint64_t samples_ns = 0;
	for (uint32_t i = 1; i < d->nr_costs; i++)
		if (!strcmp(trace_text_of(d, d->costs[i].name), TRACE_COST_SAMPLES))
			samples_ns = d->costs[i].total_ns;
	return (struct graph_replay_measured){.wake_ns = trace_cost_each_ns(d, TRACE_COST_WAKING),
		.wake_busy_ns = trace_cost_each_ns(d, TRACE_COST_WAKING_BUSY),
		.record_ns = trace_cost_each_ns(d, TRACE_COST_SWITCHES),
		.samples_share = replay_share_of(samples_ns, (double)target_cpu_ns(d))};
}

/* What replay takes off by itself, where it was. */
static bool is_taken_off(const char *cost)
{
	static const char *const names[] = {TRACE_COST_SAMPLES, TRACE_COST_LOCKS, TRACE_COST_CALLS,
		TRACE_COST_RECORDS, TRACE_COST_STARTS, TRACE_COST_FORKS};
	for (size_t i = 0; i < BASE_COUNT(names); i++)
		if (!strcmp(cost, names[i]))
			return true;
	return false;
}

/* Of a run that was so long: the rest of what recording took, if it took the run's time; no larger
 * a share of it than of the program's processor time, since that is spread over its threads. */
static double cost_share(const struct trace_defs *d, double recorded_ns)
{
	uint64_t cost_ns = 0;
	for (uint32_t i = 1; i < d->nr_costs; i++) {
		const struct trace_cost *c = &d->costs[i];
		bool counts = !c->beside && !is_taken_off(trace_text_of(d, c->name));
		if (counts && c->total_ns <= UINT64_MAX - cost_ns)
			cost_ns += c->total_ns;
	}
	return fmin(replay_share_of(cost_ns, (double)target_cpu_ns(d)),
		replay_share_of(cost_ns, recorded_ns));
}

/* Every answer's other assumptions, of the same edits; returns how many. */
static unsigned other_assumptions(const struct report_replay_run *base,
	const struct graph_scenario *edits, bool stay, struct report_simulation *ret)
{
	for (unsigned i = 0; i < base->nr_variants; i++) {
		ret[i] = (struct report_simulation){.edits = edits, .assumed = variant[i].assumed};
		ret[i].assumed.others_stay = stay;
		ret[i].assumed.any_processor = base->plain_share > 0.5;
	}
	return base->nr_variants;
}

unsigned report_replay_nr_variants(const struct graph_replay *log, size_t nr_answers)
{
	uint64_t verbs = graph_replay_nr_verbs(log) * nr_answers;
	uint64_t nr = verbs ? VERBS_MAX / verbs : 0;
	return nr < REPORT_VARIANTS ? (unsigned)nr : REPORT_VARIANTS;
}

enum base_status report_replay_vary(struct report_replay_run *ret, const struct graph_replay *log,
	size_t nr_answers, struct base_err *err)
{
	struct report_simulation x[REPORT_VARIANTS];
	unsigned known = ret->nr_variants, nr = report_replay_nr_variants(log, nr_answers);
	if (nr <= known)
		return BASE_OK;
	ret->nr_variants = nr;
	other_assumptions(ret, NULL, false, x);
	enum base_status s = report_simulate(log, x + known, nr - known, err);
	for (unsigned i = known; s == BASE_OK && i < nr; i++)
		ret->variant_ns[i] = replay_length_of(&x[i].result);
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
	return 1 / (own_error * own_error + REPORT_RUN_DEVIATES * REPORT_RUN_DEVIATES);
}

/*
 * Two models of how threads come to processors: like a kernel, as the run taught it, and any that
 * is free. Neither is right for every machine (the first sees no other programs); each weighs as
 * much as it repeats the run.
 */
static void replay_add_plain(struct report_replay_run *ret,
	const struct graph_replay_result *recorded, const struct graph_replay_result *unrecorded)
{
	if (recorded->nr_stuck > ret->nr_stuck || ret->recorded_ns <= 0)
		return;
	double placed = weight_of(ret->replayed_ns / ret->recorded_ns - 1);
	double any = weight_of(replay_length_of(recorded) / ret->recorded_ns - 1);
	ret->plain_share = any / (any + placed);
	ret->replayed_ns = middle(ret->replayed_ns, replay_length_of(recorded), ret->plain_share);
	ret->plain_ns = replay_length_of(unrecorded);
	ret->usual_ns = middle(ret->bare_ns, ret->plain_ns, ret->plain_share);
}

enum { AS_IT_WAS, BARE, PLAIN, PLAIN_BARE, AT_ONCE, BASES, UNSPUN = BASES, ASSUMED };
static const struct graph_replay_assumed base_assumed[ASSUMED] = {
	[BARE] = {.unrecorded = true},
	[PLAIN] = {.any_processor = true},
	[PLAIN_BARE] = {.any_processor = true, .unrecorded = true},
	/* Waits whose end is not in the trace: whether a change makes them shorter, nobody knows.
	 */
	[AT_ONCE] = {.unrecorded = true, .given_at_once = true},
	[UNSPUN] = {.unrecorded = true, .late_scales = true},
};

enum base_status report_replay_base(struct report_replay_run *ret, const struct report_run *run,
	struct graph_replay *log, struct base_err *err)
{
	struct graph_replay_measured m = measured(trace_reader_defs(run->reader));
	struct report_simulation x[BASES];
	enum base_status s = graph_replay_learn(log, &m, err);
	if (s == BASE_OK)
		s = graph_replay_mend(log, err);
	for (unsigned i = 0; i < BASES; i++)
		x[i] = (struct report_simulation){.assumed = base_assumed[i]};
	bool gives = graph_replay_nr_given(log);
	if (s == BASE_OK)
		s = report_simulate(log, x, gives ? BASES : AT_ONCE, err);
	if (s != BASE_OK)
		return s;
	const struct graph_replay_result *r = &x[AS_IT_WAS].result;
	double recorded_ns = (double)(r->recorded_end_ns - r->start_ns);
	*ret = (struct report_replay_run){
		.recorded_ns = recorded_ns,
		.replayed_ns = replay_length_of(r),
		.bare_ns = replay_length_of(&x[BARE].result),
		.usual_ns = replay_length_of(&x[BARE].result),
		.nr_stuck = r->nr_stuck,
		.nr_given = graph_replay_nr_given(log),
		.given_ns = graph_replay_given_ns(log),
		.at_once_ns = gives ? replay_length_of(&x[AT_ONCE].result) : 0,
		.nr_processors = r->nr_processors,
		.wake_ns = graph_replay_wake_ns(log),
		.learned = r->nr_processors != 0,
		.is_system = trace_reader_info(run->reader)->flags & TRACE_INFO_SYSTEM,
		.cost_share = cost_share(trace_reader_defs(run->reader), recorded_ns),
	};
	if (ret->learned)
		replay_add_plain(ret, &x[PLAIN].result, &x[PLAIN_BARE].result);
	ret->own_error = recorded_ns > 0 ? ret->replayed_ns / recorded_ns - 1 : 0;
	return BASE_OK;
}

static void replay_widen(struct report_replay_prediction *p, double speedup)
{
	p->low = speedup < p->low ? speedup : p->low;
	p->high = speedup > p->high ? speedup : p->high;
}

/* Of the runs before and after the change one meets it, and the other is as usual; all the way when
 * what it is of has a quarter of the weight. */
static void widen_by_run(struct report_replay_prediction *p, const struct report_replay_run *base,
	double before_ns, double after_ns, double weight)
{
	double share = fmin(1, 4 * weight);
	if (before_ns <= 0 || after_ns <= 0 || base->usual_ns <= 0)
		return;
	replay_widen(p, middle(p->speedup, base->usual_ns / after_ns, share));
	replay_widen(p, middle(p->speedup, p->speedup * before_ns / base->usual_ns, share));
}

/* In a trace that lacks records nobody waits for ever: an actor that is given something more often
 * than in the run stands still as well. */
static uint64_t replay_stuck(
	const struct graph_replay_result *r, const struct report_replay_run *base)
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
	double by = exp(hypot(base->own_error, REPORT_RUNS_DIFFER));
	double cost = base->cost_share;
	double most = p->high > 1 ? 0.5 / p->high : 0.5;
	cost = cost < most ? cost : most;
	double gone = 1 - cost, stays = (1 - cost) / (1 - cost * p->high);
	p->low = p->low * (gone < stays ? gone : stays) / by;
	p->high = p->high * (gone > stays ? gone : stays) * by;
}

/*
 * The first lane's edits, and without what spins or polls. A state that the edits shorten may poll:
 * then they take nothing from it; or it works, and what others poll for comes that much sooner. Both
 * in one would have two that wait for each other end at once.
 */
enum { WORKS, POLLS, UNSPUN_NR }; /* what the edits shorten */
struct unspun {
	struct graph_scenario scenario; /* empty: it is not asked */
	struct graph_edit *edit;
	/* What the edits take from all threads; where a thread spins, more: it keeps others from
	 * their processors, too. */
	struct graph_replay_change change;
};

/* Of one answer, those of several lanes: the estimate and the ends of what it is estimated by. */
struct questions {
	const struct report_replay_run *base;
	const struct graph_replay *log;
	struct report_simulated *known;
	const struct graph_scenario *lane;
	unsigned nr_lanes;
	struct report_simulation usual[REPORT_LANES_MAX];
	bool others_stay[REPORT_LANES_MAX];
	/* then, of each lane, the other model's; and of the first one ... */
	struct report_simulation then[REPORT_LANES_MAX + 1 + REPORT_VARIANTS + UNSPUN_NR + 1 + 1];
	unsigned nr_then;
	struct unspun unspun[UNSPUN_NR];
	/* The first lane's edits without those of what polls: naps that are shorter are more. Or
	 * empty. */
	struct graph_scenario as_long;
	struct graph_edit *as_long_edit;
};

static bool is_plain_asked(const struct questions *q, unsigned lane)
{
	return q->base->plain_share > 0 && q->usual[lane].result.nr_stuck <= q->base->nr_stuck;
}

/* What is recorded and not decided anew may be stuck when the order of things changes: then once
 * more, others being left their time, since the order changes less so. */
static enum base_status ask_usual(struct questions *q, struct base_err *err)
{
	bool stay = false;
	for (unsigned k = 0; k < q->nr_lanes; k++)
		q->usual[k] = (struct report_simulation){
			.edits = &q->lane[k], .assumed = base_assumed[BARE]};
	enum base_status s = report_simulate_once(q->known, q->log, q->usual, q->nr_lanes, err);
	for (unsigned k = 0; s == BASE_OK && k < q->nr_lanes; k++) {
		if (replay_stuck(&q->usual[k].result, q->base) > q->base->nr_stuck) {
			stay = q->usual[k].assumed.others_stay = true;
			s = report_simulate_once(q->known, q->log, &q->usual[k], 1, err);
		}
		q->others_stay[k] = stay;
	}
	return s;
}

static struct report_simulation *add_question(
	struct questions *q, unsigned lane, struct graph_replay_assumed assumed, bool stay)
{
	struct report_simulation *x = &q->then[q->nr_then++];
	*x = (struct report_simulation){.edits = &q->lane[lane], .assumed = assumed};
	x->assumed.others_stay = stay;
	return x;
}

/* path: hears what the first lane's simulation does; NULL: nobody. */
static enum base_status ask_then(
	struct questions *q, const struct graph_sink *path, struct base_err *err)
{
	bool stay = q->others_stay[q->nr_lanes - 1];
	if (path) /* the longest first */
		add_question(q, 0, base_assumed[BARE], stay)->out = path;
	for (unsigned k = 0; k < q->nr_lanes; k++)
		if (is_plain_asked(q, k))
			add_question(q, k, base_assumed[PLAIN_BARE], q->others_stay[k]);
	if (q->base->nr_given)
		add_question(q, 0, base_assumed[AT_ONCE], stay);
	for (unsigned i = 0; i < UNSPUN_NR; i++)
		if (q->unspun[i].scenario.nr_edits)
			add_question(q, 0, base_assumed[UNSPUN], stay)->edits =
				&q->unspun[i].scenario;
	if (q->as_long_edit)
		add_question(q, 0, base_assumed[BARE], stay)->edits = &q->as_long;
	q->nr_then += other_assumptions(q->base, &q->lane[0], stay, &q->then[q->nr_then]);
	return report_simulate_once(q->known, q->log, q->then, q->nr_then, err);
}

/* The other model's answer. Where threads come to run is another matter in each run: any run may go
 * as either model says. */
static double mix_plain(struct report_replay_prediction *ret, double speedup,
	const struct report_replay_run *base, const struct graph_replay_result *placed,
	const struct graph_replay_result *any)
{
	if (any->nr_stuck > base->nr_stuck || replay_length_of(any) <= 0)
		return speedup;
	ret->placed_ns = ret->any_ns > 0 ? ret->placed_ns : replay_length_of(placed);
	ret->any_ns = ret->any_ns > 0 ? ret->any_ns : replay_length_of(any);
	return middle(speedup, base->plain_ns / replay_length_of(any), base->plain_share);
}

static void set_first(
	struct report_replay_prediction *ret, const struct questions *q, double speedup)
{
	const struct graph_replay_result *r = &q->usual[0].result;
	ret->speedup = ret->low = ret->high = speedup;
	ret->length_ns = speedup > 0 ? q->base->recorded_ns / speedup : 0;
	ret->nr_stuck = replay_stuck(r, q->base);
	ret->stuck_actor = r->first_stuck;
	ret->stuck_queue = r->first_stuck_queue;
	ret->stuck_ns = r->first_stuck_ns;
	ret->stuck_anew = r->first_stuck_anew;
}

/* Returns how many of the answers to what was asked then it used. */
static unsigned answer_lanes(struct report_replay_prediction *ret, const struct questions *q,
	const struct report_simulation *then)
{
	unsigned used = 0;
	for (unsigned k = 0; k < q->nr_lanes; k++) {
		const struct graph_replay_result *r = &q->usual[k].result;
		double speedup =
			q->base->bare_ns / fmax(replay_length_of(r), 1); /* all of it may go */
		if (is_plain_asked(q, k))
			speedup = mix_plain(ret, speedup, q->base, r, &then[used++].result);
		if (!k)
			set_first(ret, q, speedup);
		replay_widen(ret, speedup);
	}
	return used;
}

/*
 * A thread that spins or polls waits, and so does one that is blocked outside of every recorded
 * call, but it is not known for what: the change may end that sooner by as much as it takes, or
 * later by what it adds.
 */
static void widen_by_unknown(struct report_replay_prediction *ret, const struct questions *q,
	const struct graph_replay_change *change, double unspun_ns)
{
	const struct report_replay_run *base = q->base;
	double taken_ns = change->taken_ns, added_ns = change->added_ns;
	double most = report_most_factor(q->lane);
	/* (who has more to do waits more for a processor, too, and the other way round) */
	taken_ns += fmin(taken_ns * base->ready_share, base->ready_ns);
	added_ns += fmin(added_ns * base->ready_share, base->ready_ns * (most - 1));
	replay_widen(ret, base->bare_ns / fmax(unspun_ns, base->bare_ns - taken_ns));
	if (base->polled_ns >= REPORT_POLLS_FROM * base->recorded_ns && added_ns < INFINITY)
		replay_widen(ret, fmax(base->bare_ns / (base->bare_ns + added_ns), 1 / most));
}

static void replay_answer(struct report_replay_prediction *ret, const struct questions *q,
	const struct report_simulation *then)
{
	const struct report_replay_run *base = q->base;
	then += answer_lanes(ret, q, then);
	if (base->nr_given) { /* those waits take no time, in the run and after */
		double at_once_ns = replay_length_of(&then++->result);
		if (at_once_ns > 0 && base->at_once_ns > 0)
			replay_widen(ret, base->at_once_ns / at_once_ns);
	}
	double unspun_ns[UNSPUN_NR] = {0};
	for (unsigned i = 0; i < UNSPUN_NR; i++)
		if (q->unspun[i].scenario.nr_edits)
			unspun_ns[i] = replay_length_of(&then++->result);
	double as_long_ns = q->as_long_edit ? replay_length_of(&then++->result) : 0;
	for (unsigned i = 0; i < base->nr_variants; i++) {
		const struct graph_replay_result *r = &then[i].result;
		if (r->nr_stuck <= base->nr_stuck && variant[i].by_run)
			widen_by_run(ret, base, base->variant_ns[i], replay_length_of(r), 1);
		else if (r->nr_stuck <= base->nr_stuck && replay_length_of(r) > 0 &&
			 base->variant_ns[i] > 0)
			replay_widen(ret, base->variant_ns[i] / replay_length_of(r));
	}
	for (unsigned i = 0; i < UNSPUN_NR; i++)
		if (unspun_ns[i] > 0)
			widen_by_unknown(ret, q, &q->unspun[i].change, unspun_ns[i]);
	if (as_long_ns > 0)
		replay_widen(ret, base->bare_ns / as_long_ns);
	if (base->nr_variants) {
		widen_by_run(ret, base, base->bare_ns, ret->placed_ns, 1 - base->plain_share);
		widen_by_run(ret, base, base->plain_ns, ret->any_ns, base->plain_share);
		widen_all(ret, base);
	}
	/* what stood still in the run itself is no news */
	ret->nr_stuck = ret->nr_stuck > base->nr_stuck ? ret->nr_stuck - base->nr_stuck : 0;
	ret->others_stay = q->others_stay[q->nr_lanes - 1];
	ret->made = true;
	ret->next = "";
}

/*
 * The graph of a simulated run. An actor that waits for a processor has waited for its holder; but
 * where these may be other programs, the path would be lost in them (a timer's daemon), so that
 * there the wait is the waiter's own, as in the run (model/README.md).
 */
struct follower {
	struct graph *graph;
	bool leaves_processors; /* nobody follows their holders */
	uint32_t processors;    /* queues from here on are processors */
};

static enum base_status feed_state(void *ctx, uint32_t state, bool executes, struct base_err *err)
{
	struct follower *f = ctx;
	uint32_t id;
	(void)executes;
	while (graph_nr_states(f->graph) <= state) {
		enum base_status s = graph_add_state(f->graph, &id, err);
		if (s != BASE_OK)
			return s;
	}
	return BASE_OK;
}

static enum base_status feed_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	struct follower *f = ctx;
	uint32_t id;
	if (!o->processor)
		f->processors = queue + 1;
	return graph_add_queue(f->graph, o, &id, err);
}

static enum base_status feed_verb(void *ctx, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from_actor, struct base_err *err)
{
	struct follower *f = ctx;
	uint32_t id, last = v->actor;
	struct graph_verb mine = *v;
	if (kind == GRAPH_VERB_enqueue && f->leaves_processors && v->queue >= f->processors)
		mine.flags |= GRAPH_NOBODY;
	if (kind == GRAPH_VERB_link && from_actor > last)
		last = from_actor;
	while (graph_nr_actors(f->graph) <= last) {
		enum base_status s = graph_add_actor(f->graph, &id, err);
		if (s != BASE_OK)
			return s;
	}
	return graph_apply(f->graph, kind, &mine, from_actor, err);
}

enum base_status report_replay_speedups(double *ret, const struct report_replay_run *base,
	const struct graph_replay *log, const struct graph_scenario *lane, unsigned nr,
	struct report_simulated *known, struct base_err *err)
{
	struct report_simulation x[REPORT_SIMULATIONS_MAX];
	bool plain = base->plain_share > 0;
	BASE_ASSERT(nr <= REPORT_RAY_MAX);
	for (unsigned i = 0; i < nr; i++) {
		x[i] = (struct report_simulation){.edits = &lane[i], .assumed = base_assumed[BARE]};
		x[nr + i] = (struct report_simulation){
			.edits = &lane[i], .assumed = base_assumed[PLAIN_BARE]};
	}
	enum base_status s = report_simulate_once(known, log, x, plain ? 2 * nr : nr, err);
	for (unsigned i = 0; s == BASE_OK && i < nr; i++) {
		const struct graph_replay_result *r = &x[i].result;
		struct report_replay_prediction unused = {0};
		ret[i] = 0;
		if (replay_stuck(r, base) > base->nr_stuck)
			continue;
		ret[i] = base->bare_ns / fmax(replay_length_of(r), 1);
		if (plain)
			ret[i] = mix_plain(&unused, ret[i], base, r, &x[nr + i].result);
	}
	return s;
}

/* What chance made fall rises; the interval shows both. */
static enum base_status replay_mend(struct report_replay_prediction *p,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, struct report_ray *ray, struct base_err *err)
{
	p->ray_speedup = p->nr_stuck ? 0 : p->speedup;
	p->ray_reach = 1;
	enum base_status s =
		report_ray_mend(ray, &p->ray_speedup, &p->ray_reach, base, log, lane, err);
	if (s == BASE_OK && !p->nr_stuck)
		replay_widen(p, p->ray_speedup);
	return s;
}

static bool is_polled(const struct report_replay_run *base, uint32_t state)
{
	for (unsigned i = 0; i < base->nr_spins; i++)
		if (base->spin[i].polls && base->spin[i].state == state)
			return true;
	return false;
}

/* Naps that are shorter are more, and end no sooner. */
static enum base_status add_as_long(struct questions *q, struct base_err *err)
{
	const struct graph_scenario *lane = &q->lane[0];
	size_t nr = 0;
	struct graph_edit *edit = base_alloc((lane->nr_edits + 1) * sizeof *edit);
	if (!edit)
		return report_no_memory(err);
	for (size_t i = 0; i < lane->nr_edits; i++)
		if (lane->edit[i].kind != GRAPH_EDIT_SCALE_STATE ||
			!is_polled(q->base, lane->edit[i].id))
			edit[nr++] = lane->edit[i];
	q->as_long = (struct graph_scenario){.edit = edit, .nr_edits = nr};
	q->as_long_edit = nr < lane->nr_edits ? edit : NULL;
	if (!q->as_long_edit)
		base_free(edit);
	return BASE_OK;
}

static bool scales(const struct graph_scenario *edits, uint32_t state)
{
	for (size_t i = 0; i < edits->nr_edits; i++)
		if (edits->edit[i].kind == GRAPH_EDIT_SCALE_STATE && edits->edit[i].id == state)
			return true;
	return false;
}

/* Those edits, and without what spins or polls, but for a thread that polls where these shorten it.
 * (Weights of one state multiply.) */
static enum base_status make_unspun(struct unspun *ret, const struct questions *q,
	const struct graph_scenario *edits, struct base_err *err)
{
	const struct report_replay_run *base = q->base;
	uint32_t wait[REPORT_SPIN_STATES], nr_waits = 0;
	struct graph_edit *edit = base_alloc((edits->nr_edits + base->nr_spins + 1) * sizeof *edit);
	if (!edit)
		return report_no_memory(err);
	ret->edit = edit;
	if (edits->nr_edits)
		memcpy(edit, edits->edit, edits->nr_edits * sizeof *edit);
	for (unsigned i = 0; i < base->nr_spins; i++) {
		const struct report_spin_state *spin = &base->spin[i];
		if (spin->polls && scales(edits, spin->state))
			continue;
		wait[nr_waits] = spin->state;
		edit[edits->nr_edits + nr_waits++] =
			(struct graph_edit){.kind = GRAPH_EDIT_SCALE_STATE,
				.id = spin->state,
				.factor = 1 - spin->share};
	}
	if (!nr_waits)
		return BASE_OK;
	ret->scenario =
		(struct graph_scenario){.edit = edit, .nr_edits = edits->nr_edits + nr_waits};
	ret->change = (struct graph_replay_change){INFINITY, INFINITY};
	return base->spins ? BASE_OK
			   : graph_replay_change(q->log, edits, wait, nr_waits, &ret->change, err);
}

static enum base_status add_unspun(struct questions *q, struct base_err *err)
{
	if (!q->base->nr_spins)
		return BASE_OK;
	enum base_status s = add_as_long(q, err);
	if (s == BASE_OK)
		s = make_unspun(&q->unspun[WORKS], q, &q->lane[0], err);
	if (s == BASE_OK && q->as_long.nr_edits && q->as_long_edit)
		s = make_unspun(&q->unspun[POLLS], q, &q->as_long, err);
	return s;
}

enum base_status report_replay_predict(struct report_replay_prediction *ret,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, unsigned nr_lanes, struct report_ray *ray,
	struct graph **ret_path, struct base_err *err)
{
	struct questions *q = base_alloc(sizeof *q);
	struct follower path = {.leaves_processors = base->is_system};
	*ret = (struct report_replay_prediction){0};
	BASE_ASSERT(nr_lanes && nr_lanes <= REPORT_LANES_MAX);
	if (!q)
		return report_no_memory(err);
	q->base = base;
	q->log = log;
	q->known = &ray->known;
	q->lane = lane;
	q->nr_lanes = nr_lanes;
	enum base_status s = add_unspun(q, err);
	if (s == BASE_OK)
		s = ask_usual(q, err);
	bool ends = s == BASE_OK && replay_stuck(&q->usual[0].result, base) <= base->nr_stuck;
	if (ends && ret_path)
		s = graph_new(NULL, &path.graph, err);
	struct graph_sink sink = {
		.ctx = &path, .state = feed_state, .queue = feed_queue, .verb = feed_verb};
	if (s == BASE_OK)
		s = ask_then(q, path.graph ? &sink : NULL, err);
	if (s == BASE_OK)
		replay_answer(ret, q, path.graph ? q->then + 1 : q->then);
	for (unsigned i = 0; i < UNSPUN_NR; i++)
		base_free(q->unspun[i].edit);
	base_free(q->as_long_edit);
	base_free(q);
	if (s == BASE_OK)
		s = replay_mend(ret, base, log, lane, ray, err);
	if (s == BASE_OK && ret_path)
		*ret_path = path.graph;
	else
		graph_free(path.graph);
	return s;
}

/* ---- the critical path of what was simulated ------------------------------------------------- */

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
	ret->next_share = report_topic_share(topic_ns, ix, topic, length_ns);
	return ret->next ? BASE_OK : report_no_memory(err);
}

enum base_status report_replay_next(struct report_replay_prediction *ret, struct graph *path,
	const struct graph_replay *log, struct model *m, const struct report_index *ix,
	struct base_arena *arena, struct base_err *err)
{
	enum base_status s = graph_finish(path, graph_replay_end_actor(log), err);
	if (s == BASE_OK)
		s = longest_topic(ret, path, m, ix, arena, err);
	return s == BASE_OK ? s
			    : base_cause(err, s, "while looking for the path of the replayed run");
}
