/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_task.c - tasks that a language's runtime runs on threads of its own: goroutines. Its
 * scheduler says which task makes which ready, and which one has one of its processors. A wait is a
 * wait for a unit in the task's own queue, which the waker puts there; what the scheduler ended by
 * itself (a timer, the network) nobody did. Then the task waits for a processor.
 *
 * At a meeting (a channel without room) neither side goes on before the other has come: the first
 * to come waits, and the second also took the first one's arrival, which it need not wait for as
 * things were, but would if it were quicker. A channel with a buffer is a meeting, too, that who is
 * woken may be late for by as many items as it holds: who comes first found it full (or empty), and
 * the other one takes (or puts) what is so many items older. So that many arrivals are there from
 * the start. Operations in between that held nobody up come in pairs, and change nothing of it.
 */
#include "model/model_private.h"

static enum model_cause rules_task_cause(enum trace_task how)
{
	static const enum model_cause cause[TRACE_TASK_NR] = {
		[TRACE_TASK_wait] = MODEL_CAUSE_task_wait,
		[TRACE_TASK_meeting] = MODEL_CAUSE_task_wait,
		[TRACE_TASK_sleep] = MODEL_CAUSE_task_sleep,
		[TRACE_TASK_outside] = MODEL_CAUSE_task_outside,
		[TRACE_TASK_call] = MODEL_CAUSE_task_call,
	};
	return cause[how];
}

static uint32_t rules_task_make_arrivals(struct model *m, uint32_t stream, uint64_t ahead)
{
	uint32_t queue = model_make_queue(m, ahead, 0, MODEL_TYPE_WAKE, NONE, GRAPH_FIFO);
	if (queue < m->made.nr_queues) {
		m->made.queue[queue].wakes = stream + 1;
		m->made.queue[queue].pub.part = MODEL_QUEUE_wake;
	}
	return queue;
}

/* Where it has come to the meeting that it waits at, or is to wait at next. */
static uint32_t rules_task_arrivals(struct model *m, struct thread *t)
{
	if (t->k.task.channel != NONE)
		return t->k.task.channel;
	if (t->k.task.arrivals == NONE)
		t->k.task.arrivals = rules_task_make_arrivals(m, t->stream, 0);
	return t->k.task.arrivals;
}

void model_rule_task_channel(struct model *m, struct thread *t, const struct trace_record *r)
{
	enum { ROOM_MAX = 1 << 20 };
	const struct trace_task_channel *c = &r->u.task_channel;
	uint64_t queue = NONE, room = c->room < ROOM_MAX ? c->room : ROOM_MAX;
	m->seen.tasks = true;
	if (!base_map_get(&m->known.channels, 0, c->side, &queue)) {
		queue = rules_task_make_arrivals(m, t->stream, room);
		model_put(m, &m->known.channels, 0, c->side, queue);
	}
	t->k.task.channel = (uint32_t)queue;
}

/* Of strings and sites that are not defined nothing is known. */
static uint32_t rules_task_site(const struct model *m, uint32_t site)
{
	return site < m->defs->nr_sites ? site : 0;
}

void model_rule_task_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_task_wait *w = &r->u.task_wait;
	enum trace_task how = w->how < TRACE_TASK_NR ? (enum trace_task)w->how : TRACE_TASK_wait;
	uint32_t state = model_make_state(
		m, rules_task_cause(how), t->role, NONE, rules_task_site(m, w->site), w->what);
	m->seen.tasks = true;
	t->k.task.how = how;
	t->k.task.waits = true;
	t->k.task.nr_needs = 0;
	model_visit_leaves(t, r->time_ns);
	if (how > TRACE_TASK_meeting) {
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, state, 0);
		return;
	}
	if (how == TRACE_TASK_meeting)
		model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, rules_task_arrivals(m, t), 1,
			t->graph_state, 0);
	model_verb(m, t, GRAPH_VERB_wait_empty, r->time_ns, model_wake_queue(m, t), 1, state, 0);
}

/* It needs nothing but a processor. flags: how the wait before this one ended. */
static void rules_task_be_ready(struct model *m, struct thread *t, uint64_t time_ns, uint32_t flags)
{
	uint32_t queue = model_processor_queue(m, t->k.task.processor);
	if (queue == NONE)
		return;
	t->resume_state = t->run_state;
	model_verb(m, t, GRAPH_VERB_wait_empty, time_ns, queue, 1, model_runnable_state(m), flags);
	t->mode = MODE_RUNNABLE;
	t->cpu.ready_ns = time_ns;
	t->k.task.waits = false;
}

/* What has come to a meeting that does not take place leaves. */
static void rules_task_leave_meeting(struct model *m, struct thread *t, uint64_t time_ns)
{
	if (t->k.task.how == TRACE_TASK_meeting)
		model_verb_of(m, t->actor, GRAPH_VERB_dequeue, time_ns, rules_task_arrivals(m, t),
			1, t->graph_state, GRAPH_BACK | GRAPH_ASIDE);
	t->k.task.channel = NONE;
}

/* By what its waker has put; and, of the same moment, the ends of others that it needed. */
static void rules_task_end_wait(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint32_t ready = model_runnable_state(m);
	for (size_t i = 0; i < t->k.task.nr_needs; i++) {
		uint32_t queue = model_exit_queue(m, &m->thread[t->k.task.needs[i]]);
		if (queue != NONE && m->status == BASE_OK && graph_queue_units(m->graph, queue))
			model_verb_of(
				m, t->actor, GRAPH_VERB_peek, time_ns, queue, 1, ready, GRAPH_MORE);
	}
	t->k.task.nr_needs = 0;
	model_verb(m, t, GRAPH_VERB_dequeue, time_ns, model_wake_queue(m, t), GRAPH_ALL, ready,
		GRAPH_LAST);
	rules_task_be_ready(m, t, time_ns, 0);
}

void model_rule_task_wake(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t stream = r->u.task_wake.woken;
	m->seen.tasks = true;
	if (!stream || stream >= m->nr_threads || !m->thread[stream].seen) {
		model_count(m, TRACE_DIAG_ids_unknown);
		return;
	}
	struct thread *woken = &m->thread[stream];
	if (woken == t || !woken->k.task.waits || woken->ended)
		return;
	if (woken->k.task.how > TRACE_TASK_meeting || t->mode != MODE_RUNNING) {
		struct trace_record ready = {.time_ns = r->time_ns, .kind = TRACE_task_ready};
		model_rule_task_ready(m, woken, &ready);
		return;
	}
	if (r->u.task_wake.site)
		t->run_state = model_run_state(m, t, rules_task_site(m, r->u.task_wake.site));
	/* In this order: were it there before the other one, that one would not sleep. */
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, model_wake_queue(m, woken), 1,
		t->run_state, 0);
	if (woken->k.task.how == TRACE_TASK_meeting)
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, rules_task_arrivals(m, woken), 1,
			t->run_state, 0);
	woken->k.task.channel = NONE;
	rules_task_end_wait(m, woken, r->time_ns);
	woken->life.end_ns = r->time_ns;
}

void model_rule_task_ready(struct model *m, struct thread *t, const struct trace_record *r)
{
	m->seen.tasks = true;
	if (!t->k.task.waits) { /* it was made just now, or gives its processor up */
		if (t->mode == MODE_RUNNING)
			rules_task_be_ready(m, t, r->time_ns, 0);
		return;
	}
	const struct state_info *st = &m->made.state[t->graph_state];
	if (t->k.task.how <= TRACE_TASK_meeting && t->graph_state < m->made.nr_states) {
		rules_task_leave_meeting(m, t, r->time_ns);
		model_rename(m, t, r->time_ns,
			model_make_state(m, MODEL_CAUSE_task_unseen, t->role, NONE, st->pub.site,
				st->detail));
	}
	rules_task_be_ready(m, t, r->time_ns, GRAPH_EXPLAINED);
}

void model_rule_task_run(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t site = rules_task_site(m, r->u.task_run.site), what = r->u.task_run.what;
	m->seen.tasks = true;
	t->run_state = what ? model_make_state(m, MODEL_CAUSE_task_work, t->role, NONE, site, what)
			    : model_run_state(m, t, site);
	t->k.task.waits &= t->mode == MODE_WAITING;
	if (t->mode == MODE_RUNNING)
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, t->run_state, 0);
	else
		t->resume_state = t->run_state;
}

void model_rule_task_needs(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t stream = r->u.task_needs.ended;
	if (!stream || stream >= m->nr_threads || !m->thread[stream].seen || !t->k.task.waits) {
		model_count(m, TRACE_DIAG_ids_unknown);
		return;
	}
	if (model_grow(m, &t->k.task.needs, &t->k.task.needs_capacity, t->k.task.nr_needs + 1,
		    sizeof *t->k.task.needs))
		t->k.task.needs[t->k.task.nr_needs++] = stream;
}

/* Where nobody had that processor since the task was ready, nobody but the scheduler held it up. */
void model_task_comes(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint64_t number = r->u.cpu_in.processor;
	const struct object *p = &m->processors.processor[number];
	if (!m->seen.tasks)
		return;
	if (!p->user || p->left_ns < t->cpu.ready_ns)
		model_rename(m, t, r->time_ns,
			model_make_state(m, MODEL_CAUSE_processor_idle, NONE, NONE, 0, 0));
	t->k.task.processor = (uint32_t)number;
}

bool model_has_tasks(const struct model *m)
{
	return m->seen.tasks;
}
