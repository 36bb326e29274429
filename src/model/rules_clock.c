/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_clock.c - sleep, and what waits for a deadline that does not move when work gets shorter.
 *
 * A clock is an actor that only time moves. It follows from its setter, and puts a token at
 * each deadline, which the sleeper takes: so a path goes through the clock where the deadline
 * decided, and through the work where that was longer. The program does not say what a deadline is
 * counted from: from the one before it ("next += period") or from now (Python's time.sleep()). It
 * is the deadline before when the distance between deadlines repeats itself better than the
 * duration of the sleeps does; then the clock goes on, else the sleeper is asleep, as in a sleep
 * for a time, and sets the clock when it awakes. C++'s sleep_until() is a sleep for a time as the
 * kernel sees it, which is why those are looked at, too.
 */
#include "model/model_private.h"

#include <stdlib.h>

enum {
	SLACK_NS = 20000,   /* times are read one after the other; more only when preempted */
	EXACT_PARTS = 1000, /* a period repeats itself up to that part of it */
	ROUNDING_NS = 1000, /* ... and where the program gave the deadlines, up to their rounding */
};

enum clock_of { /* a place where a thread sleeps; a timerfd; the system calls that it sleeps in */
	OF_SITE,
	OF_FILE,
	OF_SLEEPS,
	OF_DEADLINES,
};

static struct clock *rules_clock_clock_of(
	struct model *m, enum clock_of what, uint32_t id, uint32_t site)
{
	uint64_t hi = (uint64_t)what << 32 | id, ix;
	if (!base_map_get(&m->timing.clocks, hi, site, &ix)) {
		ix = m->timing.nr_clocks;
		if (!model_grow(m, &m->timing.clock, &m->timing.clock_capacity, ix + 1,
			    sizeof *m->timing.clock))
			return NULL;
		m->timing.clock[m->timing.nr_clocks++] =
			(struct clock){.actor = NONE, .site = site};
		model_put(m, &m->timing.clocks, hi, site, ix);
	}
	return &m->timing.clock[ix];
}

/* NULL: none was set. */
static struct clock *clock_of_file(struct model *m, uint32_t object)
{
	uint64_t ix;
	if (!base_map_get(&m->timing.clocks, (uint64_t)OF_FILE << 32 | object, 0, &ix))
		return NULL;
	return m->timing.clock[ix].actor != NONE ? &m->timing.clock[ix] : NULL;
}

/* From now on the clock follows from what the thread has done. */
static void set_clock(struct model *m, struct thread *t, struct clock *c, uint64_t time_ns)
{
	if (c->actor == NONE) {
		uint32_t actor = model_make_actor(m, NONE, NONE);
		c->queue = model_make_queue(m, 0, 0, MODEL_TYPE_CLOCK, NONE, GRAPH_FIFO);
		c->state = model_make_state(m, MODEL_CAUSE_sleep_deadline, NONE, NONE, c->site, 0);
		if (m->status != BASE_OK)
			return;
		c->actor = actor;
		m->made.actor[actor].clock_site = c->site + 1;
	}
	model_link(m, c->actor, time_ns, c->state, model_acting(t));
	c->is_set = true;
}

static void tick(struct model *m, const struct clock *c, uint64_t due_ns, uint64_t time_ns)
{
	model_verb_of(m, c->actor, GRAPH_VERB_enqueue, due_ns < time_ns ? due_ns : time_ns,
		c->queue, 1, c->state, GRAPH_DATED);
}

static void awake(struct model *m, struct thread *t, uint64_t time_ns)
{
	model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0, model_current_state(t), GRAPH_EXPLAINED);
}

/* ---- sleeps ---------------------------------------------------------------------------------- */

/* From the nearest multiple of the period, but 0. */
static uint64_t off_period(uint64_t interval_ns, uint64_t period_ns)
{
	uint64_t rest = interval_ns % period_ns;
	if (interval_ns < period_ns)
		return period_ns - interval_ns;
	return rest < period_ns - rest ? rest : period_ns - rest;
}

/* Is this deadline counted from the one before? `exact`: as the program gave it. */
static bool follows_deadline(
	const struct clock *c, uint64_t deadline_ns, int64_t remaining_ns, bool exact)
{
	uint64_t interval_ns = deadline_ns - c->deadline_ns;
	uint64_t span_ns = (uint64_t)llabs(remaining_ns - c->remaining_ns), off_ns = SLACK_NS;
	uint64_t off_most_ns = exact ? ROUNDING_NS : SLACK_NS;
	if (!c->nr_deadlines || deadline_ns <= c->deadline_ns)
		return false;
	if (c->period_ns) {
		off_ns = off_period(interval_ns, c->period_ns);
		if (off_ns > off_most_ns && (exact || off_ns > c->period_ns / EXACT_PARTS))
			return false;
	} else if (!exact) {
		return false;
	}
	return exact ? off_ns < span_ns : off_ns < span_ns / 2;
}

static void note_deadline(struct clock *c, uint64_t deadline_ns, int64_t remaining_ns, bool follows)
{
	uint64_t interval_ns = c->nr_deadlines ? deadline_ns - c->deadline_ns : 0;
	if (!follows || !c->period_ns || interval_ns < c->period_ns)
		c->period_ns = deadline_ns > c->deadline_ns ? interval_ns : 0;
	c->deadline_ns = deadline_ns;
	c->remaining_ns = remaining_ns;
	c->nr_deadlines++;
}

/* What the sleep that begins is for; NULL: no memory. */
static struct clock *plan_sleep(struct model *m, struct thread *t, uint64_t time_ns,
	uint64_t deadline_ns, int64_t remaining_ns, enum clock_of what, uint32_t site, bool exact)
{
	t->sleep = (struct sleep){.clock = NONE};
	struct clock *c = rules_clock_clock_of(m, what, t->stream, site);
	if (!c)
		return NULL;
	bool follows = follows_deadline(c, deadline_ns, remaining_ns, exact);
	/* The first of a row is as good as any to count from. */
	t->sleep.sets = follows || (exact && !c->nr_deadlines);
	note_deadline(c, deadline_ns, remaining_ns, follows);
	t->sleep.clock = (uint32_t)(c - m->timing.clock);
	t->sleep.due_ns = remaining_ns < 0 && (uint64_t)-remaining_ns > time_ns
				  ? 0
				  : time_ns + (uint64_t)remaining_ns;
	t->sleep.follows = follows && c->is_set;
	return c;
}

/*
 * Something else begins. If that is before the time that was asked for, a signal ended the sleep:
 * a call that fails then says so, a handler that jumps out of it does not. (A thread that is kept
 * from its processor on the way into the call has not slept yet.)
 */
void model_sleep_is_left(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state)
{
	bool was_kept = t->mode == MODE_RUNNABLE ||
			(state < m->made.nr_states &&
				m->made.state[state].pub.kind == MODEL_STATE_runnable);
	if (was_kept || t->graph_state >= m->made.nr_states)
		return;
	struct model_state *slept = &m->made.state[t->graph_state].pub;
	uint64_t slept_ns = time_ns - t->sleep.begin_ns;
	t->sleep.lasts = false;
	slept->slept_ns += slept_ns;
	if (t->sleep.due_ns <= time_ns + SLACK_NS)
		return;
	uint64_t left_ns = t->sleep.due_ns - time_ns;
	slept->broken_ns += slept_ns;
	model_tell_late(m, t, -(int64_t)(left_ns < INT64_MAX ? left_ns : INT64_MAX));
}

static void sleep_begins(struct model *m, struct thread *t, uint64_t time_ns, uint64_t deadline_ns,
	int64_t remaining_ns, uint32_t site, bool exact)
{
	if (t->sleep.lasts) /* that one was jumped out of */
		model_sleep_is_left(m, t, time_ns, NONE);
	if (!t->nr_held)
		t->run_state = model_run_state(m, t, site);
	const struct clock *c =
		plan_sleep(m, t, time_ns, deadline_ns, remaining_ns, OF_SITE, site, exact);
	if (!c)
		return;
	if (t->sleep.follows && remaining_ns > 0)
		model_verb(m, t, GRAPH_VERB_wait_empty, time_ns, c->queue, 1, c->state, 0);
	else
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0,
			t->sleep.follows
				? c->state
				: model_make_state(m, MODEL_CAUSE_sleep, NONE, NONE, site,
					  model_mpi_rank(m, t->process) < 0 ? 0 : t->process),
			0); /* (each rank its own: what one of them does may be changed) */
	t->sleep.lasts = true;
	t->sleep.begin_ns = time_ns;
}

/* What the kernel's records say of a call in which it may sleep; see the end of this file. */
static void call_sleeps_until(struct model *m, struct thread *t, uint64_t time_ns,
	uint64_t deadline_ns, int64_t remaining_ns, enum clock_of what)
{
	struct call *call = &t->k.call;
	if (!call->named || t->mode != MODE_RUNNING)
		return;
	const struct clock *c =
		plan_sleep(m, t, time_ns, deadline_ns, remaining_ns, what, 0, what == OF_DEADLINES);
	call->sleeps = c != NULL;
	if (c && t->sleep.follows && remaining_ns > 0)
		call->queue = c->queue;
}

void model_rule_sleep_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_sleep_begin *b = &r->u.sleep_begin;
	uint64_t duration_ns = b->duration_ns < INT64_MAX / 2 ? b->duration_ns : INT64_MAX / 2;
	model_handler_began(m, t, r->time_ns);
	sleep_begins(
		m, t, r->time_ns, r->time_ns + duration_ns, (int64_t)duration_ns, b->site, false);
}

void model_rule_sleep_until(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_sleep_until *u = &r->u.sleep_until;
	const int64_t far_ns = INT64_MAX / 2;
	int64_t remaining_ns = u->remaining_ns;
	if (remaining_ns > far_ns || remaining_ns < -far_ns)
		remaining_ns = remaining_ns < 0 ? -far_ns : far_ns;
	if (t->k.call.active) /* the kernel's, in its call */
		call_sleeps_until(m, t, r->time_ns, u->deadline_ns, remaining_ns, OF_DEADLINES);
	else
		sleep_begins(m, t, r->time_ns, u->deadline_ns, remaining_ns, u->site, true);
}

static void sleep_ends(struct model *m, struct thread *t, uint64_t time_ns)
{
	struct sleep was = t->sleep;
	struct clock *c = was.clock < m->timing.nr_clocks ? &m->timing.clock[was.clock] : NULL;
	t->sleep.clock = NONE;
	if (c && was.due_ns <= t->entered_ns)
		model_nap_was_over(t, t->entered_ns, time_ns);
	else
		model_napped(t, t->entered_ns, time_ns);
	if (!t->nr_held && !t->naps.nr_units_held && !t->turn.task)
		model_nap_ends(m, t, t->entered_ns, time_ns);
	t->naps.broken = c && was.due_ns > time_ns + SLACK_NS;
	if (t->naps.broken)
		model_broken_off(m, t, time_ns);
	if (c && was.due_ns > t->entered_ns && was.due_ns < time_ns)
		model_tell_late(m, t, (int64_t)(time_ns - was.due_ns));
	if (!c) {
		awake(m, t, time_ns);
	} else if (was.follows && was.due_ns <= time_ns + SLACK_NS) {
		if (!graph_queue_units(m->graph, c->queue))
			tick(m, c, was.due_ns, time_ns);
		model_verb(
			m, t, GRAPH_VERB_dequeue, time_ns, c->queue, 1, model_current_state(t), 0);
	} else {
		awake(m, t, time_ns);
		c->is_set = false;
		if (was.sets)
			set_clock(m, t, c, time_ns);
	}
}

void model_rule_sleep_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	sleep_ends(m, t, r->time_ns);
}

/* ---- timerfd --------------------------------------------------------------------------------- */

static void forget_expiries(struct model *m, const struct clock *c, uint64_t time_ns)
{
	if (c->actor != NONE && graph_queue_units(m->graph, c->queue))
		model_verb_of(m, c->actor, GRAPH_VERB_resize, time_ns, c->queue, 0, c->state, 0);
}

static void remember_timer(struct model *m, struct clock *c, uint32_t process)
{
	c->process = process;
	if (c->is_known || !model_grow(m, &m->timing.timer, &m->timing.timer_capacity,
				   m->timing.nr_timers + 1, sizeof *m->timing.timer))
		return;
	c->is_known = true;
	m->timing.timer[m->timing.nr_timers++] = (uint32_t)(c - m->timing.clock);
}

void model_rule_timer_set(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_timer_set *s = &r->u.timer_set;
	bool unheard = t->k.call.active && !t->k.call.named; /* the library tells it */
	struct clock *c = unheard ? NULL : rules_clock_clock_of(m, OF_FILE, s->object, 0);
	if (!c)
		return;
	uint64_t due_ns = r->time_ns + (s->first_ns < INT64_MAX / 2 ? s->first_ns : INT64_MAX / 2);
	bool once = !s->period_ns && s->armed;
	bool follows = once && follows_deadline(c, due_ns, (int64_t)(due_ns - r->time_ns), false);
	if (once)
		note_deadline(c, due_ns, (int64_t)(due_ns - r->time_ns), follows);
	else
		c->nr_deadlines = c->period_ns = 0;
	if (c->actor == NONE)
		c->site = s->site;
	remember_timer(m, c, t->process);
	if (s->armed && !(follows && c->is_set))
		set_clock(m, t, c, r->time_ns);
	forget_expiries(m, c, r->time_ns);
	c->armed = s->armed;
	c->due_ns = due_ns;
	c->every_ns = s->period_ns;
}

/* What has expired by now and nobody was told of. */
static bool expires(struct model *m, struct clock *c, uint64_t time_ns)
{
	if (!c->armed || c->due_ns > time_ns + SLACK_NS)
		return false;
	tick(m, c, c->due_ns, time_ns);
	c->due_ns += c->every_ns;
	c->armed = c->every_ns != 0;
	return true;
}

bool model_timer_read_begins(struct model *m, struct thread *t, uint32_t object, uint64_t time_ns)
{
	struct clock *c = clock_of_file(m, object);
	if (!c || !c->armed || c->due_ns <= time_ns || graph_queue_units(m->graph, c->queue))
		return false;
	model_verb(m, t, GRAPH_VERB_wait_empty, time_ns, c->queue, 1, c->state, 0);
	return true;
}

/*
 * A read takes all expiries: it waited for the first of them. Had the reader been quicker, it would
 * have found fewer; the program does not say how many it would need. So where several were taken
 * the next one counts from now, and a prediction of shorter work says so.
 */
bool model_timer_was_read(struct model *m, struct thread *t, uint32_t object, uint64_t time_ns)
{
	struct clock *c = clock_of_file(m, object);
	if (!c || (!graph_queue_units(m->graph, c->queue) && !expires(m, c, time_ns)))
		return false;
	if (t->mode == MODE_WAITING) {
		model_napped(t, t->entered_ns, time_ns);
		model_nap_ends(m, t, t->entered_ns, time_ns);
	}
	model_verb(m, t, GRAPH_VERB_dequeue, time_ns, c->queue, 1, model_current_state(t), 0);
	if (c->armed && c->every_ns && c->due_ns <= time_ns) {
		m->timing.nr_late_timer_reads++;
		c->due_ns += ((time_ns - c->due_ns) / c->every_ns + 1) * c->every_ns;
		set_clock(m, t, c, time_ns);
	}
	return true;
}

bool model_timer_is_ready(struct model *m, struct thread *t, uint32_t object, uint64_t time_ns)
{
	struct clock *c = clock_of_file(m, object);
	if (!c || (!expires(m, c, time_ns) && !graph_queue_units(m->graph, c->queue)))
		return false;
	if (t->mode == MODE_WAITING && t->cpu.left_in_wait) {
		model_napped(t, t->entered_ns, time_ns);
		model_rename(m, t, time_ns, c->state);
		model_nap_ends(m, t, t->entered_ns, time_ns);
	}
	model_verb(m, t, GRAPH_VERB_peek, time_ns, c->queue, GRAPH_ALL, model_current_state(t),
		GRAPH_LAST);
	return true;
}

/* ---- as the kernel shows it --------------------------------------------------------------------
 *
 * Here a sleep is a system call, and its end the wake by a timer's interrupt, which has no path of
 * its own. That takes nothing but what has come: the sleeper waits for a processor then. The tick
 * is taken when the call ends.
 */

enum { SYS_read = 0, SYS_nanosleep = 35, SYS_clock_nanosleep = 230, ABSOLUTE = 1 };

void model_call_sleeps(struct model *m, struct thread *t, uint64_t time_ns)
{
	struct call *call = &t->k.call;
	bool is_sleep = call->number == SYS_nanosleep ||
			(call->number == SYS_clock_nanosleep && !(call->op & ABSOLUTE));
	if (is_sleep) /* an absolute one has a record of its own */
		call_sleeps_until(m, t, time_ns, time_ns + call->n, (int64_t)call->n, OF_SLEEPS);
	const struct clock *c = call->number == SYS_read ? clock_of_file(m, call->object) : NULL;
	call->reads_timer = c != NULL;
	if (c && c->armed && c->due_ns > time_ns && !graph_queue_units(m->graph, c->queue))
		call->queue = c->queue;
}

/* A timer of its process that has expired since it slept. */
static struct clock *expired_meanwhile(struct model *m, const struct thread *t, uint64_t time_ns)
{
	for (size_t i = 0; i < m->timing.nr_timers; i++) {
		struct clock *c = &m->timing.clock[m->timing.timer[i]];
		if (c->process == t->process && c->actor != NONE && c->armed &&
			c->due_ns > t->k.asleep_ns && c->due_ns <= time_ns + SLACK_NS)
			return c;
	}
	return NULL;
}

bool model_clock_rings(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state)
{
	const struct call *call = &t->k.call;
	struct clock *c = NULL;
	if (!call->active || !call->named)
		return false;
	if (call->sleeps) {
		if (call->queue == NONE || t->sleep.due_ns > time_ns + SLACK_NS)
			return false;
		c = &m->timing.clock[t->sleep.clock];
		tick(m, c, t->sleep.due_ns, time_ns);
	} else {
		c = call->reads_timer ? clock_of_file(m, call->object)
				      : expired_meanwhile(m, t, time_ns);
		if (!c || !expires(m, c, time_ns))
			return false;
	}
	model_rename(m, t, time_ns, c->state);
	model_verb(m, t, GRAPH_VERB_peek, time_ns, c->queue, GRAPH_ALL, state, GRAPH_LAST);
	return true;
}

bool model_call_slept(struct model *m, struct thread *t, uint64_t time_ns, int64_t result)
{
	const struct call *call = &t->k.call;
	if (call->sleeps)
		sleep_ends(m, t, time_ns);
	return call->sleeps || (call->reads_timer && result > 0 &&
				       model_timer_was_read(m, t, call->object, time_ns));
}
