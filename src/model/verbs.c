/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.c - what rules say, told to the graph and to listeners beside it; where a path begins
 * and ends. */
#include "model/model_private.h"

uint32_t model_current_state(const struct thread *t)
{
	if (t->nr_machines && t->machine[t->nr_machines - 1].state != NONE)
		return t->machine[t->nr_machines - 1].state;
	return t->nr_held ? t->held[t->nr_held - 1].state : t->run_state;
}

uint32_t model_acting(const struct thread *t)
{
	return t->nr_machines ? t->machine[t->nr_machines - 1].actor : t->actor;
}

static bool model_is_in(const struct model_place *p, uint32_t actor, uint32_t state)
{
	return (!p->actor || (actor < p->nr_actors && p->actor[actor])) &&
	       (!p->state || (state < p->nr_states && p->state[state]));
}

/* Does this verb enter a state, and is it one of that place? */
static bool enters(const struct model *m, const struct model_place *p, const struct graph_verb *v)
{
	return p && m->made.actor[v->actor].state != v->state && model_is_in(p, v->actor, v->state);
}

static bool *path_started(struct model *m, uint32_t actor)
{
	uint32_t serves = m->made.actor[actor].serves;
	return serves ? &m->follow.followed[serves - 1].started : &m->part.path_started;
}

static void end_path(struct model *m, uint32_t actor, const struct graph_verb *v)
{
	uint32_t serves = m->made.actor[actor].serves;
	if (m->follow.by_connection && serves < 2) /* nobody's, or of one that is not followed */
		return;
	uint32_t end = serves ? m->follow.followed[serves - 1].pub.end : 0;
	model_keep(m, graph_end(m->graph, end, v->actor, v->time_ns, m->err));
}

void model_born(struct model *m, struct thread *t, uint64_t time_ns)
{
	t->k.unborn = false;
	t->life.born_ns = time_ns;
	if (m->opts->turns && m->status == BASE_OK)
		model_keep(m, graph_birth(m->graph, model_acting(t), m->err));
}

/* For whoever wants more than the graph: connections, a path's ends, a sink. */
static void apply_watched_verb(
	struct model *m, enum graph_verb_kind kind, struct graph_verb *v, uint32_t from_actor)
{
	const struct model_options *o = m->opts;
	uint32_t actor = v->actor;
	bool at_end = enters(m, o->end, v), at_start = enters(m, o->start, v);
	if (m->follow.by_connection)
		model_speak(m, kind, v, &from_actor);
	bool *started = path_started(m, actor);
	if (at_start && !*started) {
		*started = true;
		v->flags |= GRAPH_START;
	}
	model_keep(m, graph_apply(m->graph, kind, v, from_actor, m->err));
	if (m->status != BASE_OK)
		return;
	if (m->sink)
		model_keep(m, m->sink->verb(m->sink->ctx, kind, v, from_actor, m->err));
	if (at_end && kind != GRAPH_VERB_rename && !(v->flags & GRAPH_MORE))
		end_path(m, actor, v);
	if (!(v->flags & GRAPH_MORE))
		m->made.actor[actor].state = v->state;
}

static inline void apply_verb(
	struct model *m, enum graph_verb_kind kind, struct graph_verb *v, uint32_t from_actor)
{
	if (BASE_UNLIKELY(m->is_watched))
		apply_watched_verb(m, kind, v, from_actor);
	else
		model_keep(m, graph_apply(m->graph, kind, v, from_actor, m->err));
}

void model_verb_of(struct model *m, uint32_t actor, enum graph_verb_kind verb, uint64_t time_ns,
	uint32_t queue, int64_t n, uint32_t state, uint32_t flags)
{
	if (BASE_UNLIKELY(m->status != BASE_OK))
		return;
	struct graph_verb v = {
		.time_ns = time_ns,
		.actor = actor,
		.state = state,
		.queue = queue,
		.flags = flags,
		.n = n,
		.key = m->item_key,
		.came_ns = m->came_ns,
	};
	if (BASE_UNLIKELY(m->came_ns))
		v.came_state = model_runnable_state(m);
	apply_verb(m, verb, &v, 0);
}

/* Woken, but on a processor only now: that counts when it came last. */
static void model_add_processor(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state)
{
	uint32_t queue = t->cpu.processor_queue;
	t->cpu.processor_queue = NONE;
	if (t->mode == MODE_WAITING && graph_queue_units(m->graph, queue))
		model_verb_of(m, model_acting(t), GRAPH_VERB_peek, time_ns, queue, 1, state,
			GRAPH_LAST | GRAPH_MORE | GRAPH_OPTIONAL);
}

/* For anything but a processor. */
static bool verbs_is_waiting(const struct model *m, const struct thread *t)
{
	enum model_state_kind kind = t->graph_state < m->made.nr_states
					     ? m->made.state[t->graph_state].pub.kind
					     : MODEL_STATE_idle;
	return kind != MODEL_STATE_runnable && model_state_kind_waits(kind);
}

void model_verb(struct model *m, struct thread *t, enum graph_verb_kind verb, uint64_t time_ns,
	uint32_t queue, int64_t n, uint32_t state, uint32_t flags)
{
	if (BASE_UNLIKELY(t->cpu.processor_queue != NONE))
		model_add_processor(m, t, time_ns, state);
	/* The library does not know what ends this wait; but the waker is known. */
	if (BASE_UNLIKELY(t->k.woken && t->mode == MODE_WAITING)) {
		t->k.woken = false;
		if (t->k.answered) {
			; /* that ended it already */
		} else if (verb == GRAPH_VERB_state) {
			verb = GRAPH_VERB_dequeue;
			queue = t->k.wake_queue;
			n = GRAPH_ALL;
			flags |= GRAPH_LAST;
		} else if (verb == GRAPH_VERB_enqueue || verb >= GRAPH_VERB_wait_empty) {
			/* (a signal's handler, in the middle of a call) */
			model_verb_of(m, model_acting(t), GRAPH_VERB_dequeue, time_ns,
				t->k.wake_queue, GRAPH_ALL, t->graph_state, GRAPH_LAST);
		}
	}
	if (BASE_UNLIKELY(t->sleep.lasts))
		model_sleep_is_left(m, t, time_ns, state);
	if (verb == GRAPH_VERB_enqueue)
		model_nap_gives(m, t, queue);
	else if (BASE_UNLIKELY(flags & GRAPH_TIMED_OUT && t->mode == MODE_WAITING))
		model_nap_ends(m, t, t->entered_ns, time_ns);
	if (verb >= GRAPH_VERB_wait_empty) {
		if (t->mode != MODE_WAITING)
			t->limit.timed_before_ns = t->limit.timed_ns;
		t->limit.timed_ns = 0;
	}
	/* (where the wakings are recorded, the wait for a processor is a state of its own) */
	m->came_ns = t->mode == MODE_WAITING && !m->is_system ? t->cpu.on_ns : 0;
	model_verb_of(m, model_acting(t), verb, time_ns, queue, n, state, flags);
	m->came_ns = t->cpu.on_ns = 0;
	if (state != t->graph_state) {
		if (BASE_UNLIKELY(t->visit.open))
			model_visit_enters(m, t, state, time_ns);
		if (verbs_is_waiting(m, t))
			t->naps.works_ns = time_ns;
		t->entered_ns = time_ns;
		t->graph_state = state;
	}
	t->mode = verb >= GRAPH_VERB_wait_empty ? MODE_WAITING : MODE_RUNNING;
	t->k.answered = false;
	if (t->mode == MODE_WAITING)
		model_begin_wait(m, t, verb, queue, n);
}

void model_rename(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state)
{
	model_verb_of(m, model_acting(t), GRAPH_VERB_rename, time_ns, 0, 0, state, 0);
	t->graph_state = state;
}

void model_link(
	struct model *m, uint32_t actor, uint64_t time_ns, uint32_t state, uint32_t from_actor)
{
	if (m->status != BASE_OK)
		return;
	struct graph_verb v = {.time_ns = time_ns, .actor = actor, .state = state};
	apply_verb(m, GRAPH_VERB_link, &v, from_actor);
}

void model_link_cuts(
	struct model *m, struct thread *t, uint64_t time_ns, uint32_t state, uint32_t from_actor)
{
	if (m->status != BASE_OK)
		return;
	struct graph_verb v = {
		.time_ns = time_ns, .actor = model_acting(t), .state = state, .flags = GRAPH_CUTS};
	apply_verb(m, GRAPH_VERB_link, &v, from_actor);
	t->graph_state = state;
	t->mode = MODE_RUNNING;
}

/* ---- what recording took --------------------------------------------------------------------- */

void model_tell_recording(struct model *m, const struct thread *t, uint64_t ns)
{
	const struct graph_sink *sink = m->sink;
	if (ns && sink && sink->recording && m->status == BASE_OK)
		model_keep(m, sink->recording(sink->ctx, model_acting(t), ns, m->err));
}

void model_tell_late(struct model *m, const struct thread *t, int64_t ns)
{
	const struct graph_sink *sink = m->sink;
	if (sink && sink->late && m->status == BASE_OK)
		model_keep(m, sink->late(sink->ctx, model_acting(t), ns, m->err));
}
