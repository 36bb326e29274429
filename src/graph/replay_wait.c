/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_wait.c - simulated queues: what a moment needs, who waits for it, who is called when it
 * comes. A token is promised to the first in line, which comes for it after its latency; an actor
 * that asks in between without waiting gets it all the same, as with real locks.
 */
#include "graph/replay_sim.h"

/* ---- what a step needs ----------------------------------------------------------------------- */

/* A queue that begins with tokens, and is no GRAPH_POOL: they are taken without asking a kernel. */
static bool replay_wait_is_lock(const struct sim *s, uint32_t queue)
{
	const struct graph_queue_options *o = &s->r->queue[queue].o;

	return o->discipline != GRAPH_POOL && replay_is_pool(o);
}

static uint64_t replay_wait_key_of(const struct sim *s, const struct replay_step *step)
{
	const struct replay_wide *w = replay_wide(s->r, step);

	return w ? w->key : 0;
}

static uint64_t promised_key(const struct sim *s, const struct replay_step *step)
{
	uint64_t n = 0;

	base_map_get(&s->promised_keys, step->queue, replay_wait_key_of(s, step), &n);
	return n;
}

/*
 * What is promised to somebody who is on the way: a lock can be snatched all the same, and so can
 * other units, by actors that took them without a wait in the run, too. A barrier's token never,
 * nor an rwlock.
 */
static uint64_t reserved(const struct sim *s, const struct replay_step *step, uint32_t actor)
{
	const struct sim_actor *a = &s->actor[actor];
	enum replay_class class = replay_class(replay_step(s->r, a->cursor));

	if (a->listed || a->promised || replay_wait_is_lock(s, step->queue) ||
		(class == REPLAY_RUN && !s->r->queue[step->queue].o.handed))
		return 0;
	if (BASE_UNLIKELY(replay_flags(step) & GRAPH_KEYED))
		return promised_key(s, step);
	return s->queue[step->queue].promised[0];
}

/* Somebody waits to look at units with this key, and did so earlier in the run: a look that comes
 * after they were taken would never end. */
static bool is_looked_for(const struct sim *s, const struct replay_step *step, uint32_t actor)
{
	const struct sim_queue *q = &s->queue[step->queue];

	for (uint32_t i = q->nr_looking ? q->waiters[0].head : REPLAY_NONE; i != REPLAY_NONE;
		i = s->actor[i].next) {
		const struct sim_actor *a = &s->actor[i];
		const struct replay_step *other = replay_step(s->r, a->cursor);

		if (i != actor && a->cursor < s->actor[actor].cursor &&
			replay_kind(other) == GRAPH_VERB_peek &&
			replay_flags(other) & GRAPH_KEYED && other->queue == step->queue &&
			replay_wait_key_of(s, other) == replay_wait_key_of(s, step))
			return true;
	}
	return false;
}

static bool has_units(const struct sim *s, const struct replay_step *step, uint32_t actor)
{
	const struct sim_queue *q = &s->queue[step->queue];
	const struct replay_wide *w = replay_wide(s->r, step);
	uint32_t flags = replay_flags(step);
	uint64_t need = replay_need(s->r, step);

	if (step->bits & REPLAY_FREE || q->ignored || !need)
		return true;
	if (sim_needs_nothing(s, actor, step->queue, false))
		return true;
	if (step->bits & REPLAY_COUNTED)
		return q->nr_puts >= w->ordinal;
	if (BASE_UNLIKELY(flags & GRAPH_KEYED))
		return graph_replay_ring_units(&q->keyed, replay_wait_key_of(s, step)) >=
			       need + reserved(s, step, actor) &&
		       (replay_class(replay_step(s->r, s->actor[actor].cursor)) == REPLAY_RUN ||
			       !is_looked_for(s, step, actor));
	return q->units >= (int64_t)(need + reserved(s, step, actor));
}

static bool has_space(const struct sim *s, const struct replay_step *step, uint32_t actor)
{
	const struct sim_queue *q = &s->queue[step->queue];

	if (step->bits & REPLAY_FREE || q->ignored || q->capacity == GRAPH_UNLIMITED ||
		sim_needs_nothing(s, actor, step->queue, true))
		return true;
	if (step->bits & REPLAY_COUNTED && !q->edited)
		return q->nr_takes >= replay_wide(s->r, step)->ordinal;
	return q->units + (int64_t)replay_need(s->r, step) <= (int64_t)q->capacity;
}

static bool is_step_met(
	const struct sim *s, const struct replay_step *step, uint32_t actor, bool *ret_space)
{
	unsigned kind = replay_kind(step);

	*ret_space = kind == GRAPH_VERB_enqueue || kind == GRAPH_VERB_reserve;
	if (kind == GRAPH_VERB_dequeue || kind == GRAPH_VERB_peek)
		return has_units(s, step, actor);
	return !*ret_space || has_space(s, step, actor);
}

bool graph_sim_is_step_met(const struct sim *s, const struct replay_step *step, uint32_t actor)
{
	bool space;

	return is_step_met(s, step, actor, &space);
}

static bool is_lent(const struct sim *s, const struct sim_actor *a, unsigned i)
{
	return a->held[i].n && (a->lent_locks || !s->r->queue[a->held[i].queue].exclusive);
}

/* What it had to give back meanwhile it needs again. */
static bool has_lent(const struct sim *s, uint32_t actor, uint32_t *ret_queue, bool *ret_space)
{
	const struct replay_held *held = s->actor[actor].held;

	for (unsigned i = 0; i < REPLAY_HELD; i++) {
		if (is_lent(s, &s->actor[actor], i) &&
			s->queue[held[i].queue].units < (int64_t)held[i].n) {
			*ret_queue = held[i].queue;
			*ret_space = false;
			return false;
		}
	}
	return true;
}

bool graph_sim_is_met(struct sim *s, uint32_t actor, uint32_t *ret_queue, bool *ret_space)
{
	uint32_t i = s->actor[actor].cursor;

	if (s->actor[actor].elides || s->actor[actor].given)
		return true;
	do {
		const struct replay_step *step = replay_step(s->r, i);

		if (!is_step_met(s, step, actor, ret_space)) {
			*ret_queue = step->queue;
			return false;
		}
		i = replay_next_of_moment(s->r, step);
	} while (i != REPLAY_NONE);
	return !s->actor[actor].lent || has_lent(s, actor, ret_queue, ret_space);
}

/* ---- lists of waiters ------------------------------------------------------------------------ */

/*
 * Whoever takes some units of the queue, whichever they are, and nothing else can only be called
 * when a unit is there that is promised to nobody. Others are odd: each of them must be looked at.
 */
static bool is_odd(const struct sim *s, const struct sim_actor *a, uint32_t queue)
{
	const struct replay_step *step = replay_step(s->r, a->cursor);

	return a->elides || a->lent || s->needless.nr_used || step->queue != queue ||
	       replay_kind(step) != GRAPH_VERB_dequeue || !replay_need(s->r, step) ||
	       step->bits & (REPLAY_FREE | REPLAY_COUNTED) ||
	       replay_flags(step) & (GRAPH_KEYED | GRAPH_MORE);
}

/* Does it only look at units with a key? An actor that takes them lets such ones look first (is_looked_for()). */
static bool replay_wait_looks(const struct sim *s, const struct sim_actor *a, uint32_t queue)
{
	const struct replay_step *step = replay_step(s->r, a->cursor);

	return replay_kind(step) == GRAPH_VERB_peek && replay_flags(step) & GRAPH_KEYED &&
	       step->queue == queue;
}

static void set_listed(struct sim *s, struct sim_actor *a, enum sim_listed listed)
{
	struct sim_queue *q = &s->queue[a->queue];

	q->nr_odd += (uint32_t)(listed >= SIM_ODD) - (a->listed >= SIM_ODD);
	q->nr_looking += (uint32_t)(listed == SIM_LOOKS) - (a->listed == SIM_LOOKS);
	a->listed = (uint8_t)listed;
}

static void unlist(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	struct sim_list *l = &s->queue[a->queue].waiters[a->space];

	if (!a->listed)
		return;
	*(a->prev == REPLAY_NONE ? &l->head : &s->actor[a->prev].next) = a->next;
	*(a->next == REPLAY_NONE ? &l->tail : &s->actor[a->next].prev) = a->prev;
	set_listed(s, a, SIM_UNLISTED);
}

/* What the step takes when its actor is called, so that nobody else is called for it. */
static uint64_t replay_wait_wanted(
	const struct sim *s, const struct replay_step *step, bool *ret_space)
{
	unsigned kind = replay_kind(step);

	*ret_space = kind == GRAPH_VERB_enqueue;
	if (step->bits & REPLAY_COUNTED || replay_flags(step) & GRAPH_KEYED)
		return 0;
	return kind == GRAPH_VERB_dequeue || kind == GRAPH_VERB_enqueue ? replay_need(s->r, step)
									: 0;
}

/* From now on, takes by others count as overtakings. */
static void count_overtakings(struct sim *s, struct sim_actor *a)
{
	if (!a->counting && a->nr_overtaken)
		a->takes_then = s->queue[a->overtaken_on].nr_takes;
	a->counting = true;
}

static void find_overtaken(struct sim *s, struct sim_actor *a)
{
	uint32_t i = a->cursor;

	a->nr_overtaken = 0;
	a->counting = false;
	do {
		const struct replay_step *step = replay_step(s->r, i);
		const struct replay_wide *w = replay_wide(s->r, step);

		if (w && w->nr_overtaken) {
			a->nr_overtaken = w->nr_overtaken;
			a->slow_ns = w->slow_ns;
			a->overtaken_on = step->queue;
		}
		i = replay_next_of_moment(s->r, step);
	} while (i != REPLAY_NONE);
	/* Where it waits for something else first (a signal), they count only after that. */
	if (a->nr_overtaken && a->overtaken_on == a->wait_queue)
		count_overtakings(s, a);
}

/* Is it at the beginning of a life? Then it has not waited yet, whenever the simulation came to it.
 */
static bool replay_wait_begins(const struct sim *s, uint32_t actor)
{
	return s->actor[actor].cursor == s->r->actor[actor].head;
}

/* Behind those that wait; lives that begin are in the log's order among themselves. */
static void list_on(struct sim *s, uint32_t actor, uint32_t queue, bool space)
{
	struct sim_actor *a = &s->actor[actor];
	struct sim_list *l = &s->queue[queue].waiters[space];
	uint32_t before = l->tail, after;

	while (before != REPLAY_NONE && s->actor[before].cursor > a->cursor &&
		replay_wait_begins(s, before) && replay_wait_begins(s, actor))
		before = s->actor[before].prev;
	after = before == REPLAY_NONE ? l->head : s->actor[before].next;
	a->queue = queue;
	a->space = space;
	set_listed(s, a,
		space                            ? SIM_PLAIN
		: replay_wait_looks(s, a, queue) ? SIM_LOOKS
		: is_odd(s, a, queue)            ? SIM_ODD
						 : SIM_PLAIN);
	a->prev = before;
	a->next = after;
	*(before == REPLAY_NONE ? &l->head : &s->actor[before].next) = actor;
	*(after == REPLAY_NONE ? &l->tail : &s->actor[after].prev) = actor;
	if (a->nr_overtaken && a->overtaken_on == queue)
		count_overtakings(s, a);
}

void graph_sim_wait(struct sim *s, uint32_t actor, uint32_t queue, bool space)
{
	struct sim_actor *a = &s->actor[actor];

	a->phase = SIM_WAITS;
	if (a->listed && a->queue == queue && a->space == space)
		return; /* keeps its place */
	if (!a->listed) {
		a->wait_begin_ns = s->now;
		a->awake = false;
		find_overtaken(s, a);
	}
	unlist(s, actor);
	list_on(s, actor, queue, space);
}

void graph_sim_stop_waiting(struct sim *s, uint32_t actor)
{
	unlist(s, actor);
}

/* ---- calling --------------------------------------------------------------------------------- */

/* How often the run says it will yet be overtaken. */
static uint64_t still_overtaken(const struct sim *s, const struct sim_actor *a)
{
	uint64_t by = a->counting && a->nr_overtaken
			      ? s->queue[a->overtaken_on].nr_takes - a->takes_then
			      : 0;

	return by < a->nr_overtaken ? a->nr_overtaken - by : 0;
}

/* Nobody knows since when it waited. */
static bool is_first(const struct sim *s, const struct sim_actor *a)
{
	return a->cursor == s->r->actor[a - s->actor].head;
}

/* Does it sleep in this wait? As it did in the run; in a new one as most waits for that queue, or
 * all when there was none. */
static bool sleeps(const struct sim *s, const struct replay_step *step, uint32_t queue)
{
	const struct replay_log_queue *lq = &s->r->queue[queue];

	if (replay_class(step) == REPLAY_EXPLAINED)
		return step->bits & REPLAY_SLEPT;
	return lq->nr_asleep * 2 >= lq->nr_waits;
}

/* In the run it mostly waited for its own, while another was none of ours': some other program's.
 */
static bool beside_idle(const struct sim *s, const struct sim_actor *a)
{
	const struct replay_switches *seen = &s->r->actor[a - s->actor].switches;

	return seen->nr_beside_idle * 2 > seen->nr;
}

/*
 * Does it come as soon as it has a processor, since none is idle? As in the run where nothing was
 * seen of the kind, and where nothing woke it; else the simulation decides.
 */
static bool comes_by_switch(const struct sim *s, const struct sim_actor *a)
{
	const struct replay_step *step = replay_step(s->r, a->cursor);

	if (!s->nr_processors)
		return false;
	if (!s->places || !sim_executes(s, step->state) || !sleeps(s, step, a->queue))
		return step->bits & REPLAY_ON_PROCESSOR;
	if (step->bits & REPLAY_ON_PROCESSOR && beside_idle(s, a))
		return true;
	return graph_sim_idle_for(s, (uint32_t)(a - s->actor)) == REPLAY_NONE;
}

/* So long other programs keep it from a processor when it is woken, as in the run. (Not in a wait that
 * the run did not have: nobody knows, and a lock that is kept for it meanwhile holds up all.) */
static uint64_t held_up(const struct sim *s, const struct sim_actor *a)
{
	const struct replay_step *step = replay_step(s->r, a->cursor);

	if (replay_class(step) != REPLAY_EXPLAINED || BASE_LIKELY(!step->late_ns))
		return 0;
	return sim_scaled(s, s->runnable_state, step->late_ns);
}

/* From then on. */
static uint64_t latency(
	const struct sim *s, const struct sim_actor *a, bool overtaken, bool by_switch)
{
	const struct replay_step *step = replay_step(s->r, a->cursor);
	uint32_t state = s->r->queue[a->queue].o.latency_state;
	bool other = by_switch != !!(step->bits & REPLAY_ON_PROCESSOR) && s->nr_processors;
	bool explained = replay_class(step) == REPLAY_EXPLAINED;
	uint64_t ns, own = replay_own(s->r, step) - (explained ? step->late_ns : 0);

	if (by_switch && other)
		ns = s->r->switch_ns; /* (0: none was seen) */
	else if (other)
		ns = graph_replay_latency_usual(s->r, state, s->now - a->wait_begin_ns);
	else if (explained && (a->nr_overtaken || s->assumed.as_recorded || is_first(s, a)))
		ns = own;
	else if (explained)
		ns = graph_replay_latency_moved(s->r, state, own, step->bits >> REPLAY_WAITED_SHIFT,
			s->now - a->wait_begin_ns);
	else
		ns = graph_replay_latency_usual(s->r, state, s->now - a->wait_begin_ns);
	if (s->assumed.unrecorded && sleeps(s, step, a->queue))
		ns -= ns < s->r->record_ns ? ns : s->r->record_ns;
	if (BASE_UNLIKELY(s->assumed.late_more != 0) && sleeps(s, step, a->queue))
		ns = (uint64_t)((double)ns * (1 + s->assumed.late_more) + 0.5);
	if (overtaken && a->slow_ns && ns <= a->slow_ns)
		ns = a->slow_ns + 1;
	return sim_scaled(s, state, ns);
}

/* The moment's next step; NULL: there is none. */
static const struct replay_step *next_of_moment(const struct sim *s, const struct replay_step *step)
{
	uint32_t i = replay_next_of_moment(s->r, step);

	return i == REPLAY_NONE ? NULL : replay_step(s->r, i);
}

/* Does it take units with this key? Then others that want them wait until it has. */
static bool takes_key(const struct replay_step *step)
{
	return replay_kind(step) == GRAPH_VERB_dequeue && replay_flags(step) & GRAPH_KEYED &&
	       !(step->bits & (REPLAY_COUNTED | REPLAY_FREE));
}

static bool is_promised_away(const struct sim *s, const struct sim_actor *a)
{
	const struct replay_step *step = replay_step(s->r, a->cursor);

	for (; step; step = next_of_moment(s, step)) {
		const struct sim_queue *q = &s->queue[step->queue];
		bool space;
		uint64_t n = replay_wait_wanted(s, step, &space);

		if (BASE_UNLIKELY(takes_key(step)) &&
			graph_replay_ring_units(&q->keyed, replay_wait_key_of(s, step)) <
				promised_key(s, step) + replay_need(s->r, step))
			return true;
		if (!n || !q->promised[space])
			continue;
		if (space ? q->capacity != GRAPH_UNLIMITED &&
					q->units + (int64_t)(q->promised[1] + n) >
						(int64_t)q->capacity
			  : q->units < (int64_t)(q->promised[0] + n))
			return true;
	}
	return false;
}

static void promise_key(struct sim *s, const struct replay_step *step, bool keep)
{
	uint64_t n = replay_need(s->r, step);
	enum base_status status = base_map_put(&s->promised_keys, step->queue,
		replay_wait_key_of(s, step), promised_key(s, step) + (keep ? n : -n));

	if (status && !s->status)
		s->status = base_fail(s->err, status, "no memory for a simulation");
}

static void promise(struct sim *s, struct sim_actor *a, bool keep)
{
	const struct replay_step *step;

	if (a->promised == keep)
		return;
	a->promised = keep;
	for (step = replay_step(s->r, a->cursor); step; step = next_of_moment(s, step)) {
		bool space;
		uint64_t n = replay_wait_wanted(s, step, &space);

		if (n)
			s->queue[step->queue].promised[space] += keep ? n : -n;
		else if (BASE_UNLIKELY(takes_key(step)))
			promise_key(s, step, keep);
	}
}

/* Is it a sleeper that nobody has woken in this wait? */
static bool replay_wait_wakes(const struct sim *s, struct sim_actor *a, uint32_t queue)
{
	const struct replay_step *step = replay_step(s->r, a->cursor);

	if (a->awake || !sim_executes(s, step->state) || !sleeps(s, step, queue))
		return false;
	a->awake = true;
	return true;
}

static void count_wake(struct sim *s, struct sim_actor *a, uint32_t queue, struct sim_woken *woken)
{
	if (!replay_wait_wakes(s, a, queue))
		return;
	if (s->nr_processors && !s->nr_idle) /* as the log counts (REPLAY_BUSY) */
		woken->nr_busy++;
	else
		woken->nr_idle++;
}

/* What it waits for may be put now, but not what it needs beside it: a signalled thread's mutex. */
static bool was_put(const struct sim *s, const struct sim_actor *a, uint32_t actor, uint32_t queue)
{
	const struct replay_step *step = replay_step(s->r, a->cursor);
	bool space;

	for (; step && step->queue != queue; step = next_of_moment(s, step))
		;
	return step && is_step_met(s, step, actor, &space);
}

/* All that wait want what is promised to others, or not there. */
static bool is_in_vain(const struct sim_queue *q, bool space)
{
	return !space && !q->nr_odd && !q->ignored && q->units <= (int64_t)q->promised[0];
}

/* The first whose turn it is in the run, too; else the first of all. */
static uint32_t whom_to_call(
	struct sim *s, uint32_t queue, bool space, bool *ret_overtaken, struct sim_woken *woken)
{
	uint32_t i = s->queue[queue].waiters[space].head, first = REPLAY_NONE, next;

	for (; i != REPLAY_NONE; i = next) {
		struct sim_actor *a = &s->actor[i];
		uint32_t other;
		bool other_space;

		next = a->next;
		if (a->phase != SIM_WAITS)
			continue;
		if (!graph_sim_is_met(s, i, &other, &other_space)) {
			if (other != queue || other_space != space) {
				if (was_put(s, a, i, queue))
					count_wake(s, a, queue, woken);
				unlist(s, i);
				list_on(s, i, other, other_space);
			}
			continue;
		}
		if (is_promised_away(s, a))
			continue;
		if (!still_overtaken(s, a)) {
			*ret_overtaken = false;
			return i;
		}
		if (first == REPLAY_NONE)
			first = i;
	}
	*ret_overtaken = true;
	return first;
}

void graph_sim_call(struct sim *s, uint32_t queue, bool space, struct sim_woken *woken)
{
	bool overtaken;
	uint32_t i;

	while (s->queue[queue].waiters[space].head != REPLAY_NONE &&
		!is_in_vain(&s->queue[queue], space) &&
		(i = whom_to_call(s, queue, space, &overtaken, woken)) != REPLAY_NONE) {
		struct sim_actor *a = &s->actor[i];
		bool by_switch = comes_by_switch(s, a);

		promise(s, a, true);
		a->phase = SIM_CALLED;
		count_wake(s, a, queue, woken);
		count_overtakings(s, a);
		a->early = overtaken;
		a->switch_ns = latency(s, a, overtaken, by_switch);
		if (by_switch) {
			graph_sim_follow(s, i, queue);
			graph_sim_schedule(s, i, s->now + held_up(s, a));
		} else {
			graph_sim_schedule(s, i, s->now + held_up(s, a) + a->switch_ns);
			a->switch_ns = 0;
			if (s->nr_processors &&
				sim_executes(s, replay_step(s->r, a->cursor)->state))
				a->coming_to = graph_sim_come(s, i);
		}
	}
}

/*
 * It was called when others were to come before it. Some have, and put the token back: its latency
 * counts from then, as it was recorded.
 */
bool graph_sim_is_early(struct sim *s, uint32_t actor, uint64_t *ret_ns)
{
	struct sim_actor *a = &s->actor[actor];

	if (!a->early)
		return false;
	a->early = still_overtaken(s, a);
	*ret_ns = s->queue[a->queue].last_put_ns + held_up(s, a) +
		  latency(s, a, a->early, replay_step(s->r, a->cursor)->bits & REPLAY_ON_PROCESSOR);
	return *ret_ns > s->now;
}

/* It keeps its recorded wait's length; what it will take is there, and stays until then. */
bool graph_sim_promise(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint32_t queue;
	bool space;

	if (!graph_sim_is_met(s, actor, &queue, &space))
		return false;
	if (!is_promised_away(s, a))
		promise(s, a, true);
	return true;
}

/* It has come for what it was promised. */
bool graph_sim_end_promise(struct sim *s, uint32_t actor)
{
	bool promised = s->actor[actor].promised;

	promise(s, &s->actor[actor], false);
	return promised;
}

/* What it was promised it did not take: others may want it. */
void graph_sim_call_others(struct sim *s, uint32_t actor)
{
	const struct replay_step *step = replay_step(s->r, s->actor[actor].cursor);
	struct sim_woken by_nobody = {0};

	for (; step; step = next_of_moment(s, step)) {
		bool space;

		if (replay_wait_wanted(s, step, &space))
			graph_sim_call(s, step->queue, space, &by_nobody);
	}
}

/* ---- lending --------------------------------------------------------------------------------- */

/*
 * It took without a wait in the run; here what it wants is not there yet. A program would find
 * nothing and go: it must not keep a processor from the one that brings it.
 */
void graph_sim_lend(struct sim *s, uint32_t actor, bool locks)
{
	struct sim_actor *a = &s->actor[actor];
	struct sim_woken by_nobody = {0};

	if (a->lent)
		return;
	a->lent_locks = locks;
	for (unsigned i = 0; i < REPLAY_HELD; i++) {
		if (is_lent(s, a, i)) {
			s->queue[a->held[i].queue].units += (int64_t)a->held[i].n;
			a->lent = true;
		}
	}
	if (a->lent && a->listed == SIM_PLAIN && !a->space)
		set_listed(s, a, SIM_ODD);
	for (unsigned i = 0; a->lent && i < REPLAY_HELD; i++) {
		if (is_lent(s, a, i))
			graph_sim_call(s, a->held[i].queue, false, &by_nobody);
	}
}

void graph_sim_take_lent(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];

	for (unsigned i = 0; a->lent && i < REPLAY_HELD; i++) {
		if (is_lent(s, a, i))
			s->queue[a->held[i].queue].units -= (int64_t)a->held[i].n;
	}
	a->lent = false;
}

static void replay_wait_follow_pool(
	struct sim *s, uint32_t actor, const struct replay_step *step, bool take)
{
	const struct replay_log_queue *lq = &s->r->queue[step->queue];
	uint64_t n = replay_need(s->r, step);
	struct replay_held *h;

	if ((lq->o.discipline != GRAPH_POOL && !lq->exclusive) || lq->handed_on || !n)
		return;
	h = replay_held(s->actor[actor].held, step->queue, take);
	if (h)
		h->n = take ? h->n + n : h->n - (n < h->n ? n : h->n);
}

/* ---- doing ----------------------------------------------------------------------------------- */

static void replay_wait_fail_memory(struct sim *s, enum base_status status)
{
	if (!s->status)
		s->status = status;
}

static void replay_wait_push(struct sim *s, struct replay_ring *ring, uint64_t key, uint64_t n)
{
	struct replay_memory m = {
		.used_bytes = &s->used_bytes, .max_bytes = s->r->max_memory_bytes};
	struct replay_item item = {.time_ns = s->now, .nr_units = n, .key = key};

	if (n)
		replay_wait_fail_memory(s, graph_replay_ring_push(m, ring, item, s->err));
}

/* What somebody took already is his. */
static void put_keyed(struct sim *s, struct sim_queue *q, uint64_t key, uint64_t n)
{
	struct replay_take owed = {.keyed = true, .key = key, .n = n};
	struct replay_item ignored;

	replay_wait_push(s, &q->keyed, key, n - graph_replay_ring_take(&q->owed, &owed, &ignored));
}

static bool replay_wait_put_units(struct sim *s, const struct replay_step *step, uint64_t n)
{
	struct sim_queue *q = &s->queue[step->queue];
	const struct replay_wide *w = replay_wide(s->r, step);

	if (!n)
		return false;
	q->nr_puts++;
	q->last_put_ns = s->now;
	q->units += (int64_t)n;
	if (q->units > 0 && (uint64_t)q->units > q->most)
		q->units = (int64_t)q->most;
	if (s->r->queue[step->queue].keyed)
		put_keyed(s, q, w ? w->key : 0, n);
	return true;
}

static bool take_units(struct sim *s, uint32_t actor, const struct replay_step *step, uint64_t n)
{
	struct sim_queue *q = &s->queue[step->queue];
	const struct replay_log_queue *lq = &s->r->queue[step->queue];
	const struct replay_wide *w = replay_wide(s->r, step);
	bool back = replay_flags(step) & GRAPH_BACK && !lq->exclusive;
	bool owe = !back && sim_needs_nothing(s, actor, step->queue, false);
	struct replay_item ignored;
	uint64_t missing = 0;

	if (!back)
		q->nr_takes++;
	if (lq->keyed) {
		struct replay_take take = {.discipline = lq->o.discipline,
			.keyed = replay_flags(step) & GRAPH_KEYED,
			.key = w ? w->key : 0,
			.n = n};

		if (back)
			graph_replay_ring_take_back(&q->keyed, n);
		else
			missing = n - graph_replay_ring_take(&q->keyed, &take, &ignored);
		if (take.keyed && owe)
			replay_wait_push(s, &q->owed, take.key, missing);
	}
	if (!(replay_is_pool(&lq->o) && !back) && !owe && q->units < (int64_t)n)
		n = q->units > 0 ? (uint64_t)q->units : 0;
	q->units -= (int64_t)n;
	return true;
}

bool graph_sim_do_step(struct sim *s, uint32_t actor, const struct replay_step *step)
{
	uint64_t n = replay_need(s->r, step);

	switch (replay_kind(step)) {
	case GRAPH_VERB_enqueue:
		replay_wait_follow_pool(s, actor, step, false);
		return replay_wait_put_units(s, step, n);
	case GRAPH_VERB_dequeue:
		replay_wait_follow_pool(s, actor, step, true);
		return take_units(s, actor, step, n);
	case GRAPH_VERB_resize:
		if (!(step->bits & REPLAY_SHRINKS))
			return replay_wait_put_units(s, step, n);
		if (s->queue[step->queue].units < (int64_t)n)
			n = s->queue[step->queue].units > 0 ? (uint64_t)s->queue[step->queue].units
							    : 0;
		s->queue[step->queue].units -= (int64_t)n;
		graph_replay_ring_take_back(&s->queue[step->queue].keyed, n);
		return n;
	default:
		return false;
	}
}
