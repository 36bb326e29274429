/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_turn.c - tasks that take turns on one thread: those of an event loop. Each is an actor. While
 * it is its turn, its thread speaks for it: what the thread calls, holds and computes is the task's.
 * The loop is a token (records of its lock tell of that), so the others wait for a task that holds
 * it up.
 *
 * A task's wait is a wait for a unit in its own queue. That is put there by another task
 * in its turn, or by the thread between turns: then by what came from outside, which ended the
 * loop's own wait. A sleeping task's unit is put by the clock that it has set. If nothing else ended
 * the loop's wait, its thread waited for that clock, too.
 */
#include "base/heap.h"
#include "model/model_private.h"

enum { TURN_EARLY_NS = 2000000 }; /* a loop takes a timer that is nearly due: its clock is coarse */

static bool turn_is_before(const struct turn_time *a, const struct turn_time *b)
{
	return a->due_ns < b->due_ns;
}

/* ---- tasks and loops ------------------------------------------------------------------------- */

/* By its number in the process; it is made when it is met first. NULL: no memory. */
static struct turn_task *turn_task_of(
	struct model *m, struct thread *t, uint64_t number, uint32_t site, uint64_t time_ns)
{
	uint64_t ix;
	if (base_map_get(&m->timing.turns.tasks, t->process, number, &ix))
		return &m->timing.turns.task[ix];
	site = site < m->defs->nr_sites ? site : 0;
	uint32_t role = model_role_of(m, model_host_of(m, t->stream), t->process, site);
	ix = m->timing.turns.nr_tasks;
	if (m->status != BASE_OK ||
		!model_grow(m, &m->timing.turns.task, &m->timing.turns.task_capacity, ix + 1,
			sizeof *m->timing.turns.task))
		return NULL;
	m->timing.turns.nr_tasks++;
	m->timing.turns.task[ix] = (struct turn_task){.actor = model_make_actor(m, role, 0),
		.role = role,
		.wake_queue = model_make_queue(m, 0, 0, MODEL_TYPE_WAKE, NONE, GRAPH_FIFO),
		.clock = NONE};
	model_put(m, &m->timing.turns.tasks, t->process, number, ix);
	if (m->status != BASE_OK)
		return NULL;
	struct model_actor *a = &m->made.actor[m->timing.turns.task[ix].actor].pub;
	a->begin_ns = a->end_ns = time_ns;
	if (t->process < m->defs->nr_processes)
		a->pid = m->defs->processes[t->process].pid;
	return &m->timing.turns.task[ix];
}

static uint32_t turn_number(const struct model *m, const struct turn_task *task)
{
	return (uint32_t)(task - m->timing.turns.task);
}

static uint32_t turn_loop_state(struct model *m, uint32_t object)
{
	return model_wait_state(m, model_class_of(m, object, 0), 0, false);
}

/* Its number + 1; 0: no memory. */
static uint32_t turn_loop_of(struct model *m, uint32_t object)
{
	for (size_t i = 0; i < m->timing.turns.nr_loops; i++)
		if (m->timing.turns.loop[i].object == object)
			return (uint32_t)i + 1;
	if (!model_grow(m, &m->timing.turns.loop, &m->timing.turns.loop_capacity,
		    m->timing.turns.nr_loops + 1, sizeof *m->timing.turns.loop))
		return 0;
	m->timing.turns.loop[m->timing.turns.nr_loops++] = (struct turn_loop){.object = object};
	return (uint32_t)m->timing.turns.nr_loops;
}

/* Of a loop: when somebody last gave it up. A task whose time has come waits for that, too. */
static uint32_t turn_freed(struct model *m, uint32_t object, struct object *o)
{
	if (o->queue2 == NONE)
		o->queue2 = model_make_part(m, object, MODEL_QUEUE_helper, TRACE_OBJECT_event_loop,
			model_class_of(m, object, 0));
	return o->queue2;
}

static uint32_t turn_wait_state(struct model *m, const struct turn_task *task, bool sleeps)
{
	const enum model_cause cause = sleeps     ? MODEL_CAUSE_task_sleep
				       : task->at ? MODEL_CAUSE_turn_wait
						  : MODEL_CAUSE_turn_wait_future;
	return model_make_state(m, cause, task->role, NONE, task->site, sleeps ? 0 : task->at);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* The task sleeps from now. */
static void turn_set_clock(
	struct model *m, struct thread *t, struct turn_task *task, uint64_t time_ns)
{
	struct turn_loop *l = &m->timing.turns.loop[t->turn.loop - 1];
	if (!model_grow(m, &l->time, &l->time_capacity, l->nr_times + 1, sizeof *l->time))
		return;
	if (task->clock == NONE) {
		uint32_t clock = model_make_actor(m, NONE, NONE);
		if (m->status != BASE_OK)
			return;
		m->made.actor[clock].clock_of = task->actor + 1;
		task->clock = clock;
	}
	model_link(m, task->clock, time_ns, task->state, task->actor);
	const struct turn_time due = {.due_ns = task->due_ns, .task = turn_number(m, task)};
	BASE_HEAP_PUT(l->time, l->nr_times, due, turn_is_before);
}

static void turn_tick(struct model *m, struct turn_task *task, uint64_t time_ns)
{
	if (!task->is_told)
		model_verb_of(m, task->clock, GRAPH_VERB_enqueue,
			task->due_ns < time_ns ? task->due_ns : time_ns, task->wake_queue, 1,
			task->state, GRAPH_DATED);
	task->is_told = true;
}

/* The one whose time comes next, of those that wait for it; NULL: none. */
static struct turn_task *turn_next(struct model *m, struct turn_loop *l)
{
	while (l->nr_times) {
		struct turn_task *task = &m->timing.turns.task[l->time[0].task];
		if (task->waits && task->due_ns == l->time[0].due_ns)
			return task;
		BASE_HEAP_DROP(l->time, l->nr_times, turn_is_before);
	}
	return NULL;
}

bool model_turn_time_came(struct model *m, struct thread *t, uint64_t time_ns)
{
	if (!t->turn.loop || t->turn.task)
		return false;
	struct turn_task *task = turn_next(m, &m->timing.turns.loop[t->turn.loop - 1]);
	if (!task || task->clock == NONE || task->due_ns > time_ns + TURN_EARLY_NS)
		return false;
	turn_tick(m, task, time_ns);
	model_verb(m, t, GRAPH_VERB_peek, time_ns, task->wake_queue, 1, model_current_state(t),
		GRAPH_LAST);
	return true;
}

/* ---- ready ----------------------------------------------------------------------------------- */

/* Its time has come; it is told late if the loop was held up meanwhile. Flags for what follows. */
static uint32_t turn_timed(
	struct model *m, struct turn_task *task, uint32_t freed, uint64_t time_ns, uint32_t state)
{
	if (task->clock == NONE || !task->due_ns) {
		model_verb_of(m, task->actor, GRAPH_VERB_rename, time_ns, 0, 0,
			turn_wait_state(m, task, true), 0);
		return GRAPH_EXPLAINED;
	}
	turn_tick(m, task, time_ns);
	if (m->status == BASE_OK && graph_queue_units(m->graph, freed))
		model_verb_of(m, task->actor, GRAPH_VERB_peek, time_ns, freed, 1, state,
			GRAPH_LAST | GRAPH_MORE);
	model_verb_of(m, task->actor, GRAPH_VERB_dequeue, time_ns, task->wake_queue, GRAPH_ALL,
		state, GRAPH_LAST);
	return 0;
}

void model_rule_turn_due(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_turn_due *d = &r->u.turn_due;
	struct object *o = model_object(m, d->object);
	size_t nr_before = m->timing.turns.nr_tasks;
	struct turn_task *task = o ? turn_task_of(m, t, d->task, d->site, r->time_ns) : NULL;
	if (!task || task->is_ready || t->turn.task == turn_number(m, task) + 1)
		return;
	uint32_t queue = model_queue_of(m, d->object, o, 1, 0), flags = 0;
	uint32_t state = turn_loop_state(m, d->object), freed = turn_freed(m, d->object, o);
	if (m->timing.turns.nr_tasks > nr_before || !task->waits) {
		model_link(m, task->actor, r->time_ns, state, model_acting(t));
	} else if (d->timed) {
		flags = turn_timed(m, task, freed, r->time_ns, state);
	} else {
		model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, task->wake_queue, 1,
			t->graph_state, 0);
		model_verb_of(m, task->actor, GRAPH_VERB_dequeue, r->time_ns, task->wake_queue,
			GRAPH_ALL, state, GRAPH_LAST);
	}
	model_verb_of(m, task->actor, GRAPH_VERB_wait_empty, r->time_ns, queue, 1, state, flags);
	task->waits = false;
	task->is_ready = true;
	task->due_ns = 0;
	task->state = state;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* From now on the thread speaks for the task; it keeps what is its own. */
static void turn_swap(struct model *m, struct thread *t, struct turn_task *task)
{
	t->turn.actor = t->actor;
	t->turn.role = t->role;
	t->turn.run_state = t->run_state;
	t->turn.runs = t->runs;
	t->actor = task->actor;
	t->role = task->role;
	t->runs = task->runs;
	task->runs = (struct run_states){0};
	t->run_state = model_run_state(m, t, task->site);
	t->turn.task = turn_number(m, task) + 1;
}

static void turn_swap_back(struct thread *t, struct turn_task *task)
{
	task->runs = t->runs;
	t->actor = t->turn.actor;
	t->role = t->turn.role;
	t->run_state = t->turn.run_state;
	t->runs = t->turn.runs;
	t->turn.runs = (struct run_states){0};
	t->turn.task = 0;
}

void model_rule_turn_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_turn_begin *b = &r->u.turn_begin;
	struct object *o = model_object(m, b->object);
	struct turn_task *task =
		o && !t->turn.task ? turn_task_of(m, t, b->task, b->site, r->time_ns) : NULL;
	if (!task || t->nr_machines)
		return;
	t->turn.loop = turn_loop_of(m, b->object);
	if (!t->turn.loop)
		return;
	const uint32_t own = t->actor, state = turn_loop_state(m, b->object);
	model_visit_leaves(t, r->time_ns);
	model_verb(m, t, GRAPH_VERB_wait, r->time_ns, 0, 0, state, GRAPH_EXPLAINED);
	turn_swap(m, t, task);
	t->graph_state = task->is_ready ? state : t->run_state;
	t->mode = task->is_ready ? MODE_WAITING : MODE_RUNNING;
	if (!task->is_ready)
		model_link(m, t->actor, r->time_ns, t->run_state, own);
	task->waits = task->is_ready = false;
}

static void turn_wait(struct model *m, struct thread *t, struct turn_task *task,
	const struct trace_turn_end *e, uint64_t time_ns)
{
	task->at = e->at < m->defs->nr_sites ? e->at : 0;
	task->site = e->site < m->defs->nr_sites ? e->site : 0;
	task->due_ns = !e->remaining_ns                         ? 0
		       : e->remaining_ns < UINT64_MAX - time_ns ? time_ns + e->remaining_ns
								: UINT64_MAX;
	task->state = turn_wait_state(m, task, task->due_ns != 0);
	task->waits = true;
	task->is_told = false;
	if (task->due_ns)
		turn_set_clock(m, t, task, time_ns);
	model_verb(m, t, GRAPH_VERB_wait_empty, time_ns, task->wake_queue, 1, task->state, 0);
}

void model_rule_turn_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_turn_end *e = &r->u.turn_end;
	if (!t->turn.task || t->nr_machines)
		return;
	struct turn_task *task = &m->timing.turns.task[t->turn.task - 1];
	const uint32_t object = m->timing.turns.loop[t->turn.loop - 1].object;
	struct object *o = model_object(m, object);
	model_visit_leaves(t, r->time_ns);
	if (e->how == TRACE_TURN_ends)
		model_verb(m, t, GRAPH_VERB_wait, r->time_ns, 0, 0, model_idle_state(m),
			GRAPH_EXPLAINED);
	else
		turn_wait(m, t, task, e, r->time_ns);
	turn_swap_back(t, task);
	m->made.actor[task->actor].pub.end_ns = r->time_ns;
	m->made.actor[task->actor].pub.ended = e->how == TRACE_TURN_ends;
	model_link(m, t->actor, r->time_ns, t->run_state, task->actor);
	t->graph_state = t->run_state;
	t->mode = MODE_RUNNING;
	uint32_t freed = o ? turn_freed(m, object, o) : NONE;
	if (m->status != BASE_OK || freed == NONE)
		return;
	if (graph_queue_units(m->graph, freed))
		model_verb(m, t, GRAPH_VERB_resize, r->time_ns, freed, 0, t->run_state, 0);
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, freed, 1, t->run_state, 0);
}

uint32_t model_turn_actor(const struct model *m, uint32_t stream, uint64_t task)
{
	uint64_t ix;
	if (task && stream < m->nr_threads &&
		base_map_get(&m->timing.turns.tasks, m->thread[stream].process, task, &ix))
		return m->timing.turns.task[ix].actor;
	return model_stream_actor(m, stream);
}

void model_free_turns(struct model *m)
{
	for (size_t i = 0; i < m->timing.turns.nr_tasks; i++)
		base_free(m->timing.turns.task[i].runs.by_site);
	for (size_t i = 0; i < m->timing.turns.nr_loops; i++)
		base_free(m->timing.turns.loop[i].time);
	base_free(m->timing.turns.task);
	base_free(m->timing.turns.loop);
}
