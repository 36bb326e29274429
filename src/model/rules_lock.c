/* SPDX-License-Identifier: Apache-2.0 */
/* rules_lock.c - mutexes, rwlocks, condition variables, barriers, semaphores. */
#include "model/model_private.h"

#include <errno.h>

static const struct trace_object *rules_lock_definition(const struct model *m, uint32_t object)
{
	return object < m->defs->nr_objects ? &m->defs->objects[object] : &m->defs->objects[0];
}

/* ---- what a thread holds --------------------------------------------------------------------- */

static uint32_t hold_state(
	struct model *m, struct object *o, uint32_t object, uint32_t site, bool shared)
{
	uint32_t kept = site % MODEL_HOLDS_KEPT;
	if (BASE_LIKELY(o->lock.hold[kept].site == site + 1 && !shared))
		return o->lock.hold[kept].state;
	uint32_t s = model_make_state(m, shared ? MODEL_CAUSE_hold_shared : MODEL_CAUSE_hold, NONE,
		model_class_of(m, object, site), site, 0);
	if (!shared) {
		o->lock.hold[kept].site = site + 1;
		o->lock.hold[kept].state = s;
	}
	return s;
}

/* A running thread has it as it has a processor: it is said to run, not to hold it. */
static bool is_had_to_run(const struct model *m, uint32_t object)
{
	return model_object_is((enum trace_object_type)rules_lock_definition(m, object)->type,
		MODEL_TRAIT_had_to_run);
}

void model_push_held(struct model *m, struct thread *t, struct object *o, uint32_t object,
	uint32_t site, bool shared)
{
	uint32_t state = hold_state(m, o, object, site, shared);
	if (t->nr_held < MODEL_HELD_MAX &&
		model_grow(m, &t->held, &t->held_capacity, t->nr_held + 1, sizeof *t->held))
		t->held[t->nr_held++] =
			(struct held){.object = object, .state = state, .shared = shared};
}

bool model_pop_held(struct thread *t, uint32_t object)
{
	for (uint32_t i = t->nr_held; i-- > 0;) {
		if (t->held[i].object != object)
			continue;
		for (uint32_t k = i + 1; k < t->nr_held; k++)
			t->held[k - 1] = t->held[k];
		t->nr_held--;
		return true;
	}
	return false;
}

static uint32_t rules_lock_wait_state(struct model *m, uint32_t object, uint32_t site)
{
	return model_wait_state(m, model_class_of(m, object, site), site, false);
}

/* What a signal's handler interrupted is what this record ends, and not something of the handler's. */
static bool ends_outer(struct thread *t, uint32_t queue)
{
	bool ends = t->interrupted && t->signal.outer.verb != GRAPH_VERB_wait &&
		    !t->signal.outer_io.active && t->signal.outer.queue == queue;
	t->interrupted &= !ends;
	return ends;
}

/* A wait that nothing but what it is for ends: a signal's handler runs in the middle of it. */
static void rules_lock_wait_on(struct model *m, struct thread *t, uint64_t time_ns, uint32_t queue,
	int64_t n, uint32_t state)
{
	model_handler_began(m, t, time_ns);
	model_verb(m, t, GRAPH_VERB_wait_empty, time_ns, queue, n, state, 0);
	t->resumes = true;
	(void)ends_outer(t, queue); /* as it was begun anew */
}

static bool ends_wait(struct thread *t, uint32_t queue)
{
	return t->mode == MODE_WAITING || ends_outer(t, queue);
}

/* ---- mutex, spin lock, once, the rwlock's writer --------------------------------------------- */

/* Waits that the program counted for itself: no event says when they were. */
void model_rule_lock_waits(struct model *m, struct thread *t, const struct trace_record *r)
{
	(void)t;
	m->seen.health.count[TRACE_DIAG_locks_counted] += r->u.lock_waits.nr;
	m->seen.counted_wait_ns += r->u.lock_waits.total_ns;
}

uint64_t model_counted_wait_ns(const struct model *m)
{
	return m->seen.counted_wait_ns;
}

void model_rule_lock_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	struct object *o = model_object(m, r->u.lock_wait.object);
	if (!o)
		return;
	uint32_t object = r->u.lock_wait.object, site = r->u.lock_wait.site;
	rules_lock_wait_on(m, t, r->time_ns, model_queue_of(m, object, o, 1, site), 1,
		rules_lock_wait_state(m, object, site));
}

/* A lock that was free orders nothing: had its last holder been later, or another come before, they
 * would have passed each other. To keep that order in a what-if would forbid the very overlap that
 * a fix brings. */
static void take_free(struct model *m, struct thread *t, uint64_t time_ns, uint32_t queue)
{
	model_verb(m, t, GRAPH_VERB_dequeue, time_ns, queue, GRAPH_ALL, model_current_state(t),
		GRAPH_BACK);
}

void model_rule_lock_acquire(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.lock_acquire.object, site = r->u.lock_acquire.site;
	struct object *o = model_object(m, object);
	if (!o)
		return;
	uint32_t queue = model_queue_of(m, object, o, 1, site);
	bool waited = ends_wait(t, queue);
	o->lock.taken_ns = r->time_ns;
	if (is_had_to_run(m, object))
		t->run_state = model_run_state(m, t, site);
	else
		model_push_held(m, t, o, object, site, false);
	if (o->room != NONE) /* no reader is in */
		model_verb_of(m, model_acting(t), GRAPH_VERB_peek, r->time_ns, o->room, GRAPH_ALL,
			model_current_state(t), GRAPH_MORE | GRAPH_OPTIONAL);
	if (!waited) {
		take_free(m, t, r->time_ns, queue);
		return;
	}
	if (o->queue3 !=
		NONE) /* an rwlock that had readers: the last of them to leave counts too */
		model_verb_of(m, model_acting(t), GRAPH_VERB_dequeue, r->time_ns, o->queue3,
			GRAPH_ALL, model_current_state(t), GRAPH_MORE | GRAPH_LAST);
	model_verb(
		m, t, GRAPH_VERB_dequeue, r->time_ns, queue, 1, model_current_state(t), GRAPH_LAST);
}

/* Its parent had taken it when it forked, so that it can be given up here (pthread_atfork()). */
static bool came_held(const struct model *m, const struct thread *t, const struct object *o)
{
	return o->queue == NONE && trace_def_process(m->defs, t->process)->parent;
}

static void rules_lock_release(
	struct model *m, struct thread *t, const struct object *o, uint32_t object, uint32_t site)
{
	if (!is_had_to_run(m, object) && !model_pop_held(t, object) && !came_held(m, t, o))
		model_count(m, TRACE_DIAG_release_unmatched);
	if (!t->nr_held)
		t->run_state = model_run_state(m, t, site);
}

void model_rule_lock_release(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.lock_release.object, site = r->u.lock_release.site;
	struct object *o = model_object(m, object);
	if (!o)
		return;
	rules_lock_release(m, t, o, object, site);
	o->lock.released_ns = r->time_ns;
	bool had_asleep =
		model_object_is((enum trace_object_type)rules_lock_definition(m, object)->type,
			MODEL_TRAIT_had_asleep);
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, model_queue_of(m, object, o, 1, site), 1,
		model_current_state(t),
		had_asleep ? 0 : model_by_chance(t, t->limit.timed_ns, r->time_ns));
}

/* A trylock that found it taken has not waited; a timed lock gave its wait up. */
void model_rule_lock_fail(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct object *o = model_object(m, r->u.lock_fail.object);
	if (ends_wait(t, o ? o->queue : NONE))
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
			MODEL_NOTHING_CAME);
}

/* The pseudo-actor of an object, waiting on queue2 for arrivals. */
static void make_meeting(
	struct model *m, struct object *o, uint32_t object, uint32_t site, uint64_t time_ns)
{
	if (o->queue2 == NONE)
		o->queue2 = model_make_part(m, object, MODEL_QUEUE_meeting,
			(enum trace_object_type)rules_lock_definition(m, object)->type,
			model_class_of(m, object, site));
	if (o->lock.pseudo != NONE)
		return;
	o->lock.pseudo = model_make_actor(m, NONE, NONE);
	model_verb_of(m, o->lock.pseudo, GRAPH_VERB_wait_empty, time_ns, o->queue2, 1,
		model_idle_state(m), 0);
}

/* ---- the rwlock's readers -------------------------------------------------------------------- */
/* Readers peek at the writer's token. Their releases meet in a pseudo-actor, so that a writer
 * depends on the last reader out, whichever that is in a lane, and memory does not grow with
 * readers. `room` binds nobody in the path: only replay wants to know which came in without a wait,
 * and which others were in. */

enum { READERS_MAX = 1 << 16 };

static uint32_t room_of(struct model *m, struct object *o, uint32_t object, uint32_t site)
{
	if (o->room == NONE) {
		o->room = model_make_queue(m, READERS_MAX, object, TRACE_OBJECT_rwlock,
			model_class_of(m, object, site), GRAPH_POOL);
		if (o->room < m->made.nr_queues) {
			m->made.queue[o->room].pub.part = MODEL_QUEUE_helper;
			m->made.queue[o->room].pub.tokens = false;
		}
	}
	return o->room;
}

void model_rule_shared_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.shared_wait.object, site = r->u.shared_wait.site;
	struct object *o = model_object(m, object);
	if (o)
		rules_lock_wait_on(m, t, r->time_ns, model_queue_of(m, object, o, 1, site), 1,
			rules_lock_wait_state(m, object, site));
}

void model_rule_shared_acquire(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.shared_acquire.object, site = r->u.shared_acquire.site;
	struct object *o = model_object(m, object);
	if (!o)
		return;
	uint32_t queue = model_queue_of(m, object, o, 1, site);
	bool waited = ends_wait(t, queue);
	model_push_held(m, t, o, object, site, true);
	bool free = graph_queue_units(m->graph, queue) != 0;
	model_verb_of(m, model_acting(t), GRAPH_VERB_dequeue, r->time_ns,
		room_of(m, o, object, site), 1, model_current_state(t), GRAPH_BACK | GRAPH_MORE);
	model_verb(m, t, waited || free ? GRAPH_VERB_peek : GRAPH_VERB_state, r->time_ns, queue, 1,
		model_current_state(t), GRAPH_LAST);
}

void model_rule_shared_release(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.shared_release.object, site = r->u.shared_release.site;
	struct object *o = model_object(m, object);
	if (!o)
		return;
	rules_lock_release(m, t, o, object, site);
	uint32_t idle = model_idle_state(m);
	make_meeting(m, o, object, site, r->time_ns);
	if (o->queue3 == NONE)
		o->queue3 = model_make_part(m, object, MODEL_QUEUE_helper, TRACE_OBJECT_rwlock,
			model_class_of(m, object, site));
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, room_of(m, o, object, site), 1,
		model_current_state(t), 0);
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, o->queue2, 1, model_current_state(t), 0);
	model_verb_of(
		m, o->lock.pseudo, GRAPH_VERB_dequeue, r->time_ns, o->queue2, GRAPH_ALL, idle, 0);
	model_verb_of(m, o->lock.pseudo, GRAPH_VERB_resize, r->time_ns, o->queue3, 0, idle, 0);
	model_verb_of(m, o->lock.pseudo, GRAPH_VERB_enqueue, r->time_ns, o->queue3, 1, idle, 0);
	model_verb_of(m, o->lock.pseudo, GRAPH_VERB_wait_empty, r->time_ns, o->queue2, 1, idle, 0);
}

/* ---- condition variable ---------------------------------------------------------------------- */

void model_rule_cond_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_cond_wait *w = &r->u.cond_wait;
	struct object *c = model_object(m, w->object);
	struct object *x = w->mutex ? model_object(m, w->mutex) : NULL;
	if (!c)
		return;
	uint32_t state = rules_lock_wait_state(m, w->object, w->site);
	if (!c->lock.waiters++)
		c->lock.waited_since_ns = r->time_ns;
	model_handler_began(m, t, r->time_ns);
	t->limit.cond_wait_ns = r->time_ns;
	if (x) { /* a bare futex word has none */
		model_pop_held(t, w->mutex);
		x->lock.released_ns = r->time_ns;
		model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns,
			model_queue_of(m, w->mutex, x, 1, w->site), 1, state,
			model_by_chance(t, t->limit.timed_ns, r->time_ns));
	}
	rules_lock_wait_on(m, t, r->time_ns, model_queue_of(m, w->object, c, 0, w->site), 1, state);
}

static uint64_t pending(const struct object *c)
{
	uint64_t n = 0;
	for (uint32_t i = 0; c->lock.signals && i < c->lock.signals->nr; i++)
		n += c->lock.signals->sent[i].n;
	return n;
}

static void forget_signal(struct signals *g, uint32_t i)
{
	g->used[g->sent[i].slot] = false;
	g->nr--;
	for (; i < g->nr; i++)
		g->sent[i] = g->sent[i + 1];
}

/* The oldest signal that was sent after the wait began: an older one was for somebody else. */
static uint32_t take_signal(struct object *c, uint64_t since_ns)
{
	struct signals *g = c->lock.signals;
	for (uint32_t i = 0; g && i < g->nr; i++) {
		if (g->sent[i].time_ns < since_ns)
			continue;
		uint32_t queue = g->queue[g->sent[i].slot];
		if (--g->sent[i].n == 0)
			forget_signal(g, i);
		return queue;
	}
	return NONE;
}

/*
 * It slept until a time limit: did it wait for the mutex, too? Only if that was given up just then,
 * and for no longer than its last holder had it: a thread that takes it for a moment again and
 * again has it just then by chance. A holder in the middle of the sleep held nobody up.
 */
static bool was_held_up(const struct object *mutex, uint64_t since_ns, uint64_t time_ns)
{
	enum { JUST_THEN = 100 }; /* that part of the sleep */
	uint64_t from_ns = mutex->lock.taken_ns > since_ns ? mutex->lock.taken_ns : since_ns;
	return mutex->lock.released_ns > from_ns &&
	       (time_ns - mutex->lock.released_ns) * JUST_THEN < time_ns - since_ns &&
	       mutex->lock.released_ns - from_ns > from_ns - since_ns;
}

void model_rule_cond_wake(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_cond_wake *w = &r->u.cond_wake;
	struct object *c = model_object(m, w->object);
	struct object *x = w->mutex ? model_object(m, w->mutex) : NULL;
	if (!c)
		return;
	uint32_t flags = GRAPH_LAST, signal = NONE;
	(void)ends_outer(t, c->queue);
	if (w->result == ECANCELED)
		model_cancelled(m, t, r->time_ns);
	if (x)
		model_push_held(m, t, x, w->mutex, w->site, false);
	if (c->lock.waiters)
		c->lock.waiters--;
	if (w->result == 0)
		signal = take_signal(c, t->limit.cond_wait_ns);
	else
		flags |= MODEL_NOTHING_CAME; /* time ran out */
	if (w->result == ETIMEDOUT)          /* nobody was waited for: it slept */
		model_rename(m, t, r->time_ns,
			model_make_state(m, MODEL_CAUSE_sleep_limit, NONE, NONE, w->site, 0));
	if (w->result == EAGAIN) /* the word had changed already: it did not wait */
		model_rename(m, t, r->time_ns, model_current_state(t));
	if (signal != NONE && x)
		model_verb_of(m, model_acting(t), GRAPH_VERB_dequeue, r->time_ns, signal, 1,
			model_current_state(t), GRAPH_MORE | GRAPH_LAST);
	else if (signal != NONE) /* all that it waited for */
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, signal, 1, model_current_state(t),
			GRAPH_LAST);
	else if (w->result == 0)
		model_count(m, TRACE_DIAG_signal_unmatched);
	bool held_up = x && was_held_up(x, t->limit.cond_wait_ns, r->time_ns);
	if (x)
		x->lock.taken_ns = r->time_ns;
	if (x && w->result == ETIMEDOUT && !held_up)
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns,
			model_queue_of(m, w->mutex, x, 1, w->site), GRAPH_ALL,
			model_current_state(t), GRAPH_BACK | flags);
	else if (x)
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns,
			model_queue_of(m, w->mutex, x, 1, w->site), 1, model_current_state(t),
			flags);
	else if (signal == NONE)
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t), flags);
	if (w->result == ETIMEDOUT) {
		model_napped(t, t->limit.cond_wait_ns, r->time_ns);
		t->limit.timed_ns =
			r->time_ns - t->limit.cond_wait_ns; /* (it has the mutex again) */
	}
	while (pending(c) > c->lock.waiters) { /* signalled, but gone before it arrived */
		if (--c->lock.signals->sent[0].n == 0)
			forget_signal(c->lock.signals, 0);
	}
}

/* A slot whose queue is empty, for one signal's tokens. */
static uint32_t signal_slot(
	struct model *m, struct thread *t, struct object *c, const struct trace_record *r)
{
	struct signals *g = c->lock.signals;
	uint32_t object = r->u.cond_signal.object, site = r->u.cond_signal.site, k = 0;
	if (g->nr == MODEL_SIGNALS_MAX)
		forget_signal(g, 0);
	while (g->used[k])
		k++;
	g->used[k] = true;
	if (g->queue[k] == NONE)
		g->queue[k] = model_make_queue(m, 0, object, TRACE_OBJECT_cond,
			model_class_of(m, object, site), GRAPH_FIFO);
	else if (graph_queue_units(m->graph, g->queue[k]))
		model_verb(m, t, GRAPH_VERB_resize, r->time_ns, g->queue[k], 0,
			model_current_state(t), 0);
	return k;
}

/* That it was signalled: a thread that came later, and did not wait, may have found what was put
 * then. */
static void tell_count(struct model *m, struct thread *t, uint32_t queue, uint64_t time_ns,
	bool all, uint32_t flags)
{
	const struct graph_sink *sink = m->sink;
	if (!sink || !sink->counts || t->mode == MODE_WAITING)
		return;
	struct graph_verb v = {.time_ns = time_ns,
		.actor = model_acting(t),
		.state = model_current_state(t),
		.queue = queue,
		.flags = flags,
		.n = all ? GRAPH_ALL : 1};
	if (m->status == BASE_OK)
		m->status = sink->verb(sink->ctx, GRAPH_VERB_enqueue, &v, 0, m->err);
}

static void rules_lock_wake(
	struct model *m, struct thread *t, const struct trace_record *r, bool all)
{
	struct object *c = model_object(m, r->u.cond_signal.object);
	if (!c)
		return;
	bool is_awaited = c->lock.waiters > pending(c);
	/* (Made whether anybody is told or not: each pass over a trace numbers things alike.) */
	uint32_t queue = model_queue_of(m, r->u.cond_signal.object, c, 0, r->u.cond_signal.site);
	tell_count(m, t, queue, r->time_ns, all, is_awaited ? GRAPH_MORE : 0);
	if (!is_awaited)
		return; /* a signal leaves nothing behind */
	uint64_t n = all ? c->lock.waiters - pending(c) : 1;
	if (!c->lock.signals) {
		c->lock.signals = base_alloc(sizeof *c->lock.signals);
		if (!c->lock.signals) {
			m->status = base_fail(m->err, BASE_ERR_NOMEM, "out of memory for signals");
			return;
		}
		for (uint32_t k = 0; k < MODEL_SIGNALS_MAX; k++)
			c->lock.signals->queue[k] = NONE;
	}
	uint32_t slot = signal_slot(m, t, c, r);
	struct signals *g = c->lock.signals;
	g->sent[g->nr].time_ns = r->time_ns;
	g->sent[g->nr].n = n;
	g->sent[g->nr++].slot = slot;
	/* a thread that waited while it slept waited for that, too */
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, g->queue[slot], (int64_t)n,
		model_current_state(t),
		c->lock.waited_since_ns > t->limit.timer_ns
			? model_by_chance(t, t->limit.timed_ns, r->time_ns)
			: 0);
}

void model_rule_cond_signal(struct model *m, struct thread *t, const struct trace_record *r)
{
	rules_lock_wake(m, t, r, false);
}

void model_rule_cond_broadcast(struct model *m, struct thread *t, const struct trace_record *r)
{
	rules_lock_wake(m, t, r, true);
}

/* ---- barrier: a pseudo-actor takes all arrivals, then gives everybody a token ---------------- */

static void rules_lock_open_barrier(struct model *m, struct object *o, uint64_t time_ns)
{
	uint32_t idle = model_idle_state(m);
	model_verb_of(
		m, o->lock.pseudo, GRAPH_VERB_dequeue, time_ns, o->queue2, GRAPH_ALL, idle, 0);
	model_verb_of(m, o->lock.pseudo, GRAPH_VERB_enqueue, time_ns, o->queue,
		(int64_t)o->lock.arrived, idle, 0);
	model_verb_of(m, o->lock.pseudo, GRAPH_VERB_wait_empty, time_ns, o->queue2, 1, idle, 0);
	o->lock.arrived = 0;
}

void model_rule_barrier_arrive(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.barrier_arrive.object, site = r->u.barrier_arrive.site;
	struct object *o = model_object(m, object);
	if (!o)
		return;
	uint32_t queue = model_queue_of(m, object, o, 0, site),
		 state = rules_lock_wait_state(m, object, site);
	make_meeting(m, o, object, site, r->time_ns);
	if (!o->lock.parties)
		o->lock.parties = rules_lock_definition(m, object)->capacity;
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, o->queue2, 1, state, 0);
	/* one who did something else while it waited comes once more, but is one all the same */
	if (t->at_barrier != object && ++o->lock.arrived == o->lock.parties)
		rules_lock_open_barrier(m, o, r->time_ns);
	t->at_barrier = object;
	rules_lock_wait_on(m, t, r->time_ns, queue, 1, state);
}

void model_rule_barrier_leave(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.barrier_leave.object, site = r->u.barrier_leave.site;
	struct object *o = model_object(m, object);
	if (!o)
		return;
	uint32_t queue = model_queue_of(m, object, o, 0, site);
	if (o->lock.arrived &&
		!graph_queue_units(m->graph, queue)) { /* its size was not known: now it is */
		o->lock.parties = o->lock.arrived;
		rules_lock_open_barrier(m, o, r->time_ns);
	}
	t->run_state = model_run_state(m, t, site);
	(void)ends_outer(t, queue);
	t->at_barrier = 0;
	/* (this opening's token, not an earlier one's) */
	model_verb(
		m, t, GRAPH_VERB_dequeue, r->time_ns, queue, 1, model_current_state(t), GRAPH_LAST);
}

/* ---- semaphores ------------------------------------------------------------------------------ */

static uint32_t token_queue(struct model *m, uint32_t object, struct object *o, uint32_t site)
{
	/* one whose making was not seen may hold any number */
	bool made = o->queue != NONE || o->lock.parties;
	return model_queue_of(m, object, o, made ? 0 : GRAPH_UNLIMITED, site);
}

/* A semaphore of one unit that each taker gives back is used as a lock (CPython's threading.Lock). */
static void rules_lock_take_unit(
	struct model *m, struct object *o, struct thread *t, uint64_t nr_units)
{
	const bool was_lock = !o->lock.as_lock.never;
	const uint32_t holder = o->lock.as_lock.taker;
	o->lock.as_lock.never |= nr_units != 1 || holder;
	o->lock.as_lock.taker = t->stream + 1;
	if (!o->lock.as_lock.never)
		t->naps.nr_units_held++;
	else if (was_lock && holder)
		m->thread[holder - 1].naps.nr_units_held--;
}

static void rules_lock_give_unit(
	struct model *m, struct object *o, const struct thread *t, uint64_t nr_units)
{
	const bool was_lock = !o->lock.as_lock.never;
	const uint32_t holder = o->lock.as_lock.taker;
	o->lock.as_lock.never |= nr_units != 1 || holder != t->stream + 1;
	o->lock.as_lock.nr_returned++;
	o->lock.as_lock.taker = 0;
	if (was_lock && holder)
		m->thread[holder - 1].naps.nr_units_held--;
}

bool model_is_used_as_lock(const struct model *m, uint32_t object)
{
	enum { OFTEN = 8 }; /* (what a thread has until its end is taken and given twice) */
	if (!object || object >= m->nr_objects || object >= m->defs->nr_objects)
		return false;
	const struct object *o = &m->object[object];
	const enum trace_object_type type = (enum trace_object_type)m->defs->objects[object].type;
	o = o->same_as ? &m->object[o->same_as] : o;
	return (type == TRACE_OBJECT_semaphore || type == TRACE_OBJECT_sysv_semaphore) &&
	       !o->lock.as_lock.never && o->lock.as_lock.nr_returned >= OFTEN;
}

void model_rule_token_set(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.token_set.object;
	struct object *o = model_object(m, object);
	if (!o)
		return;
	enum trace_object_type type =
		(enum trace_object_type)rules_lock_definition(m, object)->type;
	if (type == TRACE_OBJECT_barrier) {
		/* none: the holders are not known, the first to leave opens it */
		o->lock.parties = r->u.token_set.n ? r->u.token_set.n : UINT64_MAX;
		return;
	}
	if (model_object_is(type, MODEL_TRAIT_messages)) {
		model_messages_found(m, t, r);
		return;
	}
	o->lock.parties = 1; /* made before our eyes */
	o->lock.as_lock.never |= r->u.token_set.n > 1 && !o->lock.as_lock.taker;
	uint32_t queue = token_queue(m, object, o, 0);
	model_verb(m, t, GRAPH_VERB_resize, r->time_ns, queue, (int64_t)r->u.token_set.n,
		t->graph_state, 0);
}

/* A thread that waits has found no unit. Units that are still here were taken by threads that waited
 * before the recording began (record -p), or their taking is about to be told. When the next unit is
 * given and they are still there, they are none: each later unit would be taken for an earlier one,
 * and its way to its taker would look longer by that. */
static void rules_lock_drop_taken(
	struct model *m, struct thread *t, struct object *o, uint64_t time_ns)
{
	if (o->lock.doubted && !o->lock.parties && o->queue != NONE)
		model_verb(m, t, GRAPH_VERB_dequeue, time_ns, o->queue, GRAPH_ALL, t->graph_state,
			GRAPH_BACK | GRAPH_ASIDE);
	o->lock.doubted = 0;
}

void model_rule_token_give(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_token_give *g = &r->u.token_give;
	struct object *o = model_object(m, g->object);
	model_handler_began(m, t, r->time_ns);
	if (!o)
		return;
	rules_lock_drop_taken(m, t, o, r->time_ns);
	rules_lock_give_unit(m, o, t, g->n);
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, token_queue(m, g->object, o, g->site),
		(int64_t)g->n, model_current_state(t), 0);
}

void model_rule_token_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_token_wait *w = &r->u.token_wait;
	struct object *o = model_object(m, w->object);
	if (!o)
		return;
	uint32_t queue = token_queue(m, w->object, o, w->site);
	if (w->n == 1)
		o->lock.doubted = graph_queue_units(m->graph, queue);
	rules_lock_wait_on(m, t, r->time_ns, queue, (int64_t)w->n,
		rules_lock_wait_state(m, w->object, w->site));
}

void model_rule_token_take(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_token_take *k = &r->u.token_take;
	struct object *o = model_object(m, k->object);
	if (!o)
		return;
	uint32_t queue = token_queue(m, k->object, o, k->site);
	bool waited = ends_wait(t, queue);
	t->run_state = t->nr_held ? t->run_state : model_run_state(m, t, k->site);
	o->lock.doubted -= k->n < o->lock.doubted ? k->n : o->lock.doubted;
	if (k->n)
		rules_lock_take_unit(m, o, t, k->n);
	if (k->n)
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, queue, (int64_t)k->n,
			model_current_state(t), 0);
	else if (waited)
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
			MODEL_NOTHING_CAME);
}
