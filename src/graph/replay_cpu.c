/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_cpu.c - simulated processors: first come, first served, with a time slice.
 *
 * What was learned of a recording of threads makes them a kernel's: a woken actor comes to the
 * processor that it had last, or to an idle one; when there is none it waits for its own, or takes
 * it from the actor there, as often as it did in the run. One that waits for a processor and ran a
 * moment ago is not moved to another, even when that one is idle.
 */
#include "graph/replay_sim.h"

#include <math.h>

#define IMBALANCE 1.17                      /* Linux: imbalance_pct */
#define AFFINE    (1 + (IMBALANCE - 1) / 2) /* Linux: wake_affine_weight() */

enum {
	SLICE_NS = 3000000,
	WARM_NS = 500000,        /* Linux: sysctl_sched_migration_cost */
	HALF_LIFE_NS = 32000000, /* Linux: LOAD_AVG_PERIOD */
	SEEN = 5,                /* fewer switches of one actor say nothing */
};

/* ---- load: the share of time just gone in which something executed (Linux: PELT) ------------- */

static double load_now(const struct sim *s, const struct sim_load *l)
{
	double stays = exp2(-(double)(s->now - l->since_ns) / HALF_LIFE_NS);

	return l->share * stays + (l->executes ? 1 - stays : 0);
}

static void set_load(const struct sim *s, struct sim_load *l, bool executes)
{
	l->share = load_now(s, l);
	l->since_ns = s->now;
	l->executes = executes;
}

static uint32_t replay_cpu_queue_of(const struct sim *s, uint32_t processor)
{
	return (uint32_t)s->r->nr_queues + processor;
}

static void replay_cpu_emit(struct sim *s, uint32_t actor, enum graph_verb_kind kind,
	uint32_t processor, int64_t n, uint32_t state, uint32_t flags)
{
	if (s->out)
		graph_sim_emit(s, kind,
			&(struct graph_verb){.time_ns = s->now,
				.actor = actor,
				.state = state,
				.queue = replay_cpu_queue_of(s, processor),
				.flags = flags,
				.n = n},
			0);
}

/* Until the work is done or the slice is over. */
void graph_sim_run_on(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint64_t end = s->now + a->left_ns;

	a->since_ns = s->now;
	if (a->slice_end_ns <= s->now)
		a->slice_end_ns = s->now + SLICE_NS;
	a->phase = SIM_RUNS;
	graph_sim_schedule(s, actor, end < a->slice_end_ns ? end : a->slice_end_ns);
}

static void take_processor(struct sim *s, uint32_t actor, uint32_t processor)
{
	struct sim_actor *a = &s->actor[actor];

	a->processor = a->home = processor;
	graph_sim_count_running(s, true);
	if (s->places) {
		set_load(s, &s->load[processor], true);
		set_load(s, &a->load, true);
	}
	a->slice_end_ns = s->now + SLICE_NS;
	s->user[processor] = actor;
}

/* ---- run queues ------------------------------------------------------------------------------ */

static struct sim_list *run_queue(const struct sim *s, uint32_t processor)
{
	return &s->run[s->places ? processor : 0];
}

static void replay_cpu_append(struct sim *s, struct sim_list *l, uint32_t actor)
{
	*(l->tail == REPLAY_NONE ? &l->head : &s->actor[l->tail].run_next) = actor;
	l->tail = actor;
	s->actor[actor].run_next = REPLAY_NONE;
}

static void prepend(struct sim *s, struct sim_list *l, uint32_t actor)
{
	s->actor[actor].run_next = l->head;
	l->head = actor;
	if (l->tail == REPLAY_NONE)
		l->tail = actor;
}

/* The first that may run on the processor and has not run in the last warm_ns; REPLAY_NONE. */
static uint32_t replay_cpu_take_first(
	struct sim *s, struct sim_list *l, uint32_t processor, uint64_t warm_ns)
{
	uint32_t before = REPLAY_NONE, i = l->head;

	for (; i != REPLAY_NONE &&
		(s->now < s->actor[i].ran_ns + warm_ns || !sim_may_use(s, i, processor));
		before = i, i = s->actor[i].run_next)
		;
	if (i == REPLAY_NONE)
		return i;
	*(before == REPLAY_NONE ? &l->head : &s->actor[before].run_next) = s->actor[i].run_next;
	if (l->tail == i)
		l->tail = before;
	return i;
}

/* Of those that wait elsewhere; REPLAY_NONE. */
static uint32_t take_cold(struct sim *s, uint32_t processor)
{
	uint32_t taken = REPLAY_NONE;

	for (uint32_t p = 0; s->places && p < s->nr_processors && taken == REPLAY_NONE; p++)
		taken = replay_cpu_take_first(s, &s->run[p], processor, WARM_NS);
	return taken;
}

/* It has waited for a processor, and has it now. */
static void dispatch(struct sim *s, uint32_t processor, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];

	s->res->nr_processor_waits++;
	s->res->processor_wait_ns += s->now - a->since_ns;
	take_processor(s, actor, processor);
	if (a->phase == SIM_QUEUES_TAKE) {
		a->phase = SIM_TRIES;
		a->queued = true;
		graph_sim_schedule(s, actor, s->now + a->switch_ns);
		return;
	}
	replay_cpu_emit(
		s, actor, GRAPH_VERB_dequeue, processor, 1, a->state, GRAPH_LAST | GRAPH_EXPLAINED);
	graph_sim_run_on(s, actor);
}

static uint32_t replay_cpu_first_of(const struct sim *s, uint32_t actor)
{
	uint32_t p = 0;

	while (p + 1 < s->nr_processors && !sim_may_use(s, actor, p))
		p++;
	return p;
}

static void queue_up(struct sim *s, uint32_t actor, enum sim_phase phase)
{
	struct sim_actor *a = &s->actor[actor];

	if (a->home == REPLAY_NONE)
		a->home = replay_cpu_first_of(s, actor);
	replay_cpu_append(s, run_queue(s, a->home), actor);
	a->phase = (uint8_t)phase;
	a->since_ns = s->now;
	if (phase == SIM_QUEUES)
		replay_cpu_emit(s, actor, GRAPH_VERB_wait_empty, 0, 1, s->runnable_state, 0);
}

/* ---- to a processor -------------------------------------------------------------------------- */

/* Its own; when they were few, those of all. */
static const struct replay_switches *switches_of(const struct sim *s, uint32_t actor)
{
	const struct replay_switches *seen = &s->r->actor[actor].switches;

	return seen->nr < SEEN ? &s->r->switches : seen;
}

/* Does Linux look for an idle processor that the woken thread did not have before? Not where most
 * of them are busy (SIS_UTIL, since 6.0: update_idle_cpu_scan()). */
static bool looks_for_idle(const struct sim *s)
{
	double busy = 0;

	for (uint32_t p = 0; p < s->nr_processors; p++)
		busy += load_now(s, &s->load[p]);
	busy /= s->nr_processors;
	return (1 - IMBALANCE * IMBALANCE * busy * busy) * s->nr_processors >= 1;
}

/* Its own or another, idle and nobody's who comes; REPLAY_NONE: there is none. */
uint32_t graph_sim_idle_for(const struct sim *s, uint32_t actor)
{
	const struct sim_actor *a = &s->actor[actor];
	bool looks = !s->places || a->home == REPLAY_NONE || looks_for_idle(s);

	if (s->quota.is_used_up)
		return REPLAY_NONE;
	if (s->places && a->home != REPLAY_NONE && s->user[a->home] == REPLAY_NONE &&
		!s->coming[a->home])
		return a->home;
	for (uint32_t i = looks ? s->nr_idle : 0; i-- > 0;) {
		if (!s->coming[s->idle[i]] && sim_may_use(s, actor, s->idle[i]))
			return s->idle[i];
	}
	return REPLAY_NONE;
}

static void replay_cpu_drop_idle(struct sim *s, uint32_t processor)
{
	uint32_t i = s->nr_idle - 1;

	while (s->idle[i] != processor)
		i--;
	for (s->nr_idle--; i < s->nr_idle; i++)
		s->idle[i] = s->idle[i + 1];
}

static void take_idle(struct sim *s, uint32_t actor, uint32_t processor)
{
	replay_cpu_drop_idle(s, processor);
	take_processor(s, actor, processor);
}

/*
 * None is idle: woken through a pipe, to its waker's, when nobody else waits there; else to where
 * less has executed, its own or its waker's (Linux: wake_affine()).
 */
void graph_sim_follow(struct sim *s, uint32_t actor, uint32_t queue)
{
	uint32_t to = s->current != REPLAY_NONE ? s->actor[s->current].processor : REPLAY_NONE;
	struct sim_actor *a = &s->actor[actor];

	if (!s->places || to == REPLAY_NONE || a->home == REPLAY_NONE || !sim_may_use(s, actor, to))
		return;
	if ((s->r->queue[queue].o.hands_over && s->run[to].head == REPLAY_NONE && !s->coming[to]) ||
		load_now(s, &s->load[to]) + load_now(s, &a->load) <
			load_now(s, &s->load[a->home]) * AFFINE)
		a->home = to;
}

uint32_t graph_sim_come(struct sim *s, uint32_t actor)
{
	uint32_t processor = s->places ? graph_sim_idle_for(s, actor) : REPLAY_NONE;

	if (processor != REPLAY_NONE)
		s->coming[processor]++;
	return processor;
}

/* Where it was to come to, if that is idle still. */
static void replay_cpu_arrive(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint32_t processor = a->coming_to;

	if (processor == REPLAY_NONE)
		return;
	s->coming[processor]--;
	a->coming_to = REPLAY_NONE;
	if (s->user[processor] == REPLAY_NONE && !s->quota.is_used_up)
		take_idle(s, actor, processor);
}

static bool get_processor(struct sim *s, uint32_t actor, enum sim_phase queued)
{
	uint32_t processor;

	if (s->actor[actor].processor != REPLAY_NONE)
		return true;
	processor = graph_sim_idle_for(s, actor);
	if (processor == REPLAY_NONE) {
		queue_up(s, actor, queued);
		return false;
	}
	take_idle(s, actor, processor);
	return true;
}

static void replay_cpu_leave(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint32_t state = a->state;

	s->left[a->processor] = true;
	s->user[a->processor] = REPLAY_NONE;
	replay_cpu_emit(s, actor, GRAPH_VERB_dequeue, a->processor, GRAPH_ALL, state,
		GRAPH_BACK | GRAPH_ASIDE);
	replay_cpu_emit(s, actor, GRAPH_VERB_enqueue, a->processor, 1, state, GRAPH_ASIDE);
	if (s->places) {
		set_load(s, &s->load[a->processor], false);
		set_load(s, &a->load, false);
	}
	a->processor = REPLAY_NONE;
	a->ran_ns = s->now;
	graph_sim_count_running(s, false);
}

void graph_sim_release_processor(struct sim *s, uint32_t actor)
{
	uint32_t processor = s->actor[actor].processor, next = REPLAY_NONE;

	if (processor == REPLAY_NONE)
		return;
	replay_cpu_leave(s, actor);
	if (!s->quota.is_used_up)
		next = replay_cpu_take_first(s, run_queue(s, processor), processor, 0);
	if (next == REPLAY_NONE && !s->quota.is_used_up)
		next = take_cold(s, processor);
	if (next != REPLAY_NONE)
		dispatch(s, processor, next);
	else
		s->idle[s->nr_idle++] = processor;
}

/* An actor that has waited beside an idle processor long enough comes to it with the next tick
 * (Linux: the balancing that busy processors start for idle ones). */
static void balance(struct sim *s)
{
	for (uint32_t i = s->places ? s->nr_idle : 0; i-- > 0;) {
		uint32_t processor = s->idle[i], next = REPLAY_NONE;

		if (!s->coming[processor])
			next = take_cold(s, processor);
		if (next == REPLAY_NONE)
			continue;
		replay_cpu_drop_idle(s, processor);
		dispatch(s, processor, next);
	}
}

/* Its event on a processor; true: its work is not done yet. */
bool graph_sim_slice_ended(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint64_t did = s->now - a->since_ns;
	uint32_t processor = a->processor;
	uint32_t next;

	a->left_ns = a->left_ns > did ? a->left_ns - did : 0;
	if (!a->left_ns)
		return false;
	balance(s);
	next = replay_cpu_take_first(s, run_queue(s, processor), processor, 0);
	if (next != REPLAY_NONE) {
		replay_cpu_leave(s, actor);
		queue_up(s, actor, SIM_QUEUES);
		dispatch(s, processor, next);
	} else {
		graph_sim_run_on(s, actor);
	}
	return true;
}

/* ---- nobody may run -------------------------------------------------------------------------- */

void graph_sim_stop_all(struct sim *s)
{
	for (uint32_t p = 0; p < s->nr_processors; p++) {
		uint32_t actor = s->user[p];
		struct sim_actor *a = actor != REPLAY_NONE ? &s->actor[actor] : NULL;
		uint64_t did = a ? s->now - a->since_ns : 0;

		if (!a || a->phase != SIM_RUNS)
			continue;
		a->left_ns = a->left_ns > did ? a->left_ns - did : 0;
		graph_sim_unschedule(s, actor);
		graph_sim_release_processor(s, actor);
		queue_up(s, actor, SIM_QUEUES);
		a->ran_ns = 0; /* not kept there for its caches' sake */
	}
}

void graph_sim_start_all(struct sim *s)
{
	for (uint32_t i = s->nr_idle; i-- > 0;) {
		uint32_t processor = s->idle[i];
		uint32_t next = replay_cpu_take_first(s, run_queue(s, processor), processor, 0);

		if (next == REPLAY_NONE)
			next = take_cold(s, processor);
		if (next == REPLAY_NONE)
			continue;
		replay_cpu_drop_idle(s, processor);
		dispatch(s, processor, next);
	}
}

bool graph_sim_is_held_up(const struct sim *s)
{
	for (uint32_t p = 0; s->quota.is_used_up && p < s->nr_processors; p++)
		if (s->run[p].head != REPLAY_NONE)
			return true;
	return false;
}

/* ---- preemption ------------------------------------------------------------------------------ */

/* On its own processor; when nothing was learned, the actor that has run longest at a stretch
 * anywhere. */
static uint32_t whom_to_preempt(const struct sim *s, uint32_t actor)
{
	const struct sim_actor *a = &s->actor[actor];
	uint32_t victim = REPLAY_NONE;

	for (uint32_t i = 0; i < s->nr_processors; i++) {
		uint32_t user = s->user[i];

		if (user == REPLAY_NONE || s->actor[user].phase != SIM_RUNS ||
			!sim_may_use(s, actor, i))
			continue;
		if (s->places && i == a->home)
			return user;
		if (!s->places && (victim == REPLAY_NONE || s->actor[user].slice_end_ns <
								    s->actor[victim].slice_end_ns))
			victim = user;
	}
	return victim;
}

/* As often as in the run, by turns or by chance; of an actor that hardly had the choice there, as
 * often as all had it. */
static bool preempts(struct sim *s, uint32_t actor)
{
	const struct replay_switches *seen = switches_of(s, actor);
	struct sim_actor *a = &s->actor[actor];

	if (s->assumed.preempts)
		return true;
	if (!s->places || seen->nr < SEEN)
		return false;
	if (s->assumed.jitter)
		return sim_dice(s, s->now) * seen->nr < seen->nr_preempting;
	a->preempts += (double)seen->nr_preempting / seen->nr;
	if (a->preempts < 1)
		return false;
	a->preempts -= 1;
	return true;
}

/* The one that has to go is the next to have that processor again. */
static bool preempt(struct sim *s, uint32_t actor)
{
	uint32_t victim = whom_to_preempt(s, actor), processor;
	struct sim_actor *v;

	if (victim == REPLAY_NONE || !preempts(s, actor))
		return false;
	v = &s->actor[victim];
	processor = v->processor;
	v->left_ns -= s->now - v->since_ns < v->left_ns ? s->now - v->since_ns : v->left_ns;
	graph_sim_unschedule(s, victim);
	replay_cpu_leave(s, victim);
	prepend(s, run_queue(s, processor), victim);
	v->phase = SIM_QUEUES;
	v->since_ns = s->now;
	replay_cpu_emit(s, victim, GRAPH_VERB_wait_empty, 0, 1, s->runnable_state, 0);
	take_processor(s, actor, processor);
	return true;
}

bool graph_sim_come_on(struct sim *s, uint32_t actor, enum sim_phase queued)
{
	struct sim_actor *a = &s->actor[actor];

	replay_cpu_arrive(s, actor);
	if (s->quota.is_used_up) {
		graph_sim_release_processor(s, actor);
		queue_up(s, actor, queued);
		return false;
	}
	if (a->processor == REPLAY_NONE && graph_sim_idle_for(s, actor) == REPLAY_NONE &&
		preempt(s, actor))
		return true;
	return get_processor(s, actor, queued);
}
