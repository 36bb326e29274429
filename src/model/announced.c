/* SPDX-License-Identifier: Apache-2.0 */
/*
 * announced.c - waits that an annotation announces, from longpole_wait_full() or _wait_empty() to
 * the annotation that ends them. What is recorded in between is how the program waits: the lock of
 * its own queue, the condition variable, the semaphore, the naps of a poll. None of that is another
 * constraint: with more room in the queue it would not have happened. So these waits are not told;
 * what they took counts as taken in the moment in which the announced wait ends, and nobody is
 * waited for by that.
 *
 * Announced while a lock is held it is a wait only when something is recorded in it: a thread that
 * really waits gives the lock up. Without that replay would let it wait with the lock that others
 * need to end the wait.
 */
#include "model/model_private.h"

enum { ANNOUNCED_LOCK = 0 }; /* owed: a lock, not so many tokens */

/* Later than all others it is owed: false where there is no room to remember it. */
static bool announced_owe(struct thread *t, uint32_t object, uint64_t n)
{
	if (t->announced.nr_owed == MODEL_OWED_MAX)
		return false;
	t->announced.owed[t->announced.nr_owed].object = object;
	t->announced.owed[t->announced.nr_owed++].n = n;
	return true;
}

/* Taken within the wait and given back within it: as if it had not been. */
static bool announced_forgives(struct thread *t, uint32_t object)
{
	for (uint32_t i = 0; i < t->announced.nr_owed; i++) {
		if (t->announced.owed[i].object != object ||
			t->announced.owed[i].n != ANNOUNCED_LOCK)
			continue;
		t->announced.owed[i] = t->announced.owed[--t->announced.nr_owed];
		return true;
	}
	return false;
}

/* object 0: of a bare futex word, which has no lock. */
static bool announced_takes_lock(struct model *m, struct thread *t, uint32_t object, uint32_t site)
{
	struct object *o = object ? model_object(m, object) : NULL;
	if (o && !announced_owe(t, object, ANNOUNCED_LOCK))
		return false;
	if (o)
		model_push_held(m, t, o, object, site, false);
	return true;
}

static void announced_tell(struct model *m, struct thread *t, uint64_t time_ns)
{
	t->announced.is_told = true;
	model_verb(m, t, t->announced.verb, time_ns, t->announced.queue, t->announced.n,
		t->announced.state, 0);
}

/* A lock that it had before: it is free from now on, and the wait begins again. */
static bool announced_gives_lock(
	struct model *m, struct thread *t, uint64_t time_ns, uint32_t object, uint32_t site)
{
	struct object *o = object ? model_object(m, object) : NULL;
	if (!o)
		return true;
	model_pop_held(t, object);
	o->lock.released_ns = time_ns;
	if (announced_forgives(t, object))
		return true;
	model_verb(m, t, GRAPH_VERB_enqueue, time_ns, model_queue_of(m, object, o, 1, site), 1,
		t->graph_state, GRAPH_EXPLAINED);
	announced_tell(m, t, time_ns);
	return true;
}

/* ---- one a kind of record: is it part of the wait? ------------------------------------------- */

static bool within_nothing(struct model *m, struct thread *t, const struct trace_record *r)
{
	(void)m;
	(void)t;
	(void)r;
	return true;
}

static bool within_acquire(struct model *m, struct thread *t, const struct trace_record *r)
{
	return announced_takes_lock(m, t, r->u.lock_acquire.object, r->u.lock_acquire.site);
}

static bool within_release(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_lock_release *l = &r->u.lock_release;
	return announced_gives_lock(m, t, r->time_ns, l->object, l->site);
}

static bool within_cond_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_cond_wait *w = &r->u.cond_wait;
	return announced_gives_lock(m, t, r->time_ns, w->mutex, w->site);
}

static bool within_cond_wake(struct model *m, struct thread *t, const struct trace_record *r)
{
	return announced_takes_lock(m, t, r->u.cond_wake.mutex, r->u.cond_wake.site);
}

static bool within_token_take(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct object *o = model_object(m, r->u.token_take.object);
	if (!r->u.token_take.n || !o || o->queue == NONE)
		return true;
	return announced_owe(t, r->u.token_take.object, r->u.token_take.n);
}

static bool (*const within_announced[])(
	struct model *m, struct thread *t, const struct trace_record *r) = {
	[TRACE_lock_wait] = within_nothing,
	[TRACE_lock_fail] = within_nothing,
	[TRACE_lock_acquire] = within_acquire,
	[TRACE_lock_release] = within_release,
	[TRACE_cond_wait] = within_cond_wait,
	[TRACE_cond_wake] = within_cond_wake,
	[TRACE_token_wait] = within_nothing,
	[TRACE_token_take] = within_token_take,
	[TRACE_sleep_begin] = within_nothing,
	[TRACE_sleep_end] = within_nothing,
};

/* What was taken counts now: all in one moment, which the last of them ends. */
static void announced_settle(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint32_t actor = t->announced.actor, state = model_current_state(t);
	uint32_t nr = t->announced.nr_owed;
	t->announced.nr_owed = 0;
	t->announced.is_on = false;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t object = t->announced.owed[i].object, more = i + 1 < nr ? GRAPH_MORE : 0;
		uint32_t queue = model_queue_of(m, object, model_object(m, object), 1, 0);
		uint64_t n = t->announced.owed[i].n, units = graph_queue_units(m->graph, queue);
		if (n == ANNOUNCED_LOCK)
			model_verb_of(m, actor, GRAPH_VERB_dequeue, time_ns, queue, GRAPH_ALL,
				state, GRAPH_BACK | more);
		else
			model_verb_of(m, actor, GRAPH_VERB_resize, time_ns, queue,
				units > n ? (int64_t)(units - n) : 0, state, more);
	}
}

static bool announced_goes_on(const struct thread *t)
{
	return t->announced.actor == model_acting(t) &&
	       (t->mode == MODE_WAITING || !t->announced.is_told);
}

static bool announced_is_waiting(const struct trace_record *r)
{
	return r->kind == TRACE_cpu_out ||
	       (r->kind < BASE_COUNT(within_announced) && within_announced[r->kind]);
}

bool model_is_within_announced(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (!announced_goes_on(t)) { /* something else was recorded, and ended it */
		announced_settle(m, t, r->time_ns);
		return false;
	}
	bool waits = announced_is_waiting(r);
	if (waits && !t->announced.is_told)
		announced_tell(m, t, r->time_ns);
	return waits && r->kind != TRACE_cpu_out && within_announced[r->kind](m, t, r);
}

bool model_announces_again(const struct thread *t, enum graph_verb_kind verb, uint32_t queue)
{
	return t->announced.is_on && announced_goes_on(t) && t->announced.verb == verb &&
	       t->announced.queue == queue;
}

void model_announce(struct model *m, struct thread *t, enum graph_verb_kind verb, uint64_t time_ns,
	uint32_t queue, int64_t n, uint32_t state)
{
	t->announced.is_on = true;
	t->announced.is_told = false;
	t->announced.verb = verb;
	t->announced.queue = queue;
	t->announced.n = n;
	t->announced.state = state;
	t->announced.actor = model_acting(t);
	if (!t->nr_held)
		announced_tell(m, t, time_ns);
}

/* Replay looks at what was waited for first, and at the locks that come with it then. */
void model_end_announced(struct model *m, struct thread *t, enum graph_verb_kind verb,
	uint64_t time_ns, uint32_t queue, int64_t n, uint32_t state, uint32_t flags)
{
	uint32_t more = t->announced.nr_owed && announced_goes_on(t) ? GRAPH_MORE : 0;
	model_verb(m, t, verb, time_ns, queue, n, state, flags | more);
	announced_settle(m, t, time_ns);
}
