/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_kernel_context.c - interrupts, softirqs and what they stand for. A context is one actor on
 * its processor, but its runs have nothing to do with each other: at the end of each its path is
 * forgotten, and the next begins with the first thing that has a known cause (a packet's sender, a
 * disk's request, the sender of the interrupt). Until then it has no path, and a thread that it
 * wakes has waited for something of its kind. Kernel workers, timers and locks name what is done.
 */
#include "model/model_private.h"

#include <string.h>

struct object *model_kernel_object(struct model *m, uint32_t id, enum trace_object_type type)
{
	bool is = m->is_system && id && id < m->nr_objects && m->defs->objects[id].type == type;
	return is ? &m->object[id] : NULL;
}

/* Is it a kernel thread? That has a name, but nobody ran it: there is no command. */
void model_find_server(const struct model *m, struct thread *t)
{
	const struct trace_process *p = trace_def_process(m->defs, t->process);
	const char *name = trace_text_of(m->defs, p->name);
	t->k.server = m->is_system && !model_is_context(t) && p->name && !p->command &&
		      !p->parent && !(m->opts->process && !strcmp(name, m->opts->process));
	/* a grace period ends when every processor has passed: the last one is not its cause */
	t->k.anybodys = t->k.server && !strncmp(name, "rcu", 3);
}

bool model_is_context(const struct thread *t)
{
	return t->k.context != TRACE_CONTEXT_none;
}

bool model_is_credited(const struct thread *t)
{
	return (!model_is_context(t) && !t->k.server) || t->k.credited;
}

uint32_t model_busy_state(const struct thread *t)
{
	return model_is_context(t) ? t->run_state : t->graph_state;
}

/*
 * Something is done by a thread that waits, the library says: for bytes, but it is back and only
 * its call's end is to come. Then who woke it, or brought the bytes, ended the wait. A wait for a
 * lock goes on.
 */
static void rules_kernel_context_settle(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint32_t queue = t->io.queue, state = t->graph_state;
	if (!t->io.active || !(t->k.woken || (t->io.wants_space && t->k.on)))
		return;
	if (!t->k.woken) { /* there was room all the time: somebody takes who is not recorded */
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0, state, GRAPH_EXPLAINED);
	} else if (queue != NONE && !t->io.wants_space && graph_queue_units(m->graph, queue)) {
		model_verb(m, t, GRAPH_VERB_peek, time_ns, queue, 1, state, 0);
		t->k.woken = false;
	} else {
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0, state, 0);
	}
}

bool model_may_act(struct model *m, struct thread *t, uint64_t time_ns)
{
	if (model_is_context(t))
		return true;
	if (t->mode == MODE_WAITING && t->k.answered)
		return true;
	if (t->mode == MODE_WAITING)
		rules_kernel_context_settle(m, t, time_ns);
	return t->mode == MODE_RUNNING;
}

void model_credit(struct thread *t)
{
	if (model_is_context(t)) {
		t->k.credited = true;
		t->graph_state = t->run_state;
	}
}

void model_forget_context(struct model *m, struct thread *t, uint64_t time_ns)
{
	if (!t->k.credited)
		return;
	model_verb_of(m, t->actor, GRAPH_VERB_forget, time_ns, 0, 0, model_idle_state(m), 0);
	t->graph_state = model_idle_state(m);
	t->k.credited = false;
}

void model_rule_context_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (!model_is_context(t))
		return;
	model_forget_context(m, t, r->time_ns); /* its end was not seen */
	t->k.fired_site = 0;
}

void model_rule_context_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (!model_is_context(t))
		return;
	model_forget_context(m, t, r->time_ns);
	t->k.fired_site = 0;
}

/* ---- who asked for it ------------------------------------------------------------------------ */

/*
 * A thread that an inter-processor interrupt wakes has waited for its sender; the softirq that
 * hands packets up runs for the sender of one to this very host. Of other softirqs the raiser says
 * nothing about the thread that they serve.
 */
static bool is_sent(const struct thread *c)
{
	return c->k.context == TRACE_CONTEXT_ipi || c->k.context == TRACE_CONTEXT_softirq;
}

void model_rule_context_raise(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t stream = r->u.context_raise.context;
	if (!m->is_system || !stream || stream >= m->nr_threads) {
		model_count(m, TRACE_DIAG_ids_unknown);
		return;
	}
	struct thread *c = &m->thread[stream];
	if (!model_is_context(c) || c->k.context != TRACE_CONTEXT_ipi || c == t ||
		!model_is_credited(t) || !model_may_act(m, t, r->time_ns))
		return;
	uint32_t queue = model_wake_queue(m, c);
	if (graph_queue_units(m->graph, queue))
		model_verb_of(m, model_acting(t), GRAPH_VERB_resize, r->time_ns, queue, 0,
			model_busy_state(t), 0);
	model_verb_of(m, model_acting(t), GRAPH_VERB_enqueue, r->time_ns, queue, 1,
		model_busy_state(t), 0);
}

void model_take_raise(struct model *m, struct thread *c, uint64_t time_ns)
{
	if (!model_is_context(c) || c->k.credited || !is_sent(c) || c->k.wake_queue == NONE ||
		!graph_queue_units(m->graph, c->k.wake_queue))
		return;
	model_verb_of(m, c->actor, GRAPH_VERB_dequeue, time_ns, c->k.wake_queue, GRAPH_ALL,
		c->run_state, GRAPH_LAST);
	model_credit(c);
}

/* ---- timers: a thread that one wakes has slept
 * --------------------------------------------------- */

void model_rule_timer_fire(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t site = r->u.timer_fire.site;
	t->k.fired_site = site < m->defs->nr_sites ? site : 0;
}

/* ---- kernel workers -------------------------------------------------------------------------- */

void model_rule_work_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (model_is_context(t) || t->mode != MODE_RUNNING || t->nr_held || t->nr_machines)
		return;
	t->run_state = model_run_state(m, t, r->u.work_begin.site);
	model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t), 0);
}

void model_rule_work_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (model_is_context(t) || t->mode != MODE_RUNNING || t->nr_held || t->nr_machines)
		return;
	t->run_state = model_run_state(m, t, 0);
	model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t), 0);
}

/* ---- kernel locks: spun for, or slept for ---------------------------------------------------- */

void model_rule_kernel_lock_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.kernel_lock_wait.object;
	if (!model_object(m, object) || model_is_context(t) || t->mode != MODE_RUNNING)
		return;
	t->k.lock = object;
	t->k.before_lock = t->graph_state;
	model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0,
		model_make_state(
			m, MODEL_CAUSE_kernel_lock, NONE, model_class_of(m, object, 0), 0, 0),
		0);
}

void model_rule_kernel_lock_acquire(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (!t->k.lock || t->k.lock != r->u.kernel_lock_acquire.object)
		return;
	t->k.lock = 0;
	if (t->mode == MODE_RUNNING)
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, t->k.before_lock, 0);
}
