/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_moment.c - an actor's moment is logged: what ended the wait before it, and how long after;
 * or how long what it did took. And how many actors executed at once.
 */
#include "graph/replay_priv.h"

/* ---- actors that execute at once ------------------------------------------------------------- */

bool graph_replay_is_busy(const struct graph_replay *r, const struct replay_log_actor *a)
{
	return a->started && !a->waits && !a->in_hole && !a->slept && a->state < r->nr_states &&
	       r->executes[a->state];
}

/* Ours have all processors. */
bool graph_replay_are_all_busy(const struct graph_replay *r)
{
	return r->nr_processors && r->nr_busy >= r->nr_processors && r->nr_busy >= replay_usable(r);
}

/* Up to t; in it, how long ours had all processors. */
void graph_replay_pass_time(struct graph_replay *r, uint64_t t)
{
	uint64_t ns = t - r->busy_since;

	if (t < r->busy_since) /* of a moment known afterwards (GRAPH_DATED) */
		return;
	r->busy_ns[r->nr_busy] += ns;
	if (graph_replay_are_all_busy(r))
		r->full_ns += ns;
	else if (!r->nr_busy)
		r->none_ns += ns;
	r->busy_since = t;
}

enum base_status graph_replay_count_busy(
	struct graph_replay *r, bool before, bool after, uint64_t t, struct base_err *err)
{
	enum base_status s;

	if (before == after && r->busy_capacity)
		return BASE_OK;
	s = graph_replay_mem_need(
		r, &r->busy_ns, &r->busy_capacity, (size_t)r->nr_busy + 2, sizeof *r->busy_ns, err);
	if (s)
		return s;
	graph_replay_pass_time(r, t);
	r->nr_busy += (uint32_t)after - (uint32_t)before;
	return BASE_OK;
}

/* ---- a moment is over ------------------------------------------------------------------------ */

/* At one time the order of the log decides. */
static bool came_after(const struct replay_moment *m, const struct replay_log_actor *a)
{
	if (m->available_ns != a->t_last)
		return m->available_ns > a->t_last;
	return m->order > a->order_last;
}

/* How long it slept, and what woke it: a spinner is not woken. */
static void note_sleep(struct graph_replay *r, const struct replay_log_actor *a,
	const struct replay_moment *m, uint64_t wait_ns)
{
	struct replay_step *step = replay_step(r, m->first);
	struct replay_step *by = replay_step(r, m->waker != REPLAY_NONE ? m->waker : m->step);

	step->bits |= replay_length_class(wait_ns) << REPLAY_WAITED_SHIFT;
	r->queue[m->queue].nr_waits++;
	r->queue[m->queue].nr_asleep += a->asleep;
	if (a->asleep)
		step->bits |= REPLAY_SLEPT;
	if (a->asleep && step->state < r->nr_states && r->executes[step->state] &&
		replay_woke(by) < REPLAY_WOKE_MAX)
		by->bits += 1u << REPLAY_WOKE_SHIFT;
}

static void count_switch(struct replay_switches *to, bool preempting, bool beside_idle)
{
	to->nr++;
	to->nr_preempting += preempting;
	to->nr_beside_idle += beside_idle;
}

static void note_switch(struct graph_replay *r, struct replay_log_actor *a,
	const struct replay_moment *m, uint64_t latency_ns)
{
	const struct replay_step *by = replay_step(r, m->waker != REPLAY_NONE ? m->waker : m->step);

	if (!a->asleep)
		return;
	graph_replay_sample(&r->switched, latency_ns);
	count_switch(&r->switches, a->preempting, !replay_was_busy(by));
	count_switch(&a->switches, a->preempting, !replay_was_busy(by));
}

/* It could go on from then, and got a processor so much later that it is no hand-off: other programs
 * had that, since none of ours left it just then (graph_verb.came_ns). */
static uint32_t others_had_it(const struct replay_moment *m, uint64_t from_ns)
{
	uint64_t ns = m->came_ns - from_ns;

	if (!graph_came_late(m->came_ns, from_ns, m->t))
		return 0;
	return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static enum base_status set_wait(struct graph_replay *r, struct replay_log_actor *a,
	const struct replay_moment *m, uint64_t *own, enum replay_class *class,
	struct base_err *err)
{
	bool queued = a->switched && a->switch_from_ns > m->available_ns;
	struct replay_step *step = replay_step(r, m->first);
	uint64_t since = a->started ? a->t_last : m->available_ns;

	if (a->started && !(m->depends && came_after(m, a))) {
		*class = REPLAY_UNEXPLAINED;
		if (m->flags & GRAPH_EXPLAINED && a->wait_row != REPLAY_NONE)
			step->bits |= REPLAY_POLLS;
		if (m->flags & GRAPH_TIMED_OUT && step->bits & REPLAY_POLLS && !m->depends)
			graph_replay_begin_tick(a, m->t);
		if (!m->depends && *own && !(m->flags & GRAPH_EXPLAINED)) {
			r->nr_unexplained++;
			r->unexplained_ns += *own;
		}
		return BASE_OK;
	}
	graph_replay_end_ticks(a);
	if (graph_replay_met_tick(r, a, m)) {
		*class = REPLAY_UNEXPLAINED;
		return BASE_OK;
	}
	*class = REPLAY_EXPLAINED;
	*own = m->t - m->available_ns;
	if (a->started && m->available_ns == a->t_last)
		step->bits |= REPLAY_AT_ONCE;
	if (queued) { /* the simulation has its own processors */
		*own = m->t - a->switch_from_ns;
		step->bits |= REPLAY_ON_PROCESSOR;
	}
	step->late_ns = others_had_it(m, m->t - *own);
	if (a->started)
		note_sleep(r, a, m, m->available_ns - since);
	/* A meeting of threads is no sleeper; an actor that had to queue did not come as soon as it
	 * could. */
	if (a->started && step->state == a->state)
		return BASE_OK;
	if (queued) {
		note_switch(r, a, m, *own - step->late_ns);
		return BASE_OK;
	}
	return graph_replay_latency_add(r,
		&(struct replay_handover){.state = r->queue[m->queue].o.latency_state,
			.actor = a->of,
			.wait_ns = m->available_ns - since,
			.latency_ns = *own - step->late_ns,
			.asleep = a->asleep},
		err);
}

/* It gave its token away and took it back when it came: it did nothing in between. */
static bool was_interrupted(const struct graph_replay *r, const struct replay_log_actor *a,
	const struct replay_moment *m)
{
	const struct replay_step *first = replay_step(r, m->first);

	return a->started && !a->waits && a->gave != REPLAY_NONE && m->depends &&
	       m->queue == a->gave && m->available_ns == m->t &&
	       replay_kind(first) == GRAPH_VERB_dequeue && first->queue == a->gave &&
	       came_after(m, a);
}

enum base_status graph_replay_close_moment(struct graph_replay *r, struct base_err *err)
{
	struct replay_moment m = r->moment;
	struct replay_log_actor *a = &r->actor[m.actor];
	enum replay_class class = REPLAY_RUN;
	struct replay_step *last = replay_step(r, m.last), *first = replay_step(r, m.first);
	unsigned kind = replay_kind(last);
	bool before = graph_replay_is_busy(r, a);
	enum base_status s = BASE_OK;
	bool aside = replay_flags(first) & GRAPH_ASIDE;
	uint64_t own;

	r->moment.first = REPLAY_NONE;
	last->bits &= ~((uint32_t)GRAPH_MORE << REPLAY_FLAGS_SHIFT);
	own = a->started ? m.t - a->t_last : m.t;
	own = own > a->hole_ns ? own - a->hole_ns : 0;
	if (aside && (a->waits || !a->started)) { /* when the wait begins must do */
		first->bits &= ~(7u << REPLAY_CLASS_SHIFT);
		return BASE_OK;
	}
	if (m.links) {
		class = REPLAY_LINK;
		own = 0;
	} else if (!a->started && (m.flags & GRAPH_START || !m.depends)) {
		class = REPLAY_ABSOLUTE;
	} else if (was_interrupted(r, a, &m)) {
		class = REPLAY_EXPLAINED;
		own = 0;
	} else if (!a->started || a->waits) {
		s = set_wait(r, a, &m, &own, &class, err);
	}
	first->bits = (first->bits & ~(7u << REPLAY_CLASS_SHIFT)) |
		      (uint32_t) class << REPLAY_CLASS_SHIFT;
	if (m.early && (class == REPLAY_RUN || class == REPLAY_UNEXPLAINED))
		first->bits |= REPLAY_EARLY;
	if (!s)
		s = graph_replay_set_own(r, m.first, own, err);
	a->t_last = m.t;
	a->order_last = r->nr_steps;
	a->started = kind != GRAPH_VERB_forget;
	a->hole_ns = 0;
	a->switched = false;
	if (a->slept && m.t > a->slept_ns)
		replay_step(r, m.first)->bits |= REPLAY_SLEPT;
	if (aside)
		return s;
	a->slept = false;
	a->asleep = false;
	a->state = last->state;
	a->waits = kind == GRAPH_VERB_wait || kind == GRAPH_VERB_wait_empty ||
		   kind == GRAPH_VERB_wait_full;
	a->waits_space = kind == GRAPH_VERB_wait_full;
	a->wait_queue = a->waits && kind != GRAPH_VERB_wait ? last->queue : REPLAY_NONE;
	a->gave = kind == GRAPH_VERB_enqueue && r->queue[last->queue].o.discipline == GRAPH_POOL
			  ? last->queue
			  : REPLAY_NONE;
	a->wait_row = replay_row(last);
	if (a->wait_queue != REPLAY_NONE)
		a->takes_then = r->queue[a->wait_queue].nr_takes;
	return s ? s : graph_replay_count_busy(r, before, graph_replay_is_busy(r, a), m.t, err);
}
